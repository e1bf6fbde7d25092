//! Address spaces over one arena.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::arena::Arena;
use super::object::{NoPage, ObjectId, Objects};
use super::tlb::Tlb;
use super::watch::Watch;
use super::{ADDRESS, MemFault, Memory, PAGE, PAGE_SHIFT, Region, Touch};

/// Identifies an address space of a [`Memory`] until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SpaceId(u32);

/// Page table for 4 GiB of address space; entry: arena page number plus one, or 0 if not backed.
pub(super) type Leaf = Box<[u32]>;
pub(super) const LEAF_BITS: u32 = 16;
pub(super) const LEAF_BYTES: u64 = 4 << LEAF_BITS;
const LEAVES: usize = 1 << (48 - PAGE_SHIFT - LEAF_BITS);

/// Tables that each address space has without counting against the limit: for text, heap, mappings and stack.
const INCLUDED_TABLES: u64 = 4;

/// Where a page is, and how it may be accessed without looking up its region.
pub(super) struct Translation {
    /// Arena offset of the page.
    pub base: u64,
    pub readable: bool,
    pub writable: bool,
}

/// One address space.
#[derive(Serialize, Deserialize)]
pub(super) struct Space {
    pub regions: BTreeMap<u64, Region>,
    #[serde(with = "tables")]
    leaves: Vec<Option<Leaf>>,
    /// Number of `leaves` present.
    tables: u64,
    /// Addresses of the pages backed since the last call of [`Memory::take_fresh`].
    pub fresh: Vec<u64>,
    /// Counts changes of `regions`.
    pub generation: u64,
    pub watch: Watch,
    /// Its translations while another address space is active.
    #[serde(skip)]
    tlb: Option<Tlb>,
}

/// Serialises page tables as the entries in use.
mod tables {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{LEAF_BITS, LEAVES, Leaf};

    /// A table's number, and its nonzero entries with their indices.
    type Saved = (u32, Vec<(u32, u32)>);

    pub(super) fn serialize<S: Serializer>(leaves: &[Option<Leaf>], serializer: S) -> Result<S::Ok, S::Error> {
        let entries = |leaf: &Leaf| (0..).zip(leaf.iter().copied()).filter(|&(_, entry)| entry != 0).collect();
        let tables = (0..).zip(leaves).filter_map(|(number, leaf)| Some((number, entries(leaf.as_ref()?))));
        tables.collect::<Vec<Saved>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Option<Leaf>>, D::Error> {
        let out_of_range = || serde::de::Error::custom("a page lies beyond the end of its address space");
        let mut leaves = vec![None; LEAVES];
        for (number, entries) in Vec::<Saved>::deserialize(deserializer)? {
            let mut leaf: Leaf = vec![0; 1 << LEAF_BITS].into();
            for (place, entry) in entries {
                *leaf.get_mut(place as usize).ok_or_else(out_of_range)? = entry;
            }
            *leaves.get_mut(number as usize).ok_or_else(out_of_range)? = Some(leaf);
        }
        Ok(leaves)
    }
}

impl Clone for Space {
    fn clone(&self) -> Space {
        Space {
            regions: self.regions.clone(),
            leaves: self.leaves.clone(),
            tables: self.tables,
            fresh: self.fresh.clone(),
            generation: self.generation,
            watch: self.watch.clone(),
            tlb: None,
        }
    }
}

impl Space {
    fn new() -> Space {
        Space {
            regions: BTreeMap::new(),
            leaves: vec![None; LEAVES],
            tables: 0,
            fresh: Vec::new(),
            generation: 0,
            watch: Watch::default(),
            tlb: None,
        }
    }

    pub(super) fn region_at(&self, addr: u64) -> Option<&Region> {
        self.regions.range(..=addr).next_back().map(|(_, r)| r).filter(|r| addr < r.end)
    }

    /// Makes `at` a region boundary if it lies inside a region.
    pub(super) fn split(&mut self, objects: &mut Objects, at: u64) {
        let Some((_, lower)) = self.regions.range_mut(..at).next_back() else {
            return;
        };
        if lower.end > at {
            let upper = lower.split_off(at);
            objects.mapped(&upper);
            self.regions.insert(at, upper);
        }
    }

    /// Returns the bytes of its page tables.
    pub(super) fn table_bytes(&self) -> u64 {
        self.tables * LEAF_BYTES
    }

    /// Returns the bytes of tables that count against the limit.
    fn counted_table_bytes(&self) -> u64 {
        self.tables.saturating_sub(INCLUDED_TABLES) * LEAF_BYTES
    }

    /// Returns a page's table entry: its arena page number plus one, or 0. `None`: the address does not exist, or there is no
    /// room for a table.
    fn entry(&mut self, arena: &mut Arena, page: u64) -> Option<&mut u32> {
        let leaf = self.leaves.get_mut((page >> LEAF_BITS) as usize)?;
        if leaf.is_none() {
            if self.tables >= INCLUDED_TABLES && !arena.take_table(LEAF_BYTES) {
                return None;
            }
            self.tables += 1;
        }
        let leaf = leaf.get_or_insert_with(|| vec![0; 1 << LEAF_BITS].into());
        Some(&mut leaf[page as usize & ((1 << LEAF_BITS) - 1)])
    }

    /// Returns the arena offset of the page of `address`, which lies in `region`, for an access that does not change it, and backs
    /// the page if necessary.
    pub(super) fn backing(
        &mut self,
        arena: &mut Arena,
        objects: &mut Objects,
        region: &Region,
        address: u64,
    ) -> Result<u64, NoPage> {
        let entry = self.entry(arena, address >> PAGE_SHIFT).ok_or(NoPage::NoRoom)?;
        if *entry == 0 {
            let number = match region.backing {
                None => arena.take().ok_or(NoPage::NoRoom)?,
                Some(backing) => {
                    let number = objects.page(arena, region, backing, address, false)?;
                    arena.share(number);
                    number
                }
            };
            *entry = number + 1;
            self.fresh.push(address & !(PAGE - 1));
            return Ok(u64::from(number) * PAGE);
        }
        Ok(u64::from(*entry - 1) * PAGE)
    }

    /// The same for a store: in a region that is not shared, a page that somebody else also uses is copied first.
    pub(super) fn own_backing(
        &mut self,
        arena: &mut Arena,
        objects: &mut Objects,
        region: &Region,
        address: u64,
    ) -> Result<u64, NoPage> {
        if region.shared {
            let base = self.backing(arena, objects, region, address)?;
            region.backing.into_iter().for_each(|backing| objects.note_store(region, backing, address));
            return Ok(base);
        }
        let entry = self.entry(arena, address >> PAGE_SHIFT).ok_or(NoPage::NoRoom)?;
        let number = match (*entry, region.backing) {
            (0, None) => arena.take().ok_or(NoPage::NoRoom)?,
            (0, Some(backing)) => objects.private_page(arena, region, backing, address)?,
            (present, _) if arena.is_shared(present - 1) => arena.copy(present - 1).ok_or(NoPage::NoRoom)?,
            (present, _) => return Ok(u64::from(present - 1) * PAGE),
        };
        let is_fresh = *entry == 0;
        *entry = number + 1;
        if is_fresh {
            self.fresh.push(address & !(PAGE - 1));
        }
        Ok(u64::from(number) * PAGE)
    }

    /// Checks an access to `addr` and backs its page if necessary.
    pub(super) fn translate(
        &mut self,
        arena: &mut Arena,
        objects: &mut Objects,
        addr: u64,
        touch: Touch,
    ) -> Result<Translation, MemFault> {
        let unmapped = MemFault::unmapped(addr, touch);
        let region = *self.region_at(addr).ok_or(unmapped)?;
        let prot = region.prot;
        let allowed = match touch {
            Touch::Read => prot.read,
            Touch::Write => prot.write,
            Touch::Fetch => prot.exec,
        };
        if !allowed {
            return Err(MemFault { mapped: true, ..unmapped });
        }
        let base = match touch {
            Touch::Write => self.own_backing(arena, objects, &region, addr),
            Touch::Read | Touch::Fetch => self.backing(arena, objects, &region, addr),
        };
        let base = base.map_err(|cause| unmapped.because(cause))?;
        let needs_no_copy = match region.backing {
            Some(backing) if region.shared => objects.is_noted(&region, backing, addr),
            _ => !arena.is_shared((base / PAGE) as u32),
        };
        let writable = prot.write && needs_no_copy && !self.watch.has_page(addr >> PAGE_SHIFT);
        Ok(Translation { base, readable: prot.read, writable })
    }

    /// Returns the arena offset of an address whose page is backed.
    pub(super) fn physical(&self, addr: u64) -> Option<u64> {
        let addr = addr & ADDRESS;
        let page = addr >> PAGE_SHIFT;
        let leaf = self.leaves.get((page >> LEAF_BITS) as usize)?.as_ref()?;
        let entry = leaf[page as usize & ((1 << LEAF_BITS) - 1)];
        (entry != 0).then(|| u64::from(entry - 1) * PAGE + (addr & (PAGE - 1)))
    }

    /// Releases the pages of `[start, end)`.
    pub(super) fn release_pages(&mut self, arena: &mut Arena, start: u64, end: u64) {
        let mut page = start >> PAGE_SHIFT;
        let last = end.div_ceil(PAGE);
        while page < last {
            match self.leaves.get_mut((page >> LEAF_BITS) as usize) {
                Some(Some(leaf)) => {
                    let entry = &mut leaf[page as usize & ((1 << LEAF_BITS) - 1)];
                    if *entry != 0 {
                        arena.release(*entry - 1);
                        *entry = 0;
                    }
                    page += 1;
                }
                // Nothing is backed in this leaf: continue with the next.
                _ => page = ((page >> LEAF_BITS) + 1) << LEAF_BITS,
            }
        }
    }

    /// Returns the numbers of the pages of `first..end` that are backed.
    fn backed_pages(&self, first: u64, end: u64) -> Vec<u64> {
        let mut found = Vec::new();
        let mut page = first;
        while page < end {
            let next = (((page >> LEAF_BITS) + 1) << LEAF_BITS).min(end);
            if let Some(Some(leaf)) = self.leaves.get((page >> LEAF_BITS) as usize) {
                found.extend((page..next).filter(|page| leaf[*page as usize & ((1 << LEAF_BITS) - 1)] != 0));
            }
            page = next;
        }
        found
    }

    /// Adds the tables that the pages numbered `first..end` need when they are moved to `to`. Returns whether there was room.
    pub(super) fn add_tables(&mut self, arena: &mut Arena, first: u64, end: u64, to: u64) -> bool {
        let pages = self.backed_pages(first, end);
        pages.into_iter().all(|page| self.entry(arena, page - first + to).is_some())
    }

    /// Moves the pages numbered `first..end` to `to`, where nothing is. The tables there exist.
    pub(super) fn move_pages(&mut self, first: u64, end: u64, to: u64) {
        for page in self.backed_pages(first, end) {
            let entry = self.present(page).map(std::mem::take).unwrap_or_default();
            if let Some(new) = self.present(page - first + to) {
                *new = entry;
            }
        }
    }

    /// Returns a page's table entry, if its table exists.
    fn present(&mut self, page: u64) -> Option<&mut u32> {
        let leaf = self.leaves.get_mut((page >> LEAF_BITS) as usize)?.as_mut()?;
        Some(&mut leaf[page as usize & ((1 << LEAF_BITS) - 1)])
    }

    /// Releases the pages numbered `pages` of an object in all regions that map it; those that are not the object's, as `is_its`
    /// says of a page's number in the object and in the arena, only if `copies`.
    fn drop_object_pages(
        &mut self,
        arena: &mut Arena,
        id: ObjectId,
        pages: &Range<u64>,
        copies: bool,
        is_its: impl Fn(u64, u32) -> bool,
    ) {
        let of_it: Vec<(Region, u64)> = self.regions.values().filter_map(|r| Some((*r, r.part_of(id)?))).collect();
        for (region, first) in of_it {
            let len = (region.end - region.start) >> PAGE_SHIFT;
            let (start, end) = (pages.start.max(first), pages.end.min(first.saturating_add(len)));
            let page = |index: u64| (region.start >> PAGE_SHIFT) + (index - first);
            let backed = if start < end { self.backed_pages(page(start), page(end)) } else { Vec::new() };
            for page in backed {
                let index = page - (region.start >> PAGE_SHIFT) + first;
                let number = self.present(page).and_then(|entry| entry.checked_sub(1));
                if number.is_some_and(|number| copies || is_its(index, number)) {
                    self.release_pages(arena, page << PAGE_SHIFT, (page + 1) << PAGE_SHIFT);
                }
            }
        }
    }

    /// Releases every page, region and table.
    fn clear(&mut self, arena: &mut Arena, objects: &mut Objects) {
        let all: Vec<Region> = self.regions.values().copied().collect();
        for region in &all {
            self.watch.note(region.start..region.end);
            self.release_pages(arena, region.start, region.end);
            objects.unmapped(arena, region);
        }
        self.regions.clear();
        arena.release_tables(self.counted_table_bytes());
        self.leaves.fill(None);
        self.tables = 0;
        self.generation += 1;
    }

    /// Returns a copy that shares its pages.
    ///
    /// # Errors
    /// When there is no room for the tables.
    fn fork(&self, arena: &mut Arena, objects: &mut Objects) -> std::io::Result<Space> {
        if !arena.take_table(self.counted_table_bytes()) {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        for &entry in self.leaves.iter().flatten().flat_map(|leaf| leaf.iter()).filter(|&&entry| entry != 0) {
            arena.share(entry - 1);
        }
        self.regions.values().for_each(|region| objects.mapped(region));
        Ok(Space { regions: self.regions.clone(), leaves: self.leaves.clone(), tables: self.tables, ..Space::new() })
    }
}

/// All address spaces.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Spaces {
    list: Vec<Option<Space>>,
    active: u32,
}

impl Spaces {
    pub(super) fn new() -> Spaces {
        Spaces { list: vec![Some(Space::new())], active: 0 }
    }

    /// Returns whether the active address space exists and all address spaces use only the first `pages` pages of the arena.
    pub(super) fn are_within(&self, pages: u32) -> bool {
        let entries = self.list.iter().flatten().flat_map(|space| space.leaves.iter().flatten());
        let within = entries.flat_map(|leaf| leaf.iter()).all(|&entry| entry <= pages);
        within && self.list.get(self.active as usize).is_some_and(Option::is_some)
    }

    /// Returns whether the objects of all regions exist.
    pub(super) fn have_objects(&self, objects: &Objects) -> bool {
        self.list.iter().flatten().flat_map(|space| space.regions.values()).all(|region| objects.has_that_of(region))
    }

    /// Iterates over the regions of an address space, lowest first; none if it does not exist.
    pub(super) fn regions_of(&self, id: SpaceId) -> impl Iterator<Item = &Region> {
        self.list.get(id.0 as usize).into_iter().flatten().flat_map(|space| space.regions.values())
    }

    /// Returns the pages numbered `first..end` of an address space that are backed, with their numbers in the arena.
    pub(super) fn backed_in(&self, id: SpaceId, first: u64, end: u64) -> Vec<(u64, u32)> {
        let Some(Some(space)) = self.list.get(id.0 as usize) else { return Vec::new() };
        let backed = space.backed_pages(first, end).into_iter();
        backed.filter_map(|page| Some((page, (space.physical(page << PAGE_SHIFT)? / PAGE) as u32))).collect()
    }

    /// Drops the cached translations of address spaces that are not active.
    pub(super) fn forget_translations(&mut self) {
        self.list.iter_mut().flatten().for_each(|space| space.tlb = None);
    }

    /// See [`Space::drop_object_pages`].
    pub(super) fn drop_object_pages(
        &mut self,
        arena: &mut Arena,
        id: ObjectId,
        pages: &Range<u64>,
        copies: bool,
        is_its: impl Fn(u64, u32) -> bool,
    ) {
        for space in self.list.iter_mut().flatten() {
            space.drop_object_pages(arena, id, pages, copies, &is_its);
        }
    }

    #[inline(always)]
    pub(super) fn active(&self) -> &Space {
        self.list[self.active as usize].as_ref().expect("the active address space exists")
    }

    #[inline(always)]
    pub(super) fn active_mut(&mut self) -> &mut Space {
        self.list[self.active as usize].as_mut().expect("the active address space exists")
    }

    /// Returns an address space, if it exists.
    pub(super) fn get(&self, id: SpaceId) -> Option<&Space> {
        self.list.get(id.0 as usize)?.as_ref()
    }

    fn insert(&mut self, space: Space) -> SpaceId {
        let vacant = self.list.iter().position(Option::is_none).unwrap_or(self.list.len());
        if vacant == self.list.len() {
            self.list.push(None);
        }
        self.list[vacant] = Some(space);
        SpaceId(vacant as u32)
    }
}

impl Memory {
    /// Returns the active address space.
    #[must_use]
    pub fn active(&self) -> SpaceId {
        SpaceId(self.spaces.active)
    }

    /// Iterates over all regions of an address space, lowest first; there are none if it has been removed.
    pub fn regions_of(&self, id: SpaceId) -> impl Iterator<Item = &Region> {
        let space = self.spaces.get(id);
        space.into_iter().flat_map(|space| space.regions.values())
    }

    /// Makes an address space the active one.
    ///
    /// # Panics
    /// When it has been removed.
    pub fn activate(&mut self, id: SpaceId) {
        if id.0 == self.spaces.active {
            return;
        }
        let next = self.spaces.list[id.0 as usize].as_mut().expect("only existing address spaces are activated");
        let tlb = next.tlb.take().unwrap_or_default();
        let previous = std::mem::replace(&mut self.tlb, tlb);
        self.spaces.active_mut().tlb = Some(previous);
        self.spaces.active = id.0;
    }

    /// Adds an empty address space.
    pub fn add_space(&mut self) -> SpaceId {
        self.spaces.insert(Space::new())
    }

    /// Adds a copy of the active address space. The two share regions mapped as shared; all others are copied on write, page by
    /// page.
    ///
    /// # Errors
    /// When there is no room for the tables.
    pub fn fork(&mut self) -> std::io::Result<SpaceId> {
        let child = self.spaces.active().fork(&mut self.arena, &mut self.objects)?;
        self.tlb.flush();
        Ok(self.spaces.insert(child))
    }

    /// Removes an address space that is not active, with its pages.
    ///
    /// # Panics
    /// When it is active or has been removed before.
    pub fn remove_space(&mut self, id: SpaceId) {
        assert_ne!(id.0, self.spaces.active, "the active address space is not removed");
        let mut space = self.spaces.list[id.0 as usize].take().expect("address spaces are removed once");
        space.clear(&mut self.arena, &mut self.objects);
    }

    /// Removes every mapping of the active address space.
    pub fn clear(&mut self) {
        self.tlb.flush();
        self.spaces.active_mut().clear(&mut self.arena, &mut self.objects);
    }
}

#[cfg(test)]
mod tests {
    use super::SpaceId;
    use crate::{Memory, PAGE, Prot, Segment};

    const PRIVATE: u64 = 0x1_0000;
    const SHARED: u64 = 0x5_0000;

    /// Returns memory after a fork, with the parent active, and the IDs of parent and child.
    fn forked() -> (Memory, SpaceId, SpaceId) {
        let mut mem = Memory::new(16 * PAGE).expect("reserve");
        mem.map(PRIVATE, PAGE, Prot::RW, Segment::Mmap).unwrap();
        mem.map_shared(SHARED, PAGE, Prot::RW, Segment::Mmap).unwrap();
        mem.load::<u8>(SHARED).unwrap();
        mem.store(PRIVATE, 1u32).unwrap();
        let child = mem.fork().expect("fork");
        let parent = mem.active();
        (mem, parent, child)
    }

    #[test]
    fn after_a_fork_private_memory_is_separate_and_shared_memory_is_shared() {
        let (mut mem, parent, child) = forked();
        mem.store(PRIVATE, 2u32).unwrap();
        mem.store(SHARED, 3u32).unwrap();
        mem.activate(child);
        assert_eq!(mem.load::<u32>(PRIVATE), Ok(1));
        assert_eq!(mem.load::<u32>(SHARED), Ok(3));
        mem.store(PRIVATE, 4u32).unwrap();
        mem.store(SHARED, 5u32).unwrap();
        mem.activate(parent);
        assert_eq!(mem.load::<u32>(PRIVATE), Ok(2));
        assert_eq!(mem.load::<u32>(SHARED), Ok(5));
    }

    #[test]
    fn a_store_after_a_load_of_a_shared_page_still_copies_it() {
        let (mut mem, _, child) = forked();
        assert_eq!(mem.load::<u32>(PRIVATE), Ok(1));
        mem.store(PRIVATE, 2u32).unwrap();
        mem.activate(child);
        assert_eq!(mem.load::<u32>(PRIVATE), Ok(1));
    }

    #[test]
    fn pages_are_released_when_the_last_address_space_drops_them() {
        let (mut mem, parent, child) = forked();
        assert_eq!(mem.backed_bytes(), 2 * PAGE);
        mem.activate(child);
        mem.store(PRIVATE, 4u32).unwrap();
        assert_eq!(mem.backed_bytes(), 3 * PAGE);
        mem.clear();
        assert_eq!(mem.backed_bytes(), 2 * PAGE);
        mem.activate(parent);
        mem.clear();
        assert_eq!(mem.backed_bytes(), 0);
    }

    #[test]
    fn a_removed_address_space_releases_its_pages_and_its_number_is_reused() {
        let (mut mem, _, child) = forked();
        mem.store(PRIVATE, 2u32).unwrap();
        assert_eq!(mem.backed_bytes(), 3 * PAGE);
        mem.remove_space(child);
        assert_eq!(mem.backed_bytes(), 2 * PAGE);
        assert_eq!(mem.add_space(), child);
        assert_eq!(mem.load::<u32>(PRIVATE), Ok(2));
    }

    #[test]
    fn a_clone_and_a_deserialised_copy_have_the_same_contents_and_are_independent() {
        let (mut mem, parent, child) = forked();
        let bytes = postcard::to_stdvec(&mem).expect("serialised");
        let mut restored: Memory = postcard::from_bytes(&bytes).expect("deserialised");
        // One page is not zero, the parent's and the child's. The shared one has been backed but not written.
        assert!(mem.written_pages().count() == 1 && !restored.set_page(2, &[0; PAGE as usize]));
        assert!(mem.written_pages().all(|(number, page)| restored.set_page(number, page)) && restored.is_consistent());
        let copy = mem.try_clone().expect("reserve");
        mem.store(SHARED, 9u32).unwrap();
        for mut other in [restored, copy] {
            assert_eq!((other.active(), other.backed_bytes(), other.room_bytes()), (parent, 2 * PAGE, 14 * PAGE));
            other.store(SHARED, 3u32).unwrap();
            other.activate(child);
            assert_eq!((other.load::<u32>(PRIVATE), other.load::<u32>(SHARED)), (Ok(1), Ok(3)));
            other.store(PRIVATE, 4u32).unwrap();
            other.activate(parent);
            assert_eq!(other.load::<u32>(PRIVATE), Ok(1));
        }
        assert_eq!(mem.load::<u32>(SHARED), Ok(9));
    }

    #[test]
    fn translations_of_one_address_space_are_not_used_in_another() {
        let (mut mem, parent, child) = forked();
        let empty = mem.add_space();
        for space in [parent, child, parent] {
            mem.activate(space);
            assert!(mem.store(PRIVATE, 7u32).is_ok());
            mem.activate(empty);
            assert!(mem.load::<u32>(PRIVATE).is_err());
        }
    }
}
