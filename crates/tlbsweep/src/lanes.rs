//! The fully associative TLB under many assignments at once.

use crate::bits::Bits;
use crate::choice::{Choice, Key, Sizes};
use crate::filter::Filter;
use crate::sets::SetAssociative;
use crate::tally::Tally;
use crate::{Replacement, SEGMENTS, SIZES};

/// Assignments that have had the same outcome at each access so far.
#[derive(Clone)]
pub struct Lane {
    pub choice: Choice,
    /// An address in each page that is held: in order of coming from `next` on, or the most recently used first.
    entries: Box<[Key]>,
    /// The entry to replace next, when the first come first go.
    next: u32,
    pub misses: [u64; SEGMENTS],
    /// Up to when touches of pages are in the order of its entries.
    touched: u64,
    /// The TLB that misses ask.
    pub behind: Option<SetAssociative>,
}

impl Lane {
    /// Empty TLBs.
    pub fn new(choice: Choice, entries: usize, behind: Option<SetAssociative>) -> Lane {
        Lane { choice, entries: vec![Key::NONE; entries].into(), next: 0, misses: [0; SEGMENTS], touched: 0, behind }
    }

    /// What its assignment with the smallest pages has cost so far.
    pub fn cost(&self, [miss, walk]: [u64; 2]) -> u64 {
        let first: u64 = self.misses.iter().sum();
        let second: u64 = self.behind.iter().flat_map(|sets| sets.misses(&self.choice.smallest())).sum();
        first.saturating_mul(miss).saturating_add(second.saturating_mul(walk))
    }

    /// The lane keeps the sizes of the mask `kept` for a segment; a lane like it with those it had besides is returned.
    #[cold]
    pub fn split_off(&mut self, segment: usize, kept: u8) -> Lane {
        let mut other = self.choice;
        other.0[segment] &= !kept;
        self.choice.0[segment] &= kept;
        let behind = self.behind.as_ref().map(|sets| sets.restricted(&other));
        let like_it = Lane { choice: other, behind, entries: self.entries.clone(), ..*self };
        self.behind = self.behind.as_ref().map(|sets| sets.restricted(&self.choice));
        like_it
    }

    /// A page was touched at a time. Unless another TLB is to hold it, it becomes the most recently used.
    fn touch(&mut self, time: u64, key: Key, sizes: &Sizes, served: u8) {
        self.touched = time;
        let apart = key.nearest(&self.entries);
        if self.choice.0[key.segment()] & sizes.holding(apart) & !served == 0 {
            return;
        }
        self.use_again(key, apart);
    }

    /// The page that is `apart` from `key` becomes the most recently used.
    fn use_again(&mut self, key: Key, apart: u32) {
        let place = self.entries.iter().position(|entry| entry.apart(key) == apart).unwrap_or(0);
        self.entries[..=place].rotate_right(1);
    }

    /// The sizes for the segment of an access with which it misses, as a mask.
    #[inline(always)]
    pub fn missing(&self, key: Key, sizes: &Sizes, served: u8) -> u8 {
        self.choice.0[key.segment()] & !(sizes.holding(key.nearest(&self.entries)) | served)
    }

    /// All entries, the oldest first.
    pub fn by_age(&self, replacement: Replacement) -> impl Iterator<Item = Key> {
        let (len, next) = (self.entries.len(), self.next as usize);
        (0..len).map(move |i| match replacement {
            Replacement::Fifo => self.entries[(next + i) % len],
            Replacement::Lru => self.entries[len - 1 - i],
        })
    }

    /// The lane's entries are these, the oldest first.
    pub fn hold(&mut self, pages: impl DoubleEndedIterator<Item = Key>, replacement: Replacement) {
        self.next = 0;
        let places = self.entries.iter_mut();
        match replacement {
            Replacement::Fifo => places.zip(pages).for_each(|(place, page)| *place = page),
            Replacement::Lru => places.zip(pages.rev()).for_each(|(place, page)| *place = page),
        }
    }

    /// Accesses of which it is known that they miss. The largest pages for each segment have `1 << shifts[segment]` bytes.
    pub fn miss_in_turn(&mut self, accesses: impl Iterator<Item = Key>, shifts: &[u32; SEGMENTS]) {
        let tally = match &mut self.behind {
            Some(behind) => behind.touch_in_turn(accesses, shifts, &self.choice),
            None => Tally::of(accesses.map(Key::segment)),
        };
        tally.add_accesses(&mut self.misses);
    }

    /// A page comes; returns the address of the one that goes.
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

/// All lanes; no assignment is in two.
pub struct Lanes {
    lanes: Vec<Lane>,
    replacement: Replacement,
    /// Sizes whose pages are not for this TLB, as a mask.
    served: u8,
    /// In row [`row`], the lanes whose pages for a segment have at least a size.
    at_least: Bits,
}

/// The row of a segment and a size in [`Lanes::at_least`].
fn row(segment: usize, size: usize) -> usize {
    segment * SIZES + size
}

impl Lanes {
    pub fn new(first: Lane, replacement: Replacement, served: u8) -> Lanes {
        let mut lanes = Lanes { lanes: Vec::new(), replacement, served, at_least: Bits::new(row(SEGMENTS, 0)) };
        lanes.put(vec![first]);
        lanes
    }

    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Sizes whose pages are for the TLB beside this one, as a mask.
    pub fn served(&self) -> u8 {
        self.served
    }

    pub fn replacement(&self) -> Replacement {
        self.replacement
    }

    pub fn take(&mut self) -> Vec<Lane> {
        std::mem::take(&mut self.lanes)
    }

    pub fn put(&mut self, lanes: Vec<Lane>) {
        self.lanes = lanes;
        self.at_least.reserve(self.lanes.len());
        (0..self.lanes.len()).for_each(|lane| (0..SEGMENTS).for_each(|segment| self.note_sizes(lane, segment)));
    }

    /// The same lanes come back in their order, with the sizes that they had.
    pub fn put_back(&mut self, lanes: Vec<Lane>) {
        self.lanes = lanes;
    }

    /// Notes how large a lane's pages for a segment are.
    fn note_sizes(&mut self, lane: usize, segment: usize) {
        let smallest = self.lanes[lane].choice.0[segment].trailing_zeros() as usize;
        (0..SIZES).for_each(|size| self.at_least.put(row(segment, size), lane, smallest >= size));
    }

    /// The page of an access gets a slot of the filter, which is returned.
    pub fn open(&self, key: Key, sizes: &Sizes, filter: &mut Filter) -> usize {
        filter.open(key, sizes, &self.at_least, row(key.segment(), 0))
    }

    /// The lanes that may not hold the page of an access see it; the filter is told of pages that go. How many missed.
    pub fn look_up(&mut self, slot: usize, key: Key, sizes: &Sizes, filter: &mut Filter) -> u64 {
        let (before, mut missed) = (self.lanes.len(), 0);
        for word in 0..before.div_ceil(64) {
            let mut rest = !filter.lanes(slot)[word];
            while rest != 0 {
                let lane = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                if lane < before {
                    missed += u64::from(self.visit(lane, key, sizes, filter));
                }
            }
        }
        missed
    }

    /// A lane sees an access; whether it misses.
    #[inline(always)]
    fn visit(&mut self, i: usize, key: Key, sizes: &Sizes, filter: &mut Filter) -> bool {
        let lane = &mut self.lanes[i];
        let mine = lane.choice.0[key.segment()];
        let missing = lane.missing(key, sizes, self.served);
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

    /// Brings a lane's order of use up to now.
    fn catch_up(&mut self, i: usize, sizes: &Sizes, filter: &mut Filter) {
        let lane = &mut self.lanes[i];
        for (time, key) in filter.touched_after(lane.touched) {
            lane.touch(time, key, sizes, self.served);
        }
    }

    /// Brings all lanes' order of use up to now.
    pub fn catch_up_all(&mut self, sizes: &Sizes, filter: &mut Filter) {
        (0..self.lanes.len()).for_each(|lane| self.catch_up(lane, sizes, filter));
    }

    /// The last touch of a page will not be known any more; no touch that is known was before it. The nearest page that was
    /// touched since is `apart` from it: to lanes for which both are the same page, this one says nothing.
    pub fn touch_all(&mut self, time: u64, key: Key, apart: u32, sizes: &Sizes) {
        let size = sizes.holding(apart).trailing_zeros() as usize;
        for word in 0..self.lanes.len().div_ceil(64) {
            let same = if size < SIZES { self.at_least.row(row(key.segment(), size))[word] } else { 0 };
            let mut rest = !same;
            while rest != 0 {
                let lane = word * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let Some(lane) = self.lanes.get_mut(lane) else { break };
                if lane.touched < time {
                    lane.touch(time, key, sizes, self.served);
                }
            }
        }
    }

    /// A lane keeps the sizes of the mask `kept` for a segment; those it had besides get a lane at the end.
    #[cold]
    pub fn split(&mut self, lane: usize, segment: usize, kept: u8, filter: &mut Filter) {
        let new = self.lanes.len();
        let like_it = self.lanes[lane].split_off(segment, kept);
        self.lanes.push(like_it);
        filter.copy_lane(lane, new);
        self.at_least.reserve(new + 1);
        self.at_least.copy_column(lane, new);
        self.note_sizes(lane, segment);
        self.note_sizes(new, segment);
    }

    /// A lane gets a page, with all sizes it has for the segment.
    #[inline(always)]
    fn miss(&mut self, i: usize, key: Key, missing: u8, sizes: &Sizes, filter: &mut Filter) {
        let lane = &mut self.lanes[i];
        let gone = lane.replace(key, self.replacement);
        lane.misses[key.segment()] += 1;
        if gone != Key::NONE {
            filter.evicted(Some(i), gone, sizes.largest_of(lane.choice.0[gone.segment()]));
        }
        if let Some(behind) = &mut lane.behind {
            behind.touch(key, missing, |_, _| ());
        }
    }
}
