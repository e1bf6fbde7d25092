//! Calls: which function called which, and the cycles of each in the context of its callers.
//!
//! Each thread has a tree of contexts, which grows at its calls. Calls, returns and jumps from function to function are seen at the
//! borders of blocks, from what the blocks are: no memory is read, so that threads can be followed after they have executed. The time
//! from one border to the next counts for the function between them.
//!
//! A function that is called again while it is active continues its outer context: a tree has each function once on every path, and
//! totals count nothing twice. A function that ends with a jump to another one is replaced by it, as on the stack of the machine.

mod thread;
mod tree;

use std::collections::BTreeMap;

use fxscope_aarch64::Engine;

use crate::part::{Part, Phase};
use crate::timing::{Driver, Timing};
pub(crate) use thread::ThreadCalls;

/// A function that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledFunction {
    /// Its file, by its place in [`crate::Outcome::files`]; `None` for code that is from no file.
    pub file: Option<u32>,
    /// Offset of its first instruction in the file, or its address; 0 for code that is in no function.
    pub start: u64,
    /// Its name; `None`: all code of the file that is in no function.
    pub name: Option<String>,
}

/// A function in the context of its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallContext {
    /// The context that called it, as an index into the contexts of the thread; always a smaller one than its own.
    pub caller: Option<u32>,
    /// The function, as an index into [`Calls::functions`].
    pub function: u32,
    /// The place of the call: its file and its offset in it, or its address. `None`: it was not called.
    pub site: Option<(Option<u32>, u64)>,
    /// Times that it was called from there.
    pub calls: u64,
    /// Cycles in which the thread ran in the function itself.
    pub cycles: u64,
}

/// Calls of a run, by the number of the thread in the simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// All functions that were executed.
    pub functions: Vec<CalledFunction>,
    /// The contexts of each thread.
    pub threads: BTreeMap<u32, Vec<CallContext>>,
}

/// The calls of threads that are on no core.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(crate) struct Parked {
    threads: BTreeMap<u32, ThreadCalls>,
    /// When cores began to run, ns: older threads have a stack by then.
    pub(crate) begin_ns: u64,
}

impl Parked {
    /// Returns whether every number in it refers to an entry.
    pub(crate) fn is_sound(&self, functions: usize, origins: usize) -> bool {
        self.threads.values().all(|thread| thread.is_sound(functions, origins))
    }
}

impl<E: Engine> Driver<'_, E> {
    /// The core of CPU number `index` stops following the calls of `thread`.
    pub(crate) fn park_calls(&mut self, index: usize, thread: u32) {
        let Some(core) = self.timing.machine.get_mut(index) else { return };
        let mut calls = std::mem::take(&mut core.calls);
        calls.charge(core.pipeline.now());
        self.timing.calls.threads.insert(thread, calls);
    }

    /// The active core follows the calls of the current thread, number `thread`, from now on.
    pub(crate) fn follow_calls(&mut self, thread: u32) {
        let known = self.timing.calls.threads.remove(&thread);
        let is_new = known.is_none();
        let core = self.timing.machine.core_mut();
        core.calls = known.unwrap_or_default();
        core.calls.resume(core.pipeline.now(), is_counted(self.part.as_deref()));
        // A thread that `clone` has made begins with its caller's registers, but on a stack of its own.
        let of_thread = self.guest.thread();
        let has_stack = of_thread.tid == self.guest.pid() || of_thread.created_ns() < self.timing.calls.begin_ns;
        if is_new && has_stack {
            self.find_stack();
        }
    }

    /// The current thread of the active core has executed blocks that were not followed: looks where it is.
    pub(crate) fn find_calls(&mut self) {
        let next = self.guest.cpu().pc;
        let Some(function) = self.function_of(next, next) else { return };
        if self.timing.machine.core_mut().calls.is_lost(next, function) {
            self.find_stack();
        }
    }

    /// Finds the callers of the current thread by its frame pointers.
    #[cold]
    fn find_stack(&mut self) {
        let mut frames = Vec::new();
        for (depth, next) in self.guest.stack_addresses().into_iter().enumerate().rev() {
            let address = if depth == 0 { next } else { next.wrapping_sub(4) };
            frames.extend(self.function_of(address, next).map(|function| (function, address.wrapping_add(4))));
        }
        self.timing.machine.core_mut().calls.rebuild(&frames);
    }

    /// Returns the function of an address, at which the current thread is or has called, and where it continues at `next`. `None`: it is in no
    /// file, and so not code of a caller, but what a register had.
    fn function_of(&mut self, address: u64, next: u64) -> Option<u32> {
        let blocks = &self.timing.machine.core().blocks;
        let engine = self.code.of_process(self.guest.pid());
        let block = engine.and_then(|engine| engine.lookup(next)).and_then(|id| blocks.get(id.0 as usize)?.as_ref());
        // A function that ends with a call does not continue in the one behind it.
        if let Some(block) = block.filter(|block| address == next || !block.begins_function) {
            return Some(block.function);
        }
        let is_code = address == next || self.guest.file_at(address).is_some();
        is_code.then(|| self.timing.known.code_map.function_at(self.guest, address))
    }
}

/// Returns whether what runs now is in the part of the run that is timed.
fn is_counted(part: Option<&Part>) -> bool {
    part.is_none_or(|part| part.phase() == Phase::Timed)
}

impl Timing {
    /// Returns the calls of a run that is over.
    pub(crate) fn calls(&mut self) -> Calls {
        for core in self.machine.iter_mut() {
            if let Some(thread) = core.thread {
                let mut calls = std::mem::take(&mut core.calls);
                calls.charge(core.pipeline.now());
                self.calls.threads.insert(thread, calls);
            }
        }
        let code_map = &self.known.code_map;
        let site = |origin: u32| {
            let origin = code_map.get(origin);
            (origin.file, origin.last)
        };
        let threads = self.calls.threads.iter().map(|(&thread, calls)| (thread, calls.contexts(site)));
        Calls { functions: code_map.called_functions(), threads: threads.collect() }
    }
}
