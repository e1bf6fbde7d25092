//! Metrics and rules of the user's own, from files: `--metric-file` and `--rule-file`.

use crate::common;

use std::fs;
use std::path::Path;

use common::{failure, json, kernel, output};

/// Half of the time, and operations per element of two vectors of 2048 doubles.
const METRICS: &str = r#"
    group = "mine"
    title = "Mine"
    [[metric]]
    name = "half"
    title = "Half of the time"
    unit = "s"
    formula = "seconds / 2"
    [[metric]]
    name = "flop_per_element"
    title = "Operations per element"
    unit = "FLOP"
    formula = "flop / 4096"
"#;

const RULE: &str = r#"
    subject = "mine"
    [[rule]]
    name = "half_of_it"
    title = "half of the time"
    when = ["half > 0"]
    share = "half / seconds"
    says = "Half of the time is {half}."
    evidence = ["half"]
    source = "Arithmetic."
    [[rule.try]]
    do = "Wait for the other half."
"#;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("mine.toml"), METRICS).expect("written");
    fs::write(folder.path().join("rule.toml"), RULE).expect("written");
    let done = output(folder.path(), &["run", "-q", "-o", "run.fxr", "--", &kernel("triad-l1.elf"), "passes=20"]);
    assert!(done.status.success(), "{done:?}");
    folder
}

fn text(folder: &Path, args: &[&str]) -> String {
    let done = output(folder, args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

#[test]
fn own_metrics_are_in_reports_comparisons_and_sweeps() {
    let folder = folder();
    let folder = folder.path();
    let found = json(text(folder, &["report", "--format", "json", "--metric-file", "mine.toml", "run.fxr"]).as_bytes());
    let regions = found[0]["regions"].as_array().expect("regions");
    let triad = regions.iter().find(|region| region["name"] == "triad").expect("triad");
    assert_eq!(
        2.0 * triad["metrics"]["half"].as_f64().expect("half"),
        triad["metrics"]["seconds"].as_f64().expect("time")
    );
    assert_eq!(triad["metrics"]["flop_per_element"], 20.0);
    let shown = text(folder, &["report", "--metric-file", "mine.toml", "--region", "triad", "run.fxr"]);
    assert!(shown.contains("Mine") && shown.contains("Operations per element"), "{shown}");
    let compared = text(folder, &["compare", "--format", "csv", "--metric-file", "mine.toml", "run.fxr", "run.fxr"]);
    assert!(compared.contains("half"), "{compared}");

    fs::copy(kernel("triad-l1.elf"), folder.join("triad-l1.elf")).expect("copied");
    let plan = "region = 'triad'\n[run]\nprogram = 'triad-l1.elf'\narguments = ['passes={passes}']\n[[factor]]\nname = 'passes'\n\
        values = [20, 40]\n[[objective]]\nmetric = 'flop_per_element'\ngoal = 'least'\n";
    fs::write(folder.join("plan.toml"), plan).expect("written");
    text(folder, &["sweep", "-q", "--metric-file", "mine.toml", "plan.toml"]);
    let mut csv = csv::Reader::from_path(folder.join("plan/results.csv")).expect("results");
    assert!(csv.headers().expect("a head").iter().any(|column| column == "flop_per_element"));
}

#[test]
fn own_rules_judge_with_own_metrics() {
    let folder = folder();
    let options = ["report", "--format", "json", "--metric-file", "mine.toml", "--rule-file", "rule.toml", "run.fxr"];
    let found = json(text(folder.path(), &options).as_bytes());
    let limits = found[0]["verdict"]["limits"].as_array().expect("limits");
    let mine = limits.iter().find(|limit| limit["rule"] == "half_of_it").expect("the rule applies");
    assert_eq!(mine["share"], 0.5);
    assert!(mine["says"].as_str().is_some_and(|says| says.starts_with("Half of the time is ")), "{mine}");
}

#[test]
fn mistakes_name_the_file_and_the_place() {
    let folder = folder();
    fs::write(folder.path().join("wrong.toml"), METRICS.replace("seconds / 2", "secnds / 2")).expect("written");
    fs::write(folder.path().join("known.toml"), METRICS.replace("half", "gflops")).expect("written");
    let cases = [
        ("--metric-file", "wrong.toml", "wrong.toml: half: no event, constant or metric is called 'secnds'"),
        ("--metric-file", "known.toml", "gflops: a second metric has this name"),
        ("--metric-file", "missing.toml", "missing.toml"),
        ("--rule-file", "rule.toml", "rule.toml: half_of_it: no event, constant or metric is called 'half'"),
        ("--rule-file", "mine.toml", "mine.toml: TOML parse error"),
    ];
    for (option, file, message) in cases {
        let (status, error) = failure(folder.path(), &["report", option, file, "run.fxr"]);
        assert!(status == 125 && error.contains(message), "{error}");
    }
}
