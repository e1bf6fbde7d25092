//! In which form a command gives its answer, and where.

use std::path::PathBuf;

use fxscope::linux::Stdio;
use fxscope::report::document::Document;
use fxscope::report::render::terminal;
use serde_json::Value;

use super::output::{Target, program_streams};
use super::{Failure, style};

/// Format and destination of an answer.
#[derive(clap::Args)]
pub struct Form {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Terminal)]
    format: Format,
    /// Write to this file, which is replaced atomically, or to standard output (-).
    #[arg(short, long, value_name = "FILE|-", default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// The older name of --format json -o FILE. The text is shown as well, if the file is not standard output.
    #[arg(long, value_name = "FILE|-", hide = true, conflicts_with_all = ["format", "output"])]
    json: Option<PathBuf>,
    /// The same for --format html.
    #[arg(long, value_name = "FILE|-", hide = true, conflicts_with_all = ["format", "output"])]
    html: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Terminal,
    /// A self-contained page.
    Html,
    /// All figures, for programs.
    Json,
}

/// Where an answer goes, in which formats.
pub(super) struct Outputs(Vec<(Format, Target)>);

/// An answer in all formats.
pub(super) struct Answer<'a> {
    pub(super) text: &'a [Document],
    pub(super) html: &'a dyn Fn() -> String,
    pub(super) json: &'a dyn Fn() -> Value,
}

impl Form {
    /// Opens the destinations before any work is done, so that errors show early.
    pub(super) fn check(&self) -> Result<Outputs, Failure> {
        let mut list = Vec::new();
        for (format, path) in [(Format::Json, &self.json), (Format::Html, &self.html)] {
            if let Some(path) = path {
                list.push((format, Target::check(path)?));
            }
        }
        if !list.iter().any(|(_, target)| matches!(target, Target::StandardOutput)) {
            list.push((self.format, Target::check(&self.output)?));
        }
        Ok(Outputs(list))
    }
}

impl Outputs {
    /// Returns the program's standard streams, if they differ from fxscope's: see [`program_streams`].
    pub(super) fn program_streams(&self) -> std::io::Result<Option<Stdio>> {
        let for_programs = |(format, target): &&(Format, Target)| {
            *format != Format::Terminal && matches!(target, Target::StandardOutput)
        };
        program_streams(self.0.iter().find(for_programs).map(|(_, target)| target))
    }

    /// Leaves out the text on standard output, where something else is written.
    pub(super) fn without_text(mut self) -> Outputs {
        self.0.retain(|(format, target)| *format != Format::Terminal || !matches!(target, Target::StandardOutput));
        self
    }

    /// Writes an answer.
    pub(super) fn write(self, answer: &Answer) -> Result<(), Failure> {
        for (format, target) in self.0 {
            match format {
                Format::Terminal => {
                    let mut style = style(&std::io::stdout());
                    style.colour &= matches!(target, Target::StandardOutput);
                    target.write_bytes(terminal::render(answer.text, style).as_bytes())?;
                }
                Format::Html => target.write_bytes((answer.html)().as_bytes())?,
                Format::Json => target.write(&(answer.json)())?,
            }
        }
        Ok(())
    }
}
