//! Options of a simulation.

use fxscope::jitter::Time;
use fxscope::jitter::network::Sync;
use fxscope::jitter::scale::{MOST_NODES, MOST_PHASES};
use fxscope::lab::jitter::Options as Asked;

use super::super::scenario::described_choice;

/// What ends a phase.
const ENDS: &[(&str, Sync, &str)] = &[
    ("barrier", Sync::Barrier, "A barrier of all cores"),
    ("allreduce", Sync::Allreduce, "A reduction whose result all cores receive"),
    ("halo", Sync::Halo, "An exchange with six neighbours"),
    ("linpack", Sync::Linpack, "Panel, broadcast and update with shrinking work, as in LINPACK"),
];

#[derive(clap::Args)]
pub struct Options {
    /// Noise: a profile (see `fxscope jitter profiles`), or the path of a model's file.
    #[arg(long, value_name = "NAME|FILE")]
    model: String,
    /// Numbers of nodes.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,64,1024,9216,158976",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_NODES)))]
    nodes: Vec<u32>,
    /// Cores of each node that compute.
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    cores_per_node: u32,
    /// Computation of each core per phase, such as 1ms.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    grain: Time,
    /// Share by which the slowest node has more work than the fastest.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    imbalance: f64,
    /// Number of phases.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=MOST_PHASES))]
    phases: u64,
    /// What ends a phase.
    #[arg(long, default_value = "barrier", value_parser = described_choice(ENDS))]
    sync: Sync,
    /// Bytes of the reduction, of each message to a neighbour, or of a panel.
    #[arg(long, value_name = "N", default_value_t = 8)]
    bytes: u64,
    /// Network: a name shown by `fxscope jitter profiles`, or the path of a file.
    #[arg(long, value_name = "NAME|FILE", default_value = "tofud")]
    network: String,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Largest number of detours to draw; a simulation that needs more runs fewer phases.
    #[arg(long, value_name = "N", default_value_t = 1e9, value_parser = detours)]
    most_detours: f64,
}

fn detours(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|n| (1e3..=1e13).contains(n)).ok_or_else(|| format!("'{text}' is not from 1e3 to 1e13"))
}

impl Options {
    pub(super) fn asked(&self) -> Asked {
        Asked {
            model: self.model.clone(),
            nodes: self.nodes.clone(),
            cores_per_node: self.cores_per_node,
            grain: self.grain,
            imbalance: self.imbalance,
            phases: self.phases,
            sync: self.sync,
            bytes: self.bytes,
            network: self.network.clone(),
            seed: self.seed,
            most_detours: self.most_detours,
        }
    }
}
