//! Values of guest registers that are in registers of the host.

use cranelift_codegen::ir::{InstBuilder as _, Value, types};
use fxscope_aarch64::Cpu;
use fxscope_isa::Reg;

use super::{Emitter, x_offset};

/// A register's value, and whether `Cpu` does not have it yet.
#[derive(Clone, Copy)]
struct Cached {
    value: Value,
    dirty: bool,
}

/// What is known of the registers at a place in a block.
#[derive(Default)]
pub(super) struct Registers {
    x: [Option<Cached>; 32],
}

impl Registers {
    /// Drops the values of registers that `written` selects: `Cpu` has newer ones.
    pub(super) fn forget(&mut self, written: impl Fn(Reg) -> bool) {
        for (n, slot) in self.x.iter_mut().enumerate() {
            if written(Reg(n as u8)) {
                *slot = None;
            }
        }
    }
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

    /// Writes the registers that `chosen` selects to `Cpu`, as far as it does not have them.
    pub(super) fn store_registers(&mut self, chosen: impl Fn(Reg) -> bool) {
        for n in 0..32u8 {
            if let Some(cached) = self.regs.x[usize::from(n)].filter(|cached| cached.dirty && chosen(Reg(n))) {
                self.store_cpu(cached.value, x_offset(n));
                self.regs.x[usize::from(n)] = Some(Cached { dirty: false, ..cached });
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
        self.store_flags();
    }
}
