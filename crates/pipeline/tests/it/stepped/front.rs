//! The stepped core's front end: blocks come from the cache, instructions are read from the buffer.
//!
//! Times are those at which instructions would reach decode if nothing were in their way.

use std::collections::VecDeque;

use fxscope_calendar::Cycle;
use fxscope_machine::Spec;

use crate::stepped::parts::Step;

/// A block as it is fetched: the number of micro-operations whose instructions have arrived with it, and the cycles
/// from its fetch to the next one's.
struct Fetch {
    end: usize,
    to_next: Cycle,
}

pub struct Front<'a> {
    spec: &'a Spec,
    steps: &'a [Step],
    fetches: VecDeque<Fetch>,
    /// The next fetch comes no earlier.
    next_fetch: Cycle,
    /// Blocks in the buffer, as [`Fetch::end`].
    buffer: VecDeque<usize>,
    /// Micro-operations whose instructions have been read.
    pub read: usize,
}

impl<'a> Front<'a> {
    pub fn new(spec: &'a Spec, steps: &'a [Step]) -> Front<'a> {
        let fetches = fetches(steps, u64::from(spec.frontend.fetch_bytes));
        Front { spec, steps, fetches, next_fetch: 0, buffer: VecDeque::new(), read: 0 }
    }

    /// What happens in cycle `now`, when `dispatched` micro-operations have gone on.
    pub fn step(&mut self, now: Cycle, dispatched: usize) {
        let f = &self.spec.frontend;
        let blocks = f.buffer_insts * 4 / f.fetch_bytes;
        if now >= self.next_fetch
            && self.buffer.len() < blocks as usize
            && let Some(fetch) = self.fetches.pop_front()
        {
            self.buffer.push_back(fetch.end);
            self.next_fetch = now + fetch.to_next;
        }
        // The registers before decode hold one group more than the one that waits there.
        if self.read - dispatched <= self.spec.window.dispatch_width as usize {
            self.read_buffer();
        }
        while self.buffer.front().is_some_and(|&end| end <= self.read) {
            self.buffer.pop_front();
        }
    }

    /// Reads as many instructions as one cycle allows.
    fn read_buffer(&mut self) {
        let f = &self.spec.frontend;
        let arrived = self.buffer.back().copied().unwrap_or(0);
        let (mut insts, mut pairs, mut packed) = (0, 0, 0);
        while self.read < arrived {
            let step = &self.steps[self.read];
            insts += step.insts;
            pairs += u64::from(step.insts == 2);
            packed += step.insts.min(1);
            let limits = [f.predecode_insts, f.predecode_pairs, f.predecode_packed].map(u64::from);
            if [insts, pairs, packed].into_iter().zip(limits).any(|(n, limit)| n > limit) {
                break;
            }
            self.read += 1;
            // The target of a taken branch is not read with it.
            if step.taken.is_some() {
                break;
            }
        }
    }
}

/// The blocks in the order in which they are fetched.
fn fetches(steps: &[Step], bytes: u64) -> VecDeque<Fetch> {
    let mut all: VecDeque<Fetch> = VecDeque::new();
    // The block that was fetched last, unless a branch leads elsewhere.
    let mut current = None;
    for (i, step) in steps.iter().enumerate() {
        for inst in 0..step.insts {
            let block = (step.addr - 4 * (step.insts - 1 - inst)) / bytes;
            if current != Some(block) {
                all.push_back(Fetch { end: i, to_next: 1 });
                current = Some(block);
            }
        }
        let last = all.back_mut().expect("a block");
        last.end = i + 1;
        if let Some(after) = step.taken {
            last.to_next = after;
            current = None;
        }
    }
    all
}
