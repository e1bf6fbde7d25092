//! Reads JSON (`-j`): one object per line.

use std::borrow::Cow;

use serde::Deserialize;

use super::{Contents, Line, NOT_BY_CPU, who};
use crate::rows::Who;
use crate::{FileError, Source};

#[derive(Deserialize)]
struct Object<'a> {
    #[serde(rename = "counter-value", borrow)]
    value: Option<&'a str>,
    #[serde(default)]
    unit: &'a str,
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
    #[serde(rename = "pcnt-running")]
    counted: Option<f64>,
    interval: Option<f64>,
    cpu: Option<&'a str>,
    #[serde(borrow)]
    thread: Option<Cow<'a, str>>,
    #[serde(default)]
    cgroup: &'a str,
    /// A part of the computer that may have several CPUs.
    #[serde(alias = "cluster", alias = "cache", alias = "die", alias = "socket", alias = "node")]
    core: Option<&'a str>,
}

/// Returns whether the text is JSON.
pub(super) fn is(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| line.trim_start().starts_with('{'))
}

pub(super) fn read<'a>(source: &Source<'_>, text: &'a str) -> Result<Contents<'a>, FileError> {
    let mut contents = Contents::default();
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')) {
        let number = i + 1;
        let problem = |what: String| source.problem(Some(number), what);
        let object: Object<'a> =
            serde_json::from_str(line).map_err(|e| problem(format!("is not an object of perf: {e}")))?;
        // Metrics that perf calculates itself are on separate lines.
        let (Some(value), Some(event)) = (object.value, object.event) else { continue };
        let whose = match (object.cpu, object.thread, object.core) {
            (Some(cpu), ..) => Some(Who::Cpu(cpu.parse().map_err(|_| problem(format!("'{cpu}' is not a CPU")))?)),
            (_, Some(thread), _) => Some(who(&thread).ok_or_else(|| problem(format!("'{thread}' is not a thread")))?),
            (.., Some(_)) => return Err(problem(NOT_BY_CPU.to_owned())),
            (None, None, None) => None,
        };
        contents.lines.push(Line {
            number,
            interval: object.interval.map(|seconds| seconds.to_string().into()),
            summary: false,
            who: whose.unwrap_or(Who::Program),
            cgroup: object.cgroup,
            value,
            unit: object.unit,
            event: event.into_owned(),
            counted: object.counted.map(|percent| percent.to_string().into()),
        });
    }
    mark_summary(&mut contents);
    Ok(contents)
}

/// Objects without an interval behind those with one are sums.
fn mark_summary(contents: &mut Contents<'_>) {
    let by_interval = contents.lines.iter().any(|line| line.interval.is_some());
    for line in contents.lines.iter_mut().filter(|line| by_interval && line.interval.is_none()) {
        line.summary = true;
    }
}
