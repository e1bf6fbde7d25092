//! A run of many steps that allocate and free work arrays, so that their addresses differ from step to step.

use fxscope_machine::settings::size;
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Column, Table};

use super::bench::{Bench, Counted, Trial};
use super::findings::{Findings, Published};
use super::{Experiment, K_COMPUTER};
use crate::Error;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "steps",
    title: "Steps of a long run whose arrays move, with the smallest and the largest pages",
    measured: &K_COMPUTER,
    run,
};

/// Number of runs in the publication.
const RUNS: u32 = 18;
const STEPS: usize = 20;

/// Cycles of the steps of all runs with one page size.
struct Runs {
    page: u64,
    /// By run and step.
    steps: Vec<Vec<Counted>>,
}

impl Runs {
    /// Returns the milliseconds of each whole run.
    fn totals(&self, bench: &Bench) -> Vec<f64> {
        self.steps.iter().map(|steps| bench.milliseconds(steps.iter().map(|c| c.cycles).sum())).collect()
    }

    /// Returns by how much the longest step of a run exceeds the shortest, percent.
    fn variation_of_steps(&self) -> f64 {
        let each = self.steps.iter().map(|steps| variation(&steps.iter().map(|c| c.cycles).collect::<Vec<_>>()));
        each.fold(0.0, f64::max)
    }

    /// Returns the milliseconds of a whole run if all runs were processes that synchronise after each step.
    fn together(&self, bench: &Bench) -> f64 {
        let slowest = |step: usize| self.steps.iter().map(|steps| steps[step].cycles).fold(0.0, f64::max);
        bench.milliseconds((0..STEPS).map(slowest).sum())
    }

    fn rates(&self) -> (f64, f64) {
        let rates = || self.steps.iter().flatten().map(|c| c.rate);
        (rates().fold(f64::MAX, f64::min), rates().fold(0.0, f64::max))
    }
}

/// (max - min) / min, percent.
fn variation(times: &[f64]) -> f64 {
    let (least, most) = times.iter().fold((f64::MAX, 0.0), |(l, m), &t| (t.min(l), t.max(m)));
    100.0 * (most / least - 1.0)
}

fn run(bench: &Bench<'_>) -> Result<Findings, Error> {
    let (smallest, largest) = bench.ends()?;
    bench.has_memory(bench.span, "the heap of the experiment", "--span")?;
    let runs = bench.draws.unwrap_or(RUNS);
    let arguments = |seed: u32| {
        let counts = [("arrays", 24), ("work", 24), ("steps", STEPS as u64), ("visits", 8), ("rounds", 50)];
        let counts = counts.iter().map(|(name, count)| format!("{name}={count}"));
        counts.chain([format!("span={}", bench.span), format!("seed={seed}")]).collect()
    };
    let trial = |page: u64, seed: u32| Trial {
        program: "tlb-arrays",
        arguments: arguments(seed),
        page,
        segments: &["mmap"],
        ..Trial::default()
    };
    let trials: Vec<Trial> =
        [smallest, largest].iter().flat_map(|&page| (1..=runs).map(move |seed| trial(page, seed))).collect();
    let all = bench.run(&trials)?;
    let name = |step: usize| format!("step {:02}", step + 1);
    let steps = |run| (0..STEPS).map(|step| bench.counted(run, &name(step))).collect::<Result<Vec<Counted>, Error>>();
    let steps = all.iter().map(steps).collect::<Result<Vec<_>, Error>>()?;
    let (before, after) = steps.split_at(runs as usize);
    let before = Runs { page: smallest, steps: before.to_vec() };
    let after = Runs { page: largest, steps: after.to_vec() };

    let mean = |runs: &Runs| runs.totals(bench).iter().sum::<f64>() / runs.steps.len() as f64;
    let gain = 100.0 * (mean(&before) / mean(&after) - 1.0);
    let published =
        |id, what: &str, value, here| Published { id, what: what.to_owned(), value, unit: "%", here: Some(here) };
    Ok(Findings {
        published: vec![
            published("k_tlb-0039", "variation of run times, 4 MiB", 13.83, variation(&before.totals(bench))),
            published("k_tlb-0040", "variation of run times, 256 MiB", 1.31, variation(&after.totals(bench))),
            published("k_tlb-0041", "mean gain of 256 MiB", 5.78, gain),
        ],
        seen: seen(bench, &before, &after),
        plots: vec![plot(bench, &before, &after)],
        tables: vec![step_table(bench, &before, &after), run_table(bench, &[&before, &after])],
    })
}

/// Returns the run whose steps vary most.
fn worst(runs: &Runs) -> usize {
    let spread = |steps: &[Counted]| variation(&steps.iter().map(|c| c.cycles).collect::<Vec<_>>());
    (0..runs.steps.len()).max_by(|&a, &b| spread(&runs.steps[a]).total_cmp(&spread(&runs.steps[b]))).unwrap_or(0)
}

fn step_table(bench: &Bench<'_>, before: &Runs, after: &Runs) -> Table {
    let run = worst(before);
    let cells = |c: Counted| [Cell::number(1e3 * bench.milliseconds(c.cycles), 1), Cell::number(c.rate, 4)];
    let row = |step: usize| {
        let cells = [before, after].iter().flat_map(|runs| cells(runs.steps[run][step])).collect();
        ((step + 1).to_string(), cells)
    };
    let [small, large] = [before.page, after.page].map(size);
    let title = "Steps of the run that varies most: microseconds, misses of 100 loads and stores";
    let each = [small, large].map(|page| [format!("µs {page}"), format!("misses {page}")]);
    Table::new(title, std::iter::once("step".to_owned()).chain(each.into_iter().flatten()))
        .with_rows((0..STEPS).map(row))
}

fn run_table(bench: &Bench<'_>, all: &[&Runs]) -> Table {
    let row = |runs: &&Runs| {
        let totals = runs.totals(bench);
        let least = totals.iter().copied().fold(f64::MAX, f64::min);
        let cells = vec![
            Cell::number(least, 3),
            Cell::number(totals.iter().copied().fold(0.0, f64::max), 3),
            Cell::number(variation(&totals), 2),
            Cell::number(runs.variation_of_steps(), 2),
            Cell::number(runs.together(bench), 3),
            Cell::number(runs.rates().1, 4),
        ];
        (size(runs.page), cells)
    };
    let columns = [
        Column::new("pages"),
        Column::new("fastest run").in_unit("ms"),
        Column::new("slowest"),
        Column::new("variation").in_unit("%"),
        Column::new("of steps").in_unit("%"),
        Column::new("all together").in_unit("ms"),
        Column::new("most misses").in_unit("%"),
    ];
    Table::new("Whole runs", columns).with_rows(all.iter().map(row))
}

fn seen(bench: &Bench<'_>, before: &Runs, after: &Runs) -> Vec<String> {
    let [small, large] = [before.page, after.page].map(size);
    let least = before.totals(bench).iter().copied().fold(f64::MAX, f64::min);
    vec![
        format!(
            "All steps do the same work. With pages of {small} the steps of one run differ by up to {:.1} %, with pages of \
             {large} by {:.1} %.",
            before.variation_of_steps(),
            after.variation_of_steps()
        ),
        format!(
            "If the runs were processes that synchronise after each step, the run would take {:.1} % longer than the \
             fastest alone with pages of {small}: in each step another one is slow.",
            100.0 * (before.together(bench) / least - 1.0)
        ),
        "Published are runs of 12,288 processes of an application. Here one process repeats a loop: what it shows is that \
         placement alone makes steps and runs differ, not by how much those did."
            .to_owned(),
    ]
}

fn plot(bench: &Bench<'_>, before: &Runs, after: &Runs) -> Plot {
    let run = worst(before);
    let curve = |runs: &Runs| {
        let points = runs.steps[run].iter().map(|c| 1e3 * bench.milliseconds(c.cycles));
        Curve { label: size(runs.page), points: (1..).map(f64::from).zip(points).collect() }
    };
    Plot {
        title: "Steps of the run that varies most".to_owned(),
        across: "step".to_owned(),
        logarithmic: false,
        up: "time, µs".to_owned(),
        logarithmic_up: false,
        curves: vec![curve(before), curve(after)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variation_is_what_the_longest_takes_more_than_the_shortest() {
        assert_eq!(variation(&[2.0, 3.0, 2.5]), 50.0);
    }
}
