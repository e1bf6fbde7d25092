//! The fully associative TLB under many assignments at once.

use crate::bit_matrix::BitMatrix;
use crate::counters::SegmentCounters;
use crate::hit_filter::HitFilter;
use crate::set_associative::SetAssociative;
use crate::size_masks::{Key, PageSizes, SizeMasks};
use crate::{Replacement, SEGMENTS, SIZES};

/// An equivalence class: assignments that have had the same outcome at every access so far.
#[derive(Clone)]
pub struct Class {
    pub masks: SizeMasks,
    /// An address in each page held. FIFO: in order of arrival, starting at `next`. LRU: most recently used first.
    entries: Box<[Key]>,
    /// FIFO: the entry to replace next.
    next: u32,
    pub misses: [u64; SEGMENTS],
    /// Time up to which touches of pages are reflected in the order of the entries.
    touched: u64,
    /// The second-level TLB, accessed on a miss.
    pub l2: Option<SetAssociative>,
}

impl Class {
    /// Creates a class with empty TLBs.
    pub fn new(masks: SizeMasks, entries: usize, l2: Option<SetAssociative>) -> Class {
        Class { masks, entries: vec![Key::NONE; entries].into(), next: 0, misses: [0; SEGMENTS], touched: 0, l2 }
    }

    /// The cost so far of the class's assignment with the smallest pages.
    pub fn cost(&self, [miss, walk]: [u64; 2]) -> u64 {
        let first: u64 = self.misses.iter().sum();
        let second: u64 = self.l2.iter().flat_map(|sets| sets.misses(&self.masks.smallest())).sum();
        first.saturating_mul(miss).saturating_add(second.saturating_mul(walk))
    }

    /// Restricts the class to the sizes in `kept` for a segment. Returns a copy of the class with its other sizes.
    #[cold]
    pub fn split_off(&mut self, segment: usize, kept: u8) -> Class {
        let mut other = self.masks;
        other.0[segment] &= !kept;
        self.masks.0[segment] &= kept;
        let l2 = self.l2.as_ref().map(|sets| sets.restricted(&other));
        let like_it = Class { masks: other, l2, entries: self.entries.clone(), ..*self };
        self.l2 = self.l2.as_ref().map(|sets| sets.restricted(&self.masks));
        like_it
    }

    /// Records that a page was touched at a time: it becomes the most recently used, unless the other TLB holds pages
    /// of its size.
    fn touch(&mut self, time: u64, key: Key, sizes: &PageSizes, l2_only: u8) {
        self.touched = time;
        let distance = key.nearest(&self.entries);
        if self.masks.0[key.segment()] & sizes.holding(distance) & !l2_only == 0 {
            return;
        }
        self.promote(key, distance);
    }

    /// Makes the page at `distance` from `key` the most recently used.
    fn promote(&mut self, key: Key, distance: u32) {
        let place = self.entries.iter().position(|entry| entry.distance(key) == distance).unwrap_or(0);
        self.entries[..=place].rotate_right(1);
    }

    /// Returns the mask of the class's sizes with which an access misses.
    #[inline(always)]
    pub fn missing(&self, key: Key, sizes: &PageSizes, l2_only: u8) -> u8 {
        self.masks.0[key.segment()] & !(sizes.holding(key.nearest(&self.entries)) | l2_only)
    }

    /// Returns all entries, oldest first.
    pub fn by_age(&self, replacement: Replacement) -> impl Iterator<Item = Key> {
        let (len, next) = (self.entries.len(), self.next as usize);
        (0..len).map(move |i| match replacement {
            Replacement::Fifo => self.entries[(next + i) % len],
            Replacement::Lru => self.entries[len - 1 - i],
        })
    }

    /// Replaces the entries by `pages`, oldest first.
    pub fn hold(&mut self, pages: impl DoubleEndedIterator<Item = Key>, replacement: Replacement) {
        self.next = 0;
        let places = self.entries.iter_mut();
        match replacement {
            Replacement::Fifo => places.zip(pages).for_each(|(place, page)| *place = page),
            Replacement::Lru => places.zip(pages.rev()).for_each(|(place, page)| *place = page),
        }
    }

    /// Processes accesses that are known to miss. The largest page of each segment has `1 << shifts[segment]` bytes.
    pub fn record_misses(&mut self, accesses: impl Iterator<Item = Key>, shifts: &[u32; SEGMENTS]) {
        let counters = match &mut self.l2 {
            Some(l2) => l2.touch_sequence(accesses, shifts, &self.masks),
            None => SegmentCounters::of(accesses.map(Key::segment)),
        };
        counters.add_accesses(&mut self.misses);
    }

    /// Fills a page; returns the address in the page that it evicts.
    #[inline(always)]
    pub fn replace(&mut self, key: Key, replacement: Replacement) -> Key {
        match replacement {
            Replacement::Fifo => {
                let gone = std::mem::replace(&mut self.entries[self.next as usize], key);
                self.next = if self.next as usize + 1 == self.entries.len() { 0 } else { self.next + 1 };
                gone
            }
            Replacement::Lru => {
                self.entries.rotate_right(1);
                std::mem::replace(&mut self.entries[0], key)
            }
        }
    }
}

/// All classes. They are disjoint.
pub struct Classes {
    classes: Vec<Class>,
    replacement: Replacement,
    /// Mask of the sizes whose pages only the other TLB holds.
    l2_only: u8,
    /// Row [`row`] marks the classes whose pages for a segment have at least a size.
    at_least: BitMatrix,
}

/// The row in [`Classes::at_least`] of a segment and a size.
fn row(segment: usize, size: usize) -> usize {
    segment * SIZES + size
}

impl Classes {
    pub fn new(first: Class, replacement: Replacement, l2_only: u8) -> Classes {
        let mut classes =
            Classes { classes: Vec::new(), replacement, l2_only, at_least: BitMatrix::new(row(SEGMENTS, 0)) };
        classes.put(vec![first]);
        classes
    }

    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns all of them.
    pub fn all(&self) -> &[Class] {
        &self.classes
    }

    /// Returns the mask of the sizes whose pages only the other TLB holds.
    pub fn l2_only(&self) -> u8 {
        self.l2_only
    }

    pub fn replacement(&self) -> Replacement {
        self.replacement
    }

    pub fn take(&mut self) -> Vec<Class> {
        std::mem::take(&mut self.classes)
    }

    pub fn put(&mut self, classes: Vec<Class>) {
        self.classes = classes;
        self.at_least.reserve(self.classes.len());
        (0..self.classes.len()).for_each(|class| (0..SEGMENTS).for_each(|segment| self.note_sizes(class, segment)));
    }

    /// Puts back the same classes in the same order with unchanged sizes.
    pub fn put_back(&mut self, classes: Vec<Class>) {
        self.classes = classes;
    }

    /// Records how large a class's pages of a segment are.
    fn note_sizes(&mut self, class: usize, segment: usize) {
        let smallest = self.classes[class].masks.0[segment].trailing_zeros() as usize;
        (0..SIZES).for_each(|size| self.at_least.put(row(segment, size), class, smallest >= size));
    }

    /// Gives the page of an access a slot in the filter; returns the slot.
    pub fn open(&self, key: Key, sizes: &PageSizes, filter: &mut HitFilter) -> usize {
        filter.insert(key, sizes, &self.at_least, row(key.segment(), 0))
    }

    /// Processes an access in the classes that may not hold its page, and reports evictions to the filter. Returns how
    /// many classes missed.
    pub fn look_up(&mut self, slot: usize, key: Key, sizes: &PageSizes, filter: &mut HitFilter) -> u64 {
        let (before, mut missed) = (self.classes.len(), 0);
        for word in 0..before.div_ceil(64) {
            let mut rest = !filter.classes(slot)[word];
            while rest != 0 {
                let class = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if class < before {
                    missed += u64::from(self.visit(class, key, sizes, filter));
                }
            }
        }
        missed
    }

    /// Processes an access in one class; returns whether it misses.
    #[inline(always)]
    fn visit(&mut self, i: usize, key: Key, sizes: &PageSizes, filter: &mut HitFilter) -> bool {
        let class = &mut self.classes[i];
        let mine = class.masks.0[key.segment()];
        let missing = class.missing(key, sizes, self.l2_only);
        if missing == 0 {
            return false;
        }
        if self.replacement == Replacement::Lru {
            self.catch_up(i, sizes, filter);
        }
        if missing != mine {
            self.split(i, key.segment(), missing, filter);
        }
        self.miss(i, key, missing, sizes, filter);
        true
    }

    /// Brings the LRU order of a class up to date.
    fn catch_up(&mut self, i: usize, sizes: &PageSizes, filter: &mut HitFilter) {
        let class = &mut self.classes[i];
        for (time, key) in filter.touched_after(class.touched) {
            class.touch(time, key, sizes, self.l2_only);
        }
    }

    /// Brings the LRU order of all classes up to date.
    pub fn catch_up_all(&mut self, sizes: &PageSizes, filter: &mut HitFilter) {
        (0..self.classes.len()).for_each(|class| self.catch_up(class, sizes, filter));
    }

    /// Processes the last touch of a page that is about to leave the filter; it is the oldest touch still known. The
    /// nearest page touched since then is at `distance`: for classes for which both are the same page, this touch
    /// changes nothing.
    pub fn touch_all(&mut self, time: u64, key: Key, distance: u32, sizes: &PageSizes) {
        let size = sizes.holding(distance).trailing_zeros() as usize;
        for word in 0..self.classes.len().div_ceil(64) {
            let same = if size < SIZES { self.at_least.row(row(key.segment(), size))[word] } else { 0 };
            let mut rest = !same;
            while rest != 0 {
                let class = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let Some(class) = self.classes.get_mut(class) else { break };
                if class.touched < time {
                    class.touch(time, key, sizes, self.l2_only);
                }
            }
        }
    }

    /// Restricts a class to the sizes in `kept` for a segment; its other sizes become a new class at the end.
    #[cold]
    pub fn split(&mut self, class: usize, segment: usize, kept: u8, filter: &mut HitFilter) {
        let new = self.classes.len();
        let like_it = self.classes[class].split_off(segment, kept);
        self.classes.push(like_it);
        filter.copy_class(class, new);
        self.at_least.reserve(new + 1);
        self.at_least.copy_column(class, new);
        self.note_sizes(class, segment);
        self.note_sizes(new, segment);
    }

    /// Fills a page into a class, for all sizes that the class has for the segment.
    #[inline(always)]
    fn miss(&mut self, i: usize, key: Key, missing: u8, sizes: &PageSizes, filter: &mut HitFilter) {
        let class = &mut self.classes[i];
        let gone = class.replace(key, self.replacement);
        class.misses[key.segment()] += 1;
        if gone != Key::NONE {
            filter.evicted(Some(i), gone, sizes.largest_of(class.masks.0[gone.segment()]));
        }
        if let Some(l2) = &mut class.l2 {
            l2.touch(key, missing, |_, _| ());
        }
    }
}
