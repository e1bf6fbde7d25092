//! System instructions, hints, barriers, system registers.

use fxscope_uop::{Access, InstKind, MemOp};

use crate::cpu::{Cpu, Stop, Trap};
use crate::enc;
use crate::memory::{Memory, Touch};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};

/// Encodings of this group.
pub const TABLE: &[Encoding] = &[
    enc!("UDF", "0000000000000000 imm16:16", |_, c| Some(undefined(c, "base:BRK"))),
    base!("SVC", "11010100 000 imm16:16 000 01", svc),
    base!("HVC", "11010100 000 imm16:16 000 10", privileged),
    base!("SMC", "11010100 000 imm16:16 000 11", privileged),
    base!("BRK", "11010100 001 imm16:16 000 00", brk),
    base!("HLT", "11010100 010 imm16:16 000 00", privileged),
    base!("DCPS1", "11010100 101 imm16:16 000 01", privileged),
    base!("DCPS2", "11010100 101 imm16:16 000 10", privileged),
    base!("DCPS3", "11010100 101 imm16:16 000 11", privileged),
    base!("ERET", "1101011 0100 11111 000000 11111 00000", privileged),
    base!("DRPS", "1101011 0101 11111 000000 11111 00000", privileged),
    enc!("HINT", "1101010100 0 00 011 0010 crm:4 op2:3 11111", hint),
    base!("CLREX", "1101010100 0 00 011 0011 crm:4 010 11111", clrex),
    base!("DSB", "1101010100 0 00 011 0011 crm:4 100 11111", barrier),
    base!("DMB", "1101010100 0 00 011 0011 crm:4 101 11111", barrier),
    base!("ISB", "1101010100 0 00 011 0011 crm:4 110 11111", barrier),
    // All of PSTATE that this processor lets be set by MSR (immediate) is for the kernel.
    base!("MSR (immediate)", "1101010100 0 00 op1:3 0100 crm:4 op2:3 11111", privileged),
    base!("SYS", "1101010100 0 01 op1:3 crn:4 crm:4 op2:3 rt:5", sys),
    base!("SYSL", "1101010100 1 01 op1:3 crn:4 crm:4 op2:3 rt:5", privileged),
    base!("MSR (register)", "1101010100 0 1 o0:1 op1:3 crn:4 crm:4 op2:3 rt:5", msr),
    base!("MRS", "1101010100 1 1 o0:1 op1:3 crn:4 crm:4 op2:3 rt:5", mrs),
];

fn system(c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::System;
    d
}

fn exec_nothing(_: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
    Ok(())
}

// ---- exceptions -------------------------------------------------------------------------------

/// An instruction that user code may not execute, and so undefined for it.
fn undefined(c: &Ctx, class: &'static str) -> Decoded {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        Err(cpu.stop(Trap::Undefined))
    }
    let mut d = system(c, class, exec);
    d.info.serialising = true;
    d.ends_block = true;
    d
}

fn privileged(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    Some(undefined(c, class))
}

fn svc(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        // The return from the exception clears the monitor.
        cpu.monitor = None;
        Err(cpu.stop(Trap::SystemCall))
    }
    let mut d = system(c, class, exec);
    d.info.serialising = true;
    d.ends_block = true;
    Some(d)
}

fn brk(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        Err(cpu.stop(Trap::Breakpoint(i.aux)))
    }
    let mut d = system(c, class, exec);
    d.inst.aux = bits(w, 5, 16) as u16;
    d.info.serialising = true;
    d.ends_block = true;
    Some(d)
}

// ---- hints and barriers -----------------------------------------------------------------------

/// All hints do nothing that a program could see; some synchronise the pipeline.
fn hint(w: u32, c: &Ctx) -> Option<Decoded> {
    let class = match bits(w, 5, 7) {
        1 => "base:HINT {YIELD}",
        2 => "base:HINT {WFE}",
        3 => "base:HINT {WFI}",
        4 => "base:HINT {SEV}",
        5 => "base:HINT {SEVL}",
        16 => "base:HINT {ESB}",
        _ => "base:HINT {NOP}",
    };
    let mut d = system(c, class, exec_nothing);
    d.info.serialising = class != "base:HINT {NOP}";
    Some(d)
}

fn clrex(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        cpu.monitor = None;
        Ok(())
    }
    Some(system(c, class, exec))
}

/// DSB, DMB, ISB: execution is in order already, so only timing cares.
fn barrier(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let mut d = system(c, class, exec_nothing);
    d.info.serialising = true;
    Some(d)
}

// ---- cache maintenance ------------------------------------------------------------------------

/// The `op1:CRn:CRm:op2` part of a system instruction or register, as a number.
const fn operation(op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    op1 << 11 | crn << 7 | crm << 3 | op2
}

const DC_ZVA: u32 = operation(3, 7, 4, 1);
const IC_IVAU: u32 = operation(3, 7, 5, 1);
const DC_CVAC: u32 = operation(3, 7, 10, 1);
const DC_CVAU: u32 = operation(3, 7, 11, 1);
const DC_CVAP: u32 = operation(3, 7, 12, 1);
const DC_CIVAC: u32 = operation(3, 7, 14, 1);

/// Line size in the description of `DC ZVA`. What is zeroed follows from `DCZID_EL0`, which decoding does
/// not know; a machine with other lines goes by its own line size.
const ZVA_LINE: u16 = 256;

fn exec_dc_zva(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let bytes = cpu.id.zva_bytes();
    if bytes == 0 {
        return Err(cpu.stop(Trap::Undefined));
    }
    let addr = cpu.x(i.rn) & !(bytes - 1);
    cpu.note(addr);
    mem.zero(addr, bytes).map_err(|fault| cpu.fault(fault))
}

/// Cleaning changes nothing here, but needs the right to read.
fn exec_dc_clean(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let addr = cpu.x(i.rn);
    mem.check(addr, 1, Touch::Read).map_err(|fault| cpu.fault(fault))
}

fn exec_ic_ivau(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
    Err(cpu.stop(Trap::CodeChanged))
}

fn sys(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let mut d = match bits(w, 5, 14) {
        DC_ZVA => {
            let mut d = Decoded::new(c, class, exec_dc_zva);
            d.info.kind = InstKind::Memory;
            d.info.mem = Some(MemOp::single(Access::ZeroLine, ZVA_LINE));
            d
        }
        DC_CVAC | DC_CVAU | DC_CVAP | DC_CIVAC => system(c, class, exec_dc_clean),
        IC_IVAU => {
            let mut d = system(c, class, exec_ic_ivau);
            d.ends_block = true;
            d
        }
        _ => return Some(undefined(c, class)),
    };
    d.inst.rn = d.addr_x(bits(w, 0, 5));
    Some(d)
}

// ---- system registers -------------------------------------------------------------------------

/// The `o0:op1:CRn:CRm:op2` fields of the register of MRS and MSR, as a number.
const fn register(op0: u32, op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    (op0 & 1) << 14 | operation(op1, crn, crm, op2)
}

const NZCV: u32 = register(3, 3, 4, 2, 0);
const FPCR: u32 = register(3, 3, 4, 4, 0);
const FPSR: u32 = register(3, 3, 4, 4, 1);
const TPIDR_EL0: u32 = register(3, 3, 13, 0, 2);

/// FPCR bits this processor has: AHP, DN, FZ, RMode, FZ16. The others read as zero: it does not trap
/// floating-point exceptions.
const FPCR_BITS: u32 = 0x07c8_0000;
/// FPSR bits this processor has: QC, IDC, IXC, UFC, OFC, DZC, IOC. The rest is for AArch32.
const FPSR_BITS: u32 = 0x0800_009f;

/// A handler of MRS that gives the value of an expression in `$cpu`.
macro_rules! reads {
    (|$cpu:ident| $value:expr) => {
        |$cpu, _, i| {
            $cpu.set_x(i.rd, $value);
            Ok(())
        }
    };
}

/// How a register that user code may read is read. Of the identification registers, which belong to
/// the kernel, Linux emulates reads: those it does not describe to user space read as zero.
fn reader(register: u32) -> Option<Exec> {
    const CTR_EL0: u32 = self::register(3, 3, 0, 0, 1);
    const DCZID_EL0: u32 = self::register(3, 3, 0, 0, 7);
    const TPIDRRO_EL0: u32 = self::register(3, 3, 13, 0, 3);
    const CNTFRQ_EL0: u32 = self::register(3, 3, 14, 0, 0);
    const CNTVCT_EL0: u32 = self::register(3, 3, 14, 0, 2);
    const MIDR_EL1: u32 = self::register(3, 0, 0, 0, 0);
    const MPIDR_EL1: u32 = self::register(3, 0, 0, 0, 5);
    const REVIDR_EL1: u32 = self::register(3, 0, 0, 0, 6);
    const ID_AA64PFR0_EL1: u32 = self::register(3, 0, 0, 4, 0);
    const ID_AA64ZFR0_EL1: u32 = self::register(3, 0, 0, 4, 4);
    const ID_AA64ISAR0_EL1: u32 = self::register(3, 0, 0, 6, 0);
    const ID_AA64ISAR1_EL1: u32 = self::register(3, 0, 0, 6, 1);
    const ID_FIRST: u32 = self::register(3, 0, 0, 2, 0);
    const ID_LAST: u32 = self::register(3, 0, 0, 7, 7);
    Some(match register {
        NZCV => reads!(|cpu| u64::from(cpu.nzcv) << 28),
        FPCR => reads!(|cpu| u64::from(cpu.fp.fpcr)),
        FPSR => reads!(|cpu| u64::from(cpu.fp.fpsr)),
        TPIDR_EL0 => reads!(|cpu| cpu.tpidr),
        TPIDRRO_EL0 => reads!(|cpu| cpu.tpidrro),
        CTR_EL0 => reads!(|cpu| cpu.id.ctr),
        DCZID_EL0 => reads!(|cpu| cpu.id.dczid),
        CNTFRQ_EL0 => reads!(|cpu| cpu.counter_hz),
        CNTVCT_EL0 => reads!(|cpu| cpu.counter),
        MIDR_EL1 => reads!(|cpu| cpu.id.midr),
        MPIDR_EL1 => reads!(|cpu| cpu.id.mpidr),
        ID_AA64PFR0_EL1 => reads!(|cpu| cpu.id.pfr0),
        ID_AA64ZFR0_EL1 => reads!(|cpu| cpu.id.zfr0),
        ID_AA64ISAR0_EL1 => reads!(|cpu| cpu.id.isar0),
        ID_AA64ISAR1_EL1 => reads!(|cpu| cpu.id.isar1),
        REVIDR_EL1 | ID_FIRST..=ID_LAST => reads!(|cpu| 0),
        _ => return None,
    })
}

fn mrs(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let number = bits(w, 5, 15);
    let Some(exec) = reader(number) else { return Some(undefined(c, class)) };
    let mut d = system(c, class, exec);
    if number == NZCV {
        d.src_flags();
    }
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn msr(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let number = bits(w, 5, 15);
    let exec: Exec = match number {
        NZCV => |cpu, _, i| {
            cpu.nzcv = (cpu.w(i.rn) >> 28) as u8;
            Ok(())
        },
        FPCR => |cpu, _, i| {
            cpu.fp.fpcr = cpu.w(i.rn) & FPCR_BITS;
            Ok(())
        },
        FPSR => |cpu, _, i| {
            cpu.fp.fpsr = cpu.w(i.rn) & FPSR_BITS;
            Ok(())
        },
        TPIDR_EL0 => |cpu, _, i| {
            cpu.tpidr = cpu.x(i.rn);
            Ok(())
        },
        _ => return Some(undefined(c, class)),
    };
    let mut d = system(c, class, exec);
    d.inst.rn = d.src_x(bits(w, 0, 5));
    if number == NZCV {
        d.dst_flags();
    }
    Some(d)
}
