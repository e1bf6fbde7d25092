//! What a driver of a program learns about its pages.

use super::{MemoryWork, PageSpan, PageUse, PageView, add_up};
use crate::process::Process;

impl Process {
    /// The address space of the process that runs as pages, lowest address first, as they are for its thread.
    #[must_use]
    pub fn page_spans(&self) -> Vec<PageSpan> {
        self.kernel.pages.spans(&self.kernel.mem, self.kernel.toucher(&self.thread))
    }

    /// What [`Process::page_spans`] follow from.
    #[must_use]
    pub fn page_view(&self) -> PageView {
        self.kernel.pages.view(&self.kernel.mem, self.kernel.toucher(&self.thread))
    }

    /// A number that changes when [`Process::page_spans`] may have, while one process runs.
    #[inline(always)]
    #[must_use]
    pub fn pages_version(&self) -> u64 {
        self.kernel.mem.generation() + self.kernel.pages.version()
    }

    /// What was done about pages since the last call, if anything.
    #[inline(always)]
    pub fn take_memory_work(&mut self) -> Option<MemoryWork> {
        self.kernel.pages.has_work().then(|| self.kernel.pages.take_work())
    }

    /// The most pages each process had at a time, added up over all processes, by segment, size and node.
    #[must_use]
    pub fn page_use(&mut self) -> Vec<PageUse> {
        self.kernel.note_touched(&self.thread);
        let system = &mut self.kernel.system;
        let others = system.processes.values_mut().flat_map(|parked| parked.kernel.pages.page_use());
        let all: Vec<_> = system.page_use.iter().copied().chain(others).chain(self.kernel.pages.page_use()).collect();
        add_up(all)
    }

    /// What the variables of the large-page library do not do here.
    #[must_use]
    pub fn page_notes(&self) -> &[String] {
        self.kernel.pages.notes()
    }
}
