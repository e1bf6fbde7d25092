//! Random code, executed block by block by both engines: the dynamic stream, inactive elements and subnormal numbers of each block must be the
//! same, and also registers and memory.

use fxscope_aarch64::cpu::stream_words;
use fxscope_aarch64::{Cpu, Engine, Interpreter, Outcome, Trap};
use fxscope_guestmem::Memory;
use fxscope_isa::{Partial, Subnormal};
use fxscope_translate::Translator;

use crate::random::{CODE, Rng, WORDS, cases, code, contents, listing, memory, rows, seen, state};

/// What the execution of a block leaves, and the address of the block.
type Left = (u64, Outcome, Vec<u64>, Vec<Partial>, Vec<Subnormal>);

/// Most blocks that stop: a case ends then.
const MOST_STOPS: usize = 40;

/// Executes `blocks` blocks. An instruction that stops is skipped.
fn execute<E: Engine>(engine: &mut E, cpu: &mut Cpu, memory: &mut Memory, blocks: usize) -> Vec<Left> {
    let mut left: Vec<Left> = Vec::new();
    let mut stops = 0;
    while left.len() < blocks && stops < MOST_STOPS {
        let start = cpu.pc;
        let outcome = match engine.at(start, memory) {
            Ok(id) => engine.run(id, cpu, memory),
            Err(trap) => {
                cpu.clear_stream();
                Outcome { executed: 0, trap: Some(trap) }
            }
        };
        // Of an instruction that has stopped, there may be words or none.
        let words = engine.lookup(start).map_or(0, |id| {
            let infos = &engine.block(id).infos[..outcome.executed];
            infos.iter().filter_map(|info| info.mem).map(|op| stream_words(&op, cpu.vl)).sum()
        });
        let (stream, partials) = (cpu.stream()[..words].to_vec(), cpu.partials().to_vec());
        left.push((start, outcome, stream, partials, cpu.subnormals().to_vec()));
        stops += usize::from(outcome.trap.is_some());
        if let Some(Trap::Memory(_) | Trap::Misaligned(_) | Trap::Undefined | Trap::Breakpoint(_)) = outcome.trap {
            let next = cpu.pc.wrapping_add(4);
            cpu.pc = if (CODE..CODE + 4 * WORDS as u64).contains(&next) { next & !3 } else { CODE };
        }
    }
    left
}

/// Compares both engines on random code with vectors of `vl` bytes.
fn compare(vl: usize, seed: u64) {
    let [rows, common] = rows();
    let mut units = 0;
    for case in 0..cases() {
        let rng = &mut Rng(seed.wrapping_add(case));
        let words = code(&rows, &common, rng);
        let start = state(vl, rng);
        let blocks = 10 + rng.below(150) as usize;
        let (mut interpreter, mut translator) = (Interpreter::new(vl), Translator::<2>::new(vl));
        let (mut one, mut other) = (start.clone(), start.clone());
        let (mut one_memory, mut other_memory) = (memory(&words, seed), memory(&words, seed));
        let first = execute(&mut interpreter, &mut one, &mut one_memory, blocks);
        let second = execute(&mut translator, &mut other, &mut other_memory, blocks);
        units += translator.units();
        let listing = listing(&words);
        for (number, (one, other)) in first.iter().zip(&second).enumerate() {
            assert_eq!(one, other, "case {case}, block {number}:\n{listing}");
        }
        assert_eq!(first.len(), second.len(), "case {case}");
        assert_eq!(seen(&one), seen(&other), "case {case}:\n{listing}");
        assert!(contents(&mut one_memory) == contents(&mut other_memory), "case {case}: memory\n{listing}");
    }
    assert!(units as u64 > cases(), "only {units} units");
}

#[test]
fn random_code_leaves_the_same_stream_with_vectors_of_128_bits() {
    compare(16, 4 << 40);
}

#[test]
fn random_code_leaves_the_same_stream_with_vectors_of_512_bits() {
    compare(64, 5 << 40);
}
