//! Tagged sequential prefetch: a miss, and the first use of a prefetched line, prefetch the line after it (A. J. Smith,
//! "Cache memories", ACM Computing Surveys 14(3), 1982).

use fxscope_machine::spec::Prefetch;

use super::control::Control;
use super::{Access, Mode, Policy, Requests, Run};

/// It remembers nothing: the cache marks lines that have been prefetched and not used.
///
/// The line goes into L1, or into L2 alone where prefetches into L1 are switched off. Distances in registers have no
/// effect, and pointers that name injection registers prefetch nothing.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct NextLine {
    line_shift: u32,
}

impl Policy for NextLine {
    const INJECTION: bool = false;

    fn new(_: &Prefetch, line_shift: u32) -> NextLine {
        NextLine { line_shift }
    }

    #[inline(always)]
    fn access(&mut self, access: Access, control: &Control) -> Option<Requests> {
        let (l1, l2) = control.levels(access.steering);
        if !l1 && !l2 {
            return None;
        }
        let first = (access.addr >> self.line_shift) + 1;
        Some(Requests {
            l1: Run { first, count: u32::from(l1), reliableness: control.l1.reliableness },
            l2: Run { first, count: u32::from(!l1), reliableness: control.l2.reliableness },
            step: 1,
            mode: Mode::Stream,
            entry: None,
        })
    }
}
