//! `fxscope jitter measure` on emulated machines whose kernels have tracers: `make osnoise-test`. Time advances with
//! emulated instructions, so other activity of the host is not noise there.

use std::path::{Path, PathBuf};
use std::process::Command;

use fxscope::osnoise::trace::{Cause, Detour, Item, Kind, Reader, Summary};

/// A measurement of an emulated machine.
struct Measured {
    start: u64,
    wanted: u64,
    detours: Vec<(Detour, Cause)>,
    summary: Summary,
}

impl Measured {
    fn read(path: &Path) -> Measured {
        let file = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut reader = Reader::new(&file[..]).expect("a trace");
        let (start, wanted) = (reader.header().monotonic_start, reader.header().wanted);
        let (mut detours, mut summary) = (Vec::new(), None);
        while let Some(item) = reader.next_item().expect("whole") {
            match item {
                Item::Detours(_, some) => {
                    let named = |detour: Detour| (detour, reader.causes()[detour.cause as usize].clone());
                    detours.extend(some.into_iter().map(named));
                }
                Item::End(end) => summary = Some(*end),
                Item::CutOff => panic!("cut off"),
            }
        }
        Measured { start, wanted, detours, summary: summary.expect("an end") }
    }

    fn of(&self, which: impl Fn(&Cause) -> bool) -> usize {
        self.detours.iter().filter(|(_, cause)| which(cause)).count()
    }

    /// Returns how often the kernel counted an event on the measured cores.
    fn counted(&self, name: &str) -> u64 {
        let all = self.summary.cores.iter().flat_map(|core| &core.counted);
        all.filter(|counted| counted.cause.name == name).map(|counted| counted.amount).sum()
    }
}

/// Runs the measurements of `kernels/guest.sh` on Debian's kernel of a flavour; returns the folder of their traces.
fn boot(flavour: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_fxscope"));
    let inject = program.with_file_name("examples").join("inject");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = here.join("../../target/kernels");
    let scripts = here.join("tests/kernels");
    let mut boot = Command::new(scripts.join("boot.sh"));
    let status = boot.arg(flavour).arg(scripts.join("guest.sh")).arg(&folder).arg(program).arg(inject).status();
    assert!(status.expect("bash").success(), "{flavour}: no measurement");
    let traces = folder.join(flavour).join("out");
    for name in TRACES {
        let show = Command::new(program).args(["jitter", "show"]).arg(traces.join(name)).status();
        assert!(show.expect("starts").success(), "{flavour}: {name}");
    }
    traces
}

const TRACES: [&str; 4] = ["spin.fxn", "fwq.fxn", "injected.fxn", "processes.fxn"];

/// Checks that apply to every tracer.
fn check(traces: &Path, tracer: &str) {
    for name in TRACES {
        let measured = Measured::read(&traces.join(name));
        let notes = &measured.summary.notes;
        assert!(notes.contains(&format!("detours are named by {tracer}")), "{name}: {notes:?}");
        assert!(!notes.iter().any(|note| note.contains("lost")), "{name}: {notes:?}");
    }
    let processes = Measured::read(&traces.join("processes.fxn"));
    for name in ["sh", "true"] {
        assert!(processes.of(|cause| *cause == Cause::new(Kind::Task, name)) > 0, "no detour by {name}");
    }
    let spin = Measured::read(&traces.join("spin.fxn"));
    assert!(spin.of(|cause| cause.kind == Kind::KernelThread) > 0, "no detour by a thread of the kernel");
    ticks(&spin);
    injected(traces);
}

/// The timer interrupts the core as often as the kernel counts.
fn ticks(spin: &Measured) {
    let ticks = spin.of(|cause| cause.kind == Kind::Interrupt && cause.name.starts_with("local_timer"));
    let counted = spin.counted("Local timer interrupts");
    println!("{ticks} detours by the timer, {counted} counted");
    // Some ticks run a soft interrupt or wake a thread, which takes longer; the counters are read shortly before and
    // after.
    assert!(ticks as u64 <= counted && ticks as u64 * 10 >= counted * 7, "{ticks} for {counted}");
}

/// All time known to be taken is a detour with the name of its cause.
fn injected(traces: &Path) {
    let measured = Measured::read(&traces.join("injected.fxn"));
    let text = std::fs::read_to_string(traces.join("injected.txt")).expect("written");
    let times = |line: &str| line.split(' ').map(|time| time.parse().expect("ns")).collect::<Vec<u64>>();
    let inside = measured.start..measured.start + measured.wanted;
    let taken: Vec<(u64, u64)> = text.lines().map(times).map(|times| (times[1], times[2])).collect();
    let taken: Vec<_> = taken.into_iter().filter(|one| inside.contains(&one.0) && inside.contains(&one.1)).collect();
    let by_inject = |cause: &Cause| cause.kind == Kind::Task && cause.name == "inject";
    let found = |&(from, to): &(u64, u64)| {
        let middle = u64::midpoint(from, to) - measured.start;
        let there =
            |(detour, cause): &&(Detour, Cause)| by_inject(cause) && (detour.start..detour.end()).contains(&middle);
        measured.detours.iter().find(there).map(|(detour, _)| detour.length as f64 / (to - from) as f64)
    };
    let mut ratios: Vec<f64> = taken.iter().filter_map(found).collect();
    ratios.sort_by(f64::total_cmp);
    let half = ratios.get(ratios.len() / 2).copied().unwrap_or(0.0);
    let named = measured.of(by_inject);
    println!("{named} detours by inject, {} of {} times found, {half:.3} of their length", ratios.len(), taken.len());
    // An interrupt may take longer within it, since the emulator runs the two processors alternately.
    assert!(taken.len() > 80 && ratios.len() * 10 >= taken.len() * 9, "{} of {}", ratios.len(), taken.len());
    // The detour includes the switches to it and from it.
    assert!(named * 20 <= taken.len() * 21 && (0.99..1.1).contains(&half), "{named} for {}, {half}", taken.len());
}

#[test]
#[ignore = "boots a kernel; make osnoise-test runs it"]
fn the_osnoise_tracer_names_the_causes_of_detours() {
    let traces = boot("rt-amd64");
    check(&traces, "the osnoise tracer");
    let options = std::fs::read_to_string(traces.join("options.txt")).expect("written");
    assert!(options.split_whitespace().any(|option| option == "OSNOISE_WORKLOAD"), "given back: {options}");
}

#[test]
#[ignore = "boots a kernel; make osnoise-test runs it"]
fn without_the_osnoise_tracer_interrupt_and_scheduler_events_name_them() {
    let traces = boot("cloud-amd64");
    check(&traces, "events of interrupts and of the scheduler");
    let processes = Measured::read(&traces.join("processes.fxn"));
    assert!(
        processes.of(|cause| *cause == Cause::new(Kind::SoftInterrupt, "RCU")) > 0,
        "no detour by the soft interrupt"
    );
}
