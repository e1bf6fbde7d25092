//! What is known of each block in a sampled run.

use fxscope_pipeline::{BoundBlock, COST_UNIT};
use fxscope_sampling::{Exposure, Sample};

use super::CYCLES;
use super::window::Sums;

/// A block. Blocks of the same code are one, whichever core or process executes them.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Block {
    /// Its instructions; 0: it has not run.
    pub(super) instructions: u32,
    /// By how much an execution that is not timed advances the clock ([`COST_UNIT`]); 0: nothing is known of it.
    pub(super) cost: u32,
    /// Executions of all cores that windows stand for, and those whose counts are known, with their cycles.
    pub(super) executions: u64,
    apart: u64,
    cycles: u64,
    /// Executions that windows have measured.
    pub(super) seen: u64,
}

impl Block {
    /// Notes an execution whose counts are known. Until a window has measured the block, it costs what it did there.
    #[inline(always)]
    pub(super) fn timed_apart(&mut self, cycles: u64) {
        self.apart += 1;
        self.cycles += cycles;
        if self.seen == 0 {
            self.cost = (COST_UNIT * self.cycles).div_ceil(self.apart).clamp(1, u32::MAX.into()) as u32;
        }
    }
}

/// All blocks, by number of their origin.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Blocks(Vec<Block>);

impl Blocks {
    /// Returns what is known of a block.
    #[inline(always)]
    pub(super) fn of(&mut self, block: &BoundBlock) -> &mut Block {
        let index = block.origin as usize;
        if self.0.get(index).is_none_or(|known| known.instructions == 0) {
            self.note(block);
        }
        &mut self.0[index]
    }

    #[cold]
    fn note(&mut self, block: &BoundBlock) {
        let index = block.origin as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, Block::default);
        }
        self.0[index].instructions = block.profile.len() as u32;
    }

    /// Adds what a window has counted to the sample, and learns the costs of its blocks.
    pub(super) fn learn(&mut self, sums: &Sums, sample: &mut Sample) {
        let mut values = Vec::new();
        for sums in sums.blocks() {
            let measures = sums.measures.values().iter().copied().enumerate();
            values.clear();
            values.extend(measures.filter(|&(_, sum)| sum > 0).chain([(CYCLES, sums.measures.cycles())]));
            sample.add(sums.block, sums.executions, &values);
            let block = &mut self.0[sums.block as usize];
            block.seen = sample.executions_seen(sums.block);
            if let Some(rate) = sample.rate(sums.block, CYCLES) {
                // A cost beyond what the field holds is no cost that a block has.
                block.cost = (rate * COST_UNIT as f64).round().max(1.0) as u32;
            }
        }
    }

    /// Returns how often each block ran, on all cores.
    pub(super) fn exposure(&self) -> Exposure {
        (0..).zip(&self.0).map(|(number, block)| (number, block.executions)).collect()
    }

    /// Returns the instructions of each block.
    pub(super) fn instructions(&self) -> Vec<u32> {
        self.0.iter().map(|block| block.instructions).collect()
    }

    /// Returns how many executions of a block windows have measured.
    pub(super) fn seen(&self, origin: u32) -> u64 {
        self.0.get(origin as usize).map_or(0, |block| block.seen)
    }
}
