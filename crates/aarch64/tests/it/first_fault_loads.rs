//! SVE loads at the end of mapped memory: first-fault, non-fault, and with inactive elements.

use fxscope_aarch64::cpu::MAX_VL;
use fxscope_aarch64::{Cpu, Stop};
use fxscope_guestmem::{Memory, PAGE, Prot, Segment};

use crate::common::step;

const BASE: u64 = 0x10000;

/// Returns a processor, and one page at [`BASE`] in which byte *i* is *i* modulo 251.
fn machine() -> (Cpu, Memory) {
    let mut mem = Memory::new(4 * PAGE).expect("reserve");
    mem.map(BASE, PAGE, Prot::RW, Segment::Mmap).expect("map");
    for at in 0..PAGE {
        mem.store(BASE + at, (at % 251) as u8).expect("mapped");
    }
    let mut cpu = Cpu::new(MAX_VL);
    cpu.ffr = u64::MAX;
    (cpu, mem)
}

const LDFF1B_Z0_P0_X1: u32 = 0xa41f_6020; // ldff1b {z0.b}, p0/z, [x1]
const LDNF1B_Z0_P0_X1: u32 = 0xa410_a020; // ldnf1b {z0.b}, p0/z, [x1]

#[test]
fn a_first_fault_load_stops_at_the_first_unreadable_byte_and_clears_ffr_from_there() {
    let (mut cpu, mut mem) = machine();
    cpu.x[1] = BASE + PAGE - 20;
    cpu.p[0] = !0xfff; // the first active element is 12
    assert_eq!(step(LDFF1B_Z0_P0_X1, &mut cpu, &mut mem), Ok(()));
    let expected: Vec<u8> =
        (0..64).map(|e| if (12..20).contains(&e) { ((PAGE - 20 + e) % 251) as u8 } else { 0 }).collect();
    assert_eq!(cpu.z(0).lanes::<u8>(), expected);
    assert_eq!(cpu.ffr, 0xf_ffff);
    assert_eq!(cpu.stream(), [BASE + PAGE - 20, !0xfff]);
}

#[test]
fn a_first_fault_load_whose_first_active_element_faults_traps_and_changes_nothing() {
    let (mut cpu, mut mem) = machine();
    cpu.x[1] = BASE + PAGE - 20;
    cpu.p[0] = !0xf_ffff;
    cpu.z[0].0 = [7; 8];
    assert_eq!(step(LDFF1B_Z0_P0_X1, &mut cpu, &mut mem), Err(Stop));
    assert_eq!((cpu.ffr, cpu.z[0].0), (u64::MAX, [7; 8]));
}

#[test]
fn a_non_fault_load_never_traps() {
    let (mut cpu, mut mem) = machine();
    cpu.x[1] = BASE + PAGE - 20;
    cpu.p[0] = !0xf_ffff;
    assert_eq!(step(LDNF1B_Z0_P0_X1, &mut cpu, &mut mem), Ok(()));
    assert_eq!((cpu.ffr, cpu.z[0].0), (0xf_ffff, [0; 8]));
}

#[test]
fn inactive_elements_are_not_read() {
    const LD1D_Z0_P0_X1: u32 = 0xa5e0_a020; // ld1d {z0.d}, p0/z, [x1]
    let (mut cpu, mut mem) = machine();
    cpu.x[1] = BASE + PAGE - 8;
    cpu.p[0] = 1;
    assert_eq!(step(LD1D_Z0_P0_X1, &mut cpu, &mut mem), Ok(()));
    let last = mem.load::<u64>(BASE + PAGE - 8).expect("mapped");
    assert_eq!(cpu.z[0].0, [last, 0, 0, 0, 0, 0, 0, 0]);
    cpu.p[0] = 0x101;
    assert_eq!(step(LD1D_Z0_P0_X1, &mut cpu, &mut mem), Err(Stop));
}
