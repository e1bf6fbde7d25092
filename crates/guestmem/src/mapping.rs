//! Mapping and protecting ranges of the active address space.

use super::{Backing, MapError, Memory, PAGE, PAGE_SHIFT, Prot, Region, Segment, USER_END};

impl Memory {
    /// Maps `[start, start + len)` as zero pages, replacing what was there.
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn map(&mut self, start: u64, len: u64, prot: Prot, segment: Segment) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        self.map_region(Region { start, end, prot, segment, shared: false, backing: None })
    }

    /// Maps `region` with these properties, replacing what was there. Its object, if it has one, must exist.
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn map_region(&mut self, region: Region) -> Result<(), MapError> {
        let Region { start, end, .. } = region;
        checked_range(start, end.wrapping_sub(start))?;
        // First, so that it does not disappear with what was there.
        self.objects.mapped(&region);
        self.unmap(start, end - start)?;
        let space = self.spaces.active_mut();
        space.regions.insert(start, region);
        space.generation += 1;
        Ok(())
    }

    /// Maps `[start, start + len)` to a new object of zero pages, which later forks share (`MAP_SHARED`), replacing what was
    /// there.
    ///
    /// # Errors
    /// [`MapError::BadRange`].
    pub fn map_shared(&mut self, start: u64, len: u64, prot: Prot, segment: Segment) -> Result<(), MapError> {
        let end = checked_range(start, len)?;
        let object = self.add_object();
        let backing = Some(Backing { object, page: 0 });
        let mapped = self.map_region(Region { start, end, prot, segment, shared: true, backing });
        self.release_object(object);
        mapped
    }

    /// Moves `[from, from + len)` with its pages to `[to, to + len)`, replacing what was there. Nothing remains mapped at the old
    /// addresses. On an error, nothing has changed.
    ///
    /// # Errors
    /// [`MapError::BadRange`], also for overlapping ranges; [`MapError::NoRoom`] when there is no room for page tables.
    pub fn move_range(&mut self, from: u64, len: u64, to: u64) -> Result<(), MapError> {
        let (from_end, to_end) = (checked_range(from, len)?, checked_range(to, len)?);
        if from < to_end && to < from_end {
            return Err(MapError::BadRange);
        }
        let (first, last) = (from >> PAGE_SHIFT, from_end >> PAGE_SHIFT);
        if !self.spaces.active_mut().add_tables(&mut self.arena, first, last, to >> PAGE_SHIFT) {
            return Err(MapError::NoRoom);
        }
        self.unmap(to, len)?;
        self.tlb.flush();
        let space = self.spaces.active_mut();
        space.split(&mut self.objects, from);
        space.split(&mut self.objects, from_end);
        space.watch.note(from..from_end);
        let inside: Vec<Region> = space.regions.range(from..from_end).map(|(_, &region)| region).collect();
        for region in inside {
            space.regions.remove(&region.start);
            let (start, end) = (region.start - from + to, region.end - from + to);
            space.regions.insert(start, Region { start, end, ..region });
        }
        space.move_pages(first, last, to >> PAGE_SHIFT);
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
        space.split(&mut self.objects, start);
        space.split(&mut self.objects, end);
        let inside: Vec<Region> = space.regions.range(start..end).map(|(_, &region)| region).collect();
        for region in inside {
            let space = self.spaces.active_mut();
            space.regions.remove(&region.start);
            space.generation += 1;
            self.discard(region.start, region.end);
            self.objects.unmapped(&mut self.arena, &region);
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
        space.split(&mut self.objects, start);
        space.split(&mut self.objects, end);
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

    /// Drops the pages of the range (`MADV_DONTNEED`): afterwards, it has the contents of the object that it maps, or zeros.
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
    /// Returns these addresses, which stay.
    #[must_use]
    pub fn fresh(&self) -> &[u64] {
        &self.spaces.active().fresh
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
