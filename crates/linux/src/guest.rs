//! A running program.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use fxscope_aarch64::{Block, BlockId, Blocks, Cpu, Trap};
use fxscope_guestmem::Memory;
use fxscope_guestmem::PAGE;

use crate::budget::{self, Budget, Charge};
use crate::clock::{ClockSource, HostClock, unix_ns};
use crate::content::{Content, ProgramFile};
use crate::cpus::allows;
use crate::files::{Files, Program};
use crate::kernel::{End, Kernel, Limit, Random};
use crate::layout::DEFAULT_STACK;
use crate::pages::{self, MemoryPolicy, Pages, Toucher};
use crate::platform::{CpuPlace, Platform};
use crate::scheduler::{QUANTUM, System};
use crate::signal::{self, Action, SigInfo, code, number};
use crate::symbols::Symbols;
use crate::thread::Thread;
use crate::timers::Timers;
use crate::vfs::access::{Access, Refusal, real_path};
use crate::vfs::shared_memory::SharedFolder;
use crate::vfs::{View, default_sysroot};
use crate::wait::{Blocked, Wait};
use crate::{load, syscalls};

pub use crate::start_error::StartError;

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
    /// Those of this process.
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
    /// Path of the program as it was asked for (`AT_EXECFN`).
    pub program: Vec<u8>,
    /// `argv`, the program's name first.
    pub args: Vec<Vec<u8>>,
    /// The environment, each entry as `NAME=value`.
    pub env: Vec<Vec<u8>>,
    /// Bytes of stack.
    pub stack_bytes: u64,
    /// The folder that stands before the host's files when the program opens one for reading: where a dynamic
    /// program's interpreter and libraries are found. `None`: only the host's files.
    pub sysroot: Option<PathBuf>,
    /// What of the host the program may touch.
    pub access: Access,
    /// Seed of everything random the program can get (`AT_RANDOM`, `getrandom`).
    pub seed: u64,
    /// Wall-clock time of the start, in ns since 1970; not used with the host's clock.
    pub start_unix_ns: u64,
    /// Where the program's clocks get their time from.
    pub clock: ClockSource,
    /// On which nodes the program's memory is to be.
    pub policy: MemoryPolicy,
    /// The CPUs the program may run on, of those of the platform; `None`: all.
    pub cpus: Option<Vec<u32>>,
    /// Descriptors 0, 1 and 2.
    pub stdio: Stdio,
    /// The folder that is the program's `/dev/shm`; `None`: one that is made when it first looks there.
    pub shared_folder: Option<Arc<SharedFolder>>,
}

impl Setup {
    /// Starts `program` without further arguments, with an empty environment, this process's standard streams,
    /// a stack of 8 MiB, the sysroot of [`default_sysroot`], the access of
    /// [`Access::standard`], and a clock that starts at 2020-01-01T00:00:00Z.
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
            cpus: None,
            stdio: Stdio::inherit()?,
            shared_folder: None,
        })
    }
}

/// What one step of a program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A block ran. Its dynamic stream is in [`Guest::cpu`]`.stream()` and the address where execution
    /// goes on in `.pc`, until the next step. System calls and faults take effect in the next step.
    Ran {
        /// The block; see [`Guest::block`].
        block: BlockId,
        /// Instructions of it that completed; fewer than it has when one of them faulted.
        executed: usize,
    },
    /// The program sleeps. Set the time to this (or later) and step again.
    Sleep {
        /// Simulated time in ns.
        until_ns: u64,
    },
    /// The next block synchronises with other threads, and the driver wants to know before ([`Guest::hold`]).
    Synchronises,
    /// No thread is ready on the CPU in place ([`Guest::spread`]).
    Idle,
    /// Another thread goes on, perhaps of another process: [`Guest::cpu`], [`Guest::thread`] and
    /// [`Guest::memory`] are now of that one, and so are the numbers of blocks.
    Switched,
    /// Every thread waits for files of the host. Whoever drives the run may stop it, or step again.
    Waiting,
    /// Code has changed: all block numbers so far are void.
    CodeChanged,
    /// The program has ended; see [`Guest::end`].
    Ended,
}

/// Simulated time per instruction in ns when nothing models time.
pub const FUNCTIONAL_NS: u64 = 1;

/// The program's process number: the same on every run.
pub const PID: u32 = 1000;

/// Instructions between two updates of the clock in [`Guest::run_functional`].
const FUNCTIONAL_TICK: u64 = 1 << 12;

/// A program with its threads, memory and open files, and the processes it starts. The process and the thread that
/// run are kept in place.
pub struct Guest {
    pub(crate) kernel: Kernel,
    pub(crate) thread: Box<Thread>,
    pub(crate) blocks: Blocks,
    /// Most instructions to be kept decoded.
    most_decoded: usize,
    /// Instructions completed so far, by all threads.
    pub(crate) instructions: u64,
    /// From this number of instructions on, something must be looked at before the next block; 0: now.
    pub(crate) deadline: u64,
    /// The number of instructions at which the thread's turn is over.
    pub(crate) quantum_end: u64,
    /// The thread in place does not synchronise with others before the driver has had another look.
    pub(crate) held: bool,
    /// The thread that the driver knows to be running.
    pub(crate) announced: u32,
    /// Where time comes from instead of [`Guest::set_now_ns`].
    pub(crate) host_clock: Option<HostClock>,
    /// The process in place has ended.
    pub(crate) process_ended: bool,
    /// How the first process ended, while others go on.
    pub(crate) first_end: Option<End>,
    pub(crate) end: Option<End>,
}

impl Guest {
    /// Loads the program in the file `path`, ready to execute its first instruction.
    ///
    /// # Errors
    /// When the file cannot be read or is not a program that can run, or the host lacks resources.
    pub fn open(path: &Path, setup: Setup) -> Result<Guest, StartError> {
        let file = ProgramFile::open(path, setup.platform.memory_bytes);
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
        let mut mem = Memory::new(bytes).map_err(|source| StartError::Reserve { bytes, source })?;
        let view = View::new(setup.sysroot.as_deref(), &setup.access, setup.shared_folder, &setup.platform);
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
            load::prepare(path, file, &view, &mut mem, &setup.platform, &arguments, at_random)?;

        let mut pages = Pages::new(&setup.platform.page_sizes, &arguments.env, bytes);
        let identity = Program {
            path: real_path(path),
            args: arguments.args,
            env: arguments.env,
            auxv: stack.auxv,
            charge: Charge::default(),
        };
        let budget = Budget::default();
        let mut cpu = Cpu::new(setup.platform.vector_bytes);
        (cpu.id, cpu.hpc) = (setup.platform.id, setup.platform.hpc);
        cpu.counter_hz = setup.platform.counter_hz;
        cpu.pc = program.entry;
        cpu.set_x(Cpu::SP, stack.sp);
        let affinity = cpu_mask(&setup.platform, setup.cpus.as_deref());
        let mut limits = [Limit { soft: Limit::INFINITY, hard: Limit::INFINITY }; Limit::COUNT];
        limits[Limit::STACK].soft = setup.stack_bytes;
        limits[Limit::CORE].soft = 0;
        limits[Limit::FILES] = Limit { soft: 1024, hard: 4096 };
        limits[Limit::PROCESSES] = Limit { soft: budget::TASKS, hard: budget::TASKS };
        limits[Limit::SIGNALS] = Limit { soft: budget::PENDING_SIGNALS, hard: budget::PENDING_SIGNALS };
        let heap_start = pages.heap_start(program.image.end());
        let first = setup.platform.cpus.iter().find(|place| allows(&affinity, place.cpu));
        let CpuPlace { cpu: number, node } =
            *first.ok_or_else(|| StartError::Platform { what: "no CPU that programs may run on".to_owned() })?;
        let mut thread = Box::new(Thread::new(cpu, PID, affinity.clone(), number, &arguments.program));
        thread.policy = setup.policy.into();
        pages.start(&mut mem, Toucher { policy: thread.policy, node });
        Ok(Guest {
            blocks: Blocks::new(thread.cpu.vl),
            most_decoded: budget::most_decoded(bytes),
            thread,
            kernel: Kernel {
                mem,
                platform: setup.platform,
                now_ns: 0,
                end: None,
                files: Files::new(setup.stdio, identity, Rc::new(view))?,
                mapped: program.mapped,
                pages,
                actions: [Action::default(); signal::LAST as usize + 1],
                heap_start,
                brk: heap_start,
                symbols: Rc::new(program.image.symbols),
                symbols_charge: Rc::new(budget.charge(0)),
                charge: budget.charge(0),
                fixed_bytes: 0,
                names_charge: Rc::new(budget.charge(0)),
                budget,
                pid: PID,
                ppid: PID - 1,
                group: PID,
                session: PID,
                borrows_from: None,
                allowed_cpus: affinity,
                pending: Vec::new(),
                timers: Timers::new(),
                leader_status: None,
                cpu_ns: 0,
                children_cpu_ns: 0,
                system: System::new(PID),
                start_unix_ns: match setup.clock {
                    ClockSource::Simulated => setup.start_unix_ns,
                    ClockSource::Host => unix_ns(),
                },
                random,
                limits,
                code_changed: false,
            },
            instructions: 0,
            deadline: u64::MAX,
            quantum_end: QUANTUM,
            held: false,
            announced: PID,
            host_clock: (setup.clock == ClockSource::Host).then(HostClock::start),
            process_ended: false,
            first_end: None,
            end: None,
        })
    }

    /// Executes one block, after dealing with what the block before it left: a system call, a fault, a
    /// signal.
    #[inline(always)]
    pub fn step(&mut self) -> Step {
        if self.instructions >= self.deadline
            && let Some(step) = self.attend()
        {
            return step;
        }
        match self.blocks.at(self.thread.cpu.pc, &mut self.kernel.mem) {
            Ok(id) => {
                let block = self.blocks.get(id);
                if block.synchronises && self.held {
                    return Step::Synchronises;
                }
                let outcome = block.run(&mut self.thread.cpu, &mut self.kernel.mem);
                self.instructions += outcome.executed as u64;
                if outcome.trap.is_some() {
                    self.thread.trap = outcome.trap;
                    self.deadline = 0;
                }
                Step::Ran { block: id, executed: outcome.executed }
            }
            Err(trap) => self.no_code(trap),
        }
    }

    /// Runs until the program ends, waits for the host, or about `max_instructions` more instructions are done (a block is not cut
    /// short), without modelling time: the clock advances by [`FUNCTIONAL_NS`] per instruction. `None`: it
    /// has not ended.
    pub fn run_functional(&mut self, max_instructions: u64) -> Option<&End> {
        let stop = self.instructions.saturating_add(max_instructions);
        while self.instructions < stop && self.end.is_none() {
            let start = self.instructions;
            let tick = stop.min(start + FUNCTIONAL_TICK);
            while self.instructions < tick {
                match self.step() {
                    Step::Ran { .. } | Step::Switched | Step::CodeChanged | Step::Synchronises | Step::Idle => {}
                    Step::Sleep { until_ns } => self.set_now_ns(until_ns),
                    Step::Waiting => return None,
                    Step::Ended => break,
                }
            }
            let elapsed = (self.instructions - start) * FUNCTIONAL_NS;
            self.set_now_ns(self.kernel.now_ns.saturating_add(elapsed));
        }
        self.end.as_ref()
    }

    /// Sets the simulated time since the program's start. It must not go back. With the host's clock, that time
    /// counts instead.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        let now_ns = self.host_clock.as_ref().map_or(now_ns, HostClock::now_ns);
        self.kernel.now_ns = now_ns;
        let (seconds, ns) = (now_ns / 1_000_000_000, now_ns % 1_000_000_000);
        let hz = self.kernel.platform.counter_hz;
        self.thread.cpu.counter = seconds * hz + ns * hz / 1_000_000_000;
        if self.blocks.instructions() > self.most_decoded {
            (self.kernel.code_changed, self.deadline) = (true, 0);
        }
        if now_ns >= self.kernel.system.next_event_ns.min(self.kernel.system.cpus.slice_end_ns()) {
            self.deadline = 0;
        }
        self.kernel.note_touched(&self.thread);
    }
    /// Simulated time since the program's start in ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.kernel.now_ns
    }
    /// How the program ended, once it has.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }
    /// Instructions completed so far, by all threads.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }
    /// The number of the process that runs, which is also that of its first thread.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.kernel.pid
    }
    /// The thread that ran the last block.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }
    /// The registers of that thread.
    #[must_use]
    #[inline(always)]
    pub fn cpu(&self) -> &Cpu {
        &self.thread.cpu
    }
    /// The address space.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.kernel.mem
    }
    /// The byte at `addr`, if the program could read it.
    pub fn read_byte(&mut self, addr: u64) -> Option<u8> {
        self.kernel.mem.load(addr).ok()
    }
    /// A decoded block.
    #[must_use]
    #[inline(always)]
    pub fn block(&self, id: BlockId) -> &Block {
        self.blocks.get(id)
    }
    /// Number of blocks decoded since the last [`Step::CodeChanged`]: one more than the highest block number.
    #[must_use]
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }
    /// Path of the file of the program that runs, as programs see it.
    #[must_use]
    pub fn program_file(&self) -> &[u8] {
        &self.kernel.files.program.path
    }
    /// The file mapped at an address of the process that runs: its path as programs see it, and the offset in it.
    #[must_use]
    pub fn file_at(&self, address: u64) -> Option<(Vec<u8>, u64)> {
        self.kernel.mapped.at(address).map(|mapped| (mapped.path, mapped.offset))
    }
    /// The host's path of a file that programs see at `path`.
    #[must_use]
    pub fn host_path(&self, path: &[u8]) -> PathBuf {
        self.kernel.files.view.find(path).unwrap_or_else(|_| PathBuf::from(OsStr::from_bytes(path)))
    }
    /// Function names of the program that the running thread executes.
    #[must_use]
    pub fn running_symbols(&self) -> &Symbols {
        &self.kernel.symbols
    }
    /// The machine's number of the CPU that the thread runs on.
    #[must_use]
    pub fn cpu_number(&self) -> u32 {
        self.thread.cpu_number()
    }
    /// System calls that the program made and that do not exist here: number, name, calls.
    pub fn unknown_calls(&self) -> impl Iterator<Item = (u64, &'static str, u64)> + '_ {
        self.kernel.system.unknown_calls.iter().map(|(&number, &calls)| (number, syscalls::name(number), calls))
    }

    /// Where a dynamic program's interpreter and libraries are looked for, in words; `None` for a static one.
    #[must_use]
    pub fn searched(&self) -> Option<String> {
        let files = &self.kernel.files;
        files.program.has_interpreter().then(|| files.view.searched())
    }

    /// What the program was refused, by kind and folder.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refusal> {
        self.kernel.files.view.policy.refusals()
    }

    /// Code could not be fetched at `pc`.
    #[cold]
    fn no_code(&mut self, trap: Trap) -> Step {
        self.thread.cpu.clear_stream();
        self.thread.trap = Some(trap);
        self.deadline = 0;
        // The signal's handler, if there is one, must be fetched too; if that fails, the program ends.
        self.attend().unwrap_or_else(|| self.step_cold())
    }

    #[inline(never)]
    fn step_cold(&mut self) -> Step {
        self.step()
    }

    /// Deals with what stopped the last block.
    pub(crate) fn handle(&mut self, trap: Trap) {
        let pc = self.thread.cpu.pc;
        let info = match trap {
            Trap::SystemCall => return syscalls::call(&mut self.kernel, &mut self.thread),
            Trap::CodeChanged => {
                self.kernel.code_changed = true;
                return;
            }
            Trap::Window(access) => match self.kernel.access_window(&mut self.thread, access) {
                Some(()) => return,
                None => self.thread.undefined_before_pc(),
            },
            Trap::WaitForEvent => return self.wait_for_event(),
            Trap::SendEvent => return self.send_event(),
            Trap::Undefined => SigInfo::fault(number::SIGILL, code::ILL_ILLOPC, pc),
            Trap::Breakpoint(_) => SigInfo::fault(number::SIGTRAP, code::TRAP_BRKPT, pc),
            Trap::Misaligned(address) => SigInfo::misaligned(address, pc),
            Trap::Memory(fault) => SigInfo::memory_fault(fault),
        };
        signal::force(&mut self.kernel, &mut self.thread, info);
    }
}

/// `WFE` ends at the latest when the next event of Linux's event stream comes: it has 10,000 a second.
const EVENT_STREAM_NS: u64 = 100_000;

impl Guest {
    fn wait_for_event(&mut self) {
        let (now_ns, monitor) = (self.kernel.now_ns, self.thread.cpu.monitor);
        let cpu = self.thread.cpu_number();
        if self.kernel.take_barrier_event(cpu, now_ns) {
            return;
        }
        let stream_ns = (now_ns / EVENT_STREAM_NS + 1) * EVENT_STREAM_NS;
        let until_ns = self.kernel.barrier_event_ns(cpu).map_or(stream_ns, |at_ns| at_ns.min(stream_ns));
        let wait = Blocked { until_ns, ..Blocked::new(Wait::Event(monitor)) };
        self.thread.block(&mut self.kernel, wait);
    }

    fn send_event(&mut self) {
        self.thread.cpu.event = true;
        for other in &mut self.kernel.system.threads {
            other.event();
        }
    }
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

/// The machine's CPUs, or those of `chosen`, as a bit mask.
fn cpu_mask(platform: &Platform, chosen: Option<&[u32]>) -> Vec<u64> {
    let last = platform.cpus.iter().map(|p| p.cpu).max().unwrap_or(0);
    let mut mask = vec![0; last as usize / 64 + 1];
    for place in platform.cpus.iter().filter(|place| chosen.is_none_or(|chosen| chosen.contains(&place.cpu))) {
        mask[place.cpu as usize / 64] |= 1 << (place.cpu % 64);
    }
    mask
}
