//! Reads perf's text output.

use std::borrow::Cow;

use super::{Contents, Line, NOT_BY_CPU, NOT_COUNTED, NOT_SUPPORTED, is_part, who};
use crate::number::{damaged, is_number, leading};
use crate::rows::Who;
use crate::{FileError, Source};

const TITLE: &str = "Performance counter stats for ";
/// Words instead of a command if something other than the processes of a command was counted.
const NO_COMMANDS: [&str; 4] = ["system wide", "CPU(s)", "process id", "thread id"];
/// perf's units.
const UNITS: [&str; 9] = ["msec", "ns", "Joules", "MiB", "KiB", "GiB", "Bytes", "C", "W"];

/// Returns whether the text is perf's.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(TITLE) || is_heading(line))
}

/// Returns whether it is the heading of counts by interval.
fn is_heading(line: &str) -> bool {
    let heading = line.strip_prefix('#').map(str::trim_start);
    heading.is_some_and(|line| line.starts_with("time ") && line.contains(" counts unit events"))
}

/// Which of perf's lines may follow.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// None: lines are those of the program.
    Program,
    /// Counts by interval.
    Intervals,
    /// Counts, or sums over intervals.
    Counts { summary: bool },
}

pub(super) fn read<'a>(source: &Source<'_>, text: &'a str) -> Result<Contents<'a>, FileError> {
    let mut contents = Contents::default();
    let mut part = Part::Program;
    for (i, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if is_heading(line) {
            part = Part::Intervals;
        } else if let Some(of) = trimmed.strip_prefix(TITLE) {
            part = Part::Counts { summary: part == Part::Intervals };
            contents.command = command(of);
        } else if let Some((time, _)) = trimmed.split_once(" seconds time elapsed") {
            contents.seconds = time.split_whitespace().next();
            contents.others.extend(numbers(time));
        } else if part != Part::Program && trimmed.split_whitespace().take(2).any(is_part) {
            return Err(source.problem(Some(i + 1), NOT_BY_CPU.to_owned()));
        } else if let Some(line) = parse(i + 1, trimmed, part) {
            contents.lines.push(line);
            contents.others.extend(trimmed.split_once('#').into_iter().flat_map(|(_, metrics)| numbers(metrics)));
        }
    }
    Ok(contents)
}

/// The command in perf's title; `None` if something other was counted.
fn command(of: &str) -> Option<String> {
    let known = !NO_COMMANDS.iter().any(|what| of.trim_start_matches('\'').starts_with(what));
    let of = of.trim_end_matches(':').split(" (").next().unwrap_or_default().trim_matches('\'');
    known.then(|| of.to_owned())
}

fn numbers(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().map(|word| word.trim_matches(['(', ')', '%'])).filter(|word| is_number(word))
}

/// Parses `[time] [thread or CPU] value [unit] event [cgroup] # [derived metric] [(percent%)]`.
fn parse(number: usize, line: &str, part: Part) -> Option<Line<'_>> {
    let (count, rest) = line.split_once('#').unwrap_or((line, ""));
    let percent = [rest, count].into_iter().find_map(|text| {
        let (_, inside) = text.trim_end().strip_suffix("%)")?.rsplit_once('(')?;
        Some(inside.trim()).filter(|inside| is_number(inside))
    });
    let (interval, count) = match part {
        Part::Program => return None,
        Part::Counts { .. } => (None, count),
        Part::Intervals => {
            let (time, rest) = count.trim_start().split_once(char::is_whitespace)?;
            is_number(time).then_some((Some(Cow::Borrowed(time)), rest))?
        }
    };
    let (who, value, rest) = whose_value(count.trim_start())?;
    let names = rest.split('(').next()?;
    let mut words = names.split_whitespace();
    let (unit, event) = match words.next()? {
        "seconds" => return None,
        "raw" => ("", format!("raw {}", words.next()?)),
        unit if UNITS.contains(&unit) => (unit, words.next()?.to_owned()),
        event => ("", event.to_owned()),
    };
    let cgroup = words.next().unwrap_or_default();
    if is_number(&event) {
        return None;
    }
    let summary = part == Part::Counts { summary: true };
    let counted = percent.map(Cow::Borrowed);
    Some(Line { number, interval, summary, who, cgroup, value, unit, event, counted })
}

/// Splits `[thread or CPU] value rest`. Names of threads may contain blanks.
fn whose_value(text: &str) -> Option<(Who, &str, &str)> {
    if let Some((value, rest)) = value(text) {
        return Some((Who::Program, value, rest));
    }
    let blanks = text.char_indices().filter(|(_, c)| c.is_whitespace());
    blanks.map(|(at, _)| text.split_at(at)).find_map(|(word, rest)| {
        let (value, rest) = value(rest.trim_start())?;
        Some((who(word)?, value, rest))
    })
}

/// Splits a count, or perf's words instead of one, from what follows.
fn value(text: &str) -> Option<(&str, &str)> {
    let absent = [NOT_COUNTED, NOT_SUPPORTED].into_iter().find(|word| text.starts_with(word));
    // Of digits that are no number, the first ones may be one. The whole is refused where counts are read.
    absent.map(|word| text.split_at(word.len())).or_else(|| damaged(text)).or_else(|| leading(text))
}
