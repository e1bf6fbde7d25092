//! The layout of the terminal summary. Formulas are tested where they are defined.

use crate::common;

use common::{plain, region, run};
use fxscope_record::{ALL, Finish, Mode, Origin, Run, Thread};
use fxscope_report::document::{Body, Document, Row, Section, Value};
use fxscope_report::render::terminal::{Style, render};
use fxscope_report::{Level, Options, report, side_by_side, summary};

const UNICODE: Style = Style { unicode: true, colour: false, width: 100, cuts: true };
const ASCII: Style = Style { unicode: false, colour: false, width: 100, cuts: true };

fn fits(text: &str) {
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn a_run_with_a_marked_region() {
    let run = run("kernels/triad-mem.elf", vec![region(ALL, 1, 10), region("triad", 10, 8)]);
    let text = render(&summary(&run), UNICODE);
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn a_run_in_ascii() {
    let text = render(&summary(&plain()), ASCII);
    assert!(text.is_ascii());
    insta::assert_snapshot!(text);
}

#[test]
fn a_run_with_many_regions_has_a_table_of_them() {
    let marked = (1..=5).map(|i| region(&format!("step {i}"), i, i));
    let run = run("a.out", std::iter::once(region(ALL, 1, 10)).chain(marked).collect());
    let text = render(&summary(&run), UNICODE);
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn long_and_wide_names_fit_the_screen() {
    // Each of these characters takes two columns.
    for name in ["x".repeat(250), "領域".repeat(60)] {
        let marked = (1..=5).map(|i| region(&format!("{name}{i}"), i, i));
        let run = run(&name, std::iter::once(region(ALL, 1, 10)).chain(marked).collect());
        let report = report(&run, &Options::default()).expect("all regions").documents();
        for text in [render(&summary(&run), UNICODE), render(&report, UNICODE)] {
            for line in text.lines() {
                let wide = line.chars().filter(|c| "領域".contains(*c)).count();
                assert!(line.chars().count() + wide <= 100, "{line}");
            }
            assert!(text.replace('\n', "").contains(&name), "titles have the whole name");
        }
    }
}

#[test]
fn measurements_but_not_simulations_report_missing_events() {
    let simulated = plain();
    assert!(!render(&summary(&simulated), ASCII).contains("Missing"));
    let files = vec!["folder/pass1.csv".to_owned()];
    let origin = Origin::Imported { format: "perf".to_owned(), files };
    let text = render(&summary(&Run { origin, command: Vec::new(), ..simulated }), ASCII);
    assert!(text.starts_with("pass1.csv on a64fx"), "{text}");
    // Power has three columns, from three events of the eighth group.
    assert!(text.contains("K Power: 5 of 5 columns need EA_CORE, EA_L2, EA_MEMORY (pa8)"), "{text}");
}

/// The shares of time in the first document of a run's summary.
fn shares(run: &Run) -> Vec<(String, f64)> {
    let parts = summary(run).remove(0).sections.into_iter().find_map(|section| match section.body {
        Body::Parts(parts) => Some(parts),
        _ => None,
    });
    parts.expect("cycle accounting").into_iter().map(|p| (p.label, p.fractions[0].expect("known"))).collect()
}

#[test]
fn shares_of_time_add_up_when_threads_took_different_times() {
    let shares = shares(&common::threads());
    let sum: f64 = shares.iter().map(|s| s.1).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{shares:?}");
}

#[test]
fn a_measurement_of_the_first_five_groups_has_coarser_components_that_add_up() {
    let groups = fxscope_pmu::Pmu::built_in("a64fx").expect("built in").groups;
    let few: Vec<&String> = groups.iter().filter(|g| g.number <= 5).flat_map(|g| &g.events).collect();
    let mut counts = common::counts(10);
    counts.retain(|name, _| few.contains(&name) || name == "CPU_CYCLES");
    let shares = shares(&common::of_threads(vec![(Thread { cpu: 12, ..Thread::default() }, counts)]));
    let load = shares.iter().find(|s| s.0 == "Memory and cache access").expect("in place of four waits").1;
    // 1,300,000 of 2,000,000 cycles.
    assert!((load - 0.65).abs() < 1e-9, "{shares:?}");
    assert!((shares.iter().map(|s| s.1).sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
}

#[test]
fn a_record_without_its_machines_events_says_so_unless_the_machine_is_built_in() {
    let known = Run { description: None, ..common::large(1, 1) };
    let unknown = Run { machine: "slow".to_owned(), ..known.clone() };
    let said = |run: &Run| render(&summary(run), ASCII).split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "The events of the machine 'slow' are not known (the record does not have them";
    assert!(said(&unknown).contains(note), "{}", said(&unknown));
    assert!(!said(&known).contains("are not known"));
    let pmu = fxscope_pmu::Pmu::built_in("a64fx").expect("built in");
    let description = std::sync::Arc::new(fxscope_pmu::recorded::description(Some("/gone/slow"), &pmu));
    let recorded = Run { description: Some(description), ..unknown };
    assert!(!said(&recorded).contains("are not known"));
    let values = |run: &Run| fxscope_pmu::Evaluation::new(run, &run.regions[0]).total();
    assert_eq!(values(&recorded), values(&known));
}

/// The report's text about columns that simulated runs leave empty.
fn left_empty(run: &Run, level: Level) -> String {
    let report = report(run, &Options { level, ..Options::default() }).expect("all regions");
    let text = render(&report.documents(), UNICODE);
    text.lines()
        .skip_while(|l| !l.contains("  Empty "))
        .take_while(|l| !l.is_empty())
        .map(str::trim)
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn a_simulated_run_explains_columns_that_are_not_modelled() {
    let events = fxscope_pmu::Pmu::built_in("a64fx").expect("built in").events;
    let simulated = common::large(1, 1);
    let mut counts: std::collections::BTreeMap<_, _> =
        simulated.regions[0].counts(0).into_iter().map(|(n, c)| (n.to_owned(), c)).collect();
    counts.retain(|name, _| events.named(name).is_none_or(|event| event.reason.is_empty()));
    let simulated = common::of_threads(vec![(simulated.regions[0].threads[0], counts)]);
    let text = left_empty(&simulated, Level::Detailed);
    for (column, event) in
        [("I07", "L2HWPF_OTHER"), ("J03 read", "BUS_READ_TOTAL_TOFU"), ("J04 write", "BUS_WRITE_TOTAL_PCI")]
    {
        let reason = &events.named(event).expect("an event").reason;
        assert!(text.contains(column) && text.contains(&format!("{reason} ({event})")), "{column}: {text}");
    }
    assert_eq!(left_empty(&simulated, Level::Standard), "", "these columns are of the detailed report");
    let origin = Origin::Imported { format: "perf".to_owned(), files: vec!["x.csv".to_owned()] };
    assert_eq!(
        left_empty(&Run { origin, ..simulated }, Level::Detailed),
        "",
        "measurements report missing events instead"
    );
}

#[test]
fn runs_side_by_side() {
    let names = ["kernels/triad-l1.elf", "kernels/triad-l2.elf", "kernels/triad-mem.elf"];
    let runs: Vec<_> = names.iter().zip([2, 5, 10]).map(|(name, n)| run(name, vec![region(ALL, 1, n)])).collect();
    let text = render(&[side_by_side(&runs, Some(ALL)).expect("all have the region")], UNICODE);
    fits(&text);
    insta::assert_snapshot!(text);
    let many: Vec<_> = (0..20).map(|_| plain()).collect();
    fits(&render(&[side_by_side(&many, None).expect("all have the region")], ASCII));
}

#[test]
fn measurements_without_a_whole_are_compared_by_their_only_region() {
    let runs = ["solve, 1", "solve, 2"].map(|name| run("a.out", vec![region(name, 1, 10)]));
    let document = side_by_side(&runs, None).expect("one region each");
    assert_eq!(document.title, "Region solve, 1 and solve, 2");
    assert_eq!(document.columns.len(), 2);
}

#[test]
fn a_missing_region_is_an_error_that_names_the_existing_ones() {
    let error = side_by_side(&[plain()], Some("kernel")).expect_err("no such region");
    assert_eq!(error, "triad-mem.elf has no region 'kernel'; it has all");
}

#[test]
fn colour_adds_only_escape_sequences() {
    let plain_text = render(&summary(&plain()), UNICODE);
    let coloured = render(&summary(&plain()), Style { unicode: true, colour: true, width: 100, cuts: true });
    let mut stripped = coloured.clone();
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[32m", "\x1b[33m"] {
        stripped = stripped.replace(code, "");
    }
    assert_ne!(coloured, plain_text);
    assert_eq!(stripped, plain_text);
}

#[test]
fn a_functional_run_shows_what_was_counted_and_says_how_it_ended() {
    let mut counts = common::counts(10);
    counts.retain(|name, _| name == "CPU_CYCLES" || name == "INST_RETIRED");
    let mut run = common::of_threads(vec![(Thread { cpu: 12, ..Thread::default() }, counts)]);
    run.mode = Mode::Functional;
    run.finish = Finish::Killed { signal: 11, message: "ended by SIGSEGV at 0x400000 in main+0x10".to_owned() };
    run.settings = vec![("clock.core_hz".to_owned(), "2200000000".to_owned())];
    run.notes = vec!["Functional mode: results and instruction counts only; time and cycles are nominal, one nanosecond for each instruction.".to_owned()];
    let text = render(&summary(&run), UNICODE);
    fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn names_chosen_by_programs_cannot_affect_the_terminal() {
    let regions = vec![region(ALL, 1, 10), region("\x1b[2Jgone\r", 1, 5)];
    let text = render(&summary(&run("\x1b]0;title\x07", regions)), UNICODE);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
}

#[test]
fn the_title_has_the_first_line_of_a_message() {
    let mut run = plain();
    run.finish = Finish::Failed("deadlock: all threads wait\n  thread 1000: waits for ever".to_owned());
    let text = render(&summary(&run), UNICODE);
    let title = text.lines().next().expect("a title");
    assert!(title.ends_with("deadlock: all threads wait"), "{title}");
    assert!(!text.contains('\u{fffd}'));
}

#[test]
fn a_measurement_of_marked_regions_has_a_title_and_no_simulator_section() {
    let mut run = run("a.out", vec![region("solve", 1, 10)]);
    run.origin = fxscope_record::Origin::Imported { format: "fapp".to_owned(), files: vec!["pa1.csv".to_owned()] };
    let text = render(&summary(&run), UNICODE);
    assert!(text.starts_with("a.out on a64fx"), "{text}");
    assert!(text.contains("Region solve") && !text.contains("MIPS"), "{text}");
}

#[test]
fn a_last_column_of_numbers_is_right_aligned() {
    let lines = |last: [&str; 2]| {
        let row = |text: &str| Row {
            label: "a".to_owned(),
            values: vec![Some(Value::number(1.0, "count")), Some(Value::Text(text.to_owned()))],
        };
        let headings = ["label", "calls", "the last"].map(str::to_owned).to_vec();
        let body = Body::Table { headings, rows: last.map(row).to_vec() };
        let sections = vec![Section { title: String::new(), body }];
        let text = render(
            &[Document { title: "t".to_owned(), columns: vec![String::new()], sections }],
            Style { colour: false, unicode: true, width: 100, cuts: true },
        );
        text.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    for (number, other) in [("12.5", "-"), ("+1.5 %", "2.500 MiB"), ("1.20×", "0")] {
        for (line, cell) in lines([number, other]).iter().zip([number, other]) {
            assert!(line.ends_with(&format!("{cell:>8}").replace("2.500 MiB", " 2.500 MiB")), "{line}");
        }
    }
    for (word, other) in [("4-7", "4"), ("as it is", "1"), ("nan", "1"), ("3 of 4", "1")] {
        assert_eq!(lines([word, other]), [format!("  a          1  {word}"), format!("  a          1  {other}")]);
    }
}
