//! Method 3: mean outstanding reads.
//!
//! outstanding = sum over cycles of a core's outstanding reads / cycles. Not a slowdown: the factor by which methods 0 to 2
//! overestimate the added time if reads overlap and nothing else is done. Needs a counter of outstanding reads.

use super::{Calculation, Method, Program};
use crate::Quantity;

pub(super) const METHOD: Method = Method {
    id: "3",
    title: "mean outstanding reads of a core",
    formula: "outstanding / cycles",
    assumptions: "the factor by which methods 0 to 2 overestimate the added time if reads always overlap",
    needs: &[&[Quantity::Outstanding], &[Quantity::Cycles]],
    by_interval: false,
    machine: false,
    second: false,
    calculation: Calculation::Number(number),
};

fn number(program: &Program<'_>) -> f64 {
    program.counts.each_cycle(Quantity::Outstanding).unwrap_or(f64::NAN)
}
