//! `fxscope collect`: the report's counts from the machine itself, through perf.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use fxscope::host::{Helper, Signal};
use fxscope::import::{Machine, Source, perf};
use fxscope::jitter::Time;
use fxscope::pmu::groups::Group;
use fxscope::record::{self, Run};

use super::import::{keep, machine};
use super::{Failure, Outcome, interrupt, say};

/// Count what the report needs on a real machine, through perf, in as many runs of the program as that takes.
///
/// The program is run once for each group of events: 1 time for a single report, 5 for a brief, 11 for a standard, 17 for a
/// detailed one. Its input, output and errors pass through each time, so it must be able to run again. perf's output is
/// read as fxscope import perf reads it. Runs that took another time than the first, by more than a twentieth, are named:
/// their counts do not fit together.
#[derive(clap::Args)]
pub struct Args {
    /// How much the report is to have.
    #[arg(long, value_enum, default_value_t = Level::Standard)]
    level: Level,
    /// Measure everything so many times: reports and compare then know how much runs differ.
    #[arg(short, long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Count these CPUs, each for itself, whatever runs there (perf's -a -A -C); needs the right to. Without it, all threads
    /// of the program are counted together.
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Count user code only.
    #[arg(long)]
    user: bool,
    /// Add the measured runs to a record file, which is made when it does not exist.
    #[arg(short, value_name = "FILE.fxr")]
    output: PathBuf,
    /// Keep perf's own output in this folder, a file for each run of the program.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// The machine whose events are counted: a name that `fxscope machine list` shows, or the path of a machine's folder.
    #[arg(short, long, default_value = "a64fx")]
    machine: String,
    /// The perf to use.
    #[arg(long, value_name = "PATH", default_value = "perf")]
    perf: PathBuf,
    /// Give up a run of the program that takes longer than this, such as 300s; without it, none is given up.
    #[arg(long, value_name = "TIME")]
    timeout: Option<Time>,
    /// Count although this computer's processor is another one, whose events of the same numbers mean something else.
    #[arg(long)]
    any_processor: bool,
    /// The program and its arguments.
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM [ARGS]")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
enum Level {
    /// Time, rates and memory throughput: one run.
    Single = 1,
    /// Cycle accounting in large parts, busy rates, cache misses: five runs.
    Brief,
    /// All parts of cycle accounting, instruction mix: eleven runs.
    Standard,
    /// Micro-operations, gathers, prefetch, transfers: seventeen runs.
    Detailed,
}

/// Ratio of two runs' times from which on they do not fit together.
const AGREE: f64 = 0.05;

/// Measures, and shows what was found.
pub(super) fn collect(args: &Args) -> Outcome {
    record::Target::check(&args.output)?;
    let machine = machine(&args.machine)?;
    if !args.any_processor {
        check_processor(&args.machine)?;
    }
    let wanted: Vec<&Group> =
        machine.pmu.groups.iter().filter(|group| u32::from(group.level) <= args.level as u32).collect();
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
            run_once(args, &machine, group, &file)?;
            let number = (repeat as usize - 1) * wanted.len() + i + 1;
            let (all, seconds) = (wanted.len() * args.repeat as usize, begin.elapsed().as_secs_f64());
            say(&format!("run {number} of {all}: {seconds:.1} s"));
            let bytes = fxscope::host::read(&file, MOST_BYTES).map_err(|e| format!("perf left no counts: {e}"))?;
            check_output(&machine, Source { name: &name, bytes: &bytes })?;
            outputs.push((name, bytes));
        }
        runs.extend(imported(args, &machine, &outputs)?);
    }
    keep(&runs, &args.output)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses what perf could not count, before the program runs again for the next group.
fn check_output(machine: &Machine, source: Source<'_>) -> Result<(), Failure> {
    perf::read(&[source], machine, &perf::Options::default()).map(drop).map_err(|e| {
        format!(
            "{e}; nothing is recorded. A virtual machine, or a kernel without a driver for the processor's counters, offers none \
             (perf stat -e r11 true tells); --keep FOLDER keeps what perf wrote"
        )
        .into()
    })
}

/// What perf has written in the runs of one measurement.
fn imported(args: &Args, machine: &Machine, outputs: &[(String, Vec<u8>)]) -> Result<Vec<Run>, Failure> {
    let sources: Vec<Source<'_>> = outputs.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut runs = perf::read(&sources, machine, &perf::Options { command, scaled: false })?;
    for run in &mut runs {
        let apart = disagreeing(run);
        for note in &apart {
            say(note);
        }
        run.notes.extend(apart);
    }
    Ok(runs)
}

/// A sentence for each pass whose time is not that of the first.
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
            format!("{name} took {ratio:.2} times as long as {}: their counts do not fit together", run.passes[0])
        })
    };
    run.passes.iter().enumerate().skip(1).filter_map(apart).collect()
}

/// Runs the program once under perf, which counts one group's events.
fn run_once(args: &Args, machine: &Machine, group: &Group, file: &Path) -> Result<(), Failure> {
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
    run_under(perf, &args.command, args.timeout, &format!(" when group {} was counted", group.number), "")
}

/// Largest output of perf, bytes.
const MOST_BYTES: u64 = 1 << 30;
/// How often a run under perf is looked at.
const LOOK: Duration = Duration::from_millis(500);
/// How long perf may take to start the program.
const START: Duration = Duration::from_secs(30);
/// How long perf has to end when it is asked to.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a program under perf, for at most as long as `limit` says. When one of both fails, the message says `when`, and what to do
/// `instead`.
pub(super) fn run_under(
    mut perf: Command,
    program: &[OsString],
    limit: Option<Time>,
    when: &str,
    instead: &str,
) -> Result<(), Failure> {
    interrupt::catch()?;
    perf.arg("--").args(program);
    let name = Path::new(perf.get_program()).display().to_string();
    let mut helper = Helper::start(perf).map_err(|e| {
        format!("cannot start {name}: {e}; install it (Debian: apt-get install linux-perf) or name it with --perf")
    })?;
    let status = supervise(&mut helper, &name, limit)?;
    if status.success() {
        return Ok(());
    }
    let why = match status.code() {
        Some(code) => format!("ended with status {code}"),
        None => "was ended by a signal".to_owned(),
    };
    let hint = permission_hint();
    Err(format!("perf, or the program under it, {why}{when}; nothing is recorded{hint}{instead}").into())
}

/// Waits for perf, unless a signal comes, it starts no program, or it takes too long.
fn supervise(perf: &mut Helper, name: &str, limit: Option<Time>) -> Result<ExitStatus, Failure> {
    let (begin, mut busy) = (Instant::now(), Instant::now());
    loop {
        if let Some(status) = perf.ended_within(LOOK)? {
            return Ok(status);
        }
        if interrupt::received().is_some() {
            perf.signal(Signal::TERM);
            perf.wait(GRACE)?;
            let message = format!("{} ended the measurement; nothing is recorded", interrupt::name());
            return Err(Failure { status: interrupt::status(), message });
        }
        if has_children(perf.id()) {
            busy = Instant::now();
        }
        if busy.elapsed() > START {
            let seconds = START.as_secs();
            return Err(format!(
                "{name} has run no program for {seconds} s, and was ended; nothing is recorded. It is not perf, or hangs: name \
                 another one with --perf"
            )
            .into());
        }
        if limit.is_some_and(|limit| begin.elapsed() > Duration::from_nanos(limit.ns())) {
            let limit = limit.map_or(String::new(), |limit| limit.to_string());
            return Err(format!(
                "perf and the program under it did not end within {limit} (--timeout), and were ended; nothing is recorded"
            )
            .into());
        }
    }
}

/// Whether a process has children, as far as the kernel tells (proc_tid_children(5)).
fn has_children(process: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    // Kernels without this file (CONFIG_PROC_CHILDREN) tell nothing.
    children.map_or(true, |children| !children.trim().is_empty())
}

/// What the system allows, if that may be what is missing.
fn permission_hint() -> String {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
    match paranoid.as_deref().map(str::trim).and_then(|text| text.parse::<i32>().ok()) {
        Some(level) if level > 0 => format!(
            " (/proc/sys/kernel/perf_event_paranoid is {level}: programs of your own can be counted up to 2, with --user, \
             CPUs with --cpus up to 0; its administrator can set it)"
        ),
        _ => String::new(),
    }
}

/// Refuses to count another processor's events. Linux shows the maker and the part of the register that names it (MIDR_EL1).
fn check_processor(machine: &str) -> Result<(), Failure> {
    let midr = fxscope::machine::load(machine, &[])?.identity.midr;
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        u64::from_str_radix(line.split_once(':')?.1.trim().strip_prefix("0x")?, 16).ok()
    };
    if value("CPU implementer") == Some(midr >> 24 & 0xff) && value("CPU part") == Some(midr >> 4 & 0xfff) {
        return Ok(());
    }
    Err(format!(
        "this computer's processor is no {machine}, whose events would be counted: run fxscope collect there (one binary is \
         all it needs), or simulate with fxscope run; --any-processor counts all the same"
    )
    .into())
}
