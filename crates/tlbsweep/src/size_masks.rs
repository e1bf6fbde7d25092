//! Addresses tagged with their segments, page sizes, and sets of assignments.

use crate::{SEGMENTS, SIZES};

/// Bits of an address; the segment number is above them.
const ADDRESS_BITS: u32 = 56;

/// An address and its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(u64);

impl Key {
    /// Matches no access: a segment that does not exist.
    pub const NONE: Key = Key(u64::MAX);

    /// Creates an address of a segment.
    #[inline(always)]
    #[must_use]
    pub fn new(segment: usize, addr: u64) -> Key {
        Key((segment as u64) << ADDRESS_BITS | addr & ((1 << ADDRESS_BITS) - 1))
    }

    /// Returns the segment number.
    #[inline(always)]
    #[must_use]
    pub fn segment(self) -> usize {
        (self.0 >> ADDRESS_BITS) as usize % SEGMENTS
    }

    /// Returns the page number for pages of `1 << shift` bytes, with the segment number above it.
    #[inline(always)]
    #[must_use]
    pub fn page(self, shift: u32) -> u64 {
        self.0 >> shift
    }

    /// Returns the first address of a page numbered by [`Key::page`].
    #[must_use]
    pub const fn from_page(page: u64, shift: u32) -> Key {
        Key(page << shift)
    }

    /// Returns the number of low bits in which two addresses differ at most: a page of that many bits holds both.
    #[inline(always)]
    #[must_use]
    pub fn distance(self, other: Key) -> u32 {
        u64::BITS - (self.0 ^ other.0).leading_zeros()
    }

    /// Returns the bits in which two tagged addresses differ.
    #[inline(always)]
    #[must_use]
    pub fn differing(self, other: Key) -> u64 {
        self.0 ^ other.0
    }

    /// Takes the bits in `mask` from this address and the others from `other`.
    #[inline(always)]
    #[must_use]
    pub fn where_set(self, mask: u64, other: Key) -> Key {
        Key(self.0 & mask | other.0 & !mask)
    }

    /// Returns the distance to the nearest of several addresses.
    #[inline(always)]
    #[must_use]
    pub fn nearest(self, others: &[Key]) -> u32 {
        // Four independent chains.
        let mut least = [u64::MAX; 4];
        let mut fours = others.chunks_exact(4);
        for four in &mut fours {
            least.iter_mut().zip(four).for_each(|(least, other)| *least = (*least).min(self.0 ^ other.0));
        }
        let rest = fours.remainder().iter().fold(u64::MAX, |least, other| least.min(self.0 ^ other.0));
        u64::BITS - least.into_iter().fold(rest, u64::min).leading_zeros()
    }

    /// Returns the first address of the page of `1 << shift` bytes around this address.
    #[inline(always)]
    #[must_use]
    pub fn first_of(self, shift: u32) -> Key {
        Key::from_page(self.page(shift), shift)
    }
}

/// Page sizes.
#[derive(Clone, Copy, Debug)]
pub struct PageSizes {
    shifts: [u32; SIZES],
    n: usize,
    /// For each distance of two addresses of a segment, the mask of the sizes whose pages hold both.
    holding: [u8; 65],
}

impl PageSizes {
    /// Returns the page sizes in bytes; `None` unless they are ascending powers of two that leave room for a page
    /// number.
    #[must_use]
    pub fn new(bytes: &[u64]) -> Option<PageSizes> {
        let fits = |&size: &u64| size.is_power_of_two() && (2..1 << ADDRESS_BITS).contains(&size);
        if bytes.is_empty() || bytes.len() > SIZES || !bytes.iter().all(fits) || !bytes.is_sorted_by(|a, b| a < b) {
            return None;
        }
        let mut shifts = [0; SIZES];
        shifts.iter_mut().zip(bytes).for_each(|(shift, size)| *shift = size.trailing_zeros());
        let mut holding = [0; 65];
        for (distance, mask) in holding.iter_mut().enumerate() {
            let holds = |&size: &usize| shifts[size] as usize >= distance;
            *mask = (0..bytes.len()).filter(holds).fold(0, |mask, size| mask | 1 << size);
        }
        Some(PageSizes { shifts, n: bytes.len(), holding })
    }

    /// Returns the number of sizes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Returns log2 of the bytes of a size.
    #[inline(always)]
    #[must_use]
    pub fn shift(&self, size: usize) -> u32 {
        self.shifts[size % SIZES]
    }

    /// Returns log2 of the bytes of the smallest size.
    #[must_use]
    pub fn smallest(&self) -> u32 {
        self.shifts[0]
    }

    /// Returns log2 of the bytes of the largest size in a mask.
    #[inline(always)]
    #[must_use]
    pub fn largest_of(&self, mask: u8) -> u32 {
        self.shift((7 - mask.leading_zeros().min(7)) as usize)
    }

    /// Returns log2 of the bytes of the smallest size in a mask.
    #[inline(always)]
    #[must_use]
    pub fn smallest_of(&self, mask: u8) -> u32 {
        self.shift(mask.trailing_zeros() as usize)
    }

    /// Returns the mask of the sizes whose pages hold two addresses of a segment that are `distance` low bits apart.
    #[inline(always)]
    #[must_use]
    pub fn holding(&self, distance: u32) -> u8 {
        self.holding[distance as usize]
    }
}

/// A set of assignments: for each segment a mask of sizes. It contains every assignment that picks one size of each
/// mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeMasks(pub [u8; SEGMENTS]);

impl SizeMasks {
    /// Returns all assignments of `sizes` sizes to `segments` segments; a segment is restricted to its mask in
    /// `allowed`, if it has one.
    #[must_use]
    pub fn all(segments: usize, sizes: usize, allowed: &[u8]) -> SizeMasks {
        let every = u8::MAX >> (SIZES - sizes);
        let of = |segment: usize| every & allowed.get(segment).copied().unwrap_or(every);
        SizeMasks(std::array::from_fn(|segment| if segment < segments { of(segment) } else { 1 }))
    }

    /// Returns a single assignment; segments beyond its end get the first size.
    #[must_use]
    pub fn one(assignment: &[usize]) -> SizeMasks {
        SizeMasks(std::array::from_fn(|segment| 1 << assignment.get(segment).copied().unwrap_or(0)))
    }

    /// Returns whether this set contains all assignments of another.
    #[must_use]
    pub fn contains(&self, other: &SizeMasks) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| theirs & !mine == 0)
    }

    /// Returns whether two sets have an assignment in common.
    #[must_use]
    pub fn intersects(&self, other: &SizeMasks) -> bool {
        self.0.iter().zip(&other.0).all(|(mine, theirs)| theirs & mine != 0)
    }

    /// Returns the intersection of two sets.
    #[must_use]
    pub fn and(&self, other: &SizeMasks) -> SizeMasks {
        SizeMasks(std::array::from_fn(|segment| self.0[segment] & other.0[segment]))
    }

    /// This set with another mask for a segment.
    #[must_use]
    pub fn with(mut self, segment: usize, sizes: u8) -> SizeMasks {
        self.0[segment] = sizes;
        self
    }

    /// Returns the union of two sets that differ in at most one segment.
    #[must_use]
    pub fn or(&self, other: &SizeMasks) -> Option<SizeMasks> {
        let differing = self.0.iter().zip(&other.0).filter(|(mine, theirs)| mine != theirs).count();
        (differing < 2).then(|| SizeMasks(std::array::from_fn(|segment| self.0[segment] | other.0[segment])))
    }

    /// Returns the assignment with the smallest page for each segment.
    #[must_use]
    pub fn smallest(&self) -> SizeMasks {
        SizeMasks(self.0.map(|mask| mask & mask.wrapping_neg()))
    }
}
