//! Accesses that lanes see in a row, with what is the same for all lanes: which of them are to the same page of each size.

use crate::choice::{Key, Sizes};
use crate::{SEGMENTS, SIZES};

/// Most accesses of a row.
pub const BATCH: usize = 2047;
/// Numbers of pages of a size: one for each access, and one that no page has.
pub const PAGES: usize = BATCH + 1;
/// Places in which pages are looked for, of each size: so many that most are free.
const PLACES: usize = 2 * PAGES;

/// Accesses in their order. Each page that is among them has a number, of which there are [`PAGES`] for each size: from the
/// first of them on, that of the first access to it, from 1 on.
pub struct Row {
    keys: Box<[Key; PAGES]>,
    len: usize,
    /// The segments that are accessed, a bit each.
    segments: u32,
    /// Of each of them an access, and in how many low bits its addresses differ at most.
    spans: [(Key, u32); SEGMENTS],
    /// For each access the numbers of its pages, by size.
    numbers: Box<[[u16; SIZES]; PAGES]>,
    /// For each size the first accesses to pages, from 1 on; each stands where [`place`] says or behind that, before the next 0.
    places: Vec<[u16; PLACES]>,
}

/// Where a page is looked for first (Fibonacci hashing).
#[inline(always)]
fn place(page: u64) -> usize {
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % PLACES
}

impl Row {
    /// Without accesses.
    pub fn new(sizes: &Sizes) -> Row {
        let places = vec![[0; PLACES]; sizes.len()];
        Row {
            keys: Box::new([Key::NONE; PAGES]),
            len: 0,
            segments: 0,
            spans: [(Key::NONE, 0); SEGMENTS],
            numbers: Box::new([[0; SIZES]; PAGES]),
            places,
        }
    }

    /// The accesses in their order.
    pub fn keys(&self) -> &[Key] {
        &self.keys[..self.len]
    }

    /// Whether there is an access to a segment.
    pub fn accesses(&self, segment: usize) -> bool {
        self.segments >> segment & 1 != 0
    }

    /// The segments that are accessed.
    pub fn segments(&self) -> impl Iterator<Item = usize> {
        (0..SEGMENTS).filter(|&segment| self.accesses(segment))
    }

    /// An access to a segment that is accessed, and in how many low bits the segment's addresses differ at most.
    pub fn span(&self, segment: usize) -> (Key, u32) {
        self.spans[segment]
    }

    /// The accesses by their numbers.
    #[inline(always)]
    pub fn by_number(&self) -> impl Fn(u16) -> Key {
        let keys: &[Key; PAGES] = &self.keys;
        |number| keys[usize::from(number) % PAGES]
    }

    /// The first accesses to pages by the pages' numbers.
    #[inline(always)]
    pub fn by_page(&self) -> impl Fn(u16) -> Key {
        let at = self.by_number();
        move |page| at((page % PAGES as u16).wrapping_sub(1))
    }

    /// For each access the numbers of its pages, by size.
    pub fn numbers(&self) -> &[[u16; SIZES]] {
        &self.numbers[..self.len]
    }

    /// An access comes; whether there is no room for another one.
    #[inline(always)]
    pub fn push(&mut self, key: Key) -> bool {
        self.keys[self.len % PAGES] = key;
        self.len += 1;
        self.len == BATCH
    }

    /// Without accesses again.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Numbers the pages of the accesses.
    pub fn number(&mut self, sizes: &Sizes) {
        self.note_segments();
        self.places.iter_mut().for_each(|places| places.fill(0));
        let mut before = [0; SEGMENTS];
        for (at, &key) in self.keys[..self.len].iter().enumerate() {
            // Most accesses to some segments are to the same page as those before them.
            let last = std::mem::replace(&mut before[key.segment()], at);
            if at > 0 && self.keys[last % PAGES].apart(key) <= sizes.smallest() {
                self.numbers[at] = self.numbers[last % PAGES];
                continue;
            }
            let new: [u16; SIZES] = std::array::from_fn(|size| (size * PAGES + at + 1) as u16);
            self.numbers[at] = new;
            for (size, places) in self.places.iter_mut().enumerate() {
                let (place, first) = look_up(&self.keys, places, key, sizes.shift(size));
                if first != 0 {
                    // An access to this page is one to the larger ones around it, too.
                    self.numbers[at] = self.numbers[(usize::from(first) - 1) % PAGES];
                    self.numbers[at][..size].copy_from_slice(&new[..size]);
                    break;
                }
                places[place] = at as u16 + 1;
            }
        }
    }

    /// Notes which segments are accessed, and where.
    fn note_segments(&mut self) {
        self.segments = 0;
        for &key in &self.keys[..self.len] {
            let (first, apart) = &mut self.spans[key.segment()];
            if self.segments >> key.segment() & 1 == 0 {
                self.segments |= 1 << key.segment();
                (*first, *apart) = (key, 0);
            }
            *apart = key.apart(*first).max(*apart);
        }
    }

    /// The number of the page of a size around an address; 0 if no access is to it.
    #[inline(always)]
    pub fn find(&self, key: Key, size: usize, sizes: &Sizes) -> u16 {
        match look_up(&self.keys, &self.places[size], key, sizes.shift(size)).1 {
            0 => 0,
            first => (size * PAGES) as u16 + first,
        }
    }
}

/// The place of the page of `1 << shift` bytes around an address, and the first access to it, from 1 on, or 0.
#[inline(always)]
fn look_up(keys: &[Key; PAGES], places: &[u16; PLACES], key: Key, shift: u32) -> (usize, u16) {
    let page = key.page(shift);
    let mut at = place(page);
    loop {
        let number = places[at % PLACES];
        if number == 0 || keys[(usize::from(number) - 1) % PAGES].page(shift) == page {
            return (at % PLACES, number);
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
            let sizes = Sizes::new(&[1 << 12, 1 << 16, 1 << 21]).expect("sizes");
            let mut row = Row::new(&sizes);
            let keys: Vec<Key> = accesses.iter().map(|&(segment, addr)| Key::new(segment, addr)).collect();
            // A row that is cleared is as a new one.
            for keys in [&keys[keys.len() / 2..], &keys] {
                row.clear();
                keys.iter().for_each(|&key| _ = row.push(key));
                row.number(&sizes);
                let first = |key: Key, size: usize| {
                    let page = |other: Key| other.page(sizes.shift(size));
                    keys.iter().position(|&other| page(other) == page(key)).map_or(0, |at| (size * PAGES + at + 1) as u16)
                };
                for size in 0..sizes.len() {
                    for (&key, numbers) in keys.iter().zip(row.numbers()) {
                        prop_assert_eq!(numbers[size], first(key, size));
                    }
                    for key in others.iter().map(|&addr| Key::new(1, addr)) {
                        prop_assert_eq!(row.find(key, size, &sizes), first(key, size));
                    }
                }
            }
        }
    }
}
