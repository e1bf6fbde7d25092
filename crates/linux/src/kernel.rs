//! The kernel working for one thread: what system calls, faults and signals act on.

use fxscope_guestmem::Memory;
use rustix::io::Errno;

use crate::fs::files::Files;
use crate::mm::address_space::AddressSpace;
use crate::mm::pages::{FolioCounts, Pages, Toucher};
use crate::process::Process;
use crate::system::System;
use crate::table::{Others, Table};
use crate::thread::Thread;

/// A thread, its process, and the rest of the guest, borrowed separately.
pub struct Kernel<'a> {
    /// The memory; the address space of the process is active.
    pub(crate) mem: &'a mut Memory,
    pub(crate) system: &'a mut System,
    /// All address spaces; that of the process is `spaces[process.space]`.
    pub(crate) spaces: &'a mut Table<AddressSpace>,
    /// The process of the thread.
    pub(crate) process: &'a mut Process,
    /// The thread for which the kernel works.
    pub(crate) thread: &'a mut Thread,
    pub(crate) other_processes: Others<'a, Process>,
    pub(crate) other_threads: Others<'a, Thread>,
}

impl Kernel<'_> {
    /// Returns the process's address space.
    pub(crate) fn space(&self) -> &AddressSpace {
        &self.spaces[self.process.space]
    }

    /// Iterates over the threads of the process.
    pub(crate) fn threads(&self) -> impl Iterator<Item = &Thread> {
        let others = self.other_threads.iter().filter(|thread| thread.pid == self.process.pid && !thread.ended);
        std::iter::once(&*self.thread).chain(others)
    }

    /// Iterates over all threads, of all processes.
    pub(crate) fn all_threads(&self) -> impl Iterator<Item = &Thread> {
        self.other_threads.iter().chain([&*self.thread])
    }

    /// Iterates over all threads, of all processes, mutably.
    pub(crate) fn all_threads_mut(&mut self) -> impl Iterator<Item = &mut Thread> {
        self.other_threads.iter_mut().chain([&mut *self.thread])
    }

    /// Iterates over all processes.
    pub(crate) fn all_processes(&self) -> impl Iterator<Item = &Process> {
        std::iter::once(&*self.process).chain(self.other_processes.iter())
    }

    /// Returns the process with this number.
    pub(crate) fn process_of(&mut self, pid: u32) -> Option<&mut Process> {
        if pid == self.process.pid {
            return Some(self.process);
        }
        self.other_processes.iter_mut().find(|process| process.pid == pid && !process.ended)
    }

    /// Returns the open files of a process.
    ///
    /// # Errors
    /// `ENOENT`: it has ended.
    pub(crate) fn open_files_of(&self, pid: u32) -> Result<&Files, Errno> {
        let process = self.all_processes().find(|process| process.pid == pid && !process.ended);
        process.map(|process| &process.files).ok_or(Errno::NOENT)
    }

    /// Returns the policy and node under which the thread maps and touches memory.
    pub(crate) fn toucher(&self) -> Toucher {
        self.system.toucher(self.thread)
    }

    /// Iterates over the pages of each address space.
    pub(crate) fn all_pages(&self) -> impl Iterator<Item = &Pages> {
        self.spaces.values().map(|space| &space.pages)
    }

    /// Returns what happened to transparent huge pages, of all processes.
    pub(crate) fn folio_counts(&self) -> FolioCounts {
        self.all_pages().map(Pages::folio_counts).fold(self.system.folio_counts.clone(), FolioCounts::plus)
    }

    /// Returns whether another process uses the same address space (`vfork`).
    pub(crate) fn shares_space(&self) -> bool {
        self.other_processes.iter().any(|other| other.space == self.process.space)
    }

    /// Records that the system has copied bytes between the process and a file, if that is a socket or pipe of the run's own.
    pub(crate) fn copied(&mut self, fd: i32, bytes: u64) {
        if self.process.files.channel(fd).is_some_and(|channel| channel.own.get()) {
            self.spaces[self.process.space].pages.copied(bytes);
        }
    }

    /// Records which pages the thread has touched.
    pub(crate) fn note_touched(&mut self) {
        if self.mem.has_fresh() {
            let toucher = self.toucher();
            self.thread.uses.faults += self.spaces[self.process.space].pages.touched(self.mem, toucher);
        }
    }

    /// Returns the CPU time of the process in ns.
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.process.cpu_ns + self.system.running_ns()
    }
}

impl System {
    /// Returns the policy and node under which `thread` maps and touches memory.
    pub(crate) fn toucher(&self, thread: &Thread) -> Toucher {
        let node = self.platform.node_of(thread.cpu_number()).unwrap_or(0);
        Toucher { policy: thread.policy, node }
    }
}
