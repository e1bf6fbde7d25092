//! A run, from program to record.

use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use fxscope_guestmem::Segment;
use fxscope_linux::pages::MappingPages;
use fxscope_linux::{ClockSource, Guest, Setup, SharedFolder, StartError};
use fxscope_machine::settings::size;
use fxscope_record::Run;
use fxscope_sim::{
    BlockObserver, Control, HostThreads, Options, Progress, Simulation, SpinLoops, Window, page_sizes, platform,
};

use crate::contain::{Barrier, Needs, on_its_own_thread, restrict};
use crate::host_view::HostView;
use crate::sector_data::find_all;
use crate::{CallPages, Request, SectorData, counted, machine_memory};

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
        let options = request.options.clone();
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
        if let Some(sysroot) = &options.sysroot {
            setup.sysroot = Some(sysroot.clone());
        }
        if let Some(stdio) = request.stdio.take() {
            setup.stdio = stdio;
        }
        setup.access = request.access.clone();
        setup.clock = options.clock;
        setup.platform.hpc.set_stream_detect(options.stream_detect);
        setup.shared_folder = shared_folder.clone();
        let process = Guest::open(&request.program, setup)?;
        let barrier = restrict(&Needs {
            access: &request.access,
            shared_folder: shared_folder.as_deref().map(SharedFolder::path),
            files: &process.mapped_files(),
        });
        let exact = options.clock == ClockSource::Host || options.max_instructions.is_some();
        let options = Options {
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
            interval_region: options.interval_region,
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
        self.sectors = find_all(data, self.simulation.guest().running_symbols())?;
        self.simulation.assign_sectors(self.sectors.clone());
        Ok(())
    }

    /// Gives the mappings that the program makes at some of its calls pages of their own; of calls named twice the last
    /// counts.
    ///
    /// # Errors
    /// Calls that the program does not have, named.
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

    /// From now on mappings of at least `least` bytes are noted with the calls that make them.
    pub fn note_mappings(&mut self, least: u64) {
        self.simulation.guest_mut().note_mappings(least);
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
        self.recorded(&outcome, start.elapsed().as_secs_f64())
    }

    /// The same, with a trace of `window`. Functional mode passes no pipeline: its trace stays empty.
    pub fn run_traced(mut self, watch: &mut dyn FnMut(Progress) -> Control, window: &mut Window<'_>) -> Run {
        let start = Instant::now();
        let outcome = self.simulation.run_traced(watch, window);
        self.recorded(&outcome, start.elapsed().as_secs_f64())
    }

    /// The same, telling `observer` of all blocks that are timed.
    pub fn run_observed(mut self, watch: &mut dyn FnMut(Progress) -> Control, observer: &mut dyn BlockObserver) -> Run {
        let start = Instant::now();
        let outcome = self.simulation.run_observed(watch, observer);
        self.recorded(&outcome, start.elapsed().as_secs_f64())
    }

    /// Bytes of the pages that a segment of the program has.
    #[must_use]
    pub fn page_bytes(&self, segment: Segment) -> u64 {
        self.simulation.guest().page_bytes(segment)
    }
}

impl Session {
    fn recorded(&self, outcome: &fxscope_sim::Outcome, wall_seconds: f64) -> Run {
        let notes = self.sector_notes().chain(self.call_notes()).collect();
        counted::run(&self.request, outcome, self.simulation.guest(), &self.host, wall_seconds, notes)
    }

    /// What mappings were given other pages than their segment has, for the record: the settings do not have it.
    fn call_notes(&self) -> impl Iterator<Item = String> + '_ {
        let uses = self.simulation.guest().mapping_rule_uses();
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
