//! Follows the calls of a thread, block by block.

use fxscope_calendar::Cycle;
use fxscope_isa::Branch;
use fxscope_pipeline::BoundBlock;

use super::CallContext;
use super::tree::{NONE, ROOT, Tree};

/// Most calls that have not returned. Those of deeper recursion are in the context of the last one.
const DEEPEST: usize = 1 << 20;

/// A call that has not returned.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Frame {
    /// Where its caller continues.
    back: u64,
    /// The caller's context, and the function that it was in.
    caller: u32,
    caller_function: u32,
    /// Its own context, and its function, before it jumped to another one.
    node: u32,
    function: u32,
    /// The kernel called it: it handles a signal.
    handles_signal: bool,
}

/// How the last block ended.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Left {
    /// Where the thread continued.
    next: u64,
    /// It ended with a call or a return, which it executed.
    transfers: bool,
    branch: Branch,
    /// One past its last instruction, and its origin.
    end: u64,
    origin: u32,
}

/// What is known of the calls of a thread.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(crate) struct ThreadCalls {
    /// The function in which it is, and its context.
    function: u32,
    node: u32,
    left: Left,
    /// Up to when its cycles are charged.
    since: Cycle,
    /// What runs is in the part of the run that is timed.
    counts: bool,
    frames: Vec<Frame>,
    tree: Tree,
}

impl Default for ThreadCalls {
    fn default() -> ThreadCalls {
        let left = Left { next: 0, transfers: false, branch: Branch::None, end: 0, origin: NONE };
        ThreadCalls {
            function: NONE,
            node: ROOT,
            left,
            since: 0,
            counts: true,
            frames: Vec::new(),
            tree: Tree::default(),
        }
    }
}

impl ThreadCalls {
    /// The thread is about to execute `block`, after `now`.
    #[inline(always)]
    pub(crate) fn enters(&mut self, block: &BoundBlock, now: Cycle) {
        if block.function != self.function || self.left.transfers {
            self.moves_to(block, now);
        }
    }

    /// The thread has executed `executed` instructions of `block`, and continues at `next`.
    #[inline(always)]
    pub(crate) fn leaves(&mut self, block: &BoundBlock, executed: usize, next: u64) {
        self.left.next = next;
        if block.calls_or_returns() {
            let end = block.start + 4 * executed as u64;
            let transfers = executed == block.profile.len();
            self.left = Left { next, transfers, branch: block.branch, end, origin: block.origin };
        }
    }

    /// Charges the cycles up to `now` to the context in which the thread is.
    pub(crate) fn charge(&mut self, now: Cycle) {
        let cycles = now.saturating_sub(std::mem::replace(&mut self.since, now));
        if self.counts {
            self.tree.charge(self.node, cycles);
        }
    }

    /// The core sleeps for `cycles`, which count for nothing.
    pub(crate) fn sleeps(&mut self, cycles: Cycle) {
        self.since += cycles;
    }

    /// The thread continues at `now`, and is counted or not.
    pub(crate) fn resume(&mut self, now: Cycle, counts: bool) {
        (self.since, self.counts) = (now, counts);
    }

    /// Forgets the cycles of all contexts, and charges those from `now` on.
    pub(crate) fn begin_to_count(&mut self, now: Cycle) {
        self.tree.set_cycles(&[]);
        self.resume(now, true);
    }

    /// Sets the cycles of the contexts up to `now`, in the order of [`ThreadCalls::cycles`].
    pub(crate) fn set_cycles(&mut self, cycles: &[u64], now: Cycle) {
        self.tree.set_cycles(cycles);
        self.since = now;
    }

    /// Returns the cycles of all contexts. Those of a thread that has executed more than another one, from the same beginning, have the
    /// same order.
    pub(crate) fn cycles(&self) -> Vec<u64> {
        self.tree.cycles()
    }

    /// What runs from `now` on is counted or not.
    pub(crate) fn switch(&mut self, now: Cycle, counts: bool) {
        self.charge(now);
        self.counts = counts;
    }

    /// The thread executes another program: nothing returns.
    pub(crate) fn restart(&mut self, now: Cycle) {
        self.charge(now);
        self.frames.clear();
        (self.function, self.node, self.left.transfers) = (NONE, ROOT, false);
    }

    /// The thread continues at `next` in `function`, and blocks that were not followed came before that. Returns whether it is no longer
    /// where it was.
    pub(crate) fn is_lost(&mut self, next: u64, function: u32) -> bool {
        (self.left.next, self.left.transfers) = (next, false);
        function != self.function
    }

    /// Sets the calls that have not returned: the function of each, and where it continues, the outermost first.
    pub(crate) fn rebuild(&mut self, frames: &[(u32, u64)]) {
        self.frames.clear();
        (self.function, self.node) = (NONE, ROOT);
        let mut back = 0;
        for &(function, continues) in frames {
            self.push(back, function, NONE, 0);
            back = continues;
        }
    }

    /// Enters a function by a call, a return or a jump.
    #[inline(never)]
    fn moves_to(&mut self, block: &BoundBlock, now: Cycle) {
        self.charge(now);
        let transfers = std::mem::replace(&mut self.left.transfers, false);
        let interrupted = self.left.next != block.start;
        match self.left.branch {
            _ if self.frames.is_empty() => self.push(0, block.function, NONE, 0),
            Branch::Return if transfers && !interrupted => self.return_to(block),
            Branch::Call | Branch::IndirectCall if transfers && !interrupted => {
                self.push(self.left.end, block.function, self.left.origin, self.calls());
            }
            _ if block.function == self.function => {}
            _ if interrupted => self.enter_or_leave_handler(block),
            _ => self.jump_to(block),
        }
        self.function = block.function;
    }

    /// What a call counts.
    fn calls(&self) -> u64 {
        u64::from(self.counts)
    }

    fn push(&mut self, back: u64, function: u32, site: u32, calls: u64) {
        let (caller, caller_function) = (self.node, self.function);
        self.node = self.tree.call(caller, function, site, calls);
        self.function = function;
        if self.frames.len() < DEEPEST {
            let node = self.node;
            self.frames.push(Frame { back, caller, caller_function, node, function, handles_signal: false });
        }
    }

    /// Ends all calls from number `frame` on.
    fn end_calls(&mut self, frame: usize) {
        let Frame { caller, caller_function, .. } = self.frames[frame];
        (self.node, self.function) = (caller, caller_function);
        self.frames.truncate(frame);
    }

    /// Returns to the caller or, if calls were left otherwise, to one of its callers.
    fn return_to(&mut self, block: &BoundBlock) {
        match self.frames.iter().rposition(|frame| frame.back == block.start) {
            Some(frame) if frame > 0 => self.end_calls(frame),
            _ if block.function == self.function => {}
            _ => self.unwind_to(block),
        }
    }

    /// The kernel has interrupted the function, to handle a signal, or a handler has ended.
    fn enter_or_leave_handler(&mut self, block: &BoundBlock) {
        let ends = |frame: &Frame| frame.handles_signal && frame.back == block.start;
        match self.frames.iter().rposition(ends) {
            Some(frame) => self.end_calls(frame),
            None => {
                self.push(self.left.next, block.function, NONE, self.calls());
                if let Some(frame) = self.frames.last_mut() {
                    frame.handles_signal = true;
                }
            }
        }
    }

    /// Jumps to another function, or to another part of the same one.
    fn jump_to(&mut self, block: &BoundBlock) {
        if block.begins_function { self.replace(block, self.calls()) } else { self.unwind_to(block) }
    }

    /// Continues in the innermost active call of a function; if there is none, the function replaces the current one.
    fn unwind_to(&mut self, block: &BoundBlock) {
        let function = block.function;
        match self.frames.last() {
            Some(&Frame { node, function: of_frame, .. }) if of_frame == function => self.node = node,
            _ => match self.frames.iter().skip(1).rposition(|frame| frame.caller_function == function) {
                Some(before) => self.end_calls(before + 1),
                None => self.replace(block, 0),
            },
        }
    }

    /// The function is replaced by another one, which returns to its caller.
    fn replace(&mut self, block: &BoundBlock, calls: u64) {
        let caller = self.frames.last().map_or(ROOT, |frame| frame.caller);
        let site = if self.node == ROOT { NONE } else { self.tree.site(self.node) };
        self.node = self.tree.call(caller, block.function, site, calls);
    }

    /// Returns its contexts; `site` gives the place of a call.
    pub(super) fn contexts(&self, site: impl Fn(u32) -> (Option<u32>, u64)) -> Vec<CallContext> {
        self.tree.contexts(site)
    }

    /// Returns whether every number in it refers to an entry, as those of a snapshot may not.
    pub(crate) fn is_sound(&self, functions: usize, origins: usize) -> bool {
        let function = |number: u32| number == NONE || (number as usize) < functions;
        let node = |number: u32| (number as usize) < self.tree.len();
        let frame = |frame: &Frame| {
            node(frame.caller) && node(frame.node) && function(frame.caller_function) && function(frame.function)
        };
        let origin = self.left.origin == NONE || (self.left.origin as usize) < origins;
        function(self.function)
            && node(self.node)
            && origin
            && self.frames.iter().all(frame)
            && self.tree.is_sound(functions, origins)
    }
}
