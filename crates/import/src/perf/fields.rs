//! A line of separated values: `[time,][thread or CPU,]value,unit,event[,cgroup][,deviation%],time
//! counted,percent[,metric,unit]`. Times, values and percentages may have the separator as decimal mark, and names may
//! contain it.

use std::borrow::Cow;

use super::{Line, NOT_COUNTED, NOT_SUPPORTED, who};
use crate::events::is_modifiers;
use crate::number::is_number;
use crate::rows::Who;

/// The word at the beginning of a line of sums.
const SUMMARY: &str = "summary";
/// Fields that a value and what belongs to it have at least.
const FIELDS: usize = 5;

/// Splits a line, with perf's words for missing counts as one field.
pub(super) fn split<'a>(text: &'a str, separator: &str) -> Vec<&'a str> {
    let text = text.trim_start();
    let absent = [NOT_COUNTED, NOT_SUPPORTED].into_iter().find_map(|word| Some((text.find(word)?, word.len())));
    let Some((at, length)) = absent else { return text.split(separator).map(str::trim).collect() };
    let (before, value, after) = (&text[..at], &text[at..at + length], &text[at + length..]);
    let before = before.strip_suffix(separator).unwrap_or(before);
    let before = (!before.is_empty()).then(|| before.split(separator)).into_iter().flatten();
    let after = after.strip_prefix(separator).unwrap_or(after);
    before.chain([value]).chain(after.split(separator)).map(str::trim).collect()
}

/// Parses a line; `None` if it is none with this separator.
pub(super) fn parse<'a>(number: usize, text: &'a str, separator: &str) -> Option<Line<'a>> {
    let fields = split(text, separator);
    (0..fields.len().checked_sub(FIELDS)? + 1).find_map(|at| {
        let (before, fields) = fields.split_at(at);
        let begin = beginning(before, text, separator)?;
        let value = value(fields, text, separator)?;
        let Value { value, unit, event, cgroup, counted } = value;
        let Beginning { interval, summary, who } = begin;
        let (interval, counted) = (interval.map(Cow::Borrowed), Some(Cow::Borrowed(counted)));
        Some(Line { number, interval, summary, who, cgroup, value, unit, event, counted })
    })
}

/// Returns whether a line has only a further metric of the line before, which perf has calculated.
pub(super) fn is_metric(text: &str, separator: &str) -> bool {
    let fields = split(text, separator);
    (0..fields.len().saturating_sub(FIELDS)).any(|at| {
        let (before, after) = fields.split_at(at);
        beginning(before, text, separator).is_some() && after[..FIELDS].iter().all(|field| field.is_empty())
    })
}

/// What precedes the value.
struct Beginning<'a> {
    interval: Option<&'a str>,
    summary: bool,
    who: Who,
}

/// Parses the fields before the value: a time or the word for sums, and a thread or CPU, each if present.
fn beginning<'a>(fields: &[&'a str], text: &'a str, separator: &str) -> Option<Beginning<'a>> {
    (0..=fields.len().min(2)).find_map(|times| {
        let (time, whose) = fields.split_at(times);
        let (time, whose) = (joined(time, text), joined(whose, text));
        let is_time = |time: &str| is_number(time) && time.contains(['.', ',']);
        let (interval, summary) = match time {
            "" if times == 0 => (None, false),
            SUMMARY => (None, true),
            time if is_time(time) => (Some(time), false),
            _ => return None,
        };
        let who = if whose.is_empty() { Who::Program } else { who(whose.trim_end_matches(separator))? };
        Some(Beginning { interval, summary, who })
    })
}

/// The value and what belongs to it.
struct Value<'a> {
    value: &'a str,
    unit: &'a str,
    event: String,
    cgroup: &'a str,
    counted: &'a str,
}

/// Parses the fields from the value on.
fn value<'a>(fields: &[&'a str], text: &'a str, separator: &str) -> Option<Value<'a>> {
    let is_value = |text: &str| is_number(text) || text == NOT_COUNTED || text == NOT_SUPPORTED;
    let whole = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    // A decimal comma splits a value where the comma is the separator.
    let split = separator == "," && whole(fields[0]) && whole(fields[1]) && fields.len() > FIELDS;
    let (value, fields) = if split { (joined(&fields[..2], text), &fields[2..]) } else { (fields[0], &fields[1..]) };
    let (&unit, names) = fields.split_first()?;
    if !is_value(value) || is_number(unit) || names.first()?.is_empty() || is_number(names[0]) {
        return None;
    }
    let is_percent = |text: &str| is_number(text) && text.len() <= 6;
    let time = (1..names.len().saturating_sub(1)).find(|&i| whole(names[i]) && is_percent(names[i + 1]))?;
    let counted = match names.get(time + 2) {
        Some(decimals) if separator == "," && decimals.len() == 2 && whole(decimals) && whole(names[time + 1]) => {
            joined(&names[time + 1..time + 3], text)
        }
        _ => names[time + 1],
    };
    let (event, cgroup) = event(without_deviation(&names[..time], separator), text, separator);
    Some(Value { value, unit, event, cgroup, counted })
}

/// Leaves out the deviation between repetitions.
fn without_deviation<'f, 'a>(names: &'f [&'a str], separator: &str) -> &'f [&'a str] {
    let Some((last, names)) = names.split_last().filter(|(last, _)| last.ends_with('%')) else { return names };
    let whole = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    match names.split_last() {
        Some((before, rest))
            if separator == "," && whole(before) && whole(last.trim_end_matches('%')) && !rest.is_empty() =>
        {
            rest
        }
        _ => names,
    }
}

/// Splits the fields between unit and time into the event's name and the control group.
fn event<'a>(names: &[&'a str], text: &'a str, separator: &str) -> (String, &'a str) {
    let all = joined(names, text);
    let end = match separator {
        // A device's event ends with a slash, perhaps with modifiers behind it.
        "/" if names.len() > 2 && is_modifiers(names[names.len() - 1]) => names.len(),
        "/" => 1,
        ":" if names.len() == 2 && is_modifiers(names[1]) => 2,
        // Attributes of a device's event are between slashes.
        _ => {
            let slashes = |count: usize| names[..count].iter().map(|name| name.matches('/').count()).sum::<usize>();
            (1..=names.len()).find(|&count| slashes(count) != 1).unwrap_or(names.len())
        }
    };
    let (event, cgroup) = names.split_at(end.min(names.len()));
    let event = if cgroup.is_empty() { all } else { joined(event, text) };
    (event.to_owned(), joined(cgroup, text))
}

/// The part of a line from the first of these fields to the last.
fn joined<'a>(fields: &[&'a str], text: &'a str) -> &'a str {
    let (Some(first), Some(last)) = (fields.first(), fields.last()) else { return "" };
    let begin = first.as_ptr() as usize - text.as_ptr() as usize;
    let end = last.as_ptr() as usize + last.len() - text.as_ptr() as usize;
    &text[begin..end]
}
