//! The registers of the HPC extension that user code can access: hardware prefetch control, sector cache, hardware barrier.
//!
//! Prefetch and sector registers keep what is written to them and change no result; a timing model reads them through
//! [`HpcExtension`]. A new thread inherits its parent's values, and a process keeps them when it executes another program. A
//! window of the hardware barrier gives access to a blade that cores share: an access stops the block
//! ([`crate::cpu::Trap::Window`]), and the owner of the blades performs it. The operating system decides whether user code may
//! use the registers. Here it may, as on systems set up for computing, unless the sector cache is disabled. The kernel's
//! registers of the same extension (`…_EL1`) are undefined for user code, as all such registers are.
//!
//! Source: A64FX specification, Fujitsu HPC Extension, version 1. It gives no reset values. For the prefetch registers, zero
//! selects the default operation (`V` = 0, distance 0). A sector register that holds zero counts as not set: no sector is then
//! limited.

use serde::{Deserialize, Serialize};

/// A register of the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpcRegister {
    /// Name when read. The barrier windows are named differently when written (`IMP_BARRIER_BST_SYNC_W…`).
    pub name: &'static str,
    /// `op0`, `op1`, `CRn`, `CRm`, `op2`, as in `S3_3_C11_C4_0`.
    pub encoding: [u32; 5],
    /// Value at the start of a thread.
    pub reset: u64,
    /// Writable bits; the others read as zero.
    pub writable: u64,
    /// Its purpose.
    pub meaning: &'static str,
}

/// Number of register pairs for prefetch injection.
pub const INJECTIONS: usize = 8;
/// Number of windows to barrier blades.
pub const BARRIER_WINDOWS: usize = 4;
/// Number of registers.
pub const COUNT: usize = 3 + 2 * INJECTIONS + BARRIER_WINDOWS;

/// Indices of the registers in [`REGISTERS`].
mod place {
    use super::INJECTIONS;
    pub const STREAM_DETECT: usize = 0;
    pub const L1_SECTORS: usize = 1;
    pub const L2_SECTORS: usize = 2;
    pub const INJECTION_CTRL: usize = 3;
    pub const INJECTION_DISTANCE: usize = INJECTION_CTRL + INJECTIONS;
    pub const BARRIER_WINDOW: usize = INJECTION_DISTANCE + INJECTIONS;
}

/// Returns a mask of bits `high` to `low`.
const fn field(high: u32, low: u32) -> u64 {
    u64::MAX >> (63 - high) & u64::MAX << low
}

/// `V`, `L1PF_DIS`, `L2PF_DIS`, `L1W`, `L2W`, `L1_DIST`, `L2_DIST`.
const STREAM_DETECT_BITS: u64 = field(63, 63) | field(59, 58) | field(55, 54) | field(27, 24) | field(19, 16);
/// `l1_sec3_max` to `l1_sec0_max`.
const L1_SECTOR_BITS: u64 = field(14, 12) | field(10, 8) | field(6, 4) | field(2, 0);
/// `l2_sec1_max`, `l2_sec0_max`.
const L2_SECTOR_BITS: u64 = field(12, 8) | field(4, 0);
/// `V`, `L1W`, `L2W`, `A`, `T`, `SWW`, `PFQ_OFFSET`.
const INJECTION_CTRL_BITS: u64 = field(63, 58) | field(24, 2);
/// `L1PF_DISTANCE`, `L2PF_DISTANCE`.
const INJECTION_DISTANCE_BITS: u64 = field(56, 34) | field(24, 2);
/// `VALUE`.
const BARRIER_WINDOW_BITS: u64 = field(0, 0);

const fn register(
    name: &'static str,
    (crn, crm, op2): (u32, u32, u32),
    writable: u64,
    meaning: &'static str,
) -> HpcRegister {
    HpcRegister { name, encoding: [3, 3, crn, crm, op2], reset: 0, writable, meaning }
}

/// Eight registers that differ in `op2`.
macro_rules! numbered {
    ($prefix:literal, $suffix:literal, $crn:literal, $crm:literal, $bits:expr, $meaning:literal; $($n:literal)+) => {
        [$(register(concat!($prefix, $n, $suffix), ($crn, $crm, $n), $bits, $meaning)),+]
    };
}

const INJECTION_CTRL: [HpcRegister; INJECTIONS] = numbered!("IMP_PF_INJECTION_CTRL", "_EL0", 11, 6,
    INJECTION_CTRL_BITS, "prefetch injection: validity, strength, kind, offset of the queue entry"; 0 1 2 3 4 5 6 7);
const INJECTION_DISTANCE: [HpcRegister; INJECTIONS] = numbered!("IMP_PF_INJECTION_DISTANCE", "_EL0", 11, 7,
    INJECTION_DISTANCE_BITS, "prefetch injection: distances for L1 and L2"; 0 1 2 3 4 5 6 7);
const BARRIER_WINDOW: [HpcRegister; BARRIER_WINDOWS] = numbered!("IMP_BARRIER_LBSY_SYNC_W", "_EL0", 15, 15,
    BARRIER_WINDOW_BITS, "window to a barrier blade: LBSY when read, BST when written"; 0 1 2 3);

/// All registers.
pub const REGISTERS: [HpcRegister; COUNT] = {
    let mut all = [register(
        "IMP_PF_STREAM_DETECT_CTRL_EL0",
        (11, 4, 0),
        STREAM_DETECT_BITS,
        "stream detection: validity, off switches, strength, distances",
    ); COUNT];
    all[place::L1_SECTORS] =
        register("IMP_SCCR_L1_EL0", (11, 8, 2), L1_SECTOR_BITS, "maximum ways of each of the four sectors of L1D");
    all[place::L2_SECTORS] = register(
        "IMP_SCCR_VSCCR_L2_EL0",
        (15, 8, 2),
        L2_SECTOR_BITS,
        "maximum ways of each of the two sectors of L2 that the core uses",
    );
    let mut i = 0;
    while i < INJECTIONS {
        all[place::INJECTION_CTRL + i] = INJECTION_CTRL[i];
        all[place::INJECTION_DISTANCE + i] = INJECTION_DISTANCE[i];
        i += 1;
    }
    let mut i = 0;
    while i < BARRIER_WINDOWS {
        all[place::BARRIER_WINDOW + i] = BARRIER_WINDOW[i];
        i += 1;
    }
    all
};

/// An access to a window of the hardware barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowAccess {
    /// A read of `LBSY`.
    Read {
        /// Number of the window, below [`BARRIER_WINDOWS`].
        window: u8,
        /// The destination register, by decoder index.
        into: u8,
    },
    /// A write of the core's bit of `BST`.
    Write {
        /// Number of the window, below [`BARRIER_WINDOWS`].
        window: u8,
        /// The bit.
        value: bool,
    },
}

/// Returns the number of the barrier window at index `place` of [`REGISTERS`], if it is one.
#[must_use]
pub fn window_at(place: usize) -> Option<u8> {
    place.checked_sub(place::BARRIER_WINDOW).map(|window| window as u8)
}

/// The fields of `IMP_PF_STREAM_DETECT_CTRL_EL0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamDetect {
    /// `V`: whether the other fields are valid.
    pub valid: bool,
    /// `L1PF_DIS`.
    pub l1_disabled: bool,
    /// `L2PF_DIS`.
    pub l2_disabled: bool,
    /// `L1W`.
    pub l1_weak: bool,
    /// `L2W`.
    pub l2_weak: bool,
    /// `L1_DIST`, lines of 256 bytes, at most 15; 0: the core's default.
    pub l1_dist: u64,
    /// `L2_DIST`, KiB, at most 15; 0: the core's default.
    pub l2_dist: u64,
}

impl From<StreamDetect> for u64 {
    fn from(s: StreamDetect) -> u64 {
        let flags = [(s.valid, 63), (s.l1_disabled, 59), (s.l2_disabled, 58), (s.l1_weak, 55), (s.l2_weak, 54)];
        let flags = flags.iter().fold(0, |all, &(set, bit)| all | u64::from(set) << bit);
        flags | (s.l1_dist << 24 | s.l2_dist << 16) & STREAM_DETECT_BITS
    }
}

impl From<u64> for StreamDetect {
    fn from(word: u64) -> StreamDetect {
        let bit = |n: u32| word >> n & 1 == 1;
        StreamDetect {
            valid: bit(63),
            l1_disabled: bit(59),
            l2_disabled: bit(58),
            l1_weak: bit(55),
            l2_weak: bit(54),
            l1_dist: word >> 24 & 15,
            l2_dist: word >> 16 & 15,
        }
    }
}

/// The values of the registers of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HpcExtension {
    values: [u64; COUNT],
    /// Whether user code may use the registers of the sector cache.
    sectors: bool,
}

impl Default for HpcExtension {
    fn default() -> HpcExtension {
        HpcExtension { values: REGISTERS.map(|r| r.reset), sectors: true }
    }
}

impl HpcExtension {
    /// Returns the register at index `place` of [`REGISTERS`]; `None` when user code may not use it.
    #[must_use]
    pub fn read(&self, place: usize) -> Option<u64> {
        self.allows(place).then_some(self.values[place])
    }
    /// Writes the writable bits of the register at index `place` of [`REGISTERS`]; `None` when user code may not use it.
    pub fn write(&mut self, place: usize, value: u64) -> Option<()> {
        self.allows(place).then(|| self.values[place] = value & REGISTERS[place].writable)
    }

    /// Returns whether user code may use the register at index `place`.
    fn allows(&self, place: usize) -> bool {
        self.sectors || !matches!(place, place::L1_SECTORS | place::L2_SECTORS)
    }

    /// Denies user code the registers of the sector cache (`el0ae` of `IMP_SCCR_CTRL_EL1` is 0): an access traps, and Linux ends
    /// the program with SIGILL.
    pub fn disable_sectors(&mut self) {
        self.sectors = false;
    }

    /// Sets `IMP_SCCR_L1_EL0` on behalf of the kernel: the maximum ways of each sector of L1D.
    pub fn set_l1_sector_ways(&mut self, ways: [u8; 4]) {
        let value = ways.iter().rev().fold(0, |value, &most| value << 4 | u64::from(most));
        self.values[place::L1_SECTORS] = value & L1_SECTOR_BITS;
    }

    /// Sets the register behind `IMP_SCCR_VSCCR_L2_EL0` on behalf of the kernel: the maximum ways of the two sectors of L2.
    pub fn set_l2_sector_ways(&mut self, ways: [u8; 2]) {
        let [first, second] = ways.map(u64::from);
        self.values[place::L2_SECTORS] = (second << 8 | first) & L2_SECTOR_BITS;
    }

    /// Returns the maximum ways of each sector of L1D (`IMP_SCCR_L1_EL0`); `None` when the register is 0, that is, not set.
    #[must_use]
    pub fn l1_sector_ways(&self) -> Option<[u8; 4]> {
        let value = self.values[place::L1_SECTORS];
        (value != 0).then(|| [0, 4, 8, 12].map(|low| (value >> low & 7) as u8))
    }

    /// Returns the maximum ways of the two sectors of L2 (`IMP_SCCR_VSCCR_L2_EL0`); `None` when it is 0, that is, not set.
    #[must_use]
    pub fn l2_sector_ways(&self) -> Option<[u8; 2]> {
        let value = self.values[place::L2_SECTORS];
        (value != 0).then(|| [0, 8].map(|low| (value >> low & 31) as u8))
    }

    /// Returns `IMP_SCCR_VSCCR_L2_EL0`, which all cores of a CMG share.
    #[must_use]
    pub fn shared_by_cmg(&self) -> u64 {
        self.values[place::L2_SECTORS]
    }

    /// Sets `IMP_SCCR_VSCCR_L2_EL0` to the value that another core of the CMG has written.
    pub fn set_shared_by_cmg(&mut self, value: u64) {
        self.values[place::L2_SECTORS] = value;
    }

    /// `IMP_PF_STREAM_DETECT_CTRL_EL0`.
    #[must_use]
    pub fn stream_detect(&self) -> u64 {
        self.values[place::STREAM_DETECT]
    }
    /// Writes `IMP_PF_STREAM_DETECT_CTRL_EL0`.
    pub fn set_stream_detect(&mut self, value: u64) {
        self.write(place::STREAM_DETECT, value);
    }
    /// `IMP_PF_INJECTION_CTRLn_EL0`, `n` below [`INJECTIONS`].
    #[must_use]
    pub fn injection_ctrl(&self, n: usize) -> u64 {
        self.values[place::INJECTION_CTRL..][..INJECTIONS][n]
    }
    /// `IMP_PF_INJECTION_DISTANCEn_EL0`, `n` below [`INJECTIONS`].
    #[must_use]
    pub fn injection_distance(&self, n: usize) -> u64 {
        self.values[place::INJECTION_DISTANCE..][..INJECTIONS][n]
    }
}
