//! Noise models: what interrupts a program's cores, when and for how long.
//!
//! A model is a text file (`data/noise/`): sources of noise, each with a cause, arrivals, lengths, the cores that it
//! strikes and what it strikes simultaneously. Every source takes its core completely: overlapping detours of a core
//! queue up.

mod length;
mod parse;
mod profiles;
mod recorded;
mod trace;

use std::sync::Arc;

use serde::Deserialize;

pub use length::{LONGEST, Length};
pub(crate) use parse::read;
pub use parse::{VERSION, load, parse};
pub use profiles::names;
pub use trace::Trace;

use crate::time::Time;

/// Maximum number of sources in a model.
pub const MOST_SOURCES: usize = 64;

/// Evidence for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// Documented.
    Documented,
    /// Measured.
    Measured,
    /// Chosen so that the model reproduces measured results; older files say `calibrated`.
    #[serde(alias = "calibrated")]
    Fitted,
    /// Assumed.
    Assumed,
}

impl Evidence {
    /// Returns the word used in files.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Evidence::Documented => "documented",
            Evidence::Measured => "measured",
            Evidence::Fitted => "fitted",
            Evidence::Assumed => "assumed",
        }
    }
}

/// A noise model.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// Name: a profile's, or the file's.
    pub name: String,
    /// What it describes, in one line.
    pub title: String,
    /// Further notes.
    pub note: String,
    /// Its sources of noise; none for a silent system.
    pub sources: Vec<Source>,
}

/// A source of noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What takes the time.
    pub cause: String,
    /// When detours begin.
    pub arrival: Arrival,
    /// How long they are; unused for a replayed trace.
    pub length: Length,
    /// Which cores it strikes.
    pub on: Target,
    /// Which cores it strikes at the same time.
    pub correlation: Correlation,
    /// Whether simultaneous detours have equal lengths.
    pub lengths: Lengths,
    /// Source of its numbers.
    pub origin: String,
    /// Evidence for them.
    pub evidence: Evidence,
}

/// When detours begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// At equal intervals.
    Periodic {
        /// The interval.
        period: Time,
        /// Where the first one lies.
        phase: Phase,
        /// Share of the periods without a detour.
        missing: f64,
    },
    /// A Poisson process.
    Poisson {
        /// Rate per second, on each place that it strikes independently.
        rate: f64,
    },
    /// Gaps between starts: a minimum plus an exponential part, or uniform up to a maximum.
    Gaps {
        /// Minimum gap.
        at_least: Time,
        /// Mean gap.
        mean: Time,
        /// Maximum gap, if gaps are uniform.
        at_most: Option<Time>,
    },
    /// As recorded, from a random moment on.
    Trace(Arc<Trace>),
}

/// Where the first periodic detour lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Anywhere in the first period.
    #[default]
    Random,
    /// At the start, on all cores of all nodes.
    Aligned,
}

/// Which cores a source strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Each core, with its own detours.
    Cores,
    /// The node: each detour strikes one random core.
    Node,
    /// These cores of each node, counted from 0.
    Chosen(Vec<u16>),
}

/// What is struck at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Correlation {
    /// Nothing: each core has its own times.
    #[default]
    Independent,
    /// All struck cores of a node.
    Node,
    /// All struck cores of all nodes.
    Aligned,
}

/// Lengths of simultaneous detours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lengths {
    /// Independent.
    #[default]
    Independent,
    /// Equal.
    Same,
}

impl Arrival {
    /// Returns the trace that is replayed, if any.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Arrival::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// Returns the mean detours per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self {
            Arrival::Periodic { period, missing, .. } => (1.0 - missing) / period.seconds(),
            Arrival::Poisson { rate } => *rate,
            Arrival::Gaps { mean, .. } => 1.0 / mean.seconds(),
            Arrival::Trace(trace) => {
                let detours: usize = trace.cores.iter().map(Vec::len).sum();
                detours as f64 / trace.cores.len() as f64 / (trace.duration as f64 / 1e9)
            }
        }
    }

    /// Returns the description of the arrivals.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Arrival::Periodic { period, phase, missing } => {
                let aligned = if *phase == Phase::Aligned { ", aligned" } else { "" };
                let share = (missing * 100.0).round();
                let missing = if share > 0.0 { format!(", {share} % missing") } else { String::new() };
                format!("every {period}{aligned}{missing}")
            }
            Arrival::Poisson { rate } => format!("{rate}/s at random"),
            Arrival::Gaps { at_least, at_most: Some(most), .. } => format!("gaps {at_least} to {most}"),
            Arrival::Gaps { at_least, mean, .. } => format!("gaps at least {at_least}, mean {mean}"),
            Arrival::Trace(trace) => {
                format!("trace of {} cores, {}", trace.cores.len(), Time(trace.duration as f64))
            }
        }
    }
}

impl Source {
    /// Returns the mean length, nanoseconds.
    #[must_use]
    pub fn mean_length(&self) -> f64 {
        match &self.arrival {
            Arrival::Trace(trace) => trace.fraction() / self.arrival.rate().max(f64::MIN_POSITIVE) * 1e9,
            _ => self.length.mean(),
        }
    }

    /// Returns the share of the struck cores' time that this source takes, averaged over these cores.
    #[must_use]
    pub fn fraction(&self, cores: u32) -> f64 {
        let here = match self.on {
            Target::Node => 1.0 / f64::from(cores.max(1)),
            Target::Cores | Target::Chosen(_) => 1.0,
        };
        self.arrival.rate() * self.mean_length() / 1e9 * here
    }

    /// Returns the number of a node's cores that it strikes.
    #[must_use]
    pub fn struck(&self, cores: u32) -> u32 {
        match &self.on {
            Target::Cores | Target::Node => cores,
            Target::Chosen(chosen) => chosen.iter().filter(|&&core| u32::from(core) < cores).count() as u32,
        }
    }

    /// Detours per second of a whole node.
    #[must_use]
    pub fn node_rate(&self, cores: u32) -> f64 {
        match self.on {
            Target::Node => self.arrival.rate(),
            _ => self.arrival.rate() * f64::from(self.struck(cores)),
        }
    }

    /// Returns the description of where it strikes, and what simultaneously.
    #[must_use]
    pub fn place(&self) -> String {
        let on = match &self.on {
            Target::Cores => "each core".to_owned(),
            Target::Node => "one core per node".to_owned(),
            Target::Chosen(cores) => {
                format!("cores {}", cores.iter().map(u16::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        match self.correlation {
            Correlation::Independent => on,
            Correlation::Node => format!("{on}, node as one"),
            Correlation::Aligned => format!("{on}, all as one"),
        }
    }
}

/// The core of a trace that loses most to this trace and other parts of the same recording.
fn worst(sources: &[&Source], trace: &Trace) -> usize {
    let together = |other: &&Trace| std::ptr::eq(*other, trace) || trace.goes_with(other);
    let parts: Vec<&Trace> = sources.iter().filter_map(|source| source.arrival.trace()).filter(together).collect();
    let stolen = |core: usize| parts.iter().map(|part| part.fraction_of(core)).sum::<f64>();
    let shares: Vec<f64> = (0..trace.cores.len()).map(stolen).collect();
    (0..shares.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap_or(0)
}

impl Model {
    /// Returns the share of all cores' time that is lost, from 0 to 1.
    #[must_use]
    pub fn fraction(&self, cores: u32) -> f64 {
        let share = |s: &Source| s.fraction(cores) * f64::from(s.struck(cores)) / f64::from(cores.max(1));
        self.sources.iter().map(share).sum()
    }

    /// Checks that every core of a node with `cores` cores has time left for the program.
    ///
    /// # Errors
    /// Sources that take all time of a core, or name cores that the node lacks.
    pub fn check(&self, cores: u32) -> Result<(), String> {
        if !(1..=u32::from(u16::MAX)).contains(&cores) {
            return Err(format!("{cores} cores in a node; there can be 1 to {}", u16::MAX));
        }
        for source in &self.sources {
            let Target::Chosen(chosen) = &source.on else { continue };
            if let Some(core) = chosen.iter().find(|&&core| u32::from(core) >= cores) {
                return Err(format!(
                    "{}: the source '{}' is on core {core}, and a node has {cores} cores, from 0; \
                     change `on`, or the number of cores",
                    self.name, source.cause
                ));
            }
        }
        (0..cores as u16).try_for_each(|core| self.check_core(core, cores))
    }

    fn check_core(&self, core: u16, cores: u32) -> Result<(), String> {
        let strikes = |s: &&Source| match &s.on {
            Target::Cores | Target::Node => true,
            Target::Chosen(chosen) => chosen.contains(&core),
        };
        let struck: Vec<&Source> = self.sources.iter().filter(strikes).collect();
        let share = |s: &&Source| match &s.arrival {
            Arrival::Trace(trace) => trace.fraction_of(worst(&struck, trace)),
            _ => s.fraction(cores),
        };
        let mut shares: Vec<(f64, &str)> = struck.iter().map(|s| (share(s), s.cause.as_str())).collect();
        let all: f64 = shares.iter().map(|s| s.0).sum();
        if all < 1.0 {
            return Ok(());
        }
        shares.sort_by(|a, b| b.0.total_cmp(&a.0));
        let list: Vec<String> = shares.iter().take(3).map(|(f, c)| format!("'{c}' {:.4} %", f * 100.0)).collect();
        Err(format!(
            "{}: noise of 100 % or more leaves no time for the program: {:.4} % of core {core} ({}); \
             lower rates or lengths there",
            self.name,
            all * 100.0,
            list.join(", ")
        ))
    }
}
