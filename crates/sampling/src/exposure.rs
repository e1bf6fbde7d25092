//! Exact executions of blocks.

use serde::{Deserialize, Serialize};

/// Blocks in a page.
const PAGE: usize = 64;

/// How often each block ran in a part of a run: a region, a thread, an interval of time.
///
/// Counts are kept in pages of 64 blocks (512 bytes), of which only those exist that have counts. Blocks are numbered when they first
/// run, so blocks of a phase are neighbours. 20,000 blocks take at most 160 KB and an index of 5 KB; a region that executes 500 of
/// them takes some 10 KB for each of its threads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Exposure {
    pages: Vec<Option<Box<[u64]>>>,
}

impl Exposure {
    /// Returns an exposure without executions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds executions of a block.
    pub fn add(&mut self, block: u32, executions: u64) {
        if executions == 0 {
            return;
        }
        let (page, place) = (block as usize / PAGE, block as usize % PAGE);
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        let counts = self.pages[page].get_or_insert_with(|| vec![0; PAGE].into_boxed_slice());
        counts[place] = counts[place].saturating_add(executions);
    }

    /// Returns the executions of a block.
    #[must_use]
    pub fn executions(&self, block: u32) -> u64 {
        let page = self.pages.get(block as usize / PAGE).and_then(Option::as_ref);
        page.map_or(0, |counts| counts[block as usize % PAGE])
    }

    /// Adds all executions of another exposure.
    pub fn merge(&mut self, other: &Self) {
        for (block, executions) in other.iter() {
            self.add(block, executions);
        }
    }

    /// Returns what has been added since `earlier`, a copy of this exposure at an earlier time. A block that has fewer executions
    /// than there is left out.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut difference = Self::new();
        for (block, executions) in self.iter() {
            difference.add(block, executions.saturating_sub(earlier.executions(block)));
        }
        difference
    }

    /// Returns the blocks that ran with their executions, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.pages.iter().enumerate().flat_map(|(page, counts)| {
            let counts = counts.as_deref().unwrap_or_default();
            counts.iter().enumerate().filter(|(_, n)| **n > 0).map(move |(place, n)| ((page * PAGE + place) as u32, *n))
        })
    }

    /// Returns the instructions of all executions. `instructions` has those of each block.
    ///
    /// # Panics
    /// If a block that ran has no entry in `instructions`.
    #[must_use]
    pub fn instructions(&self, instructions: &[u32]) -> u64 {
        self.iter().fold(0, |sum, (block, n)| sum.saturating_add(n.saturating_mul(instructions[block as usize].into())))
    }
}

impl PartialEq for Exposure {
    /// Compares executions: pages without any do not count.
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Exposure {}

impl FromIterator<(u32, u64)> for Exposure {
    fn from_iter<T: IntoIterator<Item = (u32, u64)>>(counts: T) -> Self {
        let mut exposure = Self::new();
        for (block, executions) in counts {
            exposure.add(block, executions);
        }
        exposure
    }
}
