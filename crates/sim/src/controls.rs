//! Control registers of a processor, as far as timing depends on them.

use fxscope_aarch64::Cpu;
use fxscope_aarch64::hpc::HpcExtension;
use fxscope_memory::PrefetchRegisters;

/// The control registers of a thread: trapped floating-point exceptions, and those of prefetch and sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Controls {
    pub(crate) judges_exceptions: bool,
    pub(crate) registers: HpcExtension,
}

impl Controls {
    pub(crate) fn of(cpu: &Cpu) -> Controls {
        Controls { judges_exceptions: cpu.fp.judges_exceptions(), registers: cpu.hpc }
    }

    /// Returns the registers of the prefetcher.
    pub(crate) fn prefetch(&self) -> PrefetchRegisters {
        PrefetchRegisters {
            stream_detect: self.registers.stream_detect(),
            injection_ctrl: std::array::from_fn(|n| self.registers.injection_ctrl(n)),
            injection_distance: std::array::from_fn(|n| self.registers.injection_distance(n)),
        }
    }
}
