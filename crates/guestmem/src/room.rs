//! How much of the memory is in use.

use super::{Memory, Region};

impl Memory {
    /// Returns the bytes of guest memory that are now backed, in all address spaces.
    #[must_use]
    pub fn backed_bytes(&self) -> u64 {
        self.arena.used_bytes()
    }

    /// Sets the bytes of the limit that are used for something other than pages. They are not available for pages.
    pub fn set_elsewhere(&mut self, bytes: u64) {
        self.arena.set_elsewhere(bytes);
    }

    /// Returns the value set by [`Memory::set_elsewhere`], in bytes.
    #[must_use]
    pub fn elsewhere_bytes(&self) -> u64 {
        self.arena.elsewhere()
    }

    /// Sets the bytes of the limit that the simulator holds on the program's behalf. They are not available for pages.
    pub fn set_reserved(&mut self, bytes: u64) {
        self.arena.set_reserved(bytes);
    }

    /// Returns the limit in bytes.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.arena.limit()
    }

    /// Returns the number of regions.
    #[must_use]
    pub fn region_count(&self) -> usize {
        self.spaces.active().regions.len()
    }

    /// Iterates over the regions that overlap `[start, end)`, lowest first.
    pub fn regions_within(&self, start: u64, end: u64) -> impl Iterator<Item = &Region> {
        let first = self.region_at(start).map_or(start, |region| region.start);
        self.spaces.active().regions.range(first..end.max(first)).map(|(_, region)| region)
    }

    /// Returns the bytes of this address space's page tables.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        self.spaces.active().table_bytes()
    }

    /// Returns the bytes of the limit still available.
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
    fn memory_used_elsewhere_is_not_available_for_pages_until_it_is_released() {
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
    fn memory_reserved_for_the_program_is_not_available_for_pages() {
        let mut m = of_pages(2);
        m.set_reserved(PAGE);
        m.store(0x10000, 1u8).unwrap();
        assert!(m.store(0x20000, 1u8).unwrap_err().out_of_memory);
        assert_eq!((m.room_bytes(), m.backed_bytes(), m.limit_bytes()), (0, PAGE, 2 * PAGE));
    }

    #[test]
    fn tables_of_distant_pages_use_memory_until_they_are_released() {
        const APART: u64 = 1 << 32;
        let mut m = Memory::new(20 * PAGE).expect("reserve");
        m.map(0, 64 * APART, Prot::RW, Segment::Mmap).unwrap();
        let touched = (0..64).take_while(|n| m.store(n * APART, 1u8).is_ok()).count();
        // Four tables are free; each further one takes four pages in addition to the page touched.
        assert_eq!((touched, m.table_bytes()), (7, 7 * 4 * PAGE));
        m.clear();
        assert_eq!((m.room_bytes(), m.table_bytes()), (20 * PAGE, 0));
    }

    #[test]
    fn a_released_page_is_not_reused_when_its_room_is_used_elsewhere() {
        let mut m = of_pages(2);
        m.store(0x10000, 1u8).unwrap();
        m.discard(0x10000, 0x20000);
        m.set_elsewhere(2 * PAGE);
        assert!(m.store(0x10000, 1u8).unwrap_err().out_of_memory);
    }
}
