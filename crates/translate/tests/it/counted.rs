//! Random code whose blocks are counted, executed by both engines: executions and costs of blocks, and what they do, must be the
//! same.

use fxscope_aarch64::{BlockId, Counting, Cpu, Engine, Exit, Interpreter, Trap};
use fxscope_guestmem::Memory;
use fxscope_translate::Translator;

use super::random::{CODE, Rng, WORDS, cases, code, contents, listing, memory, rows, seen, state};

/// Most pieces of a case.
const MOST_PIECES: usize = 60;

/// The cost of the block at `start`; some have none, and are executed one at a time.
fn cost(start: u64) -> u32 {
    (start / 4 % 9) as u32 * 5
}

/// What was counted: executions by the start of blocks, in the order of their numbers, the cost, and how pieces ended.
type Counted = (Vec<(u64, u32)>, u64, Vec<(u64, Exit, Option<(BlockId, usize)>)>);

/// Executes about `budget` instructions in several pieces.
fn execute<E: Engine>(engine: &mut E, cpu: &mut Cpu, memory: &mut Memory, budget: u64) -> Counted {
    let (mut costs, mut executions, mut cost_of_all) = (Vec::new(), Vec::new(), 0);
    let (mut left, mut pieces) = (budget, Vec::new());
    while left > 0 && pieces.len() < MOST_PIECES {
        costs = (0..engine.len()).map(|id| cost(engine.block(BlockId(id as u32)).start)).collect();
        executions.resize(costs.len(), 0);
        let mut counting = Counting { costs: &costs, executions: &mut executions, cost: cost_of_all, stopped: None };
        let (done, exit) = engine.run_counted(cpu, memory, (budget / 2 + 5).min(left), &mut counting);
        let stopped = counting.stopped;
        cost_of_all = counting.cost;
        left = left.saturating_sub(done);
        let mut trap = None;
        match exit {
            Exit::Unknown => match engine.find(cpu.pc, memory) {
                Ok(id) if costs.get(id.0 as usize) == Some(&0) => {
                    let outcome = engine.run(id, cpu, memory);
                    left = left.saturating_sub(outcome.executed as u64);
                    trap = outcome.trap;
                }
                Ok(_) => continue,
                Err(error) => trap = Some(error),
            },
            Exit::Trap(why) => trap = Some(why),
            Exit::Done => {}
        }
        pieces.push((left, trap.map_or(Exit::Done, Exit::Trap), stopped));
        if let Some(Trap::Memory(_) | Trap::Misaligned(_) | Trap::Undefined | Trap::Breakpoint(_)) = trap {
            let next = cpu.pc.wrapping_add(4);
            cpu.pc = if (CODE..CODE + 4 * WORDS as u64).contains(&next) { next & !3 } else { CODE };
        }
    }
    let starts = engine.starts().into_iter().take(costs.len());
    (starts.zip(executions).collect(), cost_of_all, pieces)
}

#[test]
fn both_engines_count_the_same_executions_and_costs_and_do_the_same() {
    let [rows, common] = rows();
    let (mut units, mut executed) = (0, 0);
    for case in 0..cases() {
        let rng = &mut Rng((9u64 << 40).wrapping_add(case));
        let words = code(&rows, &common, rng);
        let start = state([16, 32, 64][case as usize % 3], rng);
        let budget = 20 + rng.below(600);
        let (mut one, mut other) = (start.clone(), start.clone());
        let (mut one_memory, mut other_memory) = (memory(&words, case), memory(&words, case));
        let first = execute(&mut Interpreter::new(start.vl), &mut one, &mut one_memory, budget);
        let mut translator: Translator<2> = Translator::new(start.vl);
        let second = execute(&mut translator, &mut other, &mut other_memory, budget);
        units += translator.units();
        executed += first.0.iter().map(|&(_, n)| u64::from(n)).sum::<u64>();
        assert_eq!(first, second, "case {case}:\n{}", listing(&words));
        let sum: u64 = first.0.iter().map(|&(start, n)| u64::from(n) * u64::from(cost(start))).sum();
        assert_eq!(first.1, sum, "case {case}: the cost");
        assert_eq!(seen(&one), seen(&other), "case {case}:\n{}", listing(&words));
        assert!(contents(&mut one_memory) == contents(&mut other_memory), "case {case}: memory\n{}", listing(&words));
    }
    assert!(units > 10 && executed > 500, "{units} units, {executed} executions");
}

#[test]
fn units_that_count_and_others_do_not_mix() {
    // ADD X0, X0, #1; B back.
    let words = [0x9100_0400, 0x17ff_ffff];
    let mut memory = memory(&words, 1);
    let mut engine: Translator<1> = Translator::new(64);
    let mut cpu = Cpu::new(64);
    (cpu.pc, cpu.x[0]) = (CODE, 0);
    let id = engine.find(CODE, &mut memory).expect("code");
    let mut executions = [0];
    for round in 1..=3 {
        let mut counting = Counting { costs: &[7], executions: &mut executions, cost: 0, stopped: None };
        assert_eq!(engine.run_counted(&mut cpu, &mut memory, 100, &mut counting), (100, Exit::Done));
        assert_eq!((counting.cost, counting.stopped), (350, None));
        assert_eq!(engine.run_until(&mut cpu, &mut memory, 40), (40, Exit::Done));
        assert_eq!((executions[id.0 as usize], cpu.x[0]), (50 * round, 70 * u64::from(round)));
        assert!(engine.units() > 0);
    }
    let mut none = Counting { costs: &[], executions: &mut [], cost: 0, stopped: None };
    assert_eq!(engine.run_counted(&mut cpu, &mut memory, 100, &mut none), (0, Exit::Unknown));
}
