//! Performance events count what threads do.

use crate::common;

use common::{HOSTED, Run, build, run_here};

/// The results: those of Linux (perf_event_open(2)), except that only timed runs have samples.
const EXPECTED: &str = include_str!("events.txt");

#[test]
fn events_count_instructions_and_times_of_threads_groups_and_children() {
    // Otherwise memory is there before it is touched.
    let env = &["XOS_MMM_L_PAGING_POLICY=demand:demand:demand"];
    let outcome = run_here(&build("events.c", HOSTED), &Run { env, ..Run::default() });
    assert_eq!(outcome.error, "", "{}", outcome.output);
    for (ours, theirs) in outcome.output.lines().zip(EXPECTED.lines()) {
        assert_eq!(ours.trim_end(), theirs);
    }
    assert_eq!((outcome.output.lines().count(), outcome.status), (EXPECTED.lines().count(), 0), "{}", outcome.output);
}
