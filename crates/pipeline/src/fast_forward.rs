//! Fast-forwards N identical iterations of a loop.
//!
//! The caller has observed that each iteration of a loop takes the same time and counts the same. Then the state of the
//! core after more iterations is the current state at a later time, and the counts are a multiple of those of one
//! iteration. What is in flight and affects later operations moves along. Stores, misses and divisions, which such
//! loops do not have, are complete by then.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals, Stalls};

use crate::bind::{BoundBlock, Profile};
use crate::bypass::PIPES;
use crate::core::Pipeline;

/// The raw counts of a core, from which [`Pipeline::counters`] follow.
#[derive(Clone, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Tally {
    signals: Signals,
    stalls: Stalls,
    started: [u64; PIPES],
    busy: [u64; 2],
}

impl Tally {
    /// The counts since `earlier`, an earlier state of the same core.
    #[must_use]
    pub fn since(&self, earlier: &Tally) -> Tally {
        Tally {
            signals: self.signals.since(&earlier.signals),
            stalls: std::array::from_fn(|i| self.stalls[i] - earlier.stalls[i]),
            started: std::array::from_fn(|i| self.started[i] - earlier.started[i]),
            busy: std::array::from_fn(|i| self.busy[i] - earlier.busy[i]),
        }
    }

    /// Whether there was no request to shared resources, and no count caused by other cores.
    #[must_use]
    pub fn is_private(&self) -> bool {
        const SHARED: [Signal; 9] = [
            Signal::L1dCacheRefill,
            Signal::L1iCacheRefill,
            Signal::L1dCacheWb,
            Signal::L2dCache,
            Signal::L2dCacheWb,
            Signal::L2PipeVal,
            Signal::BusWriteTotalMem,
            Signal::L2dTlb,
            Signal::L2iTlb,
        ];
        SHARED.iter().all(|&signal| self.signals.get(signal) == 0)
    }
}

/// The counts of a block's instructions.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct BlockTally {
    executions: u64,
    known: u64,
    profile: Box<[Profile]>,
}

impl BlockTally {
    /// The counts since `earlier`, an earlier state of the same block.
    #[must_use]
    pub fn since(&self, earlier: &BlockTally) -> BlockTally {
        let mut profile = self.profile.clone();
        profile.iter_mut().zip(&earlier.profile).for_each(|(now, before)| now.subtract(before));
        BlockTally { executions: self.executions - earlier.executions, known: self.known - earlier.known, profile }
    }
}

impl BoundBlock {
    /// The counts of its instructions so far.
    #[must_use]
    pub fn tally(&self) -> BlockTally {
        BlockTally { executions: self.executions, known: self.known, profile: self.profile.clone() }
    }

    /// Adds the instruction mix of the executions in `tally`.
    pub fn add_mix_of(&self, tally: &BlockTally, signals: &mut Signals) {
        self.tables.mix.add_to(signals, tally.executions);
    }

    /// Adds the counts `each`, `times` times.
    pub fn fast_forward(&mut self, each: &BlockTally, times: u64) {
        self.executions += each.executions * times;
        self.known += each.known * times;
        self.profile.iter_mut().zip(&each.profile).for_each(|(sum, each)| sum.add_times(each, times));
    }
}

impl Pipeline {
    /// The counts so far.
    #[must_use]
    pub fn tally(&self) -> Tally {
        Tally {
            signals: self.signals.clone(),
            stalls: self.commit.stalls,
            started: self.started,
            busy: self.memory.pipes.busy(),
        }
    }

    /// The most iterations in flight of a loop of `instructions` instructions.
    #[must_use]
    pub fn iterations_in_flight(&self, instructions: usize) -> usize {
        self.dispatch.iterations_in_flight(instructions)
    }

    /// `cycles` cycles with the counts `each` pass, `times` times. Then the state is the current one, later.
    pub fn fast_forward(&mut self, cycles: Cycle, each: &Tally, times: u64) {
        self.signals.add_times(&each.signals, times);
        let add = |sums: &mut [u64], each: &[u64]| sums.iter_mut().zip(each).for_each(|(sum, n)| *sum += n * times);
        add(&mut self.commit.stalls, &each.stalls);
        add(&mut self.started, &each.started);
        self.memory.pipes.add_busy(each.busy.map(|busy| busy * times));
        let later = cycles * times;
        self.front.fast_forward(later);
        self.dispatch.fast_forward(later);
        self.commit.fast_forward(later);
        self.lsu.fast_forward(later);
        self.memory.pipes.fast_forward(later);
        self.pipes.iter_mut().for_each(|pipe| pipe.fast_forward(later));
        self.values.iter_mut().for_each(|value| value.there += later);
    }
}
