//! Which micro-operations access memory, and how.

use fxscope_machine::{Pipes, Spec, Uop};
use fxscope_uop::{Access, MemOp, RegClass, Shape, StaticInst};

use super::operands::{add_all, push};
use crate::resolved::{Action, READY, RMem, RUop};

pub(super) fn resolve_mem(op: &MemOp, info: &StaticInst, vector_bytes: usize) -> RMem {
    let vector = info.dsts.iter().chain(info.srcs.iter()).any(|r| r.class() == RegClass::Vector);
    let words = match op.shape {
        Shape::Single => 1,
        Shape::Masked => 2,
        Shape::Indexed => 1 + vector_bytes / usize::from(op.reg_esize),
    };
    // Manual table 7-5: 8-byte and larger aligned stores, element-wise contiguous SVE stores of 8 bytes.
    let eligible = match op.shape {
        Shape::Single => op.bytes >= 8,
        Shape::Masked => !op.structure,
        Shape::Indexed => false,
    };
    // Manual tables 7-3 and 7-4: scalar stores up to 8 bytes, and whole-register STR of vectors and predicates.
    let forward_bytes = match op.shape {
        Shape::Single if op.regs == 1 && (op.bytes <= 8 || (vector && op.bytes as usize == vector_bytes)) => {
            op.bytes as u8
        }
        _ => 0,
    };
    RMem { op: *op, eligible, forward_bytes, words: words as u8 }
}

/// Whether this micro-operation accesses memory: it passes an address pipe, in an instruction that does,
/// and is not the update of the base register.
pub(super) fn is_memory(uop: &Uop, info: &StaticInst) -> bool {
    let Some(op) = info.mem else { return false };
    let address = Pipes::EAGA.or(Pipes::EAGB);
    let only_address = |p: Pipes| p.meets(address) && p.0 & !address.0 == 0;
    match op.access {
        // An address computation has latency 1; what goes to the cache has the load-to-use latency.
        Access::Load => uop.flows.iter().any(|f| only_address(f.pipes) && f.latency >= 5),
        Access::Atomic => uop.flows.iter().any(|f| only_address(f.pipes) && (f.latency >= 5 || f.latency == 0)),
        _ => uop.flows.iter().any(|f| f.pipes.meets(address) && f.latency == 0),
    }
}

impl RUop {
    pub(super) fn memory(&mut self, part: usize, parts: usize, op: &MemOp, info: &StaticInst, spec: &Spec) {
        add_all(&mut self.addr_srcs, &info.addr_srcs);
        self.part = part as u8;
        self.parts = parts as u8;
        let ls = &spec.load_store;
        let vector = info.dsts.iter().next().is_some_and(|r| r.class() == RegClass::Vector);
        match op.access {
            Access::Load | Access::Atomic => {
                self.action = Action::Load;
                self.vector = vector;
                let last = self.flows[usize::from(self.nflows.max(1) - 1)];
                // The unit itself spreads the flows of a gather: the latency is that of one.
                let latency = last.latency.saturating_sub(last.busy.max(1) - 1);
                self.load_latency = if latency >= 5 { latency } else { ls.load_integer as u16 } as u8;
            }
            Access::Store => {
                self.action = Action::Store;
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

    /// An operation on the base register: it needs what addresses need.
    pub(super) fn addr_to_srcs(&mut self) {
        for reg in self.addr_srcs {
            if reg != READY {
                push(&mut self.srcs, reg);
            }
        }
    }
}
