//! Instruction fetch.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Cause, CoreMemory, Hierarchy};
use crate::chip::{Held, Holder, Request};
use crate::reserve::{delay, first_free, hold};
use crate::tags::Line;

impl<const TIMED: bool> Hierarchy<'_, TIMED> {
    /// Fetches the block at `addr` at `t`. Returns when its bytes can be read.
    #[inline(always)]
    pub fn fetch(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let line = self.core.line_of(addr);
        signals.add(Signal::L1iCache, 1);
        if line == self.core.fetched {
            return t;
        }
        self.core.fetched = line;
        self.fetch_line(addr, t, signals)
    }

    #[cold]
    #[inline(never)]
    fn fetch_line(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let (t, physical) = self.translate_code(addr, t, signals);
        let line = self.core.line_of(physical);
        let set = line as usize & self.core.l1i_set_mask;
        if let Some(slot) = self.core.l1i.find_again(set, line) {
            self.core.l1i.touch(slot);
            return t.max(self.core.l1i.line(slot).ready());
        }
        signals.add(Signal::L1iCacheRefill, 1);
        let buffer = first_free::<TIMED>(&mut self.core.code_mshrs, t);
        let at = buffer.at + delay::<TIMED>(self.core.request);
        let joins = self.core.sectors.in_l2(self.core.sectors.code());
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::Code, write: false, joins };
        let (answer, evicted) = self.chip.read::<TIMED>(self.core.id, request, signals);
        self.back_invalidate(evicted, signals);
        if answer.own_copy_lost {
            self.core.downgrade::<TIMED>(line, at, signals);
        }
        let ready = self.core.fill::<TIMED>(answer.ready);
        self.core.outstanding.code(&answer, ready, signals);
        hold::<TIMED>(&mut self.core.code_mshrs, buffer, buffer.at, ready);
        let (slot, victim) = self.core.l1i.insert(set, line, Line::arriving(ready), t);
        self.core.l1i.remember(line, slot);
        if let Some(victim) = victim {
            let l2_slot_hint = self.chip.remembered(self.core.id.cmg, victim.line);
            self.chip.clean_eviction(self.core.id, Held { line: victim.line, l2_slot_hint }, Holder::Code);
        }
        ready
    }
}

impl CoreMemory {
    /// Removes a line from the instruction cache.
    pub(super) fn invalidate_code(&mut self, line: u64) {
        if self.l1i.remove(line as usize & self.l1i_set_mask, line).is_some() {
            self.fetched = u64::MAX;
        }
    }
}
