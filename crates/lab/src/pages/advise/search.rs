//! Search for the best assignments: all of them, or local descent from several starting points.

use std::collections::BTreeMap;

use super::{Assignment, Observation, PARTS, PageLimits, call};

/// Most assignments for an exhaustive search.
const MOST: usize = 4096;

/// Kinds that each part may have, by index.
pub(super) struct Space(Vec<Vec<usize>>);

impl Space {
    /// Builds the search space: all sizes for parts that the program uses, transparent huge pages for calls whose mappings
    /// hold them; other parts keep their pages.
    pub(super) fn new(observation: &Observation, limits: &PageLimits) -> Space {
        let kinds = observation.kinds();
        let of = |part: usize| match limits.parts[part] {
            0 => vec![observation.base().0[part]],
            _ if call(part).is_some() && observation.holds_huge(part) => (0..kinds.len()).collect(),
            _ => (0..kinds.thp()).collect(),
        };
        Space((0..PARTS).map(of).collect())
    }

    fn len(&self) -> usize {
        self.0.iter().fold(1, |product: usize, kinds| product.saturating_mul(kinds.len()))
    }

    fn nth(&self, number: usize) -> Assignment {
        let mut rest = number;
        Assignment(std::array::from_fn(|part| {
            let kinds = &self.0[part];
            let kind = kinds[rest % kinds.len()];
            rest /= kinds.len();
            kind
        }))
    }

    /// Returns the assignment that is nearest to one kind for all.
    fn uniform(&self, kind: usize) -> Assignment {
        Assignment(std::array::from_fn(|part| *self.0[part].iter().rfind(|&&k| k <= kind).unwrap_or(&self.0[part][0])))
    }

    /// Returns all assignments if they are few. Otherwise those visited by descent from each uniform assignment and from
    /// `base`, until no change of one part reduces `cost`. `cost` is `None` where it is not known.
    pub(super) fn assignments(
        &self,
        base: &Assignment,
        kinds: usize,
        cost: impl Fn(&Assignment) -> Option<u64>,
    ) -> Vec<Assignment> {
        if self.len() <= MOST {
            return (0..self.len()).map(|number| self.nth(number)).collect();
        }
        let mut seen: BTreeMap<[usize; PARTS], Option<u64>> = BTreeMap::new();
        let mut look = |one: &Assignment| *seen.entry(one.0).or_insert_with(|| cost(one));
        let starts = (0..kinds).map(|kind| self.uniform(kind)).chain([base.clone()]);
        for mut here in starts {
            let mut least = look(&here).unwrap_or(u64::MAX);
            loop {
                let before = least;
                for part in 0..PARTS {
                    for &kind in &self.0[part] {
                        let mut other = here.clone();
                        other.0[part] = kind;
                        if let Some(cost) = look(&other).filter(|&cost| cost < least) {
                            (here, least) = (other, cost);
                        }
                    }
                }
                if least == before {
                    break;
                }
            }
        }
        seen.into_keys().map(Assignment).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(kinds: [usize; PARTS]) -> Space {
        Space(kinds.iter().map(|&n| (0..n).collect()).collect())
    }

    #[test]
    fn few_assignments_are_all_looked_at() {
        let mut kinds = [1; PARTS];
        (kinds[1], kinds[4]) = (2, 3);
        let all = space(kinds).assignments(&Assignment([0; PARTS]), 3, |_| None);
        assert_eq!(all.len(), 6);
        assert!(all.iter().all(|one| all.iter().filter(|other| *other == one).count() == 1));
    }

    #[test]
    fn of_many_the_best_is_found_where_parts_do_not_depend_on_each_other() {
        let wanted: [usize; PARTS] = std::array::from_fn(|part| part % 3);
        let cost =
            |one: &Assignment| one.0.iter().zip(wanted).map(|(&kind, wanted)| kind.abs_diff(wanted) as u64).sum();
        let all = space([3; PARTS]).assignments(&Assignment([2; PARTS]), 3, |one| Some(cost(one)));
        assert!(all.len() < MOST && all.contains(&Assignment(wanted)));
    }
}
