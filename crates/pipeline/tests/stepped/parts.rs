//! What the stepped core consists of: operations in flight, queues, the front end's schedule.

use std::collections::BTreeSet;

use fxscope_base::Cycle;
use fxscope_machine::{Pipes, Spec};
use fxscope_pipeline::resolve::{Action, Producer, RUop};

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

/// When each micro-operation can be decoded: blocks are fetched one a cycle, and the target of the loop's
/// branch some cycles later until the small predictor follows it or the buffer supplies it; a few instructions a cycle
/// are read from the buffer. Decode never runs so far ahead that the buffer's size would matter.
pub fn fetch(spec: &Spec, uops: &[RUop], rounds: usize) -> Vec<Cycle> {
    let per_block = (spec.frontend.fetch_bytes / 4) as usize;
    let f = &spec.frontend;
    let blocks = usize::from(uops.last().expect("a loop").inst) / per_block + 1;
    let in_buffer = blocks <= f.buffer_insts as usize / per_block;
    let mut times = Vec::new();
    let mut fetched = 0;
    // The last read of the buffer, and the instructions it took.
    let (mut read, mut taken) = (0, f.predecode_packed);
    let mut next_read = 0;
    for round in 0..rounds {
        let first = fetched;
        let mut last = None;
        for uop in uops {
            fetched = first + (usize::from(uop.inst) / per_block) as u64;
            if last != Some(uop.inst) {
                if taken == f.predecode_packed || fetched > read {
                    (read, taken) = (fetched.max(next_read), 0);
                    next_read = read + 1;
                }
                taken += 1;
                last = Some(uop.inst);
            }
            times.push(read);
        }
        // The target of the branch is not read with it.
        taken = f.predecode_packed;
        // The branch has been seen once.
        let after = |threshold: u32| round >= threshold as usize;
        let followed = after(f.small_taken_threshold) || (in_buffer && after(f.short_loop_threshold));
        fetched += if followed { 1 } else { f.taken_branch_cycles };
    }
    times
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

pub fn uop_branches(uop: &RUop) -> bool {
    matches!(uop.action, Action::BranchDirect | Action::BranchOnFlags | Action::BranchExecuted)
}

/// An operation of the integer pipes alone.
pub fn integer(uop: &RUop) -> bool {
    let pipes = Pipes::EXA.or(Pipes::EXB).or(Pipes::EAGA).or(Pipes::EAGB);
    uop.action == Action::Compute && uop.flows[..usize::from(uop.nflows)].iter().all(|f| f.pipes.0 & !pipes.0 == 0)
}
