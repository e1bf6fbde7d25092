//! What all threads count together in intervals of simulated time.
//!
//! An interval has what was counted up to the first moment at which every core had reached its end; none is further than a turn
//! then. Where all of them sleep or wait in loops past several ends, one interval takes the place of those; so it does where nothing
//! was counted, as outside of a region that alone is counted.

use fxscope_calendar::Cycle;
use fxscope_counts::Signals;
use fxscope_memory::NEVER;

use crate::run::Options;

/// Intervals that a run has at most; the last one lasts to its end.
pub const MOST_INTERVALS: usize = 100_000;

/// What was counted in an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it ended, simulated ns; it began where the one before it ended.
    pub end_ns: u64,
    /// The counts.
    pub signals: Signals,
}

/// The intervals of a run.
pub(crate) struct Intervals {
    length_ns: u64,
    core_hz: u64,
    /// Lengths after which the next one ends.
    next: u64,
    /// The cycle in which that is; [`NEVER`] without intervals, or when there are to be no more.
    due: Cycle,
    /// All that they have counted.
    told: Signals,
    ended: Vec<Interval>,
}

impl Intervals {
    /// None yet.
    pub(crate) fn new(options: &Options) -> Intervals {
        let length_ns = options.interval_ns.unwrap_or(0);
        let core_hz = options.spec.clock.core_hz;
        let none = Intervals { length_ns, core_hz, next: 1, due: NEVER, told: Signals::default(), ended: Vec::new() };
        match length_ns {
            0 => none,
            _ => Intervals { due: none.end(1), ..none },
        }
    }

    /// The cycle in which the next one ends.
    #[inline(always)]
    pub(crate) fn due(&self) -> Cycle {
        self.due
    }

    /// The last end that is not behind `now`.
    pub(crate) fn last_end(&self, now: Cycle) -> Cycle {
        self.end(self.lengths_by(now))
    }

    /// The first cycle at which so many lengths have passed.
    fn end(&self, lengths: u64) -> Cycle {
        let ns = u128::from(lengths) * u128::from(self.length_ns);
        (ns * u128::from(self.core_hz)).div_ceil(1_000_000_000) as Cycle
    }

    /// How many lengths have passed by `now`.
    fn lengths_by(&self, now: Cycle) -> u64 {
        let ns = u128::from(now) * 1_000_000_000 / u128::from(self.core_hz);
        (ns / u128::from(self.length_ns)) as u64
    }

    /// All cores have reached `now`, an end, and counted this since the run began.
    pub(crate) fn take(&mut self, now: Cycle, counted: &Signals) {
        let lengths = self.lengths_by(now);
        self.push(lengths * self.length_ns, counted);
        self.next = lengths + 1;
        self.due = if self.ended.len() + 1 < MOST_INTERVALS { self.end(self.next) } else { NEVER };
    }

    /// The run is over at `now_ns`, having counted this. Returns its intervals.
    pub(crate) fn finish(&mut self, now_ns: u64, counted: &Signals) -> Vec<Interval> {
        if self.length_ns > 0 {
            match self.ended.last_mut() {
                // What ended with the last interval is counted now.
                Some(last) if last.end_ns >= now_ns => last.signals.merge(&self.told.advance(counted)),
                _ => self.push(now_ns, counted),
            }
        }
        std::mem::take(&mut self.ended)
    }

    fn push(&mut self, end_ns: u64, counted: &Signals) {
        let signals = self.told.advance(counted);
        match self.ended.last_mut() {
            Some(last) if last.signals == signals && signals == Signals::default() => last.end_ns = end_ns,
            _ => self.ended.push(Interval { end_ns, signals }),
        }
    }
}
