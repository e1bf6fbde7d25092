//! The stall cause of a micro-operation while it is the oldest one.

use fxscope_counts::Stall;
use fxscope_isa::{InstKind, Reg, RegClass, StaticInst};
use fxscope_machine::Spec;

use crate::bound::{Action, BoundUop};

/// The stall cause while the micro-operation `r` of an instruction is the oldest one and not complete.
///
/// Operations with the shortest latency of the vector pipes (selections, estimates, comparisons, integers) do not count
/// as floating-point operations for `FL_COMP_WAIT`: in a measured program, dtrn3, whose chain ends with two selections,
/// `EU_COMP_WAIT` counts three cycles more for each.
pub(super) fn wait(r: &BoundUop, info: &StaticInst, spec: &Spec) -> Stall {
    let short = u64::from(r.latency_of_flows()) <= spec.stages.lengthened_vector[0];
    match (r.action, is_base(info)) {
        (Action::BranchDirect | Action::BranchOnFlags | Action::BranchExecuted, _) => Stall::Branch,
        (Action::Load | Action::Store | Action::Prefetch | Action::Zero, true) => Stall::BaseL1,
        (Action::Load | Action::Store | Action::Prefetch | Action::Zero, false) => Stall::VectorL1,
        (Action::StoreData, _) => Stall::StoreData,
        (Action::Compute, false) if !short => Stall::VectorOperation,
        (Action::None | Action::Compute, _) => Stall::BaseOperation,
    }
}

/// Whether it is a base instruction in cycle accounting: neither SIMD&FP nor SVE (manual table 14-6).
fn is_base(info: &StaticInst) -> bool {
    let vector = |r: Reg| matches!(r.class(), RegClass::Vector | RegClass::Predicate);
    match info.kind {
        InstKind::Integer | InstKind::Branch | InstKind::System => true,
        InstKind::Memory => !info.srcs.iter().chain(info.addr_srcs.iter()).chain(info.dsts.iter()).any(vector),
        _ => false,
    }
}
