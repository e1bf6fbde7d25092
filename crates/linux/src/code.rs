//! The code of a guest's processes, as an engine has it, and the places in it at which a driver stops.

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
    /// Where the driver stops in its code.
    stops: Stops,
    /// Those of the others that have run, by number.
    others: BTreeMap<u32, (E, Stops)>,
    /// Whether the driver chooses places at which it stops.
    has_stops: bool,
    /// The thread that passes the place at which it has stopped: its number, and the place.
    passing: Option<(u32, u64)>,
    /// Most instructions of a process to be kept decoded.
    most_decoded: usize,
}

/// The places in a process's code at which the driver stops.
#[derive(Default)]
struct Stops {
    /// How often each address was added.
    at: BTreeMap<u64, u32>,
    /// The version of the process's symbols from which they follow; `None`: they have not been chosen.
    version: Option<u64>,
}

/// Why no block runs.
pub(crate) enum NoBlock {
    /// There is no code.
    Trap(Trap),
    /// The thread has arrived at a place at which the driver stops.
    Stop,
}

impl<E: Engine> Code<E> {
    /// The code of a guest that has not run.
    #[must_use]
    pub fn of(guest: &Guest) -> Code<E> {
        Code {
            running: E::new(guest.cpu().vl),
            pid: guest.pid(),
            stops: Stops::default(),
            others: BTreeMap::new(),
            has_stops: false,
            passing: None,
            most_decoded: budget::most_decoded(guest.system.platform.memory_bytes),
        }
    }

    /// Has this engine execute the code of the running process, and engines like it that of others. Nothing may have run.
    pub fn use_engine(&mut self, engine: E) {
        self.running = engine;
    }

    /// The code of a guest with these engines, by number of their process; other processes get one like `engine`.
    pub(crate) fn with(mut engines: BTreeMap<u32, E>, engine: &E, guest: &Guest) -> Code<E> {
        let code = Code::of(guest);
        let running = engines.remove(&code.pid).unwrap_or_else(|| engine.another(guest.cpu().vl));
        let others = engines.into_iter().map(|(pid, engine)| (pid, (engine, Stops::default()))).collect();
        Code { running, others, ..code }
    }

    /// The engine of a process, if it has run.
    #[must_use]
    pub fn of_process(&self, pid: u32) -> Option<&E> {
        if pid == self.pid { Some(&self.running) } else { self.others.get(&pid).map(|(engine, _)| engine) }
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
        let (engine, stops) = self.others.remove(&pid).unwrap_or_else(|| (self.running.another(vl), Stops::default()));
        let before = (std::mem::replace(&mut self.running, engine), std::mem::replace(&mut self.stops, stops));
        self.others.insert(self.pid, before);
        self.pid = pid;
        // With more engines than processes, some are of processes that have ended.
        if self.others.len() >= processes.len() {
            self.others.retain(|&pid, _| processes.values().any(|process| process.pid == pid));
        }
    }

    /// Has the driver of a functional run choose places in the code of each process at which it stops ([`Step::Symbols`],
    /// [`Step::Stopped`]). Stops are found where blocks are not found quickly: other code runs as fast as without.
    ///
    /// [`Step::Symbols`]: crate::Step::Symbols
    /// [`Step::Stopped`]: crate::Step::Stopped
    pub fn use_stops(&mut self) {
        self.has_stops = true;
    }

    /// Makes these the places at which the driver stops in the code of the running process, whose symbols have this version.
    pub fn set_stops(&mut self, addresses: impl Iterator<Item = u64>, version: u64) {
        self.stops = Stops { at: BTreeMap::new(), version: Some(version) };
        addresses.for_each(|address| self.add_stop(address));
    }

    /// Returns the version of the symbols for which the stops of the running process were chosen; `None`: they were not yet, for its
    /// program.
    #[must_use]
    pub fn stops_version(&self) -> Option<u64> {
        self.stops.version
    }

    /// Adds a place at which the driver stops in the code of the running process.
    pub fn add_stop(&mut self, address: u64) {
        *self.stops.at.entry(address).or_default() += 1;
        self.running.hide(address);
    }

    /// Removes a place that was added once.
    pub fn remove_stop(&mut self, address: u64) {
        if let Some(count) = self.stops.at.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                self.stops.at.remove(&address);
            }
        }
    }

    /// Has the block of the running process that starts at `address` be looked up again before it is executed: no translated code that
    /// contains it is left.
    pub fn look_up_again(&mut self, address: u64) {
        self.running.hide(address);
    }

    /// Lets the running thread pass the place at which it has stopped.
    pub fn pass(&mut self, guest: &Guest) {
        self.passing = Some((guest.thread().tid, guest.cpu().pc));
    }

    /// Has no places any more at which the driver stops.
    pub fn drop_stops(&mut self) {
        (self.has_stops, self.passing, self.stops) = (false, None, Stops::default());
        self.others.values_mut().for_each(|(_, stops)| *stops = Stops::default());
    }

    /// Returns whether the driver has to choose the stops in the code of the running process, whose symbols have this version.
    pub(crate) fn needs_stops(&self, version: u64) -> bool {
        self.has_stops && self.stops.version != Some(version)
    }

    /// Another program runs in the process: its stops must be chosen again.
    pub(crate) fn forget_stops(&mut self) {
        self.stops = Stops::default();
    }

    /// The block that `thread`, the running one, executes next.
    #[inline(always)]
    pub(crate) fn next_of(
        &mut self,
        thread: &Thread,
        mem: &mut Memory,
        processes: &mut Table<Process>,
    ) -> Result<BlockId, NoBlock> {
        match self.running.lookup(thread.cpu.pc) {
            Some(id) => Ok(id),
            None => self.find(thread, mem, processes),
        }
    }

    /// The block that `thread`, the running one, executes next, which the engine does not find quickly.
    #[cold]
    pub(crate) fn find(
        &mut self,
        thread: &Thread,
        mem: &mut Memory,
        processes: &mut Table<Process>,
    ) -> Result<BlockId, NoBlock> {
        let pc = thread.cpu.pc;
        let id = self.running.find(pc, mem).map_err(NoBlock::Trap)?;
        processes[thread.process].code_full = self.running.instructions() > self.most_decoded;
        if self.stops.at.contains_key(&pc) {
            // The next one that arrives there stops, too.
            self.running.hide(pc);
            if self.passing != Some((thread.tid, pc)) {
                return Err(NoBlock::Stop);
            }
            self.passing = None;
        }
        Ok(id)
    }
}

/// Returns whether an engine has blocks in one of these address ranges.
pub(crate) fn has_within<E: Engine>(engine: &E, ranges: &[Range<u64>]) -> bool {
    let overlaps = |block: &StaticBlock| ranges.iter().any(|range| block.start < range.end && range.start < block.end);
    !ranges.is_empty() && (0..engine.len() as u32).any(|id| overlaps(engine.block(BlockId(id))))
}
