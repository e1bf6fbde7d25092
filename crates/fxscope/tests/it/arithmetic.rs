//! Arithmetic whose cost depends on its operands.

use crate::common;

use std::fs;

use common::{elf, exit, json, mov, output, place};

const FMOV_D0_X0: u32 = 0x9e67_0000;
/// `fadd d2, d0, d0`
const FADD: u32 = 0x1e60_2802;
/// `fadd d2, d0, d1`
const FADD_TO_ONE: u32 = 0x1e61_2802;
/// `fadd v2.2d, v0.2d, v1.2d`
const FADD_VECTORS: u32 = 0x4e61_d402;
/// `fmax d2, d0, d1`
const FMAX: u32 = 0x1e61_4802;
/// `fcmp d0, d1`
const FCMP: u32 = 0x1e61_2000;
/// `fcvtzs x1, d0`
const FCVTZS: u32 = 0x9e78_0001;
const FMOV_D1_ONE: u32 = 0x1e6e_1001;
/// `movz x0, #0x3ff0, lsl #48`: 1.0 as a double.
const MOV_X0_ONE: u32 = 0xd2e7_fe00;
/// `mov x0, #1`: a denormal double.
const MOV_X0_DENORMAL: u32 = mov(0, 1);
const FPCR_ZERO: u32 = mov(9, 0);
/// `mov x9, #1 << 24`: FPCR.FZ.
const FPCR_FZ: u32 = 0xd2a0_2009;
const MSR_FPCR_X9: u32 = 0xd51b_4409;

/// Returns cycles and waits for SIMD&FP operations of a program that sets FPCR, loads a number into D0 and 1.0 into D1,
/// and executes `operations`.
fn operations(fpcr: u32, number: u32, operations: &[u32]) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let prepare = [fpcr, MSR_FPCR_X9, number, FMOV_D0_X0, FMOV_D1_ONE];
    let code = [&prepare[..], operations, &exit(0)].concat();
    place(folder.path(), "program", &elf(&code));
    let run = output(folder.path(), &["run", "--quiet", "--json", "out.json", "--", "./program"]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let json = json(&fs::read(folder.path().join("out.json")).expect("written"));
    let event = |name: &str| json["regions"][0]["events"][name].as_u64().expect("counted");
    (event("CPU_CYCLES"), event("FL_COMP_WAIT"))
}

/// `stages.denormal` of the built-in machine: 90 cycles for an addition of 9 (manual 6.5.3).
const DENORMAL: u64 = 81;
const N: u64 = 10;

/// A denormal number in `operation` delays everything after it each time.
#[track_caller]
fn holds_up(operation: u32) {
    let (normal, normal_wait) = operations(FPCR_ZERO, MOV_X0_ONE, &[operation; N as usize]);
    let (denormal, denormal_wait) = operations(FPCR_ZERO, MOV_X0_DENORMAL, &[operation; N as usize]);
    let extra = denormal - normal;
    assert!((N * DENORMAL..=N * DENORMAL + 1).contains(&extra), "{extra} cycles more");
    assert_eq!(denormal_wait - normal_wait, N * DENORMAL);
}

#[test]
fn each_operation_with_a_denormal_result_delays_all_later_ones() {
    holds_up(FADD);
}

#[test]
fn each_operation_with_a_denormal_operand_and_a_normal_result_delays_all_later_ones() {
    holds_up(FADD_TO_ONE);
    holds_up(FMAX);
}

#[test]
fn comparisons_and_conversions_of_denormal_numbers_delay_all_later_ones() {
    holds_up(FCMP);
    holds_up(FCVTZS);
}

#[test]
fn vector_operations_with_a_denormal_element_delay_all_later_ones() {
    holds_up(FADD_VECTORS);
}

/// `fadd v2.8h, v0.8h, v0.8h`
const FADD_HALVES: u32 = 0x4e40_1402;
/// `dup v0.8h, w0`
const DUP_HALVES: u32 = 0x4e02_0c00;

#[test]
fn a_vector_operation_is_delayed_once_however_many_of_its_elements_are_denormal() {
    let cycles =
        |spread: &[u32]| operations(FPCR_ZERO, MOV_X0_DENORMAL, &[spread, &[FADD_HALVES; N as usize]].concat()).0;
    const NOP: u32 = 0xd503_201f;
    // One half is denormal, or all eight are.
    assert!(cycles(&[DUP_HALVES]).abs_diff(cycles(&[NOP])) < 20);
}

#[test]
fn an_ordered_sum_is_delayed_for_each_denormal_element() {
    // ptrue p0.d; dup z1.d, x0: eight doubles. fadda d2, p0, d2, z1.d adds one after the other.
    let sum = |number| operations(FPCR_ZERO, number, &[0x25d8_e3e0, 0x05e0_3801, 0x65d8_2022]);
    let extra = sum(MOV_X0_DENORMAL).0 - sum(MOV_X0_ONE).0;
    assert!((8 * DENORMAL..8 * DENORMAL + 40).contains(&extra), "{extra}");
}

#[test]
fn denormals_that_are_flushed_cost_nothing() {
    for operation in [FADD, FADD_TO_ONE, FCMP, FCVTZS] {
        let cycles = |number| operations(FPCR_FZ, number, &[operation; N as usize]);
        assert_eq!(cycles(MOV_X0_DENORMAL), cycles(MOV_X0_ONE));
    }
}
