//! What the stepped core consists of: operations in flight, queues, the front end's schedule.

use std::collections::BTreeSet;

use fxscope_calendar::Cycle;
use fxscope_isa::Shape;
use fxscope_machine::{Pipes, Spec};
use fxscope_pipeline::bind::{Action, BoundUop, Producer};
use fxscope_pipeline::lsu::rules::Writing;

use crate::common::Block;

/// A value: when it can be had in its own pipe, and who made it.
#[derive(Clone, Copy)]
pub struct Value {
    pub at: Cycle,
    pub by: Producer,
    pub pipe: usize,
}

/// One flow that waits for its pipe.
#[derive(Clone)]
pub struct Waiting {
    pub flow: usize,
    /// Not before.
    pub from: Cycle,
    pub station: usize,
    /// The micro-operations whose results it needs, as (number, register).
    pub needs: Vec<(usize, u8)>,
    /// The one whose result a later flow needs.
    pub late: Option<(usize, u8)>,
    /// It holds a station entry until it starts.
    pub holds_entry: bool,
}

/// A micro-operation in flight.
pub struct Entry {
    pub number: usize,
    pub uop: BoundUop,
    pub group: u64,
    pub dispatched: Cycle,
    pub waiting: Vec<Waiting>,
    pub complete: Option<Cycle>,
    /// Cycle from which its access waits for a load/store pipe, and the access itself.
    pub access: Option<Cycle>,
    pub accessed: Option<Cycle>,
    /// The load/store pipe beside the address pipe that sends it, which it takes if that is free.
    pub beside: usize,
    pub data: Option<Cycle>,
    pub eligible: bool,
    pub fetch_port: usize,
    pub store_port: usize,
    pub block: Option<MergeBlock>,
    pub bytes: Bytes,
    pub taken: bool,
}

/// The part of memory that an entry of the write buffer has for a store and for others that merge with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MergeBlock {
    pub start: u64,
    pub end: u64,
}

impl MergeBlock {
    /// That of a store of `bytes`, if others may merge with it.
    fn of(bytes: Bytes, writing: Writing) -> Option<MergeBlock> {
        let start = bytes.from >> writing.shift << writing.shift;
        writing.merges.then_some(MergeBlock { start, end: start + (1 << writing.shift) })
    }
}

/// What an access reads or writes.
#[derive(Clone, Copy)]
pub struct Bytes {
    pub from: u64,
    pub to: u64,
    /// A plain access to a register, which may hand data over or take them.
    pub plain: bool,
}

impl Bytes {
    pub fn meets(self, other: Bytes) -> bool {
        self.from < other.to && other.from < self.to
    }

    /// A load of `load` may take the data of a store of these (manual table 7-3): parts of up to eight bytes, or the
    /// same whole register.
    pub fn hand_over(self, load: Bytes) -> bool {
        let within = self.from <= load.from && load.to <= self.to;
        let same = self.from == load.from && self.to == load.to;
        self.plain && load.plain && within && (same || self.to - self.from <= 8)
    }
}

/// A store from its dispatch until its write has left the pipes.
pub struct Store {
    pub number: usize,
    pub bytes: Bytes,
    /// Cycles from an access to its end.
    pub flow: Cycle,
    /// Cycles from its data to the first flow that gets them.
    pub hands_over_in: Cycle,
    /// When its address and its data are known.
    pub known: Option<Cycle>,
    pub data: Option<Cycle>,
    pub written: Option<Cycle>,
}

pub struct WriteBuffer {
    pub block: Option<MergeBlock>,
    /// From then on it only waits for stores to merge, until it is ready.
    pub merges_from: Cycle,
    pub ready: Cycle,
    /// The stores whose data it holds.
    pub stores: Vec<usize>,
}

/// In-order use of a few ports: port `n` is given back at `released[n]`.
#[derive(Default)]
pub struct Ports {
    pub released: Vec<Option<Cycle>>,
    pub done: usize,
}

impl Ports {
    pub fn take(&mut self) -> usize {
        self.released.push(None);
        self.released.len() - 1
    }
    pub fn open(&mut self, port: usize, capacity: u32, at: Cycle) -> bool {
        while self.released.get(self.done).is_some_and(|r| r.is_some_and(|t| t <= at)) {
            self.done += 1;
        }
        port < self.done + capacity as usize
    }
}

/// Results that leave the vector pipes, by pipe and cycle.
#[derive(Default)]
pub struct Results(BTreeSet<(usize, Cycle)>);

impl Results {
    /// The latency of an operation: where results would leave a vector pipe together, one takes longer (manual 2.9).
    pub fn latency(&mut self, spec: &Spec, pipe: usize, start: Cycle, latency: u16) -> Cycle {
        const FLA: usize = 4;
        const FLB: usize = 5;
        let basic = u64::from(latency);
        if ![FLA, FLB].contains(&pipe) {
            return basic;
        }
        let changes = spec.stages.lengthened_vector;
        let possible: Vec<Cycle> =
            if changes.contains(&basic) { changes.into_iter().filter(|&l| l >= basic).collect() } else { vec![basic] };
        let free = possible.iter().find(|&&l| !self.0.contains(&(pipe, start + l)));
        let latency = *free.unwrap_or(possible.last().expect("its own"));
        self.0.insert((pipe, start + latency));
        latency
    }
}

/// A micro-operation of a program in the order in which it runs.
#[derive(Clone)]
pub struct Step {
    pub uop: BoundUop,
    /// Address of its instruction.
    pub addr: u64,
    /// Instructions that are read from the buffer with it: none for a further micro-operation, two behind a MOVPRFX
    /// that is packed with it.
    pub insts: u64,
    /// Where others may merge with it, if it is a store.
    pub block: Option<MergeBlock>,
    pub bytes: Bytes,
    pub eligible: bool,
    /// The last one of a taken branch, and the cycles from the fetch of the branch to that of its target.
    pub taken: Option<Cycle>,
}

/// The micro-operations of one execution of `block`, whose branch at the end is taken if `taken`.
pub fn steps(block: &Block, taken: Option<Cycle>) -> Vec<Step> {
    let accesses = block.accesses();
    let mut read = 0;
    let step = |uop: &BoundUop| {
        let inst = u64::from(uop.inst);
        let insts = (inst + 1) - read;
        read = inst + 1;
        let none = (false, None, Bytes { from: 0, to: 0, plain: false });
        let (eligible, merges, bytes) = accesses[usize::from(uop.inst)].as_ref().map_or(none, |(m, words)| {
            let each = u64::from(m.op.bytes) / u64::from(uop.parts.max(1));
            let from = words[0] + each * u64::from(uop.part);
            let bytes = Bytes { from, to: from + each, plain: m.op.shape == Shape::Single };
            (m.eligible, MergeBlock::of(bytes, m.writing), bytes)
        });
        Step { uop: *uop, addr: block.start() + 4 * inst, insts, block: merges, bytes, eligible, taken: None }
    };
    let mut steps: Vec<Step> = block.uops().iter().map(step).collect();
    steps.last_mut().expect("an instruction").taken = taken;
    steps
}

/// An operation of the integer pipes alone.
pub fn integer(uop: &BoundUop) -> bool {
    let pipes = Pipes::EXA.or(Pipes::EXB).or(Pipes::EAGA).or(Pipes::EAGB);
    uop.action == Action::Compute && uop.flows[..usize::from(uop.nflows)].iter().all(|f| f.pipes.0 & !pipes.0 == 0)
}
