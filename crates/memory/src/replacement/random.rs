//! Random replacement, the same in every run.

use super::Policy;

/// The word is the state of a generator (xorshift64), which makes a step with each new line. Each set has its own.
pub struct Random;

impl Policy for Random {
    const FILLS_EMPTY_WAYS_FIRST: bool = false;

    fn empty(set: usize) -> u64 {
        seed(set)
    }

    #[inline(always)]
    fn used(_: &mut u64, _: usize) {}

    #[inline(always)]
    fn filled(word: &mut u64, _: usize) {
        advance(word);
    }

    fn removed(_: &mut u64, _: usize, _: usize) {}

    #[inline(always)]
    fn victim(word: u64, candidates: u32) -> usize {
        let skipped = pick(word, candidates.count_ones());
        let rest = (0..skipped).fold(candidates, |rest, _| rest & (rest - 1));
        rest.trailing_zeros() as usize
    }
}

/// The state of a generator at the start: any number but 0, which would stay 0. The factor is odd, so that generators with
/// different numbers differ.
pub fn seed(number: usize) -> u64 {
    (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The next state of a generator.
#[inline(always)]
pub fn advance(word: &mut u64) {
    *word ^= *word << 13;
    *word ^= *word >> 7;
    *word ^= *word << 17;
}

/// A number below `count` that a generator's state stands for.
#[inline(always)]
pub fn pick(word: u64, count: u32) -> u32 {
    (((word >> 32) * u64::from(count)) >> 32) as u32
}
