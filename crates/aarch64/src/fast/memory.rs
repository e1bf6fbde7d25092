//! Loads and stores in pages whose translation is cached.

use fxscope_guestmem::Memory;

use super::{FastPath, interpret};
use crate::cpu::Cpu;
use crate::insn::sve_common::{Element, active, first_elements};
use crate::insn::sve_gather::{Offset, extend};
use crate::insn::sve_mem::{MemElement, address, each_active, in_one_page};
use crate::table::{Inst, bits};

/// The function for the number of elements in a vector of `$vl` bytes: `by_length!(vl, load::<u32, u64>, 8)` if an element of the
/// register has 8 bytes.
macro_rules! by_length {
    ($vl:expr, $function:ident::<$($t:tt),+>, $esize:literal) => {
        match $vl {
            16 => Some($function::<$($t),+, { 16 / $esize }> as FastPath),
            32 => Some($function::<$($t),+, { 32 / $esize }> as FastPath),
            64 => Some($function::<$($t),+, { 64 / $esize }> as FastPath),
            _ => None,
        }
    };
}

/// See [`super::find`].
pub(super) fn find(name: &str, word: u32, vl: usize) -> Option<FastPath> {
    let (mnemonic, way) = name.split_once(' ').unwrap_or((name, ""));
    match way {
        "(vector)" if mnemonic == "LDR" => by_length!(vl, load_register::<u64>, 8),
        "(vector)" if mnemonic == "STR" => by_length!(vl, store_register::<u64>, 8),
        "(scalar plus immediate)" | "(scalar plus scalar)" => contiguous(mnemonic, word, vl),
        "(scalar plus vector, 64-bit offset)" => gather::<{ extend::NONE }>(mnemonic, vl),
        "(scalar plus vector, 32-bit unpacked offset)" if bits(word, 22, 1) == 0 => {
            gather::<{ extend::UXTW }>(mnemonic, vl)
        }
        "(scalar plus vector, 32-bit unpacked offset)" => gather::<{ extend::SXTW }>(mnemonic, vl),
        "" => match (mnemonic, bits(word, 13, 2)) {
            ("LD1RD", _) => by_length!(vl, broadcast::<u64, u64>, 8),
            ("LD1RW", 2) => by_length!(vl, broadcast::<u32, u32>, 4),
            _ => None,
        },
        _ => None,
    }
}

/// Contiguous accesses; the size of register elements is in bit 21 where there is a choice.
fn contiguous(mnemonic: &str, word: u32, vl: usize) -> Option<FastPath> {
    match (mnemonic, bits(word, 21, 1)) {
        ("LD1D", _) => by_length!(vl, load::<u64, u64>, 8),
        ("LD1W", 0) => by_length!(vl, load::<u32, u32>, 4),
        ("LD1W", _) => by_length!(vl, load::<u32, u64>, 8),
        ("LD1SW", _) => by_length!(vl, load::<i32, u64>, 8),
        ("ST1D", _) => by_length!(vl, store::<u64, u64>, 8),
        ("ST1W", 0) => by_length!(vl, store::<u32, u32>, 4),
        ("ST1W", _) => by_length!(vl, store::<u32, u64>, 8),
        _ => None,
    }
}

/// Gathers into 64-bit elements.
fn gather<const HOW: u8>(mnemonic: &str, vl: usize) -> Option<FastPath> {
    match mnemonic {
        "LD1D" => by_length!(vl, load_indexed::<u64, u64, HOW>, 8),
        "LD1W" => by_length!(vl, load_indexed::<u32, u64, HOW>, 8),
        "LD1SW" => by_length!(vl, load_indexed::<i32, u64, HOW>, 8),
        _ => None,
    }
}

/// Returns whether the `n` elements of a vector are all active.
#[inline(always)]
fn all_active<R: Element>(cpu: &Cpu, i: &Inst, n: usize) -> bool {
    active::<R>(cpu.p(i.pg)) == first_elements(R::LOG2, n)
}

/// Writes the elements of a register, of which all others are zero.
#[inline(always)]
fn write<R: Element, const N: usize>(cpu: &mut Cpu, i: &Inst, elements: [R; N]) {
    cpu.z_mut(i.rd).lanes_mut::<R>()[..N].copy_from_slice(&elements);
}

/// Returns elements that are active in `p`, which has one bit for each element; the others are zero.
#[inline(always)]
fn only_active<R: Element, const N: usize>(p: u64, elements: [R; N]) -> [R; N] {
    std::array::from_fn(|e| if p >> (e << R::LOG2) & 1 == 1 { elements[e] } else { R::zeroed() })
}

extern "C" fn load<M: MemElement<R>, R: Element, const N: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
    let Some(values) = mem.load_hit::<[M; N]>(address(cpu, i)) else { return interpret(cpu, mem, i) };
    let values = values.map(MemElement::widen);
    let values = if all_active::<R>(cpu, i, N) { values } else { only_active(active::<R>(cpu.p(i.pg)), values) };
    write(cpu, i, values);
    false
}

extern "C" fn store<M: MemElement<R>, R: Element, const N: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
    let (place, elements) = (address(cpu, i), cpu.z(i.rd).lanes::<R>());
    if all_active::<R>(cpu, i, N) {
        let values: [M; N] = std::array::from_fn(|e| M::narrow(elements[e]));
        if mem.store_hit(place, values) {
            return false;
        }
    } else if in_one_page(place, N * size_of::<M>()) {
        // Either all elements can be stored or none.
        let mut active = each_active::<R>(active::<R>(cpu.p(i.pg)));
        if active.all(|e| mem.store_hit(place.wrapping_add((e * size_of::<M>()) as u64), M::narrow(elements[e]))) {
            return false;
        }
    }
    interpret(cpu, mem, i)
}

extern "C" fn load_register<R: Element, const N: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
    match mem.load_hit::<[R; N]>(address(cpu, i)) {
        Some(values) => {
            write(cpu, i, values);
            false
        }
        None => interpret(cpu, mem, i),
    }
}

extern "C" fn store_register<R: Element, const N: usize>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
    let elements = cpu.z(i.rd).lanes::<R>();
    let values: [R; N] = std::array::from_fn(|e| elements[e]);
    !mem.store_hit(address(cpu, i), values) && interpret(cpu, mem, i)
}

extern "C" fn broadcast<M: MemElement<R>, R: Element, const N: usize>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    i: &Inst,
) -> bool {
    let Some(value) = mem.load_hit::<M>(address(cpu, i)) else { return interpret(cpu, mem, i) };
    let values = [value.widen(); N];
    let values = if all_active::<R>(cpu, i, N) { values } else { only_active(active::<R>(cpu.p(i.pg)), values) };
    write(cpu, i, values);
    false
}

extern "C" fn load_indexed<M: MemElement<R>, R: Offset, const HOW: u8, const N: usize>(
    cpu: &mut Cpu,
    mem: &mut Memory,
    i: &Inst,
) -> bool {
    let (base, p) = (cpu.x(i.rn).wrapping_add(i.imm as u64), active::<R>(cpu.p(i.pg)));
    let offsets = cpu.z(i.rm).lanes::<R>();
    let load = |e: usize| {
        let offset: R = offsets[e];
        mem.load_hit::<M>(base.wrapping_add(offset.extended::<HOW>() << (i.aux & 3))).map(MemElement::widen)
    };
    let mut values = [R::zeroed(); N];
    let loads = |(e, value): (usize, &mut R)| load(e).map(|loaded| *value = loaded).is_some();
    let done = if all_active::<R>(cpu, i, N) {
        values.iter_mut().enumerate().all(loads)
    } else {
        each_active::<R>(p).all(|e| loads((e, &mut values[e])))
    };
    if !done {
        return interpret(cpu, mem, i);
    }
    write(cpu, i, values);
    false
}
