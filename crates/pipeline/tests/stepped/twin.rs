//! A second model of the core that steps every cycle: dispatch, stations, pipes, window and commit.
//!
//! It shares nothing with the model under test but the resolved micro-operations and the machine's description.
//! Data are always in the L1D cache, loads and stores never meet, branches are predicted.

use std::collections::{BTreeSet, VecDeque};

use fxscope_base::Cycle;
use fxscope_machine::{Pipes, Spec};
use fxscope_pipeline::resolve::{Action, Attribute, BY_PIPE, Producer, READY, REGS, RFlow, RUop};

use crate::common::Block;
use crate::parts::{Entry, Ports, Results, Value, Waiting, WriteBuffer, fetch, integer, uop_branches};

const RSE0: usize = 0;
const RSE1: usize = 1;
const RSA0: usize = 2;
const RSA1: usize = 3;
const RSBR: usize = 4;
const NO_STATION: usize = 5;

const EXA: usize = 0;
const EAGA: usize = 2;
const PRX: usize = 6;
const BR: usize = 7;

pub struct Twin<'a> {
    spec: &'a Spec,
    now: Cycle,
    window: VecDeque<Entry>,
    values: Vec<Vec<(u8, Value)>>,
    writer: [Option<usize>; REGS],
    /// Number of the group in the last decode stage, and its next slot from 1 on; 0 when there is none.
    group: u64,
    slot: u32,
    groups_taken: u32,
    renames: [u32; 3],
    /// Resources that come back: (cycle, what).
    returns: Vec<(Cycle, Return)>,
    taken: [u32; 5],
    /// `taken` when the cycle began.
    taken_before: [u32; 5],
    writes: [u32; 5],
    /// The micro-operation dispatched last and its station, if it is an integer operation.
    last: Option<(usize, usize)>,
    port_busy: [Cycle; 8],
    exclusive: [Cycle; 8],
    fetch_ports: Ports,
    store_ports: Ports,
    buffer: VecDeque<WriteBuffer>,
    /// Committed stores that have not entered the write buffer: block and store port.
    committed: VecDeque<(u64, usize)>,
    last_commit: Cycle,
    /// Cycles in which results leave FLA and FLB, and in which long accesses end in the load/store pipes.
    results: Results,
    long_ends: BTreeSet<(usize, Cycle)>,
}

#[derive(Clone, Copy)]
enum Return {
    Group,
    Rename(usize, u32),
    Station(usize),
}

/// Cycles from the decode of the first instruction to the commit of the last, for `rounds` rounds of a
/// loop.
pub fn cycles(spec: &Spec, body: &Block, rounds: usize) -> Cycle {
    let uops = body.uops();
    let accesses = body.accesses();
    let decodable = fetch(spec, uops, rounds);
    let mut twin = Twin::new(spec);
    let total = uops.len() * rounds;
    let mut next = 0;
    while next < total || !twin.window.is_empty() {
        twin.load_store_pipes();
        twin.commit();
        twin.issue();
        twin.give_back();
        twin.writes = [0; 5];
        twin.taken_before = twin.taken;
        if twin.slot == 0 {
            twin.open_group(next < total);
        }
        while twin.slot > 0 && next < total {
            let uop = &uops[next % uops.len()];
            let first_of_group = twin.slot == 1;
            if decodable[next] > twin.now || (!first_of_group && uop.opens_group) {
                // What cannot be decoded with the others is in the next group.
                twin.close_group(first_of_group);
                break;
            }
            let access = accesses[usize::from(uop.inst)].as_ref();
            let taken = uop.last && uop_branches(uop);
            let (eligible, addr) = access.map_or((false, 0), |(m, words)| (m.eligible, words[0]));
            if !twin.dispatch(next, uop, eligible, addr / u64::from(spec.load_store.write_buffer_bytes), taken) {
                break;
            }
            next += 1;
            twin.slot += 1;
            if twin.slot > spec.window.dispatch_width || uop.closes_group || taken {
                twin.close_group(false);
                break;
            }
        }
        if next == total && twin.slot > 0 {
            twin.close_group(twin.slot == 1);
        }
        twin.now += 1;
        assert!(twin.now < 1_000_000, "the twin stands still");
    }
    twin.last_commit
}

impl<'a> Twin<'a> {
    fn new(spec: &'a Spec) -> Twin<'a> {
        let w = &spec.window;
        Twin {
            spec,
            now: 0,
            window: VecDeque::new(),
            values: Vec::new(),
            writer: [None; REGS],
            group: 0,
            slot: 0,
            groups_taken: 0,
            renames: [w.rename_gpr, w.rename_vector, w.rename_predicate],
            returns: Vec::new(),
            taken: [0; 5],
            taken_before: [0; 5],
            writes: [0; 5],
            last: None,
            port_busy: [0; 8],
            exclusive: [0; 8],
            fetch_ports: Ports::default(),
            store_ports: Ports::default(),
            buffer: VecDeque::new(),
            committed: VecDeque::new(),
            last_commit: 0,
            results: Results::default(),
            long_ends: BTreeSet::new(),
        }
    }

    fn give_back(&mut self) {
        let now = self.now;
        let (due, later): (Vec<_>, Vec<_>) = self.returns.drain(..).partition(|r| r.0 <= now);
        self.returns = later;
        for (_, what) in due {
            match what {
                Return::Group => self.groups_taken -= 1,
                Return::Rename(class, n) => self.renames[class] += n,
                Return::Station(s) => self.taken[s] -= 1,
            }
        }
    }

    // ---- dispatch ----

    fn open_group(&mut self, more: bool) {
        let w = &self.spec.window;
        if more && self.groups_taken < w.commit_stack / w.group_entries {
            self.groups_taken += 1;
            self.group += 1;
            self.slot = 1;
        }
    }

    fn close_group(&mut self, empty: bool) {
        self.slot = 0;
        if empty {
            self.groups_taken -= 1;
            self.group -= 1;
        } else if !self.window.iter().any(|e| e.group == self.group) {
            self.returns.push((self.now + 1, Return::Group));
        }
    }

    fn entries(&self, station: usize) -> u32 {
        let s = &self.spec.stations;
        [s.rse_entries, s.rse_entries, s.rsa_entries, s.rsa_entries, s.rsbr_entries][station]
    }
    /// All slots of a decode window are decided by what was free when the cycle began.
    fn free(&self, station: usize) -> u32 {
        self.entries(station) - self.taken_before[station]
    }
    fn accepts(&self, station: usize) -> bool {
        self.taken[station] < self.entries(station) && self.writes[station] < self.spec.stations.writes_per_cycle
    }

    /// The station for a micro-operation in the current slot (manual 5.2, 5.3).
    fn station(&self, uop: &RUop) -> usize {
        let slot = (self.slot - 1) as usize;
        let pair = |a: usize, b: usize| match (self.free(a) > 0, self.free(b) > 0) {
            (true, false) => a,
            (false, true) => b,
            _ => [a, b][slot % 2],
        };
        let dependent = integer(uop)
            && self.last.is_some_and(|(number, _)| {
                uop.srcs.iter().any(|&s| s != READY && self.writer[usize::from(s)] == Some(number))
            });
        match uop.attribute {
            Attribute::None => NO_STATION,
            Attribute::Rsx if dependent => self.last.expect("dependent").1,
            // The address pipes cannot execute it.
            Attribute::Rse if dependent && matches!(self.last, Some((_, RSE0 | RSE1))) => {
                self.last.expect("dependent").1
            }
            Attribute::Rse0 => RSE0,
            Attribute::Rse1 => RSE1,
            Attribute::Rsbr => RSBR,
            Attribute::Rse => pair(RSE0, RSE1),
            Attribute::Rsa => pair(RSA0, RSA1),
            Attribute::Rsx => self.balanced(slot),
        }
    }

    fn balanced(&self, slot: usize) -> usize {
        let more_free = |a: usize, b: usize| if self.free(a) >= self.free(b) { [a, b] } else { [b, a] };
        let ([em, ef], [am, af]) = (more_free(RSE0, RSE1), more_free(RSA0, RSA1));
        let threshold = i64::from(self.spec.stations.balance_threshold);
        let e = i64::from(self.free(RSE0) + self.free(RSE1));
        let a = i64::from(self.free(RSA0) + self.free(RSA1));
        let only_e = (a == 0 && self.free(ef) > 0) || e - a >= threshold;
        let only_a = (e == 0 && self.free(af) > 0) || a - e >= threshold;
        let table = match (only_e, only_a) {
            (true, false) if i64::from(self.free(em) - self.free(ef)) >= threshold => [em; 4],
            (true, false) => [em, ef, em, ef],
            (false, true) => [am, af, am, af],
            _ if self.free(em) >= self.free(am) => [em, ef, am, af],
            _ => [am, af, em, ef],
        };
        table[slot]
    }

    /// Dispatches micro-operation `number` if there is room for it now.
    fn dispatch(&mut self, number: usize, uop: &RUop, eligible: bool, block: u64, taken: bool) -> bool {
        // Entries name the class of a register taken: 1 general purpose, 2 vector, 3 predicate.
        let mut taken_now = [0; 3];
        for &class in uop.renames.iter().filter(|&&class| class > 0) {
            taken_now[usize::from(class) - 1] += 1;
        }
        let enough = taken_now.iter().zip(&self.renames).all(|(n, free)| n <= free);
        let station = self.station(uop);
        let has_data_flow = uop.action == Action::Store && uop.nflows == 2;
        let room = station == NO_STATION || self.accepts(station);
        let data_room = !has_data_flow || self.accepts(RSE0);
        if !enough || !room || !data_room {
            return false;
        }
        for (class, n) in taken_now.into_iter().enumerate() {
            self.renames[class] -= n;
        }
        for s in [(station != NO_STATION).then_some(station), has_data_flow.then_some(RSE0)].into_iter().flatten() {
            self.taken[s] += 1;
            self.writes[s] += 1;
        }
        let needs = |regs: &[u8]| -> Vec<(usize, u8)> {
            regs.iter().filter(|&&r| r != READY).filter_map(|&r| Some((self.writer[usize::from(r)]?, r))).collect()
        };
        let (srcs, addrs) = (needs(&uop.srcs), needs(&uop.addr_srcs));
        let mut entry = Entry {
            number,
            uop: *uop,
            group: self.group,
            dispatched: self.now,
            waiting: Vec::new(),
            complete: None,
            access: None,
            accessed: None,
            data: None,
            eligible,
            fetch_port: 0,
            store_port: 0,
            block,
            taken,
        };
        let first = |needs, holds_entry| Waiting { flow: 0, from: 0, station, needs, holds_entry };
        let now = self.now;
        let mut value = None;
        match uop.action {
            Action::None => {
                entry.complete = Some(now + u64::from(uop.to_commit));
                value = Some((now + 1, EXA));
            }
            Action::Load => {
                entry.fetch_port = self.fetch_ports.take();
                entry.waiting.push(first(addrs, true));
            }
            Action::Store => {
                entry.fetch_port = self.fetch_ports.take();
                entry.store_port = self.store_ports.take();
                entry.waiting.push(first(addrs, true));
                entry.waiting.push(Waiting { flow: 1, from: 0, station: RSE0, needs: srcs, holds_entry: true });
            }
            Action::BranchDirect => {
                entry.complete = Some(now + self.spec.stages.branch - 1 + self.spec.stages.commit_branch);
                if station != NO_STATION {
                    self.returns.push((now + self.spec.stages.branch - 1, Return::Station(station)));
                }
            }
            Action::BranchOnFlags | Action::Compute | Action::BranchExecuted => entry.waiting.push(first(srcs, true)),
            Action::Prefetch | Action::Zero => panic!("the twin has no {:?}", uop.action),
        }
        self.values.push(Vec::new());
        assert_eq!(self.values.len(), number + 1);
        for &d in uop.dsts.iter().filter(|&&d| d != READY) {
            self.writer[usize::from(d)] = Some(number);
        }
        if let Some((at, pipe)) = value {
            self.make(number, uop, at, pipe);
        }
        self.last = integer(uop).then_some((number, station));
        self.window.push_back(entry);
        true
    }

    // ---- execution ----

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
    fn make(&mut self, number: usize, uop: &RUop, at: Cycle, pipe: usize) {
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

    /// Pipes that an operation of `station` may take for `flow`.
    fn pipes(flow: &RFlow, station: usize) -> Pipes {
        let near = match station {
            RSE0 => Pipes::EXA.or(Pipes::FLA).or(Pipes::PRX),
            RSE1 => Pipes::EXB.or(Pipes::FLB),
            RSA0 | RSA1 => Pipes::EAGA.or(Pipes::EAGB),
            _ => Pipes::BR,
        };
        if flow.pipes.meets(near) && !flow.all { Pipes(flow.pipes.0 & near.0) } else { flow.pipes }
    }

    /// Chooses what starts in the next cycle: for each pipe the oldest that is ready.
    fn issue(&mut self) {
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
            let taken = start.saturating_sub(ls.port_stages);
            if !self.fetch_ports.open(fp, ls.fetch_ports, taken)
                || (uop.action == Action::Store && !self.store_ports.open(sp, ls.store_ports, taken))
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
        let idle = |p: usize| self.port_busy[port(p)] <= start && (!uop.exclusive || self.exclusive[p] <= start);
        let first_flow = waiting.holds_entry;
        let can = |p: usize| {
            idle(p) && (!first_flow || start >= e.dispatched + self.stage(p)) && self.ready(&waiting.needs, p, start)
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
            self.port_busy[port(p)] = start + u64::from(flow.busy.max(1));
        }
        if uop.exclusive {
            self.exclusive[pipe] = start + u64::from(flow.latency);
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
        match uop.action {
            Action::Load => self.window[i].access = Some(start),
            Action::Store if waiting.flow == 0 => self.window[i].access = Some(start),
            Action::Store => {
                // Data from a vector pipe are as early as data from an integer pipe for the commit stage.
                self.window[i].data = Some(start - (self.stage(pipe) - s.address));
            }
            _ if waiting.flow + 1 < usize::from(uop.nflows) => {
                let station = waiting.station;
                let next =
                    Waiting { flow: waiting.flow + 1, from: done, station, needs: Vec::new(), holds_entry: false };
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

    /// The two load/store pipes in this cycle: a store write alone or beside an eligible store access,
    /// or two accesses, oldest first.
    fn load_store_pipes(&mut self) {
        let now = self.now;
        let ls = &self.spec.load_store;
        let mut room = 2;
        let mut writing = false;
        if let Some(w) = self.buffer.iter().position(|w| w.ready <= now) {
            self.buffer.remove(w);
            room = 1;
            writing = true;
        }
        for i in 0..self.window.len() {
            let e = &mut self.window[i];
            let waits = e.access.is_some_and(|t| t <= now) && e.accessed.is_none();
            let may = !writing || (e.uop.action == Action::Store && e.eligible);
            if room == 0 || !waits || !may {
                continue;
            }
            // Pipe 0 first; a write has pipe 1.
            let pipe = usize::from(room == 1 && !writing);
            room -= 1;
            e.accessed = Some(now);
            let s = &self.spec.stages;
            let basic = u64::from(e.uop.to_commit);
            let lengthens = self.long_ends.contains(&(pipe, now + basic));
            let to_commit = if lengthens { s.commit_long } else { basic };
            if to_commit == s.commit_long {
                self.long_ends.insert((pipe, now + to_commit));
            }
            let longer = to_commit - basic;
            e.uop.to_commit = to_commit as u8;
            self.fetch_ports.released[e.fetch_port] = Some(now + to_commit);
            if e.uop.action == Action::Load {
                e.complete = Some(now + to_commit);
                let (number, uop) = (e.number, e.uop);
                self.make(number, &uop, now + u64::from(uop.load_latency) + longer, EAGA);
            }
        }
        for e in &mut self.window {
            if let (Action::Store, Some(at), Some(data), None) = (e.uop.action, e.accessed, e.data, e.complete) {
                e.complete = Some(at.max(data) + u64::from(e.uop.to_commit));
            }
        }
        // Committed stores move to the write buffer in order.
        while let Some(&(block, port)) = self.committed.front() {
            let joins = self.buffer.back().is_some_and(|w| w.block == block);
            if !joins {
                if self.buffer.len() >= ls.write_buffer as usize {
                    break;
                }
                // It committed in the cycle before.
                self.buffer.push_back(WriteBuffer { block, ready: now - 1 + ls.store_write });
            }
            self.store_ports.released[port] = Some(now - 1 + ls.store_write);
            self.committed.pop_front();
        }
    }

    // ---- commit ----

    fn commit(&mut self) {
        let w = &self.spec.window;
        let mut group = None;
        for _ in 0..w.commit_width {
            let ready = self
                .window
                .front()
                .is_some_and(|e| e.complete.is_some_and(|t| t <= self.now) && group.is_none_or(|g| g == e.group));
            if !ready {
                break;
            }
            let e = self.window.pop_front().expect("just seen");
            group = Some(e.group);
            self.last_commit = self.now;
            for &class in e.uop.renames.iter().filter(|&&class| class > 0) {
                let class = usize::from(class) - 1;
                self.returns.push((self.now + w.rename_release, Return::Rename(class, 1)));
            }
            if e.uop.action == Action::Store {
                self.committed.push_back((e.block, e.store_port));
            }
            let still_open = self.slot > 0 && self.group == e.group;
            if !still_open && self.window.front().is_none_or(|next| next.group != e.group) {
                self.returns.push((self.now + 1, Return::Group));
            }
            if e.taken {
                break;
            }
        }
    }
}
