//! Any word decodes or not, and what it decodes to can be executed in any state, without a panic.

#![no_main]

use fxscope_aarch64::table::{Ctx, decode};
use fxscope_fuzz::Registers;
use fxscope_fuzz::harness::{Start, run};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, u64, Registers)| {
    let (word, pc, registers) = input;
    let start = Start::from(registers);
    // At any address, for offsets that leave the address space.
    let _ = decode(word, &Ctx { pc, vl: start.vl() });
    run(&start, &[word]);
});
