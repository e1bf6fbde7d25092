//! Finds periods among the lags between detours of a core, not only adjacent ones, by cause and by cause and length
//! class. A period stands out regardless of other detours in between.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

/// A period of recurring detours.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Period {
    /// The period, ns.
    pub period: f64,
    /// Number of detours that followed another after this time, beyond chance.
    pub detours: u64,
    /// Their share of the detours examined.
    pub share: f64,
}

/// Number of preceding detours with which each one is compared.
const BEFORE: usize = 64;
/// Bins of a lag histogram per factor of e.
const FINE: f64 = 200.0;
/// The shortest lag, ns.
const SHORTEST: f64 = 1_000.0;
/// Number of bins, up to a lag of about two hours.
const BINS: usize = 4_600;
/// Bins on each side that belong to a peak, 1.5 %.
const PEAK: usize = 3;
/// Bins on each side that estimate chance, 10 %.
const AROUND: usize = 20;
/// Minimum number of detours of a period, and their minimum share of all detours.
const FEWEST: f64 = 8.0;
const PART: f64 = 0.2;
/// Length classes: one for each factor of four.
const CLASS: u32 = 2;

/// Lags between the detours of a cause.
#[derive(Default)]
pub struct Lags {
    /// Lags of all lengths (`None`) and of each length class.
    streams: BTreeMap<Option<u32>, Stream>,
}

struct Stream {
    detours: u64,
    before: BTreeMap<u32, VecDeque<u64>>,
    counts: Vec<(u64, f64)>,
}

impl Stream {
    fn new() -> Stream {
        Stream { detours: 0, before: BTreeMap::new(), counts: vec![(0, 0.0); BINS] }
    }

    fn add(&mut self, core: u32, start: u64) {
        self.detours += 1;
        let before = self.before.entry(core).or_default();
        for earlier in before.iter() {
            let lag = (start - earlier) as f64;
            let bin = (lag / SHORTEST).ln() * FINE;
            if (0.0..BINS as f64).contains(&bin) {
                let (count, sum) = &mut self.counts[bin as usize];
                *count += 1;
                *sum += lag;
            }
        }
        if before.len() == BEFORE {
            before.pop_front();
        }
        before.push_back(start);
    }

    /// The detours of the peak at a bin in excess of its surroundings, and their mean lag.
    fn peak(&self, bin: usize) -> (f64, f64) {
        let sum = |from: usize, to: usize| {
            let part = &self.counts[from.min(BINS)..to.min(BINS)];
            part.iter().fold((0.0, 0.0), |all, &(count, sum)| (all.0 + count as f64, all.1 + sum))
        };
        let (low, high) = (bin.saturating_sub(PEAK), bin + PEAK + 1);
        let (inside, lags) = sum(low, high);
        let (left, right) = (sum(low.saturating_sub(AROUND), low).0, sum(high, high + AROUND).0);
        let chance = (left + right) / (2 * AROUND) as f64 * (high - low) as f64;
        (inside - chance - 4.0 * chance.sqrt(), if inside > 0.0 { lags / inside } else { 0.0 })
    }

    /// Periods, shortest first, without multiples of others.
    fn periods(&self) -> Vec<Period> {
        let mut found: Vec<Period> = Vec::new();
        let fewest = FEWEST.max(PART * self.detours as f64);
        let mut bin = 0;
        while bin < BINS {
            let (mut beyond, mut lag) = self.peak(bin);
            if beyond < fewest {
                bin += 1;
                continue;
            }
            // The top of the peak that begins here.
            for next in bin..(bin + 2 * PEAK).min(BINS) {
                let (more, at) = self.peak(next);
                if more > beyond {
                    (beyond, lag) = (more, at);
                }
            }
            bin += 3 * PEAK;
            let multiple = |one: &Period| {
                let ratio = lag / one.period;
                ratio > 1.5 && (ratio - ratio.round()).abs() < 0.03 * ratio.max(1.0)
            };
            if !found.iter().any(multiple) {
                let share = beyond / self.detours as f64;
                found.push(Period { period: lag, detours: beyond as u64, share: share.min(1.0) });
            }
        }
        found
    }
}

impl Lags {
    /// Adds a detour. Those of each core must come in order of their starts.
    pub fn add(&mut self, core: u32, start: u64, length: u64) {
        let class = length.max(1).ilog2() / CLASS;
        for stream in [None, Some(class)] {
            self.streams.entry(stream).or_insert_with(Stream::new).add(core, start);
        }
    }

    /// Returns the periods, by descending number of detours.
    #[must_use]
    pub fn periods(&self) -> Vec<Period> {
        let mut found: Vec<Period> = Vec::new();
        for period in self.streams.values().flat_map(Stream::periods) {
            match found.iter_mut().find(|one| (one.period / period.period - 1.0).abs() < 0.03) {
                Some(same) if same.detours < period.detours => *same = period,
                Some(_) => {}
                None => found.push(period),
            }
        }
        found.sort_by(|a, b| b.detours.cmp(&a.detours).then(a.period.total_cmp(&b.period)));
        found
    }
}
