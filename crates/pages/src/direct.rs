//! Accesses most of which miss: what lanes are known to hold does not help there, and each lane sees them by itself, many
//! accesses in a row, so that what its TLBs hold stays at hand. Lanes have nothing to do with each other then, and go on at
//! the same time on several of the host's processors.

use std::cell::RefCell;

use rayon::prelude::*;

use crate::choice::{Key, Sizes};
use crate::filter::Filter;
use crate::lanes::{Lane, Lanes};
use crate::log::{ALWAYS, Fifo, Held, Lru, Uses};
use crate::row::{BATCH, PAGES, Row};
use crate::tally::Tally;
use crate::{Replacement, SEGMENTS, SIZES};

/// After how many accesses it is asked again whether lanes see them directly.
const WINDOW: u64 = 1024;
/// From how many accesses, those of all lanes together, other processors are asked to help: far more than asking takes.
const SHARED: usize = 8 * BATCH;

/// What a look-up in the filter takes, in the time in which a lane sees an access directly (measured).
const LOOK_UP: u64 = 16;
/// The same for a miss of a lane after such a look-up.
const MISS: u64 = 3;

/// Whether lanes see accesses directly.
#[derive(Default)]
pub struct Direct {
    pub on: bool,
    /// Accesses so far when this was asked last.
    since: u64,
    /// Accesses since then that were looked up, and misses of all lanes.
    looked_up: u64,
    missed: u64,
}

impl Direct {
    /// Of the accesses so far, of which there are `accesses`, some more were looked up (when lanes see them directly: would
    /// have been), with so many misses of all lanes. Whether lanes are to see them directly from now on: when that is faster.
    pub fn wanted(&mut self, looked_up: u64, missed: u64, accesses: u64, lanes: usize) -> bool {
        self.looked_up += looked_up;
        self.missed += missed;
        let window = accesses - self.since;
        if window < WINDOW {
            return self.on;
        }
        // Lanes are shared among the host's processors then, as far as there are enough of them.
        let shares = if BATCH * lanes < SHARED { 1 } else { rayon::current_num_threads().min(lanes) as u64 };
        let wanted = window * (lanes as u64) / shares < self.looked_up * LOOK_UP + self.missed * MISS;
        (self.since, self.looked_up, self.missed) = (accesses, 0, 0);
        wanted
    }
}

/// How TLBs work for all lanes.
struct Rules<'a> {
    replacement: Replacement,
    sizes: &'a Sizes,
    /// Sizes whose pages are not for the fully associative TLB, as a mask.
    served: u8,
    /// The segments that are accessed, a bit each.
    segments: u32,
}

/// The sizes that a lane has for a segment.
#[derive(Clone, Copy)]
struct View {
    /// All, and those whose pages the fully associative TLB has, as masks.
    all: u8,
    here: u8,
    /// Of those whose pages the fully associative TLB has, the smallest and the largest.
    smallest: u8,
    largest: u8,
    /// All bits of the numbers of pages, unless the other TLB has all of them.
    numbers: u16,
    /// Log2 bytes of the largest of all.
    shift: u32,
}

impl View {
    fn new(all: u8, rules: &Rules) -> View {
        let here = all & !rules.served;
        let smallest = here.trailing_zeros().min(7) as u8;
        let largest = 7 - here.leading_zeros().min(7) as u8;
        let numbers = if here == 0 { ALWAYS } else { u16::MAX };
        View { all, here, smallest, largest, numbers, shift: rules.sizes.largest_of(all) }
    }

    /// Of the numbers of an access's pages, that of the page with the smallest and with the largest size.
    #[inline(always)]
    fn of(&self, numbers: &[u16; SIZES]) -> [u16; 2] {
        [self.smallest, self.largest].map(|size| numbers[usize::from(size) % SIZES] & self.numbers)
    }
}

/// Room for what a lane sees.
struct Scratch {
    came: [u16; PAGES],
    uses: Uses,
    /// By the number of a held page, that of the page with the smallest size around the address by which it is held.
    within: [u16; PAGES],
    /// Accesses that missed.
    missed: [Key; PAGES],
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { came: [0; PAGES], uses: Uses::default(), within: [0; PAGES], missed: [Key::NONE; PAGES] }
    }
}

thread_local! {
    static SCRATCH: RefCell<Box<Scratch>> = RefCell::default();
}

impl Lane {
    /// The lane sees the accesses of a row from one on, up to the first at which some of its assignments hit and others miss:
    /// how many, and how many of them missed.
    fn see(&mut self, row: &Row, from: usize, rules: &Rules, scratch: &mut Scratch) -> (usize, u64) {
        let Scratch { came, uses, within, missed } = scratch;
        let views = self.choice.0.map(|mask| View::new(mask, rules));
        let decided =
            (0..SEGMENTS).all(|segment| rules.segments >> segment & 1 == 0 || views[segment].all.is_power_of_two());
        let number = |key: Key, size: u8| match key {
            Key::NONE => ALWAYS,
            key => row.find(key, usize::from(size), rules.sizes),
        };
        within.fill(ALWAYS);
        let held = self.by_age(rules.replacement).map(|key| {
            let View { smallest, largest, .. } = views[key.segment()];
            let page = number(key, largest);
            if !decided && page != ALWAYS {
                within[usize::from(page)] = number(key, smallest);
            }
            (key, page)
        });
        let (seen, misses) = match rules.replacement {
            Replacement::Fifo => {
                let mut held = Fifo::new(came, held.map(|(_, page)| page));
                let (seen, misses) = see(row, from, decided, &views, &mut held, within, missed);
                let come = &missed[misses.saturating_sub(self.entries())..misses];
                come.iter().for_each(|&key| _ = self.replace(key, Replacement::Fifo));
                (seen, misses)
            }
            Replacement::Lru => {
                let mut held = Lru::new(uses, held);
                let counts = see(row, from, decided, &views, &mut held, within, missed);
                self.hold(held.pages());
                counts
            }
        };
        let missed = &missed[..misses];
        let mut tally = Tally::default();
        missed.iter().enumerate().for_each(|(step, key)| tally.add(step, key.segment()));
        tally.add_to(&mut self.misses);
        if let Some(behind) = &mut self.behind {
            let of = |key: Key| views[key.segment()];
            behind.touch_in_turn(missed, |key| of(key).shift, |key| of(key).all);
        }
        (seen, misses as u64)
    }
}

/// A lane's fully associative TLB sees accesses of a row from one on: how many. Accesses that miss go to `missed`; how many.
#[inline(always)]
fn see(
    row: &Row,
    from: usize,
    decided: bool,
    views: &[View; SEGMENTS],
    held: &mut impl Held,
    within: &mut [u16; PAGES],
    missed: &mut [Key; PAGES],
) -> (usize, usize) {
    let accesses = row.keys()[from..].iter().copied().zip(&row.numbers()[from..]);
    match decided {
        true => see_decided(accesses, views, held, missed),
        false => see_undecided(accesses, views, held, within, missed),
    }
}

/// A lane's fully associative TLB sees accesses to segments for which all of its assignments have one size: how many.
/// Accesses that miss go to `missed`; how many.
#[inline(always)]
fn see_decided<'a>(
    accesses: impl ExactSizeIterator<Item = (Key, &'a [u16; SIZES])>,
    views: &[View; SEGMENTS],
    held: &mut impl Held,
    missed: &mut [Key; PAGES],
) -> (usize, usize) {
    let (seen, mut misses) = (accesses.len(), 0);
    for (key, numbers) in accesses {
        let [_, page] = views[key.segment()].of(numbers);
        let hit = held.holds(page);
        missed[misses % PAGES] = key;
        misses += usize::from(!hit);
        held.access(page, hit, key);
    }
    (seen, misses)
}

/// A lane's fully associative TLB sees accesses up to the first at which some of its assignments hit and others miss: how
/// many. Accesses that miss go to `missed`; how many.
#[inline(always)]
fn see_undecided<'a>(
    accesses: impl ExactSizeIterator<Item = (Key, &'a [u16; SIZES])>,
    views: &[View; SEGMENTS],
    held: &mut impl Held,
    within: &mut [u16; PAGES],
    missed: &mut [Key; PAGES],
) -> (usize, usize) {
    let (all, mut misses) = (accesses.len(), 0);
    for (seen, (key, numbers)) in accesses.enumerate() {
        let view = &views[key.segment()];
        let [smallest, page] = view.of(numbers);
        let within = &mut within[usize::from(page) % PAGES];
        let hit = held.holds(page);
        let split = if hit { *within != smallest } else { view.here != view.all };
        if split {
            return (seen, misses);
        }
        *within = smallest;
        missed[misses % PAGES] = key;
        misses += usize::from(!hit);
        held.access(page, hit, key);
    }
    (all, misses)
}

impl Lanes {
    /// All lanes see accesses in their order, each lane all of them: how many missed, of all lanes. What a filter knew
    /// before does not hold any more.
    pub fn see(&mut self, row: &Row, sizes: &Sizes, filter: &mut Filter) -> u64 {
        let segments = row.keys().iter().fold(0, |all, key| all | 1 << key.segment());
        let rules = Rules { replacement: self.replacement(), sizes, served: self.served(), segments };
        let end = row.keys().len();
        let (mut seen, mut missed) = (vec![0; self.len()], 0);
        loop {
            let go_on = |(lane, seen): (&mut Lane, &mut usize)| {
                let (more, missed) = SCRATCH.with_borrow_mut(|scratch| lane.see(row, *seen, &rules, scratch));
                *seen += more;
                missed
            };
            let left: usize = seen.iter().map(|seen| end - seen).sum();
            missed += if left < SHARED {
                self.lanes_mut().iter_mut().zip(&mut seen).map(go_on).sum::<u64>()
            } else {
                self.lanes_mut().par_iter_mut().zip(&mut seen).map(go_on).sum::<u64>()
            };
            if seen.iter().all(|&seen| seen == end) {
                return missed;
            }
            for lane in 0..seen.len() {
                if let Some(&key) = row.keys().get(seen[lane]) {
                    let missing = self.lanes_mut()[lane].missing(key, sizes, rules.served);
                    self.split(lane, key.segment(), missing, filter);
                    seen.push(seen[lane]);
                }
            }
        }
    }
}
