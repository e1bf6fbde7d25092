//! The action for continuous integration in `docs/ci` does what `docs/ci.md` says.

use crate::common;

use std::path::Path;
use std::process::{Command, Output};

/// Returns the script of the action.
fn script() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates are two folders down");
    let text = std::fs::read_to_string(root.join("docs/ci/action.yml")).expect("the action is there");
    let (_, script) = text.split_once("      run: |\n").expect("one script, which ends the file");
    script.to_owned()
}

/// Runs the script as GitHub does, with these elements of Triad.
fn run(folder: &Path, elements: u32, limit: &str) -> Output {
    let tool = Path::new(env!("CARGO_BIN_EXE_fxscope")).parent().expect("a folder").to_owned();
    let path =
        std::env::join_paths([tool].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").expect("set"))));
    let program = common::kernel("triad-l1.elf");
    Command::new("bash")
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script()])
        .current_dir(folder)
        .env("PATH", path.expect("no separators"))
        .env("PROGRAM", format!("{program} n={elements} passes=20"))
        .env("OPTIONS", "--cpus 12")
        .env("BASELINE", "baseline.fxr")
        .env("RECORD", "now.fxr")
        .env("LIMIT", limit)
        .env("GITHUB_STEP_SUMMARY", folder.join("summary"))
        .output()
        .expect("bash runs")
}

#[test]
fn the_action_fails_when_the_program_takes_longer_than_its_baseline_allows() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = run(folder.path(), 512, "2%");
    assert!(first.status.success(), "{first:?}");
    assert!(String::from_utf8_lossy(&first.stdout).contains("no baseline baseline.fxr"), "{first:?}");
    std::fs::rename(folder.path().join("now.fxr"), folder.path().join("baseline.fxr")).expect("it has been written");
    assert!(run(folder.path(), 512, "2%").status.success(), "as fast as before");
    let slower = run(folder.path(), 1024, "2%");
    assert_eq!(slower.status.code(), Some(1), "{slower:?}");
    assert!(String::from_utf8_lossy(&slower.stderr).contains("% longer than baseline (--fail-above)"), "{slower:?}");
    let summary = std::fs::read_to_string(folder.path().join("summary")).expect("written");
    assert!(summary.contains("baseline and now are equally fast.") && summary.contains("now takes"), "{summary}");
    assert!(run(folder.path(), 1024, "500%").status.success(), "within the limit");
}
