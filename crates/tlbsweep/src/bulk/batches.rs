//! Batches that workers process before they synchronise.

use rayon::prelude::*;

use crate::bulk::batch::Batch;
use crate::size_masks::{Key, PageSizes};

/// Maximum number of batches at once: enough to amortise waking processors and loading classes into their caches. A
/// batch takes tenths of a millisecond.
const MOST_BATCHES: usize = 64;

/// Accesses waiting to be processed, in order.
pub struct Batches {
    batches: Vec<Batch>,
    sizes: PageSizes,
    /// Index of the batch being filled; earlier batches are full.
    at: usize,
    /// Number of batches to fill.
    wanted: usize,
}

impl Batches {
    /// Creates batches without accesses.
    pub fn new(sizes: &PageSizes) -> Batches {
        Batches { batches: vec![Batch::new(sizes)], sizes: *sizes, at: 0, wanted: 1 }
    }

    /// Returns the number of waiting accesses.
    pub fn len(&self) -> usize {
        self.batches.iter().map(|batch| batch.keys().len()).sum()
    }

    /// Appends an access; returns whether all batches are full.
    #[inline(always)]
    pub fn push(&mut self, key: Key) -> bool {
        self.batches[self.at].push(key) && self.next_batch()
    }

    /// Moves on to the next batch; returns whether all are full.
    fn next_batch(&mut self) -> bool {
        self.at += 1;
        if self.at == self.batches.len() {
            self.batches.push(Batch::new(&self.sizes));
        }
        self.at == self.wanted
    }

    /// Numbers the pages of each batch, on several processors if `shared`.
    pub fn number(&mut self, shared: bool) {
        let (filled, sizes) = (self.filled().len(), self.sizes);
        let batches = &mut self.batches[..filled];
        match shared {
            true => batches.par_iter_mut().for_each(|batch| batch.number(&sizes)),
            false => batches.iter_mut().for_each(|batch| batch.number(&sizes)),
        }
    }

    /// Returns the batches that contain accesses.
    pub fn filled(&self) -> &[Batch] {
        let filled = self.batches.iter().take_while(|batch| !batch.keys().is_empty()).count();
        &self.batches[..filled]
    }

    /// Removes all accesses. The next fill uses one batch or, if no class split or was dropped (`smoothly`), twice as
    /// many as this time.
    pub fn clear(&mut self, smoothly: bool) {
        self.batches.iter_mut().for_each(Batch::clear);
        self.at = 0;
        self.wanted = if smoothly { (2 * self.wanted).min(MOST_BATCHES) } else { 1 };
    }
}
