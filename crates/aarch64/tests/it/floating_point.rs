//! Compares floating-point arithmetic with `rustc_apfloat`, an independent implementation of IEEE 754, and with the rules that
//! Arm adds to it.

use fxscope_aarch64::Vreg;
use fxscope_aarch64::fp::{self, Float, FpEnv, Rounding, vector};
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float as Apfloat, FloatConvert, Round, Status, StatusAnd};

/// A reproducible sequence of operands.
struct Operands(u64);

impl Operands {
    fn bits(&mut self) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns an interesting number: any, a boundary of the format, close to another number, or with few significant bits.
    fn float<F: Float>(&mut self, near: F) -> F {
        let r = self.bits();
        let any = self.bits();
        let sign = F::SIGN & any;
        let wobble = |bits: u64| bits.wrapping_add(r >> 8 & 7).wrapping_sub(3) & (F::SIGN - 1) | sign;
        let one = (F::BIAS as u64) << F::FRACTION;
        F::from_u64(match r & 15 {
            0..=3 => any,
            4 => sign,
            5 => wobble(F::INFINITY),
            6 => wobble(1 << F::FRACTION),
            7 => wobble(near.to_u64()),
            8 => near.to_u64() ^ F::SIGN,
            9 => sign | any & F::FRACTION_MASK,
            10 => wobble(0),
            11 => sign | near.to_u64() & !F::SIGN & !F::FRACTION_MASK | any >> 8 & F::FRACTION_MASK,
            // Small integers and halves.
            12..=13 => {
                fp::from_int::<F, i16>(&mut FpEnv::default(), (any % 2048) as i16 - 1024, 1, Rounding::Zero).to_u64()
            }
            // Near one, with few bits.
            _ => {
                sign | (one.wrapping_add((any >> 20 & 31) << F::FRACTION) - (8 << F::FRACTION))
                    | any << (F::FRACTION - 4) & F::FRACTION_MASK
            }
        })
    }

    /// Returns an environment in any rounding mode, with any flags set.
    fn env(&mut self) -> FpEnv {
        let r = self.bits();
        FpEnv { fpcr: (r as u32 & 3) << 22, fpsr: (r >> 8) as u32 & 0x9f, ..FpEnv::default() }
    }
}

fn round_of(env: &FpEnv) -> Round {
    match env.rounding() {
        Rounding::TiesEven => Round::NearestTiesToEven,
        Rounding::Plus => Round::TowardPositive,
        Rounding::Minus => Round::TowardNegative,
        Rounding::Zero => Round::TowardZero,
        other => panic!("FPCR cannot select {other:?}"),
    }
}

/// Arm's result of an operation.
struct Expected<F> {
    value: F,
    fpsr: u32,
    /// Flags that the oracle does not determine.
    unknown: u32,
}

/// Returns Arm's result of an operation that `ideal` performs in a given rounding on operands that are not NaNs: the same value,
/// the default NaN, and underflow detected before rounding.
fn expected<F: Float, A: Apfloat>(env: &FpEnv, ideal: impl Fn(Round) -> StatusAnd<A>) -> Expected<F> {
    let StatusAnd { status, value } = ideal(round_of(env));
    let truncated = ideal(Round::TowardZero).value.to_bits() as u64 & (F::SIGN - 1);
    let tiny = truncated < 1 << F::FRACTION;
    let mut fpsr = env.fpsr;
    for (theirs, ours) in [
        (Status::INVALID_OP, FpEnv::IOC),
        (Status::DIV_BY_ZERO, FpEnv::DZC),
        (Status::OVERFLOW, FpEnv::OFC),
        (Status::INEXACT, FpEnv::IXC),
    ] {
        if status.contains(theirs) {
            fpsr |= ours;
        }
    }
    if tiny && status.contains(Status::INEXACT) {
        fpsr |= FpEnv::UFC;
    }
    let value = F::from_u64(value.to_bits() as u64);
    // The oracle reports no overflow when rounding stops at the largest number.
    let unknown = if value.magnitude() == F::INFINITY - 1 { FpEnv::OFC } else { 0 };
    Expected { value: if value.is_nan() { F::default_nan() } else { value }, fpsr, unknown }
}

/// Applies `check` to many triples of operands without NaNs.
fn for_operands<F: Float>(seed: u64, count: usize, mut check: impl FnMut(FpEnv, F, F, F)) {
    let mut operands = Operands(seed);
    let mut previous = F::from_u64(0);
    for _ in 0..count {
        let a = operands.float::<F>(previous);
        let b = operands.float(a);
        let c = operands.float(b);
        let env = operands.env();
        previous = c;
        if ![a, b, c].iter().any(|x| x.is_nan()) {
            check(env, a, b, c);
        }
    }
}

/// Panics with all operands and results if the results differ.
fn same<F: Float, R: Float>(what: &str, env: &FpEnv, operands: &[F], got: (R, u32), expected: Expected<R>) {
    let known = (got.0.to_u64(), got.1 & !expected.unknown);
    let Expected { value, fpsr, unknown } = expected;
    assert_eq!(
        known,
        (value.to_u64(), fpsr & !unknown),
        "{what} of {operands:x?} in {env:x?}: got {got:x?}, expected {value:x?} {fpsr:x}"
    );
}

fn arithmetic_is_ieee<F: Float, A: Apfloat>() {
    let ieee = |x: F| A::from_bits(u128::from(x.to_u64()));
    for_operands::<F>(1, 400_000, |start, a, b, c| {
        let run = |f: &dyn Fn(&mut FpEnv) -> F| {
            let mut env = start;
            let r = f(&mut env);
            (r, env.fpsr)
        };
        let sum = expected(&start, |r| ieee(a).add_r(ieee(b), r));
        same("add", &start, &[a, b], run(&|e| fp::add(e, a, b)), sum);
        let difference = expected(&start, |r| ieee(a).sub_r(ieee(b), r));
        same("sub", &start, &[a, b], run(&|e| fp::sub(e, a, b)), difference);
        let product = expected(&start, |r| ieee(a).mul_r(ieee(b), r));
        same("mul", &start, &[a, b], run(&|e| fp::mul(e, a, b)), product);
        let quotient = expected(&start, |r| ieee(a).div_r(ieee(b), r));
        same("div", &start, &[a, b], run(&|e| fp::div(e, a, b)), quotient);
        let fused = expected(&start, |r| ieee(a).mul_add_r(ieee(b), ieee(c), r));
        same("mul_add", &start, &[c, a, b], run(&|e| fp::mul_add(e, c, a, b)), fused);
        let two = ieee(F::power_of_two(false, 1));
        if !(a.magnitude() == F::INFINITY || b.magnitude() == F::INFINITY) {
            let step = expected(&start, |r| (-ieee(a)).mul_add_r(ieee(b), two, r));
            same("recip_step", &start, &[a, b], run(&|e| fp::recip_step(e, a, b)), step);
        }
    });
}

#[test]
fn half_arithmetic_is_ieee_with_tininess_before_rounding() {
    arithmetic_is_ieee::<u16, Half>();
}

#[test]
fn single_arithmetic_is_ieee_with_tininess_before_rounding() {
    arithmetic_is_ieee::<u32, Single>();
}

#[test]
fn double_arithmetic_is_ieee_with_tininess_before_rounding() {
    arithmetic_is_ieee::<u64, Double>();
}

/// Returns the result of `ideal` under flush-to-zero, on operands that are already flushed.
fn flushed<F: Float, A: Apfloat>(env: &FpEnv, ideal: impl Fn(Round) -> StatusAnd<A>) -> Expected<F> {
    let truncated = ideal(Round::TowardZero);
    let magnitude = truncated.value.to_bits() as u64 & (F::SIGN - 1);
    let is_zero = magnitude == 0 && truncated.status == Status::OK;
    if magnitude < 1 << F::FRACTION && !is_zero {
        let zero = F::zero(F::from_u64(truncated.value.to_bits() as u64).sign());
        return Expected { value: zero, fpsr: env.fpsr | FpEnv::UFC, unknown: 0 };
    }
    expected(env, ideal)
}

fn flushing_happens_before_and_after<F: Float, A: Apfloat>(control: u32) {
    for_operands::<F>(5, 300_000, |mut start, a, b, c| {
        start.fpcr |= control;
        let is_denormal = |x: F| x.magnitude() != 0 && x.magnitude() < 1 << F::FRACTION;
        let ieee = |x: F| {
            let x = if is_denormal(x) { F::zero(x.sign()) } else { x };
            A::from_bits(u128::from(x.to_u64()))
        };
        // Half precision flushes its operands silently.
        let with_operands = |mut e: Expected<F>, operands: &[F]| {
            if F::BITS != 16 && operands.iter().any(|&x| is_denormal(x)) {
                e.fpsr |= FpEnv::IDC;
            }
            e
        };
        let run = |f: &dyn Fn(&mut FpEnv) -> F| {
            let mut env = start;
            let r = f(&mut env);
            (r, env.fpsr)
        };
        let sum = with_operands(flushed(&start, |r| ieee(a).add_r(ieee(b), r)), &[a, b]);
        same("add", &start, &[a, b], run(&|e| fp::add(e, a, b)), sum);
        let product = with_operands(flushed(&start, |r| ieee(a).mul_r(ieee(b), r)), &[a, b]);
        same("mul", &start, &[a, b], run(&|e| fp::mul(e, a, b)), product);
        let quotient = with_operands(flushed(&start, |r| ieee(a).div_r(ieee(b), r)), &[a, b]);
        same("div", &start, &[a, b], run(&|e| fp::div(e, a, b)), quotient);
        let fused = with_operands(flushed(&start, |r| ieee(a).mul_add_r(ieee(b), ieee(c), r)), &[a, b, c]);
        same("mul_add", &start, &[c, a, b], run(&|e| fp::mul_add(e, c, a, b)), fused);
    });
}

#[test]
fn half_flushes_denormals_under_fz16() {
    flushing_happens_before_and_after::<u16, Half>(FpEnv::FZ16);
}

#[test]
fn single_flushes_denormals_under_fz() {
    flushing_happens_before_and_after::<u32, Single>(FpEnv::FZ);
}

#[test]
fn double_flushes_denormals_under_fz() {
    flushing_happens_before_and_after::<u64, Double>(FpEnv::FZ);
}

const DENORMAL: u64 = 1;
const ONE: u64 = 1.0_f64.to_bits();

/// Returns the denormal operations that `f` counts, with no flags set and with the flags that arithmetic often sets.
fn denormals(fpcr: u32, f: impl Fn(&mut FpEnv)) -> [u32; 2] {
    [0, FpEnv::IXC].map(|fpsr| {
        let mut env = FpEnv { fpcr, fpsr, ..FpEnv::default() };
        f(&mut env);
        env.denormals
    })
}

#[test]
fn an_operation_with_denormal_operands_or_results_counts_once() {
    let single = f64::from(f32::from_bits(1)).to_bits();
    for (fpcr, once) in [(0, [1; 2]), (FpEnv::FZ, [0; 2])] {
        assert_eq!(denormals(fpcr, |e| _ = fp::add(e, DENORMAL, ONE)), once, "an operand");
        assert_eq!(denormals(fpcr, |e| _ = fp::add(e, DENORMAL, DENORMAL)), once, "all of them");
        assert_eq!(
            denormals(fpcr, |e| _ = fp::mul(e, f64::MIN_POSITIVE.to_bits(), 0.5_f64.to_bits())),
            once,
            "the result"
        );
        assert_eq!(denormals(fpcr, |e| _ = fp::mul_add(e, DENORMAL, ONE, ONE)), once, "an addend");
        assert_eq!(denormals(fpcr, |e| _ = fp::max(e, DENORMAL, ONE)), once);
        assert_eq!(denormals(fpcr, |e| _ = fp::compare(e, DENORMAL, DENORMAL, false)), once);
        assert_eq!(denormals(fpcr, |e| _ = fp::to_int::<u64, i64>(e, DENORMAL, 0, Rounding::Zero)), once);
        assert_eq!(denormals(fpcr, |e| _ = fp::convert::<u64, u32>(e, single)), once, "a conversion's result");
    }
    assert_eq!(denormals(0, |e| _ = fp::add(e, ONE, ONE)), [0; 2]);
    assert_eq!(denormals(0, |e| _ = fp::compare(e, ONE, 0, false)), [0; 2]);
    assert_eq!(denormals(0, |e| _ = fp::convert::<u64, u32>(e, ONE)), [0; 2]);
}

#[test]
fn elements_of_vectors_count_individually_after_the_first_denormal_number() {
    let (mut a, mut b) = (Vreg::ZERO, Vreg::ZERO);
    a.lanes_mut::<u64>().fill(ONE);
    b.lanes_mut::<u64>().fill(ONE);
    a.lanes_mut::<u64>()[..3].fill(DENORMAL);
    let counted = |fpsr, active| {
        let mut env = FpEnv { fpsr, denormals: 1, ..FpEnv::default() };
        _ = vector::add::<u64>(&mut env, &a, &b, active);
        let sums = env.denormals - 1;
        _ = vector::gt::<u64>(&mut env, &a, &b, active);
        [sums, env.denormals - 1 - sums]
    };
    for fpsr in [0, FpEnv::IXC] {
        assert_eq!(counted(fpsr, 0x0101_0101_0101_0101), [3; 2]);
        assert_eq!(counted(fpsr, 0x0101_0101_0101_0100), [2; 2], "the first is inactive");
        assert_eq!(counted(fpsr, 0x0101), [2; 2], "the lowest 16 bytes");
    }
}

#[test]
fn nans_propagate_signalling_first_then_in_operand_order() {
    const QUIET_1: u32 = 0x7fc0_0001;
    const QUIET_2: u32 = 0xffc0_0002;
    const SIGNALLING_3: u32 = 0x7f80_0003;
    const ONE: u32 = 0x3f80_0000;
    const INFINITY: u32 = 0x7f80_0000;
    let add = |fpcr, a, b| {
        let mut env = FpEnv { fpcr, ..FpEnv::default() };
        (fp::add(&mut env, a, b), env.fpsr)
    };
    assert_eq!(add(0, ONE, QUIET_2), (QUIET_2, 0));
    assert_eq!(add(0, QUIET_1, QUIET_2), (QUIET_1, 0));
    assert_eq!(add(0, QUIET_1, SIGNALLING_3), (SIGNALLING_3 | 0x40_0000, FpEnv::IOC));
    assert_eq!(add(FpEnv::DN, QUIET_2, ONE), (0x7fc0_0000, 0));
    let fused = |c, a, b| {
        let mut env = FpEnv::default();
        (fp::mul_add(&mut env, c, a, b), env.fpsr)
    };
    // The addend comes first.
    assert_eq!(fused(QUIET_1, QUIET_2, ONE), (QUIET_1, 0));
    assert_eq!(fused(QUIET_1, ONE, SIGNALLING_3), (SIGNALLING_3 | 0x40_0000, FpEnv::IOC));
    // Zero times infinity takes precedence over a quiet addend.
    assert_eq!(fused(QUIET_2, 0, INFINITY), (0x7fc0_0000, FpEnv::IOC));
}

/// The square root r of a, checked by exact integer arithmetic: a neighbour of r on either side of the true root.
#[test]
fn square_roots_are_correctly_rounded() {
    for_operands::<u64>(2, 200_000, |mut env, a, _, _| {
        if a.sign() || a == u64::INFINITY {
            return;
        }
        env.fpcr = 0;
        let r = fp::sqrt(&mut env, a);
        assert_eq!(f64::from_bits(r), f64::from_bits(a).sqrt());
        let mut down = FpEnv { fpcr: 2 << 22, ..FpEnv::default() };
        let mut up = FpEnv { fpcr: 1 << 22, ..FpEnv::default() };
        let (below, above) = (fp::sqrt(&mut down, a), fp::sqrt(&mut up, a));
        let square = |x: u64| Double::from_bits(x.into()).mul_r(Double::from_bits(x.into()), Round::TowardZero);
        let exact = square(r).status == Status::OK && square(r).value.to_bits() as u64 == a;
        if a >= 1 << 60 {
            assert_eq!(down.fpsr & FpEnv::IXC == 0, exact, "{a:x}");
        }
        assert_eq!(above - below, u64::from(down.fpsr & FpEnv::IXC != 0), "{a:x}");
        assert!(r == below || r == above);
    });
    for a in 0..=u16::INFINITY as u16 {
        let mut env = FpEnv::default();
        let wide: u64 = fp::convert(&mut env, a);
        let root: u64 = f64::from_bits(wide).sqrt().to_bits();
        // 53 bits are more than twice 11: rounding twice equals rounding once.
        let expected: u16 = fp::convert(&mut FpEnv::default(), root);
        assert_eq!(fp::sqrt(&mut env, a), expected, "{a:x}");
    }
}

fn conversions_are_ieee<F: Float, A: Apfloat + FloatConvert<Half> + FloatConvert<Single> + FloatConvert<Double>>() {
    let ieee = |x: F| A::from_bits(u128::from(x.to_u64()));
    for_operands::<F>(3, 300_000, |start, a, b, _| {
        fn to<F: Float, A: FloatConvert<B>, B: Apfloat, D: Float>(start: &FpEnv, a: F, x: A) {
            let mut env = *start;
            let r: D = fp::convert(&mut env, a);
            let ideal = expected(start, |round| x.convert_r(round, &mut false));
            same("convert", start, &[a], (r, env.fpsr), ideal);
        }
        to::<F, A, Half, u16>(&start, a, ieee(a));
        to::<F, A, Single, u32>(&start, a, ieee(a));
        to::<F, A, Double, u64>(&start, a, ieee(a));

        let mut env = start;
        let rounding = env.rounding();
        let r = fp::round_to_int(&mut env, a, rounding, true);
        let ideal = ieee(a).round_to_integral(round_of(&start));
        let inexact = if ideal.value.to_bits() == u128::from(a.to_u64()) { 0 } else { FpEnv::IXC };
        assert_eq!((r.to_u64(), env.fpsr), (ideal.value.to_bits() as u64, start.fpsr | inexact), "round {a:x?}");

        fn to_int<F: Float, A: Apfloat, I: fp::Integer>(start: &FpEnv, a: F, x: A, width: usize) {
            let mut env = *start;
            let rounding = env.rounding();
            let r: I = fp::to_int(&mut env, a, 0, rounding);
            let mut exact = false;
            let signed = I::MIN < 0;
            let (status, value) = if signed {
                let r = x.to_i128_r(width, round_of(start), &mut exact);
                (r.status, r.value)
            } else {
                let r = x.to_u128_r(width, round_of(start), &mut exact);
                (r.status, r.value as i128)
            };
            let flags = if status.contains(Status::INVALID_OP) {
                FpEnv::IOC
            } else if status.contains(Status::INEXACT) {
                FpEnv::IXC
            } else {
                0
            };
            assert_eq!((r.to_i128(), env.fpsr), (value, start.fpsr | flags), "{a:x?} to {width} bits in {start:x?}");
        }
        to_int::<F, A, i16>(&start, a, ieee(a), 16);
        to_int::<F, A, u16>(&start, a, ieee(a), 16);
        to_int::<F, A, i32>(&start, a, ieee(a), 32);
        to_int::<F, A, u32>(&start, a, ieee(a), 32);
        to_int::<F, A, i64>(&start, a, ieee(a), 64);
        to_int::<F, A, u64>(&start, a, ieee(a), 64);

        let value = (b.to_u64() as i64).wrapping_mul(0x1_0001) >> (a.to_u64() & 63);
        let mut env = start;
        let r: F = fp::from_int(&mut env, value, 0, rounding);
        let ideal = expected::<F, A>(&start, |round| A::from_i128_r(value.into(), round));
        same("from_int", &start, &[b], (r, env.fpsr), ideal);
        let mut env = start;
        let r: F = fp::from_int(&mut env, value as u64, 0, rounding);
        let ideal = expected::<F, A>(&start, |round| A::from_u128_r((value as u64).into(), round));
        same("from_int", &start, &[b], (r, env.fpsr), ideal);
    });
}

#[test]
fn half_conversions_are_ieee() {
    conversions_are_ieee::<u16, Half>();
}

#[test]
fn single_conversions_are_ieee() {
    conversions_are_ieee::<u32, Single>();
}

#[test]
fn double_conversions_are_ieee() {
    conversions_are_ieee::<u64, Double>();
}

/// Vectors give the same results and flags as their elements one by one; inactive elements set no flags.
fn vectors_are_their_elements<F: Float>() {
    let mut operands = Operands(4);
    let lanes = 64 * 8 / F::BITS as usize;
    for round in 0..20_000 {
        let mut v = [Vreg::ZERO; 3];
        for register in &mut v {
            for i in 0..lanes {
                // Mostly numbers near one, so that all lanes often take the same path.
                let x = operands.float(F::power_of_two(false, 0));
                let plain = fp::from_int::<F, i16>(&mut FpEnv::default(), (x.to_u64() & 255) as i16, 3, Rounding::Zero);
                register.lanes_mut::<F>()[i] = if round % 4 == 0 { x } else { plain };
            }
        }
        let [a, b, c] = v;
        let active = match round % 3 {
            0 => vector::all(64),
            1 => vector::all(16),
            _ => operands.bits() & operands.bits(),
        };
        let mut start = operands.env();
        start.fpcr = if round % 5 == 0 { start.fpcr } else { (round as u32 & 1) << 24 };
        // Operands of vectors are checked for denormals only after the first one.
        start.denormals = round as u32 & 2;
        type Vector<F> = (&'static str, fn(&mut FpEnv, &Vreg, &Vreg, &Vreg, u64) -> Vreg, fn(&mut FpEnv, F, F, F) -> F);
        let operations: [Vector<F>; 14] = [
            ("add", |e, a, b, _, p| vector::add::<F>(e, a, b, p), |e, a, b, _| fp::add(e, a, b)),
            ("sub", |e, a, b, _, p| vector::sub::<F>(e, a, b, p), |e, a, b, _| fp::sub(e, a, b)),
            ("abd", |e, a, b, _, p| vector::abd::<F>(e, a, b, p), |e, a, b, _| fp::abd(e, a, b)),
            ("mul", |e, a, b, _, p| vector::mul::<F>(e, a, b, p), |e, a, b, _| fp::mul(e, a, b)),
            ("mulx", |e, a, b, _, p| vector::mulx::<F>(e, a, b, p), |e, a, b, _| fp::mulx(e, a, b)),
            ("div", |e, a, b, _, p| vector::div::<F>(e, a, b, p), |e, a, b, _| fp::div(e, a, b)),
            ("sqrt", |e, a, _, _, p| vector::sqrt::<F>(e, a, p), |e, a, _, _| fp::sqrt(e, a)),
            ("mul_add", |e, a, b, c, p| vector::mul_add::<F>(e, a, b, c, p), |e, a, b, c| fp::mul_add(e, a, b, c)),
            ("recip_step", |e, a, b, _, p| vector::recip_step::<F>(e, a, b, p), |e, a, b, _| fp::recip_step(e, a, b)),
            ("rsqrt_step", |e, a, b, _, p| vector::rsqrt_step::<F>(e, a, b, p), |e, a, b, _| fp::rsqrt_step(e, a, b)),
            ("max", |e, a, b, _, p| vector::max::<F>(e, a, b, p), |e, a, b, _| fp::max(e, a, b)),
            ("min", |e, a, b, _, p| vector::min::<F>(e, a, b, p), |e, a, b, _| fp::min(e, a, b)),
            ("maxnm", |e, a, b, _, p| vector::maxnm::<F>(e, a, b, p), |e, a, b, _| fp::maxnm(e, a, b)),
            ("minnm", |e, a, b, _, p| vector::minnm::<F>(e, a, b, p), |e, a, b, _| fp::minnm(e, a, b)),
        ];
        for (name, on_vector, on_element) in operations {
            let (mut all_at_once, mut one_by_one) = (start, start);
            let r = on_vector(&mut all_at_once, &a, &b, &c, active);
            for i in (0..lanes).filter(|i| active >> (i * F::BITS as usize / 8) & 1 != 0) {
                let [x, y, z] = v.map(|v| v.lanes::<F>()[i]);
                let expected = on_element(&mut one_by_one, x, y, z);
                assert_eq!(r.lanes::<F>()[i], expected, "{name} of {x:x?} {y:x?} {z:x?} in {start:x?}");
            }
            if start.denormals == 0 {
                all_at_once.denormals = one_by_one.denormals;
            }
            assert_eq!(all_at_once, one_by_one, "flags of {name} {a:x?} {b:x?} {c:x?} {active:x} in {start:x?}");
        }
    }
}

#[test]
fn vectors_of_halves_are_their_elements() {
    vectors_are_their_elements::<u16>();
}

#[test]
fn vectors_of_singles_are_their_elements() {
    vectors_are_their_elements::<u32>();
}

#[test]
fn vectors_of_doubles_are_their_elements() {
    vectors_are_their_elements::<u64>();
}

#[test]
fn exceptions_matter_unless_denormals_of_all_formats_are_flushed() {
    let judges = |fpcr| FpEnv { fpcr, ..FpEnv::default() }.judges_exceptions();
    assert_eq!([0, FpEnv::FZ, FpEnv::FZ16].map(judges), [true; 3]);
    assert!(!judges(FpEnv::FZ | FpEnv::FZ16));
}
