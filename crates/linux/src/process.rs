//! What the threads of a process share.

use std::ops::Range;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::attributes::Attributes;
use crate::budget::Charge;
use crate::end::End;
use crate::fs::files::Files;
use crate::mm::address_space::AddressSpace;
use crate::random::Random;
use crate::sched::timers::Timers;
use crate::signal::stop::Job;
use crate::signal::{self, Action, SigInfo};
use crate::symbols::Symbols;
use crate::table::Id;
use crate::usage::Used;

/// A pair of limits of `prlimit64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable, Serialize, Deserialize)]
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
    pub const MESSAGE_QUEUES: usize = 12;
}

/// A process: what its threads share.
pub(crate) struct Process {
    /// Its number, which is also that of its first thread.
    pub pid: u32,
    /// The number of its parent.
    pub ppid: u32,
    /// Its process group and session.
    pub group: u32,
    pub session: u32,
    /// Its address space. Another process may share it until it executes a program or ends (`vfork`).
    pub space: Id<AddressSpace>,
    /// Its users, capabilities and settings.
    pub attributes: Attributes,
    /// Whether it is stopped, and what its parent has not been told.
    pub job: Job,
    /// Blocks of its code may be stale.
    pub code_changed: bool,
    /// Address ranges whose mappings have changed: blocks in them are stale.
    pub changed_code: Vec<Range<u64>>,
    /// More of its code is decoded than may be kept.
    pub code_full: bool,
    pub files: Files,
    pub symbols: Rc<Symbols>,
    /// The cost of `symbols`.
    pub symbols_charge: Rc<Charge>,
    /// The cost on the host of everything without a separate charge.
    pub charge: Charge,
    /// The fixed part of that cost.
    pub fixed_bytes: u64,
    /// Dispositions by signal number; entry 0 is unused.
    pub actions: [Action; signal::LAST as usize + 1],
    /// Signals pending for any thread that does not block them.
    pub pending: Vec<SigInfo>,
    pub timers: Timers,
    /// The CPUs on which its threads may run, as a bit mask over CPU numbers.
    pub allowed_cpus: Vec<u64>,
    pub limits: [Limit; Limit::COUNT],
    pub random: Random,
    /// How it ends, once known, until the scheduler handles it.
    pub end: Option<End>,
    /// Whether it has ended. Its entry exists until another process runs.
    pub ended: bool,
    /// The exit status of the first thread, if others continued.
    pub leader_status: Option<i32>,
    /// CPU time of its threads until the last of them stopped, in ns of simulated time.
    pub cpu_ns: u64,
    /// The same for its children, and theirs, that have ended and been waited for.
    pub children_cpu_ns: u64,
    /// What its threads that have ended have used.
    pub used: Used,
    /// What its children, and theirs, that have ended and been waited for have used.
    pub children_used: Used,
    /// Instructions that its threads have executed until the last of them stopped.
    pub instructions: u64,
}

impl Process {
    /// Returns `function+offset` for an address of the program's text.
    pub(crate) fn function_at(&self, address: u64) -> Option<String> {
        self.symbols.at(address).map(|place| place.to_string())
    }
}
