//! A table of many regions, one line each.

use fxscope_pmu::Metrics;

use super::{accounting, plain};
use crate::Column;
use crate::document::{Body, Row, Section, Value};

/// The metric of the first column, whose interval is shown.
const TIME: &str = "seconds";

/// Heading and metric of the columns between calls and largest wait.
const METRICS: &[(&str, &str)] =
    &[("time", TIME), ("IPC", "ipc"), ("FP", "gflops"), ("memory", "memory_gbs"), ("L1D misses", "l1d_miss_rate")];

pub(crate) fn section(columns: &[Column]) -> Section {
    let headings = ["region", "calls"].into_iter().chain(METRICS.iter().map(|m| m.0)).chain(["largest wait"]);
    let rows = columns.iter().map(|column| {
        let metric = |name: &str| {
            let unit = &Metrics::built_in().named(name)?.unit;
            // There is room for one interval.
            let sampled = column.sampled.as_ref().filter(|_| name == TIME);
            let half_width = sampled.and_then(|sampled| sampled.of_metric(name));
            column.values.get(name).map(|v| Value::estimate(v, unit, half_width))
        };
        let mut values = vec![Some(Value::number(column.region.calls as f64, "count"))];
        values.extend(METRICS.iter().map(|(_, name)| metric(name)));
        values.push(
            accounting::largest_wait(column).map(|(title, f)| Value::Text(format!("{title} {:.0} %", 100.0 * f))),
        );
        Row { label: plain(&column.region.name), values }
    });
    let rows = rows.collect();
    Section { title: String::new(), body: Body::Table { headings: headings.map(str::to_owned).collect(), rows } }
}
