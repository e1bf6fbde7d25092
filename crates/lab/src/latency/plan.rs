//! Sets of programs to check, read from files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use fxscope_session::{Scenario, interval_ns};
use serde::Deserialize;

use super::samples::Subject;
use super::{LATENCY_RANGE_NS, PredictOptions};
use crate::Error;
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
    /// Memory latencies, nanoseconds.
    #[serde(default)]
    latencies: Vec<f64>,
    /// Length of the intervals of normal runs.
    #[serde(default = "usual_interval")]
    interval: String,
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
    #[serde(default)]
    region: Option<String>,
    /// Whether coefficients are fitted to it.
    #[serde(default)]
    fit: bool,
    /// Exit status with which the program says that it cannot run with these arguments.
    #[serde(default)]
    refuses: Option<i32>,
    /// Placeholders in braces, and their values: one program for each combination.
    #[serde(default)]
    each: BTreeMap<String, Vec<String>>,
}

fn usual_interval() -> String {
    "100us".to_owned()
}

/// Parses texts of a plan file in the syntax of the command line.
pub trait Syntax {
    /// Parses a command with options of `fxscope run`.
    ///
    /// # Errors
    /// A message about invalid options.
    fn scenario(&self, options: &[&str], command: &[OsString]) -> Result<Scenario, String>;
}

/// Largest plan file, bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Reads the programs of plan files; names must be unique.
///
/// # Errors
/// If a file cannot be read or is invalid.
pub fn read(paths: &[PathBuf], options: &PredictOptions, syntax: &dyn Syntax) -> Result<Vec<Subject>, Error> {
    let mut subjects = Vec::new();
    for path in paths {
        add(path, options, syntax, &mut subjects)?;
    }
    Ok(subjects)
}

/// Adds the programs of a plan file.
fn add(path: &Path, options: &PredictOptions, syntax: &dyn Syntax, subjects: &mut Vec<Subject>) -> Result<(), Error> {
    let shown = path.display();
    let text = fxscope_host::read_text(path, MOST_BYTES).map_err(|e| e.to_string())?;
    let file: File = toml::from_str(&text).map_err(|e| format!("{shown}: {e}"))?;
    let mut options = options.clone();
    if options.latencies.is_empty() {
        options.latencies.clone_from(&file.latencies);
    }
    let wrong = |name: &str, what: &str| format!("{shown}: {name}: {what}");
    if let Some(ns) = options.latencies.iter().find(|ns| !LATENCY_RANGE_NS.contains(ns)) {
        return Err(wrong("latencies", &format!("{ns} is not a latency from 1 to 100000 ns")).into());
    }
    let interval_ns = interval_ns(&file.interval).map_err(|e| wrong("interval", &e))?;
    let folder = path.parent().unwrap_or(Path::new("")).join(&file.programs);
    let before = subjects.len();
    for entry in &file.program {
        let template = Template {
            name: &entry.name,
            run: &entry.run,
            options: [&file.options, &entry.options],
            command: "latency check",
            each: &entry.each,
        };
        for Program { name, scenario } in template.programs(&folder, syntax).map_err(|e| format!("{shown}: {e}"))? {
            if subjects.iter().any(|subject| subject.name == name) {
                return Err(wrong(&name, "a second program has this name").into());
            }
            let options =
                PredictOptions { region: options.region.clone().or_else(|| entry.region.clone()), ..options.clone() };
            let (fit, refuses) = (entry.fit, entry.refuses);
            subjects.push(Subject { name, fit, scenario, options, interval_ns, refuses });
        }
    }
    if subjects.len() == before {
        return Err(format!("{shown}: has no program").into());
    }
    Ok(())
}
