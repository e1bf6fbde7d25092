//! Synthetic programs: sequences of block executions whose costs are known.

use std::f64::consts::TAU;

/// Measures of a population: cycles, and misses.
pub const MEASURES: usize = 2;

/// A program that has run: what each execution of a block cost, in order.
pub struct Population {
    /// Instructions of one execution of each block.
    pub instructions: Vec<u32>,
    /// Block, cycles and misses of each execution.
    pub executions: Vec<(u32, u64, u64)>,
    /// How many cores run, by the number of the execution.
    cores: fn(usize) -> u64,
}

impl Population {
    /// Returns instructions of all executions.
    pub fn length(&self) -> u64 {
        self.executions.iter().map(|(block, ..)| u64::from(self.instructions[*block as usize])).sum()
    }

    /// Returns how many cores run at an execution.
    pub fn cores_at(&self, execution: usize) -> u64 {
        (self.cores)(execution)
    }

    /// Returns the true totals of the measures.
    pub fn totals(&self) -> [f64; MEASURES] {
        self.executions.iter().fold([0.0; 2], |[c, m], (_, cycles, misses)| [c + *cycles as f64, m + *misses as f64])
    }
}

/// Random numbers of a seed (an xorshift generator: independent of the one under test).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2_685_821_657_736_338_717) | 1)
    }

    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number less than `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.unit() * bound as f64) as usize
    }

    /// Returns a number of an exponential distribution.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Returns a number of at least 1 with a tail of power `alpha`.
    pub fn pareto(&mut self, alpha: f64) -> f64 {
        (1.0 - self.unit()).powf(-1.0 / alpha)
    }
}

/// Blocks with sizes and mean costs: each has a number of instructions, cycles and misses of its own.
struct Blocks {
    instructions: Vec<u32>,
    cycles: Vec<f64>,
    misses: Vec<f64>,
}

impl Blocks {
    fn new(count: usize, numbers: &mut Numbers) -> Self {
        let instructions: Vec<u32> = (0..count).map(|_| 3 + numbers.below(15) as u32).collect();
        let cycles = instructions.iter().map(|n| f64::from(*n) * (0.4 + numbers.exponential(1.0))).collect();
        let misses = (0..count).map(|_| (numbers.unit() - 0.6).max(0.0)).collect();
        Self { instructions, cycles, misses }
    }

    /// Runs a block once: its mean costs times `factor`, with noise.
    fn run(&self, block: usize, factor: f64, numbers: &mut Numbers) -> (u32, u64, u64) {
        let misses = numbers.exponential(self.misses[block] * factor);
        let cycles = self.cycles[block] * factor * (0.5 + numbers.exponential(0.5));
        (block as u32, cycles.round() as u64, misses.round() as u64)
    }

    /// Returns a loop of neighbouring blocks, as a nest of loops executes them.
    fn neighbour(&self, first: usize, count: usize, numbers: &mut Numbers) -> usize {
        let step = (numbers.exponential(count as f64 / 4.0)) as usize;
        (first + step.min(count - 1)) % self.instructions.len()
    }
}

/// Executions of a population; the blocks have about 10 instructions.
const EXECUTIONS: usize = 40_000;

/// Builds a population by a function of position (0 to 1) that returns the first of the loop's blocks, their number and a factor.
fn build(seed: u64, blocks: usize, mut at: impl FnMut(f64, &mut Numbers) -> (usize, usize, f64)) -> Population {
    build_by_instructions(seed, blocks, |position, _, numbers| at(position, numbers))
}

/// Like [`build`]; the function also gets the number of instructions that have run.
fn build_by_instructions(
    seed: u64,
    blocks: usize,
    mut at: impl FnMut(f64, u64, &mut Numbers) -> (usize, usize, f64),
) -> Population {
    let mut numbers = Numbers::new(seed);
    let blocks = Blocks::new(blocks, &mut numbers);
    let mut ran = 0;
    let executions = (0..EXECUTIONS)
        .map(|i| {
            let (first, count, factor) = at(i as f64 / EXECUTIONS as f64, ran, &mut numbers);
            let block = blocks.neighbour(first, count, &mut numbers);
            ran += u64::from(blocks.instructions[block]);
            blocks.run(block, factor, &mut numbers)
        })
        .collect();
    Population { instructions: blocks.instructions, executions, cores: |_| 1 }
}

/// Costs that are independent of each other.
pub fn independent(seed: u64) -> Population {
    build(seed, 50, |_, _| (0, 50, 1.0))
}

/// Twelve phases of different loops; a loop that comes again costs another amount.
pub fn phases(seed: u64) -> Population {
    build(seed, 60, |at, _| {
        let phase = (at * 12.0) as usize;
        (phase % 4 * 15, 15, 1.0 + 0.5 * (phase as f64 * 1.7).sin())
    })
}

/// A factor that wanders: costs are similar to those shortly before.
pub fn autocorrelated(seed: u64) -> Population {
    let mut level = 0.0;
    build(seed, 50, move |_, numbers| {
        // A correlation length of 1,000 executions, that is, of some five periods.
        level += -level / 1_000.0 + (numbers.unit() - 0.5) * 0.05;
        (0, 50, f64::exp(level))
    })
}

/// Inner loops: a block runs 10 to 200 times in a row, and all of that costs up to four times its mean or down to a quarter.
pub fn clustered(seed: u64) -> Population {
    let (mut left, mut block, mut factor) = (0, 0, 1.0);
    build(seed, 50, move |_, numbers| {
        if left == 0 {
            left = 10 + numbers.below(190);
            block = numbers.exponential(12.0) as usize % 50;
            factor = f64::powf(4.0, 2.0 * numbers.unit() - 1.0);
        }
        left -= 1;
        (block, 1, factor)
    })
}

/// Costs that grow to the threefold.
pub fn drifting(seed: u64) -> Population {
    build(seed, 50, |at, _| (0, 50, 1.0 + 2.0 * at))
}

/// Costs that alternate with the first period of the sample.
pub fn periodic(seed: u64) -> Population {
    build_by_instructions(seed, 50, |_, ran, _| (0, 50, 1.0 + 0.9 * (ran as f64 / 2_000.0 * TAU).sin()))
}

/// One tenth of the executions in 1,500 blocks that are run a few times each, and whose costs have a long tail.
pub fn heavy_tail(seed: u64) -> Population {
    let mut population = build(seed, 50, |_, _| (0, 50, 1.0));
    let mut numbers = Numbers::new(seed + 77);
    let mut rare = Vec::new();
    for _ in 0..1_500 {
        rare.push((population.instructions.len() as u32, 10.0 * numbers.pareto(1.8).min(40.0)));
        population.instructions.push(10);
    }
    for i in 0..EXECUTIONS / 10 {
        let (block, cycles) = rare[((numbers.unit().powi(2)) * rare.len() as f64) as usize];
        let cost = (cycles * (0.5 + numbers.unit())).round() as u64;
        let burst = numbers.below(EXECUTIONS - 10);
        population.executions[burst.max(i % 10)] = (block, cost, cost / 40);
    }
    population
}

/// A dear block that occurs in one fiftieth of the run only.
pub fn one_phase(seed: u64) -> Population {
    let mut population = build(seed, 50, |_, _| (0, 50, 1.0));
    let mut numbers = Numbers::new(seed + 7);
    population.instructions.push(12);
    let phase = 17 * EXECUTIONS / 50..18 * EXECUTIONS / 50;
    for execution in &mut population.executions[phase] {
        if numbers.unit() < 0.7 {
            let cycles = 40.0 + numbers.exponential(60.0);
            *execution = (50, cycles as u64, (cycles / 40.0) as u64);
        }
    }
    population
}

/// A factor that changes every 40 executions, up to the double or down to the half.
fn steps() -> impl FnMut(f64, &mut Numbers) -> f64 {
    let (mut step, mut factor) = (usize::MAX, 1.0);
    move |at, numbers| {
        let now = (at * EXECUTIONS as f64) as usize / 40;
        if now != step {
            (step, factor) = (now, f64::powf(2.0, 2.0 * numbers.unit() - 1.0));
        }
        factor
    }
}

/// A quarter of the run in phases of 2,000 instructions, each a loop of its own that no other phase runs: hardly more than one window sees
/// it. A phase costs up to a hundred times as much as another, in steps.
pub fn own_loops(seed: u64) -> Population {
    const PHASES: usize = 200;
    let mut numbers = Numbers::new(seed + 5);
    let costs: Vec<f64> = (0..PHASES).map(|_| f64::powf(100.0, numbers.unit())).collect();
    let mut factor = steps();
    build(seed, 50 + 4 * PHASES, move |at, numbers| {
        let (phase, factor) = ((at * PHASES as f64) as usize, factor(at, numbers));
        if phase % 4 == 1 { (50 + 4 * phase, 4, costs[phase] * factor) } else { (0, 50, factor) }
    })
}

/// One loop of 3,000 instructions, of which hardly more than one window sees anything, takes a third of the cycles. All costs vary in steps.
pub fn dear_loop(seed: u64) -> Population {
    let mut factor = steps();
    build(seed, 54, move |at, numbers| {
        let (dear, factor) = ((0.7..0.7075).contains(&at), factor(at, numbers));
        if dear { (50, 4, 65.0 * factor) } else { (0, 50, factor) }
    })
}

/// Common blocks that cost the fourfold while code that is run once runs among them.
pub fn cold_code(seed: u64) -> Population {
    let mut population = build(seed, 50, |at, _| (0, 50, if at * 10.0 % 1.0 > 0.9 { 4.0 } else { 1.0 }));
    let mut numbers = Numbers::new(seed + 3);
    for i in 0..EXECUTIONS {
        if i * 10 % EXECUTIONS > 9 * EXECUTIONS / 10 && i % 3 == 0 {
            let block = population.instructions.len() as u32;
            population.instructions.push(10);
            population.executions[i] = (block, 20 + numbers.exponential(40.0) as u64, 1);
        }
    }
    population
}

/// A third of the executions on one core, the others on four, in turn, for few periods each. The same blocks cost the threefold while four
/// cores contend.
pub fn serial_and_parallel(seed: u64) -> Population {
    let cores = |execution: usize| if (execution / 2_000).is_multiple_of(3) { 1 } else { 4 };
    let place = |at: f64| (at * EXECUTIONS as f64).round() as usize;
    let population = build(seed, 50, |at, _| (0, 50, if cores(place(at)) == 1 { 1.0 } else { 3.0 }));
    Population { cores, ..population }
}
