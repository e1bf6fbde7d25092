//! What translated code shares with the translator while it runs, and the functions that it calls.

use fxscope_aarch64::insn::alu::Word;
use fxscope_aarch64::insn::sve_common::predicate_test;
use fxscope_aarch64::{Counting, Cpu, Governed, Inst};
use fxscope_guestmem::Memory;

/// The state of a run of translated code apart from the registers. Translated code accesses the fields by their offsets.
#[repr(C)]
pub(crate) struct Context {
    /// The guest's memory.
    pub(crate) memory: *mut Memory,
    /// See [`fxscope_guestmem::View`].
    pub(crate) translations: *const u8,
    pub(crate) arena: *mut u8,
    pub(crate) arena_bytes: u64,
    /// Instructions to be executed; a block begins only while it is positive. Valid when translated code is not running.
    pub(crate) remaining: i64,
    /// How the flags follow from `operands`: [`IN_CPU`] or [`pending`]. `cpu.nzcv` is valid in the first case only.
    pub(crate) flags: u64,
    /// Operands of the instruction that set the flags; of a logical instruction, the first is its result.
    pub(crate) operands: [u64; 2],
    /// The number of the block in the unit at which the unit begins.
    pub(crate) entry: u32,
    /// See [`Counting`], in units that count: an element of the slices for each block, and the sum.
    pub(crate) costs: *const u32,
    pub(crate) executions: *mut u32,
    pub(crate) cost: u64,
}

/// [`Context::flags`]: the flags are in `cpu.nzcv`.
pub(crate) const IN_CPU: u64 = 0;

/// An operation that sets the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setter {
    /// The sum of two operands.
    Add,
    /// The difference of two operands.
    Sub,
    /// A logical operation: only its result matters.
    Logic,
    /// A test of a predicate: of a governing predicate and a result, one bit for each element.
    Predicate,
}

/// Returns the value of [`Context::flags`] for flags that `setter` sets, of 64 bits (`wide`) or 32.
pub(crate) const fn pending(setter: Setter, wide: bool) -> u64 {
    1 + 2 * setter as u64 + wide as u64
}

/// Returns the flags of an operation on words.
fn flags_of<W: Word>(setter: u64, operands: [u64; 2]) -> u8 {
    let [a, b] = operands.map(W::low);
    match setter {
        0 => a.plus_flags(b).1,
        1 => a.minus_flags(b).1,
        2 => a.sign_and_zero(),
        _ => predicate_test(operands[0], operands[1]),
    }
}

impl Context {
    /// Returns the state in which translated code begins to execute `instructions` instructions on `memory`.
    pub(crate) fn new(memory: &mut Memory, instructions: i64) -> Context {
        let view = memory.view();
        Context {
            memory,
            translations: view.translations,
            arena: view.arena,
            arena_bytes: view.arena_bytes,
            remaining: instructions,
            flags: IN_CPU,
            operands: [0; 2],
            entry: 0,
            costs: std::ptr::null(),
            executions: std::ptr::null_mut(),
            cost: 0,
        }
    }

    /// Has units that count do so in `counting`.
    pub(crate) fn count_in(&mut self, counting: &mut Counting<'_>) {
        (self.costs, self.executions) = (counting.costs.as_ptr(), counting.executions.as_mut_ptr());
        self.cost = counting.cost;
    }

    /// Computes the flags in `cpu.nzcv`, if they are pending.
    pub(crate) fn settle_flags(&mut self, cpu: &mut Cpu) {
        if self.flags != IN_CPU {
            let kind = self.flags - 1;
            cpu.nzcv = if kind & 1 != 0 {
                flags_of::<u64>(kind >> 1, self.operands)
            } else {
                flags_of::<u32>(kind >> 1, self.operands)
            };
            self.flags = IN_CPU;
        }
    }
}

/// Executes an instruction as the interpreter does; returns whether it has stopped.
///
/// # Safety
/// The pointers are those that the running unit was given, and to one of its instructions.
#[allow(unsafe_code)]
pub(crate) unsafe extern "C" fn execute(cpu: *mut Cpu, memory: *mut Memory, inst: *const Inst) -> u8 {
    // SAFETY: translated code passes what it was given; its caller waits, and does not use them meanwhile.
    let (cpu, memory, inst) = unsafe { (&mut *cpu, &mut *memory, &*inst) };
    u8::from((inst.exec)(cpu, memory, inst).is_err())
}

/// What [`execute_traced`] returns when the instruction has stopped.
pub(crate) const STOPPED: u8 = 1;
/// What it returns when the instruction has met subnormal numbers.
pub(crate) const MET_SUBNORMALS: u8 = 3;

/// Executes instruction number `index` of a traced block as the interpreter does, and records the subnormal numbers that it meets.
/// Returns 0, [`STOPPED`] or [`MET_SUBNORMALS`].
///
/// # Safety
/// As of [`execute`].
#[allow(unsafe_code)]
pub(crate) unsafe extern "C" fn execute_traced(
    cpu: *mut Cpu,
    memory: *mut Memory,
    inst: *const Inst,
    index: usize,
) -> u8 {
    // SAFETY: as in `execute`.
    let (cpu, memory, inst) = unsafe { (&mut *cpu, &mut *memory, &*inst) };
    let met = cpu.fp.denormals;
    if (inst.exec)(cpu, memory, inst).is_err() {
        return STOPPED;
    }
    if cpu.fp.denormals == met {
        return 0;
    }
    cpu.note_subnormals(index, cpu.fp.denormals.wrapping_sub(met));
    MET_SUBNORMALS
}

/// Records the instructions that a predicate with inactive elements governs.
///
/// # Safety
/// The pointers are those that the running block was given, and to one of its checks.
#[allow(unsafe_code)]
pub(crate) unsafe extern "C" fn look(cpu: *mut Cpu, governed: *const Governed) {
    // SAFETY: as in `execute`.
    let (cpu, governed) = unsafe { (&mut *cpu, &*governed) };
    governed.look(cpu);
}

/// Computes the flags in `cpu.nzcv`, if they are pending.
///
/// # Safety
/// The pointers are those that the running unit was given.
#[allow(unsafe_code)]
pub(crate) unsafe extern "C" fn settle_flags(cpu: *mut Cpu, context: *mut Context) {
    // SAFETY: as in `execute`.
    let (cpu, context) = unsafe { (&mut *cpu, &mut *context) };
    context.settle_flags(cpu);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_flags_are_those_of_the_operation() {
        let flags = |setter, wide, operands| {
            let mut memory = Memory::new(1 << 16).expect("memory");
            let mut context = Context { flags: pending(setter, wide), operands, ..Context::new(&mut memory, 0) };
            let mut cpu = Cpu::new(16);
            context.settle_flags(&mut cpu);
            assert_eq!(context.flags, IN_CPU);
            cpu.nzcv
        };
        assert_eq!(flags(Setter::Sub, true, [5, 5]), 0b0110);
        assert_eq!(flags(Setter::Sub, false, [1 << 32, 1]), 0b1000);
        assert_eq!(flags(Setter::Add, false, [0x7fff_ffff, 1]), 0b1001);
        assert_eq!(flags(Setter::Add, true, [u64::MAX, 1]), 0b0110);
        assert_eq!(flags(Setter::Logic, false, [0x8000_0000, 0]), 0b1000);
        assert_eq!(flags(Setter::Logic, true, [0, 7]), 0b0100);
        assert_eq!(flags(Setter::Predicate, true, [0b0110, 0b0010]), 0b1010);
        assert_eq!(flags(Setter::Predicate, true, [1 << 56 | 1, 1 << 56 | 1]), 0b1000);
    }
}
