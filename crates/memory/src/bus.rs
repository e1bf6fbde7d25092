//! The bus between a core's L1D cache and L2. Fills, write-backs and clean-eviction notices share it.

use fxscope_calendar::{Cycle, LineBus};
use fxscope_machine::Spec;

/// The bus as a calendar of short slots. A transfer takes several.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct CacheBus {
    slots: LineBus,
    /// Slots of a fill, a write-back and a clean-eviction notice.
    fill: u64,
    write_back: u64,
    release: u64,
}

impl CacheBus {
    /// An idle bus.
    #[must_use]
    pub fn new(spec: &Spec) -> CacheBus {
        let t = &spec.l2_timing;
        let line = |bytes_per_cycle: u32| u64::from(spec.l1d.line_bytes.div_ceil(bytes_per_cycle));
        let (fill, write_back) = (line(t.fill_bytes_per_cycle), line(t.writeback_bytes_per_cycle));
        let slot = [fill, write_back, t.release].into_iter().fold(0, common);
        let slots = |cycles: Cycle| cycles / slot;
        CacheBus {
            slots: LineBus::new(slot * 256),
            fill: slots(fill),
            write_back: slots(write_back),
            release: slots(t.release),
        }
    }

    /// No transfer before `now` follows.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        self.slots.advance(now);
    }

    /// Transfers a line that is ready at `t` to L1. Returns when all of it has arrived.
    #[inline(always)]
    pub fn fill(&mut self, t: Cycle) -> Cycle {
        self.slots.book_slots(t, self.fill).1
    }

    /// Transfers a line to L2 from `t` on. Returns when the transfer starts and ends.
    pub fn write_back(&mut self, t: Cycle) -> (Cycle, Cycle) {
        self.slots.book_slots(t, self.write_back)
    }

    /// Notifies L2 at `t` of the eviction of a clean line.
    pub fn release(&mut self, t: Cycle) {
        for _ in 0..self.release {
            self.slots.book(t);
        }
    }
}

/// The greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus() -> CacheBus {
        CacheBus::new(&fxscope_machine::load("a64fx", &[]).expect("built in"))
    }

    #[test]
    fn a_fill_takes_four_cycles_a_write_back_eight_and_a_clean_eviction_two() {
        let mut bus = bus();
        assert_eq!(bus.fill(1_000), 1_004);
        assert_eq!(bus.fill(1_000), 1_008);
        assert_eq!(bus.write_back(1_000), (1_008, 1_016));
        bus.release(1_000);
        assert_eq!(bus.fill(1_000), 1_022);
    }

    #[test]
    fn a_later_transfer_leaves_room_for_one_that_is_ready_earlier() {
        let mut bus = bus();
        assert_eq!(bus.write_back(2_000), (2_000, 2_008));
        assert_eq!(bus.fill(1_000), 1_004);
    }
}
