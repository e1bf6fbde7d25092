//! The kernel's work on pages with each page size: allocating, clearing and freeing them takes a program's time.

use fxscope_machine::spec::PageCosts;

use super::Group;
use super::advice::POLICY;

/// Bytes that the kernel allocates and frees for mappings of one part, with each page size.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapped {
    /// Bytes of mappings that fill no page, together: they lie side by side.
    small: Vec<u64>,
    /// Bytes of allocated pages.
    allocated: Vec<u64>,
    /// Bytes of freed pages.
    freed: Vec<u64>,
}

impl Mapped {
    pub fn new(sizes: usize) -> Mapped {
        Mapped { small: vec![0; sizes], allocated: vec![0; sizes], freed: vec![0; sizes] }
    }

    /// Counts a new mapping. `before` are the bytes of the range that it continues: the heap grows from its start.
    pub fn map(&mut self, bytes: u64, before: u64, sizes: &[u64]) {
        for (i, &page) in sizes.iter().enumerate() {
            let from = if before > 0 || bytes >= page { before } else { self.small[i] };
            self.allocated[i] += (from + bytes).next_multiple_of(page) - from.next_multiple_of(page);
            if before == 0 && bytes < page {
                self.small[i] += bytes;
            }
        }
    }

    /// Counts a mapping that is gone. Pages that other mappings share stay.
    pub fn unmap(&mut self, bytes: u64, sizes: &[u64]) {
        for (freed, &page) in self.freed.iter_mut().zip(sizes) {
            *freed += if bytes < page { 0 } else { bytes.next_multiple_of(page) };
        }
    }

    /// Returns the seconds of the work with the page size at `place`.
    pub fn seconds(&self, place: usize, costs: &PageCosts) -> f64 {
        self.allocated[place] as f64 / costs.clear_bytes_per_second as f64 + self.freed(place, costs)
    }

    /// Returns the seconds of freeing alone.
    pub fn freed(&self, place: usize, costs: &PageCosts) -> f64 {
        self.freed[place] as f64 / costs.free_bytes_per_second as f64
    }
}

/// Returns the seconds of `pages` first touches of pages of `bytes` bytes.
pub(super) fn touching(pages: u64, bytes: u64, costs: &PageCosts) -> f64 {
    let each = costs.fault_ns as f64 * 1e-9 + bytes as f64 / costs.clear_bytes_per_second as f64;
    pages as f64 * each
}

/// When the pages of a group's memory are allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Allocation {
    /// Before the program's first instruction, at no cost for it.
    Before,
    /// When it is mapped.
    Mapping,
    /// At the first touch.
    Touch,
}

/// Returns when the pages of a group are allocated under these variables; `on_demand`: the large-page library leaves all pages to
/// the kernel.
pub(super) fn allocation(group: Group, environment: &[(String, String)], on_demand: bool) -> Allocation {
    let value = environment.iter().rev().find(|(name, _)| name == POLICY).map_or("", |(_, value)| value);
    let words: Vec<&str> = value.split(':').collect();
    let is_valid = words.len() == 3 && words.iter().all(|word| ["prepage", "demand"].contains(word));
    let demands = |place: usize, default: bool| on_demand || if is_valid { words[place] == "demand" } else { default };
    match group {
        Group::Text => Allocation::Before,
        Group::Data if !on_demand => Allocation::Before,
        Group::Bss if !demands(0, false) => Allocation::Before,
        Group::Heap | Group::Mmap if !demands(2, false) => Allocation::Mapping,
        Group::Stacks if !demands(1, true) => Allocation::Before,
        _ => Allocation::Touch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_rounded_up_to_whole_pages_and_the_heap_grows_within_its_last_page() {
        let sizes = [1 << 16, 1 << 21];
        let mut mapped = Mapped::new(2);
        mapped.map(3 << 20, 0, &sizes);
        assert_eq!(mapped.allocated, [3 << 20, 4 << 20]);
        let mut heap = Mapped::new(2);
        heap.map(1 << 16, 0, &sizes);
        heap.map(1 << 16, 1 << 16, &sizes);
        assert_eq!(heap.allocated, [2 << 16, 1 << 21], "the second part lies in the same large page");
    }
}
