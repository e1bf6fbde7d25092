//! Compares every instruction of the table with QEMU (`qemu-aarch64 -cpu a64fx`), bit for bit.
//!
//! For every row of the table, random instruction words run from random states on both sides. Compared
//! are the general registers, flags, vector and predicate registers, FFR, FPCR, FPSR, memory, the program
//! counter, and the kind of a trap. Besides, our own side must be consistent: an instruction reads and
//! writes only the registers and the memory that its `StaticInst` and its words in the dynamic stream name.
//!
//! Environment variables:
//!
//! * `FXSCOPE_DIFF_FILTER`: only rows whose name, or whose group (`sve_int`, …), contains one of these
//!   texts, separated by `|`.
//! * `FXSCOPE_DIFF_COUNT`: cases for each row (default 90).
//! * `FXSCOPE_DIFF_SEED`: another set of cases (default 1).
//! * `FXSCOPE_DIFF_VL`: only this vector length in bits (128, 256 or 512; default: all in turn).
//!
//! ```text
//! FXSCOPE_DIFF_FILTER='ADD (' FXSCOPE_DIFF_COUNT=200 cargo test -p fxscope-aarch64 --test differential -- --nocapture
//! ```
//!
//! The cases of a row depend on the seed and the row's name alone. Needs Debian's `qemu-user` and
//! `gcc-aarch64-linux-gnu`.

mod consistency;
mod exclude;
mod generate;
mod machine;
mod qemu;
mod report;
mod rng;

use std::collections::BTreeMap;
use std::env;

use fxscope_aarch64::Encoding;
use fxscope_aarch64::coverage::not_compared;
use fxscope_aarch64::insn::GROUPS;
use fxscope_uop::StaticInst;

use machine::{Case, End, Machine, Outcome};
use qemu::Qemu;
use report::Difference;
use rng::Rng;

/// Cases that are executed by one process of the runner.
const BATCH: usize = 3000;
/// Differing cases shown in full for each row.
const SHOWN: usize = 2;

fn number(variable: &str, default: u64) -> u64 {
    match env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")),
        Err(_) => default,
    }
}

/// Vector lengths to test, in bytes.
fn vector_lengths() -> Vec<usize> {
    match number("FXSCOPE_DIFF_VL", 0) {
        0 => vec![64, 16, 32],
        bits @ (128 | 256 | 512) => vec![bits as usize / 8],
        bits => panic!("FXSCOPE_DIFF_VL must be 128, 256 or 512, not {bits}"),
    }
}

fn group_of(row: &Encoding) -> &'static str {
    GROUPS.iter().find(|group| group.rows.iter().any(|r| r.name == row.name)).map_or("", |group| group.name)
}

/// Rows that the filter selects.
fn selected() -> Vec<&'static Encoding> {
    let filter = env::var("FXSCOPE_DIFF_FILTER").unwrap_or_default();
    let wanted = |row: &Encoding| filter.split('|').any(|f| row.name.contains(f) || group_of(row).contains(f));
    fxscope_aarch64::table::encodings().filter(|row| wanted(row)).collect()
}

/// What the cases of one row have shown.
#[derive(Default)]
struct RowResult {
    cases: usize,
    /// Cases that trapped, on our side.
    trapped: usize,
    failed: usize,
    /// The places that differed, without their numbers, with how often.
    places: BTreeMap<String, usize>,
    details: Vec<String>,
}

struct Pending {
    row: &'static Encoding,
    case: Case,
    infos: Vec<StaticInst>,
    ours: Outcome,
    /// Complaints about our side alone.
    complaint: Option<String>,
}

fn prepare(row: &'static Encoding, vl: usize, rng: &mut Rng, machine: &mut Machine) -> Option<Pending> {
    let case = generate::case(row, vl, rng, machine)?;
    let infos = case.infos()?;
    let (ours, ..) = machine.run(&case);
    let complaint = consistency::complaint(&case, &infos, machine, rng);
    Some(Pending { row, case, infos, ours, complaint })
}

fn compare(vl: usize, batch: &[Pending], qemu: &Qemu, results: &mut BTreeMap<&'static str, RowResult>) {
    let cases: Vec<&Case> = batch.iter().map(|p| &p.case).collect();
    for (p, mut theirs) in batch.iter().zip(qemu.run(vl, &cases)) {
        exclude::clear_upper_bits(&p.case, &p.infos, &mut theirs);
        let mut list = report::differences(&p.case, &p.ours, &theirs);
        if let Some(complaint) = &p.complaint {
            let none = String::new;
            list.push(Difference { place: complaint.clone(), before: none(), ours: none(), theirs: none() });
        }
        let result = results.entry(p.row.name).or_default();
        result.cases += 1;
        result.trapped += usize::from(p.ours.end != End::Completed);
        if list.is_empty() {
            continue;
        }
        result.failed += 1;
        for d in &list {
            let kind = d.place.split(|c: char| c.is_ascii_digit()).next();
            *result.places.entry(kind.unwrap_or_default().to_string()).or_default() += 1;
        }
        if result.details.len() < SHOWN {
            result.details.push(report::details(&p.case, &p.infos, &list));
        }
    }
}

#[test]
fn every_encoding_does_what_qemu_does() {
    let rows = selected();
    assert!(!rows.is_empty(), "FXSCOPE_DIFF_FILTER selects no row");
    let count = number("FXSCOPE_DIFF_COUNT", 90);
    let seed = number("FXSCOPE_DIFF_SEED", 1);
    let qemu = Qemu::new("rows");
    let mut machine = Machine::new();
    let mut results: BTreeMap<&'static str, RowResult> = BTreeMap::new();
    let mut impossible = Vec::new();
    let lengths = vector_lengths();
    for (n, &vl) in lengths.iter().enumerate() {
        let mut batch = Vec::new();
        for &row in rows.iter().filter(|row| not_compared(row.name).is_none()) {
            let mut rng = Rng::new(seed << 8 | vl as u64, row.name);
            // The count is shared out to the vector lengths.
            for _ in (n as u64..count).step_by(lengths.len()) {
                match prepare(row, vl, &mut rng, &mut machine) {
                    Some(pending) => batch.push(pending),
                    None => {
                        impossible.push(row.name);
                        break;
                    }
                }
            }
            if batch.len() >= BATCH {
                compare(vl, &batch, &qemu, &mut results);
                batch.clear();
            }
        }
        compare(vl, &batch, &qemu, &mut results);
    }

    let mut failed = 0;
    for (name, r) in results.iter().filter(|(_, r)| r.failed > 0) {
        failed += 1;
        let places: Vec<_> = r.places.iter().take(6).map(|(place, n)| format!("{place} ({n})")).collect();
        println!("FAIL {name}: {} of {} cases: {}", r.failed, r.cases, places.join(", "));
        r.details.iter().for_each(|d| println!("{d}"));
    }
    impossible.dedup();
    for name in &impossible {
        println!("FAIL {name}: no case could be generated");
    }
    let cases: usize = results.values().map(|r| r.cases).sum();
    let trapped: usize = results.values().map(|r| r.trapped).sum();
    let skipped = rows.iter().filter(|row| not_compared(row.name).is_some()).count();
    println!("{} rows, {cases} cases ({trapped} trapped): {failed} rows differ, {skipped} skipped", rows.len());
    assert!(failed == 0 && impossible.is_empty(), "{} rows differ from QEMU", failed + impossible.len());
}

/// The other direction: what the table does not have, QEMU's A64FX does not have either.
#[test]
fn words_that_do_not_decode_are_undefined() {
    let rows: Vec<_> = fxscope_aarch64::table::encodings().collect();
    let mut rng = Rng::new(number("FXSCOPE_DIFF_SEED", 1), "undefined");
    let words = number("FXSCOPE_DIFF_COUNT", 90) * 300;
    // With all registers zero, nothing that QEMU does execute can reach mapped memory.
    let cases: Vec<Case> = (0..words)
        .map(|_| {
            let words = vec![generate::undecodable_word(&rows, &mut rng)];
            let state = machine::State { pc: machine::CODE + 0x8000, ..bytemuck::Zeroable::zeroed() };
            Case { vl: 64, words, state, window: None }
        })
        .collect();
    let qemu = Qemu::new("undefined");
    let mut executed: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for batch in cases.chunks(BATCH) {
        let outcomes = qemu.run(64, &batch.iter().collect::<Vec<_>>());
        for (case, _) in batch.iter().zip(outcomes).filter(|(_, theirs)| theirs.end != End::Undefined) {
            let text = report::disassemble(case).concat();
            let mnemonic = text.split_whitespace().nth(2).unwrap_or_default().to_string();
            executed.entry(mnemonic).or_default().push(case.words[0]);
        }
    }
    for (mnemonic, words) in &executed {
        println!("MISSING {mnemonic}: {} words, such as {:08x?}", words.len(), &words[..words.len().min(8)]);
    }
    assert!(executed.is_empty(), "QEMU executes {} instructions that do not decode", executed.len());
}

/// A test of the tester: what does nothing leaves exactly the state that went in.
#[test]
fn the_runner_returns_the_state_it_was_given() {
    const NOP: u32 = 0xd503_201f;
    let qemu = Qemu::new("nop");
    for vl in [16, 32, 64] {
        let mut rng = Rng::new(0, "NOP");
        let cases: Vec<Case> = (0..50).map(|_| generate::bare(vl, vec![NOP], &mut rng)).collect();
        let outcomes = qemu.run(vl, &cases.iter().collect::<Vec<_>>());
        for (case, theirs) in cases.iter().zip(outcomes) {
            let mut state = case.state;
            state.pc = case.end();
            let expected = Outcome { end: End::Completed, state, window: case.window.clone() };
            let differing: Vec<_> =
                report::differences(case, &expected, &theirs).into_iter().map(|d| d.place).collect();
            assert!(differing.is_empty(), "VL {vl}: {differing:?}");
        }
    }
}
