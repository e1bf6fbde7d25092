//! Accesses most of which miss: what lanes are known to hold does not help there, and lanes see all of them, many accesses in a
//! row. What does not depend on a lane is found out once for a row (`row`) or for a group of lanes (`group`). Lanes are dealt out
//! to the host's processors, each of which takes its own through several rows (`hand`).

use rayon::prelude::*;

use crate::choice::Sizes;
use crate::filter::Filter;
use crate::group::{GROUP, Missed, Rules};
use crate::hand::Hand;
use crate::lanes::{Lane, Lanes};
use crate::limit::Limit;
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

impl Lanes {
    /// All lanes see the accesses of rows in their order, each lane all of them: what missed, and which lanes were given up. What a
    /// filter knew before does not hold any more.
    pub fn see(&mut self, rows: &[Row], sizes: &Sizes, filter: &mut Filter, limit: &Limit) -> (Missed, Vec<Lane>) {
        let rules = Rules { replacement: self.replacement(), sizes, served: self.served() };
        let lanes = self.take();
        let (before, accesses) = (lanes.len(), rows.iter().map(|row| row.keys().len()).sum::<usize>());
        let mut hands = Hand::dealt(lanes, shares(accesses * before));
        let see = |hand: &mut Hand| hand.see(rows, &rules, limit);
        let missed = match hands.as_mut_slice() {
            [hand] => see(hand),
            hands => hands.par_iter_mut().map(see).reduce(Missed::default, Missed::beside),
        };
        let (lanes, given_up) = Hand::gathered(hands);
        match lanes.len() == before && given_up.is_empty() {
            true => self.put_back(lanes),
            false => {
                filter.reserve(lanes.len());
                self.put(lanes);
            }
        }
        (missed, given_up)
    }
}
