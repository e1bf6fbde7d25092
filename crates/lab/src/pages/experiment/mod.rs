//! Effects of page sizes on a modelled machine: known experiments, beside published figures. Each has a file, and an entry
//! in [`ALL`].

mod bench;
mod blocks;
mod cost;
mod draws;
mod findings;
mod largepage;
mod masked;
mod steps;
mod stride;

use std::path::PathBuf;

use crate::{Error, Progress};

use bench::Bench;
pub use findings::{Findings, Outcome, Published};

/// An experiment.
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// One line on what it shows.
    pub title: &'static str,
    /// The machine of the published figures.
    measured: &'static Measured,
    run: fn(&Bench<'_>) -> Result<Findings, Error>,
}

/// A machine with published figures.
struct Measured {
    machine: &'static str,
    /// The page sizes that were compared, bytes, ascending.
    sizes: &'static [u64],
}

const K_COMPUTER: Measured = Measured { machine: "k-computer", sizes: &[4 << 20, 32 << 20, 256 << 20] };
const A64FX: Measured = Measured { machine: "a64fx", sizes: &[64 << 10, 2 << 20] };

/// All experiments, in the order in which they are listed.
pub const ALL: &[Experiment] = &[
    stride::EXPERIMENT,
    draws::EXPERIMENT,
    steps::EXPERIMENT,
    cost::EXPERIMENT,
    masked::EXPERIMENT,
    blocks::EXPERIMENT,
    largepage::EXPERIMENT,
];

/// Options of an experiment. Defaults are those of the publication.
#[derive(Clone, Debug)]
pub struct Options {
    /// The machine, by name or path.
    pub machine: Option<String>,
    /// Settings of the machine.
    pub settings: Vec<(String, String)>,
    /// Page sizes to compare, bytes.
    pub sizes: Vec<u64>,
    /// Size of the memory range of the program's arrays, bytes.
    pub span: u64,
    /// Number of draws or runs, for experiments that repeat.
    pub draws: Option<u32>,
    /// Runs at a time; `None`: as many as the host has cores.
    pub jobs: Option<usize>,
    /// The folder of the programs.
    pub programs: PathBuf,
}

impl Options {
    /// Returns the options of the publication, with the programs of this folder.
    #[must_use]
    pub fn new(programs: impl Into<PathBuf>) -> Options {
        Options {
            machine: None,
            settings: Vec::new(),
            sizes: Vec::new(),
            span: 12 << 30,
            draws: None,
            jobs: None,
            programs: programs.into(),
        }
    }
}

/// Returns the experiment of this name.
///
/// # Errors
/// Lists the names.
pub fn named(name: &str) -> Result<&'static Experiment, Error> {
    ALL.iter().find(|e| e.name == name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|e| e.name).collect();
        format!("unknown experiment '{name}'; choose from {}", names.join(", ")).into()
    })
}

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    /// If an option does not fit the machine or the experiment, or a program fails.
    pub fn run(&self, options: &Options, progress: &dyn Progress) -> Result<Outcome, Error> {
        let bench = Bench::new(options, self.measured, progress)?;
        let findings = (self.run)(&bench)?;
        Ok(Outcome::new(self, &bench, findings))
    }
}
