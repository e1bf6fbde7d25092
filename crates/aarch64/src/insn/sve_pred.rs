//! SVE predicates: initialisation, logic, partition breaks, loop control, the first-fault register.

use fxscope_isa::Reg;

use super::sve_common::{
    Classes, Done, ELEMENT_BITS, first_elements, low_bits, pattern_elements, predicate_test, size, sve_predicate,
};
use super::sve_element::Int;
use crate::cpu::Cpu;
use crate::sve;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    // Initialisation and tests.
    sve!("PTRUE", "00100101 size:2 011 000 111000 pattern:5 0 Pd:4", ptrue, constant as Exec),
    sve!("PTRUES", "00100101 size:2 011 001 111000 pattern:5 0 Pd:4", ptrue, constant_flags as Exec),
    sve!("PFALSE", "00100101 00 011 000 111001 000000 Pd:4", pfalse, constant as Exec),
    sve!("PTEST", "00100101 01 010000 11 Pg:4 0 Pn:4 00000", ptest, ptest_exec as Exec),
    sve!("PFIRST", "00100101 01 011 000 11000 00 Pg:4 0 Pdn:4", pfirst, pfirst_exec as Exec),
    sve!("PNEXT", "00100101 size:2 011 001 11000 10 Pg:4 0 Pdn:4", pnext, pnext_exec as Exec),
    // Logic.
    sve!("AND (predicates)", "00100101 0 0 00 Pm:4 01 Pg:4 0 Pn:4 0 Pd:4", logic::<false>, logical::<And, false> as Exec),
    sve!("BIC (predicates)", "00100101 0 0 00 Pm:4 01 Pg:4 0 Pn:4 1 Pd:4", logic::<false>, logical::<Bic, false> as Exec),
    sve!("EOR (predicates)", "00100101 0 0 00 Pm:4 01 Pg:4 1 Pn:4 0 Pd:4", logic::<false>, logical::<Eor, false> as Exec),
    sve!("SEL (predicates)", "00100101 0 0 00 Pm:4 01 Pg:4 1 Pn:4 1 Pd:4", logic::<false>, sel as Exec),
    sve!("ANDS (predicates)", "00100101 0 1 00 Pm:4 01 Pg:4 0 Pn:4 0 Pd:4", logic::<true>, logical::<And, true> as Exec),
    sve!("BICS (predicates)", "00100101 0 1 00 Pm:4 01 Pg:4 0 Pn:4 1 Pd:4", logic::<true>, logical::<Bic, true> as Exec),
    sve!("EORS", "00100101 0 1 00 Pm:4 01 Pg:4 1 Pn:4 0 Pd:4", logic::<true>, logical::<Eor, true> as Exec),
    sve!("ORR (predicates)", "00100101 1 0 00 Pm:4 01 Pg:4 0 Pn:4 0 Pd:4", logic::<false>, logical::<Orr, false> as Exec),
    sve!("ORN (predicates)", "00100101 1 0 00 Pm:4 01 Pg:4 0 Pn:4 1 Pd:4", logic::<false>, logical::<Orn, false> as Exec),
    sve!("NOR", "00100101 1 0 00 Pm:4 01 Pg:4 1 Pn:4 0 Pd:4", logic::<false>, logical::<Nor, false> as Exec),
    sve!("NAND", "00100101 1 0 00 Pm:4 01 Pg:4 1 Pn:4 1 Pd:4", logic::<false>, logical::<Nand, false> as Exec),
    sve!("ORRS", "00100101 1 1 00 Pm:4 01 Pg:4 0 Pn:4 0 Pd:4", logic::<true>, logical::<Orr, true> as Exec),
    sve!("ORNS", "00100101 1 1 00 Pm:4 01 Pg:4 0 Pn:4 1 Pd:4", logic::<true>, logical::<Orn, true> as Exec),
    sve!("NORS", "00100101 1 1 00 Pm:4 01 Pg:4 1 Pn:4 0 Pd:4", logic::<true>, logical::<Nor, true> as Exec),
    sve!("NANDS", "00100101 1 1 00 Pm:4 01 Pg:4 1 Pn:4 1 Pd:4", logic::<true>, logical::<Nand, true> as Exec),
    // Partition breaks.
    sve!("BRKA", "00100101 0 0 010000 01 Pg:4 0 Pn:4 M:1 Pd:4", brk::<false>, brk_exec::<true, false> as Exec),
    sve!("BRKAS", "00100101 0 1 010000 01 Pg:4 0 Pn:4 0 Pd:4", brk::<true>, brk_exec::<true, true> as Exec),
    sve!("BRKB", "00100101 1 0 010000 01 Pg:4 0 Pn:4 M:1 Pd:4", brk::<false>, brk_exec::<false, false> as Exec),
    sve!("BRKBS", "00100101 1 1 010000 01 Pg:4 0 Pn:4 0 Pd:4", brk::<true>, brk_exec::<false, true> as Exec),
    sve!("BRKPA", "00100101 0 0 00 Pm:4 11 Pg:4 0 Pn:4 0 Pd:4", logic::<false>, brkp::<true, false> as Exec),
    sve!("BRKPB", "00100101 0 0 00 Pm:4 11 Pg:4 0 Pn:4 1 Pd:4", logic::<false>, brkp::<false, false> as Exec),
    sve!("BRKPAS", "00100101 0 1 00 Pm:4 11 Pg:4 0 Pn:4 0 Pd:4", logic::<true>, brkp::<true, true> as Exec),
    sve!("BRKPBS", "00100101 0 1 00 Pm:4 11 Pg:4 0 Pn:4 1 Pd:4", logic::<true>, brkp::<false, true> as Exec),
    sve!("BRKN", "00100101 0 0 011000 01 Pg:4 0 Pn:4 0 Pdm:4", brkn::<false>, brkn_exec::<false> as Exec),
    sve!("BRKNS", "00100101 0 1 011000 01 Pg:4 0 Pn:4 0 Pdm:4", brkn::<true>, brkn_exec::<true> as Exec),
    // First-fault register.
    sve!("RDFFR (unpredicated)", "00100101 00 011 001 1111 0000000 0 Pd:4", rdffr, rdffr_exec as Exec),
    sve!("RDFFR (predicated)", "00100101 00 011 000 1111 000 Pg:4 0 Pd:4", rdffr_predicated::<false>, rdffr_under::<false> as Exec),
    sve!("RDFFRS", "00100101 01 011 000 1111 000 Pg:4 0 Pd:4", rdffr_predicated::<true>, rdffr_under::<true> as Exec),
    sve!("SETFFR", "00100101 00 1011001001 0000 0000 0000", setffr, setffr_exec as Exec),
    sve!("WRFFR", "00100101 00 101000 1001 000 Pn:4 00000", wrffr, wrffr_exec as Exec),
    // Loop control.
    sve!("WHILELT", "00100101 size:2 1 Rm:5 000 sf:1 01 Rn:5 0 Pd:4", whilel, [while_exec::<i32, false> as Exec, while_exec::<i64, false>]),
    sve!("WHILELE", "00100101 size:2 1 Rm:5 000 sf:1 01 Rn:5 1 Pd:4", whilel, [while_exec::<i32, true> as Exec, while_exec::<i64, true>]),
    sve!("WHILELO", "00100101 size:2 1 Rm:5 000 sf:1 11 Rn:5 0 Pd:4", whilel, [while_exec::<u32, false> as Exec, while_exec::<u64, false>]),
    sve!("WHILELS", "00100101 size:2 1 Rm:5 000 sf:1 11 Rn:5 1 Pd:4", whilel, [while_exec::<u32, true> as Exec, while_exec::<u64, true>]),
    sve!("CTERMEQ", "00100101 1 sz:1 1 Rm:5 001000 Rn:5 0 0000", cterm, [cterm_exec::<false, false> as Exec, cterm_exec::<false, true>]),
    sve!("CTERMNE", "00100101 1 sz:1 1 Rm:5 001000 Rn:5 1 0000", cterm, [cterm_exec::<true, false> as Exec, cterm_exec::<true, true>]),
];

/// Returns all predicate bits at the vector length of `c`.
fn all_bits(c: &Ctx) -> u64 {
    low_bits(c.vl as u64)
}

// ---- Initialisation and tests ----

/// `Pd = imm2`.
fn constant(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.set_p(i.rd, i.imm2);
    Ok(())
}

/// `Pd = imm2`, with flags `aux`.
fn constant_flags(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.set_p(i.rd, i.imm2);
    cpu.nzcv = i.aux as u8;
    Ok(())
}

fn ptrue(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    let log2 = size(w);
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    d.inst.imm2 = first_elements(log2, pattern_elements(bits(w, 5, 5), c.vl >> log2));
    if bits(w, 16, 1) == 1 {
        d.dst_flags();
        // The constant is also the governing predicate.
        d.inst.aux = predicate_test(d.inst.imm2, d.inst.imm2).into();
    }
    Some(d)
}

fn pfalse(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    Some(d)
}

fn ptest_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.nzcv = predicate_test(cpu.p(i.pg), cpu.p(i.rn));
    Ok(())
}

fn ptest(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.pg = d.src_p(bits(w, 10, 4));
    d.inst.rn = d.src_p(bits(w, 5, 4));
    d.dst_flags();
    Some(d)
}

fn pfirst_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let g = cpu.p(i.pg);
    let result = cpu.p(i.rd) | g & g.wrapping_neg();
    cpu.nzcv = predicate_test(g, result);
    cpu.set_p(i.rd, result);
    Ok(())
}

fn pfirst(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.pg = d.src_p(bits(w, 5, 4));
    d.src_p(bits(w, 0, 4));
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    d.dst_flags();
    Some(d)
}

fn pnext_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let elements = ELEMENT_BITS[usize::from(i.esz & 3)];
    let (g, last) = (cpu.p(i.pg) & elements, cpu.p(i.rd) & elements);
    let behind = g & !low_bits(u64::from(64 - last.leading_zeros()));
    let result = behind & behind.wrapping_neg();
    cpu.nzcv = predicate_test(g, result);
    cpu.set_p(i.rd, result);
    Ok(())
}

fn pnext(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = pfirst(w, c, classes, exec)?;
    d.inst.esz = size(w) as u8;
    Some(d)
}

// ---- Logic ----

/// A logical operation on predicate bits.
trait Logical {
    fn of(n: u64, m: u64) -> u64;
}

macro_rules! logical {
    ($($name:ident = |$n:ident, $m:ident| $value:expr;)+) => { $(
        struct $name;
        impl Logical for $name {
            #[inline(always)]
            fn of($n: u64, $m: u64) -> u64 {
                $value
            }
        }
    )+ };
}
logical! {
    And = |n, m| n & m;
    Bic = |n, m| n & !m;
    Eor = |n, m| n ^ m;
    Orr = |n, m| n | m;
    Orn = |n, m| n | !m;
    Nor = |n, m| !(n | m);
    Nand = |n, m| !(n & m);
}

/// `Pd = Pg & (Pn op Pm)`, byte elements; `S` sets the flags.
fn logical<O: Logical, const S: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let g = cpu.p(i.pg);
    let result = g & O::of(cpu.p(i.rn), cpu.p(i.rm));
    if S {
        cpu.nzcv = predicate_test(g, result);
    }
    cpu.set_p(i.rd, result);
    Ok(())
}

fn sel(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let g = cpu.p(i.pg);
    cpu.set_p(i.rd, g & cpu.p(i.rn) | !g & cpu.p(i.rm));
    Ok(())
}

/// `NAME Pd, Pg, Pn, Pm`; `S`: with flags.
fn logic<const S: bool>(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.pg = d.src_p(bits(w, 10, 4));
    d.inst.rn = d.src_p(bits(w, 5, 4));
    d.inst.rm = d.src_p(bits(w, 16, 4));
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    if S {
        d.dst_flags();
    }
    Some(d)
}

// ---- Partition breaks ----

/// Returns all bits before the lowest set bit of `p`, and that bit if `AFTER`; all bits if `p` is empty.
#[inline(always)]
fn before_break<const AFTER: bool>(p: u64) -> u64 {
    let first = p & p.wrapping_neg();
    if AFTER { first.wrapping_sub(1) | first } else { first.wrapping_sub(1) }
}

/// Returns whether the last bit of `g` is set in `p`; false when `g` is empty.
#[inline(always)]
fn last_is_true(g: u64, p: u64) -> bool {
    g.checked_ilog2().is_some_and(|last| p >> last & 1 == 1)
}

/// BRKA (`AFTER`) and BRKB; `aux` is 1 when inactive elements keep their value.
fn brk_exec<const AFTER: bool, const S: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let g = cpu.p(i.pg);
    let kept = if i.aux == 1 { cpu.p(i.rd) & !g } else { 0 };
    let result = g & before_break::<AFTER>(g & cpu.p(i.rn)) | kept;
    if S {
        cpu.nzcv = predicate_test(g, result);
    }
    cpu.set_p(i.rd, result);
    Ok(())
}

fn brk<const S: bool>(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.pg = d.src_p(bits(w, 10, 4));
    d.inst.rn = d.src_p(bits(w, 5, 4));
    d.inst.aux = bits(w, 4, 1) as u16;
    if d.inst.aux == 1 {
        d.src_p(bits(w, 0, 4));
    }
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    if S {
        d.dst_flags();
    }
    Some(d)
}

/// BRKPA (`AFTER`) and BRKPB: as BRKA and BRKB of `Pm` if the last active element of `Pn` is true, else false.
fn brkp<const AFTER: bool, const S: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let g = cpu.p(i.pg);
    let result = if last_is_true(g, cpu.p(i.rn)) { g & before_break::<AFTER>(g & cpu.p(i.rm)) } else { 0 };
    if S {
        cpu.nzcv = predicate_test(g, result);
    }
    cpu.set_p(i.rd, result);
    Ok(())
}

/// `Pdm` stays if the last active element of `Pn` is true, else becomes false. The flags do not depend on `Pg`.
fn brkn_exec<const S: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let result = if last_is_true(cpu.p(i.pg), cpu.p(i.rn)) { cpu.p(i.rd) } else { 0 };
    if S {
        cpu.nzcv = predicate_test(cpu.p_mask(), result);
    }
    cpu.set_p(i.rd, result);
    Ok(())
}

fn brkn<const S: bool>(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.pg = d.src_p(bits(w, 10, 4));
    d.inst.rn = d.src_p(bits(w, 5, 4));
    d.src_p(bits(w, 0, 4));
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    if S {
        d.dst_flags();
    }
    Some(d)
}

// ---- First-fault register ----

fn rdffr_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.set_p(i.rd, cpu.ffr);
    Ok(())
}

fn rdffr(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.info.srcs.push(Reg::FFR);
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    Some(d)
}

fn rdffr_under<const S: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let g = cpu.p(i.pg);
    let result = g & cpu.ffr;
    if S {
        cpu.nzcv = predicate_test(g, result);
    }
    cpu.set_p(i.rd, result);
    Ok(())
}

fn rdffr_predicated<const S: bool>(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = rdffr(w, c, classes, exec)?;
    d.inst.pg = d.src_p(bits(w, 5, 4));
    if S {
        d.dst_flags();
    }
    Some(d)
}

fn setffr_exec(cpu: &mut Cpu, _: &mut Memory, _: &Inst) -> Done {
    cpu.ffr = cpu.p_mask();
    Ok(())
}

fn setffr(_: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.info.dsts.push(Reg::FFR);
    Some(d)
}

fn wrffr_exec(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.ffr = cpu.p(i.rn);
    Ok(())
}

fn wrffr(w: u32, c: &Ctx, classes: &Classes, exec: &Exec) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], *exec);
    d.inst.rn = d.src_p(bits(w, 5, 4));
    d.info.dsts.push(Reg::FFR);
    Some(d)
}

// ---- Loop control ----

/// WHILE with operands of type `T`: element `e` is true if all of `Rn`, `Rn + 1`, …, `Rn + e` are less than `Rm` (or equal to it:
/// `OR_EQUAL`). `imm2` has the bits of all elements.
fn while_exec<T: Int, const OR_EQUAL: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let (n, m) = (T::truncate(cpu.x(i.rn)), T::truncate(cpu.x(i.rm)));
    let distance = m.extend().wrapping_sub(n.extend());
    let elements = match OR_EQUAL {
        false if n < m => distance,
        true if m == T::MAX => u64::MAX, // The sum wraps around and never exceeds Rm.
        true if n <= m => distance + 1,
        _ => 0,
    };
    let bytes = elements.min(64) << i.esz;
    let result = low_bits(bytes) & i.imm2;
    cpu.nzcv = predicate_test(i.imm2, result);
    cpu.set_p(i.rd, result);
    Ok(())
}

fn whilel(w: u32, c: &Ctx, classes: &Classes, execs: &[Exec; 2]) -> Option<Decoded> {
    let log2 = size(w);
    let mut d = sve_predicate(c, classes[0], execs[bits(w, 12, 1) as usize]);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rm = d.src_x(bits(w, 16, 5));
    d.inst.rd = d.dst_p(bits(w, 0, 4));
    d.dst_flags();
    d.inst.esz = log2 as u8;
    d.inst.imm2 = all_bits(c) & ELEMENT_BITS[log2];
    Some(d)
}

/// Sets N if the loop terminates, and V as the condition "not last" requires.
fn cterm_exec<const NOT_EQUAL: bool, const X: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    let equal = if X { cpu.x(i.rn) == cpu.x(i.rm) } else { cpu.w(i.rn) == cpu.w(i.rm) };
    let carry = cpu.nzcv & 0b0010 != 0;
    let (n, v) = if equal != NOT_EQUAL { (true, false) } else { (false, !carry) };
    cpu.nzcv = cpu.nzcv & 0b0110 | u8::from(n) << 3 | u8::from(v);
    Ok(())
}

fn cterm(w: u32, c: &Ctx, classes: &Classes, execs: &[Exec; 2]) -> Option<Decoded> {
    let mut d = sve_predicate(c, classes[0], execs[bits(w, 22, 1) as usize]);
    d.inst.rn = d.src_x(bits(w, 5, 5));
    d.inst.rm = d.src_x(bits(w, 16, 5));
    d.src_flags();
    d.dst_flags();
    Some(d)
}
