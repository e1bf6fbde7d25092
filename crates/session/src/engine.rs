//! The engine that executes a program's code.

#[cfg(not(feature = "translate"))]
use fxscope_aarch64::Engine as _;
use fxscope_sim::Mode;

use crate::{EngineChoice, RunOptions};

/// The engine of all runs: one type, so that the simulator is compiled once.
#[cfg(feature = "translate")]
pub(crate) type RunEngine = fxscope_translate::Translator;
/// The engine of all runs.
#[cfg(not(feature = "translate"))]
pub(crate) type RunEngine = fxscope_aarch64::Interpreter;

/// Instructions of a process that are interpreted before executions are counted, unless the translator was asked for. Shorter
/// programs would spend more time in the compiler than they gain.
const SHORT: u64 = 50_000_000;

/// Returns the engine for a run with these options, at vector length `vl` bytes.
pub(crate) fn engine(options: &RunOptions, vl: usize) -> RunEngine {
    let untimed = options.mode == Mode::Functional || options.part.is_some();
    match options.engine {
        EngineChoice::Translator => translating(vl, 0),
        // Programs that are sampled, or timed in intervals, are long, and most of their code is only followed as it runs.
        EngineChoice::Auto if options.sample.is_some() || options.jobs.is_some() => translating(vl, 0),
        EngineChoice::Auto if untimed => translating(vl, SHORT),
        EngineChoice::Auto | EngineChoice::Interpreter => interpreting(vl),
    }
}

/// Returns an engine that interprets the first `instructions` instructions.
#[cfg(feature = "translate")]
fn translating(vl: usize, instructions: u64) -> RunEngine {
    RunEngine::after(vl, instructions)
}

#[cfg(feature = "translate")]
fn interpreting(vl: usize) -> RunEngine {
    RunEngine::interpreting(vl)
}

#[cfg(not(feature = "translate"))]
fn translating(vl: usize, _: u64) -> RunEngine {
    RunEngine::new(vl)
}

#[cfg(not(feature = "translate"))]
fn interpreting(vl: usize) -> RunEngine {
    RunEngine::new(vl)
}
