//! Options of a pipeline trace.

use std::path::PathBuf;

use fxscope::{Scenario, TraceFile};

use crate::terminal::Failure;
use crate::terminal::output::{failure, regular};

/// Window and output file of the trace.
#[derive(clap::Args)]
pub(crate) struct TraceArgs {
    /// Write a pipeline trace for the viewer Konata (docs/konata.md) to this file: about 400 bytes per instruction.
    #[arg(long, value_name = "FILE")]
    konata: Option<PathBuf>,
    /// Start the trace after this many executed instructions [default: 0].
    #[arg(long, value_name = "N", requires = "konata", allow_negative_numbers = true)]
    konata_from: Option<u64>,
    /// Trace this many executed instructions [default: 10000].
    #[arg(long, value_name = "N", requires = "konata", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    konata_instructions: Option<u64>,
}

impl TraceArgs {
    /// Returns whether a trace is asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.konata.is_some()
    }
    /// Checks that the trace can be made and written, if one is asked for. Changes nothing.
    pub(crate) fn open(&self, scenario: &Scenario) -> Result<Option<TraceFile>, Failure> {
        let Some(path) = &self.konata else { return Ok(None) };
        scenario.check_pipeline()?;
        let trace = TraceFile::new(regular(path, "")?, self.konata_from.unwrap_or(0), self.konata_instructions);
        Ok(Some(trace.map_err(|e| failure(path, &e))?))
    }
}
