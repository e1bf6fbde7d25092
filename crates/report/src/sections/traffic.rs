//! Traffic between CMGs and each other's memories and caches.

use fxscope_pmu::{Team, Values};

use fxscope_record::Run;

use crate::document::{Body, Matrix, ProcessName, Section};
use crate::evaluate::Evaluated;

/// Title, the metrics with each CMG as the other side, and how to interpret values off the diagonal.
const KINDS: &[(&str, &str, &str)] = &[
    (
        "Reads from memory",
        "read_memory_cmg",
        "Off the diagonal: data is on another CMG than the threads that read it; have them touch it first.",
    ),
    (
        "Reads from L2 caches",
        "read_l2_cmg",
        "Lines that another CMG's cache had: threads of several CMGs write and read the same data.",
    ),
    (
        "Writes to memory",
        "write_memory_cmg",
        "Off the diagonal: data is on another CMG than the threads that write it; have them touch it first.",
    ),
];

/// Returns a matrix for each kind of traffic that was counted: a row for each CMG that threads ran on, a column for
/// each CMG's memory or cache, and one for memory tiers if they were used.
pub(crate) fn sections(run: &Run, evaluated: &Evaluated) -> Vec<Section> {
    KINDS.iter().filter_map(|(title, metric, reading)| matrix(run, evaluated, title, metric, reading)).collect()
}

fn matrix(run: &Run, evaluated: &Evaluated, title: &str, metric: &str, reading: &str) -> Option<Section> {
    let mut columns = Vec::new();
    let teams = evaluated.evaluation.cmgs();
    let mut rows: Vec<Vec<Option<f64>>> = vec![Vec::new(); teams.len()];
    for other in 0.. {
        let name = format!("{metric}{other}_gbs");
        if fxscope_pmu::Metrics::built_in().named(&name).is_none() {
            break;
        }
        columns.push(format!("CMG {other}"));
        for (row, (_, values)) in rows.iter_mut().zip(&teams) {
            row.push(values.get(&name));
        }
    }
    let cmgs = columns.len();
    let tiers = format!("{}_tiers_gbs", metric.trim_end_matches("_cmg"));
    let of_tiers: Vec<Option<f64>> = teams.iter().map(|(_, values)| values.get(&tiers)).collect();
    if of_tiers.iter().any(|value| value.is_some_and(|rate| rate > 0.0)) {
        columns.push("tiers".to_owned());
        rows.iter_mut().zip(of_tiers).for_each(|(row, value)| row.push(value));
    }
    let label = |process: u32, cmg: u32| match ProcessName::of(run, process) {
        process if process.is_plain() => format!("cores of CMG {cmg}"),
        process => format!("{process}, CMG {cmg}"),
    };
    let labels = teams.iter().map(|(team, _)| label(team.process, team.cmg)).collect();
    let known = rows.iter().flatten().any(Option::is_some);
    // Local traffic needs no interpretation.
    let other = |(row, (team, _)): (&Vec<Option<f64>>, &(&Team, Values))| {
        row.iter().take(cmgs).enumerate().any(|(to, value)| to as u32 != team.cmg && value.is_some_and(|v| v > 0.0))
    };
    let reading = if rows.iter().zip(&teams).any(other) { reading } else { "" };
    let matrix = Matrix { unit: "GB/s".to_owned(), rows: labels, columns, values: rows, reading: reading.to_owned() };
    known.then(|| Section { title: format!("Traffic between CMGs: {title}"), body: Body::Matrix(matrix) })
}
