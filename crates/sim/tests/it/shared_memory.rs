//! Memory that processes share is shared in the caches, too.

use fxscope_aarch64::Interpreter;
use fxscope_sim::{Control, Mode};

use crate::common::{Run, build, text};

/// Returns the forbidden outcomes of litmus tests, and the time of a round trip in ns, between two threads or processes.
fn played(between: &'static str) -> [u32; 2] {
    let output = tempfile::tempfile().expect("temporary file");
    let run = Run::new(build("ping_pong.c", &["-pthread"]), between);
    run.simulation::<Interpreter>(&output).run(&mut |_| Control::Continue);
    let printed = text(output);
    let mut numbers = printed.split_whitespace().map(|word| word.parse().expect("a number"));
    std::array::from_fn(|_| numbers.next().unwrap_or_else(|| panic!("two numbers: {printed}")))
}

#[test]
fn words_travel_between_processes_in_the_time_that_they_take_between_threads() {
    let ([broken, ns], [broken_of_threads, ns_of_threads]) = (played("processes"), played("threads"));
    assert_eq!((broken, broken_of_threads), (0, 0));
    // Four transfers of a line through L2 take that long at least.
    assert!(ns_of_threads > 70, "{ns_of_threads} ns");
    assert!(ns.abs_diff(ns_of_threads) * 20 <= ns_of_threads, "{ns} ns, threads {ns_of_threads} ns");
}

#[test]
fn outcomes_that_the_memory_model_forbids_do_not_appear_between_processes() {
    let tests = ["MP", "SB", "LB", "2+2W"];
    let lines = tests.iter().flat_map(|test| ["ordered", "dmb"].map(|form| format!("{test} {form} 16 0\n")));
    let expected: String = lines.collect();
    for mode in [Mode::Functional, Mode::Timing] {
        let output = tempfile::tempfile().expect("temporary file");
        let run = Run { mode, ..Run::new(build("litmus.c", &[]), "") };
        run.simulation::<Interpreter>(&output).run(&mut |_| Control::Continue);
        assert_eq!(text(output), expected, "{mode:?}");
    }
}
