//! Method 4 by intervals: each interval is corrected by its own mean.
//!
//! slowdown = 1 + sum over intervals of (accesses / threads · a / max(1, outstanding / cycles)) / T. Distinguishes phases
//! with more and less overlap if intervals are shorter than phases.

use super::corrected::waited_for;
use super::{Calculation, Method, Program, one_after_the_other};
use crate::Quantity;

pub(super) const METHOD: Method = Method {
    id: "4i",
    title: "4, interval by interval",
    formula: "1 + sum((cache_misses or accesses) / max(1, outstanding / cycles)) / threads * a / T",
    assumptions: "as 4, for each interval; intervals are shorter than phases",
    needs: &[&[Quantity::CacheMisses, Quantity::Accesses], &[Quantity::Outstanding], &[Quantity::Cycles]],
    by_interval: true,
    machine: false,
    second: false,
    calculation: Calculation::Slowdown(slowdown),
};

fn slowdown(program: &Program<'_>, added: f64) -> f64 {
    let waited = program.intervals.iter().map(waited_for).sum();
    one_after_the_other(program.counts, waited, added)
}
