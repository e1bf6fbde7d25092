//! Hand-made runs.

// Each test file uses only a part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;

use fxscope_record::{ALL, Arithmetic, CodeFile, Finish, Host, Loop, Mode, ONE_PASS, Origin, Region, Run, Thread};

/// Counts of one thread over 1 ms, covering every group of metrics.
const COUNTS: &[(&str, u64)] = &[
    ("CPU_CYCLES", 2_000_000),
    ("INST_RETIRED", 1_250_000),
    ("EFFECTIVE_INST_SPEC", 1_200_000),
    ("0INST_COMMIT", 1_500_000),
    ("1INST_COMMIT", 100_000),
    ("2INST_COMMIT", 100_000),
    ("3INST_COMMIT", 100_000),
    ("4INST_COMMIT", 200_000),
    ("LD_COMP_WAIT", 1_300_000),
    ("LD_COMP_WAIT_EX", 10_000),
    ("LD_COMP_WAIT_L2_MISS", 1_000_000),
    ("LD_COMP_WAIT_L2_MISS_EX", 0),
    ("LD_COMP_WAIT_L1_MISS", 200_000),
    ("LD_COMP_WAIT_L1_MISS_EX", 0),
    ("LD_COMP_WAIT_PFP_BUSY", 0),
    ("LD_COMP_WAIT_PFP_BUSY_EX", 0),
    ("LD_COMP_WAIT_PFP_BUSY_SWPF", 0),
    ("EU_COMP_WAIT", 100_000),
    ("FL_COMP_WAIT", 100_000),
    ("BR_COMP_WAIT", 100),
    ("ROB_EMPTY", 60_000),
    ("ROB_EMPTY_STQ_BUSY", 40_000),
    ("WFE_WFI_CYCLE", 0),
    ("FP_FIXED_OPS_SPEC", 0),
    ("FP_SCALE_OPS_SPEC", 800_000),
    ("SVE_INST_RETIRED", 900_000),
    ("LD_SPEC", 400_000),
    ("ST_SPEC", 200_000),
    ("L1I_CACHE_REFILL", 3),
    ("L1D_CACHE_REFILL", 150_000),
    ("L2D_CACHE_REFILL", 150_500),
    ("L2D_SWAP_DM", 300),
    ("L2D_CACHE_MIBMCH_PRF", 200),
    ("L2D_CACHE_WB", 50_000),
    ("L1D_TLB_REFILL", 1_200),
    ("L2D_TLB_REFILL", 60),
    ("BR_PRED", 50_000),
    ("BR_MIS_PRED", 25),
    ("EAGA_VAL", 300_000),
    ("EAGB_VAL", 290_000),
    ("EXA_VAL", 100_000),
    ("EXB_VAL", 90_000),
    ("FLA_VAL", 200_000),
    ("FLB_VAL", 199_000),
    ("PRX_VAL", 10),
    ("L1_PIPE0_VAL", 700_000),
    ("L1_PIPE1_VAL", 690_000),
    ("L2_PIPE_VAL", 900_000),
];

/// A region whose counts are `tenths` tenths of [`COUNTS`].
pub fn region(name: &str, calls: u64, tenths: u64) -> Region {
    Region::of_one_pass(name, calls, vec![(Thread { cpu: 12, ..Thread::default() }, counts(tenths))])
}

/// `tenths` tenths of [`COUNTS`], by name.
pub fn counts(tenths: u64) -> BTreeMap<String, u64> {
    COUNTS.iter().map(|(name, n)| ((*name).to_owned(), n * tenths / 10)).collect()
}

/// A run of `program` on a machine with A64FX's constants.
pub fn run(program: &str, regions: Vec<Region>) -> Run {
    let constants = [
        ("core_hz", 2e9),
        ("vector_bits", 512.0),
        ("line_bytes", 256.0),
        ("l2_banks", 2.0),
        ("peak_flops_dp", 64e9),
        ("memory_peak", 256e9),
        ("l1_core_peak", 256e9),
        ("l2_core_peak", 128e9),
        ("l2_cmg_peak", 1024e9),
        ("fma_latency", 9.0),
        ("fma_pipes", 2.0),
        ("load_integer", 5.0),
        ("load_long", 11.0),
    ];
    Run {
        tool: "fxscope 0.0.0".to_owned(),
        command: vec![program.to_owned(), "n=1000".to_owned()],
        environment: vec![("OMP_NUM_THREADS".to_owned(), "1".to_owned())],
        machine: "a64fx".to_owned(),
        settings: Vec::new(),
        machine_hash: "0123".to_owned(),
        description: None,
        constants: constants.map(|(name, value)| (name.to_owned(), value)).into(),
        mode: Mode::Timing,
        finish: Finish::Exited(0),
        host: Host {
            cpus: 2,
            wall_seconds: 0.0825,
            mips: 15.15,
            skipped_mips: 0.0,
            peak_rss_bytes: 120 << 20,
            guest_bytes: 24 << 20,
        },
        notes: Vec::new(),
        failures: Vec::new(),
        origin: Origin::Simulated,
        passes: vec![ONE_PASS.to_owned()],
        regions,
        part: None,
        intervals: Vec::new(),
        pages: Vec::new(),
        files: Vec::new(),
        stalls: vec!["FL_COMP_WAIT".to_owned(), "BR_COMP_WAIT".to_owned()],
        pipes: vec!["EAGA".to_owned(), "EAGB".to_owned(), "FLA".to_owned()],
        sample: None,
        hot_spots: Vec::new(),
        profile: Default::default(),
        parallel: Default::default(),
    }
}

/// A run with only the region `all`.
pub fn plain() -> Run {
    run("kernels/triad-mem.elf", vec![region(ALL, 1, 10)])
}

/// A run with the region `all` of four threads on the first two CMGs of 12 CPUs each; the second thread did half as
/// much.
pub fn threads() -> Run {
    let row = |(thread, cpu)| (Thread { thread, cpu, ..Thread::default() }, counts(if thread == 1 { 5 } else { 10 }));
    let rows = (0..).zip([12, 13, 24, 25]).map(row).collect();
    let mut run = run("a.out", vec![Region::of_one_pass(ALL, 1, rows)]);
    run.constants.extend([("first_core".to_owned(), 12.0), ("cmg_cores".to_owned(), 12.0)]);
    run
}

/// A run whose region `all` has these threads and counts.
pub fn of_threads(rows: Vec<(Thread, BTreeMap<String, u64>)>) -> Run {
    run("kernels/triad-mem.elf", vec![Region::of_one_pass(ALL, 1, rows)])
}

/// A run with `threads` threads, twelve per CMG, and `regions` regions, with all events. Hardly two counts are equal,
/// so that it compresses no better than a real run.
pub fn large(threads: u32, regions: u32) -> Run {
    let mut state = 1_u64;
    let mut vary = |n: u64| {
        // A linear congruential generator: pseudo-random, but reproducible.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        n + n * (state >> 40) / (1 << 25)
    };
    let events = fxscope_pmu::Pmu::built_in("a64fx").expect("built in").events;
    let usual = |name: &str| COUNTS.iter().find(|c| c.0 == name).map_or(10_000, |c| c.1);
    let region = |i: u32| {
        let rows = (0..threads).map(|t| {
            let events = events.iter().map(|event| (event.name.clone(), vary(usual(&event.name))));
            (Thread { thread: t, cpu: 12 + t, ..Thread::default() }, events.collect())
        });
        let name = if i == 0 { ALL.to_owned() } else { format!("region {i}") };
        Region::of_one_pass(&name, 1, rows.collect())
    };
    let regions = (0..regions).map(region).collect();
    let mut run = run("a.out", regions);
    run.constants.extend([("first_core".to_owned(), 12.0), ("cmg_cores".to_owned(), 12.0)]);
    run
}

/// [`large`], with this many loops of the whole run, nested in pairs.
pub fn large_with_loops(threads: u32, regions: u32, loops: u32) -> Run {
    let mut run = large(threads, regions);
    let of = |i: u32| Loop {
        parent: (i % 2 == 1).then(|| i - 1),
        function: format!("function{}", i / 2),
        offset: u64::from(i),
        place: u64::from(i),
        iterations: 1_000,
        instructions: 100_000,
        cycles: 100_000 + u64::from(i),
        own_cycles: 50_000,
        stalls: vec![10_000; run.stalls.len()],
        pipes: vec![20_000; run.pipes.len()],
        arithmetic: Arithmetic { operations: 400_000, ..Arithmetic::default() },
        ..Loop::default()
    };
    run.profile.loops = (0..loops).map(of).collect();
    run.files = vec![CodeFile { path: "program".to_owned(), digest: String::new() }];
    run
}
