//! SVE instructions on general-purpose and predicate registers, and moves of whole vectors. All other instructions on vectors are
//! calls of their fast paths ([`fxscope_aarch64::fast`]).

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder as _, Value, types};
use fxscope_aarch64::table::bits;

use super::flags::Flags;
use super::{At, Emitter};
use crate::context::Setter;

impl Emitter<'_> {
    /// Emits an SVE instruction. Returns `false`, and emits nothing, for others, and for those that are calls.
    pub(super) fn sve(&mut self, at: At<'_>) -> bool {
        self.count(at) || self.predicate(at) || self.whole_vector(at)
    }

    /// Emits an instruction that computes with the number of elements in a vector.
    fn count(&mut self, at: At<'_>) -> bool {
        let inst = at.inst;
        match at.name {
            "RDVL" | "CNTB" | "CNTH" | "CNTW" | "CNTD" => {
                let value = self.constant(inst.imm as u64);
                self.set_x(inst.rd, value);
            }
            "ADDVL" | "ADDPL" | "INCB" | "INCH (scalar)" | "INCW (scalar)" | "INCD (scalar)" | "DECB"
            | "DECH (scalar)" | "DECW (scalar)" | "DECD (scalar)" => {
                let value = self.x(inst.rn);
                let value = self.b.ins().iadd_imm_s(value, inst.imm);
                self.set_x(inst.rd, value);
            }
            _ => return false,
        }
        true
    }

    /// Emits an instruction that computes predicates.
    fn predicate(&mut self, at: At<'_>) -> bool {
        let inst = at.inst;
        match at.name {
            "PTRUE" | "PTRUES" | "PFALSE" => {
                let value = self.constant(inst.imm2);
                self.set_p(inst.rd, value);
                if at.name == "PTRUES" {
                    self.flags = Flags::Number(self.b.ins().iconst(types::I8, i64::from(inst.aux)));
                }
            }
            "PTEST" => {
                let (governing, result) = (self.p(inst.pg), self.p(inst.rn));
                self.set_flags(Setter::Predicate, true, governing, result);
            }
            "WHILELT" | "WHILELE" | "WHILELO" | "WHILELS" => self.while_predicate(at),
            _ => return self.predicate_logic(at),
        }
        true
    }

    /// Emits a logical operation on predicates, with flags if its name says so.
    fn predicate_logic(&mut self, at: At<'_>) -> bool {
        let (inst, name) = (at.inst, at.name);
        let operation = name.trim_end_matches(" (predicates)");
        let with_flags = matches!(operation, "ANDS" | "BICS" | "EORS" | "ORRS" | "ORNS" | "NORS" | "NANDS");
        let is_named = matches!(operation, "AND" | "BIC" | "EOR" | "ORR" | "SEL") && name != operation;
        if !(with_flags || is_named || matches!(name, "ORN" | "NOR" | "NAND")) || bits(at.word, 25, 7) != 0b001_0010 {
            return false;
        }
        let (g, n, m) = (self.p(inst.pg), self.p(inst.rn), self.p(inst.rm));
        let operation = if with_flags { &operation[..operation.len() - 1] } else { operation };
        let value = match operation {
            "AND" => self.b.ins().band(n, m),
            "BIC" => self.b.ins().band_not(n, m),
            "EOR" => self.b.ins().bxor(n, m),
            "ORR" => self.b.ins().bor(n, m),
            "ORN" => {
                let not = self.b.ins().bnot(m);
                self.b.ins().bor(n, not)
            }
            "SEL" => {
                let (on, off) = (self.b.ins().band(n, g), self.b.ins().band_not(m, g));
                self.b.ins().bor(on, off)
            }
            _ => {
                let value = if operation == "NOR" { self.b.ins().bor(n, m) } else { self.b.ins().band(n, m) };
                self.b.ins().bnot(value)
            }
        };
        let result = if operation == "SEL" { value } else { self.b.ins().band(value, g) };
        self.set_p(inst.rd, result);
        if with_flags {
            self.set_flags(Setter::Predicate, true, g, result);
        }
        true
    }

    /// WHILE: the first elements are true, as many as numbers from `rn` on are below (or not above) `rm`.
    fn while_predicate(&mut self, at: At<'_>) {
        let inst = at.inst;
        let (wide, or_equal) = (bits(at.word, 12, 1) == 1, at.name.ends_with(['E', 'S']));
        let is_signed = at.name.starts_with("WHILEL") && matches!(at.name, "WHILELT" | "WHILELE");
        let (n, m) = (self.word(inst.rn, wide), self.word(inst.rm, wide));
        let condition = match (is_signed, or_equal) {
            (true, false) => IntCC::SignedLessThan,
            (true, true) => IntCC::SignedLessThanOrEqual,
            (false, false) => IntCC::UnsignedLessThan,
            (false, true) => IntCC::UnsignedLessThanOrEqual,
        };
        let holds = self.compare(condition, n, m);
        let [from, to] = [n, m].map(|value| match (wide, is_signed) {
            (true, _) => value,
            (false, true) => self.b.ins().sextend(types::I64, value),
            (false, false) => self.b.ins().uextend(types::I64, value),
        });
        let distance = self.b.ins().isub(to, from);
        let most = self.constant((self.vl >> inst.esz) as u64);
        let mut elements = self.b.ins().umin(distance, most);
        if or_equal {
            // The sum of the largest distance and one wraps around.
            let more = self.b.ins().iadd_imm_s(elements, 1);
            elements = self.b.ins().umin(more, most);
            elements = self.all_if_largest(m, (wide, is_signed), most, elements);
        }
        let zero = self.constant(0);
        let elements = self.b.ins().select(holds, elements, zero);
        let all = self.constant(inst.imm2);
        let result = self.first_elements(elements, inst.esz, all);
        self.set_p(inst.rd, result);
        self.set_flags(Setter::Predicate, true, all, result);
    }

    /// Returns `most` if `m` is the largest number of its type, which no number exceeds, else `elements`.
    fn all_if_largest(&mut self, m: Value, (wide, is_signed): (bool, bool), most: Value, elements: Value) -> Value {
        let largest = match (wide, is_signed) {
            (true, true) => i64::MAX,
            (true, false) => -1,
            (false, true) => i64::from(i32::MAX),
            (false, false) => i64::from(u32::MAX),
        };
        let ty = if wide { types::I64 } else { types::I32 };
        let largest = self.b.ins().iconst(ty, largest);
        let is_largest = self.compare(IntCC::Equal, m, largest);
        self.b.ins().select(is_largest, most, elements)
    }

    /// Returns the bits of `all` that belong to the first elements of 2^`log2` bytes.
    fn first_elements(&mut self, elements: Value, log2: u8, all: Value) -> Value {
        // In two steps, since the host shifts modulo 64.
        let ones = self.constant(u64::MAX);
        let (half, rest) = match log2 {
            0 => {
                let half = self.b.ins().ushr_imm_u(elements, 1);
                (half, self.b.ins().isub(elements, half))
            }
            _ => {
                let half = self.b.ins().ishl_imm_u(elements, i64::from(log2) - 1);
                (half, half)
            }
        };
        let beyond = self.b.ins().ishl(ones, half);
        let beyond = self.b.ins().ishl(beyond, rest);
        self.b.ins().band_not(all, beyond)
    }

    /// Emits a move of a whole vector.
    fn whole_vector(&mut self, at: At<'_>) -> bool {
        let inst = at.inst;
        let moves = at.name == "MOVPRFX (unpredicated)"
            || at.name == "ORR (vectors, unpredicated)" && inst.rn == inst.rm
            || at.name == "AND (vectors, unpredicated)" && inst.rn == inst.rm;
        if moves {
            let parts: Vec<Value> = (0..self.vl).step_by(16).map(|offset| self.part(inst.rn, offset)).collect();
            self.set_parts(inst.rd, &parts);
        }
        moves
    }
}
