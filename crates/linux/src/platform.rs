//! What the modelled machine tells a program about itself.

use fxscope_aarch64::cpu::IdRegisters;

/// One processor as the operating system numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuPlace {
    /// CPU number (`sched_getaffinity`, `getcpu`).
    pub cpu: u32,
    /// The memory node it belongs to.
    pub node: u32,
}

/// The properties of a machine that a program can see through Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Largest SVE vector length in bytes, which is also the one a program starts with: 16, 32 or 64.
    pub vector_bytes: usize,
    /// The processors, in ascending order of their numbers. At least one.
    pub cpus: Vec<CpuPlace>,
    /// Frequency of the virtual counter (`CNTFRQ_EL0`) in Hz.
    pub counter_hz: u64,
    /// Identification and cache-type registers.
    pub id: IdRegisters,
    /// `AT_HWCAP`, bits as in Linux's `asm/hwcap.h`.
    pub hwcap: u64,
    /// `AT_HWCAP2`.
    pub hwcap2: u64,
    /// Base page size in bytes (`AT_PAGESZ`). Must be [`fxscope_aarch64::memory::PAGE`].
    pub page_bytes: u64,
    /// Memory the program may use, in bytes.
    pub memory_bytes: u64,
}
