//! System registers that user code reads and writes.

use fxscope_aarch64::{Cpu, Stop, Trap};

use crate::common::{no_memory, step};

fn run(word: u32, cpu: &mut Cpu) -> Result<(), Stop> {
    step(word, cpu, &mut no_memory())
}

#[test]
fn flags_are_the_top_four_bits_of_nzcv() {
    let (msr_nzcv_x0, mrs_x1_nzcv) = (0xd51b_4200, 0xd53b_4201);
    let mut cpu = Cpu::new(16);
    cpu.x[0] = 0xffff_ffff_a000_0000;
    run(msr_nzcv_x0, &mut cpu).unwrap();
    assert_eq!(cpu.nzcv, 0b1010);
    run(mrs_x1_nzcv, &mut cpu).unwrap();
    assert_eq!(cpu.x[1], 0xa000_0000);
}

#[test]
fn control_and_status_bits_that_do_not_exist_read_as_zero() {
    let (msr_fpcr_x0, mrs_x1_fpcr) = (0xd51b_4400, 0xd53b_4401);
    let (msr_fpsr_x0, mrs_x2_fpsr) = (0xd51b_4420, 0xd53b_4422);
    let mut cpu = Cpu::new(16);
    cpu.x[0] = u64::MAX;
    for word in [msr_fpcr_x0, mrs_x1_fpcr, msr_fpsr_x0, mrs_x2_fpsr] {
        run(word, &mut cpu).unwrap();
    }
    assert_eq!((cpu.x[1], cpu.x[2]), (0x07c8_0000, 0x0800_009f));
}

#[test]
fn the_thread_pointer_is_writable_and_its_read_only_twin_is_not() {
    let (msr_tpidr_x0, mrs_x1_tpidr, msr_tpidrro_x0) = (0xd51b_d040, 0xd53b_d041, 0xd51b_d060);
    let mut cpu = Cpu::new(16);
    cpu.x[0] = 0x1234_5678_9abc;
    run(msr_tpidr_x0, &mut cpu).unwrap();
    run(mrs_x1_tpidr, &mut cpu).unwrap();
    assert_eq!(cpu.x[1], cpu.x[0]);
    assert_eq!((run(msr_tpidrro_x0, &mut cpu), cpu.trap), (Err(Stop), Trap::Undefined));
}

#[test]
fn user_code_reads_the_identification_registers_that_linux_emulates() {
    let (mrs_x0_midr, mrs_x0_isar1, mrs_x0_mmfr0, mrs_x0_pmuserenr, mrs_x0_pmccntr, mrs_x0_sctlr) =
        (0xd538_0000, 0xd538_0620, 0xd538_0700, 0xd53b_9e00, 0xd53b_9d00, 0xd538_1000);
    let mut cpu = Cpu::new(16);
    (cpu.id.midr, cpu.id.isar1, cpu.x[0]) = (0x461f_0010, 0x0001_0001, 1);
    run(mrs_x0_midr, &mut cpu).unwrap();
    assert_eq!(cpu.x[0], cpu.id.midr);
    run(mrs_x0_isar1, &mut cpu).unwrap();
    assert_eq!(cpu.x[0], cpu.id.isar1);
    for word in [mrs_x0_mmfr0, mrs_x0_pmuserenr] {
        cpu.x[0] = 1;
        run(word, &mut cpu).unwrap();
        assert_eq!(cpu.x[0], 0);
    }
    for word in [mrs_x0_pmccntr, mrs_x0_sctlr] {
        assert_eq!((run(word, &mut cpu), cpu.trap), (Err(Stop), Trap::Undefined));
    }
}
