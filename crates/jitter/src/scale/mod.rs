//! Bulk-synchronous phases under noise, detour by detour, from one node to millions of cores.
//!
//! In each phase every core computes for the grain, then cores synchronise. A detour holds the program up on its core while it
//! lasts; one that meets a core that waits costs nothing. Cost: some tens of nanoseconds for each detour that is drawn, and where
//! nodes have clocks of their own nodes × phases comparisons of some numbers each. Where all cores end a phase together, the last
//! one is all that counts: detours that cannot be on it are forgotten at once, or are not drawn.

mod bounds;
mod chunk;
mod clocks;
mod needed;
mod outcome;
mod streams;
mod together;

use bounds::Bounds;
pub use bounds::CHANCE;
pub use outcome::{Interval, Outcome};
pub use streams::{Detour, Position, Streams};

use crate::model::Model;
use crate::random::Stream;

/// Most nodes.
pub const MOST_NODES: u32 = 1 << 24;
/// Most phases.
pub const MOST_PHASES: u64 = 1 << 32;

/// Longest run without noise, seconds: times are whole nanoseconds in 64 bits, and noise may make it many times as long.
const LONGEST: f64 = 1e8;

/// How the cores of a phase meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meet {
    /// All wait for the last one, then for `cost`.
    All {
        /// What the operation takes without noise, nanoseconds.
        cost: u64,
    },
    /// Each node waits for its neighbours in a periodic grid, whose messages take `cost`.
    Neighbours {
        /// What an exchange takes without noise, nanoseconds.
        cost: u64,
        /// The grid; its product is the number of nodes.
        grid: [u32; 3],
    },
    /// One of `every` phases ends as with `All`, the others as with `Neighbours`.
    Some {
        /// What the collective takes without noise, nanoseconds.
        cost: u64,
        /// What an exchange does.
        halo: u64,
        /// The grid of neighbours.
        grid: [u32; 3],
        /// How many phases there are for each collective.
        every: u64,
    },
    /// Columns of nodes in turn work out a panel that all others wait for, which takes `cost`; the nodes of a column wait for
    /// each other. Work falls as the square of what is left, three times the grain at first, as in LINPACK.
    Panel {
        /// Panel and broadcast without noise, nanoseconds.
        cost: u64,
        /// Rows and columns of nodes.
        grid: [u32; 2],
    },
}

/// What is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Nodes.
    pub nodes: u32,
    /// Cores of each that compute.
    pub cores: u32,
    /// Computation of each core in a phase, nanoseconds.
    pub grain: u64,
    /// By what share the slowest node may have more to do than the fastest; drawn evenly for each node, the same in all
    /// phases.
    pub imbalance: f64,
    /// Phases.
    pub phases: u64,
    /// How they end.
    pub meet: Meet,
    /// Seed of all draws.
    pub seed: u64,
}

impl Setup {
    /// Tells whether it can be run.
    ///
    /// # Errors
    /// What is out of bounds.
    pub fn check(&self) -> Result<(), String> {
        let bounds = |name: &str, value: u64, most: u64| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(format!("{value} {name}; 1 to {most} are possible")),
        };
        bounds("nodes", u64::from(self.nodes), u64::from(MOST_NODES))?;
        bounds("phases", self.phases, MOST_PHASES)?;
        bounds("ns of grain", self.grain, 86_400_000_000_000)?;
        if self.seconds() > LONGEST {
            return Err(format!(
                "{} phases of this grain take {:.1e} s; {LONGEST:.0e} s are the most",
                self.phases,
                self.seconds()
            ));
        }
        if !(0.0..=10.0).contains(&self.imbalance) {
            return Err(format!("imbalance {}; 0 to 10 are possible", self.imbalance));
        }
        let grid: u64 = match self.meet {
            Meet::All { .. } => u64::from(self.nodes),
            Meet::Neighbours { grid, .. } | Meet::Some { grid, .. } => grid.iter().map(|&n| u64::from(n)).product(),
            Meet::Panel { grid, .. } => grid.iter().map(|&n| u64::from(n)).product(),
        };
        if grid != u64::from(self.nodes) {
            return Err(format!("the grid has {grid} nodes, not {}", self.nodes));
        }
        if matches!(self.meet, Meet::Some { every: 0, .. }) {
            return Err("a collective every 0 phases; 1 or more are possible".to_owned());
        }
        Ok(())
    }

    /// Computation of each node in a phase, nanoseconds.
    #[must_use]
    pub fn works(&self) -> Vec<u64> {
        let draws = Stream::new(self.seed).of(u64::MAX);
        let more = |node: u32| match self.imbalance > 0.0 {
            true => (self.grain as f64 * self.imbalance * draws.unit(u64::from(node))).round() as u64,
            false => 0,
        };
        (0..self.nodes).map(|node| self.grain + more(node)).collect()
    }

    /// How many detours there are expected to be in a run, if it takes no longer than without noise.
    #[must_use]
    pub fn detours(&self, model: &Model) -> f64 {
        let rate: f64 = model.sources.iter().map(|s| s.node_rate(self.cores)).sum();
        rate * f64::from(self.nodes) * self.seconds()
    }

    /// How many of these a run draws, where it is certain but for a chance of [`CHANCE`] that the others change nothing; `None`:
    /// all.
    #[must_use]
    pub fn needed(&self, model: &Model) -> Option<f64> {
        Bounds::new(model, self).map(|bounds| bounds.detours)
    }

    /// Seconds that it takes without noise, about.
    fn seconds(&self) -> f64 {
        let cost = match self.meet {
            Meet::All { cost } | Meet::Neighbours { cost, .. } | Meet::Panel { cost, .. } | Meet::Some { cost, .. } => {
                cost
            }
        };
        (self.grain + cost) as f64 * self.phases as f64 / 1e9
    }

    /// The time in which some nodes have about so many detours, but no more than a quarter of all, nanoseconds.
    fn cell(&self, model: &Model, nodes: usize, detours: f64) -> u64 {
        let rate = self.detours(model) / self.seconds() / f64::from(self.nodes) * nodes as f64;
        let some = detours / rate.max(1e-9);
        (some.min(self.seconds() / 4.0 + self.grain as f64 / 1e9) * 1e9).max(1000.0) as u64
    }
}

/// Runs `setup` under the noise of `model`. The same for any number of threads.
///
/// # Errors
/// When the model leaves a core no time, or the setup is out of bounds.
pub fn simulate(model: &Model, setup: &Setup) -> Result<Outcome, String> {
    setup.check()?;
    let streams = Streams::new(model, setup.cores, setup.seed)?;
    Ok(match setup.meet {
        Meet::All { cost } => match Bounds::new(model, setup) {
            Some(bounds) => needed::Run::new(&streams, bounds, model, setup).all(setup, cost),
            None => together::Run::new(streams, model, setup).all(setup, cost),
        },
        _ => clocks::Run::new(streams, model, setup).all(setup),
    })
}

/// The setup with as many of its phases as about `most` detours allow; phases under noise last longer and draw more than
/// [`Setup::detours`] and [`Setup::needed`] say, which a short run tells.
///
/// # Errors
/// When fewer than 30 phases are possible, and what [`simulate`] refuses.
pub fn affordable(model: &Model, setup: &Setup, most: f64) -> Result<Setup, String> {
    let each = setup.needed(model).unwrap_or_else(|| setup.detours(model)) / setup.phases as f64;
    if each * setup.phases as f64 * 4.0 <= most / 10.0 {
        return Ok(setup.clone());
    }
    let few = Setup { phases: setup.phases.min(3), ..setup.clone() };
    let refused = |needed: f64| {
        format!(
            "30 phases on {} nodes of {} cores draw about {needed:.1e} detours, more than {most:.1e}; \
             allow more of them, or take fewer nodes or a smaller grain",
            setup.nodes, setup.cores
        )
    };
    if each * 30.0 > most {
        return Err(refused(each * 30.0));
    }
    let outcome = simulate(model, &few)?;
    let each = each * outcome.slowdown();
    let phases = (most / each) as u64;
    match phases.min(setup.phases) {
        phases if phases < setup.phases.min(30) => Err(refused(each * 30.0)),
        phases => Ok(Setup { phases, ..setup.clone() }),
    }
}
