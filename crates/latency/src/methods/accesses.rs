//! Method 1: reads and writes counted at the memory controllers (CAS commands).
//!
//! slowdown = 1 + accesses / threads · a / T. Like method 0, for everything that reaches memory: including prefetches of all
//! levels, table walks and write-backs, whose latency nothing waits for. Needs counts of the controllers, which include all
//! programs on the computer.

use super::{Calculation, Method, Program, known, one_after_the_other};
use crate::Quantity;

pub(super) const METHOD: Method = Method {
    id: "1",
    title: "accesses at the controllers",
    formula: "1 + accesses / threads * a / T",
    assumptions: "every read and write at the controllers is waited for, one after the other; no other program runs",
    needs: &[&[Quantity::Accesses]],
    by_interval: false,
    machine: false,
    second: false,
    calculation: Calculation::Slowdown(slowdown),
};

fn slowdown(program: &Program<'_>, added: f64) -> f64 {
    one_after_the_other(program.counts, known(program.counts, Quantity::Accesses), added)
}
