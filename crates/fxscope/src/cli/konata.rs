//! `fxscope run --konata`: window and output file of a pipeline trace.

use std::fs::File;
use std::io::{BufWriter, Seek as _};
use std::path::PathBuf;

use fxscope::host::OutputFile;
use fxscope::konata::Konata;
use fxscope::{Mode, Window};

use super::Failure;
use super::output::{failure, folder, replaceable};

/// Default number of traced instructions.
const INSTRUCTIONS: u64 = 10_000;

/// Window and output file of the trace.
#[derive(clap::Args)]
pub(super) struct TraceArgs {
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
    pub(super) fn is_wanted(&self) -> bool {
        self.konata.is_some()
    }
}

/// A trace being taken, and the file it is written to.
pub(super) struct TraceTarget {
    place: OutputFile,
    from: u64,
    instructions: u64,
    /// Written to an unnamed file, which disappears if the run is killed.
    konata: Konata<BufWriter<File>>,
}

impl TraceTarget {
    /// Checks that the trace can be made and written, if one is asked for. Changes nothing.
    pub(super) fn check(args: &TraceArgs, mode: Mode) -> Result<Option<TraceTarget>, Failure> {
        let Some(path) = &args.konata else { return Ok(None) };
        if mode == Mode::Functional {
            return Err("--konata: functional mode has no pipeline to trace; leave out --mode functional".into());
        }
        let Some(place) = replaceable(path)? else {
            return Err(format!("{}: is not a regular file; give the path of a file", path.display()).into());
        };
        let nameless = tempfile::tempfile_in(folder(place.path())).map_err(|e| failure(path, &e))?;
        Ok(Some(TraceTarget {
            from: args.konata_from.unwrap_or(0),
            instructions: args.konata_instructions.unwrap_or(INSTRUCTIONS),
            konata: Konata::new(BufWriter::new(nameless)),
            place,
        }))
    }

    /// Returns the window to trace.
    pub(super) fn window(&mut self) -> Window<'_> {
        Window::new(self.from, self.instructions, &mut self.konata)
    }

    /// Writes the file after the run: it holds either its old content or the whole trace.
    pub(super) fn write(self) -> Result<(), Failure> {
        let path = self.place.path();
        if self.konata.rows() == 0 {
            return Err(format!(
                "--konata-from {}: the run ended before that, and {} was not written; choose a smaller number",
                self.from,
                path.display()
            )
            .into());
        }
        let copied = self.konata.finish().and_then(|out| {
            let mut trace = out.into_inner()?;
            trace.rewind()?;
            self.place.replace(|file| std::io::copy(&mut trace, file).map(drop))
        });
        copied.map_err(|e| failure(path, &e))
    }
}
