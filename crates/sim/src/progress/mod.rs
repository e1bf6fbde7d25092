//! Runs without progress: threads run, but only look again and again at what nobody will change, such as ranks of MPI that all wait for
//! a message.
//!
//! From time to time, all threads are followed block by block for a short while, the *window*. Each thread must then be one of these:
//!
//! * It waits, and nothing but another thread can end that.
//! * It is in a loop that changes nothing ([`cycle`]).
//! * It is in a function of MPI, which it does not leave, and all such threads touch only the lines of memory that they have touched
//!   before. Libraries count their looks and read the time meanwhile.
//!
//! Without ranks, a thread that sleeps for a time or waits for the host may change everything. In a run with ranks, only those of ranks
//! can: launchers always wait for input, which only matters to a rank that reads. When nothing else is seen for the whole limit, the run is over.

mod cycle;

use std::collections::{BTreeMap, BTreeSet};

use fxscope_aarch64::{Cpu, DataAccess, StaticBlock};
use fxscope_linux::{Doing, Guest, ThreadState, Waiting};
use serde::{Deserialize, Serialize};

use crate::mpi;
use crate::run::Mode;
use cycle::Cycle;

/// Windows in the time of the limit.
const WINDOWS: u32 = 8;
/// Blocks of a thread in a window before it is known that it is in no loop that changes nothing.
const MOST_BLOCKS: u32 = 1 << 13;
/// Blocks of a thread in MPI that are followed: many rounds of a library that polls, or 100 KiB of a message.
const BLOCKS_IN_MPI: u32 = 1 << 11;
/// Lines that threads in MPI may touch for the first time in a window, for what happens rarely.
const NEW_LINES: usize = 64;
/// Lines that they may touch at all.
const MOST_LINES: usize = 1 << 14;
/// Bytes of a line, as a power of two.
const LINE: u32 = 8;
/// Timers, and time limits of waits for descriptors, that are further away than this many times the limit are taken to be for
/// emergencies: event loops of libraries have some, of 20 s or an hour.
const FAR: u64 = 10;

/// The default limit in ns of simulated time: in functional mode a second, in which all ranks together execute 10⁹ instructions. Timing
/// mode needs 100 times longer for it and more on the host, so that there it is 100 ms: far longer than any message takes.
#[must_use]
pub fn default_limit_ns(mode: Mode) -> u64 {
    match mode {
        Mode::Functional => 1_000_000_000,
        Mode::Timing => 100_000_000,
    }
}

/// A run without progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProgress {
    /// Simulated time for which nothing has changed, ns.
    pub for_ns: u64,
    /// All threads.
    pub threads: Vec<Waiting>,
}

/// Watches a run for progress.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct ProgressWatch {
    limit_ns: Option<u64>,
    /// When the next window begins, ns of simulated time.
    due_ns: u64,
    /// When the first of the consecutive windows without progress ended, and the number of them.
    since_ns: u64,
    calm: u32,
    /// Lines that threads in MPI have touched in them, by process.
    lines: BTreeSet<(u32, u64)>,
    window: Option<Window>,
}

/// A window of time in which all threads are followed.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Window {
    threads: BTreeMap<u32, Followed>,
    new_lines: usize,
    progress: bool,
}

/// A thread that is followed.
#[derive(Clone, Serialize, Deserialize)]
struct Followed {
    blocks: u32,
    cycle: Cycle,
    /// If it was in a function of MPI: where that has put its caller's frame pointer.
    in_mpi: Option<u64>,
}

impl Followed {
    /// Returns whether the thread is in a loop that changes nothing, or has been followed for long enough in MPI.
    fn is_known(&self) -> bool {
        self.cycle.is_found() || self.is_long_in_mpi()
    }

    fn is_long_in_mpi(&self) -> bool {
        self.in_mpi.is_some() && self.blocks >= BLOCKS_IN_MPI
    }

    /// Returns whether the thread, which has run a block, has left a function of MPI or is in no loop that changes nothing.
    fn progresses(&self, cpu: &Cpu) -> bool {
        match self.in_mpi {
            Some(record) => cpu.x(Cpu::SP) > record,
            None => self.blocks > MOST_BLOCKS && !self.cycle.is_found(),
        }
    }
}

impl ProgressWatch {
    /// Watches for progress within `limit_ns` of simulated time; `None`: not at all.
    pub(crate) fn new(limit_ns: Option<u64>) -> ProgressWatch {
        let due_ns = limit_ns.map_or(u64::MAX, |limit| limit / u64::from(WINDOWS));
        ProgressWatch { limit_ns, due_ns, since_ns: 0, calm: 0, lines: BTreeSet::new(), window: None }
    }

    /// Returns when the next window begins, ns of simulated time.
    #[inline(always)]
    pub(crate) fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Returns whether threads are being followed.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.window.is_some()
    }

    /// Follows a block of the running thread, of which `executed` instructions completed.
    pub(crate) fn ran(&mut self, guest: &Guest, block: &StaticBlock, executed: usize) {
        let Some(window) = &mut self.window else { return };
        let (thread, cpu) = (guest.thread(), guest.cpu());
        let followed = window.threads.entry(thread.tid).or_insert_with(|| {
            let stack = guest.stack_of(thread.tid);
            let record = mpi::outermost(&stack).map(|frame| stack[frame].record).filter(|&record| record != 0);
            Followed { blocks: 0, cycle: Cycle::default(), in_mpi: record }
        });
        followed.blocks = followed.blocks.saturating_add(1);
        window.progress |= followed.progresses(cpu);
        if followed.is_long_in_mpi() {
            return;
        }
        // One that is in a loop is followed further: the loop may only wait for a moment.
        followed.cycle.ran(guest, block, executed);
        if followed.in_mpi.is_some() {
            for DataAccess { address, bytes, .. } in block.accesses(cpu, executed) {
                let last = address.saturating_add(bytes.saturating_sub(1));
                for line in [address >> LINE, last >> LINE] {
                    window.new_lines += usize::from(self.lines.insert((thread.pid, line)));
                }
            }
        }
    }

    /// Begins a window that is due, or ends one in which enough was seen. `spinning` are threads that are known to be in a loop that
    /// only reads. `Some`: there has been no progress for the whole limit.
    pub(crate) fn look(&mut self, guest: &mut Guest, now_ns: u64, spinning: &[u32]) -> Option<NoProgress> {
        let limit_ns = self.limit_ns?;
        let states = guest.thread_states();
        if may_change_alone(&states, guest, now_ns, limit_ns) {
            self.start_again(now_ns, limit_ns);
            return None;
        }
        let Some(window) = &self.window else {
            self.window = Some(Window::default());
            return None;
        };
        let first = self.calm == 0;
        if window.progress || self.lines.len() > MOST_LINES || (!first && window.new_lines > NEW_LINES) {
            self.start_again(now_ns, limit_ns);
            return None;
        }
        let runs = states.iter().filter(|state| state.doing == Doing::Runs);
        let known = |tid: &u32| window.threads.get(tid).is_some_and(Followed::is_known) || spinning.contains(tid);
        if !runs.map(|state| state.tid).all(|tid| known(&tid)) {
            return None;
        }
        if first {
            self.since_ns = now_ns;
        }
        self.window = None;
        self.calm += 1;
        self.due_ns = now_ns + limit_ns / u64::from(WINDOWS);
        let for_ns = now_ns.saturating_sub(self.since_ns);
        (self.calm > WINDOWS && for_ns >= limit_ns).then(|| NoProgress { for_ns, threads: guest.waiting() })
    }

    /// There was progress: the limit begins again.
    fn start_again(&mut self, now_ns: u64, limit_ns: u64) {
        self.window = None;
        self.calm = 0;
        self.lines.clear();
        self.due_ns = now_ns + limit_ns / u64::from(WINDOWS);
    }
}

/// Returns whether something other than a running thread may change what the threads see: the end of a sleep, a timer, the host. A
/// single thread may do as it likes: nobody has promised it anything.
fn may_change_alone(states: &[ThreadState], guest: &Guest, now_ns: u64, limit_ns: u64) -> bool {
    let far_ns = now_ns.saturating_add(limit_ns.saturating_mul(FAR));
    let has_ranks = states.iter().any(|state| state.rank.is_some());
    // A launcher passes its input on.
    let has_input = states.iter().any(|state| state.rank.is_none() && state.doing == Doing::WaitsForHost);
    let reads = |state: &ThreadState| {
        state.rank.is_some() && state.first_reads && mpi::outermost(&guest.stack_of(state.tid)).is_none()
    };
    let mut counted = states.iter().filter(|state| !has_ranks || state.rank.is_some());
    let alone = states.len() < 2 || !states.iter().any(|state| state.doing == Doing::Runs);
    alone
        || (has_input && states.iter().any(reads))
        || guest.next_timer_ns() < far_ns
        || counted.any(|state| match state.doing {
            Doing::Runs | Doing::Waits => false,
            Doing::Sleeps => true,
            // Threads of libraries wait for what they have opened themselves.
            Doing::WaitsForHost => !has_ranks || state.first_reads,
            Doing::WaitsUntil(until_ns) => until_ns < far_ns,
        })
}
