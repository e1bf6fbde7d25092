//! The pages of a run.

use fxscope_record::{Pages, Run};

use super::plain;
use crate::document::{Body, Row, Section, Value};

/// Returns one row for each segment, page size and node.
pub(crate) fn section(run: &Run) -> Section {
    let headings = ["segment", "page size", "node", "pages", "mapped", "lost to rounding"];
    let row = |p: &Pages| {
        let bytes = |bytes: u64| Value::number(bytes as f64, "B");
        let count = |n: u64| Value::number(n as f64, "count");
        let values = [bytes(p.page_bytes), count(p.node.into()), count(p.pages), bytes(p.bytes), bytes(p.lost())];
        Row { label: plain(&p.segment), values: values.into_iter().map(Some).collect() }
    };
    let rows = run.pages.iter().map(row).collect();
    Section { title: "Pages".to_owned(), body: Body::Table { headings: headings.map(str::to_owned).to_vec(), rows } }
}
