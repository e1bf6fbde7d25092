//! The machines that tests run on.

// Each test file uses a different part of this.
#![allow(dead_code)]

use fxscope_aarch64::cpu::IdRegisters;
use fxscope_aarch64::hpc::HpcExtension;
use fxscope_linux::perf::PmuEvent;
use fxscope_linux::{BarrierPlatform, Cache, CacheKind, CpuPlace, Platform};

/// Returns a machine with A64FX's identification registers and one core group in A64FX's numbering.
pub fn platform(vector_bytes: usize) -> Platform {
    Platform {
        vector_bytes,
        cpus: (12..24).map(|cpu| CpuPlace { cpu, node: 4 }).collect(),
        assistants: Vec::new(),
        tiers: Vec::new(),
        node_distances: [10, 20, 30],
        caches: vec![
            cache(1, CacheKind::Data, 65536, 4),
            cache(1, CacheKind::Instruction, 65536, 4),
            Cache { shared_by_node: true, ..cache(2, CacheKind::Unified, 8 << 20, 16) },
        ],
        core_hz: 2_000_000_000,
        counter_hz: 100_000_000,
        id: IdRegisters {
            midr: 0x461f_0010,
            mpidr: 0x8000_0000,
            ctr: 0x8666_8006,
            dczid: 6,
            isar0: 0x1021_1120,
            isar1: 0x1_0001,
            pfr0: 0x1_0111_1111,
            ..IdRegisters::default()
        },
        hpc: HpcExtension::default(),
        barrier: Some(BarrierPlatform { blades: 6, cores: 13, latency_ns: 60 }),
        pmu: vec![
            PmuEvent { number: 0x0008, name: "INST_RETIRED".to_owned() },
            PmuEvent { number: 0x0011, name: "CPU_CYCLES".to_owned() },
        ],
        hwcap: 0x41_5fff,
        hwcap2: 0,
        page_bytes: 65536,
        huge_page_bytes: vec![2 << 20],
        page_sizes: fxscope_linux::pages::PageSizes::all(65536),
        memory_bytes: 1 << 30,
    }
}

/// The same with all core groups of an FX1000 compute node, two of which have an assistant core.
pub fn compute_node() -> Platform {
    let one = platform(64);
    let caches = one.caches.iter().map(|&cache| Cache { kept_ways: if cache.shared_by_node { 2 } else { 0 }, ..cache });
    Platform {
        cpus: (12..60).map(|cpu| CpuPlace { cpu, node: 4 + (cpu - 12) / 12 }).collect(),
        assistants: (0..2).map(|cpu| CpuPlace { cpu, node: 4 + cpu }).collect(),
        caches: caches.collect(),
        ..one
    }
}

fn cache(level: u32, kind: CacheKind, bytes: u64, ways: u32) -> Cache {
    Cache { level, kind, bytes, ways, kept_ways: 0, line_bytes: 256, shared_by_node: false }
}
