//! Decides which classes share a second-level TLB. Where one segment misses most, classes with the same size for it
//! have nearly identical second-level TLBs: they differ only in the few sets with pages of other segments, and in pages
//! not used for long. They process their misses together.

use crate::bit_matrix::ones;
use crate::bulk::batch::Batch;
use crate::bulk::group::Rules;
use crate::bulk::shared_l2tlb::SharedL2Tlb;
use crate::class::Class;
use crate::counters::BitSlicedCounters;
use crate::{SEGMENTS, SIZES};

/// With fewer classes, sharing does not pay. Like the following constants, this affects only speed, not counts.
const MIN_CLASSES: u32 = 4;
/// At most one in this many misses may be at an access that not all classes miss.
const COMMON_PART: u32 = 4;
/// One in this many accesses is sampled.
const SAMPLE_STEP: usize = 7;
/// With fewer misses per class in a batch, sharing does not pay.
const MIN_MISSES: u32 = 128;
/// Batches after which common contents are determined again, since sets that were distinguished may be equal again.
const REEXAMINE_AFTER: u32 = 8;

/// An access that some classes missed.
#[derive(Clone, Copy, Default)]
pub struct Miss {
    /// Position in the batch.
    pub access: u16,
    /// Bit mask of the classes.
    pub classes: u64,
}

/// What a group of classes missed in a batch.
#[derive(Clone, Copy)]
pub struct BatchMisses<'a, 'b> {
    pub batch: &'a Batch,
    pub rules: &'a Rules<'b>,
    /// The accesses that some class missed.
    pub missed: &'a [Miss],
    /// For each segment and size, the classes that have it.
    pub with: &'a [[u64; SIZES]; SEGMENTS],
}

impl BatchMisses<'_, '_> {
    /// The segment with the most misses, from a sample.
    fn main_segment(&self) -> usize {
        let (at, mut misses) = (self.batch.key_of_access(), [0; SEGMENTS]);
        let some = self.missed.iter().step_by(SAMPLE_STEP);
        some.for_each(|miss| misses[at(miss.access).segment()] += miss.classes.count_ones());
        (0..SEGMENTS).max_by_key(|&segment| misses[segment]).unwrap_or(0)
    }

    /// Returns whether classes miss often enough, and mostly together at accesses to the segment `main`.
    fn mostly_common(&self, classes: u64, main: usize) -> bool {
        let at = self.batch.key_of_access();
        let (mut together, mut all) = (0, 0);
        for miss in self.missed.iter().step_by(SAMPLE_STEP) {
            let missing = miss.classes & classes;
            all += missing.count_ones();
            together += if missing == classes && at(miss.access).segment() == main { classes.count_ones() } else { 0 };
        }
        all > MIN_MISSES / SAMPLE_STEP as u32 * classes.count_ones() && together >= all - all / COMMON_PART
    }
}

/// The classes of a group that share second-level TLBs. Until [`Sharing::write_back`] these classes have none of their
/// own.
#[derive(Default)]
pub struct Sharing {
    /// The segment that misses most.
    main: usize,
    tlbs: Vec<SharedL2Tlb>,
    /// Batches processed since common contents were determined.
    batches: u32,
}

impl Sharing {
    /// Processes the misses of the classes that share; returns the bit mask of these classes.
    #[inline(never)]
    pub fn access(&mut self, classes: &mut [&mut Class], observed: BatchMisses) -> u64 {
        if !self.tlbs.iter().all(|shared| shared.decided(observed.batch))
            || self.batches == REEXAMINE_AFTER && !self.reexamine(observed)
        {
            self.write_back(classes);
        }
        if self.tlbs.is_empty() {
            self.begin(classes, observed);
        }
        if !self.tlbs.is_empty() {
            self.batches += 1;
            self.access_missed(classes, observed);
        }
        self.tlbs.iter().fold(0, |all, shared| all | shared.classes)
    }

    /// Determines which classes share.
    fn begin(&mut self, classes: &mut [&mut Class], observed: BatchMisses) {
        self.main = observed.main_segment();
        for (size, &with) in observed.with[self.main].iter().enumerate() {
            if with.count_ones() < MIN_CLASSES || !observed.mostly_common(with, self.main) {
                continue;
            }
            let mut shared = SharedL2Tlb::new(observed.rules.sizes.shift(size));
            let one_size = |&class: &usize| classes[class].masks.0[self.main].is_power_of_two();
            let with: Vec<usize> = ones(with).filter(one_size).collect();
            with.into_iter().for_each(|class| shared.add(class, classes[class], observed.batch));
            if shared.classes.count_ones() < MIN_CLASSES {
                shared.release(classes);
            } else {
                shared.begin();
                self.tlbs.push(shared);
            }
        }
    }

    /// Determines common contents again; returns `false` if classes no longer miss together.
    fn reexamine(&mut self, observed: BatchMisses) -> bool {
        self.batches = 0;
        let together = self.tlbs.iter().all(|shared| observed.mostly_common(shared.classes, self.main));
        if together {
            for shared in &mut self.tlbs {
                shared.write_back();
                shared.begin();
            }
        }
        together
    }

    /// Processes misses one shared TLB after the other, so that sets stay in the host's caches.
    fn access_missed(&mut self, classes: &mut [&mut Class], observed: BatchMisses) {
        let (at, mut missed) = (observed.batch.key_of_access(), vec![Miss::default(); observed.missed.len() + 1]);
        let mut misses = [BitSlicedCounters::default(); SEGMENTS];
        observed.missed.iter().for_each(|miss| misses[at(miss.access).segment()].add(miss.classes));
        for shared in &mut self.tlbs {
            for class in ones(shared.classes) {
                observed
                    .batch
                    .segments()
                    .for_each(|segment| classes[class].misses[segment] += misses[segment].of(class));
            }
            let mut some = 0;
            for miss in observed.missed {
                missed[some] = Miss { classes: miss.classes & shared.classes, ..*miss };
                some += usize::from(miss.classes & shared.classes != 0);
            }
            let missed = missed[..some].iter().map(|miss| (at(miss.access), miss.classes));
            shared.access_missed(missed, self.main, observed.batch, observed.rules.sizes);
        }
    }

    /// Returns the shared contents to the classes.
    pub fn write_back(&mut self, classes: &mut [&mut Class]) {
        self.batches = 0;
        for mut shared in self.tlbs.drain(..) {
            shared.write_back();
            shared.release(classes);
        }
    }
}
