//! Imports the JSON of PAPI's high-level interface: `papi_hl_output/rank_*.json`, one file for each process of a
//! parallel program; of PAPI 7, and of PAPI 6, whose threads and regions are lists.
//!
//! Each entry of a thread is one execution of a region; counts of several executions are summed. Files of several ranks
//! belong together; files with other events are further passes of the same measurement.

use std::collections::BTreeMap;

use fxscope_record::Run;
use serde_json::{Map, Value};

use crate::losses::{Losses, refused};
use crate::number::Marks;
use crate::rows::{self, Pass, Who};
use crate::{FileError, Machine, Options, Source, event_name};

/// Keys of a region that are not events.
const NAME: &str = "name";
const PARENT: &str = "parent_region_id";
const CYCLES: &str = "cycles";
const TIME: &str = "real_time_nsec";
/// The number of executions, in PAPI 6.
const EXECUTIONS: &str = "region_count";
/// The count at the end of a region, where the program also read the event inside it.
const VALUE: &str = "region_value";

/// Reads files of PAPI's high-level interface; files of several ranks must have PAPI's names.
///
/// # Errors
/// Errors with the file: not output of PAPI, missing or invalid counts, ranks or passes that do not belong together.
pub fn read(sources: &[Source<'_>], machine: &Machine, options: &Options) -> Result<Vec<Run>, FileError> {
    // All ranks have the same events; a repeated rank starts another pass or repetition.
    let mut passes: Vec<(Source<'_>, Pass, Vec<u32>)> = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        let rank = rank(source.name);
        let mut pass = pass(source, machine, rank.unwrap_or(0), options)?;
        let joins = passes.iter_mut().find(|(first, other, ranks)| {
            let new = i > 0 && rank.is_some_and(|r| !ranks.contains(&r));
            new && folder(first.name) == folder(source.name) && other.events() == pass.events()
        });
        match joins {
            Some((_, other, ranks)) => {
                ranks.extend(rank);
                for rows in std::mem::take(&mut pass.regions) {
                    let known = other.region(&rows.name);
                    known.calls = known.calls.max(rows.calls);
                    known.counts.extend(rows.counts);
                }
            }
            None => passes.push((*source, pass, rank.into_iter().collect())),
        }
    }
    let passes = passes.into_iter().map(|(source, pass, _)| (source, pass)).collect();
    rows::runs("papi", passes, machine, &options.command)
}

/// The rank in a file name such as `rank_7.json`.
fn rank(name: &str) -> Option<u32> {
    let (_, rest) = name.rsplit_once("rank_")?;
    rest.strip_suffix(".json")?.parse().ok()
}

fn folder(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Reads one file, of process `process`.
fn pass(source: &Source<'_>, machine: &Machine, process: u32, options: &Options) -> Result<Pass, FileError> {
    let problem = |what: String| source.problem(None, what);
    let text = source.text()?;
    let file: Value = serde_json::from_str(&text.text).map_err(|e| {
        source.problem(Some(e.line()), format!("is not JSON, which PAPI writes to papi_hl_output/rank_*.json: {e}"))
    })?;
    let threads = file.get("threads").and_then(entries);
    let threads = threads
        .ok_or_else(|| problem("is not output of PAPI's high-level interface: it has no 'threads'".to_owned()))?;
    let mut reader = Reader { machine, pass: Pass::default(), losses: Losses::new(options.strict) };
    for (thread, of_thread) in threads {
        let number = thread.parse().map_err(|_| problem(format!("'{thread}' is not a thread number")))?;
        let regions = of_thread.get("regions").and_then(entries);
        let regions = regions.ok_or_else(|| problem(format!("thread {thread} has no 'regions'")))?;
        reader.thread(&Who::Thread { process, thread: number }, &thread, &regions).map_err(problem)?;
    }
    let Reader { mut pass, losses, .. } = reader;
    if pass.regions.is_empty() {
        return Err(problem("has no regions: the program did not mark any, or PAPI could not count".to_owned()));
    }
    pass.notes.push("PAPI did not report the CPUs of threads".to_owned());
    pass.notes.extend(losses.notes().chain(text.note()));
    Ok(pass)
}

/// The entries of an object by key, or of a list by their `id` or place.
fn entries(value: &Value) -> Option<Vec<(String, &Value)>> {
    match value {
        Value::Object(object) => Some(object.iter().map(|(key, entry)| (key.clone(), entry)).collect()),
        Value::Array(list) => {
            let id = |entry: &Value| entry.get("id").and_then(written);
            let key = |(place, entry): (usize, _)| (id(entry).unwrap_or_else(|| place.to_string()), entry);
            Some(list.iter().enumerate().map(key).collect())
        }
        _ => None,
    }
}

/// The text of a string or number.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Reads the regions of a file.
struct Reader<'a> {
    machine: &'a Machine,
    pass: Pass,
    losses: Losses,
}

impl Reader<'_> {
    /// Reads the regions of a thread.
    fn thread(&mut self, who: &Who, thread: &str, regions: &[(String, &Value)]) -> Result<(), String> {
        let mut of_this: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (id, region) in regions {
            let place = format!("region {id} of thread {thread}");
            for (name, region) in named(region, &place)? {
                let (executions, ns) = self.region(region, &place, name, who)?;
                let sums = of_this.entry(name.to_owned()).or_default();
                *sums = (sums.0.saturating_add(executions), sums.1.saturating_add(ns));
            }
        }
        for (name, (calls, ns)) in of_this {
            let rows = self.pass.region(&name);
            rows.calls = rows.calls.max(calls);
            rows.set_seconds(Some(who), ns as f64 * 1e-9, self.machine);
        }
        Ok(())
    }

    /// Adds the counts of a region; returns how often it was executed, and its nanoseconds.
    fn region(
        &mut self,
        region: &Map<String, Value>,
        place: &str,
        name: &str,
        who: &Who,
    ) -> Result<(u64, u64), String> {
        let (mut executions, mut ns) = (1, None);
        for (key, value) in region {
            let text = value.get(VALUE).map_or_else(|| written(value), written);
            let number = || {
                let text = text.as_deref().ok_or_else(|| format!("{place}: {key} is not a count"))?;
                let count = Marks::default()
                    .count(text)
                    .map_err(|refusal| format!("{place}: {}", refused(refusal, text, key)))?;
                Ok::<u64, String>(count.value)
            };
            match key.as_str() {
                // PAPI's cycles are clock ticks, not core cycles.
                NAME | PARENT | CYCLES => {}
                TIME => ns = Some(number()?),
                EXECUTIONS => executions = number()?,
                _ if text.is_none() => self.losses.lose(key, "has no count of the whole region and is left out")?,
                _ => {
                    let count = number()?;
                    let event = event_name(&self.machine.pmu.events, key);
                    self.pass.region(name).add(who, event, count)?;
                }
            }
        }
        let ns = ns.ok_or_else(|| format!("{place} has no {TIME}"))?;
        Ok((executions, ns))
    }
}

/// A region with its name.
type Named<'a> = (&'a str, &'a Map<String, Value>);

/// The regions of an entry with their names: PAPI 7 has the name inside, PAPI 6 has it as key.
fn named<'a>(region: &'a Value, place: &str) -> Result<Vec<Named<'a>>, String> {
    let region = region.as_object().ok_or_else(|| format!("{place} is not an object"))?;
    if let Some(name) = region.get(NAME).and_then(Value::as_str) {
        return Ok(vec![(name, region)]);
    }
    let inside = region.iter().map(|(name, inside)| Some((name.as_str(), inside.as_object()?)));
    let inside: Option<Vec<_>> = inside.collect();
    inside.filter(|inside| !inside.is_empty()).ok_or_else(|| format!("{place} has no name"))
}
