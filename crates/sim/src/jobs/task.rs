//! An interval as a task: a machine and records go in, counts come out.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_pipeline::BoundBlock;

use super::records::{Mark, Records};
use crate::machine::Machine;

/// An interval to be timed.
pub(super) struct Task {
    /// Its number, from 0.
    pub(super) number: usize,
    /// The machine at its beginning, and what its core then did.
    pub(super) machine: Machine,
    pub(super) records: Records,
    /// What a system call takes.
    pub(super) system_call: Cycle,
    /// The run ends with it.
    pub(super) is_last: bool,
}

/// What was counted from the beginning of an interval to a point in it.
#[derive(Debug)]
pub(super) struct Since {
    pub(super) signals: Signals,
    pub(super) cycles: Cycle,
}

/// What was counted in an interval.
pub(super) struct TaskCounts {
    pub(super) number: usize,
    /// Beginnings and ends of regions.
    pub(super) marks: Vec<(Mark, Since)>,
    /// All of the interval.
    pub(super) all: Since,
    /// The blocks that were executed, with their profiles.
    pub(super) blocks: Vec<BoundBlock>,
    /// The cycles of each context of the thread's calls.
    pub(super) calls: Vec<u64>,
}

impl Task {
    /// Times it.
    pub(super) fn time(self) -> TaskCounts {
        let Task { number, mut machine, records, system_call, is_last } = self;
        let (core, chip) = machine.running();
        core.begin_to_count();
        let (before, began) = (core.signals(), core.pipeline.now());
        let mut marks = Vec::new();
        core.replay(records, chip, system_call, |core, mark| {
            let since = Since { signals: core.signals().since(&before), cycles: core.pipeline.now() - began };
            marks.push((mark, since));
        });
        if is_last {
            core.pipeline.settle(chip);
        }
        // The next interval begins after the cycle of the last commit.
        core.pipeline.finish();
        let now = core.pipeline.now();
        core.calls.charge(now);
        let all = Since { signals: core.signals().since(&before), cycles: now - began };
        TaskCounts { number, marks, all, calls: core.calls.cycles(), blocks: core.take_executed_blocks() }
    }
}
