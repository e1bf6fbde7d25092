//! Memory tiers: the table of `machine.toml`, and a tier as one value.

use super::{GIB, MIB, Tables};
use crate::schema::Rule::Range;
use crate::schema::table;

table! {
    /// Memory tiers: memory nodes without cores, such as CXL memory or the memory of another node. Their numbers follow those of the
    /// nodes with cores. Each list has a value for each of the names.
    MemoryTiers {
        /// Names of the tiers, separated by commas. Empty: the machine has none.
        names: String; inert "options and notes use the names; the model counts nodes",
        /// Load-to-use latency of an integer load that a tier answers, for any core.
        latency_ns: Vec<u64> => Range(1, 100_000); unit "ns",
        /// Most bytes read from a tier per second.
        read_bytes_per_second: Vec<u64> => Range(100_000_000, 100_000_000_000_000); unit "bytes/s",
        /// Most bytes written to a tier per second, at the same time.
        write_bytes_per_second: Vec<u64> => Range(100_000_000, 100_000_000_000_000); unit "bytes/s",
        /// Most bytes read and written per second, both together.
        total_bytes_per_second: Vec<u64> => Range(100_000_000, 100_000_000_000_000); unit "bytes/s",
        /// Memory of a tier.
        bytes: Vec<u64> => Range(64 * MIB, 1024 * GIB); unit "bytes",
        /// Distance of a tier from all other nodes as firmware reports it to Linux.
        distances: Vec<u64> => Range(11, 254),
    }
}

/// A memory tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTier {
    /// Its name: letters, digits, `-` and `_`, a letter first.
    pub name: String,
    /// Load-to-use latency of an integer load that it answers, for any core, ns.
    pub latency_ns: u64,
    /// Most bytes read per second.
    pub read_bytes_per_second: u64,
    /// Most bytes written per second.
    pub write_bytes_per_second: u64,
    /// Most bytes read and written per second.
    pub total_bytes_per_second: u64,
    /// Its memory, bytes.
    pub bytes: u64,
    /// Its distance from all other nodes.
    pub distance: u64,
}

impl MemoryTiers {
    /// Returns the names of the tiers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.split(',').map(str::trim).filter(|name| !name.is_empty())
    }

    /// Returns the tiers, in the order of their nodes. Those for which a list has no value are left out; the checks of a machine refuse
    /// such lists.
    #[must_use]
    pub fn tiers(&self) -> Vec<MemoryTier> {
        let tier = |(i, name): (usize, &str)| {
            Some(MemoryTier {
                name: name.to_owned(),
                latency_ns: *self.latency_ns.get(i)?,
                read_bytes_per_second: *self.read_bytes_per_second.get(i)?,
                write_bytes_per_second: *self.write_bytes_per_second.get(i)?,
                total_bytes_per_second: *self.total_bytes_per_second.get(i)?,
                bytes: *self.bytes.get(i)?,
                distance: *self.distances.get(i)?,
            })
        };
        self.names().enumerate().filter_map(tier).collect()
    }

    /// Returns the keys of the lists and their values.
    #[must_use]
    pub fn lists(&self) -> [(&'static str, &Vec<u64>); 6] {
        [
            ("latency_ns", &self.latency_ns),
            ("read_bytes_per_second", &self.read_bytes_per_second),
            ("write_bytes_per_second", &self.write_bytes_per_second),
            ("total_bytes_per_second", &self.total_bytes_per_second),
            ("bytes", &self.bytes),
            ("distances", &self.distances),
        ]
    }

    /// Adds a tier.
    pub fn add(&mut self, tier: &MemoryTier) {
        if !self.names.is_empty() {
            self.names.push(',');
        }
        self.names.push_str(&tier.name);
        self.latency_ns.push(tier.latency_ns);
        self.read_bytes_per_second.push(tier.read_bytes_per_second);
        self.write_bytes_per_second.push(tier.write_bytes_per_second);
        self.total_bytes_per_second.push(tier.total_bytes_per_second);
        self.bytes.push(tier.bytes);
        self.distances.push(tier.distance);
    }
}

impl MemoryTier {
    /// Returns whether `name` can name a tier.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        name != "all" && name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(part)
    }
}

impl Tables {
    /// Returns the number of memory nodes: those of the CMGs, then the tiers.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.topology.cmgs + self.memory_tiers.names().count() as u32
    }

    /// Returns the bytes of memory of all nodes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let tiers: u64 = self.memory_tiers.tiers().iter().map(|tier| tier.bytes).sum();
        u64::from(self.topology.cmgs) * self.topology.node_bytes + tiers
    }
}
