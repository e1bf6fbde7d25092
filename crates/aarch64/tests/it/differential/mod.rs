//! Compares every instruction of the table with QEMU (`qemu-aarch64 -cpu a64fx`), bit for bit.
//!
//! For every row of the table, random instruction words run from random states on both sides. The
//! comparison covers general-purpose registers, flags, vector and predicate registers, FFR, FPCR, FPSR, memory, the program
//! counter, and the kind of a trap. In addition, our own side must be consistent: an instruction reads and
//! writes only the registers and the memory that its `StaticInst` and its words in the dynamic stream name.
//!
//! Environment variables:
//!
//! * `FXSCOPE_DIFF_FILTER`: only rows whose name, or whose group (`sve_int`, …), contains one of these
//!   texts, separated by `|`.
//! * `FXSCOPE_DIFF_COUNT`: cases for each row (default 30; 90 in `make slow-test`).
//! * `FXSCOPE_DIFF_BLOCKS`: blocks of 2 to 16 instructions (default 6000).
//! * `FXSCOPE_DIFF_WORDS`: words for which only validity is compared (default 50,000).
//! * `FXSCOPE_DIFF_SEED`: another set of cases (default 1).
//! * `FXSCOPE_DIFF_VL`: only this vector length in bits (128, 256 or 512; default: all in turn).
//!
//! ```text
//! FXSCOPE_DIFF_FILTER='ADD (' FXSCOPE_DIFF_COUNT=200 cargo test -p fxscope-aarch64 --test it differential:: -- --nocapture
//! ```
//!
//! The cases of a row depend on the seed and the row's name alone. Needs Debian's `qemu-user` and
//! `gcc-aarch64-linux-gnu`.

mod blocks;
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
use fxscope_isa::StaticInst;

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
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} is not a number: {text}")),
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

/// Findings for the cases of one row, or for all blocks.
#[derive(Default)]
struct Findings {
    cases: usize,
    /// Instructions of these cases.
    instructions: usize,
    /// Cases that trapped, on our side.
    trapped: usize,
    failed: usize,
    /// How often each place differed; places are without their numbers.
    places: BTreeMap<String, usize>,
    details: Vec<String>,
}

/// By row name.
type Results = BTreeMap<&'static str, Findings>;

struct Pending {
    name: &'static str,
    case: Case,
    infos: Vec<StaticInst>,
    ours: Outcome,
    /// Inconsistencies of our side alone.
    complaint: Option<String>,
}

fn prepare(name: &'static str, case: Case, rng: &mut Rng, machine: &mut Machine) -> Option<Pending> {
    let infos = case.infos()?;
    let (ours, ..) = machine.run(&case);
    let complaint = consistency::complaint(&case, &infos, machine, rng);
    Some(Pending { name, case, infos, ours, complaint })
}

/// Corrects known errors of QEMU in a case.
type Correction = fn(&Case, &[StaticInst], &mut Outcome);

fn compare(vl: usize, batch: &[Pending], qemu: &Qemu, correct: Correction, results: &mut Results) {
    let cases: Vec<&Case> = batch.iter().map(|p| &p.case).collect();
    for (p, mut theirs) in batch.iter().zip(qemu.run(vl, &cases)) {
        correct(&p.case, &p.infos, &mut theirs);
        let mut list = report::differences(&p.case, &p.ours, &theirs);
        if let Some(complaint) = &p.complaint {
            let none = String::new;
            list.push(Difference { place: complaint.clone(), before: none(), ours: none(), theirs: none() });
        }
        let result = results.entry(p.name).or_default();
        result.cases += 1;
        result.instructions += p.case.words.len();
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

/// Runs `job` for each vector length in parallel, and returns the results in the order of the lengths. The second argument of
/// `job` gives its share of a count that all lengths share.
fn for_each_length<T: Send>(job: impl Fn(usize, &dyn Fn(u64) -> u64) -> T + Sync) -> Vec<T> {
    let lengths = vector_lengths();
    let of = lengths.len() as u64;
    std::thread::scope(|scope| {
        let job = &job;
        let start =
            |(n, vl): (usize, usize)| scope.spawn(move || job(vl, &|count: u64| (count + of - 1 - n as u64) / of));
        let threads: Vec<_> = lengths.iter().copied().enumerate().map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Prints differences and totals; fails if there are differences.
fn conclude(what: &str, results: &[Results]) {
    let all = || results.iter().flatten();
    for (name, r) in all().filter(|(_, r)| r.failed > 0) {
        let places: Vec<_> = r.places.iter().take(6).map(|(place, n)| format!("{place} ({n})")).collect();
        println!("FAIL {name}: {} of {} cases: {}", r.failed, r.cases, places.join(", "));
        r.details.iter().for_each(|d| println!("{d}"));
    }
    let sum = |of: fn(&Findings) -> usize| all().map(|(_, r)| of(r)).sum::<usize>();
    let (cases, trapped, failed) = (sum(|r| r.cases), sum(|r| r.trapped), sum(|r| r.failed));
    println!(
        "{what}: {} instructions in {cases} cases ({trapped} trapped), {failed} cases differ",
        sum(|r| r.instructions)
    );
    assert!(failed == 0, "{failed} cases differ from QEMU");
}

#[test]
fn every_encoding_does_what_qemu_does() {
    compare_encodings(30);
}

/// Compares cases of each row: `usual` ones, unless the variable says how many.
fn compare_encodings(usual: u64) {
    let rows: Vec<_> = selected().into_iter().filter(|row| not_compared(row.name).is_none()).collect();
    assert!(!rows.is_empty(), "FXSCOPE_DIFF_FILTER selects no row that is compared");
    let count = number("FXSCOPE_DIFF_COUNT", usual);
    let seed = number("FXSCOPE_DIFF_SEED", 1);
    let results = for_each_length(|vl, share| {
        let (qemu, mut machine) = (Qemu::new(&format!("rows{vl}")), Machine::new());
        let (mut results, mut batch) = (Results::new(), Vec::new());
        for row in &rows {
            let mut rng = Rng::new(seed << 8 | vl as u64, row.name);
            for _ in 0..share(count) {
                let case = generate::case(row, vl, &mut rng, &mut machine);
                let pending = case.and_then(|case| prepare(row.name, case, &mut rng, &mut machine));
                batch.push(pending.unwrap_or_else(|| panic!("{}: no case could be generated", row.name)));
            }
            if batch.len() >= BATCH {
                compare(vl, &batch, &qemu, exclude::clear_upper_bits, &mut results);
                batch.clear();
            }
        }
        compare(vl, &batch, &qemu, exclude::clear_upper_bits, &mut results);
        results
    });
    conclude(&format!("{} encodings", rows.len()), &results);
}

#[test]
fn blocks_of_instructions_do_what_qemu_does() {
    let rows: Vec<_> = selected().into_iter().filter(|row| not_compared(row.name).is_none()).collect();
    let count = number("FXSCOPE_DIFF_BLOCKS", 6000);
    let seed = number("FXSCOPE_DIFF_SEED", 1);
    let results = for_each_length(|vl, share| {
        let (qemu, mut machine) = (Qemu::new(&format!("blocks{vl}")), Machine::new());
        let mut results = Results::new();
        let mut rng = Rng::new(seed << 8 | vl as u64, "blocks");
        let mut left = share(count) as usize;
        while left > 0 {
            let batch: Vec<_> = (0..left.min(BATCH))
                .filter_map(|_| {
                    let case = blocks::block(&rows, vl, &mut rng, &mut machine);
                    prepare("block", case, &mut rng, &mut machine)
                })
                .collect();
            compare(vl, &batch, &qemu, |_, _, _| (), &mut results);
            left -= batch.len();
        }
        results
    });
    conclude("blocks", &results);
}

/// Words that are undefined on one side only, by mnemonic and kind of difference.
type Disputed = BTreeMap<String, Vec<u32>>;

/// Runs cases of one word, each with its end on our side, under QEMU.
fn dispute(vl: usize, batch: &[(Case, End)], qemu: &Qemu, found: &mut Disputed) {
    let undefined = |end: End| end == End::Undefined;
    let outcomes = qemu.run(vl, &batch.iter().map(|(case, _)| case).collect::<Vec<_>>());
    for ((case, ours), theirs) in batch.iter().zip(outcomes).filter(|((_, a), b)| undefined(*a) != undefined(b.end)) {
        let text = report::disassemble(case).concat();
        let mnemonic = text.split_whitespace().nth(2).unwrap_or_default();
        let key = format!("{mnemonic}: {ours:?} here, {:?} in QEMU", theirs.end);
        found.entry(key).or_default().push(case.words[0]);
    }
}

fn conclude_words(count: u64, found: &[Disputed]) {
    for (difference, words) in found.iter().flatten() {
        println!("FAIL {difference}: {} words, such as {:08x?}", words.len(), &words[..words.len().min(8)]);
    }
    println!("{count} words: {} kinds of difference", found.iter().flatten().count());
    assert!(found.iter().all(BTreeMap::is_empty), "QEMU has other instructions");
}

/// Words from anywhere, and words close to instructions: each is undefined on both sides or on neither.
#[test]
fn the_same_words_are_instructions_as_in_qemu() {
    let rows: Vec<_> = fxscope_aarch64::table::encodings().collect();
    let count = number("FXSCOPE_DIFF_WORDS", 50_000);
    let seed = number("FXSCOPE_DIFF_SEED", 1);
    let found = for_each_length(|vl, share| {
        let (qemu, mut machine) = (Qemu::new(&format!("words{vl}")), Machine::new());
        let mut rng = Rng::new(seed << 8 | vl as u64, "words");
        let mut found = Disputed::new();
        let mut left = share(count) as usize;
        while left > 0 {
            let batch: Vec<_> =
                (0..left.min(BATCH)).map(|_| generate::lone_word(&rows, vl, &mut rng, &mut machine)).collect();
            left -= batch.len();
            dispute(vl, &batch, &qemu, &mut found);
        }
        found
    });
    conclude_words(count, &found);
}

/// The same for every combination of bits 31 to 10, each with four choices of the bits below: no encoding is missing.
#[test]
#[ignore = "16 million words take a quarter of an hour"]
fn the_same_words_are_instructions_as_in_qemu_everywhere() {
    const UPPER: u64 = 1 << 22;
    const LOWER: [fn(u32) -> u32; 4] = [|r| r & 0x3ff, |r| r & 0x3e0, |r| r & 0x3e0 | 31, |_| 0];
    let found = for_each_length(|vl, share| {
        let (qemu, mut machine) = (Qemu::new(&format!("sweep{vl}")), Machine::new());
        let mut rng = Rng::new(vl as u64, "sweep");
        let mut found = Disputed::new();
        let mut batch = Vec::new();
        // The lengths are distributed over the words; with a single length, its share is everything.
        let (step, first) = if share(3) == 3 { (1, 0) } else { (3, vl / 32) };
        for upper in (first as u32..UPPER as u32).step_by(step) {
            let words = LOWER.map(|lower| upper << 10 | lower(rng.next() as u32));
            batch.extend(words.into_iter().filter_map(|word| generate::lone(word, vl, &mut machine)));
            if batch.len() >= BATCH {
                dispute(vl, &batch, &qemu, &mut found);
                batch.clear();
            }
        }
        dispute(vl, &batch, &qemu, &mut found);
        found
    });
    conclude_words(4 * UPPER, &found);
}

/// A test of the runner: an instruction without effect leaves exactly the initial state.
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

/// It takes a quarter of a minute of processor time.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn every_encoding_does_what_qemu_does_in_more_cases() {
        compare_encodings(90);
    }
}
