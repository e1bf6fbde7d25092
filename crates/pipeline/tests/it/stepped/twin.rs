//! A second model of the core that steps every cycle: dispatch, stations, pipes, window and commit.
//!
//! It shares nothing with the model under test but the resolved micro-operations and the machine's description.
//! Data are always in the L1D cache, branches are predicted, no load goes ahead of a store to the same place.

mod execute;
mod meetings;

use std::collections::{BTreeSet, VecDeque};

use fxscope_calendar::Cycle;
use fxscope_machine::Spec;
use fxscope_pipeline::bind::{Action, Attribute, BoundUop, READY, REGS};

use self::meetings::Meets;
use crate::stepped::front::Front;
use crate::stepped::parts::{Entry, MergeBlock, Ports, Results, Step, Store, Value, Waiting, WriteBuffer, integer};

const RSE0: usize = 0;
const RSE1: usize = 1;
const RSA0: usize = 2;
const RSA1: usize = 3;
const RSBR: usize = 4;
const NO_STATION: usize = 5;

const EXA: usize = 0;
const EAGA: usize = 2;
const EAGB: usize = 3;
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
    /// Temporary operand registers in use; one has been taken in this cycle.
    tors_taken: u32,
    tor_taken: bool,
    /// The micro-operation dispatched last and its station, if it is an integer operation.
    last: Option<(usize, usize)>,
    port_busy: [Cycle; 8],
    exclusive: [Cycle; 8],
    fetch_ports: Ports,
    store_ports: Ports,
    buffer: VecDeque<WriteBuffer>,
    /// Committed stores that have not entered the write buffer: number, block and store port.
    committed: VecDeque<(usize, Option<MergeBlock>, usize)>,
    /// Stores that loads may meet.
    stores: Vec<Store>,
    /// Flows of loads that came again because of one; a load went ahead of one.
    cancelled: u64,
    went_ahead: bool,
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
    TemporaryOperandRegister,
}

/// Cycles from the decode of the first instruction of a program to the commit of its last one.
pub fn cycles(spec: &Spec, steps: &[Step]) -> Cycle {
    run(spec, steps).expect("a program whose loads do not go ahead of stores to the same place").0
}

/// The same, and how many flows of loads were cancelled because they met stores; `None` if a load went ahead of a store
/// to the same place, which this core does not take back.
pub fn run(spec: &Spec, steps: &[Step]) -> Option<(Cycle, u64)> {
    let mut twin = Twin::new(spec);
    let mut front = Front::new(spec, steps);
    let mut next = 0;
    while next < steps.len() || !twin.window.is_empty() {
        twin.load_store_pipes();
        twin.commit();
        twin.issue();
        twin.give_back();
        front.step(twin.now, next);
        twin.writes = [0; 5];
        twin.tor_taken = false;
        twin.taken_before = twin.taken;
        if twin.slot == 0 {
            twin.open_group(next < steps.len());
        }
        while twin.slot > 0 && next < steps.len() {
            let step = &steps[next];
            let first_of_group = twin.slot == 1;
            if next >= front.read || (!first_of_group && step.uop.opens_group) {
                // What cannot be decoded with the others is in the next group.
                twin.close_group(first_of_group);
                break;
            }
            if !twin.dispatch(next, step) {
                break;
            }
            next += 1;
            twin.slot += 1;
            if twin.slot > spec.window.dispatch_width || step.uop.closes_group || step.taken.is_some() {
                twin.close_group(false);
                break;
            }
        }
        if next == steps.len() && twin.slot > 0 {
            twin.close_group(twin.slot == 1);
        }
        twin.now += 1;
        assert!(twin.now < 1_000_000, "the twin stands still");
    }
    (!twin.went_ahead).then_some((twin.last_commit, twin.cancelled))
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
            tors_taken: 0,
            tor_taken: false,
            last: None,
            port_busy: [0; 8],
            exclusive: [0; 8],
            fetch_ports: Ports::default(),
            store_ports: Ports::default(),
            buffer: VecDeque::new(),
            committed: VecDeque::new(),
            stores: Vec::new(),
            cancelled: 0,
            went_ahead: false,
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
                Return::TemporaryOperandRegister => self.tors_taken -= 1,
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
    fn station(&self, uop: &BoundUop) -> usize {
        let slot = (self.slot - 1) as usize;
        let some = self.spec.stations.some_free_entries;
        let pair = |a: usize, b: usize, room: u32| match (self.free(a) >= room, self.free(b) >= room) {
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
            Attribute::Rse => pair(RSE0, RSE1, some),
            Attribute::Rsa => pair(RSA0, RSA1, 1),
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
    fn dispatch(&mut self, number: usize, step: &Step) -> bool {
        let uop = &step.uop;
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
        let tor = self.tors_taken < self.spec.window.temporary_operand_registers && !self.tor_taken;
        if !enough || !room || !data_room || (uop.takes_tor && !tor) {
            return false;
        }
        if uop.takes_tor {
            self.tors_taken += 1;
            self.tor_taken = true;
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
            beside: 0,
            accessed: None,
            data: None,
            eligible: step.eligible,
            fetch_port: 0,
            store_port: 0,
            block: step.block,
            bytes: step.bytes,
            taken: step.taken.is_some(),
        };
        let late = needs(&[uop.late.src]).pop();
        let first = |needs, holds_entry| Waiting { flow: 0, from: 0, station, needs, late, holds_entry };
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
                self.begin_store(number, step);
                entry.waiting.push(first(addrs, true));
                entry.waiting.push(Waiting { flow: 1, from: 0, station: RSE0, needs: srcs, late, holds_entry: true });
            }
            Action::BranchDirect => {
                entry.complete = Some(now + self.spec.stages.branch - 1 + self.spec.stages.commit_branch);
                if station != NO_STATION {
                    self.returns.push((now + self.spec.stages.branch - 1, Return::Station(station)));
                }
            }
            Action::BranchOnFlags | Action::Compute | Action::BranchExecuted => entry.waiting.push(first(srcs, true)),
            Action::StoreData | Action::Prefetch | Action::Zero => panic!("the twin has no {:?}", uop.action),
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

    /// The two load/store pipes in this cycle: a store write alone or beside an eligible store access,
    /// or two accesses, oldest first.
    fn load_store_pipes(&mut self) {
        let now = self.now;
        self.forget_stores();
        let ls = &self.spec.load_store;
        let mut free = [true; 2];
        let mut writing = false;
        if let Some(w) = self.buffer.iter().position(|w| w.ready <= now) {
            let written = self.buffer.remove(w).expect("just found");
            written.stores.into_iter().for_each(|number| self.store(number).written = Some(now));
            // A write has pipe 1.
            free[1] = false;
            writing = true;
        }
        for i in 0..self.window.len() {
            let e = &self.window[i];
            let waits = e.access.is_some_and(|t| t <= now) && e.accessed.is_none();
            let may = !writing || (e.uop.action == Action::Store && e.eligible);
            let room = [e.beside, 1 - e.beside].into_iter().find(|&pipe| free[pipe]);
            let Some(pipe) = room.filter(|_| waits && may) else { continue };
            free[pipe] = false;
            if e.uop.action == Action::Load {
                let meets = self.meets(e);
                self.went_ahead |= meets == Meets::Unknown;
                if meets == Meets::Late {
                    self.cancelled += 1;
                    let e = &mut self.window[i];
                    e.access = Some(now + u64::from(e.uop.to_commit) + ls.resubmit);
                    continue;
                }
            }
            let e = &mut self.window[i];
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
        // Committed stores move to the write buffer in order, some a cycle.
        for _ in 0..ls.write_buffer_moves {
            let Some(&(number, block, port)) = self.committed.front() else { break };
            // One that waits for stores to merge gives way.
            let waiting = |w: &WriteBuffer| w.merges_from < w.ready && w.merges_from <= now;
            let full = self.buffer.iter().filter(|w| !waiting(w)).count() >= ls.write_buffer as usize;
            match self.buffer.back_mut().filter(|w| block.is_some() && w.block == block) {
                Some(joined) => joined.stores.push(number),
                None if full => break,
                None => {
                    // It committed in the cycle before.
                    let room = block.is_some_and(|block| self.store(number).bytes.to < block.end);
                    let wait = if room { self.spec.load_store.merge_wait } else { 0 };
                    let merges_from = now - 1 + self.spec.load_store.store_write;
                    let ready = merges_from + wait;
                    self.buffer.push_back(WriteBuffer { block, merges_from, ready, stores: vec![number] });
                }
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
                self.committed.push_back((e.number, e.block, e.store_port));
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
