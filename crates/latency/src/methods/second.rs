//! Method 6: what a second run says, with memory that is somewhat slower.
//!
//! slowdown = 5(a) + (T2 / T - 5(a2)) · a / a2, with 5(a) what method 5 says, T2 the time of the second run and a2 what its memory
//! is slower by; where method 5 cannot be used, 1 + (T2 / T - 1) · a / a2. A computer with several memory nodes has such memory:
//! that of another node (`numactl --membind`). Counts tell how a program's time goes on with latency, and the second run how much of
//! it they have not told at the beginning, which is taken to grow in proportion. Memory of another node mostly delivers less besides:
//! of a program that bandwidth limits, the second run says nothing.

use super::stalls::{self, FITTED};
use super::{Gives, Method, Program};

pub(super) const METHOD: Method = Method {
    id: "6",
    title: "method 5 and a second run",
    formula: "5(a) + (T2 / T - 5(a2)) * a / a2",
    assumptions: "what 5 has not told of a run with memory that is slower by a2 grows in proportion; its bandwidth is enough",
    needs: &[],
    by_interval: false,
    machine: false,
    second: true,
    gives: Gives::Slowdown(slowdown),
};

fn slowdown(program: &Program<'_>, added: f64) -> f64 {
    let Some(second) = program.second else { return f64::NAN };
    let counted = stalls::METHOD.usable(program).is_ok();
    let by_counts = |added| if counted { stalls::slowdown(program, added, *FITTED) } else { 1.0 };
    // Slower memory makes nothing faster: a second run that was is one that varies.
    let left = second.slowdown.max(1.0) - by_counts(second.added);
    (by_counts(added) + left * added / second.added).max(1.0)
}
