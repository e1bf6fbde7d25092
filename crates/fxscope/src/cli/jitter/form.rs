//! Where and how a sheet is written.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::report::render::terminal;
use fxscope::report::sheet::Sheet;

use super::super::output::Target;
use super::super::{Failure, Outcome, print, style};

/// Where and how results are written.
#[derive(clap::Args)]
pub struct Form {
    /// Output format.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced as a whole, or to standard output (-).
    #[arg(short, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    /// All figures, for programs.
    Json,
    /// A page with plots that needs nothing but a browser.
    Html,
    /// A line for each value of tables and plots.
    Csv,
}

/// Shows a sheet on the terminal.
pub(super) fn show(sheet: &Sheet) -> Outcome {
    print(terminal::render(&[sheet.document()], style(&std::io::stdout())))?;
    Ok(ExitCode::SUCCESS)
}

impl Form {
    /// The place, checked before there is anything to write.
    pub(super) fn target(&self) -> Result<Target, Failure> {
        Target::check(&self.output)
    }

    /// Writes a sheet as asked for.
    pub(super) fn write(&self, sheet: &Sheet, target: Target) -> Outcome {
        match (self.format, &target) {
            (Format::Terminal, Target::StandardOutput) => return show(sheet),
            (Format::Terminal, _) => {
                let plain = terminal::Style { unicode: true, colour: false };
                target.write_bytes(terminal::render(&[sheet.document()], plain).as_bytes())?;
            }
            (Format::Json, _) => target.write(&sheet.json())?,
            (Format::Html, _) => target.write_bytes(sheet.html().as_bytes())?,
            (Format::Csv, _) => target.write_bytes(sheet.csv().as_bytes())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
