//! CMG-wide events: every core of a core memory group (CMG) reads the same count.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_machine::{Events, Scope};
use fxscope_record::{Region, Thread};

/// A CMG: its computer, and its number there.
pub(crate) type Cmg = (u32, u32);

/// Returns the CMG of a thread on a machine with these constants; `None` if they do not determine it.
pub(crate) fn cmg_of(thread: &Thread, constants: &BTreeMap<String, f64>) -> Option<Cmg> {
    let each = constants.get("cmg_cores").filter(|&&each| each >= 1.0)?;
    let first = constants.get("first_core")?;
    Some((thread.node, ((f64::from(thread.cpu) - first) / each) as u32))
}

/// Replaces the CMG-wide counts caused by each thread by the value of its CMG's counter, the sum over the threads of
/// that CMG. Formulas of metrics expect this, as on the real machine.
pub fn widen(events: &Events, region: &mut Region, constants: &BTreeMap<String, f64>) {
    let cmgs: Vec<Option<Cmg>> = region.threads.iter().map(|t| cmg_of(t, constants)).collect();
    for counts in &mut region.passes {
        for event in events.iter().filter(|e| e.scope == Scope::Cmg) {
            let Some(column) = counts.names().index(&event.name) else { continue };
            let mut sums = BTreeMap::new();
            let of_threads = || cmgs.iter().enumerate().filter_map(|(thread, cmg)| Some((thread, (*cmg)?)));
            for (thread, cmg) in of_threads() {
                *sums.entry(cmg).or_insert(0) += counts.at(thread, column).unwrap_or(0);
            }
            for (thread, cmg) in of_threads() {
                if counts.at(thread, column).is_some() {
                    counts.set(thread, column, sums[&cmg]);
                }
            }
        }
    }
}

/// Returns a region's total of each event: the sum over threads or, for CMG-wide events, over their CMGs. If the
/// constants do not determine CMGs, as in old records, every thread has its own contribution.
#[must_use]
pub fn totals<'a>(events: &Events, region: &'a Region, constants: &BTreeMap<String, f64>) -> BTreeMap<&'a str, u64> {
    // For a CMG-wide event, the first thread of each CMG counts.
    let mut seen: BTreeSet<Cmg> = BTreeSet::new();
    let representative: Vec<bool> =
        region.threads.iter().map(|t| cmg_of(t, constants).is_none_or(|cmg| seen.insert(cmg))).collect();
    let mut totals = BTreeMap::new();
    for (name, counts) in region.tallies().columns(region.threads.len()) {
        let wide = events.named(name).is_some_and(|event| event.scope == Scope::Cmg);
        let wanted = counts.filter(|&(thread, _)| !wide || representative[thread]).map(|(_, count)| count);
        if let Some(total) = wanted.reduce(u64::saturating_add) {
            totals.insert(name, total);
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use fxscope_machine::Pmu;

    use super::*;
    use crate::evaluate::Evaluation;
    use crate::metrics::constants;

    /// Cycles of every thread in these tests.
    const CYCLES: u64 = 1_000;
    /// L2 pipeline cycles that every thread causes.
    const PIPE: u64 = 10;

    /// A region with a thread on each of these CPUs, all with the same counts, as in a record.
    fn region(cpus: impl IntoIterator<Item = u32>) -> Region {
        let caused = [("CPU_CYCLES", CYCLES), ("L2_PIPE_VAL", PIPE)].map(|(name, n)| (name.to_owned(), n));
        let mut region = alone(&caused, cpus);
        widen(&a64fx(), &mut region, &numbers());
        region
    }

    /// A region with a thread on each of these CPUs, before widening.
    fn alone(caused: &[(String, u64)], cpus: impl IntoIterator<Item = u32>) -> Region {
        let thread = |(thread, cpu)| (Thread { thread, cpu, ..Thread::default() }, caused.iter().cloned().collect());
        Region::of_one_pass("all", 1, (0..).zip(cpus).map(thread).collect())
    }

    fn a64fx() -> Events {
        Pmu::built_in("a64fx").expect("built in").events
    }

    fn numbers() -> BTreeMap<String, f64> {
        constants(&fxscope_machine::load("a64fx", &[]).expect("built in"))
    }

    #[test]
    fn threads_have_their_cmgs_counts_and_their_own_cycles() {
        // Three threads on the first CMG, whose last CPU is 23, and one on the second.
        let region = region([12, 13, 23, 24]);
        let counts: Vec<_> = (0..4).filter_map(|t| region.count(t, "L2_PIPE_VAL")).collect();
        assert_eq!(counts, [3 * PIPE, 3 * PIPE, 3 * PIPE, PIPE]);
        assert!((0..4).all(|t| region.count(t, "CPU_CYCLES") == Some(CYCLES)));
    }

    #[test]
    fn region_totals_do_not_depend_on_the_distribution_over_cmgs() {
        for cpus in [12..13, 12..24, 12..60, 20..28] {
            let threads = cpus.len() as u64;
            let (region, numbers) = (region(cpus), numbers());
            let totals = totals(&a64fx(), &region, &numbers);
            assert_eq!((totals["L2_PIPE_VAL"], totals["CPU_CYCLES"]), (threads * PIPE, threads * CYCLES), "{threads}");
        }
    }

    #[test]
    fn l2_utilisation_is_the_mean_over_the_cmgs_used() {
        // Two banks; pipeline cycles caused by the CMG's threads during the cycles of one of them.
        for (cpus, on_a_cmg) in [(12..13, 1.0), (12..15, 3.0), (12..24, 12.0), (12..60, 12.0)] {
            let region = region(cpus.clone());
            let busy = Evaluation::with(&region, &numbers(), &Pmu::built_in("a64fx").expect("built in").groups).total()
                ["l2_busy"];
            let expected = on_a_cmg * PIPE as f64 / 2.0 / CYCLES as f64;
            assert!((busy / expected - 1.0).abs() < 1e-12, "{cpus:?}: {busy}");
        }
    }

    #[test]
    fn without_the_cmg_size_threads_keep_their_own_counts() {
        let mut region = alone(&[("L2_PIPE_VAL".to_owned(), PIPE)], [12, 13]);
        let before = region.clone();
        widen(&a64fx(), &mut region, &BTreeMap::new());
        assert_eq!(region, before);
        assert_eq!(totals(&a64fx(), &region, &BTreeMap::new())["L2_PIPE_VAL"], 2 * PIPE);
    }

    #[test]
    fn events_not_counted_stay_absent() {
        let mut region = alone(&[], [12]);
        widen(&a64fx(), &mut region, &numbers());
        assert!(region.counts(0).is_empty());
    }
}
