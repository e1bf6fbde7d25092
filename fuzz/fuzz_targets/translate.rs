//! The translator does what the interpreter does: registers, memory and the way execution ends are the same after random
//! instructions from random states.

#![no_main]

use fxscope_aarch64::{Cpu, Engine, Exit, Interpreter, Trap};
use fxscope_fuzz::Registers;
use fxscope_fuzz::harness::{DATA, DATA_BYTES, Start, with_memory, word};
use fxscope_guestmem::Memory;
use fxscope_translate::Translator;
use libfuzzer_sys::fuzz_target;

/// Instructions of a piece of a run: other pieces begin where one has ended.
const PIECE: u64 = 50;
/// Most pieces, since random code may loop.
const PIECES: usize = 8;

/// What a run did: instructions of each piece and why it ended, and the registers afterwards, as text.
type Done = (Vec<(u64, Exit)>, String);

/// Executes code from its start on. An instruction that stops is skipped.
fn run<E: Engine>(mut engine: E, start: &Start, mem: &mut Memory) -> Done {
    let mut cpu = start.cpu();
    let mut pieces = Vec::new();
    while pieces.len() < PIECES && engine.at(cpu.pc, mem).is_ok() {
        let (mut done, mut exit) = (0, Exit::Unknown);
        while done < PIECE && exit == Exit::Unknown && engine.at(cpu.pc, mem).is_ok() {
            let (more, why) = engine.run_until(&mut cpu, mem, PIECE - done);
            (done, exit) = (done + more, why);
        }
        match exit {
            Exit::Trap(Trap::CodeChanged) => engine.flush(cpu.vl),
            Exit::Trap(Trap::SystemCall | Trap::Window(_) | Trap::WaitForEvent | Trap::SendEvent) => {}
            Exit::Trap(_) => cpu.pc = cpu.pc.wrapping_add(4),
            Exit::Done | Exit::Unknown => {}
        }
        pieces.push((done, exit));
    }
    (pieces, seen(&cpu))
}

/// All that a program can see of the registers.
fn seen(cpu: &Cpu) -> String {
    let control = (cpu.fp.fpcr, cpu.fp.fpsr, cpu.nzcv, cpu.ffr, cpu.pc, cpu.tpidr, cpu.monitor, cpu.event);
    format!("{control:x?}\n{:x?}\n{:x?}\n{:x?}", &cpu.x[..32], cpu.p, cpu.z)
}

fn data(mem: &mut Memory) -> Vec<u8> {
    let mut bytes = vec![0; DATA_BYTES as usize];
    mem.read(DATA, &mut bytes).expect("data is readable");
    bytes
}

// An instruction is the number of an encoding and the bits of its operands.
fuzz_target!(|input: (Registers, Vec<(u16, u32)>)| {
    let (registers, words) = input;
    let start = Start::from(registers);
    let code: Vec<u32> = words.into_iter().map(|(row, bits)| word(row, bits)).collect();
    with_memory(&code, |mem| {
        let before = data(mem);
        let interpreted = run(Interpreter::new(start.vl()), &start, mem);
        let after = data(mem);
        mem.write(DATA, &before).expect("data is writable");
        let translated = run(Translator::<2>::new(start.vl()), &start, mem);
        assert_eq!(interpreted.0, translated.0, "instructions, and why they ended");
        assert_eq!(interpreted.1, translated.1, "registers");
        assert!(after == data(mem), "memory differs");
    });
});
