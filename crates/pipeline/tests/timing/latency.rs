//! Latencies and bypasses: when the last instruction of a short dependent program commits.

use crate::common::*;

/// Cycles from decode to commit of what follows `at` cycles after decode, by kind of the last operation.
struct Stages {
    integer: u64,
    address: u64,
    vector: u64,
    predicate: u64,
    vector_commit: u64,
    short: u64,
    long: u64,
}

fn rig() -> (Rig, Stages) {
    let rig = Rig::new(machine());
    let s = &rig.spec.stages;
    let stages = Stages {
        integer: s.integer,
        address: s.address,
        vector: s.vector,
        predicate: s.predicate,
        vector_commit: s.commit_vector,
        short: s.commit_short,
        long: s.commit_long,
    };
    (rig, stages)
}

#[test]
fn a_lone_operation_commits_at_the_stage_of_its_kind() {
    let (mut rig, _) = rig();
    rig.warm([DATA]);
    // Stage C of the manual's figures 2-2 to 2-6, where D is 1.
    assert_eq!(rig.time(&[add(1, 2)]), 8 - 1, "integer");
    assert_eq!(rig.time(&[fadd(1, 2)]), 22 - 1, "vector, nine cycles");
    assert_eq!(rig.time(&[ptrue(1)]), 11 - 1, "predicate");
    assert_eq!(rig.time(&[ldr(1, 2, DATA)]), 14 - 1, "integer load");
    assert_eq!(rig.time(&[ldr_d(1, 2, DATA)]), 14 - 1, "short load");
    assert_eq!(rig.time(&[ld1d(1, 2, 0, DATA)]), 17 - 1, "long load");
    assert_eq!(rig.time(&[str(1, 2, DATA)]), 14 - 1, "short store");
}

#[test]
fn a_chain_of_multiplications_takes_five_cycles_each() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&vec![mul(1, 1); 13]), s.integer + 13 * 5);
}

#[test]
fn a_chain_of_integer_loads_takes_the_load_latency_each() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let load = rig.spec.load_store.load_integer;
    assert_eq!(rig.time(&vec![ldr(1, 1, DATA); 11]), s.address + 10 * load + s.short);
}

#[test]
fn a_short_load_feeds_a_vector_operation_after_eight_cycles_and_a_long_one_after_eleven() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let ls = rig.spec.load_store.clone();
    assert_eq!(rig.time(&[ldr_d(1, 2, DATA), fadd(3, 1)]), s.address + ls.load_short + 9 + s.vector_commit);
    assert_eq!(rig.time(&[ld1d(1, 2, 0, DATA), fadd(3, 1)]), s.address + ls.load_long + 9 + s.vector_commit);
}

#[test]
fn a_chain_of_multiply_adds_takes_nine_cycles_each() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&vec![fmla(1, 2); 7]), s.vector + 7 * 9 + s.vector_commit);
}

#[test]
fn a_chain_of_predicate_operations_takes_three_cycles_each() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&vec![pand(1, 1); 7]), s.predicate + 7 * 3);
}

#[test]
fn an_operation_whose_two_flows_follow_each_other_has_the_sum_of_both_latencies() {
    let (mut rig, s) = rig();
    let shifted = op("base:ADD (shifted register) [otherwise]").reads(&[x(1)]).writes(&[x(1)]);
    assert_eq!(rig.time(&[shifted]), s.integer + 2 + 1);
    let to_vector = op("simd:FMOV (general) [{Wn|Xn} to {Hd|Sd|Dd|Vd}]").reads(&[x(1)]).writes(&[z(1)]);
    assert_eq!(rig.time(&[to_vector]), s.integer + 1 + 3 + 6 + s.vector_commit);
}

#[test]
fn a_second_micro_operation_starts_from_the_result_of_the_first() {
    let (mut rig, s) = rig();
    let indexed = op("sve:FMLA (indexed)").reads(&[z(1), z(2)]).writes(&[z(1)]);
    assert_eq!(rig.time(&[indexed]), s.vector + 6 + 9 + s.vector_commit);
}

#[test]
fn an_integer_result_reaches_its_own_pipe_at_once_and_other_pipes_later() {
    let mut spec = machine();
    spec.tables.bypass.integer_other_pipe = 3;
    let mut rig = Rig::new(spec);
    rig.warm([DATA]);
    let (x, short) = (rig.spec.stages.integer, rig.spec.stages.commit_short);
    assert_eq!(rig.time(&[mul(1, 2), mul(3, 1)]), x + 5 + 5, "EXA to EXA");
    assert_eq!(rig.time(&[crc(1, 2), crc(3, 1)]), x + 10 + 10, "EXB to EXB");
    assert_eq!(rig.time(&[mul(1, 2), crc(3, 1)]), x + 5 + 3 + 10, "EXA to EXB");
    assert_eq!(rig.time(&[crc(1, 2), mul(3, 1)]), x + 10 + 3 + 5, "EXB to EXA");
    assert_eq!(rig.time(&[mul(1, 2), ldr(3, 1, DATA)]), x + 5 + 3 + short, "EXA to a load's address");
    let load = rig.spec.load_store.load_integer;
    assert_eq!(rig.time(&[ldr(1, 2, DATA), mul(3, 1)]), rig.spec.stages.address + load + 5, "a load to EXA");
    assert_eq!(rig.time(&[ldr(1, 2, DATA), crc(3, 1)]), rig.spec.stages.address + load + 10, "a load to EXB");
}

#[test]
fn flags_of_an_integer_operation_reach_vector_operations_late() {
    let (mut rig, s) = rig();
    let late = rig.spec.bypass.flags[2];
    assert_eq!(late, 7, "manual, table 2-4");
    assert_eq!(rig.time(&[adds(1, 2), fcsel(1, 2)]), s.integer + 1 + late + 4 + s.vector_commit);
}

#[test]
fn flags_of_a_floating_point_compare_reach_vector_operations_at_once_and_integer_ones_late() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&[fcmp(1), fcsel(1, 2)]), s.vector + 4 + 4 + s.vector_commit);
    assert_eq!(rig.time(&[fcmp(1), csel(1, 2)]), s.vector + 4 + rig.spec.bypass.vector_flags[0] + 1);
}

#[test]
fn a_predicate_reaches_vector_operations_and_addresses_late() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let by = rig.spec.bypass.predicate;
    assert_eq!(rig.time(&[ptrue(1), sel(1, 2, 1)]), s.predicate + 3 + by[2] + 4 + s.vector_commit);
    assert_eq!(rig.time(&[ptrue(1), ld1d(1, 2, 1, DATA)]), s.predicate + 3 + by[1] + s.long);
}

#[test]
fn a_loaded_predicate_reaches_the_predicate_pipe_and_the_vector_pipes_late() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let (by, load) = (rig.spec.bypass.predicate_load, rig.spec.load_store.load_long);
    assert_eq!(rig.time(&[ldr_p(1, 2, DATA), pand(3, 1)]), s.address + load + by[3] + 3);
    assert_eq!(rig.time(&[ldr_p(1, 2, DATA), sel(1, 2, 1)]), s.address + load + by[2] + 4 + s.vector_commit);
}
