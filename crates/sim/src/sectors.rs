//! The sector cache of a run: its setup by the kernel, and the registers that the program writes.

use std::ops::Range;

use fxscope_aarch64::hpc::HpcExtension;
use fxscope_machine::Spec;
use fxscope_memory::Hierarchy;
use fxscope_memory::sectors::{Assignment, SECTORS};

/// Address ranges of the program with their sectors; they override the tags of pointers.
pub(crate) type SectorData = Vec<(Range<u64>, u8)>;

/// The registers of the HPC extension as the kernel leaves them to the first program.
pub(crate) fn registers(spec: &Spec) -> HpcExtension {
    let s = &spec.sector_cache;
    let mut registers = HpcExtension::default();
    if !s.enabled {
        registers.disable_sectors();
    }
    // The machine's description is checked for ways that fit the registers.
    registers.set_l1_sector_ways(s.l1_ways.map(|ways| ways as u8));
    registers.set_l2_sector_ways(s.l2_ways.map(|ways| ways as u8));
    registers
}

/// The sector ways that a core's caches have.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct SectorWays {
    l1: Option<[u8; SECTORS]>,
    l2: Option<[u8; 2]>,
}

/// How accesses get their sectors, as the kernel sets it up.
pub(crate) fn assignment(spec: &Spec) -> Assignment {
    let s = &spec.sector_cache;
    if !s.enabled {
        return Assignment::default();
    }
    // The machine's description is checked for numbers that fit.
    Assignment::new(s.tagged_pointers, s.default_sector as u8, s.assign as u8, s.mode == 0)
}

impl SectorWays {
    /// The registers may have been written, or another thread's may have taken their place.
    pub(crate) fn learn(&mut self, registers: &HpcExtension, memory: &mut Hierarchy<'_>) {
        let (l1, l2) = (registers.l1_sector_ways(), registers.l2_sector_ways());
        if (l1, l2) != (self.l1, self.l2) {
            (self.l1, self.l2) = (l1, l2);
            memory.limit_sectors(l1, l2);
        }
    }
}
