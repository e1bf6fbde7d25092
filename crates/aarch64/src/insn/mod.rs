//! The instruction groups. Each file is a table of encodings and, below it, their operands and semantics.

use crate::table::Encoding;

/// A row of the base instruction set whose timing class is its own name; the class is passed to `$decode`.
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

/// A file of encodings.
pub struct Group {
    /// Name of the file in `crates/aarch64/src/insn`, without its extension.
    pub name: &'static str,
    /// Its table.
    pub rows: &'static [Encoding],
}

macro_rules! groups {
    ($($group:ident)+) => {
        /// All groups, in the order in which documents list them.
        pub static GROUPS: &[Group] = &[$(Group { name: stringify!($group), rows: $group::TABLE }),+];
    };
}
groups! {
    base_dp_imm base_dp_reg base_branch base_system base_mem base_pair base_atomic fp_scalar
    simd_fp simd_fp_unary simd_int simd_shift simd_wide simd_permute simd_mem simd_crypto
    sve_int sve_int_misc sve_compare sve_shift sve_pred sve_count sve_permute sve_copy
    sve_fp sve_fp_fma sve_fp_convert sve_fp_misc sve_load sve_store sve_gather sve_scatter
    sve_prefetch
}
