//! What all processes of a guest share.

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::budget::{Budget, Charge};
use crate::death::Deaths;
use crate::family::Family;
use crate::fs::locks::Locks;
use crate::fs::objects::Objects;
use crate::fs::pty::Ptys;
use crate::fs::terminal::Terminal;
use crate::ipc::channels::Channels;
use crate::ipc::cmg::SharedRegisters;
use crate::ipc::mqueue::Queues;
use crate::ipc::shm::SharedSegments;
use crate::ipc::sysv::SysV;
use crate::mm::pages::{FolioCounts, Khugepaged, PageUse};
use crate::mm::shared_files::SharedFiles;
use crate::net::network::Network;
use crate::perf::sampling::Sampled;
use crate::platform::Platform;
use crate::process::Process;
use crate::processes::Zombie;
use crate::sched::cpus::Cpus;
use crate::sched::wait::FOR_EVER;
use crate::thread::Thread;

/// What all processes of a guest share.
#[derive(Serialize, Deserialize)]
pub(crate) struct System {
    /// The machine as programs see it.
    pub platform: Platform,
    /// Simulated time since the first program's start in ns.
    pub now_ns: u64,
    /// Wall-clock time of the first program's start, in ns since 1970.
    pub start_unix_ns: u64,
    /// The cost of all processes on the host.
    #[serde(skip)]
    pub budget: Budget,
    /// The cost of names in `/dev/shm`.
    #[serde(skip)]
    pub names_charge: Rc<Charge>,
    /// The last number given to a thread or process.
    pub last_id: u32,
    /// Waits begun so far.
    pub waits: u64,
    /// Number of positions assigned in the queue of all threads in functional runs.
    pub turns: u64,
    /// No time limit or timer expires before this simulated time in ns.
    pub next_event_ns: u64,
    /// Simulated time up to which CPU time is accounted for, in ns.
    pub accounted_ns: u64,
    /// Instructions of all threads up to which those of each are counted.
    pub accounted_instructions: u64,
    /// The identity of the last performance event.
    pub last_event: u64,
    /// What the machine's PMU has counted, by thread and event.
    #[serde(skip)]
    pub counts: BTreeMap<u32, Vec<u64>>,
    /// The events that sample.
    #[serde(skip)]
    pub sampled: Sampled,
    /// How long threads have run on each CPU, by its number, in ns.
    pub busy_ns: Vec<u64>,
    /// Which thread runs on which CPU, in timed runs.
    pub cpus: Cpus,
    /// Whether threads have moved from one CPU to another.
    pub cpus_stale: bool,
    /// Number of calls of system calls that are not implemented, by number.
    pub unknown_calls: BTreeMap<u64, u64>,
    /// Processes that have ended, in that order.
    pub zombies: Vec<Zombie>,
    /// All processes of the run, those that have ended too.
    pub family: Family,
    /// Those that have ended abnormally.
    pub deaths: Deaths,
    /// The cost of `family`.
    #[serde(skip)]
    pub family_charge: Rc<Charge>,
    /// Registers that the cores of a CMG share.
    pub shared_registers: SharedRegisters,
    /// Pages of processes that have ended.
    pub page_use: Vec<PageUse>,
    /// What happened to their transparent huge pages.
    pub folio_counts: FolioCounts,
    /// The thread that makes such pages of normal ones.
    pub khugepaged: Khugepaged,
    /// System V shared memory.
    pub segments: SharedSegments,
    /// Files whose changes through mappings could not be written to them: path on the host, and the host's error number.
    pub unwritten: Vec<(Vec<u8>, i32)>,
    /// Files that are mapped shared.
    #[serde(skip)]
    pub shared_files: SharedFiles,
    /// Pipes and sockets that programs have created or opened.
    #[serde(skip)]
    pub channels: Channels,
    /// System V semaphores and message queues.
    pub sysv: SysV,
    /// Their cost.
    #[serde(skip)]
    pub sysv_charge: Rc<Charge>,
    /// POSIX message queues.
    #[serde(skip)]
    pub mqueues: Queues,
    /// The run's own network.
    #[serde(skip)]
    pub network: Network,
    /// Open timers, queues of signals, and references to processes.
    #[serde(skip)]
    pub objects: Objects,
    /// Pseudoterminals.
    #[serde(skip)]
    pub ptys: Ptys,
    /// Record locks on files.
    #[serde(skip)]
    pub locks: Locks,
    /// The observer of the host's terminal.
    #[serde(skip)]
    pub terminal: Terminal,
    /// Threads that the current system call has started: they are added to the tables when the call is over.
    #[serde(skip)]
    pub started: Vec<Started>,
}

/// A thread that a system call has started.
pub(crate) struct Started {
    pub thread: Thread,
    /// Its process, if that is new, too.
    pub process: Option<Process>,
}

impl System {
    /// Returns the system before anything runs; `last_id` is the number of the first process.
    pub(crate) fn new(platform: Platform, start_unix_ns: u64, budget: Budget, last_id: u32) -> System {
        let mut segments = SharedSegments::default();
        segments.charge_to(&budget);
        let khugepaged = Khugepaged::new(&platform.page_sizes);
        System {
            platform,
            now_ns: 0,
            start_unix_ns,
            names_charge: Rc::new(budget.charge(0)),
            family_charge: Rc::new(budget.charge(0)),
            sysv: SysV::default(),
            mqueues: Queues::default(),
            sysv_charge: Rc::new(budget.charge(0)),
            budget,
            last_id,
            waits: 0,
            turns: 0,
            next_event_ns: FOR_EVER,
            accounted_ns: 0,
            accounted_instructions: 0,
            last_event: 0,
            counts: BTreeMap::new(),
            sampled: Sampled::default(),
            busy_ns: Vec::new(),
            cpus: Cpus::default(),
            cpus_stale: false,
            unknown_calls: BTreeMap::new(),
            zombies: Vec::new(),
            family: Family::default(),
            deaths: Deaths::default(),
            shared_registers: SharedRegisters::default(),
            page_use: Vec::new(),
            folio_counts: FolioCounts::default(),
            khugepaged,
            segments,
            unwritten: Vec::new(),
            shared_files: SharedFiles::default(),
            channels: Channels::default(),
            network: Network::default(),
            objects: Objects::default(),
            ptys: Ptys::default(),
            locks: Locks::default(),
            terminal: Terminal::default(),
            started: Vec::new(),
        }
    }

    /// Returns a number for a new thread or process.
    pub(crate) fn new_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }

    /// Returns the position of a thread at the end of the queue.
    pub(crate) fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    /// Counts a call of a system call that is not implemented. Programs may use any number.
    pub(crate) fn note_unknown(&mut self, number: u64) {
        /// Most numbers that are counted separately.
        const MOST: usize = 100;
        let known = self.unknown_calls.len() < MOST || self.unknown_calls.contains_key(&number);
        *self.unknown_calls.entry(if known { number } else { u64::MAX }).or_default() += 1;
    }

    /// Counts time in which a thread ran on a CPU.
    pub(crate) fn note_busy(&mut self, cpu: u32, ns: u64) {
        let cpu = cpu as usize;
        if cpu >= self.busy_ns.len() {
            self.busy_ns.resize(cpu + 1, 0);
        }
        self.busy_ns[cpu] += ns;
    }

    /// Returns how long the running thread has run since the last accounting, in ns.
    pub(crate) fn running_ns(&self) -> u64 {
        self.now_ns.saturating_sub(self.accounted_ns)
    }
}
