//! The evaluations of large pages in the vendor's guide, as published.

use fxscope_record::Run;
use fxscope_report::sheet::{Cell, Table};

use super::bench::{Bench, Trial, event};
use super::findings::{Findings, Published};
use super::{A64FX, Experiment};
use crate::Error;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "largepage",
    title: "Triad by page size, freed memory kept or returned, pages allocated at once or on demand",
    measured: &A64FX,
    run,
};

/// Elements of an array of Triad, and of Triad with 48 threads.
const TRIAD: u64 = 5_592_384;
const TRIAD_48: u64 = 4_194_048;

fn run(bench: &Bench<'_>) -> Result<Findings, Error> {
    let (small, large) = bench.ends()?;
    let triad = |page| Trial {
        program: "triad-mem-8x",
        arguments: vec![format!("n={TRIAD}"), "passes=1".to_owned()],
        page,
        segments: &["bss"],
        ..Trial::default()
    };
    let with = |program, arguments: &[String], variable: &'static str, value: &'static str| Trial {
        program,
        arguments: arguments.to_vec(),
        page: large,
        environment: vec![(variable, value)],
        ..Trial::default()
    };
    let kept = |value| with("maps", &[], "XOS_MMM_L_ARENA_FREE", value);
    let threads =
        |passes: u64| ["threads=48".into(), "form=zfill".into(), format!("n={TRIAD_48}"), format!("passes={passes}")];
    let policy = |passes, value| with("triad-threads", &threads(passes), "XOS_MMM_L_PAGING_POLICY", value);
    let runs = bench.run(&[
        triad(small),
        triad(large),
        kept("1"),
        kept("2"),
        policy(1, "prepage:demand:prepage"),
        policy(2, "demand:demand:demand"),
    ])?;
    let [normal, large, given, kept, prepaged, demand] = runs.as_slice() else {
        return Err("not all runs were made".into());
    };
    let seconds = |run: &Run, region: &str| bench.seconds(run, region);
    let speed = |run: &Run| Ok::<_, Error>(32.0 * TRIAD as f64 / seconds(run, "triad")? / 1e9);
    let of_48 = |run: &Run, passes: u64| Ok::<_, Error>((24 * TRIAD_48 * passes) as f64 / seconds(run, "triad")? / 1e9);
    let mut published = Vec::new();
    let mut add = |id, what: &str, value, unit, here| {
        published.push(Published { id, what: what.to_owned(), value, unit, here: Some(here) });
    };
    for (run, pages, rows) in [
        (normal, "normal pages", [("largepage-0031", 61.76), ("largepage-0047", 0.09786), ("largepage-0049", 0.09776)]),
        (large, "large pages", [("largepage-0032", 77.29), ("largepage-0048", 0.00324), ("largepage-0050", 0.00033)]),
    ] {
        let accesses = event(run, "triad", "LD_SPEC")? + event(run, "triad", "ST_SPEC")?;
        let rate = |name| Ok::<_, Error>(100.0 * event(run, "triad", name)? / accesses);
        let [speeds, first, second] = rows;
        add(speeds.0, &format!("Triad, {pages}"), speeds.1, "GB/s", speed(run)?);
        add(first.0, &format!("Triad, {pages}: L1 misses"), first.1, "%", rate("L1D_TLB_REFILL")?);
        add(second.0, &format!("Triad, {pages}: L2 misses"), second.1, "%", rate("L2D_TLB_REFILL")?);
    }
    let mut rows = Vec::new();
    for (region, ids, times) in REGIONS {
        let here = [seconds(given, region)?, seconds(kept, region)?];
        for ((id, time), (here, value)) in ids.into_iter().zip(times).zip(here.into_iter().zip([1, 2])) {
            add(id, &format!("ARENA_FREE={value}: {region}"), time, "s", here);
        }
        rows.push((region.to_owned(), vec![Cell::number(1e3 * here[0], 3), Cell::number(1e3 * here[1], 3)]));
    }
    add("largepage-0069", "Triad, 48 threads, prepage", 93.0, "GB/s", of_48(prepaged, 1)?);
    add("largepage-0070", "Triad, 48 threads, demand", 804.0, "GB/s", of_48(demand, 2)?);
    Ok(Findings {
        seen: vec![
            format!(
                "Large pages make Triad {:.2} times as fast; pages on demand, on the node of the thread that touches them, {:.1} \
                 times with 48 threads.",
                speed(large)? / speed(normal)?,
                of_48(demand, 2)? / of_48(prepaged, 1)?
            ),
            "Keeping freed memory saves only system calls.".to_owned(),
        ],
        published,
        tables: vec![
            Table::new("1024 blocks of 8 MiB allocated and freed, ms", ["", "ARENA_FREE=1", "ARENA_FREE=2"])
                .with_rows(rows),
        ],
        plots: Vec::new(),
    })
}

/// Timed operations on blocks, with the published times with memory returned and kept, seconds.
const REGIONS: [(&str, [&str; 2], [f64; 2]); 4] = [
    ("take", ["largepage-0058", "largepage-0062"], [0.501_782_69, 0.510_782_43]),
    ("give back", ["largepage-0059", "largepage-0063"], [0.260_215_76, 0.000_496_35]),
    ("take again", ["largepage-0060", "largepage-0064"], [0.500_856_22, 0.000_308_22]),
    ("give back again", ["largepage-0061", "largepage-0065"], [0.260_336_51, 0.000_252_02]),
];
