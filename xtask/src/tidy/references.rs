//! Checks references in documents, code and data: limits of the model, gaps of measured rows, notes of experiments.

use std::collections::BTreeSet;

use fxscope_validate::Suite;

use super::{files, read};
use crate::root;

/// The table of the model's limits.
const LIMITS: &str = "docs/model/limits.md";
/// Most rows of that table, so that readers find what they look for.
const MOST_LIMITS: usize = 40;
/// Cells per row.
const CELLS: usize = 5;
/// Notes of experiments, one page each.
const NOTES: &str = "docs/notes/";
/// Folders with files of others.
const FOREIGN: [&str; 2] = ["testdata/", "bench/"];

/// Returns malformed rows of the table of limits, and references to rows that do not exist.
///
/// # Errors
/// If a file cannot be read.
pub fn limits() -> Result<Vec<String>, String> {
    let text = read(LIMITS)?;
    let id = regex::Regex::new(r#"^\| <a id="([a-z0-9-]+)"></a>"#).expect("constant");
    let (mut found, mut ids) = (Vec::new(), BTreeSet::new());
    for (i, line) in text.lines().enumerate() {
        let Some(captures) = id.captures(line) else { continue };
        if !ids.insert(captures[1].to_owned()) {
            found.push(format!("{LIMITS}:{}: '{}' is the name of two rows", i + 1, &captures[1]));
        }
        let cells = line.matches(" | ").count() + 1;
        if cells != CELLS {
            found.push(format!("{LIMITS}:{}: the row has {cells} cells; it must have {CELLS}", i + 1));
        }
    }
    if ids.len() > MOST_LIMITS {
        found.push(format!("{LIMITS} has {} rows; {MOST_LIMITS} at most: merge some", ids.len()));
    }
    let reference = regex::Regex::new(r"\blimits(?:\.md)?#([a-z0-9-]+)").expect("constant");
    for file in files(&[".md", ".rs", ".toml", ".csv", ".c", ".S", "Makefile"]) {
        if FOREIGN.iter().any(|folder| file.starts_with(folder)) || file.starts_with("xtask/src/tidy") {
            continue;
        }
        for captures in reference.captures_iter(&read(&file)?) {
            if !ids.contains(&captures[1]) {
                found.push(format!("{file} names limits#{}, which is not a row of {LIMITS}", &captures[1]));
            }
        }
    }
    Ok(found)
}

/// Returns gaps that no measured row names, and gaps whose page does not exist. [`Suite::read`] checks that rows name
/// existing gaps.
///
/// # Errors
/// If rows cannot be read.
pub fn gaps() -> Result<Vec<String>, String> {
    let suite = Suite::read(&root().join("validation"))?;
    let rows: Vec<_> = suite.families.iter().flat_map(|family| &family.rows).map(|(row, _)| row).collect();
    let mut found = Vec::new();
    for gap in suite.gaps.values() {
        let name = gap.gap.as_str();
        if !rows.iter().any(|row| row.gap == name || row.is_fitted_to(name)) {
            found.push(format!("validation/gaps.csv: no row names the gap '{name}'"));
        }
        if gap.what.is_empty() || gap.would_close.is_empty() {
            found.push(format!("validation/gaps.csv: '{name}' does not say what differs or what would settle it"));
        }
        if !gap.note.is_empty() && !root().join(&gap.note).exists() {
            found.push(format!("validation/gaps.csv: '{name}' names {}, which does not exist", gap.note));
        }
    }
    Ok(found)
}

/// Returns notes whose names do not begin with a date, or that the list of notes lacks.
///
/// # Errors
/// If a file cannot be read.
pub fn notes() -> Result<Vec<String>, String> {
    let list = read(&format!("{NOTES}README.md"))?;
    let dated = regex::Regex::new(r"^\d{4}-\d{2}-\d{2}-[a-z0-9-]+\.md$").expect("constant");
    let mut found = Vec::new();
    for file in files(&[".md"]) {
        let Some(name) = file.strip_prefix(NOTES).filter(|name| *name != "README.md") else { continue };
        if !dated.is_match(name) {
            found.push(format!("{file}: name it YYYY-MM-DD-title.md"));
        }
        if !list.contains(&format!("({name})")) {
            found.push(format!("{file} is not in {NOTES}README.md"));
        }
    }
    Ok(found)
}
