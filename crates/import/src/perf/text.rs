//! The text for people.

use super::{Contents, Line, number, who};
use crate::rows::Who;

const TITLE: &str = "Performance counter stats for ";

/// Whether the text is perf's.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with(TITLE))
}

pub(super) fn read(text: &str) -> Contents<'_> {
    let mut contents = Contents::default();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(of) = line.strip_prefix(TITLE) {
            let of = of.trim_end_matches(':').split(" (").next().unwrap_or_default().trim_matches('\'');
            // Of a whole system there is no command.
            contents.command = (of != "system wide" && !of.starts_with("CPU(s)")).then(|| of.to_owned());
        } else if let Some(time) = line.split_once(" seconds time elapsed") {
            let seconds = time.0.split_whitespace().next();
            contents.seconds = seconds.and_then(|s| s.replace(',', ".").parse().ok());
        } else if let Some(line) = parse(i + 1, line) {
            contents.lines.push(line);
        }
    }
    contents
}

/// `[whose] value [unit] event [# what perf makes of it] [(percent%)]`
fn parse(line_number: usize, line: &str) -> Option<Line<'_>> {
    let (count, rest) = line.split_once('#').map_or((line, ""), |(count, rest)| (count, rest));
    let percent = [rest, count].into_iter().find_map(|text| {
        let (_, inside) = text.trim_end().strip_suffix("%)")?.rsplit_once('(')?;
        inside.trim().parse().ok()
    });
    let mut words = count.split_whitespace().filter(|word| !word.starts_with('('));
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
    (!is_time).then_some(Line { number: line_number, who: whose, value, unit, event, counted: percent })
}
