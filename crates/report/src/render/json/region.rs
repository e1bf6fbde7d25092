//! One region as JSON, written as it is evaluated.

use std::collections::BTreeMap;

use fxscope_pmu::sampled::half_widths_of_events;
use fxscope_pmu::{Cell, Cells, Column, Evaluation, Events, Metric, Metrics, Sampled, Values, scope};
use fxscope_record::{Region, Run, Tallies};
use serde::ser::{Serialize, SerializeMap as _, Serializer};

use super::verdict::value;
use crate::verdict::verdict;
use crate::{By, Level, Options};

/// A region, with the requested parts.
pub(super) struct RegionJson<'a> {
    pub run: &'a Run,
    pub region: &'a Region,
    pub events: &'a Events,
    pub options: &'a Options,
}

impl Serialize for RegionJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let region = self.region;
        let evaluation = Evaluation::new(self.run, region);
        let by = self.options.by;
        let verdict = verdict(self.run, region, &evaluation, self.options.hottest);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &region.name)?;
        map.serialize_entry("calls", &region.calls)?;
        map.serialize_entry("verdict", &value(verdict.as_ref()))?;
        map.serialize_entry("events", &scope::totals(self.events, region, &self.run.constants))?;
        map.serialize_entry("metrics", &OfMetrics(evaluation.total()))?;
        if let Some(sampled) = Sampled::of(self.run, region) {
            let events = half_widths_of_events(self.run, region);
            let (metrics, columns) = (OfSampled(&sampled), OfSampledColumns(&sampled));
            map.serialize_entry("half_widths", &HalfWidths { events, metrics, columns })?;
        }
        let processes = evaluation.processes().zip(evaluation.of_processes());
        let processes = processes.map(|(process, values)| OfProcess { process, metrics: OfMetrics(values) });
        map.serialize_entry("processes", &processes.collect::<Vec<_>>())?;
        if by != By::Process {
            let cmgs = evaluation.cmgs().into_iter();
            let cmgs = cmgs.map(|(t, values)| OfCmg { process: t.process, cmg: t.cmg, metrics: OfMetrics(values) });
            map.serialize_entry("cmgs", &cmgs.collect::<Vec<_>>())?;
        }
        if by == By::Thread {
            map.serialize_entry("threads", &threads(region, &region.tallies(), &evaluation))?;
        }
        map.serialize_entry("tables", &Tables { evaluation: &evaluation, by })?;
        if self.options.level == Level::Detailed {
            map.serialize_entry("missing", &Missing(&evaluation))?;
        }
        map.end()
    }
}

/// For each column without a value, the events that it needs.
struct Missing<'a>(&'a Evaluation<'a>);

impl Serialize for Missing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = Metrics::built_in().tables().iter().flat_map(|table| &table.columns);
        let lacking = columns.map(|column| (&column.id, self.0.missing_in(column)));
        serializer.collect_map(lacking.filter(|(_, events)| !events.is_empty()))
    }
}

#[derive(serde::Serialize)]
struct OfProcess {
    process: u32,
    metrics: OfMetrics,
}

#[derive(serde::Serialize)]
struct OfCmg {
    process: u32,
    cmg: u32,
    metrics: OfMetrics,
}

#[derive(serde::Serialize)]
struct OfThread<'a> {
    process: u32,
    thread: u32,
    node: u32,
    cpu: u32,
    events: OfEvents<'a>,
    metrics: OfMetrics,
}

fn threads<'a>(region: &Region, tallies: &'a Tallies<'a>, evaluation: &Evaluation) -> Vec<OfThread<'a>> {
    let threads = region.threads.iter().zip(evaluation.threads()).enumerate();
    let thread = |(i, (t, values)): (usize, (&fxscope_record::Thread, Values))| OfThread {
        process: t.process,
        thread: t.thread,
        node: t.node,
        cpu: t.cpu,
        events: OfEvents(tallies, i),
        metrics: OfMetrics(values),
    };
    threads.map(thread).collect()
}

/// A thread's counts by event name.
struct OfEvents<'a>(&'a Tallies<'a>, usize);

impl Serialize for OfEvents<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.row(self.1))
    }
}

/// The metrics that have a value, by name.
struct OfMetrics(Values);

impl Serialize for OfMetrics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(metric, value)| (&metric.name, value)))
    }
}

/// Half widths of the intervals of metrics, by name.
struct OfSampled<'a>(&'a Sampled);

impl Serialize for OfSampled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let half = |metric: &'static Metric| Some((&metric.name, self.0.of_metric(&metric.name)?));
        serializer.collect_map(Metrics::built_in().all().filter_map(half))
    }
}

/// Half widths of the intervals of the totals in tables, by the columns' identifiers.
struct OfSampledColumns<'a>(&'a Sampled);

impl Serialize for OfSampledColumns<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = Metrics::built_in().tables().iter().flat_map(|table| &table.columns);
        serializer.collect_map(columns.filter_map(|column| Some((&column.id, self.0.of_column(&column.id)?))))
    }
}

/// Half widths of all intervals of a region's totals; what is exact is absent.
#[derive(serde::Serialize)]
struct HalfWidths<'a> {
    events: BTreeMap<String, f64>,
    metrics: OfSampled<'a>,
    columns: OfSampledColumns<'a>,
}

/// The columns of the CPU performance analysis report by identifier, without empty ones.
struct Tables<'a> {
    evaluation: &'a Evaluation<'a>,
    by: By,
}

impl Serialize for Tables<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for column in Metrics::built_in().tables().iter().flat_map(|table| &table.columns) {
            let cells = self.evaluation.column(column);
            if cells.threads.iter().chain(&cells.cmgs).chain([&cells.total]).any(Option::is_some) {
                map.serialize_entry(&column.id, &OfColumn { column, cells: &cells, by: self.by })?;
            }
        }
        map.end()
    }
}

/// A column of a table.
struct OfColumn<'a> {
    column: &'a Column,
    cells: &'a Cells,
    by: By,
}

impl Serialize for OfColumn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("title", &self.cells.title)?;
        map.serialize_entry("unit", &self.column.unit)?;
        if self.column.threads && self.by == By::Thread {
            map.serialize_entry("threads", &OfCells(&self.cells.threads))?;
        }
        if self.column.totals {
            if self.by != By::Process {
                map.serialize_entry("cmgs", &OfCells(&self.cells.cmgs))?;
            }
            map.serialize_entry("processes", &OfCells(&self.cells.processes))?;
            map.serialize_entry("total", &self.cells.total.map(|cell| cell.value))?;
        }
        map.end()
    }
}

/// Cells as numbers; `null` without a value.
struct OfCells<'a>(&'a [Option<Cell>]);

impl Serialize for OfCells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|cell| cell.map(|cell| cell.value)))
    }
}
