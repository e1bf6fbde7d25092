//! Starting a program on a modelled machine, for every command that runs one.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fxscope::linux::hwpfctl::Settings;
use fxscope::linux::{Access, ClockSource, StartError, Stdio};
use fxscope::machine::Spec;
use fxscope::record::{ALL, Run};
use fxscope::{CallPages, Control, Mode, Progress, QUANTUM, Request, Session, Window, guest_environment};

use super::interrupt::{self, STOP};
use super::placement::{Placement, Remote};
use super::progress::ProgressLine;
use super::sector::Sectors;
use super::{FAILED, Failure, hwpf};

/// Exit status when the program's file cannot be run, and when there is none, as shells have it.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The machine when none is named.
const DEFAULT_MACHINE: &str = "a64fx";

/// The machine, and what the program gets and may touch.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Launch {
    /// Machine: a name that `fxscope machine list` shows, or the path of a machine's folder [default: a64fx].
    #[arg(short, long)]
    machine: Option<String>,
    /// Set a value of the machine's description, such as tlb.l1_entries=32.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
    /// Vector length in bits: short for --set clock.vector_bits=N.
    #[arg(long, value_name = "N", value_parser = ["128", "256", "512"])]
    vector_bits: Option<String>,
    #[command(flatten)]
    placement: Placement,
    #[command(flatten)]
    sectors: Sectors,
    /// Set a variable of the program's environment.
    #[arg(short, value_name = "VAR=VALUE", value_parser = variable)]
    environment: Vec<(OsString, OsString)>,
    /// Where the program's interpreter and libraries are: its absolute paths are looked up in this folder first.
    /// Without it, in the folder of the AArch64 cross compilers, if there is one.
    #[arg(long, value_name = "DIR")]
    sysroot: Option<PathBuf>,
    /// Hardware prefetch, as hwpfctl on the machine sets it: one argument with its options, such as
    /// "--distL1 4 --distL2 20"; --disableL1, --disableL2, --weakL1, --weakL2, --default, --verbose are the others.
    #[arg(long, value_name = "OPTIONS", value_parser = hwpf::options, allow_hyphen_values = true)]
    hwpf: Option<Settings>,
    /// Let the program touch more of the host than it may: write=DIR, read=DIR (with --sandbox), or net.
    #[arg(long, value_name = "WHAT", value_parser = Allow::parse)]
    allow: Vec<Allow>,
    /// Let the program touch nothing of the host but its standard streams, and what --allow gives.
    #[arg(long)]
    sandbox: bool,
    /// Memory the program may use, such as 512MiB; it gets ENOMEM beyond. Without it, all that the machine has.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<u64>,
    /// Processes that are timed and counted: all together, or only the first; others then run as in functional mode.
    #[arg(long, value_enum, default_value_t = Follow::All)]
    follow: Follow,
    /// The program's clocks: simulated time, the same on every run, or the host's.
    #[arg(long, value_enum, default_value_t = Clock::Simulated)]
    clock: Clock,
    /// Cycles that a core may be simulated beyond the one that is furthest behind. What threads tell each other by is in
    /// the order of time with any number; fewer cycles cost speed.
    #[arg(long, value_name = "CYCLES", default_value_t = QUANTUM, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    quantum: u64,
    /// Threads of the host that simulate the cores, each those of some CMGs. With more than one a run is as repeatable, but
    /// its figures differ a little from those of one thread, as plain accesses of different CMGs may be up to 2 us older or
    /// newer and their requests come in another order (docs/threads.md).
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    host_threads: u8,
    /// Threads that wait in loops: rounds that repeat themselves exactly counted together, or each of them simulated, as
    /// always with --max-instructions or the host's clock.
    #[arg(long, value_enum, default_value_t = Spin::Fast)]
    spin: Spin,
    /// Stop after this many instructions; a basic block is not cut short.
    #[arg(long, value_name = "N")]
    max_instructions: Option<u64>,
    /// Count by intervals, too.
    #[arg(skip)]
    interval_ns: Option<u64>,
    /// … in the region of this name only.
    #[arg(skip)]
    interval_region: Option<String>,
    /// Settings that hold whatever the options say.
    #[arg(skip)]
    decided: Vec<(String, String)>,
}

/// Something that `--allow` gives.
#[derive(Clone, Debug)]
enum Allow {
    Read(PathBuf),
    Write(PathBuf),
    Network,
}

impl Allow {
    fn parse(text: &str) -> Result<Allow, String> {
        match text.split_once('=') {
            Some(("read", folder)) if !folder.is_empty() => Ok(Allow::Read(folder.into())),
            Some(("write", folder)) if !folder.is_empty() => Ok(Allow::Write(folder.into())),
            None if text == "net" => Ok(Allow::Network),
            _ => Err("write it as read=DIR, write=DIR or net".to_owned()),
        }
    }
}

/// What the program may touch.
fn access(args: &Launch) -> Result<Access, Failure> {
    let mut access = if args.sandbox { Access::sandbox() } else { Access::standard() };
    for allow in &args.allow {
        match allow {
            Allow::Read(folder) | Allow::Write(folder) if !folder.is_dir() => {
                return Err(format!("--allow: {} is not a folder; name one that exists", folder.display()).into());
            }
            // Without --sandbox everything may be read anyway.
            Allow::Read(folder) => access.read.iter_mut().for_each(|list| list.push(folder.clone())),
            Allow::Write(folder) => access.write.push(folder.clone()),
            Allow::Network => access.network = true,
        }
    }
    Ok(access)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Follow {
    All,
    First,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Spin {
    Fast,
    Exact,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Clock {
    Simulated,
    Host,
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write it as VAR=VALUE")?;
    Ok((name.into(), value.into()))
}

/// A number of bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    fxscope::machine::settings::integer(text)
        .ok_or_else(|| "write it as a number of bytes, or as 512MiB or 8GiB".to_owned())
}

/// A length of simulated time, ns: as long as a microsecond or longer.
pub(super) fn interval_ns(text: &str) -> Result<u64, String> {
    let wrong = || "write it as a number and a unit: 100us, 0.5ms, 2s".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let ns_per_unit = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(wrong()),
    };
    let ns = (number.parse::<f64>().map_err(|_| wrong())? * ns_per_unit).round();
    if (1e3..=3.6e12).contains(&ns) {
        Ok(ns as u64)
    } else {
        Err("an interval takes between 1us and 3600s of simulated time".to_owned())
    }
}

/// The memory asked for, if the machine has it.
fn memory_bytes(args: &Launch, spec: &Spec) -> Result<Option<u64>, Failure> {
    let all = fxscope::machine_memory(spec);
    match args.memory {
        Some(bytes) if bytes > all => Err(format!(
            "--memory {bytes}: {} has {all} bytes; ask for less, or give it more with --set topology.node_bytes=SIZE",
            spec.name
        )
        .into()),
        memory => Ok(memory),
    }
}

/// What `-m` would say to mean the machine of a run.
fn machine_of(run: &Run) -> &str {
    run.description.as_ref().and_then(|description| description.path.as_deref()).unwrap_or(&run.machine)
}

impl Launch {
    /// The machine with all its settings.
    pub(super) fn spec(&self) -> Result<Arc<Spec>, Failure> {
        let machine = self.machine.as_deref().unwrap_or(DEFAULT_MACHINE);
        self.placement.check_pages(|| fxscope::machine::load(machine, &self.set))?;
        Ok(Arc::new(fxscope::machine::load(machine, &self.settings()?)?))
    }

    /// The machine that a recorded run was made on, as it is described now.
    pub(super) fn spec_of(&self, run: &Run) -> Result<Spec, Failure> {
        let machine = self.machine.as_deref().unwrap_or(machine_of(run));
        let spec = fxscope::machine::load(machine, &run.settings);
        spec.map_err(|e| {
            let hint = if self.machine.is_some() { "" } else { "; --machine PATH names its description" };
            format!("the machine of the run: {e}{hint}").into()
        })
    }

    fn settings(&self) -> Result<Vec<(String, String)>, Failure> {
        let bits = self.vector_bits.iter().map(|bits| ("clock.vector_bits".to_owned(), bits.clone()));
        let mut all: Vec<_> = self.set.iter().cloned().chain(bits).chain(self.placement.settings()).collect();
        all.extend(self.decided.iter().cloned());
        if self.sectors.limits() {
            let machine = self.machine.as_deref().unwrap_or(DEFAULT_MACHINE);
            let spec = fxscope::machine::load(machine, &all)?;
            all.extend(self.sectors.settings(&spec, &self.placement.cmgs(&spec)?)?);
        }
        Ok(all)
    }

    /// The options to run again what `run` recorded, on its machine, with its settings and variables; those that are given
    /// now count besides.
    pub(super) fn repeating(&self, run: &Run) -> Launch {
        let mut launch = self.clone();
        launch.machine.get_or_insert_with(|| machine_of(run).to_owned());
        launch.set.splice(0..0, run.settings.iter().cloned());
        let variables = run.environment.iter().map(|(name, value)| (name.into(), value.into()));
        launch.environment.splice(0..0, variables);
        launch
    }

    /// Everything that a run depends on besides the program's file and its arguments, as bytes that are equal when it is.
    pub(super) fn identity(&self) -> Vec<u8> {
        let environment = guest_environment(std::env::vars_os(), &self.environment);
        format!("{self:?} {environment:?} {:?}", std::env::current_dir().ok()).into_bytes()
    }

    /// The same run with pages of these sizes, by segment.
    pub(super) fn with_pages(&self, sizes: impl IntoIterator<Item = (&'static str, u64)>) -> Launch {
        let setting = |(segment, bytes)| (format!("pages.{segment}"), fxscope::machine::settings::size(bytes));
        Launch { decided: sizes.into_iter().map(setting).collect(), ..self.clone() }
    }

    /// The same run with memory that is slower by so much than its description says.
    pub(super) fn with_added_ns(&self, ns: f64) -> Launch {
        let mut launch = self.clone();
        launch.decided.push(("memory.added_ns".to_owned(), ns.to_string()));
        launch
    }

    /// The same run, counted by intervals of so many ns, too, those of a region if one is named.
    pub(super) fn with_intervals(&self, interval_ns: Option<u64>, region: Option<&str>) -> Launch {
        let interval_region = region.filter(|&region| region != ALL).map(str::to_owned);
        Launch { interval_ns, interval_region, ..self.clone() }
    }

    /// The same run with the pages that the machine and the variables give.
    pub(super) fn without_pages(&self) -> Launch {
        let mut launch = self.clone();
        launch.set.retain(|(key, _)| !key.starts_with("pages."));
        launch.placement.forget_pages();
        launch
    }

    /// The same run with pages of their own for the mappings of these calls.
    pub(super) fn with_call_pages(&self, calls: impl IntoIterator<Item = CallPages>) -> Launch {
        let mut launch = self.clone();
        launch.placement.add_call_pages(calls);
        launch
    }

    /// The same run with these variables in the program's environment.
    pub(super) fn with_variables(&self, variables: &[(&str, &str)]) -> Launch {
        let mut launch = self.clone();
        launch.environment.extend(variables.iter().map(|&(name, value)| (name.into(), value.into())));
        launch
    }

    /// The same run with pages on all nodes in turn.
    pub(super) fn with_interleaving(&self) -> Launch {
        let mut launch = self.clone();
        launch.placement.interleave_all();
        launch
    }

    /// The same run with memory of this node.
    pub(super) fn with_memory_of(&self, node: u32) -> Launch {
        let mut launch = self.clone();
        launch.placement.bind_memory(node);
        launch
    }

    /// The node farthest from the one of the cores that the program may run on; or why it cannot have memory of such a one.
    pub(super) fn farthest(&self) -> Result<Remote, Failure> {
        if self.places_memory() {
            return Err("options say where the program's memory is to be".into());
        }
        self.placement.farthest(&*self.spec()?)
    }

    /// Whether the options say where the program's memory is to be.
    pub(super) fn places_memory(&self) -> bool {
        self.placement.places_memory()
    }

    /// The CPUs that the program may run on, as they were asked for.
    pub(super) fn cpus_asked(&self) -> Option<&str> {
        self.placement.cpus_asked()
    }

    /// The machine as it is without any setting of page sizes.
    pub(super) fn spec_of_default_pages(&self) -> Result<Spec, Failure> {
        let machine = self.machine.as_deref().unwrap_or(DEFAULT_MACHINE);
        let others: Vec<_> = self.settings()?.into_iter().filter(|(key, _)| !key.starts_with("pages.")).collect();
        Ok(fxscope::machine::load(machine, &others)?)
    }

    /// Bytes of memory that the program may use.
    pub(super) fn memory(&self, spec: &Spec) -> Result<u64, Failure> {
        Ok(memory_bytes(self, spec)?.unwrap_or_else(|| fxscope::machine_memory(spec)))
    }

    /// Loads the program named first in `command`, which gets the rest as its arguments, and `stdio` as its standard streams if
    /// they are not those of fxscope. Hands it to `with`, on a thread that may touch of the host what the program may
    /// ([`Session::contained`]).
    pub(super) fn contained<R: Send>(
        &self,
        spec: Arc<Spec>,
        command: &[OsString],
        mode: Mode,
        stdio: Option<Stdio>,
        with: impl FnOnce(Session) -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        let (command, prefetch) = match hwpf::taken_off(command)? {
            Some((command, settings)) => (command, Some(settings)),
            None => (command.to_vec(), self.hwpf.clone()),
        };
        prefetch.iter().for_each(hwpf::tell);
        let (program, arguments) = command.split_first().ok_or("no program given")?;
        if let Some(sysroot) = self.sysroot.as_ref().filter(|dir| !dir.is_dir()) {
            let shown = sysroot.display();
            return Err(format!("--sysroot {shown}: not a folder; name one that holds lib or usr/lib").into());
        }
        let sector_data = self.sectors.data(&spec)?;
        let cmgs = spec.topology.cmgs;
        if u32::from(self.host_threads) > cmgs {
            let (threads, machine) = (self.host_threads, &spec.identity.title);
            let s = if cmgs == 1 { "" } else { "s" };
            let most = if cmgs == 1 { "leave it out".to_owned() } else { format!("give 1 to {cmgs}") };
            return Err(format!(
                "--host-threads {threads}: each takes the cores of one CMG at least, and {machine} has {cmgs} CMG{s}; {most}"
            )
            .into());
        }
        let request = Request {
            settings: self.settings()?,
            arguments: arguments.to_vec(),
            environment: guest_environment(std::env::vars_os(), &self.environment),
            record_variables: self.environment.iter().map(|(name, _)| name.clone()).collect(),
            mode,
            sysroot: self.sysroot.clone(),
            access: access(self)?,
            cpus: self.placement.cpus(&spec)?,
            quantum: self.quantum,
            host_threads: self.host_threads.into(),
            spin: match self.spin {
                Spin::Fast => fxscope::SpinLoops::Fast,
                Spin::Exact => fxscope::SpinLoops::Exact,
            },
            memory_policy: self.placement.policy(&spec)?,
            memory_bytes: memory_bytes(self, &spec)?,
            follow: match self.follow {
                Follow::All => fxscope::Follow::All,
                Follow::First => fxscope::Follow::First,
            },
            clock: match self.clock {
                Clock::Simulated => ClockSource::Simulated,
                Clock::Host => ClockSource::Host,
            },
            max_instructions: self.max_instructions,
            interval_ns: self.interval_ns,
            interval_region: self.interval_region.clone(),
            stream_detect: prefetch.map_or(0, |settings| settings.stream_detect.into()),
            stdio,
            ..Request::new(spec, program)
        };
        let call_pages = self.placement.call_pages();
        let prepared = |mut session: Session| {
            session.assign_sectors(&sector_data).map_err(|message| format!("--sector: {message}"))?;
            session.assign_pages(&call_pages).map_err(|message| format!("--pages: {message}"))?;
            with(session)
        };
        Session::contained(request, prepared)
            .unwrap_or_else(|e| Err(Failure { status: start_status(&e), message: e.to_string() }))
    }
}

/// Runs the program; `traced` is what a trace is taken of.
pub(super) fn simulate(session: Session, quiet: bool, traced: Option<&mut Window<'_>>) -> Result<Run, Failure> {
    simulate_with(session, quiet, |session, watch| match traced {
        Some(window) => session.run_traced(watch, window),
        None => session.run(watch),
    })
}

/// Runs the program with `run` until it ends or a signal asks for its end. From then on signals wait: results are being written,
/// which takes a moment and is not to be cut short.
pub(super) fn simulate_with(
    mut session: Session,
    quiet: bool,
    run: impl FnOnce(Session, &mut dyn FnMut(Progress) -> Control) -> Run,
) -> Result<Run, Failure> {
    let progress = ProgressLine::new(!quiet);
    interrupt::catch_for(&progress)?;
    if progress.has_terminal() {
        let line = progress.clone();
        session.watch_terminal(move |at_line_start| line.make_way(at_line_start));
    }
    let mut watch = |p| {
        progress.show(&p);
        if STOP.load(Ordering::Relaxed) { Control::Stop } else { Control::Continue }
    };
    let run = run(session, &mut watch);
    interrupt::save();
    progress.end();
    Ok(run)
}

/// The exit status for a program that cannot start.
fn start_status(error: &StartError) -> u8 {
    match error {
        StartError::Read { source, .. } if source.kind() == ErrorKind::NotFound => NOT_FOUND,
        StartError::Read { .. } | StartError::Elf { .. } | StartError::Interpreter { .. } => CANNOT_RUN,
        _ => FAILED,
    }
}
