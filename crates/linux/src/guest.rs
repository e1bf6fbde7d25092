//! A guest: running programs and everything that belongs to them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use fxscope_aarch64::{BlockId, Cpu, Engine, Trap};
use fxscope_guestmem::Memory;
use rustix::io::Errno;

use crate::code::{Code, NoBlock};
use crate::death::Death;
use crate::end::End;
use crate::family::Member;
use crate::fs::vfs::access::Refusal;
use crate::kernel::Kernel;
use crate::mm::address_space::AddressSpace;
use crate::process::Process;
use crate::sched::clock::HostClock;
use crate::sched::turns::QUANTUM;
use crate::sched::wait::{Blocked, Resumed, Wait};
use crate::signal::{self, SigInfo, code, number};
use crate::symbols::Symbols;
use crate::syscalls;
use crate::system::{Started, System};
use crate::table::{Id, Table};
use crate::thread::Thread;

/// The result of one step of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A block ran. Until the next step, its dynamic stream is in [`Guest::cpu`]`.stream()` and the address of the next
    /// instruction in `.pc`. System calls and faults take effect in the next step.
    Ran {
        /// The block; see [`Code::block`].
        block: BlockId,
        /// Number of its instructions that completed; fewer than all when one of them faulted.
        executed: usize,
    },
    /// The program sleeps. Set the time to this (or later) and step again.
    Sleep {
        /// Simulated time in ns.
        until_ns: u64,
    },
    /// The next block synchronises with other threads, and the driver has requested to stop before it ([`Guest::hold`]).
    Synchronises,
    /// No thread is ready on the active CPU ([`Guest::spread`]).
    Idle,
    /// Another thread is the running one, perhaps of another process: [`Guest::cpu`], [`Guest::thread`],
    /// [`Guest::memory`] and the block numbers are now those of that thread.
    Switched,
    /// Every thread waits for host files. The driver may stop the run or step again.
    Waiting,
    /// Code has changed: all block numbers so far are invalid.
    CodeChanged,
    /// The running process has functions for which the driver has not chosen its stops ([`Code::set_stops`]).
    Symbols,
    /// The running thread has arrived at a stop, and continues after [`Code::pass`].
    Stopped,
    /// The program has ended; see [`Guest::end`].
    Ended,
}

/// A driver that executes blocks one after the other ([`Guest::run_for`]).
pub trait Follower {
    /// Executes block `id` by calling `execute`, which returns the number of instructions that completed and what the thread has left,
    /// or leaves it to [`Guest::step`]. Returns whether the next block may follow.
    fn block<'c>(&mut self, id: BlockId, execute: impl FnOnce() -> (usize, &'c Cpu)) -> bool;
}

/// Simulated time per instruction in ns in functional runs.
pub const FUNCTIONAL_NS: u64 = 1;

/// The program's process number: the same in every run.
pub const PID: u32 = 1000;

/// The processes of a run with their threads, memory and open files. One thread is the running one. What executes them,
/// their [`Code`], stands beside them.
pub struct Guest {
    pub(crate) memory: Memory,
    pub(crate) system: System,
    pub(crate) spaces: Table<AddressSpace>,
    pub(crate) processes: Table<Process>,
    pub(crate) threads: Table<Thread>,
    /// The running thread. The address space of its process is active in `memory`.
    pub(crate) running: Id<Thread>,
    /// Instructions completed so far, by all threads.
    pub(crate) instructions: u64,
    /// Those of them that belong to skipped iterations of spin loops.
    pub(crate) skipped: u64,
    /// Number of instructions from which on [`Guest::attend`] is due before the next block; 0: now.
    pub(crate) deadline: u64,
    /// The number of instructions at which the turn of the running thread began in a functional run, and at which its quantum ends.
    pub(crate) turn_start: u64,
    pub(crate) quantum_end: u64,
    /// The number of instructions at which a step of the clock of a functional run began that has not ended, because the driver had
    /// to choose its stops.
    pub(crate) tick_start: Option<u64>,
    /// Whether a step stops before a block that synchronises with other threads.
    pub(crate) held: bool,
    /// The number of the running thread last reported to the driver.
    pub(crate) announced: u32,
    /// The source of time instead of [`Guest::set_now_ns`].
    pub(crate) host_clock: Option<HostClock>,
    /// How the first process ended, while others continue.
    pub(crate) first_end: Option<End>,
    pub(crate) end: Option<End>,
}

impl Guest {
    /// Returns a guest that has not begun to run.
    pub(crate) fn of(
        memory: Memory,
        system: System,
        spaces: Table<AddressSpace>,
        processes: Table<Process>,
        threads: Table<Thread>,
        running: Id<Thread>,
        host_clock: Option<HostClock>,
    ) -> Guest {
        Guest {
            memory,
            system,
            spaces,
            processes,
            threads,
            running,
            instructions: 0,
            skipped: 0,
            deadline: u64::MAX,
            turn_start: 0,
            tick_start: None,
            quantum_end: QUANTUM,
            held: false,
            announced: PID,
            host_clock,
            first_end: None,
            end: None,
        }
    }

    /// Returns the process of the running thread.
    #[inline(always)]
    pub(crate) fn process(&self) -> &Process {
        &self.processes[self.threads[self.running].process]
    }

    pub(crate) fn process_mut(&mut self) -> &mut Process {
        &mut self.processes[self.threads[self.running].process]
    }

    pub(crate) fn thread_mut(&mut self) -> &mut Thread {
        &mut self.threads[self.running]
    }

    pub(crate) fn space(&self) -> &AddressSpace {
        &self.spaces[self.process().space]
    }

    pub(crate) fn space_mut(&mut self) -> &mut AddressSpace {
        let space = self.process().space;
        &mut self.spaces[space]
    }

    /// Returns the kernel working for the running thread.
    pub(crate) fn kernel(&mut self) -> Kernel<'_> {
        let (thread, other_threads) = self.threads.split(self.running);
        let (process, other_processes) = self.processes.split(thread.process);
        Kernel {
            mem: &mut self.memory,
            system: &mut self.system,
            spaces: &mut self.spaces,
            process,
            thread,
            other_processes,
            other_threads,
        }
    }

    /// Executes one block, after handling a system call, fault or signal that the previous block left.
    #[inline(always)]
    pub fn step<E: Engine>(&mut self, code: &mut Code<E>) -> Step {
        if self.instructions >= self.deadline
            && let Some(step) = self.attend(code)
        {
            return step;
        }
        let thread = &mut self.threads[self.running];
        match code.next_of(thread, &mut self.memory, &mut self.processes) {
            Ok(id) => {
                if self.held && code.block(id).synchronises {
                    return Step::Synchronises;
                }
                let outcome = code.running.run(id, &mut thread.cpu, &mut self.memory);
                self.instructions += outcome.executed as u64;
                if outcome.trap.is_some() {
                    thread.trap = outcome.trap;
                    self.deadline = 0;
                }
                Step::Ran { block: id, executed: outcome.executed }
            }
            Err(why) => self.no_block(why, code),
        }
    }

    /// Lets `follower` execute blocks of the running thread, one after the other, as long as it continues, no watched address is
    /// written, and [`Guest::step`] would do nothing else than execute a block that the engine finds quickly.
    #[inline(always)]
    pub fn run_for<E: Engine>(&mut self, code: &mut Code<E>, follower: &mut impl Follower) {
        let thread = &mut self.threads[self.running];
        while self.instructions < self.deadline {
            let Some(id) = code.running.lookup(thread.cpu.pc) else { return };
            if self.held && code.running.block(id).synchronises {
                return;
            }
            let goes_on = follower.block(id, || {
                let outcome = code.running.run(id, &mut thread.cpu, &mut self.memory);
                self.instructions += outcome.executed as u64;
                if outcome.trap.is_some() {
                    thread.trap = outcome.trap;
                    self.deadline = 0;
                }
                (outcome.executed, &thread.cpu)
            });
            if !goes_on || self.memory.has_written() {
                return;
            }
        }
    }

    /// Sets the simulated time since the program's start, which must not decrease. Has no effect with the host's clock.
    pub fn set_now_ns(&mut self, now_ns: u64) {
        let now_ns = self.host_clock.as_ref().map_or(now_ns, HostClock::now_ns);
        self.system.now_ns = now_ns;
        let counter = self.system.counter();
        let thread = &mut self.threads[self.running];
        thread.cpu.counter = counter;
        let process = &mut self.processes[thread.process];
        if process.code_full {
            (process.code_changed, self.deadline) = (true, 0);
        }
        if now_ns >= self.system.next_event_ns.min(self.system.cpus.slice_end_ns()) {
            self.deadline = 0;
        }
        self.note_touched();
        if now_ns >= self.system.khugepaged.at_ns {
            self.run_khugepaged();
        }
    }

    /// Records the pages that the running thread has touched.
    pub(crate) fn note_touched(&mut self) {
        if self.memory.has_fresh() {
            self.kernel().note_touched();
        }
    }

    /// Returns the simulated time since the program's start in ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.system.now_ns
    }
    /// Returns how the program ended, once it has.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }
    /// Instructions completed so far, by all threads.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }
    /// Instructions among [`Guest::instructions`] that were counted without being executed: skipped iterations of spin loops.
    #[must_use]
    pub fn skipped_instructions(&self) -> u64 {
        self.skipped
    }
    /// Returns the number of the running process, which is also that of its first thread.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().pid
    }
    /// Returns the thread that ran the last block.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.threads[self.running]
    }
    /// Returns the registers of that thread.
    #[must_use]
    #[inline(always)]
    pub fn cpu(&self) -> &Cpu {
        &self.threads[self.running].cpu
    }
    /// Returns the memory.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }
    /// Returns the byte at `addr`, if the program can read it.
    pub fn read_byte(&mut self, addr: u64) -> Option<u8> {
        self.memory.load(addr).ok()
    }
    /// Returns the eight bytes at `addr`, if the program can read them.
    pub fn read_word(&mut self, addr: u64) -> Option<u64> {
        self.memory.load(addr).ok()
    }
    /// Returns all processes of the run by ascending number, those that have ended too.
    #[must_use]
    pub fn family(&self) -> &[Member] {
        self.system.family.all()
    }

    /// Returns the instructions that each process has executed, by its number, those that have ended too.
    #[must_use]
    pub fn instructions_by_process(&self) -> BTreeMap<u32, u64> {
        let mut by_process: BTreeMap<u32, u64> =
            self.family().iter().map(|member| (member.pid, member.instructions)).collect();
        for process in self.processes.values().filter(|process| !process.ended) {
            by_process.insert(process.pid, process.instructions);
        }
        *by_process.entry(self.pid()).or_default() += self.instructions - self.system.accounted_instructions;
        by_process
    }

    /// Returns whether process `pid` exists, or was the last to run.
    #[must_use]
    pub fn has_process(&self, pid: u32) -> bool {
        self.processes.values().any(|process| process.pid == pid)
    }

    /// Returns the number of processes that exist.
    #[must_use]
    pub fn process_count(&self) -> usize {
        self.processes.len()
    }

    /// Returns whether the first thread has started another one, or a process.
    #[must_use]
    pub fn has_started_others(&self) -> bool {
        self.system.last_id != PID
    }

    /// Returns whether a thread exists.
    #[must_use]
    pub fn has_thread(&self, tid: u32) -> bool {
        self.threads.values().any(|thread| thread.tid == tid && !thread.ended)
    }

    /// Returns the process of a thread, which may have ended.
    #[must_use]
    pub fn process_of_thread(&self, tid: u32) -> Option<&Member> {
        self.system.family.process_of(tid)
    }

    /// Returns the processes that have ended abnormally, in that order, and the number of those that are not among them: processes that
    /// a signal has ended, in a run of several, and ranks with an exit status other than 0.
    #[must_use]
    pub fn deaths(&self) -> (&[Death], u64) {
        (&self.system.deaths.list, self.system.deaths.more)
    }
    /// Path of the file of the program that runs, as programs see it.
    #[must_use]
    pub fn program_file(&self) -> &[u8] {
        &self.process().files.program.path
    }
    /// Returns the file mapped at an address of the running process: its path as programs see it, and the offset in it.
    #[must_use]
    pub fn file_at(&self, address: u64) -> Option<(Vec<u8>, u64)> {
        self.space().mapped.at(address).map(|mapped| (mapped.path, mapped.offset))
    }
    /// Returns the host path of a file that programs see at `path`.
    #[must_use]
    pub fn host_path(&self, path: &[u8]) -> PathBuf {
        self.process().files.view.find(path).unwrap_or_else(|_| PathBuf::from(OsStr::from_bytes(path)))
    }
    /// Returns the function names of the program that the running thread executes.
    #[must_use]
    pub fn running_symbols(&self) -> &Symbols {
        &self.process().symbols
    }
    /// Returns the number of the CPU on which the thread runs.
    #[must_use]
    pub fn cpu_number(&self) -> u32 {
        self.threads[self.running].cpu_number()
    }
    /// Iterates over the system calls made by the program that are not implemented: number, name, calls.
    pub fn unknown_calls(&self) -> impl Iterator<Item = (u64, &'static str, u64)> + '_ {
        self.system.unknown_calls.iter().map(|(&number, &calls)| (number, syscalls::name(number), calls))
    }

    /// Iterates over the files on the host whose changes through shared mappings could not be written to them, with the reason.
    pub fn unwritten_files(&self) -> impl Iterator<Item = (PathBuf, std::io::Error)> + '_ {
        let file = |path: &[u8]| PathBuf::from(OsStr::from_bytes(path));
        self.system.unwritten.iter().map(move |(path, error)| (file(path), std::io::Error::from_raw_os_error(*error)))
    }

    /// Describes where a dynamic program's interpreter and libraries are searched; `None` for a static one.
    #[must_use]
    pub fn searched(&self) -> Option<String> {
        let files = &self.process().files;
        files.program.has_interpreter().then(|| files.view.searched())
    }

    /// Returns what the program was refused, by kind and folder.
    #[must_use]
    pub fn refusals(&self) -> Vec<Refusal> {
        self.process().files.view.policy.refusals()
    }

    /// Handles that no block can run: the code could not be fetched, or the thread has arrived at a stop.
    #[cold]
    pub(crate) fn no_block<E: Engine>(&mut self, why: NoBlock, code: &mut Code<E>) -> Step {
        let NoBlock::Trap(trap) = why else { return Step::Stopped };
        let thread = self.thread_mut();
        thread.cpu.clear_stream();
        thread.trap = Some(trap);
        self.deadline = 0;
        // The signal's handler, if there is one, must be fetched too; if that fails, the program ends.
        self.attend(code).unwrap_or_else(|| self.step_cold(code))
    }

    #[inline(never)]
    fn step_cold<E: Engine>(&mut self, code: &mut Code<E>) -> Step {
        self.step(code)
    }

    /// Handles the trap that stopped the last block.
    pub(crate) fn handle(&mut self, trap: Trap) {
        self.kernel().handle(trap);
        self.admit_started();
    }

    /// Repeats the system call in which the running thread is blocked, if it may have a result.
    pub(crate) fn settle_ready(&mut self) {
        let thread = self.thread_mut();
        let poked = std::mem::take(&mut thread.poked);
        if poked && thread.blocked.as_ref().is_some_and(|b| b.wait.is_repeated()) {
            self.call_again();
        }
    }

    /// Delivers signals to the running thread and ends its wait if it is over.
    pub(crate) fn settle(&mut self) {
        let in_vfork = matches!(self.thread().blocked, Some(Blocked { wait: Wait::Child { vfork: Some(_) }, .. }));
        if in_vfork || self.thread().stopped {
            return;
        }
        self.settle_ready();
        let mut k = self.kernel();
        signal::deliver_pending(&mut k);
        let Some(blocked) = &k.thread.blocked else { return };
        if k.process.end.is_some() || blocked.until_ns > k.system.now_ns {
            return;
        }
        match blocked.wait {
            Wait::Futex { .. } => k.thread.finish_call(-i64::from(Errno::TIMEDOUT.raw_os_error())),
            Wait::Sleep { .. } => k.thread.finish_call(0),
            Wait::Event(_) => {
                k.system.take_barrier_event(k.thread.cpu_number(), k.system.now_ns);
                k.thread.event();
            }
            Wait::Signal(_)
            | Wait::Files(_)
            | Wait::Attempt(_)
            | Wait::Lock(_)
            | Wait::Ipc { .. }
            | Wait::Child { .. } => {
                self.call_again();
            }
        }
    }

    /// Repeats the system call in which the running thread is blocked.
    fn call_again(&mut self) {
        let Some(blocked) = self.thread_mut().blocked.take() else { return };
        self.system.cpus.invalidate();
        self.thread_mut().resumed = Some(Resumed { until_ns: blocked.until_ns, progress: blocked.progress });
        syscalls::call(&mut self.kernel());
        self.admit_started();
        self.thread_mut().resumed = None;
    }

    /// Adds threads and processes that a system call has started to the tables.
    pub(crate) fn admit_started(&mut self) {
        for Started { mut thread, process } in std::mem::take(&mut self.system.started) {
            if let Some(process) = process {
                thread.process = self.processes.insert(process);
            }
            thread.turn = self.system.next_turn();
            self.threads.insert(thread);
        }
    }
}

/// `WFE` ends at the latest with the next event of Linux's event stream, which has 10,000 events per second.
const EVENT_STREAM_NS: u64 = 100_000;

impl Kernel<'_> {
    /// Handles the trap that stopped the last block of the thread.
    fn handle(&mut self, trap: Trap) {
        let pc = self.thread.cpu.pc;
        let info = match trap {
            Trap::SystemCall => return syscalls::call(self),
            Trap::CodeChanged => return self.code_changed(),
            Trap::Window(access) => match self.access_window(access) {
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
        signal::force(self, info);
    }

    /// The program has written code. It may be that of other processes, too: instruction caches are coherent by physical address.
    fn code_changed(&mut self) {
        self.process.code_changed = true;
        if self.mem.has_objects() {
            for other in self.other_processes.iter_mut() {
                other.code_changed |= self.mem.shares_code(self.spaces[other.space].id);
            }
        }
    }

    fn wait_for_event(&mut self) {
        let (now_ns, monitor) = (self.system.now_ns, self.thread.cpu.monitor);
        let cpu = self.thread.cpu_number();
        if self.system.take_barrier_event(cpu, now_ns) {
            return;
        }
        let stream_ns = (now_ns / EVENT_STREAM_NS + 1) * EVENT_STREAM_NS;
        let until_ns = self.system.barrier_event_ns(cpu).map_or(stream_ns, |at_ns| at_ns.min(stream_ns));
        self.block(Blocked { until_ns, ..Blocked::new(Wait::Event(monitor)) });
    }

    fn send_event(&mut self) {
        self.thread.cpu.event = true;
        for other in self.other_threads.iter_mut() {
            other.event();
        }
    }
}
