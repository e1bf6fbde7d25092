//! Runs side by side.

use fxscope_lab::{Capture, Runner, Silent, compare};
use fxscope_record::Run;

use crate::common::kernel;

fn run(passes: u32) -> Run {
    let scenario = kernel("triad-l1", &["n=512", &format!("passes={passes}")]);
    let made = Runner::new(None, &Silent).run_captured(&scenario, Capture::OutputAndError);
    made.expect("it runs").run
}

#[test]
fn twice_the_passes_are_twice_the_operations_and_a_file_without_runs_is_refused() {
    let files = [("once".to_owned(), vec![run(1)]), ("twice".to_owned(), vec![run(2)])];
    let comparison = compare(&files, &["triad".to_owned()], None).expect("both have the region");
    assert_eq!(comparison.labels, ["once", "twice"]);
    let operations = comparison.events.iter().find(|event| event.name == "FP_SCALE_OPS_SPEC").expect("counted");
    assert_eq!(operations.ratio(1), Some(2.0));
    let none = [("once".to_owned(), vec![run(1)]), ("empty".to_owned(), Vec::new())];
    assert!(compare(&none, &[], None).is_err_and(|e| e.to_string().starts_with("empty: has no runs")));
    let regions = ["triad".to_owned(), "triad".to_owned(), "triad".to_owned()];
    assert!(compare(&files, &regions, None).is_err_and(|e| e.to_string().contains("given 3 times for 2 files")));
}
