//! Branches.

use fxscope_isa::{Branch, InstKind, Reg};

use crate::cpu::{Cpu, Stop};
use crate::enc;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits, sbits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
    enc!("B", "000101 imm26:26", b),
    enc!("BL", "100101 imm26:26", bl),
    enc!("B.cond", "01010100 imm19:19 0 cond:4", b_cond),
    enc!("CBZ", "sf:1 0110100 imm19:19 rt:5", cbz),
    enc!("CBNZ", "sf:1 0110101 imm19:19 rt:5", cbnz),
    enc!("TBZ", "b5:1 0110110 b40:5 imm14:14 rt:5", tbz),
    enc!("TBNZ", "b5:1 0110111 b40:5 imm14:14 rt:5", tbnz),
    enc!("BR", "1101011 0000 11111 000000 rn:5 00000", br),
    enc!("BLR", "1101011 0001 11111 000000 rn:5 00000", blr),
    enc!("RET", "1101011 0010 11111 000000 rn:5 00000", ret),
];

/// Decodes a branch of the given kind with `imm` as its absolute target.
fn branch(c: &Ctx, class: &'static str, kind: Branch, exec: Exec, offset: i64) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.inst.imm = c.pc.wrapping_add((offset * 4) as u64) as i64;
    d.inst.imm2 = c.pc.wrapping_add(4);
    d.info.kind = InstKind::Branch;
    d.info.branch = kind;
    d.ends_block = true;
    d
}

fn b(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        cpu.pc = i.imm as u64;
        Ok(())
    }
    Some(branch(c, "base:B", Branch::Direct, exec, sbits(w, 0, 26)))
}

fn bl(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        cpu.set_x(30, i.imm2);
        cpu.pc = i.imm as u64;
        Ok(())
    }
    let mut d = branch(c, "base:BL", Branch::Call, exec, sbits(w, 0, 26));
    d.info.dsts.push(Reg::gpr(30));
    Some(d)
}

fn b_cond(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        if cpu.holds(i.pg) {
            cpu.pc = i.imm as u64;
        }
        Ok(())
    }
    let mut d = branch(c, "base:B.cond", Branch::Conditional, exec, sbits(w, 5, 19));
    d.inst.pg = bits(w, 0, 4) as u8;
    d.src_flags();
    Some(d)
}

/// CBZ and CBNZ: `NONZERO` selects the sense, `X` the width.
fn exec_cb<const NONZERO: bool, const X: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let value = if X { cpu.x(i.rn) } else { u64::from(cpu.w(i.rn)) };
    if (value != 0) == NONZERO {
        cpu.pc = i.imm as u64;
    }
    Ok(())
}

fn cbz(w: u32, c: &Ctx) -> Option<Decoded> {
    let exec = if bits(w, 31, 1) == 1 { exec_cb::<false, true> } else { exec_cb::<false, false> };
    Some(compare_branch(w, c, "base:CBZ", exec))
}

fn cbnz(w: u32, c: &Ctx) -> Option<Decoded> {
    let exec = if bits(w, 31, 1) == 1 { exec_cb::<true, true> } else { exec_cb::<true, false> };
    Some(compare_branch(w, c, "base:CBNZ", exec))
}

fn compare_branch(w: u32, c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = branch(c, class, Branch::Compare, exec, sbits(w, 5, 19));
    d.inst.rn = d.src_x(bits(w, 0, 5));
    d
}

/// TBZ and TBNZ: `NONZERO` selects the sense.
fn exec_tb<const NONZERO: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    if (cpu.x(i.rn) >> i.aux & 1 != 0) == NONZERO {
        cpu.pc = i.imm as u64;
    }
    Ok(())
}

fn tbz(w: u32, c: &Ctx) -> Option<Decoded> {
    Some(test_branch(w, c, "base:TBZ", exec_tb::<false>))
}

fn tbnz(w: u32, c: &Ctx) -> Option<Decoded> {
    Some(test_branch(w, c, "base:TBNZ", exec_tb::<true>))
}

fn test_branch(w: u32, c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = branch(c, class, Branch::Compare, exec, sbits(w, 5, 14));
    d.inst.rn = d.src_x(bits(w, 0, 5));
    d.inst.aux = (bits(w, 31, 1) << 5 | bits(w, 19, 5)) as u16;
    d
}

/// BR, BLR and RET: jump to a register, `LINK` with a return address.
fn exec_jump<const LINK: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    // The top byte of a target in the lower half of the address space (bit 55 clear) is ignored.
    let target = cpu.x(i.rn);
    cpu.pc = target & ((target << 8) as i64 >> 8) as u64;
    if LINK {
        cpu.set_x(30, i.imm2);
    }
    Ok(())
}

fn indirect(w: u32, c: &Ctx, class: &'static str, kind: Branch, exec: Exec) -> Decoded {
    let mut d = branch(c, class, kind, exec, 0);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d
}

fn br(w: u32, c: &Ctx) -> Option<Decoded> {
    Some(indirect(w, c, "base:BR", Branch::Indirect, exec_jump::<false>))
}

fn blr(w: u32, c: &Ctx) -> Option<Decoded> {
    let mut d = indirect(w, c, "base:BLR", Branch::IndirectCall, exec_jump::<true>);
    d.info.dsts.push(Reg::gpr(30));
    Some(d)
}

fn ret(w: u32, c: &Ctx) -> Option<Decoded> {
    Some(indirect(w, c, "base:RET", Branch::Return, exec_jump::<false>))
}
