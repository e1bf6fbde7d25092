//! Branches: what a misprediction costs, and the bubbles behind taken branches.

use fxscope_counts::{Signal, Signals};

use crate::common::*;

/// Runs `branch`, not taken though predicted taken, and a NOP behind it; returns when that commits.
fn mispredicted(rig: &mut Rig, before: &[Inst], branch: Inst) -> u64 {
    rig.take(CODE + 4 * before.len() as u64, &branch, CODE + 1024);
    let insts: Vec<Inst> = before.iter().cloned().chain([branch]).collect();
    let mut blocks =
        [Block::new(CODE, &insts, &rig.spec), Block::new(CODE + 4 * insts.len() as u64, &[nop()], &rig.spec)];
    let misses = rig.core.counters().get(Signal::BrMisPred);
    let cycles = rig.time_blocks(&mut blocks, &[0, 1]);
    assert_eq!(rig.core.counters().get(Signal::BrMisPred), misses + 1);
    cycles
}

#[test]
fn a_mispredicted_conditional_branch_costs_its_resolution_and_a_refill_of_the_front_end() {
    let mut rig = Rig::new(machine());
    let (f, s) = (rig.spec.frontend.clone(), rig.spec.stages.clone());
    // The fetch behind BC (five cycles from D on), then from IA to D, and a NOP's commit.
    assert_eq!(mispredicted(&mut rig, &[], b_cond()), s.branch + 1 + f.fetch_to_decode + 1);
    // The manual's stages add up to thirteen cycles.
    assert_eq!(s.branch + 1 + f.fetch_to_decode, 13);
}

#[test]
fn a_mispredicted_compare_and_branch_costs_six_cycles_more() {
    let mut rig = Rig::new(machine());
    let (f, s) = (rig.spec.frontend.clone(), rig.spec.stages.clone());
    let resolved = s.integer + s.branch_after_execute;
    assert_eq!(mispredicted(&mut rig, &[], cbz(3)), resolved + 1 + f.fetch_to_decode + 1);
    assert_eq!(resolved + 1 + f.fetch_to_decode, 19);
}

#[test]
fn the_description_can_add_to_the_cost_of_a_misprediction() {
    let mut spec = machine();
    spec.tables.frontend.mispredict_extra = 7;
    let with = mispredicted(&mut Rig::new(spec), &[], b_cond());
    assert_eq!(with, mispredicted(&mut Rig::new(machine()), &[], b_cond()) + 7);
}

#[test]
fn the_right_path_waits_until_everything_up_to_the_branch_has_committed() {
    let mut rig = Rig::new(machine());
    let s = rig.spec.stages.clone();
    let divide = op("sve:FDIV [T=D]").reads(&[z(2)]).writes(&[z(1)]);
    let committed = s.vector + 154 + s.commit_vector;
    assert_eq!(mispredicted(&mut rig, &[divide], b_cond()), committed + 1 + 1);
}

#[test]
fn a_late_flag_delays_the_resolution() {
    let mut rig = Rig::new(machine());
    let early = mispredicted(&mut rig, &[adds(1, 2)], b_cond());
    let mut rig = Rig::new(machine());
    let late = mispredicted(&mut rig, &[mul(2, 3), mul(2, 2), adds(1, 2)], b_cond());
    // Two multiplications before it, and perhaps the way from EXA to EXB.
    assert!((10..=11).contains(&(late - early)), "{early} and {late}");
}

#[test]
fn cycles_between_a_misprediction_and_the_right_path_count_as_an_empty_core() {
    let mut rig = Rig::new(machine());
    rig.drain();
    let before = rig.core.counters().get(Signal::RobEmpty);
    rig.drain();
    let idle = rig.core.counters().get(Signal::RobEmpty) - before;
    let before = rig.core.counters().get(Signal::RobEmpty);
    mispredicted(&mut rig, &[], b_cond());
    let empty = rig.core.counters().get(Signal::RobEmpty) - before;
    // The front end before the branch that is learnt, the pause and the front end before the one that is timed, then
    // from its commit to the next decode.
    let (f, s) = (rig.spec.frontend.fetch_to_decode, &rig.spec.stages);
    let behind = (s.branch + 1 + f) - (s.branch + s.commit_branch) - 1;
    assert_eq!(empty, f + idle + f + behind);
}

/// Cycles a round of `body` takes after `before` rounds.
fn per_round(spec: &fxscope_machine::Spec, body: &[Inst], before: usize) -> f64 {
    let rounds = 40;
    let less = Rig::new(spec.clone()).time_loop(body, before);
    let more = Rig::new(spec.clone()).time_loop(body, before + rounds);
    (more - less) as f64 / rounds as f64
}

fn loop_of(n: usize) -> Vec<Inst> {
    let mut body = vec![nop(); n - 1];
    body.push(b_cond());
    body
}

#[test]
fn a_taken_branch_costs_bubbles_until_the_small_predictor_follows_the_chain() {
    let mut spec = machine();
    spec.tables.frontend.taken_branch_cycles = 7;
    spec.tables.frontend.small_taken_threshold = 100;
    spec.tables.frontend.short_loop_threshold = 1_000_000;
    let body = loop_of(4);
    assert_eq!(per_round(&spec, &body, 40), 7.0);
    assert_eq!(per_round(&spec, &body, 200), 1.0);
}

#[test]
fn a_taken_branch_costs_no_bubbles_in_a_loop_that_the_buffer_supplies() {
    let mut spec = machine();
    spec.tables.frontend.taken_branch_cycles = 20;
    spec.tables.frontend.small_taken_targets = 0;
    spec.tables.frontend.short_loop_threshold = 100;
    let buffered = loop_of(spec.frontend.buffer_insts as usize);
    let fetched = buffered.len() as f64 / f64::from(spec.frontend.fetch_bytes / 4);
    assert_eq!(per_round(&spec, &buffered, 40), fetched - 1.0 + 20.0);
    assert_eq!(per_round(&spec, &buffered, 200), buffered.len() as f64 / f64::from(spec.window.dispatch_width));
    // One instruction more is one block more.
    assert_eq!(per_round(&spec, &loop_of(buffered.len() + 1), 200), fetched + 20.0);
}

#[test]
fn a_group_ends_with_a_taken_branch() {
    // Five micro-operations are two groups, though the next round is fetched in time.
    assert_eq!(per_round(&machine(), &loop_of(5), 200), 2.0);
    assert_eq!(per_round(&machine(), &loop_of(6), 200), 2.0);
    assert_eq!(per_round(&machine(), &loop_of(9), 200), 3.0);
}

/// Cycles a round through `n` blocks takes, each ending in a taken branch, after `before` rounds.
fn chain(n: usize, before: usize) -> f64 {
    let mut spec = machine();
    spec.tables.frontend.taken_branch_cycles = 7;
    spec.tables.frontend.short_loop_threshold = 1_000_000;
    let rounds = 50;
    let time = |rounds: usize| {
        let mut rig = Rig::new(spec.clone());
        let mut blocks: Vec<Block> =
            (0..n as u64).map(|i| Block::new(CODE + 64 * i, &[nop(), b()], &rig.spec)).collect();
        let order: Vec<usize> = (0..rounds * n).map(|i| i % n).collect();
        (0..n as u64).for_each(|i| rig.take(CODE + 64 * i + 4, &b(), CODE + 64 * (i + 1) % (64 * n as u64)));
        rig.time_blocks(&mut blocks, &order)
    };
    (time(before + rounds) - time(before)) as f64 / rounds as f64
}

#[test]
fn the_small_predictor_follows_chains_of_up_to_four_taken_branches() {
    for n in 1..=4 {
        assert_eq!(chain(n, 200), n as f64, "{n} branches");
    }
    assert_eq!(chain(5, 200), 5.0 * 7.0);
}

#[test]
fn the_target_of_a_return_is_fetched_two_cycles_after_the_return() {
    let mut spec = machine();
    spec.tables.frontend.small_taken_targets = 0;
    spec.tables.frontend.short_loop_threshold = 1_000_000;
    let f = spec.frontend.clone();
    // A loop around a call: it returns behind the call, to the branch that leads back to the beginning.
    let mut rig = Rig::new(spec.clone());
    let mut blocks = [
        Block::new(CODE, &[nop(), bl()], &spec),
        Block::new(CODE + 64, &[nop(), ret()], &spec),
        Block::new(CODE + 8, &[b()], &spec),
    ];
    let mut after = |rounds: usize| {
        let order: Vec<usize> = (0..3 * rounds + 1).map(|i| i % 3).collect();
        rig.time_blocks(&mut blocks, &order)
    };
    after(100);
    assert_eq!(after(300) - after(100), 200 * (2 * f.taken_branch_cycles + f.return_stack_cycles));
    assert_eq!(f.return_stack_cycles, 2);
}

#[test]
fn a_direct_branch_that_the_target_buffer_does_not_know_costs_a_misprediction_found_one_stage_earlier() {
    let mut rig = Rig::new(machine());
    let (f, s) = (rig.spec.frontend.clone(), rig.spec.stages.clone());
    let spec = rig.spec.clone();
    let mut blocks = [Block::new(CODE, &[b()], &spec), Block::new(CODE + 256, &[nop()], &spec)];
    let first = rig.time_blocks(&mut blocks, &[0, 1]);
    assert_eq!(first, s.branch + f.fetch_to_decode + 1);
    let mut call = [Block::new(CODE, &[bl()], &spec), Block::new(CODE + 256, &[nop()], &spec)];
    let call = Rig::new(machine()).time_blocks(&mut call, &[0, 1]);
    assert_eq!(call, first, "the return address of a call comes later");
    // Known, it costs nothing that its own commit would not hide.
    assert_eq!(rig.time_blocks(&mut blocks, &[0, 1]), s.branch - 1 + s.commit_branch + 1);
}

/// Mispredictions in ten loops of `rounds` rounds of `instructions` instructions, once ten have been seen.
fn misses_of_loops(instructions: usize, rounds: usize) -> u64 {
    let mut rig = Rig::new(machine());
    let spec = rig.spec.clone();
    let behind = CODE + 4 * instructions as u64;
    let mut blocks = [Block::new(CODE, &loop_of(instructions), &spec), Block::new(behind, &[b()], &spec)];
    let order: Vec<usize> = (0..=rounds).map(|i| i / rounds).cycle().take(10 * (rounds + 1)).collect();
    let mut misses = || {
        rig.take(behind, &b(), CODE);
        let before = rig.core.counters().get(Signal::BrMisPred);
        rig.time_blocks(&mut blocks, &order);
        rig.core.counters().get(Signal::BrMisPred) - before
    };
    misses();
    misses()
}

#[test]
fn a_loop_that_fits_into_the_buffer_mispredicts_its_end() {
    assert_eq!(misses_of_loops(39, 32), 10);
    assert_eq!(misses_of_loops(39, 21), 10);
}

#[test]
fn the_end_of_a_loop_of_54_rounds_that_does_not_fit_into_the_buffer_is_predicted() {
    assert_eq!(misses_of_loops(118, 54), 0);
    assert_eq!(misses_of_loops(150, 32), 0);
}

#[test]
fn nothing_is_read_from_the_instruction_cache_while_the_buffer_supplies_a_loop() {
    let mut rig = Rig::new(machine());
    let body = loop_of(rig.spec.frontend.buffer_insts as usize);
    let mut reads = |rounds: usize| {
        let before = rig.core.counters().get(Signal::L1iCache);
        rig.time_loop(&body, rounds);
        rig.core.counters().get(Signal::L1iCache) - before
    };
    reads(100);
    assert_eq!(reads(200), reads(100));
}

#[test]
fn code_that_is_not_in_the_instruction_cache_comes_as_late_as_its_line() {
    let far = CODE + 64 * LINE;
    // A rig whose L2 has the line by a load, and whose target buffer knows the branch to it.
    let rig = || {
        let mut rig = Rig::new(machine());
        rig.warm([far]);
        rig.take(CODE, &b(), far);
        rig
    };
    let mut other = rig();
    let t = other.core.now() + 1_000;
    let latency = other.core.memory.with(&mut other.chip).fetch(far, t, &mut Signals::default()) - t;
    let mut rig = rig();
    let f = rig.spec.frontend.clone();
    let mut blocks = [Block::new(CODE, &[b()], &rig.spec), Block::new(far, &[nop()], &rig.spec)];
    assert_eq!(rig.time_blocks(&mut blocks, &[0, 1]), f.taken_branch_cycles + latency + 1);
    assert!(rig.time_blocks(&mut blocks, &[0, 1]) < f.taken_branch_cycles + latency, "the line has come");
}
