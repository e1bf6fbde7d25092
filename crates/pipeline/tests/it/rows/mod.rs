//! Every row of `instructions.csv` in loops: copies that wait for each other take the row's latency each, and copies
//! that do not take what its pipes, dispatch and load/store pipes allow.
//!
//! Expectations are computed from the row (`expected`), never by the model. They use these rules of the manual:
//! micro-operations and the flows of each (chapter 16 and its notation), bypasses (2.7, table 2-4), one issue port for
//! EXA and PRX (6.2), pipeline and operation blocking (6.3), groups of four and sequential decode (4.4), gathers and
//! scatters alone (7.8.2), two writes a cycle into a station (5.1), stations by slot (5.2, table 5-5), two loads or one
//! store write a cycle (7.2, 7.6, table 7-5). Registers and accesses follow from the row's pipes and mnemonic (`row`).
//!
//! Loops run in a window that no row fills, so that latencies, pipes and dispatch show alone; on the machine as it is
//! no row may be faster. Rows that do otherwise are listed in `known` with the reason. A row that begins to differ
//! fails the test, and so does a listed one that no longer does.

use crate::common;
mod expected;
mod known;
mod row;

use std::collections::BTreeMap;

use common::*;
use expected::{CYCLE, bypass};
use fxscope_isa::Shape;
use fxscope_machine::{Blocking, Spec};
use known::{KNOWN, Loop};
use row::{Kind, Row};

/// Vector lengths of the machine, bits.
const LENGTHS: [u32; 3] = [512, 256, 128];
/// Copies in the body of a loop: each finds its access in another KiB.
const BODY: usize = 16;
const STRIDE: u64 = 1024;

/// The machine with vectors of `bits`, without its stream prefetcher. Parts of a store move to the write buffer
/// together, so that they merge there without a wait.
fn plain(bits: u32) -> Spec {
    let settings = [("clock.vector_bits".to_owned(), bits.to_string())];
    let mut spec = fxscope_machine::load("a64fx", &settings).expect("built in");
    spec.tables.prefetch.l1 = false;
    spec.tables.prefetch.l2 = false;
    spec.tables.load_store.write_buffer_moves = 2;
    spec.tables.load_store.merge_wait = 0;
    spec
}

/// The same machine with a window that no row fills: what is left are latencies, pipes and dispatch. Stations keep
/// the difference of their entries, by which dispatch chooses among them (manual 5.4).
fn roomy(bits: u32) -> Spec {
    let mut spec = plain(bits);
    let tables = &mut spec.tables;
    tables.window.commit_stack = 4096;
    tables.window.rename_gpr = 1024;
    tables.window.rename_vector = 1024;
    tables.window.rename_predicate = 1024;
    tables.stations.rse_entries = 250;
    tables.stations.rsa_entries = 240;
    tables.load_store.fetch_ports = 1024;
    spec
}

/// The cells of pipes and latencies of each line of the table, as one text.
fn notations() -> BTreeMap<u32, String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/machines/a64fx/instructions.csv");
    let mut reader = csv::Reader::from_path(path).expect("the machine's table");
    let line = |r: &csv::StringRecord| r.position().map_or(0, |p| p.line() as u32);
    let records = reader.records().map(|r| r.expect("a row of the table"));
    records.map(|r| (line(&r), format!("{}: {}", &r[3], &r[4]))).collect()
}

/// Both machines for one vector length.
struct Bench {
    plain: Rig,
    roomy: Rig,
}

impl Bench {
    fn new(bits: u32) -> Bench {
        Bench { plain: Rig::new(plain(bits)), roomy: Rig::new(roomy(bits)) }
    }

    /// Cycles that `copies` copies of the row take in a window that it does not fill, [`BODY`] of them being `body`.
    fn steady(&mut self, row: &Row, body: &[Inst], copies: usize) -> u64 {
        // A long queue of blocking operations would reach beyond the span of the model's calendars.
        let blocks = row.recipe.uops.iter().any(|u| u.blocking == Blocking::Operation);
        steady(if blocks { &mut self.plain } else { &mut self.roomy }, body, copies)
    }
}

/// Cycles that `copies` copies take in the long run, all accesses hitting the L1D cache.
fn steady(rig: &mut Rig, body: &[Inst], copies: usize) -> u64 {
    rig.warm((0..BODY as u64 * STRIDE / LINE).map(|i| DATA + i * LINE));
    rig.steady(body, copies / BODY)
}

fn at(copy: usize) -> u64 {
    DATA + copy as u64 * STRIDE
}

/// Copies of a row, about `uops` micro-operations in all.
fn copies(row: &Row, uops: usize) -> usize {
    BODY * (uops / row.recipe.uops.len() / BODY).max(1)
}

/// An instruction that brings a value from registers of one kind to those of another.
fn link(spec: &Spec, from: Kind, to: Kind) -> Option<Row<'_>> {
    let class = match (from, to) {
        (Kind::Vector, Kind::General) => "simd:FMOV (general) [{Hn|Sn|Dn} to {Wd|Xd}]",
        (Kind::General, Kind::Vector) => "simd:FMOV (general) [{Wn|Xn} to {Hd|Sd|Dd|Vd}]",
        (Kind::Predicate, Kind::General) => "sve:CNTP",
        (Kind::General, Kind::Predicate) => "sve:WHILELO",
        (Kind::Predicate, Kind::Vector) => "sve:SEL (vectors)",
        (Kind::Vector, Kind::Predicate) => "sve:CMPEQ (vectors)",
        _ => return None,
    };
    let recipe = spec.recipes.named(class).expect("a row of the table");
    Some(Row { class, recipe, vector: u64::from(spec.clock.vector_bits) / 8 })
}

/// What a loop took and should have taken, in parts of a cycle for each copy.
struct Outcome {
    got: u64,
    want: u64,
    /// Parts of `want` that filling up stations may cost.
    slack: u64,
}

impl Outcome {
    fn differs(&self) -> bool {
        self.got.abs_diff(self.want) > self.slack
    }
}

/// Each copy reads what the one before wrote, through a [`link`] where a row reads and writes different kinds.
fn chained(row: &Row, spec: &Spec, bench: &mut Bench) -> Option<Outcome> {
    let (from, to) = (row.reads()?, row.writes()?);
    let link = link(spec, to, from);
    let copy = |i: usize| match &link {
        None => vec![row.inst((i % 2) as u8, ((i + 1) % 2) as u8, at(i))],
        Some(link) => vec![row.inst(0, 0, at(i)), op(link.class).reads(&[to.reg(0)]).writes(&[from.reg(0)])],
    };
    let body: Vec<Inst> = (0..BODY).flat_map(copy).collect();
    let path = match &link {
        None => bypass(row.made(to), row.entry(), spec),
        Some(link) => {
            let there = bypass(row.made(to), link.entry(), spec);
            there + link.latency(spec) + bypass(link.made(from), row.entry(), spec)
        }
    };
    let path = (row.latency(spec) + path) * CYCLE;
    let want = path.max(row.bound(spec) + link.map_or(0, |l| l.bound(spec)));
    // Few enough to find room in the stations, where a long queue changes the choice of pipes.
    let copies = copies(row, 120);
    let got = bench.steady(row, &body, copies) * CYCLE / copies as u64;
    Some(Outcome { got, want, slack: 0 })
}

/// Each copy uses the base register that the one before moved on, and nothing else of it.
fn updated(row: &Row, spec: &Spec, bench: &mut Bench) -> Option<Outcome> {
    let update = row.updates().then(|| row.recipe.uops.last()).flatten()?;
    let body: Vec<Inst> = (0..BODY).map(|i| row.inst(16, (i % 8) as u8, at(i))).collect();
    let copies = copies(row, 120);
    let got = bench.steady(row, &body, copies) * CYCLE / copies as u64;
    let path = update.flows.iter().map(|f| u64::from(f.latency)).sum::<u64>() * CYCLE;
    let want = path.max(row.bound(spec));
    // The update of one copy and the address of the next may be in different pipes (manual 2.7, table 2-4).
    Some(Outcome { got, want, slack: spec.bypass.integer_other_pipe * CYCLE + want / 50 })
}

/// A body of copies that read registers which are ready and write different ones.
fn unrelated(row: &Row) -> Vec<Inst> {
    (0..BODY).map(|i| row.inst(16 + (i % 8) as u8, (i % 8) as u8, at(i))).collect()
}

fn independent(row: &Row, spec: &Spec, bench: &mut Bench) -> Outcome {
    let copies = copies(row, 480);
    let got = bench.steady(row, &unrelated(row), copies) * CYCLE / copies as u64;
    let want = row.bound(spec);
    Outcome { got, want, slack: want / 50 }
}

/// Rows for the vector length of `spec`.
fn rows<'a>(spec: &'a Spec, notations: &BTreeMap<u32, String>) -> Vec<(Row<'a>, String)> {
    let vector = u64::from(spec.clock.vector_bits) / 8;
    let row = |(class, recipe): (&str, &'a fxscope_machine::Recipe)| {
        let notation = notations[&recipe.line].clone();
        (Row { class: String::leak(class.to_owned()), recipe, vector }, notation)
    };
    spec.recipes.sorted().map(row).collect()
}

/// Whether a row that is there for every vector length has nothing new at this one: only loads and stores of vectors
/// depend on the length, and of them gathers and scatters in the number of elements, which their rows do not tell.
fn seen_at_full_length(row: &Row, full: &Spec) -> bool {
    let same = full.recipes.named(row.class).is_some_and(|r| r.line == row.recipe.line);
    row.vector < 64 && same && row.mem().is_none_or(|m| m.shape == Shape::Indexed)
}

/// Runs `which` for every row of every vector length, prints what differs, and compares with the list.
fn run(which: Loop, measure: impl Fn(&Row, &Spec, &mut Bench) -> Option<Outcome>) {
    let (notations, full) = (notations(), plain(512));
    let mut differing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for bits in LENGTHS {
        let spec = plain(bits);
        let mut bench = Bench::new(bits);
        let all = rows(&spec, &notations).into_iter();
        for (row, notation) in all.filter(|(r, _)| r.left_out().is_none() && !seen_at_full_length(r, &full)) {
            if let Some(o) = measure(&row, &spec, &mut bench).filter(Outcome::differs) {
                let cycles = |parts: u64| parts as f64 / CYCLE as f64;
                let told = format!("{} ({bits} bits): {:.2}, not {:.2}", row.class, cycles(o.got), cycles(o.want));
                differing.entry(notation).or_default().push(told);
            }
        }
    }
    let listed: BTreeMap<&str, (usize, &str)> =
        KNOWN.iter().filter(|k| k.0 == which).flat_map(|k| k.2.iter().map(|&(n, rows)| (n, (rows, k.1)))).collect();
    let mut wrong = Vec::new();
    for (notation, rows) in &differing {
        let (count, reason) = listed.get(notation.as_str()).copied().unwrap_or((0, "not listed"));
        println!("{notation} | {} rows | {reason}\n    {}", rows.len(), rows.join("\n    "));
        if count != rows.len() {
            wrong.push(format!("{notation}: {} rows differ, {count} are listed", rows.len()));
        }
    }
    let gone = listed.keys().filter(|n| !differing.contains_key(**n)).map(|n| format!("{n}: differs no longer"));
    wrong.extend(gone);
    assert!(wrong.is_empty(), "{which:?}:\n{}", wrong.join("\n"));
}

#[test]
fn copies_of_a_row_that_wait_for_each_other_take_its_documented_latency_each() {
    run(Loop::Chained, chained);
}

#[test]
fn copies_that_wait_for_the_base_register_of_the_one_before_take_its_latency_and_at_most_a_bypass() {
    run(Loop::Updated, updated);
}

#[test]
fn independent_copies_of_a_row_come_as_fast_as_its_pipes_and_dispatch_allow() {
    run(Loop::Independent, |row, spec, bench| Some(independent(row, spec, bench)));
}

#[test]
fn no_row_is_faster_on_the_machine_as_it_is_than_its_pipes_and_dispatch_allow() {
    let (spec, notations) = (plain(512), notations());
    let mut rig = Rig::new(plain(512));
    for (row, notation) in rows(&spec, &notations).into_iter().filter(|(row, _)| row.left_out().is_none()) {
        let (copies, want) = (copies(&row, 480), row.bound(&spec));
        let got = steady(&mut rig, &unrelated(&row), copies) * CYCLE / copies as u64;
        let listed = KNOWN.iter().any(|k| k.0 == Loop::Independent && k.2.iter().any(|&(n, _)| n == notation));
        assert!(listed || got + want / 50 >= want, "{}: {got} / {CYCLE} cycles, at least {want}", row.class);
    }
}

#[test]
fn every_row_of_the_table_is_in_the_loops_of_a_vector_length_that_it_is_for() {
    let (notations, full) = (notations(), plain(512));
    let mut lines: BTreeMap<u32, &String> = notations.iter().map(|(&line, notation)| (line, notation)).collect();
    for bits in LENGTHS {
        let spec = plain(bits);
        let run = rows(&spec, &notations);
        let run = run.iter().filter(|(row, _)| !seen_at_full_length(row, &full));
        run.for_each(|(row, _)| _ = lines.remove(&row.recipe.line));
    }
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn reasons_that_name_a_limit_are_rows_of_the_table_of_limits() {
    let limits =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/model/limits.md")).expect("the table");
    for (_, reason, _) in KNOWN {
        if let Some((limit, _)) = reason.strip_prefix("limits#").and_then(|reason| reason.split_once(':')) {
            assert!(limits.contains(&format!("<a id=\"{limit}\"></a>")), "{reason}");
        }
    }
}

#[test]
fn rows_without_a_loop_are_those_that_steer_fetch_or_wait_for_commit_and_rows_without_a_chain_have_no_result() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/machines/a64fx/instructions.csv");
    let mut reader = csv::Reader::from_path(path).expect("the machine's table");
    let records: Vec<_> = reader.records().map(|r| r.expect("a row of the table")).collect();
    let mut in_table = [0; 3];
    for record in records.iter().filter(|r| ["", "512"].contains(&&r[1])) {
        let (class, pipes, latency, notes) = (&record[0], &record[3], &record[4], &record[6]);
        let empty = pipes.split('/').any(|p| p.trim().is_empty());
        let branch = pipes.contains("BR") || row::EXECUTED_BRANCHES.contains(&class);
        let waits = notes.contains("pre_sync") || notes.contains("post_sync") || notes.contains("seq_decode") && empty;
        let name = class.split_once(':').map_or(class, |(_, name)| name);
        let stores = name.starts_with("ST") && !name.starts_with("STX") && !name.starts_with("STLX");
        let no_result = stores
            || name.starts_with("PRF")
            || class.contains("{ST")
            || !(latency.contains(char::is_numeric) || latency.contains("load_"));
        in_table[if branch || waits {
            0
        } else if no_result {
            1
        } else {
            2
        }] += 1;
    }
    let spec = plain(512);
    let mut in_loops = [0; 3];
    for (row, _) in rows(&spec, &notations()) {
        let place = if row.left_out().is_some() {
            0
        } else if row.writes().is_none() {
            1
        } else {
            2
        };
        in_loops[place] += 1;
    }
    println!("left out, without a result, chained: {in_loops:?}");
    assert_eq!(in_loops, in_table, "left out, without a result, chained");
}
