//! `fxscope validate`: the model compared with measured rows.

use crate::common;

use std::fs;
use std::path::Path;

use common::{failure, kernel, output};

const ROWS: &str = "row,what,run,before,simulated,measured,unit,tolerance,error,gap,fitted,source\n";
const RUNS: &str = "run,program,arguments,options,suite\n\
    small,triad-l1,n=64 passes=1,,quick\n\
    large,triad-l1,n=64 passes=4,,full\n";
const PROGRAMS: &str = "program,kernel,shape,part,mechanism\n\
    triad,triad-l1,,fit,L1\n\
    triad-long,triad-l1,passes=4,check,L1\n";
const GAPS: &str = "gap,status,what,would_close,note\nl1-loop,open,a loop is too slow,a count,\n";

/// A folder with a program and rows; `instructions` is the measured number in one pass of its loop.
fn folder(instructions: f64, tolerance: f64, error: f64, gap: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path();
    fs::create_dir_all(path.join("kernels/prebuilt")).expect("a folder");
    fs::copy(kernel("triad-l1.elf"), path.join("kernels/prebuilt/triad-l1.elf")).expect("a copy");
    fs::create_dir(path.join("validation")).expect("a folder");
    fs::write(path.join("validation/runs.csv"), RUNS).expect("a file");
    fs::write(path.join("validation/gaps.csv"), GAPS).expect("a file");
    fs::write(path.join("validation/programs.csv"), PROGRAMS).expect("a file");
    let rows = format!(
        "{ROWS}a-1,instructions,small,,INST_RETIRED,{instructions},instructions,{tolerance},{error},{gap},,here\n\
         a-2,more of them,large,small,INST_RETIRED/before_INST_RETIRED,3,ratio,40,20,,,here\n"
    );
    fs::write(path.join("validation/loops.csv"), rows).expect("a file");
    folder
}

/// Returns status and standard output.
fn validate(folder: &Path, more: &[&str]) -> (i32, String) {
    let cache: &[&str] = if more.contains(&"--cache") { &[] } else { &["--cache", "cache"] };
    let args = [&["validate", "--folder", "validation"], cache, more].concat();
    let output = output(folder, &args);
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(!error.contains("panicked"), "{error}");
    (output.status.code().expect("ended by itself"), String::from_utf8(output.stdout).expect("text") + &error)
}

fn json(folder: &Path, more: &[&str]) -> (i32, serde_json::Value) {
    let (status, text) = validate(folder, &[more, &["--json", "-"]].concat());
    (status, serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
}

/// Returns the count of one pass of the loop, from another command.
fn counted() -> f64 {
    let folder = tempfile::tempdir().expect("temporary folder");
    let program = kernel("triad-l1.elf");
    let run = ["run", "--quiet", "--json", "run.json", "--", &program, "n=64", "passes=1"];
    assert!(output(folder.path(), &run).status.success());
    let text = fs::read_to_string(folder.path().join("run.json")).expect("a file");
    let run: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let region = run["regions"].as_array().and_then(|regions| regions.last()).expect("a region");
    region["events"]["INST_RETIRED"].as_f64().expect("a count")
}

#[test]
fn a_row_is_the_relative_difference_of_simulated_and_measured() {
    let counted = counted();
    let folder = folder(counted / 1.04, 5.0, 4.0, "");
    let (status, result) = json(folder.path(), &[]);
    assert_eq!(status, 0);
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "the second row's run is of the full suite");
    assert_eq!(rows[0]["simulated"], counted);
    assert!((rows[0]["error"].as_f64().expect("a number") - 4.0).abs() < 1e-6);
    assert_eq!(rows[0]["verdict"], "within");
    assert!((rows[0]["relative_error"].as_f64().expect("a number") - 4.0).abs() < 1e-6);
    assert_eq!(
        (&rows[0]["kind"], &result["headline"]["counts"]["relative"]["within_5"]),
        (&"counts".into(), &1.into())
    );
}

/// A row of the small run: name, formula, measured value and unit, what it was fitted to.
fn small(name: &str, formula: &str, measured: f64, unit: &str, fitted: &str) -> String {
    format!("{name},what,small,,{formula},{measured},{unit},90,0,l1-loop,{fitted},here\n")
}

#[test]
fn the_headline_separates_times_counts_and_shares_and_counts_each_figure_once() {
    let folder = folder(counted(), 5.0, 0.0, "");
    let base = json(folder.path(), &[]).1["rows"][0]["simulated"].as_f64().expect("a count");
    let rows = [
        small("c-1", "INST_RETIRED", base / 1.2, "count", ""),
        small("c-2", "INST_RETIRED*2", base * 2.0 / 1.2, "count", ""),
        small("c-3", "100*INST_RETIRED/INST_RETIRED", 80.0, "points", ""),
        small("c-4", "0*INST_RETIRED", 0.0, "points", ""),
        small("c-5", "1+0*seconds", 2.0, "us", ""),
        small("c-6", "CPU_CYCLES/CPU_CYCLES", 100.0, "count", "tlb.walk_extra"),
    ];
    fs::write(folder.path().join("validation/loops.csv"), ROWS.to_owned() + &rows.concat()).expect("a file");
    let result = json(folder.path(), &[]).1;
    let headline = &result["headline"];
    let mean = |kind: &str, what: &str| headline[kind][what]["mean"].as_f64().map(|mean| mean.round());
    assert_eq!(mean("counts", "relative"), Some(20.0), "c-2 states c-1 again: {headline}");
    assert_eq!(headline["counts"]["relative"]["number"], 1, "c-6 was fitted");
    assert_eq!(
        [mean("shares", "points"), mean("shares", "relative")],
        [Some(10.0), Some(25.0)],
        "0 has no relative error"
    );
    assert_eq!(headline["shares"]["measured_as_zero"], 1);
    assert_eq!(mean("times_and_rates", "relative"), Some(50.0));
    assert_eq!(headline["together"]["relative"]["number"], 3);
    assert_eq!(headline["together"]["by_run"]["number"], 1, "all are of one run");
    assert_eq!([&headline["rows_fitted"], &headline["rows_stated_again"]], [1, 1]);
    assert_eq!(result["all"]["relative"]["number"], 5, "all rows but the one measured as 0");
    let row = |i: usize, key: &str| result["rows"][i][key].clone();
    let used = serde_json::json!(["c-1", true, ["tlb.walk_extra"]]);
    assert_eq!(serde_json::json!([row(1, "repeats"), row(5, "fitted"), row(5, "fitted_to")]), used);
}

#[test]
fn programs_that_fits_may_use_are_kept_apart_from_those_that_check() {
    let folder = folder(counted(), 5.0, 0.0, "");
    let rows = [
        small("t-1", "1.1+0*seconds", 1.0, "s", "tlb.walk_extra"),
        small("t-2", "1.2+0*cycles", 1.0, "s", "").replace(",small,", ",large,"),
        small("t-3", "1.4+0*cycles", 1.0, "s", "").replace(",small,", ",large,"),
    ];
    fs::write(folder.path().join("validation/loops.csv"), ROWS.to_owned() + &rows.concat()).expect("a file");
    let (_, result) = json(folder.path(), &["full"]);
    let mean = |part: &str| result["parts"][part]["times_and_rates"]["relative"]["mean"].as_f64().map(f64::round);
    assert_eq!([mean("fit"), mean("check")], [Some(10.0), Some(30.0)], "{}", result["parts"]);
    assert_eq!(result["parts"]["check"]["together"]["by_program"]["number"], 1);
    assert_eq!([&result["rows"][0]["part"], &result["rows"][1]["part"]], ["fit", "check"]);
    assert_eq!(result["rows"][1]["program"], "triad-long");
    let (_, text) = validate(folder.path(), &["full", "--html", "page.html", "--markdown", "rows.md"]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
    for shown in [text, read("page.html"), read("rows.md")] {
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("(check), times and rates are 30.0 % off on average"), "{shown}");
        assert!(shown.contains("fit: times and rates") && shown.contains("check: times and rates"), "{shown}");
    }
}

#[test]
fn the_answer_comes_first_and_names_what_it_leaves_out() {
    let folder = folder(counted() / 1.04, 5.0, 4.0, "");
    let answer =
        "The median error is 4.0 % of the measured value and the mean 4.0 %; 100 % of the figures are within 5 %";
    let (_, text) = validate(folder.path(), &[]);
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.starts_with("The model compared with measured results Accuracy ") && joined.contains(answer),
        "{text}"
    );
    assert!(joined.contains("rows that were fitted (0) or repeat a figure (0) are left out"), "{text}");
    validate(folder.path(), &["--html", "page.html", "--markdown", "rows.md"]);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a file");
    assert!(read("page.html").contains(answer) && read("rows.md").contains(answer));
    assert!(read("rows.md").starts_with("Of programs that no fit may use (check), times and rates "));
}

#[test]
fn the_full_suite_has_ratios_of_two_runs_and_their_direction() {
    let folder = folder(counted(), 5.0, 0.0, "");
    let (status, result) = json(folder.path(), &["full"]);
    assert_eq!(status, 0, "{result}");
    assert_eq!(result["all"]["rows"], 2);
    assert_eq!(result["headline"]["together"]["directions"], 1);
    assert_eq!(result["headline"]["together"]["directions_right"], 1);
    let more = result["rows"][1]["simulated"].as_f64().expect("a number");
    assert!(more > 1.0 && more <= 4.0, "four passes take at most four times as many: {more}");
}

#[test]
fn a_row_that_got_worse_fails_until_its_error_is_accepted() {
    let folder = folder(counted() / 1.04, 5.0, 2.9, "");
    let (status, text) = validate(folder.path(), &[]);
    assert_eq!(status, 1);
    assert!(text.contains("a-1: worse by more than 1 than accepted (+2.9, now +4.0)"), "{text}");
    assert_eq!(validate(folder.path(), &["--accept"]).0, 0);
    assert_eq!(validate(folder.path(), &[]).0, 0);
    let rows = fs::read_to_string(folder.path().join("validation/loops.csv")).expect("a file");
    assert!(rows.contains(",5,4.0,,,here"), "{rows}");
    assert!(rows.contains("a-2,"), "rows of other suites stay: {rows}");
}

#[test]
fn a_row_beyond_its_tolerance_needs_a_gap_and_one_within_has_none() {
    let counted = counted();
    let (status, text) = validate(folder(counted / 1.2, 5.0, 20.0, "").path(), &[]);
    assert_eq!(status, 1);
    assert!(text.contains("no gap explains it"), "{text}");
    assert_eq!(validate(folder(counted / 1.2, 5.0, 20.0, "l1-loop").path(), &[]).0, 0);
    let (status, text) = validate(folder(counted, 5.0, 20.0, "l1-loop").path(), &[]);
    assert_eq!(status, 1);
    assert!(text.contains("remove l1-loop from its line"), "{text}");
}

#[test]
fn counts_are_kept_until_something_changes() {
    let folder = folder(counted(), 5.0, 0.0, "");
    let kept = |more: &[&str]| {
        assert_eq!(validate(folder.path(), more).0, 0);
        fs::read_dir(folder.path().join("cache")).expect("a folder").count()
    };
    assert_eq!(kept(&[]), 1);
    // Without the program, only the cache can answer, for the unchanged question.
    assert_eq!(kept(&["full"]), 2);
    let runs = RUNS.replace("n=64 passes=1,,", "n=64 passes=1,--set memory.added_ns=1,");
    fs::write(folder.path().join("validation/runs.csv"), runs).expect("a file");
    assert_eq!(kept(&[]), 3);
    let file = fs::read_dir(folder.path().join("cache")).expect("a folder").next().expect("a file").expect("an entry");
    fs::write(file.path(), "{").expect("a damaged file");
    assert_eq!(kept(&["full"]), 3, "a damaged result is computed again");
}

#[test]
fn a_run_that_fails_fails_its_rows_only() {
    let folder = folder(counted(), 5.0, 0.0, "");
    let runs = RUNS.replace("n=64 passes=4", "n=65");
    fs::write(folder.path().join("validation/runs.csv"), runs).expect("a file");
    let (status, result) = json(folder.path(), &["full"]);
    assert_eq!(status, 1);
    assert_eq!(result["rows"][0]["verdict"], "within");
    assert_eq!(result["rows"][1]["verdict"], "failed");
    let reason = result["rows"][1]["reason"].as_str().expect("a text");
    assert!(reason.contains("run 'large'") && reason.contains("n must be"), "{reason}");
}

#[test]
fn rows_of_real_libraries_are_left_out_without_them() {
    let folder = folder(counted(), 5.0, 0.0, "");
    let path = folder.path();
    fs::write(path.join("validation/runs.csv"), RUNS.to_owned() + "library,libraries,n=64 passes=1,,full\n")
        .expect("a file");
    let program = "library,libraries,,check,libraries\n";
    fs::write(path.join("validation/programs.csv"), PROGRAMS.to_owned() + program).expect("a file");
    let row =
        small("b-1", "INST_RETIRED", counted(), "count", "").replace(",small,", ",library,").replace("l1-loop", "");
    fs::write(path.join("validation/b.csv"), ROWS.to_owned() + &row).expect("a file");
    let (status, text) = validate(path, &["full"]);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("1 rows of real libraries are left out: target/libraries does not have them"), "{text}");
    assert!(!text.contains("b-1"), "{text}");
    // Any program will do, with folders where the packages of its libraries would be.
    fs::create_dir_all(path.join("there/root/usr/lib/aarch64-linux-gnu/openblas-serial")).expect("folders");
    fs::write(path.join("there/root/.complete"), "").expect("a file");
    fs::copy(kernel("triad-l1.elf"), path.join("there/libraries.elf")).expect("a copy");
    let (status, result) = json(path, &["full", "--libraries", "there"]);
    assert_eq!((status, &result["rows"][0]["row"]), (0, &"b-1".into()), "{result}");
}

/// The page of the full suite of a folder.
fn page(folder: &Path) -> String {
    validate(folder, &["full", "--html", "page.html"]);
    fs::read_to_string(folder.join("page.html")).expect("a page")
}

#[test]
fn the_page_has_a_title_charts_and_every_row() {
    let page = page(folder(counted(), 5.0, 0.0, "").path());
    assert!(page.contains("<h1>The model compared with measured results</h1>"), "{page}");
    assert!(page.contains("<strong>full</strong>: 2 measured figures"), "{page}");
    assert!(!page.contains("Region"), "no region of a run is shown");
    assert_eq!(page.matches("data-chart=").count(), 2, "measured and simulated, and errors by family");
    assert!(page.contains("aria-label=\"2 values: 2 within its tolerance, 0 beyond it"), "{page}");
    for row in ["a-1", "a-2"] {
        assert_eq!(page.matches(&format!("<tr id=\"{row}\">")).count(), 1, "{row}");
        assert_eq!(page.matches(&format!("&quot;{row} ")).count(), 1, "{row} is a point");
    }
}

#[test]
fn the_page_is_self_contained() {
    let page = page(folder(counted(), 5.0, 0.0, "").path());
    // Licenses in its text name addresses, which nothing opens.
    for address in ["src=\"", "href=\"http", "@import", "url("] {
        assert!(!page.contains(address), "{address}");
    }
}

#[test]
fn the_page_shows_the_rows_that_are_not_as_accepted_and_the_worst_ones() {
    let page = page(folder(counted() / 1.2, 5.0, 10.0, "").path());
    assert!(page.contains("Not as accepted"), "{page}");
    assert!(page.contains("a-1: worse by more than 1 than accepted (+10.0, now +20.0)"), "{page}");
    assert!(page.contains("Furthest beyond their tolerance") && page.contains("href=\"#a-1\""), "{page}");
    assert!(page.contains("<i class=\"high\" style=\"--v:1.000\">"), "its bar is the longest: {page}");
    let page = self::page(folder(counted(), 5.0, 0.0, "").path());
    assert!(!page.contains("Not as accepted") && !page.contains("Furthest beyond"), "{page}");
}

#[test]
fn tables_fit_a_hundred_columns() {
    let (_, text) = validate(folder(counted(), 5.0, 0.0, "").path(), &["full"]);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn wrong_files_are_named_with_line_and_reason() {
    let counted = counted();
    let wrong = |file: &str, text: &str, parts: &[&str]| {
        let folder = folder(counted, 5.0, 0.0, "");
        fs::write(folder.path().join("validation").join(file), text).expect("a file");
        let (status, error) = failure(folder.path(), &["validate", "--folder", "validation", "--no-cache"]);
        assert_eq!(status, 125, "{error}");
        for part in parts {
            assert!(error.contains(part), "'{part}' in {error}");
        }
    };
    let row = |rest: &str| format!("{ROWS}b-1,what,{rest}\n");
    wrong("b.csv", &row("none,,1,1,x,5,0,,,here"), &["b.csv:2", "no run 'none'"]);
    wrong("b.csv", &row("small,,1+,1,x,5,0,,,here"), &["b.csv:2", "formula '1+'"]);
    wrong("b.csv", &row("small,,1,-1,x,5,0,,,here"), &["b.csv:2", "measured is -1"]);
    wrong("b.csv", &row("small,,1,1,x,0,0,,,here"), &["b.csv:2", "tolerance is 0"]);
    wrong("b.csv", &row("small,,before_cycles,1,x,5,0,,,here"), &["b.csv:2", "'before'"]);
    wrong("b.csv", &row("small,,1,many,x,5,0,,,here"), &["b.csv:2"]);
    wrong("b.csv", &format!("{ROWS}a-1,what,small,,1,1,x,5,0,,,here\n"), &["loops.csv", "row 'a-1' is also in b.csv"]);
    wrong("runs.csv", &RUNS.replace("large", "small"), &["runs.csv:3", "'small' exists already"]);
    wrong("runs.csv", "run,program\n", &["loops.csv:2", "no run 'small'"]);
}

#[test]
fn an_unknown_suite_is_refused_with_the_known_ones() {
    let folder = folder(counted(), 5.0, 0.0, "");
    let (status, error) = failure(folder.path(), &["validate", "--folder", "validation", "everything"]);
    assert_eq!(status, 125);
    assert!(error.contains("unknown suite 'everything'; choose from quick, full, the families loops"), "{error}");
    let (status, error) = failure(folder.path(), &["validate", "--folder", "nowhere"]);
    assert_eq!(status, 125);
    assert!(error.contains("nowhere: ") && error.contains("--folder"), "{error}");
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn runs_that_are_made_one_by_one_give_the_same_answer() {
        let folder = folder(counted(), 5.0, 0.0, "");
        let path = folder.path();
        let (_, together) = json(path, &["full", "--cache", "together"]);
        let list = |cached: bool| -> Vec<String> {
            let shown = output(
                path,
                &["validate", "full", "--folder", "validation", "--cache", "single", "--dry-run", "--format", "json"],
            );
            let list: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
            let runs = list["runs"].as_array().expect("runs").iter().filter(|run| run["cached"] == cached);
            runs.filter_map(|run| run["result"].as_str().map(str::to_owned)).collect()
        };
        let results = list(false);
        assert_eq!(results.len(), 2);
        for result in &results {
            let made =
                output(path, &["validate", "full", "--folder", "validation", "--cache", "single", "--only", result]);
            assert!(made.status.success() && made.stdout.is_empty(), "{made:?}");
            let [one, other] =
                ["single", "together"].map(|cache| fs::read(path.join(cache).join(result)).expect("cached"));
            assert_eq!(one, other);
        }
        assert_eq!(list(true), results);
        assert_eq!(json(path, &["full", "--cache", "single"]).1, together);
        let (status, error) =
            failure(path, &["validate", "--folder", "validation", "--cache", "single", "--only", "x.json"]);
        assert!(status == 125 && error.contains("--only x.json: no run has this result"), "{error}");
    }
}
