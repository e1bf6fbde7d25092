//! Noise models: what interrupts a program's cores, when and for how long.
//!
//! A model is a text file (`data/noise/`): sources of noise, each with a cause, arrivals, lengths, where it strikes and what strikes
//! together. Every source steals its core: detours of one core that meet wait for each other.

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

/// Most sources that a model has.
pub const MOST_SOURCES: usize = 64;

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Evidence {
    /// A document says so.
    Documented,
    /// It was measured.
    Measured,
    /// It was chosen so that the model reproduces measured results; older files call this `calibrated`.
    #[serde(alias = "calibrated")]
    Fitted,
    /// It is assumed.
    Assumed,
}

impl Evidence {
    /// The word that files use.
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
    /// What it is called: a profile's name, or the file's.
    pub name: String,
    /// What it describes, in a line.
    pub title: String,
    /// What else to know.
    pub note: String,
    /// Its sources of noise; none is a silent system.
    pub sources: Vec<Source>,
}

/// A source of noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What steals the time.
    pub cause: String,
    /// When detours begin.
    pub arrival: Arrival,
    /// How long they are; a replayed trace knows itself.
    pub length: Length,
    /// Which cores it strikes.
    pub on: On,
    /// Which cores it strikes at the same time.
    pub correlation: Correlation,
    /// Whether what strikes at the same time is equally long.
    pub lengths: Lengths,
    /// Where its numbers are from.
    pub origin: String,
    /// What is known of them.
    pub evidence: Evidence,
}

/// When detours begin.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// At equal distances.
    Periodic {
        /// The distance.
        period: Time,
        /// Where the first one lies.
        phase: Phase,
        /// The share of the times at which nothing happens.
        missing: f64,
    },
    /// At any time alike, whatever was before.
    Poisson {
        /// How many a second, on each place that it strikes on its own.
        rate: f64,
    },
    /// With gaps from beginning to beginning: the least, and beyond it an exponential part, or an even one up to the most.
    Gaps {
        /// The smallest gap.
        at_least: Time,
        /// Mean of the gaps.
        mean: Time,
        /// Largest gap, when gaps are even between both.
        at_most: Option<Time>,
    },
    /// As recorded, from a random moment on.
    Trace(Arc<Trace>),
}

/// Where the first of periodic detours lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Anywhere in the first period.
    #[default]
    Random,
    /// At the beginning, on all cores of all nodes.
    Aligned,
}

/// Which cores a source strikes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// Each core, with detours of its own.
    Cores,
    /// The node: each detour strikes one of its cores, any of them.
    Node,
    /// These cores of each node, from 0.
    Chosen(Vec<u16>),
}

/// What strikes at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Correlation {
    /// Nothing: each core has times of its own.
    #[default]
    Independent,
    /// All struck cores of a node.
    Node,
    /// All struck cores of all nodes.
    Aligned,
}

/// Lengths of detours that begin at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lengths {
    /// Each has its own.
    #[default]
    Independent,
    /// They are the same.
    Same,
}

impl Arrival {
    /// The trace that is replayed.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        match self {
            Arrival::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// Detours a second, on average.
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

    /// The arrivals in words.
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
    /// Mean length, nanoseconds.
    #[must_use]
    pub fn mean_length(&self) -> f64 {
        match &self.arrival {
            Arrival::Trace(trace) => trace.fraction() / self.arrival.rate().max(f64::MIN_POSITIVE) * 1e9,
            _ => self.length.mean(),
        }
    }

    /// The share of the time of a core that it strikes that this source steals, mean over these cores.
    #[must_use]
    pub fn fraction(&self, cores: u32) -> f64 {
        let here = match self.on {
            On::Node => 1.0 / f64::from(cores.max(1)),
            On::Cores | On::Chosen(_) => 1.0,
        };
        self.arrival.rate() * self.mean_length() / 1e9 * here
    }

    /// How many of a node's cores it strikes.
    #[must_use]
    pub fn struck(&self, cores: u32) -> u32 {
        match &self.on {
            On::Cores | On::Node => cores,
            On::Chosen(chosen) => chosen.iter().filter(|&&core| u32::from(core) < cores).count() as u32,
        }
    }

    /// Detours a second of a whole node.
    #[must_use]
    pub fn node_rate(&self, cores: u32) -> f64 {
        match self.on {
            On::Node => self.arrival.rate(),
            _ => self.arrival.rate() * f64::from(self.struck(cores)),
        }
    }

    /// Where it strikes and together with what, in words.
    #[must_use]
    pub fn place(&self) -> String {
        let on = match &self.on {
            On::Cores => "each core".to_owned(),
            On::Node => "one core a node".to_owned(),
            On::Chosen(cores) => {
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

/// The core of a trace from which most is stolen by this trace and those that are parts of the same recording.
fn worst(sources: &[&Source], trace: &Trace) -> usize {
    let together = |other: &&Trace| std::ptr::eq(*other, trace) || trace.goes_with(other);
    let parts: Vec<&Trace> = sources.iter().filter_map(|source| source.arrival.trace()).filter(together).collect();
    let stolen = |core: usize| parts.iter().map(|part| part.fraction_of(core)).sum::<f64>();
    let shares: Vec<f64> = (0..trace.cores.len()).map(stolen).collect();
    (0..shares.len()).max_by(|&a, &b| shares[a].total_cmp(&shares[b])).unwrap_or(0)
}

impl Model {
    /// The share of all cores' time that is stolen, from 0 to 1.
    #[must_use]
    pub fn fraction(&self, cores: u32) -> f64 {
        let share = |s: &Source| s.fraction(cores) * f64::from(s.struck(cores)) / f64::from(cores.max(1));
        self.sources.iter().map(share).sum()
    }

    /// Tells whether every core of a node with `cores` cores has time left for the program.
    ///
    /// # Errors
    /// Which sources steal all of it, or name cores that the node lacks.
    pub fn check(&self, cores: u32) -> Result<(), String> {
        if !(1..=u32::from(u16::MAX)).contains(&cores) {
            return Err(format!("{cores} cores in a node; 1 to {} are possible", u16::MAX));
        }
        for source in &self.sources {
            let On::Chosen(chosen) = &source.on else { continue };
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
            On::Cores | On::Node => true,
            On::Chosen(chosen) => chosen.contains(&core),
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
