//! Accesses most of which miss: what lanes are known to hold does not help there, and each lane sees them by itself, many
//! accesses in a row, so that what its TLBs hold stays at hand. Lanes have nothing to do with each other then, and go on at
//! the same time on several of the host's processors.

use rayon::prelude::*;

use crate::choice::{Key, Sizes};
use crate::filter::Filter;
use crate::lanes::{Lane, Lanes};
use crate::log::{Log, Room};
use crate::{Replacement, SEGMENTS};

/// Accesses that lanes see in a row.
pub const BATCH: usize = 1024;
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
    /// Log2 bytes of the largest.
    shift: u32,
}

impl View {
    fn new(all: u8, rules: &Rules) -> View {
        View { all, here: all & !rules.served, shift: rules.sizes.largest_of(all) }
    }
}

/// Room for what lanes see.
struct Scratch {
    log: Box<Room>,
    /// Accesses that missed.
    missed: Box<[Key; BATCH]>,
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch { log: Box::default(), missed: Box::new([Key::NONE; BATCH]) }
    }
}

impl Lane {
    /// The lane sees accesses up to the first at which some of its assignments hit and others miss: how many, and how many
    /// of them missed.
    fn see(&mut self, row: &[Key], rules: &Rules, scratch: &mut Scratch) -> (usize, u64) {
        let Scratch { log, missed } = scratch;
        let views = self.choice.0.map(|mask| View::new(mask, rules));
        let decided =
            (0..SEGMENTS).all(|segment| rules.segments >> segment & 1 == 0 || views[segment].all.is_power_of_two());
        let mut log = Log::new(log, self.by_age(rules.replacement), |key| key.mark(views[key.segment()].shift));
        let (seen, misses) = match (decided, rules.replacement) {
            (true, Replacement::Fifo) => {
                see_decided(row, &views, &mut log, missed, |log, key, mark, shift| log.fifo(key, mark, shift))
            }
            (true, Replacement::Lru) => {
                see_decided(row, &views, &mut log, missed, |log, key, mark, shift| log.lru(key, mark, shift))
            }
            (false, Replacement::Fifo) => see_undecided(row, &views, rules.sizes, &mut log, missed, |_, _, _| ()),
            (false, Replacement::Lru) => {
                see_undecided(row, &views, rules.sizes, &mut log, missed, |log, at, mark| log.use_again(at, mark))
            }
        };
        self.hold(log.pages(), rules.replacement);
        let missed = &missed[..misses];
        missed.iter().for_each(|key| self.misses[key.segment()] += 1);
        if let Some(behind) = &mut self.behind {
            let of = |key: Key| views[key.segment()];
            behind.touch_in_turn(missed, |key| of(key).shift, |key| of(key).all);
        }
        (seen, misses as u64)
    }
}

/// A lane's fully associative TLB sees accesses to segments for which all of its assignments have one size, by `look_up`:
/// how many. Those that miss go to `missed`; how many.
#[inline(always)]
fn see_decided(
    row: &[Key],
    views: &[View; SEGMENTS],
    log: &mut Log,
    missed: &mut [Key; BATCH],
    look_up: impl Fn(&mut Log, Key, u16, u32) -> usize,
) -> (usize, usize) {
    let mut misses = 0;
    for &key in row {
        let View { here, shift, .. } = views[key.segment()];
        // The other TLB may have all pages of the segment.
        if here != 0 {
            missed[misses % BATCH] = key;
            misses += look_up(log, key, key.mark(shift), shift);
        }
    }
    (row.len(), misses)
}

/// A lane's fully associative TLB sees accesses up to the first at which some of its assignments hit and others miss: how
/// many. Each entry that is hit is told to `hit`, with its mark. Accesses that miss go to `missed`; how many.
#[inline(always)]
fn see_undecided(
    row: &[Key],
    views: &[View; SEGMENTS],
    sizes: &Sizes,
    log: &mut Log,
    missed: &mut [Key; BATCH],
    hit: impl Fn(&mut Log, usize, u16),
) -> (usize, usize) {
    let mut misses = 0;
    for (seen, &key) in row.iter().enumerate() {
        let View { all, here, shift } = views[key.segment()];
        let mark = key.mark(shift);
        if let Some((at, apart)) = log.find(key, mark, shift) {
            let held = here & sizes.holding(apart);
            if held == here && here != 0 {
                hit(log, at, mark);
                continue;
            } else if held != 0 {
                return (seen, misses);
            }
        }
        if here == all {
            log.come(key, mark);
            missed[misses % BATCH] = key;
            misses += 1;
        } else if here != 0 {
            return (seen, misses);
        }
    }
    (row.len(), misses)
}

impl Lanes {
    /// All lanes see accesses in their order, each lane all of them: how many missed, of all lanes. What a filter knew
    /// before does not hold any more.
    pub fn see(&mut self, row: &[Key], sizes: &Sizes, filter: &mut Filter) -> u64 {
        let segments = row.iter().fold(0, |all, key| all | 1 << key.segment());
        let rules = Rules { replacement: self.replacement(), sizes, served: self.served(), segments };
        let end = row.len();
        let (mut seen, mut missed) = (vec![0; self.len()], 0);
        loop {
            let go_on = |scratch: &mut Scratch, (lane, seen): (&mut Lane, &mut usize)| {
                let (more, missed) = lane.see(&row[*seen..], &rules, scratch);
                *seen += more;
                missed
            };
            let left: usize = seen.iter().map(|seen| end - seen).sum();
            missed += if left < SHARED {
                let mut scratch = Scratch::default();
                self.lanes_mut().iter_mut().zip(&mut seen).map(|one| go_on(&mut scratch, one)).sum::<u64>()
            } else {
                self.lanes_mut().par_iter_mut().zip(&mut seen).map_init(Scratch::default, go_on).sum::<u64>()
            };
            if seen.iter().all(|&seen| seen == end) {
                return missed;
            }
            for lane in 0..seen.len() {
                if let Some(&key) = row.get(seen[lane]) {
                    let missing = self.lanes_mut()[lane].missing(key, sizes, rules.served);
                    self.split(lane, key.segment(), missing, filter);
                    seen.push(seen[lane]);
                }
            }
        }
    }
}
