//! Sampled runs: most blocks are only followed (functional warming), and some are timed in windows.
//!
//! Between windows, a core's clock advances by what each block cost in windows on average when its accesses went as far (L1, L2, memory,
//! another core), so that threads wait for one another as they would have. A window is an interval of simulated time in which every
//! core is timed; the first part of it fills what is short-lived in a core and is not measured. It ends when the cores have executed
//! the planned instructions: if it ended after a time, phases in which instructions take longer would have a smaller share of the
//! sample.
//!
//! The counts of the run are those that do not depend on time, which are counted throughout, and estimates of the others: how
//! often each block ran, which is known exactly, times what an execution of it counted in windows ([`fxscope_sampling`]).

mod blocks;
mod estimates;
mod skip;
mod trial;
mod window;

use fxscope_aarch64::Cpu;
use fxscope_calendar::Cycle;
use fxscope_linux::Guest;
use fxscope_memory::Chip;
use fxscope_pipeline::{BoundBlock, COST_UNIT, Measures, Pipeline, Reach};
use fxscope_sampling::{DEFAULT_GROUPS, Estimates, Plan, Precision, Sample, Schedule, estimate};

use crate::machine::Machine;
use crate::trace::Trace;
use blocks::Blocks;
pub use estimates::{SampleSummary, SampledRegion};
pub use skip::SkipSummary;
use skip::{Ahead, Skip};
pub use trial::Bias;
use trial::Trial;
use window::{Sums, Window};

/// What the sample holds in addition to [`Measures`]: the cycles of a block.
const CYCLES: usize = Measures::COUNT;

/// Windows until it is judged for the first time how well time is known, and the share of windows by which their number then grows
/// until it is judged again.
const FIRST_JUDGED: u64 = 64;
const JUDGED: u64 = 8;
/// The least number of windows until it is judged again.
const LEAST_JUDGED: u64 = 8;

/// Instructions of each core between two looks at the schedule.
const LOOK: u64 = 1_000;

/// The sample of a run.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Sampling {
    schedule: Schedule,
    sample: Sample,
    blocks: Blocks,
    window: Window,
    sums: Sums,
    /// Instructions of all cores since the last look at the schedule, and those in blocks that windows have hardly seen.
    pending: u64,
    pending_rare: u64,
    /// Instructions of all cores after which the next look follows.
    look_at: u64,
    /// Which of them are skipped.
    skip: Skip,
    /// The last block belongs to a loop that was found to spin.
    spins: bool,
    /// A trial that begins before the next block: the instructions of all cores that would be skipped. One that has begun.
    trial_begins: Option<u64>,
    trial: Option<Box<Trial>>,
    /// Cores that were timed in the last window, and those that run now: that do not wait, and are not known to spin.
    timed_cores: u64,
    running_cores: u64,
    /// The cost of an instruction in the last windows.
    mean_cost: u64,
    /// Instructions at the beginning of the run that are all timed: a shorter program is timed as without sampling.
    beginning: u64,
    /// Instructions whose counts are known, and those that were timed in windows.
    apart: u64,
    timed: u64,
    /// How well time must be known for windows to become sparser, and the number of windows at which that is judged next.
    precision: Precision,
    judged_at: u64,
}

impl Sampling {
    /// Returns the state before a run. With `auto`, windows become sparser when time is known to `precision`. Each memory serves at most
    /// `cores_of_memory` cores.
    pub(crate) fn new(plan: &Plan, precision: Precision, cores_of_memory: u32) -> Sampling {
        Sampling {
            schedule: Schedule::new(plan).with_cores_of_memory(cores_of_memory.into()),
            sample: Sample::new(CYCLES + 1, DEFAULT_GROUPS),
            blocks: Blocks::default(),
            window: Window::default(),
            sums: Sums::default(),
            pending: 0,
            pending_rare: 0,
            look_at: LOOK,
            skip: Skip::new(plan),
            spins: false,
            trial_begins: None,
            trial: None,
            timed_cores: 1,
            running_cores: 1,
            mean_cost: COST_UNIT,
            beginning: plan.begin,
            apart: 0,
            timed: 0,
            precision,
            judged_at: FIRST_JUDGED,
        }
    }

    /// Times a block whose counts are those of the run: one of the beginning, or of a loop that spins or may be found to. How long a thread waits
    /// is known from the clock; windows would rather see the last iteration of each wait, which takes long.
    fn time_apart(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        pipeline.begin_timing();
        let (before, reached) = (pipeline.now(), pipeline.reached(chip));
        ().run(pipeline, chip, block, executed, guest);
        block.known += 1;
        let reach = pipeline.reached(chip).since(&reached);
        self.blocks.learn_first(block, reach, pipeline.now() - before);
        self.apart += executed as u64;
        match self.trial.is_some() {
            true if self.window.is_open => self.time_trial((pipeline, before), block, executed, guest, None),
            true => self.follow_trial((pipeline, chip), block, executed, guest.cpu()),
            false => {}
        }
    }

    /// Times a block in the window.
    fn time(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        pipeline.begin_timing();
        if pipeline.enter_window(self.window.number) {
            self.sums.begin_core();
        }
        self.timed += executed as u64;
        let known = self.blocks.of(block);
        (known.executions, known.unknown) = (known.executions + 1, known.unknown + 1);
        let began = pipeline.now();
        let cores = self.sums.cores();
        if self.sums.warmed_up() < self.window.planned.warm * cores {
            // Its profile is that of no execution that counts.
            let unused = self.sums.unused_profile(block.profile.len());
            std::mem::swap(&mut block.profile, unused);
            Sampling::counted(pipeline, chip, block, executed, guest);
            std::mem::swap(&mut block.profile, unused);
            self.time_trial((pipeline, began), block, executed, guest, None);
            self.sums.warm_up(executed as u64);
            self.blocks.of(block).clocked(COST_UNIT * (pipeline.now() - began));
            return;
        }
        block.swap_profiles();
        let reached = pipeline.reached(chip);
        let mut counted = Sampling::counted(pipeline, chip, block, executed, guest);
        for subnormal in guest.cpu().subnormals() {
            counted.add_subnormal(pipeline.subnormal_cycles(block, subnormal));
        }
        block.swap_profiles();
        self.time_trial((pipeline, began), block, executed, guest, Some(counted.cycles()));
        self.blocks.of(block).clocked(COST_UNIT * (pipeline.now() - began));
        self.sums.add(block.origin, executed as u64, &counted, pipeline.reached(chip).since(&reached));
        if self.sums.measured() >= self.window.planned.instructions * cores {
            self.window.until = self.window.until.min(pipeline.now());
        }
    }

    /// Times a block and returns its measures, for which the sample stands.
    fn counted(
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) -> Measures {
        let before = pipeline.measures();
        ().run(pipeline, chip, block, executed, guest);
        let counted = pipeline.measures().since(&before);
        pipeline.exclude(&counted);
        counted
    }

    /// Notes how many cores run.
    #[inline(always)]
    pub(crate) fn set_running(&mut self, cores: usize) {
        self.running_cores = cores as u64;
    }

    /// Returns on how many cores the next window is expected: the last one says how many come into it that wait for short times, those that run
    /// now that there are more.
    fn cores(&self) -> u64 {
        self.timed_cores.max(self.running_cores)
    }

    /// Returns whether the beginning of the run is over, which is timed as without sampling.
    pub(crate) fn is_past_beginning(&self) -> bool {
        self.apart >= self.beginning
    }

    /// Returns whether few iterations show that a core waits: between windows only the length of a wait matters.
    #[inline(always)]
    pub(crate) fn is_between_windows(&self) -> bool {
        self.is_past_beginning() && !self.window.is_open
    }

    /// Returns whether the next block will only be followed.
    #[inline(always)]
    pub(crate) fn follows(&self) -> bool {
        self.is_past_beginning() && !self.window.is_open && self.pending < self.look_at
    }

    /// Follows a block, of which `executed` instructions have been executed, without timing it.
    #[inline(always)]
    pub(crate) fn follow(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        cpu: &Cpu,
    ) {
        let is_cold = self.skip.is_cold();
        pipeline.set_cold(is_cold);
        block.skipped += u64::from(is_cold);
        let known = self.blocks.of(block);
        known.executions += 1;
        known.unknown += u64::from(is_cold);
        let costs =
            if known.costs[0] == 0 { [(self.mean_cost * executed as u64) as u32; Reach::COUNT] } else { known.costs };
        let is_rare = self.schedule.is_rare(known.seen);
        self.pending += executed as u64;
        self.skip.followed(executed as u64);
        self.pending_rare += if is_rare { executed as u64 } else { 0 };
        if self.trial.is_some() {
            self.follow_trial((pipeline, chip), block, executed, cpu);
        }
        let cost = pipeline.warm(block, executed, cpu.stream(), cpu.pc, &costs, chip);
        self.blocks.of(block).clocked(cost.into());
    }

    /// Begins the trial that is planned, if there is one.
    #[inline(always)]
    pub(crate) fn begin_trial(&mut self, machine: &Machine) {
        if let Some(left) = self.trial_begins.take() {
            self.trial = Some(Box::new(Trial::new(machine, left)));
        }
    }

    /// Continues the trial: a block is followed.
    #[cold]
    #[inline(never)]
    fn follow_trial(&mut self, core: (&Pipeline, &Chip), block: &BoundBlock, executed: usize, cpu: &Cpu) {
        if !self.trial.as_mut().is_some_and(|trial| trial.follow(core, block, executed, cpu)) {
            self.trial = None;
        }
    }

    /// Continues the trial, if there is one, in which a block was timed, which began at the cycle that comes with its core. It takes
    /// `cycles` if it counts.
    fn time_trial(
        &mut self,
        core: (&Pipeline, Cycle),
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
        cycles: Option<u64>,
    ) {
        if !self.trial.as_mut().is_some_and(|trial| trial.time(core, block, executed, guest, cycles)) {
            self.trial = None;
        }
    }

    /// Ends the window: what it counted becomes part of the sample.
    #[cold]
    fn close(&mut self) {
        self.window.is_open = false;
        if self.sums.cores() > 0 {
            self.timed_cores = self.sums.cores();
        }
        if let Some(cost) = self.sums.cost() {
            self.mean_cost = (3 * self.mean_cost + cost) / 4;
        }
        // The schedule is asked at the next look: a window that is due now must not be lost.
        self.pending += self.sums.warmed_up() + self.sums.measured();
        let mut sums = std::mem::take(&mut self.sums);
        sums.share_busy();
        self.sample.begin_window(&self.window.planned, sums.measured());
        self.blocks.learn(&sums, &mut self.sample);
        if let Some(trial) = self.trial.take() {
            self.skip.learn(trial.cycles().of_each(sums.cores()), self.precision.error);
        }
        self.sums = sums.emptied();
        let windows = self.sample.windows();
        if windows >= self.judged_at {
            self.judge();
        } else if windows >= LEAST_JUDGED && windows.is_power_of_two() {
            self.blocks.follow_estimates(self.estimates().totals()[CYCLES], &self.sample);
        }
    }

    /// Returns what the sample says of all blocks so far.
    fn estimates(&self) -> Estimates {
        estimate(&self.sample, &self.blocks.instructions(), &self.blocks.exposure())
    }

    /// Makes windows sparser if time is known well enough, and denser again if it is not.
    fn judge(&mut self) {
        let estimates = self.estimates();
        self.schedule.wants_more(&estimates, &self.precision, |totals| totals[CYCLES]);
        self.blocks.follow_estimates(estimates.totals()[CYCLES], &self.sample);
        // A window of long periods stands for much of the run: a phase that is not known must be noticed after few of them.
        let windows = self.sample.windows();
        let usual = (windows / JUDGED).max(FIRST_JUDGED) >> self.schedule.sparser();
        self.judged_at = windows + usual.max(LEAST_JUDGED);
    }

    /// Ends the run.
    pub(crate) fn finish(&mut self) {
        if self.window.is_open {
            self.close();
        }
    }

    /// Lets the instructions since the last look pass in the schedule. Begins a window if one is due.
    #[cold]
    fn advance(&mut self) -> bool {
        let cores = self.cores();
        self.look_at = LOOK * cores;
        if !self.skip.has_window() {
            let (instructions, rare) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.pending_rare));
            match self.schedule.ran(instructions, rare, cores) {
                Some(due) => self.skip.wait(due),
                None => {
                    let until = self.schedule.until_next() / cores;
                    match self.skip.plan(until, self.sample.windows()) {
                        Ahead::Follow => {}
                        Ahead::Skip(instructions) => self.look_at = instructions * cores,
                        Ahead::Trial(instructions) => self.trial_begins = Some(instructions * cores),
                    }
                    return false;
                }
            }
        }
        match self.skip.due(cores) {
            Ok(planned) => {
                self.window.begin(planned);
                true
            }
            Err(left) => {
                self.look_at = self.pending + left;
                false
            }
        }
    }
}

impl Trace for Sampling {
    fn may_skip_iterations(&self) -> bool {
        true
    }

    fn sampling(&mut self) -> Option<&mut Sampling> {
        Some(self)
    }

    fn run_watched(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        if executed > 0 {
            self.time_apart(pipeline, chip, block, executed, guest);
        }
    }

    fn run(
        &mut self,
        pipeline: &mut Pipeline,
        chip: &mut Chip,
        block: &mut BoundBlock,
        executed: usize,
        guest: &mut Guest,
    ) {
        if executed == 0 {
            return;
        }
        self.spins = self.blocks.of(block).spins;
        if self.apart < self.beginning || self.spins {
            return self.time_apart(pipeline, chip, block, executed, guest);
        }
        let now = pipeline.now();
        if self.window.is_open {
            if now < self.window.until {
                return self.time(pipeline, chip, block, executed, guest);
            }
            if let Some(busy) = pipeline.leave_window() {
                self.sums.add_busy(busy);
            }
            // Cores that are behind come to the end of the window first.
            if now >= self.window.until.saturating_add(window::SLACK) {
                self.close();
            }
        } else if self.pending >= self.look_at && self.advance() {
            return self.time(pipeline, chip, block, executed, guest);
        }
        self.follow(pipeline, chip, block, executed, guest.cpu());
    }
}
