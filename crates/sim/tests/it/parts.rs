//! Runs of which a part is timed.

use fxscope_aarch64::Interpreter;
use fxscope_counts::{Signal, Signals};
use fxscope_sim::part::{PartPlan, PartSummary, Point, Selection, Warming};
use fxscope_sim::{Control, Outcome, Region};

use crate::common::{Run, build, kernel, text};

/// A part between two points; an empty text is none.
pub fn between(from: &str, until: &str) -> PartPlan {
    let point = |text: &str| -> Option<Point> {
        Some(text).filter(|text| !text.is_empty()).map(|text| text.parse().expect("a point"))
    };
    PartPlan::new(Selection::Between { from: point(from), until: point(until) })
}

pub fn with(plan: PartPlan, warming: Warming) -> PartPlan {
    PartPlan { warming, ..plan }
}

/// A run of the program with steps.
pub fn steps(arguments: &'static str) -> Run {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    Run::new(build("parts.c", &["-pthread", include]), arguments)
}

/// What a run gives, and its output.
fn given(run: &Run) -> (Outcome, String) {
    let output = tempfile::tempfile().expect("temporary file");
    let outcome = run.simulation::<Interpreter>(&output).run(&mut |_| Control::Continue);
    (outcome, text(output))
}

fn part_of(run: &Run, plan: PartPlan) -> (Outcome, PartSummary) {
    let (_, whole) = given(&Run { mode: fxscope_sim::Mode::Functional, ..run.clone() });
    let (outcome, printed) = given(&Run { part: Some(plan.clone()), ..run.clone() });
    assert_eq!(printed, whole, "{plan}: the output is whole");
    let summary = outcome.part.clone().expect("a part");
    (outcome, summary)
}

/// The counts of all threads of a region.
fn counts(outcome: &Outcome, name: &str) -> Signals {
    let mut all = Signals::default();
    let region = region(outcome, name);
    region.threads.values().for_each(|counted| all.merge(counted.signals()));
    all
}

fn region<'a>(outcome: &'a Outcome, name: &str) -> &'a Region {
    outcome.regions.iter().find(|region| region.name == name).unwrap_or_else(|| panic!("no region {name}"))
}

fn instructions(outcome: &Outcome, name: &str) -> u64 {
    counts(outcome, name).get(Signal::InstRetired)
}

fn cycles(outcome: &Outcome, name: &str) -> u64 {
    counts(outcome, name).get(Signal::CpuCycles)
}

/// The relative error of a number.
fn error(number: u64, right: u64) -> f64 {
    number as f64 / right as f64 - 1.0
}

#[test]
fn a_part_that_is_the_whole_run_counts_what_the_run_counts_byte_for_byte() {
    for run in [
        Run::new(kernel("sort.elf"), "n=1000 passes=1"),
        Run::new(kernel("lock.elf"), "threads=3"),
        steps("barrier 3 3"),
        steps("fork 2 2"),
    ] {
        let (whole, _) = given(&run);
        for plan in [between("instructions=0", ""), between("", "instructions=1000G"), between("time=0ns", "")] {
            let (part, summary) = part_of(&run, plan);
            let everything = |outcome: &Outcome| {
                let Outcome { regions, intervals, hot, mpi, now_ns, unpaired, .. } = outcome;
                format!("{regions:?} {intervals:?} {hot:?} {mpi:?} {now_ns} {unpaired:?}")
            };
            assert_eq!(everything(&part), everything(&whole));
            assert_eq!((summary.skipped, summary.followed, summary.behind, summary.executions), (0, 0, 0, 1));
        }
    }
}

#[test]
fn parts_between_numbers_of_instructions_have_the_counts_of_that_part_of_the_whole_run() {
    let run = Run::new(kernel("hashjoin.elf"), "");
    let until = |n: &str| {
        let (outcome, _) = given(&Run { part: Some(PartPlan { stops: true, ..between("", n) }), ..run.clone() });
        (instructions(&outcome, "all"), cycles(&outcome, "all"))
    };
    let (first, last) = (until("instructions=400k"), until("instructions=800k"));
    // A table of 100,000 instructions is far from warm.
    for (warming, most) in [(Warming::All, 0.02), (Warming::Instructions(100_000), 0.6), (Warming::Nothing, 2.0)] {
        let stops = PartPlan { stops: true, ..with(between("instructions=400k", "instructions=+400k"), warming) };
        let (outcome, _) = given(&Run { part: Some(stops), ..run.clone() });
        let summary = outcome.part.clone().expect("a part");
        assert!(instructions(&outcome, "all").abs_diff(last.0 - first.0) <= 128, "{warming:?}");
        assert_eq!(summary.timed, instructions(&outcome, "all"));
        let error = error(cycles(&outcome, "all"), last.1 - first.1);
        assert!(error.abs() < most, "{warming:?}: {error}");
        let followed = match warming {
            Warming::All => 400_000,
            Warming::Instructions(n) => n,
            _ => 0,
        };
        assert!(summary.followed.abs_diff(followed) <= 128, "{summary:?}");
        assert!((summary.skipped + summary.followed).abs_diff(400_000) <= 128, "{summary:?}");
    }
}

#[test]
fn a_call_of_a_function_is_timed_whether_what_comes_before_is_followed_or_skipped() {
    let run = steps("alone 1 6");
    let (whole, _) = given(&run);
    let each = instructions(&whole, "work") / 6;
    for warming in [Warming::Default, Warming::Nothing] {
        for (from, until, calls) in [
            ("function=step", "function=step", 1),
            ("function=step#3", "function=step", 1),
            ("function=step#3", "function=step#4", 2),
            ("function=step#3", "function=step#+3", 3),
        ] {
            let (outcome, summary) = part_of(&run, with(between(from, until), warming));
            assert!(summary.ended && summary.executions == 1, "{from} {until}: {summary:?}");
            assert_eq!(summary.timed, instructions(&outcome, "all"));
            let of_calls = counts(&outcome, "work");
            // Marks and the calls themselves, and what is between calls.
            let between = calls - 1;
            assert!(instructions(&outcome, "all") >= calls * each - 64 * calls, "{from} {until} {warming:?}");
            assert!(of_calls.get(Signal::InstRetired) <= calls * each, "{from} {until} {warming:?}");
            assert_eq!(region(&outcome, "work").calls, calls, "{from} {until} {warming:?}");
            let functions: Vec<&str> =
                outcome.hot.iter().filter_map(|spot| spot.function.as_ref().map(|(name, _)| name.as_str())).collect();
            assert!(functions.contains(&"step") && !functions.contains(&"prepare"));
            assert_eq!(functions.contains(&"between"), between > 0);
            let executed: u64 = outcome.hot.iter().map(|spot| spot.executions).sum();
            assert_eq!(executed, instructions(&outcome, "all"), "{from} {until} {warming:?}");
        }
    }
}

#[test]
fn each_execution_of_a_region_is_timed_and_nothing_else() {
    let run = steps("alone 1 6");
    let (whole, _) = given(&run);
    for (warming, skips) in [(Warming::Default, false), (Warming::Nothing, true)] {
        let (outcome, summary) = part_of(&run, with(PartPlan::new(Selection::Region("work".to_owned())), warming));
        assert_eq!((summary.executions, summary.skipped > 0), (6, skips), "{summary:?}");
        assert_eq!(region(&outcome, "work").calls, 6);
        let [part, of_whole] = [instructions(&outcome, "all"), instructions(&whole, "work")];
        assert!(part.abs_diff(of_whole) <= 6 * 8, "{part} for {of_whole}");
        assert_eq!(part, summary.timed);
        let error = error(cycles(&outcome, "all"), cycles(&whole, "work"));
        assert!(error.abs() < 0.05, "{warming:?}: {error}");
    }
}

#[test]
fn a_part_by_time_begins_and_ends_by_the_guest_s_clock() {
    let run = steps("barrier 2 20");
    for warming in [Warming::All, Warming::Instructions(20_000), Warming::Nothing] {
        let (outcome, summary) = part_of(&run, with(between("time=500us", "time=+100us"), warming));
        assert!((500_000..530_000).contains(&summary.begin_ns), "{summary:?}");
        let per_thread = cycles(&outcome, "all") / 2;
        // 100 us at 2.2 GHz.
        assert!((190_000..240_000).contains(&per_thread), "{warming:?}: {per_thread} {summary:?}");
    }
}

#[test]
fn a_part_that_never_begins_has_no_counts() {
    for plan in [
        between("function=nothing", ""),
        with(between("region=nothing", ""), Warming::Nothing),
        between("instructions=1000G", ""),
        PartPlan::new(Selection::Region("nothing".to_owned())),
    ] {
        let (outcome, summary) = part_of(&steps("alone 1 2"), plan);
        assert_eq!((summary.timed, summary.executions, summary.ended), (0, 0, false));
        assert_eq!((outcome.regions.len(), instructions(&outcome, "all"), outcome.hot.len()), (1, 0, 0));
    }
}

#[test]
fn a_sample_is_one_of_the_part() {
    let run = Run { sample: Some("begin=2000,window=500,warm=100,period=3000,keep=100000"), ..steps("alone 1 20") };
    let (whole, _) = given(&Run { sample: None, ..run.clone() });
    let (outcome, summary) = part_of(&run, PartPlan::new(Selection::Region("work".to_owned())));
    let sample = outcome.sample.as_ref().expect("a sample");
    assert_eq!(sample.exact + sample.timed + sample.followed, summary.timed);
    assert_eq!(instructions(&outcome, "all"), summary.timed);
    let error = error(cycles(&outcome, "all"), cycles(&whole, "work"));
    assert!(sample.windows > 10 && error.abs() < 0.05, "{error} {sample:?}");
}

/// Takes seconds of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_part_of_threads_that_meet_wait_or_sleep_leaves_their_results_alone() {
        for arguments in ["barrier 4 6", "spin 3 6", "sleep 3 4", "fork 3 3"] {
            let run = steps(arguments);
            let (whole, _) = given(&run);
            for warming in [Warming::Default, Warming::Nothing] {
                let (outcome, summary) = part_of(&run, with(between("region=work#2", "region=work#3"), warming));
                assert!(
                    summary.ended && summary.timed > 0 && summary.behind > 0,
                    "{arguments} {warming:?}: {summary:?}"
                );
                assert!(
                    region(&outcome, "all")
                        .threads
                        .values()
                        .any(|counted| counted.signals().get(Signal::FpDpFixedOps) > 0)
                );
            }
            let (outcome, summary) = part_of(&run, PartPlan::new(Selection::Region("work".to_owned())));
            let ratio = cycles(&outcome, "all") as f64 / cycles(&whole, "all") as f64;
            assert!(ratio > 0.1 && ratio <= 1.05, "{arguments}: {ratio} {summary:?}");
        }
    }
}
