//! `fxscope jitter fit`: a noise model of a trace.

use std::path::PathBuf;

use fxscope::jitter::Time;
use fxscope::osnoise::fit::{self, Arrival, Length, Model, Source};

use super::super::Outcome;
use super::super::output::Target;
use super::sheet::{Cell, Sheet, Table};
use super::trace;

/// Fit a noise model to a trace: what is periodic, what comes at random, how long it is, whether it strikes cores together.
///
/// The model is a text file that `fxscope jitter simulate --model FILE` reads. `gaps off` and `lengths off` are the largest
/// differences between the trace's distribution and the model's (Kolmogorov-Smirnov, from 0 to 1); of periodic sources the share of
/// the periods in which no detour was found.
#[derive(clap::Args)]
pub struct Args {
    /// The trace.
    #[arg(value_name = "TRACE.fxn")]
    trace: PathBuf,
    /// The model, which is replaced as a whole, or standard output (-).
    #[arg(short, long, value_name = "MODEL.toml|-")]
    output: PathBuf,
}

/// Fits, writes the model, and shows how well it fits.
pub(super) fn fit(args: &Args) -> Outcome {
    let to_file = args.output.as_os_str() != "-";
    let target = Target::check(&args.output)?;
    let name = args.trace.display().to_string();
    let model = fit::fit(trace::open(&args.trace)?).map_err(|e| format!("{name}: {e}"))?;
    target.write_bytes(model.text(&name).as_bytes())?;
    if !to_file {
        return Ok(std::process::ExitCode::SUCCESS);
    }
    sheet(&model, &args.output.display().to_string()).show()
}

fn sheet(model: &Model, name: &str) -> Sheet {
    let mut sources = Table::new("Sources", &["source", "strikes", "length"]);
    let mut fits = Table::new("How well it fits", &["fit of", "arrivals", "detours", "gaps off", "lengths off"]);
    for source in &model.sources {
        let label = source.cause.label();
        let what = vec![Cell::word(place(source)), Cell::word(length(&source.length))];
        sources.rows.push((label.clone(), what));
        let (arrivals, detours) = (Cell::word(arrivals(&source.arrival)), Cell::number(source.detours as f64, 0));
        let fit = vec![arrivals, detours, Cell::number(source.gaps_off, 3), Cell::number(source.lengths_off, 3)];
        fits.rows.push((label, fit));
    }
    let (measured, modelled) = (Cell::share(model.measured).text, Cell::share(model.modelled).text);
    let sum = format!("{measured} of the cores' time is noise in the trace, {modelled} in the model.");
    Sheet {
        title: format!("{name}: {}", model.title),
        tables: vec![sources, fits],
        notes: vec![("Sum", vec![sum]), ("Notes", model.notes.iter().map(|note| format!("{note}.")).collect())],
        ..Sheet::default()
    }
}

fn about(ns: f64) -> String {
    Cell::about(ns).text
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
        Some(cores) => format!("core {}", fxscope::hostinfo::cpus::format_list(cores)),
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
