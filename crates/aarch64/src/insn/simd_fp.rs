//! AdvSIMD floating point, vector and scalar forms: arithmetic and comparisons of two or three operands.
//!
//! `simd_fp_unary` has the operations on one operand and the conversions.

use fxscope_isa::{FpOp, InstKind, Reg};

use crate::cpu::{Cpu, Stop, Vreg};
use crate::enc;
use crate::fp::{self, Float, FpEnv, vector};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group. Half-precision forms have separate encodings.
pub static TABLE: &[Encoding] = &[
    // Three registers, single and double precision.
    enc!("FMAXNM (vector)", "0 Q:1 0 01110 0 sz:1 1 rm:5 11000 1 rn:5 rd:5", fmaxnm::<false>),
    enc!("FMLA (vector)", "0 Q:1 0 01110 0 sz:1 1 rm:5 11001 1 rn:5 rd:5", fmla::<false>),
    enc!("FADD (vector)", "0 Q:1 0 01110 0 sz:1 1 rm:5 11010 1 rn:5 rd:5", fadd::<false>),
    enc!("FMULX (vector)", "0 Q:1 0 01110 0 sz:1 1 rm:5 11011 1 rn:5 rd:5", fmulx::<false>),
    enc!("FCMEQ (register)", "0 Q:1 0 01110 0 sz:1 1 rm:5 11100 1 rn:5 rd:5", fcmeq::<false>),
    enc!("FMAX (vector)", "0 Q:1 0 01110 0 sz:1 1 rm:5 11110 1 rn:5 rd:5", fmax::<false>),
    enc!("FRECPS (vector)", "0 Q:1 0 01110 0 sz:1 1 rm:5 11111 1 rn:5 rd:5", frecps::<false>),
    enc!("FMINNM (vector)", "0 Q:1 0 01110 1 sz:1 1 rm:5 11000 1 rn:5 rd:5", fminnm::<false>),
    enc!("FMLS (vector)", "0 Q:1 0 01110 1 sz:1 1 rm:5 11001 1 rn:5 rd:5", fmls::<false>),
    enc!("FSUB (vector)", "0 Q:1 0 01110 1 sz:1 1 rm:5 11010 1 rn:5 rd:5", fsub::<false>),
    enc!("FMIN (vector)", "0 Q:1 0 01110 1 sz:1 1 rm:5 11110 1 rn:5 rd:5", fmin::<false>),
    enc!("FRSQRTS (vector)", "0 Q:1 0 01110 1 sz:1 1 rm:5 11111 1 rn:5 rd:5", frsqrts::<false>),
    enc!("FMAXNMP (vector)", "0 Q:1 1 01110 0 sz:1 1 rm:5 11000 1 rn:5 rd:5", fmaxnmp::<false>),
    enc!("FADDP (vector)", "0 Q:1 1 01110 0 sz:1 1 rm:5 11010 1 rn:5 rd:5", faddp::<false>),
    enc!("FMUL (vector)", "0 Q:1 1 01110 0 sz:1 1 rm:5 11011 1 rn:5 rd:5", fmul::<false>),
    enc!("FCMGE (register)", "0 Q:1 1 01110 0 sz:1 1 rm:5 11100 1 rn:5 rd:5", fcmge::<false>),
    enc!("FACGE", "0 Q:1 1 01110 0 sz:1 1 rm:5 11101 1 rn:5 rd:5", facge::<false>),
    enc!("FMAXP (vector)", "0 Q:1 1 01110 0 sz:1 1 rm:5 11110 1 rn:5 rd:5", fmaxp::<false>),
    enc!("FDIV (vector)", "0 Q:1 1 01110 0 sz:1 1 rm:5 11111 1 rn:5 rd:5", fdiv::<false>),
    enc!("FMINNMP (vector)", "0 Q:1 1 01110 1 sz:1 1 rm:5 11000 1 rn:5 rd:5", fminnmp::<false>),
    enc!("FABD (vector)", "0 Q:1 1 01110 1 sz:1 1 rm:5 11010 1 rn:5 rd:5", fabd::<false>),
    enc!("FCMGT (register)", "0 Q:1 1 01110 1 sz:1 1 rm:5 11100 1 rn:5 rd:5", fcmgt::<false>),
    enc!("FACGT", "0 Q:1 1 01110 1 sz:1 1 rm:5 11101 1 rn:5 rd:5", facgt::<false>),
    enc!("FMINP (vector)", "0 Q:1 1 01110 1 sz:1 1 rm:5 11110 1 rn:5 rd:5", fminp::<false>),
    // Three registers, half precision.
    enc!("FMAXNM (vector), half", "0 Q:1 0 01110 0 10 rm:5 00000 1 rn:5 rd:5", fmaxnm::<true>),
    enc!("FMLA (vector), half", "0 Q:1 0 01110 0 10 rm:5 00001 1 rn:5 rd:5", fmla::<true>),
    enc!("FADD (vector), half", "0 Q:1 0 01110 0 10 rm:5 00010 1 rn:5 rd:5", fadd::<true>),
    enc!("FMULX (vector), half", "0 Q:1 0 01110 0 10 rm:5 00011 1 rn:5 rd:5", fmulx::<true>),
    enc!("FCMEQ (register), half", "0 Q:1 0 01110 0 10 rm:5 00100 1 rn:5 rd:5", fcmeq::<true>),
    enc!("FMAX (vector), half", "0 Q:1 0 01110 0 10 rm:5 00110 1 rn:5 rd:5", fmax::<true>),
    enc!("FRECPS (vector), half", "0 Q:1 0 01110 0 10 rm:5 00111 1 rn:5 rd:5", frecps::<true>),
    enc!("FMINNM (vector), half", "0 Q:1 0 01110 1 10 rm:5 00000 1 rn:5 rd:5", fminnm::<true>),
    enc!("FMLS (vector), half", "0 Q:1 0 01110 1 10 rm:5 00001 1 rn:5 rd:5", fmls::<true>),
    enc!("FSUB (vector), half", "0 Q:1 0 01110 1 10 rm:5 00010 1 rn:5 rd:5", fsub::<true>),
    enc!("FMIN (vector), half", "0 Q:1 0 01110 1 10 rm:5 00110 1 rn:5 rd:5", fmin::<true>),
    enc!("FRSQRTS (vector), half", "0 Q:1 0 01110 1 10 rm:5 00111 1 rn:5 rd:5", frsqrts::<true>),
    enc!("FMAXNMP (vector), half", "0 Q:1 1 01110 0 10 rm:5 00000 1 rn:5 rd:5", fmaxnmp::<true>),
    enc!("FADDP (vector), half", "0 Q:1 1 01110 0 10 rm:5 00010 1 rn:5 rd:5", faddp::<true>),
    enc!("FMUL (vector), half", "0 Q:1 1 01110 0 10 rm:5 00011 1 rn:5 rd:5", fmul::<true>),
    enc!("FCMGE (register), half", "0 Q:1 1 01110 0 10 rm:5 00100 1 rn:5 rd:5", fcmge::<true>),
    enc!("FACGE, half", "0 Q:1 1 01110 0 10 rm:5 00101 1 rn:5 rd:5", facge::<true>),
    enc!("FMAXP (vector), half", "0 Q:1 1 01110 0 10 rm:5 00110 1 rn:5 rd:5", fmaxp::<true>),
    enc!("FDIV (vector), half", "0 Q:1 1 01110 0 10 rm:5 00111 1 rn:5 rd:5", fdiv::<true>),
    enc!("FMINNMP (vector), half", "0 Q:1 1 01110 1 10 rm:5 00000 1 rn:5 rd:5", fminnmp::<true>),
    enc!("FABD (vector), half", "0 Q:1 1 01110 1 10 rm:5 00010 1 rn:5 rd:5", fabd::<true>),
    enc!("FCMGT (register), half", "0 Q:1 1 01110 1 10 rm:5 00100 1 rn:5 rd:5", fcmgt::<true>),
    enc!("FACGT, half", "0 Q:1 1 01110 1 10 rm:5 00101 1 rn:5 rd:5", facgt::<true>),
    enc!("FMINP (vector), half", "0 Q:1 1 01110 1 10 rm:5 00110 1 rn:5 rd:5", fminp::<true>),
    // Three registers, scalar.
    enc!("FMULX (scalar)", "01 0 11110 0 sz:1 1 rm:5 11011 1 rn:5 rd:5", fmulx::<false>),
    enc!("FCMEQ (register, scalar)", "01 0 11110 0 sz:1 1 rm:5 11100 1 rn:5 rd:5", fcmeq::<false>),
    enc!("FRECPS (scalar)", "01 0 11110 0 sz:1 1 rm:5 11111 1 rn:5 rd:5", frecps::<false>),
    enc!("FRSQRTS (scalar)", "01 0 11110 1 sz:1 1 rm:5 11111 1 rn:5 rd:5", frsqrts::<false>),
    enc!("FCMGE (register, scalar)", "01 1 11110 0 sz:1 1 rm:5 11100 1 rn:5 rd:5", fcmge::<false>),
    enc!("FACGE (scalar)", "01 1 11110 0 sz:1 1 rm:5 11101 1 rn:5 rd:5", facge::<false>),
    enc!("FABD (scalar)", "01 1 11110 1 sz:1 1 rm:5 11010 1 rn:5 rd:5", fabd::<false>),
    enc!("FCMGT (register, scalar)", "01 1 11110 1 sz:1 1 rm:5 11100 1 rn:5 rd:5", fcmgt::<false>),
    enc!("FACGT (scalar)", "01 1 11110 1 sz:1 1 rm:5 11101 1 rn:5 rd:5", facgt::<false>),
    enc!("FMULX (scalar), half", "01 0 11110 0 10 rm:5 00011 1 rn:5 rd:5", fmulx::<true>),
    enc!("FCMEQ (register, scalar), half", "01 0 11110 0 10 rm:5 00100 1 rn:5 rd:5", fcmeq::<true>),
    enc!("FRECPS (scalar), half", "01 0 11110 0 10 rm:5 00111 1 rn:5 rd:5", frecps::<true>),
    enc!("FRSQRTS (scalar), half", "01 0 11110 1 10 rm:5 00111 1 rn:5 rd:5", frsqrts::<true>),
    enc!("FCMGE (register, scalar), half", "01 1 11110 0 10 rm:5 00100 1 rn:5 rd:5", fcmge::<true>),
    enc!("FACGE (scalar), half", "01 1 11110 0 10 rm:5 00101 1 rn:5 rd:5", facge::<true>),
    enc!("FABD (scalar), half", "01 1 11110 1 10 rm:5 00010 1 rn:5 rd:5", fabd::<true>),
    enc!("FCMGT (register, scalar), half", "01 1 11110 1 10 rm:5 00100 1 rn:5 rd:5", fcmgt::<true>),
    enc!("FACGT (scalar), half", "01 1 11110 1 10 rm:5 00101 1 rn:5 rd:5", facgt::<true>),
    // Vector by element.
    enc!("FMLA (by element)", "0 Q:1 0 01111 1 sz:1 L:1 M:1 rm:4 0001 H:1 0 rn:5 rd:5", fmla_element::<false>),
    enc!("FMLS (by element)", "0 Q:1 0 01111 1 sz:1 L:1 M:1 rm:4 0101 H:1 0 rn:5 rd:5", fmls_element::<false>),
    enc!("FMUL (by element)", "0 Q:1 0 01111 1 sz:1 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmul_element::<false>),
    enc!("FMULX (by element)", "0 Q:1 1 01111 1 sz:1 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmulx_element::<false>),
    enc!("FMLA (by element), half", "0 Q:1 0 01111 00 L:1 M:1 rm:4 0001 H:1 0 rn:5 rd:5", fmla_element::<true>),
    enc!("FMLS (by element), half", "0 Q:1 0 01111 00 L:1 M:1 rm:4 0101 H:1 0 rn:5 rd:5", fmls_element::<true>),
    enc!("FMUL (by element), half", "0 Q:1 0 01111 00 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmul_element::<true>),
    enc!("FMULX (by element), half", "0 Q:1 1 01111 00 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmulx_element::<true>),
    enc!("FMLA (by element, scalar)", "01 0 11111 1 sz:1 L:1 M:1 rm:4 0001 H:1 0 rn:5 rd:5", fmla_element::<false>),
    enc!("FMLS (by element, scalar)", "01 0 11111 1 sz:1 L:1 M:1 rm:4 0101 H:1 0 rn:5 rd:5", fmls_element::<false>),
    enc!("FMUL (by element, scalar)", "01 0 11111 1 sz:1 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmul_element::<false>),
    enc!("FMULX (by element, scalar)", "01 1 11111 1 sz:1 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmulx_element::<false>),
    enc!("FMLA (by element, scalar), half", "01 0 11111 00 L:1 M:1 rm:4 0001 H:1 0 rn:5 rd:5", fmla_element::<true>),
    enc!("FMLS (by element, scalar), half", "01 0 11111 00 L:1 M:1 rm:4 0101 H:1 0 rn:5 rd:5", fmls_element::<true>),
    enc!("FMUL (by element, scalar), half", "01 0 11111 00 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmul_element::<true>),
    enc!("FMULX (by element, scalar), half", "01 1 11111 00 L:1 M:1 rm:4 1001 H:1 0 rn:5 rd:5", fmulx_element::<true>),
    // Complex numbers.
    enc!("FCMLA", "0 Q:1 1 01110 size:2 0 rm:5 110 rot:2 1 rn:5 rd:5", fcmla),
    enc!("FCADD", "0 Q:1 1 01110 size:2 0 rm:5 111 rot:1 0 1 rn:5 rd:5", fcadd),
    enc!("FCMLA (by element)", "0 Q:1 1 01111 size:2 L:1 M:1 rm:4 0 rot:2 1 H:1 0 rn:5 rd:5", fcmla_element),
    // Across lanes and scalar pairwise.
    enc!("FMAXNMV", "0 1 1 01110 0 0 11000 01100 10 rn:5 rd:5", fmaxnmv::<false>),
    enc!("FMAXV", "0 1 1 01110 0 0 11000 01111 10 rn:5 rd:5", fmaxv::<false>),
    enc!("FMINNMV", "0 1 1 01110 1 0 11000 01100 10 rn:5 rd:5", fminnmv::<false>),
    enc!("FMINV", "0 1 1 01110 1 0 11000 01111 10 rn:5 rd:5", fminv::<false>),
    enc!("FMAXNMV, half", "0 Q:1 0 01110 0 0 11000 01100 10 rn:5 rd:5", fmaxnmv::<true>),
    enc!("FMAXV, half", "0 Q:1 0 01110 0 0 11000 01111 10 rn:5 rd:5", fmaxv::<true>),
    enc!("FMINNMV, half", "0 Q:1 0 01110 1 0 11000 01100 10 rn:5 rd:5", fminnmv::<true>),
    enc!("FMINV, half", "0 Q:1 0 01110 1 0 11000 01111 10 rn:5 rd:5", fminv::<true>),
    enc!("FMAXNMP (scalar)", "01 1 11110 0 sz:1 11000 01100 10 rn:5 rd:5", fmaxnmp_scalar::<false>),
    enc!("FADDP (scalar)", "01 1 11110 0 sz:1 11000 01101 10 rn:5 rd:5", faddp_scalar::<false>),
    enc!("FMAXP (scalar)", "01 1 11110 0 sz:1 11000 01111 10 rn:5 rd:5", fmaxp_scalar::<false>),
    enc!("FMINNMP (scalar)", "01 1 11110 1 sz:1 11000 01100 10 rn:5 rd:5", fminnmp_scalar::<false>),
    enc!("FMINP (scalar)", "01 1 11110 1 sz:1 11000 01111 10 rn:5 rd:5", fminp_scalar::<false>),
    enc!("FMAXNMP (scalar), half", "01 0 11110 0 0 11000 01100 10 rn:5 rd:5", fmaxnmp_scalar::<true>),
    enc!("FADDP (scalar), half", "01 0 11110 0 0 11000 01101 10 rn:5 rd:5", faddp_scalar::<true>),
    enc!("FMAXP (scalar), half", "01 0 11110 0 0 11000 01111 10 rn:5 rd:5", fmaxp_scalar::<true>),
    enc!("FMINNMP (scalar), half", "01 0 11110 1 0 11000 01100 10 rn:5 rd:5", fminnmp_scalar::<true>),
    enc!("FMINP (scalar), half", "01 0 11110 1 0 11000 01111 10 rn:5 rd:5", fminp_scalar::<true>),
];

/// The shape of an operation: which format, and how many bytes of a register it works on.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Bytes of an element.
    pub esize: usize,
    /// Bytes operated on: 16 or 8 for vectors, one element for scalar forms.
    pub bytes: usize,
}

impl Form {
    /// Returns the form of an encoding for half precision, or of one with the size in bit 22.
    pub fn of<const HALF: bool>(w: u32) -> Option<Form> {
        Form::with_esize(w, if HALF { 2 } else { 4 << bits(w, 22, 1) })
    }

    /// Returns the form with elements of `esize` bytes. Bit 28 distinguishes scalar from vector forms; for vectors, bit 30 (Q)
    /// gives the size. There are no vectors of a single element.
    pub fn with_esize(w: u32, esize: usize) -> Option<Form> {
        let bytes = match (bits(w, 28, 1), bits(w, 30, 1)) {
            (1, _) => esize,
            (_, 1) => 16,
            _ if esize == 8 => return None,
            _ => 8,
        };
        Some(Form { esize, bytes })
    }

    /// Selects one of three values, for half, single and double precision.
    pub fn choose<T: Copy>(self, choices: [T; 3]) -> T {
        choices[self.esize.ilog2() as usize - 1]
    }

    /// Decodes an instruction of this form that performs `flops` operations per element, without operands. `Inst::pg` is the
    /// number of bytes operated on.
    pub fn decoded(self, c: &Ctx, class: &'static str, flops: u8, exec: Exec) -> Decoded {
        let mut d = Decoded::new(c, class, exec);
        d.info.kind = InstKind::AdvSimd;
        d.inst.pg = self.bytes as u8;
        if flops != 0 {
            let elements = (self.bytes / self.esize) as u8;
            d.info.fp = FpOp { per_element: flops, esize: self.esize as u8, elements, scalable: false };
        }
        d
    }
}

/// Returns the elements that an instruction operates on, as a predicate.
#[inline(always)]
pub(super) fn active(i: &Inst) -> u64 {
    vector::all(usize::from(i.pg))
}

/// Writes the bytes of `value` that the instruction operates on to Rd, and zero above.
#[inline(always)]
pub(super) fn write(z: &mut [Vreg; 32], i: &Inst, value: &Vreg) {
    z[usize::from(i.rd & 31)] = Vreg::from_low(value.low() & (u128::MAX >> (128 - 8 * u32::from(i.pg))));
}

/// Registers Rn and Rm.
#[inline(always)]
fn operands<'z>(z: &'z [Vreg; 32], i: &Inst) -> (&'z Vreg, &'z Vreg) {
    (&z[usize::from(i.rn & 31)], &z[usize::from(i.rm & 31)])
}

/// Records the operands Rd, Rn and Rm; with `ACCUMULATE` Rd is a source, too.
fn three_registers<const ACCUMULATE: bool>(w: u32, mut d: Decoded) -> Decoded {
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    d.inst.rd = if ACCUMULATE { d.both_z(bits(w, 0, 5)) } else { d.dst_z(bits(w, 0, 5)) };
    d
}

/// Records the operands Rd, Rn and the element of Rm, whose index becomes `Inst::aux`.
fn two_registers_and_element<const ACCUMULATE: bool>(w: u32, form: Form, mut d: Decoded) -> Option<Decoded> {
    let (h, l, m) = (bits(w, 11, 1), bits(w, 21, 1), bits(w, 20, 1));
    let index = form.choose([h << 2 | l << 1 | m, h << 1 | l, h]);
    if form.esize == 8 && l == 1 {
        return None;
    }
    d.inst.aux = index as u16;
    d.inst.rn = d.src_z(bits(w, 5, 5));
    // Half precision uses bit M for the index, not for the register.
    d.inst.rm = d.element_z(bits(w, 16, if form.esize == 2 { 4 } else { 5 }));
    d.inst.rd = if ACCUMULATE { d.both_z(bits(w, 0, 5)) } else { d.dst_z(bits(w, 0, 5)) };
    Some(d)
}

/// Returns `v` with its element `index` in all elements.
#[inline(always)]
fn broadcast<F: Float>(v: &Vreg, index: u16) -> Vreg {
    let mut r = Vreg::ZERO;
    r.lanes_mut::<F>().fill(v.lanes::<F>()[usize::from(index) % (16 / size_of::<F>())]);
    r
}

/// Rd = f(Rn, Rm).
macro_rules! binary {
    ($($name:ident: $class:expr, $flops:literal, $f:expr;)*) => {$(
        fn $name<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let (a, b) = operands(&cpu.z, i);
                let f: fn(&mut FpEnv, &Vreg, &Vreg, u64) -> Vreg = $f;
                let r = f(&mut cpu.fp, a, b, active(i));
                write(&mut cpu.z, i, &r);
                Ok(())
            }
            let form = Form::of::<HALF>(w)?;
            let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
            Some(three_registers::<false>(w, form.decoded(c, form.choose($class), $flops, exec)))
        }
    )*};
}
binary! {
    fadd: ["simd:FADD (vector)"; 3], 1, vector::add::<F>;
    fsub: ["simd:FSUB (vector)"; 3], 1, vector::sub::<F>;
    fabd: ["simd:FABD"; 3], 1, vector::abd::<F>;
    fmul: ["simd:FMUL (vector)"; 3], 1, vector::mul::<F>;
    fmulx: ["simd:FMULX"; 3], 1, vector::mulx::<F>;
    fdiv: ["simd:FDIV (vector) [T={4H|8H}]", "simd:FDIV (vector) [T={2S|4S}]", "simd:FDIV (vector) [T=2D]"], 1,
        vector::div::<F>;
    fmax: ["simd:FMAX (vector)"; 3], 0, vector::max::<F>;
    fmin: ["simd:FMIN (vector)"; 3], 0, vector::min::<F>;
    fmaxnm: ["simd:FMAXNM (vector)"; 3], 0, vector::maxnm::<F>;
    fminnm: ["simd:FMINNM (vector)"; 3], 0, vector::minnm::<F>;
    frecps: ["simd:FRECPS"; 3], 1, vector::recip_step::<F>;
    frsqrts: ["simd:FRSQRTS"; 3], 1, vector::rsqrt_step::<F>;
    fcmeq: ["simd:FCMEQ (register)"; 3], 0, |env, a, b, active| ones::<F>(vector::eq::<F>(env, a, b, active));
    fcmge: ["simd:FCMGE (register)"; 3], 0, |env, a, b, active| ones::<F>(vector::ge::<F>(env, a, b, active));
    fcmgt: ["simd:FCMGT (register)"; 3], 0, |env, a, b, active| ones::<F>(vector::gt::<F>(env, a, b, active));
    facge: ["simd:FACGE"; 3], 0, |env, a, b, active| ones::<F>(vector::abs_ge::<F>(env, a, b, active));
    facgt: ["simd:FACGT"; 3], 0, |env, a, b, active| ones::<F>(vector::abs_gt::<F>(env, a, b, active));
}

/// Returns all bits set in the elements of a predicate.
#[inline(always)]
pub(super) fn ones<F: Float>(predicate: u64) -> Vreg {
    let mut r = Vreg::ZERO;
    for (i, lane) in r.lanes_mut::<F>().iter_mut().enumerate() {
        *lane = F::from_u64(0u64.wrapping_sub(predicate >> (i * size_of::<F>()) & 1));
    }
    r
}

/// Rd = f(Rn, one element of Rm).
macro_rules! binary_element {
    ($($name:ident: $class:literal, $flops:literal, $f:expr;)*) => {$(
        fn $name<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let (a, b) = operands(&cpu.z, i);
                let r = $f(&mut cpu.fp, a, &broadcast::<F>(b, i.aux), active(i));
                write(&mut cpu.z, i, &r);
                Ok(())
            }
            let form = Form::of::<HALF>(w)?;
            let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
            two_registers_and_element::<false>(w, form, form.decoded(c, $class, $flops, exec))
        }
    )*};
}
binary_element! {
    fmul_element: "simd:FMUL (by element)", 1, vector::mul::<F>;
    fmulx_element: "simd:FMULX (by element)", 1, vector::mulx::<F>;
}

/// FMLA and FMLS (`SUBTRACT`).
#[inline(always)]
fn accumulate<F: Float, const SUBTRACT: bool>(env: &mut FpEnv, addend: &Vreg, a: &Vreg, b: &Vreg, active: u64) -> Vreg {
    let negated = vector::neg::<F>(a);
    vector::mul_add::<F>(env, addend, if SUBTRACT { &negated } else { a }, b, active)
}

fn decode_accumulate<const HALF: bool, const SUBTRACT: bool>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<F: Float, const SUBTRACT: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let (a, b) = operands(&cpu.z, i);
        let r = accumulate::<F, SUBTRACT>(&mut cpu.fp, &cpu.z[usize::from(i.rd & 31)], a, b, active(i));
        write(&mut cpu.z, i, &r);
        Ok(())
    }
    let form = Form::of::<HALF>(w)?;
    let exec = form.choose([exec::<u16, SUBTRACT> as Exec, exec::<u32, SUBTRACT>, exec::<u64, SUBTRACT>]);
    Some(three_registers::<true>(w, form.decoded(c, class, 2, exec)))
}

fn fmla<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_accumulate::<HALF, false>(w, c, "simd:FMLA (vector)")
}
fn fmls<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_accumulate::<HALF, true>(w, c, "simd:FMLS (vector)")
}

fn decode_accumulate_element<const HALF: bool, const SUBTRACT: bool>(
    w: u32,
    c: &Ctx,
    class: &'static str,
) -> Option<Decoded> {
    fn exec<F: Float, const SUBTRACT: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let (a, b) = operands(&cpu.z, i);
        let b = broadcast::<F>(b, i.aux);
        let r = accumulate::<F, SUBTRACT>(&mut cpu.fp, &cpu.z[usize::from(i.rd & 31)], a, &b, active(i));
        write(&mut cpu.z, i, &r);
        Ok(())
    }
    let form = Form::of::<HALF>(w)?;
    let exec = form.choose([exec::<u16, SUBTRACT> as Exec, exec::<u32, SUBTRACT>, exec::<u64, SUBTRACT>]);
    two_registers_and_element::<true>(w, form, form.decoded(c, class, 2, exec))
}

fn fmla_element<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_accumulate_element::<HALF, false>(w, c, "simd:FMLA (by element)")
}
fn fmls_element<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
    decode_accumulate_element::<HALF, true>(w, c, "simd:FMLS (by element)")
}

/// Rd = f of neighbours in Rm:Rn.
macro_rules! pairwise {
    ($($name:ident: $class:literal, $flops:literal, $f:expr;)*) => {$(
        fn $name<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let (a, b) = operands(&cpu.z, i);
                let (even, odd) = neighbours::<F>(a, b, usize::from(i.pg));
                let r = $f(&mut cpu.fp, &even, &odd, active(i));
                write(&mut cpu.z, i, &r);
                Ok(())
            }
            let form = Form::of::<HALF>(w)?;
            let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
            Some(three_registers::<false>(w, form.decoded(c, $class, $flops, exec)))
        }
    )*};
}
pairwise! {
    faddp: "simd:FADDP (vector)", 1, vector::add::<F>;
    fmaxp: "simd:FMAXP (vector)", 0, vector::max::<F>;
    fminp: "simd:FMINP (vector)", 0, vector::min::<F>;
    fmaxnmp: "simd:FMAXNMP (vector)", 0, vector::maxnm::<F>;
    fminnmp: "simd:FMINNMP (vector)", 0, vector::minnm::<F>;
}

/// Returns the even and the odd elements of the lowest `bytes` bytes of `a`, followed by those of `b`.
#[inline(always)]
fn neighbours<F: Float>(a: &Vreg, b: &Vreg, bytes: usize) -> (Vreg, Vreg) {
    let n = bytes / size_of::<F>();
    let pairs = a.lanes::<F>()[..n].chunks_exact(2).chain(b.lanes::<F>()[..n].chunks_exact(2));
    let (mut even, mut odd) = (Vreg::ZERO, Vreg::ZERO);
    for (i, pair) in pairs.enumerate() {
        (even.lanes_mut::<F>()[i], odd.lanes_mut::<F>()[i]) = (pair[0], pair[1]);
    }
    (even, odd)
}

/// Scalar Rd = f of all elements of Rn, adjacent elements first. `$elements`: the number of bytes of Rn used.
macro_rules! reduction {
    ($($name:ident: $class:expr, $flops:literal, $elements:ident, $f:path;)*) => {$(
        fn $name<const HALF: bool>(w: u32, c: &Ctx) -> Option<Decoded> {
            fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
                let mut v = *cpu.z(i.rn);
                let lanes = v.lanes_mut::<F>();
                let mut n = usize::from(i.aux) / size_of::<F>();
                while n > 1 {
                    n /= 2;
                    for k in 0..n {
                        lanes[k] = $f(&mut cpu.fp, lanes[2 * k], lanes[2 * k + 1]);
                    }
                }
                write(&mut cpu.z, i, &v);
                Ok(())
            }
            let esize = if HALF { 2 } else { 4 << bits(w, 22, 1) };
            let form = Form { esize, bytes: esize };
            let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
            let mut d = form.decoded(c, form.choose($class), $flops, exec);
            d.inst.aux = $elements(w, esize);
            d.inst.rn = d.src_z(bits(w, 5, 5));
            d.inst.rd = d.dst_z(bits(w, 0, 5));
            Some(d)
        }
    )*};
}
reduction! {
    fmaxv: ["simd:FMAXV [T={4H|8H}]", "simd:FMAXV [T=4S]", "simd:FMAXV [T=4S]"], 0, register, fp::max;
    fminv: ["simd:FMINV [T={4H|8H}]", "simd:FMINV [T=4S]", "simd:FMINV [T=4S]"], 0, register, fp::min;
    fmaxnmv: ["simd:FMAXNMV [T={4H|8H}]", "simd:FMAXNMV [T=4S]", "simd:FMAXNMV [T=4S]"], 0, register, fp::maxnm;
    fminnmv: ["simd:FMINNMV [T={4H|8H}]", "simd:FMINNMV [T=4S]", "simd:FMINNMV [T=4S]"], 0, register, fp::minnm;
    faddp_scalar: ["fp:FADDP (scalar)"; 3], 1, pair, fp::add;
    fmaxp_scalar: ["fp:FMAXP (scalar)"; 3], 0, pair, fp::max;
    fminp_scalar: ["fp:FMINP (scalar)"; 3], 0, pair, fp::min;
    fmaxnmp_scalar: ["fp:FMAXNMP (scalar)"; 3], 0, pair, fp::maxnm;
    fminnmp_scalar: ["fp:FMINNMP (scalar)"; 3], 0, pair, fp::minnm;
}

/// Bytes of the register that Q selects.
fn register(w: u32, _: usize) -> u16 {
    8 << bits(w, 30, 1)
}

/// Bytes of two elements.
fn pair(_: u32, esize: usize) -> u16 {
    2 * esize as u16
}

/// Returns the form of a complex operation, with its size in bits 23–22.
fn complex_form(w: u32) -> Option<Form> {
    match bits(w, 22, 2) {
        0 => None,
        size => Form::with_esize(w, 1 << size),
    }
}

fn fcadd(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let (a, b) = operands(&cpu.z, i);
        let r = vector::complex_add::<F>(&mut cpu.fp, a, b, i.aux as u8, active(i));
        write(&mut cpu.z, i, &r);
        Ok(())
    }
    let form = complex_form(w)?;
    let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
    let mut d = three_registers::<false>(w, form.decoded(c, "simd:FCADD", 1, exec));
    d.inst.aux = 1 + 2 * bits(w, 12, 1) as u16;
    Some(d)
}

fn fcmla(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<F: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let (a, b) = operands(&cpu.z, i);
        let addend = &cpu.z[usize::from(i.rd & 31)];
        let r = vector::complex_mul_add::<F>(&mut cpu.fp, addend, a, b, i.aux as u8, active(i));
        write(&mut cpu.z, i, &r);
        Ok(())
    }
    let form = complex_form(w)?;
    let exec = form.choose([exec::<u16> as Exec, exec::<u32>, exec::<u64>]);
    let mut d = three_registers::<true>(w, form.decoded(c, "simd:FCMLA", 2, exec));
    d.inst.aux = bits(w, 11, 2) as u16;
    Some(d)
}

fn fcmla_element(w: u32, c: &Ctx) -> Option<Decoded> {
    /// `I`: the type of two elements together.
    fn exec<F: Float, I: Float>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let (a, b) = operands(&cpu.z, i);
        let b = broadcast::<I>(b, i.esz.into());
        let addend = &cpu.z[usize::from(i.rd & 31)];
        let r = vector::complex_mul_add::<F>(&mut cpu.fp, addend, a, &b, i.aux as u8, active(i));
        write(&mut cpu.z, i, &r);
        Ok(())
    }
    let (h, l, q) = (bits(w, 11, 1), bits(w, 21, 1), bits(w, 30, 1));
    let (esize, index, exec) = match bits(w, 22, 2) {
        1 if h == 0 || q == 1 => (2, h << 1 | l, exec::<u16, u32> as Exec),
        2 if l == 0 && q == 1 => (4, h, exec::<u32, u64> as Exec),
        _ => return None,
    };
    let form = Form::with_esize(w, esize)?;
    let mut d = three_registers::<true>(w, form.decoded(c, "simd:FCMLA (by element)", 2, exec));
    d.info.element = Some(Reg::vector(d.inst.rm));
    d.inst.aux = bits(w, 13, 2) as u16;
    d.inst.esz = index as u8;
    Some(d)
}
