//! Method 6: what a second run says, with memory that is somewhat slower.
//!
//! slowdown = 5(a) + (T2 / T - 5(a2)) · g(a) / g(a2), with 5(a) what method 5 says, T2 the time of the second run and a2 what its
//! memory is slower by; where method 5 cannot be used, g(a) is a. A computer with several memory nodes has such memory: that of
//! another node (`numactl --membind`). Counts tell how a program's time goes on with latency, and the second run how much of it they
//! have not told at the beginning. That grows in proportion (g(a) = a) until streams come too late: from there on as far as the
//! program's time grows in waits, since streams that are late from another latency on than counts tell are so by as much for ever
//! after. Memory of another node mostly delivers less besides: a second run that took most of that says nothing of latency. Nor
//! does one of a program that zeroes lines: of a far one its node is asked for the right to it, which slower memory does not delay.

use super::stalls::{self, Coefficients, FITTED, Growth};
use super::{Gives, Method, Program};
use crate::Quantity;
use crate::kind::BUSY;

/// Lines zeroed, as a share of those that memory reads and writes, from which on the second run waits for them as well: with a
/// third, predictions are a slowdown too high by about 1.2 times the program, so that a fortieth makes less than a tenth.
const ZEROED: f64 = 0.025;

pub(super) const METHOD: Method = Method {
    id: "6",
    title: "method 5 and a second run",
    formula: "5(a) + (T2 / T - 5(a2)) * g(a) / g(a2), g(a) = a until streams limit",
    assumptions: "what 5 has not told of a run with memory that is slower by a2 grows in proportion, as far as it is waits",
    needs: &[],
    by_interval: false,
    machine: false,
    second: true,
    gives: Gives::Slowdown(|program, added| slowdown(program, added, *FITTED)),
};

/// Whether the second run says something about latency.
pub(super) fn usable(program: &Program<'_>) -> Result<(), String> {
    let second = program.second?;
    program.system.remote_memory_tells()?;
    let zeroed = program.counts.share(Quantity::Zeroed, Quantity::Accesses);
    if let Some(share) = zeroed.filter(|&share| share >= ZEROED) {
        return Err(format!(
            "the program zeroes lines, {:.0} for each 100 that memory reads and writes: of lines of another node that is asked, \
             which takes longer, but not with slower memory",
            100.0 * share
        ));
    }
    match second.busy.filter(|&busy| busy >= BUSY) {
        Some(busy) => Err(format!(
            "the second run took {:.0} % of what memory of another node can deliver, so that it was not only latency that it \
             waited for",
            100.0 * busy
        )),
        None => Ok(()),
    }
}

/// The slowdown with coefficients of one's own for method 5, for their fit.
pub(crate) fn slowdown(program: &Program<'_>, added: f64, with: Coefficients) -> f64 {
    let Ok(second) = program.second else { return f64::NAN };
    let growth = stalls::METHOD.usable(program).ok().and_then(|()| stalls::growth(program, with));
    let by_counts = |added| growth.map_or(0.0, |growth| growth.at(added));
    // Slower memory makes nothing faster: a second run that was is one that varies.
    let left = second.slowdown.max(1.0) - 1.0 - by_counts(second.added);
    let more = left * untold(growth, added) / untold(growth, second.added);
    1.0 + (by_counts(added) + more).max(0.0)
}

/// What grows as that does which counts have not told. Streams that are late with any slower memory may be so by more than
/// counts tell, which is in proportion as well.
fn untold(growth: Option<Growth>, added: f64) -> f64 {
    match growth.filter(|growth| (f64::MIN_POSITIVE..added).contains(&growth.ahead) && growth.streams > 0.0) {
        None => added,
        Some(Growth { waits, streams, ahead, .. }) => ahead + (added - ahead) * waits / (waits + streams),
    }
}
