//! Performance events of a timed run: programs read what the model counts.

use fxscope_aarch64::Interpreter;
use fxscope_sim::{Control, Finish, Simulation};

use crate::common::{Run, build, text};

/// What the program prints in a functional run, too.
const EXPECTED: &str = include_str!("../../../linux/tests/it/events.txt");

/// What it prints about cycles and cache accesses.
const TIMED: &str = "\
    some >= additions && some < additions + 200000: 1\nsame <= some && same >= additions: 1\n\
    value(loads) < 100000: 1\n";

#[test]
fn programs_read_cycles_instructions_and_cache_accesses_of_their_threads() {
    let output = tempfile::tempfile().expect("temporary file");
    let environment = "XOS_MMM_L_PAGING_POLICY=demand:demand:demand";
    let run = Run { environment, ..Run::new(build("events.c", &[]), "timed") };
    let mut simulation: Simulation<Interpreter> = run.simulation(&output);
    let finish = simulation.run(&mut |_| Control::Continue).finish;
    let printed: Vec<String> = text(output).lines().map(|line| line.trim_end().to_owned()).collect();
    let expected: Vec<&str> = EXPECTED.lines().chain(TIMED.lines()).collect();
    assert_eq!(printed, expected);
    assert!(matches!(finish, Finish::Ended(end) if end.status() == Some(0)));
}
