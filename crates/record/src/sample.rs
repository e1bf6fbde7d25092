//! How a run was sampled, and how well its counts are known.

use std::sync::Arc;

use crate::counts::{Counts, Names};

/// How a sampled run was made: only windows of it were timed, and its counts are estimated from them.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Sample {
    /// The plan of the windows, as given to `--sample`, with all parameters.
    pub plan: String,
    /// Windows that were timed.
    pub windows: u64,
    /// Instructions that were timed apart from windows, at the beginning of the run and in loops that may wait for other threads: their
    /// counts are no estimates.
    pub exact: u64,
    /// Instructions timed in windows.
    pub timed: u64,
    /// Instructions that were not timed: followed, or executed without keeping caches warm.
    pub followed: u64,
    /// The relative error of time that was asked for, such as 0.02.
    pub error: f64,
    /// The confidence of the intervals, such as 0.95.
    pub confidence: f64,
    /// For each of [`crate::Run::regions`], in their order.
    pub regions: Vec<Replicates>,
}

impl Sample {
    /// Returns the number of all instructions.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.exact.saturating_add(self.timed).saturating_add(self.followed)
    }

    /// Returns the share of the instructions that were timed, 0 to 1.
    #[must_use]
    pub fn timed_share(&self) -> f64 {
        self.exact.saturating_add(self.timed) as f64 / self.instructions().max(1) as f64
    }
}

/// Most replicates of a region in a record. Samples have fewer.
const MOST_REPLICATES: usize = 1 << 12;

/// How much the counts of a region depend on which windows were timed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Replicates {
    /// The share of the region's instructions in blocks that no window has seen, 0 to 1.
    pub unseen: f64,
    /// Jackknife replicates: the region's total of each event without one group of windows. Events that are not here do not depend on
    /// the windows: their counts are exact. Replicates come in pairs, as `fxscope_sampling` makes them.
    pub totals: Totals,
}

/// Totals of events, one row for each replicate.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Totals(Counts, usize);

impl Totals {
    /// Returns totals from rows, each with a total for each name.
    ///
    /// # Panics
    /// If a row has another number of totals.
    #[must_use]
    pub fn new(names: Arc<Names>, rows: &[Vec<u64>]) -> Totals {
        let values = rows.concat();
        let counts = Counts::from_values(names, rows.len(), values).expect("a total for each name");
        Totals(counts, rows.len())
    }

    /// Returns the names of the events.
    #[must_use]
    pub fn names(&self) -> &Arc<Names> {
        self.0.names()
    }

    /// Returns the number of replicates.
    #[must_use]
    pub fn replicates(&self) -> usize {
        self.1
    }

    /// Returns the totals of a replicate, by name.
    pub fn row(&self, replicate: usize) -> impl Iterator<Item = (&str, u64)> {
        self.0.row(replicate)
    }

    /// Returns the total of an event in a replicate, both by index.
    #[must_use]
    pub fn at(&self, replicate: usize, event: usize) -> Option<u64> {
        self.0.at(replicate, event)
    }

    /// Returns the totals event by event: the first, then the differences of one to the next, which are small numbers.
    pub(crate) fn differences(&self) -> Vec<u64> {
        let (columns, rows) = (self.names().len(), self.1);
        let value = |row: usize, column: usize| self.0.values()[row * columns + column];
        let mut all = Vec::with_capacity(columns * rows);
        for column in 0..columns {
            let mut before = 0;
            for row in 0..rows {
                all.push(zigzag(value(row, column).wrapping_sub(before)));
                before = value(row, column);
            }
        }
        all
    }

    /// Returns the totals of which these are the [`Totals::differences`]; `None` if their number does not match, or
    /// if there are more than [`MOST_REPLICATES`].
    pub(crate) fn from_differences(names: Arc<Names>, rows: usize, differences: &[u64]) -> Option<Totals> {
        let columns = names.len();
        let mut values = vec![0; differences.len()];
        if rows > MOST_REPLICATES || columns * rows != values.len() {
            return None;
        }
        for column in 0..columns {
            let mut total = 0_u64;
            for row in 0..rows {
                total = total.wrapping_add(unzigzag(differences[column * rows + row]));
                values[row * columns + column] = total;
            }
        }
        Some(Totals(Counts::from_values(names, rows, values)?, rows))
    }
}

/// Numbers differences, as two's complement, by their magnitude: 0, −1, 1, −2 and so on.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference as i64 >> 63) as u64
}

/// Inverts [`zigzag`].
fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_differences_are_small_numbers() {
        let differences = [0_i64, -1, 1, -2, 2, i64::MIN].map(|d| zigzag(d as u64));
        assert_eq!(differences, [0, 1, 2, 3, 4, u64::MAX]);
    }

    #[test]
    fn totals_near_each_other_are_stored_as_differences() {
        let names: Arc<Names> = Arc::new(["A", "B"].map(str::to_owned).into_iter().collect());
        let totals = Totals::new(Arc::clone(&names), &[vec![1_000, 7], vec![1_003, 7], vec![998, 8]]);
        assert_eq!(totals.differences(), [2_000, 6, 9, 14, 0, 2]);
        assert_eq!(Totals::from_differences(names, 3, &totals.differences()), Some(totals));
    }

    #[test]
    fn a_wrong_number_of_differences_is_refused() {
        let names: Arc<Names> = Arc::new(std::iter::once("A".to_owned()).collect());
        assert_eq!(Totals::from_differences(Arc::clone(&names), 2, &[1, 2, 3]), None);
        assert_eq!(Totals::from_differences(names, usize::MAX, &[1]), None);
    }

    proptest! {
        #[test]
        fn differences_come_back(number in any::<u64>()) {
            prop_assert_eq!(unzigzag(zigzag(number)), number);
        }
    }
}
