//! Records which classes are known to hold which pages, so that accesses that change nothing are skipped.
//!
//! An access to a page that a class holds is a hit. Under FIFO a hit changes nothing. Under LRU a series of hits leaves
//! the TLB as one hit of each page would, in the order of the pages' last touches. So the filter keeps the time of each
//! page's last touch, and applies it to a TLB before the TLB replaces a page or the filter loses the page.

use crate::bit_matrix::BitMatrix;
use crate::size_masks::{Key, PageSizes};

/// Pages that the filter remembers.
const SLOTS: usize = 64;
/// Buckets of the hash table of pages that all classes hold.
const BUCKETS: usize = 256;
/// Marks an empty slot.
const NONE: u64 = u64::MAX;

/// Pages of the smallest size, and the classes that are known to hold them.
pub struct HitFilter {
    shift: u32,
    /// Hash table of pages that all classes hold, by [`HitFilter::bucket`]: page number and slot.
    held_by_all: [(u64, u32); BUCKETS],
    /// Page number of each slot.
    pages: [u64; SLOTS],
    /// For each slot, the classes that hold its page.
    held: BitMatrix,
    /// For each slot, whether the split set-associative TLB is known to hold its page.
    in_l2: [bool; SLOTS],
    /// Time of the last touch of each slot's page, or 0.
    touched: [u64; SLOTS],
    now: u64,
    /// Slots in the order of their last touches, as of time `ordered`.
    order: [u8; SLOTS],
    ordered: u64,
    /// Whether slots have changed pages since then.
    replaced: bool,
    /// A page that lost its slot, and the time of its last touch.
    displaced: Option<(u64, Key)>,
    /// The page evicted last: its number, its shift, and the slots whose pages lie in it.
    last_evicted: (u64, u32, u64),
}

impl HitFilter {
    /// Creates an empty filter. Pages have `1 << shift` bytes.
    #[must_use]
    pub fn new(shift: u32) -> HitFilter {
        HitFilter {
            shift,
            held_by_all: [(NONE, 0); BUCKETS],
            pages: [NONE; SLOTS],
            held: BitMatrix::new(SLOTS),
            in_l2: [false; SLOTS],
            touched: [0; SLOTS],
            now: 0,
            order: std::array::from_fn(|slot| slot as u8),
            ordered: 0,
            replaced: true,
            displaced: None,
            last_evicted: (NONE, 0, 0),
        }
    }

    /// Empties the filter, since classes have been renumbered.
    pub fn clear(&mut self) {
        self.held_by_all = [(NONE, 0); BUCKETS];
        self.pages = [NONE; SLOTS];
        self.held.clear();
        self.touched = [0; SLOTS];
        self.replaced = true;
    }

    /// Returns the number of accesses so far.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Advances the time by accesses that all TLBs processed while the filter was empty.
    pub fn advance(&mut self, accesses: u64) {
        self.now += accesses;
    }

    /// Bucket of a page (Fibonacci hashing).
    #[inline(always)]
    fn bucket(page: u64) -> usize {
        (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % BUCKETS
    }

    /// Returns whether all classes hold the page of an access.
    #[inline(always)]
    pub fn hits_all(&mut self, key: Key) -> bool {
        let page = key.page(self.shift);
        let (known, slot) = self.held_by_all[HitFilter::bucket(page)];
        if known == page {
            self.now += 1;
            self.touched[slot as usize % SLOTS] = self.now;
        }
        known == page
    }

    /// Gives the page of an access a slot. [`HitFilter::classes`] then returns the classes that hold it: those that
    /// were known to, and those that hold a nearby page which is the same page in their size. From row `first_row` on,
    /// `at_least` has for each size the classes whose pages of the segment are at least that large.
    pub fn insert(&mut self, key: Key, sizes: &PageSizes, at_least: &BitMatrix, first_row: usize) -> usize {
        let page = key.page(self.shift);
        let (near, distance) = self.nearest(page);
        if distance <= self.shift {
            return near;
        }
        let slot = self.take_slot();
        let row = sizes.holding(distance).trailing_zeros() as usize;
        if row < sizes.len() {
            for (word, &large) in at_least.row(first_row + row).iter().enumerate() {
                self.held.row_mut(slot)[word] = self.held.row(near)[word] & large;
            }
        } else {
            self.held.row_mut(slot).fill(0);
        }
        self.pages[slot] = page;
        slot
    }

    /// Frees the slot whose page was touched longest ago.
    fn take_slot(&mut self) -> usize {
        let mut slot = 0;
        for other in 1..SLOTS {
            if self.touched[other] < self.touched[slot] {
                slot = other;
            }
        }
        self.unmark_all(slot);
        let known = (self.touched[slot], Key::from_page(self.pages[slot], self.shift));
        self.displaced = (known.0 > 0).then_some(known);
        (self.touched[slot], self.in_l2[slot]) = (0, false);
        // The cached set of slots is stale now.
        self.last_evicted = (NONE, 0, 0);
        self.replaced = true;
        slot
    }

    /// Takes the page that lost its slot since the last call, if any: the time of its last touch, and its distance from
    /// the nearest page touched later.
    pub fn displaced(&mut self) -> Option<(u64, Key, u32)> {
        let (time, key) = self.displaced.take()?;
        Some((time, key, self.nearest(key.page(self.shift)).1))
    }

    /// Records that some class may not hold the page of a slot.
    fn unmark_all(&mut self, slot: usize) {
        let place = &mut self.held_by_all[HitFilter::bucket(self.pages[slot])];
        if place.0 == self.pages[slot] {
            *place = (NONE, 0);
        }
    }

    /// The slot with the nearest page, and the number of low address bits in which the two differ at most.
    fn nearest(&self, page: u64) -> (usize, u32) {
        let mut best = (0, u64::MAX);
        for (slot, &other) in self.pages.iter().enumerate() {
            if other ^ page < best.1 {
                best = (slot, other ^ page);
            }
        }
        (best.0, (u64::BITS - best.1.leading_zeros() + self.shift).min(u64::BITS))
    }

    /// Returns the bit mask of the classes that are known to hold the page of a slot.
    #[inline(always)]
    pub fn classes(&self, slot: usize) -> &[u64] {
        self.held.row(slot)
    }

    /// Returns whether the split TLB is known to hold the page of a slot.
    pub fn in_l2(&self, slot: usize) -> bool {
        self.in_l2[slot]
    }

    /// Records that all TLBs now hold the page of a slot, which is touched.
    pub fn mark_held(&mut self, slot: usize) {
        self.now += 1;
        (self.touched[slot], self.in_l2[slot]) = (self.now, true);
        self.held.row_mut(slot).fill(u64::MAX);
        self.held_by_all[HitFilter::bucket(self.pages[slot])] = (self.pages[slot], slot as u32);
    }

    /// Records that a class, or without a number the split TLB, no longer holds the page of `1 << shift` bytes around
    /// `key`.
    #[inline(always)]
    pub fn evicted(&mut self, class: Option<usize>, key: Key, shift: u32) {
        let page = key.page(shift);
        // Classes mostly evict the same page.
        if (self.last_evicted.0, self.last_evicted.1) != (page, shift) {
            self.last_evicted = (page, shift, self.slots_in(page, shift));
        }
        let mut slots = self.last_evicted.2;
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            self.unmark_all(slot);
            match class {
                Some(class) => self.held.put(slot, class, false),
                None => self.in_l2[slot] = false,
            }
        }
    }

    /// Bit mask of the slots whose pages lie in a page of `1 << shift` bytes.
    fn slots_in(&self, page: u64, shift: u32) -> u64 {
        let above = shift - self.shift;
        self.pages.iter().rev().fold(0, |slots, &known| slots << 1 | u64::from(known >> above == page))
    }

    /// Makes room for `classes` classes.
    pub fn reserve(&mut self, classes: usize) {
        self.held.reserve(classes);
    }

    /// A new class holds what another class holds.
    pub fn copy_class(&mut self, from: usize, to: usize) {
        self.reserve(to + 1);
        self.held.copy_column(from, to);
    }

    /// Pages touched after a time, in the order of their last touches, with the time of that touch.
    pub fn touched_after(&mut self, time: u64) -> impl Iterator<Item = (u64, Key)> {
        if self.replaced || self.ordered != self.now {
            self.sort_by_touch();
        }
        let touched = |&slot: &u8| self.touched[usize::from(slot) % SLOTS];
        let from = self.order.partition_point(|slot| touched(slot) <= time);
        let page = |&slot: &u8| Key::from_page(self.pages[usize::from(slot) % SLOTS], self.shift);
        self.order[from..].iter().map(move |slot| (touched(slot), page(slot)))
    }

    /// Sorts the slots by their last touch. Slots touched since the last sort go to the end; the others are already in
    /// order, except for slots that were never touched.
    fn sort_by_touch(&mut self) {
        let mut parts = [[0; SLOTS]; 3];
        let mut ends = [0; 3];
        for &slot in &self.order {
            let touched = self.touched[usize::from(slot) % SLOTS];
            let part = usize::from(touched > 0) + usize::from(touched > self.ordered);
            parts[part][ends[part] % SLOTS] = slot;
            ends[part] += 1;
        }
        let [never, _, since] = ends;
        parts[2][..since].sort_unstable_by_key(|&slot| self.touched[usize::from(slot) % SLOTS]);
        self.order[..never].copy_from_slice(&parts[0][..never]);
        self.order[never..SLOTS - since].copy_from_slice(&parts[1][..ends[1]]);
        self.order[SLOTS - since..].copy_from_slice(&parts[2][..since]);
        (self.ordered, self.replaced) = (self.now, false);
    }
}
