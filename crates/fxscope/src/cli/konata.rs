//! `fxscope run --konata`: where a pipeline trace goes.

use std::fs::File;
use std::io::{BufWriter, Seek as _};
use std::path::PathBuf;

use fxscope::konata::Konata;
use fxscope::{Mode, Window};

use super::Failure;
use super::output::{draft, failure, folder, replaceable};

/// Instructions that are traced unless another number is asked for.
const INSTRUCTIONS: u64 = 10_000;

/// What is traced, and where to.
#[derive(clap::Args)]
pub(super) struct TraceArgs {
    /// Write a pipeline trace for the viewer Konata (docs/konata.md) to a file: about 400 bytes for each instruction.
    #[arg(long, value_name = "FILE")]
    konata: Option<PathBuf>,
    /// Begin the trace behind this many executed instructions [default: 0].
    #[arg(long, value_name = "N", requires = "konata", allow_negative_numbers = true)]
    konata_from: Option<u64>,
    /// Trace this many executed instructions [default: 10000].
    #[arg(long, value_name = "N", requires = "konata", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    konata_instructions: Option<u64>,
}

/// A trace that is being taken, and the file it becomes.
pub(super) struct TraceTarget {
    path: PathBuf,
    from: u64,
    instructions: u64,
    /// Written to a file without a name: nothing is left of it when the run is killed.
    konata: Konata<BufWriter<File>>,
}

impl TraceTarget {
    /// Checks that what `args` ask for, if anything, can be done. Nothing is changed.
    pub(super) fn check(args: &TraceArgs, mode: Mode) -> Result<Option<TraceTarget>, Failure> {
        let Some(path) = &args.konata else { return Ok(None) };
        if mode == Mode::Functional {
            return Err("--konata: functional mode has no pipeline to trace; leave out --mode functional".into());
        }
        let Some(path) = replaceable(path)? else {
            return Err(format!("{}: is no regular file; give the path of a file", path.display()).into());
        };
        let nameless = tempfile::tempfile_in(folder(&path)).map_err(|e| failure(&path, &e))?;
        Ok(Some(TraceTarget {
            from: args.konata_from.unwrap_or(0),
            instructions: args.konata_instructions.unwrap_or(INSTRUCTIONS),
            konata: Konata::new(BufWriter::new(nameless)),
            path,
        }))
    }

    /// What is to be traced.
    pub(super) fn window(&mut self) -> Window<'_> {
        Window::new(self.from, self.instructions, &mut self.konata)
    }

    /// Writes the file, when the run is over: it holds either what it held before or the whole trace.
    pub(super) fn write(self) -> Result<(), Failure> {
        let path = &self.path;
        if self.konata.rows() == 0 {
            return Err(format!(
                "--konata-from {}: the run ended before it came there, and {} was not written; choose a smaller number",
                self.from,
                path.display()
            )
            .into());
        }
        let written = self.konata.finish().and_then(|out| Ok(out.into_inner()?));
        let copied = written.and_then(|mut trace| trace.rewind().map(|()| trace));
        let mut draft = draft(path)?;
        copied.and_then(|mut trace| std::io::copy(&mut trace, &mut draft)).map_err(|e| failure(path, &e))?;
        draft.persist(path).map_err(|e| failure(path, &e.error))?;
        Ok(())
    }
}
