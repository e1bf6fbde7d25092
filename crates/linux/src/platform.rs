//! The machine as programs see it.

use fxscope_aarch64::cpu::IdRegisters;
use fxscope_aarch64::hpc::HpcExtension;
use serde::{Deserialize, Serialize};

use crate::mm::pages::{self, NodeMask, PageSizes};
use crate::perf::PmuEvent;

/// One processor as the operating system numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPlace {
    /// CPU number (`sched_getaffinity`, `getcpu`).
    pub cpu: u32,
    /// The memory node it belongs to.
    pub node: u32,
}

/// A memory node without processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryNode {
    /// Its number.
    pub node: u32,
    /// Its memory in bytes.
    pub bytes: u64,
    /// Its distance from all other nodes, as firmware reports it to Linux.
    pub distance: u32,
}

/// The type of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache as programs find it in `/sys/devices/system/cpu`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// 1 for the level nearest to the core.
    pub level: u32,
    /// Its type.
    pub kind: CacheKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Associativity in ways.
    pub ways: u32,
    /// Ways (and their share of the size) that an assistant core reserves on nodes that have one. They appear as a separate cache
    /// of that core.
    pub kept_ways: u32,
    /// Bytes of a line.
    pub line_bytes: u32,
    /// Whether all processors of a memory node share it; otherwise each has its own.
    pub shared_by_node: bool,
}

/// The hardware barrier of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BarrierPlatform {
    /// Blades of each CMG.
    pub blades: u32,
    /// Maximum number of cores per CMG: bits of `BST`, at most 16.
    pub cores: u32,
    /// Time from the last write of a barrier to the change of `LBSY` and the event at the participating cores, ns.
    pub latency_ns: u64,
}

/// The properties of a machine that a program can see through Linux.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// Largest SVE vector length in bytes, which is also a program's initial one: 16, 32 or 64.
    pub vector_bytes: usize,
    /// The processors, in ascending order of their numbers. At least one.
    pub cpus: Vec<CpuPlace>,
    /// Assistant cores: the operating system runs on them, and programs may not. In ascending order, before all of `cpus`.
    pub assistants: Vec<CpuPlace>,
    /// Memory nodes without processors: their numbers ascend, and are larger than those of all others.
    pub tiers: Vec<MemoryNode>,
    /// Distances between memory nodes with processors, as firmware reports them to Linux (the SLIT of ACPI): of a node to itself, to the other
    /// one of its pair, and to all others. Nodes form pairs in the order of their numbers.
    pub node_distances: [u32; 3],
    /// The caches of each processor, those of level 1 first.
    pub caches: Vec<Cache>,
    /// Clock frequency of the cores in Hz.
    pub core_hz: u64,
    /// Frequency of the virtual counter (`CNTFRQ_EL0`) in Hz.
    pub counter_hz: u64,
    /// Identification and cache-type registers.
    pub id: IdRegisters,
    /// Initial values of the HPC extension's registers on every core.
    pub hpc: HpcExtension,
    /// The hardware barrier, if there is one, and its driver.
    pub barrier: Option<BarrierPlatform>,
    /// The events that the PMU counts, by ascending number.
    pub pmu: Vec<PmuEvent>,
    /// `AT_HWCAP`, bits as in Linux's `asm/hwcap.h`.
    pub hwcap: u64,
    /// `AT_HWCAP2`.
    pub hwcap2: u64,
    /// Base page size in bytes (`AT_PAGESZ`). Must be [`fxscope_guestmem::PAGE`].
    pub page_bytes: u64,
    /// Sizes of the huge pages in bytes.
    pub huge_page_bytes: Vec<u64>,
    /// Page sizes of segments in the model, which may differ from what the program sees.
    pub page_sizes: PageSizes,
    /// Memory the program may use, in bytes.
    pub memory_bytes: u64,
}

impl Platform {
    /// Returns the memory nodes, in ascending order.
    #[must_use]
    pub fn nodes(&self) -> Vec<u32> {
        let mut nodes = self.nodes_with_cpus();
        nodes.extend(self.tiers.iter().map(|tier| tier.node));
        nodes
    }

    /// Returns the memory nodes that have processors, in ascending order.
    #[must_use]
    pub fn nodes_with_cpus(&self) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.cpus.iter().map(|place| place.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Returns the memory nodes as a mask.
    #[must_use]
    pub fn node_mask(&self) -> NodeMask {
        pages::mask(&self.nodes())
    }

    /// Returns the memory node of a processor, if it exists.
    #[must_use]
    pub fn node_of(&self, cpu: u32) -> Option<u32> {
        // CPU numbers are nearly always consecutive.
        let first = self.cpus.first()?.cpu;
        let at_hand = self.cpus.get(cpu.wrapping_sub(first) as usize).filter(|place| place.cpu == cpu);
        at_hand.or_else(|| self.cpus.iter().find(|place| place.cpu == cpu)).map(|place| place.node)
    }

    /// Iterates over all online processors, including assistant cores, in ascending order.
    pub(crate) fn online(&self) -> impl Iterator<Item = CpuPlace> + '_ {
        self.assistants.iter().chain(&self.cpus).copied()
    }

    /// Returns the index of an assistant core among the assistant cores.
    pub(crate) fn assistant(&self, cpu: u32) -> Option<usize> {
        self.assistants.iter().position(|place| place.cpu == cpu)
    }

    /// Returns the bytes of memory of a node. A limit of the program's memory is one of the nodes with processors.
    pub(crate) fn bytes_of(&self, node: u32) -> u64 {
        if let Some(tier) = self.tiers.iter().find(|tier| tier.node == node) {
            return tier.bytes;
        }
        let of_tiers: u64 = self.tiers.iter().map(|tier| tier.bytes).sum();
        self.memory_bytes.saturating_sub(of_tiers) / self.nodes_with_cpus().len().max(1) as u64
    }

    /// Returns the distance of two memory nodes, by their indices in [`Platform::nodes`].
    pub(crate) fn distance(&self, from: usize, to: usize) -> u32 {
        let [own, pair, far] = self.node_distances;
        let first_tier = self.nodes_with_cpus().len();
        match (from, to) {
            _ if from == to => own,
            _ if from.max(to) >= first_tier => self.tiers[from.max(to) - first_tier].distance,
            _ if from / 2 == to / 2 => pair,
            _ => far,
        }
    }

    /// Returns the processors of a memory node on which programs may run, in ascending order.
    #[must_use]
    pub fn cpus_of(&self, node: u32) -> Vec<u32> {
        self.cpus.iter().filter(|place| place.node == node).map(|place| place.cpu).collect()
    }
}
