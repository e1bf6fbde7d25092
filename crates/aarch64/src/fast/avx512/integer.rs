//! Integer operations on vectors.

use crate::fast::FastPath;
use crate::fast::avx512::{form, relation};
use crate::table::bits;

/// Operations on two vectors.
mod binary {
    pub const ADD: u8 = 0;
    pub const SUB: u8 = 1;
    pub const MUL: u8 = 2;
    pub const AND: u8 = 3;
    pub const OR: u8 = 4;
    pub const XOR: u8 = 5;
    pub const SIGNED_MAX: u8 = 6;
    pub const SIGNED_MIN: u8 = 7;
    pub const UNSIGNED_MAX: u8 = 8;
    pub const UNSIGNED_MIN: u8 = 9;
}

/// Returns a function for 32- or 64-bit elements by field `size`, bits 23:22.
macro_rules! sized {
    ($word:expr, $function:ident $($generics:tt)*) => {
        match bits($word, 22, 2) {
            2 => Some(words::$function $($generics)* as FastPath),
            3 => Some(doublewords::$function $($generics)* as FastPath),
            _ => None,
        }
    };
}

/// See [`crate::fast::find`].
pub(super) fn find(name: &str, word: u32) -> Option<FastPath> {
    use form::{IMMEDIATE, PLAIN};
    use {binary as b, relation as r};
    match name {
        "ADD (vectors, predicated)" => sized!(word, compute::<{ b::ADD }>),
        "SUB (vectors, predicated)" => sized!(word, compute::<{ b::SUB }>),
        "MUL (vectors)" => sized!(word, compute::<{ b::MUL }>),
        "AND (vectors, predicated)" => sized!(word, compute::<{ b::AND }>),
        "ORR (vectors, predicated)" => sized!(word, compute::<{ b::OR }>),
        "EOR (vectors, predicated)" => sized!(word, compute::<{ b::XOR }>),
        "SMAX (vectors)" => sized!(word, compute::<{ b::SIGNED_MAX }>),
        "SMIN (vectors)" => sized!(word, compute::<{ b::SIGNED_MIN }>),
        "UMAX (vectors)" => sized!(word, compute::<{ b::UNSIGNED_MAX }>),
        "UMIN (vectors)" => sized!(word, compute::<{ b::UNSIGNED_MIN }>),
        "ADD (vectors, unpredicated)" => sized!(word, compute_plain::<{ b::ADD }, PLAIN>),
        "SUB (vectors, unpredicated)" => sized!(word, compute_plain::<{ b::SUB }, PLAIN>),
        "SVE ADD (immediate)" => sized!(word, compute_plain::<{ b::ADD }, IMMEDIATE>),
        "SVE SUB (immediate)" => sized!(word, compute_plain::<{ b::SUB }, IMMEDIATE>),
        "MUL (immediate)" => sized!(word, compute_plain::<{ b::MUL }, IMMEDIATE>),
        // These have no element size.
        "AND (vectors, unpredicated)" => Some(doublewords::compute_plain::<{ b::AND }, PLAIN> as FastPath),
        "ORR (vectors, unpredicated)" => Some(doublewords::compute_plain::<{ b::OR }, PLAIN> as FastPath),
        "EOR (vectors, unpredicated)" => Some(doublewords::compute_plain::<{ b::XOR }, PLAIN> as FastPath),
        "MLA" => sized!(word, multiply_add::<false, true>),
        "MLS" => sized!(word, multiply_add::<true, true>),
        "MAD" => sized!(word, multiply_add::<false, false>),
        "MSB" => sized!(word, multiply_add::<true, false>),
        "DUP (immediate)" | "FDUP" => sized!(word, fill::<false>),
        "DUP (scalar)" => sized!(word, fill::<true>),
        "CPY (immediate, merging)" | "FCPY" => sized!(word, fill_active::<true>),
        "CPY (immediate, zeroing)" => sized!(word, fill_active::<false>),
        "CMPEQ (vectors)" => sized!(word, compare::<{ r::EQ }, true, PLAIN>),
        "CMPNE (vectors)" => sized!(word, compare::<{ r::NE }, true, PLAIN>),
        "CMPGE (vectors)" => sized!(word, compare::<{ r::GE }, true, PLAIN>),
        "CMPGT (vectors)" => sized!(word, compare::<{ r::GT }, true, PLAIN>),
        "CMPHS (vectors)" => sized!(word, compare::<{ r::GE }, false, PLAIN>),
        "CMPHI (vectors)" => sized!(word, compare::<{ r::GT }, false, PLAIN>),
        "CMPEQ (immediate)" => sized!(word, compare::<{ r::EQ }, true, IMMEDIATE>),
        "CMPNE (immediate)" => sized!(word, compare::<{ r::NE }, true, IMMEDIATE>),
        "CMPGE (immediate)" => sized!(word, compare::<{ r::GE }, true, IMMEDIATE>),
        "CMPGT (immediate)" => sized!(word, compare::<{ r::GT }, true, IMMEDIATE>),
        "CMPLE (immediate)" => sized!(word, compare::<{ r::LE }, true, IMMEDIATE>),
        "CMPLT (immediate)" => sized!(word, compare::<{ r::LT }, true, IMMEDIATE>),
        _ => None,
    }
}

/// The functions for one size of elements. The module that invokes it has the host's operations under common names.
macro_rules! functions {
    () => {
        use std::arch::x86_64::{
            __m512i as Vector, _MM_CMPINT_EQ, _MM_CMPINT_LE, _MM_CMPINT_LT, _MM_CMPINT_NE, _MM_CMPINT_NLE,
            _MM_CMPINT_NLT, _mm512_and_si512 as and, _mm512_load_si512 as load, _mm512_or_si512 as or,
            _mm512_store_si512 as store, _mm512_xor_si512 as xor,
        };
        use std::arch::x86_64::{_pdep_u64, _pext_u64};

        use fxscope_guestmem::Memory;

        use super::binary;
        use crate::cpu::{Cpu, Vreg};
        use crate::fast::avx512::{form, relation};
        use crate::insn::sve_common::predicate_test;
        use crate::table::Inst;

        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn read(z: &Vreg) -> Vector {
            // SAFETY: a register has the size and the alignment of the host's vector.
            #[allow(unsafe_code)]
            unsafe {
                load(z.0.as_ptr().cast())
            }
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn write(z: &mut Vreg, value: Vector) {
            // SAFETY: as in `read`.
            #[allow(unsafe_code)]
            unsafe {
                store(z.0.as_mut_ptr().cast(), value);
            }
        }

        /// Returns the active elements of a predicate.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn mask(p: u64) -> Mask {
            _pext_u64(p, LOWEST) as Mask
        }

        /// Writes all elements of `rd`; beyond the vector length, registers are zero.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn write_all(cpu: &mut Cpu, i: &Inst, value: Vector) {
            let all = mask(cpu.p_mask());
            write(cpu.z_mut(i.rd), keep(all, value));
        }

        /// Writes the active elements of `rd`; the others keep their value.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn write_active(cpu: &mut Cpu, i: &Inst, value: Vector) {
            let active = mask(cpu.p(i.pg));
            let z = cpu.z_mut(i.rd);
            write(z, blend(read(z), active, value));
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn operation<const OP: u8>(a: Vector, b: Vector) -> Vector {
            match OP {
                binary::ADD => add(a, b),
                binary::SUB => sub(a, b),
                binary::MUL => mul(a, b),
                binary::AND => and(a, b),
                binary::OR => or(a, b),
                binary::XOR => xor(a, b),
                binary::SIGNED_MAX => signed_max(a, b),
                binary::SIGNED_MIN => signed_min(a, b),
                binary::UNSIGNED_MAX => unsigned_max(a, b),
                _ => unsigned_min(a, b),
            }
        }

        /// `rd` = `rd` op `rm`, merging.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn compute<const OP: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> bool {
            let result = operation::<OP>(read(cpu.z(i.rd)), read(cpu.z(i.rm)));
            write_active(cpu, i, result);
            false
        }

        /// `rd` = `rn` op `rm`, or `rd` op immediate.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn compute_plain<const OP: u8, const FORM: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> bool {
            let result = match FORM {
                form::IMMEDIATE => operation::<OP>(read(cpu.z(i.rd)), splat(i.imm as Word)),
                _ => operation::<OP>(read(cpu.z(i.rn)), read(cpu.z(i.rm))),
            };
            write_all(cpu, i, result);
            false
        }

        /// `rd` = addend ± product; `ACCUMULATES`: the addend is `rd`, a factor `rn`, otherwise they are exchanged.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn multiply_add<const SUBTRACTS: bool, const ACCUMULATES: bool>(
            cpu: &mut Cpu,
            _: &mut Memory,
            i: &Inst,
        ) -> bool {
            let (d, n) = (read(cpu.z(i.rd)), read(cpu.z(i.rn)));
            let (addend, factor) = if ACCUMULATES { (d, n) } else { (n, d) };
            let product = mul(factor, read(cpu.z(i.rm)));
            let result = if SUBTRACTS { sub(addend, product) } else { add(addend, product) };
            write_active(cpu, i, result);
            false
        }

        /// All elements become `rn` (`REGISTER`) or an immediate.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn fill<const REGISTER: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> bool {
            let value = if REGISTER { cpu.x(i.rn) as Word } else { i.imm as Word };
            write_all(cpu, i, splat(value));
            false
        }

        /// The active elements become an immediate, the others keep their value (`MERGES`) or become zero.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn fill_active<const MERGES: bool>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> bool {
            let value = splat(i.imm as Word);
            if MERGES {
                write_active(cpu, i, value);
            } else {
                let active = mask(cpu.p(i.pg));
                write(cpu.z_mut(i.rd), keep(active, value));
            }
            false
        }

        /// The active elements for which a relation holds between `rn` and `rm` or an immediate, with flags.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn compare<const OP: u8, const SIGNED: bool, const FORM: u8>(
            cpu: &mut Cpu,
            _: &mut Memory,
            i: &Inst,
        ) -> bool {
            let p = cpu.p(i.pg) & LOWEST;
            let active = mask(p);
            let a = read(cpu.z(i.rn));
            let b = if FORM == form::IMMEDIATE { splat(i.imm as Word) } else { read(cpu.z(i.rm)) };
            let holds = match (OP, SIGNED) {
                (relation::EQ, _) => signed::<_MM_CMPINT_EQ>(active, a, b),
                (relation::NE, _) => signed::<_MM_CMPINT_NE>(active, a, b),
                (relation::GE, true) => signed::<_MM_CMPINT_NLT>(active, a, b),
                (relation::GT, true) => signed::<_MM_CMPINT_NLE>(active, a, b),
                (relation::LE, true) => signed::<_MM_CMPINT_LE>(active, a, b),
                (relation::LT, true) => signed::<_MM_CMPINT_LT>(active, a, b),
                (relation::GE, false) => unsigned::<_MM_CMPINT_NLT>(active, a, b),
                (relation::GT, false) => unsigned::<_MM_CMPINT_NLE>(active, a, b),
                (relation::LE, false) => unsigned::<_MM_CMPINT_LE>(active, a, b),
                _ => unsigned::<_MM_CMPINT_LT>(active, a, b),
            };
            let result = _pdep_u64(holds.into(), LOWEST);
            cpu.nzcv = predicate_test(p, result);
            cpu.set_p(i.rd, result);
            false
        }
    };
}

/// Elements of 64 bits.
mod doublewords {
    use std::arch::x86_64::{
        __mmask8 as Mask, _mm512_add_epi64 as add, _mm512_mask_cmp_epi64_mask as signed,
        _mm512_mask_cmp_epu64_mask as unsigned, _mm512_mask_mov_epi64 as blend, _mm512_maskz_mov_epi64 as keep,
        _mm512_max_epi64 as signed_max, _mm512_max_epu64 as unsigned_max, _mm512_min_epi64 as signed_min,
        _mm512_min_epu64 as unsigned_min, _mm512_mullo_epi64 as mul, _mm512_set1_epi64 as splat,
        _mm512_sub_epi64 as sub,
    };

    use i64 as Word;

    /// The lowest bit of each element in a predicate.
    const LOWEST: u64 = 0x0101_0101_0101_0101;

    functions!();
}

/// Elements of 32 bits.
mod words {
    use std::arch::x86_64::{
        __mmask16 as Mask, _mm512_add_epi32 as add, _mm512_mask_cmp_epi32_mask as signed,
        _mm512_mask_cmp_epu32_mask as unsigned, _mm512_mask_mov_epi32 as blend, _mm512_maskz_mov_epi32 as keep,
        _mm512_max_epi32 as signed_max, _mm512_max_epu32 as unsigned_max, _mm512_min_epi32 as signed_min,
        _mm512_min_epu32 as unsigned_min, _mm512_mullo_epi32 as mul, _mm512_set1_epi32 as splat,
        _mm512_sub_epi32 as sub,
    };

    use i32 as Word;

    /// The lowest bit of each element in a predicate.
    const LOWEST: u64 = 0x1111_1111_1111_1111;

    functions!();
}
