//! What is not compared, and why. For whole rows, see `fxscope_aarch64::coverage`.

use fxscope_aarch64::hpc::REGISTERS;
use fxscope_aarch64::table::bits;
use fxscope_isa::{Reg, RegClass, StaticInst};

use crate::differential::machine::{Case, End, Outcome};

/// Returns the `op0:op1:CRn:CRm:op2` field of a system instruction or register.
const fn operation(op0: u32, op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    op0 << 14 | op1 << 11 | crn << 7 | crm << 3 | op2
}

/// The system instructions and registers that are compared, whether they have an effect or not: NZCV, FPCR, FPSR, CTR_EL0,
/// DCZID_EL0, DC ZVA, DC CVAC, DC CVAU, DC CIVAC, and some that user code may not use.
///
/// Not compared: IC IVAU stops our block; thread pointers, counters and identification registers have values that Linux, or the
/// program that runs the thread, provides; QEMU's user mode lacks DC CVAP, although its ID_AA64ISAR1_EL1 announces it.
pub const SYSTEM: &[u32] = &[
    operation(3, 3, 4, 2, 0),
    operation(3, 3, 4, 4, 0),
    operation(3, 3, 4, 4, 1),
    operation(3, 3, 0, 0, 1),
    operation(3, 3, 0, 0, 7),
    operation(1, 3, 7, 4, 1),
    operation(1, 3, 7, 10, 1),
    operation(1, 3, 7, 11, 1),
    operation(1, 3, 7, 14, 1),
    operation(1, 0, 7, 6, 2),
    operation(3, 0, 1, 0, 0),
    operation(3, 0, 4, 1, 0),
];

/// Reads of FPCR and FPSR, with the bit that makes them reads: QEMU shows bits that are RES0 (see [`FPCR`]).
pub const READS_STATUS: &[u32] = &[1 << 16 | operation(3, 3, 4, 4, 0), 1 << 16 | operation(3, 3, 4, 4, 1)];

/// Returns whether a word is in the space of system instructions with `op0` other than 0.
pub fn is_system(word: u32) -> bool {
    word & 0xffc0_0000 == 0xd500_0000 && bits(word, 19, 2) != 0
}

/// Returns whether a system instruction or register legitimately exists on one side only.
pub fn system_differs(word: u32) -> bool {
    const DC_CVAP: u32 = operation(1, 3, 7, 12, 1);
    const MDCCSR_EL0: u32 = operation(2, 3, 0, 1, 0);
    const AARCH32_ID: std::ops::RangeInclusive<u32> = operation(3, 0, 0, 2, 0)..=operation(3, 0, 0, 3, 7);
    let what = bits(word, 5, 16);
    let of_hpc_extension = || {
        let encodings = REGISTERS.iter().map(|r| r.encoding);
        encodings.into_iter().any(|[op0, op1, crn, crm, op2]| operation(op0, op1, crn, crm, op2) == what)
    };
    // QEMU's user mode lacks DC CVAP and the HPC extension. Linux denies user code the debug registers (MDSCR_EL1.TDCC) and
    // emulates reads of the AArch32 identification registers.
    is_system(word) && (what == DC_CVAP || what == MDCCSR_EL0 || AARCH32_ID.contains(&what) || of_hpc_extension())
}

/// QEMU's semihosting call, `HLT #0xF000`.
pub const SEMIHOSTING: u32 = 0xd45e_0000;

/// WFE and SEV, which stop our block: they act between threads.
const EVENTS: [u32; 2] = [0xd503_205f, 0xd503_209f];

/// Returns whether a word is compared at all.
pub fn comparable(word: u32) -> bool {
    word != SEMIHOSTING && !EVENTS.contains(&word) && (!is_system(word) || SYSTEM.contains(&bits(word, 5, 16)))
}

/// Returns whether the architecture leaves the behaviour of the word open (CONSTRAINED UNPREDICTABLE).
pub fn unpredictable(word: u32) -> bool {
    let (rt, rn, rt2, rs) = (bits(word, 0, 5), bits(word, 5, 5), bits(word, 10, 5), bits(word, 16, 5));
    let load = bits(word, 22, 1) == 1;
    let simd = bits(word, 26, 1) == 1;
    // Base register updated and transferred by the same instruction.
    let is_base = |r: u32| !simd && r == rn && rn != 31;

    // Load/store pair: equal targets of a load; write-back over a transferred register.
    if word & 0x3a00_0000 == 0x2800_0000 {
        let writeback = bits(word, 23, 1) == 1;
        return (load && rt == rt2) || (writeback && (is_base(rt) || is_base(rt2)));
    }
    // Load/store register, post-indexed and pre-indexed.
    if word & 0x3b20_0400 == 0x3800_0400 {
        return is_base(rt);
    }
    // Exclusives and ordered accesses: operand fields that should be ones. QEMU ignores them.
    if word & 0x3f00_0000 == 0x0800_0000 {
        let ordered = bits(word, 23, 1) == 1;
        let pair = bits(word, 21, 1) == 1;
        let compare_and_swap = pair && (ordered || bits(word, 31, 1) == 0);
        let rs_should_be_one = !compare_and_swap && (load || ordered);
        let rt2_should_be_one = compare_and_swap || !pair;
        if (rs_should_be_one && rs != 31) || (rt2_should_be_one && rt2 != 31) {
            return true;
        }
    }
    // SMULH and UMULH: likewise the field of the absent third operand.
    if word & 0xff60_8000 == 0x9b40_0000 {
        return rt2 != 31;
    }
    // FCMP and FCMPE with zero: the field of the absent second operand should be zero.
    if word & 0xff20_fc0f == 0x1e20_2008 {
        return rs != 0;
    }
    // Exclusives: equal targets of a pair load; status register equal to data or base.
    if word & 0x3f80_0000 == 0x0800_0000 {
        let pair = bits(word, 21, 1) == 1;
        // CASP shares this space (bit 31 clear, bit 21 set) and has no such case.
        if pair && bits(word, 31, 1) == 0 {
            return false;
        }
        return if load { pair && rt == rt2 } else { rs == rt || (pair && rs == rt2) || (rs == rn && rn != 31) };
    }
    false
}

/// Returns whether QEMU 7.2 is wrong about a word that A64FX does not have.
pub fn qemu_mistaken(word: u32) -> bool {
    // It does not check for SVE2 before the integer multiplications by an indexed element (MUL, SMULLB, …).
    let sve2_indexed = word & 0xff20_c000 == 0x4420_c000;
    // It aborts at nonexistent half-precision forms of FABS (scalar), FRECPX (vector) and FSQRT (scalar), and executes one of
    // FNEG (scalar).
    let absent_half_precision =
        matches!(word & 0xffff_fc00, 0x5ef8_f800 | 0x0ef9_f800 | 0x4ef9_f800 | 0x7ef9_f800 | 0x7ef8_f800);
    // It ignores bit 22 of the half-precision FMAXNMV, FMAXV, FMINNMV and FMINV, and of the scalar pairwise forms,
    let across_lanes = word & 0xaf7f_cc00 == 0x0e70_c800;
    // and bit 29 of the half-precision FMOV (vector, immediate).
    let move_immediate = word & 0xbff8_fc00 == 0x2f00_fc00;
    sve2_indexed || absent_half_precision || across_lanes || move_immediate
}

/// The bits of FPCR that are compared: AHP, DN, FZ, RMode, FZ16. QEMU also keeps Stride and Len, which are
/// RES0 on a processor without AArch32.
pub const FPCR: u32 = 0x07c8_0000;
/// The bits of FPSR that are compared: QC and the cumulative exceptions. QEMU also keeps N, Z, C, V, which
/// are RES0 on a processor without AArch32.
pub const FPSR: u32 = 0x0800_009f;

/// Corrects what QEMU 7.2 leaves in the destination of an AdvSIMD instruction above the result, which the architecture clears.
pub fn clear_upper_bits(case: &Case, infos: &[StaticInst], theirs: &mut Outcome) {
    let last = case.words[case.words.len() - 1];
    let data_processing = last & 0x8e00_0000 == 0x0e00_0000;
    let structure = last & 0xbe00_0000 == 0x0c00_0000;
    if theirs.end != End::Completed || !(data_processing || structure) {
        return;
    }
    // FCVTZS (vector, fixed-point, scalar) of half precision: 32 bits are written.
    let only_16_bits = last & 0xfff0_fc00 == 0x5f10_fc00;
    for reg in infos.iter().flat_map(|info| info.dsts.iter()).filter(|r| r.class() == RegClass::Vector) {
        let n = usize::from(reg.0 - Reg::vector(0).0);
        let (before, after) = (&case.state.z[n], &mut theirs.state.z[n]);
        // Widening instructions and loads of one structure, among others, leave the bits above 128.
        if before[2..] == after[2..] {
            after[2..].fill(0);
        }
        if only_16_bits && after[0] == u64::from(i32::from(after[0] as i16) as u32) {
            after[0] &= 0xffff;
        }
    }
}
