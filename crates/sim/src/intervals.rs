//! Counts of all threads by intervals of simulated time.
//!
//! An interval has the counts up to the first moment at which every core has reached its end; no core is more than a
//! quantum past it then. Several intervals are merged into one where all cores sleep or spin past their ends, and where
//! nothing is counted, as outside of a region that alone is counted.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_memory::NEVER;

use crate::run::Options;

/// Most intervals of a run. The last one lasts to the end.
pub const MOST_INTERVALS: usize = 100_000;

/// An interval with its counts.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Interval {
    /// When it ended, simulated ns since the beginning of the run or of the part of it that is timed. It began where the previous one ended.
    pub end_ns: u64,
    /// The counts.
    pub signals: Signals,
}

/// The intervals of a run.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct Intervals {
    length_ns: u64,
    core_hz: u64,
    /// When the first one begins: the cycle, and the time in ns.
    begin: Cycle,
    begin_ns: u64,
    /// The number of lengths after which the next one ends.
    next: u64,
    /// The cycle in which the next one ends; [`NEVER`] without intervals, or when there are no more.
    due: Cycle,
    /// The counts of all intervals so far.
    counted: Signals,
    ended: Vec<Interval>,
}

impl Intervals {
    /// Returns the state at the start of a run.
    pub(crate) fn new(options: &Options) -> Intervals {
        let length_ns = options.interval_ns.unwrap_or(0);
        let core_hz = options.spec.clock.core_hz;
        let none = Intervals {
            length_ns,
            core_hz,
            begin: 0,
            begin_ns: 0,
            next: 1,
            due: NEVER,
            counted: Signals::default(),
            ended: Vec::new(),
        };
        match length_ns {
            0 => none,
            // They begin with the part of the run that is timed.
            _ if options.part.is_some() => none,
            _ => Intervals { due: none.end(1), ..none },
        }
    }

    /// The first one begins in cycle `now`, at `now_ns`.
    pub(crate) fn begin_at(&mut self, now: Cycle, now_ns: u64) {
        if self.length_ns > 0 {
            (self.begin, self.begin_ns) = (now, now_ns);
            self.due = self.end(1);
        }
    }

    /// The last one ends at `now_ns`, with the counts `counted`. There are no more.
    pub(crate) fn end_at(&mut self, now_ns: u64, counted: &Signals) {
        self.ended = self.finish(now_ns, counted);
        (self.length_ns, self.due) = (0, NEVER);
    }

    /// Returns the cycle in which the next one ends.
    #[inline(always)]
    pub(crate) fn due(&self) -> Cycle {
        self.due
    }

    /// Returns the last end at or before `now`.
    pub(crate) fn last_end(&self, now: Cycle) -> Cycle {
        self.end(self.lengths_by(now))
    }

    /// Returns the first cycle at which `lengths` lengths have passed.
    fn end(&self, lengths: u64) -> Cycle {
        let ns = u128::from(lengths) * u128::from(self.length_ns);
        self.begin + (ns * u128::from(self.core_hz)).div_ceil(1_000_000_000) as Cycle
    }

    /// Returns the number of lengths that have passed by `now`.
    fn lengths_by(&self, now: Cycle) -> u64 {
        let ns = u128::from(now.saturating_sub(self.begin)) * 1_000_000_000 / u128::from(self.core_hz);
        (ns / u128::from(self.length_ns)) as u64
    }

    /// Ends an interval at `now`, which all cores have reached. `counted` are the counts since the start of the run.
    pub(crate) fn take(&mut self, now: Cycle, counted: &Signals) {
        let lengths = self.lengths_by(now);
        self.push(lengths * self.length_ns, counted);
        self.next = lengths + 1;
        self.due = if self.ended.len() + 1 < MOST_INTERVALS { self.end(self.next) } else { NEVER };
    }

    /// Ends the run at `now_ns` with the counts `counted`. Returns its intervals.
    pub(crate) fn finish(&mut self, now_ns: u64, counted: &Signals) -> Vec<Interval> {
        if self.length_ns > 0 {
            let now_ns = now_ns.saturating_sub(self.begin_ns);
            match self.ended.last_mut() {
                // Counts that came after the end of the last interval belong to it.
                Some(last) if last.end_ns >= now_ns => last.signals.merge(&self.counted.advance(counted)),
                _ => self.push(now_ns, counted),
            }
        }
        std::mem::take(&mut self.ended)
    }

    fn push(&mut self, end_ns: u64, counted: &Signals) {
        let signals = self.counted.advance(counted);
        match self.ended.last_mut() {
            Some(last) if last.signals == signals && signals == Signals::default() => last.end_ns = end_ns,
            _ => self.ended.push(Interval { end_ns, signals }),
        }
    }
}
