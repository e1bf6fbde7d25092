//! Accesses most of which miss: what lanes are known to hold does not help there, and lanes see all of them, many accesses in a
//! row. What does not depend on a lane is found out once for a row (`row`) or for a group of lanes (`group`). Groups have nothing
//! to do with each other then, and go on at the same time on several of the host's processors.

use std::cell::RefCell;

use rayon::prelude::*;

use crate::choice::Sizes;
use crate::filter::Filter;
use crate::group::{GROUP, Group, Missed, Progress, Rules};
use crate::lanes::Lanes;
use crate::row::{BATCH, Row};

/// After how many accesses it is asked again whether lanes see them directly.
const WINDOW: u64 = 1024;
/// From how many accesses, those of all lanes together, other processors are asked to help: far more than asking takes.
const SHARED: usize = 8 * BATCH;

/// What a look-up in the filter takes, and after it a miss of a lane: nanoseconds (measured, as all of these).
const LOOK_UP: u64 = 150;
const MISS: u64 = 45;
/// What an access takes that lanes see directly, for all of them; for each group of lanes; and for each lane that misses.
const ACCESS: u64 = 15;
const GROUP_ACCESS: u64 = 18;
const DIRECT_MISS: u64 = 10;
/// How many times faster it must be to see accesses directly: with 1 sweeps under 64 lanes take twice as long.
const PAYS: u64 = 2;

/// Among how many processors so many accesses, those of all lanes together, are shared.
pub fn shares(accesses: usize) -> usize {
    if accesses < SHARED { 1 } else { rayon::current_num_threads() }
}

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
        let shares = shares(BATCH * lanes).min(lanes);
        let groups = lanes.div_ceil(GROUP).max(shares) as u64;
        let shared = window * groups * GROUP_ACCESS + self.missed * DIRECT_MISS;
        let directly = window * ACCESS + shared / shares as u64;
        // It also takes to hand rows to other processors, and to find out anew what lanes hold when few accesses miss again.
        let wanted = PAYS * directly < self.looked_up * LOOK_UP + self.missed * MISS;
        (self.since, self.looked_up, self.missed) = (accesses, 0, 0);
        wanted
    }
}

thread_local! {
    static ROOM: RefCell<Group> = RefCell::default();
}

impl Lanes {
    /// All lanes see accesses in their order, each lane all of them. What a filter knew before does not hold any more.
    pub fn see(&mut self, row: &Row, sizes: &Sizes, filter: &mut Filter) -> Missed {
        let segments = row.keys().iter().fold(0, |all, key| all | 1 << key.segment());
        let rules = Rules { replacement: self.replacement(), sizes, served: self.served(), segments };
        let end = row.keys().len();
        let (mut seen, mut missed) = (vec![0; self.len()], Missed::default());
        while seen.iter().any(|&seen| seen != end) {
            missed = missed.then(self.see_until_split(&mut seen, row, &rules));
            for lane in 0..seen.len() {
                let Some(&key) = row.keys().get(seen[lane]) else { continue };
                let missing = self.lanes_mut()[lane].missing(key, sizes, rules.served);
                if missing != 0 && missing != self.lanes_mut()[lane].choice.0[key.segment()] {
                    self.split(lane, key.segment(), missing, filter);
                    seen.push(seen[lane]);
                }
            }
        }
        missed
    }

    /// Each lane sees more accesses than the `seen` it has seen, until it has seen all or a lane is to be split.
    fn see_until_split(&mut self, seen: &mut [usize], row: &Row, rules: &Rules) -> Missed {
        let end = row.keys().len();
        let waiting = self.lanes_mut().iter_mut().zip(seen).filter(|(_, seen)| **seen != end);
        let mut lanes: Vec<Progress> = waiting.collect();
        lanes.sort_by_cached_key(|(lane, seen)| (**seen, lane.misses.iter().sum::<u64>()));
        let left: usize = lanes.iter().map(|(_, seen)| end - **seen).sum();
        let shares = shares(left);
        let groups = dealt_out(lanes, shares);
        let see = |mut group: Vec<Progress>| ROOM.with_borrow_mut(|room| room.see(&mut group, row, rules));
        match shares {
            1 => groups.into_iter().map(see).fold(Missed::default(), Missed::beside),
            _ => groups.into_par_iter().map(see).reduce(Missed::default, Missed::beside),
        }
    }
}

/// Groups of lanes that have seen as many accesses, which are next to each other. Of `shares`, each has as many of those that
/// missed often.
fn dealt_out(lanes: Vec<Progress>, shares: usize) -> Vec<Vec<Progress>> {
    let most = lanes.len().div_ceil(shares).min(GROUP);
    let counts: Vec<usize> = lanes.chunk_by(|one, other| one.1 == other.1).map(<[Progress]>::len).collect();
    let (mut groups, mut lanes) = (Vec::new(), lanes.into_iter());
    for count in counts {
        let first = groups.len();
        groups.resize_with(first + count.div_ceil(most), Vec::new);
        let to = groups[first..].len();
        lanes.by_ref().take(count).enumerate().for_each(|(number, lane)| groups[first + number % to].push(lane));
    }
    groups
}
