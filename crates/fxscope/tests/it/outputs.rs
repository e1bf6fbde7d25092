//! Results go to their destination, whatever the program does to the folder in the meantime.

use crate::common;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use common::{FOREVER, compile, elf, fxscope, output, place};

/// Moves the folder of the results away, and replaces it by a link to the given folder.
const DIVERTS: &str = r#"
    #include <stdio.h>
    #include <unistd.h>
    int main(int argc, char **argv) {
        return rename("out", "moved") || symlink(argv[1], "out");
    }"#;

const RESULTS: [&str; 6] = ["--json", "out/run.json", "-o", "out/run.fxr", "--konata", "out/run.kanata"];

/// A working folder, and one that a program may not write to.
fn folders() -> (tempfile::TempDir, tempfile::TempDir) {
    (tempfile::tempdir().expect("folder"), tempfile::tempdir_in("/var/tmp").expect("folder"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("readable");
    let mut names: Vec<_> = entries.map(|e| e.expect("entry").file_name().into_string().expect("UTF-8")).collect();
    names.sort();
    names
}

#[test]
fn a_program_that_replaces_the_output_folder_by_a_link_diverts_nothing() {
    let (here, elsewhere) = folders();
    fs::create_dir(here.path().join("out")).expect("folder");
    for name in ["run.json", "run.fxr", "run.kanata"] {
        fs::write(elsewhere.path().join(name), "intact").expect("file");
    }
    let program = compile(here.path(), "diverts", &["-static"], DIVERTS);
    let target = elsewhere.path().to_str().expect("UTF-8");
    let args = [&["run", "--quiet"], &RESULTS[..], &["--", &program, target]].concat();
    let output = output(here.path(), &args);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["run.json", "run.fxr", "run.kanata"] {
        assert_eq!(fs::read_to_string(elsewhere.path().join(name)).expect("there"), "intact");
    }
    assert_eq!(names(&here.path().join("moved")), ["run.fxr", "run.json", "run.kanata"]);
    let runs = fxscope::record::load(&here.path().join("moved/run.fxr")).expect("a record");
    assert_eq!(runs.len(), 1);
}

/// Replaces the results by links to the given file.
const LINKS: &str = r#"
    #include <unistd.h>
    int main(int argc, char **argv) {
        return symlink(argv[1], "run.json") || symlink(argv[1], "run.fxr");
    }"#;

#[test]
fn a_link_that_replaces_a_result_is_not_followed() {
    let (here, elsewhere) = folders();
    let victim = place(elsewhere.path(), "victim", b"intact");
    let program = compile(here.path(), "links", &["-static"], LINKS);
    let victim = victim.to_str().expect("UTF-8");
    let args = ["run", "--quiet", "--json", "run.json", "-o", "run.fxr", "--", &program, victim];
    let error = String::from_utf8(output(here.path(), &args).stderr).expect("text");
    assert_eq!(fs::read_to_string(victim).expect("there"), "intact");
    assert!(fs::symlink_metadata(here.path().join("run.json")).expect("there").is_file());
    // A record holds earlier runs, so it is not replaced by a file that is not a record.
    assert!(error.contains("run.fxr"), "{error}");
}

#[test]
fn a_killed_run_leaves_no_temporary_file() {
    let here = tempfile::tempdir().expect("folder");
    fs::create_dir(here.path().join("out")).expect("folder");
    let program = place(here.path(), "forever.elf", &elf(&[FOREVER]));
    let program = program.to_str().expect("UTF-8");
    let args = [&["run", "--quiet"], &RESULTS[..], &["--", program]].concat();
    let mut child = fxscope(here.path(), &args).spawn().expect("fxscope starts");
    let end = Instant::now() + Duration::from_secs(20);
    while !runs(child.id()) && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().expect("it runs");
    child.wait().expect("ended");
    assert_eq!(names(&here.path().join("out")), [""; 0]);
}

/// Whether the program is running: its thread exists.
fn runs(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/task")).is_ok_and(|threads| threads.count() > 1)
}

#[test]
fn the_protection_by_the_hosts_kernel_is_reported_on_request() {
    let here = tempfile::tempdir().expect("folder");
    let program = place(here.path(), "end.elf", &elf(&common::exit(0)));
    let program = program.to_str().expect("UTF-8");
    let told = |switches: &[&str]| {
        let output = output(here.path(), &[&["run"], switches, &["--", program]].concat());
        assert_eq!(output.status.code(), Some(0));
        let error = String::from_utf8(output.stderr).expect("text");
        error.lines().find(|line| line.contains("protection by the host's kernel")).map(str::to_owned)
    };
    assert_eq!(told(&[]), None);
    let line = told(&["--verbose"]).expect("told");
    assert!(line.contains("Landlock ABI") || line.contains("none: "), "{line}");
    let sandbox = told(&["--verbose", "--sandbox"]).expect("told");
    assert!(sandbox.contains("reads nowhere; writes nowhere; no TCP") || sandbox.contains("none: "), "{sandbox}");
}
