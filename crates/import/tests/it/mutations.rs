//! Gives damaged files of every format to every importer: each gives a run whose metrics can be evaluated, or a
//! message, but never a panic. `FXSCOPE_FUZZ_SECONDS` sets the duration (`make fuzz-import`), `FXSCOPE_FUZZ_SEED` the
//! seed.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fxscope_import::{FileError, Machine, Options, Source, fapp, likwid, papi, perf};
use fxscope_pmu::{Evaluation, Metrics, constants};
use fxscope_record::Run;

/// Words that importers treat specially.
const WORDS: &[&[u8]] = &[
    b"<not counted>",
    b"<not supported>",
    b"-",
    b"-1",
    b"0",
    b"1e308",
    b"NaN",
    b"18446744073709551615",
    b"18446744073709551616",
    b"99999999999999999999999",
    b"\"",
    b",",
    b";",
    b":",
    b"\n",
    b"\r\n",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"0xffff",
    b"r11",
    b"CPU0",
    b"TABLE",
    b"STRUCT",
    b"FAPP-cpupa",
    b"FAPP-core",
    b"\xef\xbb\xbf",
    b"\xc2\xa0",
    b"\xe2\x80\xaf",
    b"\xe2\x80\x99",
    b"\xff\xfe",
    b"\x83\x5c",
    b"4.01E+10",
    b"1.234",
    b"summary,",
    b"# GID,",
    b"| Event |",
    b"node1:0:12",
    b"region_value",
    b"uncore_imc_0/cas_count_read/",
    b"\xff",
];
/// Maximum number of changes at once.
const CHANGES: u64 = 6;

/// Reproducible random numbers.
struct Random(u64);

impl Random {
    /// A number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn place(&mut self, bytes: &[u8]) -> usize {
        self.below(bytes.len() as u64 + 1) as usize
    }

    fn range(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.place(bytes);
        start..(start + self.below(64) as usize).min(bytes.len())
    }
}

/// All files of `testdata/import` that an importer reads.
fn golden(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).expect("test data").map(|entry| entry.expect("readable").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            golden(&path, files);
        } else if path.extension().is_some_and(|ending| ["csv", "json", "txt"].iter().any(|e| ending == *e)) {
            let bytes = fs::read(&path).expect("readable");
            files.push((path, bytes));
        }
    }
}

/// Changes some bytes.
fn damage(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(CHANGES) {
        let range = random.range(bytes);
        match random.below(6) {
            0 => bytes.iter_mut().skip(range.start).take(1).for_each(|byte| *byte = random.below(256) as u8),
            1 => drop(bytes.drain(range)),
            2 => {
                let piece = bytes[range].to_vec();
                let at = random.place(bytes);
                bytes.splice(at..at, piece);
            }
            3 => {
                let word = WORDS[random.below(WORDS.len() as u64) as usize];
                bytes.splice(range.start..range.start, word.iter().copied());
            }
            4 => {
                let piece = other[random.range(other)].to_vec();
                bytes.splice(range.start..range.start, piece);
            }
            // Truncation is the most common damage.
            _ => bytes.truncate(if random.below(8) == 0 { range.start } else { bytes.len() }),
        }
    }
}

/// Imports files and checks the result.
fn import(format: u64, files: &[Vec<u8>], machine: &Machine) {
    let names: Vec<String> = (1..=files.len()).map(|i| format!("pa{i}.csv")).collect();
    let sources: Vec<Source> = names.iter().zip(files).map(|(name, bytes)| Source { name, bytes }).collect();
    let command = vec!["program".to_owned()];
    let options = Options { command, scaled: format % 2 == 1, strict: format % 4 > 1 };
    let runs: Result<Vec<Run>, FileError> = match format / 4 {
        0 => fapp::read(&sources, machine, &options),
        1 => perf::read(&sources, machine, &options),
        2 => papi::read(&sources, machine, &options),
        _ => likwid::read(&sources, machine, &options),
    };
    match runs {
        Ok(runs) => {
            for (run, region) in runs.iter().flat_map(|run| run.regions.iter().map(move |region| (run, region))) {
                let evaluation = Evaluation::new(run, region);
                for column in Metrics::built_in().tables().iter().flat_map(|table| &table.columns) {
                    let _ = (evaluation.column(column), evaluation.missing_in(column));
                }
            }
        }
        Err(problem) => assert!(!problem.what.is_empty()),
    }
}

#[test]
fn damaged_files_give_runs_or_messages() {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (seconds, mut seed) = (number("FXSCOPE_FUZZ_SECONDS", 2), number("FXSCOPE_FUZZ_SEED", 1));
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    let machine = Machine {
        name: "a64fx".to_owned(),
        path: None,
        pmu: spec.pmu.clone(),
        constants: constants(&spec),
        power_mode: None,
    };
    let mut golden_files = Vec::new();
    golden(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/import"), &mut golden_files);
    assert!(golden_files.len() > 100, "{}", golden_files.len());
    let (begin, first) = (Instant::now(), seed);
    while begin.elapsed() < Duration::from_secs(seconds) {
        let mut random = Random(seed);
        let some = |random: &mut Random| &golden_files[random.below(golden_files.len() as u64) as usize].1;
        let files: Vec<Vec<u8>> = (0..=random.below(2))
            .map(|_| {
                let mut bytes = some(&mut random).clone();
                let other = some(&mut random);
                damage(&mut bytes, other, &mut random);
                bytes
            })
            .collect();
        for format in 0..16 {
            let outcome = catch_unwind(|| import(format, &files, &machine));
            assert!(outcome.is_ok(), "FXSCOPE_FUZZ_SEED={seed} ends importer {format}");
        }
        seed += 1;
    }
    eprintln!("{} damaged inputs, from seed {first} on", seed - first);
}
