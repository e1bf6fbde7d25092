//! Counts of page walks: of a run under perf, or of a file.

use std::collections::BTreeMap;
use std::io::stderr;
use std::path::Path;
use std::process::{Command, Stdio};

use fxscope_import::{Machine, Options, Source, perf};
use fxscope_pmu::Pmu;
use fxscope_record::{ALL, Run};

use super::events::{self, Counts, Processor, plain_name};
use super::{Basis, Estimate, Question, ab, estimate, latency};
use crate::collect::{MAX_OUTPUT_BYTES, Recorded, recorded_text, run_under};
use crate::{Error, Progress};

/// Separator of perf's fields: names of events have commas.
const SEPARATOR: &str = ";";
/// perf's event of the time on a core.
const CPU_TIME: &str = "task-clock";
/// What to do where nothing can be counted.
const INSTEAD: &str = "; if perf does not know an event, one of a newer kernel may, or --processor names other events; the gain can be \
                       measured without counters: fxscope pages host --check -- PROGRAM";

/// Reads the counts of a file of `perf stat` and estimates the gain.
pub(super) fn of_file(file: &Path, question: &Question) -> Result<Estimate, Error> {
    let failed = |e: String| Error::from(format!("{}: {e}", file.display()));
    let bytes = fxscope_host::read(file, MAX_OUTPUT_BYTES).map_err(|e| failed(e.to_string()))?;
    let bytes = recorded_text(Path::new("perf"), file, bytes, Recorded::Counts)?;
    let counts = counts(&file.display().to_string(), &bytes)?;
    let processor = match &question.processor {
        Some(id) => events::named(id)?,
        None => events::of_counts(&counts).map_err(|e| failed(e.to_string()))?,
    };
    let given = question.walk_cycles.map(|cycles| (cycles, Basis::Given));
    estimate::estimate(processor, &counts, given).map_err(|e| failed(e.to_string()))
}

/// Counts the walks of a run of the program and estimates the gain.
pub(super) fn of_run(perf: &Path, question: &Question, progress: &dyn Progress) -> Result<Estimate, Error> {
    let processor = match &question.processor {
        Some(id) => events::named(id)?,
        None => events::of_host(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default())?,
    };
    let text = run(perf, processor, question, progress)?;
    can_count(&text, processor)?;
    let counts = counts("perf's output", text.as_bytes())?;
    let given = question.walk_cycles.map(|cycles| (cycles, Basis::Given));
    let needed = given.is_none() && processor.assumed_walk_cycles.is_some();
    let per_walk = if needed { measured_walk(&text, &counts)? } else { given };
    estimate::estimate(processor, &counts, per_walk).map_err(|e| format!("perf's output {e}{INSTEAD}").into())
}

/// Runs the program under perf; returns perf's output.
fn run(perf: &Path, processor: &Processor, question: &Question, progress: &dyn Progress) -> Result<String, Error> {
    let output = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(perf);
    command.env("LC_ALL", "C").args(["stat", "-x", SEPARATOR, "-o"]).arg(output.path());
    for event in processor.measured().chain([CPU_TIME, estimate::PAGE_FAULTS]) {
        command.args(["-e", event]);
    }
    // The program's output does not mix with the answer.
    command.stdin(Stdio::null()).stdout(stderr());
    let disabled = question.pairs.map(|_| ab::Disabled::new(true)).transpose()?;
    let ran = run_under(command, &question.command, None, "", INSTEAD, progress);
    drop(disabled);
    ran.map_err(|e| match e {
        Error::Request(what) if !what.contains(INSTEAD) => format!("{what}{INSTEAD}").into(),
        other => other,
    })?;
    fxscope_host::read_text(output.path(), MAX_OUTPUT_BYTES).map_err(|e| format!("perf left no counts: {e}").into())
}

/// Checks that perf could count cycles at all.
fn can_count(text: &str, processor: &Processor) -> Result<(), Error> {
    let counted = |line: &&str| processor.measured().any(|event| line.contains(event)) && !line.starts_with('<');
    if text.lines().filter(|line| !line.starts_with('#')).any(|line| counted(&line)) {
        return Ok(());
    }
    Err(format!(
        "perf could count none of the events of page walks. A virtual machine without a PMU, or a kernel without a driver for it, offers \
         none (perf stat -e cycles true shows it){INSTEAD}"
    )
    .into())
}

/// Measures the time of a walk on this host, in cycles of the program's clock.
fn measured_walk(text: &str, counts: &Counts) -> Result<Option<([f64; 2], Basis)>, Error> {
    let of = |line: &str| {
        let fields: Vec<&str> = line.split(SEPARATOR).collect();
        let ms: f64 = fields.first()?.trim().parse().ok()?;
        fields.iter().any(|field| plain_name(field) == CPU_TIME).then_some(ms * 1e6)
    };
    let ns = text.lines().find_map(of).filter(|&ns| ns > 0.0);
    let cycles = counts.get(&plain_name("cycles")).map(|&cycles| cycles as f64);
    let Some(per_ns) = ns.zip(cycles).map(|(ns, cycles)| cycles / ns) else { return Ok(None) };
    Ok(Some((latency::walk_ns()?.map(|ns| ns * per_ns), Basis::Measured)))
}

/// Reads output of perf in any of its forms; repeated events add up over threads and CPUs.
fn counts(name: &str, bytes: &[u8]) -> Result<Counts, Error> {
    let machine = Machine {
        name: "host".to_owned(),
        path: None,
        pmu: Pmu::default(),
        constants: BTreeMap::new(),
        power_mode: None,
    };
    // Estimates of multiplexed events do: the answer is a range.
    let options = Options { scaled: true, ..Options::default() };
    let runs = perf::read(&[Source { name, bytes }], &machine, &options).map_err(|e| e.to_string())?;
    let run = runs.first().ok_or_else(|| format!("{name}: has no counts"))?;
    Ok(added(run))
}

fn added(run: &Run) -> Counts {
    let mut by_name: BTreeMap<String, [Option<u64>; 2]> = BTreeMap::new();
    let Some(region) = run.region(ALL) else { return Counts::new() };
    for thread in 0..region.threads.len() {
        for (name, count) in region.counts(thread) {
            let sum = &mut by_name.entry(plain_name(name)).or_default()[usize::from(is_part(name))];
            *sum = Some(sum.unwrap_or(0) + count);
        }
    }
    // `cycles:u` is a part of `cycles`, where both were counted.
    by_name.into_iter().filter_map(|(name, [all, parts])| Some((name, all.or(parts)?))).collect()
}

/// Returns whether an event has modifiers, such as `:u`: it may be a part of the same event without them.
fn is_part(name: &str) -> bool {
    name.rsplit_once(['/', ':']).is_some_and(|(_, modifiers)| !modifiers.is_empty() && modifiers.len() <= 3)
}
