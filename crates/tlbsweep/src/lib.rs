//! TLB misses of every assignment of page sizes to segments, from one pass over the accesses of a program ([`Analysis`]);
//! page sizes of Linux hosts and their processes ([`host`]).
//!
//! # How
//!
//! Page sizes are nested, so an access that hits with one size hits with every larger one. Assignments of which every
//! access so far has had the same outcome have had their misses at the same accesses, and what their TLBs hold is the same
//! list of addresses, of which each assignment sees the pages of its own sizes. So they are simulated as one *lane*: the
//! addresses, and for each segment the set of page sizes it stands for (`Choice`). A lane is split when an access hits
//! with some of its sizes and misses with others. All assignments are one lane at the beginning; where a segment lies in one
//! page of each of several sizes, they stay together to the end.
//!
//! The sets of a set-associative TLB have nothing to do with each other, so each set is split on its own, when sizes put a
//! page into different sets or when outcomes differ there (`SetAssociative`).
//!
//! Accesses to the pages known to be held by a lane are passed over for it (`Filter`), unless so many accesses miss that this is
//! not worth its time (`Direct`).
//!
//! # What is exact
//!
//! All of it, for first in, first out and for least recently used, fully associative and set-associative, with one level
//! behind the other or beside it: the counts are those of a simulation of each assignment by itself. Time and memory grow with
//! the number of lanes, though, which is at most that of assignments. When there are more lanes than allowed, those that
//! cost most so far are given up: their counts are those up to then, and lower bounds ([`Counts::exact`] is false).
//! Assignments that are named in [`Question::keep`] are never given up.
//!
//! # How fast
//!
//! `cargo run --profile fast -p fxscope-tlbsweep --example speed` prints it for six streams, five sizes (K: four) and six
//! segments. An access to a page that all lanes hold takes a few nanoseconds. Where most accesses miss, lanes see 2,047 of them
//! in a row (`direct`), and each of the host's processors takes its share of the lanes through up to 64 rows (`hand`). Lanes that
//! have one size for the segment that misses most hold nearly the same in their second TLBs, which then see most of it once
//! (`alike`). On two processors of a cloud machine (AMD EPYC at 2.4 GHz), for A64FX and for the K computer, millions of accesses
//! a second (and lanes), each the median of three runs:
//!
//! | Stream | A64FX | A64FX, from 64 KiB on | K |
//! |---|---|---|---|
//! | sweeps of three arrays beside a frame, a table and code | 45 (424) | 415 (64) | 17 (380) |
//! | blocks of 256 KiB in random order | 245 (16) | 546 (4) | 223 (48) |
//! | one access in 100 anywhere in 256 MiB | 64 (25) | 110 (16) | 61 (32) |
//! | a gather: an index, anywhere in 1 GiB, a result | 13 (120) | 19 (77) | 15 (64) |
//! | each access misses in some lane | 24 (3) | 46 (3) | 51 (3) |
//! | each access misses in most lanes | 12 (25) | 17 (16) | 14 (16) |
//!
//! # What is assumed
//!
//! Two segments do not share a page. Nothing is unmapped, or forgotten when address spaces change.

mod alike;
mod answer;
mod bits;
mod choice;
mod class;
mod direct;
mod filter;
mod group;
mod hand;
pub mod host;
mod lanes;
mod limit;
mod queue;
mod row;
mod rows;
mod sets;
mod tally;

use fxscope_machine::spec::Tlb;
use thiserror::Error;

pub use answer::Answer;
use choice::{Choice, Key, Sizes};
use direct::Direct;
use filter::Filter;
use lanes::{Lane, Lanes};
use limit::Limit;
use row::Row;
use rows::Rows;
use sets::SetAssociative;

/// Most segments.
pub const SEGMENTS: usize = 32;
/// Most page sizes.
pub const SIZES: usize = 8;
/// Most entries of a fully associative TLB.
pub const ENTRIES: usize = 256;
/// Most ways of a set-associative TLB.
pub const WAYS: usize = 8;

/// Which entry of a fully associative TLB a new page replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The one that came first.
    Fifo,
    /// The least recently used one.
    Lru,
}

/// How the set-associative TLB stands to the fully associative one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// It is asked when the fully associative one misses, and pages are put into both.
    Behind,
    /// It has the pages of these sizes (bytes), the fully associative one has all others.
    Beside(Vec<u64>),
}

/// The TLBs of one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    /// Entries of the fully associative TLB.
    pub entries: usize,
    /// What its new pages replace.
    pub replacement: Replacement,
    /// Entries of the set-associative TLB, whose sets replace the least recently used page. The set is chosen by the
    /// page's number in its own size.
    pub set_entries: usize,
    /// Its ways.
    pub ways: usize,
    /// Where it stands.
    pub arrangement: Arrangement,
}

impl Design {
    /// That of a machine's description.
    #[must_use]
    pub fn of(tlb: &Tlb) -> Design {
        Design {
            entries: tlb.l1_entries as usize,
            replacement: if tlb.l1_lru { Replacement::Lru } else { Replacement::Fifo },
            set_entries: tlb.l2_entries as usize,
            ways: tlb.l2_ways as usize,
            arrangement: match tlb.l2_beside.as_slice() {
                [] => Arrangement::Behind,
                served => Arrangement::Beside(served.to_vec()),
            },
        }
    }
}

/// What is to be found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Page sizes, bytes: powers of two, ascending.
    pub sizes: Vec<u64>,
    /// Number of segments.
    pub segments: usize,
    /// Which sizes each segment may have, as a mask over `sizes`; those beyond its end may have all.
    pub allowed: Vec<u8>,
    /// Most lanes before the worst are given up.
    pub lanes: usize,
    /// Assignments that are never given up: for each segment the place of its size in `sizes`.
    pub keep: Vec<Vec<usize>>,
    /// What an access costs that the first TLB misses, and what one costs that needs a table walk besides that, in one
    /// unit: by this lanes are compared when some are given up.
    pub costs: [u64; 2],
}

/// An access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Its address, below 2^56.
    pub addr: u64,
    /// The number of the segment it lies in.
    pub segment: u8,
}

/// Misses under one assignment, by segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of the fully associative TLB.
    pub first: [u64; SEGMENTS],
    /// Of the set-associative TLB.
    pub second: [u64; SEGMENTS],
    /// Accesses that no TLB had the page of.
    pub walks: [u64; SEGMENTS],
    /// Whether this is all; otherwise it is what there was until the assignment was given up.
    pub exact: bool,
}

/// What cannot be asked.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Page sizes that are none.
    #[error("page sizes must be 1 to {SIZES} ascending powers of two from 2 bytes to 2^55; these are {0:?}")]
    Sizes(Vec<u64>),
    /// Too many or no segments.
    #[error("there can be 1 to {SEGMENTS} segments, not {0}; join some")]
    Segments(usize),
    /// A fully associative TLB of a size that is not there.
    #[error("a fully associative TLB has 1 to {ENTRIES} entries, not {0}")]
    Entries(usize),
    /// Sets that are none.
    #[error("a TLB of {entries} entries and {ways} ways: ways must be 1 to {WAYS}, and sets a power of two")]
    Ways {
        /// Entries asked for.
        entries: usize,
        /// Ways asked for.
        ways: usize,
    },
    /// A size served by the set-associative TLB that is not asked about.
    #[error("the set-associative TLB serves pages of {0} bytes, which are not among the sizes asked about")]
    Served(u64),
    /// An assignment that does not fit.
    #[error("an assignment has the place of a page size for each segment; {0:?} does not fit")]
    Assignment(Vec<usize>),
    /// A segment without a size.
    #[error("segment {0} may have none of the page sizes asked about; allow it one")]
    Allowed(usize),
    /// No room for lanes.
    #[error("the number of lanes must be above that of the assignments that are kept ({0})")]
    Lanes(usize),
}

/// An analysis under way.
pub struct Analysis {
    sizes: Sizes,
    segments: usize,
    design: Design,
    /// What is asked about.
    all: Choice,
    limit: Limit,
    filter: Filter,
    lanes: Lanes,
    /// The set-associative TLB, when it stands beside the other.
    beside: Option<SetAssociative>,
    /// Up to when it has seen touches of pages.
    sets_touched: u64,
    given_up: Vec<Lane>,
    direct: Direct,
    /// Accesses that lanes will see in a row.
    rows: Rows,
}

impl Analysis {
    /// An analysis that has seen nothing.
    ///
    /// # Errors
    /// When the question or the design is outside what can be analysed.
    pub fn new(design: &Design, question: &Question) -> Result<Analysis, Error> {
        let sizes = Sizes::new(&question.sizes).ok_or_else(|| Error::Sizes(question.sizes.clone()))?;
        if question.segments == 0 || question.segments > SEGMENTS {
            return Err(Error::Segments(question.segments));
        }
        if design.entries == 0 || design.entries > ENTRIES {
            return Err(Error::Entries(design.entries));
        }
        let Design { set_entries, ways, .. } = *design;
        if ways == 0 || ways > WAYS || set_entries % ways != 0 || !(set_entries / ways).is_power_of_two() {
            return Err(Error::Ways { entries: set_entries, ways });
        }
        let mut served = 0;
        if let Arrangement::Beside(list) = &design.arrangement {
            for &bytes in list {
                served |= 1 << question.sizes.iter().position(|&size| size == bytes).ok_or(Error::Served(bytes))?;
            }
        }
        let all = Choice::all(question.segments, question.sizes.len(), &question.allowed);
        if let Some(segment) = all.0.iter().position(|&mask| mask == 0) {
            return Err(Error::Allowed(segment));
        }
        let keep = question.keep.iter().map(|one| singleton(one, question)).collect::<Result<Vec<Choice>, Error>>()?;
        if question.lanes <= keep.len() {
            return Err(Error::Lanes(keep.len()));
        }
        let sets = || SetAssociative::new(set_entries / ways, ways, question.segments, all, sizes);
        let behind = design.arrangement == Arrangement::Behind;
        let first = Lane::new(all, design.entries, behind.then(sets));
        Ok(Analysis {
            sizes,
            segments: question.segments,
            design: design.clone(),
            limit: Limit::of(question, keep),
            filter: Filter::new(sizes.smallest()),
            lanes: Lanes::new(first, design.replacement, served),
            beside: (!behind).then(sets),
            sets_touched: 0,
            given_up: Vec::new(),
            all,
            direct: Direct::default(),
            rows: Rows::new(&sizes),
        })
    }

    /// Takes accesses in their order. Those whose segment was not announced count in the last one.
    pub fn accesses(&mut self, accesses: &[Access]) {
        accesses.iter().for_each(|&access| self.access(access));
    }

    /// Takes one access.
    #[inline(always)]
    pub fn access(&mut self, access: Access) {
        let key = self.key(access);
        if self.filter.passes(key) {
            return;
        }
        if !self.direct.on {
            return self.look_up(key);
        }
        if self.rows.push(key) {
            self.see_rows();
        }
    }

    #[inline(always)]
    fn key(&self, access: Access) -> Key {
        Key::new(usize::from(access.segment).min(self.segments - 1), access.addr)
    }

    /// All TLBs see the accesses that wait, of which nothing is known.
    #[inline(never)]
    fn see_rows(&mut self) {
        let Analysis { rows, lanes, sizes, filter, beside, limit, given_up, .. } = self;
        let (accesses, before, served) = (rows.len(), lanes.len(), lanes.served());
        let shared = direct::shares(accesses * before) > 1;
        rows.number(shared);
        let mut touch = || {
            let Some(sets) = beside else { return };
            let mut last = Key::NONE;
            for &key in rows.filled().iter().flat_map(Row::keys) {
                // What is touched twice in a row is where it was.
                if served & !sizes.holding(key.apart(last)) != 0 {
                    sets.touch(key, served, |_, _| ());
                }
                last = key;
            }
        };
        let mut see = || lanes.see(rows.filled(), sizes, filter, limit);
        let (missed, gone) = if shared { rayon::join(see, touch).0 } else { (see(), touch()).0 };
        given_up.extend(gone);
        rows.clear(lanes.len() == before);
        filter.seen_elsewhere(accesses as u64);
        let looked_up = missed.accesses.min(accesses as u64);
        self.direct.on = self.direct.wanted(looked_up, missed.lanes, filter.now(), before);
        if self.limit.exceeded(self.lanes.len()) {
            self.give_up_worst();
        }
    }

    /// From now on all TLBs see all accesses.
    #[cold]
    fn begin_directly(&mut self) {
        self.catch_up();
        self.filter.forget();
        self.direct.on = true;
    }

    #[inline(never)]
    fn look_up(&mut self, key: Key) {
        let slot = self.lanes.open(key, &self.sizes, &mut self.filter);
        self.touch_forgotten();
        let lanes = self.lanes.len();
        let missed = self.lanes.look_up(slot, key, &self.sizes, &mut self.filter);
        if self.beside.is_some() && !self.filter.in_sets(slot) {
            self.touch_sets(key);
        }
        self.filter.close(slot);
        if self.limit.exceeded(self.lanes.len()) {
            self.give_up_worst();
        }
        if self.direct.wanted(1, missed, self.filter.now(), lanes) {
            self.begin_directly();
        }
    }

    /// TLBs that have not seen the last touch of the page that was forgotten see it.
    fn touch_forgotten(&mut self) {
        let Some((time, key, apart)) = self.filter.forgotten() else { return };
        if self.design.replacement == Replacement::Lru {
            self.lanes.touch_all(time, key, apart, &self.sizes);
        }
        if self.beside.is_some() && self.sets_touched < time {
            self.sets_see(time, key);
        }
    }

    /// The TLB beside the lanes sees an access, after all that it has not seen yet.
    fn touch_sets(&mut self, key: Key) {
        self.catch_up_sets();
        self.sets_see(self.sets_touched, key);
    }

    /// The TLB beside the lanes sees what it has not seen yet.
    fn catch_up_sets(&mut self) {
        loop {
            let next = self.filter.touched_after(self.sets_touched).next();
            let Some((time, key)) = next else { return };
            self.sets_see(time, key);
        }
    }

    fn sets_see(&mut self, time: u64, key: Key) {
        self.sets_touched = time;
        if let Some(sets) = &mut self.beside {
            let evicted = |key, shift| self.filter.evicted(None, key, shift);
            sets.touch(key, self.lanes.served(), evicted);
        }
    }

    /// All TLBs see what they have not seen yet.
    fn catch_up(&mut self) {
        if self.design.replacement == Replacement::Lru {
            self.lanes.catch_up_all(&self.sizes, &mut self.filter);
        }
        if self.beside.is_some() {
            self.catch_up_sets();
        }
    }

    /// Gives up the half of the lanes that cost most so far, but none that has an assignment to be kept.
    #[cold]
    fn give_up_worst(&mut self) {
        self.catch_up();
        let mut lanes = self.lanes.take();
        self.given_up.extend(self.limit.give_up(&mut lanes, |lane| lane));
        self.lanes.put(lanes);
        self.filter.forget();
    }

    /// What has been found out.
    #[must_use]
    pub fn finish(mut self) -> Answer {
        if self.rows.len() > 0 {
            self.see_rows();
        }
        Answer::new(self)
    }
}

fn singleton(assignment: &[usize], question: &Question) -> Result<Choice, Error> {
    let fits = assignment.len() == question.segments && assignment.iter().all(|&size| size < question.sizes.len());
    fits.then(|| Choice::one(assignment)).ok_or_else(|| Error::Assignment(assignment.to_vec()))
}
