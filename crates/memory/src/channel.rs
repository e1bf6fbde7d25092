//! What lines of a memory go over: reads take a slot each, writes more or less.

use fxscope_calendar::{Cycle, LineBus};

/// The channel of a memory.
pub(crate) struct Channel {
    slots: LineBus,
    /// Time that writes have used beyond whole slots, in 1/256 slot.
    write_debt: u64,
    write_slots_256: u64,
}

/// What a memory delivers.
pub(crate) struct Rate {
    /// Bytes a second, reads and writes together.
    pub(crate) peak: u64,
    /// What of that a stream of reads reaches, percent.
    pub(crate) read_efficiency: f64,
    /// Time a line's write takes, as a multiple of a read's.
    pub(crate) write_cost: f64,
}

impl Channel {
    /// An idle channel for lines of so many bytes.
    pub(crate) fn new(rate: &Rate, line_bytes: u32, core_hz: u64) -> Channel {
        let bytes_per_cycle = rate.peak as f64 / core_hz as f64;
        let period = f64::from(line_bytes) / bytes_per_cycle / (rate.read_efficiency / 100.0);
        Channel {
            slots: LineBus::new((period * 256.0) as u64),
            write_debt: 0,
            write_slots_256: (rate.write_cost * 256.0) as u64,
        }
    }

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub(crate) fn advance(&mut self, now: Cycle) {
        self.slots.advance(now);
    }

    /// A line is read that is asked for at `t`; returns when its transfer starts.
    #[inline(always)]
    pub(crate) fn read(&mut self, t: Cycle) -> Cycle {
        self.slots.book(t)
    }

    /// A line is written from `t` on.
    pub(crate) fn write(&mut self, t: Cycle) {
        self.write_debt += self.write_slots_256;
        while self.write_debt >= 256 {
            self.slots.book(t);
            self.write_debt -= 256;
        }
    }
}
