//! Execution of single instructions.

use fxscope_aarch64::table::{Ctx, Decoded, decode};
use fxscope_aarch64::{Cpu, Stop};
use fxscope_guestmem::Memory;

/// Returns memory in which nothing is mapped.
pub fn no_memory() -> Memory {
    Memory::new(1 << 16).expect("reserve")
}

/// Decodes `word`, which must be an instruction, for a vector length of `vl` bytes.
pub fn decoded(word: u32, vl: usize) -> Decoded {
    decode(word, &Ctx { pc: 0, vl }).unwrap_or_else(|| panic!("{word:08x} does not decode"))
}

/// Executes `word`, which must be an instruction; the dynamic stream is that of this instruction afterwards.
pub fn step(word: u32, cpu: &mut Cpu, mem: &mut Memory) -> Result<(), Stop> {
    let inst = decoded(word, cpu.vl).inst;
    cpu.clear_stream();
    (inst.exec)(cpu, mem, &inst)
}
