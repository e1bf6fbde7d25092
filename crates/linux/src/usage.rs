//! What processes have used, except for time: page faults, waits and memory (getrusage(2)).

use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;
use crate::perf::ThreadUse;
use crate::process::Process;

/// What a process, or several together, have used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Used {
    /// Page faults: pages that it touched first.
    pub faults: u64,
    /// How often its threads have waited in a system call.
    pub waits: u64,
    /// How often another thread has run although its own could have continued.
    pub preemptions: u64,
    /// The most bytes of pages that it had at a time. Of several processes, those of the one with most.
    pub resident_bytes: u64,
}

impl Used {
    /// Adds what a thread has used.
    pub(crate) fn add_thread(&mut self, thread: &ThreadUse) {
        self.faults += thread.faults;
        self.waits += thread.waits;
        self.preemptions += thread.preemptions;
    }

    /// Adds what another process has used.
    pub(crate) fn add(&mut self, other: &Used) {
        self.faults += other.faults;
        self.waits += other.waits;
        self.preemptions += other.preemptions;
        self.resident_bytes = self.resident_bytes.max(other.resident_bytes);
    }
}

impl Kernel<'_> {
    /// Returns what a process has used so far.
    pub(crate) fn used_by(&self, process: &Process) -> Used {
        let mut used = process.used;
        let threads = self.all_threads().filter(|thread| thread.pid == process.pid && !thread.ended);
        threads.for_each(|thread| used.add_thread(&thread.uses));
        used.resident_bytes = used.resident_bytes.max(self.spaces[process.space].pages.peak_bytes());
        used
    }
}
