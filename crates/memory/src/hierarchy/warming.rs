//! Functional warming: accesses of instructions that are not timed keep caches, translations and prefetch streams as timed ones
//! would have left them.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;

use super::{Hierarchy, Wants};
use crate::pointer::Pointer;

impl Hierarchy<'_, false> {
    /// An access to `bytes` bytes at `pointer`, all at `t`.
    #[inline(always)]
    pub fn touch(&mut self, pointer: Pointer, bytes: u64, write: bool, t: Cycle, signals: &mut Signals) {
        self.touch_line(pointer, write, t, signals);
        let last = pointer.addr.wrapping_add(bytes.max(1) - 1);
        if self.core.line_of(last) != self.core.line_of(pointer.addr) {
            self.touch_further(pointer, last, write, t, signals);
        }
    }

    #[inline(always)]
    fn touch_line(&mut self, pointer: Pointer, write: bool, t: Cycle, signals: &mut Signals) {
        let place = self.translate(pointer, t, signals);
        self.access(&place, t, Wants { write, replay_period: 0 }, signals);
    }

    /// The lines behind the first one, up to that of address `last`.
    #[cold]
    #[inline(never)]
    fn touch_further(&mut self, pointer: Pointer, last: u64, write: bool, t: Cycle, signals: &mut Signals) {
        let shift = self.core.line_shift;
        for line in self.core.line_of(pointer.addr) + 1..=self.core.line_of(last) {
            self.touch_line(pointer.at(line << shift), write, t, signals);
        }
    }

    /// The instructions from `start` to before `end` are fetched at `t`.
    #[inline(always)]
    pub fn touch_code(&mut self, start: u64, end: u64, t: Cycle, signals: &mut Signals) {
        let shift = self.core.line_shift;
        for line in self.core.line_of(start)..=self.core.line_of(end.wrapping_sub(1)) {
            self.fetch((line << shift).max(start), t, signals);
        }
    }
}
