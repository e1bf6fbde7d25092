//! Per-CPU scheduling: which thread runs on which CPU.
//!
//! In functional runs all threads run in turn, and a thread's CPU is only a number that it can query. In timed runs each CPU has
//! a run queue ([`Guest::spread`]): the first thread of the queue runs for a time slice, and the driver chooses which CPU runs
//! next ([`Guest::enter`]).
//!
//! Where Linux is free to choose, the rules are these. A new thread goes to the CPU with the fewest threads, preferring its
//! parent's memory node and then the lowest number. Threads that wait for descriptors do not count: those of libraries hardly run. A thread that wakes up returns to its CPU, unless that CPU has a ready thread
//! and another CPU has none. An idle CPU takes a thread from the longest queue. Otherwise only `sched_setaffinity` moves threads.

use std::ops::Range;

use fxscope_aarch64::{BlockId, Engine};
use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::fs::poll::{outside_can_help, poke_ready};
use crate::guest::{Guest, Step};
use crate::kernel::Kernel;
use crate::platform::{CpuPlace, Platform};
use crate::sched::wait::{Blocked, FOR_EVER, Wait};
use crate::table::Id;
use crate::thread::Thread;

/// Time slice of a thread whose CPU has other ready threads, in ns: the shortest that the scheduler of Linux 4.18 gives on
/// a machine of eight CPUs or more (`sched_min_granularity_ns`, 0.75 ms times four).
pub const SLICE_NS: u64 = 3_000_000;

/// A thread's position in a run queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queued {
    /// The queue is sorted by this in ascending order.
    pub turn: u64,
    /// Simulated time from which the thread could run, ns.
    pub since_ns: u64,
    /// Whether it waited with `WFE`, on its core, so that the kernel need not wake it.
    pub on_core: bool,
}

/// A CPU and the state of its run queue. The threads of the queue are those with this CPU and a [`Queued`].
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RunQueue {
    place: CpuPlace,
    /// The thread that ran there last: its number, and its entry while it exists.
    tid: u32,
    thread: Id<Thread>,
    /// The running thread last reported to the driver.
    announced: u32,
    /// End of the time slice of the running thread, ns.
    slice_end_ns: u64,
    /// The earliest time from which one of its threads could have run, ns; [`FOR_EVER`] if there is none.
    ready_ns: u64,
    /// Whether that thread waited with `WFE`.
    on_core: bool,
    /// Whether the running thread is the only one of this queue, and [`Cpus::changes`] when that was found.
    alone: Option<(u64, bool)>,
}

/// The CPUs of a timed run.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Cpus {
    /// By ascending CPU number. Empty in functional runs.
    queues: Vec<RunQueue>,
    /// The active CPU: the one whose thread is the running one.
    active: usize,
    turns: u64,
    /// Counts changes of the state that the driver sees.
    changes: u64,
    /// Times at which the same threads are ready as when all were last examined, except the running one, unless their state has
    /// been changed since ([`Cpus::invalidate`]).
    unchanged: Range<u64>,
    /// Whether any thread waited for descriptors at that time, and whether something outside the run can make one ready.
    files: bool,
    outside: bool,
    /// When what is outside is looked at again, ns.
    look_at_ns: u64,
}

/// Time between two looks at descriptors that only something outside the run can make ready, ns. What that does and when is not part of the
/// run, so that nothing is lost by seeing it later; each look is a call of the host.
const OUTSIDE_NS: u64 = 10_000;

impl Cpus {
    /// Threads other than the running one may have changed: examines them again.
    pub(crate) fn invalidate(&mut self) {
        self.unchanged = 0..0;
    }

    /// Lets the driver look at the running thread again before its next block.
    pub(crate) fn changed(&mut self) {
        self.changes += 1;
    }

    /// Returns whether it is certain at `now_ns` that no thread waits for a descriptor that may be ready: all were looked at after the last change of
    /// any thread, and only what is outside the run can have changed them since.
    #[inline(always)]
    pub(crate) fn no_file_is_ready(&self, now_ns: u64) -> bool {
        let may_be_ready = self.files && self.outside && now_ns >= self.look_at_ns;
        !self.unchanged.is_empty() && !may_be_ready
    }

    /// Returns whether each CPU has a run queue, as in timed runs.
    #[inline(always)]
    pub(crate) fn are_separate(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Returns the end of the time slice of the running thread, ns.
    #[inline(always)]
    pub(crate) fn slice_end_ns(&self) -> u64 {
        self.queues.get(self.active).map_or(FOR_EVER, |queue| queue.slice_end_ns)
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn is_on_active(&self, thread: &Thread) -> bool {
        self.queues[self.active].place.cpu == thread.cpu_number
    }
}

impl Platform {
    /// Returns the CPU of `affinity` with the fewest threads, preferring the memory node of CPU `near`.
    fn emptiest_cpu(&self, affinity: &[u64], near: u32, threads_on: impl Fn(u32) -> usize) -> u32 {
        let near = self.node_of(near);
        let allowed = self.cpus.iter().filter(|place| allows(affinity, place.cpu));
        let best = allowed.min_by_key(|place| (threads_on(place.cpu), Some(place.node) != near, place.cpu));
        best.or(self.cpus.first()).map_or(0, |place| place.cpu)
    }
}

impl Kernel<'_> {
    /// Returns the number of threads whose CPU is `cpu`, without those that wait for descriptors.
    fn threads_on(&self, cpu: u32) -> usize {
        let counts = |thread: &&Thread| {
            let waits_for_files = thread.blocked.as_ref().is_some_and(|b| matches!(b.wait, Wait::Files(_)));
            thread.cpu_number == cpu && !thread.ended && !waits_for_files
        };
        self.all_threads().filter(counts).count()
    }

    /// Moves the thread `tid`, or the running one for 0, to another CPU if its affinity no longer includes its own.
    pub(crate) fn move_to_allowed_cpu(&mut self, tid: u64) {
        let thread = self.other_threads.iter().find(|other| tid == u64::from(other.tid)).unwrap_or(self.thread);
        let (own, last) = (thread.tid, thread.cpu_number);
        if allows(&thread.affinity, last) {
            return;
        }
        let cpu = self.system.platform.emptiest_cpu(&thread.affinity, last, |cpu| self.threads_on(cpu));
        if let Some(thread) = self.all_threads_mut().find(|thread| thread.tid == own) {
            thread.cpu_number = cpu;
            thread.uses.migrations += 1;
        }
        self.system.cpus_stale = true;
    }

    /// Returns the CPU of a new thread with this affinity whose parent is the running one.
    pub(crate) fn cpu_of_new(&self, affinity: &[u64]) -> u32 {
        self.system.platform.emptiest_cpu(affinity, self.thread.cpu_number, |cpu| self.threads_on(cpu))
    }
}

/// Returns whether an affinity mask includes a CPU.
pub(crate) fn allows(affinity: &[u64], cpu: u32) -> bool {
    affinity.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
}

/// A CPU as the driver of a run sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuState {
    /// Its number and node.
    pub place: CpuPlace,
    /// Simulated time in ns from which one of its threads could have run; `None`: none is ready.
    pub ready_ns: Option<u64>,
    /// Whether that thread waited with `WFE`, on its core: it continues without being woken by the kernel.
    pub on_core: bool,
}

impl Guest {
    /// Gives each CPU a run queue. From now on the driver chooses which CPU runs next.
    pub fn spread(&mut self) {
        let running = self.running;
        let queue = |&place: &CpuPlace| RunQueue {
            place,
            tid: 0,
            thread: running,
            announced: 0,
            slice_end_ns: FOR_EVER,
            ready_ns: FOR_EVER,
            on_core: false,
            alone: None,
        };
        let thread = &self.threads[running];
        let cpus = &mut self.system.cpus;
        cpus.queues = self.system.platform.cpus.iter().map(queue).collect();
        cpus.active = cpus.queues.iter().position(|queue| queue.place.cpu == thread.cpu_number).unwrap_or(0);
        let active = cpus.active;
        (cpus.queues[active].tid, cpus.queues[active].announced) = (thread.tid, self.announced);
        self.deadline = 0;
        self.queue_ready();
    }

    /// Takes the run queues from the CPUs: from now on, at `now_ns`, all threads run in turn, as in functional runs.
    pub fn gather(&mut self, now_ns: u64) {
        self.held = false;
        self.account();
        self.set_now_ns(now_ns.max(self.system.now_ns));
        self.system.accounted_ns = self.system.now_ns;
        let cpus = &mut self.system.cpus;
        cpus.queues.clear();
        cpus.active = 0;
        cpus.invalidate();
        self.threads.values_mut().for_each(|thread| thread.queued = None);
        // A turn begins.
        (self.turn_start, self.tick_start, self.deadline) = (self.instructions, None, 0);
        self.set_turn();
        self.deadline = 0;
    }

    /// Iterates over the CPUs, by ascending number.
    pub fn cpus(&self) -> impl Iterator<Item = CpuState> + '_ {
        self.system.cpus.queues.iter().map(|queue| CpuState {
            place: queue.place,
            ready_ns: (queue.ready_ns != FOR_EVER).then_some(queue.ready_ns),
            on_core: queue.on_core,
        })
    }

    /// Returns a number that changes whenever [`Guest::cpus`] may have changed.
    #[inline(always)]
    #[must_use]
    pub fn cpu_changes(&self) -> u64 {
        self.system.cpus.changes
    }

    /// Returns whether a trap of the running thread is pending until the next step.
    #[inline(always)]
    #[must_use]
    pub fn has_trap(&self) -> bool {
        self.thread().trap.is_some()
    }

    /// Returns whether the running thread is between a load-exclusive and its store-exclusive.
    #[inline(always)]
    #[must_use]
    pub fn in_exclusive(&self) -> bool {
        self.thread().cpu.monitor.is_some()
    }

    /// With `hold`, makes a step stop before a block that synchronises with other threads ([`Step::Synchronises`]).
    #[inline(always)]
    pub fn hold(&mut self, hold: bool) {
        self.held = hold;
    }

    /// Returns whether a step stops before such a block.
    #[inline(always)]
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// Makes CPU `index` of [`Guest::cpus`] the active one. Its time is `now_ns`, which may be earlier than that of the
    /// previously active CPU.
    pub fn enter(&mut self, index: usize, now_ns: u64) {
        self.account();
        let cpus = &mut self.system.cpus;
        let active = cpus.active;
        cpus.queues[active].announced = self.announced;
        cpus.active = index;
        self.announced = cpus.queues[index].announced;
        let thread = &self.threads[self.running];
        if (active != index || thread.ended || !self.system.cpus.is_on_active(thread))
            && let Some(next) = self.thread_of(&self.system.cpus.queues[index])
        {
            self.run_on_active(next);
        }
        self.system.now_ns = now_ns;
        self.system.accounted_ns = now_ns;
        self.set_now_ns(now_ns);
        self.deadline = 0;
    }

    /// Returns the thread to run on a CPU, other than the running one: the one that ran there last, or the first of its queue.
    fn thread_of(&self, queue: &RunQueue) -> Option<Id<Thread>> {
        let is_its = |t: &Thread| t.tid == queue.tid && t.cpu_number == queue.place.cpu && t.queued.is_some();
        let last = self.threads.get(queue.thread).is_some_and(is_its) && queue.thread != self.running;
        if last { Some(queue.thread) } else { self.first_queued() }
    }

    /// Counts the running thread, which has just been chosen, as running since `ns`.
    pub fn has_run_since(&mut self, ns: u64) {
        self.system.accounted_ns = ns;
    }

    /// Does what must be done before the next block, if anything. `Some`: that was a step by itself.
    #[inline(always)]
    pub fn attend_due<E: Engine>(&mut self, code: &mut Code<E>) -> Option<Step> {
        if self.instructions >= self.deadline { self.attend(code) } else { None }
    }

    /// Returns the block that the next step executes if nothing must be done first. `None`: code cannot be fetched there.
    #[inline(always)]
    pub fn next_block<E: Engine>(&mut self, code: &mut Code<E>) -> Option<BlockId> {
        code.next_of(&self.threads[self.running], &mut self.memory, &mut self.processes).ok()
    }

    /// Returns whether there is only one process.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.processes.len() == 1
    }

    /// Returns the first thread of the active CPU's queue, other than the running one.
    fn first_queued(&self) -> Option<Id<Thread>> {
        let others =
            self.threads.iter().filter(|(id, thread)| *id != self.running && self.system.cpus.is_on_active(thread));
        others
            .filter_map(|(id, thread)| Some((thread.queued?.turn, id)))
            .min_by_key(|(turn, _)| *turn)
            .map(|(_, id)| id)
    }

    /// Makes a thread of the active CPU the running one.
    fn run_on_active(&mut self, next: Id<Thread>) {
        self.run_thread(next);
        let active = self.system.cpus.active;
        let queue = &mut self.system.cpus.queues[active];
        (queue.thread, queue.tid) = (next, self.threads[next].tid);
    }

    /// Chooses the thread to run on the active CPU. `None`: it is another one, which must be examined.
    pub(crate) fn choose_on_active(&mut self) -> Option<Turn> {
        let mut k = self.kernel();
        if k.files_are_waited_for() {
            k.system.cpus.look_at_ns = k.system.now_ns + OUTSIDE_NS;
            if poke_ready(&mut k, 0) {
                self.system.cpus.invalidate();
                // The running thread may be among those that were waiting.
                self.settle_ready();
            }
        }
        self.queue_ready();
        let now_ns = self.system.now_ns;
        let cpus = &mut self.system.cpus;
        let thread = &mut self.threads[self.running];
        let yielded = std::mem::take(&mut thread.yielded);
        let can_run = thread.can_run() && cpus.is_on_active(thread);
        let slice_over = yielded || now_ns >= cpus.slice_end_ns();
        if can_run && !slice_over {
            self.renew_slice(false);
            return Some(Turn::Continue);
        }
        if can_run && let Some(queued) = &mut thread.queued {
            queued.turn = cpus.next_turn();
        }
        match self.first_queued() {
            Some(next) => {
                self.run_on_active(next);
                // A switch between a load-exclusive and its store-exclusive must make the store fail.
                self.thread_mut().cpu.monitor = None;
                self.renew_slice(true);
                None
            }
            None if can_run => {
                self.renew_slice(true);
                Some(Turn::Continue)
            }
            None => Some(Turn::Stop(Step::Idle)),
        }
    }

    /// Sets the end of the running thread's time slice: a new one if `new` or if the thread was alone until now.
    fn renew_slice(&mut self, new: bool) {
        let alone = self.is_alone_on_active();
        let now_ns = self.system.now_ns;
        let cpus = &mut self.system.cpus;
        let active = cpus.active;
        let end = &mut cpus.queues[active].slice_end_ns;
        *end = match (alone, new || *end == FOR_EVER) {
            (true, _) => FOR_EVER,
            (false, true) => now_ns + SLICE_NS,
            (false, false) => *end,
        };
    }

    /// Returns whether the running thread is the only one of the active CPU's queue.
    fn is_alone_on_active(&mut self) -> bool {
        let cpus = &self.system.cpus;
        let (changes, known) = (cpus.changes, cpus.queues[cpus.active].alone);
        if let Some((since, alone)) = known
            && since == changes
        {
            return alone;
        }
        let alone = self.first_queued().is_none();
        let cpus = &mut self.system.cpus;
        cpus.queues[cpus.active].alone = Some((changes, alone));
        alone
    }

    /// Adds threads that have become ready to run queues; removes threads that are no longer ready.
    pub(crate) fn queue_ready(&mut self) {
        let now_ns = self.system.now_ns;
        let thread = &self.threads[self.running];
        let stays_queued = thread.can_run() && thread.queued.is_some();
        if stays_queued && self.system.cpus.unchanged.contains(&now_ns) && !self.system.cpus_stale {
            return;
        }
        let process = thread.process;
        let mut unchanged = 0..FOR_EVER;
        let mut files = false;
        let mut changed = false;
        let mut woken: Vec<(u32, Id<Thread>)> = Vec::new();
        for (id, thread) in self.threads.iter_mut() {
            if thread.process == process {
                thread.look_at_monitor(&mut self.memory);
            }
            unchanged = thread.unchanged_during(now_ns, unchanged);
            files |= thread.waits_for_files();
            let ready = !thread.ended && thread.has_work(now_ns);
            if !ready {
                changed |= thread.queued.take().is_some();
            } else if thread.queued.is_none() {
                woken.push((thread.tid, id));
            }
        }
        let outside = files && outside_can_help(&self.kernel());
        let cpus = &mut self.system.cpus;
        (cpus.unchanged, cpus.files, cpus.outside) = (unchanged, files, outside);
        woken.sort_unstable_by_key(|&(tid, _)| tid);
        for &(_, id) in &woken {
            self.enqueue(id);
        }
        if changed || !woken.is_empty() || self.system.cpus_stale {
            self.system.cpus_stale = false;
            while let Some((id, cpu)) = self.overdue_move() {
                self.pull(id, cpu);
            }
            self.update_driver_view();
        }
    }

    /// Adds a thread to the queue of its CPU or of a better one.
    fn enqueue(&mut self, id: Id<Thread>) {
        let now_ns = self.system.now_ns;
        let thread = &self.threads[id];
        let (affinity, last) = (&thread.affinity, thread.cpu_number);
        let since_ns = thread.blocked.as_ref().map_or(now_ns, |blocked| blocked.until_ns.min(now_ns));
        let ready_on = |cpu: u32| self.threads.values().filter(|t| t.queued.is_some() && t.cpu_number == cpu).count();
        let keeps = allows(affinity, last) && ready_on(last) == 0;
        let emptiest = || self.system.platform.emptiest_cpu(affinity, last, |cpu| ready_on(cpu).min(1));
        let cpu = if keeps { last } else { emptiest() };
        // If none is free, it stays.
        let cpu = if allows(affinity, last) && ready_on(cpu) > 0 { last } else { cpu };
        let turn = self.system.cpus.next_turn();
        let thread = &mut self.threads[id];
        let in_event = matches!(&thread.blocked, Some(Blocked { wait: Wait::Event(_), .. }));
        let on_core = (std::mem::take(&mut thread.event_ended_wait) || in_event) && cpu == last;
        thread.cpu_number = cpu;
        thread.uses.migrations += u64::from(cpu != last);
        thread.queued = Some(Queued { turn, since_ns, on_core });
    }

    /// Returns a queued thread to move to an idle CPU that it may run on, and that CPU: from the longest queue, the thread that
    /// has waited longest.
    fn overdue_move(&self) -> Option<(Id<Thread>, u32)> {
        let queues = &self.system.cpus.queues;
        let queued = || self.threads.iter().filter_map(|(id, t)| Some((id, t, t.queued?)));
        let mut lines = vec![0_usize; queues.len()];
        for (_, thread, _) in queued() {
            if let Some(queue) = queues.iter().position(|queue| queue.place.cpu == thread.cpu_number) {
                lines[queue] += 1;
            }
        }
        if !lines.contains(&0) {
            return None;
        }
        let mut longest: Vec<usize> = (0..queues.len()).filter(|&queue| lines[queue] > 1).collect();
        longest.sort_by_key(|&queue| usize::MAX - lines[queue]);
        longest.into_iter().find_map(|queue| {
            let RunQueue { place, tid, .. } = queues[queue];
            let mut line: Vec<_> = queued().filter(|(_, t, _)| t.cpu_number == place.cpu).collect();
            line.sort_by_key(|(_, thread, queued)| (thread.tid != tid, queued.turn));
            // The first one is running, or about to run.
            line[1..].iter().find_map(|&(id, thread, _)| {
                let free =
                    (0..queues.len()).filter(|&l| lines[l] == 0 && allows(&thread.affinity, queues[l].place.cpu));
                let nearest = free.min_by_key(|&l| (queues[l].place.node != place.node, queues[l].place.cpu))?;
                Some((id, queues[nearest].place.cpu))
            })
        })
    }

    /// Moves a queued thread to the queue of `cpu`.
    fn pull(&mut self, id: Id<Thread>, cpu: u32) {
        let (now_ns, turn) = (self.system.now_ns, self.system.cpus.next_turn());
        let thread = &mut self.threads[id];
        thread.cpu_number = cpu;
        thread.uses.migrations += 1;
        thread.queued = Some(Queued { turn, since_ns: now_ns, on_core: false });
        // As after any switch, its exclusive monitor is clear.
        thread.cpu.monitor = None;
    }

    /// Updates the state of the CPUs that the driver sees.
    fn update_driver_view(&mut self) {
        let cpus = &mut self.system.cpus;
        for queue in &mut cpus.queues {
            queue.ready_ns = FOR_EVER;
        }
        for thread in self.threads.values() {
            let Some(queued) = thread.queued else { continue };
            let queue = cpus.queues.iter_mut().find(|queue| queue.place.cpu == thread.cpu_number);
            if let Some(queue) = queue.filter(|queue| queued.since_ns < queue.ready_ns) {
                (queue.ready_ns, queue.on_core) = (queued.since_ns, queued.on_core);
            }
        }
        cpus.changes += 1;
    }

    /// Returns what the driver must do when no thread is ready on any CPU.
    pub fn wait(&mut self) -> Step {
        if self.end.is_some() { Step::Ended } else { self.idle() }
    }

    /// Sets the time of all CPUs, which were idle, to `now_ns` and wakes the threads that are due.
    pub fn wake_due(&mut self, now_ns: u64) {
        self.account();
        self.set_now_ns(now_ns.max(self.system.now_ns));
        self.system.accounted_ns = self.system.now_ns;
        self.expire_timers();
        self.system.cpus.invalidate();
        self.queue_ready();
    }
}

/// What happens next on a CPU.
pub(crate) enum Turn {
    /// The running thread continues.
    Continue,
    /// The driver must do something.
    Stop(Step),
}
