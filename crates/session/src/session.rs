//! A run, from program to record.

use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use fxscope_guestmem::Segment;
use fxscope_linux::pages::MappingPages;
use fxscope_linux::{ClockSource, Guest, Setup, SharedFolder, StartError, Stdio, Surroundings, default_sysroot};
use fxscope_machine::settings::size;
use fxscope_record::Run;
use fxscope_sim::{
    BlockObserver, Control, HostThreads, Jobs, JobsError, Options, Outcome, Progress, Simulation, SpinLoops, Window,
    page_sizes, platform,
};

use crate::checkpoint::{More, Resumption, duplicate};
use crate::contain::{HostProtection, Needs, on_its_own_thread, restrict};
use crate::engine::{RunEngine, engine};
use crate::host_view::HostView;
use crate::named_data::find_all;
use crate::objects::DataSeries;
use crate::observers::Observers;
use crate::placed::Placed;
use crate::spool::Spool;
use crate::{
    CallPages, Error, PlaceOption, Request, SectorBlocks, SectorData, counted, machine_memory, objects, sector_blocks,
};

/// A program loaded and ready to run, on a thread whose access to the host is limited to what the program may use.
pub struct Session {
    request: Request,
    pub(crate) simulation: Simulation<RunEngine>,
    /// Data assigned to sectors by options.
    pub(crate) sectors: Vec<(Range<u64>, u8)>,
    /// Heap blocks assigned to sectors by options.
    sector_blocks: Option<sector_blocks::Observer>,
    /// Calls whose mappings have their own page size, and the indices of their rules in the process.
    pub(crate) call_pages: Vec<(CallPages, Range<usize>)>,
    /// Data placed on memory nodes by options.
    placed: Placed,
    /// The program's standard streams.
    pub(crate) stdio: Stdio,
    /// How long the run had taken when it was interrupted, in seconds.
    pub(crate) seconds_before: f64,
    protection: HostProtection,
    host: HostView,
}

impl Session {
    /// Loads the program and passes it to `with`, which runs it, on a new thread. After the program is loaded, the
    /// kernel removes that thread's access to everything that the program may not use, as far as it can
    /// ([`Session::protection`]): whatever else `with` needs on the host must be opened before.
    ///
    /// # Errors
    /// If the program cannot run.
    pub fn contained<R: Send>(request: Request, with: impl FnOnce(Session) -> R + Send) -> Result<R, StartError> {
        // Made here, since the program's thread is not allowed to remove it.
        let shared_folder = SharedFolder::make().map(Arc::new);
        let given = shared_folder.clone();
        on_its_own_thread(move || Session::start(request, given).map(with))?
    }

    /// Continues a run as [`Session::contained`] starts one: under the same protection, which begins before anything that the
    /// snapshot says is followed.
    ///
    /// # Errors
    /// If it cannot continue from there.
    pub(crate) fn resumed<R: Send>(
        request: Request,
        from: Resumption<'_>,
        with: impl FnOnce(Session) -> R + Send,
    ) -> Result<R, Error> {
        let shared_folder = SharedFolder::make().map(Arc::new);
        let given = shared_folder.clone();
        on_its_own_thread(move || Session::resume(request, given, from).map(with)).map_err(StartError::Host)?
    }

    fn start(mut request: Request, shared_folder: Option<Arc<SharedFolder>>) -> Result<Session, StartError> {
        let host = HostView::new();
        let stdio = request.stdio.take().map_or_else(Stdio::inherit, Ok)?;
        let guest = Guest::open(&request.program, setup(&request, duplicate(&stdio)?, shared_folder.clone())?)?;
        let protection = protect(&request, shared_folder.as_deref(), &guest);
        let engine = engine(&request.options, guest.cpu().vl);
        let mut simulation = Simulation::new(guest, options(&request)?);
        simulation.use_engine(engine);
        let (sectors, call_pages) = (Vec::new(), Vec::new());
        let sector_blocks = None;
        Ok(Session {
            simulation,
            request,
            sectors,
            sector_blocks,
            call_pages,
            placed: Placed::default(),
            stdio,
            seconds_before: 0.0,
            protection,
            host,
        })
    }

    fn resume(
        mut request: Request,
        shared_folder: Option<Arc<SharedFolder>>,
        from: Resumption<'_>,
    ) -> Result<Session, Error> {
        let host = HostView::new();
        let mut stdio = request.stdio.take().map_or_else(Stdio::inherit, Ok).map_err(StartError::Host)?;
        from.place_input(&mut stdio)?;
        // The files that are read again after the run are found as at the start, and not believed.
        let streams = duplicate(&stdio).map_err(StartError::Host)?;
        let start = Guest::open(&request.program, setup(&request, streams, shared_folder.clone())?)?;
        let protection = protect(&request, shared_folder.as_deref(), &start);
        let engine = engine(&request.options, start.cpu().vl);
        drop(start);
        let surroundings = Surroundings {
            stdio: &stdio,
            sysroot: request.options.sysroot.clone().or_else(default_sysroot),
            access: request.access.clone(),
            shared_folder,
        };
        let simulation = from.simulation(surroundings, options(&request)?, &engine)?;
        let seconds_before = from.seconds();
        let More { sectors, call_pages, .. } = from.more;
        let (sector_blocks, placed) = (None, Placed::default());
        Ok(Session {
            simulation,
            request,
            sectors,
            sector_blocks,
            call_pages,
            placed,
            stdio,
            seconds_before,
            protection,
            host,
        })
    }

    /// Returns the kernel's protection of the host.
    #[must_use]
    pub fn protection(&self) -> &HostProtection {
        &self.protection
    }

    /// Assigns data of the program, and heap blocks that it will allocate, to sectors of the caches, whatever its pointers say. All other
    /// data are then in the default sector. Blocks are found in runs without traces and snapshots.
    ///
    /// # Errors
    /// Names data or calls that the program does not have, or data that overlap.
    pub fn assign_sectors(&mut self, data: &[SectorData], blocks: &[SectorBlocks]) -> Result<(), String> {
        let guest = self.simulation.guest();
        self.sectors = find_all(data, guest.running_symbols())?;
        if !blocks.is_empty() {
            let path = guest.host_path(guest.program_file());
            self.sector_blocks = Some(sector_blocks::Observer::new(blocks, &self.sectors, guest, &path)?);
        }
        self.simulation.assign_sectors(self.sectors.clone());
        Ok(())
    }

    /// Sets page sizes for the mappings made by some of the program's calls; of calls named twice the last applies.
    ///
    /// # Errors
    /// Names calls that the program does not have.
    pub fn assign_pages(&mut self, calls: &[CallPages]) -> Result<(), String> {
        let process = self.simulation.guest();
        let path = process.host_path(process.program_file());
        let mut rules = Vec::new();
        for named in calls {
            let found = named.find(&path, process.running_symbols())?;
            self.call_pages.push((named.clone(), rules.len()..rules.len() + found.len()));
            rules.extend(found);
        }
        self.simulation.guest_mut().set_mapping_pages(rules);
        Ok(())
    }

    /// Puts the pages of data of the program, and of heap blocks and mappings that it will allocate, on memory nodes. Blocks are found in runs
    /// without traces and snapshots.
    ///
    /// # Errors
    /// Names data or calls that the program does not have, and data that fill no page.
    pub fn place(&mut self, options: &[(PlaceOption, u32)]) -> Result<(), String> {
        let guest = self.simulation.guest_mut();
        let path = guest.host_path(guest.program_file());
        self.placed = Placed::new(options, guest, &path)?;
        Ok(())
    }

    /// Records mappings of at least `least` bytes from now on, with the calls that make them.
    pub fn note_mappings(&mut self, least: u64) {
        self.simulation.guest_mut().note_mappings(least);
    }

    /// Calls `watch` when the program uses the terminal that this process writes to as well: before it writes there or
    /// waits for input, and after it has read, with whether the cursor is then at the beginning of a line.
    pub fn watch_terminal(&mut self, watch: impl FnMut(bool) + 'static) {
        self.simulation.watch_terminal(Box::new(watch));
    }

    /// Runs it to its end, or until `watch` stops it.
    pub fn run(mut self, watch: &mut dyn FnMut(Progress) -> Control) -> Run {
        let start = Instant::now();
        let mut data = self.request.options.data.then(|| objects::Observer::new(&self.request.spec));
        let outcome = match &mut data {
            Some(observer) => self.observed(watch, Some(observer)),
            None => self.observed(watch, None),
        };
        self.recorded_with(&outcome, start.elapsed().as_secs_f64(), data)
    }

    /// Runs it, and returns the traffic of its data objects by the intervals of the record ([`crate::RunOptions::interval_ns`]) as well.
    pub fn run_with_data_series(mut self, watch: &mut dyn FnMut(Progress) -> Control) -> (Run, DataSeries) {
        let start = Instant::now();
        let spec = Arc::clone(&self.request.spec);
        let interval_ns = self.request.options.interval_ns.unwrap_or(u64::MAX);
        let cycles = u128::from(interval_ns) * u128::from(spec.clock.core_hz) / 1_000_000_000;
        let mut data = objects::Observer::new(&spec).by_intervals(cycles.try_into().unwrap_or(u64::MAX));
        let outcome = self.observed(watch, Some(&mut data));
        let series = data.series().unwrap_or_default();
        (self.recorded_with(&outcome, start.elapsed().as_secs_f64(), Some(data)), series)
    }

    /// Runs it to its end, or until `watch` stops it, and times intervals of it at the same time, on `jobs` host threads. Results do not depend
    /// on their number.
    ///
    /// # Errors
    /// If the program does not allow that, which shows while it runs.
    pub fn run_in_jobs(mut self, jobs: usize, watch: &mut dyn FnMut(Progress) -> Control) -> Result<Run, Error> {
        let start = Instant::now();
        let outcome = self.simulation.run_in_jobs(&Jobs::new(jobs), watch).map_err(not_in_jobs)?;
        Ok(self.recorded(&outcome, start.elapsed().as_secs_f64()))
    }

    /// Does the same with other processes, which time intervals through a folder. Results are the same.
    ///
    /// # Errors
    /// Those of [`Session::run_in_jobs`]; if the processes cannot continue.
    pub fn run_in_spool(mut self, mut spool: Spool, watch: &mut dyn FnMut(Progress) -> Control) -> Result<Run, Error> {
        let start = Instant::now();
        let outcome = self.simulation.run_with_timers(Jobs::INTERVAL, &mut spool, watch).map_err(not_in_jobs)?;
        Ok(self.recorded(&outcome, start.elapsed().as_secs_f64()))
    }

    /// Runs it with a trace of `window`. The trace is empty in functional mode, which has no pipeline.
    pub fn run_traced(mut self, watch: &mut dyn FnMut(Progress) -> Control, window: &mut Window<'_>) -> Run {
        let start = Instant::now();
        let outcome = self.simulation.run_traced(watch, window);
        self.recorded(&outcome, start.elapsed().as_secs_f64())
    }

    /// Runs it, and calls `observer` for all timed blocks.
    pub fn run_observed(mut self, watch: &mut dyn FnMut(Progress) -> Control, observer: &mut dyn BlockObserver) -> Run {
        let start = Instant::now();
        let outcome = self.observed(watch, Some(observer));
        self.recorded(&outcome, start.elapsed().as_secs_f64())
    }

    /// Runs it, with an observer if there is one, and with those that find heap blocks if some are assigned to sectors or placed.
    fn observed<'o>(
        &'o mut self,
        watch: &mut dyn FnMut(Progress) -> Control,
        observer: Option<&'o mut dyn BlockObserver>,
    ) -> Outcome {
        let blocks = self.sector_blocks.as_mut().map(|blocks| blocks as &mut dyn BlockObserver);
        let observers: Vec<_> = blocks.into_iter().chain(self.placed.observer()).chain(observer).collect();
        if observers.is_empty() {
            self.simulation.run(watch)
        } else {
            self.simulation.run_observed(watch, &mut Observers(observers))
        }
    }

    /// Returns the page size of a segment of the program, bytes.
    #[must_use]
    pub fn page_bytes(&self, segment: Segment) -> u64 {
        self.simulation.guest().page_bytes(segment)
    }
}

/// Returns how the program of a request starts with these standard streams.
fn setup(request: &Request, stdio: Stdio, shared_folder: Option<Arc<SharedFolder>>) -> Result<Setup, StartError> {
    let memory_bytes = request.memory_bytes.unwrap_or(machine_memory(&request.spec));
    let mut setup = Setup::new(platform(&request.spec, memory_bytes), "")?;
    setup.platform.page_sizes = page_sizes(&request.spec, &request.settings);
    let of_cores = || u64::from(request.spec.topology.cmgs) * request.spec.topology.node_bytes;
    setup.fast_memory = request.fast_memory.or_else(|| request.spec.tiering.enabled.then(of_cores));
    setup.policy = request.memory_policy;
    setup.cpus = request.cpus.clone();
    let program = request.program.as_os_str();
    setup.program = program.as_encoded_bytes().to_vec();
    setup.args = std::iter::once(request.name.as_deref().unwrap_or(program))
        .chain(request.arguments.iter().map(OsString::as_os_str))
        .map(|arg| arg.as_encoded_bytes().to_vec())
        .collect();
    let entry =
        |(name, value): &(OsString, OsString)| [name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat();
    setup.env = request.environment.iter().map(entry).collect();
    if let Some(sysroot) = &request.options.sysroot {
        setup.sysroot = Some(sysroot.clone());
    }
    setup.stdio = stdio;
    setup.access = request.access.clone();
    setup.clock = request.options.clock;
    setup.platform.hpc.set_stream_detect(request.options.stream_detect);
    setup.shared_folder = shared_folder;
    Ok(setup)
}

/// Gives up all access of this thread to the host that a program and the reading of its files after the run do not need.
fn protect(request: &Request, shared_folder: Option<&SharedFolder>, guest: &Guest) -> HostProtection {
    restrict(&Needs {
        access: &request.access,
        shared_folder: shared_folder.map(SharedFolder::path),
        files: &guest.mapped_files(),
    })
}

/// Returns the options of a request's simulation.
fn options(request: &Request) -> Result<Options, StartError> {
    let options = request.options.clone();
    let exact = options.clock == ClockSource::Host || options.max_instructions.is_some();
    Ok(Options {
        spec: Arc::clone(&request.spec),
        mode: options.mode,
        max_instructions: options.max_instructions,
        quantum: options.quantum,
        host_threads: (options.host_threads > 1)
            .then(|| HostThreads::new(options.host_threads, &request.spec.topology))
            .transpose()?,
        spin: if exact { SpinLoops::Exact } else { options.spin },
        follow: options.follow,
        interval_ns: options.interval_ns,
        stack_ns: options.stack_ns,
        interval_region: options.interval_region,
        sample: options.sample,
        precision: options.precision,
        part: options.part,
        // On the host's clock, time passes however little is done.
        no_progress_ns: options.no_progress.ns(options.mode).filter(|_| options.clock == ClockSource::Simulated),
    })
}

impl Session {
    pub(crate) fn recorded(&self, outcome: &Outcome, wall_seconds: f64) -> Run {
        self.recorded_with(outcome, wall_seconds, None)
    }

    /// Returns the record of a run with the data objects that were observed.
    fn recorded_with(&self, outcome: &Outcome, wall_seconds: f64, data: Option<objects::Observer>) -> Run {
        let notes = self
            .sector_notes()
            .chain(self.call_notes())
            .chain(self.khugepaged_note())
            .chain(self.placed.notes(self.simulation.guest()))
            .collect();
        let observed = counted::Observed { notes, data };
        counted::run(&self.request, outcome, self.simulation.guest(), &self.host, wall_seconds, observed)
    }

    /// Notes on mappings with another page size than their segment: the settings do not include it.
    fn call_notes(&self) -> impl Iterator<Item = String> + '_ {
        let uses = self.simulation.guest().mapping_rule_uses();
        self.call_pages.iter().map(move |(named, rules)| {
            let pages = match named.pages {
                MappingPages::Size(bytes) => format!("pages of {}", size(bytes)),
                MappingPages::Transparent => "transparent huge pages".to_owned(),
            };
            // After exec, another program has no such rules.
            match uses.get(rules.clone()).map_or(0, |uses| uses.iter().sum::<u64>()) {
                0 => format!("--pages mmap@{}: no call there has mapped memory.", named.text),
                n => format!("--pages mmap@{}: {pages} for mappings: {n}.", named.text),
            }
        })
    }

    /// A note on pages that the system has collapsed.
    fn khugepaged_note(&self) -> Option<String> {
        let (guest, spec) = (self.simulation.guest(), &self.request.spec);
        let (collapsed, scans) = guest.khugepaged_progress();
        let bytes = size(spec.pages.transparent());
        (collapsed > 0).then(|| {
            format!("khugepaged: {collapsed} ranges of pages became huge pages of {bytes}; full scans: {scans}.")
        })
    }

    /// Notes on data assigned to sectors: the settings only have the ways.
    fn sector_notes(&self) -> impl Iterator<Item = String> + '_ {
        let data = self.sectors.iter().map(|(range, sector)| {
            format!("Data from {:#x} to {:#x} were put into sector {sector} of the caches.", range.start, range.end)
        });
        data.chain(self.sector_blocks.iter().flat_map(sector_blocks::Observer::notes))
    }
}

/// Returns why a run cannot be timed in intervals, and what to do.
fn not_in_jobs(why: JobsError) -> Error {
    match why {
        JobsError::Timers(why) => Error::option("spool", why),
        why => Error::option("jobs", format!("{why}; leave --jobs out")),
    }
}
