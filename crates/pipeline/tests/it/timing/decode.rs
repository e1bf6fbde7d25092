//! Decode: how many instructions are read and packed a cycle, and who shares a dispatch group.

use crate::common::*;
use fxscope_calendar::Cycle;

/// When each micro-operation is dispatched, from the first one on.
fn dispatched(insts: &[Inst]) -> Vec<Cycle> {
    let passages = Rig::new(machine()).stage_times(insts);
    passages.iter().map(|p| p.dispatched - passages[0].dispatched).collect()
}

/// Micro-operations dispatched in each cycle, of those in which any were.
fn groups(insts: &[Inst]) -> Vec<usize> {
    dispatched(insts).chunk_by(|a, b| a == b).map(<[Cycle]>::len).collect()
}

/// A MOVPRFX and the operation it is packed with.
fn pair(d: u8) -> [Inst; 2] {
    [movprfx(d, 20), fmla(d, 21)]
}

#[test]
fn movprfx_pairs_with_other_instructions_between_them_are_packed_two_a_cycle() {
    // Manual figure 4-1.
    let body: Vec<Inst> = (0..4).flat_map(|i| pair(i).into_iter().chain([fadd(8 + i, 22)])).chain([nop()]).collect();
    assert_eq!(groups(&body), [4, 4, 1]);
}

#[test]
fn three_movprfx_pairs_are_all_that_is_read_in_a_cycle() {
    // Manual figure 4-2.
    let body: Vec<Inst> = (0..4).flat_map(pair).chain((0..4).map(|i| fadd(8 + i, 22))).chain([nop()]).collect();
    assert_eq!(groups(&body), [3, 4, 2]);
}

#[test]
fn an_instruction_of_three_micro_operations_begins_a_group() {
    let three = op("simd:SADDL, SADDL2").reads(&[z(1), z(2)]).writes(&[z(3)]);
    let two = op("simd:FCVTL, FCVTL2 [Ta=4S]").reads(&[z(1)]).writes(&[z(3)]);
    let uops = |inst: &Inst| Block::new(CODE, std::slice::from_ref(inst), &machine()).uops().len();
    assert_eq!((uops(&three), uops(&two)), (3, 2));
    assert_eq!(groups(&[nop(), three]), [1, 3]);
    assert_eq!(groups(&[nop(), two]), [3]);
}

#[test]
fn each_micro_operation_of_a_sequential_instruction_is_a_group() {
    let two = sequential(1, 2);
    assert_eq!(Block::new(CODE, std::slice::from_ref(&two), &machine()).uops().len(), 2);
    assert_eq!(dispatched(&[nop(), two, nop()]), [0, 1, 2, 3]);
}

#[test]
fn a_gather_is_decoded_alone() {
    let gather = gather(1, 2, 3, 0, [Some(DATA); 8]);
    let uops = Block::new(CODE, std::slice::from_ref(&gather), &machine()).uops().len();
    let times = dispatched(&[nop(), gather, nop()]);
    assert_eq!(times[1], 1);
    assert!(times[uops + 1] > times[uops]);
}

#[test]
fn one_operation_with_a_program_counter_is_dispatched_a_cycle() {
    assert_eq!(dispatched(&[adr(1), adr(2), adr(3), nop()]), [0, 1, 2, 2]);
}

#[test]
fn the_fourth_operation_with_a_program_counter_waits_for_the_first_to_take_it() {
    let spec = machine();
    assert_eq!(spec.window.temporary_operand_registers, 3);
    // The first begins to execute at its address stage.
    assert_eq!(dispatched(&[adr(1), adr(2), adr(3), adr(4)]), [0, 1, 2, spec.stages.address]);
}

#[test]
fn an_instruction_with_pre_sync_waits_until_the_one_before_it_has_committed() {
    let passages = Rig::new(machine()).stage_times(&[mul(1, 2), op("base:MRS").writes(&[x(3)])]);
    assert_eq!(passages[1].dispatched, passages[0].committed + 1);
}

#[test]
fn what_follows_an_instruction_with_post_sync_waits_until_it_has_committed() {
    let yields = op("base:HINT {YIELD}");
    let passages = Rig::new(machine()).stage_times(&[mul(1, 2), yields, nop()]);
    let [.., last_of_yield, behind] = &passages[..] else { panic!("micro-operations") };
    assert_eq!(behind.dispatched, last_of_yield.committed + 1);
}

#[test]
fn the_target_of_a_taken_branch_is_not_read_with_it() {
    let mut rig = Rig::new(machine());
    let spec = rig.spec.clone();
    // Two instructions, a branch to the block behind it, and two more: one fetch would hold them all.
    rig.take(CODE + 8, &b(), CODE + 16);
    rig.drain();
    let first = rig.core.counters();
    let mut blocks = [Block::new(CODE, &[nop(), nop(), b()], &spec), Block::new(CODE + 16, &[nop()], &spec)];
    rig.run_blocks(&mut blocks, &[0, 1]);
    assert_eq!(rig.core.counters().since(&first).get(fxscope_counts::Signal::L1iCache), 2, "two reads of the cache");
}
