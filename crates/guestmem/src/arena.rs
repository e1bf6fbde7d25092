//! Guest pages: one large anonymous mapping for all address spaces of a run, reserved but not committed by the host. A page's
//! number in it times [`PAGE`] is its physical address.

use std::collections::{HashMap, HashSet};

use memmap2::{MmapMut, MmapOptions};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PAGE;

/// Pages, and which of them are in use.
pub(super) struct Arena {
    pub(super) bytes: MmapMut,
    /// Pages handed out so far.
    used: u32,
    /// Released pages; they must be cleared before reuse.
    free: Vec<u32>,
    /// Maximum number of pages in use.
    limit: u32,
    /// Bytes of the limit that are used for something other than pages.
    elsewhere: u64,
    /// Bytes of the limit that the simulator holds on the program's behalf.
    reserved: u64,
    /// Bytes of page tables of all address spaces, beyond those included in each address space.
    tables: u64,
    /// Pages in use by more than one address space, with the number of additional users.
    sharers: HashMap<u32, u32>,
}

impl Arena {
    /// Reserves room for `limit` bytes of pages.
    pub(super) fn new(limit: u64) -> std::io::Result<Arena> {
        let limit = u32::try_from(limit.div_ceil(PAGE)).unwrap_or(u32::MAX).max(1);
        let bytes = reserve(limit)?;
        Ok(Arena {
            bytes,
            used: 0,
            free: Vec::new(),
            limit,
            elsewhere: 0,
            reserved: 0,
            tables: 0,
            sharers: HashMap::new(),
        })
    }

    /// Returns a copy with the same pages.
    pub(super) fn try_clone(&self) -> std::io::Result<Arena> {
        let mut bytes = reserve(self.limit)?;
        for (number, page) in self.contents() {
            let at = number as usize * PAGE as usize;
            bytes[at..at + page.len()].copy_from_slice(page);
        }
        let (free, sharers) = (self.free.clone(), self.sharers.clone());
        Ok(Arena { bytes, free, sharers, ..*self })
    }

    /// Iterates over the pages in use that are not all zeros, with their numbers.
    pub(super) fn contents(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let free: HashSet<u32> = self.free.iter().copied().collect();
        let pages = self.bytes[..self.used as usize * PAGE as usize].chunks(PAGE as usize);
        let in_use = (0..).zip(pages).filter(move |(number, _)| !free.contains(number));
        in_use.filter(|(_, page)| bytemuck::cast_slice::<u8, u64>(page).iter().any(|&word| word != 0))
    }

    /// Sets the bytes of the limit that are used for something other than pages.
    pub(super) fn set_elsewhere(&mut self, bytes: u64) {
        self.elsewhere = bytes;
    }

    pub(super) fn elsewhere(&self) -> u64 {
        self.elsewhere
    }

    /// Sets the bytes of the limit that the simulator holds on the program's behalf.
    pub(super) fn set_reserved(&mut self, bytes: u64) {
        self.reserved = bytes;
    }

    /// Accounts for a further table of `bytes` bytes. Returns whether there is room for it.
    pub(super) fn take_table(&mut self, bytes: u64) -> bool {
        let fits = self.room() >= bytes;
        self.tables += if fits { bytes } else { 0 };
        fits
    }

    /// Accounts for the release of tables of `bytes` bytes.
    pub(super) fn release_tables(&mut self, bytes: u64) {
        self.tables = self.tables.saturating_sub(bytes);
    }

    /// Returns the number of pages handed out so far, including released ones.
    pub(super) fn used(&self) -> u32 {
        self.used
    }

    /// Returns the bytes still available.
    pub(super) fn room(&self) -> u64 {
        let used = self.used_bytes() + self.elsewhere + self.reserved + self.tables;
        self.limit().saturating_sub(used)
    }

    /// Returns the limit in bytes.
    pub(super) fn limit(&self) -> u64 {
        u64::from(self.limit) * PAGE
    }

    /// Returns the bytes of pages in use.
    pub(super) fn used_bytes(&self) -> u64 {
        (u64::from(self.used) - self.free.len() as u64) * PAGE
    }

    /// Returns a zeroed page for one address space, or `None` if there is no room.
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

    /// Drops one address space's use of `page`.
    pub(super) fn release(&mut self, page: u32) {
        match self.sharers.get_mut(&page) {
            Some(1) => {
                self.sharers.remove(&page);
            }
            Some(others) => *others -= 1,
            None => self.free.push(page),
        }
    }

    /// Adds another address space's use of `page`.
    pub(super) fn share(&mut self, page: u32) {
        *self.sharers.entry(page).or_default() += 1;
    }

    /// Returns whether several address spaces use `page`.
    pub(super) fn is_shared(&self, page: u32) -> bool {
        self.sharers.contains_key(&page)
    }

    /// Returns the number of users of `page`: address spaces, and the object that it belongs to.
    pub(super) fn users(&self, page: u32) -> u64 {
        1 + u64::from(self.sharers.get(&page).copied().unwrap_or_default())
    }

    /// Returns a copy of `page` for one of the address spaces that use it, or `None` if there is no room.
    pub(super) fn copy(&mut self, page: u32) -> Option<u32> {
        let copy = self.take()?;
        self.copy_into(page, copy);
        self.release(page);
        Some(copy)
    }

    /// Copies the contents of page `from` to page `to`.
    pub(super) fn copy_into(&mut self, from: u32, to: u32) {
        let from = (u64::from(from) * PAGE) as usize;
        self.bytes.copy_within(from..from + PAGE as usize, (u64::from(to) * PAGE) as usize);
    }

    /// Returns the contents of a page.
    pub(super) fn page(&self, page: u32) -> &[u8] {
        let at = (u64::from(page) * PAGE) as usize;
        &self.bytes[at..at + PAGE as usize]
    }

    /// Returns the contents of a page for changes.
    pub(super) fn page_mut(&mut self, page: u32) -> &mut [u8] {
        let at = (u64::from(page) * PAGE) as usize;
        &mut self.bytes[at..at + PAGE as usize]
    }
}

/// Reserves host address space for `pages` pages without committing any.
fn reserve(pages: u32) -> std::io::Result<MmapMut> {
    let bytes = MmapOptions::new().len((u64::from(pages) * PAGE) as usize).no_reserve_swap().map_anon()?;
    // Pages are handed out in order and fill the host's huge pages, which need few TLB entries. A host without huge pages works
    // without.
    #[cfg(target_os = "linux")]
    bytes.advise(memmap2::Advice::HugePage).ok();
    Ok(bytes)
}

/// An arena without the bytes of its pages, which snapshots have apart.
#[derive(Serialize, Deserialize)]
struct Saved {
    used: u32,
    free: Vec<u32>,
    limit: u32,
    elsewhere: u64,
    reserved: u64,
    tables: u64,
    sharers: Vec<(u32, u32)>,
}

impl Serialize for Arena {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let &Arena { used, limit, elsewhere, reserved, tables, .. } = self;
        let mut sharers: Vec<(u32, u32)> = self.sharers.iter().map(|(&page, &others)| (page, others)).collect();
        sharers.sort_unstable();
        Saved { used, free: self.free.clone(), limit, elsewhere, reserved, tables, sharers }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Arena {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arena, D::Error> {
        let Saved { used, free, limit, elsewhere, reserved, tables, sharers } = Saved::deserialize(deserializer)?;
        if used > limit || free.iter().any(|&page| page >= used) {
            return Err(D::Error::custom("more pages in use than the memory has"));
        }
        let bytes = reserve(limit).map_err(D::Error::custom)?;
        let sharers = sharers.into_iter().collect();
        Ok(Arena { bytes, used, free, limit, elsewhere, reserved, tables, sharers })
    }
}
