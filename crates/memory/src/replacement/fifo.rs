//! First in, first out.

use super::{Policy, order};

/// The word is the order in which lines came, the latest first. Empty ways are last.
pub struct Fifo;

impl Policy for Fifo {
    const FILLS_EMPTY_WAYS_FIRST: bool = true;

    fn empty(_: usize) -> u64 {
        order::IN_ORDER
    }

    #[inline(always)]
    fn used(_: &mut u64, _: usize) {}

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
