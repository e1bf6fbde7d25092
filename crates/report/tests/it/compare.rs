//! The formats of a comparison. Its results are tested elsewhere.

use crate::common;

use std::collections::BTreeMap;

use fxscope_record::ALL;
use fxscope_report::compare::{Comparison, Subject, compare, report};
use fxscope_report::document::{Body, Line, Value};
use fxscope_report::render::{comparison, html, terminal};

/// A run compared with one that did half as much, twice.
fn half() -> Comparison {
    let whole = [common::run("a.out", vec![common::region(ALL, 1, 10)])];
    let half = [0, 1].map(|_| common::run("a.out", vec![common::region(ALL, 1, 5)]));
    let subjects: Vec<_> = Subject::of_file("old", &whole).into_iter().chain(Subject::of_file("new", &half)).collect();
    compare(&subjects, &[ALL]).expect("both have the region")
}

#[test]
fn the_terminal_shows_both_values_and_their_ratio_in_100_columns() {
    let text = terminal::render(&report(&half()).documents(), terminal::Style { unicode: true, colour: false });
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    let line = text.lines().find(|l| l.contains("Execution time")).expect("it differs");
    for part in ["1.000 ms", "500.0 µs", "0.500×"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(text.contains("Events: new against old"), "{text}");
}

#[test]
fn csv_has_one_line_per_quantity_and_subject() {
    let bytes = comparison::csv(&half());
    let lines: Vec<BTreeMap<String, String>> =
        csv::Reader::from_reader(bytes.as_slice()).deserialize().collect::<Result<_, _>>().expect("well formed");
    let cycles: Vec<_> = lines.iter().filter(|l| l["name"] == "CPU_CYCLES").collect();
    let column = |name: &str| cycles.iter().map(|l| l[name].as_str()).collect::<Vec<_>>();
    assert_eq!(column("subject"), ["old", "new"]);
    assert_eq!(column("runs"), ["1", "2"]);
    assert_eq!(column("mean"), ["2000000", "1000000"]);
    assert_eq!(column("deviation"), ["", "0"]);
    assert_eq!(column("ratio"), ["1", "0.5"]);
    assert_eq!(column("noise"), ["", "false"]);
}

#[test]
fn json_matches_csv() {
    let json = comparison::json(&half());
    let cycles =
        json["events"].as_array().expect("a list").iter().find(|q| q["name"] == "CPU_CYCLES").expect("counted");
    assert_eq!(cycles["values"][1]["ratio"], 0.5);
    assert_eq!(cycles["values"][1]["noise"], false);
    assert!(cycles["values"][0]["deviation"].is_null());
    assert_eq!(json["accounting"].as_array().map(Vec::len), Some(20));
}

#[test]
fn the_page_has_a_bar_for_each_subject() {
    let page = html::render(&[report(&half())]);
    assert!(page.contains(">old</text>") && page.contains(">new</text>"));
}

#[test]
fn the_largest_differences_of_each_subject_come_first() {
    let subject = |tenths: u64, stalls: u64| {
        let mut run = common::run("a.out", vec![common::region(ALL, 1, tenths)]);
        let mut counts = common::counts(tenths);
        counts.insert("FL_COMP_WAIT".to_owned(), stalls);
        run.regions = common::of_threads(vec![(Default::default(), counts)]).regions;
        [run]
    };
    let runs = [subject(10, 100_000), subject(9, 50_000), subject(4, 100_000)];
    let subjects: Vec<_> =
        ["a", "b", "c"].iter().zip(&runs).flat_map(|(name, runs)| Subject::of_file(name, runs)).collect();
    let report = report(&compare(&subjects, &[ALL]).expect("all have the region"));
    for subject in ["b", "c"] {
        let title = format!("Events: {subject} against a");
        let section = report.regions[0].sections.iter().find(|s| s.title == title).expect("a list");
        let Body::Listing { lines, .. } = &section.body else { panic!("{section:?}") };
        let ratio = |line: &Line| match line {
            Line::Row(row) => match &row.values[2] {
                Some(Value::Number(ratio, _)) => Some(ratio.ln().abs()),
                _ => None,
            },
            _ => None,
        };
        let effects: Vec<f64> = lines.iter().filter_map(ratio).take(10).collect();
        assert!(effects.len() == 10 && effects.is_sorted_by(|a, b| a >= b), "{subject}: {effects:?}");
    }
}
