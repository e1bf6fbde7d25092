//! The engine that executes a program's code.

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
#[cfg(feature = "translate")]
const SHORT: u64 = 50_000_000;

/// Returns the engine for a run with these options, at vector length `vl` bytes.
#[cfg(feature = "translate")]
pub(crate) fn engine(options: &RunOptions, vl: usize) -> RunEngine {
    match (options.mode, options.engine) {
        (Mode::Functional, EngineChoice::Auto) => RunEngine::after(vl, SHORT),
        (Mode::Functional, EngineChoice::Translator) => RunEngine::new(vl),
        // Timing needs the dynamic stream, which only interpretation gives.
        _ => RunEngine::interpreting(vl),
    }
}

/// Returns the engine for a run, at vector length `vl` bytes.
#[cfg(not(feature = "translate"))]
pub(crate) fn engine(_: &RunOptions, vl: usize) -> RunEngine {
    RunEngine::new(vl)
}
