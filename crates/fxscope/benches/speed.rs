//! Speed of the simulator: guest instructions for each second of the host, by kind of program and mode.
//!
//! `cargo bench -p fxscope`; `xtask speed` measures the same programs through the command line, and to their end.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, Throughput, criterion_group, criterion_main};
use fxscope::machine::Spec;
use fxscope::record::Finish;
use fxscope::{Control, Mode, Request, RunOptions, Session};

/// What is run: a name, the mode, the program and its arguments, and about how many instructions of it. Each program
/// would run much longer, so that an iteration measures its steady state and prints nothing.
const CASES: &[(&str, Mode, &str, &[&str], u64)] = &[
    ("functional/triad", Mode::Functional, "triad-l1", &["n=2048", "passes=1000000"], 32_000_000),
    ("functional/sort", Mode::Functional, "sort", &["n=20000", "passes=1000000"], 32_000_000),
    ("timing/triad-l1", Mode::Timing, "triad-l1", &["n=2048", "passes=1000000"], 5_000_000),
    ("timing/triad-memory", Mode::Timing, "triad-mem", &["n=1048512", "passes=1000000"], 5_000_000),
    ("timing/dgemm-tile", Mode::Timing, "dgemm-tile", &["tile=5x4", "k=128", "passes=1000000"], 5_000_000),
];

fn speed(c: &mut Criterion) {
    let spec = Arc::new(fxscope::machine::load("a64fx", &[]).expect("the machine is built in"));
    for &(name, mode, program, arguments, instructions) in CASES {
        let simulate = || simulate(&spec, mode, program, arguments, instructions);
        // Stopping is exact to a number of blocks only.
        let (executed, _) = simulate();
        let mut group = c.benchmark_group("speed");
        group.throughput(Throughput::Elements(executed)).sampling_mode(SamplingMode::Flat);
        group.bench_function(name, |b| b.iter_custom(|times| (0..times).map(|_| simulate().1).sum()));
        group.finish();
    }
}

/// Runs to the limit; the instructions executed, and the time that they took.
fn simulate(spec: &Arc<Spec>, mode: Mode, program: &str, arguments: &[&str], instructions: u64) -> (u64, Duration) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../kernels/prebuilt/{program}.elf"));
    let request = Request {
        arguments: arguments.iter().map(Into::into).collect(),
        options: RunOptions { mode, max_instructions: Some(instructions), ..RunOptions::default() },
        ..Request::new(Arc::clone(spec), path)
    };
    let timed = |session: Session| {
        let start = Instant::now();
        (session.run(&mut |_| Control::Continue), start.elapsed())
    };
    let (run, took) = Session::contained(request, timed).expect("the program is there");
    assert_eq!(run.finish, Finish::Limit, "the program must not end before its instructions are executed");
    (run.regions[0].count(0, "INST_RETIRED").expect("counted in both modes"), took)
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(5));
    targets = speed
}
criterion_main!(benches);
