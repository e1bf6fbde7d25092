//! Custom machines in folders and files have everything that built-in ones have: events, groups, latencies.

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{failure, kernel, output};
use serde_json::Value;

/// A custom machine with slower memory than A64FX.
const SLOW: &str = "extends = \"a64fx\"\n[memory]\nlatency_nearest = 400\nlatency_farthest = 425\n";
/// The same by settings.
const SETTINGS: [&str; 4] = ["--set", "memory.latency_nearest=400", "--set", "memory.latency_farthest=425"];

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// Returns the standard output of a command, which must succeed.
fn said(folder: &Path, args: &[&str]) -> String {
    let output = output(folder, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Runs a chase through memory on a machine into a record.
fn record(folder: &Path, machine: &[&str], file: &str) {
    let program = kernel("chase.elf");
    let options = ["run", "--quiet", "-o", file];
    let command = ["--", &program, "footprint=1048576", "hops=2000", "state=cold"];
    said(folder, &[&options, machine, &command].concat());
}

/// Returns all figures of a record: events, metrics, notes; without those of the host and the machine's name.
fn figures(folder: &Path, file: &str) -> Value {
    let mut runs: Value =
        serde_json::from_str(&said(folder, &["report", "--level", "detailed", "--format", "json", file]))
            .expect("JSON");
    let run = runs[0].as_object_mut().expect("a run");
    run.retain(|key, _| !["host", "machine", "settings"].contains(&key.as_str()));
    runs
}

/// Returns the report as text from its second line on, without the speed of the simulator.
fn text(folder: &Path, file: &str) -> String {
    let report = said(folder, &["report", "--level", "detailed", file]);
    let lines = report.lines().skip(1).filter(|line| !line.contains("Simulator speed"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns predictions of slower memory for a record, without their title.
fn predicted(folder: &Path, file: &str) -> Value {
    let said = said(folder, &["latency", "predict", file, "--format", "json"]);
    let mut json: Value = serde_json::from_str(&said).expect("JSON");
    json.as_object_mut().expect("an object").remove("title");
    assert!(json["methods"].as_array().is_some_and(|methods| !methods.is_empty()), "{json}");
    json
}

/// Copies the folder of a built-in machine, under another name.
fn copy(folder: &Path, machine: &str, name: &str) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/machines").join(machine);
    let to = folder.join(name);
    fs::create_dir(&to).expect("made");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
    to
}

#[test]
fn a_machine_that_extends_another_has_its_events_groups_and_latency() {
    let folder = folder();
    fs::write(folder.path().join("slow.toml"), SLOW).expect("written");
    record(folder.path(), &["-m", "slow.toml"], "slow.fxr");
    record(folder.path(), &SETTINGS, "set.fxr");
    assert_eq!(figures(folder.path(), "slow.fxr"), figures(folder.path(), "set.fxr"));
    let report = text(folder.path(), "slow.fxr");
    // Columns computed from events that are not signals of the model: energy, and sums by groups.
    for column in ["A10", "C10", "F04", "G09", "K01", "K02", "K03"] {
        assert!(report.contains(column), "{column}: {report}");
    }
    assert_eq!(predicted(folder.path(), "slow.fxr"), predicted(folder.path(), "set.fxr"));
}

#[test]
fn a_record_is_read_without_the_machine_that_it_was_made_on() {
    let folder = folder();
    let file = folder.path().join("slow.toml");
    fs::write(&file, SLOW).expect("written");
    record(folder.path(), &["-m", "slow.toml"], "slow.fxr");
    let before = (figures(folder.path(), "slow.fxr"), said(folder.path(), &["latency", "predict", "slow.fxr"]));
    // The folder's path is in the record, so annotate finds it from anywhere.
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).expect("made");
    let annotated = said(&elsewhere, &["annotate", "../slow.fxr"]);
    assert!(annotated.contains("ldr") && !annotated.contains("is not the one"), "{annotated}");

    fs::write(&file, SLOW.replace("425", "500")).expect("written");
    let changed = said(folder.path(), &["annotate", "slow.fxr"]);
    let note = changed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(note.contains("The description of slow (") && note.contains("has changed since the run"));

    fs::remove_file(&file).expect("removed");
    assert_eq!(before, (figures(folder.path(), "slow.fxr"), said(folder.path(), &["latency", "predict", "slow.fxr"])));
    said(folder.path(), &["compare", "slow.fxr", "slow.fxr"]);
    assert!(said(folder.path(), &["events", "slow.fxr"]).contains("0x0011"));
    let (status, error) = failure(folder.path(), &["annotate", "slow.fxr"]);
    assert!(status != 0 && error.contains("slow.toml: there is no such file"), "{error}");
    assert!(error.contains("--machine PATH names its description"), "{error}");
    fs::write(folder.path().join("again.toml"), SLOW).expect("written");
    let annotated = said(folder.path(), &["annotate", "-m", "again.toml", "slow.fxr"]);
    assert!(!annotated.contains("is not the one"), "{annotated}");
}

#[test]
fn mistakes_in_the_events_and_groups_of_a_folder_are_found_with_their_line() {
    let folder = folder();
    let mine = copy(folder.path(), "a64fx", "mine");
    assert!(said(folder.path(), &["machine", "check", "mine"]).contains("mine: sound"));
    for (file, line, mistake) in [
        ("pmu.csv", "garbage", "mine/pmu.csv:1: the first line is 'garbage'"),
        ("groups.csv", "group,level,events\n1,1,FLUX", "mine/groups.csv:2: no event is called 'FLUX'"),
    ] {
        let whole = fs::read(mine.join(file)).expect("copied");
        fs::write(mine.join(file), line).expect("written");
        let (status, error) = failure(folder.path(), &["machine", "check", "mine"]);
        assert!(status != 0 && error.contains(mistake), "{error}");
        fs::write(mine.join(file), whole).expect("written");
    }
}

#[test]
fn a_folder_with_its_own_events_counts_them_beside_the_inherited_ones() {
    let folder = folder();
    let mine = folder.path().join("mine");
    fs::create_dir(&mine).expect("made");
    fs::write(mine.join("machine.toml"), "extends = \"a64fx\"\n").expect("written");
    fs::write(mine.join("pmu.csv"), "number,name,scope,signals,reason\n0x0042,MY_LOADS,PE,LD_SPEC,\n")
        .expect("written");
    record(folder.path(), &["-m", "mine"], "run.fxr");
    let events = &figures(folder.path(), "run.fxr")[0]["regions"][0]["events"];
    assert_eq!(events["MY_LOADS"], events["LD_SPEC"]);
    assert!(events["MY_LOADS"].as_u64().is_some_and(|loads| loads > 2_000), "{events}");
    let list = said(folder.path(), &["events", "mine"]);
    assert!(list.contains("0x0042  core  MY_LOADS") && !list.contains("0x0070"), "{list}");
}

#[test]
fn measurements_of_a_custom_machine_have_its_events() {
    let folder = folder();
    let mine = copy(folder.path(), "a64fx", "mine");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import/perf/a64fx.csv");
    let source = source.to_str().expect("UTF-8 path");
    said(folder.path(), &["import", "perf", source, "-o", "a.fxr"]);
    said(folder.path(), &["import", "perf", source, "-m", "mine", "-o", "b.fxr"]);
    fs::remove_dir_all(mine).expect("removed");
    assert_eq!(figures(folder.path(), "a.fxr"), figures(folder.path(), "b.fxr"));
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_setting_and_a_custom_machine_select_the_same_policy() {
        let folder = folder();
        let program = kernel("chase.elf");
        // The chain has twice the lines of L1D.
        let counts = |machine: &[&str], file: &str| {
            let options = ["run", "--quiet", "-o", file];
            let command = ["--", &program, "footprint=131072", "hops=2000", "state=cold"];
            said(folder.path(), &[&options, machine, &command].concat());
            figures(folder.path(), file)[0]["regions"].clone()
        };
        let plain = counts(&[], "plain.fxr");
        for (table, key, policy) in
            [("prefetch", "policy", "next_line"), ("l1d", "replacement", "random"), ("frontend", "predictor", "gshare")]
        {
            let mine = folder.path().join(policy);
            fs::create_dir(&mine).expect("made");
            let text = format!("extends = \"a64fx\"\n[{table}]\n{key} = \"{policy}\"\n");
            fs::write(mine.join("machine.toml"), text).expect("written");
            let set = counts(&["--set", &format!("{table}.{key}={policy}")], "set.fxr");
            assert_eq!(set, counts(&["-m", &format!("./{policy}")], "mine.fxr"), "{policy}");
            assert_ne!(set, plain, "{policy}");
            let shown = said(folder.path(), &["machine", "show", &format!("./{policy}")]);
            assert!(shown.contains(&format!("\n{key} = \"{policy}\"")), "{shown}");
        }
        let shown = said(folder.path(), &["machine", "show", "a64fx"]);
        assert!(shown.contains("one of stream, next_line") && shown.contains("option of policy stream"), "{shown}");
    }

    #[test]
    #[ignore = "make slow-test runs it"]
    fn a_copied_machine_folder_reports_and_predicts_the_same_under_any_name() {
        // Includes names of other machines: the description counts, not the name.
        for (machine, name) in [("a64fx", "mine"), ("a64fx", "knl"), ("knl", "neoverse")] {
            let folder = folder();
            copy(folder.path(), machine, name);
            record(folder.path(), &["-m", machine], "a.fxr");
            record(folder.path(), &["-m", &format!("./{name}")], "b.fxr");
            assert_eq!(figures(folder.path(), "a.fxr"), figures(folder.path(), "b.fxr"), "{machine} as {name}");
            assert_eq!(text(folder.path(), "a.fxr"), text(folder.path(), "b.fxr"), "{machine} as {name}");
            assert_eq!(predicted(folder.path(), "a.fxr"), predicted(folder.path(), "b.fxr"), "{machine} as {name}");
            let events = |machine: &str| said(folder.path(), &["events", machine]);
            assert_eq!(events(machine), events(&format!("./{name}")));
            assert_eq!(events(machine), events("b.fxr"));
        }
    }
}
