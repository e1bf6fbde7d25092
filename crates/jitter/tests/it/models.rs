//! Model files: their contents, and errors in bad ones.

use fxscope_jitter::model::{self, Evidence};
use proptest::prelude::*;

fn source(body: &str) -> String {
    format!("version = 1\ntitle = \"t\"\n[[noise]]\ncause = \"c\"\n{body}\nsource = \"s\"\nevidence = \"assumed\"\n")
}

fn refused(body: &str) -> String {
    model::parse(&source(body), "bad.toml", None).unwrap_err()
}

const TICK: &str = "arrival = { kind = \"periodic\", period = \"1ms\" }";
const FIXED: &str = "length = { kind = \"fixed\", value = \"5us\" }";

#[test]
fn all_profiles_load_and_state_their_sources() {
    for name in model::names() {
        let profile = model::load(name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(profile.name, name);
        profile.check(48).unwrap();
        for source in &profile.sources {
            assert!(!source.origin.is_empty() && source.evidence != Evidence::Documented, "{name}");
        }
    }
}

#[test]
fn the_k_computers_gaps_and_lengths_keep_their_bounds() {
    let model = model::load("k-computer-unaligned").unwrap();
    let streams = fxscope_jitter::scale::Streams::new(&model, 8, 5).unwrap();
    let mut detours = Vec::new();
    streams.extend(3, &mut streams.position(3), 0, 100_000_000_000, &mut detours);
    for core in 0..8 {
        let mut own: Vec<_> = detours.iter().filter(|d| d.core == core).collect();
        own.sort();
        assert!(own.len() > 300, "{}", own.len());
        assert!(own.iter().all(|d| d.length <= 50_000));
        assert!(own.windows(2).all(|pair| pair[1].start - pair[0].start >= 200_000_000));
    }
}

#[test]
fn every_kind_of_arrival_has_its_models_rate_and_share() {
    for (arrival, on) in [
        ("{ kind = \"periodic\", period = \"700us\" }", "\"cores\""),
        ("{ kind = \"poisson\", rate = 1500.0 }", "\"cores\""),
        ("{ kind = \"poisson\", rate = 1500.0 }", "\"node\""),
        ("{ kind = \"gaps\", at_least = \"200us\", mean = \"900us\" }", "\"cores\""),
        ("{ kind = \"gaps\", at_least = \"200us\", at_most = \"900us\" }", "\"cores\""),
        ("{ kind = \"gaps\", at_least = \"1ms\", mean = \"1ms\" }", "[1, 3]"),
    ] {
        let length = "length = { kind = \"exponential\", mean = \"20us\" }";
        let text = source(&format!("arrival = {arrival}\n{length}\non = {on}"));
        let model = model::parse(&text, "t", None).unwrap();
        let streams = fxscope_jitter::scale::Streams::new(&model, 4, 5).unwrap();
        let mut detours = Vec::new();
        // Drawn in windows, as runs do.
        let mut position = streams.position(0);
        let seconds = 60;
        for piece in 0..600u64 {
            let at = |piece: u64| piece * 100_000_000;
            streams.extend(0, &mut position, at(piece), at(piece + 1), &mut detours);
        }
        let rate = detours.len() as f64 / f64::from(seconds);
        let expected = model.sources[0].node_rate(4);
        assert!((rate / expected - 1.0).abs() < 0.02, "{arrival} {on}: {rate} for {expected}");
        let stolen: f64 = detours.iter().map(|d| f64::from(d.length)).sum::<f64>() / 1e9 / f64::from(seconds) / 4.0;
        assert!((stolen / model.fraction(4) - 1.0).abs() < 0.03, "{arrival} {on}: {stolen} {}", model.fraction(4));
        // The first second is like any other: nothing starts with the program.
        let first = detours.iter().filter(|d| d.start < 1_000_000_000).count() as f64;
        assert!((first / expected - 1.0).abs() < 0.1, "{arrival} {on}: {first} for {expected}");
    }
}

#[test]
fn correlated_detours_start_simultaneously() {
    for (correlation, nodes_share) in [("node", false), ("aligned", true)] {
        let text = source(&format!(
            "arrival = {{ kind = \"poisson\", rate = 100.0 }}\nlength = {{ kind = \"exponential\", mean = \"9us\" }}\n\
             correlation = \"{correlation}\""
        ));
        let model = model::parse(&text, "t", None).unwrap();
        let streams = fxscope_jitter::scale::Streams::new(&model, 3, 5).unwrap();
        let starts = |node: u32, core: u16| -> Vec<u64> {
            let mut out = Vec::new();
            streams.extend(node, &mut streams.position(node), 0, 1_000_000_000, &mut out);
            out.iter().filter(|d| d.core == core).map(|d| d.start).collect()
        };
        assert_eq!(starts(0, 0), starts(0, 2));
        assert_eq!(starts(0, 0) == starts(1, 0), nodes_share, "{correlation}");
    }
}

#[test]
fn noise_that_takes_all_the_time_is_refused_with_its_source() {
    let error = refused(&format!("{TICK}\nlength = {{ kind = \"fixed\", value = \"1ms\" }}"));
    assert!(error.contains("'c'") && error.contains("100.0000 %"), "{error}");
    // Two that are possible separately.
    let half = "[[noise]]\ncause = \"half\"\narrival = { kind = \"periodic\", period = \"1ms\" }\n\
                length = { kind = \"fixed\", value = \"600us\" }\nsource = \"s\"\nevidence = \"assumed\"\n";
    let model = model::parse(&format!("version = 1\ntitle = \"t\"\n{half}{half}"), "two", None).unwrap();
    let error = model.check(4).unwrap_err();
    assert!(error.contains("120.0000 %") && error.contains("'half' 60.0000 %"), "{error}");
    // A source that strikes one core of four takes a quarter of each.
    let node = source(&format!("{TICK}\nlength = {{ kind = \"fixed\", value = \"1500us\" }}\non = \"node\""));
    let model = model::parse(&node, "node", None).unwrap();
    assert!(model.check(4).is_ok() && model.check(1).is_err());
}

#[test]
fn bad_files_are_refused_with_a_reason() {
    for (body, why) in [
        (format!("{TICK}\n{FIXED}\ncolour = 3"), "colour"),
        (format!("{TICK}\nlength = {{ kind = \"fixed\", value = \"5us\", more = 1 }}"), "more"),
        (format!("{TICK}\nlength = {{ kind = \"fixed\", value = \"-5us\" }}"), "negative"),
        (format!("{TICK}\nlength = {{ kind = \"fixed\", value = \"5s\" }}"), "too long"),
        (format!("{TICK}\nlength = {{ kind = \"wide\", value = \"5us\" }}"), "wide"),
        (format!("{TICK}\nlength = {{ kind = \"pareto\", shape = 0.9, at_least = \"5us\" }}"), "infinite mean"),
        (format!("{TICK}\nlength = {{ kind = \"pareto\", shape = -2.0, at_least = \"5us\" }}"), "shape"),
        (format!("{TICK}\nlength = {{ kind = \"uniform\", at_least = \"5us\", at_most = \"1us\" }}"), "swap them"),
        (
            format!("{TICK}\nlength = {{ kind = \"two-point\", short = \"1us\", long = \"2us\", long_share = 1.5 }}"),
            "long_share",
        ),
        (format!("{TICK}\nlength = {{ kind = \"histogram\", edges = [\"1us\"], counts = [1.0] }}"), "edges"),
        (format!("{TICK}\nlength = {{ kind = \"histogram\", edges = [\"1us\", \"2us\"], counts = [-1.0] }}"), "counts"),
        (format!("{TICK}\n{FIXED}\non = []"), "names no core"),
        (format!("{TICK}\n{FIXED}\non = \"socket\""), "list of core numbers"),
        (format!("{TICK}\n{FIXED}\non = \"node\"\ncorrelation = \"node\""), "contradicts"),
        (TICK.to_owned(), "no `length`"),
        (format!("arrival = {{ kind = \"poisson\", rate = -1.0 }}\n{FIXED}"), "rate = -1"),
        (format!("arrival = {{ kind = \"poisson\", rate = nan }}\n{FIXED}"), "rate"),
        (format!("arrival = {{ kind = \"periodic\", period = \"1ns\" }}\n{FIXED}"), "too short"),
        (format!("arrival = {{ kind = \"gaps\", at_least = \"2ms\", mean = \"1ms\" }}\n{FIXED}"), "below at_least"),
        (format!("arrival = {{ kind = \"gaps\", at_least = \"2ms\" }}\n{FIXED}"), "at_most"),
        (format!("arrival = {{ kind = \"trace\", file = \"none.csv\" }}\n{FIXED}"), "remove `length`"),
        ("arrival = { kind = \"trace\", file = \"none.csv\" }".to_owned(), "cannot read none.csv"),
    ] {
        let error = refused(&body);
        assert!(error.starts_with("bad.toml: ") && error.contains(why), "{body}: {error}");
    }
    assert!(model::parse("version = 2\ntitle = \"t\"", "new", None).unwrap_err().contains("version 1"));
    let error = model::load("linux").unwrap_err();
    assert!(error.contains("linux-250hz"), "{error}");
    assert!(model::load("absent/none.toml").unwrap_err().contains("cannot read"));
    let chosen = source(&format!("{TICK}\n{FIXED}\non = [7]"));
    assert!(model::parse(&chosen, "t", None).unwrap().check(4).unwrap_err().contains("core 7"));
}

proptest! {
    #[test]
    fn damaged_files_give_a_model_or_a_message(at in 0usize..2000, with in "[ -~]{0,8}", cut in 0usize..20) {
        let text = include_str!("../../../../data/noise/linux-250hz.toml");
        let at = at.min(text.len());
        let end = (at + cut).min(text.len());
        let damaged = format!("{}{with}{}", &text[..at], &text[end..]);
        if let Err(message) = model::parse(&damaged, "damaged", None) {
            prop_assert!(message.starts_with("damaged: "));
        }
    }

    #[test]
    fn efficiency_is_above_0_and_at_most_1(
        nodes in 1u32..40, cores in 1u32..6, grain in 1u64..2_000_000, rate in 0.1f64..5000.0, us in 1u32..100, seed: u64,
    ) {
        use fxscope_jitter::scale::{PhaseEnd, Setup, simulate};
        let text = source(&format!(
            "arrival = {{ kind = \"poisson\", rate = {rate} }}\nlength = {{ kind = \"uniform\", at_least = \"0s\", at_most = \"{us}us\" }}"
        ));
        let model = model::parse(&text, "t", None).unwrap();
        let setup = Setup { nodes, cores, grain, imbalance: 0.1, phases: 50, end: PhaseEnd::All { cost: 10 }, seed };
        let outcome = simulate(&model, &setup).unwrap();
        prop_assert!(outcome.efficiency() > 0.0 && outcome.efficiency() <= 1.0);
        prop_assert!(outcome.slowdown() >= 1.0 && outcome.noise() >= 0.0);
    }
}

#[test]
fn setups_out_of_bounds_are_refused_with_the_bound() {
    use fxscope_jitter::scale::{PhaseEnd, Setup, simulate};
    let silent = model::load("silent").unwrap();
    let phase_end = PhaseEnd::All { cost: 0 };
    let good = Setup { nodes: 8, cores: 4, grain: 1000, imbalance: 0.0, phases: 10, end: phase_end, seed: 1 };
    assert!(simulate(&silent, &good).is_ok());
    let neighbours = PhaseEnd::Neighbours { cost: 0, grid: [2, 2, 3] };
    for (setup, why) in [
        (Setup { nodes: 0, ..good.clone() }, "0 nodes"),
        (Setup { cores: 0, ..good.clone() }, "0 cores"),
        (Setup { grain: 0, ..good.clone() }, "0 ns of grain"),
        (Setup { phases: 0, ..good.clone() }, "0 phases"),
        (Setup { grain: 86_400_000_000_000, phases: 1 << 32, ..good.clone() }, "the maximum is"),
        (Setup { imbalance: f64::NAN, ..good.clone() }, "imbalance NaN"),
        (Setup { end: neighbours, ..good.clone() }, "the grid has 12 nodes, not 8"),
    ] {
        let error = simulate(&silent, &setup).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
