//! Cycles in which a core has reads outstanding that it waits for: neither prefetches nor those of stores.

use fxscope_calendar::Cycle;
use fxscope_counts::{Signal, Signals};

use crate::chip::Answer;

/// Until when reads of each kind are known to be outstanding.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Outstanding {
    loads: Until,
    loads_from_main: Until,
    code_from_main: Until,
}

impl Outstanding {
    /// A load or a table walk waits for memory from `missed` to `ready`; `from_main`: for main memory.
    pub fn load(&mut self, missed: Cycle, ready: Cycle, from_main: bool, signals: &mut Signals) {
        signals.add(Signal::L2MissLoadCycles, self.loads.extend(missed, ready));
        if from_main {
            signals.add(Signal::L2MissLoadBurstsMain, u64::from(missed >= self.loads_from_main.0));
            signals.add(Signal::L2MissLoadCyclesMain, self.loads_from_main.extend(missed, ready));
        }
    }

    /// An instruction fetch waits until `ready` for what L2 has answered.
    pub fn code(&mut self, answer: &Answer, ready: Cycle, signals: &mut Signals) {
        if let Some(missed) = answer.missed.filter(|_| answer.from_main) {
            signals.add(Signal::L2MissCodeCyclesMain, self.code_from_main.extend(missed, ready));
        }
    }
}

/// The end of the last of the cycles that are counted.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Until(Cycle);

impl Until {
    /// Returns the cycles from `from` to `to` that are not counted yet. Reads come nearly in the order of their times: of one that
    /// comes late, cycles before the end of the others are not counted.
    fn extend(&mut self, from: Cycle, to: Cycle) -> Cycle {
        let more = to.saturating_sub(from.max(self.0));
        self.0 = self.0.max(to);
        more
    }
}
