//! What decoding shows of an encoding: its timing classes, and whether user code may execute it. Also lists what is not compared
//! with QEMU, and why.

use std::collections::BTreeSet;

use crate::cpu::{Cpu, Trap};
use crate::table::{Ctx, Decoded, Encoding, lookup};
use fxscope_guestmem::Memory;

/// Rows that are not compared with QEMU: name and reason. Other tests cover them.
pub const NOT_COMPARED: &[(&str, &str)] = &[
    ("SVC", "it would make a system call in the program that runs the cases"),
    ("IC IVAU", "it ends a block, so that code is decoded again"),
    ("DC CVAP", "QEMU's user mode lacks it, although its ID_AA64ISAR1_EL1 announces it"),
];

/// Rows of which only some words are compared with QEMU: name and what is left out. Other tests cover the rest.
pub const PARTLY_COMPARED: &[(&str, &str)] = &[
    ("MRS", "not: thread pointers, counters, identification registers, the HPC extension"),
    ("MSR (register)", "not: thread pointers, the HPC extension"),
];

/// Returns why a row is not compared with QEMU, if it is not.
#[must_use]
pub fn not_compared(name: &str) -> Option<&'static str> {
    NOT_COMPARED.iter().find(|(row, _)| *row == name).map(|&(_, reason)| reason)
}

/// Which words of an encoding user code may execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Execution {
    /// All.
    Always,
    /// Some, depending on operands, such as the system register.
    Sometimes,
    /// None: the processor, or its kernel, raises an undefined-instruction exception.
    Never,
}

/// What decoding shows of an encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// Timing classes by operands and vector length, in alphabetical order.
    pub classes: BTreeSet<&'static str>,
    /// Which words can be executed.
    pub execution: Execution,
}

/// Words tried for each encoding: enough that every case that depends on few fields occurs.
const SAMPLES: u32 = 16_384;

/// Examines the same words of a row each time. `None` if none of them decodes.
#[must_use]
pub fn of(row: &Encoding) -> Option<Coverage> {
    let mut classes = BTreeSet::new();
    let mut cpu = Cpu::new(16);
    let mut mem = Memory::new(0).ok()?;
    let (mut refused, mut decoded) = (0, 0);
    for (d, vl) in samples(row, SAMPLES) {
        classes.insert(d.info.class.name());
        decoded += 1;
        (cpu.vl, cpu.trap) = (vl, Trap::CodeChanged);
        cpu.clear_stream();
        refused += u32::from((d.inst.exec)(&mut cpu, &mut mem, &d.inst).is_err() && cpu.trap == Trap::Undefined);
    }
    let execution = match refused {
        0 => Execution::Always,
        n if n == decoded => Execution::Never,
        _ => Execution::Sometimes,
    };
    (decoded > 0).then_some(Coverage { classes, execution })
}

/// Decodes up to `words` words of a row, the same each time, and returns each with its vector length in bytes.
pub fn samples(row: &Encoding, words: u32) -> impl Iterator<Item = (Decoded, usize)> {
    let mut sampler = Sampler(u64::from(row.pattern.value));
    let fields = fields(row.notation);
    (0..words).filter_map(move |i| {
        let word = sampler.word(&fields) & !row.pattern.mask | row.pattern.value;
        let vl = [16, 32, 64][i as usize % 3];
        lookup(word).filter(|found| found.name == row.name)?;
        Some(((row.decode)(word, &Ctx { pc: 0x1_0000, vl })?, vl))
    })
}

/// Returns the lowest bit and the width of each operand field of a pattern, written as [`Encoding::notation`] is, highest first.
#[must_use]
pub fn fields(notation: &str) -> Vec<(u32, u32)> {
    let mut high = 32;
    let mut fields = Vec::new();
    for part in notation.split(' ').filter(|part| !part.is_empty()) {
        let width = part.split_once(':').and_then(|(_, width)| width.parse().ok());
        high -= width.unwrap_or_else(|| part.replace('_', "").len() as u32);
        fields.extend(width.map(|width| (high, width)));
    }
    fields
}

/// A fixed sequence of words.
struct Sampler(u64);

impl Sampler {
    /// Returns 64 bits (`SplitMix64`).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns a word whose fields often have special values: the smallest, the largest, a power of two or one less, or that of
    /// the preceding field or one close to it.
    fn word(&mut self, fields: &[(u32, u32)]) -> u32 {
        let mut word = self.next() as u32;
        let mut before = 0;
        for &(low, width) in fields {
            let choice = self.next();
            let ones = u32::MAX >> (32 - width);
            let (power, few) = (1 << ((choice >> 8) % u64::from(width)), (choice >> 8) as u32 & 7);
            let value = match choice % 12 {
                0 => 0,
                1 => ones,
                2 => power,
                3 => power - 1,
                4 => few,
                5 => ones.wrapping_sub(few),
                6 => before,
                7 => before.wrapping_add(1),
                8 => before.wrapping_sub(1),
                _ => word >> low,
            } & ones;
            word = word & !(ones << low) | value << low;
            before = value;
        }
        word
    }
}
