//! Any bytes are refused by each importer with a message, or give a run whose metrics can be calculated, without a panic.

#![no_main]

use std::sync::LazyLock;

use fxscope_import::{Machine, Source, fapp, likwid, papi, perf};
use fxscope_pmu::{Evaluation, constants};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// A measurement of one or two files.
#[derive(Arbitrary, Debug)]
struct Input<'a> {
    format: u8,
    scaled: bool,
    first: &'a [u8],
    second: Option<&'a [u8]>,
}

static MACHINE: LazyLock<Machine> = LazyLock::new(|| {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    Machine { name: "a64fx".to_owned(), path: None, pmu: spec.pmu.clone(), constants: constants(&spec) }
});

fuzz_target!(|input: Input| {
    let mut sources = vec![Source { name: "first", bytes: input.first }];
    sources.extend(input.second.map(|bytes| Source { name: "second", bytes }));
    let command = vec!["program".to_owned()];
    let runs = match input.format % 4 {
        0 => fapp::read(&sources, &MACHINE, &command),
        1 => perf::read(&sources, &MACHINE, &perf::Options { command, scaled: input.scaled }),
        2 => papi::read(&sources, &MACHINE, &command),
        _ => likwid::read(&sources, &MACHINE, &command),
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
