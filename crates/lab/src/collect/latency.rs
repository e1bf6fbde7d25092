//! The counts that predictions of slower memory need, from a real machine, through perf.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use fxscope_import::{Options, Source, perf};
use fxscope_jitter::Time;
use fxscope_latency::inputs::{Event, Pmu, pmus};
use fxscope_record::Run;

use super::machine;
use super::perf::{MAX_OUTPUT_BYTES, run_under};
use crate::{Error, Progress};

/// Options of a measurement for predictions of slower memory.
#[derive(Clone, Debug)]
pub struct LatencyCounts {
    /// Run the program this many times and take the means.
    pub repeat: u32,
    /// Also count by intervals of this many milliseconds.
    pub interval: Option<u32>,
    /// Count the program alone, without events of the whole computer.
    pub own: bool,
    /// Keep perf's own output in this folder.
    pub keep: Option<PathBuf>,
    /// The processor whose events are counted; `None`: that of this computer.
    pub processor: Option<String>,
    /// The perf program to use.
    pub perf: PathBuf,
    /// Stop a run of the program that takes longer than this.
    pub timeout: Option<Time>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
}

/// Counts the events that predictions of slower memory need on this machine, through perf, in one or two runs of the
/// program.
///
/// # Errors
/// If the processor's events are not known, perf or the program fails, or perf could count nothing.
pub fn latency_counts(args: &LatencyCounts, progress: &dyn Progress) -> Result<Vec<Run>, Error> {
    let pmu = processor(args.processor.as_deref())?;
    let machine = machine(&pmu.machines[0])?;
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a temporary folder: {e}"))?;
    let folder = args.keep.as_deref().unwrap_or(scratch.path());
    std::fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let mut outputs = Vec::new();
    let last = pmu.events.iter().map(|event| event.pass).max().unwrap_or(0);
    for pass in 1..=last {
        let wanted = |event: &&Event| event.pass == pass && event.perf.is_some() && !(args.own && event.all);
        let events: Vec<&Event> = pmu.events.iter().filter(wanted).collect();
        if events.is_empty() {
            continue;
        }
        let name = format!("perf-{pass}.csv");
        let file = folder.join(&name);
        run_once(args, pmu, &events, &file, progress)?;
        let text = fxscope_host::read_text(&file, MAX_OUTPUT_BYTES).map_err(|e| format!("perf left no counts: {e}"))?;
        outputs.push((name, offered(&text, pmu, progress)?.into_bytes()));
    }
    let command = args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let sources: Vec<Source<'_>> = outputs.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let mut runs =
        perf::read(&sources, &machine, &Options { command, ..Options::default() }).map_err(|e| e.to_string())?;
    if !args.own && pmu.events.iter().any(|event| event.all && event.perf.is_some()) {
        let note = "Counts are those of the whole computer while the program ran.".to_owned();
        runs.iter_mut().for_each(|run| run.notes.push(note.clone()));
    }
    Ok(runs)
}

/// Returns the processor that is named, or this computer's.
fn processor(name: Option<&str>) -> Result<&'static Pmu, Error> {
    let known = || pmus().iter().map(|pmu| pmu.id.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = name {
        let found = pmus().iter().find(|pmu| pmu.id == name);
        return found.ok_or_else(|| format!("unknown processor '{name}'; choose from {}", known()).into());
    }
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let here = identity(&text);
    let fits = |pmu: &&Pmu| pmu.processors.iter().any(|p| here == *p || here.starts_with(&format!("{p}/")));
    pmus().iter().find(fits).ok_or_else(|| {
        format!(
            "the events of this computer's processor ({here}) are not known; name a processor with the same events with --processor: {}",
            known()
        )
        .into()
    })
}

/// Returns the name of the first processor in `/proc/cpuinfo`: `vendor/family/model`, or `arm/implementer/part`.
pub(crate) fn identity(text: &str) -> String {
    let value = |key: &str| {
        let of = |line: &str| Some(line.split_once(':')?.1.trim().to_owned());
        text.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key)).and_then(of)
    };
    let joined = |keys: [&str; 2]| keys.map(|key| value(key).unwrap_or_else(|| "?".to_owned())).join("/");
    match value("vendor_id") {
        Some(vendor) => format!("{vendor}/{}", joined(["cpu family", "model"])),
        None => format!("arm/{}", joined(["CPU implementer", "CPU part"])),
    }
}

/// Runs the program once under perf.
fn run_once(
    args: &LatencyCounts,
    pmu: &Pmu,
    events: &[&Event],
    file: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let mut perf = Command::new(&args.perf);
    // The separator is `;`: names of events have commas.
    perf.args(["stat", "-x", ";", "-o"]).arg(file);
    if args.repeat > 1 {
        perf.args(["-r", &args.repeat.to_string()]);
    }
    if let Some(ms) = args.interval {
        perf.args(["-I", &ms.to_string()]);
    }
    let all = events.iter().any(|event| event.all);
    if all {
        perf.arg("-a");
        if pmu.by_cpu {
            perf.arg("-A");
        }
    }
    for event in events.iter().filter_map(|event| event.perf.as_ref()) {
        perf.args(["-e", event]);
    }
    perf.args(["-e", "duration_time"]);
    let instead = if all { "; --own counts the program alone, without memory controllers" } else { "" };
    run_under(perf, &args.command, args.timeout, "", instead, progress)
}

/// Removes events that the system does not offer from perf's output, and reports them.
fn offered(text: &str, pmu: &Pmu, progress: &dyn Progress) -> Result<String, Error> {
    let absent = |line: &str| line.contains("<not supported>");
    let mut named: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| absent(line)) {
        let event = line.split(';').find(|field| pmu.events.iter().any(|e| is(e, field))).unwrap_or(line);
        if !named.contains(&event) {
            named.push(event);
        }
    }
    let counted = text.lines().filter(|line| pmu.events.iter().any(|e| line.split(';').any(|field| is(e, field))));
    if counted.into_iter().all(absent) {
        return Err(
            "perf could count none of the events; nothing is recorded. A virtual machine, or a kernel without a driver for the \
             processor's counters, offers none (perf stat -e cycles true shows it)"
                .into(),
        );
    }
    for event in named {
        progress
            .message(&format!("{event} is not supported by this system's counters: methods that need it are left out"));
    }
    Ok(text.lines().filter(|line| !absent(line)).map(|line| format!("{line}\n")).collect())
}

/// Returns whether a field of perf's output names an event, with or without modifiers.
fn is(event: &Event, field: &str) -> bool {
    let asked = event.perf.as_deref().unwrap_or_default();
    !asked.is_empty() && field.trim().strip_prefix(asked).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_known_by_what_linux_shows_of_them() {
        let knl = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 87\nmodel name\t: Xeon Phi\n";
        assert_eq!(identity(knl), "GenuineIntel/6/87");
        let arm = "processor\t: 0\nCPU implementer\t: 0x46\nCPU part\t: 0x001\n";
        assert_eq!(identity(arm), "arm/0x46/0x001");
        for id in ["GenuineIntel/6/87", "GenuineIntel/6/143", "AuthenticAMD/25", "arm/0x46/0x001", "arm/0x41/0xd4f"] {
            assert!(pmus().iter().any(|pmu| pmu.processors.iter().any(|p| p == id)), "{id}");
        }
    }
}
