//! Performance events (`perf_event_open(2)`): what threads have counted while an event was enabled.
//!
//! The counters of a thread only grow, and only while it runs. An event therefore remembers what they were when it was enabled. What
//! the machine's PMU counts comes from the driver of a timed run ([`Guest::set_counts`]), before each system call of a run with
//! events; instructions, times and switches the guest counts itself.
//!
//! Events that sample, and those that note mappings and names, write records to buffers that programs map.

pub(crate) mod records;
pub(crate) mod ring;
pub(crate) mod sampling;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

use fxscope_aarch64::Cpu;
use serde::{Deserialize, Serialize};

use crate::fs::objects::{Level, Object};
use crate::guest::Guest;
use crate::kernel::Kernel;
use crate::thread::Thread;
use ring::Ring;
use sampling::{Attributes, Progress};

/// The number of the system call that opens an event.
const PERF_EVENT_OPEN: u64 = 241;

/// Threads of an event that have ended, from which on their counts are added up although those of the machine may be old.
const MOST_ENDED: usize = 4096;

/// Number of the event that counts instructions (`INST_RETIRED`, Arm ARM D11.11.3).
pub(crate) const INSTRUCTIONS: u16 = 0x0008;

/// The type of the machine's PMU, as its folder in `/sys` says.
pub(crate) const PMU_TYPE: u32 = 8;

/// An event that the machine's PMU counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PmuEvent {
    /// Its number.
    pub number: u16,
    /// Its name, such as `CPU_CYCLES`.
    pub name: String,
}

/// What a thread has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ThreadUse {
    /// Time on a CPU, in ns.
    pub cpu_ns: u64,
    pub instructions: u64,
    /// How often it has moved to another CPU.
    pub migrations: u64,
    /// Pages that it touched first.
    pub faults: u64,
    /// How often it has waited in a system call.
    pub waits: u64,
    /// How often another thread has run after it although it could have continued.
    pub preemptions: u64,
}

/// What an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The event with this index among those of the machine's PMU.
    Pmu(usize),
    Instructions,
    CpuTime,
    Switches,
    Migrations,
    Faults,
    /// Something that does not happen here.
    Nothing,
}

impl Source {
    /// Returns the index of an event of the machine's PMU.
    fn pmu(self) -> Option<usize> {
        match self {
            Source::Pmu(index) => Some(index),
            _ => None,
        }
    }
}

/// Values of a counter and of time at one moment.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    count: u64,
    ns: u64,
}

impl Reading {
    fn since(self, before: Reading) -> Reading {
        Reading { count: self.count.saturating_sub(before.count), ns: self.ns.saturating_sub(before.ns) }
    }
}

/// A thread for which an event counts.
#[derive(Clone, Copy, Debug, Default)]
struct Member {
    before: Reading,
    /// What it had used when it ended.
    ended: Option<ThreadUse>,
    progress: Progress,
}

/// The state of an event.
#[derive(Debug, Default)]
struct State {
    enabled: bool,
    enable_on_exec: bool,
    /// Whether it counts: it is enabled, and so is the leader of its group.
    counts: bool,
    members: BTreeMap<u32, Member>,
    total: Reading,
}

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    /// It is readable when its buffer has records to be read.
    pub level: Level,
    pub id: u64,
    pub source: Source,
    /// `read_format`.
    pub format: u64,
    /// Whether threads and processes that its threads start belong to it.
    pub inherit: bool,
    /// The only CPU on which it counts.
    pub cpu: Option<u32>,
    /// The thread that opened it.
    pub owner: u32,
    /// What it writes to its buffer.
    pub attributes: Attributes,
    /// The count from one sample to the next; 0: no samples.
    pub period: Cell<u64>,
    /// Samples after which it is disabled.
    pub limit: Cell<Option<u64>>,
    /// Its buffer: its own or that of another event.
    pub ring: RefCell<Option<Rc<Ring>>>,
    leader: Option<Weak<Event>>,
    followers: RefCell<Vec<Weak<Event>>>,
    state: RefCell<State>,
}

/// How an event starts.
#[derive(Clone, Copy)]
pub(crate) struct Start {
    pub enabled: bool,
    pub enable_on_exec: bool,
    /// The thread for which it counts.
    pub thread: u32,
}

/// What a new event is.
pub(crate) struct Kind {
    pub source: Source,
    pub format: u64,
    pub inherit: bool,
    pub cpu: Option<u32>,
    pub attributes: Attributes,
}

impl Event {
    /// Returns a new event in the group of `leader`. It does not count before [`Event::follow`].
    pub(crate) fn new(
        level: Level,
        id: u64,
        owner: u32,
        Kind { source, format, inherit, cpu, attributes }: Kind,
        leader: Option<&Rc<Event>>,
        start: Start,
    ) -> Rc<Event> {
        let members = BTreeMap::from([(start.thread, Member::default())]);
        let state = State { enabled: start.enabled, enable_on_exec: start.enable_on_exec, members, ..State::default() };
        let event = Rc::new(Event {
            level,
            id,
            source,
            format,
            inherit,
            cpu,
            owner,
            attributes,
            period: Cell::new(attributes.period),
            limit: Cell::new(None),
            ring: RefCell::default(),
            leader: leader.map(Rc::downgrade),
            followers: RefCell::default(),
            state: RefCell::new(state),
        });
        if let Some(leader) = leader {
            let mut followers = leader.followers.borrow_mut();
            followers.retain(|follower| follower.strong_count() > 0);
            followers.push(Rc::downgrade(&event));
        }
        event
    }

    fn leader(&self) -> Option<Rc<Event>> {
        self.leader.as_ref().and_then(Weak::upgrade)
    }

    /// Returns whether it is in the group of another event.
    pub(crate) fn follows(&self) -> bool {
        self.leader().is_some()
    }

    /// Returns the events that it leads.
    pub(crate) fn followers(&self) -> Vec<Rc<Event>> {
        self.followers.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    /// Enables or disables it.
    pub(crate) fn enable(&self, uses: &Uses<'_>, enabled: bool) {
        self.state.borrow_mut().enabled = enabled;
        self.follow(uses);
        for follower in self.followers() {
            follower.follow(uses);
        }
    }

    /// Begins or ends to count as its state and that of its leader require.
    pub(crate) fn follow(&self, uses: &Uses<'_>) {
        let leads = self.leader().is_none_or(|leader| leader.state.borrow().enabled);
        self.update(uses);
        let State { enabled, counts, members, .. } = &mut *self.state.borrow_mut();
        let counted = std::mem::replace(counts, *enabled && leads);
        if *counts && !counted {
            members.values_mut().for_each(|member| member.progress.restart(member.before.count));
        }
    }

    /// Returns whether it is enabled itself; the leader of its group may not be.
    fn is_enabled(&self) -> bool {
        self.state.borrow().enabled
    }

    /// Returns whether all threads for which it has counted have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.state.borrow().members.values().all(|member| member.ended.is_some())
    }

    /// Adds what its threads have counted since the last update, and forgets those that have ended.
    fn update(&self, uses: &Uses<'_>) {
        let State { members, total, counts, .. } = &mut *self.state.borrow_mut();
        members.retain(|&thread, member| {
            let now = uses.reading(self, thread, member.ended);
            // For one CPU only: the time since the last update belongs to the CPU on which the thread is now.
            if *counts && uses.is_on(thread, self.cpu) {
                let new = now.since(member.before);
                total.count += new.count;
                total.ns += new.ns;
            }
            member.before = now;
            member.ended.is_none()
        });
    }

    /// Returns the count and the time for which it was enabled, in ns.
    pub(crate) fn value(&self, uses: &Uses<'_>) -> (u64, u64) {
        self.update(uses);
        let total = self.state.borrow().total;
        (total.count, total.ns)
    }

    /// Sets the count to 0; the time continues.
    pub(crate) fn reset(&self, uses: &Uses<'_>) {
        self.update(uses);
        self.state.borrow_mut().total.count = 0;
    }

    fn has(&self, thread: u32) -> bool {
        self.state.borrow().members.contains_key(&thread)
    }
}

/// What all threads have used and counted until now.
pub(crate) struct Uses<'a> {
    threads: BTreeMap<u32, (ThreadUse, u32)>,
    counts: &'a BTreeMap<u32, Vec<u64>>,
}

impl Uses<'_> {
    /// Returns whether a thread is on this CPU, or was when it ended; `None`: any CPU.
    fn is_on(&self, thread: u32, wanted: Option<u32>) -> bool {
        let cpu = self.threads.get(&thread).map(|&(_, cpu)| cpu);
        wanted.is_none_or(|wanted| cpu.is_none_or(|cpu| cpu == wanted))
    }

    /// Returns the values of an event's counter, and of its time, for a thread; `ended` is what that had used at its end.
    fn reading(&self, event: &Event, thread: u32, ended: Option<ThreadUse>) -> Reading {
        let live = self.threads.get(&thread);
        let Some(uses) = ended.or(live.map(|(uses, _)| *uses)) else { return Reading::default() };
        let count = match event.source {
            Source::Pmu(index) => self.counts.get(&thread).and_then(|counts| counts.get(index)).copied().unwrap_or(0),
            other => Uses::own(other, &uses),
        };
        Reading { count, ns: uses.cpu_ns }
    }

    /// Returns the value of a counter that the guest has itself.
    fn own(source: Source, uses: &ThreadUse) -> u64 {
        match source {
            Source::Instructions => uses.instructions,
            Source::CpuTime => uses.cpu_ns,
            // Also where no other thread follows: its CPU is idle then.
            Source::Switches => uses.waits + uses.preemptions,
            Source::Migrations => uses.migrations,
            Source::Faults => uses.faults,
            Source::Pmu(_) | Source::Nothing => 0,
        }
    }
}

impl Thread {
    /// Returns what it has used; `running_ns` is the time since it was accounted for, if it is the running one.
    fn used(&self, running_ns: u64) -> ThreadUse {
        ThreadUse { cpu_ns: self.cpu_ns + running_ns, ..self.uses }
    }
}

impl Kernel<'_> {
    /// Returns what all threads have used until now.
    pub(crate) fn uses(&self) -> Uses<'_> {
        let running_ns = self.system.running_ns();
        let entry = |thread: &Thread| {
            let running_ns = if thread.tid == self.thread.tid { running_ns } else { 0 };
            (thread.tid, (thread.used(running_ns), thread.cpu_number()))
        };
        Uses { threads: self.all_threads().map(entry).collect(), counts: &self.system.counts }
    }

    /// Returns the open events.
    pub(crate) fn events(&self) -> Vec<Rc<Event>> {
        self.system.objects.events()
    }

    /// Lets events of the running thread count for a thread that it starts, in process `pid`.
    pub(crate) fn inherit_events(&mut self, pid: u32, child: u32) {
        for event in self.events().iter().filter(|event| event.inherit && event.has(self.thread.tid)) {
            event.state.borrow_mut().members.insert(child, Member::default());
        }
        self.sampling_changed();
        self.note_start(pid, child);
    }

    /// Enables the events that wait for the program that the running thread has just executed.
    pub(crate) fn enable_events_on_exec(&mut self) {
        let events = self.events();
        if events.is_empty() {
            return;
        }
        let uses = self.uses();
        for event in events.iter().filter(|event| event.has(self.thread.tid)) {
            if std::mem::take(&mut event.state.borrow_mut().enable_on_exec) {
                event.enable(&uses, true);
            }
        }
        self.sampling_changed();
    }

    /// Notes the end of a thread for the events that count for it.
    pub(crate) fn end_events_of(&mut self, thread: &Thread) {
        self.note_end(thread);
        for event in self.events().iter().filter(|event| event.has(thread.tid)) {
            let state = &mut *event.state.borrow_mut();
            if let Some(member) = state.members.get_mut(&thread.tid) {
                member.ended = Some(thread.used(0));
            }
            if state.members.len() > MOST_ENDED {
                state.members.retain(|_, member| member.ended.is_none());
            }
        }
    }
}

impl Guest {
    /// Returns whether the system call that the running thread makes may need what the machine's PMU counts.
    #[inline]
    #[must_use]
    pub fn wants_counts(&self) -> bool {
        self.system.objects.have_events() || is_opening(self.cpu())
    }

    /// Sets what the machine's PMU has counted so far: for each thread, by its number, the values of all events of the platform, in
    /// the same order.
    pub fn set_counts(&mut self, counts: BTreeMap<u32, Vec<u64>>) {
        self.system.counts = counts;
    }

    /// Returns the events that the machine's PMU counts.
    #[must_use]
    pub fn pmu_events(&self) -> &[PmuEvent] {
        &self.system.platform.pmu
    }
}

fn is_opening(cpu: &Cpu) -> bool {
    cpu.x(8) == PERF_EVENT_OPEN
}

impl Object {
    /// Returns the event that a descriptor is for.
    pub(crate) fn event(&self) -> Option<&Rc<Event>> {
        match self {
            Object::Event(event) => Some(event),
            _ => None,
        }
    }
}
