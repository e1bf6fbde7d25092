//! Method 6: extrapolation from a second run with somewhat slower memory.
//!
//! slowdown = 5(a) + (T2 / T - 5(a2)) · g(a) / g(a2), where 5(a) is method 5's prediction, T2 the time of the second run and
//! a2 the added latency of its memory; if method 5 cannot be used, g(a) is a. A computer with several memory nodes has such
//! memory: that of another node (`numactl --membind`). Counts show how the time grows with latency, and the second run shows
//! what they missed initially. That part grows in proportion (g(a) = a) until streams come too late; beyond that, only at
//! the rate of waits, since a stream that becomes late at another latency than predicted keeps that difference. Memory of
//! another node usually has less bandwidth, too: a second run that used most of it cannot be used. Nor can one of a program
//! that zeroes lines: ownership of a remote line is requested from its node, which slower memory does not delay.

use super::stalls::{self, Coefficients, FITTED, Growth};
use super::{Calculation, Method, Program};
use crate::Quantity;
use crate::kind::BUSY;

/// Lines zeroed, relative to those that memory reads and writes, from which the second run is affected: at one third,
/// predictions are too high by about 1.2 times the run time, so one fortieth makes less than a tenth.
const ZEROED: f64 = 0.025;

pub(super) const METHOD: Method = Method {
    id: "6",
    title: "method 5 and a second run",
    formula: "5(a) + (T2 / T - 5(a2)) * g(a) / g(a2), g(a) = a until streams limit",
    assumptions: "what 5 missed in a run with memory that is slower by a2 grows in proportion, as far as it is waits",
    needs: &[],
    by_interval: false,
    machine: false,
    second: true,
    calculation: Calculation::Slowdown(|program, added| slowdown(program, added, *FITTED)),
};

/// Checks whether the second run can be used.
pub(super) fn usable(program: &Program<'_>) -> Result<(), String> {
    let second = program.second?;
    program.system.remote_memory_tells()?;
    let zeroed = program.counts.share(Quantity::Zeroed, Quantity::Accesses);
    if let Some(share) = zeroed.filter(|&share| share >= ZEROED) {
        return Err(format!(
            "the program zeroes lines, {:.0} per 100 that memory reads and writes: ownership of remote lines is requested from \
             their node, which takes longer than locally, but no longer with slower memory",
            100.0 * share
        ));
    }
    match second.busy.filter(|&busy| busy >= BUSY) {
        Some(busy) => Err(format!(
            "the second run used {:.0} % of the bandwidth of another node's memory, so it waited for more than latency",
            100.0 * busy
        )),
        None => Ok(()),
    }
}

/// Returns the slowdown with other coefficients for method 5, for their fit.
pub(crate) fn slowdown(program: &Program<'_>, added: f64, with: Coefficients) -> f64 {
    let Ok(second) = program.second else { return f64::NAN };
    let growth = stalls::METHOD.usable(program).ok().and_then(|()| stalls::growth(program, with));
    let growth = growth.as_ref();
    let by_counts = |added| growth.map_or(0.0, |growth| growth.at(added));
    // Slower memory makes nothing faster: if the second run was, that is variation.
    let left = second.slowdown.max(1.0) - 1.0 - by_counts(second.added);
    let more = left * untold(growth, added) / untold(growth, second.added);
    1.0 + (by_counts(added) + more).max(0.0)
}

/// Returns the growth of the part that counts missed. If streams are late with any slower memory, they may be so by more
/// than counted, which is in proportion as well.
fn untold(growth: Option<&Growth>, added: f64) -> f64 {
    match growth.filter(|growth| (f64::MIN_POSITIVE..added).contains(&growth.ahead) && growth.streams > 0.0) {
        None => added,
        Some(&Growth { waits, streams, ahead, .. }) => ahead + (added - ahead) * waits / (waits + streams),
    }
}
