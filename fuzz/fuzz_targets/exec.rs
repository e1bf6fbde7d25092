//! Streams of instructions run, branch and trap without a panic, and never touch pages they may not.

#![no_main]

use std::sync::LazyLock;

use fxscope_aarch64::memory::PAGE;
use fxscope_aarch64::table::encodings;
use fxscope_aarch64::{Blocks, Encoding, Trap};
use fxscope_fuzz::{CODE, DATA, DATA_BYTES, Registers, check, with_memory};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// Most blocks executed: random code may loop.
const BLOCKS: usize = 100;

static ROWS: LazyLock<Vec<&Encoding>> = LazyLock::new(|| encodings().collect());

/// An instruction of some row, or now and then any word.
#[derive(Arbitrary, Debug)]
struct Word {
    row: u16,
    bits: u32,
}

impl Word {
    fn encode(&self) -> u32 {
        match ROWS.get(usize::from(self.row) % (ROWS.len() + ROWS.len() / 16 + 1)) {
            Some(row) => self.bits & !row.pattern.mask | row.pattern.value,
            None => self.bits,
        }
    }
}

fuzz_target!(|input: (Registers, Vec<Word>)| {
    let (registers, words) = input;
    let code: Vec<u32> = words.iter().map(Word::encode).collect();
    let mut cpu = registers.cpu();
    let mut blocks = Blocks::new(cpu.vl);
    with_memory(&code, |mem| {
        let mut text = vec![0; PAGE as usize];
        mem.read(CODE, &mut text).expect("code is readable");
        for _ in 0..BLOCKS {
            let Ok(id) = blocks.at(cpu.pc, mem) else { break };
            let block = blocks.get(id);
            let outcome = block.run(&mut cpu, mem);
            check(&cpu, block, &outcome);
            match outcome.trap {
                None | Some(Trap::SystemCall) => {}
                Some(Trap::CodeChanged) => blocks.flush(cpu.vl),
                Some(_) => break,
            }
        }
        let mut after = vec![0; PAGE as usize];
        mem.read(CODE, &mut after).expect("code is readable");
        assert!(text == after, "a store has changed code without the right to");
        mem.read(DATA + DATA_BYTES, &mut after).expect("readable");
        assert!(after.iter().all(|&byte| byte == 0), "a store has changed read-only data");
    });
});
