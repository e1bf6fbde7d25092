//! Bulk-synchronous phases under noise, detour by detour, from one node to millions of cores.
//!
//! In each phase every core computes for the grain, then cores synchronise. A detour delays the program on its core; a
//! detour of a waiting core costs nothing. Cost: tens of nanoseconds for each drawn detour; if nodes have their own
//! clocks, also nodes × phases comparisons. Where all cores end a phase together, only the last one counts: detours
//! that cannot be on it are dropped at once, or not drawn at all.

mod barrier;
mod barrier_sparse;
mod bounds;
mod detours;
mod halo;
mod outcome;
mod program;
mod tile;

use bounds::Bounds;
pub use bounds::CHANCE;
pub use detours::{Detour, Position, Streams};
pub use outcome::{Interval, Outcome};
pub use program::{Replay, replay, replay_affordable};

use crate::model::Model;
use crate::random::Stream;

/// Maximum number of nodes.
pub const MOST_NODES: u32 = 1 << 24;
/// Maximum number of phases.
pub const MOST_PHASES: u64 = 1 << 32;

/// Longest run without noise, seconds: times are whole nanoseconds in 64 bits, and noise may prolong a run many times.
const LONGEST: f64 = 1e8;

/// How cores synchronise at the end of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseEnd {
    /// All wait for the last one, then for `cost`.
    All {
        /// Time of the operation without noise, nanoseconds.
        cost: u64,
    },
    /// Each node waits for its neighbours in a periodic grid, whose messages take `cost`.
    Neighbours {
        /// Time of an exchange without noise, nanoseconds.
        cost: u64,
        /// The grid; its product is the number of nodes.
        grid: [u32; 3],
    },
    /// One in `every` phases ends as with `All`, the others as with `Neighbours`.
    Some {
        /// Time of the collective without noise, nanoseconds.
        cost: u64,
        /// Time of an exchange without noise, nanoseconds.
        halo: u64,
        /// The grid of neighbours.
        grid: [u32; 3],
        /// Phases per collective.
        every: u64,
    },
    /// Columns of nodes take turns computing a panel, which takes `cost` and for which all others wait; the nodes of a
    /// column wait for each other. The work falls as the square of the remaining part, from three times the grain, as
    /// in LINPACK.
    Panel {
        /// Time of panel and broadcast without noise, nanoseconds.
        cost: u64,
        /// Rows and columns of nodes.
        grid: [u32; 2],
    },
}

/// The run to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// Nodes.
    pub nodes: u32,
    /// Computing cores per node.
    pub cores: u32,
    /// Computation of each core per phase, nanoseconds.
    pub grain: u64,
    /// How much more work the slowest node may have than the fastest, as a share; drawn uniformly for each node, the
    /// same in all phases.
    pub imbalance: f64,
    /// Phases.
    pub phases: u64,
    /// How phases end.
    pub end: PhaseEnd,
    /// Seed of all draws.
    pub seed: u64,
}

impl Setup {
    /// Checks that it can be run.
    ///
    /// # Errors
    /// If a value is out of bounds.
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
                "{} phases of this grain take {:.1e} s; the maximum is {LONGEST:.0e} s",
                self.phases,
                self.seconds()
            ));
        }
        if !(0.0..=10.0).contains(&self.imbalance) {
            return Err(format!("imbalance {}; 0 to 10 are possible", self.imbalance));
        }
        let grid: u64 = match self.end {
            PhaseEnd::All { .. } => u64::from(self.nodes),
            PhaseEnd::Neighbours { grid, .. } | PhaseEnd::Some { grid, .. } => {
                grid.iter().map(|&n| u64::from(n)).product()
            }
            PhaseEnd::Panel { grid, .. } => grid.iter().map(|&n| u64::from(n)).product(),
        };
        if grid != u64::from(self.nodes) {
            return Err(format!("the grid has {grid} nodes, not {}", self.nodes));
        }
        if matches!(self.end, PhaseEnd::Some { every: 0, .. }) {
            return Err("a collective every 0 phases; it must be 1 or more".to_owned());
        }
        Ok(())
    }

    /// Returns the computation of each node per phase, nanoseconds.
    #[must_use]
    pub fn works(&self) -> Vec<u64> {
        let draws = Stream::new(self.seed).of(u64::MAX);
        let more = |node: u32| match self.imbalance > 0.0 {
            true => (self.grain as f64 * self.imbalance * draws.unit(u64::from(node))).round() as u64,
            false => 0,
        };
        (0..self.nodes).map(|node| self.grain + more(node)).collect()
    }

    /// Returns the expected number of detours in a run, for the run time without noise.
    #[must_use]
    pub fn detours(&self, model: &Model) -> f64 {
        let rate: f64 = model.sources.iter().map(|s| s.node_rate(self.cores)).sum();
        rate * f64::from(self.nodes) * self.seconds()
    }

    /// Returns the number of these that a run draws if, except with probability [`CHANCE`], the others cannot change
    /// the result; `None` if all are drawn.
    #[must_use]
    pub fn needed(&self, model: &Model) -> Option<f64> {
        Bounds::new(model, self).map(|bounds| bounds.detours)
    }

    /// Approximate run time without noise, seconds.
    fn seconds(&self) -> f64 {
        let cost = match self.end {
            PhaseEnd::All { cost }
            | PhaseEnd::Neighbours { cost, .. }
            | PhaseEnd::Panel { cost, .. }
            | PhaseEnd::Some { cost, .. } => cost,
        };
        (self.grain + cost) as f64 * self.phases as f64 / 1e9
    }

    /// Time in which `nodes` nodes have about `detours` detours, at most a quarter of all, nanoseconds.
    fn cell(&self, model: &Model, nodes: usize, detours: f64) -> u64 {
        let rate = self.detours(model) / self.seconds() / f64::from(self.nodes) * nodes as f64;
        let some = detours / rate.max(1e-9);
        (some.min(self.seconds() / 4.0 + self.grain as f64 / 1e9) * 1e9).max(1000.0) as u64
    }
}

/// Runs `setup` under the noise of `model`. The result does not depend on the number of threads.
///
/// # Errors
/// If the model leaves a core no time, or the setup is out of bounds.
pub fn simulate(model: &Model, setup: &Setup) -> Result<Outcome, String> {
    setup.check()?;
    let streams = Streams::new(model, setup.cores, setup.seed)?;
    Ok(match setup.end {
        PhaseEnd::All { cost } => match Bounds::new(model, setup) {
            Some(bounds) => barrier_sparse::Run::new(&streams, bounds, model, setup).all(setup, cost),
            None => barrier::Run::new(streams, model, setup).all(setup, cost),
        },
        _ => halo::Run::new(streams, model, setup).all(setup),
    })
}

/// Returns the setup with as many phases as about `most` detours allow. Phases under noise take longer and draw more
/// than [`Setup::detours`] and [`Setup::needed`] say; a short run determines how many.
///
/// # Errors
/// If fewer than 30 phases are possible, or when [`simulate`] refuses.
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
