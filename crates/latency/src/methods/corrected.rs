//! Method 4: method 2, or 1 without a memory-side cache, corrected by mean outstanding reads.
//!
//! slowdown = 1 + accesses / threads · a / T / max(1, outstanding / cycles). Reads that are outstanding at the same time are
//! waited for at the same time. The mean covers the whole run: parts without reads make it too small, and the prediction too
//! large. It is assumed that reads overlap as much with slower memory; prefetches at a fixed distance overlap more.

use super::{Calculation, Method, Program, one_after_the_other, slow_accesses};
use crate::{Counts, Quantity};

pub(super) const METHOD: Method = Method {
    id: "4",
    title: "2 or 1, by mean outstanding reads",
    formula: "1 + (cache_misses or accesses) / threads * a / T / max(1, outstanding / cycles)",
    assumptions: "reads overlap by the run's mean number all the time, and as much with slower memory",
    needs: &[&[Quantity::CacheMisses, Quantity::Accesses], &[Quantity::Outstanding], &[Quantity::Cycles]],
    by_interval: false,
    machine: false,
    second: false,
    calculation: Calculation::Slowdown(slowdown),
};

fn slowdown(program: &Program<'_>, added: f64) -> f64 {
    one_after_the_other(program.counts, waited_for(program.counts), added)
}

/// Returns the accesses that are waited for in sequence, if those outstanding at the same time count as one.
pub(super) fn waited_for(counts: &Counts) -> f64 {
    // Without cycles nothing ran and nothing waited.
    let outstanding = counts.each_cycle(Quantity::Outstanding).unwrap_or(1.0);
    slow_accesses(counts).unwrap_or(f64::NAN) / outstanding.max(1.0)
}
