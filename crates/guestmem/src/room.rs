//! How much of the memory is in use.

use super::{Memory, Region};

impl Memory {
    /// Bytes of guest memory that are backed now, in all address spaces of the arena.
    #[must_use]
    pub fn backed_bytes(&self) -> u64 {
        self.arena.used_bytes()
    }

    /// Sets how many bytes of the limit are used for something other than pages. They are not available for pages.
    pub fn set_elsewhere(&mut self, bytes: u64) {
        self.arena.set_elsewhere(bytes);
    }

    /// What was said with [`Memory::set_elsewhere`], in bytes.
    #[must_use]
    pub fn elsewhere_bytes(&self) -> u64 {
        self.arena.elsewhere()
    }

    /// Sets how many bytes of the limit the simulator holds on the program's behalf. They are not available for pages.
    pub fn set_reserved(&mut self, bytes: u64) {
        self.arena.set_reserved(bytes);
    }

    /// Bytes that may be used in all.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.arena.limit()
    }

    /// Number of regions.
    #[must_use]
    pub fn region_count(&self) -> usize {
        self.spaces.active().regions.len()
    }

    /// The regions that reach into `[start, end)`, lowest first.
    pub fn regions_within(&self, start: u64, end: u64) -> impl Iterator<Item = &Region> {
        let first = self.region_at(start).map_or(start, |region| region.start);
        self.spaces.active().regions.range(first..end.max(first)).map(|(_, region)| region)
    }

    /// Bytes of the tables that say where this address space's pages are.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.spaces.active().table_bytes()
    }

    /// Bytes of the limit that nothing uses yet.
    #[must_use]
    pub fn room_bytes(&self) -> u64 {
        self.arena.room()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Memory, PAGE, Prot, Segment};

    fn of_pages(pages: u64) -> Memory {
        let mut m = Memory::new(pages * PAGE).expect("reserve");
        m.map(0x10000, 4 * PAGE, Prot::RW, Segment::Mmap).unwrap();
        m
    }

    #[test]
    fn running_out_of_backing_is_a_fault_not_a_crash() {
        let mut m = of_pages(1);
        m.store(0x10000, 1u8).unwrap();
        assert!(m.store(0x20000, 1u8).unwrap_err().out_of_memory);
    }

    #[test]
    fn what_is_used_elsewhere_is_not_there_for_pages_until_it_is_given_back() {
        let mut m = of_pages(3);
        m.store(0x10000, 1u8).unwrap();
        m.set_elsewhere(PAGE + 1);
        assert_eq!(m.room_bytes(), PAGE - 1);
        assert!(m.store(0x20000, 1u8).unwrap_err().out_of_memory);
        m.set_elsewhere(PAGE);
        assert_eq!(m.store(0x20000, 1u8), Ok(()));
        assert_eq!((m.room_bytes(), m.backed_bytes(), m.elsewhere_bytes()), (0, 2 * PAGE, PAGE));
    }

    #[test]
    fn what_is_held_for_the_program_is_not_there_for_pages() {
        let mut m = of_pages(2);
        m.set_reserved(PAGE);
        m.store(0x10000, 1u8).unwrap();
        assert!(m.store(0x20000, 1u8).unwrap_err().out_of_memory);
        assert_eq!((m.room_bytes(), m.backed_bytes(), m.limit_bytes()), (0, PAGE, 2 * PAGE));
    }

    #[test]
    fn tables_of_pages_that_are_far_apart_take_memory_until_they_are_given_back() {
        const APART: u64 = 1 << 32;
        let mut m = Memory::new(20 * PAGE).expect("reserve");
        m.map(0, 64 * APART, Prot::RW, Segment::Mmap).unwrap();
        let touched = (0..64).take_while(|n| m.store(n * APART, 1u8).is_ok()).count();
        // Four tables are free; each other one takes four pages beside the one touched.
        assert_eq!((touched, m.table_bytes()), (7, 7 * 4 * PAGE));
        m.clear();
        assert_eq!((m.room_bytes(), m.table_bytes()), (20 * PAGE, 0));
    }

    #[test]
    fn a_page_that_was_given_back_is_not_taken_again_when_its_room_is_used_elsewhere() {
        let mut m = of_pages(2);
        m.store(0x10000, 1u8).unwrap();
        m.discard(0x10000, 0x20000);
        m.set_elsewhere(2 * PAGE);
        assert!(m.store(0x10000, 1u8).unwrap_err().out_of_memory);
    }
}
