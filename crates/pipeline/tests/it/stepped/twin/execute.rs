//! Execution: operands, pipes, results.

use fxscope_calendar::Cycle;
use fxscope_machine::Pipes;
use fxscope_pipeline::bind::{Action, BY_PIPE, BoundFlow, BoundUop, Producer, READY};

use super::{BR, EAGB, EXA, PRX, RSA0, RSA1, RSBR, RSE0, RSE1, Return, Twin};
use crate::stepped::parts::{Value, Waiting};

impl Twin<'_> {
    /// When register `reg` of micro-operation `number` reaches `pipe`; unknown while it has not started.
    fn reaches(&self, number: usize, reg: u8, pipe: usize) -> Option<Cycle> {
        let (_, v) = self.values[number].iter().find(|(r, _)| *r == reg)?;
        let b = &self.spec.bypass;
        let kind = [0, 0, 1, 1, 2, 2, 3, 4][pipe];
        let integer_pipes = v.pipe < 4 && pipe < 4 && v.pipe != pipe;
        let extra = match v.by {
            Producer::Plain => 0,
            Producer::Exa | Producer::Exb | Producer::Eaga | Producer::Eagb => {
                if integer_pipes {
                    b.integer_other_pipe
                } else {
                    0
                }
            }
            Producer::Flags | Producer::FlagsExb => {
                b.flags[kind] + if integer_pipes { b.integer_other_pipe } else { 0 }
            }
            Producer::Predicate => b.predicate[kind],
            Producer::PredicateLoad => b.predicate_load[kind],
            Producer::Compare => b.compare[kind],
            Producer::PredicateFlags => b.predicate_flags[kind],
            Producer::VectorFlags => b.vector_flags[kind],
            Producer::CompareFlags => b.compare_flags[kind],
        };
        Some(v.at + extra)
    }

    /// Results of a micro-operation are there at `at`.
    pub(super) fn make(&mut self, number: usize, uop: &BoundUop, at: Cycle, pipe: usize) {
        for (&reg, &producer) in uop.dsts.iter().zip(&uop.producers).filter(|(d, _)| **d != READY) {
            let own = [Producer::Exa, Producer::Exb, Producer::Eaga, Producer::Eagb];
            let named = [
                Producer::Plain,
                Producer::Flags,
                Producer::Predicate,
                Producer::PredicateLoad,
                Producer::Compare,
                Producer::PredicateFlags,
                Producer::VectorFlags,
                Producer::CompareFlags,
            ];
            let by = match producer {
                BY_PIPE => own.get(pipe).copied().unwrap_or(Producer::Plain),
                number => named.into_iter().find(|p| *p as u8 == number).expect("a named producer"),
            };
            self.values[number].push((reg, Value { at, by, pipe }));
        }
    }

    fn stage(&self, pipe: usize) -> Cycle {
        let s = &self.spec.stages;
        [s.integer, s.integer, s.address, s.address, s.vector, s.vector, s.predicate, s.integer][pipe]
    }

    /// Whether flow `number` leaves the station in the cycle of the flow before it: EXA and PRX have one issue port,
    /// and a flow of PRX starts a stage later than one of EXA that was issued with it.
    fn leaves_with_the_one_before(&self, uop: &BoundUop, number: usize) -> bool {
        let Some(before) = number.checked_sub(1).map(|i| &uop.flows[i]) else { return false };
        before.pipes == Pipes::EXA
            && uop.flows[number].pipes == Pipes::PRX
            && self.stage(EXA) + u64::from(before.latency) == self.stage(PRX)
    }

    /// Pipes that an operation of `station` may take for `flow`.
    fn pipes(flow: &BoundFlow, station: usize) -> Pipes {
        let near = match station {
            RSE0 => Pipes::EXA.or(Pipes::FLA).or(Pipes::PRX),
            RSE1 => Pipes::EXB.or(Pipes::FLB),
            RSA0 | RSA1 => Pipes::EAGA.or(Pipes::EAGB),
            _ => Pipes::BR,
        };
        if flow.pipes.meets(near) && !flow.all { Pipes(flow.pipes.0 & near.0) } else { flow.pipes }
    }

    /// Chooses what starts in the next cycle: for each pipe the oldest that is ready.
    pub(super) fn issue(&mut self) {
        let start = self.now + 1;
        for i in 0..self.window.len() {
            let mut w = 0;
            while w < self.window[i].waiting.len() {
                if self.start(i, w, start) {
                    self.window[i].waiting.remove(w);
                } else {
                    w += 1;
                }
            }
        }
    }

    fn ready(&self, needs: &[(usize, u8)], pipe: usize, start: Cycle) -> bool {
        needs.iter().all(|&(n, r)| self.reaches(n, r, pipe).is_some_and(|t| t <= start))
    }

    /// Starts flow `w` of entry `i` in cycle `start` if it can.
    fn start(&mut self, i: usize, w: usize, start: Cycle) -> bool {
        let e = &self.window[i];
        let waiting = &e.waiting[w];
        let uop = e.uop;
        if waiting.from > start {
            return false;
        }
        if uop.action == Action::BranchOnFlags {
            let earliest = e.dispatched + self.spec.stages.branch;
            if start < earliest || !self.ready(&waiting.needs, BR, start - 1) {
                return false;
            }
            self.returns.push((start, Return::Station(RSBR)));
            self.window[i].complete = Some(start + u64::from(uop.to_commit));
            return true;
        }
        let memory = matches!(uop.action, Action::Load | Action::Store) && waiting.flow == 0;
        if memory {
            let (fp, sp) = (e.fetch_port, e.store_port);
            let ls = &self.spec.load_store;
            // Real ports are taken some stages before addresses are made.
            let [fetch, store] = uop.port_stages.map(|stages| start.saturating_sub(stages.into()));
            if !self.fetch_ports.open(fp, ls.fetch_ports, fetch)
                || (uop.action == Action::Store && !self.store_ports.open(sp, ls.store_ports, store))
            {
                return false;
            }
        }
        let e = &self.window[i];
        let waiting = e.waiting[w].clone();
        let flow = uop.flows[waiting.flow];
        let allowed = Self::pipes(&flow, waiting.station);
        let members: Vec<usize> = (0..8).filter(|&p| allowed.0 >> p & 1 == 1).collect();
        let port = |pipe: usize| if pipe == PRX { EXA } else { pipe };
        let together = self.leaves_with_the_one_before(&uop, waiting.flow);
        let port_idle = |p: usize| together || self.port_busy[port(p)] <= start;
        let idle = |p: usize| port_idle(p) && (!uop.exclusive || self.exclusive[p] <= start);
        let first_flow = waiting.holds_entry;
        let late = uop.late;
        let late_pipe = Self::pipes(&uop.flows[usize::from(late.flow)], waiting.station).0.trailing_zeros() as usize;
        let later = self.ready(waiting.late.as_slice(), late_pipe, start + u64::from(late.after));
        let can = |p: usize| {
            idle(p)
                && later
                && (!first_flow || start >= e.dispatched + self.stage(p))
                && self.ready(&waiting.needs, p, start)
        };
        let pipe = if flow.all {
            // A vector compare starts when its vector pipe would.
            if !members.iter().all(|&p| idle(p)) || !can(members[0]) {
                return false;
            }
            members[0]
        } else {
            match members.iter().copied().find(|&p| can(p)) {
                Some(p) => p,
                None => return false,
            }
        };
        for p in if flow.all { members } else { vec![pipe] } {
            if !together {
                self.port_busy[port(p)] = start + u64::from(flow.busy.max(1));
            }
        }
        if uop.exclusive {
            self.exclusive[pipe] = start + u64::from(flow.latency);
        }
        if uop.takes_tor {
            self.returns.push((start, Return::TemporaryOperandRegister));
        }
        if waiting.holds_entry {
            let memory = matches!(uop.action, Action::Load | Action::Store) && waiting.flow == 0;
            let s = &self.spec.stations;
            let before = if memory { s.release_address } else { s.release_integer };
            self.returns.push((start.saturating_sub(before), Return::Station(waiting.station)));
        }
        let number = e.number;
        let ends = uop.action != Action::Store && waiting.flow + 1 == usize::from(uop.nflows);
        let done = start
            + if ends { self.results.latency(self.spec, pipe, start, flow.latency) } else { u64::from(flow.latency) };
        let s = &self.spec.stages;
        if memory {
            (self.window[i].access, self.window[i].beside) = (Some(start), usize::from(pipe == EAGB));
        }
        match uop.action {
            Action::Load => {}
            Action::Store if waiting.flow == 0 => {
                self.store(number).known = Some(start);
            }
            Action::Store => {
                self.window[i].data = Some(start);
                self.store(number).data = Some(start);
            }
            _ if waiting.flow + 1 < usize::from(uop.nflows) => {
                let station = waiting.station;
                let (flow, needs) = (waiting.flow + 1, Vec::new());
                let next = Waiting { flow, from: done, station, needs, late: None, holds_entry: false };
                self.window[i].waiting.push(next);
            }
            Action::BranchExecuted => {
                self.window[i].complete = Some(done - 1 + s.branch_after_execute + u64::from(uop.to_commit));
                self.make(number, &uop, done, pipe);
            }
            _ => {
                self.window[i].complete = Some(done + u64::from(uop.to_commit));
                self.make(number, &uop, done, pipe);
            }
        }
        true
    }
}
