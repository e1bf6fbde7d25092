//! Which accessed pages of slow memory are promoted: the hot threshold, its adjustment, and the limit of promotion.

use fxscope_calendar::Cycle;
use fxscope_machine::Spec;

/// Steps of the threshold between 0 and twice its usual value (`NUMA_MIGRATION_ADJUST_STEPS` of Linux).
const STEPS: Cycle = 16;
/// The candidates in a period, in percent of what the limit permits, above and below which the threshold changes.
const TOO_MANY: u128 = 110;
const TOO_FEW: u128 = 90;

/// The rules, with times in cycles.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Rules {
    threshold: Cycle,
    adjust_period: Cycle,
    window: Cycle,
    /// Most bytes of candidates in a window, and in the time between two adjustments.
    window_bytes: u64,
    adjust_bytes: u64,
}

/// The state of the rules for one process's fast memory.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct Gate {
    rules: Rules,
    /// The threshold now.
    threshold: Cycle,
    /// Bytes of pages that were hot so far.
    candidates: u64,
    /// When the window of the limit began, and the candidates until then.
    window: (Cycle, u64),
    /// The same of the last adjustment.
    adjusted: (Cycle, u64),
}

impl Gate {
    /// Returns the rules of a machine before anything was promoted.
    pub(super) fn new(spec: &Spec) -> Gate {
        let t = &spec.tiering;
        let cycles = |ns| super::cycles(ns, spec);
        let bytes = |ns: u64| (u128::from(t.promote_bytes_per_second) * u128::from(ns) / 1_000_000_000) as u64;
        let rules = Rules {
            threshold: cycles(t.hot_threshold_ns),
            adjust_period: cycles(t.adjust_period_ns),
            window: cycles(t.promote_window_ns),
            window_bytes: bytes(t.promote_window_ns),
            adjust_bytes: bytes(t.adjust_period_ns),
        };
        Gate { rules, threshold: rules.threshold, candidates: 0, window: (0, 0), adjusted: (0, 0) }
    }

    /// Fast memory is ample: what was learnt about the threshold no longer holds.
    pub(super) fn reset(&mut self) {
        self.threshold = self.rules.threshold;
    }

    /// Returns whether a page of `bytes` bytes is promoted that was accessed at `now`, `since` cycles after a scan.
    pub(super) fn admits(&mut self, bytes: u64, since: Cycle, now: Cycle) -> bool {
        self.adjust(now);
        if since >= self.threshold {
            return false;
        }
        self.candidates += bytes;
        if now.saturating_sub(self.window.0) > self.rules.window {
            self.window = (now, self.candidates);
        }
        self.candidates.saturating_sub(self.window.1) < self.rules.window_bytes
    }

    /// Raises or lowers the threshold, so that as many pages are hot as may be promoted.
    fn adjust(&mut self, now: Cycle) {
        if now.saturating_sub(self.adjusted.0) <= self.rules.adjust_period {
            return;
        }
        let step = (2 * self.rules.threshold / STEPS).max(1);
        let percent = u128::from(self.candidates.saturating_sub(self.adjusted.1)) * 100;
        let limit = u128::from(self.rules.adjust_bytes);
        if percent > limit * TOO_MANY {
            self.threshold = self.threshold.saturating_sub(step).max(step);
        } else if percent < limit * TOO_FEW {
            self.threshold = (self.threshold + step).min(2 * self.rules.threshold);
        }
        self.adjusted = (now, self.candidates);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 2 GHz: a threshold of 1,000 cycles, 4 KiB in 4,000 cycles, adjusted every 10,000.
    fn gate() -> Gate {
        let settings = [
            ("tiering.hot_threshold_ns", "500"),
            ("tiering.promote_window_ns", "2_000"),
            ("tiering.promote_bytes_per_second", "2_048_000_000"),
            ("tiering.adjust_period_ns", "5_000"),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Gate::new(&fxscope_machine::load("a64fx", &settings).expect("sound"))
    }

    #[test]
    fn a_page_is_hot_that_is_accessed_within_the_threshold_after_the_scan() {
        let mut gate = gate();
        assert_eq!([gate.admits(64, 999, 5_000), gate.admits(64, 1_000, 5_000)], [true, false]);
    }

    #[test]
    fn a_window_admits_as_many_bytes_as_the_limit_gives_for_its_length() {
        let mut gate = gate();
        // The first access opens a window and is not counted in it.
        let admitted = (0..8).filter(|_| gate.admits(1024, 10, 5_000)).count();
        assert_eq!(admitted, 1 + 3);
        assert!(gate.admits(1024, 10, 9_001), "the next window");
    }

    #[test]
    fn few_candidates_raise_the_threshold_by_an_eighth_and_many_lower_it() {
        let mut gate = gate();
        assert!(!gate.admits(64, 1_100, 10_000));
        assert!(gate.admits(64, 1_100, 10_001), "125 cycles more");
        assert!(!gate.admits(64, 1_125, 10_002));
        gate.admits(1 << 20, 10, 15_000);
        assert!(!gate.admits(64, 1_000, 20_002), "as before: the limit was exceeded");
        gate.reset();
        assert!(gate.admits(64, 999, 25_000));
    }
}
