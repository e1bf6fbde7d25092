//! Counters of accesses and misses by segment, and bit-sliced counters of many classes.

use crate::SEGMENTS;

/// Copies of each counter, used in turn so that an increment does not wait for the one before.
const ROWS: usize = 4;
/// Increment for a miss; an access adds 1.
const MISS: u64 = 1 << 32;

/// Accesses and misses by segment, each below 2^32.
#[derive(Default)]
pub struct SegmentCounters([[u64; SEGMENTS]; ROWS]);

impl SegmentCounters {
    /// Counts accesses to segments.
    pub fn of(segments: impl Iterator<Item = usize>) -> SegmentCounters {
        let mut counters = SegmentCounters::default();
        segments.enumerate().for_each(|(step, segment)| counters.access(step, segment, false));
        counters
    }

    /// Counts the `step`th access, a hit or a miss.
    #[inline(always)]
    pub fn access(&mut self, step: usize, segment: usize, missed: bool) {
        self.0[step % ROWS][segment] += 1 + u64::from(missed) * MISS;
    }

    /// Adds the accesses to `counts`.
    pub fn add_accesses(&self, counts: &mut [u64; SEGMENTS]) {
        self.add(counts, |count| count % MISS);
    }

    /// Adds the misses to `counts`.
    pub fn add_misses(&self, counts: &mut [u64; SEGMENTS]) {
        self.add(counts, |count| count / MISS);
    }

    fn add(&self, counts: &mut [u64; SEGMENTS], part: impl Fn(u64) -> u64) {
        for row in &self.0 {
            counts.iter_mut().zip(row).for_each(|(count, &more)| *count += part(more));
        }
    }
}

/// Bits of a bit-sliced counter.
const BITS: usize = 12;

/// Bit-sliced counters: 64 counters below 2^12, one for each class. Word `i` holds bit `i` of all counters, so that one
/// addition increments any of them.
#[derive(Clone, Copy, Default)]
pub struct BitSlicedCounters([u64; BITS]);

impl BitSlicedCounters {
    /// Increments the counters of the classes in a mask.
    #[inline(always)]
    pub fn add(&mut self, mut classes: u64) {
        // Most carries end within the first bits.
        for bits in self.0.as_chunks_mut::<4>().0 {
            for bit in bits {
                let carry = *bit & classes;
                *bit ^= classes;
                classes = carry;
            }
            if classes == 0 {
                return;
            }
        }
    }

    /// Returns the counter of a class.
    pub fn of(&self, class: usize) -> u64 {
        self.0.iter().rev().fold(0, |count, bit| count << 1 | bit >> class & 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn each_class_is_counted_as_often_as_it_was_added(masks in prop::collection::vec(any::<u64>(), 0..2048)) {
            let mut counters = BitSlicedCounters::default();
            masks.iter().for_each(|&mask| counters.add(mask | 1));
            for class in 0..64 {
                let added = masks.iter().filter(|&&mask| (mask | 1) >> class & 1 != 0).count();
                prop_assert_eq!(counters.of(class), added as u64);
            }
        }
    }
}
