//! The bus between a core's L1D cache and L2. Lines in, lines out and word of clean lines given up share it.

use fxscope_calendar::{Cycle, LineBus};
use fxscope_machine::Spec;

/// The bus as a calendar of short slots; a transfer takes several.
pub struct CacheBus {
    slots: LineBus,
    /// Slots of a line to L1, of one to L2, of word of a clean line given up.
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

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        self.slots.advance(now);
    }

    /// A line that is ready at `t` comes to L1; returns when all of it is there.
    #[inline(always)]
    pub fn fill(&mut self, t: Cycle) -> Cycle {
        self.slots.book_slots(t, self.fill).1
    }

    /// A line goes to L2 from `t` on; returns when its transfer starts and ends.
    pub fn write_back(&mut self, t: Cycle) -> (Cycle, Cycle) {
        self.slots.book_slots(t, self.write_back)
    }

    /// L2 is told at `t` that a clean line has been given up.
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
    fn a_line_takes_four_cycles_in_eight_out_and_a_clean_one_given_up_two() {
        let mut bus = bus();
        assert_eq!(bus.fill(1_000), 1_004);
        assert_eq!(bus.fill(1_000), 1_008);
        assert_eq!(bus.write_back(1_000), (1_008, 1_016));
        bus.release(1_000);
        assert_eq!(bus.fill(1_000), 1_022);
    }

    #[test]
    fn what_comes_later_leaves_room_for_what_is_ready_before() {
        let mut bus = bus();
        assert_eq!(bus.write_back(2_000), (2_000, 2_008));
        assert_eq!(bus.fill(1_000), 1_004);
    }
}
