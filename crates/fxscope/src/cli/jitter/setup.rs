//! What a simulation is asked for on the command line.

use fxscope::jitter::Time;
use fxscope::jitter::model::{self, Model};
use fxscope::jitter::network::{Network, Sync};
use fxscope::jitter::scale::{self, MOST_NODES, Outcome, Setup, affordable, simulate};

use super::super::Failure;

#[derive(clap::Args)]
pub struct Options {
    /// Noise: a profile (see `fxscope jitter profiles`), or the path of a model's file.
    #[arg(long, value_name = "NAME|FILE")]
    model: String,
    /// Numbers of nodes.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,64,1024,9216,158976",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_NODES)))]
    pub(super) nodes: Vec<u32>,
    /// Cores of each node that compute.
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    pub(super) cores_per_node: u32,
    /// Computation of each core in a phase, such as 1ms.
    #[arg(long, value_name = "TIME", default_value = "1ms")]
    grain: Time,
    /// By what share the slowest node has more to do than the fastest.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    imbalance: f64,
    /// Phases.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=scale::MOST_PHASES))]
    phases: u64,
    /// What ends a phase.
    #[arg(long, value_enum, default_value_t = Ends::Barrier)]
    sync: Ends,
    /// Bytes of the reduction, of each message to a neighbour, or of a panel.
    #[arg(long, value_name = "N", default_value_t = 8)]
    bytes: u64,
    /// Network: a name that `fxscope jitter profiles` shows, or the path of a file.
    #[arg(long, value_name = "NAME|FILE", default_value = "tofud")]
    network: String,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Detours that a simulation may draw; with more, it takes fewer phases.
    #[arg(long, value_name = "N", default_value_t = 1e9, value_parser = detours)]
    most_detours: f64,
}

/// What ends a phase.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Ends {
    /// A barrier of all cores.
    Barrier,
    /// A reduction whose result all have.
    Allreduce,
    /// An exchange with six neighbours.
    Halo,
    /// Panel, broadcast and update with shrinking work, as in LINPACK.
    Linpack,
}

fn detours(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number.filter(|n| (1e3..=1e13).contains(n)).ok_or_else(|| format!("'{text}' is not from 1e3 to 1e13"))
}

/// A simulation that can be run for several numbers of nodes.
pub(super) struct Plan<'a> {
    options: &'a Options,
    pub model: Model,
    pub network: Network,
}

impl Options {
    /// Loads what is named.
    pub(super) fn plan(&self) -> Result<Plan<'_>, Failure> {
        let model = model::load(&self.model)?;
        model.check(self.cores_per_node)?;
        Ok(Plan { options: self, model, network: Network::load(&self.network)? })
    }
}

impl Plan<'_> {
    /// The setup for a number of nodes.
    pub(super) fn setup(&self, nodes: u32) -> Setup {
        let o = self.options;
        let sync = match o.sync {
            Ends::Barrier => Sync::Barrier,
            Ends::Allreduce => Sync::Allreduce,
            Ends::Halo => Sync::Halo,
            Ends::Linpack => Sync::Linpack,
        };
        Setup {
            nodes,
            cores: o.cores_per_node,
            grain: o.grain.ns(),
            imbalance: o.imbalance,
            phases: o.phases,
            meet: self.network.meet(sync, nodes, o.bytes),
            seed: o.seed,
        }
    }

    /// Runs a setup, or as many of its phases as are allowed; gives what it was and the outcome.
    pub(super) fn run(&self, model: &Model, setup: &Setup) -> Result<(Setup, Outcome), Failure> {
        setup.check()?;
        let setup = affordable(model, setup, self.options.most_detours)?;
        let outcome = simulate(model, &setup)?;
        Ok((setup, outcome))
    }

    /// What ends a phase, in words.
    pub(super) fn words(&self) -> String {
        let ends = match self.options.sync {
            Ends::Barrier => "a barrier".to_owned(),
            Ends::Allreduce => format!("a reduction of {} bytes", self.options.bytes),
            Ends::Halo => format!("exchanges of {} bytes with neighbours", self.options.bytes),
            Ends::Linpack => format!("panels of {} bytes", self.options.bytes),
        };
        format!("{} of work, then {ends}", self.options.grain)
    }
}

/// A number of nodes, in words.
pub(super) fn nodes(number: u32) -> String {
    if number == 1 { "1 node".to_owned() } else { format!("{number} nodes") }
}

/// A note where detours that change nothing were not drawn.
pub(super) fn spared(some: &[u32]) -> Option<String> {
    let sizes: Vec<String> = some.iter().map(|&n| nodes(n)).collect();
    (!sizes.is_empty()).then(|| {
        format!(
            "Short detours are drawn where they may be the last of a phase only: {}; the chance that others change \
             anything is below {:.0e}.",
            sizes.join(", "),
            scale::CHANCE
        )
    })
}

/// A note when fewer phases ran than were asked for.
pub(super) fn shortened(ran: &[(u32, u64)], asked: u64) -> Option<String> {
    let few: Vec<String> = ran.iter().filter(|r| r.1 < asked).map(|&(n, p)| format!("{} {p}", nodes(n))).collect();
    (!few.is_empty()).then(|| {
        format!(
            "Of {asked} phases as many ran as --most-detours allows: {}; bounds tell how sure they are.",
            few.join(", ")
        )
    })
}
