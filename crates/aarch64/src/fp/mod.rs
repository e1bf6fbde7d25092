//! Floating-point arithmetic as the Arm architecture defines it.
//!
//! Values are bit patterns (`u16`, `u32`, `u64`). Every operation takes the environment, whose control
//! bits select rounding, default NaN and flush-to-zero, and whose status bits it sets.

/// Floating-point control (FPCR) and status (FPSR).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FpEnv {
    /// FPCR.
    pub fpcr: u32,
    /// FPSR: cumulative exception flags and QC.
    pub fpsr: u32,
}
