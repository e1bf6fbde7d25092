//! Networks: the cost of synchronisation without noise.
//!
//! A network is a text file (`data/networks/`): LogGP latency, overhead and bandwidth, hops from the topology, and what
//! the network can do without the cores. Costs are those of the usual algorithms: recursive doubling along each
//! dimension for barriers and small messages, scatter and gather for large ones.

use std::path::Path;

use serde::Deserialize;

use crate::model::{Evidence, read};
use crate::program::Collective;
use crate::scale::PhaseEnd;
use crate::time::Time;

const BUILT_IN: &[(&str, &str)] = &[
    ("tofud", include_str!("../../../data/networks/tofud.toml")),
    ("infiniband-ddr", include_str!("../../../data/networks/infiniband-ddr.toml")),
    ("ethernet", include_str!("../../../data/networks/ethernet.toml")),
    ("ideal", include_str!("../../../data/networks/ideal.toml")),
];

/// Version of the format.
pub const VERSION: u32 = 1;

/// A network.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    version: u32,
    /// Description.
    pub title: String,
    /// How nodes are connected.
    pub topology: Topology,
    /// From send to receipt of an empty message between neighbours, without `overhead`.
    pub latency: Time,
    /// Additional latency per hop.
    pub hop: Time,
    /// Time that a core spends on a message, at either end.
    pub overhead: Time,
    /// Bandwidth of one message, bytes per second.
    pub bandwidth: f64,
    /// Bandwidth of all concurrent messages of a node, bytes per second.
    pub injection: f64,
    /// Largest reduction that the network does without the cores, bytes; 0 for none.
    #[serde(default)]
    pub offload_bytes: u64,
    /// Barrier of the cores of a node.
    pub node_barrier: Time,
    /// Source of the numbers.
    pub source: String,
    /// Evidence for them.
    pub evidence: Evidence,
}

/// How nodes are connected.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Topology {
    /// A torus with these sides; fewer nodes occupy its most cubic part.
    Torus {
        /// Lengths of the sides.
        sides: Vec<u32>,
    },
    /// A tree of switches without bottlenecks.
    Tree {
        /// Ports of a switch.
        radix: u32,
    },
}

/// What ends a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// A barrier of all cores.
    Barrier,
    /// A reduction with the result on all nodes.
    Allreduce,
    /// An exchange with six neighbours.
    Halo,
    /// Panel, broadcast and update, as in LINPACK.
    Linpack,
}

impl Sync {
    /// What ends a phase by name, each with what it does.
    pub const NAMED: &[(&str, Sync, &str)] = &[
        ("barrier", Sync::Barrier, "A barrier of all cores"),
        ("allreduce", Sync::Allreduce, "A reduction whose result all cores receive"),
        ("halo", Sync::Halo, "An exchange with six neighbours"),
        ("linpack", Sync::Linpack, "Panel, broadcast and update with shrinking work, as in LINPACK"),
    ];
}

impl Network {
    /// Loads a network: a built-in one by name, or a file by path.
    ///
    /// # Errors
    /// The error, its location, and how to fix it.
    pub fn load(name_or_path: &str) -> Result<Network, String> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_path) {
            return Network::parse(text, name_or_path);
        }
        if !name_or_path.ends_with(".toml") && !Path::new(name_or_path).exists() {
            let known: Vec<_> = names().collect();
            return Err(format!(
                "there is no network '{name_or_path}'; built in are {}; for others give the path of a .toml file",
                known.join(", ")
            ));
        }
        Network::parse(&read(Path::new(name_or_path))?, name_or_path)
    }

    /// Parses a network; `name` is used in messages.
    ///
    /// # Errors
    /// The error, its location, and how to fix it.
    pub fn parse(text: &str, name: &str) -> Result<Network, String> {
        let network: Network = toml::from_str(text).map_err(|e| format!("{name}: {}", e.to_string().trim_end()))?;
        if network.version != VERSION {
            return Err(format!("{name}: version = {}; this program reads version {VERSION}", network.version));
        }
        let rates = [("bandwidth", network.bandwidth), ("injection", network.injection)];
        if let Some((key, rate)) = rates.into_iter().find(|(_, rate)| !(rate.is_finite() && *rate > 0.0)) {
            return Err(format!("{name}: {key} = {rate} must be above 0 bytes per second"));
        }
        match &network.topology {
            Topology::Torus { sides } if sides.is_empty() || sides.contains(&0) => {
                Err(format!("{name}: sides = {sides:?}; a torus needs at least one side, each 1 or more"))
            }
            Topology::Tree { radix } if *radix < 2 => {
                Err(format!("{name}: radix = {radix}; switches have 2 ports or more"))
            }
            _ => Ok(network),
        }
    }

    /// Rounds of recursive doubling among `nodes` nodes, and the total number of hops.
    #[must_use]
    pub fn rounds(&self, nodes: u32) -> (u32, u32) {
        match &self.topology {
            Topology::Torus { sides } => {
                let doubling = |side: u32| {
                    let distances = (0..32).map(|k| 1u32 << k).take_while(move |&d| d < side);
                    distances.map(move |d| d.min(side - d))
                };
                let all: Vec<u32> = shape(sides, nodes).into_iter().flat_map(doubling).collect();
                (all.len() as u32, all.iter().sum())
            }
            Topology::Tree { radix } => {
                let rounds = nodes.next_power_of_two().ilog2();
                // Partners in round k are 2^k apart; half of a switch's ports lead down.
                let down = f64::from(*radix / 2).max(2.0);
                let levels = |k: u32| (f64::from(k + 1) * 2f64.ln() / down.ln()).ceil().max(1.0) as u32;
                (rounds, (0..rounds).map(|k| 2 * levels(k) - 1).sum())
            }
        }
    }

    /// Returns the time of a message of `bytes` over `hops` hops, from the sender's call to the receiver's return,
    /// nanoseconds.
    #[must_use]
    pub fn message(&self, bytes: u64, hops: u32) -> f64 {
        let way = self.latency.0 + self.hop.0 * f64::from(hops.max(1) - 1);
        2.0 * self.overhead.0 + way + bytes as f64 / self.bandwidth * 1e9
    }

    /// Returns the time of a barrier of all cores of `nodes` nodes.
    #[must_use]
    pub fn barrier(&self, nodes: u32) -> f64 {
        self.node_barrier.0 + self.small(nodes, 0)
    }

    /// Returns the time of a reduction of `bytes` with the result on all nodes.
    #[must_use]
    pub fn allreduce(&self, nodes: u32, bytes: u64) -> f64 {
        let (rounds, _) = self.rounds(nodes);
        let large = 2.0 * (self.software(nodes, 0) + bytes as f64 / self.bandwidth * 1e9);
        let cost = self.small(nodes, bytes).min(if rounds == 0 { 0.0 } else { large });
        self.node_barrier.0 + cost
    }

    /// Returns the time of a broadcast of `bytes` from one node to all.
    #[must_use]
    pub fn broadcast(&self, nodes: u32, bytes: u64) -> f64 {
        let small = self.software(nodes, bytes);
        let large = 2.0 * (self.software(nodes, 0) + bytes as f64 / self.bandwidth * 1e9);
        small.min(large)
    }

    /// Returns the time of a concurrent exchange of `bytes` with each of six neighbours.
    #[must_use]
    pub fn halo(&self, nodes: u32, bytes: u64) -> f64 {
        if nodes == 1 {
            return self.node_barrier.0;
        }
        let together = 6.0 * bytes as f64 / self.injection * 1e9;
        let one = bytes as f64 / self.bandwidth * 1e9;
        self.node_barrier.0 + self.message(0, 1) + 10.0 * self.overhead.0 + together.max(one)
    }

    /// Returns the time of a collective of MPI to which each node contributes `bytes`.
    ///
    /// Gathers take their messages in turn, from partners that double the distance; of an exchange between all, the
    /// faster of pairwise messages and of rounds that forward half of the data (Bruck's algorithm) counts.
    #[must_use]
    pub fn collective(&self, kind: Collective, nodes: u32, bytes: u64) -> f64 {
        let others = f64::from(nodes.max(1) - 1);
        let start = self.software(nodes, 0);
        match kind {
            Collective::Barrier => self.barrier(nodes),
            Collective::Allreduce => self.allreduce(nodes, bytes),
            Collective::Reduce | Collective::Broadcast => self.broadcast(nodes, bytes),
            Collective::Gather | Collective::Allgather => start + others * bytes as f64 / self.bandwidth * 1e9,
            Collective::Alltoall => {
                let share = bytes as f64 * others / f64::from(nodes.max(1));
                let pairs = start + others * 2.0 * self.overhead.0 + share / self.injection * 1e9;
                pairs.min(self.software(nodes, bytes / 2))
            }
            Collective::Neighbours => self.halo(nodes, bytes.div_ceil(6)),
        }
    }

    /// Time of rounds in which pairs of nodes exchange `bytes`, offloaded to the network where possible.
    fn small(&self, nodes: u32, bytes: u64) -> f64 {
        if bytes > self.offload_bytes || self.offload_bytes == 0 {
            return self.software(nodes, bytes);
        }
        let (rounds, hops) = self.rounds(nodes);
        f64::from(rounds) * self.latency.0 + f64::from(hops - rounds) * self.hop.0
    }

    fn software(&self, nodes: u32, bytes: u64) -> f64 {
        let (rounds, hops) = self.rounds(nodes);
        f64::from(rounds) * self.message(bytes, 1) + f64::from(hops - rounds) * self.hop.0
    }

    /// Returns the end of phases with `sync`, and messages of `bytes`.
    #[must_use]
    pub fn phase_end(&self, sync: Sync, nodes: u32, bytes: u64) -> PhaseEnd {
        let cost = |ns: f64| ns.round() as u64;
        match sync {
            Sync::Barrier => PhaseEnd::All { cost: cost(self.barrier(nodes)) },
            Sync::Allreduce => PhaseEnd::All { cost: cost(self.allreduce(nodes, bytes)) },
            Sync::Halo => PhaseEnd::Neighbours { cost: cost(self.halo(nodes, bytes)), grid: grid(nodes) },
            Sync::Linpack => {
                let grid = square(nodes);
                PhaseEnd::Panel { cost: cost(self.broadcast(grid[1], bytes)), grid }
            }
        }
    }
}

/// Names of the built-in networks.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|network| network.0)
}

/// Sides of a part of a torus with `nodes` nodes: short sides are used fully first, long ones as evenly as possible.
fn shape(sides: &[u32], nodes: u32) -> Vec<u32> {
    let mut order: Vec<u32> = sides.to_vec();
    order.sort_unstable();
    let mut left = f64::from(nodes);
    let count = order.len();
    let side = |(i, side): (usize, u32)| {
        let even = left.powf(1.0 / (count - i) as f64);
        let taken = f64::from(side).min(even.ceil()).max(1.0);
        // A machine larger than the torus grows along its longest side.
        let taken = if i + 1 == count { left.ceil() } else { taken };
        left = (left / taken).max(1.0);
        taken as u32
    };
    order.into_iter().enumerate().map(side).collect()
}

/// Returns a periodic three-dimensional grid of `nodes` nodes, as cubic as possible, longest side first.
#[must_use]
pub fn grid(nodes: u32) -> [u32; 3] {
    let divisors = |n: u32| (1..=n.isqrt()).filter(move |d| n.is_multiple_of(*d)).flat_map(move |d| [d, n / d]);
    let surface = |[x, y, z]: [u32; 3]| {
        let [x, y, z] = [x, y, z].map(u64::from);
        x * y + y * z + z * x
    };
    let cuts = divisors(nodes).flat_map(|z| divisors(nodes / z).map(move |y| [nodes / z / y, y, z]));
    let best = cuts.filter(|[x, y, z]| x >= y && y >= z).min_by_key(|&sides| surface(sides));
    best.unwrap_or([nodes, 1, 1])
}

/// Rows and columns for `nodes` nodes, as square as possible, with no more rows than columns.
#[must_use]
pub fn square(nodes: u32) -> [u32; 2] {
    let rows = (1..=nodes.isqrt()).rev().find(|d| nodes.is_multiple_of(*d)).unwrap_or(1);
    [rows, nodes / rows.max(1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tofud_message_takes_what_was_measured() {
        let tofud = Network::load("tofud").unwrap();
        // MPI one-way latency of an empty message: 1.05 us; 2 MiB: 338 us at 6.35 GB/s plus latency.
        assert!((tofud.message(0, 1) / 1050.0 - 1.0).abs() < 0.01, "{}", tofud.message(0, 1));
        assert!((tofud.message(2 << 20, 1) / 338_000.0 - 1.0).abs() < 0.03, "{}", tofud.message(2 << 20, 1));
    }

    #[test]
    fn a_whole_torus_takes_the_rounds_of_all_its_sides() {
        let tofud = Network::load("tofud").unwrap();
        // 24, 23 and 24 nodes: five rounds each; 3: two; 2: one. Distances 1, 2, 4, 8, then the rest in the other
        // direction.
        assert_eq!(tofud.rounds(158_976), (5 + 5 + 5 + 2 + 1 + 1, 23 + 22 + 23 + 2 + 1 + 1));
        assert_eq!(tofud.rounds(1), (0, 0));
        assert!((tofud.barrier(158_976) - (1049.0 + 19.0 * 490.0 + 53.0 * 75.0)).abs() < 1e-6);
    }

    #[test]
    fn costs_rise_with_nodes_and_bytes() {
        for name in names().filter(|name| *name != "ideal") {
            let network = Network::load(name).unwrap();
            let sizes = [1, 2, 12, 48, 384, 1024, 9216, 158_976];
            let barriers: Vec<f64> = sizes.iter().map(|&n| network.barrier(n)).collect();
            assert!(barriers.is_sorted(), "{name}: {barriers:?}");
            let bytes = [0, 8, 24, 25, 4096, 1 << 20, 1 << 26];
            let sums: Vec<f64> = bytes.iter().map(|&b| network.allreduce(1024, b)).collect();
            assert!(sums.is_sorted(), "{name}: {sums:?}");
            let halos: Vec<f64> = bytes.iter().map(|&b| network.halo(1024, b)).collect();
            assert!(halos.is_sorted(), "{name}: {halos:?}");
        }
    }

    #[test]
    fn small_reductions_run_in_the_network_and_larger_ones_on_cores() {
        let tofud = Network::load("tofud").unwrap();
        assert!((tofud.allreduce(1024, 24) - tofud.barrier(1024)).abs() < 1e-9);
        assert!(tofud.allreduce(1024, 32) > 1.5 * tofud.barrier(1024));
    }

    #[test]
    fn collectives_rise_with_nodes_and_bytes_and_cost_one_node_no_message() {
        for name in names().filter(|name| *name != "ideal") {
            let network = Network::load(name).unwrap();
            for (call, kind) in Collective::NAMES {
                let sizes = [2, 12, 48, 384, 1024, 9216, 158_976];
                let costs: Vec<f64> = sizes.iter().map(|&n| network.collective(kind, n, 4096)).collect();
                assert!(costs.is_sorted(), "{name} {call}: {costs:?}");
                let costs: Vec<f64> =
                    [0, 8, 4096, 1 << 26].iter().map(|&b| network.collective(kind, 1024, b)).collect();
                assert!(costs.is_sorted(), "{name} {call}: {costs:?}");
                let one = network.collective(kind, 1, 1 << 20);
                assert!(one == 0.0 || one == network.node_barrier.0, "{name} {call}: {one}");
            }
        }
    }

    #[test]
    fn grids_hold_all_nodes_and_are_nearly_cubic() {
        assert_eq!(grid(64), [4, 4, 4]);
        assert_eq!(grid(7), [7, 1, 1]);
        for nodes in [1, 2, 12, 384, 1000, 158_976] {
            assert_eq!(grid(nodes).iter().product::<u32>(), nodes);
            assert_eq!(square(nodes).iter().product::<u32>(), nodes);
        }
        let [x, y, z] = grid(158_976);
        assert!(x < 2 * z, "{x} {y} {z}");
    }

    #[test]
    fn bad_networks_are_refused_with_the_key() {
        let text = BUILT_IN[0].1;
        for (from, to, why) in [
            ("latency = \"0.49us\"", "latency = \"-1us\"", "negative"),
            ("hop =", "hopp =", "hopp"),
            ("bandwidth = 6.35e9", "bandwidth = 0.0", "bandwidth"),
            ("version = 1", "version = 2", "version"),
            ("[24, 23, 24, 2, 3, 2]", "[]", "sides"),
        ] {
            let error = Network::parse(&text.replace(from, to), "test").unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
