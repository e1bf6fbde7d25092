//! Values of guest registers that are in registers of the host. `Cpu` has them as well: what is written goes there at once, and is
//! not read again in the same block.

use std::mem::offset_of;

use cranelift_codegen::ir::{Endianness, InstBuilder as _, MemFlagsData, Type, Value, types};
use fxscope_aarch64::{Cpu, Vreg};
use fxscope_isa::Reg;

use super::{Emitter, x_offset};

/// What is known of a vector register: its lowest bits.
#[derive(Clone, Copy)]
struct Vector {
    /// A value of type F32, F64 or F64X2.
    low: Value,
    /// Whether the register is zero above.
    zero_above: bool,
}

/// What is known of the registers at a place in a block.
#[derive(Default)]
pub(super) struct Registers {
    x: [Option<Value>; 32],
    z: [Option<Vector>; 32],
    p: [Option<Value>; 16],
    /// Vector registers that are zero above 128 bits, one bit for each.
    narrow: u32,
    /// For each vector register the type of which its lowest bits are no subnormal number, if that is known.
    regular: [Option<Type>; 32],
}

impl Registers {
    /// Says that a general-purpose register, by decoder index, has this value.
    pub(super) fn hold_x(&mut self, index: u8, value: Value) {
        self.x[usize::from(index)] = Some(value);
    }

    /// Drops the values of registers that `written` selects: `Cpu` has newer ones.
    pub(super) fn forget(&mut self, written: impl Fn(Reg) -> bool) {
        for n in 0..32u8 {
            if written(Reg(n)) {
                self.x[usize::from(n)] = None;
            }
            if written(Reg::vector(n)) {
                self.z[usize::from(n)] = None;
                self.regular[usize::from(n)] = None;
                self.narrow &= !(1 << n);
            }
            if n < 16 && written(Reg::predicate(n)) {
                self.p[usize::from(n)] = None;
            }
        }
    }
}

/// Offset of a vector register in `Cpu`.
fn z_offset(n: u8) -> usize {
    offset_of!(Cpu, z) + size_of::<Vreg>() * usize::from(n)
}

impl Emitter<'_> {
    /// Returns a general-purpose register by decoder index, 64 bits.
    pub(super) fn x(&mut self, index: u8) -> Value {
        if index == Cpu::XZR {
            return self.constant(0);
        }
        let slot = usize::from(index);
        if let Some(value) = self.regs.x[slot] {
            return value;
        }
        let value = self.load_cpu(types::I64, x_offset(index));
        self.regs.x[slot] = Some(value);
        value
    }

    /// Returns the low half of a general-purpose register.
    pub(super) fn w(&mut self, index: u8) -> Value {
        if index == Cpu::XZR {
            return self.b.ins().iconst(types::I32, 0);
        }
        let value = self.x(index);
        self.b.ins().ireduce(types::I32, value)
    }

    /// Returns a general-purpose register as a word of 64 (`wide`) or 32 bits.
    pub(super) fn word(&mut self, index: u8, wide: bool) -> Value {
        if wide { self.x(index) } else { self.w(index) }
    }

    /// Writes a general-purpose register by decoder index; a word of 32 bits clears the upper half.
    pub(super) fn set_x(&mut self, index: u8, value: Value) {
        if index != Cpu::SINK {
            let value = self.widen(value);
            self.store_cpu(value, x_offset(index));
            self.regs.x[usize::from(index)] = Some(value);
        }
    }

    /// Returns a predicate register.
    pub(super) fn p(&mut self, n: u8) -> Value {
        let slot = usize::from(n);
        if let Some(value) = self.regs.p[slot] {
            return value;
        }
        let value = self.load_cpu(types::I64, offset_of!(Cpu, p) + 8 * slot);
        self.regs.p[slot] = Some(value);
        value
    }

    /// Writes a predicate register; bits beyond the vector length must be zero.
    pub(super) fn set_p(&mut self, n: u8, value: Value) {
        let slot = usize::from(n);
        self.store_cpu(value, offset_of!(Cpu, p) + 8 * slot);
        self.regs.p[slot] = Some(value);
    }

    /// Returns the same bits as a value of another type of the same size.
    pub(super) fn as_type(&mut self, ty: Type, value: Value) -> Value {
        if self.b.func.dfg.value_type(value) == ty {
            return value;
        }
        self.b.ins().bitcast(ty, MemFlagsData::new().with_endianness(Endianness::Little), value)
    }

    /// Returns the lowest bits of a vector register as a value of type F32, F64 or F64X2.
    pub(super) fn z(&mut self, n: u8, ty: Type) -> Value {
        let slot = usize::from(n);
        if let Some(Vector { low, zero_above }) = self.regs.z[slot] {
            let has = self.b.func.dfg.value_type(low);
            if has == ty {
                return low;
            }
            if has.bytes() > ty.bytes() {
                return self.lowest(low, ty);
            }
            if zero_above && has == types::F64 {
                return self.b.ins().scalar_to_vector(types::F64X2, low);
            }
        }
        let low = self.load_z(n, ty);
        self.regs.z[slot] = Some(Vector { low, zero_above: false });
        low
    }

    /// Returns the lowest bits of a value as one of type F32 or F64.
    fn lowest(&mut self, value: Value, ty: Type) -> Value {
        let has = self.b.func.dfg.value_type(value);
        match (has, ty) {
            (types::F64X2, types::F64) => self.b.ins().extractlane(value, 0),
            (types::F64X2, _) => {
                let singles = self.as_type(types::F32X4, value);
                self.b.ins().extractlane(singles, 0)
            }
            _ => {
                let bits = self.as_type(types::I64, value);
                let low = self.b.ins().ireduce(types::I32, bits);
                self.as_type(types::F32, low)
            }
        }
    }

    /// Reads the lowest bits of a vector register from `Cpu`.
    pub(super) fn load_z(&mut self, n: u8, ty: Type) -> Value {
        self.load_cpu(ty, z_offset(n))
    }

    /// Returns whether the lowest bits of a vector register are known to be no subnormal number of type F32 or F64.
    pub(super) fn is_regular(&self, n: u8, ty: Type) -> bool {
        self.regs.regular[usize::from(n)] == Some(ty)
    }

    /// The lowest bits of a vector register are no subnormal number of type F32 or F64.
    pub(super) fn set_regular(&mut self, n: u8, ty: Type) {
        self.regs.regular[usize::from(n)] = Some(ty);
    }

    /// Returns a part of a vector register as a value of type I64X2; `offset` is that of its first byte in the register.
    pub(super) fn part(&mut self, n: u8, offset: usize) -> Value {
        self.load_cpu(types::I64X2, z_offset(n) + offset)
    }

    /// Writes the parts of a vector register, 128 bits each; beyond the vector length it is zero.
    pub(super) fn set_parts(&mut self, n: u8, parts: &[Value]) {
        for (part, offset) in parts.iter().zip((0..).step_by(16)) {
            self.store_cpu(*part, z_offset(n) + offset);
        }
        self.regs.z[usize::from(n)] = None;
        self.regs.regular[usize::from(n)] = None;
        self.regs.narrow &= !(1 << n);
    }

    /// Writes a value of type F32, F64 or F64X2 to a vector register, and zero above.
    pub(super) fn set_z(&mut self, n: u8, value: Value) {
        let ty = self.b.func.dfg.value_type(value);
        let at = z_offset(n);
        let low = match ty {
            types::F64 => self.b.ins().scalar_to_vector(types::F64X2, value),
            types::F32 => self.b.ins().scalar_to_vector(types::F32X4, value),
            _ => value,
        };
        self.store_cpu(low, at);
        if self.regs.narrow >> n & 1 == 0 && self.vl > 16 {
            let zero = self.constant(0);
            let zero = self.b.ins().splat(types::I64X2, zero);
            for offset in (16..self.vl).step_by(16) {
                self.store_cpu(zero, at + offset);
            }
        }
        self.regs.narrow |= 1 << n;
        self.regs.regular[usize::from(n)] = None;
        self.regs.z[usize::from(n)] = Some(Vector { low: value, zero_above: true });
    }
}
