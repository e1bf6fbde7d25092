//! The engine that executes a program's code.

use fxscope_aarch64::Engine as _;

use crate::{EngineChoice, RunOptions};

/// The engine of all runs: one type, so that the simulator is compiled once.
#[cfg(feature = "translate")]
pub(crate) type RunEngine = fxscope_translate::Translator;
/// The engine of all runs.
#[cfg(not(feature = "translate"))]
pub(crate) type RunEngine = fxscope_aarch64::Interpreter;

/// Returns the engine for a run with these options, at vector length `vl` bytes.
pub(crate) fn engine(options: &RunOptions, vl: usize) -> RunEngine {
    let translates = match options.engine {
        EngineChoice::Translator => true,
        EngineChoice::Interpreter => false,
        // Long enough programs are sampled, and most of their code is only followed.
        EngineChoice::Auto => options.sample.is_some(),
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
