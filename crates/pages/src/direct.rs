//! Accesses most of which miss: what lanes are known to hold does not help there, and each lane sees them by itself, many
//! accesses in a row, so that what its TLBs hold stays at hand.

use crate::choice::{Key, Sizes};
use crate::filter::Filter;
use crate::lanes::{Lane, Lanes};
use crate::{ENTRIES, Replacement, SEGMENTS};

/// Accesses that lanes see in a row.
pub const BATCH: usize = 256;
/// After how many accesses it is asked again whether lanes see them directly.
const WINDOW: u64 = 1024;

/// What a look-up in the filter takes, in the time in which a lane sees an access directly (measured).
const LOOK_UP: u64 = 16;
/// The same for a miss of a lane after such a look-up.
const MISS: u64 = 2;

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
        let wanted = window * (lanes as u64) < self.looked_up * LOOK_UP + self.missed * MISS;
        (self.since, self.looked_up, self.missed) = (accesses, 0, 0);
        wanted
    }
}

/// Marks of the pages that a lane holds, in the order of its entries: without a mark there is no page.
struct Marks {
    marks: [u32; ENTRIES],
    /// Log2 bytes of the largest page for each segment, in which all others lie.
    shifts: [u32; SEGMENTS],
}

impl Marks {
    fn new(lane: &Lane, sizes: &Sizes) -> Marks {
        let shifts = lane.choice.0.map(|mask| sizes.largest_of(mask));
        let mut marks = [0; ENTRIES];
        let of = |key: &Key| key.mark(shifts[key.segment()]);
        marks.iter_mut().zip(lane.entries()).for_each(|(mark, key)| *mark = of(key));
        Marks { marks, shifts }
    }

    #[inline(always)]
    fn of(&self, key: Key) -> u32 {
        key.mark(self.shifts[key.segment()])
    }

    /// Whether one of the first `entries` marks, or of the few behind them, is this one. All are looked at, several at once.
    #[inline(always)]
    fn has(&self, mark: u32, entries: usize) -> bool {
        let (eights, _) = self.marks.as_chunks::<8>();
        let found = |eight: &[u32; 8]| eight.iter().fold(0, |found, &other| found | u32::from(other == mark));
        eights[..entries.div_ceil(8)].iter().fold(0, |all, eight| all | found(eight)) != 0
    }
}

impl Lane {
    /// The lane sees accesses up to the first at which some of its assignments hit and others miss: how many, and how many
    /// of them missed.
    fn see(&mut self, keys: &[Key], replacement: Replacement, sizes: &Sizes, served: u8) -> (usize, u64) {
        let mut marks = Marks::new(self, sizes);
        let (entries, mut missed) = (self.entries().len(), 0);
        for (seen, &key) in keys.iter().enumerate() {
            let mine = self.choice.0[key.segment()];
            let mark = marks.of(key);
            if !marks.has(mark, entries) && mine & served == 0 {
                missed += 1;
                self.miss_directly(key, mark, mine, &mut marks, replacement, sizes);
                continue;
            }
            let apart = key.nearest(self.entries());
            let missing = mine & !(sizes.holding(apart) | served);
            if missing == mine {
                missed += 1;
                self.miss_directly(key, mark, mine, &mut marks, replacement, sizes);
            } else if missing != 0 {
                return (seen, missed);
            } else if replacement == Replacement::Lru && mine & sizes.holding(apart) & !served != 0 {
                let place = self.use_again(key, apart);
                marks.marks[..=place].rotate_right(1);
            }
        }
        (keys.len(), missed)
    }

    #[inline(always)]
    fn miss_directly(
        &mut self,
        key: Key,
        mark: u32,
        missing: u8,
        marks: &mut Marks,
        replacement: Replacement,
        sizes: &Sizes,
    ) {
        match replacement {
            Replacement::Fifo => marks.marks[self.next()] = mark,
            Replacement::Lru => {
                marks.marks[..self.entries().len()].rotate_right(1);
                marks.marks[0] = mark;
            }
        }
        self.replace(key, replacement);
        self.misses[key.segment()] += 1;
        if let Some(behind) = &mut self.behind {
            behind.touch(key, missing, sizes, |_, _| ());
        }
    }
}

impl Lanes {
    /// All lanes see accesses in their order, each lane all of them: how many missed, of all lanes. What a filter knew
    /// before does not hold any more.
    pub fn see(&mut self, keys: &[Key], sizes: &Sizes, filter: &mut Filter) -> u64 {
        let (replacement, served) = (self.replacement(), self.served());
        let mut seen = vec![0; self.len()];
        let (mut i, mut missed) = (0, 0);
        while i < seen.len() {
            let lane = self.lane_mut(i);
            let (more, misses) = lane.see(&keys[seen[i]..], replacement, sizes, served);
            seen[i] += more;
            missed += misses;
            match keys.get(seen[i]) {
                None => i += 1,
                Some(&key) => {
                    let missing = lane.missing(key, sizes, served);
                    self.split(i, key.segment(), missing, filter);
                    seen.push(seen[i]);
                }
            }
        }
        missed
    }
}
