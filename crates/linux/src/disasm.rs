//! Instruction text for messages.

use capstone::arch::arm64::ArchMode;
use capstone::prelude::*;

/// Instructions with signed immediates, in addition to address offsets.
const SIGNED: [&str; 13] =
    ["addpl", "addvl", "cmpeq", "cmpge", "cmpgt", "cmple", "cmplt", "cmpne", "index", "mul", "rdvl", "smax", "smin"];
/// Instructions whose immediates are bit masks, which the disassembler sometimes prints as signed numbers.
const MASKS: [&str; 3] = ["ands", "dupm", "tst"];

/// Disassembles `word` at address `pc`, for example to `fmla z0.d, p0/m, z1.d, z2.d`. `None` if the disassembler does not know it
/// either. Address offsets are decimal and signed, as in Arm's manual (`[sp, #-16]!`); bit masks, branch targets and other
/// immediates are hexadecimal.
#[must_use]
pub fn disassemble(word: u32, pc: u64) -> Option<String> {
    let engine = Capstone::new().arm64().mode(ArchMode::Arm).build().ok()?;
    let list = engine.disasm_count(&word.to_le_bytes(), pc, 1).ok()?;
    let inst = list.iter().next()?;
    let mnemonic = inst.mnemonic().unwrap_or_default();
    let text = format!("{mnemonic} {}", with_signs(mnemonic, inst.op_str().unwrap_or_default()));
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}

/// Returns `operands` with immediates signed as in Arm's syntax: the disassembler prints some negative numbers as their two's
/// complement, and some masks as negative numbers.
fn with_signs(mnemonic: &str, operands: &str) -> String {
    let mut pieces = operands.split('#');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.find([',', ']', ' ']).unwrap_or(piece.len());
        let (number, rest) = piece.split_at(digits);
        let text = match parse(number) {
            Some(value) if out.contains('[') => value.to_string(),
            Some(value) if value < 0 && SIGNED.contains(&mnemonic) => value.to_string(),
            Some(value) if value < 0 && MASKS.contains(&mnemonic) => format!("{value:#x}"),
            _ => number.to_owned(),
        };
        out = out + "#" + &text + rest;
    }
    out
}

/// Parses an immediate as the disassembler prints it: `-0x10`, or its two's complement.
fn parse(number: &str) -> Option<i64> {
    let (negative, magnitude) = number.strip_prefix('-').map_or((false, number), |rest| (true, rest));
    let value = match magnitude.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16),
        None => magnitude.parse(),
    };
    let value = value.ok()?.cast_signed();
    Some(if negative { value.wrapping_neg() } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(word: u32) -> String {
        disassemble(word, 0x40_0000).expect("an instruction")
    }

    #[test]
    fn address_offsets_are_decimal_and_signed() {
        assert_eq!(text(0xf85f_0420), "ldr x0, [x1], #-16");
        assert_eq!(text(0xa9be_7bfd), "stp x29, x30, [sp, #-32]!");
        assert_eq!(text(0xa94a_7bfd), "ldp x29, x30, [sp, #160]");
        assert_eq!(text(0xa5ee_b171), "ld1d {z17.d}, p4/z, [x11, #-2, mul vl]");
        assert_eq!(text(0xb861_7800), "ldr w0, [x0, x1, lsl #2]");
    }

    #[test]
    fn signed_immediates_are_printed_with_their_sign() {
        assert_eq!(text(0x0431_5431), "addvl x17, x17, #-31");
        assert_eq!(text(0x25dd_8e92), "cmpne p2.d, p3/z, z20.d, #-3");
        assert_eq!(text(0x04f7_439a), "index z26.d, #-4, #-9");
    }

    #[test]
    fn bit_masks_are_hexadecimal_without_a_sign() {
        assert_eq!(text(0x927c_ec00), "and x0, x0, #0xfffffffffffffff0");
        assert_eq!(text(0xf24c_eed0), "ands x16, x22, #0xfff0ffffffffffff");
    }
}
