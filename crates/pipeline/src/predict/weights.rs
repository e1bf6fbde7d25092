//! The branch weight table (BWT, manual 3.2.3): a sum of weights along the path that leads to a branch.

use fxscope_machine::spec::Frontend;

/// Branches of history at most.
const MOST: usize = 64;

/// Sums that are computed together.
const EIGHT: usize = 8;

/// Weights by branch and distance.
///
/// Each conditional branch on the path, as it executes, adds its weight for the distance, with the sign of its
/// direction. The sum with the branch's own weight predicts whether the branch goes in its noted direction (agree
/// prediction). So a prediction reads one weight, and the sums for future branches are kept.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Weights {
    /// For each row, its own weight and those for each distance.
    weights: Box<[i8]>,
    row_mask: usize,
    /// Weights of a row.
    width: usize,
    /// Largest weight; the smallest is one more below zero.
    largest: i8,
    /// The sums for future branches, the next one first.
    #[serde(with = "fxscope_calendar::array")]
    sums: [i16; MOST],
    /// Rows of the last branches, newest last, and where the next goes.
    #[serde(with = "fxscope_calendar::array")]
    path: [u32; MOST],
    at: usize,
}

impl Weights {
    /// A table of zeros.
    pub fn new(spec: &Frontend) -> Weights {
        let width = spec.history_bits as usize + 1;
        let rows = spec.weight_entries as usize;
        Weights {
            weights: vec![0; rows * width].into(),
            row_mask: rows - 1,
            width,
            largest: ((1 << (spec.weight_bits - 1)) - 1) as i8,
            sums: [0; MOST],
            path: [0; MOST],
            at: 0,
        }
    }

    /// The row of the branch at `pc`.
    #[inline(always)]
    pub fn row(&self, pc: u64) -> usize {
        (pc >> 2) as usize & self.row_mask
    }

    /// Whether the next branch, of `row`, is predicted to go in its noted direction.
    #[inline(always)]
    pub fn predict(&self, row: usize) -> bool {
        i16::from(self.weights[row * self.width]) + self.sums[0] >= 0
    }

    /// Trains after a misprediction: a branch of `row` `agreed` with its noted direction, or did not. `history` has the
    /// directions of earlier branches, the newest in bit 0.
    #[cold]
    #[inline(never)]
    pub fn correct(&mut self, row: usize, agreed: bool, history: u64) {
        self.change(row, 0, agreed);
        for distance in 1..self.width {
            let before = self.path[(self.at + MOST - distance) % MOST] as usize;
            self.change(before, distance, agreed == (history >> (distance - 1) & 1 == 1));
        }
    }

    fn change(&mut self, row: usize, distance: usize, up: bool) {
        let weight = &mut self.weights[row * self.width + distance];
        *weight = (*weight + if up { 1 } else { -1 }).clamp(!self.largest, self.largest);
    }

    /// A branch of `row` has executed: it joins the path.
    #[inline(always)]
    pub fn pass(&mut self, row: usize, taken: bool) {
        let start = row * self.width;
        let sign = if taken { 0 } else { -1 };
        // With all bits of `sign` set this is the weight's negative.
        let signed = |weight: i8| (i16::from(weight) ^ sign) - sign;
        let (eights, rest) = self.weights[start + 1..start + self.width].as_chunks::<EIGHT>();
        let mut sums = &mut self.sums[..self.width];
        for weights in eights {
            // Eight at a time, which are one operation of the host each.
            let later: [i16; EIGHT] = sums[1..].first_chunk().copied().unwrap_or_default();
            let Some(earlier) = sums.first_chunk_mut::<EIGHT>() else { break };
            *earlier = std::array::from_fn(|i| later[i] + signed(weights[i]));
            sums = &mut sums[EIGHT..];
        }
        for (i, &weight) in rest.iter().enumerate() {
            sums[i] = sums[i + 1] + signed(weight);
        }
        self.path[self.at] = row as u32;
        self.at = (self.at + 1) % MOST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::tests::spec;

    /// How often `directions`, of branches at `pc`s in turn, are not predicted from the path after `warm` steps.
    fn wrong(warm: usize, steps: usize, step: impl Fn(usize) -> (u64, bool)) -> usize {
        let mut weights = Weights::new(&spec());
        let mut history = 0;
        let mut wrong = 0;
        for i in 0..warm + steps {
            let (pc, taken) = step(i);
            let row = weights.row(pc);
            if weights.predict(row) != taken {
                weights.correct(row, taken, history);
                wrong += usize::from(i >= warm);
            }
            weights.pass(row, taken);
            history = history << 1 | u64::from(taken);
        }
        wrong
    }

    #[test]
    fn without_weights_a_branch_goes_the_way_noted_for_it() {
        let weights = Weights::new(&spec());
        assert!(weights.predict(weights.row(64)));
    }

    #[test]
    fn a_branch_that_follows_another_ones_direction_is_learnt() {
        let random = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).count_ones() % 2 == 1;
        let pc = |i: usize| if i.is_multiple_of(2) { 64 } else { 128 };
        // Of each pair the first is random; the second goes the same way, or is random too.
        let follows = wrong(1_000, 1_000, |i| (pc(i), random(i / 2)));
        let alone = wrong(1_000, 1_000, |i| (pc(i), random(i)));
        assert!(follows < 300 && alone > 400, "{follows} and {alone}");
    }

    #[test]
    fn directions_that_repeat_within_the_history_are_learnt() {
        assert_eq!(wrong(500, 100, |i| (64, i % 5 < 2)), 0);
    }
}
