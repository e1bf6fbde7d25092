//! Intervals of a sampled run's metrics.
//!
//! A record has the totals of events in each jackknife replicate of a region. What a metric would be in a replicate follows from counts by
//! thread: each thread's count of an event is scaled by the same factor, that of the total. Its interval follows from its values in all
//! replicates. It is that of a region's total; single threads are known less well.

use std::collections::{BTreeMap, HashMap};

use fxscope_machine::Events;
use fxscope_record::{Counts, Region, Run, Sample, Totals};
use fxscope_sampling::{DEFAULT_GROUPS, Interval, jackknife};

use crate::evaluate::{Evaluation, Values};
use crate::metrics::Metrics;
use crate::tables::Column;
use crate::{recorded, scope};

/// Fewer windows than this are too few for intervals to be worth anything (docs/notes/2026-11-26-sampling-statistics.md).
pub const LEAST_WINDOWS: u64 = 50;

/// What a region of a sampled run counted, once with all windows and once for each replicate.
#[derive(Clone, Debug)]
pub struct Sampled {
    confidence: f64,
    estimate: Sums,
    replicates: Vec<Sums>,
}

/// The totals of a region.
#[derive(Clone, Debug)]
pub struct Sums {
    /// Of metrics.
    values: Values,
    /// Of the report's columns, by identifier.
    columns: HashMap<&'static str, f64>,
}

impl Sums {
    /// Returns the value of a metric.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.values.get(name)
    }

    /// Returns the value of a report column.
    #[must_use]
    pub fn column(&self, id: &str) -> Option<f64> {
        self.columns.get(id).copied()
    }

    fn of(evaluation: &Evaluation) -> Sums {
        let columns = Metrics::built_in().tables().iter().flat_map(|table| &table.columns);
        let value = |column: &'static Column| Some((column.id.as_str(), evaluation.total_of(column).1?.value));
        Sums { values: evaluation.total(), columns: columns.filter_map(value).collect() }
    }
}

impl Sampled {
    /// Returns what a region of a run counted in its replicates; `None` if the run is not sampled, if there are fewer than
    /// [`LEAST_WINDOWS`] windows, or if windows have seen nothing of the region.
    #[must_use]
    pub fn of(run: &Run, region: &Region) -> Option<Sampled> {
        let (sample, totals) = replicates(run, region)?;
        if totals.replicates() < 2 {
            return None;
        }
        let pmu = recorded::of_run(run);
        let evaluate = |region: &Region| Sums::of(&Evaluation::new(run, region));
        let replicate = |row| evaluate(&scaled(&pmu.events, region, &run.constants, totals.row(row)));
        Some(Sampled {
            confidence: sample.confidence,
            estimate: evaluate(region),
            replicates: (0..totals.replicates()).map(replicate).collect(),
        })
    }

    /// Returns the interval of a quantity that follows from the totals; `None` if it is unknown in one of the replicates.
    #[must_use]
    pub fn interval(&self, quantity: impl Fn(&Sums) -> Option<f64>) -> Option<Interval> {
        self.interval_of(&self.replicates, quantity)
    }

    /// Returns the same, if waits of threads were known as well as what the windows show: what more windows can narrow.
    #[must_use]
    pub fn interval_of_windows(&self, quantity: impl Fn(&Sums) -> Option<f64>) -> Option<Interval> {
        self.interval_of(&self.replicates[..self.replicates.len().min(DEFAULT_GROUPS)], quantity)
    }

    fn interval_of(&self, replicates: &[Sums], quantity: impl Fn(&Sums) -> Option<f64>) -> Option<Interval> {
        let values: Vec<f64> = replicates.iter().map(&quantity).collect::<Option<_>>()?;
        Some(jackknife(quantity(&self.estimate)?, values.into_iter(), self.confidence))
    }

    /// Returns half of the width of a quantity's interval; `None` if it is unknown, or if the quantity does not depend on windows.
    #[must_use]
    pub fn half_width(&self, quantity: impl Fn(&Sums) -> Option<f64>) -> Option<f64> {
        self.interval(quantity).map(|interval| interval.half_width).filter(|half| *half > 0.0 && half.is_finite())
    }

    /// Returns half of the width of a metric's interval, as [`Sampled::half_width`].
    #[must_use]
    pub fn of_metric(&self, name: &str) -> Option<f64> {
        self.half_width(|sums| sums.metric(name))
    }

    /// Returns half of the width of the interval of a report column, as [`Sampled::half_width`].
    #[must_use]
    pub fn of_column(&self, id: &str) -> Option<f64> {
        self.half_width(|sums| sums.column(id))
    }
}

/// Returns half of the width of each event's interval in a region, without those that are exact. Empty where [`Sampled::of`] has none.
#[must_use]
pub fn half_widths_of_events(run: &Run, region: &Region) -> BTreeMap<String, f64> {
    let Some((sample, replicates)) = replicates(run, region) else { return BTreeMap::new() };
    let pmu = recorded::of_run(run);
    let totals = scope::totals(&pmu.events, region, &run.constants);
    let half = |(column, name): (usize, &str)| {
        let values = (0..replicates.replicates()).map(|row| Some(replicates.at(row, column)? as f64));
        let values: Vec<f64> = values.collect::<Option<_>>()?;
        let interval = jackknife(*totals.get(name)? as f64, values.into_iter(), sample.confidence);
        (interval.half_width > 0.0 && interval.half_width.is_finite()).then(|| (name.to_owned(), interval.half_width))
    };
    replicates.names().iter().enumerate().filter_map(half).collect()
}

/// The replicates of a region, if there are windows enough.
fn replicates<'a>(run: &'a Run, region: &Region) -> Option<(&'a Sample, &'a Totals)> {
    let sample = run.sample.as_ref().filter(|sample| sample.windows >= LEAST_WINDOWS)?;
    let place = run.regions.iter().position(|known| known.name == region.name)?;
    Some((sample, &sample.regions.get(place)?.totals))
}

/// Returns a region with other totals of some events: the count of each of its threads is scaled. A count that is 0 stays 0.
#[must_use]
pub fn scaled<'a>(
    events: &Events,
    region: &Region,
    constants: &BTreeMap<String, f64>,
    totals: impl Iterator<Item = (&'a str, u64)>,
) -> Region {
    let before: BTreeMap<&str, u64> = scope::totals(events, region, constants);
    let mut scaled = region.clone();
    for (name, total) in totals {
        let Some(&known) = before.get(name).filter(|known| **known > 0) else { continue };
        let scale = |count: u64| {
            let product = u128::from(count) * u128::from(total) + u128::from(known / 2);
            u64::try_from(product / u128::from(known)).unwrap_or(Counts::ABSENT - 1)
        };
        for counts in &mut scaled.passes {
            let Some(column) = counts.names().index(name) else { continue };
            for thread in 0..region.threads.len() {
                if let Some(count) = counts.at(thread, column) {
                    counts.set(thread, column, scale(count));
                }
            }
        }
    }
    scaled
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fxscope_machine::Pmu;
    use fxscope_record::{ALL, Names, Thread};

    use super::*;

    /// A region of two threads on one CMG with these cycles, the same instructions and a CMG-wide count.
    fn region() -> Region {
        let row = |thread: u32, cycles: u64| {
            let counts = [("CPU_CYCLES", cycles), ("INST_RETIRED", 500), ("L2_PIPE_VAL", 30)];
            let counts = counts.map(|(name, count)| (name.to_owned(), count));
            (Thread { thread, cpu: 12 + thread, ..Thread::default() }, counts.into())
        };
        Region::of_one_pass(ALL, 1, vec![row(0, 1_000), row(1, 3_000)])
    }

    fn constants() -> BTreeMap<String, f64> {
        crate::constants(&fxscope_machine::load("a64fx", &[]).expect("built in"))
    }

    #[test]
    fn threads_are_scaled_like_the_total() {
        let events = Pmu::built_in("a64fx").expect("built in").events;
        let totals = [("CPU_CYCLES", 4_400), ("L2_PIPE_VAL", 27)];
        let scaled = scaled(&events, &region(), &constants(), totals.into_iter());
        let of = |thread| scaled.counts(thread);
        assert_eq!([of(0)["CPU_CYCLES"], of(1)["CPU_CYCLES"]], [1_100, 3_300]);
        assert_eq!([of(0)["INST_RETIRED"], of(1)["INST_RETIRED"]], [500, 500]);
        // What belongs to the CMG is what each of its threads has.
        assert_eq!([of(0)["L2_PIPE_VAL"], of(1)["L2_PIPE_VAL"]], [27, 27]);
    }

    #[test]
    fn events_that_no_window_saw_stay_0() {
        let events = Pmu::built_in("a64fx").expect("built in").events;
        let mut region = region();
        region.passes[0] = Counts::new(Arc::new(Names::from_iter(["CPU_CYCLES".to_owned()])), 2);
        region.passes[0].set(0, 0, 0);
        assert_eq!(scaled(&events, &region, &constants(), [("CPU_CYCLES", 7)].into_iter()), region);
    }
}
