//! Samples drawn from synthetic programs, and how good the estimates from them are.

use fxscope_sampling::{DEFAULT_GROUPS, Estimates, Exposure, Plan, Sample, Schedule, Window, estimate};

use super::synthetic::{MEASURES, Population};

/// The plan of all draws: like the default, but for a program of 400,000 instructions.
pub fn plan(seed: u64) -> Plan {
    Plan { window: 200, warm: 20, period: 2_000, keep: 50, seed, ..Plan::default() }
}

/// What one run of a program sees.
pub struct Draw {
    /// By block.
    pub blocks: Sample,
    /// The whole program as a single block of one instruction, which makes the block estimator the plain ratio of totals.
    pub whole: Sample,
}

/// Runs a program once. `at_window` is called before each window, with what windows have seen so far.
pub fn draw(population: &Population, plan: &Plan, mut at_window: impl FnMut(&mut Schedule, &Sample)) -> Draw {
    let mut schedule = Schedule::new(plan);
    let sample = Sample::new(MEASURES, DEFAULT_GROUPS);
    let mut draw = Draw { blocks: sample.clone(), whole: sample };
    let (mut warm, mut counted) = (0_u64, 0_u64);
    // A run knows how many cores there were in the last window.
    let (mut expected, mut window, mut seen) = (1, Window::default(), Vec::new());
    let (mut pending, mut pending_rare) = (0, 0);
    for (position, &(block, cycles, misses)) in population.executions.iter().enumerate() {
        let size = u64::from(population.instructions[block as usize]);
        pending += size;
        pending_rare += if schedule.is_rare(draw.blocks.executions_seen(block)) { size } else { 0 };
        if warm > 0 {
            warm = warm.saturating_sub(size);
        } else if counted > 0 {
            counted = counted.saturating_sub(size);
            seen.push((block, size, cycles, misses));
            if counted == 0 {
                draw.add(&window, &std::mem::take(&mut seen));
            }
        } else if let Some(begins) =
            schedule.ran(std::mem::take(&mut pending), std::mem::take(&mut pending_rare), expected)
        {
            at_window(&mut schedule, &draw.blocks);
            expected = population.cores_at(position);
            (window, warm, counted) = (begins, begins.warm * expected, begins.instructions * expected);
        }
    }
    draw.add(&window, &seen);
    draw
}

impl Draw {
    /// Adds a window that has seen these executions: block, instructions, cycles and misses of each.
    fn add(&mut self, window: &Window, seen: &[(u32, u64, u64, u64)]) {
        let measured = seen.iter().map(|(_, size, ..)| size).sum();
        if measured == 0 {
            return;
        }
        self.blocks.begin_window(window, measured);
        self.whole.begin_window(window, measured);
        for &(block, size, cycles, misses) in seen {
            self.blocks.add(block, 1, &[(0, cycles), (1, misses)]);
            self.whole.add(0, size, &[(0, cycles), (1, misses)]);
        }
    }
}

/// Returns executions by block of a part of a program.
pub fn exposure(executions: &[(u32, u64, u64)]) -> Exposure {
    executions.iter().map(|(block, ..)| (*block, 1)).collect()
}

/// Estimates a whole program from the sample that does not distinguish blocks.
pub fn plain_ratio(population: &Population, draw: &Draw) -> Estimates {
    estimate(&draw.whole, &[1], &[(0, population.length())].into_iter().collect())
}

/// How good an estimator of a quantity is over many draws. Errors are fractions of the true value.
#[derive(Default, Debug)]
pub struct Quality {
    /// Mean error.
    pub bias: f64,
    /// Root of the mean squared error.
    pub rms: f64,
    /// Mean half-width of the interval of 95 %.
    pub half_width: f64,
    /// Share of draws whose interval has the true value.
    pub coverage: f64,
    /// Mean share of instructions in blocks that no window saw.
    pub unseen: f64,
    /// Mean number of windows.
    pub windows: f64,
    draws: f64,
}

impl Quality {
    /// Measures the quality of estimates of a quantity whose true value is known.
    pub fn of(estimates: &[Estimates], truth: f64, quantity: impl Fn(&[f64]) -> f64) -> Self {
        let draws = estimates.len() as f64;
        let mut sum = Self::default();
        for e in estimates {
            let interval = e.interval_of(0.95, &quantity);
            let error = interval.estimate / truth - 1.0;
            sum.bias += error;
            sum.rms += error * error;
            sum.half_width += interval.half_width / truth;
            sum.coverage += if interval.contains(truth) { 1.0 } else { 0.0 };
            sum.unseen += e.unseen_share();
            sum.windows += e.windows() as f64;
        }
        Self {
            bias: sum.bias / draws,
            rms: (sum.rms / draws).sqrt(),
            half_width: sum.half_width / draws,
            coverage: sum.coverage / draws,
            unseen: sum.unseen / draws,
            windows: sum.windows / draws,
            draws,
        }
    }

    /// Returns the standard error of `bias`.
    pub fn error_of_bias(&self) -> f64 {
        self.rms / self.draws.sqrt()
    }
}
