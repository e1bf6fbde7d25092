//! Counts by segment of what comes one after the other.

use crate::SEGMENTS;

/// Rows of counts: so that counting does not wait for the count before.
const ROWS: usize = 4;

/// Counts by segment.
#[derive(Default)]
pub struct Tally([[u32; SEGMENTS]; ROWS]);

impl Tally {
    /// Counts what happened in a segment as the `step`th of all.
    #[inline(always)]
    pub fn add(&mut self, step: usize, segment: usize) {
        self.0[step % ROWS][segment] += 1;
    }

    /// Adds what was counted to other counts.
    pub fn add_to(&self, counts: &mut [u64; SEGMENTS]) {
        for row in &self.0 {
            counts.iter_mut().zip(row).for_each(|(count, &more)| *count += u64::from(more));
        }
    }
}
