//! Shared by the SVE instruction groups: element types, element masks, maps over elements, predicate arithmetic and operand
//! forms.
//!
//! A predicate is a `u64` with one bit for each byte of a vector; an element is active when the bit of its lowest byte is set.
//! Elementwise operations process all 64 bytes of a register, whatever the vector length: the loops have fixed trip counts, and
//! source bytes beyond the vector length are zero. If an operation gives something other than zero there, the caller trims the
//! destination.

use bytemuck::Pod;
use fxscope_isa::InstKind;

use crate::cpu::{Cpu, MAX_VL, Nzcv, Stop, Vreg};
use crate::table::{Ctx, Decoded, Exec, bits};

/// The result of an executing function.
pub type Done = Result<(), Stop>;

/// Executing functions for element sizes of 1, 2, 4 and 8 bytes; `None` where the form does not exist.
pub type BySize = [Option<Exec>; 4];

/// Timing classes for element sizes of 1, 2, 4 and 8 bytes.
pub type Classes = [&'static str; 4];

/// A type of vector elements.
pub trait Element: Pod {
    /// Log2 of the size in bytes.
    const LOG2: usize;
}

macro_rules! elements {
    ($($t:ty),+) => { $(impl Element for $t { const LOG2: usize = size_of::<$t>().trailing_zeros() as usize; })+ };
}
elements!(u8, u16, u32, u64, i8, i16, i32, i64);

// ---- Predicates ----

/// For each log2 of the element size: the significant predicate bits, one for each element.
pub const ELEMENT_BITS: [u64; 4] = [u64::MAX, 0x5555_5555_5555_5555, 0x1111_1111_1111_1111, 0x0101_0101_0101_0101];

/// Returns predicate `p` reduced to the significant bit of each element of type `T`.
#[inline(always)]
#[must_use]
pub fn active<T: Element>(p: u64) -> u64 {
    p & ELEMENT_BITS[T::LOG2]
}

/// Returns the lowest `n` bits set; all of them when `n` is 64 or more.
#[inline(always)]
#[must_use]
pub fn low_bits(n: u64) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Returns the predicate in which the first `n` elements of 2^`log2` bytes are active.
#[inline(always)]
#[must_use]
pub fn first_elements(log2: usize, n: usize) -> u64 {
    low_bits((n << log2) as u64) & ELEMENT_BITS[log2]
}

/// Returns how many of `elements` elements a predicate constraint pattern (`POW2`, `VL1`, …, `ALL`) selects.
#[must_use]
pub fn pattern_elements(pattern: u32, elements: usize) -> usize {
    let fixed = |n: usize| if n <= elements { n } else { 0 };
    match pattern {
        0 => elements,
        1..=8 => fixed(pattern as usize),
        9..=13 => fixed(16 << (pattern - 9)),
        29 => elements / 4 * 4,
        30 => elements / 3 * 3,
        31 => elements,
        _ => 0,
    }
}

/// Returns the flags that describe `result` under governing predicate `g` (`PredTest` in the Arm manual). Both must be reduced to
/// one bit for each element.
///
/// N: the first active element is true; Z: no active element is true; C: the last active element is not true.
#[inline(always)]
#[must_use]
pub fn predicate_test(g: u64, result: u64) -> Nzcv {
    let r = g & result;
    let first = r & g.wrapping_neg() != 0;
    let none = r == 0;
    let last = !none && r.leading_zeros() == g.leading_zeros();
    u8::from(first) << 3 | u8::from(none) << 2 | u8::from(!last) << 1
}

/// Returns the index of the last active element, if there is one. `p` must be reduced to one bit for each element.
#[inline(always)]
#[must_use]
pub fn last_active<T: Element>(p: u64) -> Option<usize> {
    p.checked_ilog2().map(|bit| bit as usize >> T::LOG2)
}

// ---- Element masks ----

/// For each log2 of the element size and each 8 predicate bits: a mask for 8 bytes of a vector.
static BYTE_MASKS: [[u64; 256]; 4] = {
    let mut table = [[0; 256]; 4];
    let mut log2 = 0;
    while log2 < 4 {
        let mut p = 0;
        while p < 256 {
            let mut byte = 0;
            while byte < 8 {
                let lowest = byte >> log2 << log2;
                if p >> lowest & 1 == 1 {
                    table[log2][p] |= 0xff << (8 * byte);
                }
                byte += 1;
            }
            p += 1;
        }
        log2 += 1;
    }
    table
};

/// Returns all bits of every active element of type `T`, and no bit of the others.
#[inline(always)]
#[must_use]
pub fn element_mask<T: Element>(p: u64) -> Vreg {
    let mut mask = Vreg::ZERO;
    for (k, word) in mask.0.iter_mut().enumerate() {
        *word = BYTE_MASKS[T::LOG2][(p >> (8 * k) & 0xff) as usize];
    }
    mask
}

/// Returns the predicate of the elements of type `T` that are all ones in `mask`, where every element is all ones or zero.
#[inline(always)]
#[must_use]
pub fn mask_to_predicate<T: Element>(mask: &Vreg) -> u64 {
    if T::LOG2 == 3 {
        return mask.0.iter().enumerate().fold(0, |p, (k, word)| p | (word & 1) << (8 * k));
    }
    active::<T>(byte_signs(mask))
}

/// Returns the top bit of each byte.
///
/// Not inlined: otherwise the compiler sees the elements of the mask and extracts them one by one, which is three times slower.
/// It does not find the instruction used here by itself.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn byte_signs(mask: &Vreg) -> u64 {
    use std::arch::x86_64::{_mm_movemask_epi8, _mm_set_epi64x};
    let quarter = |k: usize| {
        let (low, high) = (mask.0[2 * k] as i64, mask.0[2 * k + 1] as i64);
        // SAFETY: these intrinsics need SSE2, which every x86-64 processor has.
        #[allow(unsafe_code)]
        let signs = unsafe { _mm_movemask_epi8(_mm_set_epi64x(high, low)) };
        (signs as u64) << (16 * k)
    };
    quarter(0) | quarter(1) | quarter(2) | quarter(3)
}

/// Returns the top bit of each byte.
#[cfg(not(target_arch = "x86_64"))]
fn byte_signs(mask: &Vreg) -> u64 {
    mask.0.iter().rev().fold(0, |signs, word| {
        // The product gathers the lowest bit of each byte in the top byte; no two terms overlap.
        signs << 8 | (word >> 7 & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

/// Returns `on` where `mask` has ones, `off` elsewhere.
#[inline(always)]
#[must_use]
pub fn select(mask: &Vreg, on: &Vreg, off: &Vreg) -> Vreg {
    let mut out = Vreg::ZERO;
    for k in 0..out.0.len() {
        out.0[k] = on.0[k] & mask.0[k] | off.0[k] & !mask.0[k];
    }
    out
}

/// Returns the active elements of `on`, and the others of `off`.
#[inline(always)]
#[must_use]
pub fn select_active<T: Element>(p: u64, on: &Vreg, off: &Vreg) -> Vreg {
    // In most loops, most iterations have all elements active.
    if active::<T>(p) == ELEMENT_BITS[T::LOG2] { *on } else { select(&element_mask::<T>(p), on, off) }
}

/// Writes the active elements of `value` to vector register `rd`; the others keep their value.
#[inline(always)]
pub fn write_merging<T: Element>(cpu: &mut Cpu, rd: u8, pg: u8, value: &Vreg) {
    let p = cpu.p(pg);
    let z = cpu.z_mut(rd);
    *z = select_active::<T>(p, value, z);
}

/// Writes the active elements of `value` to vector register `rd`; the others become zero.
#[inline(always)]
pub fn write_zeroing<T: Element>(cpu: &mut Cpu, rd: u8, pg: u8, value: &Vreg) {
    *cpu.z_mut(rd) = select_active::<T>(cpu.p(pg), value, &Vreg::ZERO);
}

// ---- Maps over elements ----

/// Returns the register with `value` in every element (all 64 bytes: the caller trims).
#[inline(always)]
#[must_use]
pub fn splat<T: Pod>(value: T) -> Vreg {
    let mut out = Vreg::ZERO;
    out.lanes_mut::<T>().fill(value);
    out
}

/// `f` of each element.
#[inline(always)]
#[must_use]
pub fn map1<T: Pod>(a: &Vreg, f: impl Fn(T) -> T) -> Vreg {
    let mut out = Vreg::ZERO;
    for (o, &a) in out.lanes_mut::<T>().iter_mut().zip(a.lanes::<T>()) {
        *o = f(a);
    }
    out
}

/// `f` of each pair of elements.
#[inline(always)]
#[must_use]
pub fn map2<T: Pod>(a: &Vreg, b: &Vreg, f: impl Fn(T, T) -> T) -> Vreg {
    let mut out = Vreg::ZERO;
    for ((o, &a), &b) in out.lanes_mut::<T>().iter_mut().zip(a.lanes::<T>()).zip(b.lanes::<T>()) {
        *o = f(a, b);
    }
    out
}

/// `f` of each triple of elements.
#[inline(always)]
#[must_use]
pub fn map3<T: Pod>(a: &Vreg, b: &Vreg, c: &Vreg, f: impl Fn(T, T, T) -> T) -> Vreg {
    let mut out = Vreg::ZERO;
    let inputs = a.lanes::<T>().iter().zip(b.lanes::<T>()).zip(c.lanes::<T>());
    for (o, ((&a, &b), &c)) in out.lanes_mut::<T>().iter_mut().zip(inputs) {
        *o = f(a, b, c);
    }
    out
}

/// Returns the register whose element `i` is `f(i)` (all 64 bytes: the caller trims).
#[inline(always)]
#[must_use]
pub fn from_fn<T: Pod>(f: impl Fn(usize) -> T) -> Vreg {
    let mut out = Vreg::ZERO;
    for (i, o) in out.lanes_mut::<T>().iter_mut().enumerate() {
        *o = f(i);
    }
    out
}

/// Number of elements of type `T` in a register.
#[inline(always)]
#[must_use]
pub fn elements<T: Element>(cpu: &Cpu) -> usize {
    cpu.vl.min(MAX_VL) >> T::LOG2
}

// ---- Decoding ----

/// Returns the functions of `all` for elements of at least 2^`log2` bytes.
#[must_use]
pub const fn at_least(log2: usize, mut all: BySize) -> BySize {
    let mut i = 0;
    while i < log2 {
        all[i] = None;
        i += 1;
    }
    all
}

/// Returns the functions of `all` for elements of at most 2^`log2` bytes.
#[must_use]
pub const fn at_most(log2: usize, mut all: BySize) -> BySize {
    let mut i = log2 + 1;
    while i < all.len() {
        all[i] = None;
        i += 1;
    }
    all
}

/// Field `size`, bits 23:22, as a log2 of bytes.
#[inline(always)]
#[must_use]
pub const fn size(w: u32) -> usize {
    bits(w, 22, 2) as usize
}

/// Decodes an SVE data-processing instruction, without operands yet.
#[must_use]
pub fn sve(c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::Sve;
    d
}

/// Decodes an SVE predicate instruction, without operands yet.
#[must_use]
pub fn sve_predicate(c: &Ctx, class: &'static str, exec: Exec) -> Decoded {
    let mut d = Decoded::new(c, class, exec);
    d.info.kind = InstKind::SvePredicate;
    d
}

/// `NAME, PG/M, Zdn, Zm`: governing predicate in bits 12:10, `Zdn` merges.
pub fn predicated(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rm = d.src_z(bits(w, 5, 5));
    Some(d)
}

/// `NAME, PG/M, Zd, Zn`: governing predicate in bits 12:10, `Zd` merges.
pub fn unary(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.pg = d.src_p(bits(w, 10, 3));
    d.inst.rd = d.both_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    Some(d)
}

/// `NAME Zd, Zn, Zm`.
pub fn unpredicated(w: u32, c: &Ctx, classes: &Classes, execs: &BySize) -> Option<Decoded> {
    let mut d = sve(c, classes[size(w)], execs[size(w)]?);
    d.inst.rd = d.dst_z(bits(w, 0, 5));
    d.inst.rn = d.src_z(bits(w, 5, 5));
    d.inst.rm = d.src_z(bits(w, 16, 5));
    Some(d)
}

/// Writes one row of an SVE table: `sve!("NAME", "PATTERN", form, execs)`.
///
/// `form` decodes the operands: `fn(word, ctx, &Classes, &execs) -> Option<Decoded>`. The timing class is the machine's row
/// `sve:NAME`. If that differs, the name is followed by
/// * `as "ROW"`: class `sve:ROW`, for names made unique by a prefix;
/// * `sized "ROW [T"`: class `sve:ROW [T=B]`, `…=H]`, `…=S]`, `…=D]` by element size;
/// * `classes LIST`: one class for each element size.
#[macro_export]
macro_rules! sve {
    ($name:literal, $pattern:literal, $form:expr, $execs:expr) => {
        $crate::sve!($name as $name, $pattern, $form, $execs)
    };
    ($name:literal as $row:literal, $pattern:literal, $form:expr, $execs:expr) => {
        $crate::sve!($name classes [concat!("sve:", $row); 4], $pattern, $form, $execs)
    };
    ($name:literal sized $row:literal, $pattern:literal, $form:expr, $execs:expr) => {
        $crate::sve!(
            $name classes [
                concat!("sve:", $row, "=B]"),
                concat!("sve:", $row, "=H]"),
                concat!("sve:", $row, "=S]"),
                concat!("sve:", $row, "=D]"),
            ],
            $pattern, $form, $execs
        )
    };
    ($name:literal classes $classes:expr, $pattern:literal, $form:expr, $execs:expr) => {
        $crate::enc!($name, $pattern, |w, c| $form(w, c, const { &$classes }, const { &$execs }))
    };
}

/// One executing function for each element size: `sizes!(u: T => exec::<Add, T>)` is
/// `[Some(exec::<Add, u8>), …, Some(exec::<Add, u64>)]`; `i: T => …` takes the signed types.
#[macro_export]
macro_rules! sizes {
    (u: $t:ident => $exec:expr) => { $crate::sizes!(@ $t u8 u16 u32 u64 => $exec) };
    (i: $t:ident => $exec:expr) => { $crate::sizes!(@ $t i8 i16 i32 i64 => $exec) };
    (@ $t:ident $($ty:ident)+ => $exec:expr) => {
        [$({
            type $t = $ty;
            Some($exec as $crate::table::Exec)
        }),+]
    };
}
