//! What the stepped core consists of: operations in flight, queues, the front end's schedule.

use std::collections::BTreeSet;

use fxscope_base::Cycle;
use fxscope_machine::{Pipes, Spec};
use fxscope_pipeline::resolve::{Action, Producer, RUop};

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
    pub uop: RUop,
    pub group: u64,
    pub dispatched: Cycle,
    pub waiting: Vec<Waiting>,
    pub complete: Option<Cycle>,
    /// Cycle from which its access waits for a load/store pipe, and the access itself.
    pub access: Option<Cycle>,
    pub accessed: Option<Cycle>,
    pub data: Option<Cycle>,
    pub eligible: bool,
    pub fetch_port: usize,
    pub store_port: usize,
    pub block: u64,
    pub taken: bool,
}

pub struct WriteBuffer {
    pub block: u64,
    pub ready: Cycle,
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
    pub uop: RUop,
    /// Address of its instruction.
    pub addr: u64,
    /// Instructions that are read from the buffer with it: none for a further micro-operation, two behind a MOVPRFX that
    /// is packed with it.
    pub insts: u64,
    /// Its part of the write buffer, if it writes.
    pub block: u64,
    pub eligible: bool,
    /// The last one of a taken branch, and the cycles from the fetch of the branch to that of its target.
    pub taken: Option<Cycle>,
}

/// The micro-operations of one execution of `block`, whose branch at the end is taken if `taken`.
pub fn steps(block: &Block, taken: Option<Cycle>, spec: &Spec) -> Vec<Step> {
    let accesses = block.accesses();
    let mut read = 0;
    let step = |uop: &RUop| {
        let inst = u64::from(uop.inst);
        let insts = (inst + 1) - read;
        read = inst + 1;
        let (eligible, addr) = accesses[usize::from(uop.inst)].as_ref().map_or((false, 0), |(m, words)| {
            let part = u64::from(m.op.bytes) / u64::from(uop.parts.max(1)) * u64::from(uop.part);
            (m.eligible, words[0] + part)
        });
        Step {
            uop: *uop,
            addr: block.start() + 4 * inst,
            insts,
            block: addr / u64::from(spec.load_store.write_buffer_bytes),
            eligible,
            taken: None,
        }
    };
    let mut steps: Vec<Step> = block.uops().iter().map(step).collect();
    steps.last_mut().expect("an instruction").taken = taken;
    steps
}

/// An operation of the integer pipes alone.
pub fn integer(uop: &RUop) -> bool {
    let pipes = Pipes::EXA.or(Pipes::EXB).or(Pipes::EAGA).or(Pipes::EAGB);
    uop.action == Action::Compute && uop.flows[..usize::from(uop.nflows)].iter().all(|f| f.pipes.0 & !pipes.0 == 0)
}
