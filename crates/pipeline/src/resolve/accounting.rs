//! What an operation is charged as while it is waited for.

use fxscope_base::Stall;
use fxscope_uop::{InstKind, Reg, RegClass, StaticInst};

use crate::resolved::Action;

/// What is waited for while an operation of an instruction is the oldest one and not complete.
pub(super) fn wait(action: Action, info: &StaticInst) -> Stall {
    match (action, is_base(info)) {
        (Action::BranchDirect | Action::BranchOnFlags | Action::BranchExecuted, _) => Stall::Branch,
        (Action::Load | Action::Store | Action::Prefetch | Action::Zero, true) => Stall::BaseL1,
        (Action::Load | Action::Store | Action::Prefetch | Action::Zero, false) => Stall::VectorL1,
        (Action::HandOver, _) => Stall::HandOver,
        (Action::None | Action::Compute, true) => Stall::BaseOperation,
        (Action::None | Action::Compute, false) => Stall::VectorOperation,
    }
}

/// Whether it is a base instruction, as cycle accounting has it: neither SIMD&FP nor SVE (manual table 14-6).
fn is_base(info: &StaticInst) -> bool {
    let vector = |r: Reg| matches!(r.class(), RegClass::Vector | RegClass::Predicate);
    match info.kind {
        InstKind::Integer | InstKind::Branch | InstKind::System => true,
        InstKind::Memory => !info.srcs.iter().chain(info.addr_srcs.iter()).chain(info.dsts.iter()).any(vector),
        _ => false,
    }
}
