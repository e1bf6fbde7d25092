//! The counts of a sampled run, estimated from its windows.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals, Stall};
use fxscope_pipeline::Measures;
use fxscope_sampling::{Estimates, estimate};

use super::{Sampling, SkipSummary};
use crate::region::{Counts, Region};

/// How a run was sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleSummary {
    /// The plan, as [`fxscope_sampling::Plan`] is written.
    pub plan: String,
    /// Windows that were timed.
    pub windows: u64,
    /// Instructions that were timed and whose counts are known: those of the beginning, and of loops that may spin.
    pub exact: u64,
    /// Instructions that were timed in windows.
    pub timed: u64,
    /// Instructions that were only followed.
    pub followed: u64,
    /// What was neither timed nor followed; `None`: nothing.
    pub skipped: Option<SkipSummary>,
    /// The share of all instructions in blocks that no window has seen, 0 to 1: their costs are those of the others.
    pub unseen: f64,
    /// The share of all cycles in which threads sleep or repeat iterations of spin loops, 0 to 1. Where a part of the run is timed, only sleep
    /// is known.
    pub waiting: f64,
    /// By how much longer the run took by the clocks of its threads than by the estimates for its longest thread, as a share of the latter. Where a
    /// part of the run is timed: 0.
    pub clocks: f64,
    /// The regions, in the order of [`crate::Outcome::regions`].
    pub regions: Vec<SampledRegion>,
}

/// How well the counts of a region are known.
#[derive(Clone, Debug, PartialEq)]
pub struct SampledRegion {
    /// The counts of all threads together, estimated as the replicates are. The sum over threads, each estimated by itself, differs a
    /// little from it.
    pub estimate: Signals,
    /// The counts of all threads together, each time without one group of windows (jackknife replicates). Where threads wait and their clocks differ
    /// from the estimates, a last pair has shorter and longer waits.
    pub replicates: Vec<Signals>,
    /// As [`SampleSummary::unseen`], in this region.
    pub unseen: f64,
}

impl Sampling {
    /// Completes the counts of all regions with what the sample says. Returns how well they are known. Threads have repeated iterations of
    /// spin loops for `spun` cycles, and the run has lasted `elapsed` cycles by their clocks; `None`: it was not timed as a whole. Its cores
    /// have counted `followed` while blocks were followed.
    pub(crate) fn complete(
        &self,
        regions: &mut [Region],
        followed: Signals,
        spun: u64,
        elapsed: Option<Cycle>,
    ) -> SampleSummary {
        let instructions = &self.blocks.instructions();
        let exposure = self.blocks.followed();
        let followed = &Followed {
            counted: followed,
            estimates: estimate(&self.sample, instructions, &exposure),
            instructions: exposure.instructions(instructions),
        };
        let known: Vec<Counts> =
            regions.iter_mut().map(|region| self.complete_threads(region, instructions, followed)).collect();
        let all = regions.first().map_or_else(Vec::new, cycles);
        let waits = spun + known.first().map_or(0, |known| known.signals.get(Signal::WfeWfiCycle));
        let waiting = waits as f64 / all.iter().sum::<u64>().max(1) as f64;
        let longest = all.into_iter().max().filter(|cycles| *cycles > 0);
        let clocks = elapsed.zip(longest).map_or(0.0, |(by_clocks, cycles)| by_clocks as f64 / cycles as f64 - 1.0);
        let doubt = clocks.abs().min(waiting);
        let regions: Vec<SampledRegion> =
            known.iter().map(|known| self.complete_region(known, instructions, followed, doubt)).collect();
        let skipped = self.skip.instructions;
        SampleSummary {
            plan: self.schedule.plan().to_string(),
            windows: self.sample.windows(),
            exact: self.apart,
            timed: self.timed,
            followed: self.blocks.exposure().instructions(instructions).saturating_sub(self.timed + skipped),
            skipped: self.skip.summary(),
            unseen: regions.first().map_or(0.0, |all| all.unseen),
            waiting,
            clocks,
            regions,
        }
    }

    /// Completes the counts of a region's threads. Returns those of all together, as they were before.
    fn complete_threads(&self, region: &mut Region, instructions: &[u32], followed: &Followed) -> Counts {
        let mut all = Counts::default();
        for counted in region.threads.values_mut() {
            all.merge(&counted.counts);
            let own = self.estimated(&counted.counts, instructions, followed);
            counted.counts.signals.merge(&own.total());
        }
        all
    }

    /// Returns how well the counts of a region are known, of which `counts` are known without the sample. How long its threads wait is in `doubt`
    /// by this share of its cycles.
    fn complete_region(&self, counts: &Counts, instructions: &[u32], followed: &Followed, doubt: f64) -> SampledRegion {
        let known = &counts.signals;
        let all = self.estimated(counts, instructions, followed);
        let sampled = all.total();
        let with_known = |mut signals: Signals, ratio: f64| {
            signals.merge(&stretched(known, ratio));
            signals
        };
        let cycles = |signals: &Signals| signals.get(Signal::CpuCycles) as f64;
        let as_sampled = |signals: Signals| {
            let ratio = cycles(&signals) / cycles(&sampled).max(1.0);
            with_known(signals, ratio)
        };
        let mut replicates: Vec<Signals> = all.replicates().map(as_sampled).collect();
        if let (false, Some(ratio)) = (replicates.is_empty(), doubtful(cycles(known), cycles(&sampled), doubt)) {
            replicates.extend([1.0 - ratio, 1.0 + ratio].map(|ratio| with_known(sampled.clone(), ratio)));
        }
        let unseen = all.timed.unseen_share();
        SampledRegion { estimate: with_known(sampled, 1.0), replicates, unseen }
    }

    /// Returns the estimates of what the sample says of counts.
    fn estimated<'a>(&self, counts: &Counts, instructions: &[u32], followed: &'a Followed) -> Estimated<'a> {
        let of = |exposure| estimate(&self.sample, instructions, exposure);
        let skipped = counts.skipped.instructions(instructions);
        let unknown =
            (skipped > 0).then(|| Unknown { estimates: of(&counts.skipped), instructions: skipped, followed });
        Estimated { timed: of(&counts.exposure), unknown }
    }

    /// Returns how many executions of a block windows have measured.
    pub(crate) fn executions_in_windows(&self, origin: u32) -> u64 {
        self.blocks.seen(origin)
    }
}

/// Returns the cycles of each of a region's threads.
fn cycles(region: &Region) -> Vec<u64> {
    region.threads.values().map(|counted| counted.signals().get(Signal::CpuCycles)).collect()
}

/// Returns by which part of them `known` cycles, most of which are waits, may be longer or shorter, if half of `doubt` is the standard error of
/// all cycles relative to their sum with `sampled` ones; `None`: by nothing.
///
/// A thread's clock and the estimate for what it has executed are two answers to how long it took. Waits follow from the clocks, and all else
/// from estimates. Where the two end apart, the truth is taken to lie within a standard error of their mean. Waits cannot be wrong by more
/// than they are.
fn doubtful(known: f64, sampled: f64, doubt: f64) -> Option<f64> {
    let all = known + sampled;
    let error = doubt.min(known / all) / 2.0;
    (error > 0.0).then(|| error * all / known)
}

/// Returns counts that are known without windows, with cycles that last `ratio` times as long. Most of these cycles are those of threads that
/// wait: as long as others take for what the windows show.
fn stretched(known: &Signals, ratio: f64) -> Signals {
    const COMMITS: [Signal; 6] =
        [Signal::CpuCycles, Signal::Commit0, Signal::Commit1, Signal::Commit2, Signal::Commit3, Signal::Commit4];
    let mut cycles: Vec<Signal> = Stall::ALL.iter().flat_map(|stall| stall.events()).copied().chain(COMMITS).collect();
    cycles.sort_unstable();
    cycles.dedup();
    let mut signals = known.clone();
    cycles.into_iter().for_each(|signal| signals.set(signal, (known.get(signal) as f64 * ratio).round() as u64));
    signals
}

/// What followed code has counted, and what windows say that it has.
struct Followed {
    counted: Signals,
    estimates: Estimates,
    instructions: u64,
}

/// Estimates for executions that have counted nothing: they were skipped, or followed while caches were cold.
struct Unknown<'a> {
    estimates: Estimates,
    instructions: u64,
    followed: &'a Followed,
}

/// Events that are added to those of followed code and to those expected of it, so that few of them correct little.
const FEW_EVENTS: f64 = 64.0;

impl Unknown<'_> {
    /// Returns `values`, estimates by measure, multiplied by how far off estimates for followed code are, which are `expected`: blocks are the same,
    /// and what windows say of them. What no window has seen happens as often in an instruction as in followed code.
    fn corrected(&self, values: &[f64], expected: &[f64]) -> Vec<f64> {
        let mut corrected = values.to_vec();
        for (measure, counted) in Measures::untimed_in(&self.followed.counted) {
            let counted = counted as f64;
            corrected[measure] = if expected[measure] > 0.0 {
                values[measure] * (counted + FEW_EVENTS) / (expected[measure] + FEW_EVENTS)
            } else {
                counted * self.instructions as f64 / self.followed.instructions.max(1) as f64
            };
        }
        corrected
    }

    fn totals(&self) -> Vec<f64> {
        self.corrected(self.estimates.totals(), self.followed.estimates.totals())
    }

    /// Returns the totals without group `number` of the windows.
    fn replicate(&self, number: usize) -> Vec<f64> {
        let of = |estimates: &'_ Estimates| estimates.replicates().get(number).cloned();
        // Nothing is replicated of blocks of which no window has seen anything.
        let values = of(&self.estimates).unwrap_or_else(|| self.estimates.totals().to_vec());
        let expected = of(&self.followed.estimates).unwrap_or_else(|| self.followed.estimates.totals().to_vec());
        self.corrected(&values, &expected)
    }
}

/// Estimates of counts that depend on time, for all executions that the sample stands for, and of the others, for those that have not
/// counted them.
struct Estimated<'a> {
    timed: Estimates,
    unknown: Option<Unknown<'a>>,
}

impl Estimated<'_> {
    fn total(&self) -> Signals {
        signals(self.timed.totals(), self.unknown.as_ref().map(Unknown::totals))
    }

    /// Returns the totals without one group of windows, for each of them.
    fn replicates(&self) -> impl Iterator<Item = Signals> {
        let unknown = self.unknown.as_ref();
        let timed = self.timed.replicates().iter().enumerate();
        timed.map(move |(number, timed)| signals(timed, unknown.map(|unknown| unknown.replicate(number))))
    }
}

/// Returns the signals of measures.
fn signals(timed: &[f64], unknown: Option<Vec<f64>>) -> Signals {
    let mut signals = Measures::rounded(timed).signals();
    unknown.into_iter().for_each(|values| signals.merge(&Measures::rounded(&values).untimed_signals()));
    signals
}

#[cfg(test)]
mod tests {
    use fxscope_sampling::{Sample, Window};

    use super::*;
    use crate::sampling::CYCLES;

    #[test]
    fn skipped_code_misses_as_much_more_than_in_windows_as_followed_code_does() {
        // Ten executions of a block of four instructions, with five refills, in each of two windows. One other event is in none.
        let place = |signal: Signal| {
            let mut one = Signals::default();
            one.set(signal, 1);
            Measures::untimed_in(&one).find(|&(_, number)| number == 1).expect("it does not depend on time").0
        };
        let (refills, misses) = (place(Signal::L1dCacheRefill), place(Signal::L2dTlbRefill));
        let mut sample = Sample::new(CYCLES + 1, 2);
        for _ in 0..2 {
            sample.begin_window(&Window { stands_for: 40, instructions: 40, ..Window::default() }, 40);
            sample.add(0, 10, &[(refills, 5)]);
        }
        let of = |executions| estimate(&sample, &[4], &[(0, executions)].into_iter().collect());
        let mut counted = Signals::default();
        counted.set(Signal::L1dCacheRefill, 936);
        counted.set(Signal::L2dTlbRefill, 30);
        let followed = Followed { counted, estimates: of(872), instructions: 4 * 872 };
        let unknown = Unknown { estimates: of(1_744), instructions: 4 * 1_744, followed: &followed };
        // Windows expect 436 refills of what is followed and twice as many of the rest: (936 + 64) / (436 + 64) times as many are more likely.
        for values in [unknown.totals(), unknown.replicate(0)] {
            assert!((values[refills] - 2.0 * 872.0).abs() < 1e-6, "{}", values[refills]);
            assert!((values[misses] - 60.0).abs() < 1e-6, "{}", values[misses]);
        }
    }

    #[test]
    fn known_cycles_last_longer_and_known_work_stays() {
        let mut known = Signals::default();
        let counts = [
            (Signal::CpuCycles, 1_000),
            (Signal::Commit0, 900),
            (Signal::Commit1, 100),
            (Signal::WfeWfiCycle, 800),
            (Signal::InstRetired, 100),
            (Signal::L1dCacheRefill, 7),
        ];
        counts.into_iter().for_each(|(signal, n)| known.set(signal, n));
        let longer = stretched(&known, 1.02);
        assert_eq!(counts.map(|(signal, _)| longer.get(signal)), [1_020, 918, 102, 816, 100, 7]);
        assert_eq!(stretched(&known, 1.0), known);
    }

    #[test]
    fn waits_are_in_doubt_by_as_much_as_clocks_and_estimates_differ_but_not_by_more_than_there_are() {
        // A difference of 4 %: a standard error of 2 % of 1,000 cycles, 20 of 400 that are waits.
        assert_eq!(doubtful(400.0, 600.0, 0.04), Some(0.05));
        // Waits are 2 %: a standard error of 1 %, half of them.
        assert_eq!(doubtful(20.0, 980.0, 0.04), Some(0.5));
        assert_eq!((doubtful(0.0, 1_000.0, 0.04), doubtful(400.0, 600.0, 0.0)), (None, None));
        assert_eq!(doubtful(0.0, 0.0, 0.0), None);
    }
}
