//! Counts by interval of time.

use std::collections::{BTreeMap, BTreeSet};

use fxscope_record::{Interval, Intervals, Names, Region};

use crate::rows::{Rows, Who, thread};
use crate::{FileError, Machine, Source};

/// The intervals of a file, in order of time.
#[derive(Default)]
pub(crate) struct Series(Vec<Part>);

/// An interval, with its first line.
struct Part {
    end_ns: u64,
    line: usize,
    rows: Rows,
    /// Events that had nothing to count in it.
    idle: BTreeSet<String>,
}

impl Series {
    /// Adds the count of a line, by number, to the interval that ends at `seconds`; `None` if there was nothing to count. Fails if the
    /// interval is not in order.
    pub(crate) fn add(
        &mut self,
        (line, seconds): (usize, f64),
        who: &Who,
        event: &str,
        count: Option<u64>,
    ) -> Result<(), String> {
        let end_ns = (seconds * 1e9).round() as u64;
        match self.0.last() {
            Some(last) if last.end_ns == end_ns => {}
            Some(last) if last.end_ns > end_ns => {
                let what = "give one file for each measurement, as written by the tool";
                return Err(format!("the interval to {seconds} s comes after a later one: {what}"));
            }
            _ => self.0.push(Part { end_ns, line, rows: Rows::default(), idle: BTreeSet::new() }),
        }
        let part = self.0.last_mut().expect("pushed above");
        match count {
            Some(count) => part.rows.add(who, event.to_owned(), count),
            None => {
                part.idle.insert(event.to_owned());
                Ok(())
            }
        }
    }

    /// Removes the counts of an event.
    pub(crate) fn remove(&mut self, event: &str) {
        for part in &mut self.0 {
            part.rows.remove(event);
            part.idle.remove(event);
        }
    }

    /// Counts of all threads of a region by interval; `None` if there are none.
    pub(crate) fn finish(
        self,
        region: &str,
        source: &Source<'_>,
        machine: &Machine,
    ) -> Result<Option<Intervals>, FileError> {
        let counted = |part: &Part| part.rows.counts.values().flat_map(BTreeMap::keys).cloned().collect::<Vec<_>>();
        let names: Names = self.0.iter().flat_map(counted).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let rows = self.0.iter().map(|part| part.row(&names, machine).map_err(|what| part.problem(source, what)));
        Ok(Some(Intervals { pass: 0, region: region.to_owned(), rows: rows.collect::<Result<_, _>>()?, names }))
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
