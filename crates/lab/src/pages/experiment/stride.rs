//! A loop whose steps need one translation each: the effect of its stride with several page sizes.

use fxscope_machine::settings::size;
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Table};

use super::bench::{Bench, Counted, Trial};
use super::findings::{Findings, Published};
use super::{Experiment, K_COMPUTER};
use crate::Error;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "stride",
    title: "TLB misses and speed of a loop, by its stride and the size of pages",
    measured: &K_COMPUTER,
    run,
};

const MIB: u64 = 1 << 20;
/// Strides in halves of a MiB.
const HALVES: [u64; 20] = [1, 2, 3, 4, 5, 6, 8, 12, 16, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096, 8192];
/// Most steps of the loop.
const STEPS: u64 = 512;
/// Vectors loaded per round of a step.
const LOADS: u64 = 16;
/// Rounds per step, for the table of strides.
const ROUNDS: u64 = 256;
/// Rounds per step, for the loss by miss rate.
const SWEEP: [u64; 12] = [4096, 2048, 1600, 1400, 1250, 1150, 1050, 950, 850, 700, 512, 256];
/// Steps of that loop: more pages per set than it has ways, with any of the page sizes.
const FEW: u64 = 12;
/// Loss that counts, percent, and the miss rate from which a loss is expected.
const LOSS: f64 = 3.0;
const GUIDELINE: f64 = 0.005;
/// Miss rates below this, percent, come from the program's start.
const NOTICED: f64 = 0.001;

/// Published miss rates of a loss of speed: row, page size, percent.
const PUBLISHED: [(&str, u64, f64); 2] = [("k_tlb-0013", 4 * MIB, 0.0054), ("k_tlb-0014", 32 * MIB, 0.0058)];

fn run(bench: &Bench<'_>) -> Result<Findings, Error> {
    let (_, largest) = bench.ends()?;
    let strides: Vec<u64> = HALVES.iter().map(|n| n * MIB / 2).filter(|stride| 3 * stride <= bench.span).collect();
    let few = (bench.span / FEW + 1).next_power_of_two() / 2;
    if strides.is_empty() || few < 64 << 10 {
        return Err(format!("--span {}: too small for any stride; give at least 2MiB", size(bench.span)).into());
    }
    bench.has_memory(bench.span, "the loop of the experiment", "--span")?;
    let by_stride = |&stride: &u64| trials(bench, stride, STEPS.min(bench.span / stride), ROUNDS);
    let by_rounds = |&rounds: &u64| trials(bench, few, FEW, rounds);
    let all: Vec<Trial> = strides.iter().flat_map(by_stride).chain(SWEEP.iter().flat_map(by_rounds)).collect();
    let runs = bench.run(&all)?;
    let counted = runs.iter().map(|run| bench.counted(run, "stride")).collect::<Result<Vec<Counted>, Error>>()?;
    let rows: Vec<&[Counted]> = counted.chunks(bench.sizes.len()).collect();
    let (table, sweep) = rows.split_at(strides.len());

    let losses: Vec<Vec<(f64, f64)>> = (0..bench.sizes.len()).map(|i| losses(sweep, i)).collect();
    let published = PUBLISHED.iter().filter_map(|&(id, page, value)| {
        let i = bench.sizes.iter().position(|&bytes| bytes == page && bytes != largest)?;
        let what = format!("miss rate of a loss of {LOSS} %, {}", size(page));
        Some(Published { id, what, value, unit: "%", here: rate_of_loss(&losses[i], LOSS) })
    });
    Ok(Findings {
        published: published.collect(),
        seen: seen(bench, &strides, table, &losses),
        plots: plots(bench, &strides, table, &losses),
        tables: vec![stride_table(bench, &strides, table), loss_table(bench, sweep, &losses)],
    })
}

/// Returns a run for each page size.
fn trials(bench: &Bench<'_>, stride: u64, steps: u64, rounds: u64) -> Vec<Trial> {
    let passes = (96 / steps).max(1);
    let arguments = [("stride", stride), ("count", steps), ("rounds", rounds), ("passes", passes)];
    let arguments: Vec<String> = arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let trial = |&page: &u64| Trial {
        program: "tlb-stride",
        arguments: arguments.clone(),
        page,
        segments: &["mmap"],
        ..Trial::default()
    };
    bench.sizes.iter().map(trial).collect()
}

/// Returns the speed of a run relative to the largest pages, percent.
fn speed(row: &[Counted], size: usize) -> f64 {
    100.0 * row[row.len() - 1].cycles / row[size].cycles
}

/// Returns miss rate and loss of speed with one page size, by ascending miss rate.
fn losses(sweep: &[&[Counted]], size: usize) -> Vec<(f64, f64)> {
    sweep.iter().map(|row| (row[size].rate, 100.0 - speed(row, size))).collect()
}

/// Returns the miss rate at which a loss is reached, interpolated linearly.
fn rate_of_loss(losses: &[(f64, f64)], loss: f64) -> Option<f64> {
    losses.windows(2).find_map(|pair| {
        let [(r0, l0), (r1, l1)] = [pair[0], pair[1]];
        (l0 < loss && loss <= l1).then(|| r0 + (r1 - r0) * (loss - l0) / (l1 - l0))
    })
}

/// Returns the loss at a miss rate.
fn loss_of_rate(losses: &[(f64, f64)], rate: f64) -> Option<f64> {
    let swapped: Vec<(f64, f64)> = losses.iter().map(|&(rate, loss)| (loss, rate)).collect();
    rate_of_loss(&swapped, rate)
}

fn headings(first: &str, bench: &Bench<'_>, kinds: [&str; 2]) -> Vec<String> {
    let each = |kind: &str| bench.sizes.iter().map(|&bytes| format!("{kind} {}", size(bytes))).collect::<Vec<_>>();
    [vec![first.to_owned()], each(kinds[0]), each(kinds[1])].concat()
}

fn stride_table(bench: &Bench<'_>, strides: &[u64], rows: &[&[Counted]]) -> Table {
    let row = |(&stride, row): (&u64, &&[Counted])| {
        let rates = row.iter().map(|c| Cell::number(c.rate, 4));
        let speeds = (0..row.len()).map(|i| Cell::number(speed(row, i), 1));
        (size(stride), rates.chain(speeds).collect())
    };
    Table::new(
        "Misses of 100 loads and stores; speed relative to the largest pages, percent",
        headings("stride", bench, ["misses", "speed"]),
    )
    .with_rows(strides.iter().zip(rows).map(row))
}

fn loss_table(bench: &Bench<'_>, rows: &[&[Counted]], losses: &[Vec<(f64, f64)>]) -> Table {
    let row = |(i, (rounds, _)): (usize, (&u64, &&[Counted]))| {
        let rates = losses.iter().map(|size| Cell::number(size[i].0, 5));
        let lost = losses.iter().map(|size| Cell::number(size[i].1, 2));
        ((rounds * LOADS).to_string(), rates.chain(lost).collect())
    };
    Table::new(
        "Each step misses: misses of 100 loads and stores; loss of speed, percent",
        headings("loads a step", bench, ["misses", "loss"]),
    )
    .with_rows(SWEEP.iter().zip(rows).enumerate().map(row))
}

fn seen(bench: &Bench<'_>, strides: &[u64], table: &[&[Counted]], losses: &[Vec<(f64, f64)>]) -> Vec<String> {
    let mut seen = Vec::new();
    for (i, &page) in bench.sizes.iter().enumerate() {
        let slowest = table.iter().map(|row| speed(row, i)).fold(100.0, f64::min);
        seen.push(match strides.iter().zip(table).find(|(_, row)| row[i].rate > NOTICED) {
            Some((&stride, _)) => format!(
                "Pages of {}: misses from a stride of {} on; the slowest stride has {slowest:.1} % of the speed.",
                size(page),
                size(stride)
            ),
            None => format!("Pages of {}: no stride has more misses than {NOTICED} %.", size(page)),
        });
    }
    for (&page, losses) in bench.sizes.iter().zip(losses) {
        if let Some(loss) = loss_of_rate(losses, GUIDELINE) {
            seen.push(format!(
                "At {GUIDELINE} % misses, the published threshold (k_tlb-0015), pages of {} lose {loss:.1} %.",
                size(page)
            ));
        }
    }
    seen
}

fn plots(bench: &Bench<'_>, strides: &[u64], table: &[&[Counted]], losses: &[Vec<(f64, f64)>]) -> Vec<Plot> {
    let curves = |value: &dyn Fn(&[Counted], usize) -> f64| {
        let points =
            |i: usize| strides.iter().zip(table).map(|(&s, row)| (s as f64 / MIB as f64, value(row, i))).collect();
        bench.sizes.iter().enumerate().map(|(i, &b)| Curve { label: size(b), points: points(i) }).collect::<Vec<_>>()
    };
    let plot = |title: &str, across: &str, up: &str, logarithmic: bool, curves: Vec<Curve>| Plot {
        title: title.to_owned(),
        across: across.to_owned(),
        logarithmic,
        up: up.to_owned(),
        logarithmic_up: false,
        curves,
    };
    let time = |row: &[Counted], i: usize| row[i].cycles / row[row.len() - 1].cycles;
    let lost = bench.sizes.iter().zip(losses).map(|(&b, points)| Curve { label: size(b), points: points.clone() });
    let lost = lost.filter(|curve| curve.points.iter().any(|point| point.0 > 0.0)).collect();
    vec![
        plot("TLB misses", "stride, MiB", "misses of 100 loads and stores", true, curves(&|row, i| row[i].rate)),
        plot("Time", "stride, MiB", "time relative to the largest pages", true, curves(&time)),
        plot("Loss of speed", "misses of 100 loads and stores", "loss, percent", false, lost),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_between_two_measured_ones_has_a_rate_between_theirs() {
        let losses = [(0.001, 1.0), (0.003, 2.0), (0.007, 4.0)];
        assert_eq!(rate_of_loss(&losses, 3.0), Some(0.005));
        assert_eq!(rate_of_loss(&losses, 5.0), None);
        assert_eq!(loss_of_rate(&losses, 0.002), Some(1.5));
    }
}
