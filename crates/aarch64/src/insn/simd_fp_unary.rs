//! AdvSIMD floating point, vector and scalar forms: operations on one operand, conversions, immediates.

use crate::cpu::{Cpu, Stop, Vreg};
use crate::enc;
use crate::fp::{self, Float, FpEnv, Integer, Rounding, vector};
use crate::insn::simd_fp::{Form, active, ones, write};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group. Half-precision forms have separate encodings.
pub static TABLE: &[Encoding] = &[
    // Sign, root, estimates.
    enc!("FABS (vector)", "0 Q:1 0 01110 1 sz:1 10000 01111 10 rn:5 rd:5", fabs::<false>),
    enc!("FABS (vector), half", "0 Q:1 0 01110 1 1 11100 01111 10 rn:5 rd:5", fabs::<true>),
    enc!("FNEG (vector)", "0 Q:1 1 01110 1 sz:1 10000 01111 10 rn:5 rd:5", fneg::<false>),
    enc!("FNEG (vector), half", "0 Q:1 1 01110 1 1 11100 01111 10 rn:5 rd:5", fneg::<true>),
    enc!("FSQRT (vector)", "0 Q:1 1 01110 1 sz:1 10000 11111 10 rn:5 rd:5", fsqrt::<false>),
    enc!("FSQRT (vector), half", "0 Q:1 1 01110 1 1 11100 11111 10 rn:5 rd:5", fsqrt::<true>),
    enc!("FRECPE (vector)", "0 Q:1 0 01110 1 sz:1 10000 11101 10 rn:5 rd:5", frecpe::<false>),
    enc!("FRECPE (vector), half", "0 Q:1 0 01110 1 1 11100 11101 10 rn:5 rd:5", frecpe::<true>),
    enc!("FRECPE (scalar)", "01 0 11110 1 sz:1 10000 11101 10 rn:5 rd:5", frecpe::<false>),
    enc!("FRECPE (scalar), half", "01 0 11110 1 1 11100 11101 10 rn:5 rd:5", frecpe::<true>),
    enc!("FRSQRTE (vector)", "0 Q:1 1 01110 1 sz:1 10000 11101 10 rn:5 rd:5", frsqrte::<false>),
    enc!("FRSQRTE (vector), half", "0 Q:1 1 01110 1 1 11100 11101 10 rn:5 rd:5", frsqrte::<true>),
    enc!("FRSQRTE (scalar)", "01 1 11110 1 sz:1 10000 11101 10 rn:5 rd:5", frsqrte::<false>),
    enc!("FRSQRTE (scalar), half", "01 1 11110 1 1 11100 11101 10 rn:5 rd:5", frsqrte::<true>),
    enc!("FRECPX", "01 0 11110 1 sz:1 10000 11111 10 rn:5 rd:5", frecpx::<false>),
    enc!("FRECPX, half", "01 0 11110 1 1 11100 11111 10 rn:5 rd:5", frecpx::<true>),
    enc!("URECPE", "0 Q:1 0 01110 1 0 10000 11100 10 rn:5 rd:5", urecpe),
    enc!("URSQRTE", "0 Q:1 1 01110 1 0 10000 11100 10 rn:5 rd:5", ursqrte),
    // Comparisons with zero.
    enc!("FCMGT (zero)", "0 Q:1 0 01110 1 sz:1 10000 01100 10 rn:5 rd:5", fcmgt::<false>),
    enc!("FCMGT (zero), half", "0 Q:1 0 01110 1 1 11100 01100 10 rn:5 rd:5", fcmgt::<true>),
    enc!("FCMGT (zero, scalar)", "01 0 11110 1 sz:1 10000 01100 10 rn:5 rd:5", fcmgt::<false>),
    enc!("FCMGT (zero, scalar), half", "01 0 11110 1 1 11100 01100 10 rn:5 rd:5", fcmgt::<true>),
    enc!("FCMEQ (zero)", "0 Q:1 0 01110 1 sz:1 10000 01101 10 rn:5 rd:5", fcmeq::<false>),
    enc!("FCMEQ (zero), half", "0 Q:1 0 01110 1 1 11100 01101 10 rn:5 rd:5", fcmeq::<true>),
    enc!("FCMEQ (zero, scalar)", "01 0 11110 1 sz:1 10000 01101 10 rn:5 rd:5", fcmeq::<false>),
    enc!("FCMEQ (zero, scalar), half", "01 0 11110 1 1 11100 01101 10 rn:5 rd:5", fcmeq::<true>),
    enc!("FCMLT (zero)", "0 Q:1 0 01110 1 sz:1 10000 01110 10 rn:5 rd:5", fcmlt::<false>),
    enc!("FCMLT (zero), half", "0 Q:1 0 01110 1 1 11100 01110 10 rn:5 rd:5", fcmlt::<true>),
    enc!("FCMLT (zero, scalar)", "01 0 11110 1 sz:1 10000 01110 10 rn:5 rd:5", fcmlt::<false>),
    enc!("FCMLT (zero, scalar), half", "01 0 11110 1 1 11100 01110 10 rn:5 rd:5", fcmlt::<true>),
    enc!("FCMGE (zero)", "0 Q:1 1 01110 1 sz:1 10000 01100 10 rn:5 rd:5", fcmge::<false>),
    enc!("FCMGE (zero), half", "0 Q:1 1 01110 1 1 11100 01100 10 rn:5 rd:5", fcmge::<true>),
    enc!("FCMGE (zero, scalar)", "01 1 11110 1 sz:1 10000 01100 10 rn:5 rd:5", fcmge::<false>),
    enc!("FCMGE (zero, scalar), half", "01 1 11110 1 1 11100 01100 10 rn:5 rd:5", fcmge::<true>),
    enc!("FCMLE (zero)", "0 Q:1 1 01110 1 sz:1 10000 01101 10 rn:5 rd:5", fcmle::<false>),
    enc!("FCMLE (zero), half", "0 Q:1 1 01110 1 1 11100 01101 10 rn:5 rd:5", fcmle::<true>),
    enc!("FCMLE (zero, scalar)", "01 1 11110 1 sz:1 10000 01101 10 rn:5 rd:5", fcmle::<false>),
    enc!("FCMLE (zero, scalar), half", "01 1 11110 1 1 11100 01101 10 rn:5 rd:5", fcmle::<true>),
    // Rounding to integers in the format.
    enc!("FRINTN (vector)", "0 Q:1 0 01110 0 sz:1 10000 11000 10 rn:5 rd:5", frintn::<false>),
    enc!("FRINTN (vector), half", "0 Q:1 0 01110 0 1 11100 11000 10 rn:5 rd:5", frintn::<true>),
    enc!("FRINTM (vector)", "0 Q:1 0 01110 0 sz:1 10000 11001 10 rn:5 rd:5", frintm::<false>),
    enc!("FRINTM (vector), half", "0 Q:1 0 01110 0 1 11100 11001 10 rn:5 rd:5", frintm::<true>),
    enc!("FRINTP (vector)", "0 Q:1 0 01110 1 sz:1 10000 11000 10 rn:5 rd:5", frintp::<false>),
    enc!("FRINTP (vector), half", "0 Q:1 0 01110 1 1 11100 11000 10 rn:5 rd:5", frintp::<true>),
    enc!("FRINTZ (vector)", "0 Q:1 0 01110 1 sz:1 10000 11001 10 rn:5 rd:5", frintz::<false>),
    enc!("FRINTZ (vector), half", "0 Q:1 0 01110 1 1 11100 11001 10 rn:5 rd:5", frintz::<true>),
    enc!("FRINTA (vector)", "0 Q:1 1 01110 0 sz:1 10000 11000 10 rn:5 rd:5", frinta::<false>),
    enc!("FRINTA (vector), half", "0 Q:1 1 01110 0 1 11100 11000 10 rn:5 rd:5", frinta::<true>),
    enc!("FRINTX (vector)", "0 Q:1 1 01110 0 sz:1 10000 11001 10 rn:5 rd:5", frintx::<false>),
    enc!("FRINTX (vector), half", "0 Q:1 1 01110 0 1 11100 11001 10 rn:5 rd:5", frintx::<true>),
    enc!("FRINTI (vector)", "0 Q:1 1 01110 1 sz:1 10000 11001 10 rn:5 rd:5", frinti::<false>),
    enc!("FRINTI (vector), half", "0 Q:1 1 01110 1 1 11100 11001 10 rn:5 rd:5", frinti::<true>),
    // To integers and back.
    enc!("FCVTNS (vector)", "0 Q:1 0 01110 0 sz:1 10000 11010 10 rn:5 rd:5", fcvtns::<false>),
    enc!("FCVTNS (vector), half", "0 Q:1 0 01110 0 1 11100 11010 10 rn:5 rd:5", fcvtns::<true>),
    enc!("FCVTNS (vector, scalar)", "01 0 11110 0 sz:1 10000 11010 10 rn:5 rd:5", fcvtns::<false>),
    enc!("FCVTNS (vector, scalar), half", "01 0 11110 0 1 11100 11010 10 rn:5 rd:5", fcvtns::<true>),
    enc!("FCVTNU (vector)", "0 Q:1 1 01110 0 sz:1 10000 11010 10 rn:5 rd:5", fcvtnu::<false>),
    enc!("FCVTNU (vector), half", "0 Q:1 1 01110 0 1 11100 11010 10 rn:5 rd:5", fcvtnu::<true>),
    enc!("FCVTNU (vector, scalar)", "01 1 11110 0 sz:1 10000 11010 10 rn:5 rd:5", fcvtnu::<false>),
    enc!("FCVTNU (vector, scalar), half", "01 1 11110 0 1 11100 11010 10 rn:5 rd:5", fcvtnu::<true>),
    enc!("FCVTMS (vector)", "0 Q:1 0 01110 0 sz:1 10000 11011 10 rn:5 rd:5", fcvtms::<false>),
    enc!("FCVTMS (vector), half", "0 Q:1 0 01110 0 1 11100 11011 10 rn:5 rd:5", fcvtms::<true>),
    enc!("FCVTMS (vector, scalar)", "01 0 11110 0 sz:1 10000 11011 10 rn:5 rd:5", fcvtms::<false>),
    enc!("FCVTMS (vector, scalar), half", "01 0 11110 0 1 11100 11011 10 rn:5 rd:5", fcvtms::<true>),
    enc!("FCVTMU (vector)", "0 Q:1 1 01110 0 sz:1 10000 11011 10 rn:5 rd:5", fcvtmu::<false>),
    enc!("FCVTMU (vector), half", "0 Q:1 1 01110 0 1 11100 11011 10 rn:5 rd:5", fcvtmu::<true>),
    enc!("FCVTMU (vector, scalar)", "01 1 11110 0 sz:1 10000 11011 10 rn:5 rd:5", fcvtmu::<false>),
    enc!("FCVTMU (vector, scalar), half", "01 1 11110 0 1 11100 11011 10 rn:5 rd:5", fcvtmu::<true>),
    enc!("FCVTAS (vector)", "0 Q:1 0 01110 0 sz:1 10000 11100 10 rn:5 rd:5", fcvtas::<false>),
    enc!("FCVTAS (vector), half", "0 Q:1 0 01110 0 1 11100 11100 10 rn:5 rd:5", fcvtas::<true>),
    enc!("FCVTAS (vector, scalar)", "01 0 11110 0 sz:1 10000 11100 10 rn:5 rd:5", fcvtas::<false>),
    enc!("FCVTAS (vector, scalar), half", "01 0 11110 0 1 11100 11100 10 rn:5 rd:5", fcvtas::<true>),
    enc!("FCVTAU (vector)", "0 Q:1 1 01110 0 sz:1 10000 11100 10 rn:5 rd:5", fcvtau::<false>),
    enc!("FCVTAU (vector), half", "0 Q:1 1 01110 0 1 11100 11100 10 rn:5 rd:5", fcvtau::<true>),
    enc!("FCVTAU (vector, scalar)", "01 1 11110 0 sz:1 10000 11100 10 rn:5 rd:5", fcvtau::<false>),
    enc!("FCVTAU (vector, scalar), half", "01 1 11110 0 1 11100 11100 10 rn:5 rd:5", fcvtau::<true>),
    enc!("FCVTPS (vector)", "0 Q:1 0 01110 1 sz:1 10000 11010 10 rn:5 rd:5", fcvtps::<false>),
    enc!("FCVTPS (vector), half", "0 Q:1 0 01110 1 1 11100 11010 10 rn:5 rd:5", fcvtps::<true>),
    enc!("FCVTPS (vector, scalar)", "01 0 11110 1 sz:1 10000 11010 10 rn:5 rd:5", fcvtps::<false>),
    enc!("FCVTPS (vector, scalar), half", "01 0 11110 1 1 11100 11010 10 rn:5 rd:5", fcvtps::<true>),
    enc!("FCVTPU (vector)", "0 Q:1 1 01110 1 sz:1 10000 11010 10 rn:5 rd:5", fcvtpu::<false>),
    enc!("FCVTPU (vector), half", "0 Q:1 1 01110 1 1 11100 11010 10 rn:5 rd:5", fcvtpu::<true>),
    enc!("FCVTPU (vector, scalar)", "01 1 11110 1 sz:1 10000 11010 10 rn:5 rd:5", fcvtpu::<false>),
    enc!("FCVTPU (vector, scalar), half", "01 1 11110 1 1 11100 11010 10 rn:5 rd:5", fcvtpu::<true>),
    enc!("FCVTZS (vector, integer)", "0 Q:1 0 01110 1 sz:1 10000 11011 10 rn:5 rd:5", fcvtzs::<false>),
    enc!("FCVTZS (vector, integer), half", "0 Q:1 0 01110 1 1 11100 11011 10 rn:5 rd:5", fcvtzs::<true>),
    enc!("FCVTZS (vector, integer, scalar)", "01 0 11110 1 sz:1 10000 11011 10 rn:5 rd:5", fcvtzs::<false>),
    enc!("FCVTZS (vector, integer, scalar), half", "01 0 11110 1 1 11100 11011 10 rn:5 rd:5", fcvtzs::<true>),
    enc!("FCVTZU (vector, integer)", "0 Q:1 1 01110 1 sz:1 10000 11011 10 rn:5 rd:5", fcvtzu::<false>),
    enc!("FCVTZU (vector, integer), half", "0 Q:1 1 01110 1 1 11100 11011 10 rn:5 rd:5", fcvtzu::<true>),
    enc!("FCVTZU (vector, integer, scalar)", "01 1 11110 1 sz:1 10000 11011 10 rn:5 rd:5", fcvtzu::<false>),
    enc!("FCVTZU (vector, integer, scalar), half", "01 1 11110 1 1 11100 11011 10 rn:5 rd:5", fcvtzu::<true>),
    enc!("SCVTF (vector, integer)", "0 Q:1 0 01110 0 sz:1 10000 11101 10 rn:5 rd:5", scvtf::<false>),
    enc!("SCVTF (vector, integer), half", "0 Q:1 0 01110 0 1 11100 11101 10 rn:5 rd:5", scvtf::<true>),
    enc!("SCVTF (vector, integer, scalar)", "01 0 11110 0 sz:1 10000 11101 10 rn:5 rd:5", scvtf::<false>),
    enc!("SCVTF (vector, integer, scalar), half", "01 0 11110 0 1 11100 11101 10 rn:5 rd:5", scvtf::<true>),
    enc!("UCVTF (vector, integer)", "0 Q:1 1 01110 0 sz:1 10000 11101 10 rn:5 rd:5", ucvtf::<false>),
    enc!("UCVTF (vector, integer), half", "0 Q:1 1 01110 0 1 11100 11101 10 rn:5 rd:5", ucvtf::<true>),
    enc!("UCVTF (vector, integer, scalar)", "01 1 11110 0 sz:1 10000 11101 10 rn:5 rd:5", ucvtf::<false>),
    enc!("UCVTF (vector, integer, scalar), half", "01 1 11110 0 1 11100 11101 10 rn:5 rd:5", ucvtf::<true>),
    // Fixed point; immh = 0 is the space of the modified immediates.
    enc!("SCVTF (vector, fixed-point)", "0 Q:1 0 011110 immh:4 immb:3 11100 1 rn:5 rd:5", scvtf_fixed, except "xxxxxxxxx 0000 xxxxxxxxxxxxxxxxxxx"),
    enc!("SCVTF (vector, fixed-point, scalar)", "01 0 111110 immh:4 immb:3 11100 1 rn:5 rd:5", scvtf_fixed),
    enc!("FCVTZS (vector, fixed-point)", "0 Q:1 0 011110 immh:4 immb:3 11111 1 rn:5 rd:5", fcvtzs_fixed, except "xxxxxxxxx 0000 xxxxxxxxxxxxxxxxxxx"),
    enc!("FCVTZS (vector, fixed-point, scalar)", "01 0 111110 immh:4 immb:3 11111 1 rn:5 rd:5", fcvtzs_fixed),
    enc!("UCVTF (vector, fixed-point)", "0 Q:1 1 011110 immh:4 immb:3 11100 1 rn:5 rd:5", ucvtf_fixed, except "xxxxxxxxx 0000 xxxxxxxxxxxxxxxxxxx"),
    enc!("UCVTF (vector, fixed-point, scalar)", "01 1 111110 immh:4 immb:3 11100 1 rn:5 rd:5", ucvtf_fixed),
    enc!("FCVTZU (vector, fixed-point)", "0 Q:1 1 011110 immh:4 immb:3 11111 1 rn:5 rd:5", fcvtzu_fixed, except "xxxxxxxxx 0000 xxxxxxxxxxxxxxxxxxx"),
    enc!("FCVTZU (vector, fixed-point, scalar)", "01 1 111110 immh:4 immb:3 11111 1 rn:5 rd:5", fcvtzu_fixed),
    // Between formats.
    enc!("FCVTL, FCVTL2", "0 Q:1 0 01110 0 sz:1 10000 10111 10 rn:5 rd:5", fcvtl),
    enc!("FCVTN, FCVTN2", "0 Q:1 0 01110 0 sz:1 10000 10110 10 rn:5 rd:5", fcvtn),
    enc!("FCVTXN, FCVTXN2", "0 Q:1 1 01110 0 1 10000 10110 10 rn:5 rd:5", fcvtxn),
    enc!("FCVTXN (scalar)", "01 1 11110 0 1 10000 10110 10 rn:5 rd:5", fcvtxn_scalar),
    // Immediates.
    enc!("FMOV (vector, immediate) single", "0 Q:1 0 0111100000 abc:3 1111 01 defgh:5 rd:5", fmov_single),
    enc!("FMOV (vector, immediate) double", "0 1 1 0111100000 abc:3 1111 01 defgh:5 rd:5", fmov_double),
    enc!("FMOV (vector, immediate), half", "0 Q:1 0 0111100000 abc:3 1111 11 defgh:5 rd:5", fmov_half),
];

/// Records the operands Rd and Rn.
fn two_registers(w: u32, mut d: Decoded) -> Decoded {
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d
}

/// Rd = f(Rn), where f receives the environment, the register and the active elements.
macro_rules! unary {
    ($($name:ident: $class:expr, $flops:literal, $f:expr;)*) => {$(
        fn $name<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let f: fn(&mut FpEnv, &Vreg, u64) -> Vreg = $f;
                let r = f(&mut cpu.fp, &cpu.z[usize::from(i.rn & 31)], active(i));
                write(&mut cpu.z, i, &r);
                Ok(())
            }
            let form = Form::of::<HALF>(w)?;
            let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
            Some(two_registers(w, form.decoded(c, form.choose($class), $flops, exec)))
        }
    )*};
}
unary! {
    fabs: ["simd:FABS (vector)"; 3], 0, |_, a, _| vector::abs::<F>(a);
    fneg: ["simd:FNEG (vector)"; 3], 0, |_, a, _| vector::neg::<F>(a);
    fsqrt: ["simd:FSQRT (vector) [T={4H|8H}]", "simd:FSQRT (vector) [T={2S|4S}]", "simd:FSQRT (vector) [T=2D]"], 1,
        vector::sqrt::<F>;
    frecpe: ["simd:FRECPE"; 3], 0, |env, a, active| vector::unary(env, a, active, fp::recip_estimate::<F>);
    frsqrte: ["simd:FRSQRTE"; 3], 0, |env, a, active| vector::unary(env, a, active, fp::rsqrt_estimate::<F>);
    frecpx: ["simd:FRECPX"; 3], 0, |env, a, active| vector::unary(env, a, active, fp::recipx::<F>);
    fcmgt: ["simd:FCMGT (zero)"; 3], 0, |env, a, active| ones::<F>(vector::gt::<F>(env, a, &Vreg::ZERO, active));
    fcmge: ["simd:FCMGE (zero)"; 3], 0, |env, a, active| ones::<F>(vector::ge::<F>(env, a, &Vreg::ZERO, active));
    fcmeq: ["simd:FCMEQ (zero)"; 3], 0, |env, a, active| ones::<F>(vector::eq::<F>(env, a, &Vreg::ZERO, active));
    fcmle: ["simd:FCMLE (zero)"; 3], 0, |env, a, active| ones::<F>(vector::ge::<F>(env, &Vreg::ZERO, a, active));
    fcmlt: ["simd:FCMLT (zero)"; 3], 0, |env, a, active| ones::<F>(vector::gt::<F>(env, &Vreg::ZERO, a, active));
    frintn: ["simd:FRINTN (vector)"; 3], 0, |env, a, active| round::<F>(env, a, active, Rounding::TiesEven, false);
    frintm: ["simd:FRINTM (vector)"; 3], 0, |env, a, active| round::<F>(env, a, active, Rounding::Minus, false);
    frintp: ["simd:FRINTP (vector)"; 3], 0, |env, a, active| round::<F>(env, a, active, Rounding::Plus, false);
    frintz: ["simd:FRINTZ (vector)"; 3], 0, |env, a, active| round::<F>(env, a, active, Rounding::Zero, false);
    frinta: ["simd:FRINTA (vector)"; 3], 0, |env, a, active| round::<F>(env, a, active, Rounding::TiesAway, false);
    frintx: ["simd:FRINTX (vector)"; 3], 0, |env, a, active| round::<F>(env, a, active, env.rounding(), true);
    frinti: ["simd:FRINTI (vector)"; 3], 0, |env, a, active| round::<F>(env, a, active, env.rounding(), false);
    fcvtns: ["simd:FCVTNS (vector)"; 3], 0, |env, a, active| to_int::<F, F::Signed>(env, a, active, 0, Rounding::TiesEven);
    fcvtnu: ["simd:FCVTNU (vector)"; 3], 0, |env, a, active| to_int::<F, F::Unsigned>(env, a, active, 0, Rounding::TiesEven);
    fcvtms: ["simd:FCVTMS (vector)"; 3], 0, |env, a, active| to_int::<F, F::Signed>(env, a, active, 0, Rounding::Minus);
    fcvtmu: ["simd:FCVTMU (vector)"; 3], 0, |env, a, active| to_int::<F, F::Unsigned>(env, a, active, 0, Rounding::Minus);
    fcvtps: ["simd:FCVTPS (vector)"; 3], 0, |env, a, active| to_int::<F, F::Signed>(env, a, active, 0, Rounding::Plus);
    fcvtpu: ["simd:FCVTPU (vector)"; 3], 0, |env, a, active| to_int::<F, F::Unsigned>(env, a, active, 0, Rounding::Plus);
    fcvtas: ["simd:FCVTAS (vector)"; 3], 0, |env, a, active| to_int::<F, F::Signed>(env, a, active, 0, Rounding::TiesAway);
    fcvtau: ["simd:FCVTAU (vector)"; 3], 0, |env, a, active| to_int::<F, F::Unsigned>(env, a, active, 0, Rounding::TiesAway);
    fcvtzs: ["simd:FCVTZS (vector, integer)"; 3], 0, |env, a, active| to_int::<F, F::Signed>(env, a, active, 0, Rounding::Zero);
    fcvtzu: ["simd:FCVTZU (vector, integer)"; 3], 0, |env, a, active| to_int::<F, F::Unsigned>(env, a, active, 0, Rounding::Zero);
    scvtf: ["simd:SCVTF (vector, integer)"; 3], 0, |env, a, active| from_int::<F, F::Signed>(env, a, active, 0);
    ucvtf: ["simd:UCVTF (vector, integer)"; 3], 0, |env, a, active| from_int::<F, F::Unsigned>(env, a, active, 0);
}

#[inline(always)]
fn round<F: Float>(env: &mut FpEnv, a: &Vreg, active: u64, rounding: Rounding, exact: bool) -> Vreg {
    vector::unary::<F>(env, a, active, |env, a| fp::round_to_int(env, a, rounding, exact))
}

/// Converts numbers to integers of the same size.
#[inline(always)]
fn to_int<F: Float, I: Integer>(env: &mut FpEnv, a: &Vreg, active: u64, fbits: u32, rounding: Rounding) -> Vreg {
    vector::unary::<F>(env, a, active, |env, a| F::from_u64(fp::to_int::<F, I>(env, a, fbits, rounding).to_bits()))
}

/// Converts integers to numbers of the same size.
#[inline(always)]
fn from_int<F: Float, I: Integer>(env: &mut FpEnv, a: &Vreg, active: u64, fbits: u32) -> Vreg {
    let rounding = env.rounding();
    vector::unary::<F>(env, a, active, |env, a| fp::from_int(env, I::from_bits(a.to_u64()), fbits, rounding))
}

/// Rd = f(Rn), where f also receives the number of fraction bits.
macro_rules! fixed_point {
    ($($name:ident: $class:literal, $f:expr;)*) => {$(
        fn $name(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let f: fn(&mut FpEnv, &Vreg, u64, u32) -> Vreg = $f;
                let r = f(&mut cpu.fp, &cpu.z[usize::from(i.rn & 31)], active(i), i.aux.into());
                write(&mut cpu.z, i, &r);
                Ok(())
            }
            let immh = bits(w, 19, 4);
            if immh < 2 {
                return None;
            }
            // The highest set bit of immh gives the element size; the bits below it count down from twice that size.
            let esize = 1 << immh.ilog2();
            let form = Form::with_esize(w, esize)?;
            let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
            let mut d = two_registers(w, form.decoded(c, $class, 0, exec));
            d.inst.aux = 16 * esize as u16 - bits(w, 16, 7) as u16;
            Some(d)
        }
    )*};
}
fixed_point! {
    fcvtzs_fixed: "simd:FCVTZS (vector, fixed-point)",
        |env, a, active, fbits| to_int::<F, F::Signed>(env, a, active, fbits, Rounding::Zero);
    fcvtzu_fixed: "simd:FCVTZU (vector, fixed-point)",
        |env, a, active, fbits| to_int::<F, F::Unsigned>(env, a, active, fbits, Rounding::Zero);
    scvtf_fixed: "simd:SCVTF (vector, fixed-point)", from_int::<F, F::Signed>;
    ucvtf_fixed: "simd:UCVTF (vector, fixed-point)", from_int::<F, F::Unsigned>;
}

/// URECPE and URSQRTE (`ROOT`): estimates for fractions between 0 and 1 in 32 bits.
fn decode_integer_estimate<const ROOT: bool>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<const ROOT: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let estimate = if ROOT { fp::rsqrt_estimate_unsigned } else { fp::recip_estimate_unsigned };
        let r = vector::unary(&mut cpu.fp, &cpu.z[usize::from(i.rn & 31)], active(i), |_, a| estimate(a));
        write(&mut cpu.z, i, &r);
        Ok(())
    }
    let form = Form::with_esize(w, 4)?;
    Some(two_registers(w, form.decoded(c, class, 0, exec::<ROOT>)))
}

fn urecpe(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_integer_estimate::<false>(w, c, "simd:URECPE")
}
fn ursqrte(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_integer_estimate::<true>(w, c, "simd:URSQRTE")
}

fn fcvtl(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<S: Float, D: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let half = Vreg([cpu.z(i.rn).0[usize::from(i.aux & 1)], 0, 0, 0, 0, 0, 0, 0]);
        let mut r = Vreg::ZERO;
        for (r, &a) in r.lanes_mut::<D>().iter_mut().zip(&half.lanes::<S>()[..8 / size_of::<S>()]) {
            *r = fp::convert(&mut cpu.fp, a);
        }
        write(&mut cpu.z, i, &r);
        Ok(())
    }
    let (class, exec) = match bits(w, 22, 1) {
        0 => ("simd:FCVTL, FCVTL2 [Ta=4S]", exec::<u16, u32> as Exec),
        _ => ("simd:FCVTL, FCVTL2 [Ta=2D]", exec::<u32, u64> as Exec),
    };
    let mut d = two_registers(w, Form { esize: 4, bytes: 16 }.decoded(c, class, 0, exec));
    d.inst.aux = bits(w, 30, 1) as u16;
    Some(d)
}

/// Converts the elements of Rn to a format of half the size, into the lower half of Rd or, for the forms
/// with Q set, into its upper half.
#[inline(always)]
fn narrow<S: Float, D: Float>(cpu: &mut Cpu, i: &Inst, rounding: Rounding) {
    let mut half = Vreg::ZERO;
    let a = *cpu.z(i.rn);
    for (r, &a) in half.lanes_mut::<D>().iter_mut().zip(&a.lanes::<S>()[..16 / size_of::<S>()]) {
        *r = fp::convert_rounded(&mut cpu.fp, a, rounding);
    }
    let rd = cpu.z_mut(i.rd);
    let lower = if i.aux == 1 { [rd.0[0], half.0[0]] } else { [half.0[0], 0] };
    *rd = Vreg([lower[0], lower[1], 0, 0, 0, 0, 0, 0]);
}

fn decode_narrow(w: u32, c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = Form { esize: 4, bytes: 16 }.decoded(c, class, 0, exec);
    d.inst.aux = bits(w, 30, 1) as u16;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rd = if d.inst.aux == 1 { d.both_z(bits(w, 0, 5)) } else { d.dst_z(bits(w, 0, 5)) };
    d
}

fn fcvtn(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<S: Float, D: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let rounding = cpu.fp.rounding();
        narrow::<S, D>(cpu, i, rounding);
        Ok(())
    }
    let exec = if bits(w, 22, 1) == 0 { exec::<u32, u16> as Exec } else { exec::<u64, u32> };
    Some(decode_narrow(w, c, "simd:FCVTN, FCVTN2", exec))
}

fn fcvtxn(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        narrow::<u64, u32>(cpu, i, Rounding::Odd);
        Ok(())
    }
    Some(decode_narrow(w, c, "simd:FCVTXN, FCVTXN2 [Vector]", exec))
}

fn fcvtxn_scalar(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let a = cpu.z(i.rn).0[0];
        let r: u32 = fp::convert_rounded(&mut cpu.fp, a, Rounding::Odd);
        *cpu.z_mut(i.rd) = Vreg::from_low(r.into());
        Ok(())
    }
    Some(two_registers(w, Form { esize: 4, bytes: 4 }.decoded(c, "simd:FCVTXN, FCVTXN2 [Scalar]", 0, exec)))
}

/// FMOV of an immediate to every element: `$replicate` times the pattern fills a doubleword.
fn decode_immediate<F: Float>(w: u32, c: &Ctx, esize: usize) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        write(&mut cpu.z, i, &Vreg([i.imm2, i.imm2, 0, 0, 0, 0, 0, 0]));
        Ok(())
    }
    let value = fp::expand_immediate::<F>((bits(w, 16, 3) << 5 | bits(w, 5, 5)) as u8);
    let mut d = Form::with_esize(w, esize)?.decoded(c, "simd:FMOV (vector, immediate)", 0, exec);
    let mut filled = Vreg::ZERO;
    filled.lanes_mut::<F>().fill(value);
    d.inst.imm2 = filled.0[0];
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    Some(d)
}

fn fmov_half(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_immediate::<u16>(w, c, 2)
}
fn fmov_single(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_immediate::<u32>(w, c, 4)
}
fn fmov_double(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_immediate::<u64>(w, c, 8)
}
