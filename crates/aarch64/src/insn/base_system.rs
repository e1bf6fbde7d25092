//! System instructions, hints, barriers, system registers.

use fxscope_isa::{Access, InstKind, MemOp};

use crate::cpu::{Cpu, Stop, Trap};
use crate::enc;
use crate::hpc;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::{Memory, Touch};

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
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
    // All of PSTATE that MSR (immediate) can set on this processor is reserved to the kernel.
    base!("MSR (immediate)", "1101010100 0 00 op1:3 0100 crm:4 op2:3 11111", privileged),
    enc!("DC ZVA", "1101010100 0 01 011 0111 0100 001 rt:5", dc_zva),
    enc!("DC CVAC", "1101010100 0 01 011 0111 1010 001 rt:5", dc_clean),
    enc!("DC CVAU", "1101010100 0 01 011 0111 1011 001 rt:5", dc_clean),
    enc!("DC CVAP", "1101010100 0 01 011 0111 1100 001 rt:5", dc_clean),
    enc!("DC CIVAC", "1101010100 0 01 011 0111 1110 001 rt:5", dc_clean),
    enc!("IC IVAU", "1101010100 0 01 011 0111 0101 001 rt:5", ic_ivau),
    enc!("SYS", "1101010100 0 01 op1:3 crn:4 crm:4 op2:3 rt:5", |_, c| Some(undefined(c, "base:SYS")),
        except
        "1101010100 0 01 011 0111 0100 001 xxxxx", "1101010100 0 01 011 0111 1010 001 xxxxx",
        "1101010100 0 01 011 0111 1011 001 xxxxx", "1101010100 0 01 011 0111 1100 001 xxxxx",
        "1101010100 0 01 011 0111 1110 001 xxxxx", "1101010100 0 01 011 0111 0101 001 xxxxx"),
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

/// Decodes an instruction that user code may not execute and that is therefore undefined for it.
fn undefined(c: &Ctx, class: &'static str) -> Decoded {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        Err(cpu.stop(Trap::Undefined))
    }
    let mut d = system(c, class, exec);
    d.info.serialising = true;
    d.info.enters_kernel = true;
    d.ends_block = true;
    d
}

fn privileged(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    Some(undefined(c, class))
}

fn svc(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        // The exception return clears the monitor.
        cpu.monitor = None;
        Err(cpu.stop(Trap::SystemCall))
    }
    let mut d = system(c, class, exec);
    d.info.serialising = true;
    d.info.enters_kernel = true;
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
    d.info.enters_kernel = true;
    d.ends_block = true;
    Some(d)
}

// ---- hints and barriers -----------------------------------------------------------------------

/// The hint with which `include/fxscope.h` marks regions; a NOP on the processor. It ends its block, so that the code after it is
/// counted separately.
const MARK: u32 = 127;

/// Hints change no general-purpose register; some synchronise the pipeline, and some send or wait for events.
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
    let exec = match bits(w, 5, 7) {
        2 => wait_for_event,
        4 => send_event,
        5 => send_event_locally,
        _ => exec_nothing,
    };
    let mut d = system(c, class, exec);
    d.info.serialising = class != "base:HINT {NOP}";
    d.info.synchronises = matches!(bits(w, 5, 7), 2 | 4);
    d.ends_block = d.info.synchronises || bits(w, 5, 7) == MARK;
    Some(d)
}

/// WFE: continues at once if an event has occurred since the last one.
fn wait_for_event(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
    if std::mem::take(&mut cpu.event) { Ok(()) } else { Err(cpu.stop(Trap::WaitForEvent)) }
}

/// SEV: an event for every core.
fn send_event(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
    Err(cpu.stop(Trap::SendEvent))
}

/// SEVL: an event for this core.
fn send_event_locally(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
    cpu.event = true;
    Ok(())
}

fn clrex(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        cpu.monitor = None;
        Ok(())
    }
    Some(system(c, class, exec))
}

/// DSB, DMB, ISB: execution is already in order, so they affect only timing.
fn barrier(_: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let mut d = system(c, class, exec_nothing);
    d.info.serialising = true;
    d.info.synchronises = true;
    Some(d)
}

// ---- cache maintenance ------------------------------------------------------------------------

/// Line size in the description of `DC ZVA`. `DCZID_EL0`, which decoding does not know, determines what is zeroed; a machine with
/// other lines uses its own line size.
const ZVA_LINE: u16 = 256;

fn dc_zva(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let bytes = cpu.id.zva_bytes();
        if bytes == 0 {
            return Err(cpu.stop(Trap::Undefined));
        }
        let addr = cpu.x(i.rn) & !(bytes - 1);
        cpu.note(addr);
        mem.zero(addr, bytes).map_err(|fault| cpu.fault(fault))
    }
    let mut d = Decoded::new(c, "base:SYS", exec);
    d.info.kind = InstKind::Memory;
    d.info.mem = Some(MemOp::single(Access::ZeroLine, ZVA_LINE));
    d.inst.rn = d.addr_x(bits(w, 0, 5));
    Some(d)
}

/// Cleaning by address has no effect here, but requires read permission.
fn dc_clean(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Result<(), Stop> {
        mem.check(cpu.x(i.rn), 1, Touch::Read).map_err(|fault| cpu.fault(fault))
    }
    let mut d = system(c, "base:SYS", exec);
    d.inst.rn = d.addr_x(bits(w, 0, 5));
    Some(d)
}

fn ic_ivau(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Result<(), Stop> {
        Err(cpu.stop(Trap::CodeChanged))
    }
    let mut d = system(c, "base:SYS", exec);
    d.addr_x(bits(w, 0, 5));
    d.ends_block = true;
    Some(d)
}

// ---- system registers -------------------------------------------------------------------------

/// Returns the `o0:op1:CRn:CRm:op2` fields of the register of MRS and MSR, as a number.
const fn register(op0: u32, op1: u32, crn: u32, crm: u32, op2: u32) -> u32 {
    (op0 & 1) << 14 | op1 << 11 | crn << 7 | crm << 3 | op2
}

const NZCV: u32 = register(3, 3, 4, 2, 0);
const FPCR: u32 = register(3, 3, 4, 4, 0);
const FPSR: u32 = register(3, 3, 4, 4, 1);
const TPIDR_EL0: u32 = register(3, 3, 13, 0, 2);

/// FPCR bits this processor has: AHP, DN, FZ, RMode, FZ16. The others read as zero: it does not trap
/// floating-point exceptions.
pub const FPCR_BITS: u32 = 0x07c8_0000;
/// FPSR bits this processor has: QC, IDC, IXC, UFC, OFC, DZC, IOC. The rest is for AArch32.
pub const FPSR_BITS: u32 = 0x0800_009f;

/// An MRS handler that returns the value of an expression in `$cpu`.
macro_rules! reads {
    (|$cpu:ident| $value:expr) => {
        |$cpu, _, i| {
            $cpu.set_x(i.rd, $value);
            Ok(())
        }
    };
}

const CNTVCT_EL0: u32 = self::register(3, 3, 14, 0, 2);

/// Returns the MRS handler of a register that user code may read. Linux emulates reads of the kernel's identification registers:
/// those it does not describe to user space read as zero.
fn reader(register: u32) -> Option<Exec> {
    const CTR_EL0: u32 = self::register(3, 3, 0, 0, 1);
    const DCZID_EL0: u32 = self::register(3, 3, 0, 0, 7);
    const TPIDRRO_EL0: u32 = self::register(3, 3, 13, 0, 3);
    const PMUSERENR_EL0: u32 = self::register(3, 3, 9, 14, 0);
    const CNTFRQ_EL0: u32 = self::register(3, 3, 14, 0, 0);
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
        // Linux gives user code no access to performance counters, and this register shows it.
        PMUSERENR_EL0 => reads!(|cpu| 0),
        REVIDR_EL1 | ID_FIRST..=ID_LAST => reads!(|cpu| 0),
        _ => return None,
    })
}

/// Returns the index of a register among those of the HPC extension.
fn hpc_place(number: u32) -> Option<usize> {
    hpc::REGISTERS.iter().position(|r| {
        let [op0, op1, crn, crm, op2] = r.encoding;
        register(op0, op1, crn, crm, op2) == number
    })
}

/// MRS of a register of the HPC extension; undefined if the kernel does not allow user access.
fn read_hpc(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let value = cpu.hpc.read(usize::from(i.aux)).ok_or_else(|| cpu.stop(Trap::Undefined))?;
    cpu.set_x(i.rd, value);
    Ok(())
}

/// MRS of a window of the hardware barrier.
fn read_window(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    Err(cpu.stop(Trap::Window(hpc::WindowAccess::Read { window: i.aux as u8, into: i.rd })))
}

/// MSR of a window of the hardware barrier.
fn write_window(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let value = cpu.x(i.rn) & 1 == 1;
    Err(cpu.stop(Trap::Window(hpc::WindowAccess::Write { window: i.aux as u8, value })))
}

fn mrs(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let number = bits(w, 5, 15);
    if let Some(place) = hpc_place(number) {
        let window = hpc::window_at(place);
        let mut d = system(c, class, if window.is_some() { read_window } else { read_hpc });
        d.inst.aux = window.map_or(place as u16, u16::from);
        d.ends_block = window.is_some();
        d.info.synchronises = window.is_some();
        d.inst.rd = d.dst_x(bits(w, 0, 5));
        return Some(d);
    }
    let Some(exec) = reader(number) else { return Some(undefined(c, class)) };
    let mut d = system(c, class, exec);
    d.info.reads_time = number == CNTVCT_EL0;
    if number == NZCV {
        d.src_flags();
    }
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

fn msr(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let number = bits(w, 5, 15);
    let hpc_place = hpc_place(number);
    let window = hpc_place.and_then(hpc::window_at);
    let exec: Exec = match number {
        _ if window.is_some() => write_window,
        _ if hpc_place.is_some() => |cpu, _, i| {
            let value = cpu.x(i.rn);
            cpu.hpc.write(usize::from(i.aux), value).ok_or_else(|| cpu.stop(Trap::Undefined))
        },
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
    d.inst.aux = window.map_or(hpc_place.unwrap_or(0) as u16, u16::from);
    d.ends_block = window.is_some();
    d.info.synchronises = window.is_some();
    d.inst.rn = d.src_x(bits(w, 0, 5));
    if number == NZCV {
        d.dst_flags();
    }
    Some(d)
}
