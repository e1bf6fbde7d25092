//! Objects behind descriptors that the simulator implements itself: timers, queues of signals, references to processes.
//!
//! Behind the descriptors of each is an event counter of the host, which is readable exactly while the object is. `poll`, `select`
//! and `epoll` therefore treat them as all other descriptors. Programs never read or write that counter: `read` and `write` look at
//! the object first.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};

use rustix::event::EventfdFlags;
use rustix::io::Errno;

use crate::fs::epoll::Members;
use crate::fs::pty::End;
use crate::ipc::channels::Channel;
use crate::ipc::mqueue::OpenQueue;
use crate::kernel::Kernel;
use crate::perf::Event;
use crate::sched::timers::Timer;
use crate::sched::wait::FOR_EVER;
use crate::signal::{self, SigInfo};
use crate::thread::Thread;

/// What a descriptor stands for.
#[derive(Debug)]
pub(crate) enum Object {
    /// An object of the host.
    Host,
    /// An event counter, which the host has (`eventfd2`).
    Counter {
        /// Each read takes 1 (`EFD_SEMAPHORE`).
        semaphore: bool,
    },
    /// An `epoll` instance, which the host has.
    Epoll(Members),
    /// A timer (`timerfd_create`).
    Timer(TimerFile),
    /// The pending signals of the thread that reads it (`signalfd4`).
    Signals(SignalFile),
    /// A process (`pidfd_open`).
    Process(ProcessFile),
    /// An end of a pseudoterminal.
    Pty(End),
    /// A performance event (`perf_event_open`).
    Event(Rc<Event>),
    /// A POSIX message queue (`mq_open`).
    Messages(OpenQueue),
}

impl Object {
    /// Returns the name by which Linux shows such a descriptor in `/proc/PID/fd`; `None`: that of the host's file.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Object::Host | Object::Counter { .. } | Object::Epoll(_) | Object::Messages(_) => None,
            Object::Timer(_) => Some("anon_inode:[timerfd]"),
            Object::Signals(_) => Some("anon_inode:[signalfd]"),
            Object::Process(_) => Some("anon_inode:[pidfd]"),
            Object::Event(_) => Some("anon_inode:[perf_event]"),
            Object::Pty(end) => Some(if end.is_master { "/dev/ptmx" } else { "/dev/pts" }),
        }
    }

    /// Returns whether it can never be written.
    pub(crate) fn is_only_read(&self) -> bool {
        self.is_simulated() && !matches!(self, Object::Pty(_) | Object::Messages(_))
    }

    /// Returns whether the simulator implements it.
    pub(crate) fn is_simulated(&self) -> bool {
        !matches!(self, Object::Host | Object::Counter { .. } | Object::Epoll(_))
    }

    /// Returns the members, if it is an `epoll` instance.
    pub(crate) fn members(&self) -> Option<&Members> {
        match self {
            Object::Epoll(members) => Some(members),
            _ => None,
        }
    }

    fn level(&self) -> Option<&Level> {
        match self {
            Object::Host | Object::Counter { .. } | Object::Epoll(_) | Object::Messages(_) => None,
            Object::Timer(timer) => Some(&timer.level),
            Object::Signals(signals) => Some(&signals.level),
            Object::Process(process) => Some(&process.level),
            Object::Pty(end) => Some(end.level()),
            Object::Event(event) => Some(&event.level),
        }
    }
}

/// Whether an object is readable, as the host's `poll` sees it.
#[derive(Debug)]
pub(crate) struct Level {
    counter: OwnedFd,
    high: Cell<bool>,
}

impl Level {
    /// Returns a level for an object that is not readable.
    ///
    /// # Errors
    /// When the host is out of descriptors.
    pub(crate) fn new(nonblocking: bool) -> Result<Level, Errno> {
        let mut flags = EventfdFlags::CLOEXEC;
        flags.set(EventfdFlags::NONBLOCK, nonblocking);
        Ok(Level { counter: rustix::event::eventfd(0, flags)?, high: Cell::new(false) })
    }

    /// Returns a level for an object with the host descriptor `counter`, which is a new event counter.
    pub(crate) fn of(counter: OwnedFd, high: bool) -> Level {
        let level = Level { counter, high: Cell::new(false) };
        level.set(high);
        level
    }

    /// Returns whether it is readable.
    pub(crate) fn is_high(&self) -> bool {
        self.high.get()
    }

    /// Returns a host descriptor for a program.
    ///
    /// # Errors
    /// When the host is out of descriptors.
    pub(crate) fn host(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.counter, 0)
    }

    /// Makes it readable, which is a new event for edge-triggered `epoll` even if it was.
    pub(crate) fn raise(&self) {
        // The counter is far from its limit: only this module changes it.
        let _ = rustix::io::write(&self.counter, &1u64.to_ne_bytes());
        self.high.set(true);
    }

    /// Makes it unreadable.
    pub(crate) fn lower(&self) {
        if self.high.replace(false) {
            // The counter is not 0, so that this does not wait.
            let _ = rustix::io::read(&self.counter, &mut [0; 8]);
        }
    }

    /// Makes it readable or not.
    pub(crate) fn set(&self, high: bool) {
        match (self.high.get(), high) {
            (false, true) => self.raise(),
            (true, false) => self.lower(),
            _ => {}
        }
    }
}

/// A timer with a descriptor.
#[derive(Debug)]
pub(crate) struct TimerFile {
    pub level: Level,
    pub timer: Cell<Timer>,
    /// Number of expirations since it was last read or set.
    pub expirations: Cell<u64>,
}

impl TimerFile {
    /// Expires it, if it is due at simulated time `now_ns`. Returns whether it was.
    pub(crate) fn tick(&self, now_ns: u64) -> bool {
        let mut timer = self.timer.get();
        let expirations = timer.expire(now_ns);
        if expirations > 0 {
            self.timer.set(timer);
            self.expirations.set(self.expirations.get().saturating_add(expirations));
            self.level.raise();
        }
        expirations > 0
    }
}

/// A descriptor from which signals are read.
#[derive(Debug)]
pub(crate) struct SignalFile {
    pub level: Level,
    /// The signals, as a mask.
    pub mask: Cell<u64>,
}

/// A descriptor that refers to a process. It is readable once that has ended.
#[derive(Debug)]
pub(crate) struct ProcessFile {
    pub level: Level,
    pub pid: u32,
}

/// The objects of a run, as long as they are open.
#[derive(Default)]
pub(crate) struct Objects(Vec<Weak<Channel>>);

impl Objects {
    pub(crate) fn add(&mut self, channel: &Rc<Channel>) {
        self.0.retain(|channel| channel.strong_count() > 0);
        self.0.push(Rc::downgrade(channel));
    }

    fn all(&self) -> impl Iterator<Item = Rc<Channel>> {
        self.0.iter().filter_map(Weak::upgrade)
    }

    /// Returns the simulated time in ns at which the next timer expires, or [`FOR_EVER`].
    pub(crate) fn next_timer(&self) -> u64 {
        let times = self.all().filter_map(|channel| match &channel.object {
            Object::Timer(timer) => Some(timer.timer.get().at_ns),
            _ => None,
        });
        times.min().unwrap_or(FOR_EVER)
    }

    /// Expires the timers that are due. Returns whether there were any.
    pub(crate) fn tick(&self, now_ns: u64) -> bool {
        let mut any = false;
        for channel in self.all() {
            if let Object::Timer(timer) = &channel.object {
                any |= timer.tick(now_ns);
            }
        }
        any
    }

    /// Notes the end of a process.
    pub(crate) fn process_ended(&self, pid: u32) {
        for channel in self.all() {
            if let Object::Process(process) = &channel.object
                && process.pid == pid
            {
                process.level.set(true);
            }
        }
    }

    /// Returns whether there are performance events.
    pub(crate) fn have_events(&self) -> bool {
        !self.0.is_empty() && self.all().any(|channel| channel.object.event().is_some())
    }

    /// Returns the performance events.
    pub(crate) fn events(&self) -> Vec<Rc<Event>> {
        self.all().filter_map(|channel| channel.object.event().cloned()).collect()
    }

    /// Returns whether there are queues of signals.
    pub(crate) fn have_signals(&self) -> bool {
        self.all().any(|channel| matches!(channel.object, Object::Signals(_)))
    }

    /// Makes queues of signals readable if they have one of `pending`, and unreadable otherwise.
    pub(crate) fn show_signals(&self, pending: u64) {
        for channel in self.all() {
            if let Object::Signals(signals) = &channel.object {
                signals.level.set(pending & signals.mask.get() != 0);
            }
        }
    }
}

/// Returns the signals of a list as a mask.
pub(crate) fn mask_of(pending: &[SigInfo]) -> u64 {
    pending.iter().fold(0, |mask, info| mask | signal::bit(info.signal))
}

impl Kernel<'_> {
    /// Makes queues of signals readable or not, as the running thread sees them: each reader has its own pending signals.
    pub(crate) fn show_own_signals(&self) {
        if self.system.objects.have_signals() {
            self.system.objects.show_signals(self.pending_of(self.thread));
        }
    }

    /// Returns the signals that are pending for a thread or its process, as a mask.
    pub(crate) fn pending_of(&self, thread: &Thread) -> u64 {
        let process = self.all_processes().find(|process| process.pid == thread.pid);
        mask_of(&thread.pending) | process.map_or(0, |process| mask_of(&process.pending))
    }

    /// Returns a new object with the host descriptor for its first descriptor.
    ///
    /// # Errors
    /// `ENOMEM`; when the host is out of descriptors.
    pub(crate) fn new_object(&mut self, object: Object, bytes: u64) -> Result<(OwnedFd, Rc<Channel>), Errno> {
        self.afford(bytes)?;
        let host = match &object {
            Object::Messages(open) => open.host()?,
            other => other.level().ok_or(Errno::INVAL)?.host()?,
        };
        let channel = Rc::new(Channel { object, ..Channel::new(self.system.budget.charge(bytes), true) });
        self.system.objects.add(&channel);
        Ok((host, channel))
    }
}
