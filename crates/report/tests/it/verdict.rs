//! The verdict in all formats.

use crate::common;

use common::{plain, region, run};
use fxscope_record::{ALL, HotSpot, Mode, Origin, Run};
use fxscope_report::render::terminal::{Style, render};
use fxscope_report::render::{html, json};
use fxscope_report::verdict::{Hot, SourceLine};
use fxscope_report::{Options, report, summary, summary_of_region, summary_with};

const STYLE: Style = Style { unicode: true, colour: false, width: 100, cuts: true };

/// A run of 2,000,000 cycles with two functions that took three and one quarter of them.
fn with_functions() -> Run {
    let spot =
        |function: &str, place, cycles| HotSpot { function: function.to_owned(), place, cycles, ..HotSpot::default() };
    let hot_spots = [("solve", 0, 1_000_000), ("solve", 4, 500_000), ("setup", 8, 498_000), ("main", 12, 2_000)];
    let hot_spots = hot_spots.map(|(function, place, cycles)| spot(function, place, cycles)).to_vec();
    Run { hot_spots, ..run("a.out", vec![region(ALL, 1, 10), region("solver", 2, 5)]) }
}

/// A place with a name and a line that no terminal should be given as they are.
fn hostile(_: &Run) -> Vec<Hot> {
    let line = SourceLine {
        file: "/src/\x1b[2J.c".to_owned(),
        number: 7,
        text: Some(format!("x = \x07{};", "y".repeat(300))),
    };
    vec![Hot { share: 0.5, function: "領域".repeat(60) + "\x1b[31m", line: Some(line), ..Hot::default() }]
}

#[test]
fn it_comes_first_and_fits_the_terminal() {
    let text = render(&summary(&with_functions()), Style { width: 80, ..STYLE });
    let (_, rest) = text.split_once("exit status 0\n").expect("a title");
    assert!(
        rest.starts_with("  1.000 ms: 3.200 GFLOPS (5.00 % of peak), memory 51.20 GB/s (20.0 % of peak)"),
        "{rest}"
    );
    let (verdict, _) = rest.split_once("  Run ").expect("then the numbers");
    // Half of the time are waits of floating-point loads for a memory that is not busy.
    assert!(verdict.contains("    50.0 % memory latency\n"), "{verdict}");
    assert!(
        verdict.contains("    75.0 % solve\n") && verdict.contains("    24.9 % setup\n") && !verdict.contains("main"),
        "{verdict}"
    );
    assert!(verdict.contains("What to try\n    1. "), "{verdict}");
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
    assert!(widest(verdict) <= 80, "{verdict}");
    let wide = render(&summary(&with_functions()), Style { width: 160, ..STYLE });
    let (wide, _) = wide.split_once("  Run ").expect("then the numbers");
    assert!((81..=160).contains(&widest(wide)) && wide.lines().count() < verdict.lines().count() + 1, "{wide}");
}

#[test]
fn names_and_source_lines_cannot_affect_the_terminal() {
    let text = render(&summary_with(&with_functions(), hostile), STYLE);
    let line = text.lines().find(|line| line.contains("x = ")).expect("the source line");
    assert!(line.chars().count() <= 100 && !text.contains('\x1b') && !text.contains('\x07'), "{text}");
    let name = text.lines().find(|line| line.contains("領域")).expect("the function");
    assert!(name.chars().count() + name.matches(['領', '域']).count() <= 100, "{name}");
}

#[test]
fn a_region_has_its_own_without_functions() {
    let document = summary_of_region(&with_functions(), "solver", hostile).expect("a region");
    let text = render(&[document], STYLE);
    assert!(text.starts_with("Region solver (2 calls)\n  500.0 µs: "), "{text}");
    assert!(text.contains("memory latency") && !text.contains("Hottest"), "{text}");
    let unknown = summary_of_region(&with_functions(), "solve", hostile).expect_err("no region");
    assert!(unknown.contains("it has all, solver"), "{unknown}");
}

#[test]
fn json_has_it_for_the_run_and_for_each_region() {
    let options = Options { hottest: hostile, ..Options::default() };
    let json = json::run_with(&with_functions(), &options);
    let verdict = &json["verdict"];
    assert_eq!(*verdict, json["regions"][0]["verdict"]);
    assert_eq!(verdict["limits"][0]["rule"], "memory_latency");
    assert!((verdict["limits"][0]["share"].as_f64().expect("a number") - 0.5).abs() < 1e-9, "{verdict}");
    assert_eq!(verdict["limits"][0]["evidence"][0]["unit"], "ratio");
    assert_eq!((&verdict["hottest"][0]["line"], &verdict["hottest"][0]["share"]), (&7.into(), &0.5.into()));
    assert_eq!(verdict["try"][0]["rule"], "memory_latency");
    assert_eq!(json["regions"][1]["verdict"]["hottest"], serde_json::json!([]));
    assert_eq!(json::run(&with_functions())["verdict"]["hottest"][0]["function"], "solve");
}

#[test]
fn what_was_not_counted_is_not_judged_and_the_verdict_says_so() {
    let origin = Origin::Imported { format: "perf".to_owned(), files: Vec::new() };
    let mut few = Run { origin, ..plain() };
    let kept = ["CPU_CYCLES", "0INST_COMMIT", "LD_COMP_WAIT", "LD_COMP_WAIT_PFP_BUSY", "EFFECTIVE_INST_SPEC"];
    let mut counts = common::counts(10);
    counts.retain(|name, _| kept.contains(&name.as_str()));
    few.regions = common::of_threads(vec![(few.regions[0].threads[0], counts)]).regions;
    let verdict = &json::run(&few)["verdict"];
    assert_eq!(verdict["limits"], serde_json::json!([]));
    let unjudged = verdict["not_judged"].as_array().expect("a list");
    let missing = &unjudged.iter().find(|rule| rule["rule"] == "fp_latency").expect("not judged")["missing"];
    assert!(missing.as_array().expect("a list").contains(&"FL_COMP_WAIT".into()), "{missing}");
    let text = render(&summary(&few), STYLE).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Not judged, since the events for it were not counted: "), "{text}");
    // Rules about several threads are not about this run, whatever was counted.
    assert!(unjudged.iter().all(|rule| rule["rule"] != "barriers"), "{unjudged:?}");
}

#[test]
fn a_functional_run_has_none() {
    let run = Run { mode: Mode::Functional, ..plain() };
    assert_eq!(json::run(&run)["verdict"], serde_json::Value::Null);
    assert!(!render(&summary(&run), STYLE).contains("What limits it"));
}

#[test]
fn a_page_begins_with_it() {
    let options = Options { hottest: hostile, ..Options::default() };
    let page = html::render(&[report(&with_functions(), &options).expect("all regions")]);
    let (_, main) = page.split_once("<main").expect("a page");
    let place = |text: &str| main.find(text).unwrap_or_else(|| panic!("{text} is not there"));
    assert!(place("What limits it") < place("What to try") && place("What to try") < place("<svg"), "it is first");
    assert!(place("memory latency") < place("dl class=\"facts\""));
}
