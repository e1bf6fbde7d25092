//! The micro-operations that access memory.

use fxscope_isa::{Access, MemOp, RegClass, StaticInst};
use fxscope_machine::{Recipe, Spec, Uop};

use super::flows::EAG;
use super::operands::{add_all, push};
use crate::bound::{Action, Attribute, BoundFlow, BoundUop};

/// The micro-operations of a row that access memory, in order, when the instruction is `info`.
///
/// Every access passes through an address pipe. So do other operations on addresses: one that a later access waits for,
/// and the update of the base register, which comes last.
pub(super) fn accesses(info: &StaticInst, uops: &[Uop]) -> Vec<usize> {
    if info.mem.is_none() {
        return Vec::new();
    }
    let on_address_pipe: Vec<usize> = (0..uops.len()).filter(|&k| addresses(&uops[k])).collect();
    // A micro-operation with more than an address flow moves data; others only make addresses.
    let moving: Vec<usize> = on_address_pipe.iter().copied().filter(|&k| uops[k].flows.len() > 1).collect();
    if !moving.is_empty() {
        return moving;
    }
    let makes_address = |k: usize| {
        let waits = |later: usize| uops[later].depends.iter().any(|d| later - d.places as usize == k);
        on_address_pipe.iter().any(|&later| waits(later))
    };
    let mut accesses: Vec<usize> = on_address_pipe.iter().copied().filter(|&k| !makes_address(k)).collect();
    let updates_base = info.writeback.is_some() && accesses.last() == Some(&(uops.len() - 1));
    if updates_base && accesses.len() > info.dsts.len().max(1) {
        accesses.pop();
    }
    accesses
}

/// Whether an instruction accesses memory but no flow of its row passes through an address pipe.
#[must_use]
pub fn lacks_access(info: &StaticInst, recipe: &Recipe) -> bool {
    info.mem.is_some() && accesses(info, &recipe.uops).is_empty()
}

/// Whether one of its flows passes through an address pipe.
fn addresses(uop: &Uop) -> bool {
    uop.flows.iter().any(|flow| flow.pipes.within(EAG))
}

impl BoundUop {
    /// Makes it part number `part`, of `parts`, of the memory access `op`.
    pub(super) fn memory(&mut self, part: usize, parts: usize, op: &MemOp, info: &StaticInst, spec: &Spec) {
        add_all(&mut self.addr_srcs, &info.addr_srcs);
        self.part = part as u8;
        self.parts = parts as u8;
        match op.access {
            Access::Load | Access::Atomic => self.loads(info, spec),
            Access::Store => {
                self.action = Action::Store;
                self.address_first();
                // Data of a pair or structure: one register for each part.
                match (parts, info.srcs.get(part)) {
                    (1, _) | (_, None) => add_all(&mut self.srcs, &info.srcs),
                    (_, Some(reg)) => push(&mut self.srcs, reg.0),
                }
                self.vector = info.srcs.iter().any(|r| r.class() != RegClass::Gpr);
            }
            Access::PrefetchLoad(_) | Access::PrefetchStore(_) => self.action = Action::Prefetch,
            Access::ZeroLine => self.action = Action::Zero,
        }
    }

    fn loads(&mut self, info: &StaticInst, spec: &Spec) {
        self.action = Action::Load;
        self.vector = info.dsts.iter().next().is_some_and(|r| r.class() == RegClass::Vector);
        let flows = &self.flows[..usize::from(self.nflows)];
        let access = flows.iter().position(|f| f.pipes.within(EAG));
        let access = access.unwrap_or(flows.len().max(1) - 1);
        self.continues = access + 1 < flows.len();
        self.nflows = access as u8 + 1;
        let flow = self.flows[access];
        // The unit itself spreads the flows of gathers and structures: the latency is that of one.
        let repeats = flow.busy.max(1) - 1;
        let latency = flow.latency.saturating_sub(repeats);
        self.load_latency = if latency > 0 { latency } else { spec.load_store.load_integer as u16 } as u8;
    }

    /// Puts the address flow of a store first, whatever the order in its row.
    fn address_first(&mut self) {
        let address = |flow: &BoundFlow| flow.pipes.meets(EAG) && !flow.all;
        if self.nflows == 2 && !address(&self.flows[0]) && address(&self.flows[1]) {
            self.flows.swap(0, 1);
            self.attribute = Attribute::Rsa;
        }
    }
}
