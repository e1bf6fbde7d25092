//! The loop prediction table (LPT, manual 3.2.2): branches that go one way a fixed number of times, then the other.

use fxscope_machine::spec::Frontend;

#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Count {
    /// Consecutive times in the usual direction, now and in the last complete round.
    run: u32,
    last_run: u32,
    /// The usual direction.
    direction: bool,
    /// Consecutive complete rounds of equal length.
    confidence: u32,
}

/// A few counting entries. A mispredicted branch gets one, in place of the oldest.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct LoopPredictor {
    /// Address of the branch of each entry.
    branches: Box<[u64]>,
    counts: Box<[Count]>,
    next: usize,
    confidence: u32,
    /// Low bits of instruction numbers that no branch in the table has, as far as that is known: a short cut past the search.
    #[serde(skip)]
    absent: u64,
}

impl LoopPredictor {
    /// A table without entries.
    pub fn new(spec: &Frontend) -> LoopPredictor {
        let entries = spec.loop_entries as usize;
        LoopPredictor {
            branches: vec![u64::MAX; entries].into(),
            counts: vec![Count::default(); entries].into(),
            next: 0,
            confidence: spec.loop_confidence,
            absent: 0,
        }
    }

    /// The entry of the branch at `pc`.
    #[inline(always)]
    pub fn find(&self, pc: u64) -> Option<usize> {
        if self.absent & low_bits(pc) != 0 {
            return None;
        }
        self.branches.iter().position(|&b| b == pc)
    }

    /// The direction of the branch of `entry`, once enough rounds had the same length.
    #[inline(always)]
    pub fn predict(&self, entry: usize) -> Option<bool> {
        let count = &self.counts[entry];
        let known = count.confidence >= self.confidence;
        known.then_some(count.direction ^ (count.run == count.last_run))
    }

    /// The branch of `entry` went one way.
    #[inline(always)]
    pub fn learn(&mut self, entry: usize, taken: bool) {
        let count = &mut self.counts[entry];
        if taken == count.direction {
            count.run += 1;
            if count.run > count.last_run {
                count.confidence = 0;
            }
        } else if count.run == 0 {
            // The other direction twice in a row: that is the usual one.
            *count = Count { direction: taken, run: 2, ..Count::default() };
        } else {
            count.confidence = if count.run == count.last_run { count.confidence + 1 } else { 0 };
            count.last_run = count.run;
            count.run = 0;
        }
    }

    /// A branch without an entry was mispredicted.
    pub fn enter(&mut self, pc: u64, taken: bool) {
        self.branches[self.next] = pc;
        self.counts[self.next] = Count { direction: taken, run: 1, ..Count::default() };
        self.next = (self.next + 1) % self.branches.len();
        self.absent = !self.branches.iter().fold(0, |present, &branch| present | low_bits(branch));
    }
}

/// The low bits of the number of the instruction at `pc`, as one bit of a word.
#[inline(always)]
fn low_bits(pc: u64) -> u64 {
    1 << (pc >> 2 & 63)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::tests::spec;

    /// Runs rounds of `taken` taken branches and one that is not; returns what was predicted in the last one.
    fn rounds(table: &mut LoopPredictor, pc: u64, lengths: &[usize]) -> Vec<Option<bool>> {
        let mut predictions = Vec::new();
        for &length in lengths {
            predictions.clear();
            for i in 0..=length {
                let entry = table.find(pc).expect("entered");
                predictions.push(table.predict(entry));
                table.learn(entry, i < length);
            }
        }
        predictions
    }

    #[test]
    fn a_loop_is_predicted_with_its_end_after_enough_rounds_of_equal_length() {
        let mut table = LoopPredictor::new(&spec());
        table.enter(64, true);
        // The branch was taken once when it was entered.
        assert!(rounds(&mut table, 64, &[4, 5, 5]).contains(&None));
        let expected: Vec<Option<bool>> = (0..6).map(|i| Some(i < 5)).collect();
        assert_eq!(rounds(&mut table, 64, &[5]), expected);
    }

    #[test]
    fn a_round_of_another_length_takes_the_confidence_away() {
        let mut table = LoopPredictor::new(&spec());
        table.enter(64, true);
        rounds(&mut table, 64, &[4, 5, 5, 5, 6]);
        assert_eq!(rounds(&mut table, 64, &[5])[0], None);
    }

    #[test]
    fn the_oldest_entry_makes_room_for_a_mispredicted_branch() {
        let mut table = LoopPredictor::new(&spec());
        let entries = u64::from(spec().loop_entries);
        (0..=entries).for_each(|i| table.enter(64 * i, true));
        assert!(table.find(0).is_none());
        assert!((1..=entries).all(|i| table.find(64 * i).is_some()));
    }
}
