//! A noise model fitted to a trace.

use std::path::Path;

use fxscope_jitter::Time;
use fxscope_osnoise::fit::{self, Arrival, Length, Model, Source};
use fxscope_report::sheet::{Cell, Sheet, Table};

use super::{cells, trace};
use crate::Error;

/// A noise model fitted to a trace.
pub struct Fitted {
    /// The model.
    pub model: Model,
    /// The name of the trace.
    name: String,
}

/// Fits a noise model to the trace in a file.
///
/// # Errors
/// If the file is not a trace, or nothing can be fitted to it.
pub fn fit(path: &Path) -> Result<Fitted, Error> {
    let name = path.display().to_string();
    let model = fit::fit(trace::open(path)?).map_err(|e| format!("{name}: {e}"))?;
    Ok(Fitted { model, name })
}

impl Fitted {
    /// Returns the model as a file.
    #[must_use]
    pub fn model_text(&self) -> String {
        self.model.text(&self.name)
    }

    /// Returns how well the model fits; `name` is the name of its file.
    #[must_use]
    pub fn sheet(&self, name: &str) -> Sheet {
        sheet(&self.model, name)
    }
}

fn sheet(model: &Model, name: &str) -> Sheet {
    let mut sources = Table::new("Sources", ["source", "strikes", "length"]);
    let mut fits = Table::new("How well it fits", ["fit of", "arrivals", "detours", "gaps off", "lengths off"]);
    for source in &model.sources {
        let label = source.cause.label();
        let what = vec![Cell::word(place(source)), Cell::word(length(&source.length))];
        sources.rows.push((label.clone(), what));
        let (arrivals, detours) = (Cell::word(arrivals(&source.arrival)), Cell::number(source.detours as f64, 0));
        let fit = vec![arrivals, detours, Cell::number(source.gaps_off, 3), Cell::number(source.lengths_off, 3)];
        fits.rows.push((label, fit));
    }
    let (measured, modelled) = (Cell::share(model.measured), Cell::share(model.modelled));
    let sum =
        format!("{} of the cores' time is noise in the trace, {} in the model.", measured.text(), modelled.text());
    Sheet {
        title: format!("{name}: {}", model.title),
        tables: vec![sources, fits],
        notes: vec![("Sum", vec![sum]), ("Notes", model.notes.iter().map(|note| format!("{note}.")).collect())],
        ..Sheet::default()
    }
}

fn about(ns: f64) -> String {
    cells::about(ns).text().to_owned()
}

fn arrivals(arrival: &Arrival) -> String {
    match arrival {
        Arrival::Periodic { period, .. } => format!("every {}", about(*period)),
        Arrival::Poisson { rate } => format!("{rate:.2}/s at random"),
        Arrival::Gaps { at_least, mean } => format!("gaps from {}, mean {}", about(*at_least), about(*mean)),
    }
}

fn place(source: &Source) -> String {
    let on = match &source.chosen {
        Some(cores) => format!("core {}", fxscope_hostinfo::cpus::format_list(cores)),
        None => "each core".to_owned(),
    };
    if source.together { format!("{on}, as one") } else { on }
}

fn length(length: &Length) -> String {
    match length {
        Length::Fixed(value) => Time(value.round()).to_string(),
        Length::Uniform(from, to) => format!("{} to {}", about(*from), about(*to)),
        Length::Exponential(mean) => format!("exponential, {}", about(*mean)),
        Length::Pareto(shape, from, to) => format!("Pareto {shape:.2}, {} to {}", about(*from), about(*to)),
        Length::Histogram(edges, _) => {
            let ends = edges.first().zip(edges.last()).map(|(from, to)| format!("{} to {}", about(*from), about(*to)));
            format!("as counted, {}", ends.unwrap_or_default())
        }
    }
}
