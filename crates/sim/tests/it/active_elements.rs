//! Counts of active elements: from the values of predicates to what the pipes count.
//!
//! A pipe counts 16 for an operation or request whose elements are all active, and their share for another one (A64FX
//! PMU events 1.3). Expectations are sums of that over the instructions of each program.

use fxscope_aarch64::{Cpu, Engine as _, Interpreter};
use fxscope_counts::{Signal, Signals};
use fxscope_guestmem::PAGE;
use fxscope_guestmem::{Memory, Prot, Segment};
use fxscope_memory::Chip;
use fxscope_pipeline::{Pipeline, bind_block};

const CODE: u64 = 0x1_0000;
const DATA: u64 = 0x2_0000;

const RET: u32 = 0xd65f_03c0;
/// st1d z0.d, p0, [x2]
const ST1D: u32 = 0xe5e0_e040;
/// ld1d z3.d, p0/z, [x2]
const LD1D: u32 = 0xa5e0_a043;
/// fmla z4.s, p0/m, z1.s, z2.s
const FMLA_S: u32 = 0x65a2_0024;
/// fmla z12.d, p0/m, z1.d, z2.d
const FMLA_D: u32 = 0x65e2_002c;
/// fadd z5.d, z6.d, z7.d
const FADD: u32 = 0x65c7_00c5;
/// ld1d z8.d, p1/z, [x2, z9.d, lsl #3]
const GATHER: u32 = 0xc5e9_c448;
/// st1d z8.d, p1, [x2, z9.d, lsl #3]
const SCATTER: u32 = 0xe5a9_a448;
/// fcmgt p2.d, p1/z, z0.d, z1.d
const FCMGT: u32 = 0x65c1_4412;
/// ldr d11, [x2]
const LDR_D: u32 = 0xfd40_004b;
/// orr p2.b, p1/z, p0.b, p0.b
const ORR_P: u32 = 0x2580_4402;
/// whilelt p0.d, x0, x1
const WHILELT: u32 = 0x25e1_1400;

/// Predicates with the first `n` elements of 8 bytes active.
fn first(n: u32) -> u64 {
    0x0101_0101_0101_0101 & (1u64 << (8 * n).min(63)).wrapping_sub(1) | if n == 8 { 1 << 56 } else { 0 }
}

/// What the vector pipes, and the load/store pipes, count for active elements.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct Active {
    vector: u64,
    requests: u64,
}

/// Runs `code` once with predicates `p0` and `p1`, and 0 and 3 in x0 and x1.
fn run(code: &[u32], p0: u64, p1: u64) -> (Signals, Active) {
    let mut mem = Memory::new(8 * PAGE).expect("reserve guest memory");
    mem.map(CODE, PAGE, Prot::RX, Segment::Text).expect("map code");
    mem.map(DATA, PAGE, Prot::RW, Segment::Data).expect("map data");
    let bytes: Vec<u8> = code.iter().chain([&RET]).flat_map(|word| word.to_le_bytes()).collect();
    mem.write_privileged(CODE, &bytes).expect("the code page is mapped");
    let mut cpu = Cpu::new(64);
    (cpu.p[0], cpu.p[1]) = (p0, p1);
    (cpu.x[1], cpu.x[2]) = (3, DATA);
    cpu.z[9].0 = [0, 1, 2, 3, 4, 5, 6, 7];

    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    let (mut core, mut chip) = (Pipeline::new(&spec, 0), Chip::new(&spec));
    let mut engine = Interpreter::new(cpu.vl);
    let id = engine.at(CODE, &mut mem).expect("code");
    let outcome = engine.run(id, &mut cpu, &mut mem);
    let block = engine.block(id);
    assert_eq!(outcome.executed, code.len() + 1);
    let mut resolved = bind_block(CODE, &block.infos, &spec);
    if cpu.partials().is_empty() {
        core.run(&mut resolved, outcome.executed, cpu.stream(), cpu.pc, &mut chip);
    } else {
        let left = (cpu.stream(), cpu.partials());
        core.run_partly(&mut resolved, outcome.executed, left, cpu.pc, &mut (), &mut chip);
    }
    resolved.count(outcome.executed);
    let mut c = core.counters();
    resolved.add_mix(&mut c);
    let of = |[val, inactive]: [Signal; 2]| 16 * c.get(val) - c.get(inactive);
    let active = Active {
        vector: of([Signal::FlaVal, Signal::FlaInactive]) + of([Signal::FlbVal, Signal::FlbInactive]),
        requests: of([Signal::L1Pipe0Comp, Signal::L1Pipe0Inactive])
            + of([Signal::L1Pipe1Comp, Signal::L1Pipe1Inactive]),
    };
    (c, active)
}

fn active(code: &[u32], p0: u64, p1: u64) -> Active {
    run(code, p0, p1).1
}

#[test]
fn an_operation_counts_the_share_of_its_active_elements() {
    for n in 0..=8 {
        let expected = Active { vector: 2 * u64::from(n), requests: 0 };
        assert_eq!(active(&[FMLA_D], first(n), 0), expected, "{n} of 8 elements");
    }
    // A predicate for elements of 8 bytes has every second one of 4 bytes active.
    assert_eq!(active(&[FMLA_S], first(8), 0).vector, 8);
}

#[test]
fn operations_without_predicate_and_scalars_count_as_fully_active() {
    assert_eq!(active(&[FADD, LDR_D], 0, 0), Active { vector: 16, requests: 16 });
}

#[test]
fn a_predicate_counts_with_the_value_it_has_where_it_governs() {
    // Full, then three of eight elements.
    assert_eq!(active(&[FMLA_D, WHILELT, FMLA_D], u64::MAX, 0).vector, 16 + 6);
    assert_eq!(active(&[WHILELT, FMLA_D, FADD], u64::MAX, 0).vector, 6 + 16);
}

#[test]
fn the_data_of_a_store_count_nothing_in_fla_and_its_request_counts_what_is_active() {
    let (counted, full) = run(&[ST1D], u64::MAX, 0);
    assert_eq!(counted.get(Signal::FlaVal), 1, "the data's flow");
    assert_eq!(full, Active { vector: 0, requests: 16 });
    assert_eq!(active(&[ST1D], first(4), 0), Active { vector: 0, requests: 8 });
}

#[test]
fn a_load_counts_in_the_pipe_of_its_request_alone() {
    assert_eq!(active(&[LD1D], first(5), 0), Active { vector: 0, requests: 10 });
}

#[test]
fn a_gather_counts_once_in_fla_and_once_as_a_request() {
    assert_eq!(active(&[GATHER], 0, u64::MAX), Active { vector: 16, requests: 16 });
    assert_eq!(active(&[GATHER], 0, first(2)), Active { vector: 4, requests: 4 });
}

#[test]
fn a_scatter_counts_four_times_in_fla_and_twice_as_a_request() {
    // Four flows in FLA, two of them with addresses (manual 16.3, ST1D (scalar plus vector)).
    assert_eq!(active(&[SCATTER], 0, u64::MAX), Active { vector: 64, requests: 32 });
    assert_eq!(active(&[SCATTER], 0, first(2)), Active { vector: 16, requests: 8 });
}

#[test]
fn a_comparison_of_vectors_counts_where_its_vector_part_is() {
    assert_eq!(active(&[FCMGT], 0, first(6)), Active { vector: 12, requests: 0 });
}

#[test]
fn operations_on_predicates_alone_count_no_elements() {
    for n in [0, 3, 8] {
        assert_eq!(active(&[ORR_P], u64::MAX, first(n)), Active { vector: 0, requests: 0 });
    }
}

/// They take seconds each.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn over_random_programs_and_predicates_active_elements_add_up() {
        // For each instruction: operations in the vector pipes and requests that its predicate governs, and others.
        let instructions: [(u32, usize, u64, u64, u64); 9] = [
            (ST1D, 0, 0, 1, 0),
            (LD1D, 0, 0, 1, 0),
            (FMLA_D, 0, 1, 0, 0),
            (FADD, 0, 0, 0, 16),
            (GATHER, 1, 1, 1, 0),
            (SCATTER, 1, 4, 2, 0),
            (FCMGT, 1, 1, 0, 0),
            (LDR_D, 0, 0, 0, 0),
            (FMLA_D, 0, 1, 0, 0),
        ];
        let mut state = 1u64;
        let mut below = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % n
        };
        for round in 0..200 {
            let chosen: Vec<_> = (0..1 + below(40)).map(|_| instructions[below(instructions.len())]).collect();
            let counts = [below(9) as u32, below(9) as u32];
            let share = |p: usize| 2 * u64::from(counts[p]);
            let code: Vec<u32> = chosen.iter().map(|c| c.0).collect();
            let (counted, active) = run(&code, first(counts[0]), first(counts[1]));
            let vector = chosen.iter().map(|&(_, p, operations, _, others)| operations * share(p) + others).sum();
            let scalars = code.iter().filter(|&&word| word == LDR_D).count() as u64;
            let requests = chosen.iter().map(|&(_, p, _, requests, _)| requests * share(p)).sum::<u64>() + 16 * scalars;
            assert_eq!(active, Active { vector, requests }, "round {round}");
            let accesses = [Signal::LdSpec, Signal::StSpec, Signal::SveStScatterSpec].map(|s| counted.get(s));
            let completed = counted.get(Signal::L1Pipe0Comp) + counted.get(Signal::L1Pipe1Comp);
            assert_eq!(completed, accesses.iter().sum::<u64>(), "round {round}: a scatter has two requests");
        }
    }
}
