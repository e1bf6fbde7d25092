//! Notes for the reader.

use fxscope_pmu::unknown_events;

use super::plain;
use crate::Column;
use crate::document::{Body, Section};

pub(super) fn section(columns: &[Column]) -> Section {
    let mut notes: Vec<String> = Vec::new();
    for Column { run, .. } in columns {
        for note in run.notes.iter().cloned().chain(unknown_events(run)).map(|note| plain(&note)) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    Section { title: "Notes".to_owned(), body: Body::Notes(notes) }
}
