//! What limits a loop or a function: the verdict's rules, applied to what its instructions count.
//!
//! Instructions have cycles, waits, pipes and some events of their own ([`fxscope_record::HotSpot`]). What caches and memories count as a
//! whole is divided among instructions ([`DIVIDED`]). Rules that need anything else are not judged. Rates are those of the threads that
//! execute the code, as if they did at the same time.

use std::collections::BTreeMap;

use fxscope_counts::{Signal, Stall};
use fxscope_pmu::{ACCESSED, CYCLES, Evaluation, Scope};
use fxscope_record::{ALL, Accesses, Arithmetic, Loop, Region, Run, Thread};

use crate::verdict::{Limit, limits_of};

/// Events of the whole run, which code has in proportion to its count of another one.
const DIVIDED: &[(&str, &[&str])] = &[
    (
        "L2D_CACHE_REFILL",
        &[
            "L2D_CACHE_WB",
            "L2_MISS_WAIT",
            "READ_MEM_CMG0",
            "READ_MEM_CMG1",
            "READ_MEM_CMG2",
            "READ_MEM_CMG3",
            "READ_L2_CMG0",
            "READ_L2_CMG1",
            "READ_L2_CMG2",
            "READ_L2_CMG3",
            "BUS_WRITE_TOTAL_CMG0",
            "BUS_WRITE_TOTAL_CMG1",
            "BUS_WRITE_TOTAL_CMG2",
            "BUS_WRITE_TOTAL_CMG3",
            "BUS_READ_TOTAL_MEM",
            "BUS_WRITE_TOTAL_MEM",
            "L2_MISS_COUNT",
            "L2D_CACHE_SWAP_LOCAL",
            "L2_PIPE_COMP_PF_L2MIB_MCH",
            "L2D_CACHE_REFILL_LOCAL_MEM",
            "L2D_CACHE_WB_REMOTE",
        ],
    ),
    ("L1D_CACHE_REFILL", &["L1D_CACHE_WB", "L2_PIPE_VAL", "L1_MISS_WAIT", "L1D_CACHE_REFILL_HWPRF"]),
    ("L2D_TLB_REFILL", &["L1D_TLB_REFILL"]),
    ("EAGA_VAL", &["L1_PIPE0_VAL", "L1_PIPE0_COMP"]),
    ("EAGB_VAL", &["L1_PIPE1_VAL", "L1_PIPE1_COMP"]),
];
/// Cycles without a commit.
const NO_COMMIT: &str = "0INST_COMMIT";
/// A thread with a smaller part of a function's cycles than this, of the thread with most, does not count as executing it.
const TAKES_PART: f64 = 0.1;
/// What the machine counts for an operation whose elements are all active.
const WHOLE: f64 = 16.0;
/// Bits of a floating-point register without SVE: wider operations are those of SVE.
const FIXED_BITS: f64 = 128.0;

/// What the instructions of a piece of code count, in all threads.
struct Code<'a> {
    function: &'a str,
    file: Option<u32>,
    instructions: u64,
    cycles: u64,
    stalls: Vec<u64>,
    pipes: Vec<u64>,
    events: Vec<u64>,
    /// Floating-point work and memory accesses; `None` if not known.
    work: Option<(Arithmetic, Accesses)>,
}

/// Returns what limits a loop of a run without the loops inside, the largest share of its cycles first.
///
/// # Panics
/// If the run has no loop of this number.
#[must_use]
pub fn of_loop(run: &Run, index: usize) -> Vec<Limit> {
    let of = own(run, index);
    limits(
        run,
        &Code {
            function: &run.profile.loops[index].function,
            file: Some(of.file),
            instructions: of.instructions,
            cycles: of.cycles,
            stalls: of.stalls,
            pipes: of.pipes,
            events: of.events,
            work: Some((of.arithmetic, of.accesses)),
        },
    )
}

/// Returns what limits a function of a run without those that it calls, the largest share of its cycles first.
#[must_use]
pub fn of_function(run: &Run, function: &str) -> Vec<Limit> {
    let mut code = Code {
        function,
        file: None,
        instructions: 0,
        cycles: 0,
        stalls: vec![0; run.stalls.len()],
        pipes: vec![0; run.pipes.len()],
        events: vec![0; run.profile.events.len()],
        work: None,
    };
    for spot in run.hot_spots.iter().filter(|spot| spot.function == function) {
        code.file = spot.file;
        code.instructions += spot.executions;
        code.cycles += spot.cycles;
        add(&mut code.stalls, &spot.stalls);
        add(&mut code.pipes, &spot.pipes);
        add(&mut code.events, &spot.events);
    }
    // Nearly all of the work of functions that take time is in their loops.
    let outer = || run.profile.loops.iter().filter(|of| of.function == function && of.parent.is_none());
    let in_loops: u64 = outer().map(|of| of.cycles).sum();
    if 10 * in_loops > 9 * code.cycles {
        let mut work = (Arithmetic::default(), Accesses::default());
        outer().for_each(|of| add_work(&mut work, of, u64::saturating_add));
        code.work = Some(work);
    }
    limits(run, &code)
}

/// A loop without the loops inside.
fn own(run: &Run, index: usize) -> Loop {
    let mut own = run.profile.loops[index].clone();
    let mut work = (own.arithmetic, own.accesses);
    for inner in run.profile.loops.iter().filter(|inner| inner.parent == Some(index as u32)) {
        own.instructions = own.instructions.saturating_sub(inner.instructions);
        own.cycles = own.cycles.saturating_sub(inner.cycles);
        subtract(&mut own.stalls, &inner.stalls);
        subtract(&mut own.pipes, &inner.pipes);
        subtract(&mut own.events, &inner.events);
        add_work(&mut work, inner, u64::saturating_sub);
    }
    (own.arithmetic, own.accesses) = work;
    own
}

fn add(sums: &mut [u64], counts: &[u64]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

fn subtract(counts: &mut [u64], inner: &[u64]) {
    counts.iter_mut().zip(inner).for_each(|(count, inner)| *count = count.saturating_sub(*inner));
}

/// Adds the work of a loop to some, or subtracts it.
fn add_work(work: &mut (Arithmetic, Accesses), of: &Loop, change: fn(u64, u64) -> u64) {
    let (arithmetic, accesses) = work;
    *arithmetic = Arithmetic {
        operations: change(arithmetic.operations, of.arithmetic.operations),
        of_all_elements: change(arithmetic.of_all_elements, of.arithmetic.of_all_elements),
        instructions: change(arithmetic.instructions, of.arithmetic.instructions),
        bits: change(arithmetic.bits, of.arithmetic.bits),
    };
    accesses.loaded = change(accesses.loaded, of.accesses.loaded);
    accesses.stored = change(accesses.stored, of.accesses.stored);
}

fn limits(run: &Run, code: &Code) -> Vec<Limit> {
    let Some(all) = run.region(ALL).filter(|_| code.cycles > 0 && !run.stalls.is_empty()) else { return Vec::new() };
    let threads = executing(run, all, code);
    let mut counts = counted(run, code);
    let shared = divided(run, all, &counts, threads.len());
    let each = |count: f64| (count / threads.len() as f64).round() as u64;
    let mut row: BTreeMap<String, u64> = BTreeMap::new();
    counts.retain(|name, _| !shared.contains_key(name));
    row.extend(counts.into_iter().map(|(name, count)| (name, each(count))));
    row.extend(shared.into_iter().map(|(name, count)| (name, each(count))));
    let rows = threads.into_iter().map(|thread| (thread, row.clone())).collect();
    let region = Region::of_one_pass(code.function, 1, rows);
    limits_of(&Evaluation::of_code(run, &region, code.function).judge())
}

/// The threads that execute a piece of code: those with most of its function's cycles, or all if that is not known.
fn executing(run: &Run, all: &Region, code: &Code) -> Vec<Thread> {
    let calls = &run.profile.calls;
    let is_its = |context: u32| {
        let context = &calls.contexts[context as usize];
        context.function == code.function && context.file == code.file && !context.is_inlined
    };
    let mut cycles: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for count in calls.counts.iter().filter(|count| is_its(count.context)) {
        *cycles.entry((count.process, count.thread)).or_default() += count.cycles;
    }
    let least = TAKES_PART * cycles.values().copied().max().unwrap_or(0) as f64;
    let takes_part = |thread: &&Thread| {
        let own = cycles.get(&(thread.process, thread.thread)).copied().unwrap_or(0);
        cycles.is_empty() || own as f64 >= least && own > 0
    };
    let part: Vec<Thread> = all.threads.iter().filter(takes_part).cloned().collect();
    if part.is_empty() { all.threads.clone() } else { part }
}

/// The events that a piece of code has by itself.
fn counted(run: &Run, code: &Code) -> BTreeMap<String, f64> {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    let own = run.profile.events.iter().zip(&code.events);
    counts.extend(own.map(|(name, &count)| (name.clone(), count as f64)));
    counts.extend(run.pipes.iter().zip(&code.pipes).map(|(pipe, &count)| (format!("{pipe}_VAL"), count as f64)));
    counts.insert(CYCLES.to_owned(), code.cycles as f64);
    counts.insert(NO_COMMIT.to_owned(), code.stalls.iter().sum::<u64>() as f64);
    for stall in Stall::ALL {
        let place = run.stalls.iter().position(|name| name == stall.name());
        let cycles = place.and_then(|place| code.stalls.get(place)).copied().unwrap_or(0) as f64;
        stall.events().iter().for_each(|signal| *counts.entry(signal.name().to_owned()).or_default() += cycles);
    }
    for name in ["INST_RETIRED", "INST_SPEC", "EFFECTIVE_INST_SPEC"] {
        counts.insert(name.to_owned(), code.instructions as f64);
    }
    let prefetched =
        |level: &str| Some(counts.get(&format!("{level}_REFILL"))? - counts.get(&format!("{level}_REFILL_DM"))?);
    let prefetches =
        [("L1D_CACHE_REFILL_PRF", prefetched("L1D_CACHE")), ("L2D_CACHE_REFILL_PRF", prefetched("L2D_CACHE"))];
    counts.extend(prefetches.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?))));
    // Instructions have the lines that come into L2, without the machine's double counts.
    let double = [Signal::L2dSwapDm, Signal::L2dCacheMibmchPrf];
    counts.extend(double.map(|signal| (signal.name().to_owned(), 0.0)));
    if let Some(work) = &code.work {
        add_operations(run, work, &mut counts);
    }
    counts
}

/// Adds the events of floating-point operations and of memory accesses. Accesses are taken as wide as operations, 64 bits without any.
fn add_operations(run: &Run, (arithmetic, accesses): &(Arithmetic, Accesses), counts: &mut BTreeMap<String, f64>) {
    let longest = run.constants.get("vector_bits").copied().unwrap_or(FIXED_BITS);
    let bits = arithmetic.vector_bits().unwrap_or(64.0).max(64.0);
    let by_sve = ((bits - FIXED_BITS) / (longest - FIXED_BITS).max(1.0)).clamp(0.0, 1.0);
    let operations = arithmetic.of_all_elements as f64;
    let busy: f64 = ["FLA_VAL", "FLB_VAL"].iter().filter_map(|name| counts.get(*name)).sum();
    let bytes = [accesses.loaded, accesses.stored].map(|bytes| bytes as f64);
    let [loads, stores] = bytes.map(|bytes| bytes / (bits / 8.0));
    counts.extend(
        [
            ("FP_FIXED_OPS_SPEC", operations * (1.0 - by_sve)),
            ("FP_SCALE_OPS_SPEC", operations * by_sve / (longest / FIXED_BITS)),
            ("FLA_VAL_PRD_CNT", busy * WHOLE * arithmetic.active().unwrap_or(1.0)),
            ("FLB_VAL_PRD_CNT", 0.0),
            (ACCESSED, bytes.iter().sum()),
            ("LD_SPEC", loads),
            ("ST_SPEC", stores),
        ]
        .map(|(name, count)| (name.to_owned(), count)),
    );
}

/// The events of caches and memories that a piece of code has in proportion to those of its own. Each thread counts those of its CMG.
fn divided(run: &Run, all: &Region, own: &BTreeMap<String, f64>, threads: usize) -> BTreeMap<String, f64> {
    let pmu = fxscope_pmu::of_run(run);
    let mut found = BTreeMap::new();
    for (by, names) in DIVIDED {
        let whole = whole(run, by);
        let Some(part) = own.get(*by).filter(|_| whole > 0.0).map(|count| count / whole) else { continue };
        for name in *names {
            let counts: Option<Vec<u64>> = (0..all.threads.len()).map(|thread| all.count(thread, name)).collect();
            let Some(counts) = counts else { continue };
            let sum = counts.iter().map(|&count| count as f64).sum::<f64>();
            let is_wide = pmu.events.named(name).is_some_and(|event| event.scope == Scope::Cmg);
            let times = if is_wide { threads as f64 / counts.len() as f64 } else { 1.0 };
            found.insert((*name).to_owned(), sum * part * times);
        }
    }
    found
}

/// What all instructions of a run count of an event or, for a pipe, of its cycles.
fn whole(run: &Run, name: &str) -> f64 {
    let event = run.profile.events.iter().position(|event| event == name);
    let pipe = run.pipes.iter().position(|pipe| name.strip_suffix("_VAL") == Some(pipe));
    let of = |spot: &fxscope_record::HotSpot| match (event, pipe) {
        (Some(place), _) => spot.events.get(place).copied(),
        (None, Some(place)) => spot.pipes.get(place).copied(),
        (None, None) => None,
    };
    run.hot_spots.iter().filter_map(of).map(|count| count as f64).sum()
}
