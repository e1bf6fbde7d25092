//! A guest address space that no guest access can leave.
//!
//! Guest pages live in one large anonymous mapping, the *arena*; a page's offset in it serves as its physical
//! address. Every access goes through a translation that yields an arena offset, and then through the bounds
//! check of a slice: there is no way to name host memory outside the arena.
//!
//! Several address spaces may have pages of the same arena ([`Memory::fork`]). It stays with the one that is
//! being used ([`Memory::use_arena_of`]); pages they have in common are copied on the first store.
//!
//! Pages are backed on first touch. The unit of mapping and protection is [`PAGE`]; what page size the
//! *modelled* machine uses for a segment is the timing model's business.

mod arena;
mod fork;
mod room;
mod segment;
mod watch;

use std::collections::BTreeMap;

use bytemuck::Pod;
use fxscope_hint::expect_stream;

use arena::Arena;
pub use segment::Segment;
use watch::Watch;

/// Unit of mapping and protection: the base page of A64FX's usual kernels, 64 KiB.
pub const PAGE: u64 = 1 << PAGE_SHIFT;
const PAGE_SHIFT: u32 = 16;

/// First address beyond user space (48-bit virtual addresses).
pub const USER_END: u64 = 1 << 48;

/// Address bits that count: user space runs with top-byte-ignore.
const ADDRESS: u64 = (1 << 56) - 1;

/// Access rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Prot {
    /// Loads allowed.
    pub read: bool,
    /// Stores allowed.
    pub write: bool,
    /// Instruction fetch allowed.
    pub exec: bool,
}

impl Prot {
    /// No access.
    pub const NONE: Prot = Prot { read: false, write: false, exec: false };
    /// Read only.
    pub const R: Prot = Prot { read: true, write: false, exec: false };
    /// Read and write.
    pub const RW: Prot = Prot { read: true, write: true, exec: false };
    /// Read and execute.
    pub const RX: Prot = Prot { read: true, write: false, exec: true };
    /// Everything.
    pub const RWX: Prot = Prot { read: true, write: true, exec: true };
}

/// What kind of access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch.
    Fetch,
}

/// An access the address space does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemFault {
    /// The address of the first byte that could not be accessed.
    pub addr: u64,
    /// What was attempted.
    pub touch: Touch,
    /// The address is mapped, with other rights (`SEGV_ACCERR`), or not at all (`SEGV_MAPERR`).
    pub mapped: bool,
    /// The host has no room left to back the page (reported as `SIGBUS`).
    pub out_of_memory: bool,
}

/// A mapped range of the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// Address behind the last byte.
    pub end: u64,
    /// Rights.
    pub prot: Prot,
    /// Purpose.
    pub segment: Segment,
    /// Stays common memory of parent and child after a fork (`MAP_SHARED`).
    pub shared: bool,
}

/// Why a mapping was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// Not a whole number of pages, empty, or beyond user space.
    BadRange,
    /// Some page of the range is not mapped.
    NotMapped,
}

#[derive(Clone, Copy)]
struct TlbEntry {
    /// Page number for which loads may use `base`, or `u64::MAX`.
    read: u64,
    /// Page number for which stores may use `base`, or `u64::MAX`.
    write: u64,
    /// Arena offset of the page.
    base: u64,
}

const TLB_ENTRIES: usize = 1 << 12;
const TLB_EMPTY: TlbEntry = TlbEntry { read: u64::MAX, write: u64::MAX, base: 0 };

/// Pages of 4 GiB of address space; entry: arena page number plus one, or 0 when not backed.
type Leaf = Box<[u32]>;
const LEAF_BITS: u32 = 16;
const LEAF_BYTES: u64 = 4 << LEAF_BITS;

/// The address space of one process.
pub struct Memory {
    arena: Arena,
    tlb: Box<[TlbEntry; TLB_ENTRIES]>,
    leaves: Vec<Option<Leaf>>,
    /// How many of `leaves` there are.
    tables: u64,
    regions: BTreeMap<u64, Region>,
    /// Addresses of the pages backed since [`Memory::take_fresh`] was called last.
    fresh: Vec<u64>,
    /// Counts changes of `regions`.
    generation: u64,
    watch: Watch,
}

impl Memory {
    /// An empty address space that may hold up to `limit` bytes of backed pages.
    ///
    /// # Errors
    /// When the host refuses to reserve that much address space.
    pub fn new(limit: u64) -> std::io::Result<Memory> {
        Ok(Memory::empty(Arena::new(limit)?))
    }

    fn empty(arena: Arena) -> Memory {
        Memory {
            arena,
            tlb: vec![TLB_EMPTY; TLB_ENTRIES]
                .into_boxed_slice()
                .try_into()
                .unwrap_or_else(|_| unreachable!("fixed length")),
            leaves: vec![None; 1 << (48 - PAGE_SHIFT - LEAF_BITS)],
            tables: 0,
            regions: BTreeMap::new(),
            fresh: Vec::new(),
            generation: 0,
            watch: Watch::default(),
        }
    }

    // ---- mapping ------------------------------------------------------------------------------

    /// Maps `[start, start + len)` as zero pages, replacing what was there.
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn map(&mut self, start: u64, len: u64, prot: Prot, segment: Segment) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        self.unmap(start, len)?;
        self.regions.insert(start, Region { start, end, prot, segment, shared: false });
        self.generation += 1;
        Ok(())
    }

    /// Removes all mappings in `[start, start + len)`; their contents are lost.
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn unmap(&mut self, start: u64, len: u64) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        self.split(start);
        self.split(end);
        let inside: Vec<u64> = self.regions.range(start..end).map(|(&k, _)| k).collect();
        for key in inside {
            let region = self.regions.remove(&key).expect("key was just listed");
            self.discard(region.start, region.end);
            self.generation += 1;
        }
        Ok(())
    }

    /// Changes the rights of `[start, start + len)`.
    ///
    /// # Errors
    /// [`MapError::BadRange`], or [`MapError::NotMapped`] when a page of the range is not mapped (the
    /// pages before it have changed by then, as under Linux).
    pub fn protect(&mut self, start: u64, len: u64, prot: Prot) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        self.split(start);
        self.split(end);
        let mut next = start;
        for (_, region) in self.regions.range_mut(start..end) {
            if region.start != next {
                break;
            }
            region.prot = prot;
            next = region.end;
        }
        self.tlb.fill(TLB_EMPTY);
        if next == end { Ok(()) } else { Err(MapError::NotMapped) }
    }

    /// Drops the contents of pages in the range: they read as zero afterwards (`MADV_DONTNEED`).
    pub fn discard(&mut self, start: u64, end: u64) {
        self.tlb.fill(TLB_EMPTY);
        self.watch.note(start..end);
        let mut page = start >> PAGE_SHIFT;
        let last = end.div_ceil(PAGE);
        while page < last {
            match self.leaves.get_mut((page >> LEAF_BITS) as usize) {
                Some(Some(leaf)) => {
                    let entry = &mut leaf[page as usize & ((1 << LEAF_BITS) - 1)];
                    if *entry != 0 {
                        self.arena.release(*entry - 1);
                        *entry = 0;
                    }
                    page += 1;
                }
                // Nothing backed in this leaf: on to the next.
                _ => page = ((page >> LEAF_BITS) + 1) << LEAF_BITS,
            }
        }
    }

    /// The region that holds `addr`.
    #[must_use]
    pub fn region_at(&self, addr: u64) -> Option<&Region> {
        self.regions.range(..=addr).next_back().map(|(_, r)| r).filter(|r| addr < r.end)
    }
    /// All regions, lowest first.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.values()
    }
    /// A number that changes whenever the set of mapped ranges may have changed.
    #[inline(always)]
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }
    /// Takes the addresses of the pages ([`PAGE`]) that were touched first since the last call, in that order.
    pub fn take_fresh(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.fresh)
    }
    /// Whether there are any.
    #[inline(always)]
    #[must_use]
    pub fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Makes `at` a region boundary, if it lies inside a region.
    fn split(&mut self, at: u64) {
        let Some((&key, &region)) = self.regions.range(..at).next_back() else {
            return;
        };
        if region.end > at {
            self.regions.get_mut(&key).expect("key was just found").end = at;
            self.regions.insert(at, Region { start: at, ..region });
        }
    }

    // ---- access -------------------------------------------------------------------------------

    /// Loads a value at any alignment.
    ///
    /// # Errors
    /// The fault, when a byte of it may not be read.
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
    /// The fault, when a byte of it may not be written.
    #[inline(always)]
    pub fn store<T: Pod>(&mut self, addr: u64, value: T) -> Result<(), MemFault> {
        if self.store_hit(addr, value) { Ok(()) } else { self.store_slow(addr & ADDRESS, bytemuck::bytes_of(&value)) }
    }

    /// The easy case of [`Memory::load`]: the translation is at hand and the value within one page. A
    /// handler that leaves everything else to a function of its own needs no stack frame.
    #[inline(always)]
    #[must_use]
    pub fn load_hit<T: Pod>(&self, addr: u64) -> Option<T> {
        let addr = addr & ADDRESS;
        let entry = &self.tlb[(addr >> PAGE_SHIFT) as usize & (TLB_ENTRIES - 1)];
        let offset = addr & (PAGE - 1);
        if entry.read != addr >> PAGE_SHIFT || offset > PAGE - size_of::<T>() as u64 {
            return None;
        }
        let at = (entry.base + offset) as usize;
        expect_stream::<T>(&self.arena.bytes, at);
        self.arena.bytes.get(at..at + size_of::<T>()).map(bytemuck::pod_read_unaligned)
    }

    /// The easy case of [`Memory::store`]; `false`, and nothing done, in all others.
    #[inline(always)]
    #[must_use]
    pub fn store_hit<T: Pod>(&mut self, addr: u64, value: T) -> bool {
        let addr = addr & ADDRESS;
        let entry = &self.tlb[(addr >> PAGE_SHIFT) as usize & (TLB_ENTRIES - 1)];
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
    /// The fault, when code may not be fetched there.
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

    /// Writes bytes; checked as a whole first, so that a fault leaves memory unchanged.
    ///
    /// # Errors
    /// The fault, when a byte may not be written.
    pub fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemFault> {
        self.write_as(addr, bytes, Touch::Write)
    }

    /// Writes bytes into mapped pages whatever their rights: for the loader.
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

    /// Whether every byte of the range can be touched so, without doing it (beyond backing the pages).
    ///
    /// # Errors
    /// The fault at the first byte that cannot.
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
                self.watch.note(here..here + n as u64);
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
            let fault = MemFault { addr: here, touch: Touch::Write, mapped: false, out_of_memory: false };
            let shared = self.region_at(here).ok_or(fault)?.shared;
            let no_room = MemFault { out_of_memory: true, ..fault };
            let base = self.own_backing(here >> PAGE_SHIFT, shared).ok_or(no_room)?;
            let offset = here & (PAGE - 1);
            let n = (len - done).min((PAGE - offset) as usize);
            f(&mut self.arena.bytes, (base + offset) as usize, done..done + n);
            done += n;
        }
        Ok(())
    }

    /// The arena offset of the page that holds `addr`, checking rights and backing it if need be.
    fn translate(&mut self, addr: u64, touch: Touch) -> Result<u64, MemFault> {
        let fault = |mapped| MemFault { addr, touch, mapped, out_of_memory: false };
        let &Region { prot, shared, .. } = self.region_at(addr).ok_or(fault(false))?;
        let allowed = match touch {
            Touch::Read => prot.read,
            Touch::Write => prot.write,
            Touch::Fetch => prot.exec,
        };
        if !allowed {
            return Err(fault(true));
        }
        let page = addr >> PAGE_SHIFT;
        let no_room = MemFault { out_of_memory: true, ..fault(true) };
        let base = match touch {
            Touch::Write => self.own_backing(page, shared),
            Touch::Read | Touch::Fetch => self.backing(page),
        };
        let base = base.ok_or(no_room)?;
        let writable =
            prot.write && !self.watch.has_page(page) && (shared || !self.arena.is_shared((base / PAGE) as u32));
        self.tlb[page as usize & (TLB_ENTRIES - 1)] = TlbEntry {
            read: if prot.read { page } else { u64::MAX },
            write: if writable { page } else { u64::MAX },
            base,
        };
        Ok(base)
    }

    /// The arena page number plus one of a page, or 0: where to read and write it. `None`: no such address.
    fn entry(&mut self, page: u64) -> Option<&mut u32> {
        let index = (page >> LEAF_BITS) as usize;
        if self.leaves.get(index)?.is_none() {
            self.grow_tables()?;
        }
        let leaf = self.leaves[index].get_or_insert_with(|| vec![0; 1 << LEAF_BITS].into());
        Some(&mut leaf[page as usize & ((1 << LEAF_BITS) - 1)])
    }

    /// Arena offset of a page, taking a fresh zero page if it has none. `None`: no room.
    fn backing(&mut self, page: u64) -> Option<u64> {
        let mut entry = *self.entry(page)?;
        if entry == 0 {
            entry = self.arena.take()? + 1;
            *self.entry(page)? = entry;
            self.fresh.push(page << PAGE_SHIFT);
        }
        Some(u64::from(entry - 1) * PAGE)
    }

    /// Physical (arena) address of a virtual address, if its page is backed.
    #[must_use]
    pub fn physical(&self, addr: u64) -> Option<u64> {
        let addr = addr & ADDRESS;
        let page = addr >> PAGE_SHIFT;
        let leaf = self.leaves.get((page >> LEAF_BITS) as usize)?.as_ref()?;
        let entry = leaf[page as usize & ((1 << LEAF_BITS) - 1)];
        (entry != 0).then(|| u64::from(entry - 1) * PAGE + (addr & (PAGE - 1)))
    }
}

fn checked_range(start: u64, len: u64) -> Result<u64, MapError> {
    let end = start.checked_add(len).ok_or(MapError::BadRange)?;
    let whole = start.is_multiple_of(PAGE) && len.is_multiple_of(PAGE) && len > 0;
    if whole && end <= USER_END { Ok(end) } else { Err(MapError::BadRange) }
}

#[cfg(test)]
mod tests {
    use super::*;

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
