//! Call stacks of threads, sampled at equal distances of simulated time.
//!
//! A sample is taken when every core has reached its time, as the end of an interval of counts is. It has the threads that run then;
//! threads that wait have none. Stacks are followed by frame pointers ([`Guest::stack_of`]).

use std::collections::BTreeMap;

use fxscope_aarch64::Engine;
use fxscope_calendar::Cycle;
use fxscope_linux::guest::PID;
use fxscope_linux::{Frame, Guest};
use fxscope_memory::NEVER;

use crate::run::Options;
use crate::timing::Driver;

/// Most samples of a run, and most functions in their stacks, each counted once for each stack that leads to it.
const MOST_SAMPLES: usize = 1 << 20;
const MOST_CALLS: usize = 1 << 16;

/// A function in a stack.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Call {
    /// The function that called it, as an index into [`CallStacks::calls`]; always a smaller one than its own.
    pub caller: Option<u32>,
    /// Its name or, if that is not known, that of its file in brackets.
    pub function: String,
    /// The file of its code, as programs see the path.
    pub file: Option<Vec<u8>>,
}

/// The stack of a thread at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct CallSample {
    /// The thread's number in the simulation.
    pub thread: u32,
    /// Simulated time, ns since the beginning of the run or of the part of it that is timed.
    pub at_ns: u64,
    /// The innermost function, as an index into [`CallStacks::calls`].
    pub call: u32,
}

/// Sampled call stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct CallStacks {
    /// The distance of samples, ns; 0: none were requested.
    pub interval_ns: u64,
    /// The functions.
    pub calls: Vec<Call>,
    /// The samples in order of time.
    pub samples: Vec<CallSample>,
    /// Whether later samples are missing, since there were too many.
    pub is_full: bool,
}

/// Samples call stacks.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct StackSampler {
    core_hz: u64,
    /// The cycle in which sampling began, had there been no pauses.
    begin: Cycle,
    /// The number of the next sample.
    next: u64,
    /// The cycle of the next sample; [`NEVER`] without samples, or when there are no more.
    due: Cycle,
    stacks: CallStacks,
    /// The number of each function under its caller.
    numbers: BTreeMap<(Option<u32>, String), u32>,
}

impl StackSampler {
    /// Returns the state at the start of a run.
    pub(crate) fn new(options: &Options) -> StackSampler {
        let stacks = CallStacks { interval_ns: options.stack_ns.unwrap_or(0), ..CallStacks::default() };
        let core_hz = options.spec.clock.core_hz;
        let mut sampler = StackSampler { core_hz, begin: 0, next: 1, due: NEVER, stacks, numbers: BTreeMap::new() };
        // They begin with the part of the run that is timed.
        if options.part.is_none() {
            sampler.begin_at(0);
        }
        sampler
    }

    /// Sampling begins in cycle `now`, or continues there after a pause, which is not part of the samples' times.
    pub(crate) fn begin_at(&mut self, now: Cycle) {
        if self.stacks.interval_ns > 0 && !self.stacks.is_full {
            self.begin = 0;
            self.begin = now.saturating_sub(self.cycle_of(self.next - 1));
            self.due = self.cycle_of(self.next);
        }
    }

    /// There are no more samples.
    pub(crate) fn end(&mut self) {
        self.due = NEVER;
    }

    /// Returns the cycle of the next sample.
    #[inline(always)]
    pub(crate) fn due(&self) -> Cycle {
        self.due
    }

    /// Returns the stacks that were sampled.
    pub(crate) fn finish(&mut self) -> CallStacks {
        std::mem::take(&mut self.stacks)
    }

    fn cycle_of(&self, number: u64) -> Cycle {
        let ns = u128::from(number) * u128::from(self.stacks.interval_ns);
        self.begin.saturating_add((ns * u128::from(self.core_hz)).div_ceil(1_000_000_000) as Cycle)
    }

    /// Takes the last sample that is due at `now`. Those before it are of a time in which no core ran.
    fn take(&mut self, now: Cycle, threads: &[u32], guest: &Guest) {
        while self.cycle_of(self.next + 1) <= now {
            self.next += 1;
        }
        let at_ns = self.next * self.stacks.interval_ns;
        for &thread in threads {
            if self.stacks.samples.len() >= MOST_SAMPLES {
                self.stacks.is_full = true;
                self.due = NEVER;
                return;
            }
            if let Some(call) = self.call(&guest.stack_of(PID + thread)) {
                self.stacks.samples.push(CallSample { thread, at_ns, call });
            }
        }
        self.next += 1;
        self.due = self.cycle_of(self.next);
    }

    /// Returns the number of the innermost function of a stack.
    fn call(&mut self, frames: &[Frame]) -> Option<u32> {
        let mut caller = None;
        for frame in frames.iter().rev() {
            let function = name(frame);
            let key = (caller, function);
            let known = self.numbers.get(&key).copied();
            let Some(number) = known.or_else(|| self.add(&key, frame)) else { break };
            caller = Some(number);
        }
        caller
    }

    /// Adds a function. `None`: there are too many, and its time counts for its caller.
    fn add(&mut self, key: &(Option<u32>, String), frame: &Frame) -> Option<u32> {
        let number = self.stacks.calls.len();
        if number >= MOST_CALLS {
            return None;
        }
        let file = frame.file.as_ref().map(|(path, _)| path.clone());
        self.stacks.calls.push(Call { caller: key.0, function: key.1.clone(), file });
        self.numbers.insert(key.clone(), number as u32);
        Some(number as u32)
    }

    /// Returns whether every number in it refers to an entry, as those of a snapshot may not.
    pub(crate) fn is_sound(&self) -> bool {
        let calls = self.stacks.calls.len();
        let before = |(index, call): (usize, &Call)| call.caller.is_none_or(|caller| (caller as usize) < index);
        self.stacks.calls.iter().enumerate().all(before)
            && self.stacks.samples.iter().all(|sample| (sample.call as usize) < calls)
            && self.numbers.iter().all(|((caller, _), &number)| {
                (number as usize) < calls && caller.is_none_or(|caller| (caller as usize) < calls)
            })
    }
}

/// Returns the name of a function.
fn name(frame: &Frame) -> String {
    match (&frame.function, &frame.file) {
        (Some(function), _) => function.clone(),
        (None, Some((path, _))) => {
            let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
            format!("[{}]", String::from_utf8_lossy(last))
        }
        (None, None) => "[code without a file]".to_owned(),
    }
}

impl<E: Engine> Driver<'_, E> {
    /// Samples the stacks of the threads that run at `now`, which all cores have reached.
    #[cold]
    pub(crate) fn sample_stacks(&mut self, now: Cycle) {
        let runs = |index: usize| {
            let core = self.timing.machine.get(index)?;
            core.thread.filter(|_| self.timing.clocks[index] != NEVER)
        };
        let threads: Vec<u32> = (0..self.timing.machine.cores.len()).filter_map(runs).collect();
        self.timing.stacks.take(now, &threads, self.guest);
    }
}
