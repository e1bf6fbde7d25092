//! Counts by intervals of simulated time: they add up to those of the run.

use crate::common;

use common::timed::{Run, THREADS, run};
use common::{compile, kernel, output};
use serde_json::Value;
use std::path::Path;

/// Returns the ends of intervals, and the counts of each event in them.
fn intervals(run: &Run) -> (Vec<f64>, &serde_json::Map<String, Value>) {
    let [series] = &run.json["intervals"].as_array().expect("intervals")[..] else { panic!("one series") };
    assert_eq!(series["pass"], "run");
    let ends = series["end_seconds"].as_array().expect("ends").iter().map(|end| end.as_f64().expect("a number"));
    (ends.collect(), series["events"].as_object().expect("events"))
}

fn numbers(counts: &Value) -> Vec<u64> {
    counts.as_array().expect("counts").iter().map(|n| n.as_u64().expect("a count")).collect()
}

/// Runs a program with and without intervals: nothing else differs, and every event adds up.
fn cut(folder: &Path, interval: &str, options: &str, program: &str, arguments: &str) -> Run {
    let mut whole = run(folder, options, program, arguments).without_host();
    let options = format!("{options} --interval {interval}");
    let mut parts = run(folder, &options, program, arguments).without_host();
    assert_eq!(parts, run(folder, &options, program, arguments).without_host(), "the same again");
    let (ends, events) = intervals(&parts);
    assert!(ends.is_sorted_by(|a, b| a < b), "{ends:?}");
    let all = &parts.json["regions"][0]["events"];
    for (name, counts) in events {
        let counts = numbers(counts);
        assert_eq!(counts.len(), ends.len(), "{name}");
        assert_eq!(Some(counts.iter().sum()), all[name].as_u64(), "{name}");
    }
    let energy = ["EA_CORE", "EA_L2", "EA_MEMORY"];
    let missing = all.as_object().expect("events").keys().filter(|name| !events.contains_key(*name));
    assert_eq!(missing.collect::<Vec<_>>(), energy, "events of energy follow from others");
    let series = parts.json.as_object_mut().expect("an object").remove("intervals").expect("asked for");
    assert_eq!(parts.json, whole.json, "intervals change nothing");
    whole.json["intervals"] = series;
    whole
}

#[test]
fn intervals_add_up_to_the_run_and_change_nothing() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let chase = cut(folder.path(), "5us", "", &kernel("chase.elf"), "footprint=1048576 hops=2000");
    let (ends, events) = intervals(&chase);
    // All but the last have the requested length.
    for (i, end) in ends.iter().enumerate().take(ends.len() - 1) {
        assert!((end - 5e-6 * (i + 1) as f64).abs() < 1e-12, "{end}");
    }
    // A core that is never idle counts its clock: 10,000 cycles of 2 GHz, up to a few blocks at either end.
    let cycles = numbers(&events["CPU_CYCLES"]);
    let (last, whole) = cycles.split_last().expect("some");
    assert!(whole.iter().all(|c| c.abs_diff(10_000) < 2_500) && *last < 12_500, "{cycles:?}");
}

#[test]
fn a_sleep_of_all_threads_is_one_interval() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = r"
#include <time.h>
int main(void) {
    struct timespec t = { 0, 50000000 };
    nanosleep(&t, 0);
    return 0;
}";
    let program = compile(folder.path(), "sleep", &THREADS, source);
    let run = cut(folder.path(), "100us", "", &program, "");
    let (ends, _) = intervals(&run);
    assert!(ends.len() < 20 && *ends.last().expect("some") >= 0.05, "{ends:?}");
}

#[test]
fn intervals_of_a_region_add_up_to_it() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let own = "op=triad n=120000 passes=3 threads=3";
    for (program, arguments, region) in
        [("chase.elf", "footprint=1048576 hops=2000", "chase"), ("plain-threads.elf", own, "plain")]
    {
        let options = format!("--interval 5us --interval-region {region}");
        let run = run(folder.path(), &options, &kernel(program), arguments);
        let (ends, events) = intervals(&run);
        assert!(ends.is_sorted_by(|a, b| a < b) && ends.len() > 3, "{ends:?}");
        let regions = run.json["regions"].as_array().expect("regions");
        let all = &regions.iter().find(|r| r["name"] == region).expect("marked")["events"];
        for (name, counts) in events {
            assert_eq!(Some(numbers(counts).iter().sum()), all[name].as_u64(), "{program}: {name}");
        }
        assert_eq!(run.json["intervals"][0]["region"], region);
    }
}

#[test]
fn intervals_of_a_missing_region_are_reported_as_empty() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let command = ["run", "-q", "--interval", "1ms", "--interval-region", "Chase", "--", &kernel("steps.elf")];
    let said = String::from_utf8(output(folder.path(), &command).stderr).expect("text");
    assert!(said.contains("the program marked no region 'Chase'"), "{said}");
    let alone = output(folder.path(), &["run", "--interval-region", "chase", "--", &kernel("steps.elf")]);
    assert!(!alone.status.success() && String::from_utf8_lossy(&alone.stderr).contains("--interval <TIME>"));
}

#[test]
fn records_keep_intervals_and_reports_give_them() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let made = run(folder.path(), "--interval 20us -o run.fxr", &kernel("steps.elf"), "");
    let report = output(folder.path(), &["report", "--format", "json", "run.fxr"]);
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    assert_eq!(report[0]["intervals"], made.json["intervals"]);
    let plain = run(folder.path(), "", &kernel("steps.elf"), "");
    assert!(plain.json.get("intervals").is_none(), "nobody has asked for them");
}

#[test]
fn invalid_lengths_of_intervals_are_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let write = "write it as a number and a unit: 100us, 0.5ms, 2s";
    let takes = "an interval takes between 1us and 3600s of simulated time";
    let cases = [("5", write), ("us", write), ("1.2.3ms", write), ("-1ms", write), ("5min", write), ("", write)];
    let lengths = [("0us", takes), ("999ns", takes), ("2000000s", takes)];
    for (length, message) in cases.into_iter().chain(lengths) {
        let length = format!("--interval={length}");
        let output = output(folder.path(), &["run", &length, "--", &kernel("steps.elf")]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains(message) && !output.status.success(), "{length}: {text}");
    }
    let functional = ["run", "--mode", "functional", "--interval", "1ms", "--", &kernel("steps.elf")];
    let text = output(folder.path(), &functional).stderr;
    assert!(String::from_utf8_lossy(&text).contains("intervals need simulated time"));
}

/// They take seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn intervals_include_threads_that_work_wait_and_sleep() {
        let folder = tempfile::tempdir().expect("temporary folder");
        cut(
            folder.path(),
            "3us",
            "--cpus 12-15 -e OMP_NUM_THREADS=4",
            &kernel("triad-threads.elf"),
            "n=30720 passes=4",
        );
        // A thread spins until another one has slept for a millisecond; the first thread waits for both.
        let source = r"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
static atomic_int done;
static void *spins(void *x) { while (!atomic_load(&done)) {} return x; }
static void *sleeps(void *x) {
    struct timespec t = { 0, 1000000 };
    nanosleep(&t, 0);
    atomic_store(&done, 1);
    return x;
}
int main(void) {
    pthread_t a, b;
    pthread_create(&a, 0, spins, 0);
    pthread_create(&b, 0, sleeps, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}";
        let program = compile(folder.path(), "sleeper", &THREADS, source);
        let sleeper = cut(folder.path(), "10us", "", &program, "");
        let (ends, events) = intervals(&sleeper);
        // While one of three threads spins and the others sleep, each core still counts its cycles: 2 GHz.
        let cycles = numbers(&events["CPU_CYCLES"]);
        let both = ends.iter().zip(&ends[1..]).zip(&cycles[1..]);
        let waiting: Vec<_> = both.filter(|((begin, end), _)| **begin > 5e-4 && **end < 1e-3).collect();
        assert!(waiting.len() > 10, "{ends:?}");
        for ((begin, end), cycles) in waiting {
            let expected = 3.0 * 2e9 * (end - begin);
            assert!((*cycles as f64 / expected - 1.0).abs() < 0.1, "{begin} to {end}: {cycles}, {expected} expected");
        }
    }
}
