//! Runs of scenarios, alone and in batches.

use std::sync::atomic::Ordering;
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use fxscope_lab::{Capture, Error, Runner, Silent};
use fxscope_record::{ALL, Finish};
use fxscope_session::Mode;

use crate::common::{RecordedProgress, kernel, nowhere};

#[test]
fn a_scenario_runs_in_the_foreground_and_its_record_names_it() {
    let scenario = kernel("triad-l1", &["n=64", "passes=1"]).with_setting("tlb.l1_entries", "8");
    let run = Runner::new(None, &Silent).run(scenario.prepare().expect("sound"), nowhere()).expect("it runs");
    assert_eq!(run.finish, Finish::Exited(0));
    assert_eq!(run.command[1..], ["n=64", "passes=1"]);
    assert_eq!(run.settings, [("tlb.l1_entries".to_owned(), "8".to_owned())]);
    assert!(run.region(ALL).and_then(|region| region.count(0, "CPU_CYCLES")).is_some_and(|cycles| cycles > 0));
}

#[test]
fn results_of_a_batch_are_in_the_order_of_its_items_and_each_run_is_reported() {
    let progress = RecordedProgress::default();
    let runner = Runner::new(Some(2), &progress);
    let retired = |passes: &u32| {
        let mut scenario = kernel("triad-l1", &["n=64", &format!("passes={passes}")]);
        scenario.options.mode = Mode::Functional;
        let made = runner.run_captured(&scenario, Capture::OutputAndError).expect("it runs");
        made.run.region(ALL).and_then(|region| region.count(0, "INST_RETIRED")).expect("counted")
    };
    let counts = runner.batch(&[1, 2, 3, 4], ToString::to_string, retired).expect("not stopped");
    // Each pass executes the same instructions.
    let passes: Vec<u64> = counts.array_windows().map(|[before, after]| after - before).collect();
    assert!(passes[0] > 0 && passes.iter().all(|one| *one == passes[0]), "{counts:?}");
    assert_eq!((progress.announced.into_inner(), progress.ended.into_inner()), (4, 4));
}

#[test]
fn results_are_read_while_the_next_items_are_under_way_and_are_in_their_order() {
    let (begin, begun) = mpsc::channel();
    let begun = Mutex::new(begun);
    let made = Runner::new(Some(1), &Silent).batch_and_read(
        &[1, 2, 3],
        ToString::to_string,
        |item| begin.send(*item).expect("somebody listens"),
        |item, ()| {
            let begun = begun.lock().expect("nobody has panicked");
            // The last one is followed by none.
            while *item < 3 && begun.recv_timeout(Duration::from_secs(60)).expect("the next one begins") != item + 1 {}
            *item
        },
    );
    assert_eq!(made.expect("no stop"), [1, 2, 3]);
}

#[test]
fn a_stopped_batch_gives_nothing() {
    let progress = RecordedProgress::default();
    progress.stop.store(true, Ordering::Relaxed);
    let none = Runner::new(None, &progress).batch(&[1, 2], ToString::to_string, |_| panic!("it runs all the same"));
    assert!(matches!(none, Err::<Vec<()>, _>(Error::Stopped)));
    let run = Runner::new(None, &progress).run_captured(&kernel("triad-l1", &[]), Capture::Error).expect("it starts");
    assert_eq!(run.run.finish, Finish::Stopped);
}

#[test]
fn a_program_that_does_not_exist_is_a_start_error() {
    let missing = Runner::new(None, &Silent).run_captured(&kernel("no-such-kernel", &[]), Capture::Error);
    assert!(matches!(missing, Err(Error::Scenario(fxscope_session::Error::Start(_)))));
}
