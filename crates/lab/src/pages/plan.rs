//! Sets of programs whose pages are checked, read from files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fxscope_session::Scenario;
use serde::Deserialize;

use crate::Error;
use crate::latency::plan::Syntax;
use crate::templates::{Program, Template};

/// A plan file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Folder of the programs, relative to that of the file.
    #[serde(default)]
    programs: String,
    /// Options of every run, as for `fxscope run`.
    #[serde(default)]
    options: String,
    program: Vec<Entry>,
}

/// A program, or several that differ in placeholders.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    /// The program and its arguments.
    run: String,
    /// Further options of its runs.
    #[serde(default)]
    options: String,
    /// Whether the predictions were made with this program in view.
    #[serde(default)]
    fit: bool,
    /// Placeholders in braces, and their values: one program for each combination.
    #[serde(default)]
    each: BTreeMap<String, Vec<String>>,
}

/// A program whose pages are checked.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Whether the predictions were made with this program in view; the others test them.
    pub fit: bool,
    /// Its scenario with the pages that it has now.
    pub scenario: Scenario,
}

/// Largest plan file, bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Reads the programs of plan files; names must be unique.
///
/// # Errors
/// If a file cannot be read or is invalid.
pub fn read(paths: &[PathBuf], syntax: &dyn Syntax) -> Result<Vec<Subject>, Error> {
    let mut subjects = Vec::new();
    paths.iter().try_for_each(|path| add(path, syntax, &mut subjects))?;
    Ok(subjects)
}

/// Adds the programs of a plan file.
fn add(path: &Path, syntax: &dyn Syntax, subjects: &mut Vec<Subject>) -> Result<(), Error> {
    let shown = path.display();
    let text = fxscope_host::read_text(path, MOST_BYTES).map_err(|e| e.to_string())?;
    let file: File = toml::from_str(&text).map_err(|e| format!("{shown}: {e}"))?;
    let folder = path.parent().unwrap_or(Path::new("")).join(&file.programs);
    if file.program.is_empty() {
        return Err(format!("{shown}: has no program").into());
    }
    for entry in &file.program {
        let template = Template {
            name: &entry.name,
            run: &entry.run,
            options: [&file.options, &entry.options],
            command: "pages check",
            each: &entry.each,
        };
        for Program { name, scenario } in template.programs(&folder, syntax).map_err(|e| format!("{shown}: {e}"))? {
            if subjects.iter().any(|subject| subject.name == name) {
                return Err(format!("{shown}: {name}: a second program has this name").into());
            }
            subjects.push(Subject { name, fit: entry.fit, scenario });
        }
    }
    Ok(())
}
