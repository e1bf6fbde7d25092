//! A batch of accesses, with the work that is the same for all classes: which accesses are to the same page, for each
//! size.

use crate::size_masks::{Key, PageSizes};
use crate::{SEGMENTS, SIZES};

/// Maximum number of accesses in a batch.
pub const MOST_ACCESSES: usize = 2047;
/// Page numbers for each size: one for each access, and 0 for no page.
pub const PAGES: usize = MOST_ACCESSES + 1;
/// Buckets of the hash table for each size, mostly empty.
const BUCKETS: usize = 2 * PAGES;

/// Accesses in program order. Each page accessed has a number; each size has a range of [`PAGES`] numbers, in which a
/// page's number is the position of the first access to it, counted from 1.
pub struct Batch {
    keys: Box<[Key; PAGES]>,
    len: usize,
    /// Bit mask of the segments accessed.
    segments: u32,
    /// For each segment accessed, one of its accesses and the largest distance of others from it.
    spans: [(Key, u32); SEGMENTS],
    /// For each access, the numbers of its pages by size.
    numbers: Box<[[u16; SIZES]; PAGES]>,
    /// For each size, a hash table (see [`bucket`], with linear probing) of the first accesses to pages, counted from
    /// 1; 0 is empty.
    buckets: Vec<[u16; BUCKETS]>,
}

/// The first bucket to probe for a page (Fibonacci hashing).
#[inline(always)]
fn bucket(page: u64) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % BUCKETS
}

impl Batch {
    /// Creates an empty batch.
    pub fn new(sizes: &PageSizes) -> Batch {
        let buckets = vec![[0; BUCKETS]; sizes.len()];
        Batch {
            keys: Box::new([Key::NONE; PAGES]),
            len: 0,
            segments: 0,
            spans: [(Key::NONE, 0); SEGMENTS],
            numbers: Box::new([[0; SIZES]; PAGES]),
            buckets,
        }
    }

    /// Returns the accesses in order.
    pub fn keys(&self) -> &[Key] {
        &self.keys[..self.len]
    }

    /// Returns whether a segment is accessed.
    pub fn accesses(&self, segment: usize) -> bool {
        self.segments >> segment & 1 != 0
    }

    /// Returns the segments accessed.
    pub fn segments(&self) -> impl Iterator<Item = usize> {
        (0..SEGMENTS).filter(|&segment| self.accesses(segment))
    }

    /// Returns one access to an accessed segment, and the largest distance of others from it.
    pub fn span(&self, segment: usize) -> (Key, u32) {
        self.spans[segment]
    }

    /// Maps an access's position to its key.
    #[inline(always)]
    pub fn key_of_access(&self) -> impl Fn(u16) -> Key {
        let keys: &[Key; PAGES] = &self.keys;
        |number| keys[usize::from(number) % PAGES]
    }

    /// Maps a page number to the first access to the page.
    #[inline(always)]
    pub fn key_of_page(&self) -> impl Fn(u16) -> Key {
        let at = self.key_of_access();
        move |page| at((page % PAGES as u16).wrapping_sub(1))
    }

    /// Returns, for each access, the numbers of its pages by size.
    pub fn numbers(&self) -> &[[u16; SIZES]] {
        &self.numbers[..self.len]
    }

    /// Appends an access; returns whether the batch is full.
    #[inline(always)]
    pub fn push(&mut self, key: Key) -> bool {
        self.keys[self.len % PAGES] = key;
        self.len += 1;
        self.len == MOST_ACCESSES
    }

    /// Removes all accesses.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Numbers the pages accessed.
    pub fn number(&mut self, sizes: &PageSizes) {
        self.note_segments();
        self.buckets.iter_mut().for_each(|buckets| buckets.fill(0));
        let mut before = [0; SEGMENTS];
        for (at, &key) in self.keys[..self.len].iter().enumerate() {
            // Most accesses to some segments are to the same page as the segment's previous access.
            let last = std::mem::replace(&mut before[key.segment()], at);
            if at > 0 && self.keys[last % PAGES].distance(key) <= sizes.smallest() {
                self.numbers[at] = self.numbers[last % PAGES];
                continue;
            }
            let new: [u16; SIZES] = std::array::from_fn(|size| (size * PAGES + at + 1) as u16);
            self.numbers[at] = new;
            for (size, buckets) in self.buckets.iter_mut().enumerate() {
                let (place, first) = look_up(&self.keys, buckets, key, sizes.shift(size));
                if first != 0 {
                    // Two accesses to one page are also to the same larger pages.
                    self.numbers[at] = self.numbers[(usize::from(first) - 1) % PAGES];
                    self.numbers[at][..size].copy_from_slice(&new[..size]);
                    break;
                }
                buckets[place] = at as u16 + 1;
            }
        }
    }

    /// Records which segments are accessed, and where.
    fn note_segments(&mut self) {
        self.segments = 0;
        for &key in &self.keys[..self.len] {
            let (first, distance) = &mut self.spans[key.segment()];
            if self.segments >> key.segment() & 1 == 0 {
                self.segments |= 1 << key.segment();
                (*first, *distance) = (key, 0);
            }
            *distance = key.distance(*first).max(*distance);
        }
    }

    /// Returns the number of the page of a size around an address; 0 if no access is to it.
    #[inline(always)]
    pub fn find(&self, key: Key, size: usize, sizes: &PageSizes) -> u16 {
        match look_up(&self.keys, &self.buckets[size], key, sizes.shift(size)).1 {
            0 => 0,
            first => (size * PAGES) as u16 + first,
        }
    }
}

/// The bucket of the page of `1 << shift` bytes around an address, and the first access to the page, counted from 1 (0
/// if there is none).
#[inline(always)]
fn look_up(keys: &[Key; PAGES], buckets: &[u16; BUCKETS], key: Key, shift: u32) -> (usize, u16) {
    let page = key.page(shift);
    let mut at = bucket(page);
    loop {
        let number = buckets[at % BUCKETS];
        if number == 0 || keys[(usize::from(number) - 1) % PAGES].page(shift) == page {
            return (at % BUCKETS, number);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_page_has_the_number_of_the_first_access_to_it(
            accesses in prop::collection::vec((0usize..3, 0u64..1 << 22), 0..200), others in prop::collection::vec(0u64..1 << 22, 20)
        ) {
            let sizes = PageSizes::new(&[1 << 12, 1 << 16, 1 << 21]).expect("sizes");
            let mut batch = Batch::new(&sizes);
            let keys: Vec<Key> = accesses.iter().map(|&(segment, addr)| Key::new(segment, addr)).collect();
            // A batch can be cleared and used again.
            for keys in [&keys[keys.len() / 2..], &keys] {
                batch.clear();
                keys.iter().for_each(|&key| _ = batch.push(key));
                batch.number(&sizes);
                let first = |key: Key, size: usize| {
                    let page = |other: Key| other.page(sizes.shift(size));
                    keys.iter().position(|&other| page(other) == page(key)).map_or(0, |at| (size * PAGES + at + 1) as u16)
                };
                for size in 0..sizes.len() {
                    for (&key, numbers) in keys.iter().zip(batch.numbers()) {
                        prop_assert_eq!(numbers[size], first(key, size));
                    }
                    for key in others.iter().map(|&addr| Key::new(1, addr)) {
                        prop_assert_eq!(batch.find(key, size, &sizes), first(key, size));
                    }
                }
            }
        }
    }
}
