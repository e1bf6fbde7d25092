//! Data of charts, and the levels of a report.

use crate::common;

use std::collections::BTreeMap;

use fxscope_record::{Run, Thread};
use fxscope_report::document::{Body, Gauge, Matrix, Roofline, Section, Stack};
use fxscope_report::{By, Level, Options, report};

fn sections(run: &Run, options: &Options) -> Vec<Section> {
    report(run, options).expect("all regions").regions.remove(0).sections
}

fn detailed(run: &Run) -> Vec<Section> {
    sections(run, &Options::default())
}

fn roofline(run: &Run) -> Roofline {
    let found = detailed(run).into_iter().find_map(|s| if let Body::Roofline(r) = s.body { Some(r) } else { None });
    found.expect("a roofline")
}

fn stack(run: &Run, options: &Options) -> Stack {
    let found =
        sections(run, options).into_iter().find_map(|s| if let Body::Stack(s) = s.body { Some(s) } else { None });
    found.expect("cycle accounting")
}

fn matrices(run: &Run) -> Vec<(String, Matrix)> {
    detailed(run)
        .into_iter()
        .filter_map(|s| if let Body::Matrix(m) = s.body { Some((s.title, m)) } else { None })
        .collect()
}

/// The identifiers of all columns.
fn columns(run: &Run, level: Level) -> Vec<String> {
    let options = Options { level, by: By::Process, ..Options::default() };
    let grids =
        sections(run, &options).into_iter().filter_map(|s| if let Body::Grid(g) = s.body { Some(g) } else { None });
    grids.flat_map(|grid| grid.headings).map(|heading| heading.id).collect()
}

#[test]
fn ceilings_are_those_of_the_cores_and_cmgs_that_threads_run_on() {
    // Four cores on two CMGs: 64 GFLOPS, 256 GB/s from L1 and 128 GB/s from L2 each, 256 GB/s of memory for each CMG.
    let roofline = roofline(&common::threads());
    assert_eq!(roofline.roofs[0].gflops, 256.0);
    let slopes: Vec<_> = roofline.slopes.iter().map(|s| (s.label.as_str(), s.gigabytes)).collect();
    assert_eq!(slopes, [("L1", 1024.0), ("L2", 512.0), ("memory", 512.0)]);
}

#[test]
fn l2_bandwidth_of_a_cmg_is_limited_by_its_banks() {
    let slopes = roofline(&common::large(12, 1)).slopes;
    // Twelve cores could take 1,536 GB/s.
    assert_eq!(slopes[1].gigabytes, 1024.0);
}

#[test]
fn points_lie_at_the_rate_and_the_operations_per_byte() {
    let roofline = roofline(&common::plain());
    let point = &roofline.points[0];
    // 800,000 counts of SVE operations, for each 128 of 512 bits, in 1 ms; 150,000 lines refilled and 50,000 written
    // back.
    assert!((roofline.reached.gflops - 3.2).abs() < 1e-9);
    assert_eq!(point.level, "memory");
    let intensity = 3_200_000.0 / ((150_000.0 + 50_000.0) * 256.0);
    assert!((point.intensity / intensity - 1.0).abs() < 1e-12, "{point:?}");
}

#[test]
fn a_region_with_data_in_l1_has_a_rate_and_ceilings_but_no_point() {
    let mut counts = common::counts(10);
    for event in
        ["L1D_CACHE_REFILL", "L1D_CACHE_WB", "L2D_CACHE_REFILL", "L2D_SWAP_DM", "L2D_CACHE_MIBMCH_PRF", "L2D_CACHE_WB"]
    {
        counts.insert(event.to_owned(), 0);
    }
    let roofline = roofline(&common::of_threads(vec![(Thread { cpu: 12, ..Thread::default() }, counts)]));
    assert_eq!(roofline.points, []);
    assert_eq!(roofline.idle, ["L2", "memory"]);
    assert!((roofline.reached.gflops - 3.2).abs() < 1e-9, "{:?}", roofline.reached);
    assert_eq!(roofline.slopes.len(), 3);
    assert!(roofline.reading.starts_with("There is no slope"), "{}", roofline.reading);
}

#[test]
fn without_traffic_counts_there_is_no_roofline() {
    let mut counts = common::counts(10);
    for event in ["L1D_CACHE_REFILL", "L2D_CACHE_REFILL"] {
        counts.remove(event);
    }
    let run = common::of_threads(vec![(Thread { cpu: 12, ..Thread::default() }, counts)]);
    assert!(!detailed(&run).iter().any(|section| matches!(section.body, Body::Roofline(_))));
}

#[test]
fn the_parts_of_every_thread_add_up_to_its_time() {
    let stack = stack(&common::threads(), &Options::default());
    let sums: Vec<f64> = stack.bars[..4].iter().map(|bar| bar.values.iter().sum()).collect();
    for (sum, seconds) in sums.iter().zip([1e-3, 5e-4, 1e-3, 1e-3]) {
        assert!((sum / seconds - 1.0).abs() < 1e-9, "{sums:?}");
    }
}

/// A thread on each of two CMGs, the second of which reads from both memories.
fn two_cmgs() -> Run {
    let counts = |own: u64, other: u64| {
        let mut counts = common::counts(10);
        for (cmg, lines) in [own, other, 0, 0].into_iter().enumerate() {
            counts.insert(format!("READ_MEM_CMG{cmg}"), lines);
        }
        counts
    };
    let thread = |thread, cpu| Thread { thread, cpu, ..Thread::default() };
    let rows: Vec<(Thread, BTreeMap<String, u64>)> =
        vec![(thread(0, 12), counts(1000, 0)), (thread(1, 24), counts(500, 250))];
    let mut run = common::of_threads(rows);
    run.constants.extend([("first_core".to_owned(), 12.0), ("cmg_cores".to_owned(), 12.0)]);
    run
}

#[test]
fn traffic_has_a_row_for_each_cmg_with_threads_and_a_column_for_each_memory() {
    let matrices = matrices(&two_cmgs());
    let [(title, matrix)] = matrices.as_slice() else { panic!("one kind of traffic was counted: {matrices:?}") };
    assert!(title.ends_with("Reads from memory"));
    assert_eq!(matrix.rows, ["cores of CMG 0", "cores of CMG 1"]);
    // Lines of 256 bytes in 1 ms, GB/s.
    let rate = |lines: f64| Some(lines * 256.0 / 1e-3 / 1e9);
    assert_eq!(
        matrix.values,
        [[rate(1000.0), rate(0.0), rate(0.0), rate(0.0)], [rate(500.0), rate(250.0), rate(0.0), rate(0.0)]]
    );
}

#[test]
fn a_record_without_events_of_traffic_shows_none() {
    assert!(matrices(&common::threads()).is_empty());
}

#[test]
fn each_level_has_all_columns_of_the_one_before_and_more() {
    let run = common::large(2, 1);
    let levels = [Level::Single, Level::Brief, Level::Standard, Level::Detailed].map(|level| columns(&run, level));
    for pair in levels.windows(2) {
        assert!(pair[0].iter().all(|id| pair[1].contains(id)) && pair[0].len() < pair[1].len(), "{levels:?}");
    }
}

#[test]
fn the_single_level_has_statistics_and_all_columns_from_the_same_events() {
    let ids = columns(&common::large(2, 1), Level::Single);
    let (statistics, others): (Vec<_>, Vec<_>) = ids.iter().map(String::as_str).partition(|id| id.starts_with('A'));
    // The share of active elements needs events of another run.
    assert_eq!(statistics, ["A01", "A02", "A03", "A04", "A05", "A06", "A07", "A08", "A09", "A11", "A12"]);
    // Time, memory throughput relative to peak, L2 misses, instructions.
    assert_eq!(others, ["B21", "C07", "D08", "E29"]);
}

#[test]
fn the_brief_level_has_cycle_accounting_in_its_main_parts() {
    let options = Options { level: Level::Brief, by: By::Process, ..Options::default() };
    let ids: Vec<_> = stack(&common::large(2, 1), &options).parts.into_iter().map(|p| p.id).collect();
    assert_eq!(ids, ["B01", "B07", "B10", "B12", "B13", "B14", "B15", "B kernel", "B16", "B20"]);
}

#[test]
fn a_unit_above_its_limit_is_marked_with_an_interpretation() {
    let mut run = common::plain();
    let mut counts = common::counts(10);
    counts.insert("L2_PIPE_VAL".to_owned(), 3_900_000);
    run.regions = common::of_threads(vec![(Thread { cpu: 12, ..Thread::default() }, counts)]).regions;
    let gauges: Vec<Gauge> = detailed(&run)
        .into_iter()
        .find_map(|s| if let Body::Gauges(g) = s.body { Some(g) } else { None })
        .expect("busy rates");
    let high: Vec<_> = gauges.iter().filter(|g| g.is_high()).collect();
    assert_eq!(high.iter().map(|g| g.label.as_str()).collect::<Vec<_>>(), ["L2"]);
    assert!((high[0].fraction - 0.975).abs() < 1e-9 && !high[0].reading.is_empty());
}
