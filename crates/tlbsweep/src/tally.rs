//! Counts by segment of accesses one after the other, and of those that missed; counts of many lanes at once.

use crate::SEGMENTS;

/// Rows of counts: so that counting does not wait for the count before.
const ROWS: usize = 4;
/// A miss; an access is 1.
const MISS: u64 = 1 << 32;

/// Accesses and misses by segment, both less than 2^32.
#[derive(Default)]
pub struct Tally([[u64; SEGMENTS]; ROWS]);

impl Tally {
    /// Of accesses to segments.
    pub fn of(segments: impl Iterator<Item = usize>) -> Tally {
        let mut tally = Tally::default();
        segments.enumerate().for_each(|(step, segment)| tally.access(step, segment, false));
        tally
    }

    /// Counts an access, the `step`th of all, that hit or missed.
    #[inline(always)]
    pub fn access(&mut self, step: usize, segment: usize, missed: bool) {
        self.0[step % ROWS][segment] += 1 + u64::from(missed) * MISS;
    }

    /// Adds the accesses to other counts.
    pub fn add_accesses(&self, counts: &mut [u64; SEGMENTS]) {
        self.add(counts, |count| count % MISS);
    }

    /// Adds the misses to other counts.
    pub fn add_misses(&self, counts: &mut [u64; SEGMENTS]) {
        self.add(counts, |count| count / MISS);
    }

    fn add(&self, counts: &mut [u64; SEGMENTS], part: impl Fn(u64) -> u64) {
        for row in &self.0 {
            counts.iter_mut().zip(row).for_each(|(count, &more)| *count += part(more));
        }
    }
}

/// Digits of the counts of lanes.
const DIGITS: usize = 12;

/// A count for each of 64 lanes, less than 2^12: of each digit a bit for each lane, so that all count at once.
#[derive(Clone, Copy, Default)]
pub struct Digits([u64; DIGITS]);

impl Digits {
    /// Lanes, a bit each, count one more.
    #[inline(always)]
    pub fn add(&mut self, mut lanes: u64) {
        // Most additions end at one of the first digits.
        for digits in self.0.as_chunks_mut::<4>().0 {
            for digit in digits {
                let carry = *digit & lanes;
                *digit ^= lanes;
                lanes = carry;
            }
            if lanes == 0 {
                return;
            }
        }
    }

    /// The count of a lane.
    pub fn of(&self, lane: usize) -> u64 {
        self.0.iter().rev().fold(0, |count, digit| count << 1 | digit >> lane & 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_lane_counts_how_often_it_was_among_those_added(masks in prop::collection::vec(any::<u64>(), 0..2048)) {
            let mut digits = Digits::default();
            masks.iter().for_each(|&mask| digits.add(mask | 1));
            for lane in 0..64 {
                let added = masks.iter().filter(|&&mask| (mask | 1) >> lane & 1 != 0).count();
                prop_assert_eq!(digits.of(lane), added as u64);
            }
        }
    }
}
