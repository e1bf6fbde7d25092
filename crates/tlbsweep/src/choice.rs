//! Addresses with their segments, page sizes, and sets of assignments.

use crate::{SEGMENTS, SIZES};

/// Bits of an address; the number of its segment stands above them.
const ADDRESS_BITS: u32 = 56;

/// An address and its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// What no access matches: a segment that is not there.
    pub const NONE: Key = Key(u64::MAX);

    /// An address of a segment.
    #[inline(always)]
    #[must_use]
    pub fn new(segment: usize, addr: u64) -> Key {
        Key((segment as u64) << ADDRESS_BITS | addr & ((1 << ADDRESS_BITS) - 1))
    }

    /// The number of its segment.
    #[inline(always)]
    #[must_use]
    pub fn segment(self) -> usize {
        (self.0 >> ADDRESS_BITS) as usize % SEGMENTS
    }

    /// The number of its page of `1 << shift` bytes among all pages of that size; the segment's number stands above it.
    #[inline(always)]
    #[must_use]
    pub fn page(self, shift: u32) -> u64 {
        self.0 >> shift
    }

    /// The first address of a page that [`Key::page`] numbered.
    #[must_use]
    pub const fn from_page(page: u64, shift: u32) -> Key {
        Key(page << shift)
    }

    /// In how many low bits two addresses differ at most: in a page of as many bits both lie.
    #[inline(always)]
    #[must_use]
    pub fn apart(self, other: Key) -> u32 {
        u64::BITS - (self.0 ^ other.0).leading_zeros()
    }

    /// The bits in which two addresses differ, or their segments.
    #[inline(always)]
    #[must_use]
    pub fn differing(self, other: Key) -> u64 {
        self.0 ^ other.0
    }

    /// This one's bits where `mask` is set, and another's where it is not.
    #[inline(always)]
    #[must_use]
    pub fn where_set(self, mask: u64, other: Key) -> Key {
        Key(self.0 & mask | other.0 & !mask)
    }

    /// Of several addresses, how far the nearest is apart.
    #[inline(always)]
    #[must_use]
    pub fn nearest(self, others: &[Key]) -> u32 {
        // Four that do not wait for each other.
        let mut least = [u64::MAX; 4];
        let mut fours = others.chunks_exact(4);
        for four in &mut fours {
            least.iter_mut().zip(four).for_each(|(least, other)| *least = (*least).min(self.0 ^ other.0));
        }
        let rest = fours.remainder().iter().fold(u64::MAX, |least, other| least.min(self.0 ^ other.0));
        u64::BITS - least.into_iter().fold(rest, u64::min).leading_zeros()
    }

    /// The first address of the page of `1 << shift` bytes around it.
    #[inline(always)]
    #[must_use]
    pub fn first_of(self, shift: u32) -> Key {
        Key::from_page(self.page(shift), shift)
    }
}

/// Page sizes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    shifts: [u32; SIZES],
    n: usize,
    /// By how many low bits two addresses of a segment are apart, the sizes whose pages hold both, as a mask.
    holding: [u8; 65],
}

impl Sizes {
    /// Sizes in bytes; `None` unless they are ascending powers of two that leave room for a page's number.
    #[must_use]
    pub fn new(bytes: &[u64]) -> Option<Sizes> {
        let fits = |&size: &u64| size.is_power_of_two() && (2..1 << ADDRESS_BITS).contains(&size);
        if bytes.is_empty() || bytes.len() > SIZES || !bytes.iter().all(fits) || !bytes.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut shifts = [0; SIZES];
        shifts.iter_mut().zip(bytes).for_each(|(shift, size)| *shift = size.trailing_zeros());
        let mut holding = [0; 65];
        for (apart, mask) in holding.iter_mut().enumerate() {
            let holds = |&size: &usize| shifts[size] as usize >= apart;
            *mask = (0..bytes.len()).filter(holds).fold(0, |mask, size| mask | 1 << size);
        }
        Some(Sizes { shifts, n: bytes.len(), holding })
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Log2 bytes of a size.
    #[inline(always)]
    #[must_use]
    pub fn shift(&self, size: usize) -> u32 {
        self.shifts[size % SIZES]
    }

    /// Log2 bytes of the smallest size.
    #[must_use]
    pub fn smallest(&self) -> u32 {
        self.shifts[0]
    }

    /// Log2 bytes of the largest of a mask's sizes.
    #[inline(always)]
    #[must_use]
    pub fn largest_of(&self, mask: u8) -> u32 {
        self.shift((7 - mask.leading_zeros().min(7)) as usize)
    }

    /// Log2 bytes of the smallest of a mask's sizes.
    #[inline(always)]
    #[must_use]
    pub fn smallest_of(&self, mask: u8) -> u32 {
        self.shift(mask.trailing_zeros() as usize)
    }

    /// The sizes whose pages hold two addresses of a segment that are so many low bits apart, as a mask.
    #[inline(always)]
    #[must_use]
    pub fn holding(&self, apart: u32) -> u8 {
        self.holding[apart as usize]
    }
}

/// Assignments: each that has for each segment one of the sizes of that segment's mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice(pub [u8; SEGMENTS]);

impl Choice {
    /// All assignments of so many sizes to so many segments, of which each may have those of its mask in `allowed`, or all
    /// where that has none.
    #[must_use]
    pub fn all(segments: usize, sizes: usize, allowed: &[u8]) -> Choice {
        let every = u8::MAX >> (SIZES - sizes);
        let of = |segment: usize| every & allowed.get(segment).copied().unwrap_or(every);
        Choice(std::array::from_fn(|segment| if segment < segments { of(segment) } else { 1 }))
    }

    /// One assignment; segments beyond its end count as having the first size.
    #[must_use]
    pub fn one(assignment: &[usize]) -> Choice {
        Choice(std::array::from_fn(|segment| 1 << assignment.get(segment).copied().unwrap_or(0)))
    }

    /// Whether all of another's assignments are among these.
    #[must_use]
    pub fn contains(&self, other: &Choice) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| theirs & !mine == 0)
    }

    /// Whether some assignment is among both.
    #[must_use]
    pub fn meets(&self, other: &Choice) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| theirs & mine != 0)
    }

    /// The assignments that are among both.
    #[must_use]
    pub fn and(&self, other: &Choice) -> Choice {
        Choice(std::array::from_fn(|segment| self.0[segment] & other.0[segment]))
    }

    /// The same with the sizes of a mask for a segment.
    #[must_use]
    pub fn with(mut self, segment: usize, sizes: u8) -> Choice {
        self.0[segment] = sizes;
        self
    }

    /// Both of two that differ in one segment at most.
    #[must_use]
    pub fn or(&self, other: &Choice) -> Option<Choice> {
        let differing = self.0.iter().zip(&other.0).filter(|(mine, theirs)| mine != theirs).count();
        (differing < 2).then(|| Choice(std::array::from_fn(|segment| self.0[segment] | other.0[segment])))
    }

    /// The assignment with the smallest page of each segment.
    #[must_use]
    pub fn smallest(&self) -> Choice {
        Choice(self.0.map(|mask| mask & mask.wrapping_neg()))
    }
}
