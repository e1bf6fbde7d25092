//! Exclusive and atomic accesses.

use fxscope_aarch64::{Cpu, Stop, Trap};
use fxscope_guestmem::{Memory, PAGE, Prot, Segment};

use crate::common::step;

fn machine() -> (Cpu, Memory) {
    let mut mem = Memory::new(PAGE).expect("reserve");
    mem.map(PAGE, PAGE, Prot::RW, Segment::Mmap).expect("map");
    let mut cpu = Cpu::new(16);
    cpu.x[1] = PAGE;
    (cpu, mem)
}

const LDXR_X0_X1: u32 = 0xc85f_7c20;
const STXR_W3_X2_X1: u32 = 0xc803_7c22;

#[test]
fn an_exclusive_store_succeeds_once_when_memory_is_unchanged() {
    let (mut cpu, mut mem) = machine();
    cpu.x[2] = 7;
    step(LDXR_X0_X1, &mut cpu, &mut mem).unwrap();
    step(STXR_W3_X2_X1, &mut cpu, &mut mem).unwrap();
    assert_eq!((cpu.x[3], mem.load::<u64>(PAGE)), (0, Ok(7)));
    step(STXR_W3_X2_X1, &mut cpu, &mut mem).unwrap();
    assert_eq!(cpu.x[3], 1);
}

#[test]
fn an_exclusive_store_fails_when_another_thread_has_written() {
    let (mut cpu, mut mem) = machine();
    step(LDXR_X0_X1, &mut cpu, &mut mem).unwrap();
    mem.store(PAGE, 9u64).unwrap();
    step(STXR_W3_X2_X1, &mut cpu, &mut mem).unwrap();
    assert_eq!((cpu.x[3], mem.load::<u64>(PAGE)), (1, Ok(9)));
}

#[test]
fn misaligned_atomics_trap_and_change_nothing() {
    let (mut cpu, mut mem) = machine();
    cpu.x[1] = PAGE + 4;
    let ldadd_x2_x0_x1 = 0xf822_0020;
    assert_eq!(step(ldadd_x2_x0_x1, &mut cpu, &mut mem), Err(Stop));
    assert_eq!((cpu.trap, cpu.x[0]), (Trap::Misaligned(PAGE + 4), 0));
}
