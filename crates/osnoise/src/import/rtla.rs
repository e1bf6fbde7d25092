//! Imports tables of rtla, which have totals but no individual detours.

use super::latency::{self, Lengths};
use super::{Error, Imported, Source, lines, quoted, wrong_file, wrong_line};
use crate::trace::{Cause, CoreSummary, Counted, Kind};

/// Parses a duration such as `0 00:01:00` (days and hours); returns ns.
pub(super) fn duration(text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let days: u64 = words.next()?.parse().ok()?;
    let parts: Option<Vec<u64>> = words.next()?.split(':').map(|part| part.parse().ok()).collect();
    let [hours, minutes, seconds] = parts?[..] else { return None };
    let all = days.checked_mul(86_400)?.checked_add(hours.checked_mul(3600)?)?.checked_add(minutes.checked_mul(60)?)?;
    all.checked_add(seconds)?.checked_mul(1_000_000_000)
}

pub(super) fn noise(amount: u64) -> Counted {
    Counted { cause: Cause::unknown(), amount, time: true }
}

const US: u64 = 1000;

/// Imports the table of `rtla osnoise top` or `rtla timerlat top`: the last one, if there are several.
pub fn top(sources: &[Source<'_>]) -> Result<Imported, Error> {
    if sources.first().is_some_and(latency::is_timerlat_top) {
        return latency::timerlat_top(sources);
    }
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
                "has no table of rtla osnoise top or rtla timerlat top (-q prints one at its end)",
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

/// Imports the histogram of `rtla osnoise hist` or `rtla timerlat hist`.
pub fn hist(sources: &[Source<'_>]) -> Result<Imported, Error> {
    let mut imported = Imported { program: "rtla osnoise hist".to_owned(), ..Imported::default() };
    let mut timerlat = false;
    for source in sources {
        let table = Table::read(source)?;
        timerlat |= table.is_timerlat();
        imported.summary.duration = imported.summary.duration.max(table.duration);
        let (cores, notes) = table.finish();
        imported.summary.cores.extend(cores);
        imported.summary.notes.extend(notes);
    }
    let note =
        "rtla reports the start of each bucket of lengths only: there are no individual detours to fit or replay";
    imported.summary.notes.push(note.to_owned());
    if timerlat {
        "rtla timerlat hist".clone_into(&mut imported.program);
        imported.summary.notes.push(latency::NOTE.to_owned());
    }
    Ok(imported)
}

/// What a column of a histogram has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// Noise of a core.
    Noise,
    /// How late the timer's interrupt was.
    Interrupt,
    /// How late the thread was that it woke.
    Thread,
    /// How late the thread was back in user space.
    User,
}

impl What {
    /// Parses `CPU-012`, `IRQ-000`, `Thr-000`, `Usr-000`.
    fn of(heading: &str) -> Option<(What, u32)> {
        let (word, core) = heading.split_once('-')?;
        let what = match word {
            "CPU" => What::Noise,
            "IRQ" => What::Interrupt,
            "Thr" => What::Thread,
            "Usr" => What::User,
            _ => return None,
        };
        Some((what, core.parse().ok()?))
    }
}

/// A column of a histogram.
struct Column {
    what: What,
    core: u32,
    lengths: Lengths,
}

struct Table {
    duration: u64,
    unit: u64,
    columns: Vec<Column>,
}

impl Table {
    fn read(source: &Source<'_>) -> Result<Table, Error> {
        let mut table = Table { duration: 0, unit: US, columns: Vec::new() };
        for (number, line) in lines(source) {
            let line = line.trim();
            let what = |what: String| wrong_line(source, number, what);
            if let Some(rest) = line.strip_prefix("# Duration:") {
                table.duration = duration(rest).ok_or_else(|| what(format!("{} is not a duration", quoted(rest))))?;
            } else if line.starts_with("# Time unit is nanoseconds") {
                table.unit = 1;
            } else if let Some(rest) = line.strip_prefix("Index") {
                let columns: Option<Vec<(What, u32)>> = rest.split_whitespace().map(What::of).collect();
                let columns = columns.ok_or_else(|| what(format!("{} are not CPUs", quoted(rest))))?;
                let column = |(what, core)| Column { what, core, lengths: Lengths::default() };
                table.columns = columns.into_iter().map(column).collect();
            } else if line.starts_with("ALL") {
                // Sums over all CPUs follow.
                break;
            } else if !line.is_empty() && !line.starts_with('#') && !table.columns.is_empty() {
                table.row(line).ok_or_else(|| {
                    what(format!(
                        "{} is not a row of the histogram: {} numbers after a label",
                        quoted(line),
                        table.columns.len()
                    ))
                })?;
            }
        }
        if table.columns.is_empty() {
            let what = "has no histogram of rtla osnoise hist or rtla timerlat hist, which begins with a line Index CPU-000 …; \
                 leave its headers in";
            return Err(wrong_file(source, what));
        }
        Ok(table)
    }

    fn row(&mut self, line: &str) -> Option<()> {
        let (label, rest) = line.split_once(char::is_whitespace)?;
        let values: Vec<&str> = rest.split_whitespace().collect();
        if values.len() != self.columns.len() {
            return None;
        }
        let begin: Option<u64> = label.parse().ok();
        for (column, value) in self.columns.iter_mut().zip(values) {
            let lengths = &mut column.lengths;
            // rtla writes a dash where a core has no samples.
            let number = |value: &str| if value == "-" { Some(0) } else { value.parse::<u64>().ok() };
            match (label, begin) {
                ("over:", _) => lengths.over = number(value)?,
                ("count:", _) => lengths.samples = number(value)?,
                ("min:", _) => drop(number(value)?),
                ("avg:", _) if value == "-" => {}
                ("avg:", _) => drop(value.parse::<f64>().ok()?),
                ("max:", _) => lengths.longest = number(value)?.checked_mul(self.unit)?,
                (_, Some(begin)) => lengths.add(begin.checked_mul(self.unit)?, number(value)?)?,
                _ => return None,
            }
        }
        Some(())
    }

    fn is_timerlat(&self) -> bool {
        self.columns.iter().any(|column| column.what != What::Noise)
    }

    /// The cores with what their columns have, and notes.
    fn finish(mut self) -> (Vec<CoreSummary>, Vec<String>) {
        let mut notes = Vec::new();
        let of_core = |column: &Column| matches!(column.what, What::Noise | What::Thread);
        let has_threads = self.columns.iter().any(of_core);
        let mut cores: Vec<CoreSummary> = Vec::new();
        for column in &mut self.columns {
            let core = column.core;
            notes.extend(column.lengths.count_over().map(|note| format!("CPU {core}: {note}")));
            if of_core(column) || !has_threads {
                cores.push(column.lengths.summary(core));
            }
        }
        for column in self.columns.iter().filter(|column| has_threads && !of_core(column)) {
            let name = if column.what == What::Interrupt { latency::UNTIL_INTERRUPT } else { latency::UNTIL_USER };
            let part = Counted { cause: Cause::new(Kind::Interrupt, name), amount: column.lengths.sum(), time: true };
            cores.iter_mut().filter(|core| core.core == column.core).for_each(|core| core.counted.push(part.clone()));
        }
        (cores, notes)
    }
}
