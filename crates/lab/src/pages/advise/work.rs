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

/// The room that mappings leave behind them in their last pages, with each page size: how much it was, and how much is left. The kernel
/// puts smaller mappings there, as it takes the highest place that is free.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps(Vec<Vec<(u64, u64)>>);

impl Gaps {
    pub fn new(sizes: usize) -> Gaps {
        Gaps(vec![Vec::new(); sizes])
    }

    /// Puts a mapping of `bytes` into a gap; returns whether one has room for it.
    fn take(&mut self, place: usize, bytes: u64) -> bool {
        let gap = self.0[place].iter_mut().find(|(_, left)| *left >= bytes);
        gap.is_some_and(|(_, left)| {
            *left -= bytes;
            true
        })
    }

    /// Notes the gap behind a new mapping.
    fn open(&mut self, place: usize, gap: u64) {
        self.0[place].extend((gap > 0).then_some((gap, gap)));
    }

    /// Forgets the gap behind a mapping that is gone.
    fn close(&mut self, place: usize, gap: u64) {
        let gaps = &mut self.0[place];
        if let Some(index) = gaps.iter().position(|&(whole, _)| whole == gap) {
            gaps.swap_remove(index);
        }
    }
}

impl Mapped {
    pub fn new(sizes: usize) -> Mapped {
        Mapped { small: vec![0; sizes], allocated: vec![0; sizes], freed: vec![0; sizes] }
    }

    /// Begins to count: what was allocated and freed so far is left out.
    pub fn begin(&mut self) {
        self.allocated.fill(0);
        self.freed.fill(0);
    }

    /// Counts memory by which the heap grows; `before` are its bytes so far.
    pub fn grow(&mut self, bytes: u64, before: u64, sizes: &[u64]) {
        for (allocated, &page) in self.allocated.iter_mut().zip(sizes) {
            *allocated += (before + bytes).next_multiple_of(page) - before.next_multiple_of(page);
        }
    }

    /// Counts a new mapping: one that fills a page begins with a page.
    pub fn map(&mut self, bytes: u64, sizes: &[u64], gaps: &mut Gaps) {
        for (i, &page) in sizes.iter().enumerate() {
            if bytes < page && gaps.take(i, bytes) {
                continue;
            }
            let from = if bytes < page { self.small[i] } else { 0 };
            self.allocated[i] += (from + bytes).next_multiple_of(page) - from.next_multiple_of(page);
            if bytes < page {
                self.small[i] += bytes;
            } else {
                gaps.open(i, bytes.next_multiple_of(page) - bytes);
            }
        }
    }

    /// Counts a mapping that is gone. Pages that other mappings share stay.
    pub fn unmap(&mut self, bytes: u64, sizes: &[u64], gaps: &mut Gaps) {
        for (i, &page) in sizes.iter().enumerate().filter(|&(_, &page)| bytes >= page) {
            self.freed[i] += bytes.next_multiple_of(page);
            gaps.close(i, bytes.next_multiple_of(page) - bytes);
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
        let (mut mapped, mut gaps) = (Mapped::new(2), Gaps::new(2));
        mapped.map(3 << 20, &sizes, &mut gaps);
        assert_eq!(mapped.allocated, [3 << 20, 4 << 20]);
        let mut heap = Mapped::new(2);
        heap.grow(1 << 16, 0, &sizes);
        heap.grow(1 << 16, 1 << 16, &sizes);
        assert_eq!(heap.allocated, [2 << 16, 1 << 21], "the second part lies in the same large page");
    }

    #[test]
    fn small_mappings_lie_in_the_last_page_of_a_large_one_until_it_is_full() {
        let sizes = [1 << 16, 1 << 21];
        let (mut large, mut small, mut gaps) = (Mapped::new(2), Mapped::new(2), Gaps::new(2));
        large.map(5 << 19, &sizes, &mut gaps);
        assert_eq!(large.allocated, [5 << 19, 4 << 20], "2.5 MiB leave 1.5 MiB of the second page");
        (0..2).for_each(|_| small.map(3 << 18, &sizes, &mut gaps));
        assert_eq!(small.allocated, [3 << 19, 0]);
        small.map(3 << 18, &sizes, &mut gaps);
        assert_eq!(small.allocated, [9 << 18, 1 << 21]);
        large.unmap(5 << 19, &sizes, &mut gaps);
        large.map(5 << 19, &sizes, &mut gaps);
        large.unmap(5 << 19, &sizes, &mut gaps);
        small.map(3 << 18, &sizes, &mut gaps);
        assert_eq!(small.allocated[1], 1 << 21, "in the page of the one before, as the gap is gone");
    }
}
