//! The counts of the report, from a real machine, through perf.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use fxscope_import::{Machine, Options, Source, perf};
use fxscope_jitter::Time;
use fxscope_pmu::groups::Group;
use fxscope_record::Run;

use super::machine;
use super::perf::{MAX_OUTPUT_BYTES, run_under};
use crate::{Error, Progress};

/// Options of a measurement for the report.
#[derive(Clone, Debug)]
pub struct ReportCounts {
    /// Level of detail, as a level of the groups of events, 1 to 4.
    pub level: u8,
    /// Measure everything this many times.
    pub repeat: u32,
    /// CPUs on which everything is counted, in the syntax of perf's `-C`; `None`: all threads of the program together.
    pub cpus: Option<String>,
    /// Count user code only.
    pub user: bool,
    /// Keep perf's own output in this folder.
    pub keep: Option<PathBuf>,
    /// The machine whose events are counted, by name or path.
    pub machine: String,
    /// The perf program to use.
    pub perf: PathBuf,
    /// Stop a run of the program that takes longer than this.
    pub timeout: Option<Time>,
    /// Count even if this computer has a different processor.
    pub any_processor: bool,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

impl ReportCounts {
    /// Levels of detail by name, each with what it counts in how many runs.
    pub const LEVELS: &[(&str, u8, &str)] = &[
        ("single", 1, "Time, rates and memory throughput: 1 run"),
        ("brief", 2, "Main parts of cycle accounting, busy rates, cache misses: 5 runs"),
        ("standard", 3, "All parts of cycle accounting, instruction mix: 11 runs"),
        ("detailed", 4, "Micro-operations, gathers, prefetch, transfers: 17 runs"),
    ];
}

/// Relative difference of two runs' times from which their counts cannot be combined.
const AGREE: f64 = 0.05;

/// Counts the events of the report on this machine, through perf, in as many runs of the program as needed.
///
/// # Errors
/// If the processor is a different one, perf or the program fails, or perf could count nothing.
pub fn report_counts(args: &ReportCounts, progress: &dyn Progress) -> Result<Vec<Run>, Error> {
    let machine = machine(&args.machine)?;
    if !args.any_processor {
        check_processor(&args.machine)?;
    }
    let wanted: Vec<&Group> =
        machine.pmu.groups.iter().filter(|group| u32::from(group.level) <= u32::from(args.level)).collect();
    if wanted.is_empty() {
        return Err(format!(
            "the machine '{}' has no groups of events for such a report; its groups.csv says which events are counted together",
            machine.name
        )
        .into());
    }
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a temporary folder: {e}"))?;
    let folder = args.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let mut runs = Vec::new();
    for repeat in 1..=args.repeat {
        let mut outputs = Vec::new();
        for (i, group) in wanted.iter().enumerate() {
            let name = format!("perf-{repeat}-{:02}.csv", group.number);
            let file = folder.join(&name);
            let begin = Instant::now();
            run_once(args, &machine, group, &file, progress)?;
            let number = (repeat as usize - 1) * wanted.len() + i + 1;
            let (all, seconds) = (wanted.len() * args.repeat as usize, begin.elapsed().as_secs_f64());
            progress.message(&format!("run {number} of {all}: {seconds:.1} s"));
            let bytes = fxscope_host::read(&file, MAX_OUTPUT_BYTES).map_err(|e| format!("perf left no counts: {e}"))?;
            check_output(&machine, Source { name: &name, bytes: &bytes })?;
            outputs.push((name, bytes));
        }
        runs.extend(imported(args, &machine, &outputs, progress)?);
    }
    Ok(runs)
}

/// Fails if perf could not count something, before the program runs again for the next group.
fn check_output(machine: &Machine, source: Source<'_>) -> Result<(), Error> {
    let strict = Options { strict: true, ..Options::default() };
    perf::read(&[source], machine, &strict).map(drop).map_err(|e| {
        format!(
            "{e}; nothing is recorded. A virtual machine, or a kernel without a driver for the processor's counters, offers none \
             (perf stat -e r11 true shows it); --keep FOLDER keeps what perf wrote"
        )
        .into()
    })
}

/// Imports what perf has written in the runs of one measurement.
fn imported(
    args: &ReportCounts,
    machine: &Machine,
    outputs: &[(String, Vec<u8>)],
    progress: &dyn Progress,
) -> Result<Vec<Run>, Error> {
    let sources: Vec<Source<'_>> = outputs.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut runs =
        perf::read(&sources, machine, &Options { command, ..Options::default() }).map_err(|e| e.to_string())?;
    for run in &mut runs {
        let apart = disagreeing(run);
        for note in &apart {
            progress.message(note);
        }
        run.notes.extend(apart);
    }
    Ok(runs)
}

/// Returns a sentence for each pass whose time differs from that of the first.
fn disagreeing(run: &Run) -> Vec<String> {
    let Some(region) = run.regions.first() else { return Vec::new() };
    let time = |pass: usize| {
        let counts = region.passes.get(pass)?;
        let ticks = (0..region.threads.len()).filter_map(|thread| counts.get(thread, "CNTVCT"));
        ticks.max().map(|ticks| ticks as f64)
    };
    let Some(first) = time(0).filter(|&t| t > 0.0) else { return Vec::new() };
    let apart = |(pass, name): (usize, &String)| {
        let ratio = time(pass)? / first;
        ((ratio - 1.0).abs() > AGREE).then(|| {
            format!("{name} took {ratio:.2} times as long as {}: their counts cannot be combined", run.passes[0])
        })
    };
    run.passes.iter().enumerate().skip(1).filter_map(apart).collect()
}

/// Runs the program once under perf, which counts the events of one group.
fn run_once(
    args: &ReportCounts,
    machine: &Machine,
    group: &Group,
    file: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let modifier = if args.user { ":u" } else { "" };
    let number = |name: &str| machine.pmu.events.named(name).and_then(|event| event.number);
    let raw = |name: &str| number(name).map(|number| format!("r{number:04x}{modifier}"));
    let events: Option<Vec<String>> = group.events.iter().map(String::as_str).chain(["CPU_CYCLES"]).map(raw).collect();
    let events = events.ok_or_else(|| format!("group {} has an event without a number", group.number))?;
    let mut perf = Command::new(&args.perf);
    perf.args(["stat", "-x", ",", "-o"]).arg(file).args(["-e", &events.join(","), "-e", "duration_time"]);
    if let Some(cpus) = &args.cpus {
        perf.args(["-a", "-A", "-C", cpus]);
    }
    run_under(perf, &args.command, args.timeout, &format!(" when group {} was counted", group.number), "", progress)
}

/// Fails if the processor is a different one. Linux shows its maker and its part number (MIDR_EL1).
fn check_processor(machine: &str) -> Result<(), Error> {
    let midr = fxscope_machine::load(machine, &[])?.identity.midr;
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        u64::from_str_radix(line.split_once(':')?.1.trim().strip_prefix("0x")?, 16).ok()
    };
    if value("CPU implementer") == Some(midr >> 24 & 0xff) && value("CPU part") == Some(midr >> 4 & 0xfff) {
        return Ok(());
    }
    Err(format!(
        "this computer's processor is not {machine}, whose events would be counted: run fxscope collect there (one binary is \
         all it needs), or simulate with fxscope run; --any-processor counts all the same"
    )
    .into())
}
