//! Imports measurements of other tools as runs.
//!
//! Each format is a module whose `read` converts the bytes of files to [`Run`]s. None reads files itself or interprets
//! counts. Nothing is guessed: contradictory data is a [`FileError`] with its location, and a value that cannot be taken is
//! named in the run's notes, or refuses the file ([`Options::strict`]).

mod events;
pub mod fapp;
mod intervals;
mod join;
pub mod likwid;
mod losses;
mod number;
pub mod papi;
pub mod perf;
mod rows;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use fxscope_pmu::{Pmu, recorded};
use fxscope_record::{Finish, Host, Mode, Origin, Run};

pub use events::event_name;
use text::Text;

/// Options of an import.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The program and its arguments, if known; some files contain them.
    pub command: Vec<String>,
    /// Accept counts of events that were multiplexed, as the tool has scaled them.
    pub scaled: bool,
    /// Refuse a file with a value that cannot be taken as it is, instead of noting that.
    pub strict: bool,
}

/// A file of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its name in messages and in the record.
    pub name: &'a str,
    /// Its contents.
    pub bytes: &'a [u8],
}

impl<'a> Source<'a> {
    /// Its contents as text.
    fn text(&self) -> Result<Text<'a>, FileError> {
        if self.bytes.is_empty() {
            return Err(self.problem(None, "is empty: nothing was written to it".to_owned()));
        }
        Ok(text::decode(self.bytes))
    }

    fn problem(&self, line: Option<usize>, what: String) -> FileError {
        FileError::of(self.name, line, what)
    }
}

/// An error in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {}{what}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct FileError {
    /// The file.
    pub file: String,
    /// The line, counted from 1, if known.
    pub line: Option<usize>,
    /// The error, and how to fix it.
    pub what: String,
}

impl FileError {
    fn of(file: &str, line: Option<usize>, what: String) -> FileError {
        FileError { file: file.to_owned(), line, what }
    }
}

/// The machine that a measurement is from.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Its name.
    pub name: String,
    /// Its folder or file; `None` for a built-in machine.
    pub path: Option<String>,
    /// Its PMU.
    pub pmu: Pmu,
    /// Its constants for metrics ([`fxscope_pmu::constants`]).
    pub constants: BTreeMap<String, f64>,
    /// Its mode of power, which the constants are of; `None` if it has none.
    pub power_mode: Option<String>,
}

impl Machine {
    /// A measured run of `command` with these passes, without regions.
    fn run(&self, format: &str, command: Vec<String>, files: Vec<String>, passes: Vec<String>) -> Run {
        Run {
            tool: format!("fxscope {}", env!("CARGO_PKG_VERSION")),
            command,
            environment: Vec::new(),
            machine: self.name.clone(),
            settings: Vec::new(),
            machine_hash: String::new(),
            description: Some(Arc::new(recorded::description(self.path.as_deref(), &self.pmu))),
            constants: self.constants.clone(),
            mode: Mode::Timing,
            finish: Finish::Unknown,
            host: Host::default(),
            notes: Vec::new(),
            failures: Vec::new(),
            origin: Origin::Imported { format: format.to_owned(), files },
            passes,
            regions: Vec::new(),
            intervals: Vec::new(),
            pages: Vec::new(),
            files: Vec::new(),
            stalls: Vec::new(),
            pipes: Vec::new(),
            sample: None,
            part: None,
            hot_spots: Vec::new(),
            profile: Default::default(),
            parallel: Default::default(),
        }
    }
}
