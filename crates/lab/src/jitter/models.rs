//! Built-in noise models, and what a trace or a model says.

use std::path::Path;

use fxscope_jitter::model::{self, Model, Source};
use fxscope_jitter::network;
use fxscope_osnoise::trace::is_trace;
use fxscope_report::sheet::{Cell, Sheet, Table};

use super::trace;
use crate::Error;

/// Lists the built-in noise models and networks, one per line.
///
/// # Errors
/// If one of them cannot be loaded.
pub fn profiles() -> Result<String, Error> {
    let line = |name: &str| -> Result<String, Error> { Ok(format!("{name:21} {}\n", model::load(name)?.title)) };
    let mut text = "Noise models\n".to_owned();
    for name in model::names() {
        text.push_str(&line(name)?);
    }
    text.push_str("Networks\n");
    for name in network::names() {
        text.push_str(&format!("{name:21} {}\n", network::Network::load(name)?.title));
    }
    Ok(text)
}

/// Shows a trace, or a noise model on nodes of this many cores; `what` is a profile, or the path of a file.
///
/// # Errors
/// If there is no such trace or model.
pub fn show(what: &str, cores_per_node: u32) -> Result<Sheet, Error> {
    let path = Path::new(what);
    if is_trace(path) {
        return Ok(trace::sheet(&trace::look(path)?, what));
    }
    let model = model::load(what)?;
    model.check(cores_per_node)?;
    Ok(sheet(&model, cores_per_node))
}

fn sheet(model: &Model, cores: u32) -> Sheet {
    let mut table = Table::new(
        format!("Sources on a node of {cores} cores"),
        ["cause", "of a core", "arrivals", "strikes", "length"],
    );
    let row = |s: &Source| {
        let length = match &s.arrival {
            model::Arrival::Trace(_) => "as recorded".to_owned(),
            _ => s.length.words(),
        };
        let words = [s.arrival.words(), s.place(), length].map(Cell::word);
        (s.cause.clone(), std::iter::once(Cell::share(s.fraction(cores))).chain(words).collect())
    };
    table.rows = model.sources.iter().map(row).collect();
    let origin = |s: &Source| format!("{} ({}): {}", s.cause, s.evidence.word(), s.origin);
    let share = Cell::share(model.fraction(cores));
    let mut seen = vec![format!("{} of all cores' time is stolen.", share.text())];
    seen.extend((!model.note.is_empty()).then(|| model.note.clone()));
    Sheet {
        title: format!("{}: {}", model.name, model.title),
        tables: if table.rows.is_empty() { Vec::new() } else { vec![table] },
        notes: vec![("Sum", seen), ("Sources", model.sources.iter().map(origin).collect())],
        plots: Vec::new(),
        bars: Vec::new(),
    }
}
