//! What the threads of a process share.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::budget::Charge;
use crate::end::End;
use crate::fs::files::Files;
use crate::mm::address_space::AddressSpace;
use crate::random::Random;
use crate::sched::timers::Timers;
use crate::signal::{self, Action, SigInfo};
use crate::symbols::Symbols;
use crate::table::Id;

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
    /// Its address space. Another process has the same one until it executes a program or ends (`vfork`).
    pub space: Id<AddressSpace>,
    /// Blocks of its code may be stale.
    pub code_changed: bool,
    /// More of its code is decoded than may be kept.
    pub code_full: bool,
    pub files: Files,
    pub symbols: Rc<Symbols>,
    /// What `symbols` take.
    pub symbols_charge: Rc<Charge>,
    /// What it makes the host hold, as far as nothing of it has a charge of its own.
    pub charge: Charge,
    /// What of that it takes whatever it does.
    pub fixed_bytes: u64,
    /// Dispositions by signal number; entry 0 is unused.
    pub actions: [Action; signal::LAST as usize + 1],
    /// Signals waiting to be delivered to any thread that does not block them.
    pub pending: Vec<SigInfo>,
    pub timers: Timers,
    /// The CPUs that its threads may run on, as a bit mask over CPU numbers.
    pub allowed_cpus: Vec<u64>,
    pub limits: [Limit; Limit::COUNT],
    pub random: Random,
    /// How it ends, from the moment on that this is known until the scheduler deals with it.
    pub end: Option<End>,
    /// It has ended. Its entry is there until another process runs.
    pub ended: bool,
    /// The status that the first thread ended with, if others went on.
    pub leader_status: Option<i32>,
    /// Simulated time that its threads spent running until the last of them stopped, in ns.
    pub cpu_ns: u64,
    /// The same of its children that have ended and been waited for, and theirs.
    pub children_cpu_ns: u64,
}

impl Process {
    /// `function+offset` for an address of the program's text.
    pub(crate) fn function_at(&self, address: u64) -> Option<String> {
        self.symbols.at(address).map(|place| place.to_string())
    }
}
