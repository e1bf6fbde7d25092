//! `fxscope guide`: lists, runs, pages and errors, away from the sources.

use crate::common;

use std::fs;

use common::{failure, json, output};

fn printed(folder: &std::path::Path, args: &[&str]) -> String {
    let output = output(folder, args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn experiments_are_listed_by_chapter_with_time_and_items() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = printed(folder.path(), &["guide"]);
    assert!(text.contains("Prefetch (Guide 000, 2.1 Prefetch)"), "{text}");
    assert!(text.contains("prefetch.addresses: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn a_table_has_published_and_simulated_figures_and_their_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = printed(folder.path(), &["guide", "sfi.mask", "--no-cache"]);
    let row = |key: &str| text.lines().find(|line| line.trim_start().starts_with(key)).expect("a row").to_owned();
    assert!(row("X  ").ends_with("published  simulated  difference"), "{text}");
    assert!(row("8 ").contains("0.678") && row("8 ").ends_with('%'), "{text}");
    assert!(text.contains("figures test the model: mean error"), "{text}");
    let result = json(printed(folder.path(), &["guide", "sfi.mask", "--no-cache", "--format", "json"]).as_bytes());
    let cell = &result["experiments"][0]["tables"][0]["rows"][0]["cells"][0]["figure"];
    assert_eq!((&cell["row"], &cell["unit"]), (&"sfi-0001".into(), &"s".into()));
    assert!(cell["error"].as_f64().expect("a number").abs() < 5.0, "{cell}");
    assert_eq!(result["errors"]["published_only"], 3, "of five loops that are not public, the text has three times");
}

#[test]
fn commands_run_with_the_programs_that_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = printed(folder.path(), &["guide", "zfill.cached", "--commands"]);
    assert_eq!(text, printed(folder.path(), &["guide", "zfill.cached", "--dry-run"]));
    let command = text.lines().find(|line| line.starts_with("fxscope run")).expect("a command");
    printed(folder.path(), &["guide", "--programs", "kernels/prebuilt"]);
    printed(folder.path(), &command.split(' ').skip(1).collect::<Vec<_>>());
}

#[test]
fn an_unknown_experiment_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (status, error) = failure(folder.path(), &["guide", "sfi.no"]);
    assert_eq!(status, 125);
    assert!(error.contains("unknown experiment 'sfi.no'; choose from sfi.mask"), "{error}");
}

#[test]
fn prefetched_lines_are_listed_for_distances_of_the_user() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        printed(folder.path(), &["machine", "prefetched", "--l1-lines", "4", "--l2-lines", "10", "--accesses", "5"]);
    let last = text.lines().find(|line| line.trim_start().starts_with("A+5")).expect("the fifth access");
    assert_eq!(last.split_whitespace().collect::<Vec<_>>(), ["A+5", "A+10", "A+11", "A+8", "A+9"]);
    let (status, error) = failure(folder.path(), &["machine", "prefetched", "--l1-lines", "16"]);
    assert_eq!(status, 125);
    assert!(error.contains("l1_lines"), "{error}");
}

#[test]
fn resources_of_a_loop_are_computed_for_a_machine() {
    let folder = tempfile::tempdir().expect("a folder");
    let text =
        printed(folder.path(), &["machine", "resources", "--operations", "9", "--constants", "10", "--unroll", "2"]);
    let row = |name: &str| {
        let line =
            text.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line[line.find(name).expect("found") + name.len()..].split_whitespace().take(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("vector registers"), "46 128 yes");
    assert_eq!(row("stations RSE0 and RSE1"), "162 40 no");
    assert!(text.lines().all(|line| line.chars().count() <= 80 + 20), "{text}");
    for (args, what) in [
        (&["--operations", "0"][..], "0 is not in 1..=1000"),
        (&["--operations", "1", "--operation", "sve:NONE"], "no row for the operation 'sve:NONE'"),
        (&[], "--operations"),
    ] {
        let (status, error) = failure(folder.path(), &[&["machine", "resources"], args].concat());
        assert!(status != 0 && error.contains(what), "{args:?}: {error}");
    }
}

#[test]
fn validate_needs_no_sources() {
    let folder = tempfile::tempdir().expect("a folder");
    let result = json(printed(folder.path(), &["validate", "sfi-0001", "--no-cache", "--json", "-"]).as_bytes());
    assert_eq!(result["rows"][0]["verdict"], "within");
    let (status, error) = failure(folder.path(), &["validate", "sfi-0001", "--accept"]);
    assert_eq!(status, 2);
    assert!(error.contains("--folder"), "{error}");
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn pages_of_several_experiments_are_a_folder_with_an_index() {
        let folder = tempfile::tempdir().expect("a folder");
        printed(folder.path(), &["guide", "sfi", "prefetch.addresses", "--no-cache", "--format", "html", "-o", "site"]);
        let read = |name: &str| fs::read_to_string(folder.path().join("site").join(name)).expect("a page");
        assert!(read("index.html").contains("href=\"sfi.mask.html\""));
        assert!(read("sfi.mask.html").contains("data-chart="));
        let (status, error) = failure(folder.path(), &["guide", "sfi", "--format", "html"]);
        assert_eq!(status, 125);
        assert!(error.contains("-o FOLDER"), "{error}");
    }
}
