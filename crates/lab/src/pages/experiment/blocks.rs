//! A mesh in blocks: misses that large pages avoid, and the time that remains.

use fxscope_machine::settings::size;
use fxscope_record::Run;
use fxscope_report::sheet::{Cell, Table};

use super::bench::{Bench, Trial, event};
use super::findings::{Findings, Published};
use super::{A64FX, Experiment};
use crate::Error;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "blocks",
    title: "A mesh in blocks with tables: TLB misses and time by page size",
    measured: &A64FX,
    run,
};

const REGION: &str = "step";
const SEGMENTS: &[&str] = &["data", "bss", "heap", "stack", "mmap"];

/// The events, with the measured ratios of FLASH's equation of state: GCC's and Fujitsu's compiler.
const EVENTS: [(&str, &[(&str, f64)]); 10] = [
    ("CPU_CYCLES", &[("flash-0115", 0.96), ("flash-0118", 0.94)]),
    ("L1D_TLB_REFILL", &[("flash-0131", 0.03), ("flash-0134", 0.05)]),
    ("L2D_TLB_REFILL", &[("flash-0139", 0.0002), ("flash-0142", 0.01)]),
    ("L1_MISS_WAIT", &[("flash-0163", 0.99), ("flash-0166", 1.02)]),
    ("L1D_CACHE_REFILL", &[("flash-0171", 0.96), ("flash-0174", 0.99)]),
    ("L2D_CACHE_REFILL", &[("flash-0219", 1.08), ("flash-0222", 1.06)]),
    ("LD_COMP_WAIT", &[("flash-0259", 0.71), ("flash-0262", 0.78)]),
    ("LD_COMP_WAIT_L1_MISS", &[("flash-0279", 0.82), ("flash-0282", 0.78)]),
    ("LD_COMP_WAIT_L2_MISS", &[("flash-0287", 0.9), ("flash-0290", 0.96)]),
    ("EU_COMP_WAIT", &[("flash-0295", 1.01), ("flash-0298", 0.97)]),
];
/// … and of its 3-d hydrodynamics, beside the copies of guard cells.
const HYDRO: [(&str, &[(&str, f64)]); 4] = [
    ("CPU_CYCLES", &[("flash-0536", 1.1), ("flash-0539", 1.0)]),
    ("L1D_TLB_REFILL", &[("flash-0552", 0.11), ("flash-0555", 0.31)]),
    ("L2D_TLB_REFILL", &[("flash-0560", 0.03), ("flash-0563", 0.03)]),
    ("L2_MISS_WAIT", &[("flash-0632", 0.99), ("flash-0635", 0.99)]),
];

fn run(bench: &Bench<'_>) -> Result<Findings, Error> {
    let (small, large) = bench.ends()?;
    let trial = |part: &str, page| Trial {
        program: "blocks",
        arguments: vec![format!("part={part}")],
        page,
        segments: SEGMENTS,
        ..Trial::default()
    };
    let trials = ["all", "guards"].map(|part| [trial(part, small), trial(part, large)]);
    let runs = bench.run(&trials.into_iter().flatten().collect::<Vec<_>>())?;
    let [all_small, all_large, guards_small, guards_large] = runs.as_slice() else {
        return Err("not all runs were made".into());
    };
    let headings = ["event".to_owned(), size(small), size(large), "ratio".to_owned()];
    let tables = vec![
        table("The whole step", &headings, &EVENTS, all_small, all_large)?,
        table("Guard cells alone", &headings, &HYDRO, guards_small, guards_large)?,
    ];
    let measured = bench.is_as_measured();
    let mut published = Vec::new();
    for (what, events, pages) in
        [("EOS", &EVENTS[..], [all_small, all_large]), ("Hydro", &HYDRO[..], [guards_small, guards_large])]
    {
        for (name, rows) in events {
            let here = ratio(name, pages[0], pages[1])?;
            published.extend(rows.iter().map(|&(id, value)| Published {
                id,
                what: format!("{what} {name}"),
                value,
                unit: "",
                here: measured.then_some(here),
            }));
        }
    }
    Ok(Findings { seen: seen(bench, [small, large], all_small, all_large)?, published, tables, plots: Vec::new() })
}

type Events<'e> = &'e [(&'e str, &'e [(&'e str, f64)])];

fn table(title: &'static str, headings: &[String], events: Events, small: &Run, large: &Run) -> Result<Table, Error> {
    let row = |(name, _): &(&str, &[(&str, f64)])| {
        let counts = [event(small, REGION, name)?, event(large, REGION, name)?];
        let cells =
            vec![Cell::number(counts[0], 0), Cell::number(counts[1], 0), Cell::number(counts[1] / counts[0], 4)];
        Ok(((*name).to_owned(), cells))
    };
    let rows = events.iter().map(row).collect::<Result<Vec<_>, Error>>()?;
    Ok(Table::new(title, headings.iter().cloned()).with_rows(rows))
}

fn ratio(name: &str, small: &Run, large: &Run) -> Result<f64, Error> {
    Ok(event(large, REGION, name)? / event(small, REGION, name)?)
}

/// Explains the time by the counts of both runs.
fn seen(bench: &Bench<'_>, pages: [u64; 2], small: &Run, large: &Run) -> Result<Vec<String>, Error> {
    let both = |name: &str| Ok::<_, Error>([event(small, REGION, name)?, event(large, REGION, name)?]);
    let (cycles, misses, walks) = (both("CPU_CYCLES")?, both("L1D_TLB_REFILL")?, both("L2D_TLB_REFILL")?);
    let (loads, operations) = (both("LD_COMP_WAIT")?, both("EU_COMP_WAIT")?);
    let [small, large] = pages.map(size);
    let percent = |part: f64, whole: f64| 100.0 * part / whole;
    Ok(vec![
        format!(
            "With pages of {small} a miss of the first-level TLB comes every {:.0} cycles, a walk every {:.0}: {:.1} % of the \
             misses hit the second level, which takes {} cycles.",
            cycles[0] / misses[0],
            cycles[0] / walks[0],
            percent(misses[0] - walks[0], misses[0]),
            bench.spec.tlb.l2_hit,
        ),
        format!(
            "Each miss that pages of {large} avoid saves {:.1} cycles: the rest of its time overlapped with other instructions.",
            (cycles[0] - cycles[1]) / (misses[0] - misses[1])
        ),
        format!(
            "Waits for operations are {:.0} % of the cycles, which no page size changes; waits for loads {:.0} %, of which large \
             pages take {:.0} %.",
            percent(operations[0], cycles[0]),
            percent(loads[0], cycles[0]),
            percent(loads[0] - loads[1], loads[0]),
        ),
    ])
}
