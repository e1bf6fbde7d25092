//! Counts of a sampled run, in which some blocks are timed in windows and most are only followed.
//!
//! What does not depend on time ([`Signal::is_untimed`]) is counted in windows and between them. The rest are *measures*: sums over
//! the blocks of windows, from which the counts of the whole run are estimated.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals, Stall, Stalls};
use fxscope_memory::Chip;

use crate::bypass::{EXA, PIPES};
use crate::core::Pipeline;

/// Signals that depend on time and are counted one by one; others that do follow from them, from stalls and from pipes.
const COUNTED: [Signal; 32] = [
    Signal::Commit1,
    Signal::Commit2,
    Signal::Commit3,
    Signal::Commit4,
    Signal::L1Pipe0Comp,
    Signal::L1Pipe1Comp,
    Signal::L1Pipe0Inactive,
    Signal::L1Pipe1Inactive,
    Signal::FlaInactive,
    Signal::FlbInactive,
    Signal::L1PipeAbortStldIntlk,
    Signal::L1PipeAbortStldAlias,
    Signal::DivideCycles,
    Signal::SubnormalCycles,
    Signal::Gather2Flow,
    Signal::Gather1Flow,
    Signal::Gather0Flow,
    Signal::Scatter1Flow,
    Signal::L1iCache,
    Signal::L1dCache,
    Signal::L1MissWait,
    Signal::L2dSwapDm,
    Signal::L2dCacheMibmchPrf,
    Signal::L2MissWait,
    Signal::L2MissWaitMainDm,
    Signal::L2MissLoadCycles,
    Signal::L2MissLoadCyclesMain,
    Signal::L2MissLoadBurstsMain,
    Signal::L2MissCodeCyclesMain,
    Signal::L2PipeVal,
    Signal::MainMemoryReadWait,
    Signal::TierReadWait,
];

/// The signals of the pipes in which operations start.
const PIPE_SIGNALS: [Option<Signal>; PIPES] = [
    Some(Signal::ExaVal),
    Some(Signal::ExbVal),
    Some(Signal::EagaVal),
    Some(Signal::EagbVal),
    Some(Signal::FlaVal),
    Some(Signal::FlbVal),
    Some(Signal::PrxVal),
    None,
];

/// The signals of the load/store pipes.
const LOAD_STORE_SIGNALS: [Signal; 2] = [Signal::L1Pipe0Val, Signal::L1Pipe1Val];

/// How many of [`COUNTED`], the first, are cycles with commits.
const COMMITS: usize = 4;

/// Where the parts of [`Measures`] begin.
const STALLS: usize = COUNTED.len();
const STARTED: usize = STALLS + Stall::COUNT;
const BUSY: usize = STARTED + PIPES;
const UNTIMED: usize = BUSY + LOAD_STORE_SIGNALS.len();
const SUBNORMAL: usize = UNTIMED + UNTIMED_SIGNALS.len();

/// Signals that do not depend on time.
const UNTIMED_SIGNALS: [Signal; untimed_signals()] = {
    let (mut signals, mut at, mut i) = ([Signal::BrMisPred; untimed_signals()], 0, 0);
    while i < Signal::ALL.len() {
        if Signal::ALL[i].is_untimed() {
            signals[at] = Signal::ALL[i];
            at += 1;
        }
        i += 1;
    }
    signals
};

const fn untimed_signals() -> usize {
    let (mut number, mut i) = (0, 0);
    while i < Signal::ALL.len() {
        number += Signal::ALL[i].is_untimed() as usize;
        i += 1;
    }
    number
}

/// Counts of a core so far, or of executions of a block: those that depend on time, and those that do not and are estimated only for
/// executions that were neither timed nor followed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Measures(#[serde(with = "fxscope_calendar::array")] [u64; Measures::COUNT]);

impl Default for Measures {
    fn default() -> Measures {
        Measures([0; Measures::COUNT])
    }
}

impl Measures {
    /// The number of measures.
    pub const COUNT: usize = SUBNORMAL + 1;

    /// Returns the counts since `earlier`, an earlier state of the same core.
    #[inline(always)]
    #[must_use]
    pub fn since(&self, earlier: &Measures) -> Measures {
        Measures(std::array::from_fn(|i| self.0[i] - earlier.0[i]))
    }

    /// Adds those of `other`.
    #[inline(always)]
    pub fn merge(&mut self, other: &Measures) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, n)| *sum += n);
    }

    /// Returns all of them in order.
    #[must_use]
    pub fn values(&self) -> &[u64] {
        &self.0
    }

    /// Returns the measures whose values are `values`, rounded.
    #[must_use]
    pub fn rounded(values: &[f64]) -> Measures {
        Measures(std::array::from_fn(|i| values.get(i).map_or(0, |value| value.max(0.0).round() as u64)))
    }

    /// Returns the cycles that these counts account for.
    #[inline(always)]
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.0[..COMMITS].iter().chain(&self.0[STALLS..STARTED]).sum()
    }

    /// Adds busy cycles of the load/store pipes.
    pub fn add_busy(&mut self, cycles: [u64; 2]) {
        self.0[BUSY..UNTIMED].iter_mut().zip(cycles).for_each(|(sum, n)| *sum += n);
    }

    /// Adds cycles for subnormal numbers, which are otherwise counted throughout.
    pub fn add_subnormal(&mut self, cycles: u64) {
        self.0[SUBNORMAL] += cycles;
    }

    /// Returns the requests that the load/store pipes completed, each pipe's.
    #[must_use]
    pub fn requests(&self) -> [u64; 2] {
        [Signal::L1Pipe0Comp, Signal::L1Pipe1Comp].map(|signal| {
            let place = COUNTED.iter().position(|&counted| counted == signal);
            place.map_or(0, |place| self.0[place])
        })
    }

    /// Sets the signals that follow from them.
    pub(crate) fn set_in(&self, signals: &mut Signals) {
        COUNTED.iter().zip(&self.0).for_each(|(&signal, &n)| signals.set(signal, n));
        let stalls: Stalls = std::array::from_fn(|i| self.0[STALLS + i]);
        signals.add_stalls(&stalls);
        signals.set(Signal::CpuCycles, self.cycles());
        for (signal, &started) in PIPE_SIGNALS.iter().zip(&self.0[STARTED..BUSY]) {
            if let Some(signal) = signal {
                signals.set(*signal, started);
            }
        }
        LOAD_STORE_SIGNALS.iter().zip(&self.0[BUSY..UNTIMED]).for_each(|(&signal, &busy)| signals.set(signal, busy));
    }

    /// Returns the measures that do not depend on time, by their place among all, with their numbers in `signals`.
    pub fn untimed_in(signals: &Signals) -> impl Iterator<Item = (usize, u64)> {
        (UNTIMED..SUBNORMAL).zip(UNTIMED_SIGNALS.map(|signal| signals.get(signal)))
    }

    /// Returns the signals that do not depend on time, and cycles for subnormal numbers; all others are 0.
    #[must_use]
    pub fn untimed_signals(&self) -> Signals {
        let mut signals = Signals::default();
        UNTIMED_SIGNALS.iter().zip(&self.0[UNTIMED..SUBNORMAL]).for_each(|(&signal, &n)| signals.set(signal, n));
        let mut stalls = Stalls::default();
        stalls[Stall::VectorOperation as usize] = self.0[SUBNORMAL];
        signals.add_stalls(&stalls);
        signals.set(Signal::CpuCycles, self.0[SUBNORMAL]);
        signals
    }

    /// Returns the signals that depend on time; all others are 0.
    #[must_use]
    pub fn signals(&self) -> Signals {
        let mut signals = Signals::default();
        self.set_in(&mut signals);
        signals
    }
}

/// The unit of what blocks cost that are followed: this fraction of a cycle. It is coarse, so that the cycles of a loop's
/// iterations repeat after a few of them.
pub const COST_UNIT: u64 = 16;

/// How far the accesses of a block went: what an execution costs depends on it most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The first-level caches, or none.
    L1,
    /// L2.
    L2,
    /// Memory, or the L2 of another CMG.
    Memory,
    /// The cache of another core, which had to give up a line.
    Core,
}

impl Reach {
    /// The number of values.
    pub const COUNT: usize = 4;
}

/// What a core and the chip have counted so far of what [`Reach`] depends on.
#[derive(Clone, Copy, Debug)]
pub struct Reached {
    l1_refills: u64,
    l2_refills: u64,
    snoops: u64,
}

impl Reached {
    #[inline(always)]
    pub(crate) fn so_far(signals: &Signals, chip: &Chip) -> Reached {
        Reached {
            l1_refills: signals.get(Signal::L1dCacheRefill),
            l2_refills: signals.get(Signal::L2dCacheRefill),
            snoops: chip.snoops(),
        }
    }

    /// Returns how far accesses went since `before`, prefetches for them included.
    #[inline(always)]
    #[must_use]
    pub fn since(&self, before: &Reached) -> Reach {
        if self.l1_refills == before.l1_refills && self.snoops == before.snoops {
            Reach::L1
        } else if self.snoops != before.snoops {
            Reach::Core
        } else if self.l2_refills != before.l2_refills {
            Reach::Memory
        } else {
            Reach::L2
        }
    }
}

/// What a core in a sampled run counts apart.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct SampledCounts {
    /// Measures of blocks that were timed.
    timed: Measures,
    /// Counts of blocks that were only followed, and of those that were while the core was cold: these only say how far their accesses went.
    pub(crate) warmed: Signals,
    pub(crate) cold: Signals,
    /// Whether caches, translations and predictors are not yet as if nothing had been skipped.
    pub(crate) is_cold: bool,
    /// Cost by which the clock has still to advance, less than a cycle.
    pub(crate) fraction: u64,
    /// Whether the last block was timed.
    pub(crate) is_timed: bool,
    /// The number of the last window in which the core was timed, and whether it still is in it.
    window: u64,
    is_in_window: bool,
    /// Busy cycles of the load/store pipes when that began.
    busy: [u64; 2],
}

impl SampledCounts {
    /// Returns the cycles by which the clock advances at this cost.
    #[inline(always)]
    pub(crate) fn cycles(&mut self, cost: u64) -> Cycle {
        self.fraction += cost;
        let cycles = self.fraction / COST_UNIT;
        self.fraction %= COST_UNIT;
        cycles
    }
}

impl Pipeline {
    /// Returns the measures so far, but for busy cycles of the load/store pipes: to count these takes longer, and windows need them
    /// only once.
    #[inline(always)]
    #[must_use]
    pub fn measures(&self) -> Measures {
        let mut all = [0; Measures::COUNT];
        all.iter_mut().zip(COUNTED).for_each(|(n, signal)| *n = self.signals.get(signal));
        all[STALLS..STARTED].copy_from_slice(&self.commit.stalls);
        all[STARTED..BUSY].copy_from_slice(&self.started);
        all[STARTED + EXA] -= self.base_forwards;
        all[UNTIMED..SUBNORMAL].iter_mut().zip(UNTIMED_SIGNALS).for_each(|(n, signal)| *n = self.signals.get(signal));
        Measures(all)
    }

    /// Returns all counts so far. The cycle of the last commit is not over, and not counted yet. In a sampled run, only what is
    /// known without the sample: see [`Pipeline::exclude`].
    #[must_use]
    pub fn counters(&self) -> Signals {
        let mut signals = self.signals.clone();
        let mut measures = self.measures();
        // In a window, the load/store pipes are busy for what the sample stands for.
        let window = self.sampled.as_ref().filter(|counts| counts.is_in_window);
        let busy = window.map_or_else(|| self.memory.pipes.busy(), |counts| counts.busy);
        measures.0[BUSY..UNTIMED].copy_from_slice(&busy);
        match &self.sampled {
            None => measures.set_in(&mut signals),
            Some(counts) => {
                measures.since(&counts.timed).set_in(&mut signals);
                for &signal in Signal::ALL.iter().filter(|signal| signal.is_untimed()) {
                    signals.add(signal, counts.warmed.get(signal));
                }
            }
        }
        signals
    }

    /// Returns what timed accesses have counted so far of what [`Reach`] depends on.
    #[inline(always)]
    #[must_use]
    pub fn reached(&self, chip: &Chip) -> Reached {
        Reached::so_far(&self.signals, chip)
    }

    /// Makes `counted`, the measures of a block that was timed, part of the sample: [`Pipeline::counters`] leaves them out, since
    /// they are estimated with those of all blocks.
    #[inline(always)]
    pub fn exclude(&mut self, counted: &Measures) {
        self.sampled.get_or_insert_default().timed.merge(counted);
    }

    /// The next block is timed. If the one before was not, nothing is in flight, and fetch restarts.
    #[inline(always)]
    pub fn begin_timing(&mut self) {
        let counts = self.sampled.get_or_insert_default();
        counts.is_cold = false;
        if !std::mem::replace(&mut counts.is_timed, true) {
            self.front.redirect(self.commit.now() + 1);
        }
    }

    /// Blocks that are followed from now on are counted, unless caches, translations and predictors `are_cold`: not yet as if nothing had been
    /// skipped.
    #[inline(always)]
    pub fn set_cold(&mut self, are_cold: bool) {
        self.sampled.get_or_insert_default().is_cold = are_cold;
    }

    /// Returns what blocks have counted that were followed.
    #[must_use]
    pub fn followed(&self) -> Option<&Signals> {
        self.sampled.as_ref().map(|counts| &counts.warmed)
    }

    /// The core is in window number `window`. Returns whether it was not before.
    #[inline(always)]
    pub fn enter_window(&mut self, window: u64) -> bool {
        let counts = self.sampled.get_or_insert_default();
        let enters = counts.window != window;
        if enters {
            (counts.window, counts.is_in_window, counts.busy) = (window, true, self.memory.pipes.busy());
        }
        enters
    }

    /// The core is in no window any more. Returns the busy cycles of its load/store pipes in the window, if it was in one.
    pub fn leave_window(&mut self) -> Option<[u64; 2]> {
        let counts = self.sampled.as_mut().filter(|counts| counts.is_in_window)?;
        counts.is_in_window = false;
        let now = self.memory.pipes.busy();
        let busy = [0, 1].map(|pipe| now[pipe] - counts.busy[pipe]);
        counts.timed.add_busy(busy);
        Some(busy)
    }

    /// Returns whether the run is sampled: blocks of this core were followed, or timed in a window.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.sampled.is_some()
    }
}
