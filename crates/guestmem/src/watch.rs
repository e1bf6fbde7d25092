//! Watchpoints: addresses whose stores are recorded.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{ADDRESS, Memory, PAGE_SHIFT};

/// The watched address ranges, and those of them that have been written.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Watch {
    watched: Vec<Range<u64>>,
    written: Vec<Range<u64>>,
}

impl Watch {
    /// Returns whether stores to a page must be checked.
    pub(super) fn has_page(&self, page: u64) -> bool {
        self.watched.iter().any(|range| (range.start >> PAGE_SHIFT..=(range.end - 1) >> PAGE_SHIFT).contains(&page))
    }

    /// Records that this range has been written or remapped.
    pub(super) fn note(&mut self, range: Range<u64>) {
        let meets = |other: &&Range<u64>| range.start < other.end && other.start < range.end;
        for watched in self.watched.iter().filter(meets) {
            if !self.written.contains(watched) {
                self.written.push(watched.clone());
            }
        }
    }
}

impl Memory {
    /// Watches these address ranges for stores, and no others. None may be empty.
    pub fn watch(&mut self, ranges: Vec<Range<u64>>) {
        for range in &ranges {
            for page in (range.start & ADDRESS) >> PAGE_SHIFT..=((range.end - 1) & ADDRESS) >> PAGE_SHIFT {
                self.tlb.forbid_stores(page);
            }
        }
        self.spaces.active_mut().watch.watched = ranges;
    }

    /// Returns whether a watched range has been written.
    #[inline(always)]
    #[must_use]
    pub fn has_written(&self) -> bool {
        !self.spaces.active().watch.written.is_empty()
    }

    /// Takes the ranges that have been written.
    pub fn take_written(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.spaces.active_mut().watch.written)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use crate::{Memory, PAGE, Prot, Segment};

    const AT: u64 = 0x1_0000;

    fn watching() -> Memory {
        let mut m = Memory::new(16 * PAGE).expect("reserve");
        m.map(AT, 2 * PAGE, Prot::RW, Segment::Mmap).unwrap();
        m.store(AT, 1u64).unwrap();
        m.watch(vec![AT + 8..AT + 16, AT + 64..AT + 68]);
        m
    }

    fn only(mut ranges: Vec<Range<u64>>) -> Range<u64> {
        let range = ranges.pop().expect("a range");
        assert!(ranges.is_empty(), "one range only");
        range
    }

    #[test]
    fn a_store_to_a_watched_address_is_recorded_and_one_next_to_it_is_not() {
        let mut m = watching();
        m.store(AT, 2u64).unwrap();
        m.store(AT + 16, 2u64).unwrap();
        assert!(!m.has_written());
        m.store(AT + 12, 2u8).unwrap();
        assert!(m.has_written());
        assert_eq!(only(m.take_written()), AT + 8..AT + 16);
        assert!(!m.has_written());
        assert_eq!(m.load::<u8>(AT + 12), Ok(2));
    }

    #[test]
    fn kernel_writes_are_recorded_too() {
        let mut m = watching();
        m.write(AT + 60, &[1; 8]).unwrap();
        assert_eq!(only(m.take_written()), AT + 64..AT + 68);
        m.zero(AT, 2 * PAGE).unwrap();
        assert_eq!(m.take_written().len(), 2);
    }

    #[test]
    fn unmapping_a_watched_range_is_recorded() {
        let mut m = watching();
        m.unmap(AT, PAGE).unwrap();
        assert_eq!(m.take_written().len(), 2);
    }

    #[test]
    fn nothing_is_recorded_when_nothing_is_watched() {
        let mut m = watching();
        m.watch(Vec::new());
        m.store(AT + 8, 2u64).unwrap();
        assert!(!m.has_written());
    }
}
