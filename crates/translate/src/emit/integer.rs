//! Integer instructions.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, Type, Value, types};
use fxscope_aarch64::table::bits;

use super::flags::Flags;
use super::{At, Emitter};
use crate::context::Setter;

fn ty(wide: bool) -> Type {
    if wide { types::I64 } else { types::I32 }
}

impl Emitter<'_> {
    /// Emits an integer instruction. Returns `false`, and emits nothing, for others, and for those that are rare.
    pub(super) fn integer(&mut self, at: At<'_>) -> bool {
        let (inst, wide) = (at.inst, at.word >> 31 == 1);
        match at.name {
            "ADR" | "ADRP" | "MOVZ" | "MOVN" => {
                let value = self.constant(inst.imm as u64);
                self.set_x(inst.rd, value);
            }
            "MOVK" => {
                let value = self.x(inst.rn);
                let kept = self.b.ins().band_imm_s(value, inst.imm2 as i64);
                let result = self.b.ins().bor_imm_s(kept, inst.imm);
                self.set_x(inst.rd, result);
            }
            "ADD (immediate)" | "ADDS (immediate)" | "SUB (immediate)" | "SUBS (immediate)" | "AND (immediate)"
            | "ORR (immediate)" | "EOR (immediate)" | "ANDS (immediate)" => {
                let a = self.word(inst.rn, wide);
                let b = self.word_constant(inst.imm as u64, wide);
                self.operation(at, wide, a, b);
            }
            "AND (shifted register)"
            | "BIC (shifted register)"
            | "ORR (shifted register)"
            | "ORN (shifted register)"
            | "EOR (shifted register)"
            | "EON (shifted register)"
            | "ANDS (shifted register)"
            | "BICS (shifted register)"
            | "ADD (shifted register)"
            | "ADDS (shifted register)"
            | "SUB (shifted register)"
            | "SUBS (shifted register)" => {
                let (a, b) = (self.word(inst.rn, wide), self.shifted(at, wide));
                self.operation(at, wide, a, b);
            }
            "ADD (extended register)"
            | "ADDS (extended register)"
            | "SUB (extended register)"
            | "SUBS (extended register)" => {
                let (a, b) = (self.word(inst.rn, wide), self.extended(at, wide));
                self.operation(at, wide, a, b);
            }
            "SBFM" | "UBFM" => self.bitfield(at, wide),
            "BFM" => {
                let (from, into) = (self.word(inst.rn, wide), self.word(inst.ra, wide));
                let moved = self.b.ins().rotr_imm_u(from, i64::from(inst.aux));
                let (mask, rest) = (self.word_constant(inst.imm2, wide), self.word_constant(!inst.imm2, wide));
                let (moved, kept) = (self.b.ins().band(moved, mask), self.b.ins().band(into, rest));
                let result = self.b.ins().bor(moved, kept);
                self.set_x(inst.rd, result);
            }
            "EXTR" => self.extract(at, wide),
            "CSEL" | "CSINC" | "CSINV" | "CSNEG" => self.select(at, wide),
            "CCMP (register)" | "CCMP (immediate)" | "CCMN (register)" | "CCMN (immediate)" => {
                self.conditional_compare(at, wide);
            }
            "MADD" | "MSUB" => {
                let (n, m, a) = (self.word(inst.rn, wide), self.word(inst.rm, wide), self.word(inst.ra, wide));
                let product = self.b.ins().imul(n, m);
                let result =
                    if at.name == "MADD" { self.b.ins().iadd(a, product) } else { self.b.ins().isub(a, product) };
                self.set_x(inst.rd, result);
            }
            "SMADDL" | "SMSUBL" | "UMADDL" | "UMSUBL" => self.multiply_long(at),
            "SMULH" | "UMULH" => {
                let (n, m) = (self.x(inst.rn), self.x(inst.rm));
                let result = if at.name == "SMULH" { self.b.ins().smulhi(n, m) } else { self.b.ins().umulhi(n, m) };
                self.set_x(inst.rd, result);
            }
            "LSLV" | "LSRV" | "ASRV" | "RORV" => {
                // Amounts are modulo the width here and there.
                let (n, m) = (self.word(inst.rn, wide), self.word(inst.rm, wide));
                let result = match at.name {
                    "LSLV" => self.b.ins().ishl(n, m),
                    "LSRV" => self.b.ins().ushr(n, m),
                    "ASRV" => self.b.ins().sshr(n, m),
                    _ => self.b.ins().rotr(n, m),
                };
                self.set_x(inst.rd, result);
            }
            "CLZ" | "RBIT" => {
                let n = self.word(inst.rn, wide);
                let result = if at.name == "CLZ" { self.b.ins().clz(n) } else { self.b.ins().bitrev(n) };
                self.set_x(inst.rd, result);
            }
            "UDIV" | "SDIV" => self.divide(at, wide),
            _ => return false,
        }
        true
    }

    fn word_constant(&mut self, value: u64, wide: bool) -> Value {
        let value = if wide { value } else { u64::from(value as u32) };
        self.b.ins().iconst(ty(wide), value as i64)
    }

    /// Emits an operation on two operands, which its name begins with.
    fn operation(&mut self, at: At<'_>, wide: bool, a: Value, b: Value) {
        let operation = at.name.split(' ').next().unwrap_or_default();
        let result = match operation {
            "ADD" | "ADDS" => self.b.ins().iadd(a, b),
            "SUB" | "SUBS" => self.b.ins().isub(a, b),
            "AND" | "ANDS" => self.b.ins().band(a, b),
            "ORR" => self.b.ins().bor(a, b),
            "EOR" => self.b.ins().bxor(a, b),
            _ => {
                let not = self.b.ins().bnot(b);
                match operation {
                    "BIC" | "BICS" => self.b.ins().band(a, not),
                    "ORN" => self.b.ins().bor(a, not),
                    _ => self.b.ins().bxor(a, not),
                }
            }
        };
        match operation {
            "ADDS" => self.set_flags(Setter::Add, wide, a, b),
            "SUBS" => self.set_flags(Setter::Sub, wide, a, b),
            "ANDS" | "BICS" => self.set_flags(Setter::Logic, wide, result, result),
            _ => {}
        }
        self.set_x(at.inst.rd, result);
    }

    /// Returns the shifted second operand.
    fn shifted(&mut self, at: At<'_>, wide: bool) -> Value {
        let (value, amount) = (self.word(at.inst.rm, wide), i64::from(at.inst.aux));
        if amount == 0 {
            return value;
        }
        match bits(at.word, 22, 2) {
            0 => self.b.ins().ishl_imm_u(value, amount),
            1 => self.b.ins().ushr_imm_u(value, amount),
            2 => self.b.ins().sshr_imm_u(value, amount),
            _ => self.b.ins().rotr_imm_u(value, amount),
        }
    }

    /// Returns the extended second operand.
    fn extended(&mut self, at: At<'_>, wide: bool) -> Value {
        let value = self.x(at.inst.rm);
        let extended = self.extend(value, bits(at.word, 13, 3));
        let shifted = self.b.ins().ishl_imm_u(extended, i64::from(bits(at.word, 10, 3)));
        if wide { shifted } else { self.b.ins().ireduce(types::I32, shifted) }
    }

    /// Extends a value as `option` says: UXTB, UXTH, UXTW, UXTX, SXTB, SXTH, SXTW, SXTX.
    pub(super) fn extend(&mut self, value: Value, option: u32) -> Value {
        let part = [types::I8, types::I16, types::I32, types::I64][option as usize & 3];
        if part == types::I64 {
            return value;
        }
        let part = self.b.ins().ireduce(part, value);
        if option & 4 != 0 { self.b.ins().sextend(types::I64, part) } else { self.b.ins().uextend(types::I64, part) }
    }

    /// SBFM and UBFM: the field is shifted to the top, and from there to its place.
    fn bitfield(&mut self, at: At<'_>, wide: bool) {
        let width = if wide { 64 } else { 32 };
        let (immr, imms) = (bits(at.word, 16, 6), bits(at.word, 10, 6));
        let left = width - 1 - imms;
        let right = (left + immr) % width;
        let mut value = self.word(at.inst.rn, wide);
        if left != 0 {
            value = self.b.ins().ishl_imm_u(value, i64::from(left));
        }
        if right != 0 {
            value = match at.name {
                "SBFM" => self.b.ins().sshr_imm_u(value, i64::from(right)),
                _ => self.b.ins().ushr_imm_u(value, i64::from(right)),
            };
        }
        self.set_x(at.inst.rd, value);
    }

    fn extract(&mut self, at: At<'_>, wide: bool) {
        let (high, low) = (self.word(at.inst.rn, wide), self.word(at.inst.rm, wide));
        let (amount, width) = (i64::from(at.inst.aux), if wide { 64 } else { 32 });
        let result = if amount == 0 {
            low
        } else {
            let low = self.b.ins().ushr_imm_u(low, amount);
            let high = self.b.ins().ishl_imm_u(high, width - amount);
            self.b.ins().bor(high, low)
        };
        self.set_x(at.inst.rd, result);
    }

    fn select(&mut self, at: At<'_>, wide: bool) {
        let (n, m) = (self.word(at.inst.rn, wide), self.word(at.inst.rm, wide));
        let other = match at.name {
            "CSINC" => self.b.ins().iadd_imm_s(m, 1),
            "CSINV" => self.b.ins().bnot(m),
            "CSNEG" => self.b.ins().ineg(m),
            _ => m,
        };
        let holds = self.holds(at.inst.pg);
        let result = self.b.ins().select(holds, n, other);
        self.set_x(at.inst.rd, result);
    }

    /// CCMP and CCMN: the flags of the comparison when the condition holds, else those in the instruction.
    fn conditional_compare(&mut self, at: At<'_>, wide: bool) {
        let holds = self.holds(at.inst.pg);
        let a = self.word(at.inst.rn, wide);
        let b = match at.name.contains("immediate") {
            true => self.word_constant(at.inst.imm as u64, wide),
            false => self.word(at.inst.rm, wide),
        };
        let setter = if at.name.starts_with("CCMP") { Setter::Sub } else { Setter::Add };
        let compared = self.number_of(setter, wide, a, b);
        let given = self.b.ins().iconst(types::I8, i64::from(at.inst.aux));
        self.flags = Flags::Number(self.b.ins().select(holds, compared, given));
    }

    fn multiply_long(&mut self, at: At<'_>) {
        let (n, m, a) = (self.w(at.inst.rn), self.w(at.inst.rm), self.x(at.inst.ra));
        let [n, m] = [n, m].map(|value| match at.name.starts_with('S') {
            true => self.b.ins().sextend(types::I64, value),
            false => self.b.ins().uextend(types::I64, value),
        });
        let product = self.b.ins().imul(n, m);
        let adds = at.name.ends_with("ADDL");
        let result = if adds { self.b.ins().iadd(a, product) } else { self.b.ins().isub(a, product) };
        self.set_x(at.inst.rd, result);
    }

    /// UDIV and SDIV: a quotient by zero is zero; the most negative number by −1 is itself.
    fn divide(&mut self, at: At<'_>, wide: bool) {
        let (n, m) = (self.word(at.inst.rn, wide), self.word(at.inst.rm, wide));
        let (zero, one) = (self.word_constant(0, wide), self.word_constant(1, wide));
        let by_zero = self.compare(IntCC::Equal, m, zero);
        let result = if at.name == "UDIV" {
            let divisor = self.b.ins().select(by_zero, one, m);
            self.b.ins().udiv(n, divisor)
        } else {
            let minus_one = self.word_constant(u64::MAX, wide);
            let negates = self.compare(IntCC::Equal, m, minus_one);
            let special = self.b.ins().bor(by_zero, negates);
            let divisor = self.b.ins().select(special, one, m);
            let quotient = self.b.ins().sdiv(n, divisor);
            let negative = self.b.ins().ineg(n);
            self.b.ins().select(negates, negative, quotient)
        };
        let result = self.b.ins().select(by_zero, zero, result);
        self.set_x(at.inst.rd, result);
    }
}
