//! Floating-point operations on vectors.
//!
//! A result that is finite and above the smallest normal number is Arm's, and so is an exact zero: [`crate::fp::host`] has the
//! conditions. If an active element has another result, the instruction is left to its executing function.

/// The functions for one format. The module that invokes it has the host's operations under common names.
macro_rules! functions {
    () => {
        use std::arch::x86_64::{_CMP_EQ_OQ, _CMP_GE_OQ, _CMP_GT_OQ, _CMP_LE_OQ, _CMP_LT_OQ, _CMP_NEQ_OQ, _CMP_ORD_Q};
        use std::arch::x86_64::{_pdep_u64, _pext_u64};

        use fxscope_guestmem::Memory;

        use crate::cpu::{Cpu, Vreg};
        use crate::fast::avx512::{binary, form, fused, relation, unary};
        use crate::fast::interpret;
        use crate::fp::host::HostFloat;
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

        /// Returns the elements that an instruction of this form changes.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn changed<const FORM: u8>(cpu: &Cpu, i: &Inst) -> Mask {
            match FORM {
                form::MERGING | form::IMMEDIATE => mask(cpu.p(i.pg)),
                _ => mask(cpu.p_mask()),
            }
        }

        /// Returns the second operand of an instruction of this form.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn operand<const FORM: u8>(cpu: &Cpu, i: &Inst) -> Vector {
            match FORM {
                form::IMMEDIATE => splat(Number::from_bits(i.imm2 as Bits)),
                form::INDEXED => element_of_parts(read(cpu.z(i.rm)), i.aux),
                _ => read(cpu.z(i.rm)),
            }
        }

        /// Writes the elements of a register that an instruction of this form changes.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn finish<const FORM: u8>(cpu: &mut Cpu, i: &Inst, changed: Mask, value: Vector) {
            let z = cpu.z_mut(i.rd);
            let value = match FORM {
                form::MERGING | form::IMMEDIATE => blend(changed, read(z), value),
                // Beyond the vector length, registers are zero.
                _ => keep(changed, value),
            };
            write(z, value);
        }

        /// Returns the elements of `among` that are finite and above the smallest normal number.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn normal(among: Mask, x: Vector) -> Mask {
            let magnitude = abs(x);
            let above = compare_some::<_CMP_GT_OQ>(among, magnitude, splat(Number::MIN_POSITIVE));
            compare_some::<_CMP_LT_OQ>(above, magnitude, splat(Number::INFINITY))
        }

        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        fn zeros(x: Vector) -> Mask {
            compare_all::<_CMP_EQ_OQ>(x, splat(0.0))
        }

        /// `rd` = `rn` op `rm`.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn compute<const OP: u8, const FORM: u8>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
            let active = changed::<FORM>(cpu, i);
            let (a, b) = (read(cpu.z(i.rn)), operand::<FORM>(cpu, i));
            let result = match OP {
                binary::ADD => add(a, b),
                binary::SUB => sub(a, b),
                binary::MUL => mul(a, b),
                binary::DIV => div(a, b),
                binary::DISTANCE => abs(sub(a, b)),
                // Of equal numbers, which differ in the sign of zero only, the host returns the second one.
                binary::MAX => blend(compare_all::<_CMP_EQ_OQ>(a, b), max(a, b), and(a, b)),
                _ => blend(compare_all::<_CMP_EQ_OQ>(a, b), min(a, b), or(a, b)),
            };
            let certain = match OP {
                binary::MAX | binary::MIN => compare_some::<_CMP_ORD_Q>(active, a, b),
                _ => normal(active, result),
            };
            if certain != active {
                let exact = match OP {
                    binary::MUL => zeros(a) | zeros(b),
                    binary::DIV => zeros(a),
                    binary::MAX | binary::MIN => 0,
                    _ => Mask::MAX,
                };
                if certain | exact & zeros(result) & active != active {
                    return interpret(cpu, mem, i);
                }
            }
            finish::<FORM>(cpu, i, active, result);
            false
        }

        /// `rd` = ±`ra` ± `rn` × `rm`, rounded once.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn multiply_add<const OP: u8, const FORM: u8>(
            cpu: &mut Cpu,
            mem: &mut Memory,
            i: &Inst,
        ) -> bool {
            let active = changed::<FORM>(cpu, i);
            let (addend, a, b) = (read(cpu.z(i.ra)), read(cpu.z(i.rn)), operand::<FORM>(cpu, i));
            let result = match OP {
                fused::ADD => product_plus(a, b, addend),
                fused::SUB => product_minus(a, b, addend),
                fused::NEG_ADD => minus_product_plus(a, b, addend),
                _ => minus_product_minus(a, b, addend),
            };
            let certain = normal(active, result);
            if certain != active {
                let safe = compare_all::<_CMP_GE_OQ>(abs(addend), splat(Number::SAFE));
                let exact = zeros(a) | zeros(b) | safe;
                if certain | exact & zeros(result) & active != active {
                    return interpret(cpu, mem, i);
                }
            }
            finish::<FORM>(cpu, i, active, result);
            false
        }

        /// `rd` = √`rn`.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn root(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
            let active = mask(cpu.p(i.pg));
            let result = square_root(read(cpu.z(i.rn)));
            if normal(active, result) | zeros(result) & active != active {
                return interpret(cpu, mem, i);
            }
            finish::<{ form::MERGING }>(cpu, i, active, result);
            false
        }

        /// `rd` = `rn` with another sign.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn change<const OP: u8>(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> bool {
            let active = mask(cpu.p(i.pg));
            let x = read(cpu.z(i.rn));
            let result = if OP == unary::ABS { abs(x) } else { xor(x, splat(-0.0)) };
            finish::<{ form::MERGING }>(cpu, i, active, result);
            false
        }

        /// The active elements of `rn`, the others of `rm`.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn select(cpu: &mut Cpu, _: &mut Memory, i: &Inst) -> bool {
            let active = mask(cpu.p(i.pg));
            let result = blend(active, read(cpu.z(i.rm)), read(cpu.z(i.rn)));
            write(cpu.z_mut(i.rd), result);
            false
        }

        /// The active elements for which a relation holds between `rn` and `rm`, or (`ZERO`) zero.
        #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
        pub extern "C" fn compare<const OP: u8, const ZERO: bool>(cpu: &mut Cpu, mem: &mut Memory, i: &Inst) -> bool {
            let active = mask(cpu.p(i.pg));
            let a = read(cpu.z(i.rn));
            let b = if ZERO { splat(0.0) } else { read(cpu.z(i.rm)) };
            if compare_some::<_CMP_ORD_Q>(active, a, b) != active {
                return interpret(cpu, mem, i);
            }
            let holds = match OP {
                relation::EQ => compare_some::<_CMP_EQ_OQ>(active, a, b),
                relation::NE => compare_some::<_CMP_NEQ_OQ>(active, a, b),
                relation::GE => compare_some::<_CMP_GE_OQ>(active, a, b),
                relation::GT => compare_some::<_CMP_GT_OQ>(active, a, b),
                relation::LE => compare_some::<_CMP_LE_OQ>(active, a, b),
                _ => compare_some::<_CMP_LT_OQ>(active, a, b),
            };
            cpu.set_p(i.rd, _pdep_u64(holds.into(), LOWEST));
            false
        }
    };
}

/// Double precision.
pub mod double {
    use std::arch::x86_64::{
        __m512d as Vector, __mmask8 as Mask, _mm512_abs_pd as abs, _mm512_add_epi64, _mm512_add_pd as add,
        _mm512_and_pd as and, _mm512_cmp_pd_mask as compare_all, _mm512_div_pd as div, _mm512_fmadd_pd as product_plus,
        _mm512_fmsub_pd as product_minus, _mm512_fnmadd_pd as minus_product_plus,
        _mm512_fnmsub_pd as minus_product_minus, _mm512_load_pd as load, _mm512_mask_cmp_pd_mask as compare_some,
        _mm512_mask_mov_pd as blend_into, _mm512_maskz_mov_pd as keep, _mm512_max_pd as max, _mm512_min_pd as min,
        _mm512_mul_pd as mul, _mm512_or_pd as or, _mm512_permutexvar_pd as permute, _mm512_set_epi64,
        _mm512_set1_epi64, _mm512_set1_pd as splat, _mm512_sqrt_pd as square_root, _mm512_store_pd as store,
        _mm512_sub_pd as sub, _mm512_xor_pd as xor,
    };

    use f64 as Number;
    use u64 as Bits;

    /// The lowest bit of each element in a predicate.
    const LOWEST: u64 = 0x0101_0101_0101_0101;

    /// Returns `on` where `mask` has ones, `off` elsewhere.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn blend(mask: Mask, off: Vector, on: Vector) -> Vector {
        blend_into(off, mask, on)
    }

    /// Returns element `index` of each 128-bit part in both elements of that part.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn element_of_parts(x: Vector, index: u16) -> Vector {
        let first = _mm512_set_epi64(6, 6, 4, 4, 2, 2, 0, 0);
        permute(_mm512_add_epi64(first, _mm512_set1_epi64(i64::from(index & 1))), x)
    }

    functions!();
}

/// Single precision.
pub mod single {
    use std::arch::x86_64::{
        __m512 as Vector, __mmask16 as Mask, _mm512_abs_ps as abs, _mm512_add_epi32, _mm512_add_ps as add,
        _mm512_and_ps as and, _mm512_cmp_ps_mask as compare_all, _mm512_div_ps as div, _mm512_fmadd_ps as product_plus,
        _mm512_fmsub_ps as product_minus, _mm512_fnmadd_ps as minus_product_plus,
        _mm512_fnmsub_ps as minus_product_minus, _mm512_load_ps as load, _mm512_mask_cmp_ps_mask as compare_some,
        _mm512_mask_mov_ps as blend_into, _mm512_maskz_mov_ps as keep, _mm512_max_ps as max, _mm512_min_ps as min,
        _mm512_mul_ps as mul, _mm512_or_ps as or, _mm512_permutexvar_ps as permute, _mm512_set_epi32,
        _mm512_set1_epi32, _mm512_set1_ps as splat, _mm512_sqrt_ps as square_root, _mm512_store_ps as store,
        _mm512_sub_ps as sub, _mm512_xor_ps as xor,
    };

    use f32 as Number;
    use u32 as Bits;

    /// The lowest bit of each element in a predicate.
    const LOWEST: u64 = 0x1111_1111_1111_1111;

    /// Returns `on` where `mask` has ones, `off` elsewhere.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn blend(mask: Mask, off: Vector, on: Vector) -> Vector {
        blend_into(off, mask, on)
    }

    /// Returns element `index` of each 128-bit part in all elements of that part.
    #[inline]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,bmi2")]
    fn element_of_parts(x: Vector, index: u16) -> Vector {
        let first = _mm512_set_epi32(12, 12, 12, 12, 8, 8, 8, 8, 4, 4, 4, 4, 0, 0, 0, 0);
        permute(_mm512_add_epi32(first, _mm512_set1_epi32(i32::from(index & 3))), x)
    }

    functions!();
}
