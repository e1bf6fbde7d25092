//! The cost of the simulation; nothing for measured runs.

use fxscope_record::Origin;

use crate::Column;
use crate::document::{Body, Row, Section, Value};

pub(super) fn section(columns: &[Column]) -> Section {
    let row = |label: &str, unit: &str, value: fn(&Column) -> f64| Row {
        label: label.to_owned(),
        values: columns.iter().map(|c| Some(Value::number(value(c), unit))).collect(),
    };
    if columns.iter().all(|c| c.run.origin != Origin::Simulated) {
        return Section { title: String::new(), body: Body::Facts(Vec::new()) };
    }
    let mut rows = vec![row("speed", "MIPS", |c| c.run.host.mips)];
    if columns.iter().any(|c| c.run.host.skipped_mips > 0.0) {
        rows.push(row("and skipped", "MIPS", |c| c.run.host.skipped_mips));
    }
    rows.extend([
        row("wall time", "s", |c| c.run.host.wall_seconds),
        row("memory", "B", |c| c.run.host.peak_rss_bytes as f64),
        row("the program's own", "B", |c| c.run.host.guest_bytes as f64),
    ]);
    Section { title: "Simulator".to_owned(), body: Body::Facts(rows) }
}
