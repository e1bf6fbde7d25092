//! Instruction text for messages.

use capstone::arch::arm64::ArchMode;
use capstone::prelude::*;

/// What a disassembler makes of `word` at address `pc`, such as `fmla z0.d, p0/m, z1.d, z2.d`. `None` when
/// it does not know it either.
#[must_use]
pub fn disassemble(word: u32, pc: u64) -> Option<String> {
    let engine = Capstone::new().arm64().mode(ArchMode::Arm).build().ok()?;
    let list = engine.disasm_count(&word.to_le_bytes(), pc, 1).ok()?;
    let inst = list.iter().next()?;
    let text = format!("{} {}", inst.mnemonic().unwrap_or_default(), inst.op_str().unwrap_or_default());
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}
