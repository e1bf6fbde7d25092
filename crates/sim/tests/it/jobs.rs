//! Runs whose intervals are timed at the same time.

use std::collections::BTreeMap;

use fxscope_aarch64::{Engine, Interpreter};
use fxscope_counts::Signal;
use fxscope_sim::{
    Control, Finish, Jobs, JobsError, Options, Outcome, Simulation, Task, TaskCounts, Timers, Unfit, Unreadable,
};
use fxscope_translate::Translator;

use crate::common::{Run, build, counts, kernel, streams, text};

/// Short intervals, so that there are many.
const INTERVAL: u64 = 30_000;

fn simulation<E: Engine>(run: &Run, output: &std::fs::File) -> Simulation<E> {
    Simulation::new(run.guest(streams(output)), Options { interval_ns: None, ..run.options() })
}

/// What a run in intervals gives, and its output.
fn in_jobs<E: Engine>(run: &Run, threads: usize, interval: u64) -> (Result<Outcome, JobsError>, String) {
    let output = tempfile::tempfile().expect("temporary file");
    let jobs = Jobs { threads, interval };
    let outcome = simulation::<E>(run, &output).run_in_jobs(&jobs, &mut |_| Control::Continue);
    (outcome, text(output))
}

/// The same of a program that fits.
fn outcome(run: &Run, threads: usize, interval: u64) -> (Outcome, String) {
    let (outcome, printed) = in_jobs::<Interpreter>(run, threads, interval);
    (outcome.unwrap_or_else(|why| panic!("{}: {why}", run.program.display())), printed)
}

/// What a run in one piece gives, and its output.
fn whole(run: &Run) -> (Outcome, String) {
    let output = tempfile::tempfile().expect("temporary file");
    let outcome = simulation::<Interpreter>(run, &output).run(&mut |_| Control::Continue);
    (outcome, text(output))
}

/// Everything that a run gives, in words.
fn everything((outcome, printed): &(Outcome, String)) -> String {
    let Outcome { finish, now_ns, regions, calls, hot, files, unpaired, unknown_classes, .. } = outcome;
    format!(
        "{finish:?} {now_ns} {regions:?}\n{calls:?}\n{hot:?}\n{files:?} {unpaired:?} {unknown_classes:?}\n{printed}"
    )
}

/// A program between whose blocks much happens.
fn alone(rounds: &'static str) -> Run {
    Run::new(build("alone.c", &[concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include")]), rounds)
}

fn programs() -> Vec<Run> {
    vec![
        alone("4"),
        Run::new(kernel("sort.elf"), "n=4000 passes=1"),
        Run::new(kernel("spmv.elf"), "n=1000 reps=2"),
        Run::new(kernel("masked.elf"), "rows=20"),
        Run::new(kernel("gather.elf"), "n=1000 passes=1"),
        Run::new(build("signals.c", &[]), ""),
    ]
}

#[test]
fn results_do_not_depend_on_the_number_of_host_threads() {
    for run in programs() {
        let one = everything(&outcome(&run, 1, INTERVAL));
        for threads in [2, 3] {
            let more = everything(&outcome(&run, threads, INTERVAL));
            one.lines().zip(more.lines()).for_each(|(one, more)| assert_eq!(one, more, "{}", run.program.display()));
            assert_eq!(one, more, "{}: {threads} threads", run.program.display());
        }
    }
}

#[test]
fn results_do_not_depend_on_the_engine() {
    let run = alone("3");
    let (translated, printed) = in_jobs::<Translator<50>>(&run, 2, INTERVAL);
    let translated = everything(&(translated.expect("it fits"), printed));
    assert_eq!(translated, everything(&outcome(&run, 1, INTERVAL)));
}

/// A run of one interval begins with an empty machine, as one in one piece does. The first program sleeps: how long, its clock decides.
#[test]
fn one_interval_for_all_gives_what_a_run_in_one_piece_gives() {
    for run in programs().into_iter().skip(1) {
        assert_eq!(everything(&outcome(&run, 1, u64::MAX)), everything(&whole(&run)), "{}", run.program.display());
    }
}

#[test]
fn what_does_not_depend_on_time_is_that_of_a_run_in_one_piece() {
    let executions = |outcome: &Outcome| -> BTreeMap<(Option<u32>, u64), u64> {
        outcome.hot.iter().map(|spot| ((spot.file, spot.place), spot.executions)).collect()
    };
    let calls = |outcome: &Outcome| -> Vec<(u32, u64)> {
        outcome.calls.threads.values().flatten().map(|context| (context.function, context.calls)).collect()
    };
    for run in programs() {
        let name = run.program.display().to_string();
        let (all, printed) = whole(&run);
        let (parts, same) = outcome(&run, 2, INTERVAL);
        assert_eq!((&same, executions(&parts), calls(&parts)), (&printed, executions(&all), calls(&all)), "{name}");
        assert_eq!(parts.regions.len(), all.regions.len(), "{name}");
        for (number, (part, all)) in parts.regions.iter().zip(&all.regions).enumerate() {
            assert_eq!((&part.name, part.calls), (&all.name, all.calls), "{name}");
            assert!(number == 0 || part.calls > 0, "{name}");
        }
        for number in 0..all.regions.len() {
            for signal in
                [Signal::InstRetired, Signal::LdSpec, Signal::StSpec, Signal::FpDpFixedOps, Signal::SubnormalCycles]
            {
                let [part, all] = [&parts, &all].map(|outcome| counts(outcome, number).get(signal));
                assert_eq!(part, all, "{name}: {}, region {number}", signal.name());
            }
        }
    }
}

/// Intervals of 30,000 instructions are 300 times as short as usual ones, and each begins with empty queues.
#[test]
fn cycles_are_nearly_those_of_a_run_in_one_piece() {
    for run in programs() {
        let cycles = |outcome: &Outcome| counts(outcome, 0).get(Signal::CpuCycles) as f64;
        let (all, parts) = (cycles(&whole(&run).0), cycles(&outcome(&run, 2, INTERVAL).0));
        assert!((parts / all - 1.0).abs() < 0.01, "{}: {parts} instead of {all}", run.program.display());
    }
}

#[test]
fn cycles_and_time_of_calls_and_instructions_add_up_to_those_of_the_run() {
    let (outcome, _) = outcome(&alone("4"), 2, INTERVAL);
    let all = counts(&outcome, 0);
    let slept = all.get(Signal::WfeWfiCycle);
    let awake = all.get(Signal::CpuCycles) - slept;
    assert!(slept >= 4 * 30 * 2_000 && outcome.now_ns.abs_diff(all.get(Signal::CpuCycles) / 2) <= 1, "{slept}");
    let calls: u64 = outcome.calls.threads.values().flatten().map(|context| context.cycles).sum();
    assert!(calls.abs_diff(awake) <= 1, "{calls} of {awake}");
}

#[test]
fn a_run_that_is_stopped_or_limited_has_the_counts_until_then() {
    let run = Run { max_instructions: Some(100_000), ..Run::new(kernel("sort.elf"), "n=4000 passes=1") };
    let (limited, _) = outcome(&run, 2, INTERVAL);
    assert!(matches!(limited.finish, Finish::Limit));
    let instructions = counts(&limited, 0).get(Signal::InstRetired);
    assert!((100_000..101_000).contains(&instructions), "{instructions}");
    let output = tempfile::tempfile().expect("temporary file");
    let mut simulation = simulation::<Interpreter>(&Run { max_instructions: None, ..run }, &output);
    let stopped = simulation.run_in_jobs(&Jobs { threads: 2, interval: INTERVAL }, &mut |_| Control::Stop);
    let stopped = stopped.expect("it fits");
    assert!(matches!(stopped.finish, Finish::Stopped));
    assert_eq!(counts(&stopped, 0).get(Signal::InstRetired), simulation.guest().instructions());
}

#[test]
fn programs_that_do_not_fit_are_given_up_with_the_reason() {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../include");
    let environment = "XOS_MMM_L_PAGING_POLICY=demand:demand:demand";
    let parts = build("parts.c", &["-pthread", include]);
    for (run, why) in [
        (Run::new(kernel("lock.elf"), "threads=3"), Unfit::Starts),
        (Run::new(parts, "fork 2 2"), Unfit::Starts),
        (Run { environment, ..Run::new(build("events.c", &[]), "timed") }, Unfit::Events),
    ] {
        let name = run.program.display().to_string();
        for threads in [1, 3] {
            let (given, _) = in_jobs::<Interpreter>(&run, threads, INTERVAL);
            assert!(matches!(&given, Err(JobsError::Unfit(unfit)) if *unfit == why), "{name}: {:?}", given.err());
        }
    }
    let sampled = Run { sample: Some("auto"), ..Run::new(kernel("sort.elf"), "n=1000 passes=1") };
    assert!(matches!(in_jobs::<Interpreter>(&sampled, 1, INTERVAL).0, Err(JobsError::Options)));
}

/// Keeps intervals as bytes, and times them at the end, the last one first.
#[derive(Default)]
struct Kept {
    tasks: Vec<Vec<u8>>,
    /// The first one, and what it has counted.
    first: Vec<u8>,
    counts: Vec<u8>,
}

impl Timers for Kept {
    fn give(&mut self, task: Task) -> Result<Option<TaskCounts>, String> {
        assert_eq!(task.number(), self.tasks.len());
        self.tasks.push(task.to_bytes()?);
        Ok(None)
    }

    fn done(&mut self) -> Result<Option<TaskCounts>, String> {
        Ok(None)
    }

    fn rest(&mut self) -> Result<Option<TaskCounts>, String> {
        let Some(task) = self.tasks.pop() else { return Ok(None) };
        let counts = Task::from_bytes(&task).map_err(|why| why.to_string())?.time();
        assert_eq!(counts.number(), self.tasks.len());
        (self.first, self.counts) = (task, counts.to_bytes()?);
        TaskCounts::from_bytes(&self.counts).map(Some).map_err(|why| why.to_string())
    }
}

#[test]
fn a_run_ends_with_the_reason_why_its_intervals_cannot_be_timed() {
    struct Fails;
    impl Timers for Fails {
        fn give(&mut self, task: Task) -> Result<Option<TaskCounts>, String> {
            if task.number() == 2 { Err("they are away".to_owned()) } else { Ok(Some(task.time())) }
        }

        fn done(&mut self) -> Result<Option<TaskCounts>, String> {
            Ok(None)
        }

        fn rest(&mut self) -> Result<Option<TaskCounts>, String> {
            Ok(None)
        }
    }
    let output = tempfile::tempfile().expect("temporary file");
    let mut simulation = simulation::<Interpreter>(&alone("2"), &output);
    let outcome = simulation.run_with_timers(INTERVAL, &mut Fails, &mut |_| Control::Continue);
    assert!(matches!(outcome, Err(JobsError::Timers(why)) if why == "they are away"));
}

#[test]
fn bytes_that_end_too_early_or_too_late_are_no_interval_and_no_counts() {
    let output = tempfile::tempfile().expect("temporary file");
    let run = Run { max_instructions: Some(INTERVAL / 2), ..Run::new(kernel("sort.elf"), "n=1000 passes=1") };
    let mut kept = Kept::default();
    let mut simulation = simulation::<Interpreter>(&run, &output);
    simulation.run_with_timers(INTERVAL, &mut kept, &mut |_| Control::Continue).expect("it fits");
    let task = kept.first;
    let longer = |bytes: &[u8]| [bytes, &[0]].concat();
    for part in 0..50 {
        let (task, counts) = (&task[..task.len() * part / 50], &kept.counts[..kept.counts.len() * part / 50]);
        assert_eq!(Task::from_bytes(task).err(), Some(Unreadable), "{part}");
        assert_eq!(TaskCounts::from_bytes(counts).err(), Some(Unreadable), "{part}");
    }
    assert_eq!(Task::from_bytes(&longer(&task)).err(), Some(Unreadable));
    assert_eq!(TaskCounts::from_bytes(&longer(&kept.counts)).err(), Some(Unreadable));
}

/// They take seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn intervals_that_were_bytes_count_the_same_in_any_order() {
        for run in programs() {
            let output = tempfile::tempfile().expect("temporary file");
            let mut simulation = simulation::<Interpreter>(&run, &output);
            let outcome = simulation.run_with_timers(INTERVAL, &mut Kept::default(), &mut |_| Control::Continue);
            let kept = everything(&(outcome.expect("it fits"), text(output)));
            let one = everything(&self::outcome(&run, 1, INTERVAL));
            one.lines().zip(kept.lines()).for_each(|(one, kept)| assert_eq!(one, kept, "{}", run.program.display()));
            assert_eq!(one, kept, "{}", run.program.display());
        }
    }
}
