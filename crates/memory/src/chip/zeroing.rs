//! Lines that L2 zeroes (`DC ZVA`).

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use super::{Answer, Chip, CoreId, Evicted, Holder, Request, release};
use crate::cmg::Holders;
use crate::hierarchy::Cause;
use crate::reserve::delay;
use crate::sectors::Joins;
use crate::tags::Line;

impl Chip {
    /// Makes `line` a line of zeros without reading memory. Others can read it when they pass the pipeline behind that
    /// (unlike a line that arrives from memory, which is passed on at once; manual 9.5). Returns as [`Chip::read`] does.
    pub fn zero<const TIMED: bool>(
        &mut self,
        id: CoreId,
        line: u64,
        joins: Joins,
        t: Cycle,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        if self.partition.is_some() && self.involves_other_cmgs(id, line, true) {
            return self.with_whole_chip(|chip| chip.zero_l2::<TIMED>(id, line, joins, t, signals));
        }
        self.zero_l2::<TIMED>(id, line, joins, t, signals)
    }

    fn zero_l2<const TIMED: bool>(
        &mut self,
        id: CoreId,
        line: u64,
        joins: Joins,
        t: Cycle,
        signals: &mut Signals,
    ) -> (Answer, Option<Evicted>) {
        signals.add(Signal::L2dCache, 1);
        let mut cmg = &mut self.cmgs[id.cmg];
        let start = cmg.bank_slot::<TIMED>(line, t, signals);
        let Some(slot) = cmg.find(line) else { return self.zero_miss::<TIMED>(id, line, joins, start) };
        let ready = (start + delay::<TIMED>(cmg.hit(id.core))).max(cmg.line(slot).ready());
        let mut answer =
            Answer { ready, taken: start, missed: None, from_main: false, shared: false, own_copy_lost: false, slot };
        cmg.touch(slot);
        let request = Request { line, at: start, cause: Cause::Demand, holder: Holder::Data, write: true, joins };
        let me = Holders::one(id.core, Holder::Data);
        if cmg.must_snoop(slot, me, true) {
            let is_owned = self.snoop_holders::<TIMED>(id, slot, me, &request, start, &mut answer);
            signals.add(Signal::OwnedElsewhere, u64::from(is_owned));
            cmg = &mut self.cmgs[id.cmg];
        }
        cmg.hold(slot, me, &request, delay::<TIMED>(self.shape.fill), &mut answer);
        let (state, holders) = cmg.parts_mut(slot);
        state.join(joins);
        release(state, holders, *holders);
        answer.ready += delay::<TIMED>(cmg.zero);
        let readable = answer.ready + delay::<TIMED>(cmg.hit(id.core));
        cmg.line_mut(slot).set_ready(readable);
        (answer, None)
    }

    /// The same for a line that is not in the core's L2.
    fn zero_miss<const TIMED: bool>(
        &mut self,
        id: CoreId,
        line: u64,
        joins: Joins,
        start: Cycle,
    ) -> (Answer, Option<Evicted>) {
        let cmg = &self.cmgs[id.cmg];
        let (set, hit, zero) = (cmg.set_of(line), delay::<TIMED>(cmg.hit(id.core)), delay::<TIMED>(cmg.zero));
        let start = cmg.can_evict::<TIMED>(start);
        let mut ready = start + hit;
        let home = self.home(line);
        if home != id.cmg || self.cmgs[home].snoop_filter.may_hold(line) {
            let invalidated = self.invalidate_remote::<TIMED>(id.cmg, line, start);
            ready = ready.max(invalidated + delay::<TIMED>(self.shape.request));
        }
        ready += zero;
        let state = Line::arriving(ready + hit).in_sector(joins.sector).with(Line::DIRTY, true);
        let (slot, gone) = self.cmgs[id.cmg].insert(set, line, state, Holders::NONE, start);
        self.note_remote_copy(id.cmg, line, home);
        let answer =
            Answer { ready, taken: start, missed: None, from_main: false, shared: false, own_copy_lost: false, slot };
        (answer, gone.and_then(|gone| self.evicted::<TIMED>(id, gone, start)))
    }
}
