//! Counts by interval from `perf stat -I`.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_record::{ALL, Interval, Intervals, Names, Region};

use super::Line;
use crate::rows::{Rows, thread};
use crate::{FileError, Machine, Source};

/// The intervals of a file, in order of time.
#[derive(Default)]
pub(super) struct Series(Vec<Part>);

/// An interval, with its first line.
struct Part {
    end_ns: u64,
    line: usize,
    rows: Rows,
    /// Events that had nothing to count in it.
    idle: BTreeSet<String>,
}

impl Series {
    /// Adds the count of a line, if it belongs to an interval; `None` if there was nothing to count. Fails if the
    /// interval is invalid.
    pub(super) fn add(&mut self, line: &Line<'_>, event: &str, count: Option<u64>) -> Result<(), String> {
        let Some(seconds) = line.interval else { return Ok(()) };
        if !(0.0..1e9).contains(&seconds) {
            return Err(format!("'{seconds}' is not a time in seconds at which an interval ends"));
        }
        let end_ns = (seconds * 1e9).round() as u64;
        match self.0.last() {
            Some(last) if last.end_ns == end_ns => {}
            Some(last) if last.end_ns > end_ns => {
                let what = "give one file for each measurement, as written by perf";
                return Err(format!("the interval to {seconds} s comes after a later one: {what}"));
            }
            _ => self.0.push(Part { end_ns, line: line.number, rows: Rows::default(), idle: BTreeSet::new() }),
        }
        let part = self.0.last_mut().expect("pushed above");
        match count {
            Some(count) => part.rows.add(&line.who, event.to_owned(), count),
            None => {
                part.idle.insert(event.to_owned());
                Ok(())
            }
        }
    }

    /// Counts of all threads by interval; `None` if the file has no intervals.
    pub(super) fn finish(self, source: &Source<'_>, machine: &Machine) -> Result<Option<Intervals>, FileError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let counted = |part: &Part| part.rows.counts.values().flat_map(BTreeMap::keys).cloned().collect::<Vec<_>>();
        let names: Names = self.0.iter().flat_map(counted).collect();
        let rows = self.0.iter().map(|part| part.row(&names, machine).map_err(|what| part.problem(source, what)));
        Ok(Some(Intervals { pass: 0, region: ALL.to_owned(), rows: rows.collect::<Result<_, _>>()?, names }))
    }
}

impl Part {
    fn problem(&self, source: &Source<'_>, what: String) -> FileError {
        source.problem(Some(self.line), what)
    }

    /// The counts of these names. Fails if one is missing.
    fn row(&self, names: &Names, machine: &Machine) -> Result<Interval, String> {
        let rows = self.rows.counts.iter().enumerate().map(|(i, (who, row))| (thread(i, who), row.clone())).collect();
        let region = Region::of_one_pass("", 1, rows);
        let totals = fxscope_pmu::scope::totals(&machine.pmu.events, &region, &machine.constants);
        let count = |name: &str| match totals.get(name) {
            Some(&count) => Ok(count),
            None if self.idle.contains(name) => Ok(0),
            None => {
                let seconds = self.end_ns as f64 / 1e9;
                Err(format!("the interval to {seconds} s lacks {name}, which others have: lines are missing there"))
            }
        };
        Ok(Interval { end_ns: self.end_ns, counts: names.iter().map(count).collect::<Result<_, _>>()? })
    }
}
