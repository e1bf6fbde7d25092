//! Reads perf's text output.

use super::{Contents, Line, NOT_BY_CPU, is_part, number, who};
use crate::rows::Who;
use crate::{FileError, Source};

const TITLE: &str = "Performance counter stats for ";
/// Words instead of a command if something other than the processes of a command was counted.
const NO_COMMANDS: [&str; 4] = ["system wide", "CPU(s)", "process id", "thread id"];

/// Returns whether the text is perf's.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(TITLE) || is_heading(line))
}

/// Returns whether it is the heading of counts by interval.
fn is_heading(line: &str) -> bool {
    line.strip_prefix('#').is_some_and(|line| line.trim_start().starts_with("time ") && line.ends_with("unit events"))
}

pub(super) fn read<'a>(source: &Source<'_>, text: &'a str) -> Result<Contents<'a>, FileError> {
    let mut contents = Contents::default();
    let mut by_interval = false;
    for (i, line) in text.lines().enumerate() {
        by_interval |= is_heading(line);
        let line = line.trim();
        if let Some(of) = line.strip_prefix(TITLE) {
            let known = !NO_COMMANDS.iter().any(|what| of.trim_start_matches('\'').starts_with(what));
            let of = of.trim_end_matches(':').split(" (").next().unwrap_or_default().trim_matches('\'');
            contents.command = known.then(|| of.to_owned());
        } else if let Some(time) = line.split_once(" seconds time elapsed") {
            let seconds = time.0.split_whitespace().next();
            contents.seconds = seconds.and_then(|s| s.replace(',', ".").parse().ok());
        } else if line.split_whitespace().take(2).any(is_part) {
            return Err(source.problem(Some(i + 1), NOT_BY_CPU.to_owned()));
        } else if let Some(line) = parse(i + 1, line, by_interval) {
            contents.lines.push(line);
        }
    }
    Ok(contents)
}

/// Parses `[time] [thread or CPU] value [unit] event # [derived metric] [(percent%)]`.
fn parse(line_number: usize, line: &str, by_interval: bool) -> Option<Line<'_>> {
    let (count, rest) = line.split_once('#').map_or((line, ""), |(count, rest)| (count, rest));
    let percent = [rest, count].into_iter().find_map(|text| {
        let (_, inside) = text.trim_end().strip_suffix("%)")?.rsplit_once('(')?;
        inside.trim().parse().ok()
    });
    let mut words = count.split_whitespace().filter(|word| !word.starts_with('('));
    let interval = if by_interval { Some(words.next()?.replace(',', ".").parse().ok()?) } else { None };
    let mut value = words.next()?;
    let mut whose = Who::Program;
    if number(value).is_none() && !value.starts_with("<not") {
        whose = who(value)?;
        value = words.next()?;
    }
    if value == "<not" {
        value = if words.next()? == "counted>" { "<not counted>" } else { "<not supported>" };
    }
    let (first, second) = (words.next()?, words.next());
    let (unit, event) = match second {
        Some(event) if matches!(first, "msec" | "ns" | "Joules" | "MiB") => (first, event),
        _ => ("", first),
    };
    let is_time = matches!(event, "seconds");
    (!is_time).then_some(Line { number: line_number, interval, who: whose, value, unit, event, counted: percent })
}
