//! SVE gather loads, and the element addresses that gathers, scatters and gather prefetches share.

use fxscope_isa::{Access, InstKind, MemOp, Reg, Shape};

use super::sve_common::{Done, Element, active, low_bits};
use super::sve_mem::on_fault::{FIRST, TRAP};
use super::sve_mem::{MemElement, by_vector, each_active};
use crate::cpu::{Cpu, MAX_VL, Vreg};
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    by_vector!(offsets32 "LD1B", " [32-bit unscaled offset]",
        "1000010 00 Xs:1 0 Zm:5 010 Pg:3 Rn:5 Zt:5", offset32::<u32, TRAP>),
    by_vector!(offsets32_unpacked "LD1B", " [otherwise]",
        "1100010 00 Xs:1 0 Zm:5 010 Pg:3 Rn:5 Zt:5", offset32::<u64, TRAP>),
    by_vector!(offsets64 "LD1B", " [otherwise]", "1100010 00 1 0 Zm:5 110 Pg:3 Rn:5 Zt:5", offset64::<TRAP>),
    by_vector!(offsets32 "LD1SB", " [32-bit unscaled offset]",
        "1000010 00 Xs:1 0 Zm:5 000 Pg:3 Rn:5 Zt:5", offset32::<u32, TRAP>),
    by_vector!(offsets32_unpacked "LD1SB", " [otherwise]",
        "1100010 00 Xs:1 0 Zm:5 000 Pg:3 Rn:5 Zt:5", offset32::<u64, TRAP>),
    by_vector!(offsets64 "LD1SB", " [otherwise]", "1100010 00 1 0 Zm:5 100 Pg:3 Rn:5 Zt:5", offset64::<TRAP>),
    by_vector!(offsets32 "LD1H", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1000010 01 Xs:1 scaled:1 Zm:5 010 Pg:3 Rn:5 Zt:5", offset32::<u32, TRAP>),
    by_vector!(offsets32_unpacked "LD1H", " [otherwise]",
        "1100010 01 Xs:1 scaled:1 Zm:5 010 Pg:3 Rn:5 Zt:5", offset32::<u64, TRAP>),
    by_vector!(offsets64 "LD1H", " [otherwise]", "1100010 01 1 scaled:1 Zm:5 110 Pg:3 Rn:5 Zt:5", offset64::<TRAP>),
    by_vector!(offsets32 "LD1SH", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1000010 01 Xs:1 scaled:1 Zm:5 000 Pg:3 Rn:5 Zt:5", offset32::<u32, TRAP>),
    by_vector!(offsets32_unpacked "LD1SH", " [otherwise]",
        "1100010 01 Xs:1 scaled:1 Zm:5 000 Pg:3 Rn:5 Zt:5", offset32::<u64, TRAP>),
    by_vector!(offsets64 "LD1SH", " [otherwise]", "1100010 01 1 scaled:1 Zm:5 100 Pg:3 Rn:5 Zt:5", offset64::<TRAP>),
    by_vector!(offsets32 "LD1W", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1000010 10 Xs:1 scaled:1 Zm:5 010 Pg:3 Rn:5 Zt:5", offset32::<u32, TRAP>),
    by_vector!(offsets32_unpacked "LD1W", " [otherwise]",
        "1100010 10 Xs:1 scaled:1 Zm:5 010 Pg:3 Rn:5 Zt:5", offset32::<u64, TRAP>),
    by_vector!(offsets64 "LD1W", " [otherwise]", "1100010 10 1 scaled:1 Zm:5 110 Pg:3 Rn:5 Zt:5", offset64::<TRAP>),
    by_vector!(offsets32_unpacked "LD1SW", "",
        "1100010 10 Xs:1 scaled:1 Zm:5 000 Pg:3 Rn:5 Zt:5", offset32::<u64, TRAP>),
    by_vector!(offsets64 "LD1SW", "", "1100010 10 1 scaled:1 Zm:5 100 Pg:3 Rn:5 Zt:5", offset64::<TRAP>),
    by_vector!(offsets32_unpacked "LD1D", "",
        "1100010 11 Xs:1 scaled:1 Zm:5 010 Pg:3 Rn:5 Zt:5", offset32::<u64, TRAP>),
    by_vector!(offsets64 "LD1D", "", "1100010 11 1 scaled:1 Zm:5 110 Pg:3 Rn:5 Zt:5", offset64::<TRAP>),
    by_vector!(addresses32 "LD1B", " [32-bit element]", "1000010 00 01 imm5:5 110 Pg:3 Zn:5 Zt:5", vector::<u32, TRAP>),
    by_vector!(addresses64 "LD1B", " [otherwise]", "1100010 00 01 imm5:5 110 Pg:3 Zn:5 Zt:5", vector::<u64, TRAP>),
    by_vector!(addresses32 "LD1SB", " [32-bit element]",
        "1000010 00 01 imm5:5 100 Pg:3 Zn:5 Zt:5", vector::<u32, TRAP>),
    by_vector!(addresses64 "LD1SB", " [otherwise]", "1100010 00 01 imm5:5 100 Pg:3 Zn:5 Zt:5", vector::<u64, TRAP>),
    by_vector!(addresses32 "LD1H", " [32-bit element]", "1000010 01 01 imm5:5 110 Pg:3 Zn:5 Zt:5", vector::<u32, TRAP>),
    by_vector!(addresses64 "LD1H", " [otherwise]", "1100010 01 01 imm5:5 110 Pg:3 Zn:5 Zt:5", vector::<u64, TRAP>),
    by_vector!(addresses32 "LD1SH", " [32-bit element]",
        "1000010 01 01 imm5:5 100 Pg:3 Zn:5 Zt:5", vector::<u32, TRAP>),
    by_vector!(addresses64 "LD1SH", " [otherwise]", "1100010 01 01 imm5:5 100 Pg:3 Zn:5 Zt:5", vector::<u64, TRAP>),
    by_vector!(addresses32 "LD1W", " [32-bit element]", "1000010 10 01 imm5:5 110 Pg:3 Zn:5 Zt:5", vector::<u32, TRAP>),
    by_vector!(addresses64 "LD1W", " [otherwise]", "1100010 10 01 imm5:5 110 Pg:3 Zn:5 Zt:5", vector::<u64, TRAP>),
    by_vector!(addresses64 "LD1SW", "", "1100010 10 01 imm5:5 100 Pg:3 Zn:5 Zt:5", vector::<u64, TRAP>),
    by_vector!(addresses64 "LD1D", "", "1100010 11 01 imm5:5 110 Pg:3 Zn:5 Zt:5", vector::<u64, TRAP>),
    by_vector!(offsets32 "LDFF1B", " [32-bit unscaled offset]",
        "1000010 00 Xs:1 0 Zm:5 011 Pg:3 Rn:5 Zt:5", offset32::<u32, FIRST>),
    by_vector!(offsets32_unpacked "LDFF1B", " [otherwise]",
        "1100010 00 Xs:1 0 Zm:5 011 Pg:3 Rn:5 Zt:5", offset32::<u64, FIRST>),
    by_vector!(offsets64 "LDFF1B", " [otherwise]", "1100010 00 1 0 Zm:5 111 Pg:3 Rn:5 Zt:5", offset64::<FIRST>),
    by_vector!(offsets32 "LDFF1SB", " [32-bit unscaled offset]",
        "1000010 00 Xs:1 0 Zm:5 001 Pg:3 Rn:5 Zt:5", offset32::<u32, FIRST>),
    by_vector!(offsets32_unpacked "LDFF1SB", " [otherwise]",
        "1100010 00 Xs:1 0 Zm:5 001 Pg:3 Rn:5 Zt:5", offset32::<u64, FIRST>),
    by_vector!(offsets64 "LDFF1SB", " [otherwise]", "1100010 00 1 0 Zm:5 101 Pg:3 Rn:5 Zt:5", offset64::<FIRST>),
    by_vector!(offsets32 "LDFF1H", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1000010 01 Xs:1 scaled:1 Zm:5 011 Pg:3 Rn:5 Zt:5", offset32::<u32, FIRST>),
    by_vector!(offsets32_unpacked "LDFF1H", " [otherwise]",
        "1100010 01 Xs:1 scaled:1 Zm:5 011 Pg:3 Rn:5 Zt:5", offset32::<u64, FIRST>),
    by_vector!(offsets64 "LDFF1H", " [otherwise]", "1100010 01 1 scaled:1 Zm:5 111 Pg:3 Rn:5 Zt:5", offset64::<FIRST>),
    by_vector!(offsets32 "LDFF1SH", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1000010 01 Xs:1 scaled:1 Zm:5 001 Pg:3 Rn:5 Zt:5", offset32::<u32, FIRST>),
    by_vector!(offsets32_unpacked "LDFF1SH", " [otherwise]",
        "1100010 01 Xs:1 scaled:1 Zm:5 001 Pg:3 Rn:5 Zt:5", offset32::<u64, FIRST>),
    by_vector!(offsets64 "LDFF1SH", " [otherwise]", "1100010 01 1 scaled:1 Zm:5 101 Pg:3 Rn:5 Zt:5", offset64::<FIRST>),
    by_vector!(offsets32 "LDFF1W", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1000010 10 Xs:1 scaled:1 Zm:5 011 Pg:3 Rn:5 Zt:5", offset32::<u32, FIRST>),
    by_vector!(offsets32_unpacked "LDFF1W", " [otherwise]",
        "1100010 10 Xs:1 scaled:1 Zm:5 011 Pg:3 Rn:5 Zt:5", offset32::<u64, FIRST>),
    by_vector!(offsets64 "LDFF1W", " [otherwise]", "1100010 10 1 scaled:1 Zm:5 111 Pg:3 Rn:5 Zt:5", offset64::<FIRST>),
    by_vector!(offsets32_unpacked "LDFF1SW", "",
        "1100010 10 Xs:1 scaled:1 Zm:5 001 Pg:3 Rn:5 Zt:5", offset32::<u64, FIRST>),
    by_vector!(offsets64 "LDFF1SW", "", "1100010 10 1 scaled:1 Zm:5 101 Pg:3 Rn:5 Zt:5", offset64::<FIRST>),
    by_vector!(offsets32_unpacked "LDFF1D", "",
        "1100010 11 Xs:1 scaled:1 Zm:5 011 Pg:3 Rn:5 Zt:5", offset32::<u64, FIRST>),
    by_vector!(offsets64 "LDFF1D", "", "1100010 11 1 scaled:1 Zm:5 111 Pg:3 Rn:5 Zt:5", offset64::<FIRST>),
    by_vector!(addresses32 "LDFF1B", " [32-bit element]",
        "1000010 00 01 imm5:5 111 Pg:3 Zn:5 Zt:5", vector::<u32, FIRST>),
    by_vector!(addresses64 "LDFF1B", " [otherwise]", "1100010 00 01 imm5:5 111 Pg:3 Zn:5 Zt:5", vector::<u64, FIRST>),
    by_vector!(addresses32 "LDFF1SB", " [32-bit element]",
        "1000010 00 01 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u32, FIRST>),
    by_vector!(addresses64 "LDFF1SB", " [otherwise]", "1100010 00 01 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u64, FIRST>),
    by_vector!(addresses32 "LDFF1H", " [32-bit element]",
        "1000010 01 01 imm5:5 111 Pg:3 Zn:5 Zt:5", vector::<u32, FIRST>),
    by_vector!(addresses64 "LDFF1H", " [otherwise]", "1100010 01 01 imm5:5 111 Pg:3 Zn:5 Zt:5", vector::<u64, FIRST>),
    by_vector!(addresses32 "LDFF1SH", " [32-bit element]",
        "1000010 01 01 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u32, FIRST>),
    by_vector!(addresses64 "LDFF1SH", " [otherwise]", "1100010 01 01 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u64, FIRST>),
    by_vector!(addresses32 "LDFF1W", " [32-bit element]",
        "1000010 10 01 imm5:5 111 Pg:3 Zn:5 Zt:5", vector::<u32, FIRST>),
    by_vector!(addresses64 "LDFF1W", " [otherwise]", "1100010 10 01 imm5:5 111 Pg:3 Zn:5 Zt:5", vector::<u64, FIRST>),
    by_vector!(addresses64 "LDFF1SW", "", "1100010 10 01 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u64, FIRST>),
    by_vector!(addresses64 "LDFF1D", "", "1100010 11 01 imm5:5 111 Pg:3 Zn:5 Zt:5", vector::<u64, FIRST>),
];

// ---- Element addresses ----

/// An element of an address vector, of the size of the register elements of the access.
pub trait Offset: Element {
    /// Extends the element to 64 bits in one of the ways in [`extend`].
    fn extended<const HOW: u8>(self) -> u64;
}

/// How elements of an address vector are extended to 64 bits.
pub mod extend {
    /// The low 32 bits, zero-extended.
    pub const UXTW: u8 = 0;
    /// The low 32 bits, sign-extended.
    pub const SXTW: u8 = 1;
    /// All 64 bits.
    pub const NONE: u8 = 2;
}

macro_rules! offsets {
    ($($t:ty),+) => {
        $(impl Offset for $t {
            #[inline(always)]
            fn extended<const HOW: u8>(self) -> u64 {
                match HOW {
                    extend::UXTW => u64::from(self as u32),
                    extend::SXTW => self as i32 as u64,
                    _ => u64::from(self),
                }
            }
        })+
    };
}
offsets!(u32, u64);

/// The addresses of the elements of an access, active or not.
pub type Addresses = [u64; MAX_VL / 4];

/// Computes the element addresses, appends the words of the access to the stream, and returns the addresses and the active
/// elements as a predicate.
///
/// An address is the base register, plus the immediate, plus the element of the address vector scaled by `aux`. Forms without
/// base register use the zero register.
#[inline(always)]
pub fn element_addresses<R: Offset, const HOW: u8>(cpu: &mut Cpu, i: &Inst) -> (Addresses, u64) {
    let p = active::<R>(cpu.p(i.pg));
    let base = cpu.x(i.rn).wrapping_add(i.imm as u64);
    let mut out = [0; MAX_VL / 4];
    for (to, offset) in out.iter_mut().zip(cpu.z(i.rm).lanes::<R>()) {
        *to = base.wrapping_add(offset.extended::<HOW>() << (i.aux & 3));
    }
    cpu.note(p);
    for addr in &out[..cpu.vl >> R::LOG2] {
        cpu.note(*addr);
    }
    (out, p)
}

// ---- Operands ----

/// Decodes an access of one `mem_log2`-sized element for each element of `reg_esize` bytes.
fn gather(w: u32, c: &Ctx, class: &'static str, exec: Exec, access: Access, sizes: Sizes) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::Memory;
    d.info.mem = Some(MemOp {
        access,
        shape: Shape::Indexed,
        bytes: 1 << sizes.mem_log2,
        mem_esize: 1 << sizes.mem_log2,
        reg_esize: sizes.reg_esize as u8,
        regs: 1,
        structure: false,
    });
    d.inst.pg = d.addr_p(bits(w, 10, 3));
    d
}

/// Element sizes of an access.
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Log2 of the bytes of an element in memory.
    pub mem_log2: u32,
    /// Bytes of an element in the register and the address vector.
    pub reg_esize: usize,
}

/// `[Xn, Zm…]`: base in bits 9:5, offsets in bits 20:16, either scaled by the memory element size or not.
#[must_use]
pub fn scalar_plus_vector(
    w: u32,
    c: &Ctx,
    class: &'static str,
    exec: Exec,
    access: Access,
    sizes: Sizes,
    scaled: bool,
) -> Decoded {
    let mut d = gather(w, c, class, exec, access, sizes);
    d.inst.rn = d.addr_sp(bits(w, 5, 5));
    d.inst.rm = d.addr_z(bits(w, 16, 5));
    d.inst.aux = if scaled { sizes.mem_log2 as u16 } else { 0 };
    d
}

/// `[Zn, #imm]`: bases in bits 9:5, and in bits 20:16 an immediate in units of memory elements.
#[must_use]
pub fn vector_plus_immediate(
    w: u32,
    c: &Ctx,
    class: &'static str,
    exec: Exec,
    access: Access,
    sizes: Sizes,
) -> Decoded {
    let mut d = gather(w, c, class, exec, access, sizes);
    d.inst.rn = Cpu::XZR;
    d.inst.rm = d.addr_z(bits(w, 5, 5));
    d.inst.imm = i64::from(bits(w, 16, 5)) << sizes.mem_log2;
    d
}

// ---- Loads ----

/// Loads of one element type in memory into 32- and 64-bit elements; `None` where there is no such form.
struct Execs {
    /// Into 32-bit elements, by [`extend`].
    words: Option<[Exec; 2]>,
    /// Into 64-bit elements, by [`extend`].
    doublewords: [Exec; 3],
}

const fn narrow<M: MemElement<u32> + MemElement<u64>, const ON_FAULT: u8>() -> Execs {
    use extend::{SXTW, UXTW};
    let words = [load::<M, u32, UXTW, ON_FAULT> as Exec, load::<M, u32, SXTW, ON_FAULT>];
    Execs { words: Some(words), ..wide::<M, ON_FAULT>() }
}

const fn wide<M: MemElement<u64>, const ON_FAULT: u8>() -> Execs {
    use extend::{NONE, SXTW, UXTW};
    let doublewords =
        [load::<M, u64, UXTW, ON_FAULT> as Exec, load::<M, u64, SXTW, ON_FAULT>, load::<M, u64, NONE, ON_FAULT>];
    Execs { words: None, doublewords }
}

/// By `msz` (bits 24:23) and `U` (bit 14: not sign-extended).
const fn execs<const ON_FAULT: u8>() -> [[Execs; 2]; 4] {
    [
        [narrow::<i8, ON_FAULT>(), narrow::<u8, ON_FAULT>()],
        [narrow::<i16, ON_FAULT>(), narrow::<u16, ON_FAULT>()],
        [wide::<i32, ON_FAULT>(), narrow::<u32, ON_FAULT>()],
        [wide::<u64, ON_FAULT>(), wide::<u64, ON_FAULT>()],
    ]
}

static TRAPPING: [[Execs; 2]; 4] = execs::<TRAP>();
static FIRST_FAULT: [[Execs; 2]; 4] = execs::<FIRST>();

fn exec_of<R: Offset, const ON_FAULT: u8>(w: u32, how: u8) -> Option<Exec> {
    let all = if ON_FAULT == FIRST { &FIRST_FAULT } else { &TRAPPING };
    let execs = &all[bits(w, 23, 2) as usize][bits(w, 14, 1) as usize];
    if R::LOG2 == 2 { execs.words.map(|all| all[usize::from(how)]) } else { Some(execs.doublewords[usize::from(how)]) }
}

fn sizes<R: Offset>(w: u32) -> Sizes {
    Sizes { mem_log2: bits(w, 23, 2), reg_esize: size_of::<R>() }
}

fn destination<const ON_FAULT: u8>(mut d: Decoded, w: u32) -> Decoded {
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    if ON_FAULT == FIRST {
        d.info.srcs.push(Reg::FFR);
        d.info.dsts.push(Reg::FFR);
    }
    d
}

/// `[Xn, Zm, (U|S)XTW]`: `xs` in bit 22, scaled by bit 21.
fn offset32<R: Offset, const ON_FAULT: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = exec_of::<R, ON_FAULT>(w, bits(w, 22, 1) as u8)?;
    let d = scalar_plus_vector(w, c, class, exec, Access::Load, sizes::<R>(w), bits(w, 21, 1) == 1);
    Some(destination::<ON_FAULT>(d, w))
}

/// `[Xn, Zm.D]`: scaled by bit 21.
fn offset64<const ON_FAULT: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = exec_of::<u64, ON_FAULT>(w, extend::NONE)?;
    let d = scalar_plus_vector(w, c, class, exec, Access::Load, sizes::<u64>(w), bits(w, 21, 1) == 1);
    Some(destination::<ON_FAULT>(d, w))
}

fn vector<R: Offset, const ON_FAULT: u8>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let how = if R::LOG2 == 2 { extend::UXTW } else { extend::NONE };
    let exec = exec_of::<R, ON_FAULT>(w, how)?;
    let d = vector_plus_immediate(w, c, class, exec, Access::Load, sizes::<R>(w));
    Some(destination::<ON_FAULT>(d, w))
}

fn load<M: MemElement<R>, R: Offset, const HOW: u8, const ON_FAULT: u8>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    i: &Inst,
) -> Done {
    let (addresses, p) = element_addresses::<R, HOW>(cpu, i);
    let mut out = Vreg::ZERO;
    let mut may_trap = true;
    for e in each_active::<R>(p) {
        match mem.load::<M>(addresses[e]) {
            Ok(value) => out.lanes_mut::<R>()[e] = value.widen(),
            Err(fault) if may_trap => return Err(cpu.fault(fault)),
            Err(_) => {
                cpu.ffr &= low_bits((e << R::LOG2) as u64);
                break;
            }
        }
        may_trap = ON_FAULT == TRAP;
    }
    *cpu.z_mut(i.rd) = out;
    Ok(())
}
