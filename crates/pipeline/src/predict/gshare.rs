//! Global history with index sharing (S. McFarling, "Combining branch predictors", WRL Technical Note 36, 1993).

use fxscope_machine::spec::Frontend;

use super::{Conditional, Policy};

/// A counter of an untrained table: not taken, weakly.
const UNTRAINED: u8 = 1;
/// Counters from here on predict taken.
const TAKEN: u8 = 2;
/// The largest value of a counter.
const LARGEST: u8 = 3;

/// Two-bit counters, indexed by the exclusive or of the branch's address and the global history. Every conditional branch
/// trains its counter.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Gshare {
    counters: Box<[u8]>,
    /// The part of the history that is used.
    history: u64,
}

impl Policy for Gshare {
    fn new(spec: &Frontend) -> Gshare {
        Gshare {
            counters: vec![UNTRAINED; spec.pattern_entries as usize].into(),
            history: (1 << spec.history_bits) - 1,
        }
    }

    #[inline(always)]
    fn branch(&mut self, branch: &Conditional) -> bool {
        let index = branch.pc >> 2 ^ branch.history & self.history;
        let counter = &mut self.counters[index as usize & (self.counters.len() - 1)];
        let right = branch.right(*counter >= TAKEN);
        *counter = if branch.taken { (*counter + 1).min(LARGEST) } else { counter.saturating_sub(1) };
        right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::tests::spec;

    /// Mispredictions of a branch at `pc` that is in the BTB and goes as `directions` say.
    fn wrong(gshare: &mut Gshare, pc: u64, directions: impl Iterator<Item = bool>) -> usize {
        let mut history = 0;
        let branches = directions.filter(|&taken| {
            let right = gshare.branch(&Conditional { pc, taken, noted: Some(taken), history, first: None });
            history = history << 1 | u64::from(taken);
            !right
        });
        branches.count()
    }

    fn gshare(history_bits: u32, pattern_entries: u32) -> Gshare {
        Gshare::new(&Frontend { history_bits, pattern_entries, ..spec() })
    }

    #[test]
    fn a_branch_that_is_always_taken_is_learnt_once_for_each_history_that_leads_to_it() {
        // The histories 0, 1, 11, … up to all bits, each with a counter that a single time brings to "taken".
        for bits in [1, 4, 10] {
            assert_eq!(wrong(&mut gshare(bits, 1 << bits), 64, (0..100).map(|_| true)), bits as usize + 1);
        }
    }

    #[test]
    fn a_pattern_that_the_history_holds_is_learnt_and_one_that_it_does_not_hold_is_not() {
        // Three times taken, once not: after three directions the next one is known, after two it is not. The history 11
        // is followed by either direction in turn: its counter goes to and fro between its middle values, and is wrong
        // both times.
        let rounds = |n: usize| (0..4 * n).map(|i| i % 4 != 3);
        let mut long = gshare(3, 8);
        wrong(&mut long, 0, rounds(10));
        assert_eq!(wrong(&mut long, 0, rounds(100)), 0);
        let mut short = gshare(2, 4);
        wrong(&mut short, 0, rounds(10));
        assert_eq!(wrong(&mut short, 0, rounds(100)), 200);
    }

    #[test]
    fn a_counter_takes_two_exceptions_to_change_its_mind() {
        let mut gshare = gshare(1, 2);
        // Directions with the same history before them, and whether each is predicted.
        let branches =
            [(true, false), (true, true), (false, false), (true, true), (false, false), (false, false), (false, true)];
        for (taken, right) in branches {
            let branch = Conditional { pc: 0, taken, noted: Some(true), history: 1, first: None };
            assert_eq!(gshare.branch(&branch), right);
        }
    }

    #[test]
    fn a_branch_that_the_btb_does_not_know_is_predicted_not_taken() {
        let mut gshare = gshare(4, 16);
        wrong(&mut gshare, 0, (0..20).map(|_| true));
        let branch = Conditional { pc: 0, taken: true, noted: None, history: 15, first: None };
        assert!(!gshare.branch(&branch));
        assert!(gshare.branch(&Conditional { noted: Some(true), ..branch }));
    }
}
