//! Experiments that other laboratories make.

use fxscope_jitter::linpack::memory;
use fxscope_report::document::{Body, Row, Value};
use fxscope_report::sheet::{Cell, Column, Sheet, Table};
use fxscope_session::Scenario;

use super::data::{Laboratory, Latency, Noise, Prefetched};
use super::runs::Settings;
use crate::latency::{CheckOptions, PredictOptions, Subject, check_set};
use crate::pages::experiment;
use crate::{Error, Progress, jitter, prefetched};

/// Memory of a node of the machine whose LINPACK is estimated, where its file gives none.
const NODE_MEMORY: &str = "32GiB";
/// Length of the intervals of runs whose memory becomes slower, nanoseconds.
const INTERVAL_NS: u64 = 100_000;

/// Makes the experiment and returns what it has found.
pub(super) fn sheet(what: &Laboratory, settings: &Settings<'_>, progress: &dyn Progress) -> Result<Sheet, Error> {
    match what {
        Laboratory::Pages(name) => pages(name, settings, progress),
        Laboratory::Linpack(machine) => jitter::linpack(&jitter::LinpackOptions {
            machine: machine.clone(),
            nodes: Vec::new(),
            memory: memory(NODE_MEMORY)?,
            fill: None,
            n: None,
            model: None,
            seed: 1,
        }),
        Laboratory::Noise(noise) => of_noise(noise),
        Laboratory::Latency(latency) => slower(latency, settings, progress),
        Laboratory::Prefetched(prefetched) => of_stream(prefetched),
    }
}

/// An experiment about page sizes.
fn pages(name: &str, settings: &Settings<'_>, progress: &dyn Progress) -> Result<Sheet, Error> {
    let options = experiment::Options { jobs: settings.jobs, ..experiment::Options::new(settings.programs.folder()) };
    let outcome = experiment::named(name)?.run(&options, progress)?;
    Ok(outcome.sheet())
}

/// Phases under each noise model, one sheet after the other.
fn of_noise(noise: &Noise) -> Result<Sheet, Error> {
    let mut all = Sheet::default();
    for model in &noise.models {
        let options = jitter::Options {
            cores_per_node: noise.cores_per_node,
            network: noise.network.clone(),
            ..jitter::Options::new(model.clone(), noise.nodes.clone())
        };
        let sheet = jitter::simulate(&options)?;
        let with_model = |table: Table| Table { title: format!("{model}: {}", table.title), ..table };
        all.tables.extend(sheet.tables.into_iter().map(with_model));
        all.plots.extend(sheet.plots);
        all.notes.extend(sheet.notes);
    }
    Ok(all)
}

/// Programs with slower memory.
fn slower(latency: &Latency, settings: &Settings<'_>, progress: &dyn Progress) -> Result<Sheet, Error> {
    let subject = |subject: &super::data::Subject| Subject {
        name: subject.name.clone(),
        fit: false,
        scenario: Scenario::new(settings.programs.folder().join(format!("{}.elf", subject.program)))
            .with_machine(&latency.machine)
            .with_arguments(subject.arguments.split_whitespace()),
        options: PredictOptions {
            latencies: latency.latencies.clone(),
            region: Some(subject.region.clone()),
            threads: None,
        },
        interval_ns: INTERVAL_NS,
        refuses: None,
    };
    let subjects: Vec<Subject> = latency.programs.iter().map(subject).collect();
    let options = CheckOptions { jobs: settings.jobs, cache: settings.cache.clone(), fit: false };
    let checked = check_set(&[], &subjects, &options, progress)?;
    if let Some(why) = checked.failed.into_iter().next() {
        return Err(why.into());
    }
    let tables = checked.document.sections.into_iter().filter_map(|section| match section.body {
        Body::Table { headings, rows } => Some(table(section.title, headings, rows)),
        _ => None,
    });
    Ok(Sheet { tables: tables.collect(), plots: checked.plots, ..Sheet::default() })
}

/// A table of a document as one of a sheet.
fn table(title: String, headings: Vec<String>, rows: Vec<Row>) -> Table {
    let cell = |value: Option<Value>| match value {
        Some(Value::Number(number, unit)) => Cell::new(number, format!("{} {unit}", fxscope_report::digits(number))),
        Some(Value::Estimate(number, unit, _)) => {
            Cell::new(number, format!("{} {unit}", fxscope_report::digits(number)))
        }
        Some(Value::Share(share)) => Cell::share(share),
        Some(Value::Text(text)) => Cell::word(text),
        None => Cell::none(),
    };
    let rows = rows.into_iter().map(|row| (row.label, row.values.into_iter().map(cell).collect()));
    Table::new(title, headings).with_rows(rows)
}

/// The lines that a stream prefetches, beside those of the source.
fn of_stream(what: &Prefetched) -> Result<Sheet, Error> {
    let number = u32::try_from(what.published.len()).unwrap_or(u32::MAX);
    let hits = prefetched::stream(prefetched::DEFAULT_MACHINE, Some(what.l1), Some(what.l2), number)?;
    let mut agree = 0;
    let columns = ["access", "into L2, published", "into L2, simulated", "into L1, published", "into L1, simulated"];
    let mut table = Table::new("Lines prefetched behind the first miss, A", columns.map(Column::new));
    for (hit, [l2, l1]) in hits.iter().zip(&what.published) {
        agree += usize::from(hit.l2 == *l2 && hit.l1 == *l1);
        table.push(
            format!("A+{}", hit.line),
            vec![l2, &hit.l2, l1, &hit.l1]
                .into_iter()
                .map(|lines| Cell::new(lines, prefetched::lines(lines)))
                .collect(),
        );
    }
    let note = format!("{agree} of {} accesses prefetch the published lines.", what.published.len());
    Ok(Sheet { tables: vec![table], notes: vec![("Agreement", vec![note])], ..Sheet::default() })
}

impl experiment::Outcome {
    /// Returns the results as a sheet.
    fn sheet(&self) -> Sheet {
        let findings = &self.findings;
        let columns = ["figure", "row", "published", "simulated", "difference"];
        let published = findings.published.iter().map(|figure| {
            let text = |number: f64| format!("{} {}", fxscope_report::digits(number), figure.unit);
            let here = figure.here.map_or_else(Cell::none, |here| Cell::new(here, text(here)));
            let error = figure.error().map_or_else(Cell::none, |error| Cell::new(error, format!("{error:+.1} %")));
            (figure.what.clone(), vec![Cell::word(figure.id), Cell::new(figure.value, text(figure.value)), here, error])
        });
        let comparison = Table::new("Published figures", columns).with_rows(published.collect::<Vec<_>>());
        let comparison = (!comparison.rows.is_empty()).then_some(comparison);
        Sheet {
            title: String::new(),
            tables: comparison.into_iter().chain(findings.tables.clone()).collect(),
            notes: vec![("Seen", findings.seen.clone())],
            plots: findings.plots.clone(),
            bars: Vec::new(),
        }
    }
}
