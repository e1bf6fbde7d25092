//! Method 0: linear in the misses of the last-level cache.
//!
//! slowdown = 1 + misses / threads · a / T. Each thread waits for its misses one after the other, each for its whole
//! latency. This is an upper bound if there are prefetches or overlapping misses; traffic without such misses (write-backs)
//! does not count. Needs the misses of the last level before memory.

use super::{Calculation, Method, Program, known, one_after_the_other};
use crate::Quantity;

pub(super) const METHOD: Method = Method {
    id: "0",
    title: "last-level misses",
    formula: "1 + misses / threads * a / T",
    assumptions: "every miss is waited for, one after the other; none is prefetched in time",
    needs: &[&[Quantity::Misses]],
    by_interval: false,
    machine: false,
    second: false,
    calculation: Calculation::Slowdown(slowdown),
};

fn slowdown(program: &Program<'_>, added: f64) -> f64 {
    one_after_the_other(program.counts, known(program.counts, Quantity::Misses), added)
}
