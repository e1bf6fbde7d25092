//! Writes models as text, in the format that simulations read.

use std::fmt::Write as _;

use fxscope_host::text::printable;

use super::{Arrival, Length, Model, Source};

/// Quotes a text as a TOML string.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in printable(text).chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// Formats a time in ns with three decimals of its unit.
fn time(ns: f64) -> String {
    let (unit, size) = match ns {
        _ if ns < 1e3 => ("ns", 1.0),
        _ if ns < 1e6 => ("us", 1e3),
        _ if ns < 1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let text = format!("{:.6}", ns / size);
    format!("\"{}{unit}\"", text.trim_end_matches('0').trim_end_matches('.'))
}

impl Model {
    /// Returns the model as a file; `trace` names what it was fitted to.
    #[must_use]
    pub fn text(&self, trace: &str) -> String {
        let mut out = String::new();
        let explained = format!(
            "{:.4} % of the time is noise in the trace, {:.4} % in this model.",
            self.measured * 100.0,
            self.modelled * 100.0
        );
        let notes = std::iter::once(explained).chain(self.notes.iter().map(|note| format!("{note}.")));
        let note = notes.collect::<Vec<_>>().join(" ");
        // Writing to a string cannot fail.
        let _ = writeln!(out, "version = 1\ntitle = {}\nnote = {}", string(&self.title), string(&note));
        for source in &self.sources {
            out.push_str(&entry(source, trace));
        }
        out
    }
}

fn entry(source: &Source, trace: &str) -> String {
    let arrival = match source.arrival {
        Arrival::Periodic { period, missing } => {
            let missing = if missing > 0.0005 { format!(", missing = {missing:.4}") } else { String::new() };
            format!("kind = \"periodic\", period = {}{missing}", time(period))
        }
        Arrival::Poisson { rate } => format!("kind = \"poisson\", rate = {rate:.6}"),
        Arrival::Gaps { at_least, mean } => {
            format!("kind = \"gaps\", at_least = {}, mean = {}", time(at_least), time(mean))
        }
    };
    let length = match &source.length {
        Length::Fixed(value) => format!("kind = \"fixed\", value = {}", time(*value)),
        Length::Uniform(low, high) => {
            format!("kind = \"uniform\", at_least = {}, at_most = {}", time(*low), time(*high))
        }
        Length::Exponential(mean) => format!("kind = \"exponential\", mean = {}", time(*mean)),
        Length::Pareto(shape, low, high) => {
            format!("kind = \"pareto\", shape = {shape:.6}, at_least = {}, at_most = {}", time(*low), time(*high))
        }
        Length::Histogram(edges, counts) => {
            let edges = edges.iter().map(|&edge| time(edge)).collect::<Vec<_>>().join(", ");
            let counts = counts.iter().map(|count| format!("{count:.1}")).collect::<Vec<_>>().join(", ");
            format!("kind = \"histogram\", edges = [{edges}], counts = [{counts}]")
        }
    };
    let on = match &source.chosen {
        Some(cores) => format!("[{}]", cores.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
        None => "\"cores\"".to_owned(),
    };
    let gaps = match source.arrival {
        Arrival::Periodic { .. } => format!("{:.1} % of the periods without one", source.gaps_off * 100.0),
        _ => format!("gaps off by {:.3}", source.gaps_off),
    };
    let origin = format!("{trace}: {} detours, {gaps}, lengths off by {:.3}", source.detours, source.lengths_off);
    let mut out = format!(
        "\n[[noise]]\ncause = {}\narrival = {{ {arrival} }}\nlength = {{ {length} }}\non = {on}\n",
        string(&source.cause.label())
    );
    if source.together {
        out.push_str("correlation = \"node\"\n");
    }
    if source.same_lengths {
        out.push_str("lengths = \"same\"\n");
    }
    let _ = writeln!(out, "source = {}\nevidence = \"measured\"", string(&origin));
    out
}
