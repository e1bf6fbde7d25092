//! The registers of the HPC extension, as the specification has them and as user code uses them.

use fxscope_aarch64::hpc::{
    BARRIER_WINDOWS, COUNT, HpcExtension, HpcRegister, INJECTIONS, REGISTERS, StreamDetect, WindowAccess, window_at,
};
use fxscope_aarch64::{Cpu, Trap};

use crate::common::{decoded, no_memory, step};

/// Returns the word of `MSR reg, X0`, or with `read` of `MRS X0, reg`.
fn access([op0, op1, crn, crm, op2]: [u32; 5], read: bool) -> u32 {
    0xd500_0000 | u32::from(read) << 21 | op0 << 19 | op1 << 16 | crn << 12 | crm << 8 | op2 << 5
}

/// Executes `word` with `value` in X0; returns X0 afterwards, or `None` when the word is undefined.
fn run(cpu: &mut Cpu, word: u32, value: u64) -> Option<u64> {
    cpu.x[0] = value;
    match step(word, cpu, &mut no_memory()) {
        Ok(()) => Some(cpu.x[0]),
        Err(_) => {
            assert_eq!(cpu.trap, Trap::Undefined);
            None
        }
    }
}

/// Iterates over all registers except the barrier windows, with their indices.
fn kept() -> impl Iterator<Item = (usize, HpcRegister)> {
    REGISTERS.into_iter().enumerate().filter(|&(place, _)| window_at(place).is_none())
}

/// Names, encodings and writable bits as in the specification.
const SPECIFIED: [(&str, &str, u64); 7] = [
    ("IMP_PF_STREAM_DETECT_CTRL_EL0", "S3_3_C11_C4_0", 0x8cc0_0000_0f0f_0000),
    ("IMP_PF_INJECTION_CTRL0_EL0", "S3_3_C11_C6_0", 0xfc00_0000_01ff_fffc),
    ("IMP_PF_INJECTION_CTRL7_EL0", "S3_3_C11_C6_7", 0xfc00_0000_01ff_fffc),
    ("IMP_PF_INJECTION_DISTANCE5_EL0", "S3_3_C11_C7_5", 0x01ff_fffc_01ff_fffc),
    ("IMP_SCCR_L1_EL0", "S3_3_C11_C8_2", 0x7777),
    ("IMP_SCCR_VSCCR_L2_EL0", "S3_3_C15_C8_2", 0x1f1f),
    ("IMP_BARRIER_LBSY_SYNC_W3_EL0", "S3_3_C15_C15_3", 1),
];

#[test]
fn registers_have_the_encodings_and_reserved_bits_of_the_specification() {
    for (name, encoding, writable) in SPECIFIED {
        let r = REGISTERS.iter().find(|r| r.name == name).expect(name);
        let [op0, op1, crn, crm, op2] = r.encoding;
        assert_eq!(format!("S{op0}_{op1}_C{crn}_C{crm}_{op2}"), encoding, "{name}");
        assert_eq!(r.writable, writable, "{name}");
    }
    assert_eq!(REGISTERS.len(), 23);
}

#[test]
fn user_code_reads_back_what_it_wrote_without_the_reserved_bits_and_nothing_else_changes() {
    let mut cpu = Cpu::new(16);
    let pattern = |place: usize| 0x9e37_79b9_7f4a_7c15_u64.rotate_left(place as u32);
    for (i, r) in kept() {
        assert_eq!(run(&mut cpu, access(r.encoding, true), u64::MAX), Some(0), "{} at reset", r.name);
        run(&mut cpu, access(r.encoding, false), pattern(i)).expect(r.name);
    }
    for (i, r) in kept() {
        assert_eq!(run(&mut cpu, access(r.encoding, true), 0), Some(pattern(i) & r.writable), "{}", r.name);
    }
}

#[test]
fn the_timing_model_reads_each_register_by_its_purpose() {
    let mut hpc = HpcExtension::default();
    (0..COUNT).for_each(|place| hpc.write(place, u64::MAX).expect("may be used"));
    assert_eq!(hpc.stream_detect(), 0x8cc0_0000_0f0f_0000);
    assert_eq!((hpc.l1_sector_ways(), hpc.l2_sector_ways()), (Some([7; 4]), Some([31; 2])));
    for n in 0..INJECTIONS {
        assert_eq!(hpc.injection_ctrl(n), 0xfc00_0000_01ff_fffc);
        assert_eq!(hpc.injection_distance(n), 0x01ff_fffc_01ff_fffc);
    }
}

/// `IMP_SCCR_L1_EL0` and `IMP_SCCR_VSCCR_L2_EL0`.
const SECTORS: [[u32; 5]; 2] = [[3, 3, 11, 8, 2], [3, 3, 15, 8, 2]];

#[test]
fn sector_fields_are_where_the_specification_has_them_and_zero_means_not_set() {
    let mut cpu = Cpu::new(16);
    assert_eq!((cpu.hpc.l1_sector_ways(), cpu.hpc.l2_sector_ways()), (None, None));
    run(&mut cpu, access(SECTORS[0], false), 0x4021).expect("may be written");
    run(&mut cpu, access(SECTORS[1], false), 0x0a04).expect("may be written");
    assert_eq!((cpu.hpc.l1_sector_ways(), cpu.hpc.l2_sector_ways()), (Some([1, 2, 0, 4]), Some([4, 10])));
}

#[test]
fn user_code_reads_the_ways_that_the_kernel_set() {
    let mut cpu = Cpu::new(16);
    cpu.hpc.set_l1_sector_ways([1, 2, 0, 4]);
    cpu.hpc.set_l2_sector_ways([4, 10]);
    assert_eq!(SECTORS.map(|encoding| run(&mut cpu, access(encoding, true), 0)), [Some(0x4021), Some(0x0a04)]);
}

#[test]
fn without_the_sector_cache_only_its_registers_are_undefined_for_user_code() {
    let mut cpu = Cpu::new(16);
    cpu.hpc.disable_sectors();
    for (_, r) in kept() {
        let expected = (!SECTORS.contains(&r.encoding)).then_some(0);
        assert_eq!(run(&mut cpu, access(r.encoding, true), 0), expected, "read {}", r.name);
        assert_eq!(run(&mut cpu, access(r.encoding, false), 0), expected, "write {}", r.name);
    }
}

#[test]
fn the_fields_of_the_stream_register_are_at_the_bits_of_the_specification() {
    let fields = StreamDetect { valid: true, l2_disabled: true, l1_weak: true, l1_dist: 4, ..Default::default() };
    assert_eq!(u64::from(fields), 1 << 63 | 1 << 58 | 1 << 55 | 4 << 24);
    let (_, _, bits) = SPECIFIED[0];
    for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
        assert_eq!(u64::from(StreamDetect::from(1 << bit)), 1 << bit, "bit {bit}");
    }
    assert_eq!(u64::from(StreamDetect::from(!bits)), 0);
}

#[test]
fn an_access_to_a_barrier_window_stops_the_block_and_reports_the_access() {
    let mut cpu = Cpu::new(16);
    for (window, op2) in (0..BARRIER_WINDOWS as u8).zip(0..) {
        for (read, value) in [(true, 0), (false, 1), (false, 2)] {
            let word = access([3, 3, 15, 15, op2], read);
            assert!(decoded(word, cpu.vl).ends_block);
            cpu.x[0] = value;
            assert!(step(word, &mut cpu, &mut no_memory()).is_err());
            let written = WindowAccess::Write { window, value: value & 1 == 1 };
            let expected = if read { WindowAccess::Read { window, into: 0 } } else { written };
            assert_eq!(cpu.trap, Trap::Window(expected));
        }
    }
}

#[test]
fn the_kernels_registers_of_the_extension_are_undefined() {
    // IMP_PF_CTRL, IMP_SCCR_CTRL, IMP_SCCR_ASSIGN, IMP_SCCR_SET0_L2, IMP_BARRIER_CTRL, IMP_BARRIER_BST_BIT,
    // IMP_BARRIER_INIT_SYNC_BB0, IMP_BARRIER_ASSIGN_SYNC_W0, IMP_FJ_TAG_ADDRESS_CTRL (all EL1).
    let kernel = [
        [3, 0, 11, 4, 0],
        [3, 0, 11, 8, 0],
        [3, 0, 11, 8, 1],
        [3, 0, 15, 8, 2],
        [3, 0, 11, 12, 0],
        [3, 0, 11, 12, 4],
        [3, 0, 15, 13, 0],
        [3, 0, 15, 15, 0],
        [3, 0, 11, 2, 0],
    ];
    let mut cpu = Cpu::new(16);
    for encoding in kernel {
        assert_eq!(run(&mut cpu, access(encoding, true), 0), None, "read {encoding:?}");
        assert_eq!(run(&mut cpu, access(encoding, false), 0), None, "write {encoding:?}");
    }
}
