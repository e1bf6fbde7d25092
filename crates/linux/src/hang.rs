//! What threads do now: which run, which wait, and whether that can end by itself. For drivers that look for a run without progress.

use crate::end::Waiting;
use crate::fs::poll::outside_can_wake;
use crate::guest::Guest;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};
use crate::thread::Thread;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It runs, or is ready to run, or looks at an address again with each event of the processor (`WFE`).
    Runs,
    /// It waits, without a time limit.
    Waits,
    /// It sleeps for a time, as the program wants it to.
    Sleeps,
    /// It waits for descriptors or objects, until this simulated time in ns at the latest.
    WaitsUntil(u64),
    /// It waits for something that the host or the user may do.
    WaitsForHost,
}

/// A thread and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadState {
    /// Its number.
    pub tid: u32,
    /// The rank of its process.
    pub rank: Option<u32>,
    /// What it does.
    pub doing: Doing,
    /// Whether it is the first thread of its process, and waits for descriptors.
    pub first_reads: bool,
}

impl Guest {
    /// Returns all threads, by ascending number.
    #[must_use]
    pub fn thread_states(&mut self) -> Vec<ThreadState> {
        let k = self.kernel();
        let doing = |thread: &Thread| match &thread.blocked {
            _ if thread.stopped => Doing::Waits,
            None => Doing::Runs,
            Some(_) if outside_can_wake(&k, thread) => Doing::WaitsForHost,
            Some(Blocked { wait: Wait::Event(_), .. }) => Doing::Runs,
            Some(Blocked { until_ns: FOR_EVER, .. }) => Doing::Waits,
            Some(Blocked { wait: Wait::Files(list), until_ns, .. }) if !list.is_empty() => Doing::WaitsUntil(*until_ns),
            Some(Blocked { wait: Wait::Ipc { .. }, until_ns, .. }) => Doing::WaitsUntil(*until_ns),
            Some(_) => Doing::Sleeps,
        };
        let state = |thread: &Thread| ThreadState {
            tid: thread.tid,
            rank: k.system.family.process_of(thread.tid).and_then(|process| process.rank),
            doing: doing(thread),
            first_reads: thread.tid == thread.pid && thread.waits_for_files(),
        };
        let mut states: Vec<ThreadState> = k.all_threads().filter(|thread| !thread.ended).map(state).collect();
        states.sort_unstable_by_key(|state| state.tid);
        states
    }

    /// Returns the earliest simulated time in ns at which a timer of a process may expire; [`u64::MAX`] if none is set.
    #[must_use]
    pub fn next_timer_ns(&self) -> u64 {
        self.next_timer(true)
    }

    /// Returns all threads with their stacks, by ascending number, and what each waits for.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        let waiting = |t: &Thread| Waiting {
            pid: t.pid,
            tid: t.tid,
            pc: t.cpu.pc,
            function: self.processes[t.process].function_at(t.cpu.pc),
            waits_for: match &t.blocked {
                _ if t.stopped => Some("SIGCONT".to_owned()),
                blocked => blocked.as_ref().map(|blocked| blocked.wait.to_string()),
            },
            stack: self.stack_of(t.tid),
        };
        let mut threads: Vec<Waiting> = self.threads.values().filter(|t| !t.ended).map(waiting).collect();
        threads.sort_unstable_by_key(|t| t.tid);
        threads
    }
}
