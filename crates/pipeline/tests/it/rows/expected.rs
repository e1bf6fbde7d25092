//! What a row documents, computed from the row alone: the latency along its micro-operations, and the bound that
//! pipes, stations, dispatch and load/store pipes set to its throughput.

use fxscope_isa::{Access, MemOp, Shape};
use fxscope_machine::{Blocking, Flow, Pipes, Spec, Uop};

use crate::rows::row::{EAG, FL, Kind, Row};

/// Cycles of one pass: an operation whose latency varies with its operands takes the assumed point of the range.
fn latency(f: &Flow, spec: &Spec) -> u64 {
    let spread = u64::from(f.latency_max - f.latency) * u64::from(spec.assumptions.divide_point) / 100;
    u64::from(f.wait) + u64::from(f.latency) + spread + u64::from(f.repeat.max(1) - 1)
}

/// A result on its way to a consumer.
#[derive(Clone, Copy)]
pub struct Made {
    kind: Kind,
    pipes: Pipes,
    /// It comes from a load/store pipe.
    loaded: bool,
    /// It is the predicate of a vector compare.
    compared: bool,
}

/// Cycles between a result and an operation in `to` (manual 2.7, table 2-4).
pub fn bypass(made: Made, to: Pipes, spec: &Spec) -> u64 {
    let b = &spec.bypass;
    let consumer = match () {
        () if to.meets(FL) => 2,
        () if to.meets(Pipes::PRX) => 3,
        () if to.meets(EAG) => 1,
        () => 0,
    };
    match made {
        Made { kind: Kind::Vector, .. } | Made { kind: Kind::General, loaded: true, .. } => 0,
        Made { kind: Kind::General, pipes, .. } => {
            if pipes.meets(to) {
                0
            } else {
                b.integer_other_pipe
            }
        }
        Made { compared: true, .. } => b.compare[consumer],
        Made { loaded: true, .. } => b.predicate_load[consumer],
        Made { .. } => b.predicate[consumer],
    }
}

fn made_by(uop: &Uop) -> Made {
    let flow = uop.flows.last();
    let pipes = flow.map_or(Pipes::default(), |f| f.pipes);
    let loaded = flow.is_some_and(|f| f.pipes.0 & !EAG.0 == 0 && f.latency >= 5);
    Made { kind: if pipes.meets(FL) { Kind::Vector } else { Kind::General }, pipes, loaded, compared: false }
}

impl Row<'_> {
    /// The result as others see it.
    pub fn made(&self, kind: Kind) -> Made {
        let last = &self.recipe.uops[self.result_uops() - 1];
        let compared = kind == Kind::Predicate && last.flows.iter().any(|f| f.pipes.meets(FL));
        Made { kind, loaded: self.loads(), compared, ..made_by(last) }
    }

    /// The pipes that wait for its operand.
    pub fn entry(&self) -> Pipes {
        let uop = self.recipe.uops.iter().find(|u| !u.flows.is_empty());
        uop.map_or(Pipes::default(), |u| match u.flows.get(1) {
            Some(second) if second.independent && self.access().is_none() => u.flows[0].pipes.or(second.pipes),
            _ => u.flows[0].pipes,
        })
    }

    /// Cycles from operand to result: the longest path through the micro-operations, along printed dependences. Those
    /// of one copy that meet in a pipe take turns, the oldest first (manual 6.1).
    pub fn latency(&self, spec: &Spec) -> u64 {
        let mut taken = Taken::default();
        let mut done: Vec<(u64, Made)> = Vec::new();
        for (k, uop) in self.recipe.uops[..self.result_uops()].iter().enumerate() {
            let whole: u64 = uop.flows.iter().map(|f| latency(f, spec)).sum();
            let depends = self.depends(k);
            // When the operands that flow `i` waits for are there in `pipes`.
            let operands = |i: usize, pipes: Pipes, done: &[(u64, Made)]| {
                let here = depends.iter().filter(|&&(_, flow)| flow == i);
                here.map(|&(p, _)| done[p].0 + bypass(done[p].1, pipes, spec)).max().unwrap_or(0)
            };
            let entry = uop.flows.first().map_or(Pipes::default(), |f| f.pipes);
            let begin = operands(0, entry, &done);
            let (mut t, mut end, mut made) = (begin, begin, made_by(uop));
            for (i, flow) in uop.flows.iter().enumerate() {
                let ready = if flow.independent { begin } else { t + u64::from(flow.wait) };
                let (pipes, cycles) = (self.near(k, flow.pipes), u64::from(flow.repeat.max(1)));
                let ready_in = |port: u8| ready.max(operands(i, Pipes(port), &done));
                let (start, port) = match uop.blocking {
                    // It keeps its pipe from the first flow on.
                    Blocking::Pipe if i == 0 => taken.book(pipes, whole, ready_in),
                    Blocking::None | Blocking::Operation if !flow.all_pipes => taken.book(pipes, cycles, ready_in),
                    _ => (ready_in(pipes.0), pipes.0),
                };
                made.pipes = Pipes(port);
                t = start + latency(flow, spec) - u64::from(flow.wait);
                end = end.max(t);
            }
            done.push((end, made));
        }
        done.into_iter().map(|(end, _)| end).max().unwrap_or(0) + self.later_flows(spec)
    }

    /// Cycles until the last flow of a register of structures of words: each begins some cycles behind the end of the
    /// one before, and a row's latency is that of the first (manual 7.8.1).
    fn later_flows(&self, spec: &Spec) -> u64 {
        let words = |m: &MemOp| m.access == Access::Load && m.shape == Shape::Masked && m.structure && m.mem_esize >= 4;
        let flows = self.mem().filter(words).map_or(1, |m| Self::structure_flows(&m).0);
        (flows - 1) * (spec.stages.commit_long + spec.load_store.resubmit)
    }

    /// The integer pipe near the station of micro-operation `k`, when copies always stand in the same slots of their
    /// groups: even slots go to RSE0, odd ones to RSE1 (manual 5.2, table 5-5). Each of a sequential row stands in slot
    /// 0, a row of three or more begins there (4.4), and rows of two follow each other. Vector operations wait longer,
    /// so that a full station sends them to the other one.
    fn near(&self, k: usize, pipes: Pipes) -> Pipes {
        let even = match self.recipe.uops.len() {
            _ if self.recipe.sequential => true,
            1 => return pipes,
            _ => k.is_multiple_of(2),
        };
        if pipes == Pipes::EXA.or(Pipes::EXB) { [Pipes::EXB, Pipes::EXA][usize::from(even)] } else { pipes }
    }

    /// Cycles a copy takes at least, in 840ths of a cycle.
    pub fn bound(&self, spec: &Spec) -> u64 {
        let bounds = [self.pipe_bound(spec), self.dispatch_bound(spec), self.load_bound(), self.store_bound()];
        bounds.into_iter().max().unwrap_or(0)
    }

    /// For every set of pipes, the cycles of what passes no other pipe, shared by them. PRX has EXA's issue port
    /// (manual 6.2), which two flows take once if they leave together. `P` takes a pipe, `E` its blocking unit, until
    /// the operation ends (6.3).
    fn pipe_bound(&self, spec: &Spec) -> u64 {
        let mut slots: Vec<(u8, u64)> = Vec::new();
        let mut units: Vec<(u8, u64)> = Vec::new();
        for (k, uop) in self.recipe.uops.iter().enumerate().filter(|(_, u)| !u.flows.is_empty()) {
            let whole: u64 = uop.flows.iter().map(|f| latency(f, spec)).sum();
            let first = ports(self.near(k, uop.flows[0].pipes));
            if uop.blocking == Blocking::Pipe {
                slots.push((first, whole));
                continue;
            }
            if uop.blocking == Blocking::Operation {
                units.push((first, whole));
            }
            let issued = (0..uop.flows.len()).filter(|&i| !leaves_together(&uop.flows, i, spec));
            for f in issued.map(|i| &uop.flows[i]) {
                let cycles = u64::from(f.repeat.max(1));
                match f.all_pipes {
                    true => slots.extend((0..8).filter(|i| ports(f.pipes) >> i & 1 == 1).map(|i| (1 << i, cycles))),
                    false => slots.push((ports(self.near(k, f.pipes)), cycles)),
                }
            }
        }
        shared(&slots).max(shared(&units))
    }

    /// Four micro-operations a cycle; those of a sequential row one a cycle, those of a gather or scatter with no
    /// other instruction, and a row of three or more starts a group (manual 4.4, 7.8.2). A station takes two writes a
    /// cycle, a store's data being one more (5.1).
    fn dispatch_bound(&self, spec: &Spec) -> u64 {
        let (count, width) = (self.recipe.uops.len() as u64, u64::from(spec.window.dispatch_width));
        let alone = self.mem().is_some_and(|m| m.shape == Shape::Indexed);
        let groups = match () {
            () if self.recipe.sequential => count * CYCLE,
            () if count >= 3 || alone => count.div_ceil(width) * CYCLE,
            () => count * CYCLE / width,
        };
        let store = self.access() == Some(Access::Store);
        let mut writes: Vec<(u8, u64)> = Vec::new();
        for (k, uop) in self.recipe.uops.iter().enumerate() {
            writes.extend(uop.flows.first().map(|f| (stations(self.near(k, f.pipes)), 1)));
            writes.extend(uop.flows.get(1).filter(|f| store && f.independent).map(|f| (stations(f.pipes), 1)));
        }
        groups.max(shared(&writes) / u64::from(spec.stations.writes_per_cycle))
    }

    /// Flows that each of its accessing micro-operations sends to the load/store pipes for one register of structures,
    /// and how many writes its data make: elements of 4 and 8 bytes divide the whole range at blocks of 128 bytes,
    /// smaller ones send four flows, whose data join in blocks of 64 bytes (manual 7.8.1, table 7-2).
    fn structure_flows(mem: &MemOp) -> (u64, u64) {
        let bytes = u64::from(mem.bytes);
        if mem.mem_esize < 4 { (4, bytes.div_ceil(64)) } else { (bytes.div_ceil(128), bytes.div_ceil(128)) }
    }

    /// Micro-operations that access memory.
    fn parts(&self, latency: impl Fn(u64) -> bool) -> u64 {
        let accesses = |f: &Flow| f.pipes.meets(EAG) && latency(f.latency.into());
        self.recipe.uops[..self.result_uops()].iter().filter(|u| u.flows.iter().any(accesses)).count() as u64
    }

    /// Two flows of loads a cycle.
    fn load_bound(&self) -> u64 {
        let structures = |m: &MemOp| m.access == Access::Load && m.shape == Shape::Masked && m.structure;
        let Some(mem) = self.mem().filter(structures) else { return 0 };
        self.parts(|latency| latency >= 5) * Self::structure_flows(&mem).0 * CYCLE / 2
    }

    /// One store write a cycle, with an eligible tag access beside it; two other tag accesses a cycle, and no write
    /// with them (manual 7.2, 7.6, tables 7-2 and 7-5). General and scalar data join within 16 bytes, vectors in 64.
    fn store_bound(&self) -> u64 {
        let Some(mem) = self.mem().filter(|m| m.access == Access::Store) else { return 0 };
        let (parts, bytes) = (self.parts(|latency| latency == 0), u64::from(mem.bytes));
        let wide = self.class.starts_with("sve:") || mem.structure;
        let (writes, tags, eligible) = match mem.shape {
            Shape::Indexed => {
                let elements = self.vector / u64::from(mem.reg_esize);
                (elements, elements, mem.mem_esize >= 8)
            }
            Shape::Masked if mem.structure => {
                let (flows, writes) = Self::structure_flows(&mem);
                (parts * writes, parts * flows, mem.mem_esize >= 8)
            }
            Shape::Masked => (bytes.div_ceil(64), parts, true),
            Shape::Single => (bytes.div_ceil(if wide { 64 } else { 16 }), parts, bytes / u64::from(mem.regs) >= 8),
        };
        writes * CYCLE + if eligible { 0 } else { tags * CYCLE / 2 }
    }
}

/// Cycles in which ports are taken by one copy.
#[derive(Default)]
struct Taken(Vec<(u8, u64)>);

impl Taken {
    /// Takes the port of `pipes` that is free first for `cycles`, once its operands are there; returns when, and which.
    fn book(&mut self, pipes: Pipes, cycles: u64, ready: impl Fn(u8) -> u64) -> (u64, u8) {
        let members = (0..8).map(|i| 1 << i).filter(|bit| ports(pipes) & bit != 0);
        let free = |port: u8, at: u64| !self.0.iter().any(|&(p, c)| p == port && (at..at + cycles).contains(&c));
        let place = |port: u8| (ready(port)..).find(|&at| free(port, at)).map(|at| (at, port));
        let (at, port) = members.filter_map(place).min().expect("ports become free");
        self.0.extend((at..at + cycles).map(|cycle| (port, cycle)));
        (at, port)
    }
}

/// Bounds are counted in this part of a cycle, which all numbers of pipes divide.
pub const CYCLE: u64 = 840;

/// Pipes by their issue ports: EXA and PRX have one in common.
fn ports(pipes: Pipes) -> u8 {
    if pipes.meets(Pipes::PRX) { pipes.0 & !Pipes::PRX.0 | Pipes::EXA.0 } else { pipes.0 }
}

/// Whether flow `i` leaves the station with the one before it: in PRX it starts a stage later than in EXA.
fn leaves_together(flows: &[Flow], i: usize, spec: &Spec) -> bool {
    let behind = spec.stages.predicate - spec.stages.integer;
    let begins =
        |before: &Flow| before.pipes == Pipes::EXA && latency(before, spec) + u64::from(flows[i].wait) == behind;
    flows[i].pipes == Pipes::PRX && i > 0 && begins(&flows[i - 1])
}

/// Stations that feed `pipes`: RSE0, RSE1, and RSA0 and RSA1 for the address pipes.
fn stations(pipes: Pipes) -> u8 {
    let of = |set: Pipes, station: u8| if pipes.meets(set) { station } else { 0 };
    let rse0 = Pipes::EXA.or(Pipes::FLA).or(Pipes::PRX);
    of(rse0, 1) | of(Pipes::EXB.or(Pipes::FLB), 2) | of(EAG, 4 | 8)
}

/// The least time that `items`, each able to use any member of a set, take when they are spread over the members
/// in the best way: for every set, what fits nowhere else.
fn shared(items: &[(u8, u64)]) -> u64 {
    let inside = |set: u8| items.iter().filter(move |&&(members, _)| members & !set == 0).map(|&(_, n)| n).sum::<u64>();
    (1..=u8::MAX).map(|set| inside(set) * CYCLE / u64::from(set.count_ones())).max().unwrap_or(0)
}
