//! The counts of one file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fxscope_record::ALL;

use super::{Contents, Line};
use crate::events::{are_instances, per_unit};
use crate::intervals::Series;
use crate::losses::{Losses, refused};
use crate::number::Marks;
use crate::rows::{Pass, Who};
use crate::{FileError, Machine, Options, Source, event_name};

/// What the lines of a file have given so far.
struct Taking<'a> {
    machine: &'a Machine,
    options: &'a Options,
    marks: Marks,
    losses: Losses,
    seen: Seen,
    pass: Pass,
    /// The series of each control group.
    series: BTreeMap<String, Series>,
    /// Events that lack a count in some interval, by control group: sums over intervals would be too small.
    incomplete: BTreeSet<(String, String)>,
    /// Whether perf has written sums over the intervals.
    summed: bool,
    /// Quantities in units that are no counts of events.
    quantities: BTreeSet<String>,
    /// Elapsed seconds.
    seconds: Option<f64>,
}

/// Reads the counts of one file.
pub(super) fn of(
    source: &Source<'_>,
    contents: Contents<'_>,
    machine: &Machine,
    options: &Options,
) -> Result<Pass, FileError> {
    let marks = contents.marks();
    let last = || contents.lines.iter().rev().find_map(|line| line.interval.as_deref());
    let seconds = contents.seconds.or_else(last).and_then(|text| marks.real(text).ok());
    let mut taking = Taking {
        machine,
        options,
        marks,
        losses: Losses::new(options.strict),
        seen: Seen::default(),
        pass: Pass { command: contents.command, ..Pass::default() },
        series: BTreeMap::new(),
        incomplete: BTreeSet::new(),
        summed: contents.lines.iter().any(|line| line.summary),
        quantities: BTreeSet::new(),
        seconds,
    };
    for line in &contents.lines {
        taking.take(line).map_err(|what| source.problem(Some(line.number), what))?;
    }
    taking.finish(source)
}

impl Taking<'_> {
    fn take(&mut self, line: &Line<'_>) -> Result<(), String> {
        let name = self.name(line);
        if line.is_idle(self.marks) {
            return self.add_to_series(line, &name, None);
        }
        if let Some(why) = line.absence() {
            self.losses.lose(&line.event, why)?;
            if line.interval.is_some() {
                self.incomplete.insert((line.cgroup.to_owned(), name));
            }
            return Ok(());
        }
        if line.event == "duration_time" {
            if line.interval.is_none() {
                self.seconds = self.marks.real(line.value).ok().map(|ns| ns * 1e-9);
            }
            return Ok(());
        }
        let Some(count) = self.count(line)? else { return Ok(()) };
        let Some(name) = self.seen.name(line, name, &mut self.losses)? else { return Ok(()) };
        self.add_to_series(line, &name, Some(count))?;
        // Sums that perf has written replace those of its intervals.
        if line.interval.is_none() || !self.summed {
            self.pass.region(region(line.cgroup)).add(&line.who, name, count)?;
        }
        Ok(())
    }

    fn name(&self, line: &Line<'_>) -> String {
        event_name(&self.machine.pmu.events, &line.event)
    }

    /// The count of a line; `None` for a quantity that is no count. Fails if it is invalid.
    fn count(&mut self, line: &Line<'_>) -> Result<Option<u64>, String> {
        let Line { value, event, unit, .. } = line;
        let count = if unit.is_empty() {
            self.losses.count(self.marks, value, event)?
        } else if let Some(per_unit) = per_unit(event, unit) {
            let amount = self.marks.real(value).map_err(|refusal| refused(refusal, value, event))?;
            self.losses.lose(event, &format!("was written in {unit} with few digits, so that its count is rounded"))?;
            (amount * per_unit).round().max(0.0) as u64
        } else {
            self.quantities.insert(format!("{event} ({unit})"));
            return Ok(None);
        };
        if !line.is_exact(self.marks) && !self.options.scaled {
            return Err(format!(
                "{event} had a counter for {} % of the time only, so that its count is an estimate: count fewer events at a \
                 time, or take the estimate with --scaled",
                line.percent(self.marks).unwrap_or_default()
            ));
        }
        Ok(Some(count))
    }

    fn add_to_series(&mut self, line: &Line<'_>, name: &str, count: Option<u64>) -> Result<(), String> {
        let Some(text) = line.interval.as_deref() else { return Ok(()) };
        let seconds = self.marks.real(text).ok().filter(|seconds| (0.0..1e9).contains(seconds));
        let seconds = seconds.ok_or_else(|| format!("'{text}' is not a time in seconds at which an interval ends"))?;
        let series = self.series.entry(line.cgroup.to_owned()).or_default();
        series.add((line.number, seconds), &line.who, name, count)
    }

    fn finish(mut self, source: &Source<'_>) -> Result<Pass, FileError> {
        for (cgroup, event) in &self.incomplete {
            if !self.summed {
                self.pass.region(region(cgroup)).remove(event);
            }
            self.series.entry(cgroup.clone()).or_default().remove(event);
        }
        let Taking { machine, mut pass, series, losses, seen, seconds, quantities, .. } = self;
        let who = pass
            .regions
            .iter()
            .find_map(|rows| rows.counts.iter().find(|(_, row)| !row.is_empty()))
            .map(|(who, _)| who);
        let lost: Vec<String> = losses.notes().collect();
        let note = match who {
            None => {
                let why = lost.iter().map(|note| format!(": {note}")).collect::<String>();
                return Err(source.problem(None, format!("has no counts of perf stat{why}")));
            }
            Some(Who::Program) => Some("perf counted all threads of the program together"),
            Some(Who::Thread { .. } | Who::Rank { .. }) => Some("perf did not report the CPUs of threads"),
            Some(Who::Cpu(_)) => None,
        };
        if let Some(seconds) = seconds {
            pass.regions.iter_mut().for_each(|rows| rows.set_seconds(None, seconds, machine));
        }
        for (cgroup, series) in series {
            pass.intervals.extend(series.finish(region(&cgroup), source, machine)?);
        }
        if !quantities.is_empty() {
            let list = quantities.into_iter().collect::<Vec<_>>().join(", ");
            pass.notes.push(format!("no counts of events, and left out: {list}"));
        }
        let estimates = self.options.scaled.then_some("counts may be estimates: events were multiplexed (--scaled)");
        pass.notes.extend(note.into_iter().chain(estimates).map(str::to_owned).chain(seen.twice).chain(lost));
        Ok(pass)
    }
}

/// The region of a control group; without one, the whole measurement.
fn region(cgroup: &str) -> &str {
    if cgroup.is_empty() { ALL } else { cgroup }
}

/// The events in the lines so far.
#[derive(Default)]
struct Seen {
    /// For each control group, thread and event: the name in its last line, and the interval.
    counted: HashMap<(String, Who, String), (String, Option<String>)>,
    /// Note about the first event that was counted several times at once.
    twice: Option<String>,
}

impl Seen {
    /// Returns the name under which the count of a line, of the event `name`, is kept: a second spelling of an event keeps
    /// its own. `None` if the count is not new.
    fn name(&mut self, line: &Line<'_>, name: String, losses: &mut Losses) -> Result<Option<String>, String> {
        let interval = line.interval.as_deref().map(str::to_owned);
        let key = |name: &str| (line.cgroup.to_owned(), line.who.clone(), name.to_owned());
        let known = self.counted.get(&key(&name)).map(|(event, _)| event.clone());
        let name = match known {
            Some(other) if other != line.event && !are_instances(&other, &line.event) => {
                losses.lose(&line.event, &format!("is {name} as well as {other}, and keeps its own name"))?;
                line.event.clone()
            }
            _ => name,
        };
        let before = self.counted.insert(key(&name), (line.event.clone(), interval.clone()));
        match before {
            Some((event, before)) if event == line.event && before == interval => {
                let what = "was counted several times at once; the first count is taken";
                self.twice.get_or_insert_with(|| format!("{name} {what}"));
                Ok(None)
            }
            _ => Ok(Some(name)),
        }
    }
}
