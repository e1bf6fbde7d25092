//! The pages of a run.

use fxscope_record::{Pages, Region, Run};

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

/// What the system did with pages by their heat: a row's name, and the events of its pages, bytes and cycles.
const TIERING: [(&str, [Option<&str>; 3]); 5] = [
    ("hint faults", [Some("TIER_HINT_FAULT"), None, None]),
    ("promoted", [Some("TIER_PROMOTE"), Some("TIER_PROMOTE_BYTES"), None]),
    ("demoted", [Some("TIER_DEMOTE"), Some("TIER_DEMOTE_BYTES"), None]),
    ("program waited", [None, None, Some("TIERING_CYCLES")]),
    ("system's own thread", [None, None, Some("TIERING_RECLAIM_CYCLES")]),
];

/// Returns what the system did in a region to promote and demote pages, all threads together; `None` if it did nothing.
pub(crate) fn tiering(region: &Region) -> Option<Section> {
    let sum = |event: &str| (0..region.threads.len()).filter_map(|thread| region.count(thread, event)).sum::<u64>();
    let events = TIERING.iter().flat_map(|(_, events)| events.iter().flatten());
    if events.map(|event| sum(event)).all(|count| count == 0) {
        return None;
    }
    let row = |(name, events): &(&str, [Option<&str>; 3])| {
        let values = events.iter().zip(["count", "B", "cycles"]);
        let values = values.map(|(event, unit)| event.map(|event| Value::number(sum(event) as f64, unit)));
        Row { label: plain(name), values: values.collect() }
    };
    let headings = ["pages moved by heat", "pages", "size", "cycles"];
    let rows = TIERING.iter().map(row).collect();
    let body = Body::Table { headings: headings.map(str::to_owned).to_vec(), rows };
    Some(Section { title: "Memory tiering".to_owned(), body })
}
