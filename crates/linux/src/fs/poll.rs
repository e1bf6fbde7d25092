//! Waiting for host files. No host call may block: a thread waits until the host reports its descriptors as ready, and the others
//! continue. Only when every thread waits does the simulator wait, too.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::fs::attempt;
use crate::fs::epoll::Members;
use crate::fs::files::Files;
use crate::fs::objects::Object;
use crate::kernel::Kernel;
use crate::net::socket::Socket;
use crate::sched::wait::Wait;
use crate::thread::Thread;

/// Maximum wait on the host before the driver decides again whether to continue.
pub(crate) const SLICE_NS: u64 = 100_000_000;

/// A descriptor and the events of interest.
pub(crate) type Interest = (i32, PollFlags);

/// Serialises interests.
pub(crate) mod interests {
    use rustix::event::PollFlags;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Interest;

    pub(crate) fn serialize<S: Serializer>(interests: &[Interest], serializer: S) -> Result<S::Ok, S::Error> {
        interests.iter().map(|&(fd, events)| (fd, events.bits())).collect::<Vec<_>>().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Interest>, D::Error> {
        let interests = Vec::<(i32, u16)>::deserialize(deserializer)?;
        Ok(interests.into_iter().map(|(fd, events)| (fd, PollFlags::from_bits_retain(events))).collect())
    }
}

/// Polls the host for these descriptors, without blocking. Sockets with an error that the host does not know of have it.
///
/// # Errors
/// `EBADF` when one is not open; the host's.
pub(crate) fn ready(files: &Files, interests: &[Interest]) -> Result<Vec<PollFlags>, Errno> {
    let mut list = Vec::with_capacity(interests.len());
    for &(fd, events) in interests {
        list.push(poll_entry(files, fd, events)?);
    }
    poll(&mut list, 0)?;
    let events = list.iter().map(PollFd::revents).zip(interests);
    Ok(events.map(|(events, &interest)| events | own_events(files, interest)).collect())
}

/// Returns the events of a descriptor that the host does not know of: an error that the next call on a socket of the run's own network
/// reports, also of one in an `epoll` instance, and the end of all threads for which a performance event counts.
fn own_events(files: &Files, (fd, wanted): Interest) -> PollFlags {
    let Some(channel) = files.channel(fd) else { return PollFlags::empty() };
    let mut events = PollFlags::empty();
    events.set(PollFlags::ERR, channel.socket.as_ref().is_some_and(Socket::has_error));
    let shown = channel.object.members().is_some_and(Members::have_events);
    events.set(PollFlags::IN, wanted.contains(PollFlags::IN) && shown);
    events.set(PollFlags::HUP, channel.object.event().is_some_and(|event| event.is_over()));
    events
}

/// Returns the events of an object that the simulator implements: it can never be written.
pub(crate) const fn of_object(events: PollFlags) -> PollFlags {
    events.difference(PollFlags::OUT.union(PollFlags::WRNORM).union(PollFlags::WRBAND))
}

fn poll_entry(files: &Files, fd: i32, events: PollFlags) -> Result<PollFd<'_>, Errno> {
    let events = if files.object(fd).is_some_and(Object::is_only_read) { of_object(events) } else { events };
    Ok(PollFd::from_borrowed_fd(files.host(fd)?, events))
}

fn poll(list: &mut [PollFd<'_>], ns: u64) -> Result<usize, Errno> {
    let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    match rustix::event::poll(list, Some(&timeout)) {
        // A signal to the simulator interrupted the call: nothing is ready yet.
        Err(Errno::INTR) => Ok(0),
        result => result,
    }
}

impl Kernel<'_> {
    /// Returns whether any thread waits for descriptors that may have become ready since they were last looked at.
    pub(crate) fn files_are_waited_for(&self) -> bool {
        !self.system.cpus.no_file_is_ready(self.system.now_ns) && self.all_threads().any(Thread::waits_for_files)
    }

    /// Returns the open files of a thread's process.
    fn files_of(&self, thread: &Thread) -> Option<&Files> {
        self.all_processes().find(|process| process.pid == thread.pid).map(|process| &process.files)
    }
}

/// Marks the threads whose descriptors are ready, or whose attempts succeed. With `patience_ns`, waits that long on the host, at
/// most [`SLICE_NS`], and less when there are attempts to repeat. Returns whether any thread was marked.
pub(crate) fn poke_ready(k: &mut Kernel<'_>, patience_ns: u64) -> bool {
    if !attempt::any(k) {
        return poke_polled(k, patience_ns);
    }
    let patience_ns = if attempt::make_all(k) { 0 } else { patience_ns.min(attempt::PAUSE_NS) };
    let found = poke_polled(k, patience_ns);
    attempt::make_all(k) || found
}

fn poke_polled(k: &mut Kernel<'_>, patience_ns: u64) -> bool {
    let mut found = Vec::new();
    if k.system.objects.have_signals() {
        // Each thread has its own pending signals, so that each is asked separately.
        for thread in k.all_threads().filter(|thread| thread.waits_for_files()) {
            k.system.objects.show_signals(k.pending_of(thread));
            found.extend(polled(k, Some(thread.tid), 0));
        }
        k.system.objects.show_signals(0);
    }
    let patience_ns = if found.is_empty() { patience_ns.min(SLICE_NS) } else { 0 };
    found.extend(polled(k, None, patience_ns));
    for thread in k.all_threads_mut() {
        thread.poked |= found.contains(&thread.tid);
    }
    !found.is_empty()
}

/// Returns the numbers of the threads whose descriptors are ready: all threads, or only the thread `only`.
fn polled(k: &Kernel<'_>, only: Option<u32>, patience_ns: u64) -> Vec<u32> {
    let mut owners: Vec<u32> = Vec::new();
    let mut list: Vec<PollFd<'_>> = Vec::new();
    let mut found: Vec<u32> = Vec::new();
    for thread in k.all_threads().filter(|thread| only.is_none_or(|tid| tid == thread.tid)) {
        let Some(Wait::Files(interests)) = thread.blocked.as_ref().map(|b| &b.wait) else { continue };
        let Some(files) = k.files_of(thread) else { continue };
        for &(fd, events) in interests {
            match poll_entry(files, fd, events) {
                // By another thread's call.
                _ if !own_events(files, (fd, events)).is_empty() => found.push(thread.tid),
                Ok(entry) => {
                    owners.push(thread.tid);
                    list.push(entry);
                }
                // Closed by another thread: the call returns the error.
                Err(_) => found.push(thread.tid),
            }
        }
    }
    let patience_ns = if found.is_empty() { patience_ns } else { 0 };
    if poll(&mut list, patience_ns).is_ok() {
        found.extend(list.iter().zip(&owners).filter(|(fd, _)| !fd.revents().is_empty()).map(|(_, &owner)| owner));
    }
    found
}

/// Returns whether a thread waits for a file that something outside the simulation can make ready.
pub(crate) fn outside_can_help(k: &Kernel<'_>) -> bool {
    k.all_threads().any(|thread| !thread.stopped && outside_can_wake(k, thread))
}

/// Returns whether something outside the simulation can make a file ready for which this thread waits.
pub(crate) fn outside_can_wake(k: &Kernel<'_>, thread: &Thread) -> bool {
    let interests = match thread.blocked.as_ref().map(|b| &b.wait) {
        Some(Wait::Files(interests)) => interests,
        Some(Wait::Attempt(_)) => return true,
        _ => return false,
    };
    let Some(files) = k.files_of(thread) else { return false };
    interests.iter().any(|&(fd, _)| files.host(fd).is_ok() && !k.system.channels.is_own(files, fd))
}
