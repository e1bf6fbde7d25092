//! Closed forms match the simulation within 2 %.

use fxscope_jitter::closed;
use fxscope_jitter::model::{self, Model};
use fxscope_jitter::scale::{Outcome, PhaseEnd, Setup, simulate};

fn model(arrival: &str, length: &str, more: &str) -> Model {
    let text = format!(
        "version = 1\ntitle = \"t\"\n[[noise]]\ncause = \"c\"\narrival = {{ {arrival} }}\nlength = {{ {length} }}\n{more}\n\
         source = \"test\"\nevidence = \"assumed\"\n"
    );
    model::parse(&text, "test", None).unwrap()
}

fn run(model: &Model, nodes: u32, cores: u32, grain: u64, phases: u64) -> Outcome {
    let phase_end = PhaseEnd::All { cost: 0 };
    simulate(model, &Setup { nodes, cores, grain, imbalance: 0.0, phases, end: phase_end, seed: 11 }).unwrap()
}

/// Mean loss of a phase of `grain`, nanoseconds.
fn delay(outcome: &Outcome, grain: u64) -> f64 {
    (outcome.time - outcome.quiet) as f64 / outcome.quiet as f64 * grain as f64
}

/// Share of phases that lose anything.
fn struck(outcome: &Outcome, grain: u64) -> f64 {
    outcome.phases.iter().filter(|&&phase| phase > grain).count() as f64 / outcome.phases.len() as f64
}

fn near(found: f64, closed: f64, what: &str) {
    assert!((found / closed - 1.0).abs() < 0.02, "{what}: simulated {found}, closed form {closed}");
}

#[test]
fn phases_struck_by_poisson_arrivals() {
    let noise = model("kind = \"poisson\", rate = 1.0", "kind = \"fixed\", value = \"1us\"", "");
    // Enough phases for 2 % to be at least five standard errors.
    for (nodes, cores) in [(1, 48), (16, 4), (100, 10)] {
        let outcome = run(&noise, nodes, cores, 1_000_000, 1_500_000);
        let closed = closed::struck_by_poisson(1.0, f64::from(nodes * cores), 1e6);
        near(struck(&outcome, 1_000_000), closed, "struck");
        near(closed::expected(&noise, nodes, cores, 1e6).struck, closed, "expected");
    }
}

#[test]
fn phases_struck_by_ticks() {
    // Grain and period are incommensurable, so that phases sample the whole period.
    let noise = model("kind = \"periodic\", period = \"100ms\"", "kind = \"fixed\", value = \"1us\"", "");
    let grain = 618_034;
    for cores in [1, 4, 16] {
        let outcome = run(&noise, 10, cores, grain, 100_000);
        let closed = closed::struck_by_periodic(1e8, f64::from(10 * cores), grain as f64);
        let found: f64 = (0..20)
            .map(|seed| {
                let phase_end = PhaseEnd::All { cost: 0 };
                let setup = Setup { nodes: 10, cores, grain, imbalance: 0.0, phases: 5000, end: phase_end, seed };
                struck(&simulate(&noise, &setup).unwrap(), grain)
            })
            .sum::<f64>()
            / 20.0;
        near(found, closed, "struck, mean of twenty draws of the phases");
        assert!(struck(&outcome, grain) > 0.0);
    }
}

#[test]
fn the_longest_exponential_detour() {
    let noise = model("kind = \"poisson\", rate = 0.1", "kind = \"exponential\", mean = \"10us\"", "");
    for (nodes, phases) in [(10, 8_000_000), (200, 2_000_000)] {
        let outcome = run(&noise, nodes, 48, 1_000_000, phases);
        near(delay(&outcome, 1_000_000), closed::expected(&noise, nodes, 48, 1e6).delay, "delay");
    }
}

#[test]
fn the_longest_pareto_detour() {
    let length = "kind = \"pareto\", shape = 2.5, at_least = \"5us\"";
    let noise = model("kind = \"poisson\", rate = 0.1", length, "");
    for (nodes, phases) in [(10, 8_000_000), (200, 2_000_000)] {
        let outcome = run(&noise, nodes, 48, 1_000_000, phases);
        near(delay(&outcome, 1_000_000), closed::expected(&noise, nodes, 48, 1e6).delay, "delay");
    }
}

#[test]
fn the_longest_two_point_detour() {
    let length = "kind = \"two-point\", short = \"1us\", long = \"100us\", long_share = 0.02";
    let noise = model("kind = \"poisson\", rate = 0.1", length, "");
    for (nodes, phases) in [(10, 8_000_000), (200, 2_000_000)] {
        let outcome = run(&noise, nodes, 48, 1_000_000, phases);
        near(delay(&outcome, 1_000_000), closed::expected(&noise, nodes, 48, 1e6).delay, "delay");
    }
}

#[test]
fn the_longest_of_simultaneous_detours() {
    // Aligned arrivals strike all cores: each loses the longest of as many lengths as there are cores.
    for (length, longest) in [
        ("kind = \"exponential\", mean = \"10us\"", closed::longest_exponential(1e4, 400)),
        ("kind = \"pareto\", shape = 2.5, at_least = \"5us\"", closed::longest_pareto(2.5, 5e3, 400)),
        (
            "kind = \"two-point\", short = \"1us\", long = \"100us\", long_share = 0.002",
            closed::longest_two_point(1e3, 1e5, 0.002, 400),
        ),
    ] {
        let noise = model("kind = \"poisson\", rate = 20.0", length, "correlation = \"aligned\"");
        let outcome = run(&noise, 100, 4, 1_000_000, 400_000);
        let hits = outcome.phases.iter().filter(|&&phase| phase > 1_000_000).count() as f64;
        // Two arrivals in a phase add up: the loss per arrival, not per struck phase.
        let arrivals = -(1.0 - hits / 400_000.0).ln() * 400_000.0;
        near((outcome.time - outcome.quiet) as f64 / arrivals, longest, length);
    }
}

#[test]
fn efficiency_is_a_share_and_falls_with_nodes_as_expected() {
    for name in model::names() {
        let noise = model::load(name).unwrap();
        let losses: Vec<f64> =
            [1, 10, 100, 1000, 10_000, 158_976].map(|n| closed::expected(&noise, n, 4, 1e5).delay).to_vec();
        assert!(losses.is_sorted(), "{name}: {losses:?}");
        assert!(losses.iter().all(|&loss| loss >= 0.0), "{name}: {losses:?}");
    }
}

/// They take longest.
mod slow {
    use super::*;

    #[test]
    #[ignore = "make slow-test runs it"]
    fn grain_and_tick_resonate() {
        let noise = model("kind = \"periodic\", period = \"1ms\"", "kind = \"fixed\", value = \"20us\"", "");
        for grain in [300_000u64, 700_000, 977_000, 983_000, 1_500_000, 2_718_282] {
            let outcome = run(&noise, 1000, 8, grain, 300);
            near(delay(&outcome, grain), closed::resonance(1e6, 2e4, 8000.0, grain as f64), &format!("grain {grain}"));
        }
    }
}
