//! Least recently used.

use super::{Policy, order};

/// The word is the order of use, the most recently used way first. Empty ways are last.
pub struct Lru;

impl Policy for Lru {
    const FILLS_EMPTY_WAYS_FIRST: bool = true;

    fn empty(_: usize) -> u64 {
        order::IN_ORDER
    }

    #[inline(always)]
    fn used(word: &mut u64, way: usize) {
        order::make_first(word, way);
    }

    #[inline(always)]
    fn filled(word: &mut u64, way: usize) {
        order::make_first(word, way);
    }

    fn removed(word: &mut u64, way: usize, ways: usize) {
        order::make_last(word, way, ways);
    }

    #[inline(always)]
    fn victim(word: u64, candidates: u32) -> usize {
        order::last_of(word, candidates)
    }

    #[inline(always)]
    fn first(word: u64, ways: usize) -> usize {
        order::way_at(word, ways - 1)
    }
}
