//! Reads separated values (`-x`): `[time,][thread or CPU,]value,unit,event[,deviation%],time
//! counted,percent[,metric,unit]`.

use super::{Contents, Line, NOT_BY_CPU, is_part, who};
use crate::rows::Who;
use crate::{FileError, Source};

/// Possible separators, the usual one first.
const SEPARATORS: [char; 5] = [',', ';', '\t', '|', '^'];

pub(super) fn read<'a>(source: &Source<'_>, text: &'a str) -> Result<Contents<'a>, FileError> {
    let data = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let by_part = |line: &str| line.split(SEPARATORS).take(2).any(|word| is_part(word.trim()));
    if let Some((i, _)) = data().find(|(_, line)| by_part(line)) {
        return Err(source.problem(Some(i + 1), NOT_BY_CPU.to_owned()));
    }
    let first = data().next().map_or("", |(_, line)| line);
    let separator = SEPARATORS.into_iter().find(|&s| parse(0, first, s).is_some());
    let Some(separator) = separator else {
        let what = "is not what perf stat writes: its text, -x separated values or -j JSON are expected".to_owned();
        return Err(source.problem(data().next().map(|(i, _)| i + 1), what));
    };
    let mut contents = Contents::default();
    for (i, line) in data() {
        let Some(line) = parse(i + 1, line, separator) else {
            let what = "a line of perf stat -x has value, unit, event, time and percent; this one does not".to_owned();
            return Err(source.problem(Some(i + 1), what));
        };
        contents.lines.push(line);
    }
    Ok(contents)
}

fn parse(number: usize, line: &str, separator: char) -> Option<Line<'_>> {
    let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
    // A time, and a thread or CPU, may precede the value.
    (0..=2).find_map(|at| parse_from(number, fields.split_at_checked(at)?))
}

/// Parses a line from the fields before the value and those from it on.
fn parse_from<'a>(number: usize, (before, fields): (&[&'a str], &[&'a str])) -> Option<Line<'a>> {
    let &[value, unit, event, ref rest @ ..] = fields else { return None };
    let is_value = fraction(value).is_some() || value.starts_with("<not ");
    if !is_value || fraction(unit).is_some() || event.is_empty() || fraction(event).is_some() {
        return None;
    }
    let rest = if rest.first().is_some_and(|field| field.ends_with('%')) { &rest[1..] } else { rest };
    rest.first()?.parse::<u64>().ok()?;
    let counted = Some(fraction(rest.get(1)?)?);
    let (interval, who) = match *before {
        [] => (None, Who::Program),
        [time] if time.contains(['.', ',']) && fraction(time).is_some() => (fraction(time), Who::Program),
        [whose] => (None, who(whose)?),
        [time, whose, ..] => (Some(fraction(time)?), who(whose)?),
    };
    Some(Line { number, interval, who, value, unit, event, counted })
}

/// Parses a number with a decimal point or comma.
fn fraction(text: &str) -> Option<f64> {
    text.replace(',', ".").parse().ok()
}
