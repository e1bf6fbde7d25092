//! The runs of a laboratory one by one: each can be made elsewhere, if what it counted comes into the cache.

use fxscope_report::document::Document;
use fxscope_report::sheet::{Cell, Table};
use serde_json::{Value as Json, json};

use crate::{Cache, Error};

/// A run that a laboratory needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name, for people.
    pub name: String,
    /// Name of the file in the cache that has what it counted.
    pub result: String,
    /// Whether that is there already.
    pub is_cached: bool,
}

impl Task {
    /// Returns the run of this name whose result depends on `key`.
    pub(crate) fn of(name: String, key: &[Vec<u8>], cache: &Cache) -> Task {
        let (result, is_cached) = cache.result(key);
        Task { name, result, is_cached }
    }
}

/// Returns a list of runs for people.
#[must_use]
pub fn document(tasks: &[Task]) -> Document {
    let mut table = Table::new("Runs", ["run", "cached", "result"]);
    for task in tasks {
        let cached = if task.is_cached { "yes" } else { "no" };
        table.push(&task.name, vec![Cell::word(cached), Cell::word(&task.result)]);
    }
    Document::of("Runs that are needed", vec![table.section()])
}

/// Returns a list of runs for programs, with the folder of the cache.
#[must_use]
pub fn list_json(tasks: &[Task], cache: &Cache) -> Json {
    let one = |task: &Task| json!({ "run": task.name, "result": task.result, "cached": task.is_cached });
    json!({ "cache": cache.folder(), "runs": tasks.iter().map(one).collect::<Vec<_>>() })
}

/// The error for a result that no run has.
pub(crate) fn unknown(result: &str) -> Error {
    let hint = "another version of fxscope, program or option makes others; --dry-run lists them";
    format!("--only {result}: no run has this result; {hint}").into()
}
