//! How many independent operations the core takes in a cycle.

use crate::common::*;

fn rig() -> Rig {
    let mut rig = Rig::new(machine());
    rig.warm((0..32).map(|i| DATA + i * LINE));
    rig
}

const N: usize = 240;

#[test]
fn four_micro_operations_are_dispatched_and_committed_a_cycle() {
    assert_eq!(rig().steady(&[nop()], N), N as u64 / 4);
}

#[test]
fn two_vector_operations_a_cycle_use_both_vector_pipes() {
    assert_eq!(rig().steady(&[fadd(1, 2)], N), N as u64 / 2);
}

#[test]
fn in_eco_mode_one_vector_operation_a_cycle_passes_and_none_is_lost() {
    let eco = || {
        let setting = ("clock.fma_pipes".to_owned(), "1".to_owned());
        Rig::new(fxscope_machine::load("a64fx", &[setting]).expect("built in"))
    };
    assert_eq!(eco().steady(&[fmla(1, 2)], N), 9 * N as u64, "a chain is no slower than with both pipes");
    assert_eq!(eco().steady(&[fadd(1, 2)], N), N as u64, "half of what both pipes take");
    let counts_bits = op("simd:CNT").reads(&[z(2)]).writes(&[z(1)]);
    assert_eq!(eco().steady(&[counts_bits], N), N as u64, "an operation of FLB alone");
    let mut rig = eco();
    rig.warm((0..32).map(|i| DATA + i * LINE));
    // Software-pipelined: what is computed was loaded, what is stored was computed some rounds before.
    let triad: Vec<Inst> = (0..8)
        .flat_map(|k| {
            let load = |d: u8| ld1d(d, 20, 7, DATA + 64 * u64::from(d));
            [fadd(16 + k, k), st1d(16 + (k + 1) % 8, 20, 7, DATA + 24 * LINE), load(k), load(8 + k)]
        })
        .collect();
    assert_eq!(rig.steady(&triad, N / 8), 2 * N as u64, "a loop that moves data is as fast as with both");
}

#[test]
fn one_operation_a_cycle_passes_a_vector_pipe_that_is_the_only_one_for_it() {
    assert_eq!(rig().steady(&[vector_and(1, 2)], N), N as u64);
}

#[test]
fn exa_and_prx_share_an_issue_port_that_both_flows_of_while_leave_by_in_one_cycle() {
    assert_eq!(rig().steady(&[pand(1, 2), mul(1, 2)], N), 2 * N as u64, "a flow of PRX and one of EXA");
    assert_eq!(rig().steady(&[whilelo(1, 2, 3)], N), N as u64, "one of EXA, one of PRX a stage later");
    assert_eq!(rig().steady(&[whilelo(1, 2, 3), mul(1, 2)], N), 2 * N as u64);
}

#[test]
fn two_operations_a_cycle_pass_the_two_integer_pipes() {
    assert_eq!(rig().steady(&[csel(1, 2)], N), N as u64 / 2);
}

#[test]
fn four_simple_integer_operations_a_cycle_use_the_address_pipes_too() {
    // With the default number, registers would run out before dispatch turns to the address pipes.
    let mut spec = machine();
    spec.tables.window.rename_gpr = 128;
    assert_eq!(Rig::new(spec).steady(&[add(1, 2)], 4 * N), N as u64);
}

#[test]
fn one_multiplication_a_cycle_passes_exa() {
    assert_eq!(rig().steady(&[mul(1, 2)], N), N as u64);
    let sum = op("base:SMADDL").reads(&[x(2), x(3), x(4)]).writes(&[x(1)]);
    assert_eq!(rig().steady(&[sum], N), 3 * N as u64, "one whose product is added to something, for three cycles");
}

#[test]
fn the_predicate_pipe_and_exa_share_an_issue_port() {
    assert_eq!(rig().steady(&[ptrue(1)], N), N as u64);
    assert_eq!(rig().steady(&[ptrue(1), mul(1, 2)], N), 2 * N as u64);
    assert_eq!(rig().steady(&[ptrue(1), vector_and(1, 2)], N), N as u64);
}

#[test]
fn store_data_pass_a_pipe_of_rse0_by_their_kind() {
    let n = N as u64;
    let integer = || str(1, 2, DATA);
    let vector = || st1d(1, 2, 0, DATA);
    assert_eq!(rig().steady(&[integer(), mul(3, 4)], N), 2 * n, "integer data and a multiplication in EXA");
    assert_eq!(rig().steady(&[integer(), vector_and(3, 4)], N), n, "integer data beside FLA");
    assert_eq!(rig().steady(&[vector(), vector_and(3, 4)], N), 2 * n, "vector data and an operation in FLA");
    assert_eq!(rig().steady(&[vector(), mul(3, 4)], N), n, "vector data beside EXA");
}

#[test]
fn a_vector_compare_takes_the_predicate_pipe_and_fla_together() {
    assert_eq!(rig().steady(&[cmpeq(1, 2)], N), N as u64);
    assert_eq!(rig().steady(&[cmpeq(1, 2), vector_and(1, 2)], N), 2 * N as u64);
    assert_eq!(rig().steady(&[cmpeq(1, 2), mul(1, 2)], N), 2 * N as u64);
}

#[test]
fn a_pipe_blocking_operation_keeps_its_pipe_to_itself_until_it_ends() {
    let two = op("base:ADD (shifted register) [LSL 1-4]").reads(&[x(2)]).writes(&[x(1)]);
    assert_eq!(rig().steady(&[two], N), N as u64, "two cycles in one of two pipes");
    let three = op("base:ADD (shifted register) [otherwise]").reads(&[x(2)]).writes(&[x(1)]);
    assert_eq!(rig().steady(&[three], N), N as u64 * 3 / 2, "three cycles in one of two pipes");
}

#[test]
fn a_blocking_operation_keeps_only_its_own_kind_away() {
    let divide = op("sve:FDIV [T=S]").reads(&[z(2)]).writes(&[z(1)]);
    let alone = rig().steady(std::slice::from_ref(&divide), 20);
    assert_eq!(alone, 20 * 98, "manual, chapter 16, 512 bits");
    let beside: Vec<Inst> = std::iter::once(divide).chain(vec![vector_and(3, 4); 40]).collect();
    assert_eq!(rig().steady(&beside, 20), 20 * 98);
}

#[test]
fn the_latency_of_a_division_lies_where_the_description_says() {
    for (point, latency) in [(0, 9), (100, 42)] {
        let mut spec = machine();
        spec.tables.assumptions.divide_point = point;
        let divide = op("base:SDIV [sf=1]").reads(&[x(2)]).writes(&[x(1)]);
        assert_eq!(Rig::new(spec).steady(&[divide], 20), 20 * latency);
    }
}

#[test]
fn a_blocking_operation_that_waits_for_its_pipe_blocks_from_when_it_starts() {
    let mut rig = rig();
    let divide = |d| op("sve:FDIV [T=S]").reads(&[z(30)]).writes(&[z(d)]);
    // Eight elder operations of the same pipe become ready together with the divisions.
    let mut program = vec![fadd(30, 31)];
    program.extend((0..8).map(|d| vector_and(d, 30)));
    program.extend([divide(10), divide(11)]);
    let s = &rig.spec.stages;
    let expected = s.vector + 9 + 8 + 98 + 98 + s.commit_vector;
    assert_eq!(rig.time(&program), expected);
}

#[test]
fn two_divisions_commit_when_both_are_done_though_the_younger_one_starts_first() {
    let mut rig = rig();
    let divide = |d, s| op("sve:FDIV [T=S]").reads(&[z(s)]).writes(&[z(d)]);
    // The elder one waits for an addition in FLB.
    let program = [nop(), fadd(1, 2), divide(3, 1), divide(4, 5)];
    let s = rig.spec.stages.clone();
    assert_eq!(rig.time(&program), s.vector + 98 + 98 + s.commit_vector);
}

#[test]
fn what_needs_a_division_that_a_younger_one_overtakes_waits_for_both() {
    let mut rig = rig();
    let divide = |d, s| op("sve:FDIV [T=S]").reads(&[z(s)]).writes(&[z(d)]);
    let program = [nop(), fadd(1, 2), divide(3, 1), divide(4, 5), fadd(6, 3)];
    let s = rig.spec.stages.clone();
    assert_eq!(rig.time(&program), s.vector + 98 + 98 + 9 + s.commit_vector);
}

#[test]
fn the_oldest_of_the_divisions_that_are_ready_starts_when_one_ends_whoever_overtook_it_before() {
    let mut rig = rig();
    let divide = |d, s| op("sve:FDIV [T=S]").reads(&[z(s)]).writes(&[z(d)]);
    // Ready after two additions, after one, and at once.
    let program = [fadd(1, 2), fadd(9, 1), divide(3, 9), divide(4, 1), divide(5, 2)];
    let passages = rig.stage_times(&[&program[..], &[fadd(7, 3), fadd(8, 4)]].concat());
    let starts: Vec<u64> = passages[5..].iter().map(|p| p.started).collect();
    assert_eq!(starts[1] - starts[0], 98, "the first division is through before the second one");
}

#[test]
fn the_commit_stack_is_full_until_a_division_that_a_younger_one_overtakes_has_committed() {
    let mut rig = rig();
    let divide = |d, s| op("sve:FDIV [T=S]").reads(&[z(s)]).writes(&[z(d)]);
    let s = rig.spec.stages.clone();
    let first_group = [nop(), nop(), fadd(1, 2), divide(3, 1)];
    let others = 4 * (rig.spec.window.commit_stack / rig.spec.window.group_entries - 1) as usize;
    let program = [&first_group[..], &[divide(4, 5)], &vec![nop(); others - 1], &[divide(6, 7)]].concat();
    // The younger division is dispatched a cycle after the older one.
    let committed = 1 + s.vector + 98 + 98 + s.commit_vector;
    assert_eq!(rig.time(&program), committed + 1 + s.vector + 98 + s.commit_vector);
}

#[test]
fn two_loads_a_cycle_hit_the_cache() {
    assert_eq!(rig().steady(&[ldr(1, 2, DATA)], N), N as u64 / 2);
    assert_eq!(rig().steady(&[ld1d(1, 2, 0, DATA)], N), N as u64 / 2);
}

#[test]
fn loads_that_only_one_address_pipe_takes_pass_one_a_cycle() {
    assert_eq!(rig().steady(&[ldr_z(1, 2, DATA)], N), N as u64);
}

#[test]
fn gather_flows_are_counted_by_pairs_that_share_a_block_or_are_split() {
    use fxscope_counts::Signal::{Gather0Flow, Gather1Flow, Gather2Flow};
    let mut rig = rig();
    let at = |offset| Some(DATA + offset);
    let elements = [at(0), at(120), at(64), at(128), None, at(8), at(16), None];
    let (_, counts) = rig.count(&[gather(1, 2, 3, 0, elements)]);
    assert_eq!([Gather0Flow, Gather1Flow, Gather2Flow].map(|s| counts.get(s)), [0, 3, 1]);
}

/// As counted on the machine: gathers of five elements of eight have four flows, those of four and fewer leave out two.
#[test]
fn a_pair_without_active_elements_has_a_flow_if_the_addresses_made_with_its_own_have_some() {
    use fxscope_counts::Signal::{Gather0Flow, Gather1Flow, L1Pipe0Val, L1Pipe1Val};
    let flows = |active: usize| {
        let mut rig = rig();
        let elements = std::array::from_fn(|i| (i < active).then_some(DATA + 8 * i as u64));
        let (_, counts) = rig.count(&[gather(1, 2, 3, 0, elements)]);
        assert_eq!(counts.get(L1Pipe0Val) + counts.get(L1Pipe1Val), counts.get(Gather1Flow));
        (counts.get(Gather0Flow), counts.get(Gather1Flow))
    };
    assert_eq!([8, 7, 5].map(flows), [(0, 4); 3]);
    assert_eq!([4, 3, 2, 1].map(flows), [(2, 2); 4]);
    assert_eq!(flows(0), (4, 0));
}

#[test]
fn a_gather_prefetch_has_flows_for_the_same_pairs_as_a_gather() {
    use fxscope_counts::Signal::{L1Pipe0Val, L1Pipe1Val};
    let flows = |of: fn([Option<u64>; 8]) -> Inst, active: usize| {
        let mut rig = rig();
        let elements = std::array::from_fn(|i| (i < active).then_some(DATA + 8 * i as u64));
        let (_, counts) = rig.count(&[of(elements)]);
        counts.get(L1Pipe0Val) + counts.get(L1Pipe1Val)
    };
    for active in 0..=8 {
        let gathered = flows(|elements| gather(1, 2, 3, 0, elements), active);
        assert_eq!(flows(|elements| gather_prefetch(2, 3, 0, elements), active), gathered, "{active}");
    }
}

#[test]
fn a_gather_is_alone_in_its_group() {
    // The gather in one cycle, six others in two.
    let body: Vec<Inst> = [gather(1, 2, 3, 0, [None; 8])].into_iter().chain(vec![nop(); 6]).collect();
    assert_eq!(rig().steady(&body, 60), 60 * 3);
}
