//! Pre-decode: reads of the instruction buffer, several instructions per cycle (manual 4.3 and 4.4, stage PD1).

use fxscope_calendar::Cycle;
use fxscope_machine::spec::Frontend;

use crate::bind::BoundUop;

/// The share of a read that an instruction takes: instructions, MOVPRFX pairs and instructions after packing, a byte
/// each. A pair counts with its second instruction.
#[must_use]
pub const fn share(packed: bool) -> u32 {
    if packed { 0x01_01_02 } else { 0x01_00_01 }
}

/// The highest bit of each count: it is set when the count exceeds its limit.
const OVER: u32 = 0x80_80_80;

/// The reads of stage PD1. Times are those at which the instructions of a read reach stage D without stalls.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Predecode {
    /// The last read.
    at: Cycle,
    /// What it has taken, counted up to [`OVER`].
    taken: u32,
    /// A read that has taken nothing.
    empty: u32,
}

impl Predecode {
    /// Nothing has been read.
    pub fn new(spec: &Frontend) -> Predecode {
        let limits = [spec.predecode_insts, spec.predecode_pairs, spec.predecode_packed];
        let empty = limits.iter().enumerate().map(|(i, limit)| (0x7f - limit) << (8 * i)).sum();
        Predecode { at: 0, taken: OVER, empty }
    }

    /// The last read.
    #[inline(always)]
    pub fn at(&self) -> Cycle {
        self.at
    }

    /// Reads the instruction of `uop`, which is in the buffer from `arrived` on, with the previous instructions if
    /// there is room; otherwise in a new read, not before `not_before`. Further micro-operations come with their
    /// instruction.
    #[inline(always)]
    pub fn read(&mut self, uop: &BoundUop, arrived: Cycle, not_before: Cycle) -> Cycle {
        self.taken += uop.read_share;
        if self.taken & OVER != 0 || arrived > self.at {
            self.at = (self.at + 1).max(arrived).max(not_before);
            self.taken = self.empty + uop.read_share;
        }
        self.at
    }

    /// Moves the state `cycles` later.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.at += cycles;
    }

    /// Ends the last read: its last instruction is a taken branch.
    #[inline(always)]
    pub fn end_read(&mut self) {
        self.taken = OVER;
    }
}
