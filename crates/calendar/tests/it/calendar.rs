//! Compares calendars with plain lists of reservations, for random requests in random order of time.

use std::collections::BTreeSet;

use fxscope_calendar::{Calendar, Cycle, LineBus};

/// A small deterministic generator (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed))
    }
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % n
    }
}

const SEEDS: std::ops::RangeInclusive<u64> = 1..=50;

#[test]
fn a_calendar_grants_the_first_unreserved_cycle() {
    for seed in SEEDS {
        let mut r = Random::new(seed);
        let mut calendar = Calendar::default();
        let mut taken = BTreeSet::new();
        let mut floor = 0;
        for _ in 0..3_000 {
            let t = floor + r.below(600);
            let expected = (t..).find(|c| !taken.contains(c)).expect("time is unbounded");
            assert_eq!(calendar.first_free(t), expected, "seed {seed}");
            assert_eq!(calendar.is_free(t), expected == t, "seed {seed}");
            assert_eq!(calendar.book(t), expected, "seed {seed}");
            taken.insert(expected);
            floor += r.below(3);
            calendar.advance(floor);
        }
    }
}

#[test]
fn a_long_operation_takes_the_first_free_cycles() {
    for seed in SEEDS {
        let mut r = Random::new(seed);
        let mut calendar = Calendar::default();
        let mut taken: BTreeSet<Cycle> = BTreeSet::new();
        for _ in 0..400 {
            let (t, n) = (r.below(900), 1 + r.below(12));
            let expected: Vec<Cycle> = (t..).filter(|c| !taken.contains(c)).take(n as usize).collect();
            assert_eq!(calendar.book_cycles(t, n), expected[0], "seed {seed}");
            taken.extend(expected);
        }
        assert!((0..taken.len() as u64 * 2 + 900).all(|c| calendar.is_free(c) != taken.contains(&c)), "seed {seed}");
    }
}

#[test]
fn a_bus_never_carries_more_lines_than_its_period_allows_and_is_never_early() {
    for seed in SEEDS {
        let mut r = Random::new(seed);
        let period_256 = 256 + r.below(2_000);
        let mut bus = LineBus::new(period_256);
        let mut starts: Vec<Cycle> = (0..500)
            .map(|_| {
                let t = r.below(3_000);
                let start = bus.book(t);
                assert!(start >= t, "seed {seed}");
                start
            })
            .collect();
        starts.sort_unstable();
        // In any sequence of transfers, the first to the last take all periods in between, except for rounding and the phase.
        for (i, &from) in starts.iter().enumerate() {
            for (n, &to) in starts[i..].iter().enumerate() {
                let least = n as u64 * period_256 / 256;
                let slack = period_256.div_ceil(256) + 1;
                assert!(to - from + slack >= least, "seed {seed}: {n} periods within {} cycles", to - from);
            }
        }
    }
}

#[test]
fn a_saturated_bus_carries_a_line_each_period() {
    for seed in SEEDS {
        let mut r = Random::new(seed);
        let period_256 = 256 + r.below(2_000);
        let mut bus = LineBus::new(period_256);
        let n = 1_000;
        let last = (0..n).map(|_| bus.book(50)).max().expect("some");
        let expected = 50 + (n - 1) * period_256 / 256;
        assert!(last.abs_diff(expected) <= period_256.div_ceil(256) + 1, "seed {seed}: {last}, {expected}");
    }
}
