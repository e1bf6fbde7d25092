//! Sets of programs to check, as a file tells them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use serde::Deserialize;

use super::super::Failure;
use super::super::scenario::{ScenarioArgs, interval_ns};
use super::trial::Subject;
use super::{Asked, nanoseconds};

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Where programs are, from the file's own folder.
    #[serde(default)]
    programs: String,
    /// Options of every run, as for `fxscope run`.
    #[serde(default)]
    options: String,
    /// Latencies that are asked about, nanoseconds.
    #[serde(default)]
    latencies: Vec<f64>,
    /// Length of the intervals of normal runs.
    #[serde(default = "usual_interval")]
    interval: String,
    program: Vec<Entry>,
}

/// A program, or several that differ in words.
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
    /// The exit status with which it says that what it is asked cannot be done.
    #[serde(default)]
    refuses: Option<i32>,
    /// Words in braces, and what stands for them: a program for each combination.
    #[serde(default)]
    each: BTreeMap<String, Vec<String>>,
}

fn usual_interval() -> String {
    "100us".to_owned()
}

/// Options of a run by themselves.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct Options {
    #[command(flatten)]
    scenario: ScenarioArgs,
}

/// Largest file of programs, bytes.
const MOST_BYTES: u64 = 1 << 20;

/// The programs of files, which must not have the same name.
pub(super) fn read(paths: &[PathBuf], asked: &Asked) -> Result<Vec<Subject>, Failure> {
    let mut subjects = Vec::new();
    for path in paths {
        add(path, asked, &mut subjects)?;
    }
    Ok(subjects)
}

/// Adds the programs of a file.
fn add(path: &Path, asked: &Asked, subjects: &mut Vec<Subject>) -> Result<(), Failure> {
    let shown = path.display();
    let text = fxscope::host::read_text(path, MOST_BYTES)?;
    let file: File = toml::from_str(&text).map_err(|e| format!("{shown}: {e}"))?;
    let mut asked = asked.clone();
    if asked.latencies.is_empty() {
        asked.latencies.clone_from(&file.latencies);
    }
    let wrong = |name: &str, what: &str| format!("{shown}: {name}: {what}");
    if let Some(ns) = asked.latencies.iter().find(|ns| nanoseconds(&ns.to_string()).is_err()) {
        return Err(wrong("latencies", &format!("{ns} is no latency from 1 to 100000 ns")).into());
    }
    let interval_ns = interval_ns(&file.interval).map_err(|e| wrong("interval", &e))?;
    let folder = path.parent().unwrap_or(Path::new("")).join(&file.programs);
    let before = subjects.len();
    for entry in &file.program {
        for words in combinations(&entry.each) {
            let filled = |text: &str| {
                words.iter().fold(text.to_owned(), |text, (key, value)| text.replace(&format!("{{{key}}}"), value))
            };
            let name = filled(&entry.name);
            let options = filled(&format!("{} {}", file.options, entry.options));
            let options = Options::try_parse_from(options.split_whitespace())
                .map_err(|e| wrong(&name, e.to_string().lines().next().unwrap_or_default()))?;
            let run = filled(&entry.run);
            let mut command: Vec<OsString> = run.split_whitespace().map(OsString::from).collect();
            let program = command.first_mut().ok_or_else(|| wrong(&name, "run names no program"))?;
            *program = folder.join(&*program).into_os_string();
            if subjects.iter().any(|subject| subject.name == name) {
                return Err(wrong(&name, "a second program has this name").into());
            }
            let asked = Asked { region: asked.region.clone().or_else(|| entry.region.clone()), ..asked.clone() };
            let (fit, refuses) = (entry.fit, entry.refuses);
            let scenario = options.scenario.scenario(&command)?;
            subjects.push(Subject { name, fit, scenario, asked, interval_ns, refuses });
        }
    }
    if subjects.len() == before {
        return Err(format!("{shown}: has no program").into());
    }
    Ok(())
}

/// All choices of one value for each key.
fn combinations(each: &BTreeMap<String, Vec<String>>) -> Vec<Vec<(&str, &str)>> {
    let mut all: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for (key, values) in each {
        let with = |words: &Vec<_>, value| [&words[..], &[(key.as_str(), value)]].concat();
        all = all.iter().flat_map(|words| values.iter().map(move |value| with(words, value.as_str()))).collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_braces_are_combined_with_each_other() {
        let of = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let each = BTreeMap::from([("a".to_owned(), of(&["1", "2"])), ("b".to_owned(), of(&["x", "y", "z"]))]);
        let all = combinations(&each);
        assert_eq!(all.len(), 6);
        assert_eq!(all[1], [("a", "1"), ("b", "y")]);
        assert_eq!(combinations(&BTreeMap::new()), [Vec::new()]);
    }
}
