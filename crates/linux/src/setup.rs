//! How a program is started.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use fxscope_aarch64::Cpu;
use fxscope_guestmem::{Memory, PAGE};

use crate::abi::content::{Content, ProgramFile};
use crate::abi::elf::HEADER;
use crate::abi::layout::DEFAULT_STACK;
use crate::abi::load;
use crate::attributes::Attributes;
use crate::budget::{self, Budget, Charge};
use crate::fs::files::{Files, Program};
use crate::fs::vfs::access::{Access, real_path};
use crate::fs::vfs::commands;
use crate::fs::vfs::shared_memory::SharedFolder;
use crate::fs::vfs::{View, default_sysroot};
use crate::guest::{Guest, PID};
use crate::mm::address_space::AddressSpace;
use crate::mm::pages::{self, FastMemory, MemoryPolicy, Pages};
use crate::platform::{CpuPlace, Platform};
use crate::process::{Limit, Process};
use crate::random::Random;
use crate::sched::clock::{ClockSource, HostClock, unix_ns};
use crate::sched::cpus::allows;
use crate::sched::timers::Timers;
use crate::signal::stop::Job;
use crate::signal::{self, Action};
use crate::start_error::StartError;
use crate::system::System;
use crate::table::Table;
use crate::thread::Thread;
use crate::usage::Used;

/// The files a program starts with as descriptors 0, 1 and 2.
pub struct Stdio {
    /// Standard input.
    pub input: OwnedFd,
    /// Standard output.
    pub output: OwnedFd,
    /// Standard error.
    pub error: OwnedFd,
}

impl Stdio {
    /// Returns those of this process.
    ///
    /// # Errors
    /// When the host is out of file descriptors.
    pub fn inherit() -> std::io::Result<Stdio> {
        Ok(Stdio {
            input: std::io::stdin().as_fd().try_clone_to_owned()?,
            output: std::io::stdout().as_fd().try_clone_to_owned()?,
            error: std::io::stderr().as_fd().try_clone_to_owned()?,
        })
    }
}

/// How to start a program.
pub struct Setup {
    /// The machine as the program sees it.
    pub platform: Platform,
    /// Path of the program as requested (`AT_EXECFN`).
    pub program: Vec<u8>,
    /// `argv`, including the program's name.
    pub args: Vec<Vec<u8>>,
    /// The environment, each entry as `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// Bytes of stack.
    pub stack_bytes: u64,
    /// The folder that takes precedence over the host's files when the program opens one for reading: it has a dynamic program's
    /// interpreter and libraries. `None`: only the host's files.
    pub sysroot: Option<PathBuf>,
    /// What the program may access on the host.
    pub access: Access,
    /// Seed of all random data for the program (`AT_RANDOM`, `getrandom`).
    pub seed: u64,
    /// Wall-clock time of the start, in ns since 1970; not used with the host's clock.
    pub start_unix_ns: u64,
    /// The source of time for the program's clocks.
    pub clock: ClockSource,
    /// On which nodes the program's memory is placed.
    pub policy: MemoryPolicy,
    /// Bytes of pages that each process has on nodes with processors before those that no policy places go to [`Platform::tiers`];
    /// `None`: as much as these nodes have.
    pub fast_memory: Option<u64>,
    /// The platform's CPUs on which the program may run; `None`: all.
    pub cpus: Option<Vec<u32>>,
    /// Descriptors 0, 1 and 2.
    pub stdio: Stdio,
    /// The folder for the program's `/dev/shm`; `None`: one that is created when the program first accesses it.
    pub shared_folder: Option<Arc<SharedFolder>>,
}

impl Setup {
    /// Returns the setup for `program` without further arguments, with an empty environment, this process's standard streams, a
    /// stack of 8 MiB, the sysroot of [`default_sysroot`], the access of [`Access::standard`], and a clock that starts at
    /// 2020-01-01T00:00:00Z.
    ///
    /// # Errors
    /// When the host is out of file descriptors.
    pub fn new(platform: Platform, program: &str) -> std::io::Result<Setup> {
        Ok(Setup {
            platform,
            program: program.into(),
            args: vec![program.into()],
            env: Vec::new(),
            stack_bytes: DEFAULT_STACK,
            sysroot: default_sysroot(),
            access: Access::standard(),
            seed: 0,
            start_unix_ns: 1_577_836_800_000_000_000,
            clock: ClockSource::Simulated,
            policy: MemoryPolicy::default(),
            fast_memory: None,
            cpus: None,
            stdio: Stdio::inherit()?,
            shared_folder: None,
        })
    }
}

impl Guest {
    /// Loads the program in the file `path`, ready to execute its first instruction; one of the commands that every run has if there is
    /// no such file.
    ///
    /// # Errors
    /// When the file cannot be read or is not a program that can run, or the host lacks resources.
    pub fn open(path: &Path, setup: Setup) -> Result<Guest, StartError> {
        let file = ProgramFile::open(path, setup.platform.memory_bytes);
        let name = path.as_os_str().as_bytes();
        let is_missing = match &file {
            Ok(file) => commands::replaces(name, Content::File(file).start(HEADER)),
            Err(_) => true,
        };
        if is_missing && let Some(command) = commands::path_of(name) {
            return Guest::start(Path::new(&command), Content::Bytes(commands::CONTENT), setup);
        }
        let file = file.map_err(|source| StartError::Read { path: path.to_owned(), source })?;
        Guest::start(path, Content::File(&file), setup)
    }

    /// Loads a program from the contents of its file; `path` is for messages and `/proc/self/exe`.
    ///
    /// # Errors
    /// When it is not a program that can run, or the host lacks resources.
    pub fn new(path: &Path, file: &[u8], setup: Setup) -> Result<Guest, StartError> {
        Guest::start(path, Content::Bytes(file), setup)
    }

    fn start(path: &Path, file: Content<'_>, setup: Setup) -> Result<Guest, StartError> {
        check_platform(&setup.platform)?;
        let bytes = setup.platform.memory_bytes;
        let mut memory = Memory::new(bytes).map_err(|source| StartError::Reserve { bytes, source })?;
        let view = View::new(setup.sysroot.as_deref(), &setup.access, setup.shared_folder);
        let mut random = Random(setup.seed);
        let mut at_random = [0; 16];
        random.fill(&mut at_random);
        let arguments = load::Arguments {
            program: setup.program,
            args: setup.args,
            env: pages::translated(setup.env, &[]),
            stack_bytes: setup.stack_bytes,
        };
        let load::Ready { program, stack } =
            load::prepare(path, file, &view, &mut memory, &setup.platform, &arguments, at_random)?;

        let affinity = cpu_mask(&setup.platform, setup.cpus.as_deref());
        let first = setup.platform.cpus.iter().find(|place| allows(&affinity, place.cpu));
        let CpuPlace { cpu: number, .. } =
            *first.ok_or_else(|| StartError::Platform { what: "no CPU that programs may run on".to_owned() })?;
        let mut pages = Pages::new(&setup.platform.page_sizes, &arguments.env, bytes);
        pages.limit_fast_memory(setup.fast_memory.and_then(|bytes| FastMemory::of(&setup.platform, bytes)));
        pages.set_exported_bss(program.image.exports_bss);
        let heap_start = pages.heap_start(program.image.end());
        let mut spaces = Table::default();
        let mapped = program.mapped;
        let space = spaces.insert(AddressSpace { id: memory.active(), mapped, pages, heap_start, brk: heap_start });

        let budget = Budget::default();
        let cpu = first_cpu(&setup.platform, program.entry, stack.sp);
        let identity = Program {
            path: real_path(path),
            args: arguments.args,
            env: arguments.env,
            auxv: stack.auxv,
            charge: Charge::default(),
        };
        let mut processes = Table::default();
        let process = processes.insert(Process {
            pid: PID,
            ppid: PID - 1,
            group: PID,
            session: PID,
            space,
            attributes: Attributes::first(),
            job: Job::default(),
            code_changed: false,
            changed_code: Vec::new(),
            code_full: false,
            files: Files::new(setup.stdio, identity, Rc::new(view))?,
            symbols: Rc::new(program.image.symbols),
            symbols_charge: Rc::new(budget.charge(0)),
            charge: budget.charge(0),
            fixed_bytes: 0,
            actions: [Action::default(); signal::LAST as usize + 1],
            pending: Vec::new(),
            timers: Timers::new(),
            allowed_cpus: affinity.clone(),
            limits: first_limits(setup.stack_bytes),
            random,
            end: None,
            ended: false,
            leader_status: None,
            cpu_ns: 0,
            children_cpu_ns: 0,
            used: Used::default(),
            children_used: Used::default(),
            instructions: 0,
        });
        let mut thread = Thread::new(cpu, PID, process, affinity, number, &arguments.program);
        thread.policy = setup.policy.into();
        let start_unix_ns = match setup.clock {
            ClockSource::Simulated => setup.start_unix_ns,
            ClockSource::Host => unix_ns(),
        };
        let mut system = System::new(setup.platform, start_unix_ns, budget, PID);
        system.family.starts(PID, PID - 1);
        let program = &processes[process].files.program;
        system.family.executes(PID, &program.path, &program.env);
        thread.cpu.counter = system.counter();
        let toucher = system.toucher(&thread);
        spaces[space].pages.start(&mut memory, toucher);
        let mut threads = Table::default();
        let running = threads.insert(thread);
        let host_clock = (setup.clock == ClockSource::Host).then(HostClock::start);
        Ok(Guest::of(memory, system, spaces, processes, threads, running, host_clock))
    }
}

/// Returns the initial registers of a program's first thread on a machine.
fn first_cpu(platform: &Platform, entry: u64, sp: u64) -> Cpu {
    let mut cpu = Cpu::new(platform.vector_bytes);
    (cpu.id, cpu.hpc) = (platform.id, platform.hpc);
    cpu.counter_hz = platform.counter_hz;
    cpu.pc = entry;
    cpu.set_x(Cpu::SP, sp);
    cpu
}

/// Returns the limits of the first process.
fn first_limits(stack_bytes: u64) -> [Limit; Limit::COUNT] {
    let mut limits = [Limit { soft: Limit::INFINITY, hard: Limit::INFINITY }; Limit::COUNT];
    limits[Limit::STACK].soft = stack_bytes;
    limits[Limit::CORE].soft = 0;
    limits[Limit::FILES] = Limit { soft: 1024, hard: 4096 };
    limits[Limit::PROCESSES] = Limit { soft: budget::TASKS, hard: budget::TASKS };
    limits[Limit::MESSAGE_QUEUES] = Limit { soft: 819_200, hard: 819_200 };
    limits[Limit::SIGNALS] = Limit { soft: budget::PENDING_SIGNALS, hard: budget::PENDING_SIGNALS };
    limits
}

fn check_platform(platform: &Platform) -> Result<(), StartError> {
    let error = |what: String| Err(StartError::Platform { what });
    if !matches!(platform.vector_bytes, 16 | 32 | 64) {
        return error(format!("vector length of {} bytes; choose 16, 32 or 64", platform.vector_bytes));
    }
    if platform.page_bytes != PAGE {
        return error(format!("base pages of {} bytes; only {PAGE} is supported", platform.page_bytes));
    }
    Ok(())
}

/// Returns the machine's CPUs, or those of `chosen`, as a bit mask.
fn cpu_mask(platform: &Platform, chosen: Option<&[u32]>) -> Vec<u64> {
    let last = platform.cpus.iter().map(|p| p.cpu).max().unwrap_or(0);
    let mut mask = vec![0; last as usize / 64 + 1];
    for place in platform.cpus.iter().filter(|place| chosen.is_none_or(|chosen| chosen.contains(&place.cpu))) {
        mask[place.cpu as usize / 64] |= 1 << (place.cpu % 64);
    }
    mask
}
