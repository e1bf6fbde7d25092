//! The instruction groups. Each file is a table of encodings and, below it, their operands and semantics.

use crate::table::Encoding;

/// A row of the base instruction set whose timing class is its own name; the class is handed to `$decode`.
macro_rules! base {
    ($name:literal, $pattern:literal, $decode:expr) => {
        $crate::enc!($name, $pattern, |w, c| $decode(w, c, concat!("base:", $name)))
    };
}

/// The same for rows that the machine's table lists with AdvSIMD.
macro_rules! simd {
    ($name:literal, $pattern:literal, $decode:expr) => {
        $crate::enc!($name, $pattern, |w, c| $decode(w, c, concat!("simd:", $name)))
    };
}

pub mod alu;
pub mod base_atomic;
pub mod base_branch;
pub mod base_dp_imm;
pub mod base_dp_reg;
pub mod base_mem;
pub mod base_pair;
pub mod base_system;
pub mod fp_scalar;
pub mod simd_common;
pub mod simd_crypto;
pub mod simd_fp;
pub mod simd_fp_unary;
pub mod simd_int;
pub mod simd_mem;
pub mod simd_permute;
pub mod simd_shift;
pub mod simd_wide;
pub mod sve_common;
pub mod sve_compare;
pub mod sve_copy;
pub mod sve_count;
pub mod sve_element;
pub mod sve_float;
pub mod sve_fp;
pub mod sve_fp_convert;
pub mod sve_fp_fma;
pub mod sve_fp_misc;
pub mod sve_gather;
pub mod sve_int;
pub mod sve_int_misc;
pub mod sve_load;
pub mod sve_mem;
pub mod sve_permute;
pub mod sve_pred;
pub mod sve_prefetch;
pub mod sve_scatter;
pub mod sve_shift;
pub mod sve_store;

/// All groups, in the order in which documents list them.
pub const GROUPS: &[&[Encoding]] = &[
    base_dp_imm::TABLE,
    base_dp_reg::TABLE,
    base_branch::TABLE,
    base_system::TABLE,
    base_mem::TABLE,
    base_pair::TABLE,
    base_atomic::TABLE,
    fp_scalar::TABLE,
    simd_fp::TABLE,
    simd_fp_unary::TABLE,
    simd_int::TABLE,
    simd_shift::TABLE,
    simd_wide::TABLE,
    simd_permute::TABLE,
    simd_mem::TABLE,
    simd_crypto::TABLE,
    sve_int::TABLE,
    sve_int_misc::TABLE,
    sve_compare::TABLE,
    sve_shift::TABLE,
    sve_pred::TABLE,
    sve_count::TABLE,
    sve_permute::TABLE,
    sve_copy::TABLE,
    sve_fp::TABLE,
    sve_fp_fma::TABLE,
    sve_fp_convert::TABLE,
    sve_fp_misc::TABLE,
    sve_load::TABLE,
    sve_store::TABLE,
    sve_gather::TABLE,
    sve_scatter::TABLE,
    sve_prefetch::TABLE,
];
