//! In which form a command gives its answer, and where.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use fxscope::linux::Stdio;
use fxscope::report::document::Document;
use fxscope::report::render::terminal;
use fxscope::report::sheet::Sheet;
use serde_json::Value;

use super::output::{Target, program_streams};
use super::{Failure, Outcome, print, style};

/// The formats that a command has.
pub trait Formats: ValueEnum + Copy + PartialEq + Send + Sync + 'static {
    /// Text for people: the usual one.
    const TERMINAL: Self;
    /// A self-contained page.
    const HTML: Self;
    /// All figures, for programs.
    const JSON: Self;
}

/// Format and destination of an answer.
#[derive(clap::Args)]
pub struct Form<F: Formats = Format> {
    /// Output format.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = F::TERMINAL)]
    format: F,
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

/// Format and destination of a sheet.
pub type SheetForm = Form<SheetFormat>;

/// The formats of most answers.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text, for people.
    Terminal,
    /// A self-contained page.
    Html,
    /// All figures, for programs.
    Json,
}

impl Formats for Format {
    const TERMINAL: Format = Format::Terminal;
    const HTML: Format = Format::Html;
    const JSON: Format = Format::Json;
}

/// The formats of sheets.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SheetFormat {
    /// Text, for people.
    Terminal,
    /// All figures, for programs.
    Json,
    /// A self-contained page with plots.
    Html,
    /// One line per value of tables and plots.
    Csv,
}

impl Formats for SheetFormat {
    const TERMINAL: SheetFormat = SheetFormat::Terminal;
    const HTML: SheetFormat = SheetFormat::Html;
    const JSON: SheetFormat = SheetFormat::Json;
}

/// Where an answer goes, in which formats.
pub(super) struct Outputs<F = Format>(Vec<(F, Target)>);

/// An answer in all formats.
pub(super) struct Answer<'a> {
    pub(super) text: &'a [Document],
    pub(super) html: &'a dyn Fn() -> String,
    pub(super) json: &'a dyn Fn() -> Value,
}

impl<F: Formats> Form<F> {
    /// Opens the destinations before any work is done, so that errors show early.
    pub(super) fn check(&self) -> Result<Outputs<F>, Failure> {
        let mut list = Vec::new();
        for (format, path) in [(F::JSON, &self.json), (F::HTML, &self.html)] {
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

impl<F: Formats> Outputs<F> {
    /// Returns the program's standard streams, if they differ from fxscope's: see [`program_streams`].
    pub(super) fn program_streams(&self) -> std::io::Result<Option<Stdio>> {
        let for_programs =
            |(format, target): &&(F, Target)| *format != F::TERMINAL && matches!(target, Target::StandardOutput);
        program_streams(self.0.iter().find(for_programs).map(|(_, target)| target))
    }

    /// Leaves out the text on standard output, where something else is written.
    pub(super) fn without_text(mut self) -> Outputs<F> {
        self.0.retain(|(format, target)| *format != F::TERMINAL || !matches!(target, Target::StandardOutput));
        self
    }
}

impl Outputs {
    /// Writes an answer.
    pub(super) fn write(self, answer: &Answer) -> Result<(), Failure> {
        for (format, target) in self.0 {
            match format {
                Format::Terminal => write_text(answer.text, target)?,
                Format::Html => target.write_bytes((answer.html)().as_bytes())?,
                Format::Json => target.write(&(answer.json)())?,
            }
        }
        Ok(())
    }
}

impl Outputs<SheetFormat> {
    /// Writes a sheet.
    pub(super) fn write(self, sheet: &Sheet) -> Outcome {
        for (format, target) in self.0 {
            match format {
                SheetFormat::Terminal => write_text(&[sheet.document()], target)?,
                SheetFormat::Json => target.write(&sheet.json())?,
                SheetFormat::Html => target.write_bytes(sheet.html().as_bytes())?,
                SheetFormat::Csv => target.write_bytes(sheet.csv().as_bytes())?,
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Shows a sheet on the terminal.
pub(super) fn show(sheet: &Sheet) -> Outcome {
    print(terminal::render(&[sheet.document()], style(&std::io::stdout())))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes text: as the terminal can show it or, into files, whole and without colours.
fn write_text(documents: &[Document], target: Target) -> Result<(), Failure> {
    let mut style = style(&std::io::stdout());
    if !matches!(target, Target::StandardOutput) {
        style = terminal::Style { colour: false, cuts: false, ..style };
    }
    target.write_bytes(terminal::render(documents, style).as_bytes())
}
