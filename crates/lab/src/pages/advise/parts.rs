//! The parts of a program's memory whose page sizes can be set separately, and assignments of pages to them.

use fxscope_guestmem::Segment;
use fxscope_linux::pages::MappingPages;
use fxscope_tlbsweep::SEGMENTS;

/// Number of calls whose mappings are parts of their own: those that map most.
pub const CALLS: usize = 8;
/// Number of parts, in this order: text, data, bss, heap, stacks, the mappings of each call, other mappings.
pub const PARTS: usize = FIRST_CALL + CALLS + 1;
const FIRST_CALL: usize = 5;
/// Memory shared with other processes, whose pages are never changed, has a number of its own.
pub(super) const SHARED: usize = PARTS;
/// Ranges of `.bss`, the heap and the mappings of a call that hold transparent huge pages have separate numbers.
const HUGE: [usize; CALLS + 2] = [2, 3, 5, 6, 7, 8, 9, 10, 11, 12];
const FIRST_HUGE: usize = SHARED + 1;
/// Count of all numbers.
pub(super) const NUMBERS: usize = FIRST_HUGE + HUGE.len();

const _: () = assert!(NUMBERS <= SEGMENTS);

/// Segments that have one page size together.
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
    /// Private anonymous mappings: large blocks of `malloc`. Those of named calls are parts of their own.
    Mmap,
}

impl Group {
    /// All groups, in the order of their parts.
    pub const ALL: [Group; 6] = [Group::Text, Group::Data, Group::Bss, Group::Heap, Group::Stacks, Group::Mmap];

    /// Returns its name.
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

    /// Returns the segments that options name for it.
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

    /// Returns its part; for mappings, the part of those without one of their own.
    #[must_use]
    pub fn part(self) -> usize {
        match self {
            Group::Mmap => PARTS - 1,
            other => other as usize,
        }
    }

    /// Returns the group of a part.
    #[must_use]
    pub fn of(part: usize) -> Group {
        Group::ALL.get(part).copied().unwrap_or(Group::Mmap)
    }

    /// Returns the group of a segment; `None` for memory shared with other processes.
    pub(super) fn with(segment: Segment) -> Option<Group> {
        // Files have the same pages as code.
        let segment = if segment == Segment::File { Segment::Text } else { segment };
        Group::ALL.into_iter().find(|group| group.segments().contains(&segment))
    }
}

/// Returns the number of a part's call.
#[must_use]
pub fn call(part: usize) -> Option<usize> {
    (FIRST_CALL..FIRST_CALL + CALLS).contains(&part).then(|| part - FIRST_CALL)
}

/// Returns the part of a call's mappings.
#[must_use]
pub fn part_of_call(call: usize) -> usize {
    if call < CALLS { FIRST_CALL + call } else { PARTS - 1 }
}

/// Returns the number of a part's ranges in transparent huge pages; `None` if they are not distinguished.
pub(super) fn huge(part: usize) -> Option<usize> {
    HUGE.iter().position(|&other| other == part).map(|place| FIRST_HUGE + place)
}

/// Returns the part of a number.
pub(super) fn part(number: usize) -> usize {
    number.checked_sub(FIRST_HUGE).map_or(number, |place| HUGE[place])
}

/// For each part, the index of its pages in [`Kinds`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment(pub [usize; PARTS]);

/// Kinds of pages: sizes, ascending, then transparent huge pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kinds {
    /// Bytes of pages that parts may have, ascending.
    pub sizes: Vec<u64>,
    /// Bytes of the pages where no transparent huge page fits, and of a transparent huge page.
    pub transparent: [u64; 2],
}

impl Kinds {
    /// Returns their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sizes.len() + 1
    }

    /// Returns `false`: there is always one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the index of transparent huge pages.
    #[must_use]
    pub fn thp(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the kind at an index.
    #[must_use]
    pub fn at(&self, place: usize) -> MappingPages {
        self.sizes.get(place).map_or(MappingPages::Transparent, |&bytes| MappingPages::Size(bytes))
    }

    /// Returns the index of a kind, if it is one to try.
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
