//! Notes for the reader.

use fxscope_pmu::unknown_events;

use super::plain;
use crate::Column;
use crate::document::{Body, Section};

pub(super) fn section(columns: &[Column]) -> Section {
    let mut notes: Vec<String> = Vec::new();
    for Column { run, .. } in columns {
        // Failures have further lines, with stacks.
        let failures = run.failures.iter().map(|failure| failure.lines().next().unwrap_or_default().to_owned());
        let all = failures.chain(run.notes.iter().cloned()).chain(unknown_events(run));
        for note in all.map(|note| plain(&note)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    Section { title: "Notes".to_owned(), body: Body::Notes(notes) }
}
