//! What belongs to one thread of a process.

use fxscope_aarch64::Cpu;

use crate::signal::{AltStack, SigInfo};

/// One thread: registers and what Linux keeps for it.
pub struct Thread {
    /// Registers.
    pub cpu: Cpu,
    /// Thread number.
    pub tid: u32,
    /// Blocked signals.
    pub(crate) mask: u64,
    /// The mask to put back once `rt_sigsuspend` is over.
    pub(crate) mask_after_suspend: Option<u64>,
    /// Signals waiting to be delivered.
    pub(crate) pending: Vec<SigInfo>,
    pub(crate) alt_stack: AltStack,
    /// Name as `prctl` sets it, zero-terminated.
    pub(crate) name: [u8; 16],
    /// CPUs it may run on, as a bit mask over CPU numbers.
    pub(crate) affinity: Vec<u64>,
    /// Asleep until this simulated time in ns.
    pub(crate) sleep_until: Option<u64>,
}

impl Thread {
    pub(crate) fn new(cpu: Cpu, tid: u32, affinity: Vec<u64>, program: &[u8]) -> Thread {
        let base = program.rsplit(|&b| b == b'/').next().unwrap_or_default();
        let mut name = [0; 16];
        let len = base.len().min(15);
        name[..len].copy_from_slice(&base[..len]);
        Thread {
            cpu,
            tid,
            mask: 0,
            mask_after_suspend: None,
            pending: Vec::new(),
            alt_stack: AltStack::NONE,
            name,
            affinity,
            sleep_until: None,
        }
    }

    /// The lowest-numbered CPU the thread may run on: where it runs.
    #[must_use]
    pub fn cpu_number(&self) -> u32 {
        let word = self.affinity.iter().position(|&w| w != 0).unwrap_or(0);
        word as u32 * 64 + self.affinity.get(word).map_or(0, |w| w.trailing_zeros() % 64)
    }
}
