//! Predictions and checks as documents, JSON and plots.

use fxscope_latency::check::{CLASSES, NEAR, Predictor, Sample, Statistics, error};
use fxscope_latency::methods::METHODS;
use fxscope_latency::{Method, MethodResult, Prediction, Program, Quantity, SecondRun};
use fxscope_report::document::{Body, Curve, Document, Plot, Row, Section, Value};
use fxscope_report::sheet::{Cell, Column, Table};
use serde_json::{Value as Json, json};

use super::Forecast;

/// Largest slowdown in a plot with a linear axis.
const LINEAR: f64 = 20.0;

impl Forecast {
    /// Returns the forecast for people.
    #[must_use]
    pub fn document(&self) -> Document {
        let (case, prediction) = (&self.case, &self.prediction);
        let mut sections = vec![
            facts(&case.program(), prediction),
            slowdowns(prediction, None).section(),
            Section::notes("Trust", trust(prediction)),
        ];
        let left_out = left_out(prediction, &case.taken.missing);
        if !left_out.is_empty() {
            sections.push(Section::notes("Left out", left_out));
        }
        if !case.taken.notes.is_empty() {
            sections.push(Section::notes("Notes", case.taken.notes.clone()));
        }
        Document::of(&case.title, sections)
    }

    /// Returns the forecast for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let case = &self.case;
        let mut object = common_json(&case.program(), &self.prediction);
        let missing = case.taken.missing.iter().map(|(quantity, events)| (quantity.key().to_owned(), json!(events)));
        object.insert("processor".to_owned(), json!(case.taken.pmu.id));
        object.insert("missing".to_owned(), Json::Object(missing.collect()));
        object.insert("notes".to_owned(), json!(case.taken.notes));
        Json::Object(object)
    }

    /// Plots slowdowns against latency, and outstanding reads over time.
    #[must_use]
    pub fn plots(&self) -> Vec<Plot> {
        plots(&self.prediction, None)
    }
}

/// Formats a slowdown with few digits.
pub(super) fn times(slowdown: f64) -> String {
    match slowdown {
        s if s < 10.0 => format!("{s:.2}"),
        s if s < 100.0 => format!("{s:.1}"),
        s => format!("{s:.0}"),
    }
}

/// Formats an error with few digits, percent.
fn percent(error: f64) -> String {
    if error > 999.0 { ">999 %".to_owned() } else { format!("{error:+.0} %") }
}

fn ns(latency: f64) -> String {
    format!("{} ns", (latency * 10.0).round() / 10.0)
}

/// Returns the legend of a method.
fn legend(method: &Method) -> String {
    format!("{}: {}", method.id, method.title)
}

fn named(method: &Method) -> String {
    format!("{:2} {}", method.id, method.title)
}

/// The counts of the run.
fn facts(program: &Program<'_>, prediction: &Prediction) -> Section {
    let counts = program.counts;
    let row = |label: &str, value: Value| Row { label: label.to_owned(), values: vec![Some(value)] };
    let number = Value::number;
    let text = |text: String| Value::text(text);
    let mut rows = vec![
        row("Memory now", text(ns(prediction.base_ns))),
        row("Time", number(counts.seconds, "s")),
        row("Cores at work", text(format!("{:.1}", counts.threads))),
    ];
    let shares = [
        ("Last-level misses", counts.get(Quantity::Misses)),
        ("Misses of the memory-side cache", counts.get(Quantity::CacheMisses)),
        ("Accesses at the controllers", counts.get(Quantity::Accesses)),
    ];
    rows.extend(shares.into_iter().filter_map(|(label, count)| Some(row(label, number(count?, "count")))));
    let parts = [
        ("Misses that were prefetches", counts.share(Quantity::Prefetched, Quantity::Misses)),
        ("Cycles waiting for memory", counts.each_cycle(Quantity::MemoryWait)),
        ("Cycles waiting for stores", counts.each_cycle(Quantity::StoreWait)),
    ];
    rows.extend(parts.into_iter().filter_map(|(label, share)| Some(row(label, number(share?, "ratio")))));
    if let Some(reads) = counts.each_cycle(Quantity::Outstanding) {
        rows.push(row("Mean outstanding reads of a core", text(format!("{reads:.2}"))));
    }
    if let Ok(SecondRun { added, slowdown, .. }) = program.second {
        let memory = ns(prediction.base_ns + added * 1e9);
        rows.push(row("Second run", text(format!("{memory}, {slowdown:.3} times as long"))));
    }
    rows.push(row("Kind of program", text(prediction.kind.word().to_owned())));
    Section { title: "Run".to_owned(), body: Body::Facts(rows) }
}

/// The method to trust.
fn trust(prediction: &Prediction) -> Vec<String> {
    match prediction.trust {
        Some((method, why)) => vec![format!("Method {}, {}. {why}", method.id, method.title)],
        None => vec!["None: no method has what it needs.".to_owned()],
    }
}

fn headings(first: &str, prediction: &Prediction) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(prediction.points.iter().map(|point| ns(point.latency_ns))).collect()
}

/// The predictions of the methods; `simulated`: slowdowns to compare with, point by point.
fn slowdowns(prediction: &Prediction, simulated: Option<&[Option<f64>]>) -> Table {
    let mut table = Table::new("Times as long as now", headings("method", prediction));
    if let Some(simulated) = simulated {
        table.push("   simulated", simulated.iter().map(|s| s.map_or(Cell::none(), slowdown)).collect());
    }
    for method in METHODS.iter() {
        let Some(slowdowns) = prediction.slowdowns(method.id) else { continue };
        let cell = |(i, predicted): (usize, &Option<f64>)| {
            let Some(predicted) = *predicted else { return Cell::none() };
            let simulated = simulated.and_then(|all| all.get(i).copied().flatten());
            let off = simulated.map_or(String::new(), |s| format!(" {}", percent(error(predicted, s))));
            Cell::new(predicted, times(predicted) + &off)
        };
        table.push(named(method), slowdowns.iter().enumerate().map(cell).collect());
    }
    if table.rows.len() > 1 {
        let spread = |i: usize| match prediction.spread(i) {
            Some((least, most)) => Cell::new([least, most], format!("{} to {}", times(least), times(most))),
            None => Cell::none(),
        };
        table.push("   spread", (0..prediction.points.len()).map(spread).collect());
    }
    table
}

fn slowdown(value: f64) -> Cell {
    Cell::new(value, times(value))
}

/// The methods that were left out, and why.
fn left_out(prediction: &Prediction, missing: &[(Quantity, Vec<String>)]) -> Vec<String> {
    let mut notes: Vec<String> = prediction.points.iter().filter_map(|point| point.refusal()).collect();
    for row in &prediction.rows {
        if let Err(why) = &row.result {
            notes.push(format!("Method {}, {}: {why}.", row.method.id, row.method.title));
        }
    }
    let events: Vec<String> = missing
        .iter()
        .filter(|(_, events)| !events.is_empty())
        .map(|(quantity, events)| format!("{} from {}", quantity.title(), events.join(", ")))
        .collect();
    if !events.is_empty() {
        notes.push(format!("Events that would help: {}.", events.join("; ")));
    }
    notes
}

/// Returns simulated slowdowns by the points of a prediction.
fn by_points(prediction: &Prediction, sample: &Sample) -> Vec<Option<f64>> {
    let at = |latency: f64| sample.simulated.iter().find(|point| point.0 == latency).map(|point| point.1);
    prediction.points.iter().map(|point| at(point.latency_ns)).collect()
}

/// Predictions of a program beside its simulations.
pub(super) fn checked(title: &str, sample: &Sample, prediction: &Prediction) -> Document {
    let simulated = by_points(prediction, sample);
    let mut sections = vec![
        facts(&sample.program(), prediction),
        slowdowns(prediction, Some(&simulated)).section(),
        Section::notes("Trust", trust(prediction)),
    ];
    let left_out = left_out(prediction, &[]);
    if !left_out.is_empty() {
        sections.push(Section::notes("Left out", left_out));
    }
    Document::of(title, sections)
}

/// Errors of the methods over all programs: two tables.
pub(super) fn statistics(title: &str, all: &[Statistics]) -> [Section; 2] {
    let share = |part: usize, whole: usize| if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    let of_all = |part: usize, whole: usize| {
        let share = share(part, whole);
        Cell::new(share, format!("{share:.1} % of {whole}"))
    };
    let percents = |value: f64| Cell::new(value, format!("{value:.1} %"));
    let line = |of: &Statistics| {
        let name = match of.predictor {
            Predictor::Method(method) => named(method),
            Predictor::Trusted => "   trusted".to_owned(),
        };
        let cells = vec![
            of_all(of.near_programs, of.programs),
            percents(share(of.near_on_average, of.programs)),
            of_all(of.near, of.predictions),
            percents(of.mean),
            Cell::new(of.worst, percent(of.worst).trim_start_matches('+')),
        ];
        (name, cells)
    };
    let errors = Table::new(title, [title, "programs", "on average", "predictions", "mean", "worst"])
        .with_rows(all.iter().map(line));
    let methods = all.iter().map(|of| Column::new(of.predictor.id()));
    let counts = |i: usize| all.iter().map(|of| Cell::number(of.histogram[i] as f64, 0)).collect();
    let histogram = Table::new("Errors", std::iter::once(Column::new("error").in_unit("%")).chain(methods))
        .with_rows((0..=CLASSES.len()).map(|i| (class(i), counts(i))));
    [errors.section(), histogram.section()]
}

/// Formats a class of errors, percent.
fn class(place: usize) -> String {
    match (place.checked_sub(1).map(|i| CLASSES[i]), CLASSES.get(place)) {
        (None, Some(high)) => format!("up to {high:+}"),
        (Some(low), Some(high)) => format!("{low:+} to {high:+}"),
        (Some(low), None) => format!("above {low:+}"),
        (None, None) => String::new(),
    }
}

/// One row per program, at the largest latency: the simulated slowdown, errors of the methods, and the one to trust.
pub(super) fn programs(samples: &[&Sample], predictions: &[Prediction]) -> Section {
    let said = |id: &&str| predictions.iter().any(|prediction| prediction.slowdowns(id).is_some());
    let methods = || METHODS.iter().map(|method| method.id).filter(said);
    let line = |(sample, prediction): (&&Sample, &Prediction)| {
        let simulated = by_points(prediction, sample);
        let last = prediction.points.len().checked_sub(1);
        let simulated = last.and_then(|i| simulated[i]);
        let of = |id: &str| last.and_then(|i| *prediction.slowdowns(id)?.get(i)?);
        let cell = |id: &str| {
            let Some((predicted, simulated)) = of(id).zip(simulated) else { return Cell::none() };
            let off = error(predicted, simulated);
            Cell::new(off, percent(off))
        };
        let mut cells = vec![simulated.map_or(Cell::none(), slowdown)];
        cells.extend(methods().map(cell));
        cells.push(prediction.trust.map_or(Cell::none(), |(method, _)| Cell::word(method.id)));
        (sample.name.clone(), cells)
    };
    let latency = predictions.iter().filter_map(|p| p.points.last()).map(|point| point.latency_ns).fold(0.0, f64::max);
    let first = format!("at {}", ns(latency));
    let mut head = vec![first, "simulated".to_owned()];
    head.extend(methods().map(|id| format!("by {id}")));
    head.push("trust".to_owned());
    Table::new("Programs", head).with_rows(samples.iter().zip(predictions).map(line)).section()
}

/// Plots slowdowns against latency, and outstanding reads over time.
pub(super) fn plots(prediction: &Prediction, sample: Option<&Sample>) -> Vec<Plot> {
    let mut curves: Vec<Curve> = Vec::new();
    let now = (prediction.base_ns, 1.0);
    if let Some(sample) = sample {
        let points = std::iter::once(now).chain(sample.simulated.iter().copied()).collect();
        curves.push(Curve { label: "simulated".to_owned(), points });
    }
    for method in METHODS.iter() {
        let Some(slowdowns) = prediction.slowdowns(method.id) else { continue };
        let at = prediction.points.iter().zip(slowdowns).filter_map(|(p, s)| Some((p.latency_ns, (*s)?)));
        curves.push(Curve { label: legend(method), points: std::iter::once(now).chain(at).collect() });
    }
    let most = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1)).fold(0.0, f64::max);
    let mut plots = vec![Plot {
        title: "Slowdown against latency".to_owned(),
        across: "latency of memory, ns".to_owned(),
        logarithmic: false,
        up: "times as long as now".to_owned(),
        logarithmic_up: most > LINEAR,
        curves,
    }];
    if !prediction.outstanding.is_empty() {
        let points = prediction.outstanding.iter().map(|&(end, reads)| (end * 1e3, reads)).collect();
        plots.push(Plot {
            title: "Outstanding reads over time".to_owned(),
            across: "time, ms".to_owned(),
            logarithmic: false,
            up: "mean outstanding reads of a core".to_owned(),
            logarithmic_up: false,
            curves: vec![Curve { label: "now".to_owned(), points }],
        });
    }
    plots
}

/// Slowdowns of all programs in ascending order of the simulated ones, at each latency, and beside predictions at the
/// largest.
pub(super) fn sorted(samples: &[&Sample], predictions: &[Prediction]) -> Vec<Plot> {
    let plot = |title: &str, curves: Vec<Curve>| {
        let most = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1)).fold(0.0, f64::max);
        Plot {
            title: title.to_owned(),
            across: "programs, the least slowed down first".to_owned(),
            logarithmic: false,
            up: "times as long as now".to_owned(),
            logarithmic_up: most > LINEAR,
            curves,
        }
    };
    let Some(longest) = predictions.iter().max_by_key(|prediction| prediction.points.len()) else { return Vec::new() };
    let latencies: Vec<f64> = longest.points.iter().map(|point| point.latency_ns).collect();
    let ranked = |mut values: Vec<f64>| -> Vec<(f64, f64)> {
        values.sort_by(f64::total_cmp);
        (1..).map(f64::from).zip(values).collect()
    };
    let simulated = |latency: f64, sample: &Sample| sample.simulated.iter().find(|p| p.0 == latency).map(|p| p.1);
    let at = |&latency: &f64| Curve {
        label: ns(latency),
        points: ranked(samples.iter().filter_map(|sample| simulated(latency, sample)).collect()),
    };
    let mut plots = vec![plot("Simulated slowdowns, sorted", latencies.iter().map(at).collect())];
    if let Some(&latency) = latencies.last() {
        let mut order: Vec<(usize, f64)> =
            samples.iter().enumerate().filter_map(|(i, sample)| Some((i, simulated(latency, sample)?))).collect();
        order.sort_by(|a, b| a.1.total_cmp(&b.1));
        let place = |prediction: &Prediction| prediction.points.iter().position(|point| point.latency_ns == latency);
        let by = |id: &str| {
            let of = |i: usize| *predictions[i].slowdowns(id)?.get(place(&predictions[i])?)?;
            let points = order.iter().zip(1..).filter_map(|(&(i, _), rank)| Some((f64::from(rank), of(i)?)));
            points.collect::<Vec<_>>()
        };
        let points = order.iter().zip(1..).map(|(&(_, slowdown), rank)| (f64::from(rank), slowdown)).collect();
        let mut curves = vec![Curve { label: "simulated".to_owned(), points }];
        let methods = METHODS.iter().filter(|method| method.is_prediction());
        curves.extend(methods.map(|m| Curve { label: legend(m), points: by(m.id) }));
        curves.retain(|curve| !curve.points.is_empty());
        plots.push(plot(&format!("Simulated and predicted at {}", ns(latency)), curves));
    }
    plots
}

/// Counts and predictions, for programs.
fn common_json(program: &Program<'_>, prediction: &Prediction) -> serde_json::Map<String, Json> {
    let counts = program.counts;
    let quantities = Quantity::ALL.iter().filter_map(|&q| Some((q.key().to_owned(), json!(counts.get(q)?))));
    let method = |row: &fxscope_latency::Row| {
        let mut object = json!({ "id": row.method.id, "title": row.method.title, "formula": row.method.formula });
        match &row.result {
            Ok(MethodResult::Slowdowns(slowdowns)) => object["slowdowns"] = json!(slowdowns),
            Ok(MethodResult::Number(number)) => object["value"] = json!(number),
            Err(why) => object["unusable"] = json!(why),
        }
        object
    };
    let point = |point: &fxscope_latency::Point| json!({ "latency_ns": point.latency_ns, "added_ns": point.added_ns, "refused": point.refusal() });
    let intervals: Vec<Json> = prediction
        .outstanding
        .iter()
        .map(|(end, reads)| json!({ "end_seconds": end, "outstanding_reads": reads }))
        .collect();
    let second =
        |SecondRun { added, slowdown, busy }| json!({ "added_ns": added * 1e9, "slowdown": slowdown, "busy": busy });
    let object = json!({
        "base_ns": prediction.base_ns,
        "seconds": counts.seconds,
        "cores": counts.threads,
        "counts": quantities.collect::<serde_json::Map<_, _>>(),
        "points": prediction.points.iter().map(point).collect::<Vec<_>>(),
        "methods": prediction.rows.iter().map(method).collect::<Vec<_>>(),
        "second": program.second.ok().map(second),
        "kind": prediction.kind.word(),
        "trust": prediction.trust.map(|(method, why)| json!({ "method": method.id, "why": why })),
        "intervals": intervals,
    });
    match object {
        Json::Object(map) => map,
        _ => serde_json::Map::new(),
    }
}

/// Returns a checked program, as JSON.
pub(super) fn checked_json(sample: &Sample, prediction: &Prediction) -> Json {
    let mut object = common_json(&sample.program(), prediction);
    object.insert("name".to_owned(), json!(sample.name));
    object.insert("fit".to_owned(), json!(sample.fit));
    object.insert("simulated".to_owned(), json!(by_points(prediction, sample)));
    Json::Object(object)
}

/// Statistics, as JSON.
pub(super) fn statistics_json(all: &[Statistics]) -> Json {
    let one = |of: &Statistics| {
        json!({
            "method": of.predictor.id(), "programs": of.programs, "programs_near": of.near_programs,
            "programs_near_on_average": of.near_on_average,
            "predictions": of.predictions, "predictions_near": of.near,
            "mean_percent": of.mean, "worst_percent": of.worst, "histogram": of.histogram,
        })
    };
    json!({ "near_percent": NEAR, "class_ends_percent": CLASSES, "methods": all.iter().map(one).collect::<Vec<_>>() })
}
