//! Values of ranges of addresses.

use std::collections::BTreeMap;
use std::ops::Range;

/// A value for each of some ranges that do not overlap; neighbours with the same value are one range.
#[derive(Clone)]
pub(crate) struct RangeMap<T> {
    /// By first address: the address behind the last byte, and the value.
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        RangeMap { ranges: BTreeMap::new() }
    }
}

impl<T: Copy + PartialEq> RangeMap<T> {
    /// Gives `range` the value, whatever its parts had.
    pub(crate) fn set(&mut self, range: Range<u64>, value: T) {
        if range.is_empty() {
            return;
        }
        self.remove(range.clone());
        let (mut start, mut end) = (range.start, range.end);
        if let Some((&before, &(_, _))) = self.ranges.range(..start).next_back().filter(|(_, r)| **r == (start, value))
        {
            self.ranges.remove(&before);
            start = before;
        }
        if let Some((after_end, _)) = self.ranges.get(&end).copied().filter(|after| after.1 == value) {
            self.ranges.remove(&end);
            end = after_end;
        }
        self.ranges.insert(start, (end, value));
    }

    /// Takes the values of `range` away.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        self.split(range.start);
        self.split(range.end);
        let inside: Vec<u64> = self.ranges.range(range).map(|(&start, _)| start).collect();
        for start in inside {
            self.ranges.remove(&start);
        }
    }

    /// The value of an address.
    pub(crate) fn at(&self, address: u64) -> Option<T> {
        self.within(address..address + 1).next().map(|(_, value)| value)
    }

    /// The ranges that reach into `range`, cut to it, lowest first.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, T)> + '_ {
        let first = self.ranges.range(..=range.start).next_back().filter(|(_, r)| r.0 > range.start);
        let first = first.map_or(range.start, |(&start, _)| start);
        self.ranges
            .range(first..range.end.max(first))
            .map(move |(&start, &(end, value))| (start.max(range.start)..end.min(range.end), value))
    }

    /// The parts of `range` that have no value, lowest first.
    pub(crate) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut at = range.start;
        let mut gaps = Vec::new();
        for (inside, _) in self.within(range.clone()) {
            gaps.push(at..inside.start);
            at = inside.end;
        }
        gaps.push(at..range.end);
        gaps.retain(|gap| !gap.is_empty());
        gaps
    }

    /// All ranges, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, T)> + '_ {
        self.ranges.iter().map(|(&start, &(end, value))| (start..end, value))
    }

    /// Moves the values of `len` bytes from `from` on to `to` and what follows it.
    pub(crate) fn move_range(&mut self, from: u64, len: u64, to: u64) {
        let moved: Vec<_> = self.within(from..from + len).collect();
        self.remove(from..from + len);
        for (range, value) in moved {
            self.set(range.start - from + to..range.end - from + to, value);
        }
    }

    /// Makes `at` a boundary between two ranges, if it lies inside one.
    fn split(&mut self, at: u64) {
        let Some((_, range)) = self.ranges.range_mut(..at).next_back() else { return };
        if range.0 > at {
            let upper = *range;
            range.0 = at;
            self.ranges.insert(at, upper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(map: &RangeMap<u8>) -> Vec<(Range<u64>, u8)> {
        map.iter().collect()
    }

    #[test]
    fn a_new_value_replaces_what_it_covers_and_nothing_else() {
        let mut map = RangeMap::default();
        map.set(0..100, 1);
        map.set(40..60, 2);
        assert_eq!(list(&map), [(0..40, 1), (40..60, 2), (60..100, 1)]);
        map.remove(50..70);
        assert_eq!(list(&map), [(0..40, 1), (40..50, 2), (70..100, 1)]);
        assert_eq!([map.at(39), map.at(40), map.at(50), map.at(70)], [Some(1), Some(2), None, Some(1)]);
    }

    #[test]
    fn neighbours_with_the_same_value_become_one_range() {
        let mut map = RangeMap::default();
        map.set(0..10, 1);
        map.set(20..30, 1);
        map.set(10..20, 1);
        assert_eq!(list(&map), [(0..30, 1)]);
    }

    #[test]
    fn gaps_are_what_has_no_value() {
        let mut map = RangeMap::default();
        map.set(10..20, 1);
        map.set(30..40, 2);
        assert_eq!(map.gaps(0..50), [0..10, 20..30, 40..50]);
        assert!(map.gaps(15..35).iter().eq([&(20..30)]));
        assert_eq!(map.gaps(10..20), []);
    }

    #[test]
    fn moved_values_keep_their_distances() {
        let mut map = RangeMap::default();
        map.set(10..20, 1);
        map.set(20..30, 2);
        map.move_range(15, 10, 100);
        assert_eq!(list(&map), [(10..15, 1), (25..30, 2), (100..105, 1), (105..110, 2)]);
    }
}
