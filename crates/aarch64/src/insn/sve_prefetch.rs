//! SVE prefetches. They never fault and change nothing; they append the words of their access to the stream.

use fxscope_isa::{Access, InstKind};

use super::base_mem::prefetch_access;
use super::sve_common::{Done, Element, active};
use super::sve_gather::{Offset, Sizes, element_addresses, extend, scalar_plus_vector, vector_plus_immediate};
use super::sve_mem::{address, by_vector, masked, memory, sve_mem, with_index};
use crate::cpu::Cpu;
use crate::table::{Ctx, Decoded, Encoding, Exec, Inst, bits, sbits};
use fxscope_guestmem::Memory;

/// The rows of each operation, which differ only in the element size field.
macro_rules! prefetches {
    ($($op:literal $size:literal)+) => {
        &[$(
            sve_mem!($op " (scalar plus immediate)",
                concat!("1000010 111 imm6:6 0 ", $size, " Pg:3 Rn:5 0 prfop:4"), immediate),
            sve_mem!($op " (scalar plus scalar)",
                concat!("1000010 ", $size, " 00 Rm:5 110 Pg:3 Rn:5 0 prfop:4"), indexed),
            by_vector!(offsets32 $op, " [32-bit scaled offset]",
                concat!("1000010 00 Xs:1 1 Zm:5 0 ", $size, " Pg:3 Rn:5 0 prfop:4"), offset32::<u32>),
            by_vector!(offsets32_unpacked $op, " [otherwise]",
                concat!("1100010 00 Xs:1 1 Zm:5 0 ", $size, " Pg:3 Rn:5 0 prfop:4"), offset32::<u64>),
            by_vector!(offsets64 $op, " [otherwise]",
                concat!("1100010 00 11 Zm:5 1 ", $size, " Pg:3 Rn:5 0 prfop:4"), offset64),
            by_vector!(addresses32 $op, " [32-bit element]",
                concat!("1000010 ", $size, " 00 imm5:5 111 Pg:3 Zn:5 0 prfop:4"), vector::<u32>),
            by_vector!(addresses64 $op, " [otherwise]",
                concat!("1100010 ", $size, " 00 imm5:5 111 Pg:3 Zn:5 0 prfop:4"), vector::<u64>),
        )+]
    };
}

/// Encodings of this group.
pub static TABLE: &[Encoding] = prefetches!("PRFB" "00" "PRFH" "01" "PRFW" "10" "PRFD" "11");

/// Passes to `build` the kind of access that `prfop` (bits 3:0) requests. Operations without effect become instructions without
/// an access.
fn prefetch(w: u32, build: impl FnOnce(Access) -> Option<Decoded>) -> Option<Decoded> {
    fn exec_nothing(_: &mut Cpu, _: &mut Memory, _: &Inst) -> Done {
        Ok(())
    }
    // As in PRFM, without the type for instructions.
    let access = prefetch_access(bits(w, 3, 1) << 4 | bits(w, 0, 3));
    let mut d = build(access.unwrap_or(Access::PrefetchLoad(1)))?;
    if access.is_none() {
        d.inst.exec = exec_nothing;
        d.info.mem = None;
        d.info.kind = InstKind::System;
    }
    Some(d)
}

// ---- Contiguous ----

const CONTIGUOUS: [Exec; 4] = [contiguous::<u8>, contiguous::<u16>, contiguous::<u32>, contiguous::<u64>];

fn contiguous<R: Element>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    cpu.note(address(cpu, i));
    cpu.note(active::<R>(cpu.p(i.pg)));
    Ok(())
}

/// `[Xn, #imm, MUL VL]`: element size in bits 14:13.
fn immediate(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let log2 = bits(w, 13, 2) as usize;
    prefetch(w, |access| {
        let mut d = memory(w, c, class, CONTIGUOUS[log2], masked(access, c, 1 << log2, 1 << log2));
        d.inst.imm = sbits(w, 16, 6) * c.vl as i64;
        Some(d)
    })
}

/// `[Xn, Xm, LSL]`: element size in bits 24:23.
fn indexed(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let log2 = bits(w, 23, 2) as usize;
    prefetch(w, |access| {
        let d = memory(w, c, class, CONTIGUOUS[log2], masked(access, c, 1 << log2, 1 << log2));
        with_index(d, w, 1 << log2)
    })
}

// ---- Gather ----

fn gather<R: Offset, const HOW: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> Done {
    element_addresses::<R, HOW>(cpu, i);
    Ok(())
}

/// `[Xn, Zm, (U|S)XTW]`: `xs` in bit 22, element size in bits 14:13.
fn offset32<R: Offset>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let sizes = Sizes { mem_log2: bits(w, 13, 2), reg_esize: size_of::<R>() };
    let exec = if bits(w, 22, 1) == 1 { gather::<R, { extend::SXTW }> } else { gather::<R, { extend::UXTW }> };
    prefetch(w, |access| Some(scalar_plus_vector(w, c, class, exec, access, sizes, true)))
}

/// `[Xn, Zm.D]`: element size in bits 14:13.
fn offset64(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let sizes = Sizes { mem_log2: bits(w, 13, 2), reg_esize: 8 };
    let exec = gather::<u64, { extend::NONE }>;
    prefetch(w, |access| Some(scalar_plus_vector(w, c, class, exec, access, sizes, true)))
}

/// `[Zn, #imm]`: element size in bits 24:23.
fn vector<R: Offset>(w: u32, c: &Ctx, class: &'static str) -> Option<Decoded> {
    let sizes = Sizes { mem_log2: bits(w, 23, 2), reg_esize: size_of::<R>() };
    let exec = if R::LOG2 == 2 { gather::<R, { extend::UXTW }> } else { gather::<R, { extend::NONE }> };
    prefetch(w, |access| Some(vector_plus_immediate(w, c, class, exec, access, sizes)))
}
