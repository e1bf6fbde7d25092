//! Rows of accesses, several of which lanes see before processors wait for each other.

use rayon::prelude::*;

use crate::choice::{Key, Sizes};
use crate::row::Row;

/// Most rows at once: so many that waking processors, and getting lanes into their caches, takes little beside what they do, which
/// is tenths of a millisecond for a row.
const MOST_ROWS: usize = 64;

/// Accesses that wait, in their order.
pub struct Rows {
    rows: Vec<Row>,
    sizes: Sizes,
    /// The row that is filled; those before it are full.
    at: usize,
    /// How many are to be filled.
    wanted: usize,
}

impl Rows {
    /// Without accesses.
    pub fn new(sizes: &Sizes) -> Rows {
        Rows { rows: vec![Row::new(sizes)], sizes: *sizes, at: 0, wanted: 1 }
    }

    /// How many accesses wait.
    pub fn len(&self) -> usize {
        self.rows.iter().map(|row| row.keys().len()).sum()
    }

    /// An access comes; whether there is no room for another one.
    #[inline(always)]
    pub fn push(&mut self, key: Key) -> bool {
        self.rows[self.at].push(key) && self.next_row()
    }

    /// The next row is to be filled; whether there is none.
    fn next_row(&mut self) -> bool {
        self.at += 1;
        if self.at == self.rows.len() {
            self.rows.push(Row::new(&self.sizes));
        }
        self.at == self.wanted
    }

    /// Numbers the pages of each row, by several processors if it is to be `shared`.
    pub fn number(&mut self, shared: bool) {
        let (filled, sizes) = (self.filled().len(), self.sizes);
        let rows = &mut self.rows[..filled];
        match shared {
            true => rows.par_iter_mut().for_each(|row| row.number(&sizes)),
            false => rows.iter_mut().for_each(|row| row.number(&sizes)),
        }
    }

    /// The rows with accesses.
    pub fn filled(&self) -> &[Row] {
        let filled = self.rows.iter().take_while(|row| !row.keys().is_empty()).count();
        &self.rows[..filled]
    }

    /// Without accesses again. Next time there will be one row, or, if all went `smoothly`, twice as many as this time.
    pub fn clear(&mut self, smoothly: bool) {
        self.rows.iter_mut().for_each(Row::clear);
        self.at = 0;
        self.wanted = if smoothly { (2 * self.wanted).min(MOST_ROWS) } else { 1 };
    }
}
