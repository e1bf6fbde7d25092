//! What a pass over a program's accesses has found out.

use crate::choice::Choice;
use crate::lanes::Lane;
use crate::sets::SetAssociative;
use crate::{Analysis, Counts, Error, SEGMENTS, SIZES};

/// Misses of every assignment of page sizes to segments.
pub struct Answer {
    /// What was asked about.
    all: Choice,
    segments: usize,
    sizes: usize,
    lanes: Vec<Lane>,
    given_up: Vec<Lane>,
    /// The set-associative TLB, when it stands beside the other.
    beside: Option<SetAssociative>,
}

impl Answer {
    pub(crate) fn new(analysis: Analysis) -> Answer {
        let Analysis { all, segments, sizes, mut lanes, given_up, beside, .. } = analysis;
        Answer { all, segments, sizes: sizes.len(), lanes: lanes.take(), given_up, beside }
    }

    /// How many lanes there are, those given up not counted: different behaviours among all assignments.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Misses under an assignment, which has for each segment the place of its size in [`Question::sizes`].
    ///
    /// # Errors
    /// When the assignment does not fit the question.
    pub fn counts(&self, assignment: &[usize]) -> Result<Counts, Error> {
        let wrong = || Error::Assignment(assignment.to_vec());
        if assignment.len() != self.segments || assignment.iter().any(|&size| size >= self.sizes) {
            return Err(wrong());
        }
        let one = Choice::one(assignment);
        let there = self.lanes.iter().find(|lane| lane.choice.contains(&one)).map(|lane| (lane, true));
        let gone = || self.given_up.iter().find(|lane| lane.choice.contains(&one)).map(|lane| (lane, false));
        let (lane, exact) = there.or_else(gone).ok_or_else(wrong)?;
        let first = lane.misses;
        let second = lane.behind.as_ref().or(self.beside.as_ref()).map_or([0; SEGMENTS], |sets| sets.misses(&one));
        let mut walks = second;
        if self.beside.is_some() {
            walks.iter_mut().zip(first).for_each(|(walks, first)| *walks += first);
        }
        Ok(Counts { first, second, walks, exact })
    }

    /// All assignments: for each segment the place of its size in [`Question::sizes`], the first segment's changing fastest.
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
