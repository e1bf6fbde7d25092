//! Sets of programs whose pages are checked, read from files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fxscope_session::Scenario;
use serde::Deserialize;

use crate::Error;
use crate::latency::plan::{Syntax, combinations};

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
        for words in combinations(&entry.each) {
            let filled = |text: &str| {
                words.iter().fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{{key}}}"), value))
            };
            let name = filled(&entry.name);
            let wrong = |what: &str| Error::from(format!("{shown}: {name}: {what}"));
            let options = filled(&format!("{} {}", file.options, entry.options));
            let options: Vec<&str> = options.split_whitespace().collect();
            let mut command: Vec<OsString> = filled(&entry.run).split_whitespace().map(OsString::from).collect();
            let program = command.first_mut().ok_or_else(|| wrong("run names no program"))?;
            *program = folder.join(&*program).into_os_string();
            if subjects.iter().any(|subject| subject.name == name) {
                return Err(wrong("a second program has this name"));
            }
            let scenario = syntax.scenario(&options, &command).map_err(|e| wrong(&e))?;
            subjects.push(Subject { name, fit: entry.fit, scenario });
        }
    }
    Ok(())
}
