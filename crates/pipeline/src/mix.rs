//! What one execution of an instruction adds to the instruction mix.

use fxscope_base::{Signal, Signals};
use fxscope_uop::{Access, Branch, InstKind, Shape, StaticInst};

/// Adds what one execution of `info`, with its micro-operations, contributes.
pub(crate) fn count_mix(info: &StaticInst, uops: u64, mix: &mut Signals) {
    mix.add(Signal::Uop, uops);
    let mut one = |s: Signal| mix.add(s, 1);
    one(Signal::InstRetired);
    if info.kind != InstKind::MovPrfx {
        one(Signal::EffectiveInst);
    }
    match info.kind {
        InstKind::Integer => one(Signal::DpSpec),
        InstKind::FpScalar => one(Signal::VfpSpec),
        InstKind::AdvSimd | InstKind::Crypto => one(Signal::AseSpec),
        InstKind::Sve => one(Signal::SveInstRetired),
        InstKind::SvePredicate => {
            one(Signal::SveInstRetired);
            one(Signal::PrdSpec);
        }
        InstKind::MovPrfx => {
            one(Signal::SveInstRetired);
            one(Signal::SveMovprfxSpec);
            // One that is packed has no micro-operation of its own.
            if uops > 0 {
                one(Signal::SveMovprfxUSpec);
            }
        }
        InstKind::Memory | InstKind::Branch | InstKind::System => {}
    }
    if let Some(op) = info.mem {
        let scalable = op.shape != Shape::Single;
        match op.access {
            Access::Load => one(Signal::LdSpec),
            Access::Store => one(Signal::StSpec),
            Access::Atomic => {
                one(Signal::LdSpec);
                one(Signal::StSpec);
            }
            Access::PrefetchLoad(_) | Access::PrefetchStore(_) => {
                one(Signal::PrfSpec);
                if op.shape == Shape::Masked {
                    one(Signal::SvePrfContigSpec);
                }
            }
            Access::ZeroLine => {
                one(Signal::StSpec);
                one(Signal::DczvaSpec);
            }
        }
        if scalable {
            one(Signal::SveInstRetired);
        }
        if op.shape == Shape::Indexed {
            match op.access {
                Access::Load => one(Signal::SveLdGatherSpec),
                Access::Store => one(Signal::SveStScatterSpec),
                Access::PrefetchLoad(_) | Access::PrefetchStore(_) => one(Signal::SvePrfGatherSpec),
                _ => {}
            }
        }
    }
    match info.branch {
        Branch::None => {}
        Branch::Direct | Branch::Call | Branch::Conditional | Branch::Compare => one(Signal::BrImmedSpec),
        Branch::Return => one(Signal::BrReturnSpec),
        Branch::Indirect | Branch::IndirectCall => one(Signal::BrIndirectSpec),
    }
    if info.branch != Branch::None {
        one(Signal::BrPred);
    }
    let fp = info.fp;
    if fp.per_element > 0 {
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
}
