//! CPUs: which thread runs on which one.
//!
//! Functional runs have one host of all threads, and a thread's CPU is only a number that it can ask for. With time,
//! whoever drives a run has each CPU run a thread of its own ([`Guest::spread`]): the threads that are ready wait in
//! line at their CPUs, the first in line has it for a time slice, and the driver chooses the CPU that goes on
//! ([`Guest::enter`]).
//!
//! Where Linux is free to choose, the rules are these. A new thread goes to the CPU with the fewest threads; of several,
//! to one of its parent's memory node, and then to the one with the lowest number. A thread that wakes up goes back to
//! its CPU, unless a thread is there that is ready too and another CPU has none. A CPU that has no thread that is ready
//! takes one that waits in the longest line. Nothing else moves threads but `sched_setaffinity`.

use std::ops::Range;

use fxscope_aarch64::BlockId;
use serde::{Deserialize, Serialize};

use crate::fs::poll::poke_ready;
use crate::guest::{Guest, Step};
use crate::kernel::Kernel;
use crate::platform::{CpuPlace, Platform};
use crate::sched::wait::{Blocked, FOR_EVER, Wait};
use crate::table::Id;
use crate::thread::Thread;

/// How long a thread has its CPU before others that wait for it have their turn, in ns: the shortest that the scheduler
/// of Linux 4.18 gives on a machine of eight CPUs or more (`sched_min_granularity_ns`, 0.75 ms times four).
pub const SLICE_NS: u64 = 3_000_000;

/// A place in the line of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queued {
    /// The lowest one is first.
    pub turn: u64,
    /// Simulated time from which on it could run, ns.
    pub since_ns: u64,
    /// It waited with `WFE`, on its core: no kernel has to wake it.
    pub on_core: bool,
}

/// A CPU that threads may run on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Lane {
    place: CpuPlace,
    /// The thread that ran there last: its number, and its entry as long as it exists.
    tid: u32,
    thread: Id<Thread>,
    /// The thread that the driver knows to be running there.
    announced: u32,
    /// When the thread that runs there gives way to others, ns.
    slice_end_ns: u64,
    /// From when on a thread there could have run, ns; [`FOR_EVER`] when there is none.
    ready_ns: u64,
    /// That one waited with `WFE`.
    on_core: bool,
    /// Whether a thread in place here is the only one in line, and the state of [`Cpus::changes`] when that was found.
    alone: Option<(u64, bool)>,
}

/// The CPUs of a run whose driver has each of them run a thread of its own.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Cpus {
    /// By ascending number; none: threads take turns on one.
    lanes: Vec<Lane>,
    /// The one whose thread is in place.
    here: usize,
    turns: u64,
    /// Counts changes of what the driver is told.
    changes: u64,
    /// Times at which, of all threads but the one in place, the same are ready as when they were looked at last, unless
    /// something has been done to them meanwhile ([`Cpus::stir`]).
    calm: Range<u64>,
    /// Whether any thread waited for descriptors then.
    files: bool,
}

impl Cpus {
    /// Something may have been done to threads that are not in place: they have to be looked at.
    pub(crate) fn stir(&mut self) {
        self.calm = 0..0;
    }

    /// Whether it is known that no thread waits for descriptors: none did when threads were looked at, and nothing has been
    /// done to them since.
    #[inline(always)]
    pub(crate) fn no_files(&self) -> bool {
        !self.calm.is_empty() && !self.files
    }

    /// Whether each CPU runs a thread of its own.
    #[inline(always)]
    pub(crate) fn on(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// When the thread in place gives way to others of its CPU, ns.
    #[inline(always)]
    pub(crate) fn slice_end_ns(&self) -> u64 {
        self.lanes.get(self.here).map_or(FOR_EVER, |lane| lane.slice_end_ns)
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn is_here(&self, thread: &Thread) -> bool {
        self.lanes[self.here].place.cpu == thread.cpu_number
    }
}

impl Platform {
    /// The CPU for a thread that may run on those of `affinity`, by how many threads each has; `near`: one that it
    /// should be near to.
    fn emptiest_cpu(&self, affinity: &[u64], near: u32, threads_on: impl Fn(u32) -> usize) -> u32 {
        let near = self.node_of(near);
        let allowed = self.cpus.iter().filter(|place| allows(affinity, place.cpu));
        let best = allowed.min_by_key(|place| (threads_on(place.cpu), Some(place.node) != near, place.cpu));
        best.or(self.cpus.first()).map_or(0, |place| place.cpu)
    }
}

impl Kernel<'_> {
    /// Number of threads whose CPU is `cpu`.
    fn threads_on(&self, cpu: u32) -> usize {
        self.all_threads().filter(|thread| !thread.ended && thread.cpu_number == cpu).count()
    }

    /// The thread with number `tid`, or the running one for 0, may not run on its CPU any more, perhaps: then it gets
    /// another one.
    pub(crate) fn move_to_allowed_cpu(&mut self, tid: u64) {
        let thread = self.other_threads.iter().find(|other| tid == u64::from(other.tid)).unwrap_or(self.thread);
        let (own, last) = (thread.tid, thread.cpu_number);
        if allows(&thread.affinity, last) {
            return;
        }
        let cpu = self.system.platform.emptiest_cpu(&thread.affinity, last, |cpu| self.threads_on(cpu));
        if let Some(thread) = self.all_threads_mut().find(|thread| thread.tid == own) {
            thread.cpu_number = cpu;
        }
        self.system.cpus_stale = true;
    }

    /// The CPU of a new thread with these CPUs to choose from, whose parent is the running one.
    pub(crate) fn cpu_of_new(&self, affinity: &[u64]) -> u32 {
        self.system.platform.emptiest_cpu(affinity, self.thread.cpu_number, |cpu| self.threads_on(cpu))
    }
}

/// Whether an affinity mask has a CPU.
pub(crate) fn allows(affinity: &[u64], cpu: u32) -> bool {
    affinity.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
}

/// A CPU as whoever drives a run sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuState {
    /// Its number and node.
    pub place: CpuPlace,
    /// Simulated time in ns from which on a thread of it could have run; `None`: it has none that is ready.
    pub ready_ns: Option<u64>,
    /// That thread waited with `WFE`, on its core: it goes on without the kernel waking it.
    pub on_core: bool,
}

impl Guest {
    /// From now on each CPU runs threads of its own, and whoever drives the run chooses which CPU goes on.
    pub fn spread(&mut self) {
        let running = self.running;
        let lane = |&place: &CpuPlace| Lane {
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
        cpus.lanes = self.system.platform.cpus.iter().map(lane).collect();
        cpus.here = cpus.lanes.iter().position(|lane| lane.place.cpu == thread.cpu_number).unwrap_or(0);
        let here = cpus.here;
        (cpus.lanes[here].tid, cpus.lanes[here].announced) = (thread.tid, self.announced);
        self.deadline = 0;
        self.queue_ready();
    }

    /// The CPUs, by ascending number.
    pub fn cpus(&self) -> impl Iterator<Item = CpuState> + '_ {
        self.system.cpus.lanes.iter().map(|lane| CpuState {
            place: lane.place,
            ready_ns: (lane.ready_ns != FOR_EVER).then_some(lane.ready_ns),
            on_core: lane.on_core,
        })
    }

    /// Changes whenever [`Guest::cpus`] may have other threads that are ready.
    #[inline(always)]
    #[must_use]
    pub fn cpu_changes(&self) -> u64 {
        self.system.cpus.changes
    }

    /// Whether a trap of the thread in place waits for the next step.
    #[inline(always)]
    #[must_use]
    pub fn has_trap(&self) -> bool {
        self.thread().trap.is_some()
    }

    /// Whether the thread in place is between a load-exclusive and its store.
    #[inline(always)]
    #[must_use]
    pub fn in_exclusive(&self) -> bool {
        self.thread().cpu.monitor.is_some()
    }

    /// From now on the thread in place does not synchronise with others before the driver has had another look
    /// ([`Step::Synchronises`]), or may do so.
    #[inline(always)]
    pub fn hold(&mut self, hold: bool) {
        self.held = hold;
    }

    /// Puts the thread of CPU number `index` of [`Guest::cpus`] in place, where it is `now_ns`, which may be before the
    /// time of the CPU that was there.
    pub fn enter(&mut self, index: usize, now_ns: u64) {
        self.account();
        let cpus = &mut self.system.cpus;
        let here = cpus.here;
        cpus.lanes[here].announced = self.announced;
        cpus.here = index;
        self.announced = cpus.lanes[index].announced;
        let thread = &self.threads[self.running];
        if (here != index || thread.ended || !self.system.cpus.is_here(thread))
            && let Some(next) = self.thread_of(&self.system.cpus.lanes[index])
        {
            self.run_here(next);
        }
        self.system.now_ns = now_ns;
        self.system.accounted_ns = now_ns;
        self.set_now_ns(now_ns);
        self.deadline = 0;
    }

    /// The thread that goes on at a CPU, of those that are not running: the one that ran there last, or the first in line.
    fn thread_of(&self, lane: &Lane) -> Option<Id<Thread>> {
        let is_its = |t: &Thread| t.tid == lane.tid && t.cpu_number == lane.place.cpu && t.queued.is_some();
        let last = self.threads.get(lane.thread).is_some_and(is_its) && lane.thread != self.running;
        if last { Some(lane.thread) } else { self.first_here() }
    }

    /// The thread in place, which has just been put there, has been running since `ns`.
    pub fn has_run_since(&mut self, ns: u64) {
        self.system.accounted_ns = ns;
    }

    /// Deals with what has to be dealt with before the next block, if anything; `Some`: that was a step of its own.
    #[inline(always)]
    pub fn attend_due(&mut self) -> Option<Step> {
        if self.instructions >= self.deadline { self.attend() } else { None }
    }

    /// The block that the next step executes when nothing has to be dealt with before; none where there is no code.
    #[inline(always)]
    pub fn next_block(&mut self) -> Option<BlockId> {
        {
            let thread = &self.threads[self.running];
            self.processes[thread.process].blocks.at(thread.cpu.pc, &mut self.memory).ok()
        }
    }

    /// Whether no other process is there.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.processes.len() == 1
    }

    /// The first thread in line at the CPU in place, other than the running one.
    fn first_here(&self) -> Option<Id<Thread>> {
        let others = self.threads.iter().filter(|(id, thread)| *id != self.running && self.system.cpus.is_here(thread));
        others
            .filter_map(|(id, thread)| Some((thread.queued?.turn, id)))
            .min_by_key(|(turn, _)| *turn)
            .map(|(_, id)| id)
    }

    /// Makes a thread of the CPU in place the running one.
    fn run_here(&mut self, next: Id<Thread>) {
        self.run_thread(next);
        let here = self.system.cpus.here;
        let lane = &mut self.system.cpus.lanes[here];
        (lane.thread, lane.tid) = (next, self.threads[next].tid);
    }

    /// Chooses the thread that goes on at the CPU in place. `None`: another thread runs, and must be looked at.
    pub(crate) fn choose_here(&mut self) -> Option<Turn> {
        let mut k = self.kernel();
        if k.files_are_waited_for() && poke_ready(&mut k, 0) {
            self.system.cpus.stir();
            // The running thread may be one of those that were waiting.
            self.settle_ready();
        }
        self.queue_ready();
        let now_ns = self.system.now_ns;
        let cpus = &mut self.system.cpus;
        let thread = &mut self.threads[self.running];
        let yielded = std::mem::take(&mut thread.yielded);
        let can_run = thread.can_run() && cpus.is_here(thread);
        let slice_over = yielded || now_ns >= cpus.slice_end_ns();
        if can_run && !slice_over {
            self.renew_slice(false);
            return Some(Turn::GoOn);
        }
        if can_run && let Some(queued) = &mut thread.queued {
            queued.turn = cpus.next_turn();
        }
        match self.first_here() {
            Some(next) => {
                self.run_here(next);
                // What is between a load-exclusive and its store-exclusive must not be seen as undisturbed.
                self.thread_mut().cpu.monitor = None;
                self.renew_slice(true);
                None
            }
            None if can_run => {
                self.renew_slice(true);
                Some(Turn::GoOn)
            }
            None => Some(Turn::Stop(Step::Idle)),
        }
    }

    /// The thread in place has its CPU until the end of a slice, a new one if `new` or if it was alone up to now.
    fn renew_slice(&mut self, new: bool) {
        let alone = self.is_alone_here();
        let now_ns = self.system.now_ns;
        let cpus = &mut self.system.cpus;
        let here = cpus.here;
        let end = &mut cpus.lanes[here].slice_end_ns;
        *end = match (alone, new || *end == FOR_EVER) {
            (true, _) => FOR_EVER,
            (false, true) => now_ns + SLICE_NS,
            (false, false) => *end,
        };
    }

    /// Whether no other thread is in line at the CPU in place, where the thread in place is.
    fn is_alone_here(&mut self) -> bool {
        let cpus = &self.system.cpus;
        let (changes, known) = (cpus.changes, cpus.lanes[cpus.here].alone);
        if let Some((since, alone)) = known
            && since == changes
        {
            return alone;
        }
        let alone = self.first_here().is_none();
        let cpus = &mut self.system.cpus;
        cpus.lanes[cpus.here].alone = Some((changes, alone));
        alone
    }

    /// Threads that have become ready get in line at a CPU; those that are not any more leave it.
    pub(crate) fn queue_ready(&mut self) {
        let now_ns = self.system.now_ns;
        let thread = &self.threads[self.running];
        let goes_on = thread.can_run() && thread.queued.is_some();
        if goes_on && self.system.cpus.calm.contains(&now_ns) && !self.system.cpus_stale {
            return;
        }
        let process = thread.process;
        let mut calm = 0..FOR_EVER;
        let mut files = false;
        let mut changed = false;
        let mut woken: Vec<(u32, Id<Thread>)> = Vec::new();
        for (id, thread) in self.threads.iter_mut() {
            if thread.process == process {
                thread.look_at_monitor(&mut self.memory);
            }
            calm = thread.stays_so(now_ns, calm);
            files |= thread.waits_for_files();
            let ready = !thread.ended && thread.has_work(now_ns);
            if !ready {
                changed |= thread.queued.take().is_some();
            } else if thread.queued.is_none() {
                woken.push((thread.tid, id));
            }
        }
        (self.system.cpus.calm, self.system.cpus.files) = (calm, files);
        woken.sort_unstable_by_key(|&(tid, _)| tid);
        for &(_, id) in &woken {
            self.queue(id);
        }
        if changed || !woken.is_empty() || self.system.cpus_stale {
            self.system.cpus_stale = false;
            while let Some((id, cpu)) = self.overdue_move() {
                self.pull(id, cpu);
            }
            self.tell_driver();
        }
    }

    /// A thread gets in line at its CPU or a better one.
    fn queue(&mut self, id: Id<Thread>) {
        let now_ns = self.system.now_ns;
        let thread = &self.threads[id];
        let (affinity, last) = (&thread.affinity, thread.cpu_number);
        let since_ns = thread.blocked.as_ref().map_or(now_ns, |blocked| blocked.until_ns.min(now_ns));
        let ready_on = |cpu: u32| self.threads.values().filter(|t| t.queued.is_some() && t.cpu_number == cpu).count();
        let keeps = allows(affinity, last) && ready_on(last) == 0;
        let emptiest = || self.system.platform.emptiest_cpu(affinity, last, |cpu| ready_on(cpu).min(1));
        let cpu = if keeps { last } else { emptiest() };
        // Where none is free it stays.
        let cpu = if allows(affinity, last) && ready_on(cpu) > 0 { last } else { cpu };
        let turn = self.system.cpus.next_turn();
        let thread = &mut self.threads[id];
        let in_event = matches!(&thread.blocked, Some(Blocked { wait: Wait::Event(_), .. }));
        let on_core = (std::mem::take(&mut thread.event_ended_wait) || in_event) && cpu == last;
        thread.cpu_number = cpu;
        thread.queued = Some(Queued { turn, since_ns, on_core });
    }

    /// A thread that waits in line while a CPU where it may run has none that is ready, and that CPU: of the threads in the
    /// longest line that of the one that has waited longest.
    fn overdue_move(&self) -> Option<(Id<Thread>, u32)> {
        let lanes = &self.system.cpus.lanes;
        let queued = || self.threads.iter().filter_map(|(id, t)| Some((id, t, t.queued?)));
        let mut lines = vec![0_usize; lanes.len()];
        for (_, thread, _) in queued() {
            if let Some(lane) = lanes.iter().position(|lane| lane.place.cpu == thread.cpu_number) {
                lines[lane] += 1;
            }
        }
        if !lines.contains(&0) {
            return None;
        }
        let mut longest: Vec<usize> = (0..lanes.len()).filter(|&lane| lines[lane] > 1).collect();
        longest.sort_by_key(|&lane| usize::MAX - lines[lane]);
        longest.into_iter().find_map(|lane| {
            let Lane { place, tid, .. } = lanes[lane];
            let mut line: Vec<_> = queued().filter(|(_, t, _)| t.cpu_number == place.cpu).collect();
            line.sort_by_key(|(_, thread, queued)| (thread.tid != tid, queued.turn));
            // The first one runs, or is about to.
            line[1..].iter().find_map(|&(id, thread, _)| {
                let free = (0..lanes.len()).filter(|&l| lines[l] == 0 && allows(&thread.affinity, lanes[l].place.cpu));
                let nearest = free.min_by_key(|&l| (lanes[l].place.node != place.node, lanes[l].place.cpu))?;
                Some((id, lanes[nearest].place.cpu))
            })
        })
    }

    /// A thread that waits in line goes to the line of `cpu`.
    fn pull(&mut self, id: Id<Thread>, cpu: u32) {
        let (now_ns, turn) = (self.system.now_ns, self.system.cpus.next_turn());
        let thread = &mut self.threads[id];
        thread.cpu_number = cpu;
        thread.queued = Some(Queued { turn, since_ns: now_ns, on_core: false });
        // It has lost its CPU: what is between a load-exclusive and its store-exclusive is disturbed.
        thread.cpu.monitor = None;
    }

    /// What the driver is told of the CPUs.
    fn tell_driver(&mut self) {
        let cpus = &mut self.system.cpus;
        for lane in &mut cpus.lanes {
            lane.ready_ns = FOR_EVER;
        }
        for thread in self.threads.values() {
            let Some(queued) = thread.queued else { continue };
            let lane = cpus.lanes.iter_mut().find(|lane| lane.place.cpu == thread.cpu_number);
            if let Some(lane) = lane.filter(|lane| queued.since_ns < lane.ready_ns) {
                (lane.ready_ns, lane.on_core) = (queued.since_ns, queued.on_core);
            }
        }
        cpus.changes += 1;
    }

    /// Nobody is ready on any CPU: until when, or that it is for ever.
    pub fn wait(&mut self) -> Step {
        if self.end.is_some() { Step::Ended } else { self.idle() }
    }

    /// It is `now_ns`, no CPU has had anything to do, and something may be due.
    pub fn wake_due(&mut self, now_ns: u64) {
        self.account();
        self.set_now_ns(now_ns.max(self.system.now_ns));
        self.system.accounted_ns = self.system.now_ns;
        self.expire_timers();
        self.system.cpus.stir();
        self.queue_ready();
    }
}

/// What comes next at a CPU.
pub(crate) enum Turn {
    /// The thread in place goes on.
    GoOn,
    /// The driver must do something.
    Stop(Step),
}
