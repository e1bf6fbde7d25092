//! Bulk mode, for phases in which most accesses miss. Knowing what classes hold does not help there, so every class
//! processes every access, in batches. Work that does not depend on the class is done once for a batch (`batch`) or for a
//! group of classes (`group`). Classes are distributed to workers, one for each host processor, each of which takes its
//! classes through several batches (`worker`).

pub mod batch;
pub mod batches;
mod fifo_group;
mod group;
mod shared_l2tlb;
mod sharing;
mod worker;

use rayon::prelude::*;

use crate::budget::Budget;
use crate::bulk::batch::{Batch, MOST_ACCESSES};
use crate::bulk::group::{GROUP_SIZE, Missed, Rules};
use crate::bulk::worker::Worker;
use crate::class::{Class, Classes};
use crate::hit_filter::HitFilter;
use crate::size_masks::PageSizes;

/// Accesses between two decisions whether to use bulk mode.
const WINDOW: u64 = 1024;
/// Class-accesses (accesses times classes) from which other processors help: far more work than waking them takes.
const PARALLEL_FROM: usize = 8 * MOST_ACCESSES;

/// Cost of a look-up in the filter, and of each class's miss after it, in nanoseconds (measured, like all costs here).
const LOOK_UP: u64 = 150;
const MISS: u64 = 45;
/// Cost of an access in bulk mode: once for all classes, for each group of classes, and for each class that misses.
const BULK_ACCESS: u64 = 15;
const BULK_GROUP_ACCESS: u64 = 18;
const BULK_MISS: u64 = 10;
/// Required speedup of bulk mode. With 1, sweeps under 64 classes take twice as long.
const PAYS: u64 = 2;

/// Returns the number of workers for `accesses` class-accesses.
pub fn workers_for(accesses: usize) -> usize {
    if accesses < PARALLEL_FROM { 1 } else { rayon::current_num_threads() }
}

/// Whether accesses are processed in bulk.
#[derive(Default)]
pub struct BulkMode {
    pub on: bool,
    /// Access count at the last decision.
    since: u64,
    /// Accesses looked up since then, and misses of all classes.
    looked_up: u64,
    missed: u64,
}

impl BulkMode {
    /// Decides whether to use bulk mode from now on, that is, whether it is faster. `accesses` is the total so far;
    /// `looked_up` accesses were (or, in bulk mode, would have been) looked up since the last call, with `missed`
    /// misses of all classes.
    pub fn decide(&mut self, looked_up: u64, missed: u64, accesses: u64, classes: usize) -> bool {
        self.looked_up += looked_up;
        self.missed += missed;
        let window = accesses - self.since;
        if window < WINDOW {
            return self.on;
        }
        // Bulk mode spreads the classes over the host's processors, as far as there are enough of them.
        let workers = workers_for(MOST_ACCESSES * classes).min(classes);
        let groups = classes.div_ceil(GROUP_SIZE).max(workers) as u64;
        let shared = window * groups * BULK_GROUP_ACCESS + self.missed * BULK_MISS;
        let in_bulk = window * BULK_ACCESS + shared / workers as u64;
        // Passing batches to other processors takes time, too, and so does relearning what classes hold when few accesses
        // miss again.
        let faster = PAYS * in_bulk < self.looked_up * LOOK_UP + self.missed * MISS;
        (self.since, self.looked_up, self.missed) = (accesses, 0, 0);
        faster
    }
}

impl Classes {
    /// Every class processes all accesses of the batches in order. Returns the misses and the classes that were
    /// dropped. Invalidates what the filter knew.
    pub fn access(
        &mut self,
        batches: &[Batch],
        sizes: &PageSizes,
        filter: &mut HitFilter,
        budget: &Budget,
    ) -> (Missed, Vec<Class>) {
        let rules = Rules { replacement: self.replacement(), sizes, l2_only: self.l2_only() };
        let classes = self.take();
        let (before, accesses) = (classes.len(), batches.iter().map(|batch| batch.keys().len()).sum::<usize>());
        let mut workers = Worker::distribute(classes, workers_for(accesses * before));
        let access = |worker: &mut Worker| worker.access(batches, &rules, budget);
        let missed = match workers.as_mut_slice() {
            [worker] => access(worker),
            workers => workers.par_iter_mut().map(access).reduce(Missed::default, Missed::merge_classes),
        };
        let (classes, dropped) = Worker::collect(workers);
        match classes.len() == before && dropped.is_empty() {
            true => self.put_back(classes),
            false => {
                filter.reserve(classes.len());
                self.put(classes);
            }
        }
        (missed, dropped)
    }
}
