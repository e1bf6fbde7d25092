//! What intervals have counted, added up in their order.

use std::collections::BTreeMap;

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_pipeline::BoundBlock;

use super::task::{Since, TaskCounts};
use crate::region::{Counted, Counts, Regions, Snapshot, Totals};

/// The number of the only thread.
const THREAD: u32 = 0;

/// The counts of all intervals up to one.
#[derive(Default)]
pub(crate) struct Merged {
    /// The CPU of the thread, as the machine numbers it.
    pub(super) cpu: u32,
    /// Intervals that have been added, and those that are ready before their turn.
    added: usize,
    ready: BTreeMap<usize, TaskCounts>,
    signals: Signals,
    cycles: Cycle,
    /// Blocks with their profiles, by origin.
    blocks: BTreeMap<u32, Vec<BoundBlock>>,
    /// The cycles of each context of the thread's calls.
    pub(crate) calls: Vec<u64>,
}

impl Merged {
    /// Adds an interval when those before it are there. `ns_at` returns the time of a cycle.
    pub(super) fn add(&mut self, counts: TaskCounts, regions: &mut Regions, ns_at: impl Fn(Cycle) -> u64) {
        self.ready.insert(counts.number, counts);
        while let Some(counts) = self.ready.remove(&self.added) {
            self.add_next(counts, regions, &ns_at);
            self.added += 1;
        }
    }

    fn add_next(&mut self, counts: TaskCounts, regions: &mut Regions, ns_at: &impl Fn(Cycle) -> u64) {
        let TaskCounts { marks, all, blocks, calls, number: _ } = counts;
        for (mark, since) in marks {
            let now = Snapshot { totals: self.totals_with(&since), ns: ns_at(self.cycles + since.cycles) };
            regions.meets(mark.edge, THREAD, true, mark.name, now);
        }
        self.signals.merge(&all.signals);
        self.cycles += all.cycles;
        blocks.into_iter().for_each(|block| self.add_block(block));
        self.calls.resize(self.calls.len().max(calls.len()), 0);
        self.calls.iter_mut().zip(calls).for_each(|(sum, cycles)| *sum += cycles);
    }

    fn add_block(&mut self, block: BoundBlock) {
        let known = self.blocks.entry(block.origin).or_default();
        match known.iter_mut().find(|known| known.shares_code_of(&block)) {
            Some(known) => known.add_counts_of(&block),
            None => known.push(block),
        }
    }

    /// Returns what the thread has counted, with what it counted since.
    fn totals_with(&self, since: &Since) -> Totals {
        let mut signals = self.signals.clone();
        signals.merge(&since.signals);
        self.totals_of(signals)
    }

    fn totals_of(&self, signals: Signals) -> Totals {
        Totals::from([(THREAD, Counted { cpu: self.cpu, counts: Counts { signals, ..Counts::default() } })])
    }

    /// Returns what the thread has counted.
    pub(crate) fn totals(&self) -> Totals {
        self.totals_of(self.signals.clone())
    }

    /// Returns the cycles of all intervals.
    pub(crate) fn cycles(&self) -> Cycle {
        self.cycles
    }

    /// Iterates over all blocks that were executed.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &BoundBlock> + Clone {
        self.blocks.values().flatten()
    }
}
