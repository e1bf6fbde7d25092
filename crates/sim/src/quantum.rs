//! Quanta: how long a core runs before another one does.

use fxscope_aarch64::Engine;
use fxscope_calendar::Cycle;
use fxscope_memory::Chip;

use crate::timing::Driver;

/// Blocks between two updates of the guest's clock.
pub(crate) const CLOCK_BLOCKS: u64 = 8;
/// Blocks for which a core may exceed its quantum between a load-exclusive and its store.
pub(crate) const EXCLUSIVE_BLOCKS: u32 = 16;

/// A quantum of a core.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
pub(crate) struct Quantum {
    /// The number of its CPU.
    pub(crate) index: usize,
    /// The clock of the next lowest core. Until then, nothing that other cores do can come earlier.
    pub(crate) in_order: Cycle,
    /// When the quantum ends.
    pub(crate) end: Cycle,
}

/// A quantum that has begun.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Running {
    pub(crate) quantum: Quantum,
    /// Blocks for which it may still be exceeded between a load-exclusive and its store.
    pub(crate) patience: u32,
    /// Snoops of the chip when it began.
    pub(crate) snoops: u64,
    /// Whether its core was watched at that time, and whether other cores spun.
    pub(crate) watched: bool,
    pub(crate) others_spin: bool,
    /// Whether a block must be followed before others are skipped again.
    pub(crate) follows_next: bool,
    /// Whether performance events sample its thread.
    #[serde(skip)]
    pub(crate) samples_events: bool,
}

impl Running {
    /// Returns whether a core that is ahead of others may continue at `now`: a line that several cores write moves between them in
    /// simulated-time order, too.
    #[inline(always)]
    pub(crate) fn goes_on_at(&self, now: Cycle, chip: &Chip) -> bool {
        now < self.quantum.end && chip.snoops() == self.snoops
    }
}

impl<E: Engine> Driver<'_, E> {
    /// Updates the guest's clock from time to time; `blocks` are left to the quantum.
    #[inline(always)]
    pub(crate) fn keep_time(&mut self, running: &Running, blocks: u64) {
        if blocks.is_multiple_of(CLOCK_BLOCKS) {
            self.set_clock();
            if self.guest.cpu_changes() == self.timing.changes {
                self.reach(self.timing.now().min(running.quantum.in_order));
            }
        }
    }

    /// Returns whether the quantum is over after a block.
    #[inline(always)]
    pub(crate) fn is_over(&mut self, running: &mut Running) -> bool {
        if self.guest.cpu_changes() != self.timing.changes {
            return true;
        }
        let now = self.timing.now();
        if now > running.quantum.in_order {
            let over = !running.goes_on_at(now, &self.timing.machine.chip) || self.guest.has_trap();
            if over && !(self.guest.in_exclusive() && running.patience > 0) {
                return true;
            }
            running.patience -= u32::from(over);
            self.guest.hold(!self.guest.in_exclusive());
        }
        false
    }
}
