//! `fxscope collect` with a fake perf, and `fxscope import perf`.

use crate::common;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use common::{failure, output};

/// A fake perf that runs the program and writes the count of a recorded run for each event.
const PERF: &str = r#"#!/bin/sh
# perf stat -x , -o FILE -e EVENTS -e duration_time [-a -A -C LIST] -- PROGRAM
file=$5 events=$7
printf '%s\n' "$*" >> calls
while [ "$1" != -- ]; do shift; done
shift
"$@" || exit $?
: > "$file"
for event in $(printf '%s' "$events" | tr , ' '); do
    printf '%d,,%s,1000,100.00,,\n' "0x${event#r}" "$event" >> "$file"
done
printf '%d,ns,duration_time,1000,100.00,,\n' "${NS:-1000000}" >> "$file"
"#;

fn perf(folder: &Path, script: &str) {
    let path = folder.join("perf");
    std::fs::write(&path, script).expect("written");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("allowed");
}

fn collect<'a>(options: &[&'a str], program: &[&'a str]) -> Vec<&'a str> {
    let fixed = ["collect", "--any-processor", "--perf", "./perf", "-o", "run.fxr"];
    [&fixed[..], options, &["--"], program].concat()
}

fn json(folder: &Path) -> serde_json::Value {
    let shown = output(folder, &["report", "run.fxr", "--format", "json"]);
    serde_json::from_slice(&shown.stdout).expect("JSON")
}

#[test]
fn each_level_runs_the_program_as_often_as_it_has_groups_and_makes_one_run() {
    for (level, passes) in [("single", 1), ("brief", 5), ("standard", 11), ("detailed", 17)] {
        let folder = tempfile::tempdir().expect("temporary directory");
        perf(folder.path(), PERF);
        let ran = output(folder.path(), &collect(&["--level", level], &["echo", "hello"]));
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{errors}");
        assert_eq!(
            String::from_utf8_lossy(&ran.stdout).matches("hello\n").count(),
            passes,
            "its output passes through"
        );
        let runs = json(folder.path());
        assert_eq!(runs.as_array().expect("runs").len(), 1);
        // Events of the first group; 100,000 ticks of 100 MHz are a millisecond.
        let all = &runs[0]["regions"][0];
        assert_eq!(all["events"]["FP_SCALE_OPS_SPEC"], 0x80c0);
        assert_eq!(all["events"]["CNTVCT"], 100_000, "{level}");
    }
}

#[test]
fn repetitions_are_separate_runs_and_raw_output_can_be_kept() {
    let folder = tempfile::tempdir().expect("temporary directory");
    perf(folder.path(), PERF);
    let options = ["--level", "brief", "-r", "3", "--user", "--cpus", "12-13", "--keep", "raw"];
    let ran = output(folder.path(), &collect(&options, &["true"]));
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(json(folder.path()).as_array().expect("runs").len(), 3);
    assert_eq!(std::fs::read_dir(folder.path().join("raw")).expect("kept").count(), 15);
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("written");
    let first = calls.lines().next().expect("a call");
    assert!(first.contains("-e r80c0:u,r80c1:u,") && first.contains("-a -A -C 12-13 -- true"), "{first}");
}

#[test]
fn runs_of_different_length_are_reported() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let slower = PERF.replace("${NS:-1000000}", "$(( $(wc -l < calls) == 2 ? 2000000 : 1000000 ))");
    perf(folder.path(), &slower);
    let ran = output(folder.path(), &collect(&["--level", "brief"], &["true"]));
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(errors.contains("pa2 took 2.00 times as long as pa1"), "{errors}");
    assert!(json(folder.path())[0]["notes"].to_string().contains("took 2.00 times as long"));
}

#[test]
fn missing_requirements_are_reported_and_nothing_is_recorded() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let (status, error) = failure(folder.path(), &["collect", "-o", "run.fxr", "--", "true"]);
    assert_eq!(status, 125);
    assert!(error.contains("this computer's processor is not a64fx"), "{error}");
    let (_, error) = failure(folder.path(), &collect(&[], &["true"]));
    assert!(error.contains("cannot start ./perf") && error.contains("apt-get install linux-perf"), "{error}");
    perf(folder.path(), PERF);
    let (_, error) = failure(folder.path(), &collect(&[], &["false"]));
    assert!(error.contains("ended with status 1 when group 1 was counted; nothing is recorded"), "{error}");
    perf(
        folder.path(),
        &PERF.replace(
            "printf '%d,,%s,1000,100.00,,\\n' \"0x${event#r}\"",
            "printf '%s,,%s,0,0.00,,\\n' '<not supported>'",
        ),
    );
    let runs = || std::fs::read_to_string(folder.path().join("calls")).expect("written").lines().count();
    let before = runs();
    let (_, error) = failure(folder.path(), &collect(&[], &["true"]));
    assert!(error.contains("is not supported by this system's counters"), "{error}");
    assert!(error.contains("perf stat -e r11 true shows it"), "{error}");
    assert_eq!(runs(), before + 1, "the other ten groups are not tried");
    assert!(!folder.path().join("run.fxr").exists());
}

#[test]
fn perf_s_output_can_be_imported_from_files_and_folders() {
    let golden = format!("{}/../../testdata/import/perf", env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("temporary directory");
    let file = format!("{golden}/a64fx.txt");
    let ran = output(folder.path(), &["import", "perf", &file, "-o", "run.fxr"]);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let runs = json(folder.path());
    assert_eq!(runs[0]["regions"][0]["metrics"]["gflops"], (4.0 * 8e6 + 16.0) / 1e-3 / 1e9);
    let (status, error) = failure(folder.path(), &["import", "perf", &golden, "-o", "other.fxr"]);
    assert_eq!(status, 125);
    assert!(error.contains("README.md: line 3: is not what perf stat writes"), "{error}");
    assert!(!folder.path().join("other.fxr").exists());
}
