//! Fits the chip's power, `[power]` of the machine: watts of kernels in each mode, beside the busy rates of their normal mode
//! (`data/calibration/power.csv`).
//!
//! Rates of other modes follow from those of normal mode: eco mode takes longer if the kernel needs more than half of the peak, boost mode
//! makes faster what memory does not limit. A rate that was not published is the mean of the part `fit`. Pipes are also busy with data of
//! stores and inactive elements: the active part is the share of the peak or, where that was not published, in proportion as in `fit`.
//! The kernels of the part `check` take no part in the fit.

use std::path::Path;

use fxscope_machine::Spec;
use fxscope_machine::spec::PowerMode;
use serde::Deserialize;

use super::{Found, solve};

/// The measured kernels.
const FILE: &str = "data/calibration/power.csv";
/// Share of the peak bandwidth that programs reach which memory limits: Triad with zero fill takes 81 % of it.
const MEMORY_BOUND: f64 = 0.8;
const PJ_PER_J: f64 = 1e12;
/// The tested factors of energy in boost mode, per mille.
const BOOST: std::ops::RangeInclusive<u64> = 1_000..=1_300;
/// A change of power by mode is right if it differs by at most this share.
const SAVINGS: f64 = 0.05;

/// Which kernels a fit may use.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Part {
    Fit,
    Check,
}

/// A line of the file: busy rates in normal mode in percent, and watts by mode.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    kernel: String,
    part: Part,
    fp_peak: Option<f64>,
    fp: Option<f64>,
    l1: Option<f64>,
    l2: Option<f64>,
    memory: Option<f64>,
    normal: Option<f64>,
    boost: Option<f64>,
    eco: Option<f64>,
    boost_eco: Option<f64>,
}

impl Line {
    fn watts(&self, mode: PowerMode) -> Option<f64> {
        match mode {
            PowerMode::Normal => self.normal,
            PowerMode::Boost => self.boost,
            PowerMode::Eco => self.eco,
            PowerMode::BoostEco => self.boost_eco,
        }
    }
}

/// Busy rates, as fractions.
#[derive(Clone, Copy)]
struct Rates {
    fp_peak: f64,
    /// Operations on active elements.
    active: f64,
    l1: f64,
    l2: f64,
    memory: f64,
}

impl Rates {
    /// Returns the rates in another mode than the normal one, in which they are given.
    fn in_mode(self, mode: PowerMode, clock: f64) -> Rates {
        let bound = (self.memory / MEMORY_BOUND).min(1.0);
        let boosted = if mode.is_boost() { 1.0 / ((1.0 - bound) + bound * clock) } else { 1.0 };
        let slowed = if mode.is_eco() { (2.0 * self.fp_peak).max(1.0) } else { 1.0 };
        let work = boosted / slowed;
        // The rate of memory is by time, the others are by cycle.
        let Rates { fp_peak, active, l1, l2, memory } = self;
        Rates { fp_peak, active: active * work, l1: l1 * work, l2: l2 * work, memory: memory * work * clock }
    }
}

/// A measured power, with the counted power that explains it, W.
struct Point {
    kernel: String,
    part: Part,
    mode: PowerMode,
    measured: f64,
    /// Of cores and L2 caches.
    core: f64,
    memory: f64,
    /// Cycles of all cores per second.
    cycles: f64,
}

impl Point {
    /// Returns the amounts in the chip's power of a base, of what a core saves per cycle in eco mode, of cores and of memory.
    fn terms(&self, boost: u64) -> [f64; 4] {
        let voltage = if self.mode.is_boost() { boost as f64 / 1e3 } else { 1.0 };
        let saving = if self.mode.is_eco() { -self.cycles } else { 0.0 };
        [voltage, voltage * saving, voltage * self.core, self.memory]
    }

    /// Returns the relative error of a model.
    fn error(&self, model: &Model) -> f64 {
        model.watts(self) / self.measured - 1.0
    }
}

/// The fitted numbers: the base, W, what a core saves per cycle in eco mode, J, factors of counted power, and the factor of boost mode,
/// per mille.
struct Model {
    terms: [f64; 4],
    boost: u64,
}

impl Model {
    fn watts(&self, point: &Point) -> f64 {
        point.terms(self.boost).iter().zip(self.terms).map(|(amount, each)| amount * each).sum()
    }

    /// Returns the least squares of relative errors with a factor of boost mode.
    fn fitted(points: &[&Point], boost: u64) -> Model {
        let rows: Vec<[f64; 4]> =
            points.iter().map(|point| point.terms(boost).map(|term| term / point.measured)).collect();
        let product = |i: usize, j: usize| rows.iter().map(|row| row[i] * row[j]).sum::<f64>();
        let total = |i: usize| rows.iter().map(|row| row[i]).sum::<f64>();
        let equations = (0..4).map(|i| (0..4).map(|j| product(i, j)).chain([total(i)]).collect()).collect();
        let solved = solve(equations);
        Model { terms: std::array::from_fn(|i| solved[i]), boost }
    }

    fn squares(&self, points: &[&Point]) -> f64 {
        points.iter().map(|point| point.error(self).powi(2)).sum()
    }

    /// Returns the best model of the part `fit`.
    fn best(points: &[Point]) -> Option<Model> {
        let fit: Vec<&Point> = points.iter().filter(|point| point.part == Part::Fit).collect();
        let models = BOOST.map(|boost| Model::fitted(&fit, boost));
        models.min_by(|a, b| a.squares(&fit).total_cmp(&b.squares(&fit)))
    }

    /// Returns the keys of the machine's table with their values.
    fn found(&self) -> [Found; 5] {
        let [base, saved, core, memory] = self.terms;
        let thousandths = |x: f64| (1e3 * x).round() as u64;
        [
            ("base_mw", thousandths(base)),
            ("eco_cycle_pj", (PJ_PER_J * saved).round() as u64),
            ("boost_energy_permille", self.boost),
            ("core_permille", thousandths(core)),
            ("memory_permille", thousandths(memory)),
        ]
    }
}

/// Fits, and prints all errors and the entries of the machine's table.
///
/// # Errors
/// If the file of kernels cannot be read.
pub(super) fn run(root: &Path, spec: &Spec) -> Result<(), String> {
    let points = points(root, spec)?;
    let model = Model::best(&points).ok_or("no kernel of the part fit")?;
    println!("Power of the chip, W: measured, and by the model");
    for point in &points {
        let Point { kernel, part, mode, measured, .. } = point;
        let part = if *part == Part::Fit { "fit" } else { "check" };
        let (watts, off) = (model.watts(point), 100.0 * point.error(&model));
        println!("  {kernel:<34} {:<9} {part:<5} {measured:>5.0} {watts:>6.1} {off:>+6.1} %", mode.name());
    }
    for (part, name) in [(Part::Fit, "fit"), (Part::Check, "check")] {
        println!("  mean error of {name}: {:.1} %", 100.0 * mean_error(&points, &model, part));
    }
    let (right, of) = savings(&points, &model);
    println!("  changes of power by mode within {:.0} points, with the right sign: {right} of {of}", 100.0 * SAVINGS);
    println!("[power]");
    model.found().iter().for_each(|(key, value)| println!("{key} = {value}"));
    Ok(())
}

/// Returns the mean of the absolute relative errors of a part.
fn mean_error(points: &[Point], model: &Model, part: Part) -> f64 {
    let errors: Vec<f64> = points.iter().filter(|p| p.part == part).map(|p| p.error(model).abs()).collect();
    errors.iter().sum::<f64>() / errors.len() as f64
}

/// Returns how many changes of a kernel's power from mode to mode are right, and how many there are.
fn savings(points: &[Point], model: &Model) -> (usize, usize) {
    const PAIRS: [(PowerMode, PowerMode); 4] = [
        (PowerMode::Normal, PowerMode::Boost),
        (PowerMode::Normal, PowerMode::Eco),
        (PowerMode::Boost, PowerMode::BoostEco),
        (PowerMode::Eco, PowerMode::BoostEco),
    ];
    let changes = points.iter().flat_map(|a| points.iter().map(move |b| (a, b)));
    let changes = changes.filter(|(a, b)| a.kernel == b.kernel && PAIRS.contains(&(a.mode, b.mode)));
    let right = |(a, b): &(&Point, &Point)| {
        let measured = b.measured / a.measured - 1.0;
        let modelled = model.watts(b) / model.watts(a) - 1.0;
        measured * modelled >= 0.0 && (measured - modelled).abs() <= SAVINGS
    };
    let all: Vec<_> = changes.collect();
    (all.iter().filter(|change| right(change)).count(), all.len())
}

/// Returns the measured powers of all kernels and modes.
fn points(root: &Path, spec: &Spec) -> Result<Vec<Point>, String> {
    let failed = |e: csv::Error| format!("{FILE}: {e}");
    let mut reader = csv::Reader::from_path(root.join(FILE)).map_err(failed)?;
    let lines: Vec<Line> = reader.deserialize().collect::<Result<_, _>>().map_err(failed)?;
    let mean = |rate: fn(&Line) -> Option<f64>| {
        let known: Vec<f64> = lines.iter().filter(|line| line.part == Part::Fit).filter_map(rate).collect();
        known.iter().sum::<f64>() / known.len() as f64
    };
    let usual = Usual {
        fp: mean(|line| line.fp),
        active: mean(|line| Some(line.fp_peak? / line.fp?)),
        l1: mean(|line| line.l1),
        l2: mean(|line| line.l2),
        memory: mean(|line| line.memory),
    };
    Ok(lines.iter().flat_map(|line| of_kernel(line, &usual, spec)).collect())
}

/// Means of the part `fit`: rates in percent, and the active part of the rate of floating-point pipes.
struct Usual {
    fp: f64,
    active: f64,
    l1: f64,
    l2: f64,
    memory: f64,
}

fn of_kernel(line: &Line, usual: &Usual, spec: &Spec) -> Vec<Point> {
    let fraction = |rate: Option<f64>, usual: f64| rate.unwrap_or(usual) / 100.0;
    let rates = Rates {
        // A kernel that keeps the pipes busy most of the time does so by arithmetic.
        fp_peak: fraction(line.fp_peak.or(line.fp), 0.0),
        active: fraction(line.fp_peak, line.fp.unwrap_or(usual.fp) * usual.active),
        l1: fraction(line.l1, usual.l1),
        l2: fraction(line.l2, usual.l2),
        memory: fraction(line.memory, usual.memory),
    };
    let point = |&mode: &PowerMode| {
        let measured = line.watts(mode)?;
        let hz = if mode.is_boost() { spec.power.boost_core_hz } else { spec.clock.core_hz } as f64;
        let (core, memory) = counted(rates.in_mode(mode, hz / spec.clock.core_hz as f64), hz, spec);
        let cycles = hz * f64::from(spec.topology.cmgs * spec.topology.cores_per_cmg);
        Some(Point { kernel: line.kernel.clone(), part: line.part, mode, measured, core, memory, cycles })
    };
    PowerMode::ALL.iter().filter_map(point).collect()
}

/// Returns the power that the events of energy count for all cores and L2 caches, and for all memory, W, at a clock.
fn counted(rates: Rates, hz: f64, spec: &Spec) -> (f64, f64) {
    const PIPES: f64 = 2.0;
    let (energy, topology) = (&spec.energy, &spec.topology);
    let cmgs = f64::from(topology.cmgs);
    let core = energy.core_cycle_pj as f64
        + PIPES * rates.active * energy.vector_operation_pj as f64
        + PIPES * rates.l1 * energy.load_store_cycle_pj as f64;
    let banks = f64::from(spec.l2_timing.banks);
    let l2 = energy.l2_cycle_pj as f64 + banks * rates.l2 * energy.l2_pipe_cycle_pj as f64;
    let lines = rates.memory * spec.memory.peak_bytes_per_second as f64 / f64::from(spec.l2.line_bytes);
    let memory = energy.memory_mw as f64 / 1e3 + lines * energy.memory_line_pj as f64 / PJ_PER_J;
    (cmgs * hz * (f64::from(topology.cores_per_cmg) * core + l2) / PJ_PER_J, cmgs * memory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    /// Returns the model that a machine has.
    fn model_of(spec: &Spec) -> Model {
        let power = &spec.power;
        let [base, core, memory] = [power.base_mw, power.core_permille, power.memory_permille].map(|n| n as f64 / 1e3);
        let saved = power.eco_cycle_pj as f64 / PJ_PER_J;
        Model { terms: [base, saved, core, memory], boost: power.boost_energy_permille }
    }

    fn machine() -> (Spec, Vec<Point>) {
        let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
        let points = points(&root(), &spec).expect("measured kernels");
        (spec, points)
    }

    #[test]
    fn the_machine_has_the_power_that_the_fit_gives() {
        let (spec, points) = machine();
        let found = Model::best(&points).expect("kernels").found();
        assert_eq!(found, model_of(&spec).found());
    }

    #[test]
    fn kernels_that_the_fit_has_not_seen_are_within_eight_percent_on_average() {
        let (spec, points) = machine();
        let model = model_of(&spec);
        assert!(mean_error(&points, &model, Part::Check) <= 0.08);
    }

    #[test]
    fn modes_change_power_as_measured_within_five_points() {
        let (spec, points) = machine();
        let (right, of) = savings(&points, &model_of(&spec));
        assert!(of >= 70 && 10 * right >= 9 * of, "{right} of {of}");
    }
}
