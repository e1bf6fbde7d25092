//! SVE scatter stores.

use fxscope_isa::Access;

use super::sve_common::Done;
use super::sve_gather::{Offset, Sizes, element_addresses, extend, scalar_plus_vector, vector_plus_immediate};
use super::sve_mem::{MemElement, by_vector, each_active};
use crate::cpu::Cpu;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits};
use fxscope_guestmem::Memory;

/// Encodings of this group.
#[rustfmt::skip]
pub static TABLE: &[Encoding] = &[
    by_vector!(offsets32 "ST1B", " [32-bit unscaled offset]",
        "1110010 00 1 0 Zm:5 1 Xs:1 0 Pg:3 Rn:5 Zt:5", offset32::<u32>),
    by_vector!(offsets32_unpacked "ST1B", " [otherwise]",
        "1110010 00 0 0 Zm:5 1 Xs:1 0 Pg:3 Rn:5 Zt:5", offset32::<u64>),
    by_vector!(offsets64 "ST1B", " [otherwise]", "1110010 00 0 0 Zm:5 101 Pg:3 Rn:5 Zt:5", offset64),
    by_vector!(offsets32 "ST1H", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1110010 01 1 scaled:1 Zm:5 1 Xs:1 0 Pg:3 Rn:5 Zt:5", offset32::<u32>),
    by_vector!(offsets32_unpacked "ST1H", " [otherwise]",
        "1110010 01 0 scaled:1 Zm:5 1 Xs:1 0 Pg:3 Rn:5 Zt:5", offset32::<u64>),
    by_vector!(offsets64 "ST1H", " [otherwise]", "1110010 01 0 scaled:1 Zm:5 101 Pg:3 Rn:5 Zt:5", offset64),
    by_vector!(offsets32 "ST1W", " [32-bit scaled offset, 32-bit unscaled offset]",
        "1110010 10 1 scaled:1 Zm:5 1 Xs:1 0 Pg:3 Rn:5 Zt:5", offset32::<u32>),
    by_vector!(offsets32_unpacked "ST1W", " [otherwise]",
        "1110010 10 0 scaled:1 Zm:5 1 Xs:1 0 Pg:3 Rn:5 Zt:5", offset32::<u64>),
    by_vector!(offsets64 "ST1W", " [otherwise]", "1110010 10 0 scaled:1 Zm:5 101 Pg:3 Rn:5 Zt:5", offset64),
    by_vector!(offsets32_unpacked "ST1D", "", "1110010 11 0 scaled:1 Zm:5 1 Xs:1 0 Pg:3 Rn:5 Zt:5", offset32::<u64>),
    by_vector!(offsets64 "ST1D", "", "1110010 11 0 scaled:1 Zm:5 101 Pg:3 Rn:5 Zt:5", offset64),
    by_vector!(addresses32 "ST1B", " [32-bit element]", "1110010 00 11 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u32>),
    by_vector!(addresses64 "ST1B", " [otherwise]", "1110010 00 10 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u64>),
    by_vector!(addresses32 "ST1H", " [32-bit element]", "1110010 01 11 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u32>),
    by_vector!(addresses64 "ST1H", " [otherwise]", "1110010 01 10 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u64>),
    by_vector!(addresses32 "ST1W", " [32-bit element]", "1110010 10 11 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u32>),
    by_vector!(addresses64 "ST1W", " [otherwise]", "1110010 10 10 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u64>),
    by_vector!(addresses64 "ST1D", "", "1110010 11 10 imm5:5 101 Pg:3 Zn:5 Zt:5", vector::<u64>),
];

/// By log2 of the bytes in memory and [`extend`]: from 32-bit elements.
const FROM_WORDS: [Option<[Exec; 2]>; 4] = [
    Some([store::<u8, u32, { extend::UXTW }>, store::<u8, u32, { extend::SXTW }>]),
    Some([store::<u16, u32, { extend::UXTW }>, store::<u16, u32, { extend::SXTW }>]),
    Some([store::<u32, u32, { extend::UXTW }>, store::<u32, u32, { extend::SXTW }>]),
    None,
];

/// The same from 64-bit elements.
const FROM_DOUBLEWORDS: [[Exec; 3]; 4] =
    [doublewords::<u8>(), doublewords::<u16>(), doublewords::<u32>(), doublewords::<u64>()];

const fn doublewords<M: MemElement<u64>>() -> [Exec; 3] {
    [store::<M, u64, { extend::UXTW }>, store::<M, u64, { extend::SXTW }>, store::<M, u64, { extend::NONE }>]
}

fn exec_of<R: Offset>(w: u32, how: u8) -> Option<Exec> {
    let (mem_log2, how) = (bits(w, 23, 2) as usize, usize::from(how));
    if R::LOG2 == 2 { FROM_WORDS[mem_log2].map(|all| all[how]) } else { Some(FROM_DOUBLEWORDS[mem_log2][how]) }
}

fn sizes<R: Offset>(w: u32) -> Sizes {
    Sizes { mem_log2: bits(w, 23, 2), reg_esize: size_of::<R>() }
}

/// `[Xn, Zm, (U|S)XTW]`: `xs` in bit 14, scaled by bit 21.
fn offset32<R: Offset>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = exec_of::<R>(w, bits(w, 14, 1) as u8)?;
    let mut d = scalar_plus_vector(w, c, class, exec, Access::Store, sizes::<R>(w), bits(w, 21, 1) == 1);
    d.inst.rd = d.src_z(bits(w, 0, 5));
    Some(d)
}

/// `[Xn, Zm.D]`: scaled by bit 21.
fn offset64(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = exec_of::<u64>(w, extend::NONE)?;
    let mut d = scalar_plus_vector(w, c, class, exec, Access::Store, sizes::<u64>(w), bits(w, 21, 1) == 1);
    d.inst.rd = d.src_z(bits(w, 0, 5));
    Some(d)
}

fn vector<R: Offset>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let exec = exec_of::<R>(w, if R::LOG2 == 2 { extend::UXTW } else { extend::NONE })?;
    let mut d = vector_plus_immediate(w, c, class, exec, Access::Store, sizes::<R>(w));
    d.inst.rd = d.src_z(bits(w, 0, 5));
    Some(d)
}

/// Stores active elements in order, so that the last of several at the same address remains. When an element faults, those before
/// it have been stored: the architecture allows that, and checking each address first would cost more than the store.
fn store<M: MemElement<R>, R: Offset, const HOW: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> Done {
    let (addresses, p) = element_addresses::<R, HOW>(cpu, i);
    let z = cpu.z(i.rd);
    each_active::<R>(p)
        .try_for_each(|e| mem.store(addresses[e], M::narrow(z.lanes::<R>()[e])))
        .map_err(|f| cpu.fault(f))
}
