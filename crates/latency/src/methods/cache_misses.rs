//! Method 2: misses of a memory-side cache.
//!
//! slowdown = 1 + cache misses / threads · a / T. If a cache of fast memory precedes main memory, only its misses get
//! slower. Otherwise like method 1. Needs the counts of that cache.

use super::{Calculation, Method, Program, known, one_after_the_other};
use crate::Quantity;

pub(super) const METHOD: Method = Method {
    id: "2",
    title: "misses of the memory-side cache",
    formula: "1 + cache_misses / threads * a / T",
    assumptions: "every miss of the memory-side cache is waited for, one after the other",
    needs: &[&[Quantity::CacheMisses]],
    by_interval: false,
    machine: false,
    second: false,
    calculation: Calculation::Slowdown(slowdown),
};

fn slowdown(program: &Program<'_>, added: f64) -> f64 {
    one_after_the_other(program.counts, known(program.counts, Quantity::CacheMisses), added)
}
