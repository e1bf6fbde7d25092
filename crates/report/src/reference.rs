//! The reference of metrics, as Markdown.

use std::fmt::Write as _;

use fxscope_pmu::{Group, Metric, Metrics, Total};

/// Returns the metrics, group by group, each with its meaning, unit and formula.
#[must_use]
pub fn metrics(metrics: &Metrics) -> String {
    let mut text = String::from(
        "# Metrics\n\nThe named quantities of reports: as `metrics` in JSON, columns of sweeps, and in formulas of rules and of metrics \
         of your own.\n\nA formula uses events of the machine, other metrics and constants. `EVENT@N` is the count from the pass of the \
         N-th group of events. A metric whose events were not counted has no value. The last column says how the threads of a CMG \
         are combined, and all threads, if that differs.\n",
    );
    metrics.groups().iter().for_each(|group| section(group, &mut text));
    text
}

fn section(group: &Group, text: &mut String) {
    let _ =
        write!(text, "\n## {}\n\n| Name | Meaning | Unit | Formula | Threads |\n|---|---|---|---|---|\n", group.title);
    for metric in &group.metrics {
        let Metric { name, title, unit, written, .. } = metric;
        let _ =
            writeln!(text, "| `{name}` | {title} | {unit} | `{written}`{} | {} |", instead(metric), threads(metric));
    }
}

/// Says when a metric has a value only for lack of better ones.
fn instead(metric: &Metric) -> String {
    let better: Vec<String> = metric.instead_of.iter().map(|name| format!("`{name}`")).collect();
    if better.is_empty() { String::new() } else { format!(", if none of {} has a value", better.join(", ")) }
}

fn threads(metric: &Metric) -> String {
    let total = combined(metric.total);
    if metric.whole == metric.total { total.to_owned() } else { format!("{total}; all: {}", combined(metric.whole)) }
}

/// Returns how values of threads are combined, in words.
fn combined(total: Total) -> &'static str {
    match total {
        Total::Sum => "of summed counts",
        Total::Mean => "mean",
        Total::Add => "sum",
        Total::Max => "maximum",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_row_with_its_formula_on_one_line() {
        let built_in = Metrics::built_in();
        let text = metrics(built_in);
        assert_eq!(text.lines().filter(|line| line.starts_with("| `")).count(), built_in.all().count());
        let row = "| `gips` | Effective instructions per second | G/s | `effective_instructions / 1000000000 / seconds` | of summed counts |";
        assert!(text.contains(row), "{text}");
    }
}
