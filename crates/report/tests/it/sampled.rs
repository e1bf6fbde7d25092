//! Reports of sampled runs: what is an estimate has an interval, and notes say how far to trust it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{self, plain, region, threads};
use fxscope_record::{ALL, Names, Replicates, Run, Sample, Totals};
use fxscope_report::compare::{Quantity, Subject, compare};
use fxscope_report::render::terminal::{Style, render};
use fxscope_report::render::{csv, html, json};
use fxscope_report::{Options, report, side_by_side, summary};

const UNICODE: Style = Style { unicode: true, colour: false, width: 100, cuts: true };

/// Half of the width of the interval of the cycles of [`sampled`]. Replicates differ from the estimate by 20,000, −20,000, 10,000 and
/// −10,000: the standard error is the square root of half of the sum of squares, 22,361. Two pairs: 4.3027 of them.
const HALF: f64 = 22_360.68 * 4.302_65;

/// Replicates of the cycles of a region of 2,000,000 cycles, and of misses that are always the same share of them.
fn replicates(unseen: f64) -> Replicates {
    let names: Arc<Names> = Arc::new(["CPU_CYCLES", "L1D_CACHE_REFILL"].map(str::to_owned).into_iter().collect());
    let row = |cycles: u64| vec![cycles, cycles * 3 / 40];
    let rows = [2_020_000, 1_980_000, 2_010_000, 1_990_000].map(row);
    Replicates { unseen, totals: Totals::new(names, &rows) }
}

/// A run of which windows were timed.
fn sampled() -> Run {
    let sample = Sample {
        plan: "auto,window=5000,warm=500,period=50000,keep=1000,rare=20,seed=1".to_owned(),
        windows: 300,
        exact: 5_000_000,
        timed: 1_500_000,
        followed: 93_500_000,
        error: 0.05,
        confidence: 0.95,
        regions: vec![replicates(0.004)],
    };
    Run { sample: Some(sample), ..plain() }
}

/// The run with another sample.
fn with(change: impl Fn(&mut Sample)) -> Run {
    let mut run = sampled();
    run.sample.iter_mut().for_each(change);
    run
}

/// The text of a summary, with words separated by single spaces.
fn text(run: &Run) -> String {
    render(&summary(run), UNICODE).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn is_about(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 1e-4
}

#[test]
fn the_summary_shows_intervals_of_estimates_only() {
    let text = text(&sampled());
    for part in [
        "triad-mem.elf on a64fx, sampled: exit status 0",
        "time 1.000 ms ±4.8 % cycles 2.000 M ±4.8 % instructions 1.250 M IPC",
        "Sampled 300 windows, 6.50 % of the instructions timed, 0.40 % in blocks that no window has seen; ± at 95 %.",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("Distrust") && !text.contains("more windows are needed"), "{text}");
}

#[test]
fn a_sampled_run_fits_the_terminal_with_and_without_unicode() {
    for style in [UNICODE, Style { unicode: false, ..UNICODE }] {
        let text = render(&summary(&sampled()), style);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(style.unicode || text.is_ascii(), "{text}");
    }
}

#[test]
fn json_has_half_widths_by_event_metric_and_column() {
    let json = json::run(&sampled());
    assert_eq!((json["sample"]["windows"].as_u64(), json["sample"]["unseen"].as_f64()), (Some(300), Some(0.004)));
    let half = |kind: &str, name: &str| json["regions"][0]["half_widths"][kind][name].as_f64();
    assert!(half("events", "CPU_CYCLES").is_some_and(|half| is_about(half, HALF)));
    assert!(half("metrics", "seconds").is_some_and(|half| is_about(half, HALF / 2e9)));
    assert!(half("columns", "A01").is_some_and(|half| is_about(half, HALF / 2e9)));
    assert_eq!(half("events", "INST_RETIRED"), None);
    assert_eq!(half("metrics", "instructions"), None);
    let exact = json::run(&plain());
    assert!(exact.get("sample").is_none() && exact["regions"][0].get("half_widths").is_none());
}

#[test]
fn the_interval_of_a_ratio_follows_from_its_values_in_replicates() {
    let json = json::run(&sampled());
    // Values of IPC are 1.2 / 2.02, 1.2 / 1.98, 1.2 / 2.01 and 1.2 / 1.99 around 1.2 / 2.
    let squares: f64 = [2.02, 1.98, 2.01, 1.99].map(|cycles| (1.2_f64 / cycles - 1.2 / 2.0).powi(2)).iter().sum();
    let half = json["regions"][0]["half_widths"]["metrics"]["ipc"].as_f64();
    assert!(half.is_some_and(|half| is_about(half, (squares / 2.0).sqrt() * 4.302_65)), "{half:?}");
}

#[test]
fn csv_has_half_widths_in_a_scope_of_their_own() {
    let bytes = csv::render(&[report(&sampled(), &Options::default()).expect("a report")]);
    let lines: Vec<BTreeMap<String, String>> =
        ::csv::Reader::from_reader(bytes.as_slice()).deserialize().collect::<Result<_, _>>().expect("well formed");
    let of = |scope: &str, id: &str| {
        let line = lines.iter().find(|line| line["scope"] == scope && line["id"] == id)?;
        line["value"].parse::<f64>().ok()
    };
    assert_eq!(of("total", "A01"), Some(0.001));
    assert!(of("half_width", "A01").is_some_and(|half| is_about(half, HALF / 2e9)));
}

#[test]
fn tables_have_a_row_of_half_widths_after_the_total() {
    let report = report(&sampled(), &Options::default()).expect("a report");
    let page = html::render(std::slice::from_ref(&report));
    let (total, half) = (page.find("total</th>"), page.find("±</th>"));
    assert!(total.is_some() && total < half, "{total:?} {half:?}");
    let text = render(&report.documents(), UNICODE);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    assert!(text.lines().any(|line| line.contains("A01") && line.contains("48.1") && line.contains("µs")), "{text}");
}

#[test]
fn too_few_windows_give_no_interval_and_a_hint() {
    let run = with(|sample| sample.windows = 49);
    let text = text(&run);
    assert!(text.contains("no intervals, since 49 windows are too few; at least 50 are needed"), "{text}");
    assert!(text.contains("--sample period=24500,keep=1000"), "{text}");
    assert!(!text.contains('±') && text.contains(", sampled"), "{text}");
    assert!(json::run(&run)["regions"][0].get("half_widths").is_none());
}

#[test]
fn a_hint_for_threads_keeps_a_sample_of_each_of_their_cores() {
    let few = with(|sample| {
        sample.windows = 49;
        sample.plan = "auto,keep=10".to_owned();
    });
    let text = text(&Run { sample: few.sample, ..threads() });
    assert!(text.contains("--sample period=24500,keep=400"), "{text}");
}

#[test]
fn much_unseen_code_is_distrusted_by_region() {
    let mut run = with(|sample| sample.regions.push(replicates(0.03)));
    run.regions.push(region("cold", 1, 5));
    let text = text(&run);
    assert!(text.contains("Distrust the estimates of cold: more than 2 % of the instructions"), "{text}");
}

#[test]
fn wide_intervals_say_how_many_more_windows_are_needed() {
    let text = text(&with(|sample| sample.error = 0.02406));
    // Twice the error that was asked for: four times as many windows, a quarter of the period.
    assert!(
        text.contains("Time is known to ±4.81 % only, not to ±2.41 %: about 900 more windows are needed"),
        "{text}"
    );
    assert!(text.contains("--sample period=12500,keep=1200"), "{text}");
}

#[test]
fn intervals_that_would_take_more_windows_than_a_run_has_room_for_say_so() {
    // A fourteenth of the error: 200 times as many windows of 5,000 instructions as 300, in 100 million instructions.
    let text = text(&with(|sample| sample.error = 0.0034));
    assert!(text.contains("which would time most of the run. Time all of it, without --sample"), "{text}");
    assert!(!text.contains("--sample period="), "{text}");
}

#[test]
fn runs_side_by_side_drop_intervals_before_numbers() {
    let runs: Vec<Run> = (0..8).map(|_| sampled()).collect();
    let text = render(&[side_by_side(&runs[..2], None).expect("both have it")], UNICODE);
    assert!(text.contains("1.000 ms ±4.8 %"), "{text}");
    let text = render(&[side_by_side(&runs, None).expect("all have it")], UNICODE);
    assert!(text.contains(" 1.000 ms ") && !text.contains("1.000 ms ~"), "{text}");
}

/// The quantity "seconds" of a sampled run compared with one that took this many tenths of its time.
fn seconds(tenths: u64) -> Quantity {
    let first = [sampled()];
    let other = [Run { sample: None, ..common::run("a.out", vec![region(ALL, 1, tenths)]) }];
    let subjects: Vec<_> =
        [("old", &first), ("new", &other)].iter().flat_map(|(n, r)| Subject::of_file(n, *r)).collect();
    let comparison = compare(&subjects, &[ALL]).expect("both have the region");
    comparison.metrics.into_iter().find(|q| q.name == "seconds").expect("there")
}

#[test]
fn differences_smaller_than_both_intervals_are_within_the_error() {
    // 10 % less is more than 4.8 %.
    assert_eq!(seconds(9).is_noise(1), Some(false));
    assert_eq!(seconds(10).is_noise(1), Some(true));
    let mut both = seconds(9);
    let half_width = both.values[0].and_then(|spread| spread.half_width).expect("an estimate");
    both.values[1].iter_mut().for_each(|spread| spread.half_width = Some(1.1 * half_width));
    assert_eq!(both.is_within_intervals(1), Some(true));
    assert_eq!(both.effect_on(1), 0.0);
}
