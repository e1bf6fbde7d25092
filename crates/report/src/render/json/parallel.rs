//! Processes, ranks and calls of MPI as JSON.

use fxscope_record::{Mode, Run};
use serde_json::{Map, Value, json};

use crate::parallel::{efficiency, messages, rank_times};

/// Adds the members `processes`, if the run has ranks or several processes, and `mpi`, if it has calls of MPI.
pub(super) fn add(run: &Run, head: &mut Map<String, Value>) {
    let parallel = &run.parallel;
    if parallel.processes.len() > 1 || parallel.processes.iter().any(|process| process.rank.is_some()) {
        let processes = parallel.processes.iter();
        let process = processes.map(|p| json!({ "process": p.number, "rank": p.rank, "program": p.program }));
        head.insert("processes".to_owned(), process.collect());
    }
    if !parallel.functions.is_empty() {
        head.insert("mpi".to_owned(), mpi(run));
    }
}

fn mpi(run: &Run) -> Value {
    let times = rank_times(run);
    let seconds = |ns: u64| ns as f64 / 1e9;
    let rank = |time: &crate::parallel::RankTime| {
        let kinds: Map<String, Value> =
            time.mpi_ns.iter().map(|(kind, &ns)| (kind.clone(), seconds(ns).into())).collect();
        json!({
            "rank": time.rank,
            "seconds": seconds(time.ns),
            "compute_seconds": seconds(time.compute_ns()),
            "mpi_seconds": kinds,
        })
    };
    let function = |f: &fxscope_record::MpiFunction| {
        json!({
            "process": f.process,
            "function": f.name,
            "kind": f.kind,
            "calls": f.calls,
            "seconds": seconds(f.ns),
            "bytes": f.bytes,
        })
    };
    // How long ranks wait is known in timing mode only.
    let timed = |factor: f64| (run.mode == Mode::Timing).then_some(factor);
    let messages = messages(run);
    let message = messages
        .iter()
        .map(|(&(from, to), sum)| json!({ "from": from, "to": to, "messages": sum.count, "bytes": sum.bytes }));
    json!({
        "efficiency": efficiency(&times).map(|efficiency| json!({
            "parallel": timed(efficiency.parallel()),
            "load_balance": efficiency.load_balance,
            "communication": timed(efficiency.communication),
        })),
        "ranks": times.iter().map(rank).collect::<Vec<_>>(),
        "functions": run.parallel.functions.iter().map(function).collect::<Vec<_>>(),
        "messages": message.collect::<Vec<_>>(),
        "unrecorded_calls": run.parallel.dropped_calls,
    })
}
