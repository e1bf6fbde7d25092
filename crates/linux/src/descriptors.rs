//! Waiting for the host's files. No host call is made that could block: a thread waits until the host says that its
//! descriptors are ready, and the others run on. Only when every thread waits does the simulator wait with them.

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::attempt;
use crate::files::Files;
use crate::kernel::Kernel;
use crate::thread::Thread;
use crate::wait::Wait;

/// Longest wait in the host before whoever watches the run is asked again whether to go on.
pub(crate) const SLICE_NS: u64 = 100_000_000;

/// A descriptor and what it is waited for.
pub(crate) type Interest = (i32, PollFlags);

/// Asks the host, without waiting, which of these are ready for what.
///
/// # Errors
/// `EBADF` when one is not open; the host's.
pub(crate) fn ready(files: &Files, interests: &[Interest]) -> Result<Vec<PollFlags>, Errno> {
    let mut list = Vec::with_capacity(interests.len());
    for &(fd, events) in interests {
        list.push(PollFd::from_borrowed_fd(files.host(fd)?, events));
    }
    poll(&mut list, 0)?;
    Ok(list.iter().map(PollFd::revents).collect())
}

fn poll(list: &mut [PollFd<'_>], ns: u64) -> Result<usize, Errno> {
    let timeout = Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    match rustix::event::poll(list, Some(&timeout)) {
        // A signal to the simulator: as if nothing were ready yet.
        Err(Errno::INTR) => Ok(0),
        result => result,
    }
}

impl Kernel {
    /// Whether anyone waits for descriptors.
    pub(crate) fn files_are_waited_for(&self, running: &Thread) -> bool {
        let others = || self.system.threads.iter().any(|t| t.waits_for_files());
        !self.system.cpus.no_files() && (others() || running.waits_for_files())
    }
}

/// Marks the threads whose descriptors are ready, or whose attempts succeed. With `patience_ns`, waits that long for one of them
/// in the host, at most [`SLICE_NS`], and less when there are attempts to make again. Whether there were any.
pub(crate) fn poke_ready(k: &mut Kernel, running: &mut Thread, patience_ns: u64) -> bool {
    if !attempt::any(k, running) {
        return poke_polled(k, running, patience_ns);
    }
    let patience_ns = if attempt::make_all(k, running) { 0 } else { patience_ns.min(attempt::PAUSE_NS) };
    let found = poke_polled(k, running, patience_ns);
    attempt::make_all(k, running) || found
}

fn poke_polled(k: &mut Kernel, running: &mut Thread, patience_ns: u64) -> bool {
    let mut owners: Vec<usize> = Vec::new();
    let mut list: Vec<PollFd<'_>> = Vec::new();
    let mut found: Vec<usize> = Vec::new();
    let system = &k.system;
    for (index, thread) in system.threads.iter().map(Box::as_ref).chain([&*running]).enumerate() {
        let Some(Wait::Files(interests)) = thread.blocked.as_ref().map(|b| &b.wait) else { continue };
        let files = if thread.pid == k.pid {
            Some(&k.files)
        } else {
            system.processes.get(&thread.pid).map(|p| &p.kernel.files)
        };
        for &(fd, events) in interests {
            match files.and_then(|files| files.host(fd).ok()) {
                Some(host) => {
                    owners.push(index);
                    list.push(PollFd::from_borrowed_fd(host, events));
                }
                // Closed by another thread: the call says so.
                None => found.push(index),
            }
        }
    }
    let patience_ns = if found.is_empty() { patience_ns.min(SLICE_NS) } else { 0 };
    if poll(&mut list, patience_ns).is_ok() {
        found.extend(list.iter().zip(&owners).filter(|(fd, _)| !fd.revents().is_empty()).map(|(_, &owner)| owner));
    }
    for &index in &found {
        match k.system.threads.get_mut(index) {
            Some(thread) => thread.poked = true,
            None => running.poked = true,
        }
    }
    !found.is_empty()
}

/// Whether someone waits for a file that the world outside the simulation can make ready.
pub(crate) fn outside_can_help(k: &Kernel, running: &Thread) -> bool {
    k.system.threads.iter().map(Box::as_ref).chain([running]).any(|thread| {
        let interests = match thread.blocked.as_ref().map(|b| &b.wait) {
            Some(Wait::Files(interests)) => interests,
            Some(Wait::Attempt(_)) => return true,
            _ => return false,
        };
        let parked = k.system.processes.get(&thread.pid).map(|p| &p.kernel.files);
        let files = if thread.pid == k.pid { Some(&k.files) } else { parked };
        let Some(files) = files else { return false };
        interests.iter().any(|&(fd, _)| files.host(fd).is_ok_and(|file| !k.system.channels.is_own(file)))
    })
}
