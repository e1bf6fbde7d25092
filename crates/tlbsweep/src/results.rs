//! Results of a pass over a program's accesses.

use crate::class::Class;
use crate::set_associative::SetAssociative;
use crate::size_masks::SizeMasks;
use crate::{Analysis, Counts, Error, SEGMENTS, SIZES};

/// Misses of every assignment of page sizes to segments.
pub struct SweepResults {
    /// All assignments that were analysed.
    all: SizeMasks,
    segments: usize,
    sizes: usize,
    classes: Vec<Class>,
    dropped: Vec<Class>,
    /// The set-associative TLB, if TLBs are split by page size.
    split_l2: Option<SetAssociative>,
}

impl SweepResults {
    pub(crate) fn new(analysis: Analysis) -> SweepResults {
        let Analysis { all, segments, sizes, mut classes, dropped, split_l2, .. } = analysis;
        SweepResults { all, segments, sizes: sizes.len(), classes: classes.take(), dropped, split_l2 }
    }

    /// Returns a copy of what an analysis that continues has counted.
    pub(crate) fn so_far(analysis: &Analysis) -> SweepResults {
        let Analysis { all, segments, sizes, classes, dropped, split_l2, .. } = analysis;
        let (classes, dropped, split_l2) = (classes.all().to_vec(), dropped.clone(), split_l2.clone());
        SweepResults { all: *all, segments: *segments, sizes: sizes.len(), classes, dropped, split_l2 }
    }

    /// Returns the number of classes that were not dropped: the distinct behaviours among all assignments.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes.len()
    }

    /// Misses under an assignment, which has for each segment the index of its size in [`SweepOptions::sizes`].
    ///
    /// # Errors
    /// If the assignment does not fit the options.
    pub fn counts(&self, assignment: &[usize]) -> Result<Counts, Error> {
        let wrong = || Error::Assignment(assignment.to_vec());
        if assignment.len() != self.segments || assignment.iter().any(|&size| size >= self.sizes) {
            return Err(wrong());
        }
        let one = SizeMasks::one(assignment);
        let there = self.classes.iter().find(|class| class.masks.contains(&one)).map(|class| (class, true));
        let gone = || self.dropped.iter().find(|class| class.masks.contains(&one)).map(|class| (class, false));
        let (class, exact) = there.or_else(gone).ok_or_else(wrong)?;
        let first = class.misses;
        let second = class.l2.as_ref().or(self.split_l2.as_ref()).map_or([0; SEGMENTS], |sets| sets.misses(&one));
        let mut walks = second;
        if self.split_l2.is_some() {
            walks.iter_mut().zip(first).for_each(|(walks, first)| *walks += first);
        }
        Ok(Counts { first, second, walks, exact })
    }

    /// Returns all assignments: for each segment the index of its size in [`SweepOptions::sizes`]; the first segment
    /// varies fastest.
    pub fn assignments(&self) -> impl Iterator<Item = Vec<usize>> + use<> {
        let allowed = |&mask: &u8| (0..SIZES).filter(|size| mask >> size & 1 != 0).collect();
        let sizes: Vec<Vec<usize>> = self.all.0[..self.segments].iter().map(allowed).collect();
        let count = sizes.iter().fold(1usize, |count, sizes| count.saturating_mul(sizes.len()));
        (0..count).map(move |number| {
            let place = |rest: &mut usize, sizes: &Vec<usize>| {
                Some(sizes[std::mem::replace(rest, *rest / sizes.len()) % sizes.len()])
            };
            sizes.iter().scan(number, place).collect()
        })
    }
}
