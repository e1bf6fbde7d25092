//! Programs outside the tree: benchmarks and applications that check their own results.
//!
//! `FXSCOPE_EXTRA_PROGRAMS` names their folder; CONTRIBUTING.md describes its files.

use crate::common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::fxscope;
use fxscope_testkit::skip;

const FOLDER: &str = "FXSCOPE_EXTRA_PROGRAMS";

/// Returns the programs of a folder, by name.
fn programs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{FOLDER}={}: {e}", folder.display()));
    let mut programs: Vec<PathBuf> = entries.map(|entry| entry.expect("readable folder").path()).collect();
    programs.retain(|path| path.extension().is_some_and(|extension| extension == "elf"));
    programs.sort();
    programs
}

/// Returns the text of the file beside a program that has this extension.
fn beside(program: &Path, extension: &str) -> Option<String> {
    let path = program.with_extension(extension);
    path.exists().then(|| fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// Runs a program; returns what is wrong with its end or its output.
fn run(program: &Path, mode: &str) -> Result<(), String> {
    let scratch = tempfile::tempdir().expect("temporary folder");
    let mut command = fxscope(scratch.path(), &["run", "--quiet", "--mode", mode]);
    command.args(beside(program, "options").unwrap_or_default().split_whitespace());
    command.arg("--").arg(program);
    command.args(beside(program, "args").unwrap_or_default().split_whitespace());
    if let Ok(input) = File::open(program.with_extension("stdin")) {
        command.stdin(Stdio::from(input));
    }
    let output = command.output().expect("fxscope starts");
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(format!("{}\n{out}{error}", output.status));
    }
    for expected in beside(program, "expect").unwrap_or_default().lines().map(str::trim) {
        if !out.lines().any(|line| line.trim() == expected) {
            return Err(format!("no line \"{expected}\" in:\n{out}{error}"));
        }
    }
    Ok(())
}

#[test]
fn programs_from_outside_the_tree_confirm_their_own_results() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        skip(format_args!("{FOLDER} names no folder of programs (see CONTRIBUTING.md)"));
        return;
    };
    let folder = fs::canonicalize(&folder).unwrap_or_else(|e| panic!("{FOLDER}={}: {e}", folder.display()));
    let programs = programs(&folder);
    assert!(!programs.is_empty(), "{FOLDER}={}: no file ends in .elf", folder.display());
    let mut failures = Vec::new();
    for program in &programs {
        let modes: &[&str] =
            if program.with_extension("timing").exists() { &["functional", "timing"] } else { &["functional"] };
        for mode in modes {
            let result = run(program, mode);
            let title = format!("{} ({mode})", program.file_name().expect("of a file").display());
            println!("{title}: {}", if result.is_ok() { "ok" } else { "FAILED" });
            failures.extend(result.err().map(|e| format!("{title}: {e}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
