//! The flows of a micro-operation, the stations that take it, and when it may commit.

use fxscope_isa::{Branch, Reg, Shape, StaticInst};
use fxscope_machine::{Blocking, Flow, LoadToUse, Pipes, Spec, Uop};

use crate::bound::{Action, Attribute, BoundFlow, BoundUop, Brief, Late, Producer, READY, chain_bit};

/// Pipes of SIMD&FP operations.
pub(super) const FL: Pipes = Pipes::FLA.or(Pipes::FLB);
/// Integer pipes.
const EX: Pipes = Pipes::EXA.or(Pipes::EXB);
/// Address pipes.
pub(super) const EAG: Pipes = Pipes::EAGA.or(Pipes::EAGB);

impl BoundUop {
    /// Sets its flows through the pipes.
    pub(super) fn flows_from(&mut self, uop: &Uop, info: &StaticInst, spec: &Spec) {
        let point = u64::from(spec.assumptions.divide_point);
        // A fixed bypass delays the next flow.
        let bypass = |i: usize| uop.flows.get(i + 1).map_or(0, |next| u64::from(next.wait));
        let latency = |(i, f): (usize, &Flow)| {
            u64::from(f.latency) + u64::from(f.latency_max - f.latency) * point / 100 + bypass(i)
        };
        let latencies = || uop.flows.iter().enumerate().map(latency);
        self.action = if uop.flows.is_empty() { Action::None } else { Action::Compute };
        if uop.blocking == Blocking::Pipe && !uop.flows.is_empty() {
            // The flows follow each other in one pipe, which accepts nothing else until they are complete.
            let total: u64 = latencies().sum();
            self.nflows = 1;
            self.flows[0] =
                BoundFlow { pipes: uop.flows[0].pipes, all: false, latency: total as u16, busy: total as u16 };
        } else if uop.flows.len() == 2 && uop.flows[1].independent && info.mem.is_none() && info.branch == Branch::None
        {
            // Two pipes work on it at the same time (a vector compare, for example).
            let pipes = uop.flows[0].pipes.or(uop.flows[1].pipes);
            let longest = latencies().max().unwrap_or(0);
            self.nflows = 1;
            self.flows[0] = BoundFlow { pipes, all: true, latency: longest as u16, busy: 1 };
        } else {
            for ((slot, f), latency) in self.flows.iter_mut().zip(&uop.flows).zip(latencies()) {
                let repeat = f.repeat.max(1);
                let latency = (latency + u64::from(repeat - 1)) as u16;
                *slot = BoundFlow { pipes: f.pipes, all: f.all_pipes, latency, busy: repeat as u16 };
                self.nflows += 1;
            }
        }
        self.together = self.issued_together(spec);
        if let Some(late) = uop.depends.iter().find(|d| d.flow > 0) {
            let after: u64 = latencies().take(late.flow as usize).sum();
            // Flows that block one pipe are a single flow.
            let flow = late.flow.min(u32::from(self.nflows.max(1)) - 1) as u8;
            self.late = Late { flow, after: after.min(u8::MAX.into()) as u8, ..Late::NONE };
        }
        self.attribute = attribute(self.flows[0].pipes, self.nflows);
        self.vector = self.flows[..usize::from(self.nflows)].iter().any(|f| f.pipes.meets(FL));
    }

    /// Whether the first two flows share an issue port and are as far apart as the stages of their pipes: the latencies
    /// of WHILE, 1 in EXA and 3 in PRX, leave no cycle between the two (manual figures 2-2 and 2-4, table 16-3).
    fn issued_together(&self, spec: &Spec) -> bool {
        let behind = spec.stages.predicate.saturating_sub(spec.stages.integer);
        let [first, second, ..] = &self.flows;
        self.nflows == 2
            && first.pipes == Pipes::EXA
            && second.pipes == Pipes::PRX
            && u64::from(first.latency) == behind
    }

    /// The last micro-operation of a branch resolves it.
    pub(super) fn branch(&mut self, info: &StaticInst, last: bool) {
        if !last {
            return;
        }
        self.action = match info.branch {
            Branch::None => return,
            Branch::Direct | Branch::Call => Action::BranchDirect,
            Branch::Conditional => Action::BranchOnFlags,
            Branch::Compare | Branch::Indirect | Branch::IndirectCall | Branch::Return => Action::BranchExecuted,
        };
    }

    /// Cycles from the start of its first flow to the result of its last one.
    pub(super) fn latency_of_flows(&self) -> u8 {
        let cycles: u16 = self.flows[..usize::from(self.nflows)].iter().map(|flow| flow.latency).sum();
        cycles.min(u8::MAX.into()) as u8
    }

    /// Sets the fields that follow from others.
    pub(super) fn finish(&mut self) {
        self.chains =
            self.action == Action::Compute && !self.vector && matches!(self.attribute, Attribute::Rsx | Attribute::Rse);
        let bits = |registers: &[u8]| registers.iter().map(|&r| chain_bit(r)).fold(0, |all, bit| all | bit);
        self.chain_srcs = bits(&self.srcs);
        let flows = &self.flows[..usize::from(self.nflows)];
        let integer = self.action == Action::Compute && flows.iter().all(|f| f.pipes.0 & !EX.or(EAG).0 == 0);
        self.chain_dsts = if integer { bits(&self.dsts) } else { 0 };
        let flow = &self.flows[0];
        let addresses = self.attribute == Attribute::Rsa;
        self.data_flow =
            self.action == Action::Store && addresses && self.nflows == 2 && !self.flows[1].pipes.is_empty();
        self.simple = self.nflows == 1 && flow.busy <= 1 && !flow.all && !self.exclusive;
        self.brief = self.in_brief();
    }

    fn in_brief(&self) -> Brief {
        let [a, b, c, d, ..] = self.srcs;
        Brief {
            operands: if self.simple { [a, b, c, d] } else { [READY; 4] },
            register: self.dsts[0],
            latency: self.flows[usize::from(self.nflows.max(1)) - 1].latency.min(u8::MAX.into()) as u8,
            to_commit: self.to_commit,
            judgement: self.judgement,
        }
    }

    /// Cycles from its result to its commit.
    pub(super) fn commit_from(&mut self, uop: &Uop, info: &StaticInst, spec: &Spec) {
        let s = &spec.stages;
        let long = uop.flows.iter().any(|flow| flow.load == Some(LoadToUse::Long))
            || info.mem.is_some_and(|op| op.shape != Shape::Single && self.vector);
        let cycles = match self.action {
            Action::Load | Action::Store | Action::Prefetch | Action::Zero => {
                if long {
                    s.commit_long
                } else {
                    s.commit_short
                }
            }
            Action::BranchDirect | Action::BranchOnFlags | Action::BranchExecuted => s.commit_branch,
            // Vector data, from the stage in which a store's data flow delivers them.
            Action::StoreData => s.commit_long,
            Action::None => 1,
            // The transfer of a general register has nothing to judge (manual figure 6-3).
            Action::Compute if self.vector && self.flows[0].pipes.meets(EX) => s.commit_integer,
            Action::Compute if self.vector => {
                self.judgement = s.exception_judgement.min(s.commit_vector) as u8;
                s.commit_vector
            }
            Action::Compute if self.result_producer(info) == Producer::Predicate => {
                // The flags come a stage after the predicate (manual figures 2-2 to 2-6).
                s.commit_predicate + u64::from(info.dsts.iter().any(|r| r == Reg::NZCV))
            }
            Action::Compute => s.commit_integer,
        };
        self.to_commit = cycles as u8;
    }
}

fn attribute(first: Pipes, nflows: u8) -> Attribute {
    let within = |set: Pipes| first.0 & !set.0 == 0;
    match () {
        () if nflows == 0 || first.is_empty() => Attribute::None,
        () if within(Pipes::BR) => Attribute::Rsbr,
        () if within(EAG) => Attribute::Rsa,
        () if within(Pipes::EXA.or(Pipes::FLA).or(Pipes::PRX)) => Attribute::Rse0,
        () if within(Pipes::EXB.or(Pipes::FLB)) => Attribute::Rse1,
        () if within(EX.or(FL)) => Attribute::Rse,
        () => Attribute::Rsx,
    }
}
