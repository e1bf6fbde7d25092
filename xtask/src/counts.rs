//! Counts of a fixed list of runs, stored before a change and compared after it.
//!
//! A change that is not meant to alter the model leaves every count of `counts/runs.txt` unchanged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::root;

/// The runs: name, options and program, separated by bars.
const RUNS: &str = include_str!("counts/runs.txt");

/// Members of a run's JSON that are compared. Others depend on the host or describe the run.
const OF_RUN: [&str; 5] = ["finish", "exit_code", "simulated", "pages", "intervals"];
/// Members of a region that are compared. Metrics and tables follow from the events.
const OF_REGION: [&str; 3] = ["name", "calls", "events"];
/// Members of a thread that are compared.
const OF_THREAD: [&str; 5] = ["process", "thread", "node", "cpu", "events"];

/// Compiles the programs that are not prebuilt.
const COMPILER: &str = "aarch64-linux-gnu-gcc";

/// Most differing values listed per run.
const SHOWN: usize = 5;

/// Options of the task.
#[derive(clap::Args)]
pub struct Args {
    /// Store the counts in this folder, or compare with those stored there.
    folder: PathBuf,
    /// Store the counts instead of comparing them.
    #[arg(long)]
    keep: bool,
    /// Only the runs whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// The program to run.
    #[arg(long, default_value = "target/release/fxscope")]
    fxscope: PathBuf,
}

/// One run of the list.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    name: &'static str,
    options: Vec<String>,
    program: &'static str,
    arguments: Vec<&'static str>,
}

/// Stores the counts of all runs, or compares them with the stored ones.
///
/// # Errors
/// If a run fails, or its counts differ from the stored ones.
pub fn run(args: &Args) -> Result<(), String> {
    let io = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::create_dir_all(&args.folder).map_err(|e| io(&args.folder, e))?;
    let scratch = tempfile::tempdir().map_err(|e| format!("a temporary folder: {e}"))?;
    let mut differing = Vec::new();
    let mut count = 0;
    for run in runs().into_iter().filter(|run| run.name.contains(&args.only)) {
        let now = counts(&args.fxscope, &run, scratch.path())?;
        let file = args.folder.join(format!("{}.json", run.name));
        count += 1;
        if args.keep {
            std::fs::write(&file, format!("{now:#}\n")).map_err(|e| io(&file, e))?;
            continue;
        }
        let kept = std::fs::read_to_string(&file).map_err(|e| io(&file, e))?;
        let kept: Value = serde_json::from_str(&kept).map_err(|e| format!("{}: {e}", file.display()))?;
        let found = differences(&kept, &now);
        if !found.is_empty() {
            println!("{}: {} values differ", run.name, found.len());
            found.iter().take(SHOWN).for_each(|line| println!("    {line}"));
            differing.push(run.name);
        }
    }
    match (args.keep, differing.is_empty()) {
        (true, _) => println!("kept the counts of {count} runs"),
        (false, true) => println!("{count} runs: no count differs"),
        (false, false) => return Err(format!("{} of {count} runs differ: {}", differing.len(), differing.join(", "))),
    }
    Ok(())
}

/// Returns the list of runs. A lone pair of quotes keeps blanks within one option.
fn runs() -> Vec<Run> {
    let lines = RUNS.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let run = |line: &'static str| {
        let mut parts = line.split('|').map(str::trim);
        let mut part = || parts.next().expect("a run has a name, options and a program");
        let (name, options, command) = (part(), part(), part());
        let mut words = command.split_whitespace();
        Run {
            name,
            options: split_quoted(options),
            program: words.next().expect("a run has a program"),
            arguments: words.collect(),
        }
    };
    lines.map(run).collect()
}

fn split_quoted(text: &str) -> Vec<String> {
    let words = |(i, part): (usize, &str)| match i % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    text.split('"').enumerate().flat_map(words).collect()
}

/// Returns the counts of a run. Programs are named by relative paths, since names are part of their memory.
fn counts(fxscope: &Path, run: &Run, scratch: &Path) -> Result<Value, String> {
    let (folder, program) = match run.program.strip_suffix(".c") {
        Some(name) => (scratch.to_owned(), compile(name, scratch)?),
        None => (root().join("kernels/prebuilt"), format!("{}.elf", run.program)),
    };
    let program = format!("./{program}");
    let output = scratch.join("counts.json");
    let mut command = Command::new(std::path::absolute(fxscope).map_err(|e| format!("{}: {e}", fxscope.display()))?);
    command.current_dir(folder);
    command.args(["run", "--quiet", "--json"]).arg(&output).args(&run.options).arg("--").arg(&program);
    command.args(&run.arguments).stdout(Stdio::null());
    let status = command.status().map_err(|e| format!("{}: {e}; build it first", fxscope.display()))?;
    if !status.success() {
        return Err(format!("{}: {command:?} ended with {status}", run.name));
    }
    let text = std::fs::read_to_string(&output).map_err(|e| format!("{}: {e}", output.display()))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", run.name))?;
    Ok(counted(&json))
}

/// Returns the parts of a run that are compared.
fn counted(run: &Value) -> Value {
    let list = |of: &Value, each: &dyn Fn(&Value) -> Value| {
        Value::Array(of.as_array().into_iter().flatten().map(each).collect())
    };
    let region = |region: &Value| {
        let mut kept = members(region, &OF_REGION);
        kept["threads"] = list(&region["threads"], &|thread| members(thread, &OF_THREAD));
        kept
    };
    let mut kept = members(run, &OF_RUN);
    kept["regions"] = list(&run["regions"], &region);
    kept
}

fn members(of: &Value, names: &[&str]) -> Value {
    names.iter().map(|&name| (name.to_owned(), of[name].clone())).collect()
}

fn compile(name: &str, scratch: &Path) -> Result<String, String> {
    let file = format!("{name}.elf");
    let program = scratch.join(&file);
    if !program.exists() {
        let source = root().join(format!("xtask/src/counts/{name}.c"));
        let status = Command::new(COMPILER).args(["-O1", "-static", "-o"]).arg(&program).arg(&source).status();
        let status = status.map_err(|e| format!("{COMPILER}: {e}"))?;
        if !status.success() {
            return Err(format!("{COMPILER} {}: {status}", source.display()));
        }
    }
    Ok(file)
}

/// Returns the differences between two JSON values: path, value before, value now.
fn differences(before: &Value, now: &Value) -> Vec<String> {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    flatten("", before, &mut old);
    flatten("", now, &mut new);
    let show = |value: Option<&String>| value.map_or("nothing", String::as_str).to_owned();
    let paths = old.keys().chain(new.keys().filter(|path| !old.contains_key(*path)));
    let differ = paths.filter(|path| old.get(*path) != new.get(*path));
    differ.map(|path| format!("{path}: {} -> {}", show(old.get(path)), show(new.get(path)))).collect()
}

/// Collects all scalar values below `value`, by path.
fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| flatten(&format!("{path}/{key}"), value, into)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| flatten(&format!("{path}/{i}"), value, into));
        }
        plain => {
            into.insert(path.to_owned(), plain.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_run_of_the_list_has_a_name_of_its_own_and_a_program_that_exists() {
        let runs = runs();
        assert!(runs.len() >= 60, "{} runs", runs.len());
        let mut names: Vec<_> = runs.iter().map(|run| run.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), runs.len());
        for run in &runs {
            let file = match run.program.ends_with(".c") {
                true => root().join(format!("xtask/src/counts/{}", run.program)),
                false => root().join(format!("kernels/prebuilt/{}.elf", run.program)),
            };
            assert!(file.exists(), "{}: no {}", run.name, file.display());
        }
    }

    #[test]
    fn quotes_keep_blanks_within_an_option() {
        assert_eq!(split_quoted(r#"--hwpf "--distL1 4" -q"#), ["--hwpf", "--distL1 4", "-q"]);
    }

    #[test]
    fn differences_name_the_path_and_both_values() {
        let (before, now) = (json!({"a": {"b": 1, "c": [2, 3]}}), json!({"a": {"b": 1, "c": [2, 4]}, "d": null}));
        assert_eq!(differences(&before, &now), ["/a/c/1: 3 -> 4", "/d: nothing -> null"]);
        assert!(differences(&now, &now).is_empty());
    }
}
