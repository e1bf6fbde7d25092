//! Imports the JSON of PAPI's high-level interface: `papi_hl_output/rank_*.json`, one file for each process of a
//! parallel program.
//!
//! Each entry of a thread is one execution of a region; counts of several executions are summed. Files of several ranks
//! belong together; files with other events are further passes of the same measurement.

use std::collections::BTreeMap;

use fxscope_record::Run;
use serde_json::{Map, Value};

use crate::rows::{self, Pass, Who};
use crate::{FileError, Machine, Source, event_name};

/// Keys of a region that are not events.
const NAME: &str = "name";
const PARENT: &str = "parent_region_id";
const CYCLES: &str = "cycles";
const TIME: &str = "real_time_nsec";

/// PAPI's preset events that correspond to a single Armv8 event.
const PRESETS: &[(&str, &str)] = &[
    ("PAPI_TOT_CYC", "CPU_CYCLES"),
    ("PAPI_TOT_INS", "INST_RETIRED"),
    ("PAPI_L1_DCM", "L1D_CACHE_REFILL"),
    ("PAPI_L1_ICM", "L1I_CACHE_REFILL"),
    ("PAPI_BR_MSP", "BR_MIS_PRED"),
    ("PAPI_TLB_DM", "L2D_TLB_REFILL"),
];

/// Reads files of PAPI's high-level interface; files of several ranks must have PAPI's names.
///
/// # Errors
/// Errors with the file: not output of PAPI, missing or invalid counts, ranks or passes that do not belong together.
pub fn read(sources: &[Source<'_>], machine: &Machine, command: &[String]) -> Result<Vec<Run>, FileError> {
    // All ranks have the same events; a repeated rank starts another pass or repetition.
    let mut passes: Vec<(Source<'_>, Pass, Vec<u32>)> = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        let rank = rank(source.name);
        let mut pass = pass(source, machine, rank.unwrap_or(0))?;
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
    rows::runs("papi", passes.into_iter().map(|(source, pass, _)| (source, pass)).collect(), machine, command)
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
fn pass(source: &Source<'_>, machine: &Machine, process: u32) -> Result<Pass, FileError> {
    let problem = |what: String| source.problem(None, what);
    let text = source.text()?;
    let file: Value = serde_json::from_str(text).map_err(|e| {
        source.problem(Some(e.line()), format!("is not JSON, which PAPI writes to papi_hl_output/rank_*.json: {e}"))
    })?;
    let threads = file.get("threads").and_then(Value::as_object);
    let threads = threads
        .ok_or_else(|| problem("is not output of PAPI's high-level interface: it has no 'threads'".to_owned()))?;
    let mut pass = Pass::default();
    for (thread, of_thread) in threads {
        let number = thread.parse().map_err(|_| problem(format!("'{thread}' is not a thread number")))?;
        let who = Who::Thread { process, thread: number };
        let regions = of_thread.get("regions").and_then(Value::as_object);
        let regions = regions.ok_or_else(|| problem(format!("thread {thread} has no 'regions'")))?;
        let mut of_this: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for (id, region) in regions {
            let place = format!("region {id} of thread {thread}");
            let region = region.as_object().ok_or_else(|| problem(format!("{place} is not an object")))?;
            let name = region.get(NAME).and_then(Value::as_str);
            let name = name.ok_or_else(|| problem(format!("{place} has no name")))?;
            let (calls, ns) = of_this.entry(name.to_owned()).or_default();
            *calls += 1;
            *ns = ns.saturating_add(entered(region, &place, name, &who, &mut pass, machine).map_err(problem)?);
        }
        for (name, (calls, ns)) in of_this {
            let rows = pass.region(&name);
            rows.calls = rows.calls.max(calls);
            rows.set_seconds(Some(&who), ns as f64 * 1e-9, machine);
        }
    }
    if pass.regions.is_empty() {
        return Err(problem("has no regions: the program did not mark any, or PAPI could not count".to_owned()));
    }
    pass.notes.push("PAPI did not report the CPUs of threads".to_owned());
    Ok(pass)
}

/// Adds the counts of one execution of a region; returns its nanoseconds.
fn entered(
    region: &Map<String, Value>,
    place: &str,
    name: &str,
    who: &Who,
    pass: &mut Pass,
    machine: &Machine,
) -> Result<u64, String> {
    let mut ns = None;
    for (key, value) in region {
        // A region may contain events of other components as objects; those are not core counters.
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        let number = || text.parse::<u64>().map_err(|_| format!("{place}: '{text}' is not a count of {key}"));
        match key.as_str() {
            // PAPI's cycles are clock ticks, not core cycles.
            NAME | PARENT | CYCLES => {}
            TIME => ns = Some(number()?),
            _ => pass.region(name).add(who, event(key, machine), number()?)?,
        }
    }
    ns.ok_or_else(|| format!("{place} has no {TIME}"))
}

/// The machine's name for PAPI's names: `PAPI_TOT_CYC`, `arm_a64fx::FP_FIXED_OPS_SPEC`, `perf::CYCLES`.
fn event(key: &str, machine: &Machine) -> String {
    if let Some((_, name)) = PRESETS.iter().find(|(preset, _)| *preset == key) {
        return (*name).to_owned();
    }
    let plain = key.rsplit("::").next().unwrap_or(key);
    let plain = plain.split(':').next().unwrap_or(plain);
    let generic = plain.to_ascii_lowercase();
    let name = event_name(&machine.pmu.events, plain);
    let by_generic = event_name(&machine.pmu.events, &generic);
    if name != plain || machine.pmu.events.named(plain).is_some() {
        name
    } else if by_generic != generic {
        by_generic
    } else {
        key.to_owned()
    }
}
