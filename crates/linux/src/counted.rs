//! Blocks that are counted and neither followed nor timed.

use fxscope_aarch64::{Counting, Engine, Exit};

use crate::code::Code;
use crate::guest::Guest;

impl Guest {
    /// Returns the simulated time, ns, at which the kernel has something to do on its own: for a timer, for a thread whose wait ends, or
    /// at the end of a time slice. It does it in [`Guest::set_now_ns`].
    #[must_use]
    pub fn next_event_ns(&self) -> u64 {
        self.system.next_event_ns.min(self.system.cpus.slice_end_ns())
    }

    /// Executes blocks of the running thread that have a cost in `counting`, until about `instructions` more instructions are done (a
    /// block is not cut short), another block comes, or [`Guest::step`] would do something else than execute a block. Afterwards
    /// [`Guest::cpu`] has no dynamic stream.
    pub fn run_counted<E: Engine>(&mut self, code: &mut Code<E>, instructions: u64, counting: &mut Counting<'_>) {
        let thread = &mut self.threads[self.running];
        let stop = self.instructions.saturating_add(instructions).min(self.deadline);
        while self.instructions < stop {
            let left = stop - self.instructions;
            let (done, exit) = code.running.run_counted(&mut thread.cpu, &mut self.memory, left, counting);
            self.instructions += done;
            match exit {
                Exit::Done => break,
                Exit::Trap(trap) => {
                    (thread.trap, self.deadline) = (Some(trap), 0);
                    break;
                }
                Exit::Unknown => match code.find(thread, &mut self.memory, &mut self.processes) {
                    // The engine did not find it quickly.
                    Ok(id) if counting.cost_of(id).is_some() && counting.costs.len() >= code.running.len() => {}
                    _ => break,
                },
            }
        }
        thread.cpu.clear_stream();
    }
}
