//! Parses model files: TOML, without unknown keys.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fxscope_host::Refusal;
use fxscope_osnoise::trace::is_trace;
use serde::Deserialize;

use super::{
    Arrival, Correlation, Evidence, Length, Lengths, MOST_SOURCES, Model, Phase, Source, Target, Trace, profiles,
    recorded,
};
use crate::time::Time;

/// Version of the format.
pub const VERSION: u32 = 1;

/// Largest file accepted, bytes.
const MOST_BYTES: u64 = 1 << 32;
/// Minimum mean time between two arrivals of a source, nanoseconds.
const SHORTEST_GAP: f64 = 100.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    title: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    noise: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    cause: String,
    arrival: ArrivalEntry,
    length: Option<Length>,
    #[serde(default)]
    on: TargetEntry,
    #[serde(default)]
    correlation: Correlation,
    #[serde(default)]
    lengths: Lengths,
    source: String,
    evidence: Evidence,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum ArrivalEntry {
    Periodic {
        period: Time,
        #[serde(default)]
        phase: Phase,
        #[serde(default)]
        missing: f64,
    },
    Poisson {
        rate: f64,
    },
    Gaps {
        at_least: Time,
        mean: Option<Time>,
        at_most: Option<Time>,
    },
    Trace {
        file: PathBuf,
    },
}

#[derive(Default, Deserialize)]
#[serde(untagged, expecting = "on must be \"cores\", \"node\", or a list of core numbers such as [0, 1]")]
enum TargetEntry {
    #[default]
    #[serde(skip)]
    Cores,
    Word(Place),
    Chosen(Vec<u16>),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Cores,
    Node,
}

/// Loads a model: a profile by name, or a file by path; a measured trace (`.fxn`) gives a model that replays it.
///
/// # Errors
/// The error, its location, and how to fix it.
pub fn load(name_or_path: &str) -> Result<Model, String> {
    if let Some(text) = profiles::text(name_or_path) {
        return parse(text, name_or_path, None);
    }
    let path = Path::new(name_or_path);
    if !path.exists() && !name_or_path.ends_with(".toml") && path.components().count() == 1 {
        return Err(format!(
            "there is no noise model '{name_or_path}'; built in are {}; for others give the path of a .toml file",
            profiles::names().collect::<Vec<_>>().join(", ")
        ));
    }
    if is_trace(path) {
        return recorded::model(path);
    }
    let text = read(path)?;
    parse(&text, name_or_path, path.parent())
}

/// Reads a text file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fxscope_host::read_text(path, MOST_BYTES).map_err(|e| match &e.why {
        Refusal::Io(why) => format!("cannot read {}: {why}; check the path", path.display()),
        _ => e.to_string(),
    })
}

/// Parses a model. `name` is used in messages; traces are looked up in `folder`.
///
/// # Errors
/// The error, its location, and how to fix it.
pub fn parse(text: &str, name: &str, folder: Option<&Path>) -> Result<Model, String> {
    let file: File = toml::from_str(text).map_err(|e| format!("{name}: {}", e.to_string().trim_end()))?;
    if file.version != VERSION {
        return Err(format!("{name}: version = {}; this program reads version {VERSION}", file.version));
    }
    if file.noise.len() > MOST_SOURCES {
        return Err(format!("{name}: {} sources; the maximum is {MOST_SOURCES}", file.noise.len()));
    }
    let source = |(i, entry): (usize, Entry)| {
        let cause = entry.cause.clone();
        resolve(entry, folder).map_err(|what| format!("{name}: source {} ('{cause}'): {what}", i + 1))
    };
    let sources = file.noise.into_iter().enumerate().map(source).collect::<Result<Vec<_>, _>>()?;
    let stem = Path::new(name).file_stem().map_or_else(|| name.to_owned(), |s| s.to_string_lossy().into_owned());
    let model = Model { name: stem, title: file.title, note: file.note, sources };
    for source in &model.sources {
        // A source that strikes one core of a node takes less of each the more cores there are: checked when the node
        // is known.
        let share = source.fraction(1);
        if source.on != Target::Node && share >= 1.0 {
            return Err(format!(
                "{name}: the source '{}' steals {:.4} % of its core; less than 100 % is possible: \
                 lower its rate or its lengths",
                source.cause,
                share * 100.0
            ));
        }
    }
    Ok(model)
}

fn resolve(entry: Entry, folder: Option<&Path>) -> Result<Source, String> {
    let on = match entry.on {
        TargetEntry::Cores | TargetEntry::Word(Place::Cores) => Target::Cores,
        TargetEntry::Word(Place::Node) => Target::Node,
        TargetEntry::Chosen(mut cores) => {
            cores.sort_unstable();
            cores.dedup();
            if cores.is_empty() {
                return Err("on = [] names no core; remove the source instead".to_owned());
            }
            Target::Chosen(cores)
        }
    };
    if on == Target::Node && entry.correlation == Correlation::Node {
        return Err("on = \"node\" strikes one core at a time, which correlation = \"node\" contradicts; \
                    on = \"cores\" strikes all of them"
            .to_owned());
    }
    let replayed = matches!(entry.arrival, ArrivalEntry::Trace { .. });
    let length = match (entry.length, replayed) {
        (Some(_), true) => return Err("a trace has its own lengths; remove `length`".to_owned()),
        (None, false) => return Err("it has no `length`, such as { kind = \"fixed\", value = \"5us\" }".to_owned()),
        (Some(length), false) => length,
        (None, true) => Length::Fixed { value: Time(1.0) },
    };
    if replayed && on == Target::Node {
        return Err("a trace is replayed on cores; on = \"node\" is not possible".to_owned());
    }
    if !replayed {
        length.check()?;
    }
    Ok(Source {
        cause: entry.cause,
        arrival: arrival(entry.arrival, folder)?,
        length,
        on,
        correlation: entry.correlation,
        lengths: entry.lengths,
        origin: entry.source,
        evidence: entry.evidence,
    })
}

fn arrival(entry: ArrivalEntry, folder: Option<&Path>) -> Result<Arrival, String> {
    let long_enough = |name: &str, time: Time| match time.0 >= SHORTEST_GAP {
        true => Ok(()),
        false => Err(format!("{name} = \"{time}\" is too short; the minimum is {}", Time(SHORTEST_GAP))),
    };
    match entry {
        ArrivalEntry::Periodic { period, phase, missing } => {
            long_enough("period", period)?;
            if !(0.0..1.0).contains(&missing) {
                return Err(format!("missing = {missing} must be at least 0 and below 1"));
            }
            Ok(Arrival::Periodic { period, phase, missing })
        }
        ArrivalEntry::Poisson { rate } => {
            if rate.is_nan() || rate <= 0.0 || rate > 1e9 / SHORTEST_GAP {
                return Err(format!("rate = {rate} must be above 0 and at most {} per second", 1e9 / SHORTEST_GAP));
            }
            Ok(Arrival::Poisson { rate })
        }
        ArrivalEntry::Gaps { at_least, mean, at_most } => {
            let mean = match (mean, at_most) {
                (Some(mean), None) => mean,
                (None, Some(most)) => Time((at_least.0 + most.0) / 2.0),
                _ => return Err("gaps need either `mean` or `at_most` in addition to `at_least`".to_owned()),
            };
            if mean.0 < at_least.0 {
                let which = if at_most.is_some() { "at_most" } else { "mean" };
                return Err(format!("{which} of gaps is below at_least = \"{at_least}\""));
            }
            long_enough("the mean gap", mean)?;
            Ok(Arrival::Gaps { at_least, mean, at_most })
        }
        ArrivalEntry::Trace { file } => {
            let path = folder.map_or_else(|| file.clone(), |folder| folder.join(&file));
            let trace = match is_trace(&path) {
                true => recorded::trace(&path),
                false => Trace::parse(&read(&path)?),
            };
            let trace = trace.map_err(|what| format!("{}: {what}", path.display()))?;
            Ok(Arrival::Trace(Arc::new(trace)))
        }
    }
}
