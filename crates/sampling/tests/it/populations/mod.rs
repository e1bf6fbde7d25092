//! Estimates of synthetic programs whose true totals are known: bias, and how often intervals have the true value.

mod draws;
mod synthetic;

use draws::{Quality, draw, exposure, plain_ratio, plan};
use fxscope_sampling::{Estimates, Plan, Precision, estimate};
use synthetic::Population;

/// A quantity with its name.
type Quantity = (&'static str, fn(&[f64]) -> f64);

const QUANTITIES: [Quantity; 3] = [
    ("cycles", |totals| totals[0]),
    ("misses", |totals| totals[1]),
    ("misses a cycle", |totals| totals[1] / totals[0]),
];

/// A kind of program with its name; each seed gives another program.
type Kind = (&'static str, fn(u64) -> Population);

/// Checks the estimates of draws: unbiased but for `bias` of the true value and chance, and covered at least as often as `coverage`.
fn check(name: &str, population: &Population, estimates: &[Estimates], bias: f64, coverage: f64) {
    for (quantity, of) in QUANTITIES {
        let quality = Quality::of(estimates, of(&population.totals()), of);
        let (percent, label) = (|share: f64| share * 100.0, format!("{name}, {quantity}"));
        println!(
            "{label:32} bias {:+5.2} rms {:5.2} half-width {:5.2} coverage {:4.1} unseen {:.2} % windows {:.0}",
            percent(quality.bias),
            percent(quality.rms),
            percent(quality.half_width),
            percent(quality.coverage),
            percent(quality.unseen),
            quality.windows,
        );
        assert!(quality.bias.abs() <= bias + 3.0 * quality.error_of_bias(), "{label}: {quality:?}");
        assert!(quality.coverage >= coverage, "{label}: {quality:?}");
    }
}

/// Draws samples of a population and checks estimates by block, and those of the plain ratio if `compare`.
fn check_draws(name: &str, population: &Population, draws: u64, compare: bool, (bias, coverage): (f64, f64)) {
    let samples: Vec<_> = (0..draws).map(|seed| draw(population, &plan(seed), |_, _| {})).collect();
    let all = exposure(&population.executions);
    let blocks = samples.iter().map(|sample| estimate(&sample.blocks, &population.instructions, &all));
    check(name, population, &blocks.collect::<Vec<_>>(), bias, coverage);
    if compare {
        let ratios = samples.iter().map(|sample| plain_ratio(population, sample));
        check(&format!("{name} (ratio)"), population, &ratios.collect::<Vec<_>>(), bias, coverage);
    }
}

/// What 150 draws can show: with a true coverage of 95 %, one in 1,000 of such series has less than 88 %.
const QUICK: (f64, f64) = (0.008, 0.88);
/// What is required over 1,000 draws.
const THOROUGH: (f64, f64) = (0.005, 0.90);

#[test]
fn independent_costs_are_estimated_without_bias_and_within_their_intervals() {
    check_draws("independent", &synthetic::independent(5), 150, false, QUICK);
}

#[test]
fn phases_with_costs_of_their_own_are_estimated_without_bias_and_within_their_intervals() {
    check_draws("phases", &synthetic::phases(5), 150, false, QUICK);
}

#[test]
fn costs_that_wander_are_estimated_without_bias_and_within_their_intervals() {
    check_draws("autocorrelated", &synthetic::autocorrelated(5), 150, false, QUICK);
}

#[test]
fn executions_that_come_in_clusters_of_like_cost_are_estimated_within_their_intervals() {
    check_draws("clustered", &synthetic::clustered(5), 150, false, QUICK);
}

#[test]
fn costs_that_grow_are_estimated_without_bias_though_windows_become_fewer() {
    check_draws("drifting", &synthetic::drifting(5), 150, false, QUICK);
}

#[test]
fn costs_with_the_period_of_the_sample_are_estimated_without_bias_and_within_their_intervals() {
    check_draws("periodic", &synthetic::periodic(5), 150, false, QUICK);
}

#[test]
fn rare_blocks_whose_costs_have_a_long_tail_are_estimated_without_bias_and_within_their_intervals() {
    check_draws("heavy tail", &synthetic::heavy_tail(5), 150, false, QUICK);
}

#[test]
fn a_dear_block_of_one_short_phase_is_estimated_without_bias_and_within_its_interval() {
    check_draws("one phase", &synthetic::one_phase(5), 150, false, QUICK);
}

#[test]
fn costs_that_depend_on_the_cores_that_run_are_estimated_without_bias_and_within_their_intervals() {
    check_draws("serial and parallel", &synthetic::serial_and_parallel(5), 150, false, QUICK);
}

#[test]
fn code_that_runs_once_is_estimated_like_such_code_that_windows_have_seen() {
    check_draws("cold code", &synthetic::cold_code(5), 150, false, QUICK);
}

/// Runs with `auto` until the end and returns the estimates and the windows that were taken in all runs.
fn automatic(population: &Population, precision: &Precision, draws: u64, auto: bool) -> (Vec<Estimates>, u64) {
    let mut windows = 0;
    let estimates = (0..draws).map(|seed| {
        // The number of windows is the one that the plan allows; here they become fewer only because time is known.
        let plan = Plan { auto, keep: 10_000, ..plan(seed) };
        let mut ran = 0;
        let sample = draw(population, &plan, |schedule, sample| {
            ran += 1;
            if ran % 20 == 0 {
                let so_far = exposure(&population.executions);
                schedule
                    .wants_more(&estimate(sample, &population.instructions, &so_far), precision, |totals| totals[0]);
            }
        });
        windows += sample.blocks.windows();
        estimate(&sample.blocks, &population.instructions, &exposure(&population.executions))
    });
    (estimates.collect(), windows)
}

#[test]
fn auto_takes_fewer_windows_once_time_is_known_and_its_intervals_hold() {
    let population = synthetic::independent(5);
    let precision = Precision { error: 0.08, ..Precision::default() };
    let (_, all) = automatic(&population, &precision, 50, false);
    let (estimates, fewer) = automatic(&population, &precision, 50, true);
    println!("{all} windows, {fewer} with auto");
    assert!(fewer * 3 < all * 2, "{fewer} of {all}");
    let quality = Quality::of(&estimates, population.totals()[0], |totals| totals[0]);
    println!("{quality:?}");
    assert!(quality.half_width < 0.12 && quality.coverage >= 0.86, "{quality:?}");
}

mod slow {
    use super::*;

    /// Programs of which single windows see much that no other does. What no window sees costs another amount than what few of them have seen.
    const ALONE: [Kind; 2] = [("own loops", synthetic::own_loops), ("dear loop", synthetic::dear_loop)];

    const KINDS: [Kind; 10] = [
        ("independent", synthetic::independent),
        ("phases", synthetic::phases),
        ("autocorrelated", synthetic::autocorrelated),
        ("clustered", synthetic::clustered),
        ("drifting", synthetic::drifting),
        ("periodic", synthetic::periodic),
        ("heavy tail", synthetic::heavy_tail),
        ("one phase", synthetic::one_phase),
        ("serial and parallel", synthetic::serial_and_parallel),
        ("cold code", synthetic::cold_code),
    ];

    #[test]
    #[ignore = "1,000 draws of each program take a minute"]
    fn intervals_of_95_percent_have_the_true_value_in_at_least_90_percent_of_1000_draws() {
        for (name, population) in KINDS {
            check_draws(name, &population(5), 1_000, true, THOROUGH);
        }
    }

    #[test]
    #[ignore = "1,000 draws of each program take a minute"]
    fn other_programs_of_the_same_kinds_are_estimated_as_well() {
        for (name, population) in KINDS {
            check_draws(name, &population(11), 1_000, false, THOROUGH);
        }
    }
    #[test]
    #[ignore = "1,000 draws of each program take a minute"]
    fn totals_are_within_their_intervals_though_single_windows_see_much_that_no_other_does() {
        for (name, population) in ALONE {
            for seed in [5, 11, 17] {
                check_draws(name, &population(seed), 1_000, false, (0.12, 0.84));
            }
        }
    }
}
