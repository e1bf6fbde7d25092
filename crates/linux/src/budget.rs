//! Host memory that a program uses beyond its pages: processes and threads, data in pipes and sockets, names, arguments, timers,
//! mappings. Each such object has a [`Charge`]. All charges together count against the memory of the simulated machine, as pages
//! do: a call that needs more than is left fails.
//!
//! Charges change only in system calls; running a program costs nothing.

use std::cell::Cell;
use std::rc::Rc;

use rustix::io::Errno;

use crate::fs::files::{Files, Program};
use crate::kernel::Kernel;
use crate::process::Limit;

/// Fixed cost of a process: translations, page tables, decoded blocks.
pub(crate) const PROCESS: u64 = 2 << 20;
/// Cost of a thread: registers, and room for the accesses of a block.
pub(crate) const THREAD: u64 = 160 << 10;
/// Cost of an `epoll` instance with the default number of descriptors of a process.
pub(crate) const EPOLL: u64 = 256 << 10;
/// Cost of an event counter.
pub(crate) const EVENT: u64 = 1 << 10;
/// Cost of a performance event, for as many threads as there may be.
pub(crate) const PERF: u64 = 128 << 10;
/// Cost of an end of a pseudoterminal, and of what waits for its reader.
pub(crate) const PTY: u64 = 128 << 10;
/// Cost of a name in `/dev/shm`: an inode, and a page for the text of a link.
pub(crate) const NAME: u64 = 5 << 10;

/// Cost on the host of a region of an address space, a mapped file, a descriptor, a timer, and a pending signal.
const REGION: u64 = 256;
const MAPPED_FILE: u64 = 256;
const DESCRIPTOR: u64 = 512;
const TIMER: u64 = 128;
const SIGNAL: u64 = 64;

/// Cost that every process has free of charge, for the objects that C libraries create.
const INCLUDED: u64 = 512 << 10;

/// Maximum number of threads and processes, including zombies (`RLIMIT_NPROC`).
pub(crate) const TASKS: u64 = 2048;

/// Maximum number of queued signals (`RLIMIT_SIGPENDING`).
pub(crate) const PENDING_SIGNALS: u64 = 4096;

/// Maximum number of regions of an address space (Linux's default of `vm.max_map_count`).
const REGIONS: usize = 65_530;

/// Bytes of a decoded instruction.
const DECODED: u64 = 128;

/// The sum of all charges of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Rc<Cell<u64>>);

impl Budget {
    /// Charges `bytes` bytes until the charge is dropped.
    pub(crate) fn charge(&self, bytes: u64) -> Charge {
        let charge = Charge { budget: self.clone(), bytes: Cell::new(0) };
        charge.set(bytes);
        charge
    }

    /// Returns the bytes charged now.
    pub(crate) fn charged(&self) -> u64 {
        self.0.get()
    }
}

/// The cost of one object on the host.
#[derive(Debug, Default)]
pub(crate) struct Charge {
    budget: Budget,
    bytes: Cell<u64>,
}

impl Charge {
    /// Returns the bytes charged.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Changes the charge to `bytes` bytes.
    pub(crate) fn set(&self, bytes: u64) {
        let others = self.budget.charged() - self.bytes.replace(bytes);
        self.budget.0.set(others + bytes);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl Kernel<'_> {
    /// Checks that there is room for `bytes` more bytes.
    ///
    /// # Errors
    /// `ENOMEM` when there is not.
    pub(crate) fn afford(&mut self, bytes: u64) -> Result<(), Errno> {
        self.mem.set_reserved(self.system.budget.charged());
        if self.mem.room_bytes() >= bytes { Ok(()) } else { Err(Errno::NOMEM) }
    }

    /// Updates the process's own charge after a system call.
    pub(crate) fn settle_charges(&mut self) {
        let (process, space) = (&*self.process, &self.spaces[self.process.space]);
        let signals = process.pending.len() + self.thread.pending.len();
        let parts = [
            (self.mem.region_count(), REGION),
            (space.mapped.len(), MAPPED_FILE),
            (process.files.end() as usize, DESCRIPTOR),
            (process.timers.numbered.len(), TIMER),
            (signals, SIGNAL),
        ];
        let grown: u64 = parts.iter().map(|&(count, bytes)| count as u64 * bytes).sum();
        let names = process.files.view.policy.shared_memory.names() * NAME;
        self.system.names_charge.set(names);
        self.system.family_charge.set(self.system.family.bytes());
        process.charge.set(process.fixed_bytes + grown.saturating_sub(INCLUDED));
        self.mem.set_reserved(self.system.budget.charged());
    }

    /// Checks that a further thread or process is allowed.
    ///
    /// # Errors
    /// `EAGAIN` when the maximum number exists.
    pub(crate) fn check_tasks(&self) -> Result<(), Errno> {
        let tasks = (self.all_threads().count() + self.system.zombies.len()) as u64;
        if tasks < self.process.limits[Limit::PROCESSES].soft.min(TASKS) { Ok(()) } else { Err(Errno::AGAIN) }
    }

    /// Checks that a call may create regions; it creates at most two.
    ///
    /// # Errors
    /// `ENOMEM` when the maximum number exists, or there is no room for them.
    pub(crate) fn check_regions(&mut self) -> Result<(), Errno> {
        let count = self.mem.region_count();
        if count + 2 > REGIONS || (count as u64 * REGION > INCLUDED && self.afford(2 * REGION).is_err()) {
            return Err(Errno::NOMEM);
        }
        Ok(())
    }

    /// Checks that a further signal may be queued.
    ///
    /// # Errors
    /// `EAGAIN` when the maximum number is queued.
    pub(crate) fn check_signals(&self) -> Result<(), Errno> {
        let threads: usize = self.all_threads().map(|thread| thread.pending.len()).sum();
        let processes: usize = self.all_processes().map(|process| process.pending.len()).sum();
        let waiting = (threads + processes) as u64;
        if waiting < self.process.limits[Limit::SIGNALS].soft.min(PENDING_SIGNALS) { Ok(()) } else { Err(Errno::AGAIN) }
    }
}

/// Returns the maximum number of instructions kept decoded in a machine with this much memory: enough for any program that fits.
pub(crate) fn most_decoded(memory_bytes: u64) -> usize {
    const MIN: u64 = 1 << 18;
    const MAX: u64 = 1 << 24;
    (memory_bytes / 2 / DECODED).clamp(MIN, MAX) as usize
}

/// Host descriptors that the simulator reserves for itself, for records and reports.
const KEPT_DESCRIPTORS: u64 = 64;

/// Returns one more than the highest host descriptor that programs may use.
pub(crate) fn host_descriptors() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.unwrap_or(u64::MAX).saturating_sub(KEPT_DESCRIPTORS)
}

impl Program {
    /// Returns the bytes of its strings.
    pub(crate) fn bytes(&self) -> u64 {
        let words = self.args.iter().chain(&self.env);
        words.map(|word| (word.len() + size_of::<Vec<u8>>()) as u64).sum()
    }
}

impl Files {
    /// Returns the capacity of a host pipe or socket in bytes.
    pub(crate) fn capacity(file: std::os::fd::BorrowedFd<'_>) -> u64 {
        use rustix::net::sockopt::{socket_recv_buffer_size, socket_send_buffer_size};
        match (rustix::pipe::fcntl_getpipe_size(file), socket_send_buffer_size(file)) {
            (Ok(bytes), _) => bytes as u64,
            // Sent data is held until the other side has received it, there or here.
            (_, Ok(bytes)) => {
                bytes as u64 + if is_local(file) { 0 } else { socket_recv_buffer_size(file).unwrap_or(0) as u64 }
            }
            _ => 0,
        }
    }
}

fn is_local(socket: std::os::fd::BorrowedFd<'_>) -> bool {
    rustix::net::sockopt::socket_domain(socket).is_ok_and(|domain| domain == rustix::net::AddressFamily::UNIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_add_up_and_end_with_their_objects() {
        let budget = Budget::default();
        let (first, second) = (budget.charge(100), budget.charge(20));
        assert_eq!(budget.charged(), 120);
        first.set(30);
        assert_eq!(budget.charged(), 50);
        drop(first);
        assert_eq!(budget.charged(), 20);
        drop(second);
        assert_eq!(budget.charged(), 0);
    }

    #[test]
    fn the_number_of_decoded_instructions_depends_on_memory_within_limits() {
        assert_eq!(most_decoded(1 << 20), 1 << 18);
        assert_eq!(most_decoded(1 << 30), 1 << 22);
        assert_eq!(most_decoded(1 << 40), 1 << 24);
    }
}
