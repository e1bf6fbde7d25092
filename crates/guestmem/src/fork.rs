//! Several address spaces over one arena.

use super::{Arena, MapError, Memory, PAGE, PAGE_SHIFT, TLB_EMPTY, checked_range};

impl Memory {
    /// A second address space with the same contents. Regions mapped as shared stay common memory; of all others
    /// the two have copies, made page by page when one of them stores. The arena stays here.
    ///
    /// # Errors
    /// When there is no room to back the shared regions, or the host is out of resources.
    pub fn fork(&mut self) -> std::io::Result<Memory> {
        let shared: Vec<(u64, u64)> = self.regions().filter(|r| r.shared).map(|r| (r.start, r.end)).collect();
        for (start, end) in shared {
            for page in start >> PAGE_SHIFT..end >> PAGE_SHIFT {
                self.backing(page).ok_or(std::io::ErrorKind::OutOfMemory)?;
            }
        }
        let mut child = Memory::empty(Arena::absent()?);
        if !self.arena.take_table(self.counted_table_bytes()) {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        child.tables = self.tables;
        for (leaf, copy) in self.leaves.iter().zip(&mut child.leaves).filter(|(leaf, _)| leaf.is_some()) {
            copy.clone_from(leaf);
            for &entry in leaf.iter().flat_map(|leaf| leaf.iter()).filter(|&&entry| entry != 0) {
                self.arena.share(entry - 1);
            }
        }
        child.regions.clone_from(&self.regions);
        self.tlb.fill(TLB_EMPTY);
        Ok(child)
    }

    /// An address space without regions over the same arena, which stays here.
    ///
    /// # Errors
    /// When the host is out of resources.
    pub fn sibling(&self) -> std::io::Result<Memory> {
        Ok(Memory::empty(Arena::absent()?))
    }

    /// Takes over the arena from the address space that has been used so far. Until it is given back, only this
    /// one may be accessed or changed.
    pub fn use_arena_of(&mut self, other: &mut Memory) {
        std::mem::swap(&mut self.arena, &mut other.arena);
    }

    /// Removes every mapping.
    pub fn clear(&mut self) {
        let all: Vec<(u64, u64)> = self.regions().map(|r| (r.start, r.end)).collect();
        for (start, end) in all {
            self.discard(start, end);
        }
        self.regions.clear();
        self.release_tables();
        self.generation += 1;
    }

    /// Keeps `[start, start + len)` common to parent and child of later forks (`MAP_SHARED`).
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn share(&mut self, start: u64, len: u64) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        self.split(start);
        self.split(end);
        for (_, region) in self.regions.range_mut(start..end) {
            region.shared = true;
        }
        Ok(())
    }

    /// As [`Memory::backing`], for a store: a page in common with another address space is copied first, unless
    /// its region is `shared`.
    pub(super) fn own_backing(&mut self, page: u64, shared: bool) -> Option<u64> {
        let base = self.backing(page)?;
        let number = (base / PAGE) as u32;
        if shared || !self.arena.is_shared(number) {
            return Some(base);
        }
        let copy = self.arena.copy(number)?;
        *self.entry(page)? = copy + 1;
        Some(u64::from(copy) * PAGE)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Memory, PAGE, Prot, Segment};

    const PRIVATE: u64 = 0x1_0000;
    const SHARED: u64 = 0x5_0000;

    fn forked() -> (Memory, Memory) {
        let mut parent = Memory::new(16 * PAGE).expect("reserve");
        parent.map(PRIVATE, PAGE, Prot::RW, Segment::Mmap).unwrap();
        parent.map(SHARED, PAGE, Prot::RW, Segment::Mmap).unwrap();
        parent.share(SHARED, PAGE).unwrap();
        parent.store(PRIVATE, 1u32).unwrap();
        let child = parent.fork().expect("fork");
        (parent, child)
    }

    #[test]
    fn after_a_fork_private_memory_is_separate_and_shared_memory_common() {
        let (mut parent, mut child) = forked();
        parent.store(PRIVATE, 2u32).unwrap();
        parent.store(SHARED, 3u32).unwrap();
        child.use_arena_of(&mut parent);
        assert_eq!(child.load::<u32>(PRIVATE), Ok(1));
        assert_eq!(child.load::<u32>(SHARED), Ok(3));
        child.store(PRIVATE, 4u32).unwrap();
        child.store(SHARED, 5u32).unwrap();
        parent.use_arena_of(&mut child);
        assert_eq!(parent.load::<u32>(PRIVATE), Ok(2));
        assert_eq!(parent.load::<u32>(SHARED), Ok(5));
    }

    #[test]
    fn stores_after_a_load_of_a_common_page_still_copy_it() {
        let (mut parent, mut child) = forked();
        assert_eq!(parent.load::<u32>(PRIVATE), Ok(1));
        parent.store(PRIVATE, 2u32).unwrap();
        child.use_arena_of(&mut parent);
        assert_eq!(child.load::<u32>(PRIVATE), Ok(1));
    }

    #[test]
    fn pages_come_back_when_the_last_address_space_drops_them() {
        let (mut parent, mut child) = forked();
        assert_eq!(parent.backed_bytes(), 2 * PAGE);
        child.use_arena_of(&mut parent);
        child.store(PRIVATE, 4u32).unwrap();
        assert_eq!(child.backed_bytes(), 3 * PAGE);
        child.clear();
        assert_eq!(child.backed_bytes(), 2 * PAGE);
        parent.use_arena_of(&mut child);
        parent.clear();
        assert_eq!(parent.backed_bytes(), 0);
    }
}
