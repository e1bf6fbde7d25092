//! The same program with its arrays at different places in the heap each time.

use fxscope_machine::settings::size;
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Column, Table};

use super::bench::{Bench, Counted, Trial};
use super::findings::{Findings, Published};
use super::{Experiment, K_COMPUTER};
use crate::Error;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "draws",
    title: "Run time by the addresses of arrays, for several page sizes",
    measured: &K_COMPUTER,
    run,
};

/// Number of processes in the publication.
const DRAWS: u32 = 512;
/// A draw that is this much slower than the fastest counts as slow.
const SLOW: f64 = 1.05;

fn run(bench: &Bench<'_>) -> Result<Findings, Error> {
    bench.ends()?;
    bench.has_memory(bench.span, "the heap of the experiment", "--span")?;
    let draws = bench.draws.unwrap_or(DRAWS);
    let trial = |page: u64, seed: u32| Trial {
        program: "tlb-arrays",
        arguments: vec![format!("span={}", bench.span), format!("seed={seed}")],
        page,
        segments: &["mmap"],
        ..Trial::default()
    };
    let trials: Vec<Trial> =
        bench.sizes.iter().flat_map(|&page| (1..=draws).map(move |seed| trial(page, seed))).collect();
    let runs = bench.run(&trials)?;
    let counted = runs.iter().map(|run| bench.counted(run, "step 01")).collect::<Result<Vec<Counted>, Error>>()?;
    let fastest = counted.iter().map(|c| c.cycles).fold(f64::MAX, f64::min);
    let spreads: Vec<Spread> = counted.chunks(draws as usize).map(|part| Spread::of(part, fastest)).collect();

    let at = |page: u64| bench.sizes.iter().position(|&bytes| bytes == page).map(|i| spreads[i].slowest());
    let published = |id, what: &str, value, here| Published { id, what: what.to_owned(), value, unit: "times", here };
    Ok(Findings {
        tables: vec![table(bench, &spreads)],
        published: vec![
            published("k_tlb-0023", "slowest process, FrontFlow/blue vel3d1", 4.0, at(32 << 20)),
            published("k_tlb-0026", "12 s that become 46 s, pages of 32 MiB", 3.83, at(32 << 20)),
            published("k_tlb-0027", "all equal with pages of 256 MiB", 1.0, at(256 << 20)),
        ],
        seen: seen(bench, &spreads, draws),
        plots: vec![plot(bench, &spreads)],
    })
}

/// Draws with one page size.
struct Spread {
    /// Times relative to the fastest draw of all, ascending.
    times: Vec<f64>,
    /// The largest miss rate, percent.
    rate: f64,
    /// Number of slow draws.
    slow: usize,
}

impl Spread {
    fn of(draws: &[Counted], fastest: f64) -> Spread {
        let mut times: Vec<f64> = draws.iter().map(|c| c.cycles / fastest).collect();
        times.sort_by(f64::total_cmp);
        let slow = times.iter().filter(|&&time| time > SLOW * times[0]).count();
        Spread { times, rate: draws.iter().map(|c| c.rate).fold(0.0, f64::max), slow }
    }

    /// Returns the ratio of the slowest draw to the fastest.
    fn slowest(&self) -> f64 {
        self.times[self.times.len() - 1] / self.times[0]
    }
}

fn table(bench: &Bench<'_>, spreads: &[Spread]) -> Table {
    let row = |(&page, spread): (&u64, &Spread)| {
        let part = |share: f64| Cell::number(spread.times[((spread.times.len() - 1) as f64 * share) as usize], 3);
        let cells = vec![
            part(0.0),
            part(0.5),
            part(0.9),
            part(1.0),
            Cell::number(spread.slowest(), 2),
            Cell::number(spread.slow as f64, 0),
            Cell::number(spread.rate, 3),
        ];
        (size(page), cells)
    };
    let headings = ["pages", "fastest", "median", "90 %", "slowest", "spread", "slow draws"];
    let columns = headings.map(Column::from).into_iter().chain([Column::new("most misses").in_unit("%")]);
    Table::new("Times relative to the fastest draw of all", columns).with_rows(bench.sizes.iter().zip(spreads).map(row))
}

fn seen(bench: &Bench<'_>, spreads: &[Spread], draws: u32) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for (&page, spread) in bench.sizes.iter().zip(spreads) {
        seen.push(match spread.slow {
            0 => format!("Pages of {}: all {draws} draws are equally fast.", size(page)),
            slow => format!(
                "Pages of {}: {slow} of {draws} draws are more than 5 % slower than the fastest, one {:.2} times.",
                size(page),
                spread.slowest()
            ),
        });
    }
    let tlb = &bench.spec.tlb;
    let sets = u64::from(tlb.l2_entries / tlb.l2_ways);
    let shares =
        bench.sizes.iter().map(|&page| format!("{} of {}", bench.span.div_ceil(page).div_ceil(sets), size(page)));
    seen.push(format!(
        "A set of the set-associative TLB holds {} pages. That many fall into one set in {}: {}.",
        tlb.l2_ways,
        size(bench.span),
        shares.collect::<Vec<_>>().join(", ")
    ));
    seen
}

fn plot(bench: &Bench<'_>, spreads: &[Spread]) -> Plot {
    let points = |spread: &Spread| (1..).map(f64::from).zip(spread.times.iter().copied()).collect();
    let curve = |(&page, spread): (&u64, &Spread)| Curve { label: size(page), points: points(spread) };
    Plot {
        title: "Run times, fastest draw first".to_owned(),
        across: "draw".to_owned(),
        logarithmic: false,
        up: "time relative to the fastest".to_owned(),
        logarithmic_up: false,
        curves: bench.sizes.iter().zip(spreads).map(curve).collect(),
    }
}
