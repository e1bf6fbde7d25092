//! What is known of each block in a sampled run.

use fxscope_pipeline::{BoundBlock, COST_UNIT, Reach};
use fxscope_sampling::{Exposure, Sample};

use super::CYCLES;
use super::window::Sums;

/// A block. Blocks of the same code are one, whichever core or process executes them.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Block {
    /// Its instructions; 0: it has not run.
    pub(super) instructions: u32,
    /// By how much an execution that is not timed advances the clock ([`COST_UNIT`]), by how far its accesses go; 0: nothing is known
    /// of it.
    pub(super) costs: [u32; Reach::COUNT],
    /// The same, however far they go.
    pub(super) mean_cost: u32,
    /// Executions that were timed lately, and their cycles.
    timed: [Timed; Reach::COUNT],
    /// Executions of all cores that windows stand for.
    pub(super) executions: u64,
    /// Executions that windows have measured.
    pub(super) seen: u64,
}

/// Executions of a block that were timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct Timed {
    pub(super) executions: u64,
    pub(super) cycles: u64,
}

impl Timed {
    #[inline(always)]
    pub(super) fn add(&mut self, other: Timed) {
        self.executions += other.executions;
        self.cycles += other.cycles;
    }

    /// Forgets half of the executions.
    fn fade(&mut self) {
        let kept = self.executions / 2;
        self.cycles = (self.cycles * kept).checked_div(self.executions).unwrap_or(0);
        self.executions = kept;
    }

    /// Returns the cost of an execution; `None`: too few have been timed.
    fn cost(&self, least: u64) -> Option<u32> {
        let is_known = self.executions >= least.max(1);
        let cost =
            |timed: &Timed| (COST_UNIT * timed.cycles).div_ceil(timed.executions).clamp(1, u32::MAX.into()) as u32;
        is_known.then(|| cost(self))
    }
}

/// Executions of which costs are the mean, at most, and those that it takes for one that depends on how far accesses go.
const LATELY: u64 = 16_384;
const ENOUGH: u64 = 8;

impl Block {
    /// Learns from executions that were timed, by how far their accesses went.
    #[inline(always)]
    pub(super) fn learn(&mut self, reach: Reach, timed: Timed) {
        self.timed[reach as usize].add(timed);
        // A program has phases. All are forgotten alike: the mean must keep their shares.
        while self.timed.iter().map(|timed| timed.executions).sum::<u64>() > LATELY {
            self.timed.iter_mut().for_each(Timed::fade);
        }
        self.update();
    }

    /// Where too little is known, the cost is the mean.
    #[inline(always)]
    fn update(&mut self) {
        let mut all = Timed::default();
        self.timed.iter().for_each(|timed| all.add(*timed));
        let mean = all.cost(1).unwrap_or(0);
        self.mean_cost = mean;
        self.costs = self.timed.map(|timed| timed.cost(ENOUGH).unwrap_or(mean));
    }
}

const REACHES: [Reach; Reach::COUNT] = [Reach::L1, Reach::L2, Reach::Memory, Reach::Core];

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
            REACHES.iter().zip(sums.reached).for_each(|(&reach, timed)| block.learn(reach, timed));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(executions: u64, cycles: u64) -> Timed {
        Timed { executions, cycles: executions * cycles }
    }

    #[test]
    fn a_block_costs_what_it_cost_when_its_accesses_went_as_far_and_its_mean_where_too_little_is_known() {
        let mut block = Block::default();
        assert_eq!(block.costs, [0; Reach::COUNT]);
        block.learn(Reach::L1, timed(30, 10));
        block.learn(Reach::Memory, timed(10, 250));
        block.learn(Reach::L2, timed(ENOUGH - 1, 70));
        let mean = (16 * (30 * 10 + 10 * 250 + (ENOUGH - 1) * 70)).div_ceil(40 + ENOUGH - 1) as u32;
        assert_eq!(block.costs, [160, mean, 16 * 250, mean]);
    }

    #[test]
    fn the_mean_keeps_the_shares_of_near_and_far_accesses_however_many_there_are() {
        let mut block = Block::default();
        for _ in 0..1_000 {
            block.learn(Reach::L1, timed(990, 10));
            block.learn(Reach::Memory, timed(10, 260));
        }
        let mean = f64::from(block.mean_cost) / COST_UNIT as f64;
        assert!((mean - 12.5).abs() < 0.2, "{mean}");
    }

    #[test]
    fn costs_follow_the_program_into_another_phase() {
        let mut block = Block::default();
        block.learn(Reach::L2, timed(LATELY, 10));
        for _ in 0..20 {
            block.learn(Reach::L2, timed(LATELY / 2, 90));
        }
        assert!(block.costs[Reach::L2 as usize] > 16 * 89, "{:?}", block.costs);
    }
}
