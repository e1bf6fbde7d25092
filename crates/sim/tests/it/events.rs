//! Performance events of a timed run: programs read what the model counts.

use std::collections::BTreeMap;

use fxscope_aarch64::Interpreter;
use fxscope_counts::Signals;
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

/// What the program prints about samples: the errors are those of Linux.
const SAMPLES: &str = include_str!("samples.txt");

#[test]
fn samples_are_where_threads_count_and_as_many_as_the_period_says() {
    let output = tempfile::tempfile().expect("temporary file");
    let run = Run::new(build("samples.c", &["-pthread"]), "");
    let mut simulation: Simulation<Interpreter> = run.simulation(&output);
    let finish = simulation.run(&mut |_| Control::Continue).finish;
    let printed: Vec<String> = text(output).lines().map(|line| line.trim_end().to_owned()).collect();
    assert_eq!(printed, SAMPLES.lines().collect::<Vec<_>>());
    assert!(matches!(finish, Finish::Ended(end) if end.status() == Some(0)));
}

#[test]
fn programs_read_what_the_record_has_of_a_region_also_of_children_that_inherit_an_event() {
    let output = tempfile::tempfile().expect("temporary file");
    let run = Run::new(build("counted_loops.c", &["-fno-math-errno"]), "");
    let mut simulation: Simulation<Interpreter> = run.simulation(&output);
    let outcome = simulation.run(&mut |_| Control::Continue);
    let spec = run.options().spec;
    let recorded = |name: &str| {
        let region = outcome.regions.iter().find(|region| region.name == name).expect("the program marks it");
        let mut all = Signals::default();
        region.threads.values().for_each(|counted| all.merge(counted.signals()));
        spec.pmu.events.counts(&all, |_| true)
    };
    let (parent, child) = (recorded("parent"), recorded("child"));
    let printed = text(output);
    let read: BTreeMap<&str, u64> = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, count)| (name, count.parse().expect("a number")))
        .collect();
    assert_eq!(read.len(), 5, "{printed}");
    // Two operations for each of 20000 elements, 8 of them in 512 bits: events count for 128.
    assert_eq!(parent["FP_SCALE_OPS_SPEC"], 2 * 20_000 / 4);
    assert_eq!(read["operations"], parent["FP_SCALE_OPS_SPEC"]);
    assert_eq!(read["both"], parent["FP_SCALE_OPS_SPEC"] + child["FP_SCALE_OPS_SPEC"]);
    // Between the marks and the system calls that begin and end the count is little else.
    let close = |name: &str, event: &str, more: u64| {
        let (read, recorded) = (read[name], parent[event]);
        assert!((recorded..=recorded + more).contains(&read), "{name}: {read}, the record has {recorded}");
    };
    close("instructions", "INST_RETIRED", 200);
    close("cycles", "CPU_CYCLES", 5_000);
    close("refills", "L1D_CACHE_REFILL", 20);
}
