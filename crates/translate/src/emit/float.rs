//! Floating-point instructions of single and double precision, scalar and AdvSIMD.
//!
//! Units that contain these run only while results are rounded to nearest, denormal numbers are not flushed and the inexact flag is
//! set. A finite result above the smallest normal number is then Arm's, and sets no flag (`fxscope_aarch64::fp::host` has the
//! proof); all other cases are left to the interpreter's function.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{Block, InstBuilder as _, Type, Value, types};
use fxscope_aarch64::table::bits;

use super::flags::Flags;
use super::{At, Emitter};

/// An addend of at least this magnitude has no bits below the smallest number of its format, nor has its sum with a product that
/// cancels it: `fp::host`'s limits, 2^-900 and 2^-60.
const SAFE_DOUBLE: f64 = f64::from_bits(0x07b0_0000_0000_0000);
const SAFE_SINGLE: f64 = 1.0 / (1u64 << 60) as f64;

/// Operands of an operation, and what it computes.
#[derive(Clone, Copy)]
enum Operation {
    Sum(Value, Value),
    Difference(Value, Value),
    Product(Value, Value),
    Quotient(Value, Value),
    Root(Value),
    /// addend + a × b, rounded once.
    FusedSum {
        addend: Value,
        a: Value,
        b: Value,
    },
}

impl Emitter<'_> {
    /// Emits a floating-point instruction. Returns `false`, and emits nothing, for others.
    pub(super) fn float(&mut self, at: At<'_>) -> bool {
        self.float_move(at) || self.plain && (self.scalar_float(at) || self.vector_float(at))
    }

    /// Emits an instruction that moves numbers, or changes their sign.
    fn float_move(&mut self, at: At<'_>) -> bool {
        let inst = at.inst;
        if at.name == "ORR (vector, register)" && inst.rn == inst.rm && bits(at.word, 30, 1) == 1 {
            let value = self.z(inst.rn, types::F64X2);
            self.set_z(inst.rd, value);
            return true;
        }
        let Some(ty) = scalar_type(at) else { return false };
        let result = match at.name {
            "FMOV (register)" => self.z(inst.rn, ty),
            "FABS (scalar)" => {
                let value = self.z(inst.rn, ty);
                self.b.ins().fabs(value)
            }
            "FNEG (scalar)" => {
                let value = self.z(inst.rn, ty);
                self.b.ins().fneg(value)
            }
            "FMOV (scalar, immediate)" => {
                let number = self.constant(inst.imm2);
                self.number(number, ty)
            }
            "FMOV (general) from general" => {
                let number = self.x(inst.rn);
                self.number(number, ty)
            }
            "FMOV (general) to general" => {
                let value = self.z(inst.rn, ty);
                let number = self.as_type(if ty == types::F64 { types::I64 } else { types::I32 }, value);
                self.set_x(inst.rd, number);
                return true;
            }
            "FCSEL" => {
                let holds = self.holds(inst.pg);
                let (n, m) = (self.z(inst.rn, ty), self.z(inst.rm, ty));
                self.b.ins().select(holds, n, m)
            }
            // All numbers of 32 bits are numbers of double precision.
            "SCVTF (scalar, integer)" if ty == types::F64 && at.word >> 31 == 0 => {
                let value = self.w(inst.rn);
                self.b.ins().fcvt_from_sint(ty, value)
            }
            _ => return false,
        };
        self.set_z(inst.rd, result);
        true
    }

    /// Returns the number whose representation is in the low bits of `bits`.
    fn number(&mut self, bits: Value, ty: Type) -> Value {
        if ty == types::F64 {
            return self.as_type(ty, bits);
        }
        let low = self.b.ins().ireduce(types::I32, bits);
        self.as_type(ty, low)
    }

    /// Emits a scalar operation or comparison.
    fn scalar_float(&mut self, at: At<'_>) -> bool {
        let (inst, Some(ty)) = (at.inst, scalar_type(at)) else { return false };
        match at.name {
            "FADD (scalar)" | "FSUB (scalar)" | "FMUL (scalar)" | "FDIV (scalar)" | "FNMUL (scalar)" => {
                self.unless_subnormal(at, ty, &[inst.rn, inst.rm]);
                let (a, b) = (self.z(inst.rn, ty), self.z(inst.rm, ty));
                let operation = match at.name {
                    "FADD (scalar)" => Operation::Sum(a, b),
                    "FSUB (scalar)" => Operation::Difference(a, b),
                    "FDIV (scalar)" => Operation::Quotient(a, b),
                    _ => Operation::Product(a, b),
                };
                self.checked(at, ty, operation, at.name == "FNMUL (scalar)");
            }
            "FSQRT (scalar)" => {
                self.unless_subnormal(at, ty, &[inst.rn]);
                let a = self.z(inst.rn, ty);
                self.checked(at, ty, Operation::Root(a), false);
            }
            "FMADD" | "FMSUB" | "FNMADD" | "FNMSUB" if self.fused => {
                self.unless_subnormal(at, ty, &[inst.rn, inst.rm, inst.ra]);
                let (mut a, b) = (self.z(inst.rn, ty), self.z(inst.rm, ty));
                let mut addend = self.z(inst.ra, ty);
                if matches!(at.name, "FMSUB" | "FNMADD") {
                    a = self.b.ins().fneg(a);
                }
                if matches!(at.name, "FNMADD" | "FNMSUB") {
                    addend = self.b.ins().fneg(addend);
                }
                self.checked(at, ty, Operation::FusedSum { addend, a, b }, false);
            }
            "FCMP" | "FCMPE" | "FCMP (zero)" | "FCMPE (zero)" => {
                let with_zero = at.name.contains("zero");
                let operands = [inst.rn, inst.rm];
                self.unless_subnormal(at, ty, if with_zero { &operands[..1] } else { &operands });
                let a = self.z(inst.rn, ty);
                let b = if with_zero { self.number_constant(ty, 0.0) } else { self.z(inst.rm, ty) };
                let (nan, ordered) = (self.cold_block(), self.b.create_block());
                let unordered = self.b.ins().fcmp(FloatCC::Unordered, a, b);
                self.b.ins().brif(unordered, nan, &[], ordered, &[]);
                self.b.switch_to_block(nan);
                self.leave_before(at);
                self.b.switch_to_block(ordered);
                self.flags = Flags::Compared { a, b };
            }
            _ => return false,
        }
        true
    }

    /// Emits an operation of the host.
    fn compute(&mut self, operation: Operation) -> Value {
        match operation {
            Operation::Sum(a, b) => self.b.ins().fadd(a, b),
            Operation::Difference(a, b) => self.b.ins().fsub(a, b),
            Operation::Product(a, b) => self.b.ins().fmul(a, b),
            Operation::Quotient(a, b) => self.b.ins().fdiv(a, b),
            Operation::Root(a) => self.b.ins().sqrt(a),
            Operation::FusedSum { addend, a, b } => self.b.ins().fma(a, b, addend),
        }
    }

    /// Emits a scalar operation, whose result is negated if `negates`, with its slow path.
    fn checked(&mut self, at: At<'_>, ty: Type, operation: Operation, negates: bool) {
        let result = self.compute(operation);
        let final_result = if negates { self.b.ins().fneg(result) } else { result };
        let (magnitude, normal) = self.is_normal(ty, result);
        let (doubt, joined) = (self.cold_block(), self.b.create_block());
        self.b.ins().brif(normal, joined, &[final_result.into()], doubt, &[]);
        self.b.switch_to_block(doubt);
        let mut exact = self.b.ins().icmp_imm_u(IntCC::Equal, magnitude, 0);
        if let Some(condition) = self.zero_is_exact(ty, operation) {
            exact = self.b.ins().band(exact, condition);
        }
        let slow = self.cold_block();
        self.b.ins().brif(exact, joined, &[final_result.into()], slow, &[]);
        self.b.switch_to_block(slow);
        self.execute_apart(at, ty, joined);
        self.b.switch_to_block(joined);
        let value = self.b.append_block_param(joined, ty);
        self.set_z(at.inst.rd, value);
        if self.trace.is_some() {
            self.set_regular(at.inst.rd, ty);
        }
    }

    /// Emits the interpreter's function for an instruction on vector registers, on a path that joins the block again with its result. A
    /// traced block is left, since the result may be a subnormal number.
    fn execute_apart(&mut self, at: At<'_>, ty: Type, joined: Block) {
        if self.trace.is_some() {
            return self.leave_before(at);
        }
        self.call(at);
        let loaded = self.load_z(at.inst.rd, ty);
        self.b.ins().jump(joined, &[loaded.into()]);
    }

    /// Leaves a traced block before an instruction one of whose operands, in these registers, is a subnormal number: the interpreter
    /// counts these. In other units they make no difference.
    fn unless_subnormal(&mut self, at: At<'_>, ty: Type, operands: &[u8]) {
        if self.trace.is_none() {
            return;
        }
        for &n in operands {
            if self.is_regular(n, ty) {
                continue;
            }
            let value = self.z(n, ty);
            let (int, least) = if ty == types::F64 { (types::I64, 2 << 52) } else { (types::I32, 2 << 23) };
            let bits = self.as_type(int, value);
            let magnitude = self.b.ins().ishl_imm_u(bits, 1);
            let least = self.b.ins().iconst(int, least);
            let (tiny, subnormal, on) = (self.cold_block(), self.cold_block(), self.b.create_block());
            let small = self.compare(IntCC::UnsignedLessThan, magnitude, least);
            self.b.ins().brif(small, tiny, &[], on, &[]);
            self.b.switch_to_block(tiny);
            self.b.ins().brif(magnitude, subnormal, &[], on, &[]);
            self.b.switch_to_block(subnormal);
            self.leave_before(at);
            self.b.switch_to_block(on);
            self.set_regular(n, ty);
        }
    }

    /// Returns twice the magnitude of a number as an integer, and whether it is finite and above the smallest normal number.
    fn is_normal(&mut self, ty: Type, number: Value) -> (Value, Value) {
        let (int, fraction, above) = if ty == types::F64 { (types::I64, 53, 0x7ff) } else { (types::I32, 24, 0xff) };
        let bits = self.as_type(int, number);
        let magnitude = self.b.ins().ishl_imm_u(bits, 1);
        // Of the smallest exponent, only the smallest number is in doubt; all of them are left to the slow path.
        let least = self.b.ins().iconst(int, 2 << fraction);
        let range = self.b.ins().iconst(int, (above - 2) << fraction);
        let distance = self.b.ins().isub(magnitude, least);
        (magnitude, self.compare(IntCC::UnsignedLessThan, distance, range))
    }

    /// Returns for each number of a result whether it is certainly an exact zero, if it is a zero. `None`: it is.
    fn zero_is_exact(&mut self, ty: Type, operation: Operation) -> Option<Value> {
        let (a, b, addend) = match operation {
            Operation::Sum(..) | Operation::Difference(..) | Operation::Root(_) => return None,
            Operation::Product(a, b) => (a, Some(b), None),
            Operation::Quotient(a, _) => (a, None, None),
            Operation::FusedSum { addend, a, b } => (a, Some(b), Some(addend)),
        };
        let zero = self.number_constant(ty, 0.0);
        let mut exact = self.b.ins().fcmp(FloatCC::Equal, a, zero);
        if let Some(b) = b {
            let also = self.b.ins().fcmp(FloatCC::Equal, b, zero);
            exact = self.b.ins().bor(exact, also);
        }
        if let Some(addend) = addend {
            // The product then has no bits below the smallest number of the format: nothing was rounded.
            let least = self.number_constant(ty, if ty.lane_type() == types::F64 { SAFE_DOUBLE } else { SAFE_SINGLE });
            let magnitude = self.b.ins().fabs(addend);
            let large = self.b.ins().fcmp(FloatCC::GreaterThanOrEqual, magnitude, least);
            exact = self.b.ins().bor(exact, large);
        }
        Some(exact)
    }

    /// Returns a number in each element of a type.
    fn number_constant(&mut self, ty: Type, number: f64) -> Value {
        let constant = match ty.lane_type() {
            types::F64 => self.b.ins().f64const(number),
            _ => self.b.ins().f32const(number as f32),
        };
        if ty.is_vector() { self.b.ins().splat(ty, constant) } else { constant }
    }

    /// Emits an operation on vectors of 128 bits.
    fn vector_float(&mut self, at: At<'_>) -> bool {
        let inst = at.inst;
        // Both halves of the register; bit 22 is the precision.
        if at.word >> 28 & 0b1101 != 0b0100 || bits(at.word, 30, 1) == 0 {
            return false;
        }
        let ty = if bits(at.word, 22, 1) == 1 { types::F64X2 } else { types::F32X4 };
        let by_element = at.name.ends_with("(by element)");
        let kind = match at.name {
            "FADD (vector)" | "FSUB (vector)" | "FMUL (vector)" | "FDIV (vector)" | "FMUL (by element)" => at.name,
            "FMLA (vector)" | "FMLS (vector)" | "FMLA (by element)" | "FMLS (by element)" if self.fused => at.name,
            "FNEG (vector)" | "FABS (vector)" => at.name,
            _ => return false,
        };
        let mut a = self.lanes(inst.rn, ty);
        if kind == "FNEG (vector)" || kind == "FABS (vector)" {
            let result = if kind == "FNEG (vector)" { self.b.ins().fneg(a) } else { self.b.ins().fabs(a) };
            self.set_lanes(inst.rd, result);
            return true;
        }
        let mut b = self.lanes(inst.rm, ty);
        if by_element {
            let element = self.b.ins().extractlane(b, inst.aux as u8);
            b = self.b.ins().splat(ty, element);
        }
        if kind.starts_with("FMLS") {
            a = self.b.ins().fneg(a);
        }
        let operation = match &kind[..4] {
            "FADD" => Operation::Sum(a, b),
            "FSUB" => Operation::Difference(a, b),
            "FMUL" => Operation::Product(a, b),
            "FDIV" => Operation::Quotient(a, b),
            _ => Operation::FusedSum { addend: self.lanes(inst.rd, ty), a, b },
        };
        self.checked_lanes(at, ty, operation);
        true
    }

    /// Emits an operation on vectors with its slow path.
    fn checked_lanes(&mut self, at: At<'_>, ty: Type, operation: Operation) {
        let result = self.compute(operation);
        let magnitudes = self.b.ins().fabs(result);
        let least = if ty == types::F64X2 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() };
        let (least, infinity) = (self.number_constant(ty, least), self.number_constant(ty, f64::INFINITY));
        let above = self.b.ins().fcmp(FloatCC::GreaterThan, magnitudes, least);
        let below = self.b.ins().fcmp(FloatCC::LessThan, magnitudes, infinity);
        let normal = self.b.ins().band(above, below);
        let all = self.all_lanes(ty, normal);
        let result = self.as_type(types::F64X2, result);
        let (doubt, slow, joined) = (self.cold_block(), self.cold_block(), self.b.create_block());
        self.b.ins().brif(all, joined, &[result.into()], doubt, &[]);
        self.b.switch_to_block(doubt);
        let zero = self.number_constant(ty, 0.0);
        let mut exact = self.b.ins().fcmp(FloatCC::Equal, magnitudes, zero);
        if let Some(condition) = self.zero_is_exact(ty, operation) {
            exact = self.b.ins().band(exact, condition);
        }
        let right = self.b.ins().bor(normal, exact);
        let all = self.all_lanes(ty, right);
        self.b.ins().brif(all, joined, &[result.into()], slow, &[]);
        self.b.switch_to_block(slow);
        self.execute_apart(at, types::F64X2, joined);
        self.b.switch_to_block(joined);
        let value = self.b.append_block_param(joined, types::F64X2);
        self.set_z(at.inst.rd, value);
    }

    /// Returns whether all elements of a vector of truth values are true.
    fn all_lanes(&mut self, ty: Type, truths: Value) -> Value {
        let lanes = self.b.ins().vhigh_bits(types::I32, truths);
        self.b.ins().icmp_imm_u(IntCC::Equal, lanes, (1 << ty.lane_count()) - 1)
    }

    /// Returns the lowest 128 bits of a vector register as numbers.
    fn lanes(&mut self, n: u8, ty: Type) -> Value {
        let value = self.z(n, types::F64X2);
        self.as_type(ty, value)
    }

    fn set_lanes(&mut self, n: u8, value: Value) {
        let value = self.as_type(types::F64X2, value);
        self.set_z(n, value);
    }
}

/// Returns the type of the numbers of a scalar instruction by its format field; `None`: half precision, or another instruction.
fn scalar_type(at: At<'_>) -> Option<Type> {
    if bits(at.word, 25, 4) != 0b1111 || bits(at.word, 30, 1) == 1 {
        return None;
    }
    match bits(at.word, 22, 2) {
        0 => Some(types::F32),
        1 => Some(types::F64),
        _ => None,
    }
}
