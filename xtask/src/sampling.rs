//! Sampled runs compared with runs that time everything: the error of their time and cycles, and how much less host time they take.
//!
//! The host time is the processor time of the simulator, which depends less on what else the host does than the time that passes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::root;

/// The runs, unless `--runs` names others.
const RUNS: &str = include_str!("sampling/runs.txt");

/// Ticks of `/proc/self/stat` in a second: a constant of Linux's interface to programs (`man 5 proc_pid_stat`).
const TICKS: f64 = 100.0;

/// Options of the task.
#[derive(clap::Args)]
pub struct Args {
    /// Folder for the results of runs, as JSON. A run that times everything is not repeated if its result is there.
    folder: PathBuf,
    /// A file of runs, one on a line: name | options of `fxscope run` | program and arguments.
    #[arg(long)]
    runs: Option<PathBuf>,
    /// Only the runs whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// The plan of sampled runs.
    #[arg(long, default_value = "auto")]
    sample: String,
    /// The program to run.
    #[arg(long, default_value = "target/release/fxscope")]
    fxscope: PathBuf,
}

/// One run of the list.
#[derive(Debug, PartialEq, Eq)]
struct Run<'a> {
    name: &'a str,
    options: Vec<&'a str>,
    program: PathBuf,
    arguments: Vec<&'a str>,
}

/// What a run has shown.
#[derive(Debug, PartialEq)]
struct Measured {
    instructions: f64,
    cycles: f64,
    half_width: Option<f64>,
    seconds: f64,
    host_seconds: f64,
}

/// Runs all programs with and without a sample, and prints a table in Markdown.
///
/// # Errors
/// If a run fails, or a file cannot be read or written.
pub fn run(args: &Args) -> Result<(), String> {
    std::fs::create_dir_all(&args.folder).map_err(|e| format!("{}: {e}", args.folder.display()))?;
    let text = match &args.runs {
        Some(file) => std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?,
        None => RUNS.to_owned(),
    };
    println!("{HEAD}");
    for run in runs(&text)?.iter().filter(|run| run.name.contains(&args.only)) {
        let file = |kind: &str| args.folder.join(format!("{}.{kind}.json", run.name.replace(['/', ' '], "-")));
        let full = file("full");
        if !full.exists() {
            execute(args, run, &[], &full)?;
        }
        let sampled = file("sampled");
        execute(args, run, &["--sample", &args.sample], &sampled)?;
        println!("{}", row(run.name, &result(&full)?, &result(&sampled)?));
    }
    Ok(())
}

/// The head of the table.
const HEAD: &str = "\
| Program | Instructions | Cycles | sampled | Interval | Error of cycles | of time | Host time, s | sampled | Speed-up |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

/// Returns the row of a run in the table.
fn row(name: &str, full: &Measured, sampled: &Measured) -> String {
    let error = |of: fn(&Measured) -> f64| format!("{:+.1} %", 100.0 * (of(sampled) / of(full) - 1.0));
    let million = |number: f64| format!("{:.0} M", number / 1e6);
    let interval =
        sampled.half_width.map_or("–".to_owned(), |half| format!("±{:.1} %", 100.0 * half / sampled.cycles));
    format!(
        "| {name} | {} | {} | {} | {interval} | {} | {} | {:.1} | {:.1} | {:.1} |",
        million(full.instructions),
        million(full.cycles),
        million(sampled.cycles),
        error(|of| of.cycles),
        error(|of| of.seconds),
        full.host_seconds,
        sampled.host_seconds,
        full.host_seconds / sampled.host_seconds
    )
}

/// Returns the runs of a list.
fn runs(text: &str) -> Result<Vec<Run<'_>>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let run = |line| {
        let parts: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        let [name, options, command] = parts[..] else {
            return Err(format!("'{line}' is not name | options | program"));
        };
        let mut words = command.split_whitespace();
        let program = words.next().ok_or_else(|| format!("'{line}' has no program"))?;
        let program = match program.contains('/') {
            true => PathBuf::from(program),
            false => root().join(format!("kernels/prebuilt/{program}.elf")),
        };
        Ok(Run { name, options: options.split_whitespace().collect(), program, arguments: words.collect() })
    };
    lines.map(run).collect()
}

/// Executes a run, and writes its result with the host time to `file`.
fn execute(args: &Args, run: &Run<'_>, sample: &[&str], file: &Path) -> Result<(), String> {
    let new = file.with_extension("new");
    let mut command = Command::new(&args.fxscope);
    command.args(["run", "--quiet", "--json"]).arg(&new).args(sample).args(&run.options);
    command.arg("--").arg(&run.program).args(&run.arguments).stdout(Stdio::null());
    let before = children_seconds()?;
    let status = command.status().map_err(|e| format!("{}: {e}; build it first", args.fxscope.display()))?;
    let host_seconds = children_seconds()? - before;
    if !status.success() {
        return Err(format!("{}: {command:?} ended with {status}", run.name));
    }
    let mut json = read(&new)?;
    json["host_seconds"] = json!(host_seconds);
    std::fs::write(&new, json.to_string()).map_err(|e| format!("{}: {e}", new.display()))?;
    std::fs::rename(&new, file).map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns the processor time of all child processes that have ended, user and system.
fn children_seconds() -> Result<f64, String> {
    let stat = std::fs::read_to_string("/proc/self/stat").map_err(|e| format!("/proc/self/stat: {e}"))?;
    // The name of the program, which may contain anything, ends with the last parenthesis. It is field 2.
    let fields = stat.rsplit(')').next().into_iter().flat_map(str::split_whitespace);
    let ticks: Vec<f64> = fields.skip(16 - 3).take(2).filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

fn read(file: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns what a run has shown that wrote `file`.
fn result(file: &Path) -> Result<Measured, String> {
    measured(&read(file)?).ok_or_else(|| format!("{} is not the result of a timed run", file.display()))
}

fn measured(json: &Value) -> Option<Measured> {
    let all = &json["regions"][0];
    Some(Measured {
        instructions: json["simulated"]["instructions"].as_f64()?,
        cycles: all["events"]["CPU_CYCLES"].as_f64()?,
        half_width: all["half_widths"]["events"]["CPU_CYCLES"].as_f64(),
        seconds: json["simulated"]["seconds"].as_f64()?,
        host_seconds: json["host_seconds"].as_f64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_of_the_list_has_a_program_that_exists() {
        let runs = runs(RUNS).expect("a list");
        assert!(runs.len() >= 8);
        runs.iter().for_each(|run| assert!(run.program.exists(), "{}", run.program.display()));
    }

    #[test]
    fn the_list_of_applications_has_runs_of_kernels_that_exist_and_of_programs_of_the_reader() {
        let list = runs(include_str!("sampling/applications.txt")).expect("a list");
        let (theirs, kernels): (Vec<_>, Vec<_>) = list.iter().partition(|run| run.program.starts_with("."));
        assert!(theirs.len() >= 20 && kernels.iter().all(|run| run.program.exists()), "{list:?}");
    }

    #[test]
    fn a_list_has_names_options_and_programs_of_the_reader() {
        let list = runs("# mine\n\n a b | -e OMP_NUM_THREADS=4 | ./prog x y\n").expect("a list");
        let arguments = vec!["x", "y"];
        let options = vec!["-e", "OMP_NUM_THREADS=4"];
        assert_eq!(list, [Run { name: "a b", options, program: PathBuf::from("./prog"), arguments }]);
        assert!(runs("only a name").is_err() && runs("name | options |").is_err());
    }

    #[test]
    fn rows_compare_cycles_time_and_host_time() {
        let run = |cycles: u64, seconds: f64, host: f64, half: Value| {
            json!({"regions": [{"events": {"CPU_CYCLES": cycles}, "half_widths": {"events": {"CPU_CYCLES": half}}}],
                   "simulated": {"instructions": 3_000_000, "seconds": seconds}, "host_seconds": host})
        };
        let full = measured(&run(100_000_000, 2.0, 30.0, Value::Null)).expect("a result");
        let sampled = measured(&run(103_000_000, 1.9, 6.0, json!(2_060_000))).expect("a result");
        let expected = "| x | 3 M | 100 M | 103 M | ±2.0 % | +3.0 % | -5.0 % | 30.0 | 6.0 | 5.0 |";
        assert_eq!(row("x", &full, &sampled), expected);
        assert!(measured(&json!({"simulated": {}})).is_none());
    }

    #[test]
    fn the_time_of_children_is_known() {
        assert!(children_seconds().is_ok_and(|seconds| seconds >= 0.0));
    }
}
