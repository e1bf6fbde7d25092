//! Walks of the translation tables, and the traps that replace them on some machines.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;

use super::{Cause, Hierarchy};
use crate::chip::{Holder, Request};
use crate::frames::PageRange;
use crate::reserve::{delay, first_free, hold};

impl<const TIMED: bool> Hierarchy<'_, TIMED> {
    /// Walks the tables for `addr`, whose TLB miss is known at `t`. Returns the physical address of its frame and when
    /// it is known. The walk begins at the lowest table whose descriptor is cached; the address of the top table is in
    /// a register.
    #[cold]
    #[inline(never)]
    pub(super) fn walk(&mut self, addr: u64, range: PageRange, t: Cycle, signals: &mut Signals) -> (u64, Cycle) {
        let end = self.read_tables(addr, range, t, signals);
        (self.frame_of(addr, range), end)
    }

    /// Reads the tables down to the descriptor of the page of `addr`, which may be absent. Takes a trap instead on
    /// machines where software walks the tables, and no time where misses are free. Returns when the descriptor is known.
    pub(super) fn read_tables(&mut self, addr: u64, range: PageRange, t: Cycle, signals: &mut Signals) -> Cycle {
        if self.core.free_misses {
            return t;
        }
        if self.core.miss_trap > 0 {
            let handler = first_free::<TIMED>(&mut self.core.walkers, t);
            let end = handler.at + delay::<TIMED>(self.core.miss_trap);
            hold::<TIMED>(&mut self.core.walkers, handler, handler.at, end);
            return end;
        }
        let path = self.core.tables.path(self.core.in_space(addr), range.shift);
        let local = self.core.id.cmg;
        let walker = first_free::<TIMED>(&mut self.core.walkers, t);
        let (mut level, mut table) = match self.core.tables.cached(&path) {
            Some(lowest) => lowest,
            None => (path.top(), self.chip.table(path.name(path.top()), path.table_bytes(), local)),
        };
        let mut now = walker.at;
        loop {
            now = self.read_descriptor(table + path.offset(level), now, signals);
            if level == path.leaf() {
                break;
            }
            level -= 1;
            table = self.chip.table(path.name(level), path.table_bytes(), local);
            self.core.tables.remember(&path, level, table);
        }
        let end = now + delay::<TIMED>(self.core.walk_extra);
        hold::<TIMED>(&mut self.core.walkers, walker, walker.at, end);
        end
    }

    /// The walker reads the descriptor at `physical` from L2 at `t`. Returns when it has it: after the time of a line
    /// fill, but without occupying the bus for a whole line.
    fn read_descriptor(&mut self, physical: u64, t: Cycle, signals: &mut Signals) -> Cycle {
        let line = self.core.line_of(physical);
        let at = self.core.at_l2::<TIMED>(t);
        let joins = self.core.sectors.in_l2(self.core.sectors.code());
        let request = Request { line, at, cause: Cause::Demand, holder: Holder::None, write: false, joins };
        let (answer, evicted) = self.chip.read::<TIMED>(self.core.id, request, signals);
        self.back_invalidate(evicted, signals);
        let ready = answer.ready + delay::<TIMED>(self.core.fill_cycles);
        if let Some(missed) = answer.missed {
            self.core.outstanding.load(missed, ready, answer.from_main, signals);
        }
        ready
    }
}
