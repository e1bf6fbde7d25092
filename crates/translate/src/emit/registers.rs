//! Values of guest registers that are in registers of the host.

use std::mem::offset_of;

use cranelift_codegen::ir::{Endianness, InstBuilder as _, MemFlagsData, Type, Value, types};
use fxscope_aarch64::{Cpu, Vreg};
use fxscope_isa::Reg;

use super::{Emitter, x_offset};

/// A register's value, and whether `Cpu` does not have it yet.
#[derive(Clone, Copy)]
struct Cached<T> {
    value: T,
    dirty: bool,
}

/// The value of a vector register: zero above.
#[derive(Clone, Copy)]
enum Vector {
    /// A number of single precision (F32).
    Single(Value),
    /// A number of double precision (F64).
    Double(Value),
    /// 128 bits (F64X2).
    Whole(Value),
}

/// What is known of the registers at a place in a block.
#[derive(Default)]
pub(super) struct Registers {
    x: [Option<Cached<Value>>; 32],
    /// Values as far as the lowest 128 bits; of one that is not dirty, `Cpu` may have more.
    z: [Option<Cached<Vector>>; 32],
    /// Vector registers that are zero above 128 bits in `Cpu`.
    narrow: u32,
}

impl Registers {
    /// Drops the values of registers that `written` selects: `Cpu` has newer ones.
    pub(super) fn forget(&mut self, written: impl Fn(Reg) -> bool) {
        for n in 0..32u8 {
            if written(Reg(n)) {
                self.x[usize::from(n)] = None;
            }
            if written(Reg::vector(n)) {
                self.z[usize::from(n)] = None;
                self.narrow &= !(1 << n);
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
        if let Some(cached) = self.regs.x[slot] {
            return cached.value;
        }
        let value = self.load_cpu(types::I64, x_offset(index));
        self.regs.x[slot] = Some(Cached { value, dirty: false });
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
            self.regs.x[usize::from(index)] = Some(Cached { value, dirty: true });
        }
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
        let Some(cached) = self.regs.z[slot] else {
            let value = self.load_z(n, ty);
            self.regs.z[slot] = Some(Cached { value: Self::vector(value, ty), dirty: false });
            return value;
        };
        match (cached.value, ty) {
            (Vector::Single(value), types::F32) | (Vector::Double(value), types::F64) => value,
            (Vector::Whole(value), types::F64X2) => value,
            (Vector::Whole(value), types::F64) => self.b.ins().extractlane(value, 0),
            (Vector::Whole(value), _) => {
                let singles = self.as_type(types::F32X4, value);
                self.b.ins().extractlane(singles, 0)
            }
            (Vector::Double(value), types::F32) => {
                let bits = self.as_type(types::I64, value);
                let low = self.b.ins().ireduce(types::I32, bits);
                self.as_type(types::F32, low)
            }
            // What is cached is all that there is.
            (value, _) if cached.dirty => {
                let double = self.double_bits(value);
                let double = self.as_type(types::F64, double);
                if ty == types::F64 { double } else { self.b.ins().scalar_to_vector(types::F64X2, double) }
            }
            _ => {
                let value = self.load_z(n, ty);
                self.regs.z[slot] = Some(Cached { value: Self::vector(value, ty), dirty: false });
                value
            }
        }
    }

    /// Reads the lowest bits of a vector register from `Cpu`.
    pub(super) fn load_z(&mut self, n: u8, ty: Type) -> Value {
        self.load_cpu(ty, z_offset(n))
    }

    fn vector(value: Value, ty: Type) -> Vector {
        match ty {
            types::F32 => Vector::Single(value),
            types::F64 => Vector::Double(value),
            _ => Vector::Whole(value),
        }
    }

    /// Returns the bits of a number, zero-extended to 64.
    fn double_bits(&mut self, value: Vector) -> Value {
        match value {
            Vector::Single(value) => {
                let bits = self.as_type(types::I32, value);
                self.b.ins().uextend(types::I64, bits)
            }
            Vector::Double(value) | Vector::Whole(value) => self.as_type(types::I64, value),
        }
    }

    /// Writes a value of type F32, F64 or F64X2 to a vector register, and zero above.
    pub(super) fn set_z(&mut self, n: u8, value: Value) {
        let ty = self.b.func.dfg.value_type(value);
        self.regs.z[usize::from(n)] = Some(Cached { value: Self::vector(value, ty), dirty: true });
    }

    /// Writes a vector register to `Cpu`; above 128 bits only if it may not be zero there.
    fn store_z(&mut self, n: u8, value: Vector) {
        let at = z_offset(n);
        match value {
            Vector::Whole(value) => self.store_cpu(value, at),
            number => {
                let (bits, zero) = (self.double_bits(number), self.constant(0));
                self.store_cpu(bits, at);
                self.store_cpu(zero, at + 8);
            }
        }
        if self.regs.narrow >> n & 1 == 0 && self.vl > 16 {
            let zero = self.constant(0);
            let zero = self.b.ins().splat(types::I64X2, zero);
            for offset in (16..self.vl).step_by(16) {
                self.store_cpu(zero, at + offset);
            }
        }
    }

    /// Writes the registers that `chosen` selects to `Cpu`, as far as it does not have them.
    pub(super) fn store_registers(&mut self, chosen: impl Fn(Reg) -> bool) {
        for n in 0..32u8 {
            let slot = usize::from(n);
            if let Some(cached) = self.regs.x[slot].filter(|cached| cached.dirty && chosen(Reg(n))) {
                self.store_cpu(cached.value, x_offset(n));
                self.regs.x[slot] = Some(Cached { dirty: false, ..cached });
            }
            if let Some(cached) = self.regs.z[slot].filter(|cached| cached.dirty && chosen(Reg::vector(n))) {
                self.store_z(n, cached.value);
                self.regs.z[slot] = Some(Cached { dirty: false, ..cached });
                self.regs.narrow |= 1 << n;
            }
        }
    }

    /// Writes the vector registers that `chosen` selects to `Cpu` on a path that joins the block again; what is known of them remains.
    pub(super) fn store_vectors(&mut self, chosen: impl Fn(Reg) -> bool) {
        for n in 0..32u8 {
            let cached = self.regs.z[usize::from(n)].filter(|cached| cached.dirty && chosen(Reg::vector(n)));
            if let Some(cached) = cached {
                self.store_z(n, cached.value);
            }
        }
    }

    /// Writes all registers and flags to `Cpu` and the context on a path that leaves the block; what is known of them remains.
    pub(super) fn store_all(&mut self) {
        for n in 0..32u8 {
            if let Some(cached) = self.regs.x[usize::from(n)].filter(|cached| cached.dirty) {
                self.store_cpu(cached.value, x_offset(n));
            }
        }
        self.store_vectors(|_| true);
        self.store_flags();
    }
}
