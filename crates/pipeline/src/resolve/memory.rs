//! Which micro-operations access memory, and how.

use fxscope_machine::{Flow, Spec, Uop};
use fxscope_uop::{Access, MemOp, RegClass, StaticInst};

use super::flows::EAG;
use super::operands::{add_all, push};
use crate::resolved::{Action, Attribute, RFlow, RUop};

/// An address computation has latency 1; what goes to the cache has the load-to-use latency, at least this.
const MIN_LOAD: u16 = 5;

/// Whether this micro-operation accesses memory: it passes an address pipe, in an instruction that does,
/// and is not the update of the base register.
pub(super) fn is_memory(uop: &Uop, info: &StaticInst) -> bool {
    let Some(op) = info.mem else { return false };
    let reads = |f: &Flow| f.pipes.within(EAG) && f.latency >= u32::from(MIN_LOAD);
    match op.access {
        Access::Load => uop.flows.iter().any(reads),
        Access::Atomic => uop.flows.iter().any(|f| reads(f) || (f.pipes.within(EAG) && f.latency == 0)),
        _ => uop.flows.iter().any(|f| f.pipes.meets(EAG) && f.latency == 0),
    }
}

impl RUop {
    /// Makes it the part number `part`, of `parts`, of the memory access `op`.
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
        let access = flows.iter().position(|f| f.pipes.within(EAG) && f.latency >= MIN_LOAD);
        let access = access.unwrap_or(flows.len().max(1) - 1);
        self.continues = access + 1 < flows.len();
        self.nflows = access as u8 + 1;
        let flow = self.flows[access];
        // The unit itself spreads the flows of gathers and structures: the latency is that of one.
        let repeats = flow.busy.max(1) - 1;
        let latency = flow.latency.saturating_sub(repeats);
        self.load_latency = if latency >= MIN_LOAD { latency } else { spec.load_store.load_integer as u16 } as u8;
    }

    /// Of a store's flows the address comes first, in whatever order its row has them.
    fn address_first(&mut self) {
        let address = |flow: &RFlow| flow.pipes.meets(EAG) && !flow.all;
        if self.nflows == 2 && !address(&self.flows[0]) && address(&self.flows[1]) {
            self.flows.swap(0, 1);
            self.attribute = Attribute::Rsa;
        }
    }
}
