//! Functional warming: accesses of instructions that are not timed keep caches, translations and prefetch streams as timed ones
//! would have left them.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Hierarchy, Repeats, Wants};
use crate::pointer::Pointer;

impl Hierarchy<'_, false> {
    /// Accesses are not timed from now on: before, some may have been.
    pub fn begin_warming(&mut self) {
        let core = &mut *self.core;
        let follows = core.data_tlb.keeps_order();
        let sets = if follows { core.l1d_set_mask + 1 } else { 0 };
        core.repeats = Repeats::new(sets, core.line_shift, core.no_pages.shift);
    }

    /// The page of an address gets its frame, as if this core had translated the address first.
    pub fn give_frame(&mut self, address: u64) {
        let range = self.core.page_of(address);
        self.frame_of(address, range);
    }

    /// An access to `bytes` bytes at a pointer, all at `t`.
    #[inline(always)]
    pub fn touch(&mut self, pointer: u64, bytes: u64, write: bool, t: Cycle, signals: &mut Signals) {
        let line = pointer >> self.core.line_shift;
        let last = pointer.wrapping_add(bytes.max(1) - 1) >> self.core.line_shift;
        if line == last && self.core.repeats.has(line, write) {
            signals.add(Signal::L1dCache, 1);
        } else {
            self.touch_lines(pointer, bytes, write, t, signals);
        }
    }

    #[inline(never)]
    fn touch_lines(&mut self, pointer: u64, bytes: u64, write: bool, t: Cycle, signals: &mut Signals) {
        let pointer = Pointer::from(pointer);
        self.touch_line(pointer, write, t, signals);
        let last = pointer.addr.wrapping_add(bytes.max(1) - 1);
        if self.core.line_of(last) != self.core.line_of(pointer.addr) {
            self.touch_further(pointer, last, write, t, signals);
        }
    }

    #[inline(always)]
    fn touch_line(&mut self, pointer: Pointer, write: bool, t: Cycle, signals: &mut Signals) {
        let place = self.translate(pointer, t, signals);
        let core = &mut *self.core;
        if !core.prefetcher.watches(pointer.steering) {
            // What the access itself does to other lines of the set comes later.
            core.repeats.note(pointer.tagged() >> core.line_shift, write);
        }
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
