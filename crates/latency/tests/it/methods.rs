//! The methods on hand-made counts, compared with arithmetic.

use fxscope_latency::check::{self, Sample};
use fxscope_latency::methods::stalls::{self, Coefficients};
use fxscope_latency::methods::{METHODS, Method, Program};
use fxscope_latency::{Counts, Kind, LATENCIES, Prediction, Quantity, SecondRun, System, predict};
use proptest::prelude::*;

const NONE: &str = "the run has no intervals";
const NO_SECOND: &str = "there is no second run";

/// Counts of a second on two cores of 2 GHz.
fn counts() -> Counts {
    Counts::new(1.0, 2.0).with(Quantity::Cycles, 4e9)
}

pub(crate) fn of<'a>(counts: &'a Counts, intervals: &'a [Counts], system: &'a System) -> Program<'a> {
    Program { counts, intervals, no_intervals: NONE, system, second: Err(NO_SECOND) }
}

/// Returns the results of all methods for memory of 300 ns, from counts with memory of 100 ns.
fn ask(counts: &Counts, intervals: &[Counts]) -> Prediction {
    predict(&of(counts, intervals, &System::of_latency(100.0)), &[300.0])
}

fn no_second() -> Result<SecondRun, String> {
    Err(NO_SECOND.to_owned())
}

/// Another run, with memory slower by this many seconds, of which nothing else is known.
fn second(added: f64, slowdown: f64) -> Result<SecondRun, &'static str> {
    Ok(SecondRun { added, slowdown, busy: None })
}

fn slowdown(prediction: &Prediction, id: &str) -> f64 {
    prediction.slowdowns(id).unwrap_or_else(|| panic!("method {id}"))[0].expect("a slower memory")
}

pub(crate) fn near(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-9, "{a}, not {b}");
}

fn refusal(prediction: &Prediction, id: &str) -> String {
    let row = prediction.rows.iter().find(|row| row.method.id == id).expect("a method");
    row.result.clone().expect_err(id)
}

/// A machine: 2 GHz, 128 ns, misses detected after 32 cycles; 40 lines ahead, 256 buffers for 12 cores.
pub(crate) fn machine() -> System {
    let spec = fxscope_machine::load("a64fx", &[]).expect("built in");
    System::of(&spec).with_latency(128.0)
}

#[test]
fn the_first_methods_add_the_latency_of_each_access_of_a_thread() {
    let counts = counts().with(Quantity::Misses, 1e6).with(Quantity::Accesses, 3e6).with(Quantity::CacheMisses, 0.5e6);
    let said = ask(&counts, &[]);
    // 200 ns more for each of a thread's 500,000, 1,500,000 and 250,000 accesses.
    near(slowdown(&said, "0"), 1.1);
    near(slowdown(&said, "1"), 1.3);
    near(slowdown(&said, "2"), 1.05);
    assert_eq!(said.spread(0), Some((slowdown(&said, "2"), slowdown(&said, "1"))));
}

#[test]
fn mean_outstanding_reads_divide_the_added_time() {
    let counts = counts().with(Quantity::Accesses, 3e6).with(Quantity::Outstanding, 16e9);
    let said = ask(&counts, &[]);
    near(slowdown(&said, "4"), 1.0 + 0.3 / 4.0);
    // With a memory-side cache, its misses count.
    let cached = ask(&counts.clone().with(Quantity::CacheMisses, 1e6), &[]);
    near(slowdown(&cached, "4"), 1.0 + 0.1 / 4.0);
    // Less than one at a time is no overlap.
    let alone = ask(&counts.with(Quantity::Outstanding, 2e9), &[]);
    near(slowdown(&alone, "4"), 1.3);
}

#[test]
fn intervals_separate_phases_that_the_mean_of_the_run_mixes() {
    let phase = |accesses: f64, outstanding: f64| {
        let counts = Counts::new(0.5, 2.0).with(Quantity::Cycles, 2e9);
        counts.with(Quantity::Accesses, accesses).with(Quantity::Outstanding, outstanding * 2e9)
    };
    let whole = counts().with(Quantity::Accesses, 12e6).with(Quantity::Outstanding, 18e9);
    let said = ask(&whole, &[phase(8e6, 8.0), phase(4e6, 1.0)]);
    // The waits are for 1,000,000 of the first phase and 4,000,000 of the second, half of them by each thread.
    near(slowdown(&said, "4i"), 1.0 + 5e6 / 2.0 * 200e-9);
    near(slowdown(&said, "4"), 1.0 + 12e6 / 4.5 / 2.0 * 200e-9);
    assert_eq!(said.outstanding, [(0.5, 8.0), (1.0, 1.0)]);
    let one = ask(&whole, std::slice::from_ref(&whole));
    near(slowdown(&one, "4i"), slowdown(&one, "4"));
}

/// Coefficients that add nothing to the lower bound.
pub(crate) const PLAIN: Coefficients =
    Coefficients { hidden: 0.0, late: 0.0, together: 0.0, slowest: 0.0, distance: 1.0, streams: 2.0 };

/// Two threads of 4,000,000 cycles; each waits 2,240,000: 10,000 times the remaining 224 of 256 after the miss of L2 was
/// detected.
fn waiting(misses: f64, in_flight: f64) -> Counts {
    Counts::new(0.002, 2.0)
        .with(Quantity::Cycles, 8e6)
        .with(Quantity::MemoryWait, 4.48e6)
        .with(Quantity::Misses, misses)
        .with(Quantity::Prefetched, 0.0)
        .with(Quantity::InFlight, in_flight)
}

#[test]
fn waits_grow_by_the_added_latency() {
    let (counts, system) = (waiting(2e4, 0.0), machine());
    // 200 ns are 400 cycles: 4,000,000 more for 4,000,000.
    near(stalls::slowdown(&of(&counts, &[], &system), 200e-9, PLAIN), 2.0);
}

#[test]
fn misses_hidden_by_work_cause_waits_with_slower_memory() {
    let system = machine();
    let at = |misses: f64, reads: f64, hidden| {
        let counts = waiting(misses, reads * 8e6);
        stalls::slowdown(&of(&counts, &[], &system), 200e-9, Coefficients { hidden, ..PLAIN })
    };
    // 12,500 misses of a thread, 256 cycles each: 0.8 at a time if none overlap.
    near(at(2.5e4, 0.8, 0.0), 2.0);
    near(at(2.5e4, 0.8, 0.5), 1.0 + 11_250.0 * 400.0 / 4e6);
    near(at(2.5e4, 0.8, 1.0), 1.0 + 12_500.0 * 400.0 / 4e6);
    // More than one at a time overlap: waits are never more than sequential.
    near(at(5e4, 1.2, 1.0), 1.0 + 4e6 / 256.0 * 400.0 / 4e6);
}

#[test]
fn misses_that_wait_for_bandwidth_mean_fewer_waits() {
    // 512 cycles per miss, of which 480 are visible. Of 400 added cycles, 256 shorten the time in the queue.
    let counts = waiting(2.5e4, 2.5e4 * 512.0);
    let at = |added: f64| stalls::slowdown(&of(&counts, &[], &machine()), added, PLAIN);
    near(at(200e-9), 1.0 + 2.24e6 / 480.0 * (400.0 - 256.0) / 4e6);
    near(at(100e-9), 1.0);
}

#[test]
fn bursts_of_prefetches_do_not_reduce_the_number_of_waits() {
    // As above, but with a third of the memory bandwidth: waits of 224 of 256 cycles, each grows by 400.
    let system = machine();
    let details = system.details.as_ref().expect("described");
    let lines = |share: f64| share * details.bandwidth * 0.002 / details.line_bytes;
    let at = |share: f64| {
        let counts = waiting(2.5e4, 2.5e4 * 512.0).with(Quantity::Accesses, lines(share));
        stalls::slowdown(&of(&counts, &[], &system), 200e-9, PLAIN)
    };
    near(at(0.3), 1.0 + 2.24e6 / 224.0 * 400.0 / 4e6);
    near(at(0.8), 1.0 + 2.24e6 / 480.0 * (400.0 - 256.0) / 4e6);
}

#[test]
fn prefetches_beside_demand_misses_come_late() {
    // One miss at a time, half of them prefetched: 7,812.5 demand misses of 256 cycles, and half as many late prefetches.
    let counts = waiting(31_250.0, 8e6).with(Quantity::Prefetched, 15_625.0).with(Quantity::MemoryWait, 0.0);
    let with = Coefficients { hidden: 1.0, late: 0.5, ..PLAIN };
    let at = |with| stalls::slowdown(&of(&counts, &[], &machine()), 200e-9, with);
    near(at(with), 1.0 + 1.5 * 7_812.5 * 400.0 / 4e6);
    // Half a prefetch is outstanding: demand misses that come together with it cause fewer waits.
    near(at(Coefficients { together: 0.5, ..with }), 1.0 + 1.5 / 1.25 * 7_812.5 * 400.0 / 4e6);
}

#[test]
fn with_a_memory_side_cache_only_its_misses_get_slower() {
    // A quarter of 20,000 misses goes to memory of 256 cycles, the others hit a cache of 176: 196 on average, 164 of them
    // waited for.
    let counts = Counts::new(0.002, 1.0)
        .with(Quantity::Cycles, 4e6)
        .with(Quantity::MemoryWait, 1.64e6)
        .with(Quantity::Misses, 2e4)
        .with(Quantity::CacheMisses, 5e3)
        .with(Quantity::Prefetched, 0.0);
    let mut system = machine();
    system.details.as_mut().expect("described").cache_latency = Some(176.0);
    // 10,000 waits, each 400 cycles longer in a quarter of the cases.
    near(stalls::slowdown(&of(&counts, &[], &system), 200e-9, PLAIN), 1.25);
    // Two misses overlap in each wait: one of the two is enough, in 7 of 16 cases.
    let both = Coefficients { slowest: 1.0, ..PLAIN };
    near(stalls::slowdown(&of(&counts, &[], &system), 200e-9, both), 1.0 + 7.0 / 16.0);
}

#[test]
fn misses_of_the_memory_side_cache_count_in_the_phases_that_wait() {
    let phase = |waits: f64, slow: f64| {
        Counts::new(0.001, 1.0)
            .with(Quantity::Cycles, 2e6)
            .with(Quantity::MemoryWait, waits)
            .with(Quantity::Misses, 1e4)
            .with(Quantity::CacheMisses, slow)
            .with(Quantity::Prefetched, 0.0)
    };
    let whole = Counts::new(0.002, 1.0)
        .with(Quantity::Cycles, 4e6)
        .with(Quantity::MemoryWait, 1.64e6)
        .with(Quantity::Misses, 2e4)
        .with(Quantity::CacheMisses, 5e3)
        .with(Quantity::Prefetched, 0.0);
    let mut system = machine();
    system.details.as_mut().expect("described").cache_latency = Some(176.0);
    let at = |phases: &[Counts]| stalls::slowdown(&of(&whole, phases, &system), 200e-9, PLAIN);
    // The phase that fills the cache does not wait; the other one waits for the cache alone, or for memory in half of the cases.
    near(at(&[phase(0.0, 5e3), phase(1.64e6, 0.0)]), 1.0);
    near(at(&[phase(0.0, 0.0), phase(1.64e6, 5e3)]), 1.5);
}

/// A core that never waits in 1,000,000 cycles: 100,000 lines are prefetched, and as many written back.
fn streaming(written: f64) -> Counts {
    Counts::new(0.0005, 1.0)
        .with(Quantity::Cycles, 1e6)
        .with(Quantity::MemoryWait, 0.0)
        .with(Quantity::Misses, 1e5)
        .with(Quantity::Prefetched, 1e5)
        .with(Quantity::WrittenBack, written)
}

#[test]
fn prefetched_streams_come_as_fast_as_buffers_and_distance_allow() {
    // A copy on one core: two lines are read per line written, so there are two streams, 80 lines ahead.
    let counts = streaming(5e4);
    let system = machine();
    let at = |counts: &Counts, added: f64| stalls::slowdown(&of(counts, &[], &system), added, PLAIN);
    near(at(&counts, 200e-9), 1.0);
    // 100,000 lines of 224 + 1,600 cycles, 80 at a time, take 2,280,000 cycles.
    near(at(&counts, 800e-9), 2.28);
    // As many as were outstanding in the run can be again.
    near(at(&counts.clone().with(Quantity::InFlight, 160e6), 800e-9), 1.14);
    // Software prefetches may be as far ahead as 256 buffers allow.
    near(at(&counts.clone().with(Quantity::HardwarePrefetched, 0.0), 1600e-9), 1e5 * (224.0 + 3200.0) / 256.0 / 1e6);
    // Twelve cores share 256 buffers: 21.3 for each.
    let mut many = counts.clone();
    many.threads = 12.0;
    let all = [Quantity::Cycles, Quantity::Misses, Quantity::WrittenBack, Quantity::Prefetched];
    let many = all.into_iter().fold(many, |many, q| many.with(q, 12.0 * counts.get(q).expect("counted")));
    // The buffers are full before memory gets slower: all of the added latency counts.
    near(at(&many, 800e-9), 1.0 + 1e5 * 1600.0 / (256.0 / 12.0) / 1e6);
}

#[test]
fn outstanding_l1_misses_give_the_streams_of_a_loop_that_waits() {
    // Nothing is written. Four of five L1 misses come from memory.
    let counts = streaming(0.0).with(Quantity::L1Misses, 1.25e5);
    let system = machine();
    let details = system.details.as_ref().expect("described");
    let at = |l1: f64, waits: f64| {
        let counts = counts.clone().with(Quantity::L1Outstanding, l1 * 1e6).with(Quantity::AccessWait, waits * 1e6);
        stalls::slowdown(&of(&counts, &[], &system), 1600e-9, PLAIN)
    };
    let lines = |streams: f64| 1e5 * (224.0 + 3200.0) / (40.0 * streams) / 1e6;
    let (buffers, distance) = (details.l1_buffers, details.l1_distance);
    near(at(buffers, 0.1), lines(0.8 * buffers / distance));
    near(at(1.5 * distance, 0.5), lines(0.8 * 1.5));
    // There is at least one.
    near(at(1.1 * distance, 0.5), lines(1.0));
    // A loop that neither waits nor fills the buffers has the default number.
    near(at(details.l1_distance, 0.1), lines(PLAIN.streams));
}

#[test]
fn what_is_missing_is_named_and_the_other_methods_run() {
    let said = ask(&counts().with(Quantity::Misses, 1e6), &[]);
    near(slowdown(&said, "0"), 1.1);
    assert_eq!(refusal(&said, "1"), "not counted: memory accesses at the controllers");
    assert_eq!(refusal(&said, "2"), "not counted: misses of the memory-side cache");
    assert_eq!(refusal(&said, "3"), "not counted: outstanding reads, summed over cycles");
    assert_eq!(
        refusal(&said, "4"),
        "not counted: misses of the memory-side cache or memory accesses at the controllers, outstanding reads, summed \
         over cycles"
    );
    assert!(refusal(&said, "5").contains("cycles waiting for memory"));
    let counted = counts().with(Quantity::Accesses, 1e6).with(Quantity::Outstanding, 1e9);
    assert_eq!(refusal(&ask(&counted, &[]), "4i"), NONE);
    assert_eq!(
        refusal(&ask(&counted, &[counted.clone(), counts()]), "4i"),
        "not counted in interval 2: misses of the memory-side cache or memory accesses at the controllers, outstanding \
         reads, summed over cycles"
    );
}

#[test]
fn zero_cycles_and_no_time_are_refused() {
    let counts = counts().with(Quantity::Accesses, 1e6).with(Quantity::Outstanding, 1e9);
    let said = ask(&counts.with(Quantity::Cycles, 0.0), &[]);
    assert_eq!(refusal(&said, "4"), "the count of core cycles is zero");
    near(slowdown(&said, "1"), 1.1);
    let said = ask(&Counts::new(0.0, 2.0).with(Quantity::Accesses, 1e6), &[]);
    assert_eq!(refusal(&said, "1"), "the run took no time");
    let said = ask(&Counts::new(1.0, 0.0).with(Quantity::Accesses, 1e6), &[]);
    assert_eq!(refusal(&said, "1"), "no thread was counted");
    assert!(said.trust.is_none());
}

#[test]
fn only_faster_memory_is_refused() {
    let counts = counts().with(Quantity::Misses, 1e6);
    let said = predict(&of(&counts, &[], &System::of_latency(175.0)), &[100.0, 175.0, 300.0]);
    let slowdowns = said.slowdowns("0").expect("counted");
    assert_eq!((slowdowns[0], slowdowns[1]), (None, Some(1.0)));
    assert_eq!(
        said.points[0].refusal().expect("refused"),
        "100 ns is faster than the memory of the machine, by 75 ns: counts of a normal run do not predict it"
    );
    assert!(said.points[2].refusal().is_none());
}

/// Counts of a second on a core of the machine, with shares of its cycles and misses.
fn like(misses: f64, wait: f64, prefetched: f64, outstanding: f64) -> Counts {
    Counts::new(1.0, 1.0)
        .with(Quantity::Cycles, 2e9)
        .with(Quantity::Misses, misses)
        .with(Quantity::Accesses, misses)
        .with(Quantity::MemoryWait, wait * 2e9)
        .with(Quantity::Prefetched, prefetched * misses)
        .with(Quantity::Outstanding, outstanding * 2e9)
}

#[test]
fn counts_determine_the_kind_of_program_and_the_trusted_method() {
    let system = machine();
    let kind = |counts: &Counts| {
        let said = predict(&of(counts, &[], &system), &LATENCIES);
        (said.kind, said.trust.expect("a method").0.id)
    };
    assert_eq!(kind(&like(1e3, 0.0, 0.5, 0.0)), (Kind::Resident, "5"));
    assert_eq!(kind(&like(7e6, 0.88, 0.0, 0.83)), (Kind::Dependent, "0"));
    assert_eq!(kind(&like(60e6, 0.88, 0.0, 6.4)), (Kind::Overlapped, "5"));
    assert_eq!(kind(&like(220e6, 0.0, 1.0, 24.0)), (Kind::Prefetched, "5"));
    assert_eq!(kind(&like(850e6, 0.0, 1.0, 200.0)), (Kind::Bandwidth, "5"));
    assert_eq!(kind(&Counts::new(1.0, 1.0).with(Quantity::Misses, 1e7)), (Kind::Unknown, "0"));
}

#[test]
fn a_fit_finds_the_coefficients_that_made_the_samples() {
    let made = Coefficients { hidden: 0.4, late: 1.5, together: 0.5, slowest: 0.0, distance: 0.8, streams: 3.0 };
    let system = machine();
    let sample = |counts: Counts| {
        let at = |latency: f64| {
            let added = (latency - system.base_ns) * 1e-9;
            (latency, stalls::slowdown(&of(&counts, &[], &system), added, made))
        };
        let simulated = LATENCIES.map(at).to_vec();
        let (counts, system) = (counts.clone(), system.clone());
        let (name, no_intervals) = (String::new(), NONE.to_owned());
        Sample { name, fit: true, counts, intervals: Vec::new(), no_intervals, system, second: no_second(), simulated }
    };
    let copy = like(200e6, 0.0, 1.0, 20.0).with(Quantity::WrittenBack, 100e6);
    let hides = like(60e6, 0.4, 0.0, 4.0).with(Quantity::InFlight, 8e9);
    let late = like(20e6, 0.1, 0.5, 0.5).with(Quantity::InFlight, 1e9);
    let together = like(20e6, 0.1, 0.8, 0.5).with(Quantity::InFlight, 4e9);
    let samples = [hides, copy, late, together, like(200e6, 0.0, 1.0, 20.0)].map(sample);
    let found = check::fit(&samples.each_ref()).expect("samples");
    let each = |of: Coefficients| [of.hidden, of.late, of.together, of.distance, of.streams];
    for (found, made) in each(found).into_iter().zip(each(made)) {
        assert!((found / made - 1.0).abs() < 0.01, "{found}, not {made}");
    }
    let none: Vec<Sample> = samples.into_iter().map(|sample| Sample { fit: false, ..sample }).collect();
    assert_eq!(check::fit(&none.iter().collect::<Vec<_>>()), None);
}

#[test]
fn a_second_run_corrects_method_5_in_proportion_to_the_added_latency() {
    let (system, counts) = (machine(), like(60e6, 0.88, 0.0, 6.4));
    let by_5 = |ns: f64| slowdown(&predict(&of(&counts, &[], &system), &[ns]), "5");
    // With 72 ns more, the run took a tenth longer than by method 5: with ten times as much, ten tenths.
    let base = system.base_ns;
    let longer = by_5(base + 72.0) + 0.1;
    let program = Program { second: second(72e-9, longer), ..of(&counts, &[], &system) };
    let prediction = predict(&program, &[base + 72.0, base + 720.0]);
    let by_6: Vec<f64> = prediction.slowdowns("6").expect("usable").iter().flatten().copied().collect();
    near(by_6[0], longer);
    near(by_6[1], by_5(base + 720.0) + 1.0);
    assert_eq!(prediction.trust.map(|(method, _)| method.id), Some("6"));
}

#[test]
fn streams_that_are_late_sooner_than_predicted_keep_the_difference() {
    // A line per ten cycles, two streams of up to 40 at a time: how much may these lines' 224 cycles grow, in halves of a
    // nanosecond?
    let (system, counts) = (machine(), streaming(5e4));
    let ahead = (stalls::FITTED.distance * 80.0 * 10.0 - 224.0) / 2.0;
    let by_5 = |ns: f64| slowdown(&predict(&of(&counts, &[], &system), &[system.base_ns + ns]), "5");
    near(by_5(ahead), 1.0);
    let program = Program { second: second(64e-9, 1.1), ..of(&counts, &[], &system) };
    let by_6 = |ns: f64| slowdown(&predict(&program, &[system.base_ns + ns]), "6");
    near(by_6(32.0), 1.05);
    // In proportion until streams are predicted to be late, too, and constant afterwards: 0.1 for each 64 ns.
    let late = 0.1 * ahead / 64.0;
    for ns in [ahead, 500.0, 800.0] {
        near(by_6(ns), by_5(ns) + late);
    }
}

#[test]
fn a_second_run_suffices_if_nothing_else_is_counted() {
    let (counts, system) = (Counts::new(1.0, 2.0), System::of_latency(100.0));
    let of_second = |slowdown| {
        let program = Program { second: second(50e-9, slowdown), ..of(&counts, &[], &system) };
        predict(&program, &[300.0])
    };
    near(slowdown(&of_second(1.25), "6"), 2.0);
    near(slowdown(&of_second(0.9), "6"), 1.0);
    assert_eq!(refusal(&ask(&counts, &[]), "6"), NO_SECOND);
}

#[test]
fn where_bandwidth_is_the_limit_a_second_run_is_not_trusted() {
    // 256 GB/s of lines, the bandwidth of one group's memory.
    let counts = like(1e9, 0.05, 0.0, 6.4).with(Quantity::Accesses, 1e9).with(Quantity::Prefetched, 0.99e9);
    let system = machine();
    let prediction = predict(&Program { second: second(64e-9, 1.7), ..of(&counts, &[], &system) }, &LATENCIES);
    assert_eq!((prediction.kind, prediction.trust.map(|(method, _)| method.id)), (Kind::Bandwidth, Some("5")));
}

#[test]
fn a_second_run_that_another_nodes_port_limits_says_nothing_about_latency() {
    // 119 GB/s: 64 bytes per cycle at 2 GHz, of which 93.2 % are usable.
    let (system, lines) = (machine(), 64.0 * 2e9 * 0.932 / 256.0);
    let first = like(lines, 0.05, 0.9, 6.4);
    let trusted = |share: f64| {
        let second = SecondRun::of(&first, 1.0 / share, 64e-9, &system).expect("both took time");
        near(second.slowdown, 1.0 / share);
        near(second.busy.expect("counted"), share);
        let program = Program { second: Ok(second), ..of(&first, &[], &system) };
        predict(&program, &LATENCIES)
    };
    assert_eq!(trusted(0.7).trust.map(|(method, _)| method.id), Some("6"));
    let limited = trusted(0.8);
    assert_eq!(limited.trust.map(|(method, _)| method.id), Some("5"));
    assert!(refusal(&limited, "6").starts_with("the second run used 80 % of the bandwidth of another node's memory"));
    assert_eq!(SecondRun::of(&first, 0.0, 64e-9, &system), None);
}

#[test]
fn a_second_run_of_a_program_that_zeroes_lines_says_nothing_about_latency() {
    let system = machine();
    let said = |zeroed: f64| {
        let counts = like(200e6, 0.05, 0.9, 6.4).with(Quantity::Zeroed, zeroed);
        predict(&Program { second: second(64e-9, 1.3), ..of(&counts, &[], &system) }, &LATENCIES)
    };
    assert_eq!(said(1e6).trust.map(|(method, _)| method.id), Some("6"));
    let zeroing = said(60e6);
    assert_eq!(zeroing.trust.map(|(method, _)| method.id), Some("5"));
    assert!(refusal(&zeroing, "6").starts_with("the program zeroes lines, 30 per 100"));
}

#[test]
fn with_a_memory_side_cache_remote_memory_does_not_stand_for_slower_memory() {
    let mut system = machine();
    system.details.as_mut().expect("described").cache_latency = Some(176.0);
    let counts = like(60e6, 0.88, 0.0, 6.4);
    let said = predict(&Program { second: second(64e-9, 1.3), ..of(&counts, &[], &system) }, &LATENCIES);
    assert!(refusal(&said, "6").contains("cache of its own"));
    assert_eq!(said.trust.map(|(method, _)| method.id), Some("5"));
}

/// A program for which method 0 predicts 1.1, with these simulated slowdowns.
fn of_method_0(simulated: &[f64]) -> Sample {
    Sample {
        name: String::new(),
        fit: false,
        counts: counts().with(Quantity::Misses, 1e6),
        intervals: Vec::new(),
        no_intervals: NONE.to_owned(),
        system: System::of_latency(100.0),
        second: no_second(),
        simulated: simulated.iter().map(|&value| (300.0, value)).collect(),
    }
}

#[test]
fn statistics_count_programs_and_predictions_and_sort_errors_into_classes() {
    // With simulated 1.05, 1.1 and 2.0.
    let (good, bad) = (of_method_0(&[1.05, 1.1]), of_method_0(&[2.0]));
    let all = check::statistics(&[&good, &bad]);
    let ids: Vec<&str> = all.iter().map(|of| of.predictor.id()).collect();
    assert_eq!(ids, ["0", "trusted"], "the other methods have no counts");
    for of in &all {
        assert_eq!((of.programs, of.near_programs, of.near_on_average), (2, 1, 1));
        assert_eq!((of.predictions, of.near), (3, 2));
        near(of.worst, 45.0);
        assert_eq!(of.histogram.iter().sum::<usize>(), 3);
        assert_eq!(of.histogram[1], 1, "between -50 % and -20 %");
    }
}

#[test]
fn a_program_is_near_on_average_if_its_mean_error_is() {
    // Errors of 0 and 15.4 %.
    let sample = of_method_0(&[1.1, 1.3]);
    let of = check::statistics(&[&sample]).remove(0);
    assert_eq!((of.near_programs, of.near_on_average), (0, 1));
}

#[test]
fn the_trusted_predictor_uses_each_programs_trusted_method() {
    // A chase is predicted by method 0, overlapping reads by method 5.
    let system = machine();
    let sample = |counts: Counts| {
        let prediction = predict(&of(&counts, &[], &system), &LATENCIES);
        let slowdowns = prediction.slowdowns(prediction.trust.expect("one can be used").0.id).expect("it predicts");
        let simulated = LATENCIES.into_iter().zip(slowdowns.iter().map(|s| s.expect("slower"))).collect();
        let (name, no_intervals) = (String::new(), NONE.to_owned());
        Sample {
            name,
            fit: false,
            counts,
            intervals: Vec::new(),
            no_intervals,
            system: system.clone(),
            second: no_second(),
            simulated,
        }
    };
    let (chase, hides) = (sample(like(7e6, 0.88, 0.0, 0.83)), sample(like(60e6, 0.88, 0.0, 6.4)));
    let all = check::statistics(&[&chase, &hides]);
    let near_programs = |id: &str| all.iter().find(|of| of.predictor.id() == id).expect("it predicts").near_programs;
    assert_eq!((near_programs("trusted"), near_programs("0")), (2, 1));
}

fn any_counts() -> impl Strategy<Value = Counts> {
    (1e-3..10.0f64, 1.0..48.0f64, prop::collection::vec(0.0..1e9f64, Quantity::COUNT)).prop_map(
        |(seconds, threads, values)| {
            let counts = Counts::new(seconds, threads);
            let counts = Quantity::ALL.iter().zip(values).fold(counts, |counts, (&q, value)| counts.with(q, value));
            counts.with(Quantity::Cycles, seconds * threads * 2e9)
        },
    )
}

proptest! {
    #[test]
    fn slower_memory_never_makes_a_program_faster(
        counts in any_counts(), a in 128.0..2000.0f64, b in 128.0..2000.0f64, added in 1e-9..1e-6f64, slowdown in 0.9..9.0f64
    ) {
        let (system, latencies) = (machine(), [a.min(b), a.max(b)]);
        // For a program that zeroes lines, the second run cannot be used.
        let counts = counts.with(Quantity::Zeroed, 0.0);
        let program = Program { second: second(added, slowdown), ..of(&counts, std::slice::from_ref(&counts), &system) };
        let said = predict(&program, &latencies);
        for method in METHODS.iter().filter(|method| method.is_prediction()) {
            let slowdowns = said.slowdowns(method.id).expect("everything is counted");
            let [near, far] = [slowdowns[0], slowdowns[1]].map(|s| s.expect("slower"));
            prop_assert!(near >= 1.0 && far >= near * (1.0 - 1e-12), "{}: {near}, {far}", method.id);
        }
    }

    #[test]
    fn the_linear_methods_are_linear_in_the_added_latency(counts in any_counts(), added in 1.0..1000.0f64) {
        let system = System::of_latency(100.0);
        let said = predict(&of(&counts, std::slice::from_ref(&counts), &system), &[100.0 + added, 100.0 + 2.0 * added]);
        for id in ["0", "1", "2", "4", "4i"] {
            let slowdowns = said.slowdowns(id).expect("counted");
            let [one, two] = [slowdowns[0], slowdowns[1]].map(|s| s.expect("slower") - 1.0);
            prop_assert!((two - 2.0 * one).abs() <= 1e-9 * two.max(1.0), "{id}: {one}, {two}");
        }
    }

    #[test]
    fn a_correction_never_predicts_more_than_what_it_corrects(counts in any_counts()) {
        let said = ask(&counts, std::slice::from_ref(&counts));
        prop_assert!(slowdown(&said, "4") <= slowdown(&said, "2") * (1.0 + 1e-12));
    }

    #[test]
    fn no_counts_make_predictions_panic(values in prop::collection::vec(prop::option::of(prop::num::f64::ANY), Quantity::COUNT),
        seconds in prop::num::f64::ANY, threads in prop::num::f64::ANY, latency in prop::num::f64::ANY) {
        let mut counts = Counts::new(seconds, threads);
        for (&quantity, value) in Quantity::ALL.iter().zip(values) {
            counts.set(quantity, value);
        }
        let said = predict(&of(&counts, std::slice::from_ref(&counts), &machine()), &[latency]);
        prop_assert_eq!(said.rows.len(), METHODS.len());
    }
}

#[test]
fn every_method_has_a_unique_number() {
    for method in &METHODS {
        assert!(std::ptr::eq(Method::with_id(method.id).expect("there"), method));
    }
}
