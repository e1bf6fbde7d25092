//! Instruction fetch.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Cause, Hierarchy};
use crate::chip::{Held, Holder, Request};
use crate::tags::Line;

impl Hierarchy {
    /// Fetches the block at `addr` at `t`. Returns when its bytes can be read.
    #[inline(always)]
    pub fn fetch(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let line = self.line_of(addr);
        signals.add(Signal::L1iCache, 1);
        if line == self.fetched {
            return t;
        }
        self.fetched = line;
        self.fetch_line(addr, t, signals)
    }

    #[cold]
    #[inline(never)]
    fn fetch_line(&mut self, addr: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let (t, physical) = self.translate_code(addr, t, signals);
        let line = self.line_of(physical);
        let set = line as usize & self.l1i_set_mask;
        if let Some(slot) = self.l1i.find(set, line) {
            self.l1i.touch(slot);
            return t.max(self.l1i.line(slot).ready());
        }
        signals.add(Signal::L1iCacheRefill, 1);
        let buffer = self.code_mshrs.first_free(t);
        let at = buffer.at + self.request;
        let joins = self.sectors.in_l2(self.sectors.code());
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::Code, write: false, joins };
        let (answer, evicted) = self.chip.read(self.id, request, signals);
        self.back_invalidate(evicted, signals);
        if answer.own_copy_lost {
            self.downgrade(line, at, signals);
        }
        let ready = self.bus.fill(answer.ready);
        self.code_mshrs.hold(buffer, buffer.at, ready);
        let (_, victim) = self.l1i.insert(set, line, Line::arriving(ready), t);
        if let Some(victim) = victim {
            let l2_slot_hint = self.chip.remembered(self.id.cmg, victim.line);
            self.chip.clean_eviction(self.id, Held { line: victim.line, l2_slot_hint }, Holder::Code);
        }
        ready
    }

    /// Removes a line from the instruction cache.
    pub(super) fn invalidate_code(&mut self, line: u64) {
        if self.l1i.remove(line as usize & self.l1i_set_mask, line).is_some() {
            self.fetched = u64::MAX;
        }
    }
}
