//! Waits of threads. A system call that has to wait leaves a [`Blocked`] in its thread and writes no result. The scheduler then
//! runs other threads. How the call continues depends on the kind of wait: a thread that wakes a futex completes the waiter's
//! call; every other call is repeated with its original registers as soon as it may have a result.

use fxscope_aarch64::cpu::Monitor;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::abi::time::Time;
use crate::fs::attempt::Attempt;
use crate::fs::locks::WantedLock;
use crate::fs::poll::Interest;
use crate::ipc::futex::Key;
use crate::kernel::Kernel;
use crate::signal::flags;
use crate::thread::Thread;

/// No time limit.
pub(crate) const FOR_EVER: u64 = u64::MAX;

/// An object for whose changes threads wait, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum IpcObject {
    /// A set of semaphores.
    Semaphores(u32),
    /// A System V message queue.
    Messages(u32),
    /// A POSIX message queue.
    PosixQueue(u32),
}

impl std::fmt::Display for IpcObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IpcObject::Semaphores(id) => write!(f, "the set of semaphores {id}"),
            IpcObject::Messages(id) | IpcObject::PosixQueue(id) => write!(f, "the message queue {id}"),
        }
    }
}

/// What a thread waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Wait {
    /// A wake-up of the futex whose bits overlap `bitset`.
    Futex {
        /// The futex.
        key: Key,
        /// Its address, for messages.
        address: u64,
        /// A wake-up must have one of these bits.
        bitset: u32,
        /// The waker hands over a priority-inheritance lock instead of only waking.
        lock: bool,
    },
    /// The time limit.
    Sleep {
        /// Where to write the remaining time after an interruption, or 0.
        remaining: u64,
    },
    /// One of the signals in this mask, including blocked ones; 0: any that is not blocked.
    Signal(u64),
    /// One of these descriptors.
    Files(#[serde(with = "crate::fs::poll::interests")] Vec<Interest>),
    /// A change of a System V object or a POSIX message queue.
    Ipc {
        /// The object.
        object: IpcObject,
        /// The semaphore of a set, and whether it must become 0.
        semaphore: Option<(u16, bool)>,
    },
    /// An event (`WFE`), and the state of the monitor.
    Event(Option<Monitor>),
    /// The end of a child; with `vfork`, that child's end or `execve`. The parent cannot be interrupted in this case.
    Child {
        /// The child that uses this process's memory.
        vfork: Option<u32>,
    },
    // What no snapshot holds comes last: variants are read by their number among those that are kept.
    /// A host call to repeat.
    #[serde(skip)]
    Attempt(Attempt),
    /// A record lock that another process or open file has.
    #[serde(skip)]
    Lock(WantedLock),
}

impl Wait {
    /// Returns whether the system call is repeated when it may have a result.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(
            self,
            Wait::Signal(_)
                | Wait::Files(_)
                | Wait::Attempt(_)
                | Wait::Lock(_)
                | Wait::Ipc { .. }
                | Wait::Child { vfork: None }
        )
    }

    /// Returns the signals that end the wait although they are blocked.
    pub(crate) fn signals(&self) -> u64 {
        match self {
            Wait::Signal(mask) => *mask,
            _ => 0,
        }
    }
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wait::Futex { address, .. } => write!(f, "the futex at {address:#x}"),
            Wait::Sleep { .. } => write!(f, "the end of a sleep"),
            Wait::Signal(_) => write!(f, "a signal"),
            Wait::Event(_) => write!(f, "an event (WFE)"),
            Wait::Lock(_) => write!(f, "a record lock"),
            Wait::Attempt(attempt) => write!(f, "{attempt}"),
            Wait::Ipc { object, .. } => write!(f, "{object}"),
            Wait::Files(list) if list.is_empty() => write!(f, "a signal"),
            Wait::Files(list) => {
                let numbers: Vec<String> = list.iter().map(|(fd, _)| fd.to_string()).collect();
                write!(f, "file descriptor {}", numbers.join(", "))
            }
            Wait::Child { vfork: None } => write!(f, "the end of a child process"),
            Wait::Child { vfork: Some(pid) } => write!(f, "process {pid}, which uses its memory"),
        }
    }
}

/// The state of a thread that waits in a system call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Blocked {
    /// What it waits for.
    pub wait: Wait,
    /// Simulated time in ns at which it gives up; [`FOR_EVER`].
    pub until_ns: u64,
    /// Whether the call is repeated after a handler with `SA_RESTART`; otherwise it fails with `EINTR`.
    pub restart: bool,
    /// Bytes that the call has already transferred.
    pub progress: u64,
    /// The position of the wait in the order of all waits.
    pub since: u64,
}

/// What a repeated system call keeps from its first attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resumed {
    /// The time limit of the first attempt.
    pub until_ns: u64,
    /// Bytes transferred so far.
    pub progress: u64,
}

impl Blocked {
    /// Returns a wait without a time limit that fails with `EINTR` when a signal arrives.
    pub(crate) fn new(wait: Wait) -> Blocked {
        Blocked { wait, until_ns: FOR_EVER, restart: false, progress: 0, since: 0 }
    }
}

impl Thread {
    /// Returns the time limit of the current system call: `limit` in ns, or that of the first attempt if the call is repeated.
    pub(crate) fn time_limit(&self, limit: u64) -> u64 {
        self.resumed.map_or(limit, |r| r.until_ns)
    }

    /// Returns whether it waits for a change of this object.
    pub(crate) fn waits_for_object(&self, wanted: IpcObject) -> bool {
        let wait = self.blocked.as_ref().map(|blocked| &blocked.wait);
        matches!(wait, Some(Wait::Ipc { object, .. }) if *object == wanted)
    }

    /// Ends the system call in which it is blocked, with `result` in `x0`.
    pub(crate) fn finish_call(&mut self, result: i64) {
        self.blocked = None;
        self.cpu.set_x(0, result as u64);
    }
}

impl Kernel<'_> {
    /// Blocks the thread.
    pub(crate) fn block(&mut self, blocked: Blocked) {
        let system = &mut *self.system;
        system.next_event_ns = system.next_event_ns.min(blocked.until_ns);
        system.waits += 1;
        self.thread.uses.waits += u64::from(!matches!(blocked.wait, Wait::Event(_)));
        self.thread.blocked = Some(Blocked { since: system.waits, ..blocked });
    }

    /// Interrupts the system call in which the thread is blocked, if any, because a handler with these flags is about to run.
    pub(crate) fn interrupt_call(&mut self, handler_flags: u64) {
        let thread = &mut *self.thread;
        let Some(blocked) = thread.blocked.take() else { return };
        thread.opening = None;
        if matches!(blocked.wait, Wait::Event(_)) {
            return;
        }
        if blocked.progress > 0 {
            thread.cpu.set_x(0, blocked.progress);
            return;
        }
        if blocked.restart && handler_flags & flags::RESTART != 0 {
            // The call is repeated when the handler returns.
            thread.cpu.pc = thread.cpu.pc.wrapping_sub(4);
            return;
        }
        if let Wait::Sleep { remaining: address @ 1.. } = blocked.wait {
            let left = Time::from_ns(blocked.until_ns.saturating_sub(self.system.now_ns));
            // The call reports a bad pointer only when it ends by itself.
            let _ = self.mem.store(address, left);
        }
        thread.cpu.set_x(0, i64::from(Errno::INTR.raw_os_error()).wrapping_neg() as u64);
    }
}
