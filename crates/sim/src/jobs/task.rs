//! An interval as a task: a machine and records go in, counts come out. Both have a form in bytes, for other processes.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_pipeline::{BoundBlock, SharedTables};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::records::{Mark, Records, share};
use crate::machine::Machine;

/// An interval to be timed.
#[derive(Deserialize, Serialize)]
pub struct Task {
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
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Since {
    pub(super) signals: Signals,
    pub(super) cycles: Cycle,
}

/// What was counted in an interval.
#[derive(Deserialize, Serialize)]
pub struct TaskCounts {
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
    /// Returns its number; the first one is 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns it in bytes, which a program with the same [`crate::snapshot::VERSION`] can read. They do not show it if they are damaged.
    ///
    /// # Errors
    /// If a part of it has no such form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        bytes_of(self)
    }

    /// Returns the interval that [`Task::to_bytes`] has written.
    ///
    /// # Errors
    /// If the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Task, Unreadable> {
        let mut task: Task = value_of(bytes)?;
        let mut shared = SharedTables::default();
        let cores = &mut task.machine.cores;
        let has_core = cores.get(task.machine.active).is_some_and(Option::is_some);
        let is_sound = cores.iter_mut().flatten().all(|core| core.share_sound_tables(&mut shared));
        let is_sound = has_core && is_sound && task.records.share_tables(&mut shared);
        if is_sound { Ok(task) } else { Err(Unreadable) }
    }

    /// Times it.
    #[must_use]
    pub fn time(self) -> TaskCounts {
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

impl TaskCounts {
    /// Returns the number of the interval.
    #[must_use]
    pub fn number(&self) -> usize {
        self.number
    }

    /// Returns them in bytes, as [`Task::to_bytes`] does.
    ///
    /// # Errors
    /// If a part of it has no such form.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        bytes_of(self)
    }

    /// Returns the counts that [`TaskCounts::to_bytes`] has written.
    ///
    /// # Errors
    /// If the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<TaskCounts, Unreadable> {
        let counts: TaskCounts = value_of(bytes)?;
        if counts.blocks.iter().all(BoundBlock::is_sound) { Ok(counts) } else { Err(Unreadable) }
    }

    /// Lets all blocks share the tables of those that are known.
    pub(super) fn share_tables(&mut self, shared: &mut SharedTables) {
        self.blocks.iter_mut().for_each(|block| _ = share(shared, block));
    }
}

/// Bytes are no interval, or not what one has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it cannot be read")]
pub struct Unreadable;

fn bytes_of<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    postcard::to_stdvec(value).map_err(|why| why.to_string())
}

fn value_of<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(Unreadable),
    }
}
