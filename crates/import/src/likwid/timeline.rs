//! Reads counts by time (`likwid-perfctr -t`): a heading for each group, then a line for each interval with the group, the
//! numbers of events and of hardware threads, the time since the start, and the counts of each event by hardware thread.

use std::collections::BTreeSet;

use fxscope_record::ALL;

use super::rows::{count, number as real};
use crate::intervals::Series;
use crate::losses::{Losses, is_absent};
use crate::rows::{Pass, Who};
use crate::{FileError, Machine, Source, event_name};

/// Fields before the counts of a line.
const BEFORE: usize = 4;

/// Returns whether a text has counts by time.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| heading(line).is_some())
}

/// The names in a group's heading, behind `# GID`, the numbers and the time.
fn heading(line: &str) -> Option<Vec<&str>> {
    let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("GID")?;
    let mark = rest.chars().next()?;
    Some(rest.split(mark).skip(BEFORE).map(str::trim).filter(|name| !name.is_empty()).collect())
}

/// A group of events.
#[derive(Default)]
struct Group {
    names: Vec<String>,
    pass: Pass,
    series: Series,
    /// Events without a count in some interval, whose sums would be too small.
    incomplete: BTreeSet<String>,
}

/// Reads the lines: one pass per group.
pub(super) fn read(
    source: &Source<'_>,
    text: &str,
    machine: &Machine,
    losses: &mut Losses,
) -> Result<Vec<Pass>, FileError> {
    let threads = threads(source, text)?;
    let mut groups: Vec<Group> = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let problem = |what: String| source.problem(Some(i + 1), what);
        if line.contains("MetricsCount") {
            let what = "has metrics, from which counts cannot be had: measure events, such as -g INST_RETIRED:PMC0,CPU_CYCLES:PMC1";
            return Err(problem(what.to_owned()));
        } else if let Some(names) = heading(line) {
            groups.push(group(&names, &threads, machine));
        } else if !line.trim().is_empty() && !line.trim_start().starts_with('#') {
            interval((i + 1, line), &mut groups, (&threads, machine, losses)).map_err(problem)?;
        }
    }
    groups.into_iter().map(|group| group.finish(source, machine)).collect()
}

/// The hardware threads, from their line.
fn threads(source: &Source<'_>, text: &str) -> Result<Vec<u32>, FileError> {
    let of_line = |line: &str| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start();
        let rest = rest.strip_prefix("HWThreads").or_else(|| rest.strip_prefix("CORES"))?;
        let numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|word| !word.is_empty());
        numbers.map(|number| number.parse().ok()).collect::<Option<Vec<u32>>>()
    };
    let found = text.lines().find_map(of_line).filter(|threads| !threads.is_empty());
    found.ok_or_else(|| source.problem(None, "has no line '# HWThreads' with the hardware threads".to_owned()))
}

/// A group with these names, which may be followed by the hardware thread in brackets.
fn group(names: &[&str], threads: &[u32], machine: &Machine) -> Group {
    let bare = names.iter().map(|name| name.split_once('[').map_or(*name, |(bare, _)| bare));
    let mut all: Vec<String> = bare.map(|name| event_name(&machine.pmu.events, name)).collect();
    if names.iter().all(|name| name.ends_with(']')) && threads.len() > 1 {
        all = all.into_iter().step_by(threads.len()).collect();
    }
    Group { names: all, ..Group::default() }
}

/// Reads the counts of an interval.
fn interval(
    (number, line): (usize, &str),
    groups: &mut [Group],
    (threads, machine, losses): (&[u32], &Machine, &mut Losses),
) -> Result<(), String> {
    let fields: Vec<&str> = line.split([',', ' ', '|', ';']).filter(|field| !field.is_empty()).collect();
    let wrong = || "is not group, numbers of events and hardware threads, time, and counts".to_owned();
    let place = fields.first().and_then(|field| field.parse::<usize>().ok()).and_then(|group| group.checked_sub(1));
    let group = place.and_then(|place| groups.get_mut(place)).ok_or_else(wrong)?;
    let values = fields.get(BEFORE..).filter(|values| values.len() == group.names.len() * threads.len());
    let values = values.ok_or_else(wrong)?;
    let seconds = real(fields[BEFORE - 1]).filter(|seconds| (0.0..1e9).contains(seconds)).ok_or_else(wrong)?;
    let rows = group.pass.region(ALL);
    for (name, values) in group.names.iter().zip(values.chunks(threads.len())) {
        for (&cpu, text) in threads.iter().zip(values) {
            if is_absent(text) {
                losses.lose(name, "was not counted in some interval and is left out")?;
                group.incomplete.insert(name.clone());
                continue;
            }
            let (who, value) = (Who::Cpu(cpu), count(text, name)?);
            group.series.add((number, seconds), &who, name, Some(value))?;
            rows.add(&who, name.clone(), value)?;
        }
    }
    rows.set_seconds(None, seconds, machine);
    Ok(())
}

impl Group {
    /// The pass of the group, with its series.
    fn finish(mut self, source: &Source<'_>, machine: &Machine) -> Result<Pass, FileError> {
        for event in &self.incomplete {
            self.pass.region(ALL).remove(event);
            self.series.remove(event);
        }
        self.pass.intervals.extend(self.series.finish(ALL, source, machine)?);
        Ok(self.pass)
    }
}
