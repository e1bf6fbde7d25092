//! Walks of the translation tables, and traps in their place.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;

use super::{Cause, Hierarchy};
use crate::chip::{Holder, Request};
use crate::frames::PageRange;

impl Hierarchy {
    /// The page of `addr` is in no TLB, as is known at `t`. Returns the physical address of its frame and when it is
    /// known. The walk begins at the lowest table whose descriptor is cached; a register has the address of the top one.
    #[cold]
    #[inline(never)]
    pub(super) fn walk(&mut self, addr: u64, range: PageRange, t: Cycle, signals: &mut Signals) -> (u64, Cycle) {
        let end = self.read_tables(addr, range, t, signals);
        (self.frame_of(addr, range), end)
    }

    /// Reads the tables that lead to the page of `addr`, which need not be there: its descriptor says so then. Where software
    /// does that, takes its trap. Returns when it is known.
    pub(super) fn read_tables(&mut self, addr: u64, range: PageRange, t: Cycle, signals: &mut Signals) -> Cycle {
        if self.miss_trap > 0 {
            let handler = self.walkers.first_free(t);
            let end = handler.at + self.miss_trap;
            self.walkers.hold(handler, handler.at, end);
            return end;
        }
        let way = self.tables.way(self.in_space(addr), range.shift);
        let local = self.seat.cmg;
        let walker = self.walkers.first_free(t);
        let (mut level, mut table) = match self.tables.cached(&way) {
            Some(lowest) => lowest,
            None => (way.top(), self.chip.table(way.name(way.top()), way.table_bytes(), local)),
        };
        let mut now = walker.at;
        loop {
            now = self.read_descriptor(table + way.offset(level), now, signals);
            if level == way.leaf() {
                break;
            }
            level -= 1;
            table = self.chip.table(way.name(level), way.table_bytes(), local);
            self.tables.remember(&way, level, table);
        }
        let end = now + self.walk_extra;
        self.walkers.hold(walker, walker.at, end);
        end
    }

    /// The walker reads the descriptor at `physical` from L2, asking at `t`. Returns when it has it: in the time that
    /// loads wait for a line, but without a whole line's time on the bus.
    fn read_descriptor(&mut self, physical: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let asked = self.requests.book(t);
        let line = self.line_of(physical);
        let at = asked + self.request;
        let joins = self.sectors.in_l2(self.sectors.code());
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::None, write: false, joins };
        let (answer, left) = self.chip.read(self.seat, request, signals);
        self.give_up(left, signals);
        answer.ready + self.fill_cycles
    }
}
