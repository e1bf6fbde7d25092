//! Fits as tables and as a machine file.

use std::fmt::Write as _;
use std::path::Path;

use fxscope_machine::schema::Value;
use fxscope_report::sheet::{Cell, Column, Sheet, Table};

use super::fit::{Agreement, Comparison, Fitted, Fitting, KeyResult, Outcome};
use super::measurements::Measurements;
use super::tables::{benchmarks, keys};

/// Decimals of times in ns.
const DIGITS: usize = 2;

/// Returns the benchmarks and the numbers that are fitted to them.
#[must_use]
pub fn benchmarks_sheet() -> Sheet {
    let what = |b: &super::Benchmark| (b.name.clone(), [&b.isolates, &b.gap].map(Cell::word).to_vec());
    let how = |b: &super::Benchmark| {
        let events = b.events.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ");
        (b.name.clone(), [&b.loop_name, &b.arguments, &b.threads, &events].map(Cell::word).to_vec())
    };
    let key = |k: &super::Key| (k.name.clone(), vec![Cell::word(k.quantity.to_string())]);
    Sheet {
        title: "Benchmarks of fxscope calibrate".to_owned(),
        tables: vec![
            Table::new("Benchmarks", ["benchmark", "isolates", "decides"]).with_rows(benchmarks().iter().map(what)),
            Table::new("Loops", ["benchmark", "loop", "arguments", "threads", "events"])
                .with_rows(benchmarks().iter().map(how)),
            Table::new("Fits, in their order", ["key", "time of an operation"]).with_rows(keys().iter().map(key)),
        ],
        ..Sheet::default()
    }
}

/// Returns the result of fits.
#[must_use]
pub fn sheet(fitting: &Fitting) -> Sheet {
    let mut tables = vec![key_table(fitting)];
    if !fitting.comparisons.is_empty() {
        tables.push(comparison_table(fitting));
    }
    let counts = count_table(fitting);
    if !counts.rows.is_empty() {
        tables.push(counts);
    }
    let left = fitting.keys.iter().filter_map(|result| match &result.outcome {
        Outcome::Left(why) => Some(format!("{}: {why}", result.key.name)),
        _ => None,
    });
    let options = settings(fitting);
    let proposed = if options.is_empty() { Vec::new() } else { vec![options] };
    Sheet {
        title: format!("Calibration of {} to {}", fitting.machine, fitting.measured.host.name),
        tables,
        notes: vec![
            ("Proposed", proposed),
            ("Left", left.collect()),
            ("Computer", computer(&fitting.measured)),
            ("No result", missing(fitting)),
        ],
        ..Sheet::default()
    }
}

/// Returns the proposed values as options of `fxscope run`; empty if there are none.
#[must_use]
pub fn settings(fitting: &Fitting) -> String {
    let set = |(result, fitted): (&KeyResult, &Fitted)| format!("--set {}={}", result.key.name, fitted.text);
    proposals(fitting).map(set).collect::<Vec<_>>().join(" ")
}

/// Returns the proposed values as a machine file that extends the machine, with the evidence of each. `measurements` is the file
/// of measurements, which is named without its folder.
#[must_use]
pub fn machine_file(fitting: &Fitting, measurements: &Path) -> String {
    let source = measurements.file_name().unwrap_or(measurements.as_os_str()).to_string_lossy();
    let host = &fitting.measured.host;
    let quoted = |text: &str| Value::Text(text.to_owned()).to_string();
    let mut out = format!("extends = {}\n", quoted(&extended(&fitting.machine)));
    for (result, fitted) in proposals(fitting) {
        let Agreement { measured, simulated } = fitted.before;
        let after = fitted.simulated;
        let source = format!(
            "{source}, host {}, kernel {}: {} takes {measured:.DIGITS$} ns, simulated {after:.DIGITS$} ns",
            host.name, host.kernel, result.key.quantity
        );
        let confidence = fitted.confidence().word();
        let why = format!(
            "with {}, {simulated:.DIGITS$} ns; to {:.2} {} (confidence {confidence})",
            result.today, fitted.uncertainty, result.unit
        );
        let _ = write!(
            out,
            "\n[{}]\nvalue = {}\nevidence = \"fitted\"\nsource = {}\nwhy = {}\nwould_close = \"the same measurement on other machines\"\n",
            result.key.name,
            fitted.text,
            quoted(&source),
            quoted(&why)
        );
    }
    out
}

/// Returns a machine as other files can name it: by its name, or by its whole path.
fn extended(machine: &str) -> String {
    if fxscope_machine::names().any(|name| name == machine) {
        return machine.to_owned();
    }
    std::fs::canonicalize(machine).map_or_else(|_| machine.to_owned(), |path| path.display().to_string())
}

fn proposals(fitting: &Fitting) -> impl Iterator<Item = (&KeyResult, &Fitted)> {
    fitting.keys.iter().filter_map(|result| match &result.outcome {
        Outcome::Fitted(fitted) => Some((result, fitted)),
        _ => None,
    })
}

/// The unit of times is in one heading only, since lines of text have 100 columns.
fn key_table(fitting: &Fitting) -> Table {
    let columns = ["key", "in file", "proposed", "+/-", "trust"].map(Column::new).into_iter();
    let times = [Column::new("measured").in_unit("ns"), Column::new("before"), Column::new("after")];
    Table::new("Keys", columns.chain(times)).with_rows(fitting.keys.iter().map(key_row))
}

fn key_row(result: &KeyResult) -> (String, Vec<Cell>) {
    let number = |value: f64| Cell::new(value, format!("{value}"));
    let time = |value: f64| Cell::number(value, DIGITS);
    let found = match &result.outcome {
        Outcome::Agrees(Agreement { measured, simulated }) => {
            vec![Cell::word("agrees"), Cell::none(), Cell::none(), time(*measured), time(*simulated), Cell::none()]
        }
        Outcome::Fitted(fitted) => vec![
            number(fitted.value),
            Cell::number(fitted.uncertainty, if fitted.uncertainty < 100.0 { DIGITS } else { 0 }),
            Cell::word(fitted.confidence().word()),
            time(fitted.before.measured),
            time(fitted.before.simulated),
            time(fitted.simulated),
        ],
        Outcome::Left(_) => std::iter::once(Cell::word("left")).chain((0..5).map(|_| Cell::none())).collect(),
    };
    (result.key.name.clone(), std::iter::once(number(result.today)).chain(found).collect())
}

fn comparison_table(fitting: &Fitting) -> Table {
    let columns = [
        Column::new("benchmark"),
        Column::new("measured").in_unit("ns"),
        Column::new("model").in_unit("ns"),
        Column::new("difference"),
        Column::new("decides"),
    ];
    let row = |Comparison { benchmark, measured, simulated }: &Comparison| {
        let (own, model) = (measured.ns_per_operation(), simulated.ns_per_operation());
        let cells = vec![
            Cell::number(own, DIGITS),
            Cell::number(model, DIGITS),
            Cell::share(model / own - 1.0),
            Cell::word(&benchmark.gap),
        ];
        (benchmark.name.clone(), cells)
    };
    Table::new("Benchmarks, time of an operation", columns).with_rows(fitting.comparisons.iter().map(row))
}

/// Events of one operation that were counted on the machine.
fn count_table(fitting: &Fitting) -> Table {
    let mut table = Table::new("Events of an operation", ["benchmark", "event", "measured", "model"]);
    for Comparison { benchmark, measured, simulated } in &fitting.comparisons {
        for (event, _) in &benchmark.events {
            let each = |run: &super::Run| Some(*run.events.get(event)? as f64 / run.operations as f64);
            let Some(count) = each(measured) else { continue };
            let model = each(simulated).map_or_else(Cell::none, Cell::factor);
            table.push(benchmark.name.clone(), vec![Cell::word(event), Cell::factor(count), model]);
        }
    }
    table
}

/// Benchmarks without a result, by reason.
fn missing(fitting: &Fitting) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in &fitting.missing {
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    reasons.into_iter().map(|(why, names)| format!("{why}: {}", names.join(", "))).collect()
}

fn computer(measured: &Measurements) -> Vec<String> {
    let host = &measured.host;
    let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "not shown".to_owned());
    let cores: Vec<String> = host.cmgs.iter().map(|cpus| cpus.len().to_string()).collect();
    let events = match host.counter_error {
        0 => "events counted".to_owned(),
        error => {
            format!("events not counted (error {error}; perf_event_paranoid {})", known(&host.perf_event_paranoid))
        }
    };
    vec![
        format!("{}, kernel {}, MIDR_EL1 {}", host.name, host.kernel, known(&host.midr)),
        format!(
            "CMGs of {} cores, governor {}, {} kHz",
            cores.join(", "),
            known(&host.governor),
            known(&host.frequency_khz)
        ),
        format!("pages of {} bytes, vectors of {} bits, {events}", host.page_bytes, host.vector_bits),
    ]
}
