//! Lines of separated values (`-x`): `[time,][whose,]value,unit,event[,deviation%],time counted,percent[,metric,unit]`.

use super::{Contents, Line, who};
use crate::rows::Who;
use crate::{Problem, Source};

/// What may separate values, the usual one first.
const SEPARATORS: [char; 5] = [',', ';', '\t', '|', '^'];

pub(super) fn read<'a>(source: &Source<'_>, text: &'a str) -> Result<Contents<'a>, Problem> {
    let data = || text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let first = data().next().map_or("", |(_, line)| line);
    let separator = SEPARATORS.into_iter().find(|&s| parse(0, first, s).is_some());
    let Some(separator) = separator else {
        let what = "is not what perf stat writes: its text, -x separated values or -j JSON are expected".to_owned();
        return Err(source.problem(data().next().map(|(i, _)| i + 1), what));
    };
    let mut contents = Contents::default();
    for (i, line) in data() {
        let Some(line) = parse(i + 1, line, separator) else {
            let what = "a line of perf stat -x has value, unit, event, time and percent; by socket, die or node it \
                        cannot be read, use -A";
            return Err(source.problem(Some(i + 1), what.to_owned()));
        };
        contents.lines.push(line);
    }
    Ok(contents)
}

fn parse(number: usize, line: &str, separator: char) -> Option<Line<'_>> {
    let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
    // A time and whose count it is may come before the value.
    let at = (0..=2).find(|&at| is_value(&fields, at))?;
    let who = match at.checked_sub(1).map(|before| fields[before]) {
        None => Who::Program,
        Some(word) if word.contains(['.', ',']) && fraction(word).is_some() => Who::Program,
        Some(word) => who(word)?,
    };
    let deviation = usize::from(fields.get(at + 3).is_some_and(|f| f.ends_with('%')));
    fields.get(at + 3 + deviation)?.parse::<u64>().ok()?;
    let counted = fraction(fields.get(at + 4 + deviation)?)?;
    Some(Line { number, who, value: fields[at], unit: fields[at + 1], event: fields[at + 2], counted: Some(counted) })
}

/// A number with a point, or with the comma that some languages have.
fn fraction(text: &str) -> Option<f64> {
    text.replace(',', ".").parse().ok()
}

/// Whether a value, its unit and its event are in three fields from `at` on.
fn is_value(fields: &[&str], at: usize) -> bool {
    let [value, unit, event, ..] = fields.get(at..).unwrap_or_default() else { return false };
    let number = |text: &str| fraction(text).is_some();
    (number(value) || value.starts_with("<not ")) && !number(unit) && !event.is_empty() && !number(event)
}
