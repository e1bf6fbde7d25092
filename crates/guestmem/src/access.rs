//! Loads, stores and fetches in the active address space.

use bytemuck::Pod;
use fxscope_hint::expect_stream;

use super::{ADDRESS, MemFault, Memory, PAGE, PAGE_SHIFT, SpaceId, Touch};

impl Memory {
    /// Loads a value at any alignment.
    ///
    /// # Errors
    /// The fault, when one of its bytes may not be read.
    #[inline(always)]
    pub fn load<T: Pod>(&mut self, addr: u64) -> Result<T, MemFault> {
        match self.load_hit(addr) {
            Some(value) => Ok(value),
            None => self.load_slow(addr & ADDRESS),
        }
    }

    /// Stores a value at any alignment. A store that faults changes nothing.
    ///
    /// # Errors
    /// The fault, when one of its bytes may not be written.
    #[inline(always)]
    pub fn store<T: Pod>(&mut self, addr: u64, value: T) -> Result<(), MemFault> {
        if self.store_hit(addr, value) { Ok(()) } else { self.store_slow(addr & ADDRESS, bytemuck::bytes_of(&value)) }
    }

    /// Fast path of [`Memory::load`]: the translation is cached and the value lies within one page. A caller that leaves all
    /// other cases to a separate function needs no stack frame.
    #[inline(always)]
    #[must_use]
    pub fn load_hit<T: Pod>(&self, addr: u64) -> Option<T> {
        let addr = addr & ADDRESS;
        let entry = self.tlb.entry(addr);
        let offset = addr & (PAGE - 1);
        if entry.read != addr >> PAGE_SHIFT || offset > PAGE - size_of::<T>() as u64 {
            return None;
        }
        let at = (entry.base + offset) as usize;
        expect_stream::<T>(&self.arena.bytes, at);
        self.arena.bytes.get(at..at + size_of::<T>()).map(bytemuck::pod_read_unaligned)
    }

    /// Fast path of [`Memory::store`]; in all other cases it does nothing and returns `false`.
    #[inline(always)]
    #[must_use]
    pub fn store_hit<T: Pod>(&mut self, addr: u64, value: T) -> bool {
        let addr = addr & ADDRESS;
        let entry = self.tlb.entry(addr);
        let offset = addr & (PAGE - 1);
        if entry.write != addr >> PAGE_SHIFT || offset > PAGE - size_of::<T>() as u64 {
            return false;
        }
        let at = (entry.base + offset) as usize;
        match self.arena.bytes.get_mut(at..at + size_of::<T>()) {
            Some(bytes) => {
                bytes.copy_from_slice(bytemuck::bytes_of(&value));
                true
            }
            None => false,
        }
    }

    /// Fetches an instruction word.
    ///
    /// # Errors
    /// The fault, when the page is not executable.
    pub fn fetch(&mut self, addr: u64) -> Result<u32, MemFault> {
        let base = self.translate(addr, Touch::Fetch)?;
        let at = (base + (addr & (PAGE - 1) & !3)) as usize;
        Ok(u32::from_le_bytes(self.arena.bytes[at..at + 4].try_into().expect("four bytes")))
    }

    /// Reads `out.len()` bytes.
    ///
    /// # Errors
    /// The fault, when a byte may not be read; `out` is then partly written.
    pub fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemFault> {
        self.each_page(addr & ADDRESS, out.len(), Touch::Read, |arena, at, range| {
            let n = range.len();
            out[range].copy_from_slice(&arena[at..at + n]);
        })
    }

    /// Writes bytes. All pages are checked first, so a fault leaves memory unchanged.
    ///
    /// # Errors
    /// The fault, when a byte may not be written.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemFault> {
        self.write_as(addr, bytes, Touch::Write)
    }

    /// Writes bytes into mapped pages regardless of their rights: for the loader.
    ///
    /// # Errors
    /// The fault, when a byte is not mapped.
    pub fn write_privileged(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemFault> {
        self.each_page_backed(addr, bytes.len(), |arena, at, range| {
            let n = range.len();
            arena[at..at + n].copy_from_slice(&bytes[range]);
        })
    }

    /// Fills `len` bytes with zero.
    ///
    /// # Errors
    /// The fault, when a byte may not be written.
    pub fn zero(&mut self, addr: u64, len: u64) -> Result<(), MemFault> {
        let addr = addr & ADDRESS;
        self.check(addr, len, Touch::Write)?;
        self.each_page(addr, len as usize, Touch::Write, |arena, at, range| arena[at..at + range.len()].fill(0))
    }

    /// Checks that every byte of the range allows this kind of access, and backs the pages.
    ///
    /// # Errors
    /// The fault at the first byte that does not.
    pub fn check(&mut self, addr: u64, len: u64, touch: Touch) -> Result<(), MemFault> {
        let addr = addr & ADDRESS;
        self.each_page(addr, len as usize, touch, |_, _, _| ())
    }

    fn write_as(&mut self, addr: u64, bytes: &[u8], touch: Touch) -> Result<(), MemFault> {
        let addr = addr & ADDRESS;
        self.check(addr, bytes.len() as u64, touch)?;
        self.each_page(addr, bytes.len(), touch, |arena, at, range| {
            let n = range.len();
            arena[at..at + n].copy_from_slice(&bytes[range]);
        })
    }

    #[cold]
    #[inline(never)]
    fn load_slow<T: Pod>(&mut self, addr: u64) -> Result<T, MemFault> {
        let mut value = T::zeroed();
        self.read(addr, bytemuck::bytes_of_mut(&mut value))?;
        Ok(value)
    }

    #[cold]
    #[inline(never)]
    fn store_slow(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemFault> {
        self.write_as(addr, bytes, Touch::Write)
    }

    /// Calls `f(arena, arena offset, range of the access)` for each page of the access.
    fn each_page(
        &mut self,
        addr: u64,
        len: usize,
        touch: Touch,
        mut f: impl FnMut(&mut [u8], usize, std::ops::Range<usize>),
    ) -> Result<(), MemFault> {
        let mut done = 0;
        while done < len {
            let here = addr.wrapping_add(done as u64);
            let base = self.translate(here, touch)?;
            let offset = here & (PAGE - 1);
            let n = (len - done).min((PAGE - offset) as usize);
            if touch == Touch::Write {
                self.spaces.active_mut().watch.note(here..here + n as u64);
            }
            f(&mut self.arena.bytes, (base + offset) as usize, done..done + n);
            done += n;
        }
        Ok(())
    }

    fn each_page_backed(
        &mut self,
        addr: u64,
        len: usize,
        mut f: impl FnMut(&mut [u8], usize, std::ops::Range<usize>),
    ) -> Result<(), MemFault> {
        let mut done = 0;
        while done < len {
            let here = addr.wrapping_add(done as u64);
            let fault = MemFault::unmapped(here, Touch::Write);
            let space = self.spaces.active_mut();
            let region = *space.region_at(here).ok_or(fault)?;
            let base = space.own_backing(&mut self.arena, &mut self.objects, &region, here);
            let base = base.map_err(|cause| fault.because(cause))?;
            let offset = here & (PAGE - 1);
            let n = (len - done).min((PAGE - offset) as usize);
            f(&mut self.arena.bytes, (base + offset) as usize, done..done + n);
            done += n;
        }
        Ok(())
    }

    /// Returns the arena offset of the page that holds `addr`. Checks rights, backs the page if necessary and caches the
    /// translation.
    fn translate(&mut self, addr: u64, touch: Touch) -> Result<u64, MemFault> {
        let translation = self.spaces.active_mut().translate(&mut self.arena, &mut self.objects, addr, touch)?;
        let base = translation.base;
        self.tlb.insert(addr >> PAGE_SHIFT, translation);
        Ok(base)
    }

    /// Returns the physical (arena) address of a virtual address, if its page is backed.
    #[must_use]
    pub fn physical(&self, addr: u64) -> Option<u64> {
        self.spaces.active().physical(addr)
    }

    /// Returns the word at an aligned address of any address space, without touching its page. `None`: the page is not backed, the
    /// address is not aligned, or there is no such address space.
    #[must_use]
    pub fn peek(&self, space: SpaceId, addr: u64) -> Option<u64> {
        let at = self.spaces.get(space)?.physical(addr).filter(|at| at.is_multiple_of(8))? as usize;
        self.arena.bytes.get(at..at + 8).map(bytemuck::pod_read_unaligned)
    }
}

#[cfg(test)]
mod tests {
    use crate::{MapError, Memory, PAGE, Prot, Segment, Touch, USER_END};

    fn small() -> Memory {
        Memory::new(16 * PAGE).expect("reserve")
    }

    #[test]
    fn unmapped_addresses_fault_with_the_first_bad_byte() {
        let mut m = small();
        m.map(0x10000, PAGE, Prot::RW, Segment::Mmap).unwrap();
        let fault = m.load::<u64>(0x1fffc).unwrap_err();
        assert_eq!((fault.addr, fault.mapped), (0x20000, false));
    }

    #[test]
    fn a_store_that_faults_half_way_changes_nothing() {
        let mut m = small();
        m.map(0x10000, PAGE, Prot::RW, Segment::Mmap).unwrap();
        m.map(0x20000, PAGE, Prot::R, Segment::Mmap).unwrap();
        let fault = m.store(0x1fffc, u64::MAX).unwrap_err();
        assert_eq!((fault.addr, fault.mapped, fault.touch), (0x20000, true, Touch::Write));
        assert_eq!(m.load::<u32>(0x1fffc), Ok(0));
    }

    #[test]
    fn the_top_byte_of_an_address_is_ignored() {
        let mut m = small();
        m.map(0x10000, PAGE, Prot::RW, Segment::Mmap).unwrap();
        m.store(0xab00_0000_0001_0008, 7u32).unwrap();
        assert_eq!(m.load::<u32>(0x10008), Ok(7));
    }

    #[test]
    fn protection_changes_are_seen_by_the_next_access() {
        let mut m = small();
        m.map(0x10000, 2 * PAGE, Prot::RW, Segment::Mmap).unwrap();
        m.store(0x10000, 1u8).unwrap();
        m.protect(0x10000, PAGE, Prot::R).unwrap();
        assert!(m.store(0x10000, 2u8).is_err());
        assert_eq!(m.store(0x20000, 2u8), Ok(()));
        assert_eq!(m.protect(0x20000, 2 * PAGE, Prot::R), Err(MapError::NotMapped));
    }

    #[test]
    fn reused_pages_read_as_zero() {
        let mut m = Memory::new(PAGE).expect("reserve");
        m.map(0x10000, PAGE, Prot::RW, Segment::Mmap).unwrap();
        m.store(0x10000, u64::MAX).unwrap();
        m.unmap(0x10000, PAGE).unwrap();
        m.map(0x50000, PAGE, Prot::RW, Segment::Mmap).unwrap();
        assert_eq!(m.load::<u64>(0x50000), Ok(0));
    }

    #[test]
    fn ranges_beyond_user_space_are_refused() {
        let mut m = small();
        assert_eq!(m.map(USER_END - PAGE, 2 * PAGE, Prot::RW, Segment::Mmap), Err(MapError::BadRange));
        assert_eq!(m.map(u64::MAX - PAGE + 1, PAGE, Prot::RW, Segment::Mmap), Err(MapError::BadRange));
        assert!(m.load::<u64>(u64::MAX - 3).is_err());
    }
}
