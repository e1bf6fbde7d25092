//! Threads in spin loops, whose iterations a driver may skip.

use fxscope_aarch64::spin::Iteration;
use fxscope_guestmem::Memory;

use crate::guest::Guest;
use crate::sched::wait::FOR_EVER;

impl Guest {
    /// Returns how many of the next iterations of thread `tid` certainly repeat `iteration` while nobody writes what it reads; 0
    /// if unknown, or if its process is not the running one. Executes at most `limit` of them to find out; the thread is
    /// unchanged afterwards.
    pub fn iterations_ahead(&mut self, tid: u32, iteration: &mut Iteration, limit: u64) -> u64 {
        let process = self.threads[self.running].process;
        let thread = self.threads.values_mut().find(|thread| thread.tid == tid && thread.process == process);
        thread.map_or(0, |thread| iteration.repetitions(&mut thread.cpu, &mut self.memory, limit))
    }

    /// Advances thread `tid` by `count` iterations, at most as many as [`Guest::iterations_ahead`] returned, in `ns`.
    pub fn skip_iterations(&mut self, tid: u32, iteration: &Iteration, count: u64, ns: u64) {
        let instructions = count * iteration.infos().count() as u64;
        self.instructions += instructions;
        self.skipped += instructions;
        let Some(thread) = self.threads.values_mut().find(|thread| thread.tid == tid) else { return };
        iteration.skip(&mut thread.cpu, &mut self.memory, count);
        thread.cpu_ns += ns;
        self.processes[thread.process].cpu_ns += ns;
    }

    /// Returns whether thread `tid` has its CPU to itself and nothing to do but run its program.
    #[must_use]
    pub fn is_undisturbed(&self, tid: u32) -> bool {
        let Some(thread) = self.threads.values().find(|thread| thread.tid == tid) else { return false };
        let runs = thread.can_run() && thread.trap.is_none() && !thread.poked;
        let mut others = self.threads.values().filter(|t| t.tid != tid && t.queued.is_some());
        runs && self.end.is_none() && thread.queued.is_some() && others.all(|t| t.cpu_number != thread.cpu_number)
    }

    /// Returns the simulated time in ns at which the next time limit or timer expires.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        Some(self.next_event()).filter(|&ns| ns != FOR_EVER)
    }

    /// Returns the memory, to watch addresses of the active address space.
    pub fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
}
