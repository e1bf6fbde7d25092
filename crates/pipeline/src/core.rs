//! The pipeline: all stages of a core, and the way of a micro-operation through them.

use fxscope_base::{Calendar, Cycle, Signal, Signals};
use fxscope_machine::{Pipes, Spec};
use fxscope_memory::{Hierarchy, Level};
use fxscope_uop::{Access, Branch};

use crate::commit::{Commit, Completion};
use crate::dispatch::{Dispatch, Station};
use crate::frontend::Frontend;
use crate::lsu::Lsu;
use crate::predict::Predictor;
use crate::resolve::{Action, BY_PIPE, PRODUCERS, Producer, READY, RFlow, RUop, ResolvedBlock};

/// Number of pipes.
const PIPES: usize = 8;

/// Cycles by consuming pipe.
type ByPipe = [Cycle; PIPES];

/// Extra cycles by producer and consuming pipe.
type BypassTable = [ByPipe; PRODUCERS];

/// One core.
pub struct Pipeline {
    front: Frontend,
    predictor: Predictor,
    dispatch: Dispatch,
    commit: Commit,
    lsu: Lsu,
    /// Caches and translation of this core, and what it shares.
    pub memory: Hierarchy,
    signals: Signals,
    /// When each register's value has reached each pipe.
    ready: Box<[ByPipe; 256]>,
    /// Cycles in which each pipe starts an operation. PRX shares EXA's issue port and so its calendar.
    pipes: [Calendar; PIPES],
    /// Cycles in which a blocking operation occupies each pipe.
    exclusive: [Calendar; PIPES],
    bypass: BypassTable,
    /// Rows of `bypass` by kind of result ([`BY_PIPE`] included) and the pipe that makes it.
    bypass_row: [[u8; PIPES]; PRODUCERS + 1],
    /// Operations started, by pipe.
    started: [u64; PIPES],
    stage_of_pipe: [Cycle; PIPES],
    branch_stage: Cycle,
    branch_after_execute: Cycle,
    mispredict_extra: Cycle,
    /// Calendars are told of time in steps of this many cycles.
    next_advance: Cycle,
}

const PLAIN: u8 = Producer::Plain as u8;
const EXA: usize = 0;
const EXB: usize = 1;
const EAGA: usize = 2;
const EAGB: usize = 3;
const PRX: usize = 6;

const PIPE_SIGNALS: [Option<Signal>; PIPES] = [
    Some(Signal::ExaVal),
    Some(Signal::ExbVal),
    Some(Signal::EagaVal),
    Some(Signal::EagbVal),
    Some(Signal::FlaVal),
    Some(Signal::FlbVal),
    Some(Signal::PrxVal),
    None,
];

impl Pipeline {
    /// A core with nothing in flight and cold caches, number `position` of its CMG.
    #[must_use]
    pub fn new(spec: &Spec, position: u32) -> Pipeline {
        let s = &spec.stages;
        let (x, v, a, p) = (s.integer, s.vector, s.address, s.predicate);
        Pipeline {
            front: Frontend::new(spec),
            predictor: Predictor::new(&spec.frontend),
            dispatch: Dispatch::new(spec),
            commit: Commit::new(spec.window.commit_width),
            lsu: Lsu::new(spec),
            memory: Hierarchy::new(spec, position),
            signals: Signals::default(),
            ready: Box::new([[0; PIPES]; 256]),
            pipes: Default::default(),
            exclusive: Default::default(),
            bypass: bypass_table(spec),
            bypass_row: bypass_rows(),
            started: [0; PIPES],
            stage_of_pipe: [x, x, a, a, v, v, p, x],
            branch_stage: s.branch,
            branch_after_execute: s.branch_after_execute,
            mispredict_extra: spec.frontend.mispredict_extra,
            next_advance: 0,
        }
    }

    /// The cycle of the last commit.
    #[must_use]
    pub fn now(&self) -> Cycle {
        self.commit.now()
    }

    /// The first `executed` instructions of `block` were executed, leaving `stream`, and `next_pc` comes after them.
    pub fn run(&mut self, block: &mut ResolvedBlock, executed: usize, stream: &[u64], next_pc: u64) {
        let Some(last) = executed.checked_sub(1) else { return };
        let end = block.uop_end[last] as usize;
        for uop in &block.uops[..end] {
            let inst = usize::from(uop.inst);
            let outcome = Outcome { kind: block.branch, pc: block.start + 4 * inst as u64, next: next_pc };
            block.cycles[inst] += self.uop(uop, stream, outcome);
        }
    }

    /// One micro-operation through all stages; returns the cycles between its commit and the one before.
    #[inline(always)]
    fn uop(&mut self, uop: &RUop, stream: &[u64], outcome: Outcome) -> u64 {
        let decodable = self.front.supply(uop, outcome.pc, self.dispatch.now(), &mut self.memory, &mut self.signals);
        if uop.pre_sync {
            self.dispatch.hold_until(self.commit.now() + 1);
        }
        let (dispatched, station, opens_group) = self.dispatch.dispatch(uop, decodable);
        self.advance(dispatched);
        let (complete, level) = self.execute(uop, stream, dispatched, station);
        let taken = uop.branches && outcome.taken();
        let completion = Completion { dispatched, complete, level, opens_group, taken };
        let (committed, charged) = self.commit.commit(uop, completion, &mut self.signals);
        self.dispatch.committed(uop, committed);
        self.dispatch.group_member_done(committed);
        match uop.action {
            Action::Store => self.lsu.commit_store(uop, committed, &mut self.memory),
            Action::Zero => self.zero(uop.words(stream), committed),
            _ => {}
        }
        if uop.post_sync {
            self.dispatch.hold_until(committed + 1);
        }
        if uop.branches {
            self.branch(outcome, complete, committed);
        }
        charged
    }

    /// Executes; returns when it may commit and how far a memory access had to go.
    #[inline(always)]
    fn execute(&mut self, uop: &RUop, stream: &[u64], d: Cycle, station: Station) -> (Cycle, Level) {
        let to_commit = u64::from(uop.to_commit);
        match uop.action {
            Action::Compute => (self.compute(uop, d, station) + to_commit, Level::L1),
            Action::Load => {
                let port = self.lsu.fetch_port_free(uop.fetch_ports);
                let issue = self.address(uop, d, station, port);
                let answer = self.lsu.load(uop, uop.words(stream), issue, &mut self.memory, &mut self.signals);
                self.result(uop, answer.at + u64::from(uop.load_latency), EAGA);
                (answer.at + to_commit, answer.level)
            }
            Action::Store => {
                let port = self.lsu.store_port_free(uop.store_ports).max(self.lsu.fetch_port_free(uop.fetch_ports));
                if port > d {
                    self.commit.store_port_full_until = port;
                }
                let data = self.store_data(uop, d);
                let issue = self.address(uop, d, station, port);
                let at = self.lsu.store(uop, uop.words(stream), issue, data, &mut self.memory, &mut self.signals);
                self.result(uop, at + 1, EAGA);
                self.lsu.fetch_ports_taken(uop.fetch_ports, at + to_commit);
                // Data that come from a later stage than addresses are awaited no longer for it.
                let late = self.stage_of_pipe[pick(uop.flows[1].pipes, Station::Rse0)] - self.stage_of_pipe[EAGA];
                (at.max(data.saturating_sub(late)) + to_commit, Level::L1)
            }
            Action::Prefetch => {
                let port = self.lsu.fetch_port_free(1);
                let issue = self.address(uop, d, station, port);
                let at = self.memory.pipes.load(issue);
                self.prefetch(uop, uop.words(stream), at);
                self.lsu.fetch_ports_taken(1, at + to_commit);
                (at + to_commit, Level::L1)
            }
            Action::Zero => {
                let issue = self.address(uop, d, station, 0);
                let at = self.memory.pipes.store_access(issue, false);
                (at + to_commit, Level::L1)
            }
            Action::BranchOnFlags => {
                let ready = self.operands(&uop.srcs, PIPES - 1) + 1;
                let resolved = (d + self.branch_stage).max(ready);
                self.dispatch.release(station, resolved);
                (resolved + to_commit, Level::L1)
            }
            Action::BranchExecuted => {
                let done = self.compute(uop, d, station);
                (done - 1 + self.branch_after_execute + to_commit, Level::L1)
            }
            Action::BranchDirect => {
                // The branch itself is resolved a stage earlier than one on flags; a call also makes its return address.
                if uop.flows[0].pipes.meets(Pipes::EAGB) {
                    self.compute(uop, d, station);
                } else {
                    self.dispatch.release(station, d + 1);
                }
                (d + self.branch_stage - 1 + to_commit, Level::L1)
            }
            Action::None => {
                self.result(uop, d + 1, EXA);
                (d + to_commit, Level::L1)
            }
        }
    }

    /// Passes the flows of a computing micro-operation; returns when its result is there.
    #[inline(always)]
    fn compute(&mut self, uop: &RUop, d: Cycle, station: Station) -> Cycle {
        if uop.simple {
            let flow = &uop.flows[0];
            let pipe = pick(flow.pipes, station);
            let (pipe, start) = if pipe == EAGA && flow.pipes.meets(Pipes::EAGB) {
                self.either_address_pipe(&uop.srcs, d + self.stage_of_pipe[EAGA])
            } else {
                let earliest = (d + self.stage_of_pipe[pipe]).max(self.operands(&uop.srcs, pipe));
                (pipe, self.pipes[port(pipe)].book(earliest))
            };
            self.started[pipe] += u64::from(flow.busy);
            self.dispatch.release(station, start.saturating_sub(1));
            let done = start + u64::from(flow.latency);
            self.result(uop, done, pipe);
            return done;
        }
        self.compute_slow(uop, d, station)
    }

    /// Books the address pipe that is free first from `t` on, once `srcs` are there.
    #[inline(always)]
    fn either_address_pipe(&mut self, srcs: &[u8], t: Cycle) -> (usize, Cycle) {
        let ready_a = self.operands(srcs, EAGA).max(t);
        let ready_b = self.operands(srcs, EAGB).max(t);
        let a = self.pipes[EAGA].first_free(ready_a);
        let b = if a <= ready_b { ready_b } else { self.pipes[EAGB].first_free(ready_b) };
        if a <= b {
            self.pipes[EAGA].reserve(a);
            (EAGA, a)
        } else {
            self.pipes[EAGB].reserve(b);
            (EAGB, b)
        }
    }

    /// Any other sequence of flows.
    #[inline(never)]
    fn compute_slow(&mut self, uop: &RUop, d: Cycle, station: Station) -> Cycle {
        if uop.nflows == 0 {
            self.result(uop, d + 1, EXA);
            return d + 1;
        }
        let (mut pipe, mut t) = self.first_flow(uop, &uop.flows[0], d, station);
        self.dispatch.release(station, t.saturating_sub(1));
        t += u64::from(uop.flows[0].latency);
        for flow in &uop.flows[1..usize::from(uop.nflows)] {
            pipe = pick(flow.pipes, station);
            let start = self.book(flow, pipe, t);
            t = start + u64::from(flow.latency);
        }
        self.result(uop, t, pipe);
        t
    }

    /// The first flow waits for operands; returns the pipe it takes and when it starts.
    #[inline(always)]
    fn first_flow(&mut self, uop: &RUop, flow: &RFlow, d: Cycle, station: Station) -> (usize, Cycle) {
        let mut pipe = pick(flow.pipes, station);
        let mut earliest = (d + self.stage_of_pipe[pipe]).max(self.operands(&uop.srcs, pipe));
        if pipe == EAGA && flow.pipes.meets(Pipes::EAGB) && !flow.all {
            // Either address pipe will do: the one that is free first.
            let other = (d + self.stage_of_pipe[EAGB]).max(self.operands(&uop.srcs, EAGB));
            if self.pipes[EAGB].first_free(other) < self.pipes[EAGA].first_free(earliest) {
                (pipe, earliest) = (EAGB, other);
            }
        }
        if uop.exclusive {
            // Both the pipe's issue slot and the blocking unit must be free.
            let cycles = uop.flows[..usize::from(uop.nflows)].iter().map(|f| u64::from(f.latency)).sum();
            let mut start = earliest;
            self.exclusive[pipe].advance(d);
            loop {
                let unit = self.exclusive[pipe].first_run(start, cycles);
                start = self.pipes[port(pipe)].first_free(unit);
                if start == unit {
                    break;
                }
            }
            self.exclusive[pipe].reserve_run(start, cycles);
            return (pipe, self.book(flow, pipe, start));
        }
        (pipe, self.book(flow, pipe, earliest))
    }

    /// Reserves a pipe (or all pipes of the flow) from `t` on.
    #[inline(always)]
    fn book(&mut self, flow: &RFlow, pipe: usize, t: Cycle) -> Cycle {
        let busy = u64::from(flow.busy);
        if flow.all {
            return self.book_all(flow, t);
        }
        self.started[pipe] += busy;
        let calendar = &mut self.pipes[port(pipe)];
        if busy <= 1 { calendar.book(t) } else { calendar.book_run(t, busy) }
    }

    #[inline(never)]
    fn book_all(&mut self, flow: &RFlow, t: Cycle) -> Cycle {
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
                self.started[p] += 1;
            }
        }
        at + 1 - u64::from(flow.busy).max(1)
    }

    /// Address generation of a memory access; returns when it goes to the load/store pipes.
    #[inline(always)]
    fn address(&mut self, uop: &RUop, d: Cycle, station: Station, port_free: Cycle) -> Cycle {
        let last = usize::from(uop.nflows.max(1)) - 1;
        if uop.action == Action::Store || last == 0 {
            let earliest = (d + self.stage_of_pipe[EAGA]).max(port_free);
            let at = self.address_flow(uop, earliest);
            self.dispatch.release(station, at.saturating_sub(1));
            return at;
        }
        // Addresses made by other pipes first (gathers and scatters, transfers).
        let first = &uop.flows[0];
        let pipe = pick(first.pipes, station);
        let ready = self.operands(&uop.addr_srcs, pipe).max(self.operands(&uop.srcs, pipe));
        let mut t = self.book(first, pipe, ready.max(d + self.stage_of_pipe[pipe]));
        self.dispatch.release(station, t.saturating_sub(1));
        t += u64::from(first.latency);
        for flow in &uop.flows[1..=last] {
            let pipe = pick(flow.pipes, station);
            let start = self.book(flow, pipe, t.max(port_free));
            t = if std::ptr::eq(flow, &uop.flows[last]) { start } else { start + u64::from(flow.latency) };
        }
        t
    }

    /// The single flow of an address micro-operation, through the address pipe that is free first.
    #[inline(always)]
    fn address_flow(&mut self, uop: &RUop, earliest: Cycle) -> Cycle {
        let flow = &uop.flows[0];
        let either = flow.pipes.meets(Pipes::EAGA) && flow.pipes.meets(Pipes::EAGB);
        if either && flow.busy <= 1 && !flow.all {
            let (pipe, at) = self.either_address_pipe(&uop.addr_srcs, earliest);
            self.started[pipe] += 1;
            return at;
        }
        self.other_address_flow(uop, earliest)
    }

    /// An address flow through one given pipe, through both, or for several cycles.
    #[inline(never)]
    fn other_address_flow(&mut self, uop: &RUop, earliest: Cycle) -> Cycle {
        let flow = &uop.flows[0];
        let a = self.pipes[EAGA].first_free(self.operands(&uop.addr_srcs, EAGA).max(earliest));
        let b = self.pipes[EAGB].first_free(self.operands(&uop.addr_srcs, EAGB).max(earliest));
        let use_a = flow.pipes.meets(Pipes::EAGA) && (a <= b || !flow.pipes.meets(Pipes::EAGB));
        if use_a { self.book(flow, EAGA, a) } else { self.book(flow, EAGB, b) }
    }

    /// The data flow of a store, through RSE0; returns when the data are there.
    #[inline(always)]
    fn store_data(&mut self, uop: &RUop, d: Cycle) -> Cycle {
        let flow = &uop.flows[1];
        if uop.nflows != 2 || flow.pipes.is_empty() {
            return self.operands(&uop.srcs, EXA);
        }
        self.dispatch.take_second(Station::Rse0);
        let pipe = pick(flow.pipes, Station::Rse0);
        let earliest = (d + self.stage_of_pipe[pipe]).max(self.operands(&uop.srcs, pipe));
        let at = self.book(flow, pipe, earliest);
        self.dispatch.release(Station::Rse0, at.saturating_sub(1));
        at
    }

    /// When all of `srcs` have reached `pipe`.
    #[inline(always)]
    fn operands(&self, srcs: &[u8], pipe: usize) -> Cycle {
        let mut t = 0;
        for &src in srcs {
            if src == READY {
                break;
            }
            t = t.max(self.ready[usize::from(src)][pipe]);
        }
        t
    }

    /// Results are there at `t`, made by `pipe`.
    #[inline(always)]
    fn result(&mut self, uop: &RUop, t: Cycle, pipe: usize) {
        for (&dst, &producer) in uop.dsts.iter().zip(&uop.producers) {
            if dst == READY {
                break;
            }
            let ready = &mut self.ready[usize::from(dst)];
            *ready = [t; PIPES];
            if producer != PLAIN {
                let extra = &self.bypass[usize::from(self.bypass_row[usize::from(producer)][pipe])];
                ready.iter_mut().zip(extra).for_each(|(ready, extra)| *ready += extra);
            }
        }
    }

    fn prefetch(&mut self, uop: &RUop, words: &[u64], at: Cycle) {
        let mem = &uop.mem;
        let (Access::PrefetchLoad(level) | Access::PrefetchStore(level)) = mem.op.access else { return };
        match mem.op.shape {
            fxscope_uop::Shape::Indexed => {
                let step = usize::from(mem.op.reg_esize);
                for (i, &addr) in words[1..].iter().enumerate() {
                    if words[0] >> (i * step) & 1 == 1 {
                        self.memory.prefetch_instruction(addr.into(), level, at, &mut self.signals);
                    }
                }
            }
            shape => {
                let masked_off = shape == fxscope_uop::Shape::Masked && words[1] == 0;
                if !masked_off {
                    self.memory.prefetch_instruction(words[0].into(), level, at, &mut self.signals);
                }
            }
        }
    }

    fn zero(&mut self, words: &[u64], committed: Cycle) {
        if let Some(&addr) = words.first() {
            let ready = self.memory.zero_line(addr.into(), committed, &mut self.signals);
            self.lsu.fetch_ports_taken(1, ready.min(committed + 1));
        }
    }

    /// A branch has executed: learn, and steer the front end.
    #[inline(always)]
    fn branch(&mut self, o: Outcome, complete: Cycle, committed: Cycle) {
        let taken = o.taken();
        if taken {
            self.dispatch.close_group();
        }
        if self.predictor.branch(o.kind, o.pc, taken, o.next) {
            if taken {
                self.front.taken(o.pc);
            }
            return;
        }
        self.signals.add(Signal::BrMisPred, 1);
        self.front.redirect(complete + self.mispredict_extra);
        // The right path waits at decode until everything up to the branch has committed.
        self.dispatch.hold_until(committed + 1);
    }

    #[inline(always)]
    fn advance(&mut self, now: Cycle) {
        if now >= self.next_advance {
            self.next_advance = now + 64;
            for calendar in &mut self.pipes {
                calendar.advance(now);
            }
            self.memory.advance(now);
        }
    }

    /// The thread spends `cycles` outside user code: everything in flight commits first.
    pub fn pause(&mut self, cycles: Cycle) {
        let until = self.commit.now() + 1 + cycles;
        self.commit.idle_until(until, &mut self.signals);
        self.dispatch.hold_until(until);
        self.front.redirect(until);
    }

    /// Everything counted so far. The cycle of the last commit is not over and not counted yet.
    #[must_use]
    pub fn counters(&self) -> Signals {
        let mut signals = self.signals.clone();
        let commits = [Signal::Commit0, Signal::Commit1, Signal::Commit2, Signal::Commit3, Signal::Commit4];
        let cycles = commits.iter().map(|&s| signals.get(s)).sum();
        signals.set(Signal::CpuCycles, cycles);
        for (signal, &started) in PIPE_SIGNALS.iter().zip(&self.started) {
            if let Some(signal) = signal {
                signals.set(*signal, started);
            }
        }
        signals.set(Signal::L1Pipe0Val, self.memory.pipes.busy[0]);
        signals.set(Signal::L1Pipe1Val, self.memory.pipes.busy[1]);
        signals
    }

    /// The program is over: the cycle of the last commit counts too.
    pub fn finish(&mut self) {
        self.commit.finish(&mut self.signals);
    }
}

/// What a branch did.
#[derive(Clone, Copy)]
struct Outcome {
    kind: Branch,
    pc: u64,
    next: u64,
}

impl Outcome {
    #[inline(always)]
    fn taken(&self) -> bool {
        self.next != self.pc + 4
    }
}

/// The calendar of a pipe's issue port.
#[inline(always)]
fn port(pipe: usize) -> usize {
    if pipe == PRX { EXA } else { pipe }
}

/// The pipe of `set` that operations in `station` use; of several, the first.
#[inline(always)]
fn pick(set: Pipes, station: Station) -> usize {
    const ADDRESS: Pipes = Pipes::EAGA.or(Pipes::EAGB);
    /// By number of the station.
    const NEAR: [Pipes; 5] =
        [Pipes::EXA.or(Pipes::FLA).or(Pipes::PRX), Pipes::EXB.or(Pipes::FLB), ADDRESS, ADDRESS, Pipes::BR];
    let near = NEAR[station as usize];
    let choice = if set.meets(near) { set.0 & near.0 } else { set.0 };
    (choice.trailing_zeros() as usize).min(PIPES - 1)
}

impl Producer {
    /// The producer that stands for an integer result from `pipe`.
    #[inline(always)]
    fn integer(pipe: usize) -> Producer {
        match pipe {
            0 => Producer::Exa,
            1 => Producer::Exb,
            2 => Producer::Eaga,
            3 => Producer::Eagb,
            _ => Producer::Plain,
        }
    }
}

fn bypass_table(spec: &Spec) -> BypassTable {
    let b = &spec.bypass;
    let mut table = [[0; PIPES]; PRODUCERS];
    // Rows of the description name kinds of consumers; this says which pipe is of which kind.
    let kinds = [0, 0, 1, 1, 2, 2, 3, 4];
    let rows = [
        (Producer::Flags, &b.flags),
        (Producer::FlagsExb, &b.flags),
        (Producer::Predicate, &b.predicate),
        (Producer::PredicateLoad, &b.predicate_load),
        (Producer::Compare, &b.compare),
        (Producer::PredicateFlags, &b.predicate_flags),
        (Producer::VectorFlags, &b.vector_flags),
        (Producer::CompareFlags, &b.compare_flags),
    ];
    for (producer, row) in rows {
        for (pipe, kind) in kinds.into_iter().enumerate() {
            table[producer as usize][pipe] = row[kind];
        }
    }
    table[Producer::Flags as usize][EXB] += b.integer_other_pipe;
    table[Producer::FlagsExb as usize][EXA] += b.integer_other_pipe;
    for from in 0..4 {
        for to in (0..4).filter(|&to| to != from) {
            table[Producer::integer(from) as usize][to] = b.integer_other_pipe;
        }
    }
    table
}

/// Which row of the bypass table a result has, by its kind and the pipe that makes it.
fn bypass_rows() -> [[u8; PIPES]; PRODUCERS + 1] {
    let mut rows: [[u8; PIPES]; PRODUCERS + 1] = std::array::from_fn(|producer| [producer as u8; PIPES]);
    rows[usize::from(BY_PIPE)] = std::array::from_fn(|pipe| Producer::integer(pipe) as u8);
    rows[Producer::Flags as usize][EXB] = Producer::FlagsExb as u8;
    rows
}
