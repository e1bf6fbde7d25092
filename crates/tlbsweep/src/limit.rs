//! How many lanes there may be, and which are given up when there are more.

use std::cmp::Reverse;

use crate::Question;
use crate::choice::Choice;
use crate::lanes::Lane;

/// How many lanes there may be.
pub struct Limit {
    most: usize,
    /// Assignments whose lanes are never given up.
    keep: Vec<Choice>,
    /// What lanes are compared by, as in [`Question::costs`].
    costs: [u64; 2],
}

impl Limit {
    /// That of a question, whose assignments to be kept are these.
    pub fn of(question: &Question, keep: Vec<Choice>) -> Limit {
        Limit { most: question.lanes, keep, costs: question.costs }
    }

    /// Whether so many lanes are too many.
    pub fn exceeded(&self, lanes: usize) -> bool {
        lanes > self.most
    }

    /// Takes out the half of the lanes that cost most so far, but none that has an assignment to be kept; `of` is the lane of an
    /// item.
    pub fn give_up<T>(&self, lanes: &mut Vec<T>, of: impl Fn(&T) -> &Lane) -> Vec<T> {
        let kept = |lane: &Lane| self.keep.iter().any(|one| lane.choice.contains(one));
        lanes.sort_by_cached_key(|item| (Reverse(kept(of(item))), of(item).cost(self.costs)));
        let most = lanes.iter().filter(|item| kept(of(item))).count().max(self.most.div_ceil(2));
        lanes.split_off(most.min(lanes.len()))
    }
}
