//! Prefetches: those of the hardware, which follow streams of accesses, and those of instructions.

use fxscope_base::{Cycle, Signal, Signals};

use super::{Cause, Hierarchy};
use crate::chip::{Holder, Request};
use crate::pointer::Pointer;
use crate::prefetch::Requests;
use crate::tags::Line;

impl Hierarchy {
    /// The hardware's prefetches that follow an access.
    #[inline(always)]
    pub(super) fn follow_stream(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) {
        if let Some(requests) = self.prefetcher.access(self.line_of(pointer.addr), pointer.steering) {
            self.prefetch(requests, t, signals);
        }
    }

    #[inline(never)]
    fn prefetch(&mut self, r: Requests, t: Cycle, signals: &mut Signals) {
        for i in 0..r.l2.1 {
            let line = r.l2.0.wrapping_add_signed(r.step * i64::from(i));
            let Some(line) = self.translated(line) else { return self.prefetcher.stop(r.entry) };
            signals.add(Signal::L2HwpfStreamPf, 1);
            let hit = self.prefetch_l2(line, t, Cause::HardwarePrefetch, signals);
            self.chip.expect(self.seat.cmg, line.wrapping_add_signed(r.step));
            self.prefetcher.l2_answered(r.entry, hit);
        }
        for i in 0..r.l1.1 {
            let line = r.l1.0.wrapping_add_signed(r.step * i64::from(i));
            let Some(line) = self.translated(line) else { return self.prefetcher.stop(r.entry) };
            signals.add(Signal::L1HwpfStreamPf, 1);
            if self.prefetch_l1(line, t, Cause::HardwarePrefetch, signals) {
                self.prefetcher.l1_missed_l2(r.entry);
            }
        }
    }

    /// Brings a line into L2; returns whether it was there.
    fn prefetch_l2(&mut self, line: u64, t: Cycle, cause: Cause, signals: &mut Signals) -> bool {
        let asked = self.requests.book(t);
        let request = Request { line, at: asked + self.request, cause, holder: Holder::None, write: false };
        let (answer, left) = self.chip.read(self.seat, request, signals);
        self.give_up(left, signals);
        answer.missed.is_none()
    }

    /// A prefetched line's copy is exclusive but unwritten: the store that comes makes it dirty.
    /// Returns whether the line comes from memory.
    fn prefetch_l1(&mut self, line: u64, t: Cycle, cause: Cause, signals: &mut Signals) -> bool {
        if self.l1d.find(line as usize & self.l1d_set_mask, line).is_some() {
            return false;
        }
        self.refill(line, t, false, cause, signals).has(Line::FROM_MEMORY)
    }

    /// A prefetch instruction for `addr` into cache level `level` (1 or 2), whose flow ran at `t`.
    /// It is dropped when the page is not in the TLB.
    pub fn prefetch_instruction(&mut self, pointer: Pointer, level: u8, t: Cycle, signals: &mut Signals) {
        let Some(line) = self.translated(self.line_of(pointer.addr)) else { return };
        match level {
            1 => self.prefetch_l1(line, t, Cause::SoftwarePrefetch, signals),
            _ => self.prefetch_l2(line, t, Cause::SoftwarePrefetch, signals),
        };
    }
}
