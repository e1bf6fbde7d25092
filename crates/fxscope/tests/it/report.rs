//! `fxscope report` and `fxscope compare` on a record of a small run. The crates of the formats test their contents.

use crate::common;

use std::fs;
use std::path::Path;

use common::{compile, failure, fxscope, json, kernel, output};

/// A folder with `a.fxr`, a run of a kernel, and `b.fxr`, a run of another size.
fn records() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("temporary folder");
    for (file, size) in [("a.fxr", "n=1024"), ("b.fxr", "n=2048")] {
        let program = kernel("triad-l1.elf");
        let done = output(folder.path(), &["run", "-q", "-o", file, "--", &program, size, "passes=2"]);
        assert!(done.status.success(), "{done:?}");
    }
    folder
}

fn report(folder: &Path, args: &[&str]) -> Vec<u8> {
    let done = output(folder, args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    assert!(done.stderr.is_empty(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    done.stdout
}

#[test]
fn every_format_goes_to_standard_output_or_to_a_file() {
    let folder = records();
    let starts: [(&str, &[u8]); 7] = [
        ("terminal", b"triad-l1.elf on a64fx"),
        ("html", b"<!DOCTYPE html>"),
        ("sheet", b"<!DOCTYPE html>"),
        ("xlsx", b"PK"),
        ("csv", b"run,region,"),
        ("json", b"["),
        ("numpy", b"PK"),
    ];
    for (format, start) in starts {
        let shown = report(folder.path(), &["report", "a.fxr", "--format", format]);
        assert!(shown.starts_with(start), "{format}");
        let nothing = report(folder.path(), &["report", "a.fxr", "--format", format, "-o", "out"]);
        assert!(nothing.is_empty(), "{format}");
        let written = fs::read(folder.path().join("out")).expect("written");
        // Workbooks contain the time of their creation.
        assert!(format == "xlsx" || written == shown, "{format}");
    }
}

#[test]
fn labels_name_files_and_run_chooses_one_of_several() {
    let folder = records();
    let program = kernel("triad-l1.elf");
    let more = output(folder.path(), &["run", "-q", "-o", "b.fxr", "--", &program, "n=4096", "passes=2"]);
    assert!(more.status.success(), "{more:?}");
    let text = |args: &[&str]| String::from_utf8(report(folder.path(), args)).expect("text");

    let both = text(&["report", "a.fxr", "b.fxr", "--run", "1", "--label", "small", "--label", "large"]);
    assert!(both.contains("small") && both.contains("large") && !both.contains("large#"), "{both}");
    let all = text(&["report", "a.fxr", "b.fxr", "--label", "small", "--label", "large"]);
    assert!(all.contains("large#1") && all.contains("large#2"), "{all}");
    let compared = text(&["compare", "a.fxr", "b.fxr", "--run", "1", "--run", "2", "--label", "small"]);
    assert!(compared.starts_with("Comparison of small, b\n"), "{compared}");
    let (_, error) = failure(folder.path(), &["compare", "a.fxr", "b.fxr", "--run", "1", "--run", "1", "--run", "1"]);
    assert!(error.contains("--run is given 3 times for 2 files"), "{error}");
}

#[test]
fn text_has_the_width_of_columns_within_80_and_160_and_colours_on_request() {
    let folder = records();
    let shown = |columns: &str, args: &[&str]| {
        let args = [&["report", "a.fxr", "--level", "detailed"], args].concat();
        let done = fxscope(folder.path(), &args).env("COLUMNS", columns).output().expect("fxscope starts");
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).expect("text")
    };
    // Commands are not broken.
    let lines = |text: &str| text.lines().filter(|line| !line.contains(" $ ")).map(|line| line.chars().count()).max();
    let widest = |text: &str| lines(text).unwrap_or(0);
    let widths = ["20", "80", "120", "400"].map(|columns| widest(&shown(columns, &[])));
    assert_eq!(widths[0], widths[1]);
    assert!(widths[1] <= 80 && widths[1] < widths[2] && widths[2] <= 120 && widths[3] <= 160, "{widths:?}");
    assert!(!shown("80", &[]).contains('\x1b') && shown("80", &["--color", "always"]).contains('\x1b'));
}

#[test]
fn pipes_have_names_whole_that_a_narrow_terminal_cuts() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let name = "a_function_with_a_name_that_says_at_length_what_it_does_for_no_reason_but_its_length";
    let source = format!(
        "static volatile double sum;\n__attribute__((noinline)) void {name}(void) {{ for (int i = 0; i < 2000; i++) sum += i; }}\n\
         int main(void) {{ {name}(); return 0; }}\n"
    );
    compile(folder.path(), "long", &["-O2", "-static"], &source);
    assert!(output(folder.path(), &["run", "-q", "-o", "long.fxr", "--", "./long"]).status.success());
    for section in ["loops", "calls"] {
        let args = ["report", "long.fxr", "--section", section];
        let whole = output(folder.path(), &args).stdout;
        assert!(String::from_utf8_lossy(&whole).contains(name), "{section}");
        let narrow = fxscope(folder.path(), &args).env("COLUMNS", "80").output().expect("fxscope starts").stdout;
        let narrow = String::from_utf8_lossy(&narrow).into_owned();
        assert!(!narrow.contains(name) && narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    }
    let verdict = String::from_utf8(output(folder.path(), &["report", "long.fxr"]).stdout).expect("text");
    assert!(verdict.contains(name), "{verdict}");
}

#[test]
fn a_missing_region_is_reported_with_the_existing_ones_and_no_file_is_written() {
    let folder = records();
    for command in ["report", "compare"] {
        let (status, error) = failure(
            folder.path(),
            &[command, "a.fxr", "b.fxr", "--region", "solve", "--format", "html", "-o", "out.html"],
        );
        assert_eq!(status, 125);
        assert!(error.contains("no region 'solve'; it has all, triad"), "{error}");
        assert!(!folder.path().join("out.html").exists());
    }
}

#[test]
fn an_output_that_cannot_be_written_is_reported() {
    let folder = records();
    let (status, error) = failure(folder.path(), &["report", "a.fxr", "-o", "no/such/folder/report.txt"]);
    assert_eq!(status, 125);
    assert!(error.contains("no/such/folder/report.txt") && error.contains("check the path"), "{error}");
}

#[test]
fn a_comparison_has_the_ratios_of_two_runs_and_names_the_differences() {
    let folder = records();
    let compared =
        json(&report(folder.path(), &["compare", "a.fxr", "b.fxr", "--region", "triad", "--format", "json"]));
    assert_eq!(compared["subjects"], serde_json::json!(["a", "b"]));
    let events = compared["events"].as_array().expect("a list");
    let ratio = |name: &str| {
        let event = events.iter().find(|e| e["name"] == name).expect(name);
        event["values"][1]["ratio"].as_f64().expect("both counted it")
    };
    // Twice as many elements: exactly twice the operations.
    assert_eq!(ratio("FP_SCALE_OPS_SPEC"), 2.0);
    let text = String::from_utf8(report(folder.path(), &["compare", "a.fxr", "b.fxr"])).expect("text");
    assert!(text.contains("n=2048") && text.contains("differ"), "{text}");
}

#[test]
fn a_comparison_fails_for_a_run_that_takes_longer_than_the_limit_allows() {
    let folder = records();
    let compare = |files: [&str; 2], limit| {
        let arguments = ["compare", files[0], files[1], "--region", "triad", "--fail-above", limit];
        let output = common::output(folder.path(), &arguments);
        (
            output.status.code(),
            String::from_utf8(output.stdout).expect("text"),
            String::from_utf8(output.stderr).expect("text"),
        )
    };
    // b has twice as many elements as a.
    let (status, text, error) = compare(["a.fxr", "b.fxr"], "2%");
    assert_eq!(status, Some(1));
    assert!(text.contains("Where the difference comes from"), "{text}");
    assert!(error.lines().count() == 1 && error.contains("% longer than a"), "{error}");
    assert_eq!(compare(["b.fxr", "a.fxr"], "2%").0, Some(0));
    assert_eq!(compare(["a.fxr", "b.fxr"], "500").0, Some(0));
    let (status, _, error) = compare(["a.fxr", "b.fxr"], "much");
    assert!(status == Some(2) && error.contains("such as 2%"), "{status:?} {error}");
}

#[test]
fn one_run_alone_cannot_be_compared() {
    let folder = records();
    let (status, error) = failure(folder.path(), &["compare", "a.fxr"]);
    assert_eq!(status, 125);
    assert!(error.contains("give at least two files"), "{error}");
}
