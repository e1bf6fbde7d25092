//! `fxscope jitter profiles` and `show`: noise models that come with the program, and what a trace or a model says.

use std::path::Path;
use std::process::ExitCode;

use fxscope::jitter::model::{self, Model, Source};
use fxscope::jitter::network;
use fxscope::osnoise::trace::is_trace;

use super::super::{Failure, Outcome, print};
use super::sheet::{Cell, Form, Sheet, Table};
use super::trace;

/// Lists the profiles and the networks.
pub(super) fn profiles() -> Outcome {
    let line = |name: &str| -> Result<String, Failure> { Ok(format!("{name:21} {}\n", model::load(name)?.title)) };
    let mut text = "Noise models\n".to_owned();
    for name in model::names() {
        text.push_str(&line(name)?);
    }
    text.push_str("Networks\n");
    for name in network::names() {
        text.push_str(&format!("{name:21} {}\n", network::Network::load(name)?.title));
    }
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Show a trace or a noise model.
///
/// Of a trace the share of the time that is noise, its rate, lengths, periods, spectrum and time line, by core and by cause; of a
/// model its sources, what share of a core each takes, and where the numbers are from.
#[derive(clap::Args)]
pub struct Args {
    /// A trace (of `fxscope jitter measure` or `import`), a profile (see `fxscope jitter profiles`), or the path of a model's
    /// file.
    #[arg(value_name = "TRACE|NAME|FILE")]
    what: String,
    /// Cores of a node, for models.
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u32).range(1..=65_535))]
    cores_per_node: u32,
    #[command(flatten)]
    form: Form,
}

/// Shows a trace or a model.
pub(super) fn show(args: &Args) -> Outcome {
    let target = args.form.target()?;
    let path = Path::new(&args.what);
    if is_trace(path) {
        return trace::sheet(&trace::look(path)?, &args.what).write(&args.form, target);
    }
    let model = model::load(&args.what)?;
    model.check(args.cores_per_node)?;
    sheet(&model, args.cores_per_node).write(&args.form, target)
}

fn sheet(model: &Model, cores: u32) -> Sheet {
    let mut table = Table::new(
        format!("Sources on a node of {cores} cores"),
        &["cause", "of a core", "arrivals", "strikes", "length"],
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
    let share = Cell::share(model.fraction(cores)).text;
    let mut seen = vec![format!("{share} of all cores' time is stolen.")];
    seen.extend((!model.note.is_empty()).then(|| model.note.clone()));
    Sheet {
        title: format!("{}: {}", model.name, model.title),
        tables: if table.rows.is_empty() { Vec::new() } else { vec![table] },
        notes: vec![("Sum", seen), ("Sources", model.sources.iter().map(origin).collect())],
        plots: Vec::new(),
        bars: Vec::new(),
    }
}
