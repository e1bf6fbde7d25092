//! Runs as JSON, with stable keys.

mod intervals;
mod lines;
mod parallel;
mod region;
mod verdict;

use std::collections::BTreeMap;
use std::io::{self, Write};

use fxscope_pmu::{Evaluation, unknown_events};
use fxscope_record::{ALL, Finish, Mode, Origin, Pages, Part, Region, Run, Sample};
use rayon::prelude::*;
use serde::ser::Serialize;
use serde_json::{Map, Value, json};

use crate::Options;
use crate::verdict::{Verdict, verdict as judged};
use intervals::AllIntervals;
use lines::Lines;
use region::RegionJson;
pub(crate) use verdict::limits;

/// Nesting levels with separate lines: a thread, or a column of a table, is on one line.
const DEPTH: usize = 5;
/// Number of regions formatted at once while runs are written, to limit memory.
const AT_ONCE: usize = 16;

/// Version of the JSON that commands write, the member `version` of each answer and of each run in a list. It changes when a member
/// changes its meaning or disappears, not when one is added (`docs/contracts.md`).
pub const VERSION: u32 = 1;

/// Returns an answer of a command as text: an object, or each object of a list, begins with the version.
#[must_use]
pub fn text(answer: &Value) -> String {
    let all = match answer {
        Value::Array(list) => list.iter().map(versioned).collect(),
        one => versioned(one),
    };
    format!("{all:#}\n")
}

/// Puts the version in front of the members of an object. Runs have it already.
fn versioned(answer: &Value) -> Value {
    match answer {
        Value::Object(members) if !members.contains_key("version") => {
            let version = [("version".to_owned(), Value::from(VERSION))];
            version.into_iter().chain(members.clone()).collect()
        }
        other => other.clone(),
    }
}

/// Returns a run with all that is known about it. Unknown events and metrics are absent; `exit_code` and the members of
/// `simulated` are `null` if unknown.
///
/// # Panics
/// Never: keys are text, and numbers without JSON form become `null`.
#[must_use]
pub fn run(run: &Run) -> Value {
    run_with(run, &Options::default())
}

/// Returns a run with all that is known about it and, in verdicts, the hottest places that `options` find.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn run_with(run: &Run, options: &Options) -> Value {
    let pmu = fxscope_pmu::of_run(run);
    let region = |region| serde_json::to_value(RegionJson { run, region, events: &pmu.events, options });
    let regions = run.regions.iter().map(region).collect::<Result<Vec<_>, _>>();
    let mut json = head(run, options);
    json.insert("regions".to_owned(), regions.expect("keys are text").into());
    if !run.intervals.is_empty() {
        json.insert("intervals".to_owned(), serde_json::to_value(AllIntervals(run)).expect("keys are text"));
    }
    Value::Object(json)
}

/// Returns a verdict as JSON.
#[must_use]
pub fn verdict_json(of: &Verdict) -> Value {
    verdict::value(Some(of))
}

/// Writes a list of runs in the form of [`run`], restricted to what is requested. `labels` has the names that the user has given to
/// them, which are empty if none was given.
///
/// # Errors
/// If `out` fails. [`crate::check`] tests beforehand that the requested region exists.
pub fn write(out: &mut dyn Write, runs: &[Run], labels: &[String], options: &Options) -> io::Result<()> {
    let mut before = "[";
    for (index, run) in runs.iter().enumerate() {
        write!(out, "{before}\n  {{")?;
        if let Some(label) = labels.get(index).filter(|label| !label.is_empty()) {
            write!(out, "\n    \"label\": {},", Value::from(label.as_str()))?;
        }
        write_run(out, &crate::at_level(run, options.level), options)?;
        write!(out, "\n  }}")?;
        before = ",";
    }
    writeln!(out, "\n]")
}

/// Writes the members of a run.
fn write_run(out: &mut dyn Write, run: &Run, options: &Options) -> io::Result<()> {
    let regions = crate::regions(run, options).map_err(io::Error::other)?;
    for (key, value) in &head(run, options) {
        write!(out, "\n    \"{key}\": ")?;
        out.write_all(&bytes(value, 2))?;
        write!(out, ",")?;
    }
    write!(out, "\n    \"regions\": [")?;
    let pmu = fxscope_pmu::of_run(run);
    let mut before = "\n      ";
    for some in regions.chunks(AT_ONCE) {
        let region = |region: &&Region| bytes(&RegionJson { run, region, events: &pmu.events, options }, 3);
        let made: Vec<Vec<u8>> = some.par_iter().map(region).collect();
        for region in made {
            write!(out, "{before}")?;
            out.write_all(&region)?;
            before = ",\n      ";
        }
    }
    write!(out, "{}]", if regions.is_empty() { "" } else { "\n    " })?;
    if !run.intervals.is_empty() {
        write!(out, ",\n    \"intervals\": ")?;
        out.write_all(&bytes(&AllIntervals(run), 2))?;
    }
    Ok(())
}

/// Formats a value at a nesting level.
fn bytes(value: &impl Serialize, level: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Lines::new(level, DEPTH));
    value.serialize(&mut serializer).expect("written to memory, and keys are text");
    bytes
}

/// The members about the whole run.
fn head(run: &Run, options: &Options) -> Map<String, Value> {
    let evaluated = run.region(ALL).map(|region| (region, Evaluation::new(run, region)));
    let whole = evaluated.as_ref().map(|(_, evaluation)| evaluation.total());
    let verdict = evaluated.and_then(|(region, evaluation)| judged(run, region, &evaluation, options.hottest));
    // Counts are integers here, too.
    let metric = |name: &str| whole.as_ref().and_then(|values| values.get(name));
    let count = |name: &str| metric(name).map(|n| n.round() as u64);
    let pairs = |list: &[(String, String)]| list.iter().cloned().collect::<BTreeMap<_, _>>();
    let json = json!({
        "version": VERSION,
        "tool": run.tool,
        "machine": run.machine,
        "machine_hash": run.machine_hash,
        "settings": pairs(&run.settings),
        "program": run.program(),
        "arguments": run.command.get(1..).unwrap_or_default(),
        "environment": pairs(&run.environment),
        "mode": match run.mode { Mode::Timing => "timing", Mode::Functional => "functional" },
        "origin": origin(&run.origin),
        "passes": run.passes,
        "finish": finish(&run.finish),
        "exit_code": run.finish.exit_code(),
        "verdict": verdict::value(verdict.as_ref()),
        "simulated": {
            "cycles": count("cycles"),
            "seconds": metric("seconds"),
            "instructions": count("instructions"),
            "ipc": metric("ipc"),
        },
        "host": {
            "wall_seconds": run.host.wall_seconds,
            "mips": run.host.mips,
            "skipped_mips": run.host.skipped_mips,
            "peak_rss_bytes": run.host.peak_rss_bytes,
            "guest_bytes": run.host.guest_bytes,
            "cpus": run.host.cpus,
        },
        "notes": run.notes.iter().cloned().chain(unknown_events(run)).collect::<Vec<_>>(),
        "failures": run.failures,
        "pages": run.pages.iter().map(pages).collect::<Vec<_>>(),
    });
    let Value::Object(mut members) = json else { return Map::new() };
    if let Some(sample) = &run.sample {
        members.insert("sample".to_owned(), of_sample(sample));
    }
    if let Some(part) = &run.part {
        members.insert("part".to_owned(), of_part(part));
    }
    parallel::add(run, &mut members);
    if !run.profile.data.objects.is_empty() {
        members.insert("data".to_owned(), crate::data::json(run));
    }
    if !run.profile.calls.contexts.is_empty() {
        members.insert("calls".to_owned(), crate::calls::json(run).into());
    }
    if !run.profile.loops.is_empty() {
        members.insert("loops".to_owned(), crate::loops::json(run).into());
    }
    members
}

/// Which part of a run was timed; absent if all of it was.
fn of_part(part: &Part) -> Value {
    json!({
        "options": part.options,
        "skipped_instructions": part.skipped,
        "followed_instructions": part.followed,
        "timed_instructions": part.timed,
        "behind_instructions": part.behind,
        "executions": part.executions,
        "begin_seconds": part.begin_ns as f64 / 1e9,
        "ended": part.ended,
    })
}

/// How a run was sampled; absent in other runs.
fn of_sample(sample: &Sample) -> Value {
    json!({
        "plan": sample.plan,
        "windows": sample.windows,
        "exact_instructions": sample.exact,
        "timed_instructions": sample.timed,
        "followed_instructions": sample.followed,
        "unseen": sample.regions.first().map(|all| all.unseen),
        "error": sample.error,
        "confidence": sample.confidence,
    })
}

fn pages(p: &Pages) -> Value {
    json!({
        "segment": p.segment,
        "page_bytes": p.page_bytes,
        "node": p.node,
        "pages": p.pages,
        "bytes": p.bytes,
        "lost_bytes": p.lost(),
    })
}

fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::Simulated => json!({ "kind": "simulated" }),
        Origin::Imported { format, files } => json!({ "kind": "imported", "format": format, "files": files }),
    }
}

fn finish(finish: &Finish) -> String {
    match finish {
        Finish::Exited(_) => "exited".to_owned(),
        Finish::Killed { message, .. } | Finish::Failed(message) | Finish::NoProgress(message) => message.clone(),
        Finish::Unknown => "unknown".to_owned(),
        Finish::Limit => "limit".to_owned(),
        Finish::Stopped => "stopped".to_owned(),
    }
}
