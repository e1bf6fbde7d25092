//! Metrics and events as arrays of NumPy: one for each value, with an element for each region and part of it.
//!
//! The file is an archive, as `numpy.savez` makes it: an entry for each column, in the format of `numpy.lib.format`, version 1.0, a header
//! with type and length and then the values. `numpy.load(FILE)["gflops"]` reads one.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};

use fxscope_pmu::{Evaluation, Metrics, Values};
use fxscope_record::{Region, Run};
use rayon::prelude::*;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::{By, Options};

/// How an entry begins: its magic text and the version of its format.
const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
/// Values begin at a multiple of this in their entry.
const ALIGNMENT: usize = 64;

/// A column: its name and its values, one for each row.
#[derive(Clone)]
struct Column {
    name: String,
    cells: Cells,
}

/// The values of a column.
#[derive(Clone)]
enum Cells {
    /// Numbers of runs, processes, threads and cores.
    Places(Vec<u32>),
    /// Names.
    Texts(Vec<String>),
    /// Counts that all rows have.
    Counts(Vec<i64>),
    /// Numbers; those that are not known are none (NaN).
    Numbers(Vec<f64>),
}

/// The rows of a region.
struct Rows {
    region: String,
    /// Process, thread, node and core of threads; process and CMG of those on a CMG; process.
    places: Vec<Vec<u32>>,
    events: BTreeMap<String, Vec<Option<u64>>>,
    /// For each metric, in the order of all metrics.
    metrics: Vec<Vec<f64>>,
}

/// Returns the metrics of runs, and of threads also their events: a row for each thread, CMG or process of each region, as
/// `options` ask for.
///
/// # Errors
/// If a metric has the name of a column that says what a row is, or a region that is asked for is missing.
pub fn render(runs: &[Run], options: &Options) -> Result<Vec<u8>, String> {
    let mut rows = Vec::new();
    for (number, run) in (1..).zip(runs) {
        let run = crate::at_level(run, options.level);
        let of_run: Vec<Rows> =
            crate::regions(&run, options)?.par_iter().map(|region| Rows::of(&run, region, options.by)).collect();
        rows.extend(of_run.into_iter().map(|rows| (number, rows)));
    }
    archive(&columns(&rows, options.by)?).map_err(|e| format!("the columns cannot be packed ({e})"))
}

/// Returns what identifies a row in its region.
fn keys(by: By) -> &'static [&'static str] {
    match by {
        By::Thread => &["process", "thread", "node", "cpu"],
        By::Cmg => &["process", "cmg"],
        By::Process => &["process"],
    }
}

impl Rows {
    fn of(run: &Run, region: &Region, by: By) -> Rows {
        let evaluation = Evaluation::new(run, region);
        let (places, values): (Vec<_>, Vec<Values>) = match by {
            By::Thread => {
                let places = region.threads.iter().map(|t| vec![t.process, t.thread, t.node, t.cpu]);
                places.zip(evaluation.threads()).unzip()
            }
            By::Cmg => evaluation.cmgs().into_iter().map(|(team, of)| (vec![team.process, team.cmg], of)).unzip(),
            By::Process => evaluation.processes().map(|process| vec![process]).zip(evaluation.of_processes()).unzip(),
        };
        let number = Metrics::built_in().all().count();
        let mut metrics = vec![vec![f64::NAN; values.len()]; number];
        for (row, values) in values.iter().enumerate() {
            for (column, value) in metrics.iter_mut().zip(values.in_order()) {
                column[row] = value.unwrap_or(f64::NAN);
            }
        }
        let events = if by == By::Thread { events(region) } else { BTreeMap::new() };
        Rows { region: region.name.clone(), places, events, metrics }
    }

    fn len(&self) -> usize {
        self.places.len()
    }
}

/// Returns the counts of a region's threads by event.
fn events(region: &Region) -> BTreeMap<String, Vec<Option<u64>>> {
    let threads = region.threads.len();
    let of_event = |counts: &mut dyn Iterator<Item = (usize, u64)>| {
        let mut all = vec![None; threads];
        counts.for_each(|(thread, count)| all[thread] = Some(count));
        all
    };
    region.tallies().columns(threads).map(|(name, mut counts)| (name.to_owned(), of_event(&mut counts))).collect()
}

/// Returns all columns: what identifies a row, events, then metrics that some row has.
fn columns(rows: &[(u32, Rows)], by: By) -> Result<Vec<Column>, String> {
    let mut columns = identifying(rows, by);
    let values = [of_events(rows), of_metrics(rows)].concat();
    if let Some(column) = values.iter().find(|column| columns.iter().any(|other| other.name == column.name)) {
        return Err(format!(
            "metric '{}': a column that says what a row is has this name; rename the metric",
            column.name
        ));
    }
    columns.extend(values);
    Ok(columns)
}

/// Returns the columns that say what a row is.
fn identifying(rows: &[(u32, Rows)], by: By) -> Vec<Column> {
    let column = |name: &str, cells| Column { name: name.to_owned(), cells };
    let runs = rows.iter().flat_map(|(run, rows)| std::iter::repeat_n(*run, rows.len())).collect();
    let regions = rows.iter().flat_map(|(_, rows)| std::iter::repeat_n(rows.region.clone(), rows.len())).collect();
    let mut columns = vec![column("run", Cells::Places(runs)), column("region", Cells::Texts(regions))];
    for (i, key) in keys(by).iter().enumerate() {
        let places = rows.iter().flat_map(|(_, rows)| rows.places.iter().map(move |place| place[i]));
        columns.push(column(key, Cells::Places(places.collect())));
    }
    columns
}

fn of_events(rows: &[(u32, Rows)]) -> Vec<Column> {
    let names: BTreeMap<&str, ()> =
        rows.iter().flat_map(|(_, rows)| rows.events.keys().map(|name| (name.as_str(), ()))).collect();
    let of_event = |name: &&str| {
        let counts = rows.iter().flat_map(|(_, rows)| match rows.events.get(*name) {
            Some(counts) => counts.clone(),
            None => vec![None; rows.len()],
        });
        let counts: Vec<Option<u64>> = counts.collect();
        let integer = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let cells = match counts.iter().map(|count| count.map(integer)).collect::<Option<Vec<i64>>>() {
            Some(all) => Cells::Counts(all),
            None => Cells::Numbers(counts.iter().map(|count| count.map_or(f64::NAN, |count| count as f64)).collect()),
        };
        Column { name: (*name).to_owned(), cells }
    };
    names.keys().collect::<Vec<_>>().into_par_iter().map(of_event).collect()
}

fn of_metrics(rows: &[(u32, Rows)]) -> Vec<Column> {
    let of_metric = |(place, metric): (usize, &fxscope_pmu::Metric)| {
        let numbers: Vec<f64> = rows.iter().flat_map(|(_, rows)| rows.metrics[place].iter().copied()).collect();
        let is_known = numbers.iter().any(|number| !number.is_nan());
        is_known.then(|| Column { name: metric.name.clone(), cells: Cells::Numbers(numbers) })
    };
    Metrics::built_in().all().enumerate().collect::<Vec<_>>().into_par_iter().filter_map(of_metric).collect()
}

/// Returns an archive with an entry for each column, neither compressed nor dated.
fn archive(columns: &[Column]) -> zip::result::ZipResult<Vec<u8>> {
    let entries: Vec<Vec<u8>> = columns.par_iter().map(|column| column.cells.entry()).collect();
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let stored = stored.last_modified_time(DateTime::default());
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (column, entry) in columns.iter().zip(entries) {
        archive.start_file(format!("{}.npy", column.name), stored)?;
        archive.write_all(&entry)?;
    }
    Ok(archive.finish()?.into_inner())
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::Places(all) => all.len(),
            Cells::Texts(all) => all.len(),
            Cells::Counts(all) => all.len(),
            Cells::Numbers(all) => all.len(),
        }
    }

    /// Returns the entry that has them: a header, which spaces and a line feed fill, and their bytes.
    fn entry(&self) -> Vec<u8> {
        let (kind, bytes) = self.bytes();
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({},), }}", self.len());
        let before = MAGIC.len() + size_of::<u16>();
        let length = (before + header.len() + 1).next_multiple_of(ALIGNMENT) - before;
        let header = format!("{header:0$}\n", length - 1);
        [MAGIC, &(length as u16).to_le_bytes(), header.as_bytes(), &bytes].concat()
    }

    /// Returns their type, as NumPy names it, and their bytes.
    fn bytes(&self) -> (String, Vec<u8>) {
        match self {
            Cells::Places(all) => ("<i4".to_owned(), all.iter().flat_map(|place| place.to_le_bytes()).collect()),
            Cells::Counts(all) => ("<i8".to_owned(), all.iter().flat_map(|count| count.to_le_bytes()).collect()),
            Cells::Numbers(all) => ("<f8".to_owned(), all.iter().flat_map(|number| number.to_le_bytes()).collect()),
            Cells::Texts(all) => {
                // UTF-32 of a fixed length, filled with zeros.
                let most = all.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1);
                let letters = |text: &String| {
                    let letters: Vec<u32> =
                        text.chars().map(u32::from).chain(std::iter::repeat(0)).take(most).collect();
                    letters
                };
                (format!("<U{most}"), all.iter().flat_map(letters).flat_map(u32::to_le_bytes).collect())
            }
        }
    }
}
