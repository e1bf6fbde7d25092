//! The instruction mix of one execution of an instruction.

use fxscope_counts::{Signal, Signals};
use fxscope_isa::{Access, Branch, Class, FpOp, InstKind, MemOp, RegClass, Shape, StaticInst};

/// The counters of instruction classes.
const BY_CLASS: [(Class, Signal); 19] = [
    (Class::FloatingPoint, Signal::FpSpec),
    (Class::Estimate, Signal::FpRecpeSpec),
    (Class::MathAssist, Signal::SveMathSpec),
    (Class::Conversion, Signal::FpCvtSpec),
    (Class::Move, Signal::FpMvSpec),
    (Class::VectorInteger, Signal::AseSveIntSpec),
    (Class::Predicate, Signal::PrdSpec),
    (Class::InterElement, Signal::IelSpec),
    (Class::InterRegister, Signal::IregSpec),
    (Class::Simd, Signal::SimdInstRetired),
    (Class::Sve, Signal::SveInstRetired),
    (Class::Governed, Signal::SvePredSpec),
    (Class::Broadcast, Signal::BcLdSpec),
    (Class::FirstFault, Signal::SveLdffSpec),
    (Class::PreIndex, Signal::PreIndexSpec),
    (Class::PostIndex, Signal::PostIndexSpec),
    (Class::Isb, Signal::IsbSpec),
    (Class::Dsb, Signal::DsbSpec),
    (Class::Dmb, Signal::DmbSpec),
];

/// Adds what one execution of `info`, with its micro-operations, contributes.
pub(crate) fn count_mix(info: &StaticInst, uops: u64, mix: &mut Signals) {
    mix.add(Signal::Uop, uops);
    mix.add(Signal::InstRetired, 1);
    count_kind(info.kind, uops, mix);
    for (class, signal) in BY_CLASS {
        mix.add(signal, u64::from(info.classes.has(class)));
    }
    if let Some(op) = info.mem {
        count_access(info, &op, mix);
    }
    count_prefetch(info, mix);
    count_branch(info.branch, mix);
    count_flops(info.fp, mix);
}

fn count_kind(kind: InstKind, uops: u64, mix: &mut Signals) {
    if kind != InstKind::MovPrfx {
        mix.add(Signal::EffectiveInst, 1);
    }
    match kind {
        InstKind::Integer => mix.add(Signal::DpSpec, 1),
        InstKind::FpScalar => mix.add(Signal::VfpSpec, 1),
        InstKind::AdvSimd => mix.add(Signal::AseSpec, 1),
        InstKind::Crypto => {
            mix.add(Signal::AseSpec, 1);
            mix.add(Signal::CryptoSpec, 1);
        }
        InstKind::MovPrfx => {
            mix.add(Signal::SveMovprfxSpec, 1);
            // A packed one has no micro-operation of its own but counts as one: measured programs have as many
            // micro-operations as instructions of one each, MOVPRFX included.
            mix.add(Signal::SveMovprfxUSpec, u64::from(uops > 0));
            mix.add(Signal::Uop, u64::from(uops == 0));
        }
        InstKind::Sve | InstKind::SvePredicate | InstKind::Memory | InstKind::Branch | InstKind::System => {}
    }
}

/// Loads and stores.
fn count_access(info: &StaticInst, op: &MemOp, mix: &mut Signals) {
    match op.access {
        Access::Load => count_load(info, op, mix),
        // A store that may fail counts as a write, and not as a read.
        Access::Store => count_store(info, op, mix),
        Access::Atomic if info.classes.has(Class::Exclusive) => count_store(info, op, mix),
        Access::Atomic => {
            count_load(info, op, mix);
            count_store(info, op, mix);
        }
        Access::ZeroLine => {
            mix.add(Signal::StSpec, 1);
            mix.add(Signal::DczvaSpec, 1);
        }
        Access::PrefetchLoad(_) | Access::PrefetchStore(_) => {}
    }
}

fn count_load(info: &StaticInst, op: &MemOp, mix: &mut Signals) {
    let has = |class| u64::from(info.classes.has(class));
    mix.add(Signal::LdSpec, 1);
    mix.add(Signal::LdrexSpec, has(Class::Exclusive));
    if !of_vectors(info) {
        mix.add(Signal::BaseLdRegSpec, 1);
        return;
    }
    mix.add(Signal::AseSveLdSpec, 1);
    mix.add(Signal::FpLdSpec, has(Class::ScalarTransfer));
    mix.add(Signal::SveLdrRegSpec, has(Class::WholeVector) + has(Class::WholePredicate));
    mix.add(Signal::SveLdrPregSpec, has(Class::WholePredicate));
    mix.add(Signal::AseSveLdMultiSpec, has(Class::Structure));
    mix.add(Signal::SveLdGatherSpec, u64::from(op.shape == Shape::Indexed));
}

fn count_store(info: &StaticInst, op: &MemOp, mix: &mut Signals) {
    let has = |class| u64::from(info.classes.has(class));
    mix.add(Signal::StSpec, 1);
    mix.add(Signal::StrexSpec, has(Class::Exclusive));
    if !of_vectors(info) {
        mix.add(Signal::BaseStRegSpec, 1);
        return;
    }
    mix.add(Signal::AseSveStSpec, 1);
    mix.add(Signal::FpStSpec, has(Class::ScalarTransfer));
    mix.add(Signal::SveStrRegSpec, has(Class::WholeVector) + has(Class::WholePredicate));
    mix.add(Signal::SveStrPregSpec, has(Class::WholePredicate));
    mix.add(Signal::AseSveStMultiSpec, has(Class::Structure));
    mix.add(Signal::SveStScatterSpec, u64::from(op.shape == Shape::Indexed));
}

/// Whether it loads or stores vector or predicate registers.
fn of_vectors(info: &StaticInst) -> bool {
    let vector = |class| matches!(class, RegClass::Vector | RegClass::Predicate);
    info.srcs.iter().chain(info.dsts.iter()).any(|reg| vector(reg.class()))
}

/// Prefetch instructions, with those whose operation the processor does not implement.
fn count_prefetch(info: &StaticInst, mix: &mut Signals) {
    if !info.classes.has(Class::Prefetch) {
        return;
    }
    mix.add(Signal::PrfSpec, 1);
    if info.classes.has(Class::Sve) {
        let addresses = info.addr_srcs.iter().any(|reg| reg.class() == RegClass::Vector);
        mix.add(if addresses { Signal::SvePrfGatherSpec } else { Signal::SvePrfContigSpec }, 1);
    }
}

fn count_branch(branch: Branch, mix: &mut Signals) {
    let target = match branch {
        Branch::None => return,
        Branch::Direct | Branch::Call | Branch::Conditional | Branch::Compare => Signal::BrImmedSpec,
        Branch::Return => Signal::BrReturnSpec,
        Branch::Indirect | Branch::IndirectCall => Signal::BrIndirectSpec,
    };
    mix.add(target, 1);
    mix.add(Signal::BrPred, 1);
}

fn count_flops(fp: FpOp, mix: &mut Signals) {
    if fp.per_element == 0 {
        return;
    }
    mix.add(Signal::FpFmaSpec, u64::from(fp.per_element == 2));
    // SVE events count for each 128 bits of vector; the others count elements.
    let (total, share, n) = if fp.scalable {
        let per_128 = u64::from(fp.per_element) * (16 / u64::from(fp.esize.max(1)));
        (Signal::FpScaleOps, [Signal::FpHpScaleOps, Signal::FpSpScaleOps, Signal::FpDpScaleOps], per_128)
    } else {
        let n = u64::from(fp.per_element) * u64::from(fp.elements);
        (Signal::FpFixedOps, [Signal::FpHpFixedOps, Signal::FpSpFixedOps, Signal::FpDpFixedOps], n)
    };
    mix.add(total, n);
    mix.add(share[usize::from(fp.esize.trailing_zeros().clamp(1, 3) as u8 - 1)], n);
}
