//! Conversion of a run's counts to a record.

use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use fxscope_counts::{Signal, Signals, Stall};
use fxscope_linux::pages::PageUse;
use fxscope_linux::{End, Guest};
use fxscope_pipeline::bind::PIPE_NAMES;
use fxscope_pipeline::events::EVENT_NAMES;
use fxscope_pmu::{constants, energy, recorded, scope};
use fxscope_record::{
    ALL, CodeFile, Data, Finish, Host, HotSpot, Interval, Intervals, Names, ONE_PASS, Origin, Pages, Part, Profile,
    Region, Run, StackFrame, StackSample, Stacks, Thread,
};
use fxscope_sim::part::{PartPlan, PartSummary};
use fxscope_sim::stacks::{Call, CallSample, CallStacks};
use fxscope_sim::{Counted, Mode, Outcome};

use crate::calls::calls;
use crate::described::machine_constants;
use crate::diagnosis;
use crate::environment::affects_speed;
use crate::host_view::HostView;
use crate::loops::{Trust, loops};
use crate::notes::notes;
use crate::numbering::Numbering;
use crate::{MAX_PROGRAM_BYTES, Request, objects, sampled};

/// What is known of a run beside its outcome.
pub(crate) struct Observed {
    /// Notes that come before all others.
    pub notes: Vec<String>,
    /// Its data objects.
    pub data: Option<objects::Observer>,
}

/// Returns the record of a run.
pub(crate) fn run(
    request: &Request,
    outcome: &Outcome,
    process: &Guest,
    host: &HostView,
    wall_seconds: f64,
    observed: Observed,
) -> Run {
    let text = |s: &OsStr| s.to_string_lossy().into_owned();
    let kept = |name: &OsString| affects_speed(name) || request.recorded_variables.contains(name);
    let environment = request.environment.iter().filter(|(name, _)| kept(name));
    let numbering = Numbering::of(outcome, process);
    let regions = regions(request, outcome, &numbering);
    let stacks = stacks(outcome, &numbering);
    let data = observed.data.map_or_else(Data::default, |observer| {
        let (objects, lines) = observer.finish(process, |thread| {
            let Thread { process, thread, .. } = numbering.thread(thread, 0);
            (process, thread)
        });
        Data { objects, lines }
    });
    let speed = |instructions: u64| instructions as f64 / 1e6 / wall_seconds.max(1e-9);
    let mut run = Run {
        tool: concat!("fxscope ", env!("CARGO_PKG_VERSION")).to_owned(),
        command: std::iter::once(text(request.program.as_os_str()))
            .chain(request.arguments.iter().map(|a| text(a)))
            .collect(),
        environment: environment.map(|(name, value)| (text(name), text(value))).collect(),
        machine: request.spec.name.clone(),
        settings: request.settings.clone(),
        machine_hash: fxscope_machine::hash(&request.spec),
        description: Some(Arc::new(recorded::description(request.spec.path.as_deref(), &request.spec.pmu))),
        constants: machine_constants(&request.spec),
        mode: match request.options.mode {
            Mode::Timing => fxscope_record::Mode::Timing,
            Mode::Functional => fxscope_record::Mode::Functional,
        },
        finish: finish(&outcome.finish, outcome, process),
        host: Host {
            cpus: host.cpus,
            wall_seconds,
            mips: speed(process.instructions() - process.skipped_instructions()),
            skipped_mips: speed(process.skipped_instructions()),
            peak_rss_bytes: host.peak_rss_bytes(),
            guest_bytes: process.memory().backed_bytes(),
        },
        notes: observed.notes.into_iter().chain(notes(request, outcome, process)).collect(),
        failures: diagnosis::failures(process),
        origin: Origin::Simulated,
        passes: vec![ONE_PASS.to_owned()],
        sample: sampled::sample(request, outcome, &regions),
        part: request.options.part.as_ref().zip(outcome.part.as_ref()).map(part),
        regions,
        parallel: numbering.parallel(outcome),
        intervals: intervals(request, outcome).into_iter().collect(),
        pages: outcome.pages.iter().map(pages).collect(),
        files: files(outcome, process),
        stalls: Stall::ALL.iter().map(|stall| stall.name().to_owned()).collect(),
        pipes: PIPE_NAMES.map(str::to_owned).to_vec(),
        hot_spots: outcome.hot.iter().map(hot_spot).collect(),
        profile: Profile { events: EVENT_NAMES.map(str::to_owned).to_vec(), stacks, data, ..Profile::default() },
    };
    let (loops, in_loops) = loops(&run, &request.spec, Trust::Unchanged);
    run.profile.loops = loops;
    run.profile.calls = calls(outcome, &numbering, &run, &in_loops);
    run
}

fn finish(finish: &fxscope_sim::Finish, outcome: &Outcome, process: &Guest) -> Finish {
    match finish {
        fxscope_sim::Finish::Ended(end) => match end {
            End::Exit { code } => Finish::Exited(*code),
            End::Killed(k) => Finish::Killed { signal: k.signal as i32, message: end.to_string() },
            End::Deadlock { threads } => Finish::Failed(diagnosis::deadlock(threads, outcome, process)),
        },
        fxscope_sim::Finish::Limit => Finish::Limit,
        fxscope_sim::Finish::Stopped => Finish::Stopped,
        fxscope_sim::Finish::NoProgress(found) => Finish::NoProgress(diagnosis::no_progress(found, outcome, process)),
    }
}

/// Returns which part of the run was timed.
fn part((plan, summary): (&PartPlan, &PartSummary)) -> Part {
    let PartSummary { skipped, followed, timed, behind, executions, begin_ns, ended } = *summary;
    Part { options: plan.to_string(), skipped, followed, timed, behind, executions, begin_ns, ended }
}

fn regions(request: &Request, outcome: &Outcome, numbering: &Numbering) -> Vec<Region> {
    let events = &request.spec.pmu.events;
    // Quantities that functional mode does not model must not appear as zero.
    let counted = |signal: Signal| match request.options.mode {
        Mode::Timing => true,
        Mode::Functional => [Signal::InstRetired, Signal::CpuCycles].contains(&signal),
    };
    let row = |thread: u32, c: &Counted| (numbering.thread(thread, c.cpu), events.counts(c.signals(), counted));
    let constants = constants(&request.spec);
    let region = |r: &fxscope_sim::Region| {
        let rows = r.threads.iter().map(|(&thread, c)| row(thread, c)).collect();
        let mut region = Region::of_one_pass(&r.name, r.calls, rows);
        scope::widen(events, &mut region, &constants);
        energy::count(&mut region, &request.spec.energy, request.spec.clock.core_hz);
        region
    };
    outcome.regions.iter().map(region).collect()
}

/// Returns the counts by interval, if requested. Rounded events of energy are excluded.
fn intervals(request: &Request, outcome: &Outcome) -> Option<Intervals> {
    if outcome.intervals.is_empty() {
        return None;
    }
    let events = &request.spec.pmu.events;
    let names: Names = events.iter().filter(|e| !e.terms.is_empty()).map(|e| e.name.clone()).collect();
    let mut signals = Signals::default();
    let mut told = vec![0; names.len()];
    let row = |interval: &fxscope_sim::Interval| {
        // Cumulative, so that an event that subtracts has its minuend first.
        signals.merge(&interval.signals);
        let so_far = events.counts(&signals, |_| true);
        let count = |(name, told): (&str, &mut u64)| {
            let missing = so_far[name].saturating_sub(*told);
            *told += missing;
            missing
        };
        Interval { end_ns: interval.end_ns, counts: names.iter().zip(&mut told).map(count).collect() }
    };
    let rows = outcome.intervals.iter().map(row).collect();
    let region = request.options.interval_region.as_deref().unwrap_or(ALL).to_owned();
    Some(Intervals { pass: 0, region, names, rows })
}

/// Returns the files that code was mapped from, in their current state.
fn files(outcome: &Outcome, process: &Guest) -> Vec<CodeFile> {
    let file = |path: &Vec<u8>| {
        let path = process.host_path(path);
        let digest = fxscope_host::open(&path, MAX_PROGRAM_BYTES)
            .ok()
            .and_then(|file| fxscope_record::digest_of(file).ok())
            .unwrap_or_default();
        CodeFile { path: path.to_string_lossy().into_owned(), digest }
    };
    outcome.files.iter().map(file).collect()
}

/// Returns the sampled call stacks.
fn stacks(outcome: &Outcome, numbering: &Numbering) -> Stacks {
    let CallStacks { interval_ns, calls, samples, .. } = &outcome.stacks;
    let frame = |call: &Call| StackFrame {
        caller: call.caller,
        function: call.function.clone(),
        file: call.file.as_ref().map(|path| String::from_utf8_lossy(path).into_owned()),
    };
    let sample = |sample: &CallSample| {
        let Thread { process, thread, .. } = numbering.thread(sample.thread, 0);
        StackSample { process, thread, at_ns: sample.at_ns, frame: sample.call }
    };
    Stacks {
        interval_ns: *interval_ns,
        frames: calls.iter().map(frame).collect(),
        samples: samples.iter().map(sample).collect(),
    }
}

fn pages(p: &PageUse) -> Pages {
    let PageUse { segment, page_bytes, node, pages, bytes } = *p;
    Pages { segment: segment.name().to_owned(), page_bytes, node, pages, bytes }
}

fn hot_spot(h: &fxscope_sim::HotSpot) -> HotSpot {
    let (function, offset) = h.function.clone().unwrap_or_default();
    HotSpot {
        file: h.file,
        place: h.place,
        address: h.address,
        function,
        offset,
        executions: h.executions,
        cycles: h.profile.cycles,
        in_flight: h.profile.in_flight,
        stalls: h.profile.stalls.to_vec(),
        pipes: h.profile.pipes.to_vec(),
        events: h.profile.events.to_vec(),
    }
}
