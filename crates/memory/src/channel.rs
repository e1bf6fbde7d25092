//! A DRAM channel: a read takes one slot, a write `write_cost` slots.

use fxscope_calendar::{Cycle, LineBus};

/// The channel of a memory.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Channel {
    slots: LineBus,
    /// Time of writes that is not booked as whole slots yet, in 1/256 slot.
    write_debt: u64,
    write_slots_256: u64,
}

/// The bandwidth of a memory.
pub(crate) struct Rate {
    /// Bytes per second, reads and writes together.
    pub(crate) peak: u64,
    /// The share of it that a stream of reads reaches, percent.
    pub(crate) read_efficiency: f64,
    /// Time of a line's write as a multiple of a read's.
    pub(crate) write_cost: f64,
}

impl Channel {
    /// An idle channel for lines of `line_bytes` bytes.
    pub(crate) fn new(rate: &Rate, line_bytes: u32, core_hz: u64) -> Channel {
        let bytes_per_cycle = rate.peak as f64 / core_hz as f64;
        let period = f64::from(line_bytes) / bytes_per_cycle / (rate.read_efficiency / 100.0);
        Channel {
            slots: LineBus::new((period * 256.0) as u64),
            write_debt: 0,
            write_slots_256: (rate.write_cost * 256.0) as u64,
        }
    }

    /// No request before `now` follows.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now: Cycle) {
        self.slots.advance(now);
    }

    /// Reads a line that is requested at `t`. Returns when its transfer starts.
    #[inline(always)]
    pub(crate) fn read(&mut self, t: Cycle) -> Cycle {
        self.slots.book(t)
    }

    /// Writes a line from `t` on.
    pub(crate) fn write(&mut self, t: Cycle) {
        self.write_debt += self.write_slots_256;
        while self.write_debt >= 256 {
            self.slots.book(t);
            self.write_debt -= 256;
        }
    }
}
