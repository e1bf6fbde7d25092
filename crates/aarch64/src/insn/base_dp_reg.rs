//! Data processing with registers.

use crate::cpu::{Cpu, Stop};
use crate::enc;
use crate::insn::alu::{
    ASR, Add, Adds, Alu, And, Ands, Bic, Bics, Eon, Eor, LSL, LSR, Orn, Orr, ROR, Sub, Subs, UNSHIFTED, Word, by_width,
    extend, shift,
};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Timing classes of a form whose cost depends on how the second operand is shifted.
struct ShiftClasses {
    unshifted: &'static str,
    /// LSL by 1 to 4.
    short: &'static str,
    otherwise: &'static str,
}

/// Logical operation on a shifted register.
macro_rules! logical {
    ($name:literal, $pattern:literal, $op:ident) => {
        enc!($name, $pattern, |w, c| {
            let unshifted = concat!("base:", $name, " [amount 0]");
            let otherwise = concat!("base:", $name, " [otherwise]");
            shifted::<$op>(w, c, &ShiftClasses { unshifted, short: otherwise, otherwise })
        })
    };
}

/// Addition or subtraction of a shifted register.
macro_rules! arith {
    ($name:literal, $pattern:literal, $op:ident) => {
        enc!($name, $pattern, |w, c| {
            let unshifted = concat!("base:", $name, " [amount 0]");
            let short = concat!("base:", $name, " [LSL 1-4]");
            let otherwise = concat!("base:", $name, " [otherwise]");
            // Rotation is not available here.
            (bits(w, 22, 2) != 3).then(|| shifted::<$op>(w, c, &ShiftClasses { unshifted, short, otherwise })).flatten()
        })
    };
}

/// Encodings of this group.
pub static TABLE: &[Encoding] = &[
    logical!("AND (shifted register)", "sf:1 00 01010 shift:2 0 rm:5 imm6:6 rn:5 rd:5", And),
    logical!("BIC (shifted register)", "sf:1 00 01010 shift:2 1 rm:5 imm6:6 rn:5 rd:5", Bic),
    enc!("ORR (shifted register)", "sf:1 01 01010 shift:2 0 rm:5 imm6:6 rn:5 rd:5", orr),
    logical!("ORN (shifted register)", "sf:1 01 01010 shift:2 1 rm:5 imm6:6 rn:5 rd:5", Orn),
    logical!("EOR (shifted register)", "sf:1 10 01010 shift:2 0 rm:5 imm6:6 rn:5 rd:5", Eor),
    logical!("EON (shifted register)", "sf:1 10 01010 shift:2 1 rm:5 imm6:6 rn:5 rd:5", Eon),
    logical!("ANDS (shifted register)", "sf:1 11 01010 shift:2 0 rm:5 imm6:6 rn:5 rd:5", Ands),
    logical!("BICS (shifted register)", "sf:1 11 01010 shift:2 1 rm:5 imm6:6 rn:5 rd:5", Bics),
    arith!("ADD (shifted register)", "sf:1 00 01011 shift:2 0 rm:5 imm6:6 rn:5 rd:5", Add),
    arith!("ADDS (shifted register)", "sf:1 01 01011 shift:2 0 rm:5 imm6:6 rn:5 rd:5", Adds),
    arith!("SUB (shifted register)", "sf:1 10 01011 shift:2 0 rm:5 imm6:6 rn:5 rd:5", Sub),
    arith!("SUBS (shifted register)", "sf:1 11 01011 shift:2 0 rm:5 imm6:6 rn:5 rd:5", Subs),
    enc!("ADD (extended register)", "sf:1 00 01011 00 1 rm:5 option:3 imm3:3 rn:5 rd:5", add_extended),
    enc!("ADDS (extended register)", "sf:1 01 01011 00 1 rm:5 option:3 imm3:3 rn:5 rd:5", adds_extended),
    enc!("SUB (extended register)", "sf:1 10 01011 00 1 rm:5 option:3 imm3:3 rn:5 rd:5", sub_extended),
    enc!("SUBS (extended register)", "sf:1 11 01011 00 1 rm:5 option:3 imm3:3 rn:5 rd:5", subs_extended),
    base!("ADC", "sf:1 00 11010000 rm:5 000000 rn:5 rd:5", carry::<false, false>),
    base!("ADCS", "sf:1 01 11010000 rm:5 000000 rn:5 rd:5", carry::<false, true>),
    base!("SBC", "sf:1 10 11010000 rm:5 000000 rn:5 rd:5", carry::<true, false>),
    base!("SBCS", "sf:1 11 11010000 rm:5 000000 rn:5 rd:5", carry::<true, true>),
    base!("CCMN (register)", "sf:1 01 11010010 rm:5 cond:4 00 rn:5 0 nzcv:4", compare_register::<Adds>),
    base!("CCMP (register)", "sf:1 11 11010010 rm:5 cond:4 00 rn:5 0 nzcv:4", compare_register::<Subs>),
    base!("CCMN (immediate)", "sf:1 01 11010010 imm5:5 cond:4 10 rn:5 0 nzcv:4", compare_immediate::<Adds>),
    base!("CCMP (immediate)", "sf:1 11 11010010 imm5:5 cond:4 10 rn:5 0 nzcv:4", compare_immediate::<Subs>),
    base!("CSEL", "sf:1 00 11010100 rm:5 cond:4 00 rn:5 rd:5", select::<SEL>),
    base!("CSINC", "sf:1 00 11010100 rm:5 cond:4 01 rn:5 rd:5", select::<INC>),
    base!("CSINV", "sf:1 10 11010100 rm:5 cond:4 00 rn:5 rd:5", select::<INV>),
    base!("CSNEG", "sf:1 10 11010100 rm:5 cond:4 01 rn:5 rd:5", select::<NEG>),
    base!("RBIT", "sf:1 10 11010110 00000 000000 rn:5 rd:5", one_source::<Rbit>),
    base!("REV16", "sf:1 10 11010110 00000 000001 rn:5 rd:5", one_source::<Rev16>),
    enc!("REV", "sf:1 10 11010110 00000 00001 opc:1 rn:5 rd:5", rev),
    base!("CLZ", "sf:1 10 11010110 00000 000100 rn:5 rd:5", one_source::<Clz>),
    base!("CLS", "sf:1 10 11010110 00000 000101 rn:5 rd:5", one_source::<Cls>),
    enc!("UDIV", "sf:1 00 11010110 rm:5 000010 rn:5 rd:5", udiv),
    enc!("SDIV", "sf:1 00 11010110 rm:5 000011 rn:5 rd:5", sdiv),
    base!("LSLV", "sf:1 00 11010110 rm:5 001000 rn:5 rd:5", variable_shift::<LSL>),
    base!("LSRV", "sf:1 00 11010110 rm:5 001001 rn:5 rd:5", variable_shift::<LSR>),
    base!("ASRV", "sf:1 00 11010110 rm:5 001010 rn:5 rd:5", variable_shift::<ASR>),
    base!("RORV", "sf:1 00 11010110 rm:5 001011 rn:5 rd:5", variable_shift::<ROR>),
    base!("CRC32B", "0 00 11010110 rm:5 010000 rn:5 rd:5", crc::<1, false>),
    base!("CRC32H", "0 00 11010110 rm:5 010001 rn:5 rd:5", crc::<2, false>),
    base!("CRC32W", "0 00 11010110 rm:5 010010 rn:5 rd:5", crc::<4, false>),
    base!("CRC32X", "1 00 11010110 rm:5 010011 rn:5 rd:5", crc::<8, false>),
    base!("CRC32CB", "0 00 11010110 rm:5 010100 rn:5 rd:5", crc::<1, true>),
    base!("CRC32CH", "0 00 11010110 rm:5 010101 rn:5 rd:5", crc::<2, true>),
    base!("CRC32CW", "0 00 11010110 rm:5 010110 rn:5 rd:5", crc::<4, true>),
    base!("CRC32CX", "1 00 11010110 rm:5 010111 rn:5 rd:5", crc::<8, true>),
    enc!("MADD", "sf:1 00 11011000 rm:5 0 ra:5 rn:5 rd:5", madd),
    base!("MSUB", "sf:1 00 11011000 rm:5 1 ra:5 rn:5 rd:5", |w, c, class| {
        Some(multiply(w, c, class, by_width!(w, exec_msub)))
    }),
    enc!("SMADDL", "1 00 11011001 rm:5 0 ra:5 rn:5 rd:5", smaddl),
    base!("SMSUBL", "1 00 11011001 rm:5 1 ra:5 rn:5 rd:5", |w, c, class| {
        Some(multiply(w, c, class, exec_long::<true, true>))
    }),
    base!("SMULH", "1 00 11011010 rm:5 0 11111 rn:5 rd:5", |w, c, class| {
        Some(two_source(w, c, class, exec_high::<true>))
    }),
    enc!("UMADDL", "1 00 11011101 rm:5 0 ra:5 rn:5 rd:5", umaddl),
    base!("UMSUBL", "1 00 11011101 rm:5 1 ra:5 rn:5 rd:5", |w, c, class| {
        Some(multiply(w, c, class, exec_long::<false, true>))
    }),
    base!("UMULH", "1 00 11011110 rm:5 0 11111 rn:5 rd:5", |w, c, class| {
        Some(two_source(w, c, class, exec_high::<false>))
    }),
];

/// An instruction with general-purpose registers `rd`, `rn` and `rm` in their usual places; 31 is zero in each.
fn two_source(w: u32, c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rm = d.src_x(bits(w, 16, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    d
}

// ---- shifted and extended second operand ------------------------------------------------------

fn exec_shifted<W: Word, Op: Alu, const SHIFT: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let b = shift::<W, SHIFT>(W::read(cpu, i.rm), u32::from(i.aux));
    let (result, flags) = Op::apply(W::read(cpu, i.rn), b);
    result.write(cpu, i.rd);
    if Op::FLAGS {
        cpu.nzcv = flags;
    }
    Ok(())
}

/// CMP, CMN and TST of unshifted registers: only the flags are needed.
fn exec_flags<W: Word, Op: Alu>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    cpu.nzcv = Op::apply(W::read(cpu, i.rn), W::read(cpu, i.rm)).1;
    Ok(())
}

fn exec_mov<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    W::read(cpu, i.rm).write(cpu, i.rd);
    Ok(())
}

fn shifted<Op: Alu>(w: u32, c: &Ctx, classes: &ShiftClasses) -> Option<Decoded> {
    let (kind, amount) = (bits(w, 22, 2) as u8, bits(w, 10, 6));
    if w >> 31 == 0 && amount >= 32 {
        return None;
    }
    let class = match (kind, amount) {
        (_, 0) => classes.unshifted,
        (LSL, 1..=4) => classes.short,
        _ => classes.otherwise,
    };
    let exec = match (kind, amount) {
        (_, 0) if Op::FLAGS && bits(w, 0, 5) == 31 => by_width!(w, exec_flags, Op),
        (_, 0) => by_width!(w, exec_shifted, Op, UNSHIFTED),
        (LSL, _) => by_width!(w, exec_shifted, Op, LSL),
        (LSR, _) => by_width!(w, exec_shifted, Op, LSR),
        (ASR, _) => by_width!(w, exec_shifted, Op, ASR),
        _ => by_width!(w, exec_shifted, Op, ROR),
    };
    let mut d = two_source(w, c, class, exec);
    d.inst.aux = amount as u16;
    if Op::FLAGS {
        d.dst_flags();
    }
    Some(d)
}

fn orr(w: u32, c: &Ctx) -> Option<Decoded> {
    let from_zero = bits(w, 5, 5) == 31;
    let unshifted = "base:ORR (shifted register) [amount 0]";
    let otherwise = match from_zero {
        true => "base:ORR (shifted register) [otherwise] {MOV (register)}",
        false => "base:ORR (shifted register) [otherwise]",
    };
    let mut d = shifted::<Orr>(w, c, &ShiftClasses { unshifted, short: otherwise, otherwise })?;
    if from_zero && d.inst.aux == 0 {
        d.inst.exec = by_width!(w, exec_mov);
    }
    Some(d)
}

fn exec_extended<W: Word, Op: Alu, const OPTION: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let b = W::low(extend::<OPTION>(cpu.x(i.rm)) << (i.aux & 7));
    let (result, flags) = Op::apply(W::read(cpu, i.rn), b);
    result.write(cpu, i.rd);
    if Op::FLAGS {
        cpu.nzcv = flags;
    }
    Ok(())
}

/// The case of an extended-register form that decides its timing class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extension {
    /// Neither extended nor shifted.
    Plain,
    /// Extended, not shifted.
    Unshifted,
    /// Shifted.
    Otherwise,
}

/// Reads `option` and `imm3`; `None` for a shift above 4.
fn extension(w: u32) -> Option<Extension> {
    let full_width = if w >> 31 == 1 { 3 } else { 2 };
    match bits(w, 10, 3) {
        0 if bits(w, 13, 2) >= full_width => Some(Extension::Plain),
        0 => Some(Extension::Unshifted),
        1..=4 => Some(Extension::Otherwise),
        _ => None,
    }
}

fn extended<Op: Alu>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = match bits(w, 13, 3) {
        _ if extension(w)? == Extension::Plain => by_width!(w, exec_shifted, Op, UNSHIFTED),
        0 => by_width!(w, exec_extended, Op, 0),
        1 => by_width!(w, exec_extended, Op, 1),
        2 => by_width!(w, exec_extended, Op, 2),
        4 => by_width!(w, exec_extended, Op, 4),
        5 => by_width!(w, exec_extended, Op, 5),
        6 => by_width!(w, exec_extended, Op, 6),
        _ => by_width!(w, exec_extended, Op, 3),
    };
    let mut d = Decoded::new(c, class, exec);
    d.inst.rn = d.src_sp(bits(w, 5, 5));
    d.inst.rm = d.src_x(bits(w, 16, 5));
    d.inst.aux = bits(w, 10, 3) as u16;
    if Op::FLAGS {
        d.inst.rd = d.dst_x(bits(w, 0, 5));
        d.dst_flags();
    } else {
        d.inst.rd = d.dst_sp(bits(w, 0, 5));
    }
    Some(d)
}

fn add_extended(w: u32, c: &Ctx) -> Option<Decoded> {
    let class = match extension(w)? {
        Extension::Plain => "base:ADD (extended register) [amount 0 & full-width extend]",
        _ => "base:ADD (extended register) [otherwise]",
    };
    extended::<Add>(w, c, class)
}

fn sub_extended(w: u32, c: &Ctx) -> Option<Decoded> {
    let class = match extension(w)? {
        Extension::Plain => "base:SUB (extended register) [amount 0 & full-width extend]",
        _ => "base:SUB (extended register) [otherwise]",
    };
    extended::<Sub>(w, c, class)
}

fn adds_extended(w: u32, c: &Ctx) -> Option<Decoded> {
    let class = match extension(w)? {
        Extension::Plain => "base:ADDS (extended register) [amount 0 & full-width extend]",
        Extension::Unshifted => "base:ADDS (extended register) [amount 0]",
        Extension::Otherwise => "base:ADDS (extended register) [otherwise]",
    };
    extended::<Adds>(w, c, class)
}

fn subs_extended(w: u32, c: &Ctx) -> Option<Decoded> {
    let class = match extension(w)? {
        Extension::Plain => "base:SUBS (extended register) [amount 0 & full-width extend]",
        Extension::Unshifted => "base:SUBS (extended register) [amount 0]",
        Extension::Otherwise => "base:SUBS (extended register) [otherwise]",
    };
    extended::<Subs>(w, c, class)
}

// ---- carry, conditional -----------------------------------------------------------------------

/// ADC, ADCS, SBC, SBCS: `INVERT` adds the complement, `FLAGS` sets the flags.
fn carry<const INVERT: bool, const FLAGS: bool>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<W: Word, const INVERT: bool, const FLAGS: bool>(
        cpu: &mut Cpu,
        _: &mut Memory,
        i: &Inst,
    ) -> Result<(), Stop> {
        let b = W::read(cpu, i.rm);
        let (sum, flags) = W::read(cpu, i.rn).add_with_carry(if INVERT { !b } else { b }, cpu.nzcv & 2 != 0);
        sum.write(cpu, i.rd);
        if FLAGS {
            cpu.nzcv = flags;
        }
        Ok(())
    }
    let mut d = two_source(w, c, class, by_width!(w, exec, INVERT, FLAGS));
    d.src_flags();
    if FLAGS {
        d.dst_flags();
    }
    Some(d)
}

/// CCMP and CCMN: the flags of `Op` when the condition holds, else those in the instruction.
fn conditional_compare<W: Word, Op: Alu>(cpu: &mut Cpu, i: &Inst, b: W) -> Result<(), Stop> {
    let flags = Op::apply(W::read(cpu, i.rn), b).1;
    cpu.nzcv = if cpu.holds(i.pg) { flags } else { i.aux as u8 };
    Ok(())
}

fn exec_compare_register<W: Word, Op: Alu>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    conditional_compare::<W, Op>(cpu, i, W::read(cpu, i.rm))
}

fn exec_compare_immediate<W: Word, Op: Alu>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    conditional_compare::<W, Op>(cpu, i, W::low(i.imm as u64))
}

fn compare_register<Op: Alu>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let mut d = comparison(w, c, class, by_width!(w, exec_compare_register, Op));
    d.inst.rm = d.src_x(bits(w, 16, 5));
    Some(d)
}

fn compare_immediate<Op: Alu>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let mut d = comparison(w, c, class, by_width!(w, exec_compare_immediate, Op));
    d.inst.imm = i64::from(bits(w, 16, 5));
    Some(d)
}

fn comparison(w: u32, c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.pg = bits(w, 12, 4) as u8;
    d.inst.aux = bits(w, 0, 4) as u16;
    d.src_flags();
    d.dst_flags();
    d
}

/// What a conditional select does to its second source.
const SEL: u8 = 0;
const INC: u8 = 1;
const INV: u8 = 2;
const NEG: u8 = 3;

fn select<const KIND: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<W: Word, const KIND: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let m = W::read(cpu, i.rm);
        let other = match KIND {
            SEL => m,
            INC => m.plus(W::ONE),
            INV => !m,
            _ => W::ZERO.minus(m),
        };
        let result = if cpu.holds(i.pg) { W::read(cpu, i.rn) } else { other };
        result.write(cpu, i.rd);
        Ok(())
    }
    let mut d = two_source(w, c, class, by_width!(w, exec, KIND));
    d.inst.pg = bits(w, 12, 4) as u8;
    d.src_flags();
    Some(d)
}

// ---- one source -------------------------------------------------------------------------------

/// An operation on one operand.
trait Unary {
    fn apply<W: Word>(a: W) -> W;
}

macro_rules! unary {
    ($($name:ident, |$a:ident| $body:expr;)*) => {$(
        enum $name {}
        impl Unary for $name {
            #[inline(always)]
            fn apply<W: Word>($a: W) -> W {
                $body
            }
        }
    )*};
}

unary! {
    Rbit, |a| a.rbit();
    Rev, |a| a.rev();
    Rev16, |a| W::low((a.widen() & 0x00ff_00ff_00ff_00ff) << 8 | a.widen() >> 8 & 0x00ff_00ff_00ff_00ff);
    Rev32, |a| W::low(a.widen().swap_bytes().rotate_left(32));
    Clz, |a| W::low(u64::from(a.clz()));
    // Bits that differ from the one above; below the sign bit, the first such bit ends the run.
    Cls, |a| W::low(u64::from((a ^ a.asr(1)).clz()) - 1);
}

fn one_source<Op: Unary>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<W: Word, Op: Unary>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        Op::apply(W::read(cpu, i.rn)).write(cpu, i.rd);
        Ok(())
    }
    let mut d = Decoded::new(c, class, by_width!(w, exec, Op));
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rd = d.dst_x(bits(w, 0, 5));
    Some(d)
}

/// REV reverses the whole register; of the 64-bit forms, `opc` = 0 is REV32.
fn rev(w: u32, c: &Ctx) -> Option<Decoded> {
    match (w >> 31, bits(w, 10, 1)) {
        (0, 0) | (1, 1) => one_source::<Rev>(w, c, "base:REV"),
        (1, 0) => one_source::<Rev32>(w, c, "base:REV32"),
        _ => None,
    }
}

// ---- two sources ------------------------------------------------------------------------------

fn udiv(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        W::read(cpu, i.rn).quotient(W::read(cpu, i.rm)).write(cpu, i.rd);
        Ok(())
    }
    let class = if w >> 31 == 1 { "base:UDIV [sf=1]" } else { "base:UDIV [sf=0]" };
    Some(two_source(w, c, class, by_width!(w, exec)))
}

fn sdiv(w: u32, c: &Ctx) -> Option<Decoded> {
    fn exec<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        W::read(cpu, i.rn).signed_quotient(W::read(cpu, i.rm)).write(cpu, i.rd);
        Ok(())
    }
    let class = if w >> 31 == 1 { "base:SDIV [sf=1]" } else { "base:SDIV [sf=0]" };
    Some(two_source(w, c, class, by_width!(w, exec)))
}

fn variable_shift<const KIND: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<W: Word, const KIND: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        shift::<W, KIND>(W::read(cpu, i.rn), cpu.w(i.rm)).write(cpu, i.rd);
        Ok(())
    }
    Some(two_source(w, c, class, by_width!(w, exec, KIND)))
}

/// CRC-32 of each byte value, bit-reversed as in the instructions, for a reversed polynomial.
const fn crc_table(polynomial: u32) -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = crc >> 1 ^ (polynomial * (crc & 1));
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
}

static CRC32: [u32; 256] = crc_table(0xedb8_8320);
static CRC32C: [u32; 256] = crc_table(0x82f6_3b78);

/// CRC32 and CRC32C of `BYTES` bytes.
fn crc<const BYTES: usize, const CASTAGNOLI: bool>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    fn exec<const BYTES: usize, const CASTAGNOLI: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
        let table = if CASTAGNOLI { &CRC32C } else { &CRC32 };
        let data = cpu.x(i.rm).to_le_bytes();
        let step = |crc: u32, &byte: &u8| crc >> 8 ^ table[usize::from(crc as u8 ^ byte)];
        cpu.set_w(i.rd, data[..BYTES].iter().fold(cpu.w(i.rn), step));
        Ok(())
    }
    Some(two_source(w, c, class, exec::<BYTES, CASTAGNOLI>))
}

// ---- three sources ----------------------------------------------------------------------------

fn exec_madd<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    W::read(cpu, i.ra).plus(W::read(cpu, i.rn).times(W::read(cpu, i.rm))).write(cpu, i.rd);
    Ok(())
}

fn exec_mul<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    W::read(cpu, i.rn).times(W::read(cpu, i.rm)).write(cpu, i.rd);
    Ok(())
}

fn exec_msub<W: Word>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    W::read(cpu, i.ra).minus(W::read(cpu, i.rn).times(W::read(cpu, i.rm))).write(cpu, i.rd);
    Ok(())
}

/// SMADDL, SMSUBL, UMADDL, UMSUBL.
fn exec_long<const SIGNED: bool, const SUBTRACT: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let (n, m) = (cpu.w(i.rn), cpu.w(i.rm));
    let product = if SIGNED { (i64::from(n as i32) * i64::from(m as i32)) as u64 } else { u64::from(n) * u64::from(m) };
    let a = cpu.x(i.ra);
    cpu.set_x(i.rd, if SUBTRACT { a.wrapping_sub(product) } else { a.wrapping_add(product) });
    Ok(())
}

/// SMULH, UMULH.
fn exec_high<const SIGNED: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Result<(), Stop> {
    let (n, m) = (cpu.x(i.rn), cpu.x(i.rm));
    let high = if SIGNED {
        ((i128::from(n as i64) * i128::from(m as i64)) >> 64) as u64
    } else {
        ((u128::from(n) * u128::from(m)) >> 64) as u64
    };
    cpu.set_x(i.rd, high);
    Ok(())
}

fn multiply(w: u32, c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = two_source(w, c, class, exec);
    d.inst.ra = d.acc_x(bits(w, 10, 5));
    d
}

fn madd(w: u32, c: &Ctx) -> Option<Decoded> {
    Some(match bits(w, 10, 5) {
        31 => multiply(w, c, "base:MADD {MUL}", by_width!(w, exec_mul)),
        _ => multiply(w, c, "base:MADD", by_width!(w, exec_madd)),
    })
}

fn smaddl(w: u32, c: &Ctx) -> Option<Decoded> {
    let class = if bits(w, 10, 5) == 31 { "base:SMADDL {SMULL}" } else { "base:SMADDL" };
    Some(multiply(w, c, class, exec_long::<true, false>))
}

fn umaddl(w: u32, c: &Ctx) -> Option<Decoded> {
    let class = if bits(w, 10, 5) == 31 { "base:UMADDL {UMULL}" } else { "base:UMADDL" };
    Some(multiply(w, c, class, exec_long::<false, false>))
}
