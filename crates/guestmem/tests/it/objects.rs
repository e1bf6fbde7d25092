//! Random mappings, forks, moves and stores over objects, compared with a simple model in which every page is one byte.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use fxscope_guestmem::{Backing, Memory, ObjectId, PAGE, PageSource, Prot, Region, Segment, SpaceId};
use proptest::prelude::*;

/// Pages of each address space that are used.
const PAGES: u64 = 12;
/// Pages that the file has.
const FILE_PAGES: u64 = 10;
/// More pages than all steps can use.
const ROOM: u64 = 4096;

/// A file: the first byte of each page.
struct File([AtomicU8; FILE_PAGES as usize]);

impl File {
    fn byte(&self, index: u64) -> Option<u8> {
        Some(self.0.get(index as usize)?.load(Ordering::Relaxed))
    }
}

impl PageSource for File {
    fn load(&self, index: u64, page: &mut [u8]) -> bool {
        let byte = self.byte(index);
        page[0] = byte.unwrap_or(0);
        byte.is_some()
    }

    fn moved(&self, _: u64) -> Option<u64> {
        None
    }
}

/// What to do in the active address space. Numbers of pages are reduced to those that exist.
#[derive(Clone, Debug)]
enum Step {
    MapPrivate(u64, u64),
    MapShared(u64, u64),
    MapFile {
        at: u64,
        len: u64,
        first: u64,
        shared: bool,
    },
    /// A second mapping of what is mapped at a page, if it is shared.
    MapAgain(u64, u64),
    Unmap(u64, u64),
    Move(u64, u64, u64),
    Protect(u64, u64, bool),
    Discard(u64),
    Store(u64, u8),
    WriteFile(u64, u8),
    DropFile(u64),
    Fork,
    Activate(usize),
    Remove(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let page = || 0..PAGES;
    let len = || 1..5u64;
    prop_oneof![
        (page(), len()).prop_map(|(at, len)| Step::MapPrivate(at, len)),
        (page(), len()).prop_map(|(at, len)| Step::MapShared(at, len)),
        (page(), len(), 0..FILE_PAGES, any::<bool>()).prop_map(|(at, len, first, shared)| Step::MapFile {
            at,
            len,
            first,
            shared
        }),
        (page(), page()).prop_map(|(from, to)| Step::MapAgain(from, to)),
        (page(), len()).prop_map(|(at, len)| Step::Unmap(at, len)),
        (page(), len(), page()).prop_map(|(from, len, to)| Step::Move(from, len, to)),
        (page(), len(), any::<bool>()).prop_map(|(at, len, write)| Step::Protect(at, len, write)),
        page().prop_map(Step::Discard),
        (page(), any::<u8>()).prop_map(|(at, byte)| Step::Store(at, byte)),
        (page(), any::<u8>()).prop_map(|(at, byte)| Step::Store(at, byte)),
        (0..FILE_PAGES, any::<u8>()).prop_map(|(index, byte)| Step::WriteFile(index, byte)),
        (0..FILE_PAGES).prop_map(Step::DropFile),
        Just(Step::Fork),
        (0..4usize).prop_map(Step::Activate),
        (0..4usize).prop_map(Step::Remove),
    ]
}

/// Identifies a set of pages in the model.
type Set = usize;

/// What a page of an address space is in the model.
#[derive(Clone, Copy, Debug)]
struct Mapped {
    /// The set and the page in it, unless the page is private and without a file.
    of: Option<(Set, u64)>,
    shared: bool,
    /// The byte, once the page is a copy or has no set.
    own: Option<u8>,
    write: bool,
}

/// The pages of all address spaces and the bytes of all sets.
struct Model {
    spaces: Vec<Option<BTreeMap<u64, Mapped>>>,
    sets: BTreeMap<(Set, u64), u8>,
    /// What pages of the file have that are not in `sets`.
    file: Arc<File>,
    next_set: Set,
}

/// The set of the file.
const FILE: Set = 0;

impl Model {
    /// Returns the byte of a page; `None`: it does not exist.
    fn byte(&self, mapped: &Mapped) -> Option<u8> {
        match (mapped.own, mapped.of) {
            (Some(byte), _) => Some(byte),
            (None, Some(of @ (FILE, index))) => self.sets.get(&of).copied().or(self.file.byte(index)),
            (None, of) => Some(of.and_then(|of| self.sets.get(&of).copied()).unwrap_or(0)),
        }
    }
}

/// The memory and its model.
struct Both {
    mem: Memory,
    model: Model,
    ids: Vec<Option<SpaceId>>,
    active: usize,
    file: ObjectId,
}

fn address(page: u64) -> u64 {
    (page + 1) * PAGE
}

/// Returns how much of a range lies within the pages used.
fn clipped(at: u64, len: u64) -> u64 {
    len.min(PAGES - at)
}

impl Both {
    fn new() -> Both {
        let mut mem = Memory::new(ROOM * PAGE).expect("reserve");
        let file = mem.add_object();
        let source = Arc::new(File(std::array::from_fn(|index| AtomicU8::new(100 + index as u8))));
        mem.set_source(file, source.clone());
        let ids = vec![Some(mem.active())];
        let (spaces, sets) = (vec![Some(BTreeMap::new())], BTreeMap::new());
        let model = Model { spaces, sets, file: source, next_set: FILE + 1 };
        Both { mem, model, ids, active: 0, file }
    }

    fn pages(&mut self) -> &mut BTreeMap<u64, Mapped> {
        self.model.spaces[self.active].as_mut().expect("the active one exists")
    }

    fn map(&mut self, at: u64, len: u64, of: Option<(Set, u64)>, shared: bool) {
        for page in 0..len {
            let of = of.map(|(set, first)| (set, first + page));
            self.pages().insert(at + page, Mapped { of, shared, own: None, write: true });
        }
    }

    fn region(at: u64, len: u64, shared: bool, backing: Option<Backing>) -> Region {
        let (start, end) = (address(at), address(at + len));
        Region { start, end, prot: Prot::RW, segment: Segment::Mmap, shared, backing }
    }

    fn perform(&mut self, step: &Step) {
        match *step {
            Step::MapPrivate(at, len) => {
                let len = clipped(at, len);
                self.mem.map(address(at), len * PAGE, Prot::RW, Segment::Mmap).expect("a valid range");
                self.map(at, len, None, false);
            }
            Step::MapShared(at, len) => {
                let len = clipped(at, len);
                self.mem.map_shared(address(at), len * PAGE, Prot::RW, Segment::Shared).expect("a valid range");
                let set = self.model.next_set;
                self.model.next_set += 1;
                self.map(at, len, Some((set, 0)), true);
            }
            Step::MapFile { at, len, first, shared } => {
                let len = clipped(at, len);
                let backing = Some(Backing { object: self.file, page: first });
                self.mem.map_region(Both::region(at, len, shared, backing)).expect("a valid range");
                self.map(at, len, Some((FILE, first)), shared);
            }
            Step::MapAgain(from, to) => {
                let Some(region) = self.mem.region_at(address(from)).filter(|region| region.shared).copied() else {
                    return;
                };
                let Some(&Mapped { of, .. }) = self.pages().get(&from) else { return };
                let distance = address(from) - region.start;
                let again = Region { prot: Prot::RW, ..region.continued(distance, address(to), address(to + 1)) };
                self.mem.map_region(again).expect("a valid range");
                self.map(to, 1, of, true);
            }
            Step::Unmap(at, len) => {
                let len = clipped(at, len);
                self.mem.unmap(address(at), len * PAGE).expect("a valid range");
                self.pages().retain(|page, _| !(at..at + len).contains(page));
            }
            Step::Move(from, len, to) => self.move_range(from, clipped(from, len).min(clipped(to, len)), to),
            Step::Protect(at, len, write) => {
                let len = clipped(at, len);
                let mapped = (at..at + len).take_while(|page| self.pages().contains_key(page)).count() as u64;
                let prot = if write { Prot::RW } else { Prot::R };
                assert_eq!(self.mem.protect(address(at), len * PAGE, prot).is_ok(), mapped == len);
                self.pages().range_mut(at..at + mapped).for_each(|(_, page)| page.write = write);
            }
            Step::Discard(at) => {
                self.mem.discard(address(at), address(at + 1));
                if let Some(mapped) = self.pages().get_mut(&at) {
                    mapped.own = None;
                }
            }
            Step::Store(at, byte) => self.store(at, byte),
            Step::WriteFile(index, byte) => {
                let known = self.mem.pages_of(self.file);
                self.mem.write_object(self.file, index * PAGE, &[byte]);
                assert_eq!(self.mem.pages_of(self.file), known);
                self.model.file.0[index as usize].store(byte, Ordering::Relaxed);
                self.model.sets.remove(&(FILE, index));
            }
            Step::DropFile(index) => {
                self.mem.drop_pages(self.file, index, index + 1, false);
                self.model.sets.remove(&(FILE, index));
            }
            Step::Fork => {
                if self.ids.len() < 4 {
                    let child = self.mem.fork().expect("room");
                    let copy = self.pages().clone();
                    self.ids.push(Some(child));
                    self.model.spaces.push(Some(copy));
                }
            }
            Step::Activate(number) => {
                if let Some(&Some(id)) = self.ids.get(number) {
                    self.mem.activate(id);
                    self.active = number;
                }
            }
            Step::Remove(number) => {
                if number != self.active
                    && let Some(id) = self.ids.get_mut(number).and_then(Option::take)
                {
                    self.mem.remove_space(id);
                    self.model.spaces[number] = None;
                }
            }
        }
    }

    fn move_range(&mut self, from: u64, len: u64, to: u64) {
        let overlap = from < to + len && to < from + len;
        assert_eq!(self.mem.move_range(address(from), len * PAGE, address(to)).is_err(), overlap);
        if !overlap {
            for page in 0..len {
                let moved = self.pages().remove(&(from + page));
                self.pages().remove(&(to + page));
                self.pages().extend(moved.map(|moved| (to + page, moved)));
            }
        }
    }

    fn store(&mut self, at: u64, byte: u8) {
        let mapped = self.pages().get(&at).copied();
        let exists = mapped.is_some_and(|mapped| mapped.write && self.model.byte(&mapped).is_some());
        assert_eq!(self.mem.store(address(at), byte).is_ok(), exists);
        if let Some(mapped) = mapped.filter(|_| exists) {
            match mapped.of {
                Some(of) if mapped.shared => {
                    self.model.sets.insert(of, byte);
                }
                _ => {
                    let own = Some(byte);
                    self.pages().insert(at, Mapped { own, ..mapped });
                }
            }
        }
    }

    /// Compares all pages of the active address space.
    fn compare(&mut self) {
        for page in 0..PAGES {
            let expected = self.pages().get(&page).copied().and_then(|mapped| self.model.byte(&mapped));
            assert_eq!(self.mem.load::<u8>(address(page)).ok(), expected, "page {page} of space {}", self.active);
        }
        assert!(self.mem.is_consistent());
    }

    /// Removes everything: no page may remain.
    fn end(mut self) {
        self.mem.release_object(self.file);
        for number in 0..self.ids.len() {
            self.perform(&Step::Remove(number));
        }
        self.mem.clear();
        assert_eq!((self.mem.backed_bytes(), self.mem.has_objects()), (0, false));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn mappings_behave_as_the_model_and_every_page_is_released(steps in prop::collection::vec(step(), 1..60)) {
        let mut both = Both::new();
        for step in &steps {
            both.perform(step);
            both.compare();
        }
        both.end();
    }
}
