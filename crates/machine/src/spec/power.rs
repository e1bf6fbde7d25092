//! Modes of power, and the power of the chip.

use crate::schema::Rule::Range;
use crate::schema::table;
use crate::spec::PowerMode;

table! {
    /// Modes of power, and the power of the chip: that of the counted energy, and what no event counts.
    ChipPower {
        /// The mode. Boost mode replaces clock.core_hz by boost_core_hz, eco mode clock.fma_pipes by eco_fma_pipes.
        mode: PowerMode,
        /// Core clock of boost mode, Hz. 0: the machine has no boost mode.
        boost_core_hz: u64 => Range(0, 10_000_000_000); unit "Hz"; option of mode "boost" or "boost-eco",
        /// Floating-point pipes of eco mode. 0: the machine has no eco mode.
        eco_fma_pipes: u32 => Range(0, 2); unit "pipes"; option of mode "eco" or "boost-eco",
        /// Power of the chip that no event counts, at the normal voltage, mW.
        base_mw: u64 => Range(0, 10_000_000); unit "mW"; inert "counts do not depend on it; the chip's power in reports does",
        /// Energy that a core takes less per cycle in eco mode, at the normal voltage, pJ.
        eco_cycle_pj: u64 => Range(0, 1_000_000); unit "pJ"; inert "counts do not depend on it; the chip's power in reports does",
        /// Energy at the voltage of boost mode, per mille of that at the normal one: of cores, L2 caches, and what no event counts.
        boost_energy_permille: u64 => Range(1, 10_000); unit "per mille"; inert "counts do not depend on it; the chip's power in reports does",
        /// Energy of the chip for the energy that EA_CORE and EA_L2 count, per mille.
        core_permille: u64 => Range(0, 10_000); unit "per mille"; inert "counts do not depend on it; the chip's power in reports does",
        /// … that EA_MEMORY counts.
        memory_permille: u64 => Range(0, 10_000); unit "per mille"; inert "counts do not depend on it; the chip's power in reports does",
    }
}

/// Per mille.
const PERMILLE: f64 = 1e3;
/// Picojoules of a joule.
const PJ_PER_J: f64 = 1e12;
/// Milliwatts of a watt.
const MW_PER_W: f64 = 1e3;

impl ChipPower {
    /// Returns the power of the chip that no event counts, in its mode, W.
    #[must_use]
    pub fn base_watts(&self) -> f64 {
        self.base_mw as f64 / MW_PER_W * self.voltage_factor()
    }

    /// Returns the energy that a core takes less per cycle than the events let expect, in its mode, J.
    #[must_use]
    pub fn saved_per_cycle(&self) -> f64 {
        if self.mode.is_eco() { self.eco_cycle_pj as f64 / PJ_PER_J * self.voltage_factor() } else { 0.0 }
    }

    /// Returns the chip's energy for a joule that EA_CORE or EA_L2 counts, in its mode, J.
    #[must_use]
    pub fn core_factor(&self) -> f64 {
        self.core_permille as f64 / PERMILLE * self.voltage_factor()
    }

    /// Returns the chip's energy for a joule that EA_MEMORY counts, J. Memory has a supply and a clock of its own.
    #[must_use]
    pub fn memory_factor(&self) -> f64 {
        self.memory_permille as f64 / PERMILLE
    }

    fn voltage_factor(&self) -> f64 {
        if self.mode.is_boost() { self.boost_energy_permille as f64 / PERMILLE } else { 1.0 }
    }
}
