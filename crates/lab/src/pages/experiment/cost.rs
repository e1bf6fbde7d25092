//! The cost of large pages: each segment is rounded up to whole pages, however little of it is mapped.

use fxscope_machine::settings::size;
use fxscope_record::Run;
use fxscope_report::document::{Curve, Plot};
use fxscope_report::sheet::{Cell, Table};

use super::bench::{Bench, Trial};
use super::findings::{Findings, Published};
use super::{Experiment, K_COMPUTER};
use crate::Error;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "cost",
    title: "Memory taken by whole pages, for a program with little data in each segment",
    measured: &K_COMPUTER,
    run,
};

const MIB: f64 = (1u64 << 20) as f64;
/// Threads with a segment of their own.
const THREADS: u64 = 8;
/// Segments with large pages: data, heap, stack and those of threads.
const SEGMENTS: u64 = 3 + THREADS;

/// A kind of segment, and the page map's names for its parts.
const KINDS: [(&str, &[&str]); 4] =
    [("data", &["data", "bss"]), ("heap", &["heap"]), ("stack", &["stack"]), ("threads", &["thread_stack"])];

fn run(bench: &Bench<'_>) -> Result<Findings, Error> {
    let largest = *bench.sizes.last().ok_or("--sizes: give at least one")?;
    let what = format!("a page of {} for each of {SEGMENTS} segments", size(largest));
    bench.has_memory(SEGMENTS * largest, &what, "--sizes")?;
    let segments = &["data", "bss", "heap", "stack", "thread_stack"];
    let arguments = vec![format!("threads={THREADS}")];
    let trial = |&page: &u64| Trial {
        program: "tlb-segments",
        arguments: arguments.clone(),
        page,
        segments,
        ..Trial::default()
    };
    let runs = bench.run(&bench.sizes.iter().map(trial).collect::<Vec<_>>())?;
    let maps: Vec<Vec<Part>> = runs.iter().map(parts).collect();
    let taken = |parts: &[Part]| parts.iter().map(|part| part.taken).sum::<f64>();
    let mapped = |parts: &[Part]| parts.iter().map(|part| part.mapped).sum::<f64>();

    let by_size = |(&page, parts): (&u64, &Vec<Part>)| {
        let worst = SEGMENTS as f64 * page as f64 / MIB;
        let cells = [taken(parts), mapped(parts), taken(parts) - mapped(parts), worst].map(|mib| Cell::number(mib, 1));
        (size(page), cells.to_vec())
    };
    let here = bench.sizes.iter().position(|&bytes| bytes == 256 << 20).map(|i| taken(&maps[i]));
    let points = bench.sizes.iter().zip(&maps).map(|(&page, parts)| (page as f64 / MIB, taken(parts)));
    Ok(Findings {
        seen: vec![format!(
            "{SEGMENTS} segments of which {:.1} MiB are mapped take {:.0} MiB in pages of {}.",
            mapped(&maps[maps.len() - 1]),
            taken(&maps[maps.len() - 1]),
            size(largest)
        )],
        published: vec![Published {
            id: "k_tlb-0019",
            what: format!("{SEGMENTS} segments in pages of 256 MiB"),
            value: 2816.0,
            unit: "MiB",
            here,
        }],
        plots: vec![Plot {
            title: "Memory taken".to_owned(),
            across: "page, MiB".to_owned(),
            logarithmic: true,
            up: "MiB".to_owned(),
            logarithmic_up: false,
            curves: vec![Curve { label: format!("{SEGMENTS} segments"), points: points.collect() }],
        }],
        tables: vec![
            page_map(&maps[maps.len() - 1]),
            Table::new("All segments, MiB", ["pages", "taken", "mapped", "lost", "a page each"])
                .with_rows(bench.sizes.iter().zip(&maps).map(by_size)),
        ],
    })
}

/// Memory of a kind of segment, MiB.
struct Part {
    kind: &'static str,
    pages: f64,
    taken: f64,
    mapped: f64,
}

/// Reads the page map of a run.
fn parts(run: &Run) -> Vec<Part> {
    let part = |&(kind, names): &(&'static str, &[&str])| {
        let rows = || run.pages.iter().filter(|row| names.contains(&row.segment.as_str()));
        let mapped: u64 = rows().map(|row| row.bytes).sum();
        let page = rows().map(|row| row.page_bytes).max().unwrap_or(1);
        // Adjacent parts share the page at their boundary.
        let pages = rows().map(|row| row.pages).max().unwrap_or(0).max(mapped.div_ceil(page));
        Part { kind, pages: pages as f64, taken: (pages * page) as f64 / MIB, mapped: mapped as f64 / MIB }
    };
    KINDS.iter().map(part).collect()
}

fn page_map(parts: &[Part]) -> Table {
    let row = |part: &Part| {
        let cells = vec![
            Cell::number(part.pages, 0),
            Cell::number(part.taken, 1),
            Cell::number(part.mapped, 2),
            Cell::number(part.taken - part.mapped, 1),
        ];
        (part.kind.to_owned(), cells)
    };
    Table::new("Page map with the largest pages, MiB", ["segment", "pages", "taken", "mapped", "lost"])
        .with_rows(parts.iter().map(row))
}
