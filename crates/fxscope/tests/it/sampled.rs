//! `fxscope run --sample`: options that go with it, and those that do not. What its reports show is tested with them.

use crate::common;

use common::{failure, json, kernel, output};

/// Runs a kernel that executes less than the beginning that is always timed.
const SHORT: [&str; 2] = ["footprint=65536", "hops=100"];

#[test]
fn options_that_do_not_go_with_sampling_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("chase.elf");
    for (options, said) in [
        ("run --mode functional --sample", "functional mode times nothing"),
        ("run --interval 1ms --sample", "leave --interval or --sample out"),
        ("run --host-threads 2 --sample", "leave --host-threads or --sample out"),
        ("run --konata trace --sample", "leave --sample or --konata out"),
        ("run --error 2%", "--sample"),
        ("run --sample --error 2", "write it in percent, from 0.01% to 99%"),
        ("run --sample --error 0%", "write it in percent, from 0.01% to 99%"),
        ("run --sample --confidence 100%", "write it in percent, from 50% to 99.99%"),
        ("pages risks --sample", "fxscope pages risks needs the whole program timed"),
        ("pages advise --sample", "fxscope pages advise needs the whole program timed"),
        ("latency predict --sample", "fxscope latency predict needs the whole program timed"),
        ("latency check --sample", "fxscope latency check needs the whole program timed"),
    ] {
        let mut words: Vec<&str> = options.split(' ').collect();
        words.extend(["--", &program]);
        let (_, message) = failure(folder.path(), &words);
        assert!(message.contains(said), "{options}: {message}");
    }
}

#[test]
fn a_program_that_is_too_short_is_timed_as_without_sampling_and_says_so() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("chase.elf");
    let counts = |options: &[&str]| {
        let words = [&["run", "--json", "-"], options, &["--", &program], &SHORT].concat();
        json(&output(folder.path(), &words).stdout)
    };
    let (all, sampled) = (counts(&[]), counts(&["--sample", "auto", "--error", "1%", "--confidence", "99%"]));
    assert_eq!(sampled["regions"], all["regions"]);
    assert!(sampled.get("sample").is_none());
    let notes = sampled["notes"].to_string();
    assert!(notes.contains("Sampling had nothing to save") && notes.contains("Leave --sample out"), "{notes}");
}
