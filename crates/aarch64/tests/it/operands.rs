//! What decoding reports to the timing model about operands.

use std::collections::BTreeSet;

use fxscope_aarch64::table::{Ctx, Encoding, decode, encodings};
use fxscope_isa::{Reg, RegClass, StaticInst};

/// Words tried for each encoding.
const SAMPLES: u64 = 4096;

/// Returns the `i`-th of a fixed sequence of words (`SplitMix64`).
fn word(i: u64) -> u32 {
    let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as u32
}

/// Returns the register that `word` writes, if the word's lowest field names it and it is also read.
fn written_and_read(word: u32) -> Option<(Reg, StaticInst)> {
    let info = decode(word, &Ctx { pc: 0x1_0000, vl: 64 })?.info;
    let number = word as u8 & 31;
    let named = [Reg::gpr(number), Reg::vector(number)];
    let reg = info.dsts.iter().find(|reg| named.contains(reg) && reg.class() != RegClass::Predicate)?;
    (info.mem.is_none() && number != 31 && info.srcs.iter().any(|src| src == reg)).then_some((reg, info))
}

#[test]
fn a_destination_that_an_instruction_reads_is_reported_as_its_accumulator() {
    let mut missing = BTreeSet::new();
    for row in encodings().filter(|row| row.pattern.mask & 31 == 0) {
        for i in 0..SAMPLES {
            let word = word(i) & !row.pattern.mask | row.pattern.value;
            // It must also be read with any other destination: otherwise a source happens to be the same register.
            let always = || (0..5).all(|bit| written_and_read(word ^ 1 << bit).is_some());
            let this = written_and_read(word).filter(|&(reg, info)| info.accumulator != Some(reg) && always());
            missing.extend(this.map(|(_, info)| info.class.name()));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn an_operand_of_which_one_element_is_used_is_reported_as_such() {
    // Copies have no other operand.
    let by_element = |row: &&Encoding| {
        ["(by element", "(indexed)"].iter().any(|part| row.name.contains(part)) && !row.name.starts_with("DUP")
    };
    let mut checked = 0;
    for row in encodings().filter(by_element) {
        let decoded = (0..SAMPLES)
            .find_map(|i| decode(word(i) & !row.pattern.mask | row.pattern.value, &Ctx { pc: 0x1_0000, vl: 64 }));
        let info = decoded.expect(row.name).info;
        let element = info.element.expect(row.name);
        assert!(element.class() == RegClass::Vector && info.srcs.iter().any(|reg| reg == element), "{}", row.name);
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}
