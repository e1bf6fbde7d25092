//! The fully associative TLBs of a group of classes during a batch, for FIFO replacement and classes that the batch
//! cannot split. With FIFO, a class holds the pages that it missed last.

use crate::bulk::batch::{Batch, PAGES};
use crate::bulk::group::{GROUP_SIZE, Missed, PAGE_NUMBERS, Progress, Rules, boxed_array};
use crate::bulk::sharing::{BatchMisses, Miss, Sharing};
use crate::class::Class;
use crate::size_masks::Key;
use crate::{ENTRIES, Replacement, SEGMENTS, SIZES};

/// Length of a class's queue: its entries at the start, and a page for each access. An odd number of cache lines, so
/// that queues of classes at the same position do not map to the same sets of the host's caches.
const QUEUE_LEN: usize = ENTRIES + PAGES + 32;
/// Length of all queues: a power of two, which makes bounds checks unnecessary.
const QUEUES_LEN: usize = (GROUP_SIZE * QUEUE_LEN).next_power_of_two();

/// The classes of a group by their size for a segment, as bit masks: those with each size, and those whose pages the
/// other TLB holds.
#[derive(Clone, Copy)]
struct View {
    with: [u64; SIZES],
    elsewhere: u64,
    /// The size of each class.
    of: [u8; GROUP_SIZE],
}

impl View {
    const NONE: View = View { with: [0; SIZES], elsewhere: 0, of: [0; GROUP_SIZE] };
}

/// State of a group, reused from batch to batch.
pub struct FifoGroup {
    views: [View; SEGMENTS],
    /// For each page number, bit mask of the classes that hold the page.
    held: Box<[u64; PAGE_NUMBERS]>,
    /// For each class, the numbers of the pages that it held or missed, in order; 0 if the batch does not access the
    /// page.
    pages: Box<[u16; QUEUES_LEN]>,
    /// For each class, the index in `pages` of the page to replace next.
    first: [u32; GROUP_SIZE],
    /// The accesses that some class missed.
    missed: Box<[Miss; PAGES]>,
}

impl Default for FifoGroup {
    fn default() -> FifoGroup {
        FifoGroup {
            views: [View::NONE; SEGMENTS],
            held: boxed_array(0),
            pages: boxed_array(0),
            first: [0; GROUP_SIZE],
            missed: boxed_array(Miss::default()),
        }
    }
}

impl FifoGroup {
    /// Returns whether a class qualifies: for each segment accessed it has one size, or everything lies in one page of
    /// its smallest size.
    pub fn qualifies(class: &Class, batch: &Batch, rules: &Rules) -> bool {
        let one = |segment: usize| {
            let mask = class.masks.0[segment];
            mask.is_power_of_two()
                || mask & rules.l2_only == 0 && Self::in_one_page(class, batch, segment, rules.sizes.smallest_of(mask))
        };
        rules.replacement == Replacement::Fifo && batch.segments().all(one)
    }

    /// Returns whether all pages of a segment that the batch accesses or the class holds lie in one page of `1 <<
    /// shift` bytes.
    fn in_one_page(class: &Class, batch: &Batch, segment: usize, shift: u32) -> bool {
        let (first, distance) = batch.span(segment);
        let here = |key: Key| key.segment() != segment || key == Key::NONE || key.distance(first) <= shift;
        distance <= shift && class.by_age(Replacement::Fifo).all(here)
    }

    /// Processes the rest of a batch in qualifying classes that have processed the same number of accesses. Classes in
    /// `sharing` process their misses together in their second-level TLBs.
    pub fn access(&mut self, classes: &mut [Progress], sharing: &mut Sharing, batch: &Batch, rules: &Rules) -> Missed {
        let from = *classes[0].1;
        let entries = self.begin(classes, batch, rules);
        let accesses = self.access_from(classes.len(), batch, from, rules.sizes.len(), entries);
        let with = &self.views.each_ref().map(|view| view.with);
        let all = &mut classes.iter_mut().map(|(class, _)| &mut **class).collect::<Vec<&mut Class>>();
        let together = sharing.access(all, BatchMisses { batch, rules, missed: &self.missed[..accesses], with });
        let mut missed = Missed { accesses: accesses as u64, misses: 0 };
        for (number, (class, seen)) in classes.iter_mut().enumerate() {
            **seen = batch.keys().len();
            missed.misses += self.end(number, class, batch, rules, together >> number & 1 != 0) as u64;
        }
        missed
    }

    /// Loads what the classes hold; returns the number of entries of each.
    fn begin(&mut self, classes: &[Progress], batch: &Batch, rules: &Rules) -> usize {
        self.held[..rules.sizes.len() * PAGES].fill(0);
        for segment in batch.segments() {
            let view = &mut self.views[segment];
            *view = View::NONE;
            for (number, (class, _)) in classes.iter().enumerate() {
                let (mask, bit) = (class.masks.0[segment], 1 << number);
                let sizes = if mask & rules.l2_only != 0 { &mut view.elsewhere } else { &mut view.with[size_of(mask)] };
                *sizes |= bit;
                view.of[number] = size_of(mask) as u8;
            }
        }
        let mut entries = 0;
        for (number, (class, _)) in classes.iter().enumerate() {
            self.first[number] = (number * QUEUE_LEN) as u32;
            let queue = &mut self.pages[number * QUEUE_LEN..];
            entries = 0;
            for (key, slot) in class.by_age(Replacement::Fifo).zip(queue) {
                let accessed = key != Key::NONE && batch.accesses(key.segment());
                let size = size_of(class.masks.0[key.segment()]);
                *slot = if accessed { batch.find(key, size, rules.sizes) } else { 0 };
                self.held[usize::from(*slot)] |= 1 << number;
                entries += 1;
            }
        }
        entries
    }

    /// Processes the accesses from `from` on in classes with `entries` entries each; returns how many accesses some
    /// class missed.
    fn access_from(&mut self, classes: usize, batch: &Batch, from: usize, sizes: usize, entries: usize) -> usize {
        let all = u64::MAX >> (GROUP_SIZE - classes);
        let FifoGroup { views, first, .. } = self;
        let missed: &mut [Miss; PAGES] = &mut self.missed;
        let held: &mut [u64; PAGE_NUMBERS] = &mut self.held;
        let queues: &mut [u16; QUEUES_LEN] = &mut self.pages;
        let mut accesses = 0;
        for (access, (key, pages)) in batch.keys().iter().zip(batch.numbers()).enumerate().skip(from) {
            let view = &views[key.segment()];
            let mut hit = view.elsewhere;
            for (&page, with) in pages.iter().zip(&view.with).take(sizes) {
                hit |= held[usize::from(page)] & with;
            }
            if hit == all {
                continue;
            }
            missed[accesses % PAGES] = Miss { access: access as u16, classes: all & !hit };
            accesses += 1;
            let mut missing = all & !hit;
            for (&page, with) in pages.iter().zip(&view.with).take(sizes) {
                held[usize::from(page)] |= missing & with;
            }
            while missing != 0 {
                let class = missing.trailing_zeros() as usize % GROUP_SIZE;
                let bit = missing & missing.wrapping_neg();
                missing ^= bit;
                let first = &mut first[class];
                let at = *first as usize;
                *first += 1;
                held[usize::from(queues[at % QUEUES_LEN])] &= !bit;
                queues[(at + entries) % QUEUES_LEN] = pages[usize::from(view.of[class]) % SIZES];
            }
        }
        accesses
    }

    /// Writes back what a class holds now. Its second-level TLB processes the misses, unless `seen`. Returns the number
    /// of misses.
    fn end(&mut self, number: usize, class: &mut Class, batch: &Batch, rules: &Rules, seen: bool) -> usize {
        let before: Vec<Key> = class.by_age(Replacement::Fifo).collect();
        let misses = self.first[number] as usize - number * QUEUE_LEN;
        let queue = &self.pages[number * QUEUE_LEN..][..before.len() + misses];
        let at = batch.key_of_page();
        let last = (misses..queue.len()).map(|slot| before.get(slot).copied().unwrap_or_else(|| at(queue[slot])));
        class.hold(last, Replacement::Fifo);
        if seen {
            return misses;
        }
        let missed = &queue[before.len()..];
        let shifts = class.masks.0.map(|mask| rules.sizes.largest_of(mask));
        class.record_misses(missed.iter().map(|&page| at(page)), &shifts);
        misses
    }
}

/// The only size of a mask, or the smallest.
fn size_of(mask: u8) -> usize {
    mask.trailing_zeros() as usize % SIZES
}
