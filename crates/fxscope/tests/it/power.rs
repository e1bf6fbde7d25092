//! Power and energy: their parts, their modes, and where they are shown.

use crate::common;

use std::path::Path;

use common::timed::{Run, THREADS, run};
use common::{compile, failure, json, kernel, output};
use fxscope::machine::{Spec, load};
use serde_json::Value;

/// A chase through L1, whose time is cycles and which has no floating-point operations.
const CHASE: [&str; 3] = ["footprint=32768", "hops=100000", "state=warm"];
/// Triad on two cores of each of two CMGs.
const TRIAD: &str = "cpus=12-13,24-25 threads=4 n=32768 passes=2";

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Returns a metric of the last region.
fn metric(run: &Run, name: &str) -> f64 {
    let regions = run.json["regions"].as_array().expect("regions");
    number(&regions.last().expect("one")["metrics"][name])
}

fn in_mode(folder: &Path, mode: &str) -> Run {
    run(folder, &format!("--power-mode {mode}"), &kernel("triad-threads.elf"), TRIAD)
}

fn machine(mode: &str) -> Spec {
    load("a64fx", &[("power.mode".to_owned(), mode.to_owned())]).expect("a mode")
}

/// Checks that the chip's power is the sum of its parts: what the events count, by the mode's factors, and the base.
fn check_parts(ran: &Run, spec: &Spec) {
    let event =
        |name: &str| ran.json["regions"].as_array().expect("regions").last().expect("one")["events"][name].as_f64();
    let joules = |name: &str, nj: u64| event(name).expect("counted") * nj as f64 / 1e9;
    let (energy, power) = (&spec.energy, &spec.power);
    let core = joules("EA_CORE", energy.core_count_nj) + joules("EA_L2", energy.l2_count_nj);
    let memory = joules("EA_MEMORY", energy.memory_count_nj);
    let seconds = metric(ran, "seconds");
    let saved = power.saved_per_cycle() * event("CPU_CYCLES").expect("counted");
    let expected = power.base_watts() * seconds + power.core_factor() * core - saved + power.memory_factor() * memory;
    let found = metric(ran, "energy");
    assert!((found / expected - 1.0).abs() < 0.01, "{found} for {expected} J");
    assert!((metric(ran, "chip_power") * seconds / found - 1.0).abs() < 1e-9);
    let rate = metric(ran, "gflops") / metric(ran, "chip_power");
    assert!((metric(ran, "gflops_per_watt") - rate).abs() <= 1e-9 * rate);
}

#[test]
fn the_power_of_threads_on_two_cmgs_is_the_sum_of_its_parts_in_every_mode() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut watts = Vec::new();
    for mode in ["normal", "boost", "eco", "boost-eco"] {
        let ran = in_mode(folder.path(), mode);
        check_parts(&ran, &machine(mode));
        assert_eq!(ran.json["settings"]["power.mode"], mode);
        watts.push(metric(&ran, "chip_power"));
    }
    let [normal, boost, eco, both] = watts[..] else { panic!("{watts:?}") };
    assert!(eco < normal && both < boost && normal < boost && eco < both, "{watts:?}");
}

#[test]
fn two_processes_take_power_together() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let source = "#include <sys/wait.h>\n#include <unistd.h>\n\
                  int main(void) {\n\
                      pid_t child = fork();\n\
                      for (volatile int i = 0; i < 20000; i++) {}\n\
                      if (child) wait(0);\n\
                      return 0;\n\
                  }\n";
    let program = compile(folder.path(), "two", &THREADS, source);
    let ran = run(folder.path(), "--power-mode eco --cpus 12,24", &program, "");
    check_parts(&ran, &machine("eco"));
    let processes: Vec<_> = ran.rows("all", "EA_CORE");
    assert!(processes.len() == 2 && processes.iter().all(|row| row.1 > 0), "{processes:?}");
}

#[test]
fn power_over_time_has_the_mean_of_the_run() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-threads.elf");
    let ran = run(folder.path(), "--interval 5us", &program, "cpus=12-13 threads=2 n=32768 passes=4");
    let series = &ran.json["intervals"][0];
    let list = |name: &str| series[name].as_array().expect("a list").iter().map(number).collect::<Vec<_>>();
    let (ends, watts) = (list("end_seconds"), list("chip_watts"));
    assert_eq!(ends.len(), watts.len());
    let begins = std::iter::once(0.0).chain(ends.iter().copied());
    let joules: f64 = begins.zip(&ends).zip(&watts).map(|((begin, end), watts)| (end - begin) * watts).sum();
    let whole = number(&ran.json["regions"][0]["metrics"]["energy"]);
    assert!((joules / whole - 1.0).abs() < 0.02, "{joules} for {whole} J");
}

#[test]
fn reports_show_power_over_time() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = ["run", "--quiet", "--interval", "2us", "-o", "run.fxr", "--", &kernel("chase.elf")];
    assert!(output(folder.path(), &[&run[..], &CHASE].concat()).status.success());
    let shown = |arguments: &[&str]| {
        let output = output(folder.path(), &[&["report", "run.fxr"], arguments].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let runs = json(shown(&["--format", "json"]).as_bytes());
    let watts = runs[0]["intervals"][0]["chip_watts"].as_array().expect("a list").len();
    let table = shown(&["--section", "power"]);
    let last = table.lines().last().and_then(|line| line.split_whitespace().next()).expect("a row");
    assert!(watts > 50 && last.rsplit('-').next() == Some(&watts.to_string()), "{watts} intervals: {table}");
    assert!(table.lines().count() <= 62 && table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(shown(&["--format", "html"]).contains("Power over time"));
}

#[test]
fn power_by_cmg_adds_up_to_that_of_the_chip_less_its_base() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let triad = ["cpus=12,24,36", "threads=3", "n=32768"];
    let run = ["run", "--quiet", "-o", "run.fxr", "--", &kernel("triad-threads.elf")];
    assert!(output(folder.path(), &[&run[..], &triad].concat()).status.success());
    let report = output(folder.path(), &["report", "--section", "power", "run.fxr"]);
    let table = String::from_utf8(report.stdout).expect("text");
    // Power is the number before the unit, energy and its unit.
    let watts = |line: &str| line.split_whitespace().rev().nth(3).and_then(|power| power.parse::<f64>().ok());
    let of = |label: &str| -> Vec<f64> {
        table.lines().filter(|line| line.trim_start().starts_with(label)).filter_map(watts).collect()
    };
    let (cmgs, chip) = (of("triad: CMG"), of("triad: chip"));
    assert_eq!((cmgs.len(), chip.len()), (3, 1), "{table}");
    let base = chip[0] - cmgs.iter().sum::<f64>();
    assert!((base / machine("normal").power.base_watts() - 1.0).abs() < 0.01, "{base} W: {table}");
}

#[test]
fn power_needs_time() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let run = ["run", "--quiet", "--mode", "functional", "-o", "run.fxr", "--", &kernel("chase.elf"), "hops=100"];
    assert!(output(folder.path(), &run).status.success());
    let (status, message) = failure(folder.path(), &["report", "--section", "power", "run.fxr"]);
    assert_ne!(status, 0);
    assert!(message.contains("fxscope run --mode timing -o FILE.fxr"), "{message}");
}

#[test]
fn reports_and_comparisons_show_energy() {
    let folder = tempfile::tempdir().expect("temporary folder");
    for mode in ["normal", "eco"] {
        let record = format!("{mode}.fxr");
        let run = ["run", "--quiet", "--power-mode", mode, "-o", &record, "--", &kernel("chase.elf")];
        assert!(output(folder.path(), &[&run[..], &CHASE].concat()).status.success());
    }
    let text = |arguments: &[&str]| {
        let output = output(folder.path(), arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let report = text(&["report", "eco.fxr"]);
    assert!(report.contains("power.mode = eco") && report.contains("energy"), "{report}");
    let compared = text(&["compare", "normal.fxr", "eco.fxr"]);
    let words: Vec<&str> = compared.split_whitespace().collect();
    assert!(words.join(" ").contains("% less energy: "), "{compared}");
}

#[test]
fn advice_lists_the_modes_as_trade_offs() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let advise = ["advise", "--quiet", "--json", "a.json", "--", &kernel("chase.elf")];
    let run = output(folder.path(), &[&advise[..], &CHASE].concat());
    let text = String::from_utf8(run.stdout).expect("text");
    let advice = json(&std::fs::read(folder.path().join("a.json")).expect("written"));
    let tried = advice["tried"].as_array().expect("a list");
    let modes: Vec<_> = tried.iter().filter(|tried| tried["trade_off"] == true).collect();
    let joules = |name: &str| {
        let found = modes.iter().find(|mode| mode["name"] == name).unwrap_or_else(|| panic!("no {name}: {advice}"));
        (number(&found["joules"]), number(&found["gain"]))
    };
    assert_eq!(modes.len(), 3, "all but the normal mode: {advice}");
    let (before, (eco, slower), (_, faster)) = (number(&advice["joules"]), joules("eco mode"), joules("boost mode"));
    assert!(eco < before && slower.abs() < 0.01, "{eco} for {before} J");
    // 2.2 instead of 2.0 GHz.
    assert!((faster - (1.0 - 2.0 / 2.2)).abs() < 0.02, "{faster}");
    assert!(text.contains("mode of power") && text.contains("eco_state=2"), "{text}");
    let best = &advice["regions"][0]["best"];
    assert!(!best.as_str().is_some_and(|best| best.contains("mode")), "{best}");
}

#[test]
fn a_mode_that_a_machine_lacks_is_refused() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let (status, message) =
        failure(folder.path(), &["run", "-m", "fx700", "--power-mode", "eco", "--", &kernel("chase.elf")]);
    assert!(status != 0 && message.contains("the machine has no eco mode; choose another power.mode"), "{message}");
}
