//! `fxscope run --konata`: pipeline traces for the viewer Konata.

use crate::common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::kanata::{self, Row};
use common::{ENTRY, FOREVER, LOAD, elf, exit, failure, kernel, mov, output, place};
use fxscope::konata::Konata;
use fxscope::sim::{Traced, Tracer};
use fxscope::{Control, Request, Session, Window};
use fxscope_pipeline::uop_probe::StageTimes;

/// `add x1, x0, #1`, and `mul x2, x1, x1`.
const ADD: u32 = 0x9100_0401;
const MUL: u32 = 0x9b01_7c22;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// Returns the trace in `trace.log` made by `fxscope run --konata` with more arguments.
fn trace(folder: &Path, args: &[&str]) -> Vec<Row> {
    let all = [&["run", "--quiet", "--konata", "trace.log"], args].concat();
    let output = output(folder, &all);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    kanata::read(&fs::read_to_string(folder.join("trace.log")).expect("written"))
}

/// Takes the trace, and records the events it receives.
struct Both {
    konata: Konata<Vec<u8>>,
    told: Vec<(u64, StageTimes)>,
}

impl Tracer for Both {
    fn passed(&mut self, traced: &Traced<'_>) {
        self.told.push((traced.instruction, *traced.times));
        self.konata.passed(traced);
    }
}

#[test]
fn every_cycle_of_a_trace_comes_from_the_pipeline() {
    let spec = Arc::new(fxscope::machine::load("a64fx", &[]).expect("built in"));
    for (program, from) in [("dgemm-tile.elf", 5_000), ("gather.elf", 20_000), ("sort.elf", 0)] {
        let mut request = Request::new(Arc::clone(&spec), kernel(program));
        request.options.max_instructions = Some(from + 10_000);
        let mut both = Both { konata: Konata::new(Vec::new()), told: Vec::new() };
        Session::contained(request, |session| {
            session.run_traced(&mut |_| Control::Continue, &mut Window::new(from, 3_000, &mut both));
        })
        .expect("starts");
        assert_eq!(both.konata.rows(), both.told.len() as u64);
        let log = String::from_utf8(both.konata.finish().expect("memory can be written")).expect("text");
        let rows = kanata::read(&log);
        assert_eq!(rows.len(), both.told.len(), "{program}");
        assert!(rows.len() >= 2_900, "MOVPRFX has no row of its own, everything else has");
        for (row, (instruction, p)) in rows.iter().zip(&both.told) {
            assert_eq!(row.in_simulator, *instruction);
            assert!((from..from + 3_000).contains(instruction));
            assert_eq!(row.started, p.fetched, "{row:?} {p:?}");
            assert_eq!(row.stage("F"), Some((p.fetched, p.decodable)));
            assert_eq!(row.stage("D"), Some((p.dispatched, p.dispatched + 1)));
            assert_eq!(row.stage("C"), Some((p.complete, p.committed + 1)), "{row:?} {p:?}");
            assert_eq!(row.retired, p.committed + 2);
            if let Some((from, to)) = row.execution().filter(|_| !p.pipes.is_empty()) {
                assert_eq!(from, p.started, "{row:?}");
                assert_eq!(to, p.result.unwrap_or(p.complete).min(p.complete), "{row:?}");
            }
        }
    }
}

#[test]
fn arrows_lead_from_the_producer_of_an_operand_to_the_operation_that_waits_for_it() {
    let folder = folder();
    place(folder.path(), "chain", &elf(&[&[mov(0, 7), ADD, MUL][..], &exit(0)].concat()));
    let rows = trace(folder.path(), &["--", "./chain"]);
    let labels: Vec<_> = rows.iter().map(|row| row.label.as_str()).collect();
    assert_eq!(labels[1], format!("{:#x} add x1, x0, #1", ENTRY + 4));
    assert_eq!(labels[2], format!("{:#x} mul x2, x1, x1", ENTRY + 8));
    for (consumer, producer) in [(1, 0), (2, 1)] {
        let (from, _) = rows[consumer].execution().expect("executed");
        assert_eq!(rows[consumer].producers, [(producer, from)], "{labels:?}");
        let (_, ready) = rows[producer].execution().expect("executed");
        assert!(from >= ready, "not before the operand is there");
    }
    assert!(rows[0].producers.is_empty());
    let (from, to) = rows[2].execution().expect("executed");
    assert_eq!(to - from, 5, "manual: a multiplication takes 5 cycles");
}

#[test]
fn a_row_shows_micro_operation_station_pipe_and_cache_level() {
    let folder = folder();
    let program = kernel("gather.elf");
    let rows = trace(folder.path(), &["--konata-instructions", "30000", "--", &program, "passes=1", "n=64"]);
    let row = rows.iter().find(|row| row.label.contains("double_kernel+") && row.details.contains("data from L"));
    let row = row.expect("the kernel gathers");
    for part in ["micro-operation 1 of 1", "station RSE0", "pipes EXA EAGA", "data from L", "cycles: fetched "] {
        assert!(row.details.contains(part), "{part} in {}", row.details);
    }
    let missed = rows.iter().find(|row| row.lanes[1].iter().any(|s| s.0 == "Mem")).expect("cold caches");
    assert!(missed.details.contains("data from Mem"));
    let [(_, from, to)] = &missed.lanes[1][..] else { panic!("one wait") };
    assert!(to - from > 100, "memory is far away");
    assert_eq!(missed.stage("AX").map(|s| s.0), Some(*from));
    let split = rows.iter().position(|row| row.label.contains("(1/2)")).expect("instructions of two micro-operations");
    assert!(rows[split + 1].label.contains("(2/2)"));
    assert_eq!(rows[split].in_simulator, rows[split + 1].in_simulator);
}

#[test]
fn the_window_is_counted_in_executed_instructions_and_is_ten_thousand_long() {
    let folder = folder();
    let program = kernel("triad-l1.elf");
    let numbers = |rows: &[Row]| (rows[0].in_simulator, rows[rows.len() - 1].in_simulator);
    let rows = trace(folder.path(), &["--", &program, "passes=10"]);
    assert_eq!(numbers(&rows), (0, 9_999));
    let rows =
        trace(folder.path(), &["--konata-from", "12345", "--konata-instructions", "67", "--", &program, "passes=10"]);
    assert_eq!(numbers(&rows), (12_345, 12_411));
    assert_eq!(rows.len(), 67, "instructions of Triad are one micro-operation each");
}

#[test]
fn a_trace_changes_no_count() {
    let folder = folder();
    let program = kernel("triad-l1.elf");
    let cycles = |args: &[&str]| {
        let all = [&["run", "--quiet", "--json", "out.json"], args, &["--", &program, "passes=10"]].concat();
        assert!(output(folder.path(), &all).status.success());
        let json = common::json(&fs::read(folder.path().join("out.json")).expect("written"));
        json["regions"].to_string()
    };
    assert_eq!(cycles(&["--konata", "trace.log", "--konata-from", "1000"]), cycles(&[]));
}

#[test]
fn a_program_that_ends_or_is_killed_inside_the_window_leaves_a_whole_trace() {
    let folder = folder();
    place(folder.path(), "short", &elf(&exit(3)));
    place(folder.path(), "fault", &elf(&[mov(0, 16), LOAD]));
    for (program, status, instructions) in [("./short", 3, 3), ("./fault", 128 + 11, 1)] {
        let (code, _) = failure(folder.path(), &["run", "--quiet", "--konata", "trace.log", "--", program]);
        assert_eq!(code, status);
        let log = fs::read_to_string(folder.path().join("trace.log")).expect("written");
        let rows = kanata::read(&log);
        assert_eq!(rows.last().map(|row| row.in_simulator + 1), Some(instructions), "{program}");
    }
    let limit = ["--max-instructions", "100", "--", "./forever"];
    place(folder.path(), "forever", &elf(&[FOREVER]));
    assert!(!trace(folder.path(), &limit).is_empty());
}

#[test]
fn a_window_that_the_program_never_reaches_is_reported_and_leaves_the_file_unchanged() {
    let folder = folder();
    place(folder.path(), "short", &elf(&exit(0)));
    let args = ["run", "--quiet", "--konata", "trace.log", "--konata-from", "1000", "--", "./short"];
    let told = |error: &str| error.contains("--konata-from 1000") && error.contains("trace.log was not written");
    let (status, error) = failure(folder.path(), &args);
    assert!(status == 125 && told(&error), "{error}");
    assert!(!folder.path().join("trace.log").exists());
    fs::write(folder.path().join("trace.log"), "old").expect("writable");
    let (status, error) = failure(folder.path(), &args);
    assert!(status == 125 && told(&error), "{error}");
    assert_eq!(fs::read(folder.path().join("trace.log")).expect("still there"), b"old");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2, "nothing else is left");
}

#[test]
fn runs_that_cannot_be_traced_are_refused_before_the_program_runs() {
    let folder = folder();
    place(folder.path(), "forever", &elf(&[FOREVER]));
    fs::create_dir(folder.path().join("dir")).expect("made");
    for (args, part) in [
        (&["--konata", "no/such/folder/t.log"][..], "no/such/folder/t.log: cannot be written"),
        (&["--konata", "dir"], "dir: is a folder"),
        (&["--konata", "/dev/null"], "/dev/null: is not a regular file"),
        (&["--konata", "t.log", "--mode", "functional"], "functional mode has no pipeline"),
        (&["--konata", "t.log", "--konata-instructions", "0"], "'0' for '--konata-instructions"),
        (&["--konata", "t.log", "--konata-from", "-1"], "'--konata-from"),
        (&["--konata-from", "5"], "--konata <FILE>"),
    ] {
        let (status, error) = failure(folder.path(), &[&["run", "--quiet"], args, &["--", "./forever"]].concat());
        assert!(status != 0 && error.contains(part), "{part} in {error}");
    }
    assert!(!folder.path().join("t.log").exists());
}
