//! Data processing with immediate.

use crate::cpu::{Cpu, Stop};
use crate::enc;
use crate::insn::alu::{ASR, Add, Adds, Alu, And, Ands, Eor, LSL, LSR, Orr, Sub, Subs, Word, by_width, shift};
use crate::table::{Ctx, Decoded, Encoding, Inst, bits, sbits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
    base!("ADR", "0 immlo:2 10000 immhi:19 rd:5", adr),
    base!("ADRP", "1 immlo:2 10000 immhi:19 rd:5", adrp),
    base!("ADD (immediate)", "sf:1 00 100010 sh:1 imm12:12 rn:5 rd:5", arith::<Add>),
    base!("ADDS (immediate)", "sf:1 01 100010 sh:1 imm12:12 rn:5 rd:5", arith::<Adds>),
    base!("SUB (immediate)", "sf:1 10 100010 sh:1 imm12:12 rn:5 rd:5", arith::<Sub>),
    base!("SUBS (immediate)", "sf:1 11 100010 sh:1 imm12:12 rn:5 rd:5", arith::<Subs>),
    base!("AND (immediate)", "sf:1 00 100100 n:1 immr:6 imms:6 rn:5 rd:5", logical::<And>),
    base!("ORR (immediate)", "sf:1 01 100100 n:1 immr:6 imms:6 rn:5 rd:5", logical::<Orr>),
    base!("EOR (immediate)", "sf:1 10 100100 n:1 immr:6 imms:6 rn:5 rd:5", logical::<Eor>),
    base!("ANDS (immediate)", "sf:1 11 100100 n:1 immr:6 imms:6 rn:5 rd:5", logical::<Ands>),
    base!("MOVN", "sf:1 00 100101 hw:2 imm16:16 rd:5", movn),
    base!("MOVZ", "sf:1 10 100101 hw:2 imm16:16 rd:5", movz),
    base!("MOVK", "sf:1 11 100101 hw:2 imm16:16 rd:5", movk),
    enc!("SBFM", "sf:1 00 100110 n:1 immr:6 imms:6 rn:5 rd:5", sbfm),
    base!("BFM", "sf:1 01 100110 n:1 immr:6 imms:6 rn:5 rd:5", bfm),
    enc!("UBFM", "sf:1 10 100110 n:1 immr:6 imms:6 rn:5 rd:5", ubfm),
    enc!("EXTR", "sf:1 00 100111 n:1 0 rm:5 imms:6 rn:5 rd:5", extr),
];

// ---- constants --------------------------------------------------------------------------------

/// Writes a constant known at decode time to the destination.
fn exec_constant(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    cpu.set_x(i.rd, i.imm as u64);
    Ok(())
}

fn constant(w: u32, c: &Ctx, class: &'static str, value: u64) -> Option<Decoded> {
    let mut d = Decoded::new(c, class, exec_constant);
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.imm = value as i64;
    Some(d)
}

/// Returns the signed 21-bit offset of ADR and ADRP.
fn adr_offset(w: u32) -> u64 {
    (sbits(w, 5, 19) << 2 | i64::from(bits(w, 29, 2))) as u64
}

fn adr(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    constant(w, c, class, c.pc.wrapping_add(adr_offset(w)))
}

fn adrp(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    constant(w, c, class, (c.pc & !0xfff).wrapping_add(adr_offset(w) << 12))
}

/// Returns all ones of the register width.
fn width_mask(w: u32) -> u64 {
    if w >> 31 == 1 { u64::MAX } else { u64::from(u32::MAX) }
}

/// Shift amount and shifted immediate of the move-wide instructions.
fn move_wide(w: u32) -> Option<(u32, u64)> {
    let amount = 16 * bits(w, 21, 2);
    (w >> 31 == 1 || amount < 32).then(|| (amount, u64::from(bits(w, 5, 16)) << amount))
}

fn movz(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (_, value) = move_wide(w)?;
    constant(w, c, class, value)
}

fn movn(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let (_, value) = move_wide(w)?;
    constant(w, c, class, !value & width_mask(w))
}

fn movk(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        cpu.set_x(i.rd, cpu.x(i.rn) & i.imm2 | i.imm as u64);
        Ok(())
    }
    let (amount, value) = move_wide(w)?;
    let mut d = Decoded::new(c, class, exec);
    d.inst.rn = d.acc_x(bits(w, 0, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.imm = value as i64;
    d.inst.imm2 = !(0xffff << amount) & width_mask(w);
    Some(d)
}

// ---- arithmetic and logic ---------------------------------------------------------------------

fn exec_imm<W: Word, Op: Alu>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let (result, flags) = Op::apply(W::read(cpu, i.rn), W::low(i.imm as u64));
    result.write(cpu, i.rd);
    if Op::FLAGS {
        cpu.nzcv = flags;
    }
    Ok(())
}

/// CMP, CMN and TST: only the flags are needed.
fn exec_imm_flags<W: Word, Op: Alu>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    cpu.nzcv = Op::apply(W::read(cpu, i.rn), W::low(i.imm as u64)).1;
    Ok(())
}

fn arith<Op: Alu>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let mut d = Decoded::new(c, class, by_width!(w, exec_imm, Op));
    d.inst.rn = d.src_sp(bits(w, 5, 5));
    d.inst.imm = i64::from(bits(w, 10, 12)) << (12 * bits(w, 22, 1));
    immediate_destination::<Op>(&mut d, w);
    Some(d)
}

fn logical<Op: Alu>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let mask = bit_mask(bits(w, 22, 1), bits(w, 16, 6), bits(w, 10, 6))?;
    if w >> 31 == 0 && bits(w, 22, 1) == 1 {
        return None;
    }
    let mut d = Decoded::new(c, class, by_width!(w, exec_imm, Op));
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.imm = mask as i64;
    immediate_destination::<Op>(&mut d, w);
    Some(d)
}

/// Register 31 as the destination is the stack pointer, or nothing when the flags are set.
fn immediate_destination<Op: Alu>(d: &mut Decoded, w: u32) {
    let rd = bits(w, 0, 5);
    if Op::FLAGS {
        d.inst.rd = d.dst_x(rd);
        d.dst_flags();
        if rd == 31 {
            d.inst.exec = by_width!(w, exec_imm_flags, Op);
        }
    } else {
        d.inst.rd = d.dst_sp(rd);
    }
}

/// Returns the 64-bit mask that a logical immediate encodes (Arm's `DecodeBitMasks`, the `wmask`): a run of `imms + 1` ones
/// within an element, rotated right by `immr`, the element repeated over the register. `None` for reserved encodings.
#[must_use]
pub fn bit_mask(n: u32, immr: u32, imms: u32) -> Option<u64> {
    // The element size is 2^len, len being the position of the highest set bit of n:NOT(imms).
    let len = (n << 6 | (!imms & 0x3f)).checked_ilog2().filter(|&len| len >= 1)?;
    let size = 1u32 << len;
    let (ones, rotation) = ((imms & (size - 1)) + 1, immr & (size - 1));
    if ones == size {
        return None;
    }
    let element = u64::MAX >> (64 - size);
    let run = (1u64 << ones) - 1;
    let mut mask = if rotation == 0 { run } else { (run >> rotation | run << (size - rotation)) & element };
    let mut width = size;
    while width < 64 {
        mask |= mask << width;
        width *= 2;
    }
    Some(mask)
}

// ---- bitfields --------------------------------------------------------------------------------

/// One shift by a constant: LSL, LSR, ASR.
fn exec_shift<W: Word, const KIND: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    shift::<W, KIND>(W::read(cpu, i.rn), u32::from(i.aux)).write(cpu, i.rd);
    Ok(())
}

/// Any other SBFM (`KIND` = ASR) or UBFM (LSR): the field is shifted to the top and from there to its position.
fn exec_field<W: Word, const KIND: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let top = W::read(cpu, i.rn).lsl(u32::from(i.ra));
    shift::<W, KIND>(top, u32::from(i.aux)).write(cpu, i.rd);
    Ok(())
}

/// The operand fields of a bitfield instruction.
struct Field {
    /// Register width in bits.
    width: u32,
    immr: u32,
    imms: u32,
}

impl Field {
    /// Reads the fields; `None` when they do not suit the register width.
    fn read(w: u32) -> Option<Field> {
        let (sf, n) = (w >> 31, bits(w, 22, 1));
        let field = Field { width: 32 << sf, immr: bits(w, 16, 6), imms: bits(w, 10, 6) };
        (sf == n && field.immr < field.width && field.imms < field.width).then_some(field)
    }
    /// Returns the shift amounts: to the left, which moves the field to the top, and back to the right.
    fn shifts(&self) -> (u32, u32) {
        let left = self.width - 1 - self.imms;
        (left, (left + self.immr) % self.width)
    }
    /// Returns whether the field is inserted above zeros (`…BFIZ`), not extracted to bit 0 (`…BFX`).
    fn is_insertion(&self) -> bool {
        self.imms < self.immr
    }
}

fn bitfield_move<const KIND: u8>(w: u32, c: &Ctx, f: &Field, class: &'static str) -> Option<Decoded> {
    let (left, right) = f.shifts();
    let (exec, amount) = match (left, right) {
        (0, n) => (by_width!(w, exec_shift, KIND), n),
        (n, 0) => (by_width!(w, exec_shift, LSL), n),
        (_, n) => (by_width!(w, exec_field, KIND), n),
    };
    let mut d = Decoded::new(c, class, exec);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.ra = left as u8;
    d.inst.aux = amount as u16;
    Some(d)
}

fn sbfm(w: u32, c: &Ctx) -> Option<Decoded> {
    let f = Field::read(w)?;
    let class = match (f.immr, f.imms) {
        (0, imms) if imms == f.width - 1 => "base:SBFM [shift 0]",
        (_, imms) if imms == f.width - 1 => "base:SBFM [otherwise]",
        _ if f.is_insertion() => "base:SBFM {SBFIZ}",
        (0, 7) => "base:SBFM {SXTB}",
        (0, 15) => "base:SBFM {SXTH}",
        (0, 31) => "base:SBFM {SXTW}",
        _ => "base:SBFM {SBFX}",
    };
    bitfield_move::<ASR>(w, c, &f, class)
}

fn ubfm(w: u32, c: &Ctx) -> Option<Decoded> {
    let f = Field::read(w)?;
    let class = match (f.immr, f.imms) {
        (0, imms) if imms == f.width - 1 => "base:UBFM [shift 0]",
        (_, imms) if imms == f.width - 1 => "base:UBFM [otherwise] {LSR (immediate)}",
        (immr, imms) if imms + 1 == immr && f.width - immr <= 4 => "base:UBFM [shift 1-4]",
        (immr, imms) if imms + 1 == immr => "base:UBFM [otherwise] {LSL (immediate)}",
        _ if f.is_insertion() => "base:UBFM {UBFIZ}",
        // Only W registers have these aliases.
        (0, 7) if f.width == 32 => "base:UBFM {UXTB}",
        (0, 15) if f.width == 32 => "base:UBFM {UXTH}",
        (0, 31) => "base:UBFM [zero-extend word]",
        _ => "base:UBFM {UBFX}",
    };
    bitfield_move::<LSR>(w, c, &f, class)
}

fn bfm(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let mask = W::low(i.imm2);
        let moved = W::read(cpu, i.rn).ror(u32::from(i.aux));
        (W::read(cpu, i.ra) & !mask | moved & mask).write(cpu, i.rd);
        Ok(())
    }
    let f = Field::read(w)?;
    let (_, right) = f.shifts();
    let mut d = Decoded::new(c, class, by_width!(w, exec));
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.ra = d.acc_x(bits(w, 0, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.aux = f.immr as u16;
    // The mask of the field's final position: an unsigned move of all ones.
    let (left, ones) = (f.width - 1 - f.imms, width_mask(w));
    d.inst.imm2 = ((ones << left) & ones) >> right;
    Some(d)
}

fn extr(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        W::read(cpu, i.rn).extract(W::read(cpu, i.rm), u32::from(i.aux)).write(cpu, i.rd);
        Ok(())
    }
    let (sf, n, lsb) = (w >> 31, bits(w, 22, 1), bits(w, 10, 6));
    if sf != n || lsb >= 32 << sf {
        return None;
    }
    let same = bits(w, 5, 5) == bits(w, 16, 5);
    let class = if same { "base:EXTR {ROR (immediate)}" } else { "base:EXTR" };
    let mut d = Decoded::new(c, class, by_width!(w, exec));
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rm = d.src_x(bits(w, 16, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d.inst.aux = lsb as u16;
    Some(d)
}
