//! What a record says about how a run was sampled.

use std::collections::BTreeMap;
use std::sync::Arc;

use fxscope_counts::{Signal, Signals};
use fxscope_pmu::{constants, energy, sampled::scaled, scope};
use fxscope_record::{Names, Region, Replicates, Sample, Totals};
use fxscope_sim::{Outcome, SampledRegion};

use crate::Request;

/// Returns how a run was sampled; `None` if all of it was timed. `regions` are those of the record.
pub(crate) fn sample(request: &Request, outcome: &Outcome, regions: &[Region]) -> Option<Sample> {
    let summary = outcome.sample.as_ref().filter(|summary| summary.timed + summary.followed > 0)?;
    let precision = request.options.precision;
    let constants = constants(&request.spec);
    let sampled = regions.iter().zip(&summary.regions);
    Some(Sample {
        plan: summary.plan.clone(),
        windows: summary.windows,
        exact: summary.exact,
        timed: summary.timed,
        followed: summary.followed + summary.skipped.as_ref().map_or(0, |skipped| skipped.instructions),
        error: precision.error,
        confidence: precision.confidence,
        regions: sampled.map(|(region, known)| replicates(request, region, known, &constants)).collect(),
    })
}

/// Returns the replicates of a region, without the events that are equal in all of them.
fn replicates(
    request: &Request,
    region: &Region,
    sampled: &SampledRegion,
    constants: &BTreeMap<String, f64>,
) -> Replicates {
    let events = &request.spec.pmu.events;
    let counts = |signals: &Signals| events.counts(signals, |_: Signal| true);
    let totals = scope::totals(events, region, constants);
    let estimate = counts(&sampled.estimate);
    let row = |signals: &Signals| {
        let moved = |(name, count): (String, u64)| {
            let (total, estimate) = (*totals.get(name.as_str())?, estimate[&name]);
            let total = i128::from(total) + i128::from(count) - i128::from(estimate);
            // The largest number means that nothing was counted.
            Some((name, total.clamp(0, i128::from(i64::MAX)) as u64))
        };
        let mut row: BTreeMap<String, u64> = counts(signals).into_iter().filter_map(moved).collect();
        // Energy is made from the counts of threads.
        let sums = row.iter().map(|(name, total)| (name.as_str(), *total));
        let mut without = scaled(events, region, constants, sums);
        energy::count(&mut without, &request.spec.energy, request.spec.clock.core_hz);
        let made = scope::totals(events, &without, constants).into_iter();
        row.extend(made.filter(|(name, _)| energy::NAMES.contains(name)).map(|(name, total)| (name.to_owned(), total)));
        row
    };
    let rows: Vec<BTreeMap<String, u64>> = sampled.replicates.iter().map(row).collect();
    let varies = |name: &&&str| rows.iter().any(|row| row.get(**name) != totals.get(**name));
    let names: Names = totals.keys().filter(varies).map(|name| (*name).to_owned()).collect();
    let values = |row: &BTreeMap<String, u64>| -> Vec<u64> {
        names.iter().map(|name| row.get(name).copied().unwrap_or(totals[name])).collect()
    };
    let rows: Vec<Vec<u64>> = rows.iter().map(values).collect();
    Replicates { unseen: sampled.unseen, totals: Totals::new(Arc::new(names), &rows) }
}

#[cfg(test)]
mod tests {
    use fxscope_record::Thread;

    use super::*;

    /// Signals of this many cycles and instructions.
    fn signals(cycles: u64, instructions: u64) -> Signals {
        let mut signals = Signals::default();
        signals.add(Signal::CpuCycles, cycles);
        signals.add(Signal::InstRetired, instructions);
        signals
    }

    #[test]
    fn replicates_lie_around_the_sum_of_threads_and_have_what_varies_only() {
        let request = Request::new(Arc::new(fxscope_machine::load("a64fx", &[]).expect("built in")), "a.out");
        let (events, constants) = (&request.spec.pmu.events, constants(&request.spec));
        let row = |thread, cycles| {
            (Thread { thread, cpu: 12 + thread, ..Thread::default() }, events.counts(&signals(cycles, 500), |_| true))
        };
        let mut region = Region::of_one_pass("all", 1, vec![row(0, 10_000_000), row(1, 30_000_000)]);
        energy::count(&mut region, &request.spec.energy, request.spec.clock.core_hz);
        // All threads together are estimated to have 1,000 cycles less than their sum.
        let sampled = SampledRegion {
            estimate: signals(39_999_000, 1_000),
            replicates: vec![signals(43_999_000, 1_000), signals(35_999_000, 1_000)],
            unseen: 0.25,
        };
        let replicates = replicates(&request, &region, &sampled, &constants);
        assert_eq!(replicates.unseen, 0.25);
        let rows = [0, 1].map(|row| replicates.totals.row(row).collect::<BTreeMap<_, _>>());
        assert_eq!(rows.each_ref().map(|row| row["CPU_CYCLES"]), [44_000_000, 36_000_000]);
        assert!(!rows[0].contains_key("INST_RETIRED"));
        // Idle cores: their energy is in proportion to the cycles, in whole units of each thread.
        let energy = scope::totals(events, &region, &constants)["EA_CORE"];
        assert!(
            rows[0]["EA_CORE"].abs_diff(energy * 11 / 10) <= 2 && rows[1]["EA_CORE"].abs_diff(energy * 9 / 10) <= 2
        );
    }
}
