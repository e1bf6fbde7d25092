//! Any bytes are refused by each importer with a message, or give a run whose metrics can be calculated, without a panic.

#![no_main]

use std::sync::LazyLock;

use fxscope_import::{Machine, Options, Source, fapp, likwid, papi, perf};
use fxscope_pmu::{Evaluation, constants};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// A measurement of one or two files.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    format: u8,
    scaled: bool,
    strict: bool,
    first: &'a [u8],
    second: Option<&'a [u8]>,
}

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    Machine { name: "a64fx".to_owned(), path: None, pmu: spec.pmu.clone(), constants: constants(&spec), power_mode: None }
});

fuzz_target!(|input: Input| {
    let mut sources = vec![Source { name: "first", bytes: input.first }];
    sources.extend(input.second.map(|bytes| Source { name: "second", bytes }));
    let options = Options { command: vec!["program".to_owned()], scaled: input.scaled, strict: input.strict };
    let runs = match input.format % 4 {
        0 => fapp::read(&sources, &MACHINE, &options),
        1 => perf::read(&sources, &MACHINE, &options),
        2 => papi::read(&sources, &MACHINE, &options),
        _ => likwid::read(&sources, &MACHINE, &options),
    };
    match runs {
        Ok(runs) => {
            for (run, region) in runs.iter().flat_map(|run| run.regions.iter().map(move |region| (run, region))) {
                let _ = Evaluation::new(run, region).total();
            }
        }
        Err(problem) => assert!(!problem.what.is_empty()),
    }
});
