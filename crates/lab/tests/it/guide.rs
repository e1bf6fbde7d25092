//! The guide's experiments: their data, and what becomes of their figures.

use std::collections::BTreeSet;
use std::path::Path;

use fxscope_lab::guide::{Guide, Outcome, Settings, Summary, commands, items, items_markdown, left_out, run, site};
use fxscope_lab::{Cache, Programs, Runner, Silent};
use fxscope_validate::Row;

fn guide() -> Guide {
    Guide::built_in().expect("sound data")
}

fn rows(guide: &Guide) -> Vec<&Row> {
    guide.suite.families.iter().flat_map(|family| &family.rows).map(|(row, _)| row).collect()
}

/// The measured rows that experiments name.
fn shown(guide: &Guide) -> BTreeSet<&str> {
    let tables = guide.experiments().flat_map(|(_, experiment)| &experiment.tables);
    let figures = tables.flat_map(|table| &table.columns).flat_map(|column| &column.figures);
    figures.map(String::as_str).filter(|name| !name.is_empty()).collect()
}

#[test]
fn every_measured_row_of_the_guide_is_in_an_experiment_or_left_out_with_a_reason() {
    let guide = guide();
    let (shown, left_out) = (shown(&guide), left_out().expect("sound data"));
    let is_left_out = |row: &Row| left_out.iter().any(|out| out.what == row.row || out.what == row.source);
    for row in rows(&guide).into_iter().filter(|row| row.source.starts_with("guide ")) {
        let is_shown = shown.contains(row.row.as_str());
        assert!(is_shown || is_left_out(row), "{} ({}) is in no experiment and has no reason", row.row, row.source);
    }
    for out in &left_out {
        let named = rows(&guide).into_iter().filter(|row| out.what == row.row || out.what == row.source);
        let missing = named.filter(|row| !shown.contains(row.row.as_str())).count();
        assert!(missing > 0 && !out.reason.is_empty(), "nothing of '{}' is left out", out.what);
    }
}

#[test]
fn the_page_of_coverage_is_what_the_data_give() {
    let guide = guide();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide-coverage.md");
    let page = std::fs::read_to_string(page).expect("docs/guide-coverage.md is there");
    let made = items_markdown(&guide).expect("sound data");
    assert!(page == made, "fxscope guide --items > docs/guide-coverage.md");
    // Sources with their sections, and how many items each has.
    let sections = [
        ("000.A", 19),
        ("000.B", 24),
        ("000.C", 14),
        ("000.D", 14),
        ("000.E", 18),
        ("000.F", 8),
        ("000.G", 12),
        ("000.H", 6),
        ("000.I", 7),
        ("000.J", 5),
        ("000.K", 8),
        ("000.L", 31),
        ("000.M", 13),
        ("001", 7),
        ("002", 12),
        ("003", 13),
        ("004", 16),
    ];
    let items = items(&guide).expect("sound data");
    for (section, number) in sections {
        let of = |item: &str| item.rsplit_once('.').is_some_and(|(start, _)| start == section);
        assert_eq!(items.iter().filter(|item| of(&item.item)).count(), number, "{section}");
    }
    assert_eq!(items.len(), sections.iter().map(|section| section.1).sum::<usize>());
}

/// Runs experiments without a cache.
fn outcomes<'a>(guide: &'a Guide, names: &[&str]) -> Vec<Outcome<'a>> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let chosen = guide.choose(&names).expect("known");
    let programs = Programs::new(None).expect("room");
    let (simulator, sources) = ("/no/such/simulator".into(), "/no/such/sources".into());
    let settings = Settings { simulator, programs: &programs, cache: Cache::none(), jobs: None, sources };
    run(guide, &chosen, &settings, Runner::new(None, &Silent)).expect("failed runs are part of the outcome")
}

#[test]
fn a_run_that_fails_leaves_its_cells_empty_and_is_named() {
    let guide = guide();
    let outcomes = outcomes(&guide, &["sfi.mask"]);
    let failures = outcomes[0].failures();
    assert_eq!(failures.len(), 3, "{failures:?}");
    assert!(failures[0].contains("/no/such/simulator"), "{failures:?}");
    let cells = &outcomes[0].tables[0].cells;
    assert_eq!((cells[0][0].published, cells[0][0].simulated), (Some(0.678), None));
    assert_eq!(cells[3][0].published, Some(2.771), "a figure without a run stands alone");
    assert_eq!(Summary::of(&outcomes).failed, 3);
}

#[test]
fn an_experiment_whose_program_is_not_there_is_left_out_with_the_command_that_makes_it() {
    let guide = guide();
    let outcomes = outcomes(&guide, &["openmp.llvm-threads"]);
    let why = outcomes[0].left_out.as_deref().expect("left out");
    assert!(why.contains("programs/debian.sh --fetch && make -C kernels llvm"), "{why}");
    assert!(outcomes[0].tables.is_empty() && outcomes[0].failures().is_empty());
    assert!(outcomes[0].json()["left_out"].is_string());
    let chosen = guide.choose(&["openmp.llvm-threads".to_owned()]).expect("known");
    let text = commands(&guide, chosen[0].1).expect("sound data");
    let run = "fxscope run --sysroot target/programs/root --cpus 12-23 -- kernels/build/openmp-llvm construct=barrier";
    assert!(text.contains(run), "{text}");
}

#[test]
fn commands_are_those_of_the_measured_rows() {
    let guide = guide();
    let chosen = guide.choose(&["prefetch.l1-distance".to_owned()]).expect("known");
    let text = commands(&guide, chosen[0].1).expect("sound data");
    let command =
        "fxscope run --cpus 12-23 --hwpf --distL1=3 -- kernels/prebuilt/triad-threads.elf n=174720 passes=10 form=wide";
    assert!(text.lines().any(|line| line == command), "{text}");
    assert!(text.contains("form=swpf-l1 l1-lines=3"), "cells without a measured row have a command, too: {text}");
}

#[test]
fn an_unknown_experiment_is_refused_with_those_of_its_chapter() {
    let error = |name: &str| guide().choose(&[name.to_owned()]).expect_err("unknown").to_string();
    assert!(error("sfi.no").contains("choose from sfi.mask, sfi.avoidance"), "{}", error("sfi.no"));
    assert!(error("no").contains("the chapters prefetch, sfi"), "{}", error("no"));
}

/// Takes seconds of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn laboratories_are_experiments_and_pages_are_linked() {
        let guide = guide();
        let outcomes = outcomes(&guide, &["prefetch.addresses", "fx1.linpack"]);
        let text = outcomes[0].json().to_string();
        assert!(text.contains("15 of 15 accesses prefetch the published lines."), "{text}");
        let files = site(&outcomes);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["index.html", "prefetch.addresses.html", "fx1.linpack.html"]);
        for name in &names[1..] {
            assert!(files[0].1.contains(&format!("href=\"{name}\"")), "the index links {name}");
        }
        assert!(files[2].1.contains("data-chart="), "LINPACK has curves");
        assert!(files[1].1.contains("href=\"fx1.linpack.html\""), "the next experiment");
    }
}
