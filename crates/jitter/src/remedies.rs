//! Remedies against noise, side by side.
//!
//! Each remedy changes a model or a setup; [`crate::scale`] then computes its effect. All do the same work, except a
//! larger grain, which means more work.

use crate::model::{Arrival, Correlation, Model, Source, Target};
use crate::network::{Network, Sync};
use crate::scale::{PhaseEnd, Setup};

/// Parameters of the remedies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Factor by which lighter daemons reduce their rate.
    pub rate: f64,
    /// Factor by which they reduce their length.
    pub length: f64,
    /// Cost to a core of a detour on its other hardware thread, as a share of the detour.
    pub sibling: f64,
    /// Factor by which the grain grows.
    pub grain: u64,
    /// One in this many phases keeps its collective.
    pub collectives: u64,
}

impl Options {
    /// Checks the parameters of daemons and hardware threads.
    ///
    /// # Errors
    /// The option of `fxscope jitter compare` with the value that is out of range.
    pub fn check(&self) -> Result<(), String> {
        let shares = [("--daemon-rate", self.rate), ("--daemon-length", self.length), ("--sibling-cost", self.sibling)];
        match shares.into_iter().find(|(_, value)| !(*value > 0.0 && *value <= 1.0)) {
            Some((option, value)) => Err(format!("{option} {value}: give a number above 0 and at most 1")),
            None => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options { rate: 0.5, length: 0.5, sibling: 0.3, grain: 4, collectives: 4 }
    }
}

/// A remedy against noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// None.
    None,
    /// One core of each node runs everything that is not bound to a core.
    SpareCore,
    /// The other hardware thread of each core runs it.
    Sibling,
    /// Less frequent and shorter daemons.
    Lighter,
    /// All noise at the same time on all nodes.
    Aligned,
    /// More work per phase.
    LargerGrain,
    /// Collectives in some phases only, neighbour exchanges in the others.
    FewerCollectives,
}

impl Remedy {
    /// All remedies, starting with none.
    pub const ALL: [Remedy; 7] = [
        Remedy::None,
        Remedy::SpareCore,
        Remedy::Sibling,
        Remedy::Lighter,
        Remedy::Aligned,
        Remedy::LargerGrain,
        Remedy::FewerCollectives,
    ];

    /// Returns the short name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Remedy::None => "unchanged",
            Remedy::SpareCore => "core for the system",
            Remedy::Sibling => "hardware threads",
            Remedy::Lighter => "lighter daemons",
            Remedy::Aligned => "aligned in time",
            Remedy::LargerGrain => "larger grain",
            Remedy::FewerCollectives => "fewer collectives",
        }
    }

    /// Returns what it does, in a sentence.
    #[must_use]
    pub fn words(self, options: &Options) -> String {
        match self {
            Remedy::None => "no change".to_owned(),
            Remedy::SpareCore => {
                "one core of each node runs everything that is not bound to a core, and none of the program's work"
                    .to_owned()
            }
            Remedy::Sibling => format!(
                "what is not bound to a core runs on other hardware threads and costs {:.0} % of its length",
                options.sibling * 100.0
            ),
            Remedy::Lighter => format!(
                "what is not bound to a core occurs {} times as often and takes {} times as long",
                options.rate, options.length
            ),
            Remedy::Aligned => "all detours begin at the same time on all nodes".to_owned(),
            Remedy::LargerGrain => format!("{} times the work in each phase", options.grain),
            Remedy::FewerCollectives => format!(
                "one in {} phases ends with the collective, the others with neighbour exchanges",
                options.collectives
            ),
        }
    }

    /// Returns why it is not applicable; `None` if it is.
    #[must_use]
    pub fn refused(self, model: &Model, setup: &Setup) -> Option<&'static str> {
        let free = model.sources.iter().any(movable);
        match self {
            Remedy::SpareCore | Remedy::Sibling | Remedy::Lighter if !free => Some("all noise is bound to its core"),
            Remedy::SpareCore if setup.cores < 2 => Some("a node has one core"),
            Remedy::Aligned if model.sources.iter().all(|s| s.correlation == Correlation::Aligned) => {
                Some("it already is")
            }
            Remedy::FewerCollectives if !matches!(setup.end, PhaseEnd::All { .. }) => Some("no phase ends with one"),
            _ => None,
        }
    }

    /// Returns the model and the setup with the remedy applied.
    #[must_use]
    pub fn apply(self, model: &Model, setup: &Setup, options: &Options, network: &Network) -> (Model, Setup) {
        let (mut model, mut setup) = (model.clone(), setup.clone());
        match self {
            Remedy::None => {}
            Remedy::SpareCore => {
                model.sources.retain(|source| !movable(source));
                // The other cores share the work of all.
                setup.grain = (setup.grain as f64 * f64::from(setup.cores) / f64::from(setup.cores - 1)).round() as u64;
                setup.cores -= 1;
                model.sources.iter_mut().for_each(|source| without_core(source, setup.cores));
            }
            Remedy::Sibling => scale(&mut model, 1.0, options.sibling),
            Remedy::Lighter => scale(&mut model, options.rate, options.length),
            Remedy::Aligned => model.sources.iter_mut().for_each(|s| s.correlation = Correlation::Aligned),
            Remedy::LargerGrain => setup.grain *= options.grain,
            Remedy::FewerCollectives => {
                if let PhaseEnd::All { cost } = setup.end {
                    let PhaseEnd::Neighbours { cost: halo, grid } = network.phase_end(Sync::Halo, setup.nodes, 0)
                    else {
                        unreachable!()
                    };
                    setup.end = PhaseEnd::Some { cost, halo, grid, every: options.collectives };
                }
            }
        }
        (model, setup)
    }
}

/// Returns whether a source can move: it strikes any core of a node, or only some cores, or consists of recorded
/// threads.
fn movable(source: &Source) -> bool {
    matches!(&source.arrival, Arrival::Trace(trace) if trace.movable) || source.on != Target::Cores
}

/// Removes the last core from a source.
fn without_core(source: &mut Source, cores: u32) {
    if let Target::Chosen(chosen) = &mut source.on {
        chosen.retain(|&core| u32::from(core) < cores);
    }
}

/// Scales rates and lengths of movable sources.
fn scale(model: &mut Model, rate: f64, length: f64) {
    for source in model.sources.iter_mut().filter(|source| movable(source)) {
        source.length = source.length.scaled(length);
        source.arrival = match &source.arrival {
            Arrival::Periodic { period, phase, missing } => {
                Arrival::Periodic { period: crate::Time(period.0 / rate), phase: *phase, missing: *missing }
            }
            Arrival::Poisson { rate: old } => Arrival::Poisson { rate: old * rate },
            Arrival::Gaps { at_least, mean, at_most } => Arrival::Gaps {
                at_least: crate::Time(at_least.0 / rate),
                mean: crate::Time(mean.0 / rate),
                at_most: at_most.map(|most| crate::Time(most.0 / rate)),
            },
            Arrival::Trace(trace) => Arrival::Trace(std::sync::Arc::new(trace.scaled(rate, length))),
        };
    }
}
