//! When windows begin.

use serde::{Deserialize, Serialize};

use crate::estimate::Estimates;
use crate::interval::Precision;
use crate::plan::Plan;
use crate::random::Random;

/// A window that begins now with its detailed warm-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Why it begins.
    pub kind: WindowKind,
    /// Instructions of all cores that it stands for: those since the period of the window before it.
    pub stands_for: u64,
    /// Instructions of each core that are timed first and not counted: as many times those of the plan as cores run that share a memory.
    pub warm: u64,
    /// Instructions of each core that are timed and counted after that.
    pub instructions: u64,
}

/// Why a window begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum WindowKind {
    /// At a random place of its period.
    #[default]
    Regular,
    /// Because many instructions ran in blocks that windows have hardly seen.
    Rare {
        /// What makes a block rare: fewer executions in windows than this.
        seen_less_than: u64,
    },
}

/// The windows of a run, as it continues.
///
/// Progress is the number of instructions of all cores, in windows and between them. It is divided into periods, and each has one regular
/// window, which begins at a random place of it, all places alike. A program that repeats itself with the period of the sample is
/// therefore not always seen in the same phase. A window that would overlap the one before begins when that has ended.
///
/// A period is as many times longer than that of one core as cores run when it begins, since a window times all of them. Other numbers of
/// cores may run before it ends, and in its window. A window therefore *stands for* the instructions of its period, however many it
/// measures: a part of the run counts by its length, and neither by how densely it was sampled nor by how many cores ran it.
///
/// Periods are short at first. The period of a core doubles when progress comes to 2 · `keep` of them: a run of any length has `keep` to
/// 2 · `keep` samples of its last density, of which a window on twelve cores gives twelve. Earlier windows are not forgotten.
///
/// Windows for rare blocks have a series of their own: one begins when a *rare period* of instructions has run in rare blocks since any
/// window began. That is the first period, and it doubles in the same way. Such a window shows what else would remain unknown, but it is
/// placed by what ran, early in the life of a block, so that regular windows decide the cost of all blocks that they see.
///
/// With `auto`, [`Schedule::wants_more`] doubles periods again each time it finds that time is known well enough, up to
/// 2⁶ times, and halves them when it is no longer, on several cores also to those of one core. Windows never stop: a later phase of the run may
/// differ, and its first sign is a wider interval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Schedule {
    plan: Plan,
    /// Cores that share a memory.
    sharing: u64,
    random: Random,
    /// Instructions so far, and the cores that ran the last of them.
    progress: u64,
    cores: u64,
    /// Where the current period ends.
    period_end: u64,
    /// The length of the current period, with those before it that had no window.
    stands_for: u64,
    /// Where the next window's warm-up begins.
    next: u64,
    /// Where the last window ends.
    busy_until: u64,
    /// Instructions in rare blocks so far, and those since a window began.
    rare_progress: u64,
    rare_since: u64,
    /// Doublings of the period beyond what progress demands; less than 0: fewer.
    sparser: i32,
}

/// Most doublings for precision that has been reached.
const MOST_SPARSER: i32 = 6;
/// How many times larger than wanted an error is for which windows become denser.
const TOO_LARGE: f64 = 2.0;
/// Most doublings of the period.
const MOST_DOUBLINGS: u32 = 32;

impl Schedule {
    /// Returns the schedule of a run that begins.
    #[must_use]
    pub fn new(plan: &Plan) -> Self {
        let mut schedule = Self {
            random: Random::new(plan.seed),
            plan: plan.clone(),
            sharing: u64::MAX,
            progress: 0,
            cores: 1,
            period_end: 0,
            stands_for: 0,
            next: 0,
            busy_until: 0,
            rare_progress: 0,
            rare_since: 0,
            sparser: 0,
        };
        schedule.begin_period();
        schedule
    }

    /// Returns the same for a machine each of whose memories serves at most this number of cores; otherwise, one serves all.
    #[must_use]
    pub fn with_cores_of_memory(self, cores: u64) -> Self {
        Self { sharing: cores.max(1), ..self }
    }

    /// Returns the plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns whether a block of which windows have seen `executions` is rare.
    #[must_use]
    pub fn is_rare(&self, executions: u64) -> bool {
        executions < self.plan.rare
    }

    /// Returns how many instructions may run until a regular window begins. Ask again after each call of [`Schedule::ran`].
    #[must_use]
    pub fn until_next(&self) -> u64 {
        self.next.max(self.busy_until).saturating_sub(self.progress)
    }

    /// Notes that the run has continued by `instructions` of all cores, of which `rare` in rare blocks ([`Schedule::is_rare`]), and
    /// returns the window that begins now, if one does. `cores` run now. What a window itself runs, with its warm-up, must be noted, too; no
    /// window begins in it.
    pub fn ran(&mut self, instructions: u64, rare: u64, cores: u64) -> Option<Window> {
        self.cores = cores.max(1);
        self.progress = self.progress.saturating_add(instructions);
        self.rare_progress = self.rare_progress.saturating_add(rare);
        self.rare_since = self.rare_since.saturating_add(rare);
        if self.progress < self.busy_until {
            return None;
        }
        let rare_period = self.period(doublings(self.rare_progress, &self.plan));
        if self.progress >= self.next {
            let stands_for = std::mem::take(&mut self.stands_for);
            self.begin_period();
            Some(self.window(WindowKind::Regular, stands_for))
        } else if self.plan.rare > 0 && self.rare_since >= rare_period {
            Some(self.window(WindowKind::Rare { seen_less_than: self.plan.rare }, rare_period))
        } else {
            None
        }
    }

    /// Returns a window that begins now.
    fn window(&mut self, kind: WindowKind, stands_for: u64) -> Window {
        let Plan { warm, window: instructions, period, .. } = self.plan;
        // A memory serves several cores: its queues fill as much more slowly as there are more of them.
        let warm = warm.saturating_mul(self.cores.min(self.sharing)).min(period.saturating_sub(instructions));
        self.busy_until = self.progress.saturating_add((warm + instructions).saturating_mul(self.cores));
        self.rare_since = 0;
        Window { kind, stands_for, warm, instructions }
    }

    /// Returns the instructions of all cores in a period that has doubled this often.
    fn period(&self, doublings: u32) -> u64 {
        self.plan.period.saturating_mul(self.cores).saturating_mul(1 << doublings)
    }

    /// Begins the period behind the current one, or the one that progress has come to, and places its window.
    fn begin_period(&mut self) {
        loop {
            let begin = self.period_end;
            let period = self.period(doublings(begin, &self.plan).saturating_add_signed(self.sparser));
            self.period_end = begin.saturating_add(period);
            self.stands_for = self.stands_for.saturating_add(period);
            self.next = begin.saturating_add(self.random.below(period));
            if self.period_end > self.progress || self.period_end == u64::MAX {
                return;
            }
        }
    }

    /// Returns how often periods have doubled since time is known well enough.
    #[must_use]
    pub fn sparser(&self) -> u32 {
        self.sparser.max(0).unsigned_abs()
    }

    /// Returns whether time is not yet known to `precision`, and spaces later windows accordingly if the plan is `auto`: periods double
    /// when it is known, and once more for each halving of the error below that. They halve when the error is more than twice as large, once for
    /// each doubling of the error: a smaller excess vanishes as the run continues. On several cores, they may become as short as those of other plans are on one: cores do
    /// the like in one window, which may show less than as many windows of one core. `time` is the value of interest as a function of the
    /// measures' totals. Ask after every hundred windows or so: each answer changes later periods.
    pub fn wants_more(&mut self, estimates: &Estimates, precision: &Precision, time: impl Fn(&[f64]) -> f64) -> bool {
        let error = estimates.interval_of(precision.confidence, time).relative();
        let is_known = error <= precision.error;
        if self.plan.auto {
            if is_known {
                // Half of the error needs four times as many windows.
                let halvings = (precision.error / error.max(f64::MIN_POSITIVE)).log2().min(MOST_SPARSER.into()) as i32;
                self.sparser = (self.sparser + 1 + halvings).min(MOST_SPARSER);
            } else if error > TOO_LARGE * precision.error {
                let doublings = (error / precision.error).log2().min(MOST_SPARSER.into()) as i32;
                self.sparser = (self.sparser - doublings).max(-(self.cores.ilog2() as i32));
            }
        }
        !is_known
    }
}

/// Returns how often the period of a core has doubled at a point of a run: as often as keeps the run shorter than 2 · `keep` of them.
fn doublings(progress: u64, plan: &Plan) -> u32 {
    let periods = progress / plan.period / (2 * plan.keep);
    (u64::BITS - periods.leading_zeros()).min(MOST_DOUBLINGS)
}
