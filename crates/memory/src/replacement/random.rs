//! Random replacement, the same in every run.

use super::Policy;

/// The word is the state of a generator (xorshift64), which makes a step with each new line. Each set has its own.
pub struct Random;

impl Policy for Random {
    const FILLS_EMPTY_WAYS_FIRST: bool = false;

    fn empty(set: usize) -> u64 {
        // Any number but 0, which would stay 0. An odd factor: sets have different ones.
        (set as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline(always)]
    fn used(_: &mut u64, _: usize) {}

    #[inline(always)]
    fn filled(word: &mut u64, _: usize) {
        *word ^= *word << 13;
        *word ^= *word >> 7;
        *word ^= *word << 17;
    }

    fn removed(_: &mut u64, _: usize, _: usize) {}

    #[inline(always)]
    fn victim(word: u64, candidates: u32) -> usize {
        let skipped = ((word >> 32) * u64::from(candidates.count_ones())) >> 32;
        let rest = (0..skipped).fold(candidates, |rest, _| rest & (rest - 1));
        rest.trailing_zeros() as usize
    }
}
