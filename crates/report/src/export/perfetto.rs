//! The trace event format: what happened when, as JSON.
//!
//! Times are in microseconds. `M` names processes and threads, `X` is a span with a duration, `C` a counter.

use std::collections::BTreeSet;

use fxscope_pmu::energy::chip_watts;
use fxscope_record::{Intervals, Run};
use serde_json::{Value, json};

use super::stacks::{Node, Series, Stacks, Unit, name};
use crate::sections::{program, title};

/// The process that holds counters of the whole run; those of the run have smaller numbers.
const MACHINE: u32 = 1_000_000;

/// Returns the time line of a run.
///
/// # Errors
/// If the record has nothing with times.
pub(super) fn trace(run: &Run) -> Result<Value, String> {
    let stacks = Stacks::of(run);
    let mut events = Vec::new();
    let mut threads = BTreeSet::new();
    if stacks.unit == Unit::Nanoseconds {
        for series in &stacks.series {
            threads.insert((series.process, series.thread));
            events.extend(spans(&stacks, series));
        }
    }
    for call in &run.parallel.calls {
        threads.insert((call.process, call.thread));
        let function = run.parallel.functions.get(call.function as usize);
        events.push(json!({
            "ph": "X",
            "cat": "mpi",
            "name": function.map_or("MPI", |function| &function.name),
            "pid": call.process,
            "tid": call.thread,
            "ts": microseconds(call.begin_ns),
            "dur": microseconds(call.end_ns.saturating_sub(call.begin_ns)),
            "args": {"bytes": call.bytes, "partner": call.partner},
        }));
    }
    run.intervals.iter().for_each(|series| events.extend(counters(run, series)));
    if events.is_empty() {
        return Err("the record has nothing to show in time: repeat the run with --interval 100us for counters, --stacks 100us for \
                    functions"
            .to_owned());
    }
    let mut all = names(run, &threads);
    all.extend(events);
    Ok(json!({"displayTimeUnit": "ns", "otherData": {"title": title(run), "exporter": run.tool}, "traceEvents": all}))
}

fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Names of processes and threads.
fn names(run: &Run, threads: &BTreeSet<(u32, u32)>) -> Vec<Value> {
    let mut names = Vec::new();
    let mut meta = |what: &str, pid: u32, tid: u32, name: String| {
        names.push(json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}));
    };
    let processes: BTreeSet<u32> = threads.iter().map(|&(process, _)| process).collect();
    for process in processes {
        let of = crate::document::ProcessName::of(run, process);
        meta("process_name", process, 0, if of.is_plain() { program(run) } else { format!("{} {of}", program(run)) });
    }
    for &(process, thread) in threads {
        meta("thread_name", process, thread, name(run, process, thread));
    }
    if !run.intervals.is_empty() {
        meta("process_name", MACHINE, 0, format!("{} (all threads)", run.machine));
    }
    names
}

/// Returns the functions in which a thread was, each from when it was first seen in a row of samples to the last of them.
fn spans(stacks: &Stacks, series: &Series) -> Vec<Value> {
    let mut events = Vec::new();
    let mut open: Vec<(usize, u64)> = Vec::new();
    let mut close = |open: &mut Vec<(usize, u64)>, depth: usize, end: u64| {
        while open.len() > depth {
            let Some((node, begin)) = open.pop() else { break };
            events.push(span(&stacks.nodes[node], series, begin, end));
        }
    };
    let mut end = 0;
    for sample in &series.samples {
        let mut frames: Vec<usize> = sample.node.map_or_else(Vec::new, |node| stacks.frames(node).collect());
        frames.reverse();
        let same = open.iter().zip(&frames).take_while(|((node, _), frame)| node == *frame).count();
        close(&mut open, same, sample.at);
        open.extend(frames[same..].iter().map(|&frame| (frame, sample.at)));
        end = sample.at + sample.weight;
    }
    close(&mut open, 0, end);
    events
}

fn span(node: &Node, series: &Series, begin: u64, end: u64) -> Value {
    json!({
        "ph": "X",
        "cat": "stack",
        "name": node.name,
        "pid": series.process,
        "tid": series.thread,
        "ts": microseconds(begin),
        "dur": microseconds(end.saturating_sub(begin)),
    })
}

/// Returns rates by interval.
fn counters(run: &Run, series: &Intervals) -> Vec<Value> {
    let place = |name: &str| series.names.iter().position(|n| n == name);
    let sum = |counts: &[u64], names: &[&str]| -> Option<f64> {
        names.iter().map(|name| place(name).map(|place| counts[place] as f64)).sum()
    };
    let vector = run.constants.get("vector_bits").map(|bits| bits / 128.0);
    let line = run.constants.get("line_bytes").copied();
    let mut events = Vec::new();
    let mut begin = 0;
    let watts = chip_watts(run, series);
    for (place, interval) in series.rows.iter().enumerate() {
        let seconds = interval.end_ns.saturating_sub(begin) as f64 / 1e9;
        let of = |names: &[&str]| sum(&interval.counts, names);
        // FP_SCALE_OPS_SPEC counts operations for each 128 bits of vectors.
        let flop = of(&["FP_FIXED_OPS_SPEC"]).zip(of(&["FP_SCALE_OPS_SPEC"])).zip(vector).map(|((f, s), v)| f + s * v);
        let bytes = of(&["L2D_CACHE_REFILL", "L2D_CACHE_WB"]).zip(line).map(|(lines, line)| lines * line);
        let ipc = of(&["INST_RETIRED"]).zip(of(&["CPU_CYCLES"])).filter(|&(_, cycles)| cycles > 0.0);
        let rates = [
            ("GFLOPS", flop.map(|flop| flop / seconds / 1e9)),
            ("memory GB/s", bytes.map(|bytes| bytes / seconds / 1e9)),
            ("IPC", ipc.map(|(instructions, cycles)| instructions / cycles)),
            ("chip W", watts.as_ref().map(|watts| watts[place])),
        ];
        for (name, rate) in rates {
            let Some(rate) = rate.filter(|rate| rate.is_finite()) else { continue };
            let ts = microseconds(begin);
            events.push(json!({"ph": "C", "name": name, "pid": MACHINE, "tid": 0, "ts": ts, "args": {"value": rate}}));
        }
        begin = interval.end_ns;
    }
    events
}
