//! Phases of a program under noise, on several numbers of nodes.

use fxscope_jitter::Time;
use fxscope_jitter::model::{self, Model};
use fxscope_jitter::network::{Network, Sync};
use fxscope_jitter::scale::{self, Outcome, Setup, affordable, simulate};

use crate::Error;

/// Options of a simulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Noise: a profile, or the path of a model's file.
    pub model: String,
    /// Numbers of nodes.
    pub nodes: Vec<u32>,
    /// Cores of each node that compute.
    pub cores_per_node: u32,
    /// Computation of each core per phase.
    pub grain: Time,
    /// Share by which the slowest node has more work than the fastest.
    pub imbalance: f64,
    /// Number of phases.
    pub phases: u64,
    /// What ends a phase.
    pub sync: Sync,
    /// Bytes of the reduction, of each message to a neighbour, or of a panel.
    pub bytes: u64,
    /// Network: a name, or the path of a file.
    pub network: String,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Largest number of detours to draw; a simulation that needs more runs fewer phases.
    pub most_detours: f64,
}

/// Parses the largest number of detours to draw.
///
/// # Errors
/// If the text is no number, or out of range.
pub fn detours(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|n| (1e3..=1e13).contains(n)).ok_or_else(|| format!("'{text}' is not from 1e3 to 1e13"))
}

impl Options {
    /// 10,000 phases of 1 ms that end in a barrier, on 48 cores per node of a machine with TofuD, under this noise model.
    #[must_use]
    pub fn new(model: impl Into<String>, nodes: impl Into<Vec<u32>>) -> Options {
        Options {
            model: model.into(),
            nodes: nodes.into(),
            cores_per_node: 48,
            grain: Time(1e6),
            imbalance: 0.0,
            phases: 10_000,
            sync: Sync::Barrier,
            bytes: 8,
            network: "tofud".to_owned(),
            seed: 1,
            most_detours: 1e9,
        }
    }
}

/// A simulation that can be run on several numbers of nodes.
pub(super) struct Plan<'a> {
    pub options: &'a Options,
    pub model: Model,
    pub network: Network,
}

impl Options {
    /// Loads model and network.
    pub(super) fn plan(&self) -> Result<Plan<'_>, Error> {
        let model = model::load(&self.model)?;
        model.check(self.cores_per_node)?;
        Ok(Plan { options: self, model, network: Network::load(&self.network)? })
    }
}

impl Plan<'_> {
    /// Returns the setup for a number of nodes.
    pub(super) fn setup(&self, nodes: u32) -> Setup {
        let o = self.options;
        Setup {
            nodes,
            cores: o.cores_per_node,
            grain: o.grain.ns(),
            imbalance: o.imbalance,
            phases: o.phases,
            end: self.network.phase_end(o.sync, nodes, o.bytes),
            seed: o.seed,
        }
    }

    /// Runs a setup, or as many of its phases as the limit allows; returns the setup that ran, and the outcome.
    pub(super) fn run(&self, model: &Model, setup: &Setup) -> Result<(Setup, Outcome), Error> {
        setup.check()?;
        let setup = affordable(model, setup, self.options.most_detours)?;
        let outcome = simulate(model, &setup)?;
        Ok((setup, outcome))
    }

    /// Describes a phase in words.
    pub(super) fn words(&self) -> String {
        let ends = match self.options.sync {
            Sync::Barrier => "a barrier".to_owned(),
            Sync::Allreduce => format!("a reduction of {} bytes", self.options.bytes),
            Sync::Halo => format!("exchanges of {} bytes with neighbours", self.options.bytes),
            Sync::Linpack => format!("panels of {} bytes", self.options.bytes),
        };
        format!("{} of work, then {ends}", self.options.grain)
    }
}

/// Formats a number of nodes.
pub(super) fn nodes(number: u32) -> String {
    if number == 1 { "1 node".to_owned() } else { format!("{number} nodes") }
}

/// Returns a note if detours without effect were not drawn.
pub(super) fn spared(some: &[u32]) -> Option<String> {
    let sizes: Vec<String> = some.iter().map(|&n| nodes(n)).collect();
    (!sizes.is_empty()).then(|| {
        format!(
            "Short detours are drawn only where they may be the last of a phase: {}; the chance that others change \
             anything is below {:.0e}.",
            sizes.join(", "),
            scale::CHANCE
        )
    })
}

/// Returns a note if fewer phases ran than asked for.
pub(super) fn shortened(ran: &[(u32, u64)], asked: u64) -> Option<String> {
    let few: Vec<String> = ran.iter().filter(|r| r.1 < asked).map(|&(n, p)| format!("{} {p}", nodes(n))).collect();
    (!few.is_empty()).then(|| {
        format!(
            "Of {asked} phases, only as many ran as --most-detours allows: {}; the bounds show the uncertainty.",
            few.join(", ")
        )
    })
}
