//! Imports the CSV of `likwid-perfctr` (`-o FILE.csv` or `-O`) versions 4 and 5, with and without marked regions; and
//! its JSON (`-o FILE.json`) without regions, whose names the JSON lacks.
//!
//! Each event group is a pass. Counts are by hardware thread, so the threads' CPUs are known.

use fxscope_record::{ALL, Run};
use serde_json::Value;

use crate::rows::{self, Pass, Rows, Who};
use crate::{FileError, Machine, Source, event_name};

/// The row with the time, in tables of counts or of metrics.
const RUNTIME: &str = "Runtime (RDTSC) [s]";

/// Reads output of `likwid-perfctr`.
///
/// # Errors
/// Errors with file and line: not output of LIKWID, missing or invalid counts, groups that do not belong together.
pub fn read(sources: &[Source<'_>], machine: &Machine, command: &[String]) -> Result<Vec<Run>, FileError> {
    let mut passes = Vec::new();
    for source in sources {
        let text = source.text()?;
        let groups = match text.trim_start().starts_with('{') {
            true => json(source, text, machine)?,
            false => tables(source, text, machine)?,
        };
        if groups.iter().all(|pass| pass.regions.is_empty()) {
            let what =
                "is not output of likwid-perfctr: CSV (-o FILE.csv, -O) has lines that begin with TABLE".to_owned();
            return Err(source.problem(None, what));
        }
        passes.extend(groups.into_iter().map(|pass| (*source, pass)));
    }
    rows::runs("likwid", passes, machine, command)
}

/// The heading of a table.
struct Table<'a> {
    region: &'a str,
    group: usize,
    kind: &'a str,
    rows: usize,
}

/// Parses `TABLE,[Region NAME,]Group N Raw|Metric [STAT],GROUP,ROWS`. Region names may contain commas.
fn heading(line: &str) -> Option<Table<'_>> {
    let rest = line.strip_prefix("TABLE,")?.trim_end_matches(',');
    let (rest, rows) = rest.rsplit_once(',')?;
    let (rest, _) = rest.rsplit_once(',')?;
    let (region, table) = match rest.strip_prefix("Region ") {
        Some(rest) => rest.rsplit_once(',')?,
        None => (ALL, rest),
    };
    let (group, kind) = table.strip_prefix("Group ")?.split_once(' ')?;
    Some(Table { region, group: group.parse().ok()?, kind, rows: rows.parse().ok()? })
}

/// Reads the CSV: one pass per group.
fn tables(source: &Source<'_>, text: &str, machine: &Machine) -> Result<Vec<Pass>, FileError> {
    let lines: Vec<&str> = text.lines().collect();
    let mut passes: Vec<Pass> = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("TABLE,")) {
        let problem = |line: usize, what: String| source.problem(Some(line + 1), what);
        let Some(table) = heading(line) else {
            // Tables of other LIKWID tools have no groups.
            continue;
        };
        if table.group == 0 || table.group > lines.len() {
            return Err(problem(at, format!("group {} makes no sense", table.group)));
        }
        if table.kind.ends_with("STAT") {
            continue;
        }
        if passes.len() < table.group {
            passes.resize_with(table.group, Pass::default);
        }
        let rows = passes[table.group - 1].region(table.region);
        let mut columns = Vec::new();
        // Times and calls of marked regions are in a table before the events.
        let mut left = table.rows + 1;
        for (i, line) in lines.iter().enumerate().skip(at + 1) {
            let fields: Vec<&str> = line.trim_end_matches(',').split(',').map(str::trim).collect();
            match fields[0] {
                "Region Info" | "Event" | "Metric" => columns = threads(&fields).map_err(|what| problem(i, what))?,
                _ => row(&fields, &columns, rows, machine).map_err(|what| problem(i, what))?,
            }
            let of_region = matches!(fields[0], "Region Info" | "RDTSC Runtime [s]" | "call count");
            left -= usize::from(!of_region);
            if left == 0 {
                break;
            }
        }
        if left > 0 {
            return Err(problem(
                lines.len().saturating_sub(1),
                "the file ends within a table: it is truncated".to_owned(),
            ));
        }
    }
    Ok(passes)
}

/// The hardware threads of a table's columns: `HWThread 12`, or `Core 12` in version 4.
fn threads(fields: &[&str]) -> Result<Vec<Who>, String> {
    let words = fields.iter().skip(1).filter(|field| **field != "Counter");
    let thread = |field: &&str| {
        let number = field.strip_prefix("HWThread ").or_else(|| field.strip_prefix("Core "));
        let number = number.and_then(|number| number.parse().ok());
        number.map(Who::Cpu).ok_or_else(|| format!("'{field}' is not a hardware thread such as 'HWThread 12'"))
    };
    words.map(thread).collect()
}

/// Reads a row of a table.
fn row(fields: &[&str], columns: &[Who], rows: &mut Rows, machine: &Machine) -> Result<(), String> {
    let values = fields.len().checked_sub(columns.len()).and_then(|first| fields.get(first..)).unwrap_or_default();
    let name = fields[0];
    if columns.is_empty() || values.len() != columns.len() || fields.len() <= columns.len() {
        return Err(format!("{name}: a value for each of {} hardware threads belongs here", columns.len()));
    }
    for (who, text) in columns.iter().zip(values) {
        let number = text.parse::<f64>().ok().filter(|n| n.is_finite());
        let number = number.ok_or_else(|| format!("'{text}' is not a count of {name}"))?;
        match name {
            "RDTSC Runtime [s]" | RUNTIME => {
                rows.counts.entry(who.clone()).or_default();
                rows.set_seconds(Some(who), number, machine);
            }
            "call count" => rows.calls = rows.calls.max(number as u64),
            // A metric, which fxscope calculates itself from the counts.
            _ if fields.len() == columns.len() + 1 => {}
            _ => rows.add(who, event_name(&machine.pmu.events, name), count(number, text, name)?)?,
        }
    }
    Ok(())
}

/// A count that LIKWID has written with a fraction or an exponent.
fn count(number: f64, text: &str, name: &str) -> Result<u64, String> {
    if number < 0.0 || number > (1u64 << 56) as f64 {
        return Err(format!("{text} is not a count of {name}"));
    }
    Ok(number.round() as u64)
}

/// Reads the JSON: one pass per group.
fn json(source: &Source<'_>, text: &str, machine: &Machine) -> Result<Vec<Pass>, FileError> {
    let problem = |what: String| source.problem(None, what);
    let file: Value =
        serde_json::from_str(text).map_err(|e| source.problem(Some(e.line()), format!("is not JSON: {e}")))?;
    let cpus = file.pointer("/Info/CPU list").and_then(Value::as_array);
    let cpus = cpus.ok_or_else(|| problem("is not JSON of likwid-perfctr: it has no 'CPU list'".to_owned()))?;
    let mut columns: Vec<u64> = cpus.iter().filter_map(Value::as_u64).collect();
    columns.sort_unstable();
    let columns: Vec<Who> = columns.into_iter().filter_map(|cpu| Some(Who::Cpu(cpu.try_into().ok()?))).collect();
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
                let values = values.map(ToString::to_string).collect::<Vec<_>>();
                let fields: Vec<&str> = [event, key].into_iter().chain(values.iter().map(String::as_str)).collect();
                row(&fields, &columns, rows, machine).map_err(problem)?;
            }
        }
        passes.push(pass);
    }
    Ok(passes)
}
