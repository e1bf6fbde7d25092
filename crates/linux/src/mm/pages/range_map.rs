//! Values for ranges of addresses.

use std::ops::Range;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// A value for each of some disjoint ranges; adjacent ranges with the same value are merged. Empty ranges have no value.
#[derive(Clone, Serialize)]
pub(crate) struct RangeMap<T: Copy + Eq>(rangemap::RangeMap<u64, T>);

impl<T: Copy + Eq> Default for RangeMap<T> {
    fn default() -> Self {
        RangeMap(rangemap::RangeMap::new())
    }
}

/// A snapshot may have any bytes, but the crate's own map panics when it reads an empty range.
impl<'de, T: Copy + Eq + Deserialize<'de>> Deserialize<'de> for RangeMap<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut map = RangeMap::default();
        for (range, value) in Vec::<((u64, u64), T)>::deserialize(deserializer)? {
            let range = range.0..range.1;
            if range.is_empty() {
                return Err(D::Error::custom(format!("the range {range:x?} is empty")));
            }
            map.set(range, value);
        }
        Ok(map)
    }
}

impl<T: Copy + Eq> RangeMap<T> {
    /// Sets the value of `range`, replacing those of its parts.
    pub(crate) fn set(&mut self, range: Range<u64>, value: T) {
        if !range.is_empty() {
            self.0.insert(range, value);
        }
    }

    /// Removes the values of `range`.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        if !range.is_empty() {
            self.0.remove(range);
        }
    }

    /// Returns whether no address has a value.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of an address.
    pub(crate) fn at(&self, address: u64) -> Option<T> {
        self.0.get(&address).copied()
    }

    /// Returns the range that has an address, and its value.
    pub(crate) fn range_at(&self, address: u64) -> Option<(Range<u64>, T)> {
        self.0.get_key_value(&address).map(|(range, &value)| (range.clone(), value))
    }

    /// Iterates over the ranges that overlap `range`, clipped to it, lowest first.
    pub(crate) fn within(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, T)> + '_ {
        let overlapping = self.0.overlapping(range.clone());
        let cut = overlapping.map(move |(r, &value)| (r.start.max(range.start)..r.end.min(range.end), value));
        cut.filter(|(range, _)| !range.is_empty())
    }

    /// Returns the parts of `range` without a value, lowest first.
    pub(crate) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        self.0.gaps(&range).filter(|gap| !gap.is_empty()).collect()
    }

    /// Iterates over all ranges, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<u64>, T)> + '_ {
        self.0.iter().map(|(range, &value)| (range.clone(), value))
    }

    /// Moves the values of the `len` bytes at `from` to `to`.
    pub(crate) fn move_range(&mut self, from: u64, len: u64, to: u64) {
        let moved: Vec<_> = self.within(from..from + len).collect();
        self.remove(from..from + len);
        for (range, value) in moved {
            self.set(range.start - from + to..range.end - from + to, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_read_back_as_they_were_and_empty_ranges_are_refused() {
        let mut map = RangeMap::default();
        map.set(0x1000..0x3000, 7);
        map.set(0x8000..0x9000, 8);
        let bytes = postcard::to_stdvec(&map).expect("serialisable");
        assert_eq!(list(&postcard::from_bytes(&bytes).expect("as written")), list(&map));
        let empty = postcard::to_stdvec(&[((0x3000_u64, 0x3000_u64), 7_u8)].as_slice()).expect("serialisable");
        assert!(postcard::from_bytes::<RangeMap<u8>>(&empty).is_err());
    }

    fn list(map: &RangeMap<u8>) -> Vec<(Range<u64>, u8)> {
        map.iter().collect()
    }

    #[test]
    fn a_new_value_replaces_exactly_what_it_covers() {
        let mut map = RangeMap::default();
        map.set(0..100, 1);
        map.set(40..60, 2);
        assert_eq!(list(&map), [(0..40, 1), (40..60, 2), (60..100, 1)]);
        map.remove(50..70);
        assert_eq!(list(&map), [(0..40, 1), (40..50, 2), (70..100, 1)]);
        assert_eq!([map.at(39), map.at(40), map.at(50), map.at(70)], [Some(1), Some(2), None, Some(1)]);
    }

    #[test]
    fn adjacent_ranges_with_the_same_value_are_merged() {
        let mut map = RangeMap::default();
        map.set(0..10, 1);
        map.set(20..30, 1);
        map.set(10..20, 1);
        assert_eq!(list(&map), [(0..30, 1)]);
    }

    #[test]
    fn gaps_are_the_parts_without_a_value() {
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

    #[test]
    fn an_empty_range_has_no_value_and_changes_none() {
        let mut map = RangeMap::default();
        map.set(10..20, 1);
        map.set(15..15, 2);
        map.remove(15..15);
        assert_eq!(list(&map), [(10..20, 1)]);
        assert_eq!((map.within(15..15).count(), map.gaps(15..15), map.gaps(5..5)), (0, vec![], vec![]));
    }
}
