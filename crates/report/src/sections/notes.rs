//! What a reader of the numbers should know.

use super::plain;
use crate::Column;
use crate::document::{Body, Section};

pub(super) fn section(columns: &[Column]) -> Section {
    let mut notes: Vec<String> = Vec::new();
    let of_run =
        |column: &Column| column.run.notes.iter().cloned().chain(fxscope_pmu::unknown_events(column.run)).collect();
    let all: Vec<String> = columns.iter().flat_map(|column| -> Vec<String> { of_run(column) }).collect();
    for note in all.iter().map(|note| plain(note)) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Section { title: "Notes".to_owned(), body: Body::Notes(notes) }
}
