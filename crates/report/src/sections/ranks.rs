//! Ranks and MPI: the time of each rank, the functions of MPI, and the bytes between ranks.

use std::collections::BTreeMap;

use fxscope_record::{ALL, Mode, MpiFunction, Run, Thread};

use super::plain;
use crate::document::{Body, Matrix, Row, Section, Value};
use crate::parallel::{self, RankTime};

/// Functions of MPI that are shown, those with most time.
const FUNCTIONS: usize = 12;
/// Kinds of calls that have columns of their own; the others are together.
const KINDS: [&str; 4] = ["send", "receive", "wait", "collective"];

/// How the times of a run are shown.
struct Times {
    /// What they are.
    name: &'static str,
    /// The unit of a shown value, and the number of ns in it.
    unit: &'static str,
    ns: f64,
}

impl Times {
    /// Functional mode takes a nanosecond for each instruction, so that its times are numbers of instructions.
    fn of(run: &Run) -> Times {
        match run.mode {
            Mode::Timing => Times { name: "time", unit: "s", ns: 1e9 },
            Mode::Functional => Times { name: "instructions", unit: "count", ns: 1.0 },
        }
    }

    fn value(&self, ns: f64) -> Value {
        Value::number(ns / self.ns, self.unit)
    }
}

/// Returns the sections about ranks, without empty ones.
pub(crate) fn sections(run: &Run) -> Vec<Section> {
    let times = parallel::rank_times(run);
    [efficiency(run, &times), ranks(run, &times), functions(run), between_ranks(run)].into_iter().flatten().collect()
}

fn efficiency(run: &Run, times: &[RankTime]) -> Option<Section> {
    let efficiency = parallel::efficiency(times)?;
    let row =
        |label: &str, share: f64| Row { label: label.to_owned(), values: vec![Some(Value::number(share, "ratio"))] };
    let balance = row("load balance", efficiency.load_balance);
    let rows = match run.mode {
        Mode::Timing => vec![
            row("parallel efficiency", efficiency.parallel()),
            balance,
            row("communication efficiency", efficiency.communication),
        ],
        // How many instructions ranks wait for depends on the order in which they run.
        Mode::Functional => vec![balance],
    };
    Some(Section { title: "Ranks".to_owned(), body: Body::Facts(rows) })
}

/// One row for each rank: its CPUs, its time, and the shares of it.
fn ranks(run: &Run, times: &[RankTime]) -> Option<Section> {
    if times.is_empty() {
        return None;
    }
    let shown_times = Times::of(run);
    let headings = ["rank", "CPUs", shown_times.name, "compute", "send", "receive", "wait", "collective", "other MPI"];
    let row = |time: &RankTime| {
        let share = |ns: u64| Value::number(ns as f64 / time.ns.max(1) as f64, "ratio");
        let of = |kind: &str| time.mpi_ns.get(kind).copied().unwrap_or(0);
        let shown: u64 = KINDS.iter().map(|kind| of(kind)).sum();
        let mut values =
            vec![Value::Text(cpus(run, time.process)), shown_times.value(time.ns as f64), share(time.compute_ns())];
        values.extend(KINDS.iter().map(|kind| share(of(kind))));
        values.push(share(time.all_mpi_ns() - shown));
        Row { label: format!("rank {}", time.rank), values: values.into_iter().map(Some).collect() }
    };
    let rows = times.iter().map(row).collect();
    let headings = headings.map(str::to_owned).to_vec();
    Some(Section {
        title: format!("Ranks: {} between MPI_Init and MPI_Finalize", shown_times.name),
        body: Body::Table { headings, rows },
    })
}

/// Returns the CPUs of a process as a list of ranges, such as `12-23`.
fn cpus(run: &Run, process: u32) -> String {
    let threads = run.region(ALL).map_or(&[][..], |all| &all.threads);
    let mut cpus: Vec<u32> = threads.iter().filter(|t: &&Thread| t.process == process).map(|t| t.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// One row for each function of MPI.
fn functions(run: &Run) -> Option<Section> {
    let mut by_name: BTreeMap<&str, Vec<&MpiFunction>> = BTreeMap::new();
    for function in &run.parallel.functions {
        by_name.entry(&function.name).or_default().push(function);
    }
    if by_name.is_empty() {
        return None;
    }
    let processes = run.parallel.processes.iter().filter(|process| process.rank.is_some()).count().max(1);
    let mut list: Vec<(&str, Vec<&MpiFunction>, u64)> = by_name
        .into_iter()
        .map(|(name, of_ranks)| {
            let ns = of_ranks.iter().map(|function| function.ns).sum();
            (name, of_ranks, ns)
        })
        .collect();
    list.sort_by_key(|&(name, _, ns)| (std::cmp::Reverse(ns), name));
    let shown_times = Times::of(run);
    let row = |(name, of_ranks, ns): &(&str, Vec<&MpiFunction>, u64)| {
        let sum = |of: fn(&MpiFunction) -> u64| of_ranks.iter().map(|function| of(function) as f64).sum::<f64>();
        let longest = of_ranks.iter().map(|function| function.ns).max().unwrap_or(0);
        let values = [
            Value::Text(plain(&of_ranks[0].kind)),
            Value::number(sum(|function| function.calls), "count"),
            shown_times.value(*ns as f64 / processes as f64),
            shown_times.value(longest as f64),
            Value::number(sum(|function| function.bytes), "B"),
        ];
        Row { label: plain(name), values: values.into_iter().map(Some).collect() }
    };
    let what = shown_times.name;
    let longest = if run.mode == Mode::Timing { "longest" } else { "most" };
    let headings = ["function", "kind", "calls", &format!("mean {what}"), longest, "bytes"].map(str::to_owned).to_vec();
    let rows: Vec<Row> = list.iter().take(FUNCTIONS).map(row).collect();
    let title = match list.len() {
        ..=FUNCTIONS => format!("MPI: calls, {what} per rank"),
        all => format!("MPI: calls, {what} per rank ({FUNCTIONS} of {all} functions)"),
    };
    Some(Section { title, body: Body::Table { headings, rows } })
}

fn between_ranks(run: &Run) -> Option<Section> {
    let messages = parallel::messages(run);
    let last = messages.keys().map(|&(from, to)| from.max(to)).max()?;
    let names: Vec<String> = (0..=last).map(|rank| format!("rank {rank}")).collect();
    let value = |from: u32, to: u32| messages.get(&(from, to)).map(|messages| messages.bytes as f64);
    let values = (0..=last).map(|from| (0..=last).map(|to| value(from, to)).collect()).collect();
    let reading = match run.parallel.dropped_calls {
        0 => String::new(),
        more => format!("Without the last {more} calls, whose partners are not recorded."),
    };
    let matrix = Matrix { unit: "B".to_owned(), rows: names.clone(), columns: names, values, reading };
    Some(Section { title: "MPI: bytes sent between ranks".to_owned(), body: Body::Matrix(matrix) })
}
