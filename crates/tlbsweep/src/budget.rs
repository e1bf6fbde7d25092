//! How many classes there may be, and which are dropped when there are more.

use std::cmp::Reverse;

use crate::SweepOptions;
use crate::class::Class;
use crate::size_masks::SizeMasks;

/// Limits the number of classes.
pub struct Budget {
    most: usize,
    /// Assignments whose classes are never dropped.
    keep: Vec<SizeMasks>,
    /// Costs by which classes are compared, as in [`SweepOptions::costs`].
    costs: [u64; 2],
}

impl Budget {
    /// Returns the budget of a sweep; `keep` are its assignments to keep.
    pub fn of(options: &SweepOptions, keep: Vec<SizeMasks>) -> Budget {
        Budget { most: options.max_classes, keep, costs: options.costs }
    }

    /// Returns whether there are too many classes.
    pub fn exceeded(&self, classes: usize) -> bool {
        classes > self.most
    }

    /// Removes and returns the costlier half of the classes, except those with an assignment to keep. `of` is the class
    /// of an item.
    pub fn drop_costliest<T>(&self, classes: &mut Vec<T>, of: impl Fn(&T) -> &Class) -> Vec<T> {
        let kept = |class: &Class| self.keep.iter().any(|one| class.masks.contains(one));
        classes.sort_by_cached_key(|item| (Reverse(kept(of(item))), of(item).cost(self.costs)));
        let most = classes.iter().filter(|item| kept(of(item))).count().max(self.most.div_ceil(2));
        classes.split_off(most.min(classes.len()))
    }
}
