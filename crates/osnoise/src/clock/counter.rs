//! The processor's counter.

use super::Clock;

/// The counter that runs at a constant rate: TSC on x86-64, CNTVCT on AArch64. Other processors use the system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter;

impl Counter {
    /// Its name.
    #[cfg(target_arch = "x86_64")]
    pub const NAME: &'static str = "TSC";
    /// Its name.
    #[cfg(target_arch = "aarch64")]
    pub const NAME: &'static str = "CNTVCT_EL0";
    /// Its name.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub const NAME: &'static str = "CLOCK_MONOTONIC";
}

impl Clock for Counter {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn now(&mut self) -> u64 {
        // SAFETY: the instruction only reads the counter, which Linux leaves readable to programs.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::x86_64::_rdtsc()
        }
    }

    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn now(&mut self) -> u64 {
        let ticks: u64;
        // SAFETY: the instruction only reads the counter, which Linux leaves readable to programs.
        #[allow(unsafe_code)]
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn now(&mut self) -> u64 {
        super::monotonic()
    }
}
