//! Instruction fetch.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Cause, Hierarchy};
use crate::chip::{Held, Holder, Request};
use crate::tags::Line;

impl Hierarchy {
    /// Fetch of the block at `addr`, wanted at `t`: when its bytes can be read.
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
        let buffer = self.code_misses.first_free(t);
        let at = buffer.at + self.request;
        let joins = self.sectors.in_l2(self.sectors.code());
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::Code, write: false, joins };
        let (answer, left) = self.chip.read(self.seat, request, signals);
        self.give_up(left, signals);
        if answer.own {
            self.share(line, at, signals);
        }
        let ready = self.bus.fill(answer.ready);
        self.code_misses.hold(buffer, buffer.at, ready);
        let (_, victim) = self.l1i.insert(set, line, Line::arriving(ready), t);
        if let Some(victim) = victim {
            let beneath = self.chip.remembered(self.seat.cmg, victim.line);
            self.chip.left(self.seat, Held { line: victim.line, beneath }, Holder::Code);
        }
        ready
    }

    /// The instruction cache gives up a line.
    pub(super) fn forget_code(&mut self, line: u64) {
        if self.l1i.remove(line as usize & self.l1i_set_mask, line).is_some() {
            self.fetched = u64::MAX;
        }
    }
}
