//! `fxscope calibrate`: the measuring program runs in the simulator on a machine with other numbers, and fits find them.

use crate::common;

use std::path::Path;

use common::{failure, kernel, output};
use fxscope::lab::calibrate::{Measurements, PROGRAM, keys};
use serde_json::Value as Json;

/// An A64FX with these keys, in the form of a machine file.
fn machine(folder: &Path, changed: &[(&str, &str)]) {
    let key = |(name, value): &(&str, &str)| format!("[{name}]\nvalue = {value}\n");
    let text = format!("extends = \"a64fx\"\n{}", changed.iter().map(key).collect::<String>());
    std::fs::write(folder.join("other.toml"), text).expect("written");
}

/// Measures benchmarks on that machine into `measured.json`.
fn measure(folder: &Path, benchmarks: &[&str]) {
    let only = format!("only={}", benchmarks.join(","));
    let program = kernel("collect.elf");
    let run = ["run", "-m", "other.toml", "-e", "XOS_MMM_L_HPAGE_TYPE=none", "--", &program];
    let ran = output(folder, &[&run[..], &["repeat=1", &only, "out=measured.json"]].concat());
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Fits keys to `measured.json`, and returns the table of keys as JSON.
fn fit(folder: &Path, options: &[&str]) -> Vec<Json> {
    let fixed = ["calibrate", "fit", "measured.json", "--json", "-", "--out", "keys.toml"];
    let ran = output(folder, &[&fixed[..], options].concat());
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let sheet: Json = serde_json::from_slice(&ran.stdout).expect("JSON");
    sheet["tables"][0]["rows"].as_array().expect("rows").clone()
}

/// Returns what is proposed for a key.
fn proposed<'a>(rows: &'a [Json], key: &str) -> &'a Json {
    &rows.iter().find(|row| row["key"] == key).expect(key)["proposed"]
}

#[test]
fn a_number_agrees_if_the_values_next_to_it_are_further_from_the_measurement() {
    let folder = tempfile::tempdir().expect("temporary directory");
    machine(folder.path(), &[("clock.core_hz", "2020000000")]);
    measure(folder.path(), &["clock"]);
    let rows = fit(folder.path(), &["--no-cache", "--keys-only", "--only", "clock.core_hz"]);
    assert_eq!(proposed(&rows, "clock.core_hz"), "agrees", "steps are 100 MHz");
}

#[test]
fn measurements_hold_the_machine_and_the_events_of_each_benchmark() {
    let folder = tempfile::tempdir().expect("temporary directory");
    machine(folder.path(), &[]);
    measure(folder.path(), &["forward-together", "class-mul", "hand-over"]);
    let read = Measurements::read(&folder.path().join("measured.json")).expect("sound");
    assert_eq!(read.host.cmgs.iter().map(Vec::len).collect::<Vec<_>>(), [12; 4]);
    assert_eq!((read.host.page_bytes, read.host.counter_hz, read.host.counter_error), (65536, 100_000_000, 0));
    assert_eq!(read.host.midr.as_deref(), Some("0x00000000461f0010"));
    let names: Vec<&str> = read.runs.iter().map(|run| run.benchmark.as_str()).collect();
    assert_eq!(names, ["forward-together", "class-mul", "hand-over"], "in the order of the table");
    let busy = read.runs[1].events["EXA_VAL"] as f64 / read.runs[1].operations as f64;
    assert!((8.0..8.5).contains(&busy), "eight multiplications pass EXA in an iteration: {busy}");
    assert!(read.runs[2].ns_per_operation() > 10.0, "two threads");
}

#[test]
fn foreign_and_damaged_files_and_unknown_keys_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let write = |text: &str| std::fs::write(folder.path().join("measured.json"), text).expect("written");
    let refused = |more: &[&str]| failure(folder.path(), &[&["calibrate", "fit", "measured.json"][..], more].concat());
    assert!(refused(&[]).1.contains("measured.json"), "it does not exist");
    write("{}");
    assert!(refused(&[]).1.contains("not a file of `fxscope calibrate collect`"));
    machine(folder.path(), &[]);
    measure(folder.path(), &["clock"]);
    let whole = std::fs::read_to_string(folder.path().join("measured.json")).expect("text");
    assert!(refused(&["--only", "ring.hip"]).1.contains("no fit for 'ring.hip'; there are fits for clock.core_hz,"));
    write(&whole[..whole.len() / 2]);
    assert!(refused(&[]).1.contains("or it is not whole"));
    write(&whole.replace("461f0010", "410fd4f0"));
    let (status, message) = refused(&[]);
    assert_eq!(status, 125);
    assert!(message.contains("is not that of the machine 'a64fx'") && message.contains("--any-processor"), "{message}");
}

#[test]
fn the_measuring_program_can_be_written_to_a_file_for_another_computer() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let written = output(folder.path(), &["calibrate", "collect", "--program", "collect.elf"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    assert_eq!(std::fs::read(folder.path().join("collect.elf")).expect("readable"), PROGRAM);
    let run = ["run", "--mode", "functional", "--", "./collect.elf"];
    let (status, message) = failure(folder.path(), &[&run[..], &["only=nonsense", "out=measured.json"]].concat());
    assert_eq!(status, 2);
    assert!(message.contains("no benchmark has this name"), "{message}");
    let (status, _) = failure(folder.path(), &[&run[..], &["only=clock", "out=missing/measured.json"]].concat());
    assert_eq!(status, 2);
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is written");
}

#[test]
#[cfg(not(target_arch = "aarch64"))]
fn other_computers_than_aarch64_ones_are_told_what_to_do() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let (_, message) = failure(folder.path(), &["calibrate", "collect", "--only", "clock,nonsense"]);
    assert!(message.contains("no benchmark is called 'nonsense'"), "{message}");
    let (status, message) = failure(folder.path(), &["calibrate", "collect", "--out", "measured.json"]);
    assert_eq!(status, 125);
    assert!(message.contains("--program collect.elf") && message.contains("./collect.elf out=a64fx.json"), "{message}");
}

#[test]
fn the_lists_have_all_benchmarks_and_the_keys_in_the_order_of_the_fits() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let listed = output(folder.path(), &["calibrate", "list", "--json", "-"]);
    let sheet: Json = serde_json::from_slice(&listed.stdout).expect("JSON");
    let names: Vec<&str> =
        sheet["tables"][2]["rows"].as_array().expect("rows").iter().map_while(|row| row["key"].as_str()).collect();
    assert_eq!(names, keys().iter().map(|key| key.name.as_str()).collect::<Vec<_>>());
}

/// All keys at once: `make calibrate-test`.
mod every_key {
    use super::*;

    /// All keys that are fitted, each changed.
    const CHANGED: &[(&str, &str)] = &[
        ("clock.core_hz", "2200000000"),
        ("load_store.load_integer", "6"),
        ("load_store.resubmit", "7"),
        ("load_store.forward", "10"),
        ("load_store.forward_vector", "14"),
        ("l2_timing.hit_nearest", "50"),
        ("l2_timing.hit_farthest", "62"),
        ("l2_timing.request_period", "5.2"),
        ("l2_timing.acknowledge", "50"),
        ("l2_timing.release", "5"),
        ("l2_timing.zero", "140"),
        ("tlb.l2_hit", "14"),
        ("tlb.walk_extra", "80"),
        ("memory.latency_nearest", "270"),
        ("memory.latency_farthest", "310"),
        ("memory.read_efficiency", "80.0"),
        ("memory.write_cost", "1.5"),
        ("ring.hop", "80"),
        ("ring.row_hop", "100"),
        ("ring.port_efficiency", "85.0"),
        ("ring.turnaround", "5"),
        ("assumptions.system_call", "800"),
        ("assumptions.thread_wake", "5000"),
    ];

    #[test]
    #[ignore = "takes minutes: make calibrate-test"]
    fn fits_find_every_number_within_five_percent() {
        let folder = tempfile::tempdir().expect("temporary directory");
        machine(folder.path(), CHANGED);
        let needed: Vec<&str> = keys().iter().flat_map(|key| key.quantity.benchmarks()).collect();
        measure(folder.path(), &needed);
        let rows = fit(folder.path(), &["--no-cache", "--keys-only"]);
        assert_eq!(rows.len(), CHANGED.len(), "each key that is fitted is changed");
        let wrong: Vec<String> = CHANGED
            .iter()
            .map(|&(key, value)| (key, value.parse::<f64>().expect("a number"), proposed(&rows, key)))
            .inspect(|(key, value, found)| println!("{key} = {value}: {found}"))
            .filter(|(_, value, found)| found.as_f64().is_none_or(|found| (found / value - 1.0).abs() > 0.05))
            .map(|(key, value, found)| format!("{key} is {value}, found {found}"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// They take many seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn fits_find_the_numbers_of_the_machine_that_was_measured() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let changed = [("load_store.forward", "11"), ("load_store.resubmit", "7"), ("tlb.walk_extra", "90")];
        machine(folder.path(), &changed);
        measure(folder.path(), &["clock", "forward-together", "forward-delays", "pages-near", "pages-far"]);
        let keys = ["clock.core_hz", "load_store.resubmit", "load_store.forward", "tlb.walk_extra", "tlb.l2_hit"];
        let rows = fit(folder.path(), &["--no-cache", "--keys-only", "--only", &keys.join(",")]);
        for (key, value) in changed {
            assert_eq!(proposed(&rows, key).as_f64(), value.parse().ok(), "{key}");
        }
        assert_eq!(proposed(&rows, "clock.core_hz"), "agrees");
        assert_eq!(proposed(&rows, "tlb.l2_hit"), "left", "pages-l1 was not measured");
        let checked = output(folder.path(), &["machine", "check", "keys.toml"]);
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        let shown = output(folder.path(), &["machine", "show", "keys.toml"]);
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(
            shown.contains("walk_extra = { value = 90, evidence = \"fitted\", source = \"measured.json, host "),
            "{shown}"
        );
    }
}
