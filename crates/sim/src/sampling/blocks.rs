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
    /// It belongs to a loop that was found to spin.
    pub(super) spins: bool,
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
    /// Learns from executions that were timed, by how far their accesses went. Clocks advance at `rate`.
    #[inline(always)]
    pub(super) fn learn(&mut self, reach: Reach, timed: Timed, rate: Rate) {
        self.timed[reach as usize].add(timed);
        // A program has phases.
        self.keep(LATELY);
        self.update(rate);
    }

    /// Remembers `most` executions at most. All are forgotten alike: the mean must keep their shares.
    #[inline(always)]
    fn keep(&mut self, most: u64) {
        while self.timed.iter().map(|timed| timed.executions).sum::<u64>() > most {
            self.timed.iter_mut().for_each(Timed::fade);
        }
    }

    /// Where too little is known, the cost is the mean.
    #[inline(always)]
    fn update(&mut self, rate: Rate) {
        let mut all = Timed::default();
        self.timed.iter().for_each(|timed| all.add(*timed));
        let mean = all.cost(1).map_or(0, |cost| rate.of(cost));
        self.mean_cost = mean;
        self.costs = self.timed.map(|timed| timed.cost(ENOUGH).map_or(mean, |cost| rate.of(cost)));
    }
}

/// How fast clocks advance while blocks are not timed, relative to what their executions cost in windows.
///
/// Costs by how far accesses go, of executions that were timed lately, add up to another number of cycles than the estimates for all
/// executions, by some percent. Waits would be wrong by as much: they last as long as the code of others takes. So clocks follow the estimates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(super) struct Rate(u32);

impl Default for Rate {
    fn default() -> Rate {
        Rate(Rate::ONE)
    }
}

impl Rate {
    const ONE: u32 = 1 << 12;

    /// Returns the rate for which costs that add up to `cycles` add up to `estimated`: between a half and two.
    fn towards(estimated: f64, cycles: f64) -> Rate {
        let ratio = if estimated > 0.0 && cycles > 0.0 { estimated / cycles } else { 1.0 };
        Rate((f64::from(Rate::ONE) * ratio.clamp(0.5, 2.0)).round() as u32)
    }

    #[inline(always)]
    fn of(self, cost: u32) -> u32 {
        (u64::from(cost) * u64::from(self.0)).div_ceil(u64::from(Rate::ONE)).min(u32::MAX.into()) as u32
    }
}

const REACHES: [Reach; Reach::COUNT] = [Reach::L1, Reach::L2, Reach::Memory, Reach::Core];

/// All blocks, by number of their origin, and by how much clocks have advanced for their executions.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Blocks {
    all: Vec<Block>,
    rate: Rate,
    /// Cycles of all cores since the rate changed, and those before that at the rate of one.
    clocked: u64,
    clocked_before: f64,
}

impl Blocks {
    /// The clock of a core advanced by `cycles` for executions that windows stand for.
    #[inline(always)]
    pub(super) fn clocked(&mut self, cycles: u64) {
        self.clocked += cycles;
    }

    /// Clocks follow the estimates from now on, by which all executions so far have taken `estimated` cycles.
    pub(super) fn follow_estimates(&mut self, estimated: f64) {
        let rate = f64::from(self.rate.0) / f64::from(Rate::ONE);
        self.clocked_before += std::mem::take(&mut self.clocked) as f64 / rate;
        self.rate = Rate::towards(estimated, self.clocked_before);
        self.all.iter_mut().for_each(|block| block.update(self.rate));
    }

    /// Learns of a block that no window has seen what its first executions cost that were timed.
    #[inline(always)]
    pub(super) fn learn_first(&mut self, block: &BoundBlock, reach: Reach, cycles: u64) {
        let rate = self.rate;
        let known = self.of(block);
        if known.seen == 0 {
            known.learn(reach, Timed { executions: 1, cycles }, rate);
        }
    }

    /// Returns what is known of a block.
    #[inline(always)]
    pub(super) fn of(&mut self, block: &BoundBlock) -> &mut Block {
        let index = block.origin as usize;
        if self.all.get(index).is_none_or(|known| known.instructions == 0) {
            self.note(block);
        }
        &mut self.all[index]
    }

    #[cold]
    fn note(&mut self, block: &BoundBlock) {
        let index = block.origin as usize;
        if index >= self.all.len() {
            self.all.resize_with(index + 1, Block::default);
        }
        self.all[index].instructions = block.profile.len() as u32;
    }

    /// Adds what a window has counted to the sample, and learns the costs of its blocks.
    pub(super) fn learn(&mut self, sums: &Sums, sample: &mut Sample) {
        let mut values = Vec::new();
        for sums in sums.blocks() {
            let measures = sums.measures.values().iter().copied().enumerate();
            values.clear();
            values.extend(measures.filter(|&(_, sum)| sum > 0).chain([(CYCLES, sums.measures.cycles())]));
            sample.add(sums.block, sums.executions, &values);
            let block = &mut self.all[sums.block as usize];
            if block.seen == 0 {
                // The beginning of a run says little of the rest.
                block.keep(ENOUGH);
            }
            block.seen = sample.executions_seen(sums.block);
            REACHES.iter().zip(sums.reached).for_each(|(&reach, timed)| block.learn(reach, timed, self.rate));
        }
    }

    /// Returns how often each block ran, on all cores.
    pub(super) fn exposure(&self) -> Exposure {
        (0..).zip(&self.all).map(|(number, block)| (number, block.executions)).collect()
    }

    /// Returns the instructions of each block.
    pub(super) fn instructions(&self) -> Vec<u32> {
        self.all.iter().map(|block| block.instructions).collect()
    }

    /// Returns how many executions of a block windows have measured.
    pub(super) fn seen(&self, origin: u32) -> u64 {
        self.all.get(origin as usize).map_or(0, |block| block.seen)
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
        block.learn(Reach::L1, timed(30, 10), Rate::default());
        block.learn(Reach::Memory, timed(10, 250), Rate::default());
        block.learn(Reach::L2, timed(ENOUGH - 1, 70), Rate::default());
        let mean = (16 * (30 * 10 + 10 * 250 + (ENOUGH - 1) * 70)).div_ceil(40 + ENOUGH - 1) as u32;
        assert_eq!(block.costs, [160, mean, 16 * 250, mean]);
    }

    #[test]
    fn the_mean_keeps_the_shares_of_near_and_far_accesses_however_many_there_are() {
        let mut block = Block::default();
        for _ in 0..1_000 {
            block.learn(Reach::L1, timed(990, 10), Rate::default());
            block.learn(Reach::Memory, timed(10, 260), Rate::default());
        }
        let mean = f64::from(block.mean_cost) / COST_UNIT as f64;
        assert!((mean - 12.5).abs() < 0.2, "{mean}");
    }

    #[test]
    fn clocks_follow_the_estimates_of_all_executions_so_far() {
        let mut blocks = Blocks { all: vec![Block::default()], ..Blocks::default() };
        blocks.all[0].learn(Reach::L1, timed(100, 10), Rate::default());
        blocks.clocked(1_000);
        blocks.follow_estimates(900.0);
        assert_eq!(blocks.all[0].mean_cost, 16 * 9);
        // 900 cycles at nine tenths are 1,000 at one: of 2,000 in all, estimates say 2,200.
        blocks.clocked(900);
        blocks.follow_estimates(2_200.0);
        assert_eq!(blocks.all[0].mean_cost, 16 * 11);
        blocks.follow_estimates(1e9);
        assert_eq!(blocks.all[0].mean_cost, 16 * 20);
    }

    #[test]
    fn a_cost_is_that_of_windows_as_soon_as_one_has_seen_the_block() {
        let mut block = Block::default();
        block.learn(Reach::L1, timed(LATELY, 100), Rate::default());
        block.keep(ENOUGH);
        block.learn(Reach::L1, timed(92, 10), Rate::default());
        let mean = 16 * (ENOUGH * 100 + 92 * 10) / (ENOUGH + 92);
        assert!(u64::from(block.mean_cost).abs_diff(mean) <= 1, "{}", block.mean_cost);
    }

    #[test]
    fn costs_follow_the_program_into_another_phase() {
        let mut block = Block::default();
        block.learn(Reach::L2, timed(LATELY, 10), Rate::default());
        for _ in 0..20 {
            block.learn(Reach::L2, timed(LATELY / 2, 90), Rate::default());
        }
        assert!(block.costs[Reach::L2 as usize] > 16 * 89, "{:?}", block.costs);
    }
}
