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
    /// Those of them that were not followed, or only while caches were cold: what they have counted is not known.
    pub(super) unknown: u64,
    /// Executions that windows have measured.
    pub(super) seen: u64,
    /// By how much clocks have advanced for its executions.
    clocked: Clocked,
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

/// Executions that windows must have measured for a block to have a rate of its own.
const OWN_RATE: u64 = 1_000;

impl Block {
    /// Learns from executions that were timed, by how far their accesses went.
    #[inline(always)]
    pub(super) fn learn(&mut self, reach: Reach, timed: Timed) {
        self.timed[reach as usize].add(timed);
        // A program has phases.
        self.keep(LATELY);
        self.update();
    }

    /// Clocks advanced by `cost` ([`COST_UNIT`]) for executions.
    #[inline(always)]
    pub(super) fn clocked(&mut self, cost: u64) {
        self.clocked.cost += cost;
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
    fn update(&mut self) {
        let rate = self.clocked.rate;
        let mut all = Timed::default();
        self.timed.iter().for_each(|timed| all.add(*timed));
        let mean = all.cost(1).map_or(0, |cost| rate.of(cost));
        self.mean_cost = mean;
        self.costs = self.timed.map(|timed| timed.cost(ENOUGH).map_or(mean, |cost| rate.of(cost)));
    }
}

/// By how much clocks have advanced for executions that windows stand for, of a block or of all.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Clocked {
    /// How fast they advance.
    rate: Rate,
    /// By how much since the rate changed ([`COST_UNIT`]), and by how many cycles before that at the rate of one.
    cost: u64,
    before: f64,
}

impl Clocked {
    /// Clocks advance so that executions so far would have taken `estimated` cycles.
    fn follow(&mut self, estimated: f64) {
        self.before += std::mem::take(&mut self.cost) as f64 / COST_UNIT as f64 / self.rate.factor();
        self.rate = Rate::towards(estimated, self.before);
    }
}

/// How fast clocks advance while blocks are not timed, relative to what their executions cost in windows.
///
/// Costs by how far accesses go, of executions that were timed lately, add up to another number of cycles than the estimates for all
/// executions, by some percent. Waits would be wrong by as much: they last as long as the code of others takes. So clocks follow the estimates.
/// Some code differs more than other: a block that windows have seen often has a rate of its own.
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

    fn factor(self) -> f64 {
        f64::from(self.0) / f64::from(Rate::ONE)
    }

    #[inline(always)]
    fn of(self, cost: u32) -> u32 {
        (u64::from(cost) * u64::from(self.0)).div_ceil(u64::from(Rate::ONE)).min(u32::MAX.into()) as u32
    }
}

const REACHES: [Reach; Reach::COUNT] = [Reach::L1, Reach::L2, Reach::Memory, Reach::Core];

/// All blocks, by number of their origin.
#[derive(Clone, Default, serde::Deserialize, serde::Serialize)]
pub(super) struct Blocks {
    all: Vec<Block>,
}

impl Blocks {
    /// Clocks follow the estimates from now on, by which all executions so far have taken `estimated` cycles.
    pub(super) fn follow_estimates(&mut self, estimated: f64, sample: &Sample) {
        let (mut rest, mut rest_estimated) = (Clocked::default(), estimated);
        let known = |number, block: &Block| sample.rate(number, CYCLES).filter(|_| block.seen >= OWN_RATE);
        for (number, block) in (0..).zip(&mut self.all) {
            let so_far = known(number, block).map(|cost| cost * block.executions as f64);
            block.clocked.follow(so_far.unwrap_or(0.0));
            match so_far {
                Some(so_far) => rest_estimated -= so_far,
                None => rest.before += block.clocked.before,
            }
        }
        rest.follow(rest_estimated);
        for (number, block) in (0..).zip(&mut self.all) {
            if known(number, block).is_none() {
                block.clocked.rate = rest.rate;
            }
            block.update();
        }
    }

    /// Learns of a block that no window has seen what its first executions cost that were timed.
    #[inline(always)]
    pub(super) fn learn_first(&mut self, block: &BoundBlock, reach: Reach, cycles: u64) {
        let known = self.of(block);
        if known.seen == 0 {
            known.learn(reach, Timed { executions: 1, cycles });
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
            REACHES.iter().zip(sums.reached).for_each(|(&reach, timed)| block.learn(reach, timed));
        }
    }

    /// Returns how often each block ran, on all cores.
    pub(super) fn exposure(&self) -> Exposure {
        (0..).zip(&self.all).map(|(number, block)| (number, block.executions)).collect()
    }

    /// Returns how often each block was followed and counted.
    pub(super) fn followed(&self) -> Exposure {
        (0..).zip(&self.all).map(|(number, block)| (number, block.executions - block.unknown)).collect()
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
    use fxscope_sampling::Window;

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

    /// A block that costs 10 cycles, of which `seen` executions of 9 cycles are in a sample.
    fn sampled(seen: u64) -> (Block, Sample) {
        let mut block = Block { seen, ..Block::default() };
        block.learn(Reach::L1, timed(100, 10));
        let mut sample = Sample::new(CYCLES + 1, 2);
        sample.begin_window(&Window { stands_for: 100, instructions: 100, ..Window::default() }, 100);
        sample.add(0, seen, &[(CYCLES, 9 * seen)]);
        (block, sample)
    }

    fn run(block: &mut Block, executions: u64, cycles: u64) {
        block.executions += executions;
        block.clocked(COST_UNIT * cycles);
    }

    #[test]
    fn clocks_follow_the_estimates_of_all_executions_so_far() {
        let (block, sample) = sampled(OWN_RATE - 1);
        let mut blocks = Blocks { all: vec![block] };
        run(&mut blocks.all[0], 100, 1_000);
        blocks.follow_estimates(900.0, &sample);
        assert_eq!(blocks.all[0].mean_cost, 16 * 9);
        // 900 cycles at nine tenths are 1,000 at one: of 2,000 in all, estimates say 2,200.
        run(&mut blocks.all[0], 100, 900);
        blocks.follow_estimates(2_200.0, &sample);
        assert_eq!(blocks.all[0].mean_cost, 16 * 11);
        blocks.follow_estimates(1e9, &sample);
        assert_eq!(blocks.all[0].mean_cost, 16 * 20);
    }

    #[test]
    fn a_block_that_windows_have_seen_often_has_a_rate_of_its_own_and_the_others_that_of_the_rest() {
        let ((often, sample), (seldom, _)) = (sampled(OWN_RATE), sampled(OWN_RATE - 1));
        let mut blocks = Blocks { all: vec![often, seldom] };
        blocks.all.iter_mut().for_each(|block| run(block, 100, 1_000));
        blocks.follow_estimates(900.0 + 1_200.0, &sample);
        assert_eq!([0, 1].map(|n| blocks.all[n].mean_cost), [16 * 9, 16 * 12]);
    }

    #[test]
    fn a_cost_is_that_of_windows_as_soon_as_one_has_seen_the_block() {
        let mut block = Block::default();
        block.learn(Reach::L1, timed(LATELY, 100));
        block.keep(ENOUGH);
        block.learn(Reach::L1, timed(92, 10));
        let mean = 16 * (ENOUGH * 100 + 92 * 10) / (ENOUGH + 92);
        assert!(u64::from(block.mean_cost).abs_diff(mean) <= 1, "{}", block.mean_cost);
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
