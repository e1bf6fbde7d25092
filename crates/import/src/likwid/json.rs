//! Reads the JSON.

use fxscope_record::ALL;
use serde_json::Value;

use super::RUNTIME;
use super::rows::Columns;
use crate::losses::Losses;
use crate::rows::{Pass, Who};
use crate::{FileError, Machine, Source};

/// Reads the JSON: one pass per group.
pub(super) fn read(
    source: &Source<'_>,
    text: &str,
    machine: &Machine,
    losses: &mut Losses,
) -> Result<Vec<Pass>, FileError> {
    let problem = |what: String| source.problem(None, what);
    let file: Value =
        serde_json::from_str(text).map_err(|e| source.problem(Some(e.line()), format!("is not JSON: {e}")))?;
    let cpus = file.pointer("/Info/CPU list").and_then(Value::as_array);
    let cpus = cpus.ok_or_else(|| problem("is not JSON of likwid-perfctr: it has no 'CPU list'".to_owned()))?;
    let mut cpus: Vec<u32> = cpus.iter().filter_map(Value::as_u64).filter_map(|cpu| cpu.try_into().ok()).collect();
    cpus.sort_unstable();
    let columns = Columns::of_events(cpus.into_iter().map(Who::Cpu).collect());
    let groups = file.as_object().into_iter().flatten().filter(|(name, _)| *name != "Info");
    let mut passes = Vec::new();
    for (_, group) in groups {
        let mut pass = Pass::default();
        let rows = pass.region(ALL);
        for (kind, counted) in [("Raw", true), ("Metric", false)] {
            let entries = group.get(kind).and_then(Value::as_object);
            for (key, entry) in entries.into_iter().flatten() {
                let event = entry.get("Event").and_then(Value::as_str).unwrap_or(key);
                if !counted && event != RUNTIME {
                    continue;
                }
                let values = entry.get("Values").and_then(Value::as_array).into_iter().flatten();
                let values = values.map(written).collect::<Vec<_>>();
                let fields: Vec<&str> = [event, key].into_iter().chain(values.iter().map(String::as_str)).collect();
                columns.row(&fields, rows, machine, losses).map_err(problem)?;
            }
        }
        passes.push(pass);
    }
    Ok(passes)
}

/// A value as in the CSV; JSON has null for numbers that are none.
fn written(value: &Value) -> String {
    match value {
        Value::Null => "nan".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
