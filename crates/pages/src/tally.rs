//! Counts by segment of accesses one after the other, and of those that missed.

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
