//! Masked stores to memory that was never allocated.

use fxscope_machine::settings::size;
use fxscope_record::Run;
use fxscope_report::sheet::{Cell, Table};

use super::bench::{Bench, Trial, event};
use super::findings::{Findings, Published};
use super::{Experiment, K_COMPUTER};
use crate::Error;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "masked",
    title: "Masked stores to memory that was never allocated, by page size",
    measured: &K_COMPUTER,
    run,
};

const REGION: &str = "masked";
const ROWS: u64 = 2_000;

/// Variants of the loop: description, and the program's options.
const WAYS: [(&str, &[&str]); 4] = [
    ("mask, never allocated", &["state=absent", "form=mask"]),
    ("mask, allocated", &["state=used", "form=mask"]),
    ("mask, active", &["state=used", "form=mask", "active=1"]),
    ("condition before the loop", &["state=absent", "form=branch"]),
];

fn run(bench: &Bench<'_>) -> Result<Findings, Error> {
    let trial = |(_, options): &(&str, &[&str]), page: u64| Trial {
        program: "masked",
        arguments: options.iter().map(|&option| option.to_owned()).chain([format!("rows={ROWS}")]).collect(),
        page,
        segments: &["data", "bss", "heap", "stack", "mmap"],
        ..Trial::default()
    };
    let trials: Vec<Trial> = WAYS.iter().flat_map(|way| bench.sizes.iter().map(|&page| trial(way, page))).collect();
    let runs = bench.run(&trials)?;
    let ways: Vec<&[Run]> = runs.chunks(bench.sizes.len()).collect();
    let cycles = |run: &Run| Ok::<_, Error>(event(run, REGION, "CPU_CYCLES")? / ROWS as f64);
    let table = |title: &'static str, of: &dyn Fn(&Run) -> Result<f64, Error>, digits: usize| {
        let row = |((label, _), runs): (&(&str, &[&str]), &&[Run])| {
            let cells = runs.iter().map(|run| Ok(Cell::number(of(run)?, digits))).collect::<Result<_, Error>>()?;
            Ok(((*label).to_owned(), cells))
        };
        let headings = std::iter::once("loop".to_owned()).chain(bench.sizes.iter().map(|&page| size(page)));
        let rows = WAYS.iter().zip(&ways).map(row).collect::<Result<Vec<_>, Error>>()?;
        Ok::<_, Error>(Table::new(title, headings).with_rows(rows))
    };
    let rate = |run: &Run| bench.counted(run, REGION).map(|counted| counted.rate);
    let absent = &ways[0][0];
    let times = cycles(absent)? / cycles(&ways[3][0])?;
    Ok(Findings {
        seen: vec![seen(bench, times)],
        published: vec![
            Published {
                id: "k_tlb-0057",
                what: "NICAM NSW6: misses of 100 accesses".to_owned(),
                value: 1.37,
                unit: "%",
                here: Some(rate(absent)?),
            },
            Published {
                id: "k_tlb-0055",
                what: "… time to that without masks (4.18 s)".to_owned(),
                value: 227.27 / 4.18,
                unit: "x",
                here: Some(times),
            },
        ],
        tables: vec![
            table("Cycles of a row of 24 vectors and one masked store", &cycles, 1)?,
            table("TLB misses of 100 loads and stores", &rate, 3)?,
        ],
        plots: Vec::new(),
    })
}

fn seen(bench: &Bench<'_>, times: f64) -> String {
    let name = &bench.spec.name;
    if !bench.spec.tlb.inactive_lookup {
        return format!(
            "{name} translates no address for an access without active elements (tlb.inactive_lookup): whether its memory is \
             allocated makes no difference."
        );
    }
    format!(
        "The masked store to memory that was never allocated takes {times:.1} times as long, with any page size: there \
         is no translation that a TLB could hold. Allocating the memory, or moving the condition before the loop, avoids it."
    )
}
