//! The signal frame (`struct rt_sigframe` of arm64 Linux) and the return from it.
//!
//! ```text
//! sp → siginfo_t                 128 bytes
//!      ucontext: flags, link     16
//!                stack_t         24
//!                signal mask     8 (+ 120 unused, + padding to 16)
//!      sigcontext: fault address, x0–x30, sp, pc, pstate
//!                records: fpsimd, esr (for memory faults), sve, end
//!      frame record: x29, x30 of the interrupted code
//! ```

use bytemuck::Pod;
use fxscope_aarch64::Cpu;
use fxscope_aarch64::insn::base_system::{FPCR_BITS, FPSR_BITS};
use fxscope_guestmem::MemFault;
use fxscope_guestmem::Memory;

use super::{Action, AltStack, Origin, SigInfo, flags};
use crate::abi::layout::SIGNAL_RETURN;
use crate::thread::Thread;

const UCONTEXT: usize = 128;
const UC_STACK: usize = UCONTEXT + 16;
const UC_MASK: usize = UCONTEXT + 40;
const SIGCONTEXT: usize = UCONTEXT + 176;
const REGS: usize = SIGCONTEXT + 8;
const SP: usize = SIGCONTEXT + 256;
const PC: usize = SIGCONTEXT + 264;
const PSTATE: usize = SIGCONTEXT + 272;
const RECORDS: usize = SIGCONTEXT + 288;
const RECORD_BYTES: usize = 4096;
/// Size of `struct rt_sigframe` in bytes.
const FRAME: usize = RECORDS + RECORD_BYTES;

const FPSIMD_MAGIC: u32 = 0x4650_8001;
const FPSIMD_BYTES: usize = 528;
const ESR_MAGIC: u32 = 0x4553_5201;
const SVE_MAGIC: u32 = 0x5356_4501;
const SVE_HEADER: usize = 16;

/// `AT_MINSIGSTKSZ`: the frame, its frame record, and alignment. All records fit in the fixed area for vector lengths of up to 64
/// bytes.
pub const MIN_SIGNAL_STACK: u64 = FRAME as u64 + 16 + 16;

/// `mov x8, #139; svc #0`: calls `rt_sigreturn`, in the form that unwinders recognise.
pub const RETURN_CODE: [u32; 2] = [0xd280_1168, 0xd400_0001];

/// Returns the size of the SVE record in bytes for vectors of `vl` bytes.
fn sve_bytes(vl: usize) -> usize {
    (SVE_HEADER + 32 * vl + 17 * (vl / 8)).next_multiple_of(16)
}

fn put<T: Pod>(frame: &mut [u8], at: usize, value: T) {
    frame[at..at + size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
}

fn get<T: Pod>(frame: &[u8], at: usize) -> T {
    bytemuck::pod_read_unaligned(&frame[at..at + size_of::<T>()])
}

/// Pushes the frame for `info` and makes the thread continue at the handler. `mask` is what `rt_sigreturn` restores.
pub(crate) fn push(
    mem: &mut Memory,
    thread: &mut Thread,
    info: &SigInfo,
    action: &Action,
    mask: u64,
) -> Result<(), MemFault> {
    let alt = thread.alt_stack;
    let cpu = &mut thread.cpu;
    let sp = cpu.x(Cpu::SP);
    let on_alt = action.flags & flags::ONSTACK != 0 && alt.flags & AltStack::DISABLED == 0 && !alt.holds(sp);
    let top = if on_alt { alt.start.wrapping_add(alt.bytes) } else { sp };
    let record = (top.wrapping_sub(16)) & !15;
    let base = record.wrapping_sub(FRAME.next_multiple_of(16) as u64);

    let mut frame = vec![0; FRAME];
    frame[..128].copy_from_slice(&info.to_bytes());
    let onstack = if alt.holds(sp) { AltStack::ONSTACK } else { 0 };
    put(&mut frame, UC_STACK, AltStack { flags: alt.flags | onstack, ..alt });
    put(&mut frame, UC_MASK, mask);
    let (address, syndrome) = match info.origin {
        Origin::Fault { address, syndrome } if syndrome != 0 => (address, syndrome),
        _ => (0, 0),
    };
    put(&mut frame, SIGCONTEXT, address);
    for n in 0..31 {
        put(&mut frame, REGS + 8 * usize::from(n), cpu.x(n));
    }
    put(&mut frame, SP, sp);
    put(&mut frame, PC, cpu.pc);
    put(&mut frame, PSTATE, u64::from(cpu.nzcv) << 28);
    save_records(&mut frame[RECORDS..], cpu, syndrome);

    mem.write(record, bytemuck::bytes_of(&[cpu.x(29), cpu.x(30)]))?;
    mem.write(base, &frame)?;

    let restorer = if action.flags & flags::RESTORER != 0 { action.restorer } else { SIGNAL_RETURN };
    cpu.set_x(0, u64::from(info.signal));
    if action.flags & flags::SIGINFO != 0 {
        cpu.set_x(1, base);
        cpu.set_x(2, base.wrapping_add(UCONTEXT as u64));
    }
    cpu.set_x(29, record);
    cpu.set_x(30, restorer);
    cpu.set_x(Cpu::SP, base);
    cpu.pc = action.handler;
    Ok(())
}

fn save_records(area: &mut [u8], cpu: &Cpu, syndrome: u64) {
    put(area, 0, [FPSIMD_MAGIC, FPSIMD_BYTES as u32, cpu.fp.fpsr, cpu.fp.fpcr]);
    for (n, z) in cpu.z.iter().enumerate() {
        put(area, 16 + 16 * n, [z.0[0], z.0[1]]);
    }
    let mut at = FPSIMD_BYTES;
    if syndrome != 0 {
        put(area, at, [ESR_MAGIC, 16]);
        put(area, at + 8, syndrome);
        at += 16;
    }
    let vl = cpu.vl;
    put(area, at, [SVE_MAGIC, sve_bytes(vl) as u32, vl as u32]);
    for (n, z) in cpu.z.iter().enumerate() {
        let start = at + SVE_HEADER + n * vl;
        area[start..start + vl].copy_from_slice(&z.lanes::<u8>()[..vl]);
    }
    let predicates = at + SVE_HEADER + 32 * vl;
    for (n, p) in cpu.p.iter().chain([&cpu.ffr]).enumerate() {
        let start = predicates + n * (vl / 8);
        area[start..start + vl / 8].copy_from_slice(&p.to_le_bytes()[..vl / 8]);
    }
    // The next record is all zero, which marks the end.
}

/// Restores the state from the frame at the stack pointer. `None`: the frame is damaged, and the program
/// gets SIGSEGV.
pub(crate) fn pop(mem: &mut Memory, thread: &mut Thread) -> Option<()> {
    let base = thread.cpu.x(Cpu::SP);
    let mut frame = vec![0; FRAME];
    if base & 15 != 0 || mem.read(base, &mut frame).is_err() {
        return None;
    }
    let cpu = &mut thread.cpu;
    restore_records(&frame[RECORDS..], cpu)?;
    // The handler has dealt with the fault, unless it has raised the signal again.
    thread.fault = thread.fault.filter(|fault| thread.pending.iter().any(|pending| pending.signal == fault.signal));
    for n in 0..31 {
        cpu.set_x(n, get(&frame, REGS + 8 * usize::from(n)));
    }
    cpu.set_x(Cpu::SP, get(&frame, SP));
    cpu.pc = get(&frame, PC);
    cpu.nzcv = (get::<u64>(&frame, PSTATE) >> 28 & 0xf) as u8;
    thread.mask = get::<u64>(&frame, UC_MASK) & !super::UNBLOCKABLE;
    let alt: AltStack = get(&frame, UC_STACK);
    if !thread.alt_stack.holds(thread.cpu.x(Cpu::SP)) {
        thread.alt_stack = AltStack { flags: alt.flags & AltStack::DISABLED, ..alt };
    }
    Some(())
}

fn restore_records(area: &[u8], cpu: &mut Cpu) -> Option<()> {
    let (mut fpsimd, mut sve, mut at) = (None, None, 0);
    loop {
        let [magic, bytes]: [u32; 2] = area.get(at..at + 8).map(|r| get(r, 0))?;
        if magic == 0 && bytes == 0 {
            break;
        }
        let record = area.get(at..at.checked_add(bytes as usize)?)?;
        if bytes < 16 || bytes % 16 != 0 {
            return None;
        }
        match magic {
            FPSIMD_MAGIC if fpsimd.is_none() && bytes as usize == FPSIMD_BYTES => fpsimd = Some(record),
            SVE_MAGIC if sve.is_none() => sve = Some(record),
            ESR_MAGIC => {}
            _ => return None,
        }
        at += bytes as usize;
    }
    let fpsimd = fpsimd?;
    // Without an SVE record, or with an empty one, everything above the SIMD&FP registers is zero.
    let vl = cpu.vl;
    let full = match sve {
        Some(r) if usize::from(get::<u16>(r, 8)) != vl => return None,
        Some(r) if r.len() >= sve_bytes(vl) => Some(r),
        _ => None,
    };
    for n in 0..32 {
        let z = &mut cpu.z[n];
        *z = fxscope_aarch64::Vreg::ZERO;
        if let Some(r) = full {
            let start = SVE_HEADER + n * vl;
            z.lanes_mut::<u8>()[..vl].copy_from_slice(&r[start..start + vl]);
        }
        [z.0[0], z.0[1]] = get(fpsimd, 16 + 16 * n);
    }
    let predicate = |n: usize| {
        let start = SVE_HEADER + 32 * vl + n * (vl / 8);
        let mut bytes = [0; 8];
        if let Some(r) = full {
            bytes[..vl / 8].copy_from_slice(&r[start..start + vl / 8]);
        }
        u64::from_le_bytes(bytes)
    };
    for n in 0..16 {
        cpu.p[n] = predicate(n);
    }
    cpu.ffr = predicate(16);
    let [fpsr, fpcr]: [u32; 2] = get(fpsimd, 8);
    (cpu.fp.fpsr, cpu.fp.fpcr) = (fpsr & FPSR_BITS, fpcr & FPCR_BITS);
    Some(())
}
