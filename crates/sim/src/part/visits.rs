//! The executions of a function or a region, thread by thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a function that a thread is in returns to: the address, and the stack pointer then. Both are 0 for a region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Frame {
    pub(super) address: u64,
    pub(super) stack_pointer: u64,
}

/// The executions of a function or a region so far. Of executions inside each other the outermost one counts.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(super) struct Visits {
    /// How often each thread has entered it, and how often it has left it.
    entered: BTreeMap<u32, u64>,
    left: BTreeMap<u32, u64>,
    /// The threads that are in it.
    inside: BTreeMap<u32, Frame>,
}

impl Visits {
    /// A thread enters it. Returns how often the thread has entered it; `None`: it was in it already.
    pub(super) fn enter(&mut self, thread: u32, frame: Frame) -> Option<u64> {
        if let Some(known) = self.inside.get(&thread) {
            let is_inside = frame.stack_pointer < known.stack_pointer || frame == *known;
            if is_inside {
                return None;
            }
            // It was left without a return (longjmp).
            self.leave(thread);
        }
        self.inside.insert(thread, frame);
        let times = self.entered.entry(thread).or_default();
        *times += 1;
        Some(*times)
    }

    /// A thread leaves it. Returns whether it was in it.
    pub(super) fn leave(&mut self, thread: u32) -> bool {
        let left = self.inside.remove(&thread).is_some();
        *self.left.entry(thread).or_default() += u64::from(left);
        left
    }

    /// Returns the function's frame if the thread, which has arrived at `address`, returns from it.
    pub(super) fn returned(&self, thread: u32, address: u64, stack_pointer: u64) -> Option<Frame> {
        let frame = *self.inside.get(&thread)?;
        let returns = frame.address == address && frame.stack_pointer == stack_pointer;
        (returns || stack_pointer > frame.stack_pointer).then_some(frame)
    }

    /// Returns whether any thread is in it of those that exist.
    pub(super) fn is_inside(&self, exists: impl Fn(u32) -> bool) -> bool {
        self.inside.keys().any(|&thread| exists(thread))
    }

    /// Returns whether execution number `number` is over: a thread has left it, and none that exists is still in it.
    pub(super) fn is_over(&self, number: u64, exists: impl Fn(u32) -> bool) -> bool {
        let left = |thread: &u32| self.left.get(thread).copied().unwrap_or(0);
        self.left.values().any(|&times| times >= number)
            && !self.inside.keys().any(|thread| left(thread) < number && exists(*thread))
    }

    /// Counts from now on. Executions that have begun count when they end.
    pub(super) fn count_from_now(&mut self) {
        (self.entered, self.left) = (BTreeMap::new(), BTreeMap::new());
    }

    /// Iterates over the frames of functions that threads are in, with the thread.
    pub(super) fn frames(&self) -> impl Iterator<Item = (u32, Frame)> + '_ {
        self.inside.iter().map(|(&thread, &frame)| (thread, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(address: u64, stack_pointer: u64) -> Frame {
        Frame { address, stack_pointer }
    }

    #[test]
    fn of_calls_inside_each_other_the_outermost_counts() {
        let mut visits = Visits::default();
        assert_eq!(visits.enter(0, frame(0x100, 0x8000)), Some(1));
        assert_eq!(visits.enter(0, frame(0x200, 0x7f00)), None);
        assert_eq!(visits.returned(0, 0x200, 0x7f00), None);
        assert!(visits.returned(0, 0x100, 0x8000).is_some() && visits.leave(0));
        assert_eq!(visits.enter(0, frame(0x100, 0x8000)), Some(2));
    }

    #[test]
    fn a_loop_back_to_the_beginning_of_a_function_is_no_call() {
        let mut visits = Visits::default();
        visits.enter(0, frame(0x100, 0x8000));
        assert_eq!(visits.enter(0, frame(0x100, 0x8000)), None);
    }

    #[test]
    fn a_function_that_is_left_by_a_jump_is_over_when_the_stack_is_above_it() {
        let mut visits = Visits::default();
        visits.enter(0, frame(0x100, 0x8000));
        assert!(visits.returned(0, 0x999, 0x8100).is_some());
        assert_eq!(visits.enter(0, frame(0x100, 0x8200)), Some(2), "the one before has been left");
        assert!(visits.is_over(1, |_| true));
    }

    #[test]
    fn an_execution_is_over_when_no_thread_is_in_it() {
        let mut visits = Visits::default();
        visits.enter(0, Frame::default());
        visits.enter(1, Frame::default());
        assert!(!visits.is_over(1, |_| true));
        visits.leave(0);
        assert!(!visits.is_over(1, |_| true), "thread 1 is in it");
        assert!(visits.is_over(1, |thread| thread == 0), "thread 1 has ended");
        visits.leave(1);
        assert!(visits.is_over(1, |_| true) && !visits.is_over(2, |_| true));
        visits.enter(1, Frame::default());
        assert!(visits.is_over(1, |_| true), "it is in the next one");
    }

    #[test]
    fn what_has_begun_counts_when_it_ends() {
        let mut visits = Visits::default();
        visits.enter(0, Frame::default());
        visits.count_from_now();
        assert!(!visits.is_over(1, |_| true));
        visits.leave(0);
        assert!(visits.is_over(1, |_| true));
    }
}
