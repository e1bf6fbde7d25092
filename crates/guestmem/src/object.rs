//! Memory objects: sets of pages that several mappings share, in one or several address spaces.
//!
//! An object holds the pages of a file that is mapped, of an anonymous shared mapping, or of a System V segment. Every mapping
//! of an object uses the same pages, whatever its address and rights. Each page of the arena counts the object as one user and
//! each address space that has touched the page as another.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::arena::Arena;
use super::{MapError, Memory, PAGE, PAGE_SHIFT, Region, SpaceId};

/// Identifies a memory object while it exists. Numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId(u32);

/// The part of an object that a region maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backing {
    /// The object.
    pub object: ObjectId,
    /// The number of the object's page at the region's first address, in units of [`PAGE`].
    pub page: u64,
}

impl Backing {
    /// Returns the object's page number at `address`, which lies in `region`, the region that has this backing.
    fn page_at(self, region: &Region, address: u64) -> u64 {
        self.page.wrapping_add((address - region.start) >> PAGE_SHIFT)
    }
}

impl Region {
    /// Returns a region with the same properties at `[start, end)`. If it maps an object, its first page is the one `distance`
    /// bytes after this region's first.
    #[must_use]
    pub fn continued(&self, distance: u64, start: u64, end: u64) -> Region {
        let later = |backing: Backing| Backing { page: backing.page.wrapping_add(distance >> PAGE_SHIFT), ..backing };
        Region { start, end, backing: self.backing.map(later), ..*self }
    }

    /// Makes this region end at `at`, which lies inside it, and returns the rest.
    pub(super) fn split_off(&mut self, at: u64) -> Region {
        let upper = self.continued(at - self.start, at, self.end);
        self.end = at;
        upper
    }

    /// Returns the number of the object's page at its first address, if it maps that object.
    pub(super) fn part_of(&self, id: ObjectId) -> Option<u64> {
        self.backing.filter(|backing| backing.object == id).map(|backing| backing.page)
    }
}

/// The object and the offset in it, in bytes, of an address in a shared mapping: the same for all mappings of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectAddress {
    /// The object.
    pub object: ObjectId,
    /// The offset in it in bytes.
    pub offset: u64,
}

/// What the pages of a mapping are shared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBy {
    /// The serial number of the object. Unlike its [`ObjectId`], no later object gets it.
    pub serial: u64,
    /// The address of the object's first byte, modulo 2^64: the mapping may begin with a later page.
    pub origin: u64,
}

/// Where pages of an object come from that it does not have yet.
pub trait PageSource: Send + Sync {
    /// Fills `page`, which is all zeros, with page number `index`. Returns `false` if there is no such page.
    fn load(&self, index: u64, page: &mut [u8]) -> bool;

    /// The object has page number `index` now: the source may drop its copy. If it has, so that the object has the only one,
    /// returns how many bytes of memory used elsewhere ([`Memory::set_elsewhere`]) that has freed.
    fn moved(&self, index: u64) -> Option<u64>;
}

/// Why an address has no page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoPage {
    /// No room in memory for it.
    NoRoom,
    /// The object's source ends before it.
    BeyondEnd,
}

/// A page of an object.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct ObjectPage {
    /// Its number in the arena.
    pub number: u32,
    /// Whether it may differ from what the source has.
    pub dirty: bool,
}

/// A memory object.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Object {
    pages: BTreeMap<u64, ObjectPage>,
    /// Counts objects.
    serial: u64,
    /// Number of regions that map it, in all address spaces.
    mappings: u64,
    /// Whether it exists without being mapped.
    held: bool,
    #[serde(skip)]
    source: Option<Arc<dyn PageSource>>,
}

/// All memory objects.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Objects {
    list: Vec<Option<Object>>,
    /// Number of objects so far.
    made: u64,
    /// Held objects that were new, or of which the last mapping was removed.
    unmapped: Vec<ObjectId>,
}

impl Objects {
    fn get(&self, id: ObjectId) -> Option<&Object> {
        self.list.get(id.0 as usize)?.as_ref()
    }

    fn get_mut(&mut self, id: ObjectId) -> Option<&mut Object> {
        self.list.get_mut(id.0 as usize)?.as_mut()
    }

    fn insert(&mut self, object: Object) -> ObjectId {
        let vacant = self.list.iter().position(Option::is_none).unwrap_or(self.list.len());
        if vacant == self.list.len() {
            self.list.push(None);
        }
        self.list[vacant] = Some(object);
        ObjectId(vacant as u32)
    }

    /// Records a further region like `region`.
    pub(super) fn mapped(&mut self, region: &Region) {
        if let Some(object) = region.backing.and_then(|backing| self.get_mut(backing.object)) {
            object.mappings += 1;
        }
    }

    /// Records the removal of a region, whose pages have been released. An object that nobody maps or holds is removed, and so are
    /// pages that no address space has any more and that the source has, too.
    pub(super) fn unmapped(&mut self, arena: &mut Arena, region: &Region) {
        let Some(Backing { object: id, page: first }) = region.backing else { return };
        let Some(object) = self.get_mut(id) else { return };
        if object.source.is_some() {
            let pages = first..first.saturating_add((region.end - region.start) >> PAGE_SHIFT);
            let unused = object.pages.range(pages).filter(|(_, page)| !page.dirty && !arena.is_shared(page.number));
            let unused: Vec<u64> = unused.map(|(&index, _)| index).collect();
            for page in unused.iter().filter_map(|index| object.pages.remove(index)) {
                arena.release(page.number);
            }
        }
        object.mappings = object.mappings.saturating_sub(1);
        match (object.mappings, object.held) {
            (0, true) => self.unmapped.push(id),
            (0, false) => self.remove(arena, id),
            _ => {}
        }
    }

    fn remove(&mut self, arena: &mut Arena, id: ObjectId) {
        let object = self.list.get_mut(id.0 as usize).and_then(Option::take);
        for page in object.into_iter().flat_map(|object| object.pages.into_values()) {
            arena.release(page.number);
        }
        self.unmapped.retain(|&other| other != id);
    }

    /// Returns the arena's number of the object's page at `address` of `region`, and loads the page if necessary. `written`: the
    /// access changes it.
    pub(super) fn page(
        &mut self,
        arena: &mut Arena,
        region: &Region,
        backing: Backing,
        address: u64,
        written: bool,
    ) -> Result<u32, NoPage> {
        let object = self.get_mut(backing.object).ok_or(NoPage::BeyondEnd)?;
        let index = backing.page_at(region, address);
        if let Some(page) = object.pages.get_mut(&index) {
            page.dirty |= written;
            return Ok(page.number);
        }
        let number = arena.take().ok_or(NoPage::NoRoom)?;
        let mut dirty = written;
        if let Some(source) = &object.source {
            if !source.load(index, arena.page_mut(number)) {
                arena.release(number);
                return Err(NoPage::BeyondEnd);
            }
            if let Some(freed) = source.moved(index) {
                dirty = true;
                arena.set_elsewhere(arena.elsewhere().saturating_sub(freed));
            }
        }
        object.pages.insert(index, ObjectPage { number, dirty });
        Ok(number)
    }

    /// Returns the object's page at `address` of `region`, if the region maps an object that has it.
    pub(super) fn page_at(&self, region: &Region, address: u64) -> Option<ObjectPage> {
        let backing = region.backing?;
        self.get(backing.object)?.pages.get(&backing.page_at(region, address)).copied()
    }

    /// Returns the number of a new page, not one of the object's, with the contents of the object at `address` of `region`.
    pub(super) fn private_page(
        &self,
        arena: &mut Arena,
        region: &Region,
        backing: Backing,
        address: u64,
    ) -> Result<u32, NoPage> {
        let object = self.get(backing.object).ok_or(NoPage::BeyondEnd)?;
        let index = backing.page_at(region, address);
        let number = arena.take().ok_or(NoPage::NoRoom)?;
        match (object.pages.get(&index), &object.source) {
            (Some(page), _) => arena.copy_into(page.number, number),
            (None, Some(source)) if !source.load(index, arena.page_mut(number)) => {
                arena.release(number);
                return Err(NoPage::BeyondEnd);
            }
            (None, _) => {}
        }
        Ok(number)
    }

    /// Records a store to the object's page at `address` of `region`.
    pub(super) fn note_store(&mut self, region: &Region, backing: Backing, address: u64) {
        let index = backing.page_at(region, address);
        if let Some(page) = self.get_mut(backing.object).and_then(|object| object.pages.get_mut(&index)) {
            page.dirty = true;
        }
    }

    /// Returns whether stores to the object's page at `address` of `region` need not be recorded any more.
    pub(super) fn is_noted(&self, region: &Region, backing: Backing, address: u64) -> bool {
        self.get(backing.object).is_some_and(|object| {
            let page = object.pages.get(&backing.page_at(region, address));
            object.source.is_none() || page.is_some_and(|page| page.dirty)
        })
    }

    /// Returns whether all objects use only the first `pages` pages of the arena.
    pub(super) fn are_within(&self, pages: u32) -> bool {
        self.list.iter().flatten().flat_map(|object| object.pages.values()).all(|page| page.number < pages)
    }

    /// Returns whether the object of a region exists.
    pub(super) fn has_that_of(&self, region: &Region) -> bool {
        region.backing.is_none_or(|backing| self.get(backing.object).is_some())
    }
}

impl Memory {
    /// Returns a new object without pages, which are zeros at first unless it gets a source. It exists until it is released and no
    /// region maps it any more.
    pub fn add_object(&mut self) -> ObjectId {
        self.objects.made += 1;
        let id = self.objects.insert(Object { held: true, serial: self.objects.made, ..Object::default() });
        self.objects.unmapped.push(id);
        id
    }

    /// Sets the source of an object; has no effect if the object does not exist.
    pub fn set_source(&mut self, id: ObjectId, source: Arc<dyn PageSource>) {
        if let Some(object) = self.objects.get_mut(id) {
            object.source = Some(source);
        }
    }

    /// Releases an object that was added: it is removed with its last mapping, or now if there is none.
    pub fn release_object(&mut self, id: ObjectId) {
        if let Some(object) = self.objects.get_mut(id) {
            object.held = false;
            if object.mappings == 0 {
                self.objects.remove(&mut self.arena, id);
            }
        }
    }

    /// Loads the pages that a region maps of an object into the active address space, up to the end of the object's source.
    ///
    /// # Errors
    /// When there is no room for one.
    pub fn load_pages(&mut self, region: &Region) -> Result<(), MapError> {
        let space = self.spaces.active_mut();
        for address in (region.start..region.end).step_by(PAGE as usize) {
            match space.backing(&mut self.arena, &mut self.objects, region, address) {
                Ok(_) => {}
                Err(NoPage::BeyondEnd) => break,
                Err(NoPage::NoRoom) => return Err(MapError::NoRoom),
            }
        }
        Ok(())
    }

    /// Returns the number of regions that map an object, in all address spaces.
    #[must_use]
    pub fn mappings_of(&self, id: ObjectId) -> u64 {
        self.objects.get(id).map_or(0, |object| object.mappings)
    }

    /// Returns the number of pages ([`PAGE`]) that an object has.
    #[must_use]
    pub fn pages_of(&self, id: ObjectId) -> u64 {
        self.objects.get(id).map_or(0, |object| object.pages.len() as u64)
    }

    /// Returns whether an object exists.
    #[must_use]
    pub fn has_object(&self, id: ObjectId) -> bool {
        self.objects.get(id).is_some()
    }

    /// Returns the object whose pages a region has.
    #[must_use]
    pub fn shared_by(&self, region: &Region) -> Option<SharedBy> {
        let backing = region.backing?;
        let serial = self.objects.get(backing.object)?.serial;
        Some(SharedBy { serial, origin: region.start.wrapping_sub(backing.page << PAGE_SHIFT) })
    }

    /// Returns whether the object with a serial number still exists.
    #[must_use]
    pub fn has_object_of(&self, serial: u64) -> bool {
        self.objects.list.iter().flatten().any(|object| object.serial == serial)
    }

    /// Returns the object and the offset in it of an address in a shared mapping.
    #[must_use]
    pub fn object_at(&self, address: u64) -> Option<ObjectAddress> {
        let region = self.region_at(address).filter(|region| region.shared)?;
        let backing = region.backing?;
        let offset = (backing.page << PAGE_SHIFT).wrapping_add(address - region.start);
        Some(ObjectAddress { object: backing.object, offset })
    }

    /// Returns whether objects have been added, or have lost their last mapping without having been released, since the last call
    /// of [`Memory::take_unmapped`].
    #[must_use]
    pub fn has_unmapped(&self) -> bool {
        !self.objects.unmapped.is_empty()
    }

    /// Takes these objects. Some may be mapped now.
    pub fn take_unmapped(&mut self) -> Vec<ObjectId> {
        std::mem::take(&mut self.objects.unmapped)
    }

    /// Copies bytes of an object from `offset` on into `out`, as far as the object has their pages; other bytes stay.
    pub fn read_object(&self, id: ObjectId, offset: u64, out: &mut [u8]) {
        self.objects.each_part(id, offset, out.len() as u64, |number, within, part| {
            let n = part.len();
            out[part].copy_from_slice(&self.arena.page(number)[within..within + n]);
        });
    }

    /// Changes bytes of an object from `offset` on, as far as the object has their pages. The source is assumed to have the same
    /// bytes.
    pub fn write_object(&mut self, id: ObjectId, offset: u64, bytes: &[u8]) {
        self.objects.each_part(id, offset, bytes.len() as u64, |number, within, part| {
            let n = part.len();
            self.arena.page_mut(number)[within..within + n].copy_from_slice(&bytes[part]);
        });
    }

    /// Sets bytes of an object to zero, from `offset` to the end of that page, if the object has it.
    pub fn zero_rest_of_page(&mut self, id: ObjectId, offset: u64) {
        self.objects.each_part(id, offset, PAGE - offset % PAGE, |number, within, _| {
            self.arena.page_mut(number)[within..].fill(0);
        });
    }

    /// Returns the numbers of the pages of an object that may differ from what its source has, lowest first.
    #[must_use]
    pub fn dirty_pages(&self, id: ObjectId) -> Vec<u64> {
        let pages = self.objects.get(id).into_iter().flat_map(|object| &object.pages);
        pages.filter(|(_, page)| page.dirty).map(|(&index, _)| index).collect()
    }

    /// Records that the source of an object has the same contents as these pages.
    pub fn clean_pages(&mut self, id: ObjectId, pages: &[u64]) {
        for index in pages {
            if let Some(page) = self.objects.get_mut(id).and_then(|object| object.pages.get_mut(index)) {
                page.dirty = false;
            }
        }
        // The next store to each must be recorded.
        self.forget_translations();
    }

    /// Records that the source has dropped its copy of page number `index`. Returns `false` if the object does not have it.
    pub fn soil_page(&mut self, id: ObjectId, index: u64) -> bool {
        let page = self.objects.get_mut(id).and_then(|object| object.pages.get_mut(&index));
        page.map(|page| page.dirty = true).is_some()
    }

    /// Removes the pages of an object from number `first` up to and without `end`, from all mappings, too. Copies that private
    /// mappings have made go as well if `copies`. Later accesses load them again.
    pub fn drop_pages(&mut self, id: ObjectId, first: u64, end: u64, copies: bool) {
        let Some(object) = self.objects.get_mut(id) else { return };
        let mut gone = object.pages.split_off(&first);
        object.pages.append(&mut gone.split_off(&end));
        self.spaces.drop_object_pages(&mut self.arena, id, &(first..end), copies, |index, number| {
            gone.get(&index).is_some_and(|page| page.number == number)
        });
        for page in gone.into_values() {
            self.arena.release(page.number);
        }
        self.forget_translations();
    }

    /// Returns whether there are objects.
    #[must_use]
    pub fn has_objects(&self) -> bool {
        self.objects.list.iter().any(Option::is_some)
    }

    /// Returns whether an address space has a shared mapping for execution: other mappings may change its code.
    #[must_use]
    pub fn shares_code(&self, space: SpaceId) -> bool {
        self.spaces.regions_of(space).any(|region| region.prot.exec && region.shared)
    }

    /// Drops the cached translations of all address spaces.
    fn forget_translations(&mut self) {
        self.tlb.flush();
        self.spaces.forget_translations();
    }
}

impl Objects {
    /// Calls `f(arena page, offset in it, part)` for each part of `offset..offset + len` whose page the object has; `part` is
    /// relative to `offset`.
    fn each_part(&self, id: ObjectId, offset: u64, len: u64, mut f: impl FnMut(u32, usize, std::ops::Range<usize>)) {
        let Some(object) = self.get(id) else { return };
        let end = offset.saturating_add(len);
        if offset == end {
            return;
        }
        for (&index, page) in object.pages.range(offset >> PAGE_SHIFT..=(end - 1) >> PAGE_SHIFT) {
            let start = offset.max(index << PAGE_SHIFT);
            let part_end = end.min((index << PAGE_SHIFT).saturating_add(PAGE));
            f(page.number, (start % PAGE) as usize, (start - offset) as usize..(part_end - offset) as usize);
        }
    }
}
