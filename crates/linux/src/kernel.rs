//! What the threads of a process share: memory, files, signal actions, clocks. System calls act on it.

use std::rc::Rc;

use fxscope_guestmem::Memory;

use crate::budget::{Budget, Charge};
use crate::files::Files;
use crate::mapped::MappedFiles;
use crate::pages::{Pages, Toucher};
use crate::platform::Platform;
use crate::scheduler::System;
use crate::signal::{self, Action, SigInfo};
use crate::symbols::Symbols;
use crate::thread::Thread;
use crate::timers::Timers;

/// How a program came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It called `exit`; the low 8 bits of its status.
    Exit {
        /// 0–255.
        code: i32,
    },
    /// A signal ended it.
    Killed(Killed),
    /// All its threads wait for something that can never happen.
    Deadlock {
        /// Every thread, in the order of their numbers.
        threads: Vec<Waiting>,
    },
}

/// A thread that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number of its process.
    pub pid: u32,
    /// Number of the thread.
    pub tid: u32,
    /// Address of the instruction behind the system call.
    pub pc: u64,
    /// The function, as `name+offset`, if the program has symbols.
    pub function: Option<String>,
    /// What it waits for.
    pub waits_for: String,
}

/// A program ended by a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Killed {
    /// The signal's number.
    pub signal: u32,
    /// Address of the instruction.
    pub pc: u64,
    /// The function, as `name+offset`, if the program has symbols.
    pub function: Option<String>,
    /// The address that could not be accessed, if the signal is about one.
    pub address: Option<u64>,
    /// The instruction that the processor refused, if that is what the signal is about.
    pub refused: Option<Refused>,
    /// The program touched a page that the machine has no memory for.
    pub out_of_memory: Option<OutOfMemory>,
}

/// What memory was used for when there was too little of it, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// What the machine has.
    pub limit: u64,
    /// Pages of the program's processes.
    pub pages: u64,
    /// Files in memory (`memfd_create`, `/dev/shm`).
    pub files: u64,
}

impl std::fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0;
        let OutOfMemory { limit, pages, files } = *self;
        let others = limit.saturating_sub(pages + files);
        write!(
            f,
            "out of memory: of the machine's {} MiB the program uses {} MiB for pages, {} MiB for files in memory and {} MiB for \
             processes, threads, pipes and the like; give the machine more with --memory, or choose a smaller problem",
            mib(limit),
            mib(pages),
            mib(files),
            mib(others)
        )
    }
}

/// An instruction that the processor does not have, or not for user code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The instruction.
    pub word: u32,
    /// What a disassembler makes of it, if anything.
    pub disassembly: Option<String>,
}

impl End {
    /// The exit status a shell would show: the program's own, or 128 plus the number of the signal that
    /// ended it. `None` when it was the simulation that could not go on.
    #[must_use]
    pub fn status(&self) -> Option<i32> {
        match self {
            End::Exit { code } => Some(*code),
            End::Killed(k) => Some(128 + k.signal as i32),
            End::Deadlock { .. } => None,
        }
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Exit { code } => write!(f, "exited with status {code}"),
            End::Killed(k) => {
                write!(f, "ended by {} at {:#x}", signal::name(k.signal), k.pc)?;
                in_function(f, k.function.as_deref())?;
                k.address.filter(|&a| a != k.pc).map_or(Ok(()), |a| write!(f, ", accessing {a:#x}"))?;
                k.out_of_memory.as_ref().map_or(Ok(()), |memory| write!(f, ": {memory}"))?;
                k.refused.as_ref().map_or(Ok(()), |r| write!(f, ": the processor has no such instruction, {r}"))
            }
            End::Deadlock { threads } => {
                write!(f, "deadlock: every thread waits for something that cannot happen")?;
                for t in threads {
                    write!(f, "\n  process {}, thread {}: waits for {}, at {:#x}", t.pid, t.tid, t.waits_for, t.pc)?;
                    in_function(f, t.function.as_deref())?;
                }
                Ok(())
            }
        }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [a, b, c, d] = self.word.to_le_bytes();
        write!(f, "bytes {a:02x} {b:02x} {c:02x} {d:02x} (word {:08x})", self.word)?;
        self.disassembly.as_deref().map_or(Ok(()), |text| write!(f, ", {text}"))
    }
}

fn in_function(f: &mut std::fmt::Formatter<'_>, function: Option<&str>) -> std::fmt::Result {
    function.map_or(Ok(()), |name| write!(f, " in {name}"))
}

/// A pair of limits of `prlimit64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub(crate) struct Limit {
    pub soft: u64,
    pub hard: u64,
}

impl Limit {
    pub const INFINITY: u64 = u64::MAX;
    /// Number of resources.
    pub const COUNT: usize = 16;
    pub const STACK: usize = 3;
    pub const CORE: usize = 4;
    pub const PROCESSES: usize = 6;
    pub const FILES: usize = 7;
    pub const SIGNALS: usize = 11;
}

/// State of a process that its threads share.
pub struct Kernel {
    /// The address space.
    pub mem: Memory,
    /// The machine as the program sees it.
    pub platform: Platform,
    /// Simulated time since the program's start in ns.
    pub now_ns: u64,
    /// How the program ended, once it has.
    pub end: Option<End>,
    pub(crate) files: Files,
    /// Which files are mapped where.
    pub(crate) mapped: MappedFiles,
    /// What is known of the pages of `mem`.
    pub(crate) pages: Pages,
    pub(crate) symbols: Rc<Symbols>,
    /// What `symbols` take.
    pub(crate) symbols_charge: Rc<Charge>,
    /// What all processes make the host hold.
    pub(crate) budget: Budget,
    /// What this process makes it hold, as far as nothing of it has a charge of its own.
    pub(crate) charge: Charge,
    /// What of that it takes whatever it does.
    pub(crate) fixed_bytes: u64,
    /// What names in `/dev/shm` take.
    pub(crate) names_charge: Rc<Charge>,
    /// Dispositions by signal number; entry 0 is unused.
    pub(crate) actions: [Action; signal::LAST as usize + 1],
    /// First address of the heap and its current end.
    pub(crate) heap_start: u64,
    pub(crate) brk: u64,
    /// The number of this process.
    pub(crate) pid: u32,
    /// The number of its parent.
    pub(crate) ppid: u32,
    /// Its process group and session.
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// The process whose memory this one uses until it executes a program or ends (`vfork`).
    pub(crate) borrows_from: Option<u32>,
    /// The CPUs that its threads may run on, as a bit mask over CPU numbers.
    pub(crate) allowed_cpus: Vec<u64>,
    /// Signals waiting to be delivered to any thread that does not block them.
    pub(crate) pending: Vec<SigInfo>,
    pub(crate) timers: Timers,
    /// The status that the first thread ended with, if others went on.
    pub(crate) leader_status: Option<i32>,
    /// Simulated time that its threads spent running until the last of them stopped, in ns.
    pub(crate) cpu_ns: u64,
    /// The same of its children that have ended and been waited for, and theirs.
    pub(crate) children_cpu_ns: u64,
    /// What all processes share; with the process that runs.
    pub(crate) system: System,
    /// Wall-clock time of the program's start, in ns since 1970.
    pub(crate) start_unix_ns: u64,
    pub(crate) random: Random,
    pub(crate) limits: [Limit; Limit::COUNT],
    /// Decoded blocks may be stale.
    pub(crate) code_changed: bool,
}

impl Kernel {
    /// `function+offset` for an address of the program's text.
    pub(crate) fn function_at(&self, address: u64) -> Option<String> {
        self.symbols.at(address).map(|place| place.to_string())
    }

    /// The process's threads, `current` being the one that runs.
    pub(crate) fn threads<'a>(&'a self, current: &'a Thread) -> impl Iterator<Item = &'a Thread> {
        let others = self.system.threads.iter().map(|thread| &**thread);
        std::iter::once(current).chain(others.filter(|thread| thread.pid == self.pid && !thread.ended))
    }

    /// Who maps or touches memory while `thread` runs.
    pub(crate) fn toucher(&self, thread: &Thread) -> Toucher {
        let node = self.platform.node_of(thread.cpu_number()).unwrap_or(0);
        Toucher { policy: thread.policy, node }
    }

    /// The pages of each process.
    pub(crate) fn processes_pages(&self) -> impl Iterator<Item = &Pages> {
        std::iter::once(&self.pages).chain(self.system.processes.values().map(|parked| &parked.kernel.pages))
    }

    /// The process needs its memory no longer: what it changed in shared mappings goes to their files.
    pub(crate) fn write_back_at_end(&mut self) {
        if self.borrows_from.is_none() {
            self.mapped.give_back(&mut self.mem, 0, u64::MAX);
        } else {
            // The memory's owner goes on. Nobody is left to tell about an error.
            let _ = self.mapped.write_back(&mut self.mem, 0, u64::MAX);
        }
    }

    /// Each process's open files, and the files that its mappings are of.
    pub(crate) fn processes_files(&self) -> impl Iterator<Item = (&Files, &MappedFiles)> {
        let parked = self.system.processes.values().map(|parked| (&parked.kernel.files, &parked.kernel.mapped));
        std::iter::once((&self.files, &self.mapped)).chain(parked)
    }

    /// Takes over what `thread` has touched.
    pub(crate) fn note_touched(&mut self, thread: &Thread) {
        if self.mem.has_fresh() {
            let who = self.toucher(thread);
            self.pages.touched(&mut self.mem, who);
        }
    }

    /// Time the process has spent running, in ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.cpu_ns + self.system.running_ns(self.now_ns)
    }
}

/// A source of bytes that only its seed determines (SplitMix64, Steele, Lea and Flood 2014).
pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}
