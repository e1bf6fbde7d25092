//! Streams of instructions run, branch and trap without a panic, and never touch pages they may not.

#![no_main]

use fxscope_fuzz::Registers;
use fxscope_fuzz::harness::{run, word};
use libfuzzer_sys::fuzz_target;

// An instruction is the number of an encoding and the bits of its operands.
fuzz_target!(|input: (Registers, Vec<(u16, u32)>)| {
    let (registers, words) = input;
    let code: Vec<u32> = words.into_iter().map(|(row, bits)| word(row, bits)).collect();
    run(&registers.into(), &code);
});
