//! Memory accesses in the pipeline: address generation, store data, prefetches and zeroed lines.

use fxscope_calendar::Cycle;
use fxscope_machine::Pipes;
use fxscope_memory::{Chip, Misses, Response};

use crate::bind::{Action, BoundFlow, BoundUop, Profile};
use crate::bypass::{EAGA, EAGB, EXA};
use crate::core::{Executed, Pipeline};
use crate::dispatch::Station;
use crate::events::{count_loading, loading};
use crate::execute::pick;
use crate::uop_probe::REQUESTS;

impl Pipeline {
    /// A load, from address generation to its data.
    #[inline(always)]
    pub(crate) fn load(
        &mut self,
        uop: &BoundUop,
        stream: &[u64],
        d: Cycle,
        station: Station,
        own: &mut Profile,
        chip: &mut Chip,
    ) -> Executed {
        self.memory.refills.inst = uop.inst;
        let port = self.lsu.real_ports_free(uop);
        let started = self.address(uop, d, station, port, own);
        let before = loading(&self.signals);
        let mut answer = self.lsu.load(uop, uop.words(stream), started, &mut self.memory.with(chip), &mut self.signals);
        while let Some(flush) = self.lsu.take_violation() {
            answer = self.load_again(uop, stream, flush, chip);
        }
        count_loading(&self.signals, &before, own);
        self.count_request();
        let longer = self.lengthened_access(uop, answer.at);
        let data = answer.at + u64::from(uop.load_latency) + longer;
        let complete = answer.at + u64::from(uop.to_commit) + longer;
        let complete = self.with_prefetches(complete, &mut answer.misses);
        self.lsu.fetch_ports_taken(uop.fetch_ports, complete);
        if uop.continues {
            let complete = self.behind_access(uop, data, own).max(complete);
            return Executed { started, complete, misses: answer.misses };
        }
        self.result(uop, data, EAGA);
        Executed { started, complete, misses: answer.misses }
    }

    /// The flow after the access of an atomic load, which makes the result. Returns when that is available.
    #[cold]
    #[inline(never)]
    fn behind_access(&mut self, uop: &BoundUop, data: Cycle, own: &mut Profile) -> Cycle {
        let flow = &uop.flows[usize::from(uop.nflows)];
        let pipe = pick(flow.pipes, Station::Rse0);
        let late = self.operands(&[uop.late.src], pipe);
        let done = self.book(flow, pipe, data.max(late), own) + u64::from(flow.latency);
        self.result(uop, done, pipe);
        done
    }

    /// A load went ahead of an older store to the same bytes. When that store commits, at `flush`, everything younger
    /// is flushed and fetched again (manual 4.6, 7.5).
    #[cold]
    #[inline(never)]
    fn load_again(&mut self, uop: &BoundUop, stream: &[u64], flush: Cycle, chip: &mut Chip) -> Response {
        self.front.redirect(flush + 1);
        self.dispatch.hold_until(flush + 1 + self.refetch);
        let started = flush + 1 + self.refetch + self.stage_of_pipe[EAGA];
        self.lsu.load(uop, uop.words(stream), started, &mut self.memory.with(chip), &mut self.signals)
    }

    /// An access has passed its load/store pipe: it counts where its last flow did.
    #[inline(always)]
    fn count_request(&mut self) {
        self.signals.add(REQUESTS[self.memory.pipes.last() & 1], 1);
    }

    /// Cycles by which an access whose last flow passes its pipe at `t` is lengthened so that it does not end together
    /// with another one in the same pipe (manual 2.9).
    #[inline(always)]
    fn lengthened_access(&mut self, uop: &BoundUop, t: Cycle) -> Cycle {
        let long = u64::from(uop.to_commit) >= self.commit_long;
        if self.memory.pipes.ends_long(t, long, self.long_more) && !long { self.long_more } else { 0 }
    }

    /// A store up to its tag access and its data. It writes after it has committed.
    #[inline(always)]
    pub(crate) fn store(
        &mut self,
        uop: &BoundUop,
        stream: &[u64],
        d: Cycle,
        station: Station,
        own: &mut Profile,
        chip: &mut Chip,
    ) -> Executed {
        self.memory.refills.inst = uop.inst;
        let port = self.lsu.real_ports_free(uop);
        if port > d {
            self.commit.store_port_full_until = port;
        }
        let data = self.store_data(uop, d, own);
        let started = self.address(uop, d, station, port, own);
        let at = self.lsu.store(uop, uop.words(stream), started, data, &mut self.memory.with(chip), &mut self.signals);
        self.result(uop, at + 1, EAGA);
        self.count_request();
        let to_commit = u64::from(uop.to_commit) + self.lengthened_access(uop, at);
        self.lsu.fetch_ports_taken(uop.fetch_ports, at + to_commit);
        // Data and address meet in stages X and A of figure 2-6; FLA has two more stages before X than drawn there.
        let mut misses = Misses::NONE;
        let both = if uop.data_forwarded_after.is_some() { at } else { at.max(data) };
        let complete = self.with_prefetches(both + to_commit, &mut misses);
        Executed { started, complete, misses }
    }

    /// Address generation of a memory access. Returns when the access goes to the load/store pipes.
    #[inline(always)]
    pub(crate) fn address(
        &mut self,
        uop: &BoundUop,
        d: Cycle,
        station: Station,
        port_free: Cycle,
        own: &mut Profile,
    ) -> Cycle {
        let last = usize::from(uop.nflows.max(1)) - 1;
        let first = &uop.flows[0];
        if last == 0 || first.pipes.meets(Pipes::EAGA.or(Pipes::EAGB)) {
            let earliest = (d + self.stage_of_pipe[EAGA]).max(port_free);
            let at = self.address_flow(uop, station, earliest, own);
            self.dispatch.release(station, at.saturating_sub(self.address_released));
            return at;
        }
        // Addresses made by other pipes first (gathers and scatters, transfers).
        let pipe = pick(first.pipes, station);
        // The data of a scatter belong to another flow (table 16-3): its addresses and their ports do not wait for
        // them.
        let data = if uop.action == Action::Store { 0 } else { self.operands(&uop.srcs, pipe) };
        let ready = self.operands(&uop.addr_srcs, pipe).max(data);
        let earliest = ready.max(d + self.stage_of_pipe[pipe]).max(port_free);
        let mut t = self.book(first, pipe, earliest, own);
        self.forwards_base(first, own);
        self.dispatch.release(station, t.saturating_sub(self.released[pipe]));
        t += u64::from(first.latency);
        for flow in &uop.flows[1..=last] {
            let start = self.book(flow, pick(flow.pipes, station), t, own);
            t = if std::ptr::eq(flow, &uop.flows[last]) { start } else { start + u64::from(flow.latency) };
        }
        // Addresses come through both address pipes.
        self.memory.pipes.from_eagb(false);
        t
    }

    /// The first flow of a gather or scatter forwards the base address from general registers. It occupies EXA but does
    /// not count as an operation: measured programs with gathers count fewer EXA operations than gathers.
    pub(crate) fn forwards_base(&mut self, first: &BoundFlow, own: &mut Profile) {
        if first.pipes == Pipes::EXA {
            self.base_forwards += u64::from(first.busy);
            own.pipes[EXA] -= u64::from(first.busy);
        }
    }

    /// The single flow of an address micro-operation, through the address pipe that is free first.
    #[inline(always)]
    pub(crate) fn address_flow(
        &mut self,
        uop: &BoundUop,
        station: Station,
        earliest: Cycle,
        own: &mut Profile,
    ) -> Cycle {
        let flow = &uop.flows[0];
        let either = flow.pipes.meets(Pipes::EAGA) && flow.pipes.meets(Pipes::EAGB);
        if either && flow.busy <= 1 && !flow.all {
            let (pipe, at) = self.either_address_pipe(station, &uop.addr_srcs, earliest);
            self.used(pipe, 1, own);
            self.memory.pipes.from_eagb(pipe == EAGB);
            return at;
        }
        self.other_address_flow(uop, earliest, own)
    }

    /// An address flow through one given pipe, through both, or for several cycles.
    #[cold]
    #[inline(never)]
    pub(crate) fn other_address_flow(&mut self, uop: &BoundUop, earliest: Cycle, own: &mut Profile) -> Cycle {
        let flow = &uop.flows[0];
        let a = self.pipes[EAGA].first_free(self.operands(&uop.addr_srcs, EAGA).max(earliest));
        let b = self.pipes[EAGB].first_free(self.operands(&uop.addr_srcs, EAGB).max(earliest));
        let use_a = flow.pipes.meets(Pipes::EAGA) && (a <= b || !flow.pipes.meets(Pipes::EAGB));
        self.memory.pipes.from_eagb(!use_a);
        if use_a { self.book(flow, EAGA, a, own) } else { self.book(flow, EAGB, b, own) }
    }

    /// The data flow of a store, through RSE0. Returns when the data are available.
    #[inline(always)]
    pub(crate) fn store_data(&mut self, uop: &BoundUop, d: Cycle, own: &mut Profile) -> Cycle {
        let flow = &uop.flows[1];
        if !uop.data_flow {
            return self.operands(&uop.srcs, EXA) + u64::from(uop.data_forwarded_after.unwrap_or(0));
        }
        let pipe = pick(flow.pipes, Station::Rse0);
        let earliest = (d + self.stage_of_pipe[pipe]).max(self.operands(&uop.srcs, pipe));
        let at = self.book(flow, pipe, earliest, own);
        self.dispatch.release(Station::Rse0, at.saturating_sub(self.released[pipe]));
        at
    }

    /// A prefetch instruction: its flows, and what it waits for.
    pub(crate) fn prefetch(
        &mut self,
        uop: &BoundUop,
        stream: &[u64],
        d: Cycle,
        station: Station,
        own: &mut Profile,
        chip: &mut Chip,
    ) -> Executed {
        self.memory.refills.inst = uop.inst;
        let port = self.lsu.real_ports_free(uop);
        let started = self.address(uop, d, station, port, own);
        let answer = self.lsu.prefetch(uop, uop.words(stream), started, &mut self.memory.with(chip), &mut self.signals);
        self.count_request();
        let complete = answer.at + u64::from(uop.to_commit);
        self.lsu.fetch_ports_taken(uop.fetch_ports, complete);
        Executed { started, complete, misses: answer.misses }
    }

    /// When an access that is otherwise complete at `complete` may commit: the hardware prefetches that it triggered
    /// must have their ports.
    #[inline(always)]
    fn with_prefetches(&self, complete: Cycle, misses: &mut Misses) -> Cycle {
        let granted = self.memory.port_granted();
        if granted > complete {
            misses.port = complete;
            return granted;
        }
        complete
    }

    /// `DC ZVA` up to its commit: a store without data.
    pub(crate) fn zero(&mut self, uop: &BoundUop, d: Cycle, station: Station, own: &mut Profile) -> Executed {
        let port = self.lsu.real_ports_free(uop);
        let started = self.address(uop, d, station, port, own);
        let complete = self.memory.pipes.store_access(started, false) + u64::from(uop.to_commit);
        self.lsu.fetch_ports_taken(uop.fetch_ports, complete);
        Executed { started, complete, misses: Misses::NONE }
    }
}
