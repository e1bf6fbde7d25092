//! Imports tables of rtla, which have totals but no individual detours.

use super::{Error, Imported, Source, lines, quoted, wrong_file, wrong_line};
use crate::trace::{Cause, CoreSummary, Counted, Kind, bin};

/// Parses a duration such as `0 00:01:00` (days and hours); returns ns.
fn duration(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let days: u64 = words.next()?.parse().ok()?;
    let parts: Option<Vec<u64>> = words.next()?.split(':').map(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = parts?[..] else { return None };
    let all = days.checked_mul(86_400)?.checked_add(hours.checked_mul(3600)?)?.checked_add(minutes.checked_mul(60)?)?;
    all.checked_add(seconds)?.checked_mul(1_000_000_000)
}

fn noise(amount: u64) -> Counted {
    Counted { cause: Cause::unknown(), amount, time: true }
}

const US: u64 = 1000;

/// Imports the table of `rtla osnoise top`: the last one, if there are several.
pub fn top(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "rtla osnoise top".to_owned(), ..Imported::default() };
    for source in sources {
        let mut cores = Vec::new();
        let mut began = false;
        for (number, line) in lines(source) {
            let line = line.trim();
            if line.starts_with("CPU Period") {
                began = true;
                cores.clear();
            } else if began && line.contains('#') {
                let row = row(line).ok_or_else(|| {
                    wrong_line(
                        source,
                        number,
                        format!("{} is not a row of the table: CPU, #periods, ten numbers", quoted(line)),
                    )
                })?;
                cores.push(row);
            }
        }
        if cores.is_empty() {
            return Err(wrong_file(
                source,
                "has no table of rtla osnoise top (rtla osnoise top -q prints one at its end)",
            ));
        }
        imported.summary.duration = cores.iter().map(|core| core.total as u64).max().unwrap_or(0);
        imported.summary.cores.extend(cores);
    }
    imported
        .summary
        .notes
        .push("rtla osnoise top reports totals only: there are no individual detours to fit or replay".to_owned());
    Ok(imported)
}

/// Parses `0 #59 53100000 304896 99.42580 6978 56 549 0 53111 1590 13`; hardware noise lacks the last three.
fn row(line: &str) -> Option<CoreSummary> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let core = words.first()?.parse().ok()?;
    words.get(1)?.strip_prefix('#')?.parse::<u64>().ok()?;
    let number = |i: usize| words.get(i)?.parse::<u64>().ok();
    words.get(4)?.parse::<f64>().ok()?;
    let (runtime, taken, longest) = (number(2)?, number(3)?, number(6)?);
    let kinds = [Kind::Hardware, Kind::Nmi, Kind::Interrupt, Kind::SoftInterrupt, Kind::KernelThread];
    let mut counted = vec![noise(taken.checked_mul(US)?)];
    for (i, kind) in kinds.into_iter().enumerate() {
        let amount = number(7 + i).or((i >= 2 && words.len() == 9).then_some(0))?;
        counted.push(Counted { cause: Cause::new(kind, ""), amount, time: false });
    }
    let total = runtime.checked_mul(US)? as f64;
    Some(CoreSummary { core, total, longest: longest.checked_mul(US)?, counted, ..CoreSummary::default() })
}

/// Imports the histogram of `rtla osnoise hist`.
pub fn hist(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "rtla osnoise hist".to_owned(), ..Imported::default() };
    for source in sources {
        let table = Table::read(source)?;
        imported.summary.duration = imported.summary.duration.max(table.duration);
        imported.summary.cores.extend(table.cores);
    }
    let note = "rtla osnoise hist reports the start of each bucket of lengths only: there are no individual detours to fit or replay";
    imported.summary.notes.push(note.to_owned());
    Ok(imported)
}

struct Table {
    duration: u64,
    unit: u64,
    cores: Vec<CoreSummary>,
}

impl Table {
    fn read(source: &Source<'_>) -> Result<Table, Error> {
        let mut table = Table { duration: 0, unit: US, cores: Vec::new() };
        for (number, line) in lines(source) {
            let line = line.trim();
            let what = |what: String| wrong_line(source, number, what);
            if let Some(rest) = line.strip_prefix("# Duration:") {
                table.duration = duration(rest).ok_or_else(|| what(format!("{} is not a duration", quoted(rest))))?;
            } else if line.starts_with("# Time unit is nanoseconds") {
                table.unit = 1;
            } else if let Some(rest) = line.strip_prefix("Index") {
                let cores: Option<Vec<u32>> =
                    rest.split_whitespace().map(|word| word.strip_prefix("CPU-")?.parse().ok()).collect();
                let cores = cores.ok_or_else(|| what(format!("{} are not CPUs", quoted(rest))))?;
                table.cores = cores.into_iter().map(|core| CoreSummary { core, ..CoreSummary::default() }).collect();
            } else if !line.is_empty() && !line.starts_with('#') && !table.cores.is_empty() {
                table.row(line).ok_or_else(|| {
                    what(format!(
                        "{} is not a row of the histogram: {} numbers after a label",
                        quoted(line),
                        table.cores.len()
                    ))
                })?;
            }
        }
        if table.cores.is_empty() {
            let what =
                "has no histogram of rtla osnoise hist, which begins with a line Index CPU-000 …; leave its headers in";
            return Err(wrong_file(source, what));
        }
        Ok(table)
    }

    fn row(&mut self, line: &str) -> Option<()> {
        let (label, rest) = line.split_once(char::is_whitespace)?;
        let values: Vec<&str> = rest.split_whitespace().collect();
        if values.len() != self.cores.len() {
            return None;
        }
        let begin: Option<u64> = label.parse().ok();
        for (core, value) in self.cores.iter_mut().zip(values) {
            match (label, begin) {
                ("over:" | "count:" | "min:", _) => drop(value.parse::<u64>().ok()?),
                ("avg:", _) => drop(value.parse::<f64>().ok()?),
                ("max:", _) => core.longest = value.parse::<u64>().ok()?.checked_mul(self.unit)?,
                (_, Some(begin)) => {
                    let (count, length) = (value.parse::<u64>().ok()?, begin.checked_mul(self.unit)?);
                    let bin = bin(length);
                    core.histogram.resize(core.histogram.len().max(bin + 1), 0);
                    core.histogram[bin] = core.histogram[bin].checked_add(count)?;
                    let sum = core.counted.first().map_or(0, |counted| counted.amount);
                    core.counted = vec![noise(sum.checked_add(count.checked_mul(length)?)?)];
                }
                _ => return None,
            }
        }
        Some(())
    }
}
