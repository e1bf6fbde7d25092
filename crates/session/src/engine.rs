//! The engine that executes a program's code.

use fxscope_aarch64::Engine as _;
use fxscope_sim::Mode;
use fxscope_sim::part::PartPlan;

use crate::{EngineChoice, RunOptions};

/// The engine of all runs: one type, so that the simulator is compiled once.
#[cfg(feature = "translate")]
pub(crate) type RunEngine = fxscope_translate::Translator;
/// The engine of all runs.
#[cfg(not(feature = "translate"))]
pub(crate) type RunEngine = fxscope_aarch64::Interpreter;

/// Instructions from which on translation pays for what it costs, whatever the program.
const PAYS: u64 = 1_000_000_000;

/// Returns the engine for a run with these options, at vector length `vl` bytes.
pub(crate) fn engine(options: &RunOptions, vl: usize) -> RunEngine {
    // Timing needs the dynamic stream, which only interpretation gives.
    let skipped = options.part.as_ref().map(PartPlan::skipped);
    let translates = match options.engine {
        EngineChoice::Translator => options.mode == Mode::Functional || skipped.is_some(),
        EngineChoice::Auto => skipped.is_some_and(|skipped| skipped >= PAYS),
        EngineChoice::Interpreter => false,
    };
    if translates { RunEngine::new(vl) } else { interpreting(vl) }
}

#[cfg(feature = "translate")]
fn interpreting(vl: usize) -> RunEngine {
    RunEngine::interpreting(vl)
}

#[cfg(not(feature = "translate"))]
fn interpreting(vl: usize) -> RunEngine {
    RunEngine::new(vl)
}
