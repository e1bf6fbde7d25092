//! The code of a guest's processes, as an engine has it.

use std::collections::BTreeMap;
use std::ops::Range;

use fxscope_aarch64::{BlockId, Engine, Interpreter, StaticBlock, Trap};
use fxscope_guestmem::Memory;

use crate::budget;
use crate::guest::Guest;
use crate::process::Process;
use crate::table::Table;
use crate::thread::Thread;

/// The code of a guest's processes: an engine for each. The guest owns everything that programs can see; this is what is
/// derived from it to execute it. A code stays with the guest that it was made for: block numbers are those of the running
/// process.
pub struct Code<E: Engine = Interpreter> {
    /// The engine of the running process, and its number.
    pub(crate) running: E,
    pid: u32,
    /// Those of the others that have run, by number.
    others: BTreeMap<u32, E>,
    /// Most instructions of a process to be kept decoded.
    most_decoded: usize,
}

impl<E: Engine> Code<E> {
    /// The code of a guest that has not run.
    #[must_use]
    pub fn of(guest: &Guest) -> Code<E> {
        Code {
            running: E::new(guest.cpu().vl),
            pid: guest.pid(),
            others: BTreeMap::new(),
            most_decoded: budget::most_decoded(guest.system.platform.memory_bytes),
        }
    }

    /// The code of a guest with these engines, by number of their process.
    pub(crate) fn with(mut engines: BTreeMap<u32, E>, guest: &Guest) -> Code<E> {
        let code = Code::of(guest);
        match engines.remove(&code.pid) {
            Some(running) => Code { running, others: engines, ..code },
            None => Code { others: engines, ..code },
        }
    }

    /// The engine of a process, if it has run.
    #[must_use]
    pub fn of_process(&self, pid: u32) -> Option<&E> {
        if pid == self.pid { Some(&self.running) } else { self.others.get(&pid) }
    }

    /// What is known of a block of the running process.
    #[must_use]
    #[inline(always)]
    pub fn block(&self, id: BlockId) -> &StaticBlock {
        self.running.block(id)
    }

    /// The engine of the running process.
    #[must_use]
    pub fn engine(&self) -> &E {
        &self.running
    }

    /// Process `pid` is the running one. An engine that it does not have yet is for vectors of `vl` bytes.
    pub(crate) fn enter(&mut self, pid: u32, vl: usize, processes: &Table<Process>) {
        if pid == self.pid {
            return;
        }
        let next = self.others.remove(&pid).unwrap_or_else(|| E::new(vl));
        self.others.insert(self.pid, std::mem::replace(&mut self.running, next));
        self.pid = pid;
        // With more engines than processes, some are of processes that have ended.
        if self.others.len() >= processes.len() {
            self.others.retain(|&pid, _| processes.values().any(|process| process.pid == pid));
        }
    }

    /// The block that `thread`, the running one, executes next.
    #[inline(always)]
    pub(crate) fn next_of(
        &mut self,
        thread: &Thread,
        mem: &mut Memory,
        processes: &mut Table<Process>,
    ) -> Result<BlockId, Trap> {
        match self.running.lookup(thread.cpu.pc) {
            Some(id) => Ok(id),
            None => self.find(thread, mem, processes),
        }
    }

    #[cold]
    fn find(&mut self, thread: &Thread, mem: &mut Memory, processes: &mut Table<Process>) -> Result<BlockId, Trap> {
        let id = self.running.find(thread.cpu.pc, mem)?;
        processes[thread.process].code_full = self.running.instructions() > self.most_decoded;
        Ok(id)
    }
}

/// Returns whether an engine has blocks in one of these address ranges.
pub(crate) fn has_within<E: Engine>(engine: &E, ranges: &[Range<u64>]) -> bool {
    let overlaps = |block: &StaticBlock| ranges.iter().any(|range| block.start < range.end && range.start < block.end);
    !ranges.is_empty() && (0..engine.len() as u32).any(|id| overlaps(engine.block(BlockId(id))))
}
