//! Predictions and checks as documents, JSON and plots.

use fxscope::latency::check::{CLASSES, NEAR, Predictor, Sample, Statistics, error};
use fxscope::latency::methods::METHODS;
use fxscope::latency::{Method, Prediction, Program, Quantity, Says, Second};
use fxscope::report::document::{Body, Curve, Document, Plot, Row, Section, Value};
use serde_json::{Value as Json, json};

use super::case::Case;

/// Largest slowdown of a plot whose axis is not logarithmic.
const LINEAR: f64 = 20.0;

fn text(text: impl Into<String>) -> Option<Value> {
    Some(Value::Text(text.into()))
}

fn row(label: impl Into<String>, values: Vec<Option<Value>>) -> Row {
    Row { label: label.into(), values }
}

fn section(title: &str, body: Body) -> Section {
    Section { title: title.to_owned(), body }
}

pub(super) fn notes(title: &str, notes: Vec<String>) -> Section {
    section(title, Body::Notes(notes))
}

/// A slowdown in few digits.
pub(super) fn times(slowdown: f64) -> String {
    match slowdown {
        s if s < 10.0 => format!("{s:.2}"),
        s if s < 100.0 => format!("{s:.1}"),
        s => format!("{s:.0}"),
    }
}

/// An error in few digits, percent.
fn percent(error: f64) -> String {
    if error > 999.0 { ">999 %".to_owned() } else { format!("{error:+.0} %") }
}

fn ns(latency: f64) -> String {
    format!("{} ns", (latency * 10.0).round() / 10.0)
}

/// A method in the legend of a plot.
fn legend(method: &Method) -> String {
    format!("{}: {}", method.id, method.title)
}

fn named(method: &Method) -> String {
    format!("{:2} {}", method.id, method.title)
}

/// What was counted, for people.
fn facts(program: &Program<'_>, prediction: &Prediction) -> Section {
    let counts = program.counts;
    let number = |value: f64, unit: &str| Some(Value::number(value, unit));
    let mut rows = vec![
        row("Memory now", vec![text(ns(prediction.base_ns))]),
        row("Time", vec![number(counts.seconds, "s")]),
        row("Cores at work", vec![text(format!("{:.1}", counts.threads))]),
    ];
    let shares = [
        ("Last-level misses", counts.get(Quantity::Misses)),
        ("Misses of the memory-side cache", counts.get(Quantity::CacheMisses)),
        ("Accesses at the controllers", counts.get(Quantity::Accesses)),
    ];
    rows.extend(shares.into_iter().filter_map(|(label, count)| Some(row(label, vec![number(count?, "count")]))));
    let parts = [
        ("Misses that were prefetches", counts.share(Quantity::Prefetched, Quantity::Misses)),
        ("Cycles waiting for memory", counts.each_cycle(Quantity::MemoryWait)),
        ("Cycles waiting for stores", counts.each_cycle(Quantity::StoreWait)),
    ];
    rows.extend(parts.into_iter().filter_map(|(label, share)| Some(row(label, vec![number(share?, "ratio")]))));
    if let Some(reads) = counts.each_cycle(Quantity::Outstanding) {
        rows.push(row("Mean outstanding reads of a core", vec![text(format!("{reads:.2}"))]));
    }
    if let Ok(Second { added, slowdown, .. }) = program.second {
        let memory = ns(prediction.base_ns + added * 1e9);
        rows.push(row("Second run", vec![text(format!("{memory}, {slowdown:.3} times as long"))]));
    }
    rows.push(row("Kind of program", vec![text(prediction.kind.word())]));
    section("Run", Body::Facts(rows))
}

/// Which method to trust.
fn trust(prediction: &Prediction) -> Vec<String> {
    match prediction.trust {
        Some((method, why)) => vec![format!("Method {}, {}. {why}", method.id, method.title)],
        None => vec!["None: no method has what it needs.".to_owned()],
    }
}

fn headings(first: &str, prediction: &Prediction) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(prediction.points.iter().map(|point| ns(point.latency_ns))).collect()
}

/// What methods predict; `simulated` are slowdowns to hold them against, point by point.
fn slowdowns(prediction: &Prediction, simulated: Option<&[Option<f64>]>) -> Section {
    let mut rows = Vec::new();
    if let Some(simulated) = simulated {
        let cells = simulated.iter().map(|s| text(s.map_or("-".to_owned(), times))).collect();
        rows.push(row("   simulated", cells));
    }
    for method in METHODS.iter() {
        let Some(slowdowns) = prediction.slowdowns(method.id) else { continue };
        let cell = |(i, slowdown): (usize, &Option<f64>)| {
            let Some(slowdown) = *slowdown else { return text("-") };
            let simulated = simulated.and_then(|all| all.get(i).copied().flatten());
            let off = simulated.map_or(String::new(), |s| format!(" {}", percent(error(slowdown, s))));
            text(times(slowdown) + &off)
        };
        rows.push(row(named(method), slowdowns.iter().enumerate().map(cell).collect()));
    }
    if rows.len() > 1 {
        let spread = |i: usize| match prediction.spread(i) {
            Some((least, most)) => text(format!("{} to {}", times(least), times(most))),
            None => text("-"),
        };
        rows.push(row("   spread", (0..prediction.points.len()).map(spread).collect()));
    }
    section("Times as long as now", Body::Table { headings: headings("method", prediction), rows })
}

/// What could not be said, and why.
fn left_out(prediction: &Prediction, missing: &[(Quantity, Vec<String>)]) -> Vec<String> {
    let mut notes: Vec<String> = prediction.points.iter().filter_map(|point| point.refusal()).collect();
    for row in &prediction.rows {
        if let Err(why) = &row.says {
            notes.push(format!("Method {}, {}: {why}.", row.method.id, row.method.title));
        }
    }
    let events: Vec<String> = missing
        .iter()
        .filter(|(_, events)| !events.is_empty())
        .map(|(quantity, events)| format!("{} from {}", quantity.title(), events.join(", ")))
        .collect();
    if !events.is_empty() {
        notes.push(format!("What would tell: {}.", events.join("; ")));
    }
    notes
}

/// What is predicted of a program.
pub(super) fn prediction(case: &Case, prediction: &Prediction) -> Document {
    let mut sections =
        vec![facts(&case.program(), prediction), slowdowns(prediction, None), notes("Trust", trust(prediction))];
    let left_out = left_out(prediction, &case.taken.missing);
    if !left_out.is_empty() {
        sections.push(notes("Left out", left_out));
    }
    if !case.taken.notes.is_empty() {
        sections.push(notes("Notes", case.taken.notes.clone()));
    }
    Document { title: case.title.clone(), columns: vec![String::new()], sections }
}

/// Simulated slowdowns by the points of a prediction.
fn by_points(prediction: &Prediction, sample: &Sample) -> Vec<Option<f64>> {
    let at = |latency: f64| sample.simulated.iter().find(|point| point.0 == latency).map(|point| point.1);
    prediction.points.iter().map(|point| at(point.latency_ns)).collect()
}

/// Predictions of a program beside its simulations.
pub(super) fn checked(title: &str, sample: &Sample, prediction: &Prediction) -> Document {
    let simulated = by_points(prediction, sample);
    let mut sections = vec![
        facts(&sample.program(), prediction),
        slowdowns(prediction, Some(&simulated)),
        notes("Trust", trust(prediction)),
    ];
    let left_out = left_out(prediction, &[]);
    if !left_out.is_empty() {
        sections.push(notes("Left out", left_out));
    }
    Document { title: title.to_owned(), columns: vec![String::new()], sections }
}

/// How far off methods are over programs.
pub(super) fn statistics(title: &str, all: &[Statistics]) -> Vec<Section> {
    let share = |part: usize, whole: usize| {
        let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
        format!("{percent:.1} %")
    };
    let of_all = |part: usize, whole: usize| text(format!("{} of {whole}", share(part, whole)));
    let line = |of: &Statistics| {
        let name = match of.predictor {
            Predictor::Method(method) => named(method),
            Predictor::Trusted => "   the one to trust".to_owned(),
        };
        let cells = vec![
            of_all(of.near_programs, of.programs),
            text(share(of.near_on_average, of.programs)),
            of_all(of.near, of.predictions),
            text(format!("{:.1} %", of.mean)),
            text(percent(of.worst).trim_start_matches('+')),
        ];
        row(name, cells)
    };
    let head = [title, "programs", "on average", "predictions", "mean", "worst"];
    let errors = Body::Table { headings: head.map(str::to_owned).to_vec(), rows: all.iter().map(line).collect() };
    let classes = (0..=CLASSES.len()).map(class);
    let histogram = Body::Table {
        headings: std::iter::once("error, %".to_owned())
            .chain(all.iter().map(|of| of.predictor.id().to_owned()))
            .collect(),
        rows: classes
            .enumerate()
            .map(|(i, label)| row(label, all.iter().map(|of| text(of.histogram[i].to_string())).collect()))
            .collect(),
    };
    vec![section(title, errors), section("Errors", histogram)]
}

/// A class of errors, percent.
fn class(place: usize) -> String {
    match (place.checked_sub(1).map(|i| CLASSES[i]), CLASSES.get(place)) {
        (None, Some(high)) => format!("up to {high:+}"),
        (Some(low), Some(high)) => format!("{low:+} to {high:+}"),
        (Some(low), None) => format!("above {low:+}"),
        (None, None) => String::new(),
    }
}

/// A line for each program, at the largest latency: what was simulated, how far off methods are, and which to trust.
pub(super) fn programs(samples: &[&Sample], predictions: &[Prediction]) -> Section {
    let said = |id: &&str| predictions.iter().any(|prediction| prediction.slowdowns(id).is_some());
    let methods = || METHODS.iter().map(|method| method.id).filter(said);
    let line = |(sample, prediction): (&&Sample, &Prediction)| {
        let simulated = by_points(prediction, sample);
        let last = prediction.points.len().checked_sub(1);
        let simulated = last.and_then(|i| simulated[i]);
        let of = |id: &str| last.and_then(|i| *prediction.slowdowns(id)?.get(i)?);
        let cell = |id: &str| {
            let Some((slowdown, simulated)) = of(id).zip(simulated) else { return text("-") };
            text(percent(error(slowdown, simulated)))
        };
        let mut cells = vec![text(simulated.map_or("-".to_owned(), times))];
        cells.extend(methods().map(cell));
        cells.push(text(prediction.trust.map_or("-", |(method, _)| method.id)));
        row(sample.name.clone(), cells)
    };
    let rows = samples.iter().zip(predictions).map(line).collect();
    let latency = predictions.iter().filter_map(|p| p.points.last()).map(|point| point.latency_ns).fold(0.0, f64::max);
    let first = format!("at {}", ns(latency));
    let mut head = vec![first, "simulated".to_owned()];
    head.extend(methods().map(|id| format!("by {id}")));
    head.push("trust".to_owned());
    section("Programs", Body::Table { headings: head, rows })
}

/// Slowdowns against latency, and outstanding reads over time.
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

/// Slowdowns of all programs in ascending order of the simulated ones, at each latency, and at the largest beside predictions.
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

/// Counts and predictions for programs.
fn common_json(program: &Program<'_>, prediction: &Prediction) -> serde_json::Map<String, Json> {
    let counts = program.counts;
    let quantities = Quantity::ALL.iter().filter_map(|&q| Some((q.key().to_owned(), json!(counts.get(q)?))));
    let method = |row: &fxscope::latency::Row| {
        let mut object = json!({ "id": row.method.id, "title": row.method.title, "formula": row.method.formula });
        match &row.says {
            Ok(Says::Slowdowns(slowdowns)) => object["slowdowns"] = json!(slowdowns),
            Ok(Says::Number(number)) => object["value"] = json!(number),
            Err(why) => object["unusable"] = json!(why),
        }
        object
    };
    let point = |point: &fxscope::latency::Point| json!({ "latency_ns": point.latency_ns, "added_ns": point.added_ns, "refused": point.refusal() });
    let intervals: Vec<Json> = prediction
        .outstanding
        .iter()
        .map(|(end, reads)| json!({ "end_seconds": end, "outstanding_reads": reads }))
        .collect();
    let second =
        |Second { added, slowdown, busy }| json!({ "added_ns": added * 1e9, "slowdown": slowdown, "busy": busy });
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

/// A prediction for programs.
pub(super) fn prediction_json(case: &Case, prediction: &Prediction) -> Json {
    let mut object = common_json(&case.program(), prediction);
    let missing = case.taken.missing.iter().map(|(quantity, events)| (quantity.key().to_owned(), json!(events)));
    object.insert("processor".to_owned(), json!(case.taken.pmu.id));
    object.insert("missing".to_owned(), Json::Object(missing.collect()));
    object.insert("notes".to_owned(), json!(case.taken.notes));
    Json::Object(object)
}

/// A checked program for programs.
pub(super) fn checked_json(sample: &Sample, prediction: &Prediction) -> Json {
    let mut object = common_json(&sample.program(), prediction);
    object.insert("name".to_owned(), json!(sample.name));
    object.insert("fit".to_owned(), json!(sample.fit));
    object.insert("simulated".to_owned(), json!(by_points(prediction, sample)));
    Json::Object(object)
}

/// Statistics for programs.
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
