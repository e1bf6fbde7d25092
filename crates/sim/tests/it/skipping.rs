//! Sampled runs that follow only what comes before a window, and execute the rest without keeping caches warm.

use std::collections::BTreeMap;

use fxscope_counts::{Signal, Signals};
use fxscope_sim::{Outcome, SampleSummary};

use crate::common::{Run, build, counts, given, kernel};

/// Plans for short programs, which differ in what is followed.
const ALL: &str = "begin=20000,window=1000,warm=300,period=40000,keep=100000,follow=all";
const LITTLE: &str = "begin=20000,window=1000,warm=300,period=40000,keep=100000,follow=8000";

/// How often each instruction was executed.
fn executions(outcome: &Outcome) -> BTreeMap<(Option<u32>, u64), u64> {
    outcome.hot.iter().map(|spot| ((spot.file, spot.place), spot.executions)).collect()
}

/// Signals that are exact in sampled runs in which all is followed, and in those in which little is.
const EXACT: [Signal; 6] = [
    Signal::InstRetired,
    Signal::LdSpec,
    Signal::StSpec,
    Signal::FpDpScaleOps,
    Signal::FpDpFixedOps,
    Signal::BrImmedSpec,
];

#[test]
fn executions_are_exact_by_instruction_thread_and_region_although_most_are_skipped() {
    for (program, arguments) in [("sort.elf", "n=6000 passes=1"), ("triad-threads.elf", "n=6144 passes=60 threads=1")] {
        let run = Run::new(kernel(program), arguments);
        let (followed, printed) = given(&Run { sample: Some(ALL), ..run.clone() });
        let (skipped, same) = given(&Run { sample: Some(LITTLE), ..run });
        assert_eq!(printed, same, "{program}: the output");
        let [of_followed, of_skipped] = [&followed, &skipped].map(|outcome| outcome.sample.clone().expect("a sample"));
        let skipped_in = |sample: &SampleSummary| sample.skipped.as_ref().map_or(0, |skipped| skipped.instructions);
        let all = |sample: &SampleSummary| sample.exact + sample.timed + sample.followed + skipped_in(sample);
        assert_eq!((skipped_in(&of_followed), all(&of_followed)), (0, all(&of_skipped)), "{program}");
        assert!(skipped_in(&of_skipped) * 2 > all(&of_skipped), "{program}: {of_skipped:?}");
        assert_eq!(executions(&followed), executions(&skipped), "{program}");
        assert_eq!(followed.regions.len(), skipped.regions.len());
        for region in 0..followed.regions.len() {
            let [one, other] = [&followed, &skipped].map(|outcome| counts(outcome, region));
            for signal in EXACT {
                assert_eq!(one.get(signal), other.get(signal), "{program}: {}, region {region}", signal.name());
            }
        }
    }
}

#[test]
fn what_depends_on_caches_and_predictors_is_estimated_where_they_were_not_kept_warm() {
    let run = Run::new(kernel("sort.elf"), "n=6000 passes=1");
    let (full, _) = given(&run);
    let (skipped, _) = given(&Run { sample: Some(LITTLE), ..run });
    let (full, estimated) = (counts(&full, 0), counts(&skipped, 0));
    for (signal, error) in [(Signal::CpuCycles, 0.08), (Signal::BrMisPred, 0.1)] {
        let ratio = estimated.get(signal) as f64 / full.get(signal) as f64;
        assert!((ratio - 1.0).abs() < error, "{}: {ratio}", signal.name());
    }
    let replicates = &skipped.sample.as_ref().expect("a sample").regions[0].replicates;
    let missed = |signals: &Signals| signals.get(Signal::BrMisPred);
    assert!(replicates.iter().any(|replicate| missed(replicate) != missed(&estimated)), "they have an interval");
}

#[test]
fn a_program_without_windows_ahead_skips_nothing_and_one_with_system_calls_stops_for_each() {
    let run = Run { max_instructions: Some(400_000), ..Run::new(build("signals.c", &[]), "") };
    let (followed, printed) = given(&Run { sample: Some(ALL), ..run.clone() });
    let (skipped, same) = given(&Run { sample: Some(LITTLE), ..run });
    assert_eq!(printed, same);
    assert_eq!(executions(&followed), executions(&skipped));
}

#[test]
fn threads_that_skip_blocks_meet_at_barriers_and_execute_the_same_work() {
    let run = Run::new(kernel("triad-threads.elf"), "n=6144 passes=60 threads=4");
    let (followed, printed) = given(&Run { sample: Some(ALL), ..run.clone() });
    let (skipped, same) = given(&Run { sample: Some(LITTLE), ..run });
    assert_eq!(printed, same);
    let [one, other] = [&followed, &skipped].map(|outcome| counts(outcome, 0));
    assert_eq!(one.get(Signal::FpDpScaleOps), other.get(Signal::FpDpScaleOps));
    let instructions = skipped.sample.as_ref().and_then(|sample| sample.skipped.as_ref()).map(|it| it.instructions);
    assert!(instructions.is_some_and(|number| number > 100_000), "{instructions:?}");
    let ratio = other.get(Signal::CpuCycles) as f64 / one.get(Signal::CpuCycles) as f64;
    assert!((ratio - 1.0).abs() < 0.15, "{ratio}");
}

#[test]
fn processes_that_execute_different_code_at_the_same_time_are_skipped_each_by_its_own() {
    let run = Run::new(build("unlike.c", &[]), "");
    let (followed, printed) = given(&Run { sample: Some(ALL), ..run.clone() });
    let (skipped, same) = given(&Run { sample: Some(LITTLE), ..run });
    assert_eq!(printed.lines().collect::<std::collections::BTreeSet<_>>(), same.lines().collect());
    let instructions = skipped.sample.as_ref().and_then(|sample| sample.skipped.as_ref()).map(|it| it.instructions);
    assert!(instructions.is_some_and(|number| number > 500_000), "{instructions:?}");
    let [one, other] = [&followed, &skipped].map(|outcome| counts(outcome, 0).get(Signal::CpuCycles));
    let ratio = other as f64 / one as f64;
    assert!((ratio - 1.0).abs() < 0.15, "{ratio}");
}

#[test]
fn waits_of_threads_in_skipped_code_are_known_from_the_clock() {
    // One of two threads spins while the other one adds for 9,000 cycles: less than the quanta of skipped code that tell a spin loop.
    let run = Run::new(build("turns.c", &["-fno-fast-math"]), "200 1000");
    let (full, printed) = given(&run);
    let (skipped, same) = given(&Run { sample: Some(LITTLE), ..run });
    assert_eq!(printed, same);
    let instructions = skipped.sample.as_ref().and_then(|sample| sample.skipped.as_ref()).map(|it| it.instructions);
    assert!(instructions.is_some_and(|number| number > 500_000), "{instructions:?}");
    // The beginning of 20,000 instructions and 400 waits, of each of which some iterations of a few instructions are timed.
    let exact = skipped.sample.as_ref().map(|sample| sample.exact);
    assert!(exact.is_some_and(|number| number < 20_000 + 400 * 100), "{exact:?}");
    for signal in [Signal::CpuCycles, Signal::InstRetired] {
        let [one, other] = [&full, &skipped].map(|outcome| counts(outcome, 0).get(signal));
        let ratio = other as f64 / one as f64;
        assert!((ratio - 1.0).abs() < 0.02, "{}: {ratio}", signal.name());
    }
}

#[test]
fn a_wait_ends_with_a_misprediction_however_few_of_its_iterations_are_executed() {
    // The last iteration of a loop that has spun for long goes another way than all before it.
    let run = Run::new(build("turns.c", &["-fno-fast-math"]), "200 1000");
    let (full, _) = given(&run);
    let (followed, _) = given(&Run { sample: Some(ALL), ..run });
    let [one, other] = [&full, &followed].map(|outcome| counts(outcome, 0).get(Signal::BrMisPred));
    assert!(one > 400 && one.abs_diff(other) * 10 < one, "{one} {other}");
}

#[test]
fn trials_of_all_cores_decide_how_much_is_skipped_while_threads_run() {
    const TRIED: &str = "begin=20000,window=100,warm=100,period=12000,keep=100000,rare=0,follow=auto";
    let run = Run::new(kernel("triad-threads.elf"), "n=6144 passes=300 threads=4");
    let (followed, printed) = given(&Run { sample: Some(ALL), ..run.clone() });
    let (tried, same) = given(&Run { sample: Some(TRIED), ..run });
    assert_eq!(printed, same);
    let skipped = tried.sample.as_ref().and_then(|sample| sample.skipped.as_ref()).expect("something was skipped");
    let bias = skipped.bias.expect("windows were tried");
    // What is followed covers the arrays of a thread: copies are then as their cores are.
    assert!(bias.trials >= 8 && bias.relative.abs() < 0.02, "{bias:?}");
    assert!(skipped.instructions > 20_000, "{skipped:?}");
    let [one, other] = [&followed, &tried].map(|outcome| counts(outcome, 0));
    assert_eq!(one.get(Signal::FpDpScaleOps), other.get(Signal::FpDpScaleOps));
    let ratio = other.get(Signal::CpuCycles) as f64 / one.get(Signal::CpuCycles) as f64;
    assert!((ratio - 1.0).abs() < 0.15, "{ratio}");
}
