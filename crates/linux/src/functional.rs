//! Functional runs: blocks one after the other, without a model of time.

use fxscope_aarch64::{Engine, Exit, StaticBlock};

use crate::code::{Code, NoBlock};
use crate::end::End;
use crate::guest::{FUNCTIONAL_NS, Guest, Step};

/// Called after a block has run, with the number of its instructions that completed.
pub type BlockObserver<'o> = &'o mut dyn FnMut(&Guest, &StaticBlock, usize);

/// Instructions between two updates of the clock in functional runs.
const FUNCTIONAL_TICK: u64 = 1 << 12;

/// Why a step of the clock of a functional run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Its time has passed, or the program has ended.
    Over,
    /// Every thread waits for the host.
    Waiting,
    /// As [`Step::Symbols`]: the rest of it follows.
    Symbols,
    /// As [`Step::Stopped`]: the rest of it follows.
    Stopped,
}

impl Guest {
    /// Runs until the program ends, waits for the host, or about `max_instructions` more instructions are done (a block is not cut
    /// short), without modelling time: the clock advances by [`FUNCTIONAL_NS`] per instruction. `None`: it
    /// has not ended.
    pub fn run_functional<E: Engine>(&mut self, code: &mut Code<E>, max_instructions: u64) -> Option<&End> {
        let stop = self.instructions.saturating_add(max_instructions);
        while self.instructions < stop && self.end.is_none() {
            if self.run_tick(code, stop) != Tick::Over {
                return None;
            }
        }
        self.end.as_ref()
    }

    /// Returns the instructions that the running process has executed so far.
    #[must_use]
    pub fn instructions_of_process(&self) -> u64 {
        self.process().instructions + self.instructions - self.system.accounted_instructions
    }

    /// Says whether the running thread is in a function that waits for another thread by looking again and again. Its turns of a
    /// functional run are then short, so that the others have most of the instructions.
    pub fn set_polls(&mut self, polls: bool) {
        self.thread_mut().polls = polls;
    }

    /// Says of which threads [`Guest::set_polls`] is true.
    pub fn set_all_polls(&mut self, polls: impl Fn(u32) -> bool) {
        self.threads.values_mut().for_each(|thread| thread.polls = polls(thread.tid));
    }

    /// Runs for one step of the clock of functional runs, or until `stop` instructions are done in all.
    pub fn run_tick<E: Engine>(&mut self, code: &mut Code<E>, stop: u64) -> Tick {
        self.run_tick_observed(code, stop, None)
    }

    /// Does what [`Guest::run_tick`] does, and calls `observer` after each block with the number of its instructions that completed.
    pub fn run_tick_observed<E: Engine>(
        &mut self,
        code: &mut Code<E>,
        stop: u64,
        mut observer: Option<BlockObserver<'_>>,
    ) -> Tick {
        let start = self.tick_start.take().unwrap_or(self.instructions);
        let tick = stop.min(start + FUNCTIONAL_TICK);
        let mut over = Tick::Over;
        while self.instructions < tick {
            let is_followed = observer.is_some() || self.threads[self.running].probe.is_following();
            let step = if is_followed || self.instructions >= self.deadline {
                self.step(code)
            } else {
                match self.run_blocks(code, tick) {
                    Ok(()) => continue,
                    Err(why) => self.no_block(why, code),
                }
            };
            match step {
                Step::Ran { block, executed } => {
                    self.follow(code.block(block), executed);
                    if let Some(observer) = &mut observer {
                        observer(self, code.block(block), executed);
                    }
                }
                Step::Switched | Step::CodeChanged | Step::Synchronises | Step::Idle => {}
                Step::Sleep { until_ns } => self.set_now_ns(until_ns),
                Step::Waiting => return Tick::Waiting,
                Step::Symbols => {
                    // The clock does not show it: a restored run chooses its stops again.
                    self.tick_start = Some(start);
                    return Tick::Symbols;
                }
                Step::Stopped => {
                    over = Tick::Stopped;
                    break;
                }
                Step::Ended => break,
            }
        }
        let elapsed = (self.instructions - start) * FUNCTIONAL_NS;
        self.set_now_ns(self.system.now_ns.saturating_add(elapsed));
        over
    }

    /// Executes blocks of the running thread until `stop` instructions are done in all or something must be handled first.
    #[inline(always)]
    fn run_blocks<E: Engine>(&mut self, code: &mut Code<E>, stop: u64) -> Result<(), NoBlock> {
        let thread = &mut self.threads[self.running];
        let (mut instructions, stop) = (self.instructions, stop.min(self.deadline));
        let mut result = Ok(());
        while instructions < stop {
            let (done, exit) = code.running.run_until(&mut thread.cpu, &mut self.memory, stop - instructions);
            instructions += done;
            let trap = match exit {
                Exit::Done => break,
                Exit::Trap(trap) => Some(trap),
                Exit::Unknown => match code.find(thread, &mut self.memory, &mut self.processes) {
                    Ok(id) => {
                        let outcome = code.running.run(id, &mut thread.cpu, &mut self.memory);
                        instructions += outcome.executed as u64;
                        outcome.trap
                    }
                    Err(why) => {
                        result = Err(why);
                        break;
                    }
                },
            };
            if trap.is_some() {
                (thread.trap, self.deadline) = (trap, 0);
                break;
            }
        }
        self.instructions = instructions;
        result
    }
}
