//! Values of a region's metrics, in total and by part.

use std::collections::BTreeSet;
use std::sync::Arc;

use fxscope_pmu::{CLOCKS, Cell, Cells, Column, Evaluation, KERNEL, Metrics, Sampled, Table, Team};
use fxscope_record::{Counts, Names, Region, Run};

use crate::document::{Place, ProcessName};
use crate::{By, Level, Options};

/// The metrics of a region, and the parts of it that have rows.
pub(crate) struct Evaluated<'a> {
    pub evaluation: Evaluation<'a>,
    /// Its parts in the order of rows: parts before their totals.
    pub places: Vec<Place>,
    /// How well its totals are known, in a sampled run.
    pub sampled: Option<Sampled>,
    by: By,
}

impl<'a> Evaluated<'a> {
    pub fn of(run: &'a Run, region: &'a Region, options: &Options) -> Evaluated<'a> {
        let evaluation = Evaluation::new(run, region);
        let by = options.by;
        let name = |number| ProcessName::of(run, number);
        let mut places = Vec::new();
        if by == By::Thread {
            let thread =
                |t: &fxscope_record::Thread| Place::Thread { process: name(t.process), thread: t.thread, cpu: t.cpu };
            places.extend(region.threads.iter().map(thread));
        }
        if shows_cmgs(by, &evaluation) {
            let cmg = |team: &Team| Place::Cmg { process: name(team.process), cmg: team.cmg };
            places.extend(evaluation.teams().iter().map(cmg));
        }
        if evaluation.processes().count() > 1 {
            places.extend(evaluation.processes().map(|number| Place::Process(name(number))));
        }
        places.push(Place::Total);
        Evaluated { evaluation, places, sampled: Sampled::of(run, region), by }
    }

    /// Returns the cells of a report column, one for each place, and its title.
    pub fn column(&self, column: &Column) -> (String, Vec<Option<Cell>>) {
        let Cells { title, threads, cmgs, processes, total } = self.evaluation.column(column);
        let threads = if self.by == By::Thread { threads } else { Vec::new() };
        let cmgs = if shows_cmgs(self.by, &self.evaluation) { cmgs } else { Vec::new() };
        let processes = if processes.len() > 1 { processes } else { Vec::new() };
        (title, threads.into_iter().chain(cmgs).chain(processes).chain([total]).collect())
    }

    /// Returns the cell of a column for all threads.
    pub fn total(&self, column: &Column) -> Option<Cell> {
        self.evaluation.column(column).total
    }
}

/// Returns whether CMGs have rows: if there are several, or if they are the smallest parts requested.
fn shows_cmgs(by: By, evaluation: &Evaluation) -> bool {
    by == By::Cmg || by == By::Thread && evaluation.teams().len() > 1
}

/// Returns a table of the report by letter.
pub(crate) fn table(id: &str) -> Option<&'static Table> {
    Metrics::built_in().tables().iter().find(|table| table.id == id)
}

/// Returns a column of the report by identifier.
pub(crate) fn column(id: &str) -> Option<&'static Column> {
    table(id.get(..1)?)?.columns.iter().find(|column| column.id == id)
}

/// Returns the counts of a run that a measurement of this level has.
pub(crate) fn at_level(run: &Run, level: Level) -> Run {
    let pmu = fxscope_pmu::of_run(run);
    let wanted: BTreeSet<&str> = pmu
        .groups
        .iter()
        .filter(|g| g.level <= level.number())
        .flat_map(|g| &g.events)
        .map(String::as_str)
        .chain(CLOCKS)
        // Cycle accounting starts with the brief level.
        .chain((level.number() > Level::Single.number()).then_some(KERNEL))
        .collect();
    let regions = run.regions.iter().map(|region| Region {
        passes: region.passes.iter().map(|pass| only(pass, region.threads.len(), &wanted)).collect(),
        ..region.clone()
    });
    Run { regions: regions.collect(), ..run.clone() }
}

/// The wanted counts of a pass.
fn only(pass: &Counts, threads: usize, wanted: &BTreeSet<&str>) -> Counts {
    let names: Names = pass.names().iter().filter(|name| wanted.contains(name)).map(str::to_owned).collect();
    let mut counts = Counts::new(Arc::new(names), threads);
    for thread in 0..threads {
        for (column, name) in counts.names().clone().iter().enumerate() {
            if let Some(count) = pass.get(thread, name) {
                counts.set(thread, column, count);
            }
        }
    }
    counts
}
