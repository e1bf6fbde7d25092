//! Events of a whole core memory group (CMG): every core of it reads the same count.

use std::collections::BTreeMap;

use fxscope_record::{Region, Thread};

use crate::events::{Event, Events, Scope};
use crate::metrics::Values;

/// The CMG of a CPU of a machine with these constants, counted from 0; `None` when they do not tell.
fn cmg_of(cpu: u32, constants: &Values) -> Option<u32> {
    let each = constants.get("cmg_cores").filter(|&&each| each >= 1.0)?;
    let first = constants.get("first_core")?;
    Some(((f64::from(cpu) - first) / each) as u32)
}

/// Replaces what each thread has caused of CMG-wide events by what its CMG's counter shows: the sum over the threads
/// of that CMG. Formulas of metrics expect that, as the machine's counters give it.
pub fn widen(events: &Events, threads: &mut [Thread], constants: &Values) {
    for event in events.iter().filter(|e| e.scope == Scope::Cmg) {
        let mut counts = BTreeMap::new();
        for t in threads.iter() {
            if let (Some(cmg), Some(count)) = (cmg_of(t.cpu, constants), t.events.get(&event.name)) {
                *counts.entry(cmg).or_insert(0) += count;
            }
        }
        for t in threads.iter_mut() {
            let wide = cmg_of(t.cpu, constants).and_then(|cmg| counts.get(&cmg));
            if let (Some(&wide), Some(count)) = (wide, t.events.get_mut(&event.name)) {
                *count = wide;
            }
        }
    }
}

/// What a region has of each event: the sum over its threads, of a CMG-wide event the sum over their CMGs. Where the
/// constants do not tell CMGs, as in records of old, every thread has what it caused itself.
#[must_use]
pub fn totals(events: &Events, region: &Region, constants: &Values) -> BTreeMap<String, u64> {
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    let mut told: Vec<u32> = Vec::new();
    for t in &region.threads {
        let cmg = cmg_of(t.cpu, constants);
        let again = cmg.is_some_and(|cmg| told.contains(&cmg));
        for (name, &count) in &t.events {
            if !(again && events.named(name).is_some_and(|e: &Event| e.scope == Scope::Cmg)) {
                let total = totals.entry(name.clone()).or_default();
                *total = total.saturating_add(count);
            }
        }
        told.extend(cmg.filter(|_| !again));
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, constants};

    /// Cycles of every thread in these tests.
    const CYCLES: u64 = 1_000;
    /// Cycles of L2's pipelines that every thread causes.
    const PIPE: u64 = 10;

    /// A region with a thread on each of these CPUs, each of which has caused the same; as it is in a record.
    fn region(cpus: impl IntoIterator<Item = u32>) -> Region {
        let caused = [("CPU_CYCLES", CYCLES), ("L2_PIPE_VAL", PIPE)].map(|(name, n)| (name.to_owned(), n));
        let thread = |(thread, cpu)| Thread { thread, cpu, events: BTreeMap::from(caused.clone()) };
        let mut threads: Vec<Thread> = (0..).zip(cpus).map(thread).collect();
        widen(&a64fx(), &mut threads, &numbers());
        Region { name: "all".to_owned(), calls: 1, threads }
    }

    fn a64fx() -> Events {
        Events::of("a64fx").expect("built in")
    }

    fn numbers() -> Values {
        constants(&fxscope_machine::load("a64fx", &[]).expect("built in"))
    }

    #[test]
    fn every_thread_has_the_count_of_its_cmg_and_its_own_cycles() {
        // Three threads on the first CMG, whose last CPU is 23, one on the second.
        let region = region([12, 13, 23, 24]);
        let counts: Vec<_> = region.threads.iter().map(|t| t.events["L2_PIPE_VAL"]).collect();
        assert_eq!(counts, [3 * PIPE, 3 * PIPE, 3 * PIPE, PIPE]);
        assert!(region.threads.iter().all(|t| t.events["CPU_CYCLES"] == CYCLES));
    }

    #[test]
    fn a_region_has_what_its_threads_caused_however_they_are_spread_over_cmgs() {
        for cpus in [12..13, 12..24, 12..60, 20..28] {
            let threads = cpus.len() as u64;
            let totals = totals(&a64fx(), &region(cpus), &numbers());
            assert_eq!((totals["L2_PIPE_VAL"], totals["CPU_CYCLES"]), (threads * PIPE, threads * CYCLES), "{threads}");
        }
    }

    #[test]
    fn l2_is_as_busy_as_the_mean_cmg_that_threads_run_on() {
        // Two banks; as much as the threads of a CMG cause in the cycles of one of them.
        for (cpus, on_a_cmg) in [(12..13, 1.0), (12..15, 3.0), (12..24, 12.0), (12..60, 12.0)] {
            let busy = Metrics::built_in().of_region(&region(cpus.clone()), &numbers())["l2_busy"];
            let expected = on_a_cmg * PIPE as f64 / 2.0 / CYCLES as f64;
            assert!((busy / expected - 1.0).abs() < 1e-12, "{cpus:?}: {busy}");
        }
    }

    #[test]
    fn without_the_size_of_cmgs_every_thread_counts_for_itself() {
        let mut region = region([12]);
        region.threads.push(Thread { thread: 1, cpu: 13, ..region.threads[0].clone() });
        let before = region.clone();
        widen(&a64fx(), &mut region.threads, &Values::new());
        assert_eq!(region, before);
        assert_eq!(totals(&a64fx(), &region, &Values::new())["L2_PIPE_VAL"], 2 * PIPE);
    }

    #[test]
    fn an_event_that_was_not_counted_stays_absent() {
        let mut threads = [Thread { thread: 0, cpu: 12, events: BTreeMap::new() }];
        widen(&a64fx(), &mut threads, &numbers());
        assert!(threads[0].events.is_empty());
    }
}
