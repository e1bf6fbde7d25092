//! Any word decodes or not, and what it decodes to can be executed in any state, without a panic.

#![no_main]

use fxscope_aarch64::Block;
use fxscope_aarch64::table::{Ctx, decode};
use fxscope_fuzz::{CODE, Registers, check, with_memory};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, u64, Registers)| {
    let (word, pc, registers) = input;
    let vl = registers.vl();
    // At any address, for offsets that leave the address space.
    let _ = decode(word, &Ctx { pc, vl });
    let Some(d) = decode(word, &Ctx { pc: CODE, vl }) else { return };
    let block = Block { start: CODE, end: CODE + 4, insts: [d.inst].into(), infos: [d.info].into() };
    let mut cpu = registers.cpu();
    with_memory(&[word], |mem| {
        let outcome = block.run(&mut cpu, mem);
        check(&cpu, &block, &outcome);
    });
});
