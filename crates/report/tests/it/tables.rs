//! The report's tables on the terminal and as CSV.

use crate::common;

use std::collections::BTreeMap;

use fxscope_report::document::{Body, Place};
use fxscope_report::render::{csv, terminal};
use fxscope_report::{By, Options, report};

const STYLE: terminal::Style = terminal::Style { unicode: true, colour: false, width: 100, cuts: true };

fn options(by: By) -> Options {
    Options { by, ..Options::default() }
}

/// The lines of the CSV: values by column name.
fn lines(by: By) -> Vec<BTreeMap<String, String>> {
    let bytes = csv::render(&[report(&common::threads(), &options(by)).expect("all regions")]);
    let mut reader = ::csv::Reader::from_reader(bytes.as_slice());
    reader.deserialize().collect::<Result<_, _>>().expect("well formed")
}

#[test]
fn every_thread_has_a_row_before_that_of_the_whole() {
    let report = report(&common::threads(), &options(By::Thread)).expect("all regions");
    for section in &report.regions[0].sections {
        if let Body::Grid(grid) = &section.body {
            let threads = grid.records.iter().filter_map(|r| match r.place {
                Place::Thread { thread, .. } => Some(thread),
                _ => None,
            });
            assert_eq!(threads.collect::<Vec<_>>(), [0, 1, 2, 3]);
            assert_eq!(grid.records.last().map(|r| r.place), Some(Place::Total));
        }
    }
}

#[test]
fn csv_has_one_line_per_value_with_its_scope() {
    let lines = lines(By::Thread);
    let times: Vec<_> = lines.iter().filter(|l| l["id"] == "A01").collect();
    let column = |name: &str| times.iter().map(|l| l[name].as_str()).collect::<Vec<_>>();
    // The report takes the mean of a CMG's threads; the total takes the longest.
    assert_eq!(column("value"), ["0.001", "0.0005", "0.001", "0.001", "0.00075", "0.001", "0.001"]);
    assert_eq!(column("scope"), ["thread", "thread", "thread", "thread", "cmg", "cmg", "total"]);
    assert_eq!(column("cmg")[4..], ["0", "1", ""]);
    assert_eq!(column("thread")[..4], ["0", "1", "2", "3"]);
    assert_eq!(column("cpu")[..4], ["12", "13", "24", "25"]);
    for line in &times {
        assert_eq!((line["run"].as_str(), line["region"].as_str(), line["unit"].as_str()), ("1", "all", "s"));
        assert_eq!((line["table"].as_str(), line["name"].as_str()), ("A", "Execution time"));
    }
}

#[test]
fn values_of_csv_are_exact() {
    let whole = lines(By::Process).into_iter().find(|l| l["id"] == "A11").expect("counted");
    // Each thread executes 0.6 instructions per cycle.
    assert_eq!(whole["value"].parse::<f64>(), Ok(0.6));
}

#[test]
fn tables_fit_the_terminal_and_have_a_column_for_each_part() {
    for by in [By::Thread, By::Cmg, By::Process] {
        let report = report(&common::threads(), &options(by)).expect("all regions");
        let text = terminal::render(&report.documents(), STYLE);
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
        assert_eq!(text.contains("thread 3"), by == By::Thread);
    }
}

#[test]
fn every_quantity_of_a_table_fits_the_column_of_its_part() {
    let report = report(&common::large(4, 1), &options(By::Thread)).expect("all regions");
    let text = terminal::render(&report.documents(), STYLE);
    let mut right = 0;
    for line in text.lines() {
        // The heading's last word ends where its column does, as do the numbers below, except for marks.
        let last = line.rsplit("  ").next().unwrap_or_default();
        if ["thread 0", "thread 1", "thread 2", "thread 3", "total"].contains(&last) {
            right = line.chars().count();
        }
        let is_row =
            line.trim_start().split_once(' ').is_some_and(|(id, _)| id.len() == 3 && id.as_bytes()[1].is_ascii_digit());
        if is_row {
            assert!(line.chars().count() <= right + 1, "{line}");
        }
    }
    assert!(right > 0, "{text}");
}

#[test]
fn bars_of_threads_are_proportional_to_their_time() {
    let report = report(&common::threads(), &options(By::Thread)).expect("all regions");
    let text = terminal::render(&report.documents(), STYLE);
    let bar = |thread: &str| {
        let line = text.lines().find(|l| l.starts_with(&format!("    {thread} "))).expect(thread);
        line.trim_start_matches(&format!("    {thread}")).trim().len()
    };
    assert_eq!(bar("thread 0"), bar("thread 2"));
    assert!(bar("thread 0").abs_diff(2 * bar("thread 1")) <= 1, "{text}");
    assert!(bar("thread 0") > 80);
}

#[test]
fn a_report_of_one_region_has_only_that_region() {
    let run = common::run("a.out", vec![common::region("all", 1, 10), common::region("solve", 3, 5)]);
    let options = Options { region: Some("solve".to_owned()), ..Options::default() };
    let names: Vec<_> = report(&run, &options).expect("there").regions.into_iter().map(|r| (r.name, r.calls)).collect();
    assert_eq!(names, [("solve".to_owned(), 3)]);
    let options = Options { region: Some("solver".to_owned()), ..Options::default() };
    let error = report(&run, &options).expect_err("not there");
    assert_eq!(error, "a.out has no region 'solver'; it has all, solve");
}
