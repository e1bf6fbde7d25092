//! Sampled runs: what is counted throughout is counted as without sampling, and the rest is estimated.

use fxscope_counts::{Signal, Signals};
use fxscope_sampling::DEFAULT_GROUPS;
use fxscope_sim::Outcome;

use crate::common::{Run, build, counts, given, kernel};

/// A plan for short programs.
const PLAN: &str = "begin=50000,window=1000,warm=300,period=8000,keep=100000";

/// Compares a sampled run with one that times everything. Returns the relative error of the cycles.
fn compared(run: Run, plan: &'static str) -> f64 {
    let name = format!("{} {}", run.program.display(), run.arguments);
    let (full, printed) = given(&run);
    let (sampled, same) = given(&Run { sample: Some(plan), ..run });
    assert_eq!(printed, same, "{name}: the output");
    let sample = sampled.sample.as_ref().expect("it was sampled");
    assert!(sample.windows > 50 && sample.timed < sample.followed, "{name}: {sample:?}");
    let (full, sampled) = (counts(&full, 0), counts(&sampled, 0));
    for signal in [Signal::InstRetired, Signal::LdSpec, Signal::FpDpScaleOps] {
        assert_eq!(full.get(signal), sampled.get(signal), "{name}: {}", signal.name());
    }
    sampled.get(Signal::CpuCycles) as f64 / full.get(Signal::CpuCycles) as f64 - 1.0
}

#[test]
fn a_program_that_is_shorter_than_the_beginning_is_timed_as_without_sampling() {
    for run in [
        Run::new(kernel("sort.elf"), "n=1000 passes=1"),
        Run::new(kernel("lock.elf"), "threads=3"),
        Run::new(build("threads.c", &["-pthread"]), ""),
    ] {
        let (full, _) = given(&run);
        let (sampled, _) = given(&Run { sample: Some("auto"), ..run });
        let sample = sampled.sample.as_ref().expect("it was sampled");
        assert_eq!((sample.windows, sample.timed, sample.followed), (0, 0, 0));
        let signals = |outcome: &Outcome| {
            let regions = outcome.regions.iter();
            regions.flat_map(|r| r.threads.values().map(|c| c.signals().clone())).collect::<Vec<_>>()
        };
        assert_eq!(signals(&full), signals(&sampled));
        assert_eq!((full.now_ns, full.hot), (sampled.now_ns, sampled.hot));
    }
}

#[test]
fn estimates_of_one_thread_are_near_what_timing_everything_gives() {
    for (program, arguments) in [("sort.elf", "n=20000 passes=1"), ("hashjoin.elf", "")] {
        let run = Run { max_instructions: Some(3_000_000), ..Run::new(kernel(program), arguments) };
        let error = compared(run, PLAN);
        assert!(error.abs() < 0.03, "{program}: {error}");
    }
}

#[test]
fn estimates_of_threads_that_meet_at_barriers_are_near_what_timing_everything_gives() {
    let run = Run::new(kernel("triad-threads.elf"), "n=6144 passes=600 threads=4");
    let (full, _) = given(&run);
    let (sampled, _) = given(&Run { sample: Some(PLAN), ..run });
    let (full, sampled) = (counts(&full, 0), counts(&sampled, 0));
    let ratio = |signal| sampled.get(signal) as f64 / full.get(signal) as f64;
    assert_eq!(full.get(Signal::FpDpScaleOps), sampled.get(Signal::FpDpScaleOps));
    assert!((ratio(Signal::CpuCycles) - 1.0).abs() < 0.03, "cycles {}", ratio(Signal::CpuCycles));
    assert!((ratio(Signal::L1dCacheRefill) - 1.0).abs() < 0.05, "refills {}", ratio(Signal::L1dCacheRefill));
}

#[test]
fn counts_that_do_not_depend_on_time_need_no_sample() {
    let run = Run { max_instructions: Some(2_000_000), ..Run::new(kernel("hashjoin.elf"), "") };
    let (full, _) = given(&run);
    let (sampled, _) = given(&Run { sample: Some(PLAN), ..run });
    let (full, sampled) = (counts(&full, 0), counts(&sampled, 0));
    for signal in [Signal::L1dCacheRefill, Signal::L2dCacheRefill, Signal::L2dTlbRefill, Signal::BrMisPred] {
        let (full, sampled) = (full.get(signal), sampled.get(signal));
        assert!(full.abs_diff(sampled) * 500 <= full, "{}: {full} and {sampled}", signal.name());
    }
}

#[test]
fn cycles_and_their_causes_add_up_in_estimates_too() {
    let run = Run { max_instructions: Some(1_000_000), ..Run::new(kernel("hashjoin.elf"), "") };
    let (full, _) = given(&run);
    let (sampled, _) = given(&Run { sample: Some(PLAN), ..run });
    let all = counts(&sampled, 0);
    let commits = [Signal::Commit0, Signal::Commit1, Signal::Commit2, Signal::Commit3, Signal::Commit4];
    assert_eq!(commits.iter().map(|&s| all.get(s)).sum::<u64>(), all.get(Signal::CpuCycles));
    // Cycles in which the kernel works on pages belong to no instruction.
    let elsewhere = |outcome: &Outcome| {
        let spots: u64 = outcome.hot.iter().map(|spot| spot.profile.cycles).sum();
        counts(outcome, 0).get(Signal::CpuCycles) as f64 - spots as f64
    };
    let difference = (elsewhere(&full) - elsewhere(&sampled)).abs() / all.get(Signal::CpuCycles) as f64;
    assert!(difference < 0.02, "{difference}");
}

#[test]
fn replicates_belong_to_regions_and_differ_in_what_is_estimated_only() {
    let run = Run { max_instructions: Some(1_000_000), ..Run::new(kernel("hashjoin.elf"), "") };
    let (outcome, _) = given(&Run { sample: Some(PLAN), ..run });
    let sample = outcome.sample.as_ref().expect("it was sampled");
    assert_eq!(sample.regions.len(), outcome.regions.len());
    let (all, replicates) = (counts(&outcome, 0), &sample.regions[0].replicates);
    assert!(replicates.len() > 10);
    assert!(replicates.iter().all(|r| r.get(Signal::L1dCacheRefill) == all.get(Signal::L1dCacheRefill)));
    assert!(replicates.iter().any(|r| r.get(Signal::CpuCycles) != all.get(Signal::CpuCycles)));
}

#[test]
fn the_share_of_waiting_is_that_of_sleep_and_spin_loops() {
    let waiting = |run: Run| {
        let (outcome, _) = given(&Run { sample: Some(PLAN), ..run });
        let all = counts(&outcome, 0);
        let asleep = all.get(Signal::WfeWfiCycle) as f64 / all.get(Signal::CpuCycles) as f64;
        (outcome.sample.expect("it was sampled").waiting, asleep)
    };
    let alone = Run { max_instructions: Some(400_000), ..Run::new(kernel("hashjoin.elf"), "") };
    assert_eq!(waiting(alone), (0.0, 0.0));
    let (share, asleep) = waiting(Run::new(kernel("triad-threads.elf"), "n=6144 passes=60 threads=4"));
    assert!(share >= asleep && share > 0.01 && share < 0.9, "{share}, asleep {asleep}");
}

#[test]
fn replicates_of_threads_have_a_last_pair_with_longer_and_shorter_waits() {
    let of = |run: Run| given(&Run { sample: Some(PLAN), ..run }).0.sample.expect("it was sampled");
    let threads = of(Run::new(kernel("triad-threads.elf"), "n=6144 passes=60 threads=4"));
    let cycles = |signals: &Signals| signals.get(Signal::CpuCycles) as f64;
    let all = &threads.regions[0];
    let [.., short, long] = &all.replicates[..] else { panic!("a pair") };
    let (short, estimate, long) = (cycles(short), cycles(&all.estimate), cycles(long));
    let error = threads.clocks.abs().min(threads.waiting) / 2.0;
    assert!(error > 0.0, "{} {}", threads.clocks, threads.waiting);
    assert!(((long - short) / 2.0 / estimate - error).abs() < 1e-4, "{short} {estimate} {long}, {error}");
    assert!(((long + short) / 2.0 / estimate - 1.0).abs() < 1e-4, "{short} {estimate} {long}");

    // A thread that waits for no other.
    let alone = of(Run { max_instructions: Some(400_000), ..Run::new(kernel("hashjoin.elf"), "") });
    assert!(alone.regions[0].replicates.len() <= DEFAULT_GROUPS);
}
