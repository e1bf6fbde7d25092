//! `fxscope jitter profiles`, `show`, `simulate`, `compare` and `linpack`: output and errors.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn jitter(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fxscope"));
    command.current_dir(root).arg("jitter").args(arguments);
    command.output().expect("fxscope starts")
}

fn shown(arguments: &[&str]) -> String {
    let output = jitter(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn refused(arguments: &[&str]) -> String {
    let output = jitter(arguments);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&shown(&[arguments, &["--format", "json"]].concat())).expect("JSON")
}

const SMALL: [&str; 8] = ["--nodes", "1,8,64", "--cores-per-node", "4", "--phases", "200", "--grain", "1ms"];

#[test]
fn all_models_and_networks_are_listed_and_fit_the_terminal() {
    let list = shown(&["profiles"]);
    assert!(
        ["k-computer", "fx1", "mckernel", "linux-1000hz", "tofud"].iter().all(|name| list.contains(name)),
        "{list}"
    );
    for name in ["k-computer", "fx1", "fx1-suppressed", "mckernel", "linux-250hz", "silent"] {
        let text = shown(&["show", name]);
        assert!(text.lines().all(|line| line.chars().count() <= 100 && !line.contains('~')), "{text}");
    }
}

#[test]
fn a_simulation_is_the_same_each_time_and_fits_the_terminal() {
    let arguments = [&["simulate", "--model", "linux-250hz"], &SMALL[..]].concat();
    let text = shown(&arguments);
    assert_eq!(text, shown(&arguments));
    assert!(text.lines().all(|line| line.chars().count() <= 100 && !line.contains('~')), "{text}");
    let efficiency =
        |found: &Value, row: usize| found["tables"][0]["rows"][row]["efficiency"].as_f64().expect("a number");
    let found = json(&arguments);
    assert!((0..3).map(|row| efficiency(&found, row)).is_sorted_by(|a, b| a > b), "{found}");
    let other = json(&[&arguments[..], &["--seed", "2"]].concat());
    assert!((efficiency(&other, 2) - efficiency(&found, 2)).abs() > 0.0);
}

#[test]
fn without_noise_only_synchronisation_costs_time() {
    for sync in ["barrier", "allreduce", "halo", "linpack"] {
        let found = json(&[&["simulate", "--model", "silent", "--sync", sync], &SMALL[..]].concat());
        for row in found["tables"][0]["rows"].as_array().expect("rows") {
            assert_eq!(row["slowdown"], 1.0, "{sync}: {row}");
            assert!(row["efficiency"].as_f64().is_some_and(|e| e > 0.9 && e <= 1.0), "{sync}: {row}");
        }
    }
}

#[test]
fn remedies_are_compared_and_the_best_is_named() {
    let arguments = [&["compare", "--model", "linux-250hz"], &SMALL[..]].concat();
    let found = json(&arguments);
    let rows = found["tables"][0]["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 7);
    let advice = found["notes"]["advice"].as_array().expect("sentences");
    let best = rows[1..].iter().filter(|row| row["remedy"] != "larger grain");
    let best = best.max_by(|a, b| a["64 nodes"].as_f64().unwrap().total_cmp(&b["64 nodes"].as_f64().unwrap()));
    let best = best.expect("remedies")["remedy"].as_str().expect("text");
    assert!(
        advice.iter().any(|s| s.as_str().is_some_and(|s| s.starts_with(&format!("Best there: {best}")))),
        "{advice:?}"
    );
    let text = shown(&[&["compare", "--model", "mckernel"], &SMALL[..]].concat());
    assert!(text.contains("no remedy is needed") && text.contains("all noise is bound to its core"), "{text}");
}

#[test]
fn bad_arguments_are_refused_with_what_to_do() {
    for (arguments, why) in [
        (&["simulate", "--model", "linux"][..], "built in are silent"),
        (&["simulate", "--model", "fx1", "--network", "smoke"], "there is no network 'smoke'"),
        (&["simulate", "--model", "fx1", "--grain", "5"], "is not a time"),
        (&["simulate", "--model", "fx1", "--grain=-5ms"], "negative"),
        (&["simulate", "--model", "fx1", "--nodes", "0"], "0"),
        (&["simulate", "--model", "fx1", "--imbalance=-1"], "imbalance"),
        (&["compare", "--model", "fx1", "--sibling-cost", "2"], "--sibling-cost 2"),
        (&["linpack", "--nodes", "512", "--fill", "1.5"], "share 1.5"),
        (&["linpack", "--nodes", "512", "--memory", "lots"], "is not an amount of memory"),
        (&["linpack", "--nodes", "512", "--n", "100"], "the minimum is"),
        (&["linpack", "--machine", "fx2"], "fx1 is built in"),
        (&["show", "Cargo.toml"], "Cargo.toml"),
    ] {
        let message = refused(arguments);
        assert!(message.contains(why), "{arguments:?}: {message}");
    }
}

/// They take many seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn linpack_shows_published_efficiencies_beside_its_own() {
        let found = json(&["linpack"]);
        let rows = found["tables"][0]["rows"].as_array().expect("rows");
        let published: Vec<f64> = rows.iter().filter_map(|row| row["published"].as_f64()).collect();
        assert_eq!(published, [91.82, 87.9, 89.81, 91.19]);
        let off: Vec<f64> = rows.iter().filter_map(|row| row["off by"].as_f64()).collect();
        assert!(matches!(off[..], [off] if off.abs() < 0.005), "of the one whose N is not solved for: {rows:?}");
        let sizes: Vec<&str> = rows.iter().filter_map(|row| row["N is"].as_str()).collect();
        assert_eq!(sizes, ["solved for", "solved for", "solved for", "published", "given"]);
        let says: Vec<&str> = rows.iter().filter_map(|row| row["efficiency is"].as_str()).collect();
        assert_eq!(says, ["chosen", "chosen", "chosen", "fitted", "predicted"]);
        let page = shown(&["linpack", "--nodes", "3008", "--format", "html"]);
        assert!(page.contains("data-chart=") && page.contains("Shares of the remaining time on 3008 nodes"));
        assert!(shown(&["linpack", "--nodes", "64", "--format", "csv"]).contains(",64,efficiency,0."));
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn too_many_detours_mean_fewer_phases_or_a_message() {
        let few =
            ["simulate", "--model", "linux-1000hz", "--nodes", "256", "--phases", "100000", "--most-detours", "3e6"];
        let text = shown(&few);
        assert!(text.contains("as many ran as --most-detours allows: 256 nodes"), "{text}");
        let message = refused(&["simulate", "--model", "linux-1000hz", "--nodes", "100000", "--most-detours", "1e5"]);
        assert!(message.contains("more than 1.0e5") && message.contains("fewer nodes"), "{message}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn detours_that_need_not_be_drawn_do_not_count_and_are_mentioned() {
        let whole =
            ["simulate", "--model", "linux-250hz", "--nodes", "64,20000", "--phases", "20", "--most-detours", "1e7"];
        let text = shown(&whole);
        assert!(text.contains("may be the last of a phase: 20000 nodes"), "{text}");
        assert!(text.contains("below 1e-9") && !text.contains("--most-detours"), "{text}");
        let compared = shown(&["compare", "--model", "linux-250hz", "--nodes", "6000", "--phases", "20"]);
        assert!(compared.contains("may be the last of a phase: 6000 nodes"), "{compared}");
    }
}
