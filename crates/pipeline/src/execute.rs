//! Execution: the flows of a micro-operation through the pipes, operands and results.

use fxscope_calendar::Cycle;
use fxscope_counts::Signal;
use fxscope_machine::Pipes;
use fxscope_memory::{Chip, Misses};

use crate::bind::{Action, BoundFlow, BoundUop, Profile, READY};
use crate::bypass::{EAGA, EAGB, EXA, FLA, FLB, PIPES, PRX};
use crate::core::{Executed, Pipeline};
use crate::dispatch::Station;
use crate::events::DIVIDE;

/// A first flow with its pipe.
pub(crate) struct Begun {
    pub pipe: usize,
    pub start: Cycle,
    /// Its earliest completion, since older ones that it delays commit before it.
    pub pushed: Cycle,
}

impl Pipeline {
    /// Executes: computes, accesses memory or resolves a branch.
    #[inline(always)]
    pub(crate) fn execute(
        &mut self,
        uop: &BoundUop,
        stream: &[u64],
        d: Cycle,
        station: Station,
        own: &mut Profile,
        chip: &mut Chip,
    ) -> Executed {
        let to_commit = u64::from(uop.to_commit);
        let by = |started, done| Executed { started, complete: done + to_commit, misses: Misses::NONE };
        match uop.action {
            Action::Compute => {
                let judgement = u64::from(uop.judgement & self.judgement_skipped);
                let (started, done) = self.compute(uop, d, station, own);
                by(started, done - judgement)
            }
            Action::StoreData => {
                let (started, done) = self.compute(uop, d, station, own);
                self.forwards_base(&uop.flows[0], own);
                by(started, done)
            }
            Action::Load => self.load(uop, stream, d, station, own, chip),
            Action::Store => self.store(uop, stream, d, station, own, chip),
            Action::Prefetch => self.prefetch(uop, stream, d, station, own, chip),
            Action::Zero => self.zero(uop, d, station, own),
            Action::BranchOnFlags => {
                let ready = self.operands(&uop.srcs, PIPES - 1) + 1;
                let resolved = (d + self.branch_stage).max(ready);
                self.dispatch.release(station, resolved);
                by(resolved - 1, resolved)
            }
            Action::BranchExecuted => {
                let (started, done) = self.compute(uop, d, station, own);
                by(started, done - 1 + self.branch_after_execute)
            }
            Action::BranchDirect => {
                // The branch itself is resolved a stage earlier than one on flags; a call also makes its return
                // address.
                let resolved = d + self.branch_stage - 1;
                if uop.flows[0].pipes.meets(Pipes::EAGB) {
                    let (started, done) = self.compute(uop, d, station, own);
                    let branch = by(started, resolved);
                    Executed { complete: branch.complete.max(done), ..branch }
                } else {
                    self.dispatch.release(station, d + 1);
                    by(resolved - 1, resolved)
                }
            }
            Action::None => {
                self.result(uop, d + 1, EXA);
                by(d, d)
            }
        }
    }

    /// Executes the flows of a computing micro-operation. Returns when the first starts and when the result is
    /// available.
    #[inline(always)]
    pub(crate) fn compute(&mut self, uop: &BoundUop, d: Cycle, station: Station, own: &mut Profile) -> (Cycle, Cycle) {
        if uop.simple {
            let flow = &uop.flows[0];
            let pipe = pick(flow.pipes, station);
            let (pipe, start) = if pipe == EAGA && flow.pipes.meets(Pipes::EAGB) {
                self.either_address_pipe(station, &uop.srcs, d + self.stage_of_pipe[EAGA])
            } else {
                let earliest = (d + self.stage_of_pipe[pipe]).max(self.operands(&uop.srcs, pipe));
                (pipe, self.pipes[port(pipe)].book(earliest))
            };
            self.used(pipe, u64::from(flow.busy), own);
            self.dispatch.release(station, start.saturating_sub(self.released[pipe]));
            let mut done = start + u64::from(flow.latency);
            let mut complete = done;
            if uop.vector {
                (done, complete) = self.leave(uop, pipe, station, start, done);
            }
            self.result(uop, done, pipe);
            return (start, complete);
        }
        self.compute_slow(uop, d, station, own)
    }

    /// Books the address pipe that is free first at or after `t`, once `srcs` are available; of two free ones the own
    /// pipe of `station`, though either station feeds both.
    #[inline(always)]
    pub(crate) fn either_address_pipe(&mut self, station: Station, srcs: &[u8], t: Cycle) -> (usize, Cycle) {
        let (own, other) = if station == Station::Rsa1 { (EAGB, EAGA) } else { (EAGA, EAGB) };
        let ready = self.operands(srcs, own).max(t);
        let ready_other = self.operands(srcs, other).max(t);
        let first = self.pipes[own].first_free(ready);
        let second = if first <= ready_other { ready_other } else { self.pipes[other].first_free(ready_other) };
        let (pipe, at) = if first <= second { (own, first) } else { (other, second) };
        self.pipes[pipe].reserve(at);
        (pipe, at)
    }

    /// Any other sequence of flows.
    #[cold]
    #[inline(never)]
    pub(crate) fn compute_slow(
        &mut self,
        uop: &BoundUop,
        d: Cycle,
        station: Station,
        own: &mut Profile,
    ) -> (Cycle, Cycle) {
        if uop.nflows == 0 {
            self.result(uop, d + 1, EXA);
            return (d, d + 1);
        }
        let from = if uop.fetch_ports > 0 { self.lsu.real_ports_free(uop) } else { 0 };
        let Begun { mut pipe, start: started, pushed } = self.first_flow(uop, &uop.flows[0], d, from, station, own);
        self.dispatch.release(station, started.saturating_sub(self.released[pipe]));
        let (mut start, mut t) = (started, started + u64::from(uop.flows[0].latency));
        for flow in &uop.flows[1..usize::from(uop.nflows)] {
            pipe = pick(flow.pipes, station);
            start = if uop.together { self.joined(flow, pipe, t, own) } else { self.book(flow, pipe, t, own) };
            t = start + u64::from(flow.latency);
        }
        let mut complete = t;
        if pipe == FLA || pipe == FLB {
            (t, complete) = self.leave(uop, pipe, station, start, t);
        }
        if uop.fetch_ports > 0 {
            self.lsu.fetch_ports_taken(uop.fetch_ports, t);
        }
        self.result(uop, t, pipe);
        (started, complete.max(pushed))
    }

    /// When the first flow may start so that the late operand is available for its flow.
    #[inline(always)]
    fn late_operand(&self, uop: &BoundUop, station: Station) -> Cycle {
        let pipe = pick(uop.flows[usize::from(uop.late.flow)].pipes, station);
        self.operands(&[uop.late.src], pipe).saturating_sub(uop.late.after.into())
    }

    /// The first flow, at `from` at the earliest, waits for the operands. Flows follow each other: the operand of a later one
    /// is available when that starts.
    #[inline(always)]
    pub(crate) fn first_flow(
        &mut self,
        uop: &BoundUop,
        flow: &BoundFlow,
        d: Cycle,
        from: Cycle,
        station: Station,
        own: &mut Profile,
    ) -> Begun {
        let mut pipe = pick(flow.pipes, station);
        let late = self.late_operand(uop, station).max(from);
        let mut earliest = (d + self.stage_of_pipe[pipe]).max(self.operands(&uop.srcs, pipe)).max(late);
        if pipe == EAGA && flow.pipes.meets(Pipes::EAGB) && !flow.all {
            // Either address pipe: the one that is free first.
            let other = (d + self.stage_of_pipe[EAGB]).max(self.operands(&uop.srcs, EAGB)).max(late);
            if self.pipes[EAGB].first_free(other) < self.pipes[EAGA].first_free(earliest) {
                (pipe, earliest) = (EAGB, other);
            }
        }
        if uop.exclusive {
            self.used(pipe, u64::from(flow.busy), own);
            let before = self.signals.get(Signal::DivideCycles);
            let begun = self.first_of_blocking(uop, pipe, earliest, d, station);
            own.events[DIVIDE] += self.signals.get(Signal::DivideCycles) - before;
            return begun;
        }
        Begun { pipe, start: self.book(flow, pipe, earliest, own), pushed: 0 }
    }

    /// The operation, of the instruction described by `own`, takes `pipe` for some cycles.
    #[inline(always)]
    pub(crate) fn used(&mut self, pipe: usize, cycles: u64, own: &mut Profile) {
        self.started[pipe] += cycles;
        own.pipes[pipe] += cycles;
    }

    /// A flow that begins at `t` with the issue of the one before it; returns `t`.
    fn joined(&mut self, flow: &BoundFlow, pipe: usize, t: Cycle, own: &mut Profile) -> Cycle {
        self.used(pipe, u64::from(flow.busy), own);
        t
    }

    /// Reserves a pipe (or all pipes of the flow) from `t` on.
    #[inline(always)]
    pub(crate) fn book(&mut self, flow: &BoundFlow, pipe: usize, t: Cycle, own: &mut Profile) -> Cycle {
        let busy = u64::from(flow.busy);
        if flow.all {
            return self.book_all(flow, t, own);
        }
        self.used(pipe, busy, own);
        let calendar = &mut self.pipes[port(pipe)];
        if busy <= 1 { calendar.book(t) } else { calendar.book_cycles(t, busy) }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn book_all(&mut self, flow: &BoundFlow, t: Cycle, own: &mut Profile) -> Cycle {
        let members = (0..PIPES).filter(|&p| flow.pipes.0 >> p & 1 == 1);
        let mut at = t;
        for _ in 0..u64::from(flow.busy).max(1) {
            at = loop {
                let free = members.clone().map(|p| self.pipes[port(p)].first_free(at)).max().unwrap_or(at);
                if free == at {
                    break at;
                }
                at = free;
            };
            for p in members.clone() {
                self.pipes[port(p)].reserve(at);
                self.used(p, 1, own);
            }
        }
        at + 1 - u64::from(flow.busy).max(1)
    }

    /// When all of `srcs` have reached `pipe`.
    #[inline(always)]
    pub(crate) fn operands(&self, srcs: &[u8], pipe: usize) -> Cycle {
        let mut t = 0;
        for &src in srcs {
            if src == READY {
                break;
            }
            t = t.max(self.values[usize::from(src)].at(pipe));
        }
        t
    }

    /// The results are available at `t`, made by `pipe`.
    #[inline(always)]
    pub(crate) fn result(&mut self, uop: &BoundUop, t: Cycle, pipe: usize) {
        for (&dst, &producer) in uop.dsts.iter().zip(&uop.producers) {
            if dst == READY {
                break;
            }
            self.values[usize::from(dst)] = self.bypasses.value(t, producer, pipe);
        }
    }
}

/// The calendar of a pipe's issue port.
#[inline(always)]
pub(crate) fn port(pipe: usize) -> usize {
    if pipe == PRX { EXA } else { pipe }
}

/// The pipe of `set` that operations in `station` use; of several, the first.
#[inline(always)]
pub(crate) fn pick(set: Pipes, station: Station) -> usize {
    const ADDRESS: Pipes = Pipes::EAGA.or(Pipes::EAGB);
    /// By number of the station.
    const NEAR: [Pipes; 5] =
        [Pipes::EXA.or(Pipes::FLA).or(Pipes::PRX), Pipes::EXB.or(Pipes::FLB), ADDRESS, ADDRESS, Pipes::BR];
    let near = NEAR[station as usize];
    let choice = if set.meets(near) { set.0 & near.0 } else { set.0 };
    (choice.trailing_zeros() as usize).min(PIPES - 1)
}
