//! POSIX message queues (mq_overview(7)): named queues of messages with priorities.
//!
//! Behind each descriptor is an event counter of the host that has the same readiness: 0 for an empty queue, its largest value for
//! a full one, and 1 otherwise. `poll`, `select` and `epoll` therefore treat queues as all other descriptors.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};

use rustix::event::EventfdFlags;
use rustix::io::Errno;

use crate::budget::Charge;
use crate::ipc::channels::Channel;
use crate::ipc::sysv::objects::Permissions;

/// Most queues (`/proc/sys/fs/mqueue/queues_max`).
pub(crate) const QUEUES: usize = 256;
/// Most messages in a queue, and the default (`msg_max`, `msg_default`).
pub(crate) const MESSAGES: i64 = 10;
/// Most bytes of a message, and the default (`msgsize_max`, `msgsize_default`).
pub(crate) const BYTES: i64 = 8192;
/// The same for the superuser (`HARD_MSGMAX`, `HARD_MSGSIZEMAX`).
pub(crate) const PRIVILEGED: (i64, i64) = (65_536, 16 << 20);
/// One more than the highest priority (`MQ_PRIO_MAX`).
pub(crate) const PRIORITIES: u32 = 32_768;
/// Host bytes of a message in addition to its text.
pub(crate) const MESSAGE: u64 = 64;

/// Bytes of what a thread of the C library waits for (`NOTIFY_COOKIE_LEN`).
pub(crate) const COOKIE: usize = 32;

/// How a process learns that a message has arrived in an empty queue.
#[derive(Clone, Debug)]
pub(crate) enum Notice {
    /// Not at all, but nobody else may ask.
    Nothing,
    /// A signal with a value.
    Signal { signal: u32, value: u64 },
    /// A message to a socket of `AF_NETLINK`.
    Message { socket: Weak<Channel>, cookie: [u8; COOKIE] },
}

/// A process that wants to be notified once.
#[derive(Clone, Debug)]
pub(crate) struct Registration {
    pub pid: u32,
    pub notice: Notice,
}

/// A queue. It exists as long as it has a name or a descriptor.
#[derive(Debug)]
pub(crate) struct Queue {
    /// Its number, unique in the run.
    pub id: u32,
    /// Owner and rights.
    pub permissions: Permissions,
    /// Most messages.
    pub most: usize,
    /// Most bytes of each.
    pub bytes: usize,
    /// By priority, the oldest of each first.
    messages: RefCell<BTreeMap<Reverse<u32>, VecDeque<Vec<u8>>>>,
    count: Cell<usize>,
    /// Who wants to be notified.
    pub registration: RefCell<Option<Registration>>,
    /// The descriptors' counters.
    counters: RefCell<Vec<Weak<Counter>>>,
    charge: Charge,
}

/// An event counter, and what is in it.
#[derive(Debug)]
struct Counter {
    file: OwnedFd,
    value: Cell<u64>,
}

/// The value of a full counter.
const FULL: u64 = u64::MAX - 1;

impl Counter {
    fn set(&self, value: u64) {
        let before = self.value.replace(value);
        if before == value {
            return;
        }
        // Neither waits: the counter is not 0 before it is read, and is when it is written.
        if before != 0 {
            let _ = rustix::io::read(&self.file, &mut [0; 8]);
        }
        if value != 0 {
            let _ = rustix::io::write(&self.file, &value.to_ne_bytes());
        }
    }
}

/// An open queue.
#[derive(Debug)]
pub(crate) struct OpenQueue {
    pub queue: Rc<Queue>,
    /// Whether it may be read, and written.
    pub access: (bool, bool),
    counter: Rc<Counter>,
}

impl OpenQueue {
    /// Opens a queue.
    ///
    /// # Errors
    /// When the host is out of descriptors.
    pub(crate) fn new(queue: Rc<Queue>, access: (bool, bool), nonblocking: bool) -> Result<OpenQueue, Errno> {
        let mut flags = EventfdFlags::CLOEXEC;
        flags.set(EventfdFlags::NONBLOCK, nonblocking);
        let file = rustix::event::eventfd(0, flags)?;
        let counter = Rc::new(Counter { file, value: Cell::new(0) });
        let mut counters = queue.counters.borrow_mut();
        counters.retain(|counter| counter.strong_count() > 0);
        counters.push(Rc::downgrade(&counter));
        drop(counters);
        queue.show();
        Ok(OpenQueue { queue, access, counter })
    }

    /// Returns a host descriptor for a program.
    ///
    /// # Errors
    /// When the host is out of descriptors.
    pub(crate) fn host(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.counter.file, 0)
    }
}

impl Queue {
    /// Returns an empty queue of at most `most` messages of at most `bytes` bytes.
    pub(crate) fn new(id: u32, permissions: Permissions, (most, bytes): (usize, usize), charge: Charge) -> Queue {
        Queue {
            id,
            permissions,
            most,
            bytes,
            messages: RefCell::default(),
            count: Cell::new(0),
            registration: RefCell::default(),
            counters: RefCell::default(),
            charge,
        }
    }

    /// Returns the number of messages in it.
    pub(crate) fn len(&self) -> usize {
        self.count.get()
    }

    /// Returns the bytes that it may take on the host.
    pub(crate) fn cost(&self) -> u64 {
        self.charge.bytes()
    }

    /// Returns the bytes of text in it.
    pub(crate) fn text_bytes(&self) -> usize {
        self.messages.borrow().values().flatten().map(Vec::len).sum()
    }

    /// Adds a message; there must be room.
    pub(crate) fn put(&self, priority: u32, text: Vec<u8>) {
        self.messages.borrow_mut().entry(Reverse(priority)).or_default().push_back(text);
        self.count.set(self.count.get() + 1);
        self.show();
    }

    /// Takes the oldest message of the highest priority.
    pub(crate) fn take(&self) -> Option<(u32, Vec<u8>)> {
        let mut messages = self.messages.borrow_mut();
        let mut first = messages.first_entry()?;
        let priority = first.key().0;
        let text = first.get_mut().pop_front()?;
        if first.get().is_empty() {
            first.remove();
        }
        drop(messages);
        self.count.set(self.count.get() - 1);
        self.show();
        Some((priority, text))
    }

    /// Makes its descriptors readable and writable, as they are now.
    fn show(&self) {
        let value = match self.count.get() {
            0 => 0,
            count if count < self.most => 1,
            _ => FULL,
        };
        for counter in self.counters.borrow().iter().filter_map(Weak::upgrade) {
            counter.set(value);
        }
    }
}

/// The queues with names.
#[derive(Default)]
pub(crate) struct Queues {
    /// By name, without the slash.
    pub named: BTreeMap<Vec<u8>, Rc<Queue>>,
    last_id: u32,
}

impl Queues {
    /// Returns the number for a new queue.
    pub(crate) fn new_id(&mut self) -> u32 {
        self.last_id += 1;
        self.last_id
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable as _;

    use super::*;
    use crate::budget::Budget;

    fn queue() -> Rc<Queue> {
        Rc::new(Queue::new(1, Permissions::zeroed(), (2, 8), Budget::default().charge(0)))
    }

    #[test]
    fn the_highest_priority_comes_first_and_the_oldest_of_it() {
        let queue = queue();
        for (priority, text) in [(1, "a"), (5, "b"), (1, "c"), (5, "d")] {
            queue.put(priority, text.as_bytes().to_vec());
        }
        let order: String = std::iter::from_fn(|| queue.take()).map(|(_, text)| text[0] as char).collect();
        assert_eq!((order.as_str(), queue.len()), ("bdac", 0));
    }

    #[test]
    fn the_host_sees_whether_a_queue_is_empty_or_full() {
        use rustix::event::{PollFd, PollFlags, Timespec};
        let queue = queue();
        let open = OpenQueue::new(Rc::clone(&queue), (true, true), false).expect("a descriptor");
        let file = open.host().expect("a descriptor");
        let ready = || {
            let mut list = [PollFd::new(&file, PollFlags::IN | PollFlags::OUT)];
            rustix::event::poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("polled");
            (list[0].revents().contains(PollFlags::IN), list[0].revents().contains(PollFlags::OUT))
        };
        assert_eq!(ready(), (false, true));
        queue.put(0, Vec::new());
        assert_eq!(ready(), (true, true));
        queue.put(0, Vec::new());
        assert_eq!(ready(), (true, false));
        assert!(queue.take().is_some() && queue.take().is_some() && queue.take().is_none());
        assert_eq!(ready(), (false, true));
    }
}
