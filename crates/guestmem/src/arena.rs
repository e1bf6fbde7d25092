//! Guest pages: one large anonymous mapping, reserved but not committed by the host, for all address spaces of
//! a run. A page's number in it times [`PAGE`] is its physical address.

use std::collections::HashMap;

use memmap2::{MmapMut, MmapOptions};

use super::PAGE;

/// Pages, and which of them are in use.
pub(super) struct Arena {
    pub(super) bytes: MmapMut,
    /// Pages handed out so far.
    used: u32,
    /// Pages given back; they must be cleared before use.
    free: Vec<u32>,
    /// Most pages that may be in use at a time.
    limit: u32,
    /// Bytes of the limit that are used for something else than pages.
    elsewhere: u64,
    /// Bytes of the limit that whoever runs the program holds on its behalf.
    reserved: u64,
    /// Bytes of tables of pages, of all address spaces, beyond those that each of them has for certain.
    tables: u64,
    /// Pages in use by more than one address space, with the number of further ones.
    sharers: HashMap<u32, u32>,
}

impl Arena {
    /// Room for `limit` bytes of pages.
    pub(super) fn new(limit: u64) -> std::io::Result<Arena> {
        let pages = u32::try_from(limit.div_ceil(PAGE)).unwrap_or(u32::MAX).max(1);
        let bytes = MmapOptions::new().len((u64::from(pages) * PAGE) as usize).no_reserve_swap().map_anon()?;
        // Pages are handed out in order and fill the host's large ones, of which its TLB needs few. A host that has none goes
        // on without.
        #[cfg(target_os = "linux")]
        bytes.advise(memmap2::Advice::HugePage).ok();
        Ok(Arena::over(bytes, pages))
    }

    /// No pages at all: what an address space has while another one is being used.
    pub(super) fn absent() -> std::io::Result<Arena> {
        let bytes = MmapOptions::new().len(0).map_anon()?;
        Ok(Arena::over(bytes, 0))
    }

    fn over(bytes: MmapMut, limit: u32) -> Arena {
        Arena { bytes, used: 0, free: Vec::new(), limit, elsewhere: 0, reserved: 0, tables: 0, sharers: HashMap::new() }
    }

    /// How many bytes of the limit something else than pages uses.
    pub(super) fn set_elsewhere(&mut self, bytes: u64) {
        self.elsewhere = bytes;
    }

    pub(super) fn elsewhere(&self) -> u64 {
        self.elsewhere
    }

    /// How many bytes of the limit are held on the program's behalf.
    pub(super) fn set_reserved(&mut self, bytes: u64) {
        self.reserved = bytes;
    }

    /// An address space has a table of `bytes` bytes more. Whether there is room for it.
    pub(super) fn take_table(&mut self, bytes: u64) -> bool {
        let fits = self.room() >= bytes;
        self.tables += if fits { bytes } else { 0 };
        fits
    }

    /// An address space has tables of `bytes` bytes less.
    pub(super) fn release_tables(&mut self, bytes: u64) {
        self.tables = self.tables.saturating_sub(bytes);
    }

    /// Bytes that may still be used.
    pub(super) fn room(&self) -> u64 {
        let used = self.used_bytes() + self.elsewhere + self.reserved + self.tables;
        self.limit().saturating_sub(used)
    }

    /// Bytes that may be used in all.
    pub(super) fn limit(&self) -> u64 {
        u64::from(self.limit) * PAGE
    }

    /// Bytes of pages in use.
    pub(super) fn used_bytes(&self) -> u64 {
        (u64::from(self.used) - self.free.len() as u64) * PAGE
    }

    /// A page of zeros for one address space. `None`: no room.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.room() < PAGE {
            return None;
        }
        if let Some(page) = self.free.pop() {
            let at = (u64::from(page) * PAGE) as usize;
            self.bytes[at..at + PAGE as usize].fill(0);
            return Some(page);
        }
        self.used += 1;
        Some(self.used - 1)
    }

    /// One address space uses `page` no longer.
    pub(super) fn release(&mut self, page: u32) {
        match self.sharers.get_mut(&page) {
            Some(1) => {
                self.sharers.remove(&page);
            }
            Some(others) => *others -= 1,
            None => self.free.push(page),
        }
    }

    /// One more address space uses `page`.
    pub(super) fn share(&mut self, page: u32) {
        *self.sharers.entry(page).or_default() += 1;
    }

    /// Whether several address spaces use `page`.
    pub(super) fn is_shared(&self, page: u32) -> bool {
        self.sharers.contains_key(&page)
    }

    /// A copy of `page` for one of the address spaces that use it. `None`: no room.
    pub(super) fn copy(&mut self, page: u32) -> Option<u32> {
        let copy = self.take()?;
        let from = (u64::from(page) * PAGE) as usize;
        self.bytes.copy_within(from..from + PAGE as usize, (u64::from(copy) * PAGE) as usize);
        self.release(page);
        Some(copy)
    }
}
