//! Which events count an instruction: from its word through decoding and the machine's rows to counts.

use std::collections::BTreeMap;

use fxscope_aarch64::table::{Ctx, decode, encodings};
use fxscope_counts::{Signal, Signals};
use fxscope_isa::{Access, Class, StaticInst};
use fxscope_machine::Spec;
use fxscope_pipeline::bind_block;

fn machine() -> Spec {
    fxscope_machine::load("a64fx", &[]).expect("built in")
}

fn decoded(word: u32) -> Option<StaticInst> {
    decode(word, &Ctx { pc: 0x1_0000, vl: 64 }).map(|d| d.info)
}

/// What one execution of these instructions, one behind the other, counts.
fn counts(infos: &[StaticInst], spec: &Spec) -> Signals {
    let mut block = bind_block(0x1_0000, infos, spec);
    block.count(infos.len());
    let mut signals = Signals::default();
    block.add_mix(&mut signals);
    signals
}

/// What every instruction counts, and operations, which other tests look at.
const COMMON: [Signal; 10] = [
    Signal::InstRetired,
    Signal::EffectiveInst,
    Signal::Uop,
    Signal::FpScaleOps,
    Signal::FpDpScaleOps,
    Signal::FpFixedOps,
    Signal::FpDpFixedOps,
    Signal::DpSpec,
    Signal::SvePredSpec,
    Signal::FlaInactive,
];

/// Instructions, their words, and the events that count them in addition to [`COMMON`].
///
/// The events are those of A64FX PMU events 1.3 and table 14-1 of the microarchitecture manual.
const EXPECTED: &[(&str, u32, &[&str])] = &[
    ("whilelt p0.d, x0, x1", 0x25e1_1400, &["PRD_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("ptest p0, p1.b", 0x2550_c020, &["PRD_SPEC", "SVE_INST_RETIRED"]),
    ("cntd x0", 0x04e0_e3e0, &["SVE_INST_RETIRED"]),
    ("incd x0", 0x04f0_e3e0, &["SVE_INST_RETIRED"]),
    ("compact z0.d, p0, z1.d", 0x05e1_8020, &["FP_MV_SPEC", "IEL_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("ext z0.b, z0.b, z1.b, #8", 0x0521_0020, &["FP_MV_SPEC", "IEL_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("mov z0.d, d1", 0x0528_2020, &["FP_MV_SPEC", "IEL_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("mov z0.d, x0", 0x05e0_3800, &["FP_MV_SPEC", "IEL_SPEC", "IREG_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    (
        "index z0.d, #0, x1",
        0x04e1_4800,
        &["FP_MV_SPEC", "IEL_SPEC", "IREG_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"],
    ),
    (
        "lastb x0, p0, z0.d",
        0x05e1_a000,
        &["FP_MV_SPEC", "IEL_SPEC", "IREG_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"],
    ),
    ("sel z0.d, p0, z1.d, z2.d", 0x05e2_c020, &["FP_MV_SPEC", "IREG_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("fmov d0, x0", 0x9e67_0000, &["FP_MV_SPEC", "IREG_SPEC", "VFP_SPEC"]),
    ("fmov d0, d1", 0x1e60_4020, &["FP_MV_SPEC", "VFP_SPEC"]),
    ("fmla z0.d, p0/m, z1.d, z2.d", 0x65e2_0020, &["FP_FMA_SPEC", "FP_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("frecpe z0.d, z1.d", 0x65ce_3020, &["FP_RECPE_SPEC", "FP_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("fexpa z0.d, z1.d", 0x04e0_b820, &["FP_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED", "SVE_MATH_SPEC"]),
    ("fcmgt p0.d, p0/z, z0.d, z1.d", 0x65c1_4010, &["FP_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("cmpgt p0.d, p0/z, z0.d, z1.d", 0x24c1_8010, &["ASE_SVE_INT_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("fcvtzs z0.d, p0/m, z1.d", 0x65de_a020, &["FP_CVT_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("scvtf d0, x0", 0x9e62_0000, &["FP_CVT_SPEC", "VFP_SPEC"]),
    ("add z0.d, z0.d, z1.d", 0x04e1_0000, &["ASE_SVE_INT_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"]),
    ("add v0.2d, v1.2d, v2.2d", 0x4ee2_8420, &["ASE_SPEC", "ASE_SVE_INT_SPEC", "SIMD_INST_RETIRED"]),
    ("add d0, d1, d2", 0x5ee2_8420, &["ASE_SPEC", "ASE_SVE_INT_SPEC"]),
    ("fadd d0, d1, d2", 0x1e62_2820, &["FP_SPEC", "VFP_SPEC"]),
    ("aese v0.16b, v1.16b", 0x4e28_4820, &["ASE_SPEC", "CRYPTO_SPEC", "SIMD_INST_RETIRED"]),
    (
        "ld1d z0.d, p0/z, [x0, z1.d, lsl #3]",
        0xc5e1_c000,
        &["ASE_SVE_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED", "SVE_LD_GATHER_SPEC"],
    ),
    (
        "ldff1d z0.d, p0/z, [x0, xzr, lsl #3]",
        0xa5ff_6000,
        &["ASE_SVE_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED", "SVE_LDFF_SPEC"],
    ),
    (
        "ldff1d z0.d, p0/z, [x0, z1.d, lsl #3]",
        0xc5e1_e000,
        &["ASE_SVE_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED", "SVE_LDFF_SPEC", "SVE_LD_GATHER_SPEC"],
    ),
    (
        "ld1rd z0.d, p0/z, [x0]",
        0x85c0_e000,
        &["ASE_SVE_LD_SPEC", "BC_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"],
    ),
    (
        "ld3d {z0.d-z2.d}, p0/z, [x0]",
        0xa5c0_e000,
        &["ASE_SVE_LD_MULTI_SPEC", "ASE_SVE_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED"],
    ),
    (
        "ldr z0, [x0]",
        0x8580_4000,
        &["ASE_SVE_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED", "SVE_INST_RETIRED", "SVE_LDR_REG_SPEC"],
    ),
    (
        "str p0, [x0]",
        0xe580_0000,
        &[
            "ASE_SVE_ST_SPEC",
            "SIMD_INST_RETIRED",
            "ST_SPEC",
            "SVE_INST_RETIRED",
            "SVE_STR_PREG_SPEC",
            "SVE_STR_REG_SPEC",
        ],
    ),
    (
        "st1d z0.d, p0, [x0, z1.d, lsl #3]",
        0xe5a1_a000,
        &["ASE_SVE_ST_SPEC", "SIMD_INST_RETIRED", "ST_SPEC", "SVE_INST_RETIRED", "SVE_ST_SCATTER_SPEC"],
    ),
    ("ldr d0, [x0], #8", 0xfc40_8400, &["ASE_SVE_LD_SPEC", "FP_LD_SPEC", "LD_SPEC", "POST_INDEX_SPEC"]),
    ("str q0, [x0, #16]!", 0x3c81_0c00, &["ASE_SVE_ST_SPEC", "FP_ST_SPEC", "PRE_INDEX_SPEC", "ST_SPEC"]),
    ("ld1 {v0.2d}, [x0]", 0x4c40_7c00, &["ASE_SVE_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED"]),
    (
        "ld4 {v0.2d-v3.2d}, [x0]",
        0x4c40_0c00,
        &["ASE_SVE_LD_MULTI_SPEC", "ASE_SVE_LD_SPEC", "LD_SPEC", "SIMD_INST_RETIRED"],
    ),
    ("prfm pldl1keep, [x0]", 0xf980_0000, &["PRF_SPEC"]),
    ("prfd pldl1keep, p0, [x0]", 0x85c0_6000, &["PRF_SPEC", "SVE_INST_RETIRED", "SVE_PRF_CONTIG_SPEC"]),
    ("prfd pldl1keep, p0, [x0, z1.d, lsl #3]", 0xc461_e000, &["PRF_SPEC", "SVE_INST_RETIRED", "SVE_PRF_GATHER_SPEC"]),
    ("dc zva, x0", 0xd50b_7420, &["DCZVA_SPEC", "ST_SPEC"]),
    ("ldxr x0, [x1]", 0xc85f_7c20, &["BASE_LD_REG_SPEC", "LDREX_SPEC", "LD_SPEC"]),
    ("stxr w2, x0, [x1]", 0xc802_7c20, &["BASE_ST_REG_SPEC", "STREX_SPEC", "ST_SPEC"]),
    ("ldadd x0, x1, [x2]", 0xf820_0041, &["BASE_LD_REG_SPEC", "BASE_ST_REG_SPEC", "LD_SPEC", "ST_SPEC"]),
    ("dmb ish", 0xd503_3bbf, &["DMB_SPEC"]),
    ("ret", 0xd65f_03c0, &["BR_PRED", "BR_RETURN_SPEC"]),
];

#[test]
fn each_instruction_is_counted_by_the_events_of_its_classes_and_no_other_once() {
    let spec = machine();
    for (text, word, expected) in EXPECTED {
        let counted = counts(&[decoded(*word).expect(text)], &spec);
        let found = counted.iter().filter(|&(signal, n)| n > 0 && !COMMON.contains(&signal));
        let found: BTreeMap<_, _> = found.map(|(signal, n)| (signal.name(), n)).collect();
        let expected: BTreeMap<_, _> = expected.iter().map(|&name| (name, 1)).collect();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn a_packed_movprfx_is_no_effective_and_no_simd_instruction_but_one_of_sve() {
    let spec = machine();
    // movprfx z0, z1; fmla z0.d, p0/m, z1.d, z2.d
    let counted = counts(&[0x0420_bc20, 0x65e2_0020].map(|word| decoded(word).expect("an instruction")), &spec);
    let expected = [
        (Signal::InstRetired, 2),
        (Signal::EffectiveInst, 1),
        // A packed one counts as a micro-operation, as in measured programs.
        (Signal::Uop, 2),
        (Signal::SveInstRetired, 2),
        (Signal::SimdInstRetired, 1),
        (Signal::SveMovprfxSpec, 1),
        (Signal::SveMovprfxUSpec, 0),
        (Signal::FpFmaSpec, 1),
        // Two operations on each of two elements of 128 bits.
        (Signal::FpDpScaleOps, 4),
    ];
    for (signal, n) in expected {
        assert_eq!(counted.get(signal), n, "{}", signal.name());
    }
}

/// The `i`-th of a fixed sequence of words (`SplitMix64`).
fn word(i: u64) -> u32 {
    let z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as u32
}

/// Random words of every encoding.
fn samples() -> impl Iterator<Item = (&'static str, StaticInst)> {
    encodings().flat_map(|row| {
        let words = (0..64).map(move |i| word(i) & !row.pattern.mask | row.pattern.value);
        words.filter(move |&word| row.matches(word)).filter_map(decoded).map(move |info| (row.name, info))
    })
}

#[test]
fn every_instruction_is_in_one_class_of_the_mix_or_among_the_others() {
    use Signal::*;
    let spec = machine();
    for (name, info) in samples() {
        let c = counts(&[info], &spec);
        let sum = |signals: &[Signal]| signals.iter().map(|&s| c.get(s)).sum::<u64>();
        let classes = [
            FpSpec,
            FpCvtSpec,
            FpMvSpec,
            AseSveIntSpec,
            PrdSpec,
            LdSpec,
            StSpec,
            PrfSpec,
            BrPred,
            CryptoSpec,
            SveMovprfxSpec,
        ];
        // An atomic operation reads and writes.
        let both = info.mem.is_some_and(|op| op.access == Access::Atomic) && !info.classes.has(Class::Exclusive);
        assert!(sum(&classes) <= 1 + u64::from(both), "{name}: {:?}", info.class.name());
        assert_eq!(c.get(LdSpec), sum(&[BaseLdRegSpec, AseSveLdSpec]), "{name}: loads");
        assert_eq!(c.get(StSpec), sum(&[BaseStRegSpec, AseSveStSpec, DczvaSpec]), "{name}: stores");
        assert_eq!(c.get(InstRetired), sum(&[EffectiveInst, SveMovprfxSpec]), "{name}: instructions");
        // First-fault gathers are gathers too.
        let loads =
            sum(&[FpLdSpec, SveLdrRegSpec, BcLdSpec, AseSveLdMultiSpec, SveLdGatherSpec]).max(c.get(SveLdffSpec));
        assert!(loads <= c.get(AseSveLdSpec), "{name}: kinds of vector loads");
        let stores = sum(&[FpStSpec, SveStrRegSpec, AseSveStMultiSpec, SveStScatterSpec]);
        assert!(stores <= c.get(AseSveStSpec), "{name}: kinds of vector stores");
        for (part, whole) in [
            (FpFmaSpec, FpSpec),
            (FpRecpeSpec, FpSpec),
            (SveMathSpec, FpSpec),
            (IelSpec, FpMvSpec),
            (IregSpec, FpMvSpec),
            (SveLdrPregSpec, SveLdrRegSpec),
            (SveStrPregSpec, SveStrRegSpec),
            (SvePredSpec, SveInstRetired),
        ] {
            assert!(c.get(part) <= c.get(whole), "{name}: {} of {}", part.name(), whole.name());
        }
    }
}

#[test]
fn what_has_floating_point_operations_is_a_floating_point_instruction() {
    for (name, info) in samples().filter(|(_, info)| info.fp.per_element > 0) {
        assert!(info.classes.has(Class::FloatingPoint), "{name}");
    }
}

#[test]
fn what_works_on_vector_registers_has_a_class() {
    use fxscope_isa::{InstKind, RegClass};
    for (name, info) in samples() {
        let vector = info.srcs.iter().chain(info.dsts.iter()).any(|reg| reg.class() == RegClass::Vector);
        let computes = matches!(info.kind, InstKind::AdvSimd | InstKind::FpScalar | InstKind::Sve);
        let classes = [Class::FloatingPoint, Class::Conversion, Class::Move, Class::VectorInteger];
        let has = classes.iter().filter(|&&class| info.classes.has(class)).count();
        assert_eq!(has, usize::from(vector && computes), "{name}");
    }
}
