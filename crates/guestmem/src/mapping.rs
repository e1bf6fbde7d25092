//! Mapping and protecting ranges of the active address space.

use super::{MapError, Memory, PAGE, Prot, Region, Segment, USER_END};

impl Memory {
    /// Maps `[start, start + len)` as zero pages, replacing what was there.
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn map(&mut self, start: u64, len: u64, prot: Prot, segment: Segment) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        self.unmap(start, len)?;
        let space = self.spaces.active_mut();
        space.regions.insert(start, Region { start, end, prot, segment, shared: false });
        space.generation += 1;
        Ok(())
    }

    /// Removes all mappings in `[start, start + len)`, with their contents.
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn unmap(&mut self, start: u64, len: u64) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        let space = self.spaces.active_mut();
        space.split(start);
        space.split(end);
        let inside: Vec<Region> = space.regions.range(start..end).map(|(_, &region)| region).collect();
        for region in inside {
            let space = self.spaces.active_mut();
            space.regions.remove(&region.start);
            space.generation += 1;
            self.discard(region.start, region.end);
        }
        Ok(())
    }

    /// Changes the rights of `[start, start + len)`.
    ///
    /// # Errors
    /// [`MapError::BadRange`], or [`MapError::NotMapped`] when a page of the range is not mapped (the pages before it have
    /// already changed, as under Linux).
    pub fn protect(&mut self, start: u64, len: u64, prot: Prot) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        let space = self.spaces.active_mut();
        space.split(start);
        space.split(end);
        let mut next = start;
        for (_, region) in space.regions.range_mut(start..end) {
            if region.start != next {
                break;
            }
            region.prot = prot;
            next = region.end;
        }
        self.tlb.flush();
        if next == end { Ok(()) } else { Err(MapError::NotMapped) }
    }

    /// Drops the contents of pages in the range: they read as zero afterwards (`MADV_DONTNEED`).
    pub fn discard(&mut self, start: u64, end: u64) {
        self.tlb.flush();
        let space = self.spaces.active_mut();
        space.watch.note(start..end);
        space.release_pages(&mut self.arena, start, end);
    }

    /// Returns the region that holds `addr`.
    #[must_use]
    pub fn region_at(&self, addr: u64) -> Option<&Region> {
        self.spaces.active().region_at(addr)
    }
    /// Iterates over all regions, lowest first.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.spaces.active().regions.values()
    }
    /// Returns a number that changes whenever the set of mapped ranges may have changed.
    #[inline(always)]
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.spaces.active().generation
    }
    /// Takes the addresses of the pages ([`PAGE`]) that were first touched since the last call, in that order.
    pub fn take_fresh(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.spaces.active_mut().fresh)
    }
    /// Returns whether there are such pages.
    #[inline(always)]
    #[must_use]
    pub fn has_fresh(&self) -> bool {
        !self.spaces.active().fresh.is_empty()
    }
}

pub(super) fn checked_range(start: u64, len: u64) -> Result<u64, MapError> {
    let end = start.checked_add(len).ok_or(MapError::BadRange)?;
    let whole = start.is_multiple_of(PAGE) && len.is_multiple_of(PAGE) && len > 0;
    if whole && end <= USER_END { Ok(end) } else { Err(MapError::BadRange) }
}
