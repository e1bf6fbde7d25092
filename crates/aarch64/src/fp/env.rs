//! Control and status.

use serde::{Deserialize, Serialize};

use super::format::Float;

/// Floating-point control (FPCR) and status (FPSR).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FpEnv {
    /// FPCR.
    pub fpcr: u32,
    /// FPSR: cumulative exception flags and QC.
    pub fpsr: u32,
    /// Count of operations on elements with a subnormal operand or result that is not flushed: arithmetic, comparisons and
    /// conversions. (They use integer arithmetic, so they can be counted there.) The count wraps around: only its increments, and
    /// whether it is 0, have a meaning. Operands of vectors are checked only after the first one.
    pub denormals: u32,
}

/// How a value between two numbers of the format is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// To nearest, ties to even (RN).
    TiesEven,
    /// Towards plus infinity (RP).
    Plus,
    /// Towards minus infinity (RM).
    Minus,
    /// Towards zero (RZ).
    Zero,
    /// To nearest, ties away from zero (FCVTA*, FRINTA).
    TiesAway,
    /// Inexact results get an odd significand (FCVTXN).
    Odd,
}

impl FpEnv {
    /// FPSR.IOC: invalid operation.
    pub const IOC: u32 = 1 << 0;
    /// FPSR.DZC: division by zero.
    pub const DZC: u32 = 1 << 1;
    /// FPSR.OFC: overflow.
    pub const OFC: u32 = 1 << 2;
    /// FPSR.UFC: underflow.
    pub const UFC: u32 = 1 << 3;
    /// FPSR.IXC: inexact.
    pub const IXC: u32 = 1 << 4;
    /// FPSR.IDC: a denormal input was flushed to zero.
    pub const IDC: u32 = 1 << 7;
    /// FPSR.QC: an integer operation saturated.
    pub const QC: u32 = 1 << 27;

    /// FPCR.FZ16: flush-to-zero for half precision.
    pub const FZ16: u32 = 1 << 19;
    /// FPCR.RMode.
    pub const RMODE: u32 = 3 << 22;
    /// FPCR.FZ: flush-to-zero for single and double precision.
    pub const FZ: u32 = 1 << 24;
    /// FPCR.DN: every NaN result is the default NaN.
    pub const DN: u32 = 1 << 25;
    /// FPCR.AHP: the alternative half-precision format (conversions only).
    pub const AHP: u32 = 1 << 26;

    /// Sets cumulative flags.
    #[inline(always)]
    pub fn raise(&mut self, flags: u32) {
        self.fpsr |= flags;
    }
    /// Returns whether any of the given FPCR bits is set.
    #[inline(always)]
    #[must_use]
    pub fn control(&self, bits: u32) -> bool {
        self.fpcr & bits != 0
    }
    /// Returns whether an exception could matter beyond the flags in FPSR, which is the case unless denormals of all formats are
    /// flushed. (The traps that FPCR could enable do not exist here.) If not, a processor may commit earlier (A64FX
    /// microarchitecture manual, table 4-2).
    #[must_use]
    pub fn judges_exceptions(&self) -> bool {
        !(self.control(FpEnv::FZ) && self.control(FpEnv::FZ16))
    }
    /// Returns the rounding mode that FPCR.RMode selects.
    #[inline(always)]
    #[must_use]
    pub fn rounding(&self) -> Rounding {
        match self.fpcr >> 22 & 3 {
            0 => Rounding::TiesEven,
            1 => Rounding::Plus,
            2 => Rounding::Minus,
            _ => Rounding::Zero,
        }
    }
    /// Returns whether denormal numbers of format `F` are flushed to zero.
    #[inline(always)]
    #[must_use]
    pub(super) fn flushes<F: Float>(&self) -> bool {
        self.control(if F::BITS == 16 { FpEnv::FZ16 } else { FpEnv::FZ })
    }
    /// Counts an operation with a denormal operand or result.
    #[inline(always)]
    pub(super) fn count_denormal(&mut self) {
        self.denormals = self.denormals.wrapping_add(1);
    }
    /// Performs an operation, which counts once however many of its numbers are denormal.
    #[inline(always)]
    pub(super) fn counted<T>(&mut self, operation: impl FnOnce(&mut FpEnv) -> T) -> T {
        let before = self.denormals;
        let result = operation(self);
        if self.denormals != before {
            self.denormals = before.wrapping_add(1);
        }
        result
    }
    /// Returns the environment for a conversion from or to half precision: FZ16 does not apply.
    pub(super) fn for_conversion(&self) -> FpEnv {
        FpEnv { fpcr: self.fpcr & !FpEnv::FZ16, ..*self }
    }
}
