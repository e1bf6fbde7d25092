//! Traces generated from a known model: their summary, and the model fitted to them.

use fxscope_osnoise::fit::{Arrival, Failure, Length, Model, fit};
use fxscope_osnoise::trace::{Cause, CoreHeader, CoreSummary, Detour, Header, Kind, Reader, Summary, Writer};
use fxscope_osnoise::view::{View, summarise};

const SECOND: u64 = 1_000_000_000;

/// Reproducible random numbers from 0 to 1 (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

type Detours = Vec<(u64, u64, Cause)>;

/// A trace of `seconds` seconds.
fn trace(seconds: u64, cores: Vec<Detours>) -> Vec<u8> {
    let text = r#"{"host":"node","kernel":"Linux","processor":"","virtual_machine":null,"method":"spin","program":"","clock":"",
        "clock_hz":1,"quantum":0,"threshold":1000,"wanted":0,"monotonic_start":0,"unix_start":0,"priority":null,
        "overhead":null,"cores":[],"notes":[]}"#;
    let mut header: Header = serde_json::from_str(text).expect("a header");
    header.cores = (0..cores.len() as u32).map(|core| CoreHeader { core, minimum: 1.0 }).collect();
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, &header).expect("to memory");
    let summaries = (0..cores.len() as u32).map(|core| CoreSummary { core, ..CoreSummary::default() }).collect();
    for (core, mut detours) in (0u32..).zip(cores) {
        detours.sort();
        for (start, length, cause) in detours {
            let cause = writer.cause(&cause);
            writer.push(core, Detour { start, length, cause }).expect("to memory");
        }
    }
    let summary = Summary { duration: seconds * SECOND, cores: summaries, ..Summary::default() };
    writer.finish(&summary).expect("to memory");
    out
}

fn model(bytes: &[u8]) -> Model {
    fit(Reader::new(bytes).expect("a trace")).expect("detours")
}

fn view(bytes: &[u8]) -> View {
    summarise(Reader::new(bytes).expect("a trace")).expect("whole")
}

fn poisson(
    random: &mut Random,
    seconds: u64,
    rate: f64,
    mut length: impl FnMut(&mut Random) -> f64,
    cause: &Cause,
) -> Detours {
    let mut now = 0.0;
    let mut out = Vec::new();
    loop {
        now += random.exponential(1e9 / rate);
        if now >= (seconds * SECOND) as f64 {
            return out;
        }
        out.push((now as u64, length(random) as u64, cause.clone()));
    }
}

fn periodic(random: &mut Random, seconds: u64, period: u64, jitter: f64, phase: u64, cause: &Cause) -> Detours {
    let late = |random: &mut Random| (random.next() * jitter) as u64;
    let number = (seconds * SECOND - phase) / period;
    (0..number)
        .map(|i| (phase + i * period + late(random), 2_000 + (random.next() * 4_000.0) as u64, cause.clone()))
        .collect()
}

fn near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.1
}

#[test]
fn a_tick_is_fitted_as_periodic() {
    let random = &mut Random(7);
    let tick = Cause::new(Kind::Interrupt, "local_timer");
    let cores = (0..4).map(|core| periodic(random, 20, 4_000_000, 3_000.0, core * 777_777, &tick)).collect();
    let bytes = trace(20, cores);
    let model = model(&bytes);
    let [source] = &model.sources[..] else { panic!("{model:?}") };
    let Arrival::Periodic { period, .. } = source.arrival else { panic!("{source:?}") };
    assert!((period / 4e6 - 1.0).abs() < 1e-4, "{period}");
    assert!(matches!(source.length, Length::Uniform(..)) && near(source.length.mean(), 4_000.0), "{source:?}");
    // Each core has its own phase.
    assert!(!source.together && source.gaps_off < 0.01 && source.lengths_off < 0.05, "{source:?}");
    assert!(near(model.modelled, model.measured));
    let seen = view(&bytes);
    assert!((seen.periods[0].1.period / 4e6 - 1.0).abs() < 1e-3 && seen.periods[0].1.share > 0.9, "{:?}", seen.periods);
    assert!(near(seen.all.rate(seen.duration, 4), 250.0));
}

#[test]
fn a_tick_that_misses_a_third_of_its_periods_keeps_its_rate() {
    let random = &mut Random(17);
    let tick = Cause::new(Kind::Interrupt, "local_timer");
    let thinned = |core: u64| {
        let mut all = periodic(random, 20, 4_000_000, 3_000.0, core * 777_777, &tick);
        let mut number = 0;
        all.retain(|_| {
            number += 1;
            number % 3 != 0
        });
        all
    };
    let model = model(&trace(20, (0..4).map(thinned).collect()));
    // The first and the last detours lack neighbours on one side and may count as random.
    let source = &model.sources[0];
    assert!(source.detours > 13_300, "{model:?}");
    let Arrival::Periodic { period, missing } = source.arrival else { panic!("{source:?}") };
    assert!((period / 4e6 - 1.0).abs() < 1e-3 && (missing - 1.0 / 3.0).abs() < 0.01, "{source:?}");
    assert!(near(source.rate(), 500.0 / 3.0) && near(model.modelled, model.measured), "{model:?}");
    assert!(model.text("t").contains("missing = 0.33"), "{}", model.text("t"));
}

#[test]
fn a_tick_is_found_among_random_detours_of_the_same_unknown_cause() {
    let random = &mut Random(8);
    let cores = (0..2).map(|core| {
        let mut all = periodic(random, 30, 10_000_000, 2_000.0, core * 1_234_567, &Cause::unknown());
        all.extend(poisson(random, 30, 40.0, |r| 300_000.0 + r.exponential(200_000.0), &Cause::unknown()));
        all
    });
    let model = model(&trace(30, cores.collect()));
    let of = |periodic: bool| {
        model.sources.iter().filter(move |s| matches!(s.arrival, Arrival::Periodic { .. }) == periodic)
    };
    let (ticks, others): (Vec<_>, Vec<_>) = (of(true).collect(), of(false).collect());
    assert!(ticks.len() == 1 && near(ticks[0].rate(), 100.0) && near(ticks[0].length.mean(), 4_000.0), "{model:?}");
    assert!(others.len() == 1 && near(others[0].rate(), 40.0) && near(others[0].length.mean(), 500_000.0), "{model:?}");
}

#[test]
fn random_arrivals_with_exponential_and_heavy_tailed_lengths_are_found() {
    let random = &mut Random(9);
    let (thread, task) = (Cause::new(Kind::KernelThread, "kworker"), Cause::new(Kind::Task, "daemon"));
    let pareto = |r: &mut Random| 10_000.0 * (1.0 - r.next() * (1.0 - 100f64.powf(-1.5))).powf(-1.0 / 1.5);
    let cores = (0..2).map(|_| {
        let mut all = poisson(random, 60, 50.0, |r| r.exponential(30_000.0).max(1.0), &thread);
        all.extend(poisson(random, 60, 20.0, pareto, &task));
        all
    });
    let model = model(&trace(60, cores.collect()));
    let of = |cause: &Cause| model.sources.iter().find(|source| source.cause == *cause).expect("fitted");
    let (threads, tasks) = (of(&thread), of(&task));
    assert!(matches!(threads.arrival, Arrival::Poisson { rate } if near(rate, 50.0)), "{threads:?}");
    assert!(matches!(threads.length, Length::Exponential(mean) if near(mean, 30_000.0)), "{threads:?}");
    assert!(matches!(tasks.length, Length::Pareto(shape, ..) if near(shape, 1.5)), "{tasks:?}");
    assert!(tasks.gaps_off < 0.05 && !tasks.together && !threads.together, "{tasks:?}");
    assert!(near(model.modelled, model.measured), "{} {}", model.modelled, model.measured);
}

#[test]
fn gaps_with_a_minimum_are_distinguished_from_a_poisson_process() {
    let random = &mut Random(10);
    let cause = Cause::new(Kind::Task, "monitor");
    let mut now = 0.0;
    let mut detours = Vec::new();
    while now < 200e9 {
        now += 200e6 + random.exponential(100e6);
        detours.push((now as u64, 50_000, cause.clone()));
    }
    detours.retain(|detour| detour.0 < 200 * SECOND - 50_000);
    let model = model(&trace(200, vec![detours]));
    let [source] = &model.sources[..] else { panic!("{model:?}") };
    let Arrival::Gaps { at_least, mean } = source.arrival else { panic!("{source:?}") };
    assert!(near(at_least, 200e6) && near(mean, 300e6), "{source:?}");
    assert_eq!(source.length, Length::Fixed(50_000.0));
}

#[test]
fn simultaneous_detours_of_cores_are_recognised() {
    let random = &mut Random(11);
    let (shared, own) = (Cause::new(Kind::Task, "shared"), Cause::new(Kind::Task, "own"));
    let common = poisson(random, 60, 10.0, |r| 50_000.0 + r.next() * 50_000.0, &shared);
    let core = |random: &mut Random| {
        let mut all: Detours =
            common.iter().map(|(t, l, c)| (t + (random.next() * 3_000.0) as u64, *l, c.clone())).collect();
        all.extend(poisson(random, 60, 10.0, |_| 20_000.0, &own));
        all
    };
    let model = model(&trace(60, (0..3).map(|_| core(random)).collect()));
    let of = |cause: &Cause| model.sources.iter().find(|source| source.cause == *cause).expect("fitted");
    assert!(of(&shared).together && of(&shared).same_lengths && near(of(&shared).rate(), 10.0), "{model:?}");
    assert!(!of(&own).together, "{model:?}");
}

#[test]
fn a_source_on_one_core_is_fitted_to_that_core() {
    let random = &mut Random(12);
    let cause = Cause::new(Kind::Interrupt, "eth0");
    let mut cores = vec![Vec::new(); 4];
    cores[2] = poisson(random, 30, 30.0, |_| 8_000.0, &cause);
    let model = model(&trace(30, cores));
    assert_eq!(model.sources[0].chosen, Some(vec![2]));
    assert!(near(model.sources[0].rate(), 30.0) && near(model.modelled, model.measured), "{model:?}");
}

#[test]
fn the_measurements_own_detours_are_not_noise_of_the_host() {
    let own = Cause::new(Kind::Own, "writing the trace");
    let error = fit(Reader::new(&trace(10, vec![vec![(5, 5_000, own)]])[..]).expect("a trace")).expect_err("nothing");
    assert!(
        matches!(error, Failure::Nothing(_)) && error.to_string().starts_with("has no individual detours to fit"),
        "{error}"
    );
}

#[test]
fn random_detours_have_no_period() {
    let random = &mut Random(13);
    let detours = (0..3).map(|_| poisson(random, 60, 100.0, |r| r.exponential(9_000.0), &Cause::unknown())).collect();
    let seen = view(&trace(60, detours));
    assert_eq!(seen.periods, []);
}

#[test]
fn the_spectrum_of_a_tick_peaks_at_its_rate_or_a_harmonic_and_its_timeline_is_flat() {
    let random = &mut Random(14);
    let seen = view(&trace(10, vec![periodic(random, 10, 20_000_000, 1_000.0, 5_000_000, &Cause::unknown())]));
    let highest = seen.spectrum.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("a spectrum").0;
    let ratio = highest / 50.0;
    assert!((ratio - ratio.round()).abs() < 0.05 && ratio > 0.5, "{highest}");
    let line = &seen.time_line;
    let sum: f64 = line.iter().map(|share| share * seen.slice as f64).sum();
    assert!((sum / seen.all.time as f64 - 1.0).abs() < 1e-9);
}

#[test]
fn lengths_in_two_clusters_get_an_empirical_distribution() {
    let random = &mut Random(15);
    let length = |r: &mut Random| {
        if r.next() < 0.7 { 4_010_000.0 + r.next() * 5_000.0 } else { 16_010_000.0 + r.next() * 5_000.0 }
    };
    let model = model(&trace(60, vec![poisson(random, 60, 10.0, length, &Cause::new(Kind::Task, "job"))]));
    let [source] = &model.sources[..] else { panic!("{model:?}") };
    assert!(matches!(source.length, Length::Histogram(..)) && source.lengths_off < 0.05, "{source:?}");
    assert!(near(source.length.mean(), 0.7 * 4_012_500.0 + 0.3 * 16_012_500.0), "{source:?}");
}

#[test]
fn fitted_models_are_readable_by_simulations() {
    let random = &mut Random(16);
    let shared =
        poisson(random, 60, 15.0, |r| 50_000.0 + r.exponential(50_000.0), &Cause::new(Kind::Task, "a \"\u{7}\\ b"));
    let cores = (0..2).map(|core| {
        let mut all = shared.clone();
        all.extend(periodic(random, 60, 10_000_000, 2_000.0, core * 3_000_000, &Cause::new(Kind::Interrupt, "timer")));
        all.extend(poisson(random, 60, 9.0, |r| r.exponential(30_000.0).max(1.0), &Cause::unknown()));
        all
    });
    let mut model = model(&trace(60, cores.collect()));
    model.sources[0].chosen = Some(vec![1]);
    let read = fxscope_jitter::model::parse(&model.text("a.fxn"), "m.toml", None).expect("what simulations read");
    assert_eq!(read.sources.len(), model.sources.len());
    for (read, fitted) in read.sources.iter().zip(&model.sources) {
        assert!((read.arrival.rate() / fitted.rate() - 1.0).abs() < 1e-3, "{read:?} {fitted:?}");
        assert!((read.mean_length() / fitted.length.mean() - 1.0).abs() < 1e-2, "{read:?} {fitted:?}");
        assert_eq!(read.correlation == fxscope_jitter::model::Correlation::Node, fitted.together);
    }
}
