//! Reads separated values (`-x`), whatever the separator is.

use super::{Contents, NOT_BY_CPU, fields, is_part};
use crate::{FileError, Source};

/// Usual separators, the most usual first.
const USUAL: [&str; 10] = [",", ";", "\t", "|", "^", ":", "/", "@", "::", " "];
/// Words at the beginning of a line among which a part of the computer may be.
const BEGINNING: usize = 4;

pub(super) fn read<'a>(source: &Source<'_>, text: &'a str) -> Result<Contents<'a>, FileError> {
    let data: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#')).collect();
    let (first, line) = data.first().copied().unwrap_or_default();
    let parsed = candidates(line).into_iter().map(|separator| parse(&data, &separator));
    let mut best: Option<(usize, Contents<'a>)> = None;
    for (read, contents) in parsed {
        if read == data.len() {
            return Ok(contents);
        }
        if best.as_ref().is_none_or(|(most, _)| read > *most) {
            best = Some((read, contents));
        }
    }
    if let Some((i, _)) = data.iter().find(|(_, line)| is_by_part(line)) {
        return Err(source.problem(Some(i + 1), NOT_BY_CPU.to_owned()));
    }
    match best.and_then(|(read, _)| data.get(read)).filter(|(i, _)| *i > first) {
        Some((i, _)) => {
            let what = "a line of perf stat -x has value, unit, event, time and percent; this one does not".to_owned();
            Err(source.problem(Some(i + 1), what))
        }
        None => {
            let what = "is not what perf stat writes: its text, -x separated values or -j JSON are expected".to_owned();
            Err(source.problem(data.first().map(|(i, _)| i + 1), what))
        }
    }
}

/// Parses lines with a separator, until one is none; returns how many are.
fn parse<'a>(data: &[(usize, &'a str)], separator: &str) -> (usize, Contents<'a>) {
    let mut contents = Contents::default();
    for (read, &(i, line)) in data.iter().enumerate() {
        match fields::parse(i + 1, line, separator) {
            Some(line) => contents.lines.push(line),
            None if fields::is_metric(line, separator) => {}
            None => return (read, contents),
        }
    }
    let any = !contents.lines.is_empty();
    (if any { data.len() } else { 0 }, contents)
}

/// Separators that a line may have: the usual ones; what is between its words, or half of it, since the unit of counts is
/// empty; half of what is behind its last digit, since metrics may be empty.
fn candidates(line: &str) -> Vec<String> {
    let mut all: Vec<String> = USUAL.iter().map(|&usual| usual.to_owned()).collect();
    let between = line.split(char::is_alphanumeric).filter(|part| !part.is_empty());
    let end = line.rsplit(|c: char| c.is_ascii_digit()).next();
    for part in between.chain(end) {
        let (one, other) = part.split_at(part.floor_char_boundary(part.len() / 2));
        for candidate in [one, part] {
            if !candidate.is_empty()
                && (candidate == part || one == other)
                && !all.iter().any(|known| known == candidate)
            {
                all.push(candidate.to_owned());
            }
        }
    }
    all
}

/// Returns whether a line counts a part of the computer with several CPUs.
fn is_by_part(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '-').take(BEGINNING).any(is_part)
}
