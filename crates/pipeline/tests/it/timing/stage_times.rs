//! The stage times that a trace receives for micro-operations.

use fxscope_machine::Pipes;
use fxscope_memory::Level;
use fxscope_pipeline::uop_probe::StageTimes;

use crate::common::*;

/// Passages of `insts`, all of one micro-operation.
fn passages(rig: &mut Rig, insts: &[Inst]) -> Vec<StageTimes> {
    let passages = rig.stage_times(insts);
    assert_eq!(passages.len(), insts.len());
    passages
}

#[test]
fn a_chain_of_multiply_adds_starts_each_one_when_the_result_before_can_be_used() {
    let mut rig = Rig::new(machine());
    let chain = passages(&mut rig, &vec![fmla(0, 1); 8]);
    for pair in chain.windows(2) {
        assert_eq!(Some(pair[1].started), pair[0].result);
        assert_eq!(pair[1].started, pair[0].started + 9, "manual: 9 cycles");
    }
    let s = &rig.spec.stages;
    assert_eq!(chain[0].dispatched, rig.decode);
    assert_eq!(chain[0].started, rig.decode + s.vector);
}

#[test]
fn an_instruction_is_decodable_the_front_end_s_length_after_its_block_was_fetched() {
    let mut rig = Rig::new(machine());
    // Nine instructions of four bytes from an aligned address on: the ninth is in the second block of 32 bytes.
    let list = passages(&mut rig, &vec![nop(); 9]);
    let decodable: Vec<u64> =
        list.iter().map(|p| p.decodable - p.fetched - rig.spec.frontend.fetch_to_decode).collect();
    // Four instructions a cycle are read from the buffer: of the eight that are fetched together, four later.
    assert_eq!(decodable, [0, 0, 0, 0, 1, 1, 1, 1, 1]);
    assert!(list[..8].iter().all(|p| p.fetched == list[0].fetched));
    assert_eq!(list[8].fetched, list[0].fetched + 1);
}

#[test]
fn pipes_are_those_that_the_flows_took() {
    let mut rig = Rig::new(machine());
    let insts = [mul(1, 2), crc(3, 4), vector_and(0, 1), pand(0, 1), ldr_z(0, 9, DATA), str(1, 9, DATA), nop()];
    let pipes: Vec<Pipes> = passages(&mut rig, &insts).iter().map(|p| p.pipes).collect();
    assert_eq!(pipes[..5], [Pipes::EXA, Pipes::EXB, Pipes::FLA, Pipes::PRX, Pipes::EAGA]);
    assert!(pipes[5].meets(Pipes::EXA), "data of integer stores go through EXA");
    assert!(pipes[5].meets(Pipes::EAGA.or(Pipes::EAGB)));
    assert!(pipes[6].is_empty());
}

#[test]
fn a_load_tells_how_far_it_had_to_go_and_when_its_data_can_be_used() {
    let mut rig = Rig::new(machine());
    rig.warm([DATA]);
    let list = passages(&mut rig, &[ldr(1, 9, DATA), ldr(2, 9, DATA + 64 * LINE)]);
    assert_eq!((list[0].level, list[1].level), (Level::L1, Level::Memory));
    assert_eq!(list[0].result, Some(list[0].started + 5), "manual: 5 cycles");
    assert!(list[1].result > Some(list[1].started + 5));
}

#[test]
fn stages_follow_each_other_and_fetch_and_commit_are_in_order() {
    let mut rig = Rig::new(machine());
    let mut random = Random::new(7);
    let insts: Vec<Inst> = (0..120)
        .map(|_| {
            let (d, s) = (random.reg(6), random.reg(6));
            match random.below(8) {
                0 => ldr(d, 9, DATA + 8 * random.below(4096)),
                1 => st1d(d, 9, 0, DATA + 64 * random.below(64)),
                2 => fmla(d, s),
                3 => crc(d, s),
                4 => nop(),
                5 => cmpeq(d, s),
                6 => ld1d(d, 9, 0, DATA + 64 * random.below(64)),
                _ => add(d, s),
            }
        })
        .collect();
    let list = rig.stage_times(&insts);
    for p in &list {
        let stages = [p.fetched, p.decodable, p.dispatched, p.started, p.complete, p.committed];
        assert!(stages.is_sorted(), "{p:?}");
        assert!(p.result.is_none_or(|result| result > p.started), "{p:?}");
        assert!(p.pipes.is_empty() || p.started > p.dispatched, "{p:?}");
    }
    assert!(list.is_sorted_by_key(|p| p.fetched) && list.is_sorted_by_key(|p| p.committed));
}
