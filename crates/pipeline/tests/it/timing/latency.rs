//! Latencies and bypasses: when the last instruction of a short dependent program commits.

use fxscope_counts::{Signal, Signals};
use fxscope_isa::{Access, Branch, MemOp, Reg, StaticInst};
use fxscope_pipeline::bind_block;

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
fn without_exceptions_to_judge_a_vector_operation_commits_right_behind_its_last_stage() {
    let (mut rig, s) = rig();
    rig.core.judge_exceptions(false);
    assert_eq!(rig.time(&[fadd(1, 2)]), 18 - 1, "X9 is in cycle 17 of the manual's figure 2-3");
    assert_eq!(rig.time(&[add(1, 2)]), s.integer + 1, "others have nothing to judge");
    rig.core.judge_exceptions(true);
    assert_eq!(rig.time(&[fadd(1, 2)]), 22 - 1);
}

#[test]
fn a_predicate_operation_that_sets_flags_commits_a_cycle_later() {
    let (mut rig, _) = rig();
    assert_eq!(rig.time(&[ptest(1)]), 12 - 1);
}

#[test]
fn a_movprfx_is_packed_with_the_operation_behind_it() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&[movprfx(1, 2), fmla(1, 3)]), s.vector + 9 + s.vector_commit);
    // Three packed pairs are one group: more are not packed in a cycle.
    let pairs: Vec<Inst> = (1..4).flat_map(|d| [movprfx(d, 9), fmla(d, 10)]).collect();
    assert_eq!(rig.time(&pairs), s.vector + 1 + 9 + s.vector_commit);
}

#[test]
fn a_merging_movprfx_adds_an_operation_of_four_cycles_at_the_end_where_its_row_says_so() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&[movprfx_merging(1, 2), fmla(1, 3)]), s.vector + 9 + 4 + s.vector_commit);
    let uops = |first: Inst| Block::new(CODE, &[first, fmla(1, 3)], &rig.spec).uops().len();
    assert_eq!((uops(movprfx_merging(1, 2)), uops(movprfx(1, 2))), (2, 1), "micro-operations");
}

#[test]
fn a_movprfx_before_an_operation_that_cannot_be_packed_is_a_micro_operation_of_four_cycles() {
    let (mut rig, s) = rig();
    let pair = [movprfx(1, 2), fadd(3, 1)];
    assert_eq!(rig.time(&pair), s.vector + 4 + 9 + s.vector_commit);
    assert_eq!(Block::new(CODE, &pair, &rig.spec).uops().len(), 2, "micro-operations");
}

#[test]
fn movprfx_are_counted_and_those_that_are_not_packed_once_more() {
    let (rig, _) = rig();
    let counts = |insts: &[Inst]| {
        let infos: Vec<StaticInst> = insts.iter().map(|i| i.info).collect();
        let mut block = bind_block(CODE, &infos, &rig.spec);
        block.count(insts.len());
        let mut signals = Signals::default();
        block.add_mix(&mut signals);
        [Signal::SveMovprfxSpec, Signal::SveMovprfxUSpec, Signal::EffectiveInst, Signal::Uop].map(|s| signals.get(s))
    };
    assert_eq!(
        counts(&[movprfx(1, 2), fmla(1, 3)]),
        [1, 0, 1, 2],
        "packed: it counts as a micro-operation, as in measured programs"
    );
    assert_eq!(counts(&[movprfx(1, 2), fadd(3, 1)]), [1, 1, 1, 2], "not packed");
}

#[test]
fn a_vector_store_commits_behind_its_data_as_a_long_load_does_behind_its_address() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    // Figure 2-6 has C in cycle 17, and X of the data flow in that of A: FLA's is two later (figure 2-3).
    assert_eq!(rig.time(&[st1d(1, 2, 0, DATA)]), 17 - 1 + (s.vector - s.address));
    assert_eq!(rig.time(&[fadd(1, 3), st1d(1, 2, 0, DATA)]), (s.vector + 9) + 10, "data that come late");
}

#[test]
fn branches_commit_at_the_stage_of_their_kind() {
    let (mut rig, _) = rig();
    // Each is predicted taken when first seen, and is taken: to what follows it two instructions later.
    for (branch, commit) in [(b_cond(), 6), (cbz(3), 12), (b(), 5)] {
        let mut blocks =
            [Block::new(CODE + 64 * commit, &[branch], &rig.spec), Block::new(CODE + 64 * commit + 12, &[], &rig.spec)];
        assert_eq!(rig.time_blocks(&mut blocks, &[0, 1]), commit - 1);
    }
}

#[test]
fn reading_a_system_register_waits_until_everything_before_it_has_committed() {
    let (mut rig, s) = rig();
    // The product commits; then two micro-operations one after the other, a cycle each from decode to commit.
    assert_eq!(rig.time(&[mul(1, 2), op("base:MRS").writes(&[x(3)])]), (s.integer + 5) + 1 + 2);
}

#[test]
fn nothing_behind_a_write_of_a_system_register_is_decoded_before_that_commits() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&[op("base:MSR (register)").reads(&[x(3)]), add(1, 2)]), 2 + 1 + (s.integer + 1));
}

#[test]
fn a_call_commits_no_earlier_than_its_return_address_is_made() {
    let (mut rig, s) = rig();
    let call = op("base:BL").writes(&[x(30)]).branches(Branch::Call);
    let mut blocks = [Block::new(CODE + 64, &[call], &rig.spec), Block::new(CODE + 64 + 12, &[], &rig.spec)];
    assert_eq!(rig.time_blocks(&mut blocks, &[0, 1]), s.address + 1);
}

#[test]
fn a_chain_of_integer_operations_takes_a_cycle_each() {
    let (mut rig, s) = rig();
    for n in [2, 5, 17, 61] {
        assert_eq!(rig.time(&vec![add(1, 1); n]), s.integer + n as u64);
    }
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
    let to_vector = || op("simd:FMOV (general) [{Wn|Xn} to {Hd|Sd|Dd|Vd}]").reads(&[x(1)]).writes(&[z(1)]);
    assert_eq!(rig.time(&[to_vector()]), s.integer + 1 + 3 + 6);
    assert_eq!(rig.time(&[to_vector()]), 17 - 1, "manual, figure 6-3");
}

#[test]
fn a_second_micro_operation_starts_from_the_result_of_the_first() {
    let (mut rig, s) = rig();
    let indexed = op("sve:FMLA (indexed)").reads(&[z(1), z(2)]).writes(&[z(1)]);
    assert_eq!(rig.time(&[indexed]), s.vector + 6 + 9 + s.vector_commit);
}

/// Cycles that each copy of `class` takes when it adds to what the one before made, and nothing else depends.
fn accumulation(rig: &mut Rig, class: &'static str, others: &[Reg], sum: Reg) -> u64 {
    rig.steady(&[op(class).reads(others).accumulates(sum).writes(&[sum])], 12) / 12
}

#[test]
fn the_accumulator_goes_to_the_micro_operation_that_adds_to_it() {
    let (mut rig, _) = rig();
    // Manual, tables 16-1 to 16-3: the latency of the last micro-operation, where those before it prepare factors.
    let vectors = [
        ("sve:FMLA (indexed)", 9),
        ("simd:FMLA (by element)", 9),
        ("sve:FCMLA (vectors)", 9),
        ("sve:FCADD", 9),
        ("sve:SDOT (indexed)", 9),
        ("simd:SABA", 4),
        ("simd:SRSRA", 4),
        ("simd:SADALP", 4),
        ("simd:SMLAL, SMLAL2 (vector) [Ta=2D]", 9),
        ("simd:SABAL, SABAL2", 4),
    ];
    for (class, latency) in vectors {
        assert_eq!(accumulation(&mut rig, class, &[z(1), z(2)], z(0)), latency, "{class}");
    }
    // A chain through its last micro-operation alone would take one cycle each: EXA, with three for each, is the limit.
    assert_eq!(accumulation(&mut rig, "base:SMADDL", &[x(1), x(2)], x(0)), 3, "the addend of a product");
    assert_eq!(accumulation(&mut rig, "sve:INCP (scalar)", &[p(1)], x(0)), 1, "a count is added");
    assert_eq!(accumulation(&mut rig, "sve:SQINCP (scalar)", &[p(1)], x(0)), 1 + 1, "both flows are for the sum");
}

#[test]
fn the_other_operands_of_a_row_of_several_micro_operations_go_to_the_first() {
    let (mut rig, _) = rig();
    let product = |d| op("sve:FMLA (indexed)").reads(&[z(0), z(2)]).accumulates(z(3)).writes(&[z(d)]);
    assert_eq!(rig.steady(&[product(0)], 12) / 12, 6 + 9);
}

#[test]
fn a_vector_of_one_element_is_made_before_the_other_operands_are_there() {
    let (mut rig, _) = rig();
    // Manual, tables 16-2 and 16-3: 6 cycles for that vector, as DUP (element) takes, and 9 for the product.
    for class in ["sve:FMLA (indexed)", "simd:FMLA (by element)", "simd:FMUL (by element)", "simd:MLA (by element)"] {
        let factor = op(class).reads(&[z(0)]).reads_element(z(2)).writes(&[z(0)]);
        assert_eq!(rig.steady(&[factor], 12) / 12, 9, "{class}: through the other factor");
    }
    for class in
        ["sve:FMUL (indexed)", "simd:FMUL (by element)", "simd:SQRDMULH (by element) [Scalar V=S, Vector T={2S|4S}]"]
    {
        let element = op(class).reads(&[z(1)]).reads_element(z(0)).writes(&[z(0)]);
        assert_eq!(rig.steady(&[element], 12) / 12, 6 + 9, "{class}: through the element");
        let both = op(class).reads(&[z(0)]).reads_element(z(0)).writes(&[z(0)]);
        assert_eq!(rig.steady(&[both], 12) / 12, 6 + 9, "{class}: one register for both");
    }
    let class = "simd:SQDMLAL, SQDMLAL2 (by element) [Scalar Va=D]";
    let sum = op(class).reads(&[z(1)]).reads_element(z(2)).accumulates(z(0)).writes(&[z(0)]);
    assert!(rig.steady(&[sum], 12) / 12 < 9, "an addition of its own has the accumulator");
}

#[test]
fn a_sum_from_element_to_element_begins_with_the_accumulator() {
    let (mut rig, _) = rig();
    // Eight elements of 8 bytes, nine cycles each; the steps from element to element wait for the vector alone.
    assert_eq!(accumulation(&mut rig, "sve:FADDA [V=D]", &[p(0), z(1)], z(0)), 8 * 9);
}

#[test]
fn an_operand_that_is_the_only_one_goes_to_the_first_micro_operation_though_it_is_overwritten() {
    let (mut rig, _) = rig();
    assert_eq!(accumulation(&mut rig, "sve:ASRD", &[p(0)], z(0)), 4 + 4);
}

#[test]
fn a_merging_movprfx_waits_at_its_own_operation_for_what_it_keeps() {
    let (mut rig, _) = rig();
    let chain =
        |kept: u8| [movprfx_merging(kept, 2), op("sve:FMLA").reads(&[z(3)]).accumulates(z(kept)).writes(&[z(kept)])];
    assert_eq!(rig.steady(&chain(1), 12) / 12, 4);
}

#[test]
fn only_the_flow_that_a_row_names_waits_for_another_micro_operation() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let vector = |class| op(class).reads(&[z(1), z(2)]).writes(&[z(3)]);
    let product = vector("simd:SQRDMLAH (by element) [Scalar V=H, Vector T={4H|8H}]");
    // 6 / 1+[1]8: the cycle before the eight is over when the six are.
    let first = rig.time(&[product]) - s.vector - s.vector_commit;
    assert_eq!(first, 6 + 8);
    let indices = op("sve:INDEX (immediate, scalar) [T={B|H}]").reads(&[x(1)]).writes(&[z(3)]);
    // Each in a station of its own: 1+3+4 / 1+3+[1]9.
    assert_eq!(rig.time(&[indices, fadd(4, 3)]), s.integer + 1 + 3 + 4 + 9 + 9 + s.vector_commit);
}

#[test]
fn what_overwrites_an_operand_of_its_own_instruction_does_not_delay_it() {
    let (mut rig, _) = rig();
    let pair = MemOp { regs: 2, ..MemOp::single(Access::Load, 16) };
    let mut load = op("base:LDP [Signed offset]").based(&[x(1)]).writes(&[x(1), x(2)]).access(Access::Load, 16, DATA);
    load.info.mem = Some(pair);
    // The chain goes through the base register, which the first of the two loads overwrites.
    rig.warm([DATA]);
    assert_eq!(rig.steady(&[load.clone()], 12) / 12, rig.spec.load_store.load_integer);
    let others = [load, add(3, 2)];
    assert_eq!(rig.steady(&others, 12) / 12, rig.spec.load_store.load_integer, "the second is as early");
}

#[test]
fn the_element_of_a_lane_load_is_inserted_behind_the_load_into_the_register_as_it_was() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let lane = op("simd:LD1 (single structure) [No offset]").based(&[x(2)]).reads(&[z(1)]).writes(&[z(1)]);
    let lane = lane.access(Access::Load, 8, DATA);
    let load = rig.spec.load_store.load_short;
    assert_eq!(rig.time(&[lane.clone(), fadd(3, 1)]), s.address + load + 6 + 9 + s.vector_commit);
    assert_eq!(rig.steady(&[lane], 12) / 12, 6, "one after the other through the register");
}

#[test]
fn compare_and_swap_gives_its_result_behind_the_access() {
    let swap = op("base:CAS{|A|AL|L}").reads(&[x(1), x(2)]).writes(&[x(1)]).based(&[x(1)]);
    let swap = swap.access(Access::Atomic, 8, DATA);
    let time = |swaps: usize| {
        let (mut rig, _) = rig();
        rig.warm([DATA]);
        rig.time(&vec![swap.clone(); swaps])
    };
    // 5;1: the access and a cycle in EXA. From there to the address pipes; there the row's first micro-operation, which
    // the first slot gives to RSA0, takes EAGA, which the access needs too, for a cycle.
    let bypass = machine().bypass.integer_other_pipe;
    assert_eq!(time(2) - time(1), 5 + 1 + bypass + 1);
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

/// `n` groups of operations without other effects: they delay the dispatch of what follows by `n` cycles.
fn cycles_later(n: usize, first: Inst, second: Inst) -> Vec<Inst> {
    let groups = std::iter::once(first).chain(vec![nop(); 4 * n - 1]);
    groups.chain([second]).collect()
}

#[test]
fn a_vector_result_that_would_leave_its_pipe_with_another_one_comes_with_the_next_latency() {
    let (mut rig, s) = rig();
    let reverse = |d, s| op("simd:TRN1").reads(&[z(s)]).writes(&[z(d)]);
    // A nine-cycle operation in FLA, then one of FLA alone, and one that waits for its result.
    let mut latency = |issue: usize, second: Inst| {
        let mut program = cycles_later(issue, fadd(1, 2), second);
        program.push(fadd(5, 3));
        rig.time(&program) - (s.vector + issue as u64) - (9 + s.vector_commit)
    };
    assert_eq!([4, 5, 6].map(|issue| latency(issue, vector_and(3, 4))), [4, 6, 4]);
    assert_eq!([2, 3, 4].map(|issue| latency(issue, reverse(3, 4))), [6, 9, 6]);
}

#[test]
fn a_vector_result_with_two_others_in_its_way_takes_the_longest_latency() {
    let (mut rig, s) = rig();
    // They leave FLA in cycles 9 and 11 from the start of the first; the third would do so in 5 + 4 or 5 + 6.
    let mut program = cycles_later(2, fadd(1, 2), fadd(5, 6));
    program.extend(cycles_later(3, nop(), vector_and(3, 4)).into_iter().skip(1));
    program.push(fadd(7, 3));
    assert_eq!(rig.time(&program), s.vector + 5 + 9 + 9 + s.vector_commit);
}

#[test]
fn a_vector_result_that_gives_way_to_a_younger_operation_begun_before_it_takes_along_what_waits_for_it() {
    let (mut rig, s) = rig();
    // All in FLA: the second waits for the first and would be done after 9 + 4 cycles; so would the last one, which
    // starts four cycles after the first.
    let mut waiting_for_it = |waiting: &[Inst]| {
        let mut program = vec![fadd(1, 2), nop(), vector_and(3, 1)];
        program.extend_from_slice(waiting);
        program.resize(4 * 4, nop());
        program.push(fadd(8, 9));
        // Behind them, groups commit one a cycle.
        rig.time(&program) - s.vector - s.vector_commit - (4 - waiting.len() as u64 / 2)
    };
    assert_eq!(waiting_for_it(&[fadd(5, 3)]), 9 + 6 + 9);
    assert_eq!(waiting_for_it(&[fadd(5, 3), fadd(6, 5)]), 9 + 6 + 9 + 9, "and what waits for that");
}

#[test]
fn a_short_load_that_would_end_with_a_long_one_in_its_pipe_takes_three_cycles_more() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let ls = rig.spec.load_store.clone();
    let mut by_load = |issue: usize, load: Inst, user: Inst| {
        let mut program = cycles_later(issue, ld1d(1, 2, 0, DATA), load);
        program.push(user);
        rig.time(&program) - issue as u64 - s.address
    };
    for (issue, more) in [(2, 0), (3, 3), (4, 0)] {
        let vector = by_load(issue, ldr_d(3, 4, DATA), fadd(5, 3));
        assert_eq!(vector, ls.load_short + more + 9 + s.vector_commit, "{issue} later");
        let integer = by_load(issue, ldr(3, 4, DATA), crc(5, 3));
        assert_eq!(integer, ls.load_integer + more + 10, "{issue} later");
    }
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
fn flags_of_predicate_operations_and_vector_compares_reach_integer_operations_late() {
    let (mut rig, s) = rig();
    assert_eq!(rig.time(&[ptest(1), csel(1, 2)]), s.predicate + 3 + rig.spec.bypass.predicate_flags[0] + 1);
    assert_eq!(rig.time(&[cmpeq(1, 2), csel(1, 2)]), s.vector + 4 + rig.spec.bypass.compare_flags[0] + 1);
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
fn a_predicate_from_a_vector_compare_has_bypasses_of_its_own() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let by = rig.spec.bypass.compare;
    assert_eq!(rig.time(&[cmpeq(1, 2), sel(1, 2, 1)]), s.vector + 4 + by[2] + 4 + s.vector_commit);
    assert_eq!(rig.time(&[cmpeq(1, 2), pand(3, 1)]), s.vector + 4 + by[3] + 3);
    assert_eq!(rig.time(&[cmpeq(1, 2), ld1d(1, 2, 1, DATA)]), s.vector + 4 + by[1] + s.long);
}

#[test]
fn a_loaded_predicate_reaches_the_predicate_pipe_and_the_vector_pipes_late() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    let (by, load) = (rig.spec.bypass.predicate_load, rig.spec.load_store.load_long);
    assert_eq!(rig.time(&[ldr_p(1, 2, DATA), pand(3, 1)]), s.address + load + by[3] + 3);
    assert_eq!(rig.time(&[ldr_p(1, 2, DATA), sel(1, 2, 1)]), s.address + load + by[2] + 4 + s.vector_commit);
}

#[test]
fn a_gather_within_single_blocks_takes_its_address_path_and_two_flows_of_each_load_pipe() {
    let (mut rig, s) = rig();
    rig.warm([DATA]);
    // Manual, chapter 16: 1 + 3 + 4 for addresses, eleven for the load, one more for the second pair of flows.
    let elements = std::array::from_fn(|i| Some(DATA + 8 * i as u64));
    let cycles = rig.time(&[gather(1, 2, 3, 0, elements), fadd(4, 1)]);
    assert_eq!(cycles, s.integer + 20 + 9 + s.vector_commit);
}
