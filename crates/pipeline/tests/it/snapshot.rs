//! A core that was cloned, or written and read back, continues as the original does.

use fxscope_counts::Signals;
use fxscope_machine::Spec;
use fxscope_memory::Chip;
use fxscope_pipeline::Pipeline;
use fxscope_pipeline::bind::BoundBlock;
use serde::{Deserialize, Serialize};

use crate::common::*;

/// Blocks of the program, and blocks that are executed before the snapshot and behind it.
const BLOCKS: usize = 60;
const EXECUTED: usize = 4_000;

/// A core in the middle of a program.
#[derive(Clone, Serialize, Deserialize)]
struct Run {
    core: Pipeline,
    chip: Chip,
    blocks: Vec<BoundBlock>,
    random: u64,
    at: usize,
}

/// One instruction of many kinds: all parts of the core have something to remember.
fn instruction(r: &mut Random) -> Inst {
    let (a, b, v, w, p) = (r.reg(8), r.reg(8), r.reg(12), r.reg(12), r.reg(4));
    let near = DATA + r.below(64) * 64;
    let far = DATA + r.below(1 << 16) / 64 * 64 + 0x10_0000 * r.below(64);
    match r.below(20) {
        0..=2 => add(a, b),
        3 => mul(a, b),
        4 => op("base:SDIV [sf=1]").reads(&[x(a), x(b)]).writes(&[x(a)]),
        5 | 6 => fmla(v, w),
        7 => op("sve:FDIV [T=D]").reads(&[z(w)]).writes(&[z(v)]),
        8 => add_predicated(v, w, p),
        9 => movprfx(v, (v + 1) % 12),
        10 => ldr(a, 20, near),
        11 => ldr_z(v, 20, near),
        12 => ldr(a, b, far),
        13 => ld1d(v, 20, p, far),
        14 => str(a, 20, near),
        15 => st1d(v, 20, p, near),
        16 => str_z(v, 20, far),
        17 => gather(v, 20, w, p, std::array::from_fn(|i| (i % 3 != 1).then_some(near + 24 * i as u64))),
        18 => scatter(v, 20, w, p, std::array::from_fn(|i| Some(near + 512 * i as u64))),
        _ => cmpeq(p, v),
    }
}

/// A block that ends with a branch.
fn block(start: u64, r: &mut Random, spec: &Spec) -> Block {
    let mut insts: Vec<Inst> = (0..2 + r.below(14)).map(|_| instruction(r)).collect();
    insts.push(match r.below(5) {
        0 => cbz(r.reg(8)),
        1 => bl(),
        2 => ret(),
        3 => b(),
        _ => b_cond(),
    });
    Block::new(start, &insts, spec)
}

impl Run {
    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % n
    }

    /// Executes blocks in a random order, with loops in it. Returns the clock after each.
    fn execute(&mut self, program: &[Block]) -> Vec<u64> {
        (0..EXECUTED)
            .map(|_| {
                let again = self.below(4) > 0;
                let next = if again {
                    self.at.saturating_sub(self.below(3) as usize)
                } else {
                    self.below(BLOCKS as u64) as usize
                };
                let (this, end) = (self.at, program[self.at].end());
                // Sometimes the branch is not taken.
                let next_pc = if self.below(5) == 0 { end } else { program[next].start() };
                let bound = &mut self.blocks[this];
                let executed = bound.profile.len();
                self.core.run(bound, executed, program[this].stream(), next_pc, &mut self.chip);
                bound.count(executed);
                self.at = next;
                if self.below(500) == 0 {
                    self.core.sleep(100);
                }
                self.core.now()
            })
            .collect()
    }

    fn counters(&self) -> Signals {
        let mut counters = self.core.counters();
        self.blocks.iter().for_each(|block| block.add_mix(&mut counters));
        counters
    }

    fn bytes(&self) -> Vec<u8> {
        postcard::to_stdvec(self).expect("can be written")
    }
}

#[test]
fn a_core_that_was_cloned_or_read_back_goes_on_with_the_same_times_and_counts() {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    for seed in 1..=4 {
        let mut r = Random::new(seed);
        let mut start = CODE;
        let mut program = Vec::new();
        let mut blocks = Vec::new();
        for _ in 0..BLOCKS {
            let block = block(start, &mut r, &spec);
            start = block.end() + 4 * r.below(40);
            blocks.push(block.bound().clone());
            program.push(block);
        }
        let (core, chip) = (Pipeline::new(&spec, 0), Chip::new(&spec));
        let mut run = Run { core, chip, blocks, random: seed, at: 0 };
        run.execute(&program);
        let mut cloned = run.clone();
        let mut read: Run = postcard::from_bytes(&run.bytes()).expect("can be read");
        let expected = run.execute(&program);
        assert!(expected == cloned.execute(&program) && expected == read.execute(&program), "times of program {seed}");
        assert_eq!(run.counters(), cloned.counters(), "counts of the clone, program {seed}");
        assert_eq!(run.counters(), read.counters(), "counts of program {seed}, read back");
        assert!(run.bytes() == cloned.bytes() && run.bytes() == read.bytes(), "the state of program {seed} at the end");
    }
}
