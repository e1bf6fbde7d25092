//! The set-associative TLBs behind lanes that are nearly alike. Where one segment misses most, lanes that have the same size for it
//! differ behind in the few sets where pages of other segments are, or in pages that have not been used for long. They see together
//! what they missed.

use crate::bits::ones;
use crate::class::Class;
use crate::group::Rules;
use crate::lanes::Lane;
use crate::row::Row;
use crate::tally::Digits;
use crate::{SEGMENTS, SIZES};

/// Fewer lanes are taken one by one. This and what follows decides how long it takes, and not what is counted.
const FEW: u32 = 4;
/// At most one miss of so many is not at an access that all lanes miss.
const PART: u32 = 4;
/// One access of so many tells what most do.
const SOME: usize = 7;
/// For fewer misses of a lane in a row it does not pay to find out what lanes have in common.
const MISSES: u32 = 128;
/// After so many rows it is found out anew what lanes have in common: sets that were told apart may be the same again.
const ROWS: u32 = 8;

/// An access of a row that some lanes missed.
#[derive(Clone, Copy, Default)]
pub struct Miss {
    /// Its place in the row.
    pub access: u16,
    /// The lanes, a bit each.
    pub lanes: u64,
}

/// What lanes of a group see of a row.
#[derive(Clone, Copy)]
pub struct Seen<'a, 'b> {
    pub row: &'a Row,
    pub rules: &'a Rules<'b>,
    /// The accesses that some lane missed.
    pub missed: &'a [Miss],
    /// For each segment and size the lanes that have it.
    pub with: &'a [[u64; SIZES]; SEGMENTS],
}

impl Seen<'_, '_> {
    /// The segment of most misses, as far as some tell.
    fn main_segment(&self) -> usize {
        let (at, mut misses) = (self.row.by_number(), [0; SEGMENTS]);
        let some = self.missed.iter().step_by(SOME);
        some.for_each(|miss| misses[at(miss.access).segment()] += miss.lanes.count_ones());
        (0..SEGMENTS).max_by_key(|&segment| misses[segment]).unwrap_or(0)
    }

    /// Whether lanes miss often enough, and mostly together at accesses to the segment `main`.
    fn mostly_together(&self, lanes: u64, main: usize) -> bool {
        let at = self.row.by_number();
        let (mut together, mut all) = (0, 0);
        for miss in self.missed.iter().step_by(SOME) {
            let missing = miss.lanes & lanes;
            all += missing.count_ones();
            together += if missing == lanes && at(miss.access).segment() == main { lanes.count_ones() } else { 0 };
        }
        all > MISSES / SOME as u32 * lanes.count_ones() && together >= all - all / PART
    }
}

/// Lanes of a group that are alike. They are without what is behind them before [`Alike::settle`].
#[derive(Default)]
pub struct Alike {
    /// The segment that misses most.
    main: usize,
    classes: Vec<Class>,
    /// Rows that classes have seen.
    rows: u32,
}

impl Alike {
    /// The lanes of a group see what they missed, as far as they are alike and that is worth it: which have, a bit each.
    #[inline(never)]
    pub fn see(&mut self, lanes: &mut [&mut Lane], seen: Seen) -> u64 {
        if !self.classes.iter().all(|class| class.decided(seen.row)) || self.rows == ROWS && !self.renew(seen) {
            self.settle(lanes);
        }
        if self.classes.is_empty() {
            self.begin(lanes, seen);
        }
        if !self.classes.is_empty() {
            self.rows += 1;
            self.see_missed(lanes, seen);
        }
        self.classes.iter().fold(0, |all, class| all | class.lanes)
    }

    /// Finds out which lanes are alike.
    fn begin(&mut self, lanes: &mut [&mut Lane], seen: Seen) {
        self.main = seen.main_segment();
        for (size, &with) in seen.with[self.main].iter().enumerate() {
            if with.count_ones() < FEW || !seen.mostly_together(with, self.main) {
                continue;
            }
            let mut class = Class::new(seen.rules.sizes.shift(size));
            let one_size = |&lane: &usize| lanes[lane].choice.0[self.main].is_power_of_two();
            let with: Vec<usize> = ones(with).filter(one_size).collect();
            with.into_iter().for_each(|lane| class.take(lane, lanes[lane], seen.row));
            if class.lanes.count_ones() < FEW {
                class.give_back(lanes);
            } else {
                class.begin();
                self.classes.push(class);
            }
        }
    }

    /// Finds out anew what lanes have in common; `false` if they do not miss together any more.
    fn renew(&mut self, seen: Seen) -> bool {
        self.rows = 0;
        let together = self.classes.iter().all(|class| seen.mostly_together(class.lanes, self.main));
        if together {
            for class in &mut self.classes {
                class.settle();
                class.begin();
            }
        }
        together
    }

    /// Lanes see what they missed, those of one class after those of another, so that sets stay in the host's caches.
    fn see_missed(&mut self, lanes: &mut [&mut Lane], seen: Seen) {
        let (at, mut missed) = (seen.row.by_number(), vec![Miss::default(); seen.missed.len() + 1]);
        let mut misses = [Digits::default(); SEGMENTS];
        seen.missed.iter().for_each(|miss| misses[at(miss.access).segment()].add(miss.lanes));
        for class in &mut self.classes {
            for lane in ones(class.lanes) {
                seen.row.segments().for_each(|segment| lanes[lane].misses[segment] += misses[segment].of(lane));
            }
            let mut some = 0;
            for miss in seen.missed {
                missed[some] = Miss { lanes: miss.lanes & class.lanes, ..*miss };
                some += usize::from(miss.lanes & class.lanes != 0);
            }
            let missed = missed[..some].iter().map(|miss| (at(miss.access), miss.lanes));
            class.see_missed(missed, self.main, seen.row, seen.rules.sizes);
        }
    }

    /// Lanes take over what is known of them together.
    pub fn settle(&mut self, lanes: &mut [&mut Lane]) {
        self.rows = 0;
        for mut class in self.classes.drain(..) {
            class.settle();
            class.give_back(lanes);
        }
    }
}
