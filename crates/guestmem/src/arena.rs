//! Guest pages: one large anonymous mapping, reserved but not committed by the host, for all address spaces of
//! a run. A page's number in it times [`PAGE`] is its physical address.

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
    /// Pages given back; they must be cleared before use.
    free: Vec<u32>,
    /// Most pages that may be in use at a time.
    limit: u32,
    /// Bytes of the limit that are used for something else than pages.
    elsewhere: u64,
    /// Bytes of the limit that the simulator holds on the program's behalf.
    reserved: u64,
    /// Bytes of tables of pages, of all address spaces, beyond those that each of them has for certain.
    tables: u64,
    /// Pages in use by more than one address space, with the number of further ones.
    sharers: HashMap<u32, u32>,
}

impl Arena {
    /// Room for `limit` bytes of pages.
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

    /// A copy with the same pages.
    pub(super) fn try_clone(&self) -> std::io::Result<Arena> {
        let mut bytes = reserve(self.limit)?;
        for (at, page) in self.contents() {
            bytes[at..at + page.len()].copy_from_slice(page);
        }
        let (free, sharers) = (self.free.clone(), self.sharers.clone());
        Ok(Arena { bytes, free, sharers, ..*self })
    }

    /// The pages in use that are not all zeros, with their places.
    fn contents(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let free: HashSet<u32> = self.free.iter().copied().collect();
        let pages = self.bytes[..self.used as usize * PAGE as usize].chunks(PAGE as usize);
        let in_use = (0..).zip(pages).filter(move |(number, _)| !free.contains(number));
        let written = in_use.filter(|(_, page)| bytemuck::cast_slice::<u8, u64>(page).iter().any(|&word| word != 0));
        written.map(|(number, page)| (number as usize * PAGE as usize, page))
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

    /// Pages handed out so far, including those that have been given back.
    pub(super) fn used(&self) -> u32 {
        self.used
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

/// Address space of the host for `pages` pages, of which none is committed.
fn reserve(pages: u32) -> std::io::Result<MmapMut> {
    let bytes = MmapOptions::new().len((u64::from(pages) * PAGE) as usize).no_reserve_swap().map_anon()?;
    // Pages are handed out in order and fill the host's large ones, of which its TLB needs few. A host that has none goes
    // on without.
    #[cfg(target_os = "linux")]
    bytes.advise(memmap2::Advice::HugePage).ok();
    Ok(bytes)
}

/// An arena without the bytes of its pages.
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
        let saved = Saved { used, free: self.free.clone(), limit, elsewhere, reserved, tables, sharers };
        let pages: Vec<(u64, Page<'_>)> = self.contents().map(|(at, page)| (at as u64, Page(page.into()))).collect();
        (saved, pages).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Arena {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arena, D::Error> {
        let (saved, pages) = <(Saved, Vec<(u64, Page<'de>)>)>::deserialize(deserializer)?;
        let Saved { used, free, limit, elsewhere, reserved, tables, sharers } = saved;
        if used > limit || free.iter().any(|&page| page >= used) {
            return Err(D::Error::custom("more pages in use than the memory has"));
        }
        let mut bytes = reserve(limit).map_err(D::Error::custom)?;
        for (at, Page(page)) in pages {
            let place = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at..)?.get_mut(..page.len()));
            place.ok_or_else(|| D::Error::custom("a page beyond the end of the memory"))?.copy_from_slice(&page);
        }
        let sharers = sharers.into_iter().collect();
        Ok(Arena { bytes, used, free, limit, elsewhere, reserved, tables, sharers })
    }
}

/// The bytes of a page.
struct Page<'a>(std::borrow::Cow<'a, [u8]>);

impl Serialize for Page<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Page<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Page<'de>, D::Error> {
        <&[u8]>::deserialize(deserializer).map(|bytes| Page(bytes.into()))
    }
}
