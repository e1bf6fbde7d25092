//! Profiles of speedscope: shared frames, and for each thread samples of stacks with weights.

use fxscope_record::Run;
use serde_json::{Map, Value, json};

use super::stacks::{Node, Series, Stacks, Unit};
use crate::sections::title;

/// Returns a run as a file of speedscope.
pub(super) fn profile(run: &Run, stacks: &Stacks) -> Value {
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": run.tool,
        "name": title(run),
        "activeProfileIndex": 0,
        "shared": {"frames": stacks.nodes.iter().map(frame).collect::<Vec<_>>()},
        "profiles": stacks.series.iter().map(|series| of_series(stacks, series)).collect::<Vec<_>>(),
    })
}

fn frame(node: &Node) -> Value {
    let mut frame = Map::new();
    frame.insert("name".to_owned(), node.name.clone().into());
    if let Some(file) = &node.file {
        frame.insert("file".to_owned(), file.clone().into());
    }
    if let Some(line) = node.line {
        frame.insert("line".to_owned(), line.into());
    }
    frame.into()
}

fn of_series(stacks: &Stacks, series: &Series) -> Value {
    let stack = |node: Option<usize>| {
        let mut frames: Vec<usize> = node.map_or_else(Vec::new, |node| stacks.frames(node).collect());
        frames.reverse();
        frames
    };
    json!({
        "type": "sampled",
        "name": series.name,
        // Cycles have no unit of their own in the format.
        "unit": match stacks.unit { Unit::Nanoseconds => "nanoseconds", Unit::Cycles => "none" },
        "startValue": 0,
        "endValue": series.samples.iter().map(|sample| sample.weight).sum::<u64>(),
        "samples": series.samples.iter().map(|sample| stack(sample.node)).collect::<Vec<_>>(),
        "weights": series.samples.iter().map(|sample| sample.weight).collect::<Vec<_>>(),
    })
}
