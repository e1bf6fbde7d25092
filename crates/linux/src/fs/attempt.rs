//! Host calls that would wait for something that `poll` cannot report. They are made without blocking, and repeated until they
//! succeed; other threads run in the meantime.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SocketAddrAny;
use rustix::pipe::{PipeFlags, SpliceFlags};

use crate::fs::files::{Files, OpenFile};
use crate::kernel::Kernel;
use crate::sched::wait::{Blocked, Wait};
use crate::thread::Thread;

/// Maximum time between two attempts while every thread waits, in ns.
pub(crate) const PAUSE_NS: u64 = 10_000_000;

/// A call to repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// Open a FIFO for reading: [`Thread::opening`] is already open, and a writer is missing.
    FifoReader,
    /// Open a FIFO for writing: [`Thread::opening`] only names it until there is a reader.
    FifoWriter,
    /// Lock a file that another open file has locked.
    Lock { fd: i32, operation: FlockOperation },
    /// Connect to a local socket whose connection queue is full.
    Connect { fd: i32, address: SocketAddrAny },
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Attempt::FifoReader => write!(f, "a writer of a FIFO"),
            Attempt::FifoWriter => write!(f, "a reader of a FIFO"),
            Attempt::Lock { fd, .. } => write!(f, "the lock of file descriptor {fd}"),
            Attempt::Connect { fd, .. } => write!(f, "the connection of file descriptor {fd}"),
        }
    }
}

impl Attempt {
    /// Makes an attempt. Returns whether the system call has a result now; making it again returns that result.
    fn succeeds(&self, files: &Files, opening: &mut Option<OpenFile>) -> bool {
        match self {
            Attempt::FifoReader => opening.as_ref().is_none_or(|file| has_writer(file.host.as_fd())),
            Attempt::FifoWriter => opening.as_mut().is_none_or(open_for_writing),
            Attempt::Lock { fd, operation } => {
                files.host(*fd).and_then(|file| rustix::fs::flock(file, *operation)) != Err(Errno::AGAIN)
            }
            Attempt::Connect { fd, address } => {
                files.host(*fd).and_then(|socket| connect(socket, address)) != Err(Errno::AGAIN)
            }
        }
    }
}

/// Returns whether a writer has opened the FIFO since it was opened for reading.
pub(crate) fn has_writer(fifo: BorrowedFd<'_>) -> bool {
    let mut list = [PollFd::from_borrowed_fd(fifo, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    // A writer has written something, or has already closed it.
    if rustix::event::poll(&mut list, Some(&now)).is_ok_and(|ready| ready > 0) {
        return true;
    }
    // `tee` from an empty FIFO returns 0 without a writer, `EAGAIN` with one.
    let Ok((_reader, writer)) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC) else { return false };
    matches!(rustix::pipe::tee(fifo, &writer, 1, SpliceFlags::NONBLOCK), Err(Errno::AGAIN) | Ok(1))
}

/// Opens the FIFO that `file` names for writing and replaces `file` by it. `false`: it has no reader.
fn open_for_writing(file: &mut OpenFile) -> bool {
    let name = format!("/proc/self/fd/{}", file.host.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match rustix::fs::open(name, flags, Mode::empty()) {
        Ok(host) => {
            *file = OpenFile::new(host, file.origin.clone());
            true
        }
        // `ENXIO`: there is no reader yet.
        Err(_) => false,
    }
}

/// Starts to connect a socket, without blocking.
pub(crate) fn connect(socket: BorrowedFd<'_>, address: &SocketAddrAny) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(socket)?;
    // The socket belongs to the program; nobody else sees the changed flags.
    rustix::fs::fcntl_setfl(socket, flags | OFlags::NONBLOCK)?;
    let result = rustix::net::connect(socket, address);
    rustix::fs::fcntl_setfl(socket, flags)?;
    result
}

impl Thread {
    fn attempt(&self) -> Option<&Attempt> {
        match &self.blocked.as_ref()?.wait {
            Wait::Attempt(attempt) => Some(attempt),
            _ => None,
        }
    }
}

impl Kernel<'_> {
    /// Blocks the thread until an attempt succeeds.
    pub(crate) fn try_later(&mut self, attempt: Attempt) {
        self.block(Blocked { restart: true, ..Blocked::new(Wait::Attempt(attempt)) });
    }
}

/// Returns whether any thread waits for an attempt to succeed.
pub(crate) fn any(k: &Kernel<'_>) -> bool {
    k.all_threads().any(|thread| thread.attempt().is_some())
}

/// Repeats all attempts and marks the threads whose calls have a result. Returns whether there are any.
pub(crate) fn make_all(k: &mut Kernel<'_>) -> bool {
    let Kernel { thread, process, other_threads, other_processes, .. } = k;
    let mut found = false;
    for thread in other_threads.iter_mut().chain([&mut **thread]) {
        let Some(attempt) = thread.attempt().cloned() else { continue };
        let mut processes = std::iter::once(&**process).chain(other_processes.iter());
        let Some(process) = processes.find(|process| process.pid == thread.pid) else { continue };
        let succeeds = attempt.succeeds(&process.files, &mut thread.opening);
        thread.poked |= succeeds;
        found |= succeeds;
    }
    found
}
