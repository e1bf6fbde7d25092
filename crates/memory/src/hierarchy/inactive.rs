//! Accesses without active elements: they touch no memory, but some machines translate their addresses all the same.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::Hierarchy;
use crate::pointer::Pointer;
use crate::reserve::{delay, first_free, hold};

impl<const TIMED: bool> Hierarchy<'_, TIMED> {
    /// An access without active elements at `pointer` is ready for its pipe at `t`. Returns when it may enter it.
    #[inline(always)]
    pub fn inactive(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Cycle {
        if self.core.inactive_lookup { self.look_up_inactive(pointer, t, signals) } else { t }
    }

    /// A present page is translated as for any access. An absent one gets no frame, and no TLB remembers that it is
    /// absent: the next access looks it up again.
    #[cold]
    #[inline(never)]
    fn look_up_inactive(&mut self, pointer: Pointer, t: Cycle, signals: &mut Signals) -> Cycle {
        let range = self.core.page_of(pointer.addr);
        let addr = self.core.in_space(pointer.addr);
        if range.end != 0 && self.chip.frames().has(addr >> range.shift << range.shift, range) {
            return self.translate(pointer, t, signals).ready;
        }
        if !TIMED {
            self.core.repeats.forget_all();
        }
        signals.add(Signal::L1dTlbRefill, 1);
        signals.add(Signal::L2dTlb, 1);
        signals.add(Signal::L2dTlbRefill, 1);
        let page = self.core.extent(&range);
        let found = self.core.data_tlb.second_level::<TIMED>(addr, page, t);
        let missed = found.map_or_else(|missed| missed, |hit| hit.ready);
        let absent = self.read_tables(pointer.addr, range, missed, signals);
        let system = first_free::<TIMED>(&mut self.core.walkers, absent);
        let end = system.at + delay::<TIMED>(self.core.absent_trap);
        hold::<TIMED>(&mut self.core.walkers, system, system.at, end);
        end
    }
}
