//! Spin loops: how many iterations repeat the one before, and the state after skipped ones.

use fxscope_aarch64::spin::Iteration;
use fxscope_aarch64::table::{Ctx, decode};
use fxscope_aarch64::{Block, BlockId, Cpu, Inst, StaticBlock};
use fxscope_guestmem::{Memory, Prot, Segment};
use fxscope_isa::{Reg, StaticInst};

const HEAD: u64 = 0x10000;
const WORD: u64 = 0x20000;

/// Two blocks that wait until the word at X20 is W21, except in every 10,000th iteration, counted in W19, as GCC compiles it:
/// LDAR W1, [X20]; MUL W0, W19, W22; ADD W19, W19, #1; CMP W21, W1; B.EQ; ROR W0, W0, #4; CMP W0, W23; B.HI.
const LOOP: [&[u32]; 2] =
    [&[0x88df_fe81, 0x1b16_7e60, 0x1100_0673, 0x6b01_02bf, 0x5400_0220], &[0x1380_1000, 0x6b17_001f, 0x54ff_ff28]];

/// A thread at the head of a loop.
struct Looping {
    /// The next iteration.
    iteration: Iteration,
    /// Its blocks.
    blocks: Vec<Block>,
    cpu: Cpu,
    mem: Memory,
}

impl Looping {
    /// Returns a thread whose registers `set` sets, at the head of a loop with these blocks, and memory with a page of zeros at
    /// [`WORD`].
    fn new(code: &[&[u32]], set: impl FnOnce(&mut Cpu)) -> Looping {
        let mut mem = Memory::new(1 << 20).expect("reserve");
        mem.map(WORD, 0x10000, Prot::RW, Segment::Data).expect("map");
        let mut cpu = Cpu::new(64);
        cpu.pc = HEAD;
        set(&mut cpu);
        let before = (cpu.x, cpu.nzcv);
        let (mut iteration, mut blocks) = (Iteration::new(cpu.nzcv), Vec::new());
        for (i, words) in code.iter().enumerate() {
            let at = |n: usize| Ctx { pc: cpu.pc + 4 * n as u64, vl: cpu.vl };
            let decoded: Vec<_> = words.iter().enumerate().map(|(n, &w)| decode(w, &at(n)).expect("decodes")).collect();
            let (insts, infos): (Vec<Inst>, Vec<StaticInst>) = decoded.iter().map(|d| (d.inst, d.info)).unzip();
            let block = Block::new(cpu.pc, insts.clone(), infos.clone(), cpu.vl);
            let facts = StaticBlock::new(cpu.pc, infos);
            cpu.clear_stream();
            assert_eq!(block.run(&mut cpu, &mut mem).trap, None);
            iteration.push(BlockId(i as u32), &facts, insts.into(), cpu.stream());
            blocks.push(block);
        }
        assert_eq!(cpu.pc, HEAD);
        let kept: Vec<u8> = (0..31).filter(|&n| !iteration.sets(Reg::gpr(n))).collect();
        for n in kept.into_iter().map(usize::from) {
            iteration.steps[n] = cpu.x[n].wrapping_sub(before.0[n]);
        }
        (cpu.x, cpu.nzcv) = before;
        Looping { iteration, blocks, cpu, mem }
    }

    /// Returns a thread before iteration `polls` of [`LOOP`].
    fn waiting(polls: u64) -> Looping {
        Looping::new(&LOOP, |cpu| {
            (cpu.x[19], cpu.x[20], cpu.x[21]) = (polls, WORD, 1);
            (cpu.x[22], cpu.x[23]) = (0x3afb_7e91, 0x6_8db8);
        })
    }

    /// Returns how many iterations repeat the next one, executing up to `limit`.
    fn repetitions(&mut self, limit: u64) -> u64 {
        let before = self.registers();
        let repetitions = self.iteration.repetitions(&mut self.cpu, &mut self.mem, limit);
        assert!(self.registers() == before, "the thread has changed");
        repetitions
    }

    fn registers(&self) -> ([u64; 64], u64, u8) {
        (self.cpu.x, self.cpu.pc, self.cpu.nzcv)
    }

    /// Executes `count` iterations, block by block.
    fn execute(&mut self, count: u64) {
        for _ in 0..count {
            for block in &self.blocks {
                self.cpu.clear_stream();
                assert_eq!(block.run(&mut self.cpu, &mut self.mem).trap, None);
            }
            assert_eq!(self.cpu.pc, HEAD);
        }
    }

    fn skip(&mut self, count: u64) {
        self.iteration.skip(&mut self.cpu, &mut self.mem, count);
    }
}

#[test]
fn registers_that_an_iteration_writes_before_it_reads_them_are_set() {
    let Looping { iteration, .. } = Looping::waiting(1);
    let set: Vec<u8> = (0..=Reg::NZCV.0).filter(|&n| iteration.sets(Reg(n))).collect();
    assert_eq!(set, [0, 1, Reg::NZCV.0]);
}

#[test]
fn iterations_with_a_divisibility_test_are_followed_up_to_the_one_that_takes_another_path() {
    let mut looping = Looping::waiting(9_001);
    assert_eq!(looping.repetitions(0), 0, "no bound without following them");
    assert_eq!(looping.repetitions(500), 500);
    assert_eq!(looping.repetitions(100_000), 999);
}

#[test]
fn iterations_are_not_followed_once_they_read_something_else() {
    // LDR W1, [X20], #4; B.
    let mut looping = Looping::new(&[&[0xb840_4681, 0x17ff_ffff]], |cpu| cpu.x[20] = WORD);
    assert_eq!(looping.repetitions(10), 1);
}

#[test]
fn skipped_iterations_leave_the_same_registers_as_executed_ones() {
    let mut looping = Looping::waiting(1);
    assert_eq!(looping.repetitions(777), 777);
    let mut executed = Looping::waiting(1);
    executed.execute(777);
    // The awaited value has been written in the meantime.
    looping.mem.write(WORD, &[1]).expect("mapped");
    looping.skip(777);
    assert!(looping.registers() == executed.registers());
}

#[test]
fn skipped_iterations_read_what_was_in_memory_when_their_number_was_asked_for() {
    let mut looping = Looping::waiting(1);
    assert_eq!(looping.repetitions(10), 10);
    // Another value, which does not change the path.
    looping.mem.write(WORD, &[7]).expect("mapped");
    assert_eq!(looping.repetitions(10), 10);
    looping.mem.write(WORD, &[1]).expect("mapped");
    looping.skip(10);
    assert_eq!(looping.cpu.x[1], 7);
}

/// Returns how many iterations of `ADD X0, X0, #step; B` (or SUB) certainly repeat the one that starts with X0 = `value`, that is,
/// leave its sign as it is, as a 32-bit and as a 64-bit number.
fn iterations_with_sign(value: u64, step: i64) -> u64 {
    let add_or_sub = if step < 0 { 0xd100_0000 } else { 0x9100_0000 };
    let word = add_or_sub | (step.unsigned_abs() as u32) << 10;
    Looping::new(&[&[word, 0x17ff_ffff]], |cpu| cpu.x[0] = value).repetitions(0)
}

#[test]
fn a_number_that_counts_down_keeps_its_sign_until_it_would_be_zero() {
    assert_eq!(iterations_with_sign(5, -1), 5);
    assert_eq!(iterations_with_sign(5, -2), 3);
    assert_eq!(iterations_with_sign(0, 1), 0);
}

#[test]
fn a_number_that_counts_up_from_below_zero_keeps_its_sign_until_it_would_be_zero() {
    assert_eq!(iterations_with_sign(3_u64.wrapping_neg(), 1), 3);
    assert_eq!(iterations_with_sign(3_u64.wrapping_neg(), 2), 2);
}

#[test]
fn the_sign_of_a_32_bit_number_is_tracked_too() {
    assert_eq!(iterations_with_sign((1 << 31) - 2, 1), 2);
    assert_eq!(iterations_with_sign((1 << 32) - 2, 1), 2);
}
