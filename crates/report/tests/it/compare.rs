//! The formats of a comparison. Its results are tested elsewhere.

use crate::common;

use std::collections::BTreeMap;

use fxscope_record::ALL;
use fxscope_report::compare::{Comparison, Per, Subject, compare, report};
use fxscope_report::document::{Body, Line, Value};
use fxscope_report::render::{comparison, html, terminal};

/// A run compared with one that did half as much, twice.
pub fn half() -> Comparison {
    let whole = [common::run("a.out", vec![common::region(ALL, 1, 10)])];
    let half = [0, 1].map(|_| common::run("a.out", vec![common::region(ALL, 1, 5)]));
    let subjects: Vec<_> = Subject::of_file("old", &whole).into_iter().chain(Subject::of_file("new", &half)).collect();
    compare(&subjects, &[ALL]).expect("both have the region")
}

#[test]
fn the_terminal_shows_both_values_and_their_ratio_in_100_columns() {
    let text = terminal::render(
        &report(&half()).documents(),
        terminal::Style { unicode: true, colour: false, width: 100, cuts: true },
    );
    assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    let line = text.lines().find(|l| l.contains("Execution time")).expect("it differs");
    for part in ["1.000 ms", "500.0 µs", "0.500×"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(text.contains("Events: new against old"), "{text}");
}

#[test]
fn the_terminal_shows_them_in_every_width_from_80_to_160_columns() {
    for width in 80..=160 {
        let style = terminal::Style { unicode: true, colour: false, width, cuts: true };
        let text = terminal::render(&report(&half()).documents(), style);
        assert!(text.lines().all(|l| l.chars().count() <= width), "{width}: {text}");
        assert!(text.contains("0.500×"), "{width}: {text}");
    }
}

/// The sentences that a report begins with.
fn result(comparison: &Comparison) -> String {
    let report = report(comparison);
    assert!(report.sections.is_empty(), "nothing comes before the region");
    let first = &report.regions[0].sections[0];
    assert_eq!(first.title, "Result");
    let Body::Notes(sentences) = &first.body else { panic!("{first:?}") };
    sentences.join(" ")
}

/// Two runs of one region, of these tenths of what [`common::counts`] has, with these cycles of waiting for operations.
fn waiting(first: (u64, u64), other: (u64, u64)) -> Comparison {
    let run = |(tenths, waits): (u64, u64)| {
        let mut run = common::run("a.out", vec![common::region(ALL, 1, tenths)]);
        let mut counts = common::counts(tenths);
        // Such waits are waits for operations, and cycles without a commit.
        for event in ["FL_COMP_WAIT", "EU_COMP_WAIT", "0INST_COMMIT", "CPU_CYCLES"] {
            *counts.get_mut(event).expect("counted") += waits;
        }
        run.regions = common::of_threads(vec![(Default::default(), counts)]).regions;
        [run]
    };
    let runs = [run(first), run(other)];
    let subjects: Vec<_> = ["a", "b"].iter().zip(&runs).flat_map(|(name, runs)| Subject::of_file(name, runs)).collect();
    compare(&subjects, &[ALL]).expect("both have the region")
}

#[test]
fn the_first_sentence_says_which_run_is_faster_and_by_how_much() {
    let half = half();
    assert_eq!(half.speedup(1), Some(2.0));
    let text = result(&half);
    assert!(text.starts_with("new takes 500.0 µs, old 1.000 ms. new is 2.000 times as fast."), "{text}");
    assert!(text.contains("It executes 0.500 times the instructions, at as many cycles each."), "{text}");
    let slower = result(&waiting((10, 0), (10, 40_000)));
    assert!(slower.contains("b takes 2.0 % more time: it is slower."), "{slower}");
    assert!(result(&waiting((10, 0), (10, 0))).contains("a and b are equally fast."));
}

#[test]
fn the_part_of_the_time_that_differs_most_is_named_first_and_shares_add_up_to_all_of_the_difference() {
    let comparison = waiting((10, 0), (9, 600_000));
    let all = comparison.differences(1);
    assert_eq!(all[0].part.title, "FP operation wait");
    // 600,000 cycles at 2 GHz, less a tenth of what there was.
    let before = all[0].part.values[0].expect("known").mean;
    assert!((all[0].difference - (300e-6 - before / 10.0)).abs() < 1e-9, "{:?}", all[0]);
    let shares: f64 = all.iter().filter_map(|part| part.share).sum();
    assert!((shares - 1.0).abs() < 1e-9 && all[0].share > Some(1.0), "{shares}");
    assert!(result(&comparison).contains("Most of the difference: FP operation wait (+"));
    assert!(waiting((10, 0), (10, 0)).differences(1).iter().all(|part| part.share.is_none()));
}

#[test]
fn a_run_counts_as_slower_only_beyond_the_limit_and_beyond_noise() {
    let comparison = waiting((10, 0), (10, 40_000));
    assert_eq!(comparison.slower(0.021), Ok(None));
    assert_eq!(comparison.slower(0.019), Ok(Some("b takes 2.0 % longer than a".to_owned())));
    assert_eq!(half().slower(0.0), Ok(None));
    // Runs of 0.9 and 1.1 times the time say nothing about 1 %.
    let runs = [9, 11].map(|tenths| common::run("a.out", vec![common::region(ALL, 1, tenths)]));
    let once = [common::run("a.out", vec![common::region(ALL, 1, 9)])];
    let subjects: Vec<_> = Subject::of_file("a", &once).into_iter().chain(Subject::of_file("b", &runs)).collect();
    assert_eq!(compare(&subjects, &[ALL]).expect("both have the region").slower(0.01), Ok(None));
}

#[test]
fn runs_of_different_sizes_compare_by_unit_of_work() {
    let half = half();
    assert!(result(&half).contains("0.500 times the floating-point operations: --per flop"), "{}", result(&half));
    for per in ["instruction", "flop", "10,5"] {
        let comparison = half.clone().per(&per.parse().expect(per)).expect("the work is known");
        // As many cycles and misses for each unit of work, but for halves of odd counts; rates do not change.
        for quantity in comparison.metrics.iter().chain(&comparison.events).chain(&comparison.accounting) {
            let before = half.metrics.iter().chain(&half.events).find(|q| q.name == quantity.name);
            let is_small = before.and_then(|q| q.values[1]).is_some_and(|spread| spread.mean < 100.0);
            let ratio = quantity.ratio(1).unwrap_or(1.0);
            let is_alike = (ratio - 1.0).abs() < if is_small { 0.5 } else { 0.01 };
            assert!(is_alike || before.is_some_and(|q| q == quantity), "{per}: {quantity:?}");
        }
        assert!(!result(&comparison).contains("--per"));
        assert!(result(&comparison).contains("The difference is within noise."), "{}", result(&comparison));
    }
    let calls = half.clone().per(&Per::Call).expect("one call each");
    assert!((calls.speedup(1).expect("known") - 2.0).abs() < 1e-9);
    assert_eq!(comparison::json(&calls)["per"], "call");
    let text = terminal::render(
        &report(&calls).documents(),
        terminal::Style { unicode: true, colour: false, width: 100, cuts: true },
    );
    assert!(text.contains("new takes 500.0 µs per call, old 1.000 ms."), "{text}");
    assert!(text.contains("Times and counts are those per call."), "{text}");
}

#[test]
fn work_that_is_unknown_or_has_no_number_for_each_run_is_refused() {
    let mut unknown = half();
    unknown.calls[1] = 0.0;
    let message = unknown.per(&Per::Call).expect_err("no call");
    let expected = "new: the number of calls is unknown or zero, so nothing can be given per call; --per with a number for each \
                    file, such as its elements, needs no counts";
    assert_eq!(message, expected);
    let message = half().per(&Per::Number(vec![1.0])).expect_err("two runs");
    assert_eq!(message, "--per has 1 of 2 numbers: give one for each of old, new");
    for text in ["", "0", "1,-1", "flops", "1,nan", "inf"] {
        assert!(
            text.parse::<Per>().is_err_and(|message| message.starts_with("give instruction, flop, call")),
            "{text}"
        );
    }
}

#[test]
fn regions_that_all_runs_have_show_their_times() {
    let run = |tenths| {
        let regions = [(ALL, tenths), ("solve", tenths / 2)].map(|(name, tenths)| common::region(name, 1, tenths));
        [common::run("a.out", regions.into())]
    };
    let (first, mut other) = (run(40), run(20));
    other[0].regions.push(common::region("new", 1, 1));
    let subjects: Vec<_> = Subject::of_file("a", &first).into_iter().chain(Subject::of_file("b", &other)).collect();
    let comparison = compare(&subjects, &[]).expect("whole runs");
    let [solve] = &comparison.regions[..] else { panic!("{:?}", comparison.regions) };
    assert_eq!((solve.title.as_str(), solve.ratio(1)), ("solve", Some(0.5)));
    let json = comparison::json(&comparison);
    assert_eq!(
        (json["regions"][0]["name"].as_str(), json["results"][0]["speedup"].as_f64()),
        (Some("solve"), Some(2.0))
    );
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
    assert!(page.contains("&quot;bars&quot;:[&quot;old&quot;,&quot;new&quot;]"), "{page}");
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
