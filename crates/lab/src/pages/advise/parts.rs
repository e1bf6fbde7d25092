//! The parts of a program's memory that can have pages of their own, and assignments of pages to them.

use fxscope_guestmem::Segment;
use fxscope_linux::pages::MappingPages;
use fxscope_tlbsweep::SEGMENTS;

/// Calls whose mappings have pages of their own: those that map most.
pub const CALLS: usize = 8;
/// Parts, by number: text, data, bss, heap, stacks, the mappings of each call, other mappings.
pub const PARTS: usize = FIRST_CALL + CALLS + 1;
const FIRST_CALL: usize = 5;
/// Memory shared with other processes, whose pages stay as they are, has a number of its own.
pub(super) const SHARED: usize = PARTS;
/// Transparent huge pages lie where they fit. What of `.bss`, of the heap and of the mappings of a call lies in such
/// pages has further numbers.
const HUGE: [usize; CALLS + 2] = [2, 3, 5, 6, 7, 8, 9, 10, 11, 12];
const FIRST_HUGE: usize = SHARED + 1;
/// All numbers.
pub(super) const NUMBERS: usize = FIRST_HUGE + HUGE.len();

const _: () = assert!(NUMBERS <= SEGMENTS);

/// Segments that get pages of one size together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Code, constants and mapped files.
    Text,
    /// Initialised variables.
    Data,
    /// Variables that start as zeros.
    Bss,
    /// Memory of `brk`.
    Heap,
    /// Stacks of all threads.
    Stacks,
    /// Private anonymous mappings: large blocks of `malloc`. Those of single calls are parts of their own.
    Mmap,
}

impl Group {
    /// All, in the order of their parts.
    pub const ALL: [Group; 6] = [Group::Text, Group::Data, Group::Bss, Group::Heap, Group::Stacks, Group::Mmap];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Group::Text => "text",
            Group::Data => "data",
            Group::Bss => "bss",
            Group::Heap => "heap",
            Group::Stacks => "stacks",
            Group::Mmap => "mmap",
        }
    }

    /// The segments that options name for it.
    #[must_use]
    pub fn segments(self) -> &'static [Segment] {
        match self {
            Group::Text => &[Segment::Text],
            Group::Data => &[Segment::Data],
            Group::Bss => &[Segment::Bss],
            Group::Heap => &[Segment::Heap],
            Group::Stacks => &[Segment::Stack, Segment::ThreadStack],
            Group::Mmap => &[Segment::Mmap],
        }
    }

    /// Its part; of mappings that of those which are in no other.
    #[must_use]
    pub fn part(self) -> usize {
        match self {
            Group::Mmap => PARTS - 1,
            other => other as usize,
        }
    }

    /// The group that a part belongs to.
    #[must_use]
    pub fn of(part: usize) -> Group {
        Group::ALL.get(part).copied().unwrap_or(Group::Mmap)
    }

    /// The group of a segment; none of memory shared with other processes.
    pub(super) fn with(segment: Segment) -> Option<Group> {
        // Files are mapped as code is.
        let segment = if segment == Segment::File { Segment::Text } else { segment };
        Group::ALL.into_iter().find(|group| group.segments().contains(&segment))
    }
}

/// The number of the call, among those with a part of their own, that a part is of.
#[must_use]
pub fn call(part: usize) -> Option<usize> {
    (FIRST_CALL..FIRST_CALL + CALLS).contains(&part).then(|| part - FIRST_CALL)
}

/// The part of a call's mappings.
#[must_use]
pub fn part_of_call(call: usize) -> usize {
    if call < CALLS { FIRST_CALL + call } else { PARTS - 1 }
}

/// The number of what of a part lies in transparent huge pages; `None` where that is not told apart.
pub(super) fn huge(part: usize) -> Option<usize> {
    HUGE.iter().position(|&other| other == part).map(|place| FIRST_HUGE + place)
}

/// The part that a number belongs to.
pub(super) fn part(number: usize) -> usize {
    number.checked_sub(FIRST_HUGE).map_or(number, |place| HUGE[place])
}

/// For each part the place of its pages among [`Kinds`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment(pub [usize; PARTS]);

/// Kinds of pages: sizes, ascending, and transparent huge pages at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Bytes of pages that parts may have, ascending.
    pub sizes: Vec<u64>,
    /// Bytes of the pages where no transparent huge page fits, and of one.
    pub transparent: [u64; 2],
}

impl Kinds {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sizes.len() + 1
    }

    /// Never.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The place of transparent huge pages.
    #[must_use]
    pub fn thp(&self) -> usize {
        self.sizes.len()
    }

    /// What is at a place.
    #[must_use]
    pub fn at(&self, place: usize) -> MappingPages {
        self.sizes.get(place).map_or(MappingPages::Transparent, |&bytes| MappingPages::Size(bytes))
    }

    /// The place of some pages, when they are asked about.
    #[must_use]
    pub fn place(&self, pages: MappingPages) -> Option<usize> {
        match pages {
            MappingPages::Size(bytes) => self.sizes.iter().position(|&size| size == bytes),
            MappingPages::Transparent => Some(self.thp()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_groups_and_calls_have_different_numbers() {
        let groups = Group::ALL.map(Group::part);
        let calls: Vec<usize> = (0..CALLS).map(part_of_call).collect();
        let mut all: Vec<usize> = groups.into_iter().chain(calls).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..PARTS));
        assert_eq!(part_of_call(CALLS), Group::Mmap.part());
        assert!((0..PARTS).all(|part| call(part).is_none_or(|call| part_of_call(call) == part)));
    }

    #[test]
    fn what_lies_in_huge_pages_belongs_to_its_part() {
        let of: Vec<usize> = (0..PARTS).filter_map(huge).collect();
        assert!(of.iter().copied().eq(FIRST_HUGE..NUMBERS));
        assert!((0..PARTS).all(|one| huge(one).is_none_or(|number| part(number) == one) && part(one) == one));
        assert!([Group::Bss, Group::Heap].iter().all(|group| huge(group.part()).is_some()));
    }
}
