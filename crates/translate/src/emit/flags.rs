//! The condition flags: from what they follow, and conditions of them.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder as _, Value, types};
use fxscope_aarch64::Cpu;

use super::Emitter;
use crate::context::{self, Context, IN_CPU, Setter, pending};

/// From what the flags follow at a place in a block.
#[derive(Clone, Copy)]
pub(super) enum Flags {
    /// As [`Context::flags`] says.
    Context,
    /// `cpu.nzcv` has them, and [`Context::flags`] says so.
    InCpu,
    /// An operation on these operands, which the context does not have; of a logical one, the first is its result, of the test of
    /// a predicate, the first governs the second.
    Of { setter: Setter, wide: bool, a: Value, b: Value },
    /// A comparison of two floating-point numbers, neither of them a NaN.
    Compared { a: Value, b: Value },
    /// This number of 8 bits, which `Cpu` does not have.
    Number(Value),
}

/// A property of a predicate among the elements of its governing predicate.
#[derive(Clone, Copy)]
enum PredicateFlag {
    /// The first element is true.
    First,
    /// No element is true.
    None,
    /// The last element is true.
    Last,
}

impl Emitter<'_> {
    /// The flags are set by an operation.
    pub(super) fn set_flags(&mut self, setter: Setter, wide: bool, a: Value, b: Value) {
        self.flags = Flags::Of { setter, wide, a, b };
    }

    /// A function has written the flags.
    pub(super) fn flags_are_in_cpu(&mut self) {
        self.say_in_cpu();
        self.flags = Flags::InCpu;
    }

    /// Writes to the context that the flags are in `cpu.nzcv`: in traced blocks they always are.
    fn say_in_cpu(&mut self) {
        if self.trace.is_none() {
            let kind = self.constant(IN_CPU);
            self.set_field(offset_of!(Context, flags), kind);
        }
    }

    /// Writes to memory from what the flags follow, on a path that leaves the block; what is known of them remains.
    pub(super) fn store_flags(&mut self) {
        match self.flags {
            Flags::Context | Flags::InCpu => {}
            Flags::Of { setter, wide, a, b } if self.trace.is_some() => {
                let number = self.number_of(setter, wide, a, b);
                self.store_cpu(number, offset_of!(Cpu, nzcv));
            }
            Flags::Of { setter, wide, a, b } => {
                let kind = self.constant(pending(setter, wide));
                let (a, b) = (self.widen(a), self.widen(b));
                self.set_field(offset_of!(Context, flags), kind);
                self.set_field(offset_of!(Context, operands), a);
                self.set_field(offset_of!(Context, operands) + 8, b);
            }
            Flags::Number(_) | Flags::Compared { .. } => {
                let number = match self.flags {
                    Flags::Compared { a, b } => self.number_of_comparison(a, b),
                    _ => self.flags_number(),
                };
                self.say_in_cpu();
                self.store_cpu(number, offset_of!(Cpu, nzcv));
            }
        }
    }

    /// Makes `cpu.nzcv` valid.
    pub(super) fn settle_flags(&mut self) {
        match self.flags {
            Flags::InCpu => return,
            Flags::Context => {
                let function = self.constant(context::settle_flags as *const () as u64);
                let arguments = [self.fixed.cpu, self.fixed.context];
                self.b.ins().call_indirect(self.fixed.settle, function, &arguments);
            }
            Flags::Of { .. } | Flags::Number(_) | Flags::Compared { .. } => {
                let number = self.flags_number();
                self.store_cpu(number, offset_of!(Cpu, nzcv));
                self.flags_are_in_cpu();
            }
        }
        self.flags = Flags::InCpu;
    }

    /// Returns the flags as a number of 8 bits.
    pub(super) fn flags_number(&mut self) -> Value {
        match self.flags {
            Flags::Number(number) => number,
            Flags::Of { setter, wide, a, b } => {
                let number = self.number_of(setter, wide, a, b);
                self.flags = Flags::Number(number);
                number
            }
            Flags::Compared { a, b } => {
                let number = self.number_of_comparison(a, b);
                self.flags = Flags::Number(number);
                number
            }
            Flags::InCpu => self.load_cpu(types::I8, offset_of!(Cpu, nzcv)),
            Flags::Context => {
                self.settle_flags();
                self.load_cpu(types::I8, offset_of!(Cpu, nzcv))
            }
        }
    }

    /// Returns the flags that an operation sets.
    pub(super) fn number_of(&mut self, setter: Setter, wide: bool, a: Value, b: Value) -> Value {
        if setter == Setter::Predicate {
            return self.number_of_predicate(a, b);
        }
        let ty = if wide { types::I64 } else { types::I32 };
        let zero = self.b.ins().iconst(ty, 0);
        let result = match setter {
            Setter::Add => self.b.ins().iadd(a, b),
            Setter::Sub => self.b.ins().isub(a, b),
            _ => a,
        };
        let n = self.compare(IntCC::SignedLessThan, result, zero);
        let z = self.compare(IntCC::Equal, result, zero);
        let c = match setter {
            Setter::Add => Some(self.compare(IntCC::UnsignedLessThan, result, a)),
            Setter::Sub => Some(self.compare(IntCC::UnsignedGreaterThanOrEqual, a, b)),
            _ => None,
        };
        let v = match setter {
            Setter::Add | Setter::Sub => Some(self.overflow(setter, [a, b, result], zero)),
            _ => None,
        };
        let mut number = self.b.ins().ishl_imm_u(n, 3);
        for (bit, flag) in [(2, Some(z)), (1, c), (0, v)] {
            let Some(flag) = flag else { continue };
            let flag = self.b.ins().ishl_imm_u(flag, bit);
            number = self.b.ins().bor(number, flag);
        }
        number
    }

    /// Returns the flags that describe predicate `b` under the governing predicate `a`.
    fn number_of_predicate(&mut self, a: Value, b: Value) -> Value {
        let n = self.predicate_flag(PredicateFlag::First, a, b);
        let z = self.predicate_flag(PredicateFlag::None, a, b);
        let last = self.predicate_flag(PredicateFlag::Last, a, b);
        let n = self.b.ins().ishl_imm_u(n, 3);
        let z = self.b.ins().ishl_imm_u(z, 2);
        let not_last = self.b.ins().bxor_imm_u(last, 1);
        let c = self.b.ins().ishl_imm_u(not_last, 1);
        let number = self.b.ins().bor(n, z);
        self.b.ins().bor(number, c)
    }

    /// Returns whether predicate `b` has a property among the elements of the governing predicate `a`, as 0 or 1.
    fn predicate_flag(&mut self, flag: PredicateFlag, a: Value, b: Value) -> Value {
        let result = self.b.ins().band(a, b);
        match flag {
            PredicateFlag::None => self.b.ins().icmp_imm_u(IntCC::Equal, result, 0),
            PredicateFlag::First => {
                let negative = self.b.ins().ineg(a);
                let lowest = self.b.ins().band(a, negative);
                let first = self.b.ins().band(result, lowest);
                self.b.ins().icmp_imm_u(IntCC::NotEqual, first, 0)
            }
            PredicateFlag::Last => {
                // The highest bits of both are the same one: no bit of the difference is above it. Both empty: it is not.
                let rest = self.b.ins().bxor(a, result);
                self.b.ins().icmp(IntCC::UnsignedGreaterThan, result, rest)
            }
        }
    }

    /// Returns whether a condition holds after the test of a predicate: V is clear.
    fn holds_after_predicate(&mut self, cond: u8, a: Value, b: Value) -> Option<Value> {
        let (flag, holds) = match cond {
            0 => (PredicateFlag::None, true),
            1 => (PredicateFlag::None, false),
            2 => (PredicateFlag::Last, false),
            3 => (PredicateFlag::Last, true),
            4 | 11 => (PredicateFlag::First, true),
            5 | 10 => (PredicateFlag::First, false),
            _ => return None,
        };
        let value = self.predicate_flag(flag, a, b);
        Some(if holds { value } else { self.b.ins().bxor_imm_u(value, 1) })
    }

    /// Returns the flags of a comparison of two floating-point numbers.
    fn number_of_comparison(&mut self, a: Value, b: Value) -> Value {
        let [less, equal, greater] = [0b1000, 0b0110, 0b0010].map(|flags| self.b.ins().iconst(types::I8, flags));
        let is_less = self.b.ins().fcmp(FloatCC::LessThan, a, b);
        let is_equal = self.b.ins().fcmp(FloatCC::Equal, a, b);
        let other = self.b.ins().select(is_equal, equal, greater);
        self.b.ins().select(is_less, less, other)
    }

    /// Returns whether a condition holds after the comparison of two floating-point numbers: V is clear, and C follows from N.
    fn holds_after_comparison(&mut self, cond: u8, a: Value, b: Value) -> Option<Value> {
        let cc = match cond {
            0 => FloatCC::Equal,
            1 => FloatCC::NotEqual,
            2 | 5 | 10 => FloatCC::GreaterThanOrEqual,
            3 | 4 | 11 => FloatCC::LessThan,
            8 | 12 => FloatCC::GreaterThan,
            9 | 13 => FloatCC::LessThanOrEqual,
            _ => return None,
        };
        Some(self.b.ins().fcmp(cc, a, b))
    }

    /// Returns whether a sum or difference overflows.
    fn overflow(&mut self, setter: Setter, [a, b, result]: [Value; 3], zero: Value) -> Value {
        let left = self.b.ins().bxor(a, result);
        let right = if setter == Setter::Add { self.b.ins().bxor(b, result) } else { self.b.ins().bxor(a, b) };
        let both = self.b.ins().band(left, right);
        self.compare(IntCC::SignedLessThan, both, zero)
    }

    /// Returns whether a condition holds, as a value of which any bit is set if so.
    pub(super) fn holds(&mut self, cond: u8) -> Value {
        if cond >= 14 {
            return self.b.ins().iconst(types::I8, 1);
        }
        let direct = match self.flags {
            Flags::Of { setter: Setter::Sub, a, b, .. } => self.holds_after_sub(cond, a, b),
            Flags::Of { setter: Setter::Predicate, a, b, .. } => self.holds_after_predicate(cond, a, b),
            Flags::Of { setter: Setter::Logic, wide, a, .. } => self.holds_for(cond, wide, a, true),
            Flags::Of { setter: Setter::Add, wide, a, b } => {
                let sum = self.b.ins().iadd(a, b);
                self.holds_for(cond, wide, sum, false)
            }
            Flags::Compared { a, b } => self.holds_after_comparison(cond, a, b),
            _ => None,
        };
        match direct {
            Some(holds) => holds,
            None => {
                let number = self.flags_number();
                self.holds_in(cond, number)
            }
        }
    }

    /// Returns whether a condition holds after the comparison of a and b.
    fn holds_after_sub(&mut self, cond: u8, a: Value, b: Value) -> Option<Value> {
        use IntCC::*;
        let cc = match cond {
            0 => Equal,
            1 => NotEqual,
            2 => UnsignedGreaterThanOrEqual,
            3 => UnsignedLessThan,
            8 => UnsignedGreaterThan,
            9 => UnsignedLessThanOrEqual,
            10 => SignedGreaterThanOrEqual,
            11 => SignedLessThan,
            12 => SignedGreaterThan,
            13 => SignedLessThanOrEqual,
            4 | 5 => {
                let difference = self.b.ins().isub(a, b);
                let cc = if cond == 4 { SignedLessThan } else { SignedGreaterThanOrEqual };
                return Some(self.b.ins().icmp_imm_s(cc, difference, 0));
            }
            _ => return None,
        };
        Some(self.compare(cc, a, b))
    }

    /// Returns whether a condition holds that follows from the result; those of signed order only if V is clear (`logic`).
    fn holds_for(&mut self, cond: u8, wide: bool, result: Value, logic: bool) -> Option<Value> {
        use IntCC::*;
        let cc = match cond {
            0 => Equal,
            1 => NotEqual,
            4 => SignedLessThan,
            5 => SignedGreaterThanOrEqual,
            10 if logic => SignedGreaterThanOrEqual,
            11 if logic => SignedLessThan,
            12 if logic => SignedGreaterThan,
            13 if logic => SignedLessThanOrEqual,
            _ => return None,
        };
        let zero = self.b.ins().iconst(if wide { types::I64 } else { types::I32 }, 0);
        Some(self.compare(cc, result, zero))
    }

    /// Returns whether a condition holds for flags given as a number.
    fn holds_in(&mut self, cond: u8, number: Value) -> Value {
        let holds = match cond >> 1 {
            0 => self.b.ins().band_imm_u(number, 4),
            1 => self.b.ins().band_imm_u(number, 2),
            2 => self.b.ins().band_imm_u(number, 8),
            3 => self.b.ins().band_imm_u(number, 1),
            4 => {
                let bits = self.b.ins().band_imm_u(number, 6);
                self.b.ins().icmp_imm_u(IntCC::Equal, bits, 2)
            }
            order => {
                // Signed greater or equal: N equals V. Greater: and Z is clear.
                let n = self.b.ins().ushr_imm_u(number, 3);
                let differ = self.b.ins().bxor(n, number);
                let differ = self.b.ins().band_imm_u(differ, 1);
                let less = if order == 5 {
                    differ
                } else {
                    let z = self.b.ins().band_imm_u(number, 4);
                    self.b.ins().bor(differ, z)
                };
                self.b.ins().icmp_imm_u(IntCC::Equal, less, 0)
            }
        };
        if cond & 1 == 1 { self.b.ins().icmp_imm_u(IntCC::Equal, holds, 0) } else { holds }
    }
}
