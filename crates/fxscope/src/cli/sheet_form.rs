//! Output format and destination of a sheet.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::report::render::terminal;
use fxscope::report::sheet::Sheet;

use super::output::Target;
use super::{Failure, Outcome, print, style};

/// Output format and destination.
#[derive(clap::Args)]
pub struct SheetForm {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced atomically, or to standard output (-).
    #[arg(short, long, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// The older name of --format json -o FILE.
    #[arg(long, value_name = "FILE|-", hide = true, conflicts_with_all = ["format", "output"])]
    json: Option<PathBuf>,
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

impl SheetForm {
    /// Opens the destination before any work is done, so that errors show early.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        Target::check(self.json.as_ref().unwrap_or(&self.output))
    }

    /// Writes a sheet in the format asked for.
    pub(super) fn write(&self, sheet: &Sheet, target: Target) -> Outcome {
        let format = if self.json.is_some() { Format::Json } else { self.format };
        match (format, &target) {
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
