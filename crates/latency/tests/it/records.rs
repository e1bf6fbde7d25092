//! Counts of records.

use std::collections::BTreeMap;

use fxscope_latency::Quantity;
use fxscope_latency::inputs::{self, Unusable};
use fxscope_record::{ALL, Finish, Host, Interval, Intervals, Mode, Origin, Region, Run, Thread};

/// Counts of a thread, and its CPU.
type Counted<'a> = (u32, &'a [(&'a str, u64)]);

/// A run on a machine with these counts of its threads.
fn run(machine: &str, threads: &[Counted<'_>]) -> Run {
    let row = |(thread, (cpu, counts)): (u32, &Counted<'_>)| {
        let counts: BTreeMap<String, u64> = counts.iter().map(|&(name, n)| (name.to_owned(), n)).collect();
        (Thread { thread, cpu: *cpu, ..Thread::default() }, counts)
    };
    let rows = (0..).zip(threads).map(row).collect();
    let constants = [("core_hz", 2e9), ("timer_hz", 1e8), ("cmg_cores", 12.0), ("first_core", 12.0)];
    Run {
        tool: String::new(),
        command: Vec::new(),
        environment: Vec::new(),
        machine: machine.to_owned(),
        settings: Vec::new(),
        machine_hash: String::new(),
        description: None,
        constants: constants.map(|(name, value)| (name.to_owned(), value)).into(),
        mode: Mode::Timing,
        finish: Finish::Exited(0),
        host: Host::default(),
        notes: Vec::new(),
        failures: Vec::new(),
        origin: Origin::Simulated,
        passes: vec!["run".to_owned(), "again".to_owned()],
        regions: vec![Region::of_one_pass(ALL, 1, rows)],
        pages: Vec::new(),
        files: Vec::new(),
        stalls: Vec::new(),
        pipes: Vec::new(),
        sample: None,
        hot_spots: Vec::new(),
        profile: Default::default(),
        parallel: Default::default(),
        part: None,
        intervals: Vec::new(),
    }
}

fn series(pass: usize, ends: &[u64], counts: &[(&str, &[u64])]) -> Intervals {
    let names = counts.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut sorted = counts.to_vec();
    sorted.sort_unstable_by_key(|count| count.0);
    let row = |(i, &end_ns): (usize, &u64)| Interval { end_ns, counts: sorted.iter().map(|c| c.1[i]).collect() };
    Intervals { pass, region: ALL.to_owned(), names, rows: ends.iter().enumerate().map(row).collect() }
}

#[test]
fn threads_are_summed_and_cmg_wide_events_count_once() {
    let counted: &[(&str, u64)] = &[("CPU_CYCLES", 4_000), ("L2D_CACHE_REFILL_PRF", 10), ("L2_MISS_WAIT", 500)];
    let half: &[(&str, u64)] = &[("CPU_CYCLES", 2_000), ("L2D_CACHE_REFILL_PRF", 10), ("L2_MISS_WAIT", 500)];
    let run = run("a64fx", &[(12, counted), (13, half), (24, counted)]);
    let taken = inputs::take(&run, &run.regions[0], None).expect("known events");
    let counts = taken.counts;
    assert_eq!((counts.seconds, counts.threads), (2e-6, 2.5));
    assert_eq!(counts.get(Quantity::Prefetched), Some(30.0));
    assert_eq!(counts.get(Quantity::Outstanding), Some(1_000.0), "two CMGs");
    let misses = taken.missing.iter().find(|missing| missing.0 == Quantity::Misses).expect("not counted");
    assert_eq!(misses.1, ["L2D_CACHE_REFILL", "L2D_SWAP_DM", "L2D_CACHE_MIBMCH_PRF"]);
}

#[test]
fn the_cores_of_a_program_counted_as_a_whole_follow_from_cycles_and_clock() {
    let mut run = run("a64fx", &[(0, &[("CPU_CYCLES", 6_000_000), ("CNTVCT", 100_000)])]);
    run.origin = Origin::Imported { format: "perf".to_owned(), files: Vec::new() };
    let counts = inputs::take(&run, &run.regions[0], None).expect("known events").counts;
    assert_eq!((counts.seconds, counts.threads), (1e-3, 3.0));
    run.constants.remove("core_hz");
    let taken = inputs::take(&run, &run.regions[0], None).expect("known events");
    assert_eq!(taken.counts.threads, 1.0);
    assert!(taken.notes[0].contains("--threads N"));
    assert_eq!(inputs::take(&run, &run.regions[0], Some(4.0)).expect("known events").counts.threads, 4.0);
}

#[test]
fn a_record_without_known_events_or_time_is_refused() {
    let none = run("z80", &[(0, &[("t-states", 4)])]);
    assert_eq!(inputs::take(&none, &none.regions[0], None).unwrap_err(), Unusable::NoEvents("z80".to_owned()));
    let timeless = run("a64fx", &[(12, &[("L2D_CACHE_REFILL_PRF", 4)])]);
    assert_eq!(inputs::take(&timeless, &timeless.regions[0], None).unwrap_err(), Unusable::NoTime(ALL.to_owned()));
}

#[test]
fn intervals_of_all_passes_are_joined() {
    let mut run = run("a64fx", &[(12, &[("CPU_CYCLES", 300)])]);
    assert!(inputs::series(&run, ALL, 1.0).unwrap_err().contains("fxscope run --interval"));
    run.intervals = vec![
        series(0, &[1_000, 2_500], &[("CPU_CYCLES", &[100, 200]), ("L2_MISS_WAIT", &[50, 900])]),
        series(1, &[1_100, 2_400], &[("L2D_CACHE_REFILL_PRF", &[7, 8])]),
    ];
    let all = inputs::series(&run, ALL, 1.0).expect("intervals");
    let outstanding: Vec<_> = all.iter().map(|counts| counts.each_cycle(Quantity::Outstanding)).collect();
    assert_eq!(outstanding, [Some(0.5), Some(4.5)]);
    assert_eq!(all[1].get(Quantity::Prefetched), Some(8.0));
    assert!((all[1].seconds - 1.5e-6).abs() < 1e-12);
    assert_eq!(
        inputs::series(&run, "loop", 1.0).unwrap_err(),
        "the run has no intervals of region 'loop': fxscope run --interval TIME --interval-region loop records them"
    );
}

#[test]
fn intervals_that_do_not_match_are_named() {
    let mut run = run("a64fx", &[(12, &[("CPU_CYCLES", 300)])]);
    let first = series(0, &[1_000, 2_000], &[("CPU_CYCLES", &[100, 200])]);
    run.intervals = vec![first.clone(), series(1, &[1_000], &[("L2_MISS_WAIT", &[7])])];
    assert_eq!(
        inputs::series(&run, ALL, 1.0).unwrap_err(),
        "the intervals of passes run and again do not match: 2 and 1"
    );
    run.intervals = vec![first, series(1, &[1_000_000, 1_001_000], &[("L2_MISS_WAIT", &[7, 8])])];
    assert_eq!(
        inputs::series(&run, ALL, 1.0).unwrap_err(),
        "the intervals of passes run and again do not match: interval 1 ends after 0.001 and 1.000 ms"
    );
}
