//! A run, from program to record.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals, Stall};
use fxscope_guestmem::Segment;
use fxscope_linux::hwpfctl;
use fxscope_linux::pages::{MappingPages, MemoryPolicy, PageUse, list};
use fxscope_linux::{Access, ClockSource, Denied, End, Process, Refusal, Setup, SharedFolder, StartError, Stdio};
use fxscope_machine::{Spec, settings::size};
use fxscope_pipeline::bind::PIPE_NAMES;
use fxscope_pmu::{constants, energy, recorded, scope};
use fxscope_record::{
    ALL, CodeFile, Finish, Host, HotSpot, Interval, Intervals, Names, ONE_PASS, Origin, Pages, Region, Run, Thread,
};
use fxscope_sim::{
    BlockObserver, Control, Counted, Follow, HostThreads, MOST_INTERVALS, Mode, Options, Outcome, Progress, QUANTUM,
    Simulation, SpinLoops, ThreadStarts, Unpaired, Window, page_sizes, platform,
};

use crate::contain::{Barrier, Needs, on_its_own_thread, restrict};
use crate::described::machine_constants;
use crate::environment::bears_on_speed;
use crate::mapping::CallPages;
use crate::sector::{SectorData, find_all};

/// What to run, and how.
pub struct Request {
    /// The machine.
    pub spec: Arc<Spec>,
    /// What was set differently from its description; recorded, the settings are in `spec` already.
    pub settings: Vec<(String, String)>,
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of variables that the record keeps besides those that bear on speed.
    pub record_variables: Vec<OsString>,
    /// The folder in which the program's absolute paths are looked up first; `None`: [`fxscope_linux::default_sysroot`].
    pub sysroot: Option<PathBuf>,
    /// What of the host the program may touch.
    pub access: Access,
    /// On which nodes the program's memory is to be.
    pub memory_policy: MemoryPolicy,
    /// Bytes of memory the program may use; `None`: all that the machine has.
    pub memory_bytes: Option<u64>,
    /// Which of the program's processes are timed and counted.
    pub follow: Follow,
    /// Where the program's clocks get their time from.
    pub clock: ClockSource,
    /// The CPUs the program may run on; `None`: all.
    pub cpus: Option<Vec<u32>>,
    /// Cycles that a core runs on beyond the one that is furthest behind.
    pub quantum: Cycle,
    /// Threads of the host that simulate the cores; of several each has the cores of some CMGs.
    pub host_threads: usize,
    /// How threads that wait in loops are simulated: round by round, whatever this says, with the host's clock and where
    /// instructions are limited.
    pub spin: SpinLoops,
    /// How much of the machine takes part.
    pub mode: Mode,
    /// Count by intervals of so many ns of simulated time, too, in timing mode; 0 is as good as `None`.
    pub interval_ns: Option<u64>,
    /// … what happens in the region of this name only.
    pub interval_region: Option<String>,
    /// Stop after about this many instructions.
    pub max_instructions: Option<u64>,
    /// `IMP_PF_STREAM_DETECT_CTRL_EL0` at the start: hardware prefetch as `hwpfctl` sets it.
    pub stream_detect: u64,
    /// The program's standard streams; `None`: those of this process.
    pub stdio: Option<Stdio>,
}

impl Request {
    /// A run of `program` with full timing, without arguments and environment.
    #[must_use]
    pub fn new(spec: Arc<Spec>, program: impl Into<PathBuf>) -> Request {
        Request {
            spec,
            settings: Vec::new(),
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            record_variables: Vec::new(),
            sysroot: None,
            access: Access::standard(),
            memory_policy: MemoryPolicy::default(),
            memory_bytes: None,
            follow: Follow::All,
            clock: ClockSource::Simulated,
            cpus: None,
            quantum: QUANTUM,
            host_threads: 1,
            spin: SpinLoops::Fast,
            mode: Mode::Timing,
            interval_ns: None,
            interval_region: None,
            max_instructions: None,
            stream_detect: 0,
            stdio: None,
        }
    }
}

/// Bytes of memory a machine has, all nodes together.
#[must_use]
pub fn machine_memory(spec: &Spec) -> u64 {
    u64::from(spec.topology.cmgs) * spec.topology.node_bytes
}

/// A program loaded and ready to run, on a thread that can do no more to the host than the program may.
pub struct Session {
    request: Request,
    simulation: Simulation,
    /// What was given sectors from outside.
    sectors: Vec<(Range<u64>, u8)>,
    /// Calls whose mappings have pages of their own, and the places of their rules in the process.
    call_pages: Vec<(CallPages, Range<usize>)>,
    barrier: Barrier,
    host: HostView,
}

impl Session {
    /// Loads the program and hands it to `with`, which runs it, on a thread of its own. When the program is loaded, the kernel
    /// takes from that thread everything that the program may not touch, as far as it can ([`Session::barrier`]): whatever
    /// else `with` needs of the host must be open before.
    ///
    /// # Errors
    /// When the program cannot run.
    pub fn contained<R: Send>(request: Request, with: impl FnOnce(Session) -> R + Send) -> Result<R, StartError> {
        // Made here, since the program's thread may not remove it.
        let shared_folder = SharedFolder::make().map(Arc::new);
        let given = shared_folder.clone();
        on_its_own_thread(move || Session::start(request, given).map(with))?
    }

    fn start(mut request: Request, shared_folder: Option<Arc<SharedFolder>>) -> Result<Session, StartError> {
        let host = HostView::new();
        let memory_bytes = request.memory_bytes.unwrap_or(machine_memory(&request.spec));
        let mut setup = Setup::new(platform(&request.spec, memory_bytes), "")?;
        setup.platform.page_sizes = page_sizes(&request.spec.pages, &request.settings);
        setup.policy = request.memory_policy;
        setup.cpus = request.cpus.clone();
        let program = request.program.as_os_str();
        setup.program = program.as_encoded_bytes().to_vec();
        setup.args = std::iter::once(program)
            .chain(request.arguments.iter().map(OsString::as_os_str))
            .map(|arg| arg.as_encoded_bytes().to_vec())
            .collect();
        let entry =
            |(name, value): &(OsString, OsString)| [name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat();
        setup.env = request.environment.iter().map(entry).collect();
        if let Some(sysroot) = &request.sysroot {
            setup.sysroot = Some(sysroot.clone());
        }
        if let Some(stdio) = request.stdio.take() {
            setup.stdio = stdio;
        }
        setup.access = request.access.clone();
        setup.clock = request.clock;
        setup.platform.hpc.set_stream_detect(request.stream_detect);
        setup.shared_folder = shared_folder.clone();
        let process = Process::open(&request.program, setup)?;
        let barrier = restrict(&Needs {
            access: &request.access,
            shared_folder: shared_folder.as_deref().map(SharedFolder::path),
            files: &process.mapped_files(),
        });
        let limited = request.max_instructions.is_some();
        let options = Options {
            spec: Arc::clone(&request.spec),
            mode: request.mode,
            max_instructions: request.max_instructions,
            quantum: request.quantum,
            host_threads: (request.host_threads > 1)
                .then(|| HostThreads::new(request.host_threads, &request.spec.topology))
                .transpose()?,
            spin: if request.clock == ClockSource::Host || limited { SpinLoops::Exact } else { request.spin },
            follow: request.follow,
            interval_ns: request.interval_ns,
            interval_region: request.interval_region.clone(),
        };
        Ok(Session {
            simulation: Simulation::new(process, options),
            request,
            sectors: Vec::new(),
            call_pages: Vec::new(),
            barrier,
            host,
        })
    }

    /// What of the host's kernel keeps the program from the host.
    #[must_use]
    pub fn barrier(&self) -> &Barrier {
        &self.barrier
    }

    /// Gives data of the program sectors of the caches, whatever its pointers say. All other data are in the default
    /// sector then.
    ///
    /// # Errors
    /// Data that the program does not have, or that overlap, named.
    pub fn assign_sectors(&mut self, data: &[SectorData]) -> Result<(), String> {
        self.sectors = find_all(data, self.simulation.process().running_symbols())?;
        self.simulation.assign_sectors(self.sectors.clone());
        Ok(())
    }

    /// Gives the mappings that the program makes at some of its calls pages of their own; of calls named twice the last
    /// counts.
    ///
    /// # Errors
    /// Calls that the program does not have, named.
    pub fn assign_pages(&mut self, calls: &[CallPages]) -> Result<(), String> {
        let process = self.simulation.process();
        let path = process.host_path(process.program_file());
        let mut rules = Vec::new();
        for named in calls {
            let found = named.find(&path, process.running_symbols())?;
            self.call_pages.push((named.clone(), rules.len()..rules.len() + found.len()));
            rules.extend(found);
        }
        self.simulation.process_mut().set_mapping_pages(rules);
        Ok(())
    }

    /// From now on mappings of at least so many bytes are noted with the calls that make them.
    pub fn note_mappings(&mut self, least: u64) {
        self.simulation.process_mut().note_mappings(least);
    }

    /// Lets `watch` know of what the program does at the terminal that this process writes to as well: before it writes
    /// there or waits for input, and when it has read, with whether the cursor is at the beginning of a line afterwards.
    pub fn watch_terminal(&mut self, watch: impl FnMut(bool) + 'static) {
        self.simulation.watch_terminal(Box::new(watch));
    }

    /// Runs it to its end, or until `watch` says to stop.
    pub fn run(mut self, watch: &mut dyn FnMut(Progress) -> Control) -> Run {
        let start = Instant::now();
        let outcome = self.simulation.run(watch);
        self.record(&outcome, start.elapsed().as_secs_f64())
    }

    /// The same, with a trace of `window`. Functional mode passes no pipeline: its trace stays empty.
    pub fn run_traced(mut self, watch: &mut dyn FnMut(Progress) -> Control, window: &mut Window<'_>) -> Run {
        let start = Instant::now();
        let outcome = self.simulation.run_traced(watch, window);
        self.record(&outcome, start.elapsed().as_secs_f64())
    }

    /// The same, telling `observer` of all blocks that are timed.
    pub fn run_observed<O: BlockObserver>(
        mut self,
        watch: &mut dyn FnMut(Progress) -> Control,
        observer: &mut O,
    ) -> Run {
        let start = Instant::now();
        let outcome = self.simulation.run_observed(watch, observer);
        self.record(&outcome, start.elapsed().as_secs_f64())
    }

    /// Bytes of the pages that a segment of the program has.
    #[must_use]
    pub fn page_bytes(&self, segment: Segment) -> u64 {
        self.simulation.process().page_bytes(segment)
    }

    fn record(&self, outcome: &Outcome, wall_seconds: f64) -> Run {
        let process = self.simulation.process();
        let request = &self.request;
        let text = |s: &OsStr| s.to_string_lossy().into_owned();
        let kept = |name: &OsString| bears_on_speed(name) || request.record_variables.contains(name);
        let environment = request.environment.iter().filter(|(name, _)| kept(name));
        Run {
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
            mode: match request.mode {
                Mode::Timing => fxscope_record::Mode::Timing,
                Mode::Functional => fxscope_record::Mode::Functional,
            },
            finish: finish(&outcome.finish),
            host: Host {
                cpus: self.host.cpus,
                wall_seconds,
                mips: process.instructions() as f64 / 1e6 / wall_seconds.max(1e-9),
                peak_rss_bytes: self.host.peak_rss_bytes(),
                guest_bytes: process.memory().backed_bytes(),
            },
            notes: self.sector_notes().chain(self.call_notes()).chain(notes(request, outcome, process)).collect(),
            origin: Origin::Simulated,
            passes: vec![ONE_PASS.to_owned()],
            regions: regions(request, outcome),
            intervals: intervals(request, outcome).into_iter().collect(),
            pages: outcome.pages.iter().map(pages).collect(),
            files: files(outcome, process),
            stalls: Stall::ALL.iter().map(|stall| stall.name().to_owned()).collect(),
            pipes: PIPE_NAMES.map(str::to_owned).to_vec(),
            hot_spots: outcome.hot.iter().map(hot_spot).collect(),
        }
    }
}

impl Session {
    /// What mappings were given other pages than their segment has, for the record: the settings do not have it.
    fn call_notes(&self) -> impl Iterator<Item = String> + '_ {
        let uses = self.simulation.process().mapping_rule_uses();
        self.call_pages.iter().map(move |(named, rules)| {
            let pages = match named.pages {
                MappingPages::Size(bytes) => format!("pages of {}", size(bytes)),
                MappingPages::Transparent => "transparent huge pages".to_owned(),
            };
            // Another program has none.
            match uses.get(rules.clone()).map_or(0, |uses| uses.iter().sum::<u64>()) {
                0 => format!("--pages mmap@{}: no call there has mapped memory.", named.text),
                n => format!("--pages mmap@{}: {pages} for mappings: {n}.", named.text),
            }
        })
    }

    /// What was given sectors from outside, for the record: the settings only have the ways.
    fn sector_notes(&self) -> impl Iterator<Item = String> + '_ {
        self.sectors.iter().map(|(range, sector)| {
            format!("Data from {:#x} to {:#x} were put into sector {sector} of the caches.", range.start, range.end)
        })
    }
}

fn finish(finish: &fxscope_sim::Finish) -> Finish {
    match finish {
        fxscope_sim::Finish::Ended(end) => match end {
            End::Exit { code } => Finish::Exited(*code),
            End::Killed(k) => Finish::Killed { signal: k.signal as i32, message: end.to_string() },
            End::Deadlock { .. } => Finish::Failed(end.to_string()),
        },
        fxscope_sim::Finish::Limit => Finish::Limit,
        fxscope_sim::Finish::Stopped => Finish::Stopped,
    }
}

/// What several threads of the host were good for.
fn host_threads(threads: usize, outcome: &Outcome) -> Option<String> {
    let all = outcome.regions.first()?.threads.values();
    let instructions: u64 = all.map(|counted| counted.signals.get(Signal::InstRetired)).sum();
    let share = 100.0 * outcome.parallel_instructions as f64 / instructions.max(1) as f64;
    match (threads, outcome.parallel_instructions) {
        (0 | 1, _) => None,
        (_, 0) => Some(format!("{threads} host threads: nothing was simulated side by side.")),
        _ => Some(format!(
            "{threads} host threads: {share:.0} % of the instructions were simulated side by side. Figures differ a little \
             from those of one host thread."
        )),
    }
}

fn notes(request: &Request, outcome: &Outcome, process: &Process) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(Some(&request.spec.identity.note).filter(|note| !note.is_empty()).cloned());
    if request.stream_detect != 0 {
        notes.push(format!("Hardware prefetch: {}.", hwpfctl::describe(request.stream_detect.into())));
    }
    if request.mode == Mode::Functional {
        notes.push(
            "Functional mode: results and instruction counts only; time and cycles are nominal, one nanosecond for \
             each instruction."
                .to_owned(),
        );
    }
    for (class, count) in &outcome.unknown_classes {
        notes.push(format!(
            "The machine has no timing for '{class}' (instructions of the program: {count}); theirs is assumed."
        ));
    }
    for (number, name, calls) in process.unknown_calls() {
        notes.push(format!("System call {number} ({name}) does not exist here; calls answered with ENOSYS: {calls}."));
    }
    notes.extend(host_threads(request.host_threads, outcome));
    notes.extend(last_interval(outcome));
    notes.extend(unpaired(outcome));
    notes.extend(outcome.regions.iter().filter_map(thread_starts));
    notes.extend(memory_policy(request.memory_policy));
    notes.extend(process.page_notes().iter().cloned());
    notes.extend(process.refusals().iter().map(refusal));
    notes.extend(missing_library(outcome, process));
    notes
}

/// The last interval, when there were to be no more.
fn last_interval(outcome: &Outcome) -> Option<String> {
    let from = outcome.intervals.iter().nth_back(1).filter(|_| outcome.intervals.len() == MOST_INTERVALS)?;
    let seconds = from.end_ns as f64 / 1e9;
    Some(format!(
        "The last of {MOST_INTERVALS} intervals lasts from {seconds} s to the end of the run, since there are no more: a longer \
         --interval tells all of it apart."
    ))
}

/// Marks of regions that lack the other end. A run that was stopped says nothing of those that were open then.
fn unpaired(outcome: &Outcome) -> impl Iterator<Item = String> + '_ {
    let ended = matches!(outcome.finish, fxscope_sim::Finish::Ended(_));
    outcome.unpaired.iter().filter_map(move |unpaired| match unpaired {
        Unpaired::NeverLeft(name) => {
            ended.then(|| format!("Region '{name}' was never left: it counts up to the end of the run."))
        }
        Unpaired::NeverEntered(name, times) => Some(format!(
            "Region '{name}' was left without having been entered by the same thread, {times}×; that counts nothing."
        )),
    })
}

/// What the start of threads takes of a region that contains it.
fn thread_starts(region: &fxscope_sim::Region) -> Option<String> {
    let ThreadStarts { threads, calls, until_ns, creating_ns, region_ns } = region.starts?;
    let us = |ns: u64| format!("{:.1} µs", ns as f64 / 1e3);
    let share = 100.0 * until_ns as f64 / region_ns.max(1) as f64;
    let s = if threads == 1 { "" } else { "s" };
    let of_calls = if region.calls == 1 { String::new() } else { format!(" in {calls} of {} calls", region.calls) };
    Some(format!(
        "Region '{}' contains the start of {threads} thread{s}{of_calls}: {} of its {} ({share:.1} %) pass until the last one \
         executes its first instruction, the last {} of them after the first clone. To measure the work alone, start the \
         threads before it, with a parallel region as warm-up, or mark the work behind it as a region of its own and \
         report that with --region.",
        region.name,
        us(until_ns),
        us(region_ns),
        us(creating_ns),
    ))
}

/// What was asked for of the nodes of memory.
fn memory_policy(policy: MemoryPolicy) -> Option<String> {
    match policy {
        MemoryPolicy::Local => None,
        MemoryPolicy::Bind(nodes) => Some(format!("Memory is from node {} only (--membind).", list(nodes))),
        MemoryPolicy::Interleave(nodes) => Some(format!("Pages are on nodes {} in turn (--interleave).", list(nodes))),
    }
}

/// The dynamic linker ends with status 127 when a library is missing, having named it. Where it was looked for.
fn missing_library(outcome: &Outcome, process: &Process) -> Option<String> {
    let linker_gave_up = matches!(outcome.finish, fxscope_sim::Finish::Ended(End::Exit { code: 127 }));
    let searched = process.searched().filter(|_| linker_gave_up)?;
    Some(format!(
        "Exit status 127: if a library is missing, it was looked for in {searched}; --sysroot DIR names another folder."
    ))
}

/// What the program was refused, and how to allow it.
fn refusal(refusal: &Refusal) -> String {
    let Refusal { denied, folder, calls } = refusal;
    let shown = folder.display();
    let (what, switch) = match denied {
        Denied::Network => ("network sockets".to_owned(), "--allow net".to_owned()),
        Denied::Device => {
            return format!(
                "The program was refused devices in {shown} (calls: {calls}); those of the host stay as they are."
            );
        }
        Denied::KernelFile => {
            return format!(
                "The program was refused files of the kernel in {shown} (calls: {calls}): no procfs, sysfs or the like of the \
                 host may be used."
            );
        }
        Denied::Read | Denied::Write => {
            let (doing, key) = if *denied == Denied::Read { ("reading", "read") } else { ("writing", "write") };
            if folder.as_os_str().is_empty() {
                (format!("{doing} in further folders"), format!("--allow {key}=DIR"))
            } else {
                (format!("{doing} in {shown}"), format!("--allow {key}={shown}"))
            }
        }
    };
    format!("The program was refused {what} (calls: {calls}); {switch} permits it.")
}

fn regions(request: &Request, outcome: &Outcome) -> Vec<Region> {
    let events = &request.spec.pmu.events;
    // What functional mode does not model must not appear as zero.
    let counted = |signal: Signal| match request.mode {
        Mode::Timing => true,
        Mode::Functional => [Signal::InstRetired, Signal::CpuCycles].contains(&signal),
    };
    let row = |thread: u32, c: &Counted| {
        (Thread { thread, cpu: c.cpu, ..Thread::default() }, events.counts(&c.signals, counted))
    };
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

/// What was counted in intervals of time, if that was asked for. Events of energy, which are rounded, are not among it.
fn intervals(request: &Request, outcome: &Outcome) -> Option<Intervals> {
    if outcome.intervals.is_empty() {
        return None;
    }
    let events = &request.spec.pmu.events;
    let names: Names = events.iter().filter(|e| !e.terms.is_empty()).map(|e| e.name.clone()).collect();
    let mut signals = Signals::default();
    let mut told = vec![0; names.len()];
    let row = |interval: &fxscope_sim::Interval| {
        // From the beginning, so that what an event takes away is there before.
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
    let region = request.interval_region.as_deref().unwrap_or(ALL).to_owned();
    Some(Intervals { pass: 0, region, names, rows })
}

/// Largest file of code that is read again after a run, bytes.
pub(crate) const MOST_CODE: u64 = 4 << 30;

/// The files that code was mapped from, as they are now.
fn files(outcome: &Outcome, process: &Process) -> Vec<CodeFile> {
    let file = |path: &Vec<u8>| {
        let path = process.host_path(path);
        let digest = fxscope_host::open(&path, MOST_CODE)
            .ok()
            .and_then(|file| fxscope_record::digest_of(file).ok())
            .unwrap_or_default();
        CodeFile { path: path.to_string_lossy().into_owned(), digest }
    };
    outcome.files.iter().map(file).collect()
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
    }
}

/// What the record says of the host, as far as the run's thread could not find it out afterwards.
struct HostView {
    /// CPUs that this process may use.
    cpus: u32,
    /// `/proc/self/status`, which says anew what is so whenever it is read from its beginning.
    status: Option<File>,
}

impl HostView {
    fn new() -> HostView {
        let cpus = std::thread::available_parallelism().map_or(0, |n| n.get() as u32);
        HostView { cpus, status: File::open("/proc/self/status").ok() }
    }

    /// The most memory this process has had, bytes; 0 when the host does not tell.
    fn peak_rss_bytes(&self) -> u64 {
        let Some(mut status) = self.status.as_ref() else { return 0 };
        let mut text = String::new();
        let _ = status.rewind().and_then(|()| status.read_to_string(&mut text));
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")).and_then(|n| n.parse::<u64>().ok());
        kib.unwrap_or(0) * 1024
    }
}
