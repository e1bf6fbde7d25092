//! Searches for the value of a number with which a model reproduces a measurement.

/// Where a number is searched, and how accurately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// The smallest and the largest value.
    pub range: (f64, f64),
    /// Difference between neighbouring values.
    pub step: f64,
    /// Most values that are tried between the ends of the range.
    pub tries: u32,
    /// The search ends at an error that is not larger.
    pub enough: f64,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The value with the smallest error; `None`: the errors at both ends of the range have the same sign.
    pub value: Option<f64>,
    /// All values that were tried with their errors, by ascending value.
    pub tried: Vec<(f64, f64)>,
}

impl Found {
    /// Returns the error of a value that was tried.
    #[must_use]
    pub fn error_of(&self, value: f64) -> Option<f64> {
        self.tried.iter().find(|(tried, _)| *tried == value).map(|(_, error)| *error)
    }

    /// Returns by how much the error changes per unit of the number: the slope between the two values that were tried around
    /// `value`, or beside it.
    #[must_use]
    pub fn slope_at(&self, value: f64) -> Option<f64> {
        let at = self.tried.iter().position(|(tried, _)| *tried == value)?;
        let (below, above) = (self.tried[at.saturating_sub(1)], self.tried[(at + 1).min(self.tried.len() - 1)]);
        (above.0 > below.0).then(|| (above.1 - below.1) / (above.0 - below.0))
    }
}

impl Search {
    /// Searches the value at which `error` changes its sign. `error` should increase or decrease over the range.
    ///
    /// It uses false position between the ends of the range. The error at an end that stays is halved each time, so that both
    /// ends move (the Illinois algorithm). Values are multiples of `step`; the search ends when none is left between the ends.
    ///
    /// # Errors
    /// Those of `error`.
    pub fn zero<E>(&self, mut error: impl FnMut(f64) -> Result<f64, E>) -> Result<Found, E> {
        let (mut low, mut high) = self.range;
        let mut tried = Vec::new();
        let mut at = |value: f64| {
            let found = error(value)?;
            tried.push((value, found));
            Ok::<f64, E>(found)
        };
        let (mut below, mut above) = (at(low)?, at(high)?);
        let crosses = below == 0.0 || above == 0.0 || below.signum() != above.signum();
        let mut last = 0.0;
        for _ in 0..self.tries {
            if !crosses || below.abs() <= self.enough || above.abs() <= self.enough {
                break;
            }
            let Some(next) = self.between(low, high, low - below * (high - low) / (above - below)) else { break };
            let found = at(next)?;
            if found.abs() <= self.enough {
                break;
            }
            let halved = if found.signum() == last { 0.5 } else { 1.0 };
            if found.signum() == below.signum() {
                (low, below, above) = (next, found, above * halved);
            } else {
                (high, above, below) = (next, found, below * halved);
            }
            last = found.signum();
        }
        let best = tried.iter().min_by(|a, b| a.1.abs().total_cmp(&b.1.abs())).map(|(value, _)| *value);
        tried.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Found { value: best.filter(|_| crosses), tried })
    }

    /// Returns the multiple of the step next to `value` that is between `low` and `high`, if there is any.
    fn between(&self, low: f64, high: f64, value: f64) -> Option<f64> {
        let multiple = |value: f64| {
            let number = (value / self.step).round();
            // A step below 1 is a power of ten: a division gives the nearest number with as many decimals.
            if self.step < 1.0 { number / (1.0 / self.step).round() } else { number * self.step }
        };
        let next = multiple(value);
        let inside = |value: f64| value > low && value < high;
        let candidates = [next, multiple(low + self.step), multiple(high - self.step)];
        candidates.into_iter().find(|&value| inside(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(range: (f64, f64), step: f64) -> Search {
        Search { range, step, tries: 20, enough: 0.0 }
    }

    fn zero(search: Search, error: impl Fn(f64) -> f64) -> Found {
        search.zero(|value| Ok::<f64, ()>(error(value))).expect("no error")
    }

    #[test]
    fn the_zero_of_an_increasing_and_of_a_decreasing_error_is_found_to_the_step() {
        let cubic = |value: f64| value.powi(3) - 300.0;
        assert_eq!(zero(search((0.0, 100.0), 0.1), cubic).value, Some(6.7));
        assert_eq!(zero(search((0.0, 100.0), 1.0), |value| -cubic(value)).value, Some(7.0));
        assert_eq!(zero(search((0.0, 1000.0), 50.0), |value| value - 420.0).value, Some(400.0));
    }

    #[test]
    fn an_error_that_changes_in_jumps_is_searched_to_the_last_step() {
        let found = zero(search((1.0, 40.0), 1.0), |value| if value < 13.0 { -1.0 } else { value - 12.5 });
        assert_eq!(found.value, Some(13.0));
        assert!(found.tried.is_sorted_by(|a, b| a.0 < b.0), "{:?}", found.tried);
    }

    #[test]
    fn a_range_whose_ends_are_on_one_side_has_no_zero() {
        let found = zero(search((0.0, 10.0), 1.0), |value| value + 1.0);
        assert_eq!((found.value, found.tried.len()), (None, 2));
    }

    #[test]
    fn an_end_without_an_error_is_the_result() {
        assert_eq!(zero(search((3.0, 10.0), 1.0), |value| value - 3.0).value, Some(3.0));
    }

    #[test]
    fn a_search_ends_when_the_error_is_small_enough() {
        let wide = Search { enough: 5.0, ..search((0.0, 100.0), 1.0) };
        let found = zero(wide, |value| value * value - 2500.0);
        let error = found.value.and_then(|value| found.error_of(value)).expect("found");
        assert!(error.abs() <= 5.0, "{:?}", found.tried);
        assert!(found.tried.iter().filter(|(_, error)| error.abs() <= 5.0).count() == 1, "{:?}", found.tried);
    }

    #[test]
    fn the_slope_is_that_around_the_value() {
        let found = zero(search((0.0, 100.0), 1.0), |value| 2.0 * value - 50.0);
        assert_eq!(found.value.and_then(|value| found.slope_at(value)), Some(2.0));
        assert_eq!(found.error_of(25.0), Some(0.0));
    }
}
