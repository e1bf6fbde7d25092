//! Operations on 32- and 64-bit elements with AVX-512: on whole vectors of any length, under any predicate.
//!
//! A predicate has one bit for each byte; the host's masks have one for each element. PEXT and PDEP convert them.

mod float;
mod integer;

use self::float::{double, single};
use super::FastPath;
use crate::table::bits;

/// Which elements an instruction changes, and where its second operand is.
mod form {
    /// Active elements; the others keep their value.
    pub const MERGING: u8 = 0;
    /// All elements.
    pub const PLAIN: u8 = 1;
    /// Active elements; the second operand is `Inst::imm2`.
    pub const IMMEDIATE: u8 = 2;
    /// All elements; the second operand is an element of each 128-bit part.
    pub const INDEXED: u8 = 3;
}

/// Floating-point operations on two vectors.
mod binary {
    pub const ADD: u8 = 0;
    pub const SUB: u8 = 1;
    pub const MUL: u8 = 2;
    pub const DIV: u8 = 3;
    pub const MAX: u8 = 4;
    pub const MIN: u8 = 5;
    pub const DISTANCE: u8 = 6;
}

/// Changes of signs.
mod unary {
    pub const ABS: u8 = 0;
    pub const NEG: u8 = 1;
}

/// Multiply-add: signs of product and addend.
mod fused {
    pub const ADD: u8 = 0;
    pub const SUB: u8 = 1;
    pub const NEG_ADD: u8 = 2;
    pub const NEG_SUB: u8 = 3;
}

/// Relations.
mod relation {
    pub const EQ: u8 = 0;
    pub const NE: u8 = 1;
    pub const GE: u8 = 2;
    pub const GT: u8 = 3;
    pub const LE: u8 = 4;
    pub const LT: u8 = 5;
}

/// Returns whether the host has what the functions here are compiled for.
pub(super) fn is_on_host() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
}

/// Returns a function for 32- or 64-bit elements by field `size`, bits 23:22.
macro_rules! sized {
    ($word:expr, $function:ident $($generics:tt)*) => {
        match bits($word, 22, 2) {
            2 => Some(single::$function $($generics)* as FastPath),
            3 => Some(double::$function $($generics)* as FastPath),
            _ => None,
        }
    };
}

/// See [`super::find`].
pub(super) fn find(name: &str, word: u32) -> Option<FastPath> {
    match name {
        "SVE FABS" => sized!(word, change::<{ unary::ABS }>),
        "SVE FNEG" => sized!(word, change::<{ unary::NEG }>),
        "SEL (vectors)" => sized!(word, select),
        _ => integer::find(name, word),
    }
}

/// See [`super::find_float`].
pub(super) fn find_float(name: &str, word: u32) -> Option<FastPath> {
    use form::{IMMEDIATE, INDEXED, MERGING, PLAIN};
    use {binary as b, fused as f, relation as r};
    match name {
        "FADD (vectors, predicated)" => sized!(word, compute::<{ b::ADD }, MERGING>),
        "FADD (vectors, unpredicated)" => sized!(word, compute::<{ b::ADD }, PLAIN>),
        "FADD (immediate)" => sized!(word, compute::<{ b::ADD }, IMMEDIATE>),
        "FSUB (vectors, predicated)" | "FSUBR (vectors)" => sized!(word, compute::<{ b::SUB }, MERGING>),
        "FSUB (vectors, unpredicated)" => sized!(word, compute::<{ b::SUB }, PLAIN>),
        "FSUB (immediate)" => sized!(word, compute::<{ b::SUB }, IMMEDIATE>),
        "FMUL (vectors, predicated)" => sized!(word, compute::<{ b::MUL }, MERGING>),
        "FMUL (vectors, unpredicated)" => sized!(word, compute::<{ b::MUL }, PLAIN>),
        "FMUL (immediate)" => sized!(word, compute::<{ b::MUL }, IMMEDIATE>),
        "FMUL (indexed)" => sized!(word, compute::<{ b::MUL }, INDEXED>),
        "FDIV" | "FDIVR" => sized!(word, compute::<{ b::DIV }, MERGING>),
        "FMAX (vectors)" | "FMAXNM (vectors)" => sized!(word, compute::<{ b::MAX }, MERGING>),
        "FMAX (immediate)" | "FMAXNM (immediate)" => sized!(word, compute::<{ b::MAX }, IMMEDIATE>),
        "FMIN (vectors)" | "FMINNM (vectors)" => sized!(word, compute::<{ b::MIN }, MERGING>),
        "FMIN (immediate)" | "FMINNM (immediate)" => sized!(word, compute::<{ b::MIN }, IMMEDIATE>),
        "SVE FABD" => sized!(word, compute::<{ b::DISTANCE }, MERGING>),
        "SVE FSQRT" => sized!(word, root),
        "FMLA" | "FMAD" => sized!(word, multiply_add::<{ f::ADD }, MERGING>),
        "FMLS" | "FMSB" => sized!(word, multiply_add::<{ f::NEG_ADD }, MERGING>),
        "FNMLA" | "FNMAD" => sized!(word, multiply_add::<{ f::NEG_SUB }, MERGING>),
        "FNMLS" | "FNMSB" => sized!(word, multiply_add::<{ f::SUB }, MERGING>),
        "FMLA (indexed)" => sized!(word, multiply_add::<{ f::ADD }, INDEXED>),
        "FMLS (indexed)" => sized!(word, multiply_add::<{ f::NEG_ADD }, INDEXED>),
        "FCMEQ (vectors)" => sized!(word, compare::<{ r::EQ }, false>),
        "FCMNE (vectors)" => sized!(word, compare::<{ r::NE }, false>),
        "FCMGE (vectors)" => sized!(word, compare::<{ r::GE }, false>),
        "FCMGT (vectors)" => sized!(word, compare::<{ r::GT }, false>),
        "SVE FCMEQ (zero)" => sized!(word, compare::<{ r::EQ }, true>),
        "FCMNE (zero)" => sized!(word, compare::<{ r::NE }, true>),
        "SVE FCMGE (zero)" => sized!(word, compare::<{ r::GE }, true>),
        "SVE FCMGT (zero)" => sized!(word, compare::<{ r::GT }, true>),
        "SVE FCMLE (zero)" => sized!(word, compare::<{ r::LE }, true>),
        "SVE FCMLT (zero)" => sized!(word, compare::<{ r::LT }, true>),
        _ => None,
    }
}
