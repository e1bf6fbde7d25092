//! The tree of contexts of a thread.

use super::CallContext;

/// Most contexts of a thread. What would need more counts for the caller.
const MOST: usize = 1 << 16;

/// No context, origin or function.
pub(super) const NONE: u32 = u32::MAX;

/// The root: it is no function, and calls the thread's first one.
pub(super) const ROOT: u32 = 0;

/// A context, or a call that continues an outer one.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Node {
    caller: u32,
    function: u32,
    /// The origin of the block whose last instruction calls it.
    site: u32,
    /// The context of its function that is active at this call already; [`NONE`]: it is one itself.
    outer: u32,
    /// The first context that it calls, and the next one of its caller.
    first: u32,
    next: u32,
    calls: u64,
    cycles: u64,
}

/// The contexts of a thread; callers come before those they call.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Default for Tree {
    fn default() -> Tree {
        let mut tree = Tree { nodes: Vec::new() };
        tree.add(NONE, NONE, NONE, NONE);
        tree
    }
}

impl Tree {
    /// Adds cycles to a context.
    #[inline(always)]
    pub(super) fn charge(&mut self, node: u32, cycles: u64) {
        self.nodes[node as usize].cycles += cycles;
    }

    /// Returns the cycles of all contexts.
    pub(super) fn cycles(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.cycles).collect()
    }

    /// Sets the cycles of the first contexts; all others have none.
    pub(super) fn set_cycles(&mut self, cycles: &[u64]) {
        let cycles = cycles.iter().copied().chain(std::iter::repeat(0));
        self.nodes.iter_mut().zip(cycles).for_each(|(node, cycles)| node.cycles = cycles);
    }

    /// Returns where a context was called.
    pub(super) fn site(&self, node: u32) -> u32 {
        self.nodes[node as usize].site
    }

    /// Returns the context of `function` when `caller` calls it at `site`, as `calls` calls.
    pub(super) fn call(&mut self, caller: u32, function: u32, site: u32, calls: u64) -> u32 {
        let mut node = self.nodes[caller as usize].first;
        while node != NONE {
            let known = self.nodes[node as usize];
            if known.function == function && known.site == site {
                break;
            }
            node = known.next;
        }
        if node == NONE {
            if self.nodes.len() >= MOST {
                return caller;
            }
            node = self.add(caller, function, site, self.active(caller, function));
        }
        let called = &mut self.nodes[node as usize];
        called.calls += calls;
        if called.outer == NONE { node } else { called.outer }
    }

    /// Returns the context of `function` among `node` and its callers.
    fn active(&self, mut node: u32, function: u32) -> u32 {
        while node != NONE && self.nodes[node as usize].function != function {
            node = self.nodes[node as usize].caller;
        }
        node
    }

    #[cold]
    fn add(&mut self, caller: u32, function: u32, site: u32, outer: u32) -> u32 {
        let node = self.nodes.len() as u32;
        let next = match self.nodes.get_mut(caller as usize) {
            Some(caller) => std::mem::replace(&mut caller.first, node),
            None => NONE,
        };
        self.nodes.push(Node { caller, function, site, outer, first: NONE, next, calls: 0, cycles: 0 });
        node
    }

    /// Returns the number of contexts, those that continue an outer one included.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the contexts that were called or have run; `site` gives the place of a call.
    pub(super) fn contexts(&self, site: impl Fn(u32) -> (Option<u32>, u64)) -> Vec<CallContext> {
        let mut numbers: Vec<Option<u32>> = vec![None; self.nodes.len()];
        let mut contexts: Vec<CallContext> = Vec::new();
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            if node.outer != NONE {
                let outer = numbers[node.outer as usize].and_then(|outer| contexts.get_mut(outer as usize));
                outer.into_iter().for_each(|outer| outer.calls += node.calls);
                continue;
            }
            numbers[index] = Some(contexts.len() as u32);
            contexts.push(CallContext {
                caller: numbers[node.caller as usize],
                function: node.function,
                site: (node.site != NONE).then(|| site(node.site)),
                calls: node.calls,
                cycles: node.cycles,
            });
        }
        contexts
    }

    /// Returns whether every number in it refers to an entry, as those of a snapshot may not.
    pub(super) fn is_sound(&self, functions: usize, origins: usize) -> bool {
        let known = |number: u32, count: usize| number == NONE || (number as usize) < count;
        let sound = |(index, node): (usize, &Node)| {
            let is_root = index == ROOT as usize;
            let caller = if is_root { node.caller == NONE } else { (node.caller as usize) < index };
            // Lists of what a context calls have the newest first.
            let ordered = node.next == NONE || (node.next as usize) < index;
            let first = node.first == NONE || (node.first as usize) > index && (node.first as usize) < self.nodes.len();
            let function = if is_root { node.function == NONE } else { (node.function as usize) < functions };
            caller && ordered && first && function && known(node.site, origins) && known(node.outer, index)
        };
        !self.nodes.is_empty() && self.nodes.iter().enumerate().all(sound)
    }
}
