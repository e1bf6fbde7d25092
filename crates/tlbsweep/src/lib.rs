//! TLB misses of every assignment of page sizes to segments, from one pass over a program's accesses ([`Analysis`]).
//!
//! # How
//!
//! Page sizes nest: an access that hits with one size hits with every larger size. Assignments whose accesses have all
//! had the same outcome so far have missed at the same accesses, so their TLBs hold the same list of addresses, and
//! each assignment sees the pages of its own sizes at these addresses. They are simulated together as one equivalence
//! *class*: the list of addresses, and for each segment the set of page sizes that the class stands for (`SizeMasks`).
//! A class splits when an access hits with some of its sizes and misses with others. At the start all assignments are
//! one class. Sizes with which a segment fits into one page never split.
//!
//! The sets of a set-associative TLB are independent. Each set splits on its own, when different sizes map a page to
//! different sets or when outcomes differ within the set (`SetAssociative`).
//!
//! Accesses to pages that a class is known to hold are skipped for that class (`HitFilter`). When too many accesses
//! miss for this to pay, accesses are processed in bulk (`BulkMode`).
//!
//! # What is exact
//!
//! Everything: FIFO and LRU, fully associative and set-associative, with two levels or with TLBs split by page size.
//! Counts equal those of a separate simulation of each assignment. Time and memory grow with the number of classes,
//! which is at most the number of assignments. When there are more classes than allowed, the costliest are dropped:
//! their counts stop there and are lower bounds ([`Counts::exact`] is false). Assignments named in
//! [`SweepOptions::keep`] are never dropped.
//!
//! # How fast
//!
//! `cargo run --profile fast -p fxscope-tlbsweep --example speed` prints the speed for six streams, five page sizes (K:
//! four) and six segments. An access to a page that all classes hold takes a few nanoseconds. Where most accesses miss,
//! classes process batches of 2,047 accesses (`bulk`), and each host processor takes a share of the classes through up
//! to 64 batches (`worker`). Classes with one size for the segment that misses most have nearly identical second-level
//! TLBs, which then process most accesses only once (`sharing`). On two processors of a cloud machine (AMD EPYC at 2.4
//! GHz), for A64FX and for the K computer, in millions of accesses per second (classes in parentheses), medians of
//! three runs:
//!
//! | Stream | A64FX | A64FX, from 64 KiB on | K |
//! |---|---|---|---|
//! | sweeps of three arrays beside a frame, a table and code | 45 (424) | 415 (64) | 17 (380) |
//! | blocks of 256 KiB in random order | 245 (16) | 546 (4) | 223 (48) |
//! | one access in 100 anywhere in 256 MiB | 64 (25) | 110 (16) | 61 (32) |
//! | a gather: an index, anywhere in 1 GiB, a result | 13 (120) | 19 (77) | 15 (64) |
//! | each access misses in some class | 24 (3) | 46 (3) | 51 (3) |
//! | each access misses in most classes | 12 (25) | 17 (16) | 14 (16) |
//!
//! # What is assumed
//!
//! Segments do not share pages. Nothing is unmapped, and TLBs are not flushed when address spaces change.

mod bit_matrix;
mod budget;
mod bulk;
mod class;
mod counters;
mod hit_filter;
mod results;
mod set_associative;
mod size_masks;

use fxscope_machine::spec::{Tlb, TlbReplacement};
use thiserror::Error;

use budget::Budget;
use bulk::BulkMode;
use bulk::batch::Batch;
use bulk::batches::Batches;
use class::{Class, Classes};
use hit_filter::HitFilter;
pub use results::SweepResults;
use set_associative::SetAssociative;
use size_masks::{Key, PageSizes, SizeMasks};

/// Maximum number of segments.
pub const SEGMENTS: usize = 32;
/// Maximum number of page sizes.
pub const SIZES: usize = 8;
/// Maximum number of entries of a fully associative TLB.
pub const ENTRIES: usize = 256;
/// Maximum number of ways of a set-associative TLB.
pub const WAYS: usize = 8;

/// Replacement policy of a fully associative TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// First in, first out.
    Fifo,
    /// Least recently used.
    Lru,
}

/// How the set-associative TLB relates to the fully associative one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Second level: accessed when the fully associative TLB misses; pages are filled into both.
    TwoLevel,
    /// Holds pages of these sizes (bytes) exclusively; the fully associative TLB holds all other pages.
    SplitBySize(Vec<u64>),
}

/// The TLBs of one core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlbConfig {
    /// Entries of the fully associative TLB.
    pub entries: usize,
    /// Replacement policy of the fully associative TLB.
    pub replacement: Replacement,
    /// Entries of the set-associative TLB. Its sets use LRU replacement; the set is chosen by the number of the page in
    /// its own size.
    pub set_entries: usize,
    /// Ways of the set-associative TLB.
    pub ways: usize,
    /// How the two TLBs are arranged.
    pub arrangement: Arrangement,
}

impl TlbConfig {
    /// Returns the TLBs that a machine description defines.
    #[must_use]
    pub fn of(tlb: &Tlb) -> TlbConfig {
        TlbConfig {
            entries: tlb.l1_entries as usize,
            replacement: match tlb.l1_replacement {
                TlbReplacement::Lru => Replacement::Lru,
                TlbReplacement::Fifo => Replacement::Fifo,
            },
            set_entries: tlb.l2_entries as usize,
            ways: tlb.l2_ways as usize,
            arrangement: match tlb.l2_only_sizes.as_slice() {
                [] => Arrangement::TwoLevel,
                l2_only => Arrangement::SplitBySize(l2_only.to_vec()),
            },
        }
    }
}

/// What to analyse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SweepOptions {
    /// Page sizes in bytes: powers of two, ascending.
    pub sizes: Vec<u64>,
    /// Number of segments.
    pub segments: usize,
    /// Sizes that each segment may use, as a mask over `sizes`. Segments beyond the end of the list may use all.
    pub allowed: Vec<u8>,
    /// Maximum number of classes; beyond it the costliest are dropped.
    pub max_classes: usize,
    /// Assignments that are never dropped: for each segment the index of its size in `sizes`.
    pub keep: Vec<Vec<usize>>,
    /// Cost of a first-level miss, and additional cost of a table walk, in the same unit. Decides which classes are
    /// dropped.
    pub costs: [u64; 2],
}

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Address, below 2^56.
    pub addr: u64,
    /// Segment that the address lies in.
    pub segment: u8,
}

/// Misses under one assignment, by segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Misses of the fully associative TLB.
    pub first: [u64; SEGMENTS],
    /// Misses of the set-associative TLB.
    pub second: [u64; SEGMENTS],
    /// Table walks: accesses whose page is in neither TLB.
    pub walks: [u64; SEGMENTS],
    /// Whether the counts cover all accesses; otherwise they end where the assignment was dropped.
    pub exact: bool,
}

/// Why an analysis cannot be set up.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Invalid page sizes.
    #[error("page sizes must be 1 to {SIZES} ascending powers of two from 2 bytes to 2^55; these are {0:?}")]
    PageSizes(Vec<u64>),
    /// No segments, or too many.
    #[error("there can be 1 to {SEGMENTS} segments, not {0}; combine some")]
    Segments(usize),
    /// Unsupported number of entries of the fully associative TLB.
    #[error("a fully associative TLB has 1 to {ENTRIES} entries, not {0}")]
    Entries(usize),
    /// Unsupported geometry of the set-associative TLB.
    #[error("a TLB of {entries} entries and {ways} ways: ways must be 1 to {WAYS}, and sets a power of two")]
    Ways {
        /// Requested entries.
        entries: usize,
        /// Requested ways.
        ways: usize,
    },
    /// The set-associative TLB holds a size that is not analysed.
    #[error("the set-associative TLB serves pages of {0} bytes, which are not among the analysed sizes")]
    L2Only(u64),
    /// An assignment that does not fit the segments and sizes.
    #[error("an assignment has the index of a page size for each segment; {0:?} does not fit")]
    Assignment(Vec<usize>),
    /// A segment without an allowed size.
    #[error("segment {0} is allowed none of the page sizes; allow at least one")]
    Allowed(usize),
    /// Too few classes for the assignments that are kept.
    #[error("the number of classes must exceed the number of assignments that are kept ({0})")]
    MaxClasses(usize),
}

/// An analysis in progress.
pub struct Analysis {
    sizes: PageSizes,
    segments: usize,
    config: TlbConfig,
    /// All assignments that are analysed.
    all: SizeMasks,
    budget: Budget,
    filter: HitFilter,
    classes: Classes,
    /// The set-associative TLB, if TLBs are split by page size.
    split_l2: Option<SetAssociative>,
    /// Time up to which `split_l2` has processed touches of pages.
    l2_touched: u64,
    dropped: Vec<Class>,
    bulk: BulkMode,
    /// Accesses waiting to be processed in bulk.
    batches: Batches,
}

impl Analysis {
    /// Starts an analysis with empty TLBs.
    ///
    /// # Errors
    /// If the options or the TLBs are outside the supported limits.
    pub fn new(config: &TlbConfig, options: &SweepOptions) -> Result<Analysis, Error> {
        let sizes = PageSizes::new(&options.sizes).ok_or_else(|| Error::PageSizes(options.sizes.clone()))?;
        if options.segments == 0 || options.segments > SEGMENTS {
            return Err(Error::Segments(options.segments));
        }
        if config.entries == 0 || config.entries > ENTRIES {
            return Err(Error::Entries(config.entries));
        }
        let TlbConfig { set_entries, ways, .. } = *config;
        if ways == 0 || ways > WAYS || set_entries % ways != 0 || !(set_entries / ways).is_power_of_two() {
            return Err(Error::Ways { entries: set_entries, ways });
        }
        let mut l2_only = 0;
        if let Arrangement::SplitBySize(list) = &config.arrangement {
            for &bytes in list {
                l2_only |= 1 << options.sizes.iter().position(|&size| size == bytes).ok_or(Error::L2Only(bytes))?;
            }
        }
        let all = SizeMasks::all(options.segments, options.sizes.len(), &options.allowed);
        if let Some(segment) = all.0.iter().position(|&mask| mask == 0) {
            return Err(Error::Allowed(segment));
        }
        let keep = options.keep.iter().map(|one| singleton(one, options)).collect::<Result<Vec<SizeMasks>, Error>>()?;
        if options.max_classes <= keep.len() {
            return Err(Error::MaxClasses(keep.len()));
        }
        let sets = || SetAssociative::new(set_entries / ways, ways, options.segments, all, sizes);
        let two_level = config.arrangement == Arrangement::TwoLevel;
        let first = Class::new(all, config.entries, two_level.then(sets));
        Ok(Analysis {
            sizes,
            segments: options.segments,
            config: config.clone(),
            budget: Budget::of(options, keep),
            filter: HitFilter::new(sizes.smallest()),
            classes: Classes::new(first, config.replacement, l2_only),
            split_l2: (!two_level).then(sets),
            l2_touched: 0,
            dropped: Vec::new(),
            all,
            bulk: BulkMode::default(),
            batches: Batches::new(&sizes),
        })
    }

    /// Processes accesses in program order. Accesses to a segment beyond the last are counted in the last.
    pub fn accesses(&mut self, accesses: &[Access]) {
        accesses.iter().for_each(|&access| self.access(access));
    }

    /// Processes one access.
    #[inline(always)]
    pub fn access(&mut self, access: Access) {
        let key = self.key(access);
        if self.filter.hits_all(key) {
            return;
        }
        if !self.bulk.on {
            return self.look_up(key);
        }
        if self.batches.push(key) {
            self.flush_batches();
        }
    }

    #[inline(always)]
    fn key(&self, access: Access) -> Key {
        Key::new(usize::from(access.segment).min(self.segments - 1), access.addr)
    }

    /// Processes the waiting accesses in all TLBs. Nothing is known about them yet.
    #[inline(never)]
    fn flush_batches(&mut self) {
        let Analysis { batches, classes, sizes, filter, split_l2, budget, dropped, .. } = self;
        let (accesses, before, l2_only) = (batches.len(), classes.len(), classes.l2_only());
        let shared = bulk::workers_for(accesses * before) > 1;
        batches.number(shared);
        let mut touch = || {
            let Some(sets) = split_l2 else { return };
            let mut last = Key::NONE;
            for &key in batches.filled().iter().flat_map(Batch::keys) {
                // A page touched twice in succession stays where it is.
                if l2_only & !sizes.holding(key.distance(last)) != 0 {
                    sets.touch(key, l2_only, |_, _| ());
                }
                last = key;
            }
        };
        let mut access = || classes.access(batches.filled(), sizes, filter, budget);
        let (missed, gone) = if shared { rayon::join(access, touch).0 } else { (access(), touch()).0 };
        dropped.extend(gone);
        batches.clear(classes.len() == before);
        filter.advance(accesses as u64);
        let looked_up = missed.accesses.min(accesses as u64);
        self.bulk.on = self.bulk.decide(looked_up, missed.misses, filter.now(), before);
        if self.budget.exceeded(self.classes.len()) {
            self.drop_costliest();
        }
    }

    /// Switches to bulk mode: all TLBs process all accesses.
    #[cold]
    fn begin_bulk(&mut self) {
        self.catch_up();
        self.filter.clear();
        self.bulk.on = true;
    }

    #[inline(never)]
    fn look_up(&mut self, key: Key) {
        let slot = self.classes.open(key, &self.sizes, &mut self.filter);
        self.touch_displaced();
        let classes = self.classes.len();
        let missed = self.classes.look_up(slot, key, &self.sizes, &mut self.filter);
        if self.split_l2.is_some() && !self.filter.in_l2(slot) {
            self.touch_l2(key);
        }
        self.filter.mark_held(slot);
        if self.budget.exceeded(self.classes.len()) {
            self.drop_costliest();
        }
        if self.bulk.decide(1, missed, self.filter.now(), classes) {
            self.begin_bulk();
        }
    }

    /// Applies the last touch of a page that lost its slot in the filter to TLBs that have not processed it.
    fn touch_displaced(&mut self) {
        let Some((time, key, distance)) = self.filter.displaced() else { return };
        if self.config.replacement == Replacement::Lru {
            self.classes.touch_all(time, key, distance, &self.sizes);
        }
        if self.split_l2.is_some() && self.l2_touched < time {
            self.l2_access(time, key);
        }
    }

    /// Processes an access in the split TLB, after all pending ones.
    fn touch_l2(&mut self, key: Key) {
        self.catch_up_l2();
        self.l2_access(self.l2_touched, key);
    }

    /// Processes the pending accesses in the split TLB.
    fn catch_up_l2(&mut self) {
        loop {
            let next = self.filter.touched_after(self.l2_touched).next();
            let Some((time, key)) = next else { return };
            self.l2_access(time, key);
        }
    }

    fn l2_access(&mut self, time: u64, key: Key) {
        self.l2_touched = time;
        if let Some(sets) = &mut self.split_l2 {
            let evicted = |key, shift| self.filter.evicted(None, key, shift);
            sets.touch(key, self.classes.l2_only(), evicted);
        }
    }

    /// Processes all pending accesses in all TLBs.
    fn catch_up(&mut self) {
        if self.config.replacement == Replacement::Lru {
            self.classes.catch_up_all(&self.sizes, &mut self.filter);
        }
        if self.split_l2.is_some() {
            self.catch_up_l2();
        }
    }

    /// Drops the costlier half of the classes, except those with an assignment to keep.
    #[cold]
    fn drop_costliest(&mut self) {
        self.catch_up();
        let mut classes = self.classes.take();
        self.dropped.extend(self.budget.drop_costliest(&mut classes, |class| class));
        self.classes.put(classes);
        self.filter.clear();
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn so_far(&mut self) -> SweepResults {
        if self.batches.len() > 0 {
            self.flush_batches();
        }
        SweepResults::so_far(self)
    }

    /// Ends the analysis and returns the counts.
    #[must_use]
    pub fn finish(mut self) -> SweepResults {
        if self.batches.len() > 0 {
            self.flush_batches();
        }
        SweepResults::new(self)
    }
}

fn singleton(assignment: &[usize], options: &SweepOptions) -> Result<SizeMasks, Error> {
    let fits = assignment.len() == options.segments && assignment.iter().all(|&size| size < options.sizes.len());
    fits.then(|| SizeMasks::one(assignment)).ok_or_else(|| Error::Assignment(assignment.to_vec()))
}
