//! What a reader of the numbers should know.

use super::plain;
use crate::Column;
use crate::document::{Body, Section};

pub(super) fn section(columns: &[Column]) -> Section {
    let mut notes: Vec<String> = Vec::new();
    for note in columns.iter().flat_map(|c| &c.run.notes).map(|note| plain(note)) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    Section { title: "Notes".to_owned(), body: Body::Notes(notes) }
}
