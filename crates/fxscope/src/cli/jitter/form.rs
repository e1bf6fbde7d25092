//! Output format and destination of a sheet.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::report::render::terminal;
use fxscope::report::sheet::Sheet;

use super::super::output::Target;
use super::super::{Failure, Outcome, print, style};

/// Output format and destination.
#[derive(clap::Args)]
pub struct Form {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced atomically, or to standard output (-).
    #[arg(short, long, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    /// All figures, for programs.
    Json,
    /// A self-contained page with plots.
    Html,
    /// One line per value of tables and plots.
    Csv,
}

/// Shows a sheet on the terminal.
pub(super) fn show(sheet: &Sheet) -> Outcome {
    print(terminal::render(&[sheet.document()], style(&std::io::stdout())))?;
    Ok(ExitCode::SUCCESS)
}

impl Form {
    /// Opens the destination before any work is done, so that errors show early.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        Target::check(&self.output)
    }

    /// Writes a sheet in the format asked for.
    pub(super) fn write(&self, sheet: &Sheet, target: Target) -> Outcome {
        match (self.format, &target) {
            (Format::Terminal, Target::StandardOutput) => return show(sheet),
            (Format::Terminal, _) => {
                let plain = terminal::Style { unicode: true, colour: false, width: terminal::USUAL };
                target.write_bytes(terminal::render(&[sheet.document()], plain).as_bytes())?;
            }
            (Format::Json, _) => target.write(&sheet.json())?,
            (Format::Html, _) => target.write_bytes(sheet.html().as_bytes())?,
            (Format::Csv, _) => target.write_bytes(sheet.csv().as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
