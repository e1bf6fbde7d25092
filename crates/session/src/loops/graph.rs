//! Natural loops of a function, from its executed instructions.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::dominators::{Dominators, simple_fast};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::{Dfs, EdgeRef};
use petgraph::{Direction, Incoming, Outgoing};

/// Where execution continues after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// At the next instruction; also after calls, which return.
    Next,
    /// At this address.
    Jump(u64),
    /// At this address or at the next instruction.
    Branch(u64),
    /// At an address that the instruction does not say.
    Indirect,
    /// Outside of the function.
    Return,
}

/// An executed instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// Its address, or its place in its file.
    pub address: u64,
    /// Number of executions.
    pub executions: u64,
    /// Where execution continues.
    pub flow: Flow,
}

/// A natural loop: all loops with the same head are one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NaturalLoop {
    /// Its first instruction, as an index into the steps.
    pub head: usize,
    /// Its instructions as such indices, ascending.
    pub members: Vec<usize>,
    /// The innermost loop around it, as an index into the list of loops; always a smaller one than its own.
    pub parent: Option<usize>,
    /// Times it was entered from outside; `None` if the numbers of executions do not determine it.
    pub entries: Option<u64>,
}

/// Returns the loops among the executed instructions of a function, which are in ascending order and begin at `start` when it is
/// called. Outer loops come before inner ones, others in the order of their heads.
///
/// A cycle that is entered at several places has no head and is no natural loop.
pub(super) fn natural_loops(steps: &[Step], start: u64) -> Vec<NaturalLoop> {
    let graph = Graph::new(steps, start);
    let dominators = simple_fast(&graph.edges, graph.root);
    let bodies = graph.bodies(&dominators);
    let counts = graph.edge_counts();
    let mut loops: Vec<(usize, BTreeSet<usize>)> = bodies.into_iter().collect();
    loops.sort_by_key(|(head, body)| (std::cmp::Reverse(body.len()), *head));
    let parents: Vec<Option<usize>> = (0..loops.len())
        .map(|inner| (0..inner).rev().find(|&outer| loops[outer].1.contains(&loops[inner].0)))
        .collect();
    let of_block = |block: usize| graph.blocks[block].clone();
    let mut found: Vec<NaturalLoop> = loops
        .iter()
        .zip(parents)
        .map(|((head, body), parent)| NaturalLoop {
            head: graph.blocks[*head].start,
            members: body.iter().flat_map(|&block| of_block(block)).collect(),
            parent,
            entries: graph.entries(*head, body, &counts, steps),
        })
        .collect();
    by_head(&mut found);
    found
}

/// Orders loops by their heads, outer ones before inner ones.
fn by_head(loops: &mut Vec<NaturalLoop>) {
    let key = |index: usize| {
        let mut path = vec![loops[index].head];
        path.extend(std::iter::successors(loops[index].parent, |&p| loops[p].parent).map(|p| loops[p].head));
        path.reverse();
        path
    };
    let mut order: Vec<usize> = (0..loops.len()).collect();
    order.sort_by_key(|&index| key(index));
    let mut place = vec![0; loops.len()];
    order.iter().enumerate().for_each(|(new, &old)| place[old] = new);
    let sorted = order.into_iter().map(|old| {
        let parent = loops[old].parent.map(|parent| place[parent]);
        NaturalLoop { parent, ..loops[old].clone() }
    });
    *loops = sorted.collect();
}

/// The control flow of a function. Node 0 stands for what calls it; node `i + 1` is block `i`.
struct Graph {
    edges: DiGraph<(), ()>,
    root: NodeIndex,
    /// The steps of each block.
    blocks: Vec<std::ops::Range<usize>>,
    /// Executions of the first step of each block, and of the last one.
    executions: Vec<(u64, u64)>,
    /// Blocks of which not all executions lead to one of their successors.
    leaves: Vec<bool>,
}

impl Graph {
    fn new(steps: &[Step], start: u64) -> Graph {
        let blocks = blocks(steps);
        let by_address: BTreeMap<u64, usize> =
            blocks.iter().enumerate().map(|(block, range)| (steps[range.start].address, block)).collect();
        let mut edges = DiGraph::new();
        let root = edges.add_node(());
        for _ in &blocks {
            edges.add_node(());
        }
        let mut graph = Graph {
            edges,
            root,
            executions: blocks.iter().map(|b| (steps[b.start].executions, steps[b.end - 1].executions)).collect(),
            leaves: vec![false; blocks.len()],
            blocks,
        };
        let mut indirect = Vec::new();
        for block in 0..graph.blocks.len() {
            let last = steps[graph.blocks[block].end - 1];
            let next = last.address.wrapping_add(4);
            let targets = match last.flow {
                Flow::Next => vec![next],
                Flow::Jump(target) => vec![target],
                Flow::Branch(target) => vec![target, next],
                Flow::Indirect | Flow::Return => Vec::new(),
            };
            graph.leaves[block] = targets.iter().all(|target| !by_address.contains_key(target));
            for successor in targets.iter().filter_map(|target| by_address.get(target)) {
                graph.connect(block, *successor);
            }
            if last.flow == Flow::Indirect {
                indirect.push(block);
            }
        }
        graph.connect_indirect(&indirect, by_address.get(&start).copied());
        graph.connect_root(by_address.get(&start).copied());
        graph
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.edges.update_edge(node(from), node(to), ());
    }

    /// Indirect jumps lead to the blocks that nothing else leads to, as the cases of a `switch` are.
    fn connect_indirect(&mut self, indirect: &[usize], start: Option<usize>) {
        let has_source = |block: usize| self.edges.edges_directed(node(block), Incoming).next().is_some();
        let orphans: Vec<usize> =
            (0..self.blocks.len()).filter(|&block| Some(block) != start && !has_source(block)).collect();
        for &from in indirect {
            orphans.iter().for_each(|&to| self.connect(from, to));
        }
    }

    /// Callers enter at the start and, when only a part of a run was counted, wherever nothing in the function leads to.
    fn connect_root(&mut self, start: Option<usize>) {
        let root = self.root;
        let enter = |graph: &mut Graph, block: usize| {
            graph.edges.update_edge(root, node(block), ());
        };
        if let Some(start) = start {
            enter(self, start);
        }
        for block in 0..self.blocks.len() {
            if self.edges.edges_directed(node(block), Incoming).next().is_none() {
                enter(self, block);
            }
        }
        let mut reached = Dfs::new(&self.edges, root);
        while reached.next(&self.edges).is_some() {}
        for block in 0..self.blocks.len() {
            if !reached.discovered.contains(node(block).index()) {
                enter(self, block);
                reached.move_to(node(block));
                while reached.next(&self.edges).is_some() {}
            }
        }
    }

    /// Returns the blocks of each loop by its head.
    fn bodies(&self, dominators: &Dominators<NodeIndex>) -> BTreeMap<usize, BTreeSet<usize>> {
        let mut bodies: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for edge in self.edges.edge_references() {
            let (from, head) = (edge.source(), edge.target());
            let returns = dominators.dominators(from).is_some_and(|mut all| all.any(|dominator| dominator == head));
            if returns {
                let body = bodies.entry(block(head)).or_insert_with(|| BTreeSet::from([block(head)]));
                self.add_sources(from, body);
            }
        }
        bodies
    }

    /// Adds a block to a loop with all that lead to it; the head ends the search.
    fn add_sources(&self, from: NodeIndex, body: &mut BTreeSet<usize>) {
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            if node != self.root && body.insert(block(node)) {
                open.extend(self.edges.neighbors_directed(node, Incoming));
            }
        }
    }

    /// Returns how often each edge was taken, as far as the executions of blocks determine it: what flows into a block is what flows
    /// out of it.
    fn edge_counts(&self) -> Vec<Option<u64>> {
        let mut counts = vec![None; self.edges.edge_count()];
        loop {
            let mut changed = false;
            for (index, &(first, last)) in self.executions.iter().enumerate() {
                changed |= self.complete(node(index), Incoming, first, &mut counts);
                if !self.leaves[index] {
                    changed |= self.complete(node(index), Outgoing, last, &mut counts);
                }
            }
            if !changed {
                return counts;
            }
        }
    }

    /// Determines the only unknown edge of a node in a direction. Returns whether there was one.
    fn complete(&self, node: NodeIndex, direction: Direction, total: u64, counts: &mut [Option<u64>]) -> bool {
        let (mut unknown, mut known) = (None, 0u64);
        for edge in self.edges.edges_directed(node, direction) {
            match counts[edge.id().index()] {
                Some(count) => known += count,
                None if unknown.is_some() => return false,
                None => unknown = Some(edge.id().index()),
            }
        }
        if let Some(edge) = unknown {
            counts[edge] = Some(total.saturating_sub(known));
        }
        unknown.is_some()
    }

    /// Returns how often a loop was entered.
    fn entries(&self, head: usize, body: &BTreeSet<usize>, counts: &[Option<u64>], steps: &[Step]) -> Option<u64> {
        let (mut outside, mut inside) = (Some(0), Some(0));
        for edge in self.edges.edges_directed(node(head), Incoming) {
            let is_inside = edge.source() != self.root && body.contains(&block(edge.source()));
            let sum = if is_inside { &mut inside } else { &mut outside };
            *sum = sum.zip(counts[edge.id().index()]).map(|(sum, count): (u64, u64)| sum + count);
        }
        let iterations = steps[self.blocks[head].start].executions;
        outside.or_else(|| inside.map(|again| iterations.saturating_sub(again)))
    }
}

fn node(block: usize) -> NodeIndex {
    NodeIndex::new(block + 1)
}

fn block(node: NodeIndex) -> usize {
    node.index() - 1
}

/// Divides steps into blocks: they begin at targets of branches, behind branches and behind instructions that were not executed.
fn blocks(steps: &[Step]) -> Vec<std::ops::Range<usize>> {
    let targets: BTreeSet<u64> = steps
        .iter()
        .filter_map(|step| match step.flow {
            Flow::Jump(target) | Flow::Branch(target) => Some(target),
            Flow::Next | Flow::Indirect | Flow::Return => None,
        })
        .collect();
    let begins = |i: usize| {
        i == 0
            || steps[i - 1].flow != Flow::Next
            || steps[i].address != steps[i - 1].address.wrapping_add(4)
            || targets.contains(&steps[i].address)
    };
    let mut starts: Vec<usize> = (0..steps.len()).filter(|&i| begins(i)).collect();
    starts.push(steps.len());
    starts.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of 4 bytes from address 0.
    fn steps(list: &[(u64, Flow)]) -> Vec<Step> {
        (0..).step_by(4).zip(list).map(|(address, &(executions, flow))| Step { address, executions, flow }).collect()
    }

    #[test]
    fn straight_code_has_no_loop() {
        assert_eq!(natural_loops(&steps(&[(3, Flow::Next), (3, Flow::Return)]), 0), []);
        assert_eq!(natural_loops(&[], 0), []);
    }

    #[test]
    fn a_branch_to_itself_is_a_loop_of_one_block() {
        let code = steps(&[(2, Flow::Next), (20, Flow::Next), (20, Flow::Branch(4)), (2, Flow::Return)]);
        let expected = NaturalLoop { head: 1, members: vec![1, 2], parent: None, entries: Some(2) };
        assert_eq!(natural_loops(&code, 0), [expected]);
    }

    #[test]
    fn loops_nest_and_their_entries_follow_from_the_executions_around_them() {
        // for (i < 5) { for (j < 7) if (rare) x; y }
        let code = steps(&[
            (1, Flow::Next),
            (5, Flow::Next),        // 4: outer head
            (35, Flow::Branch(16)), // 8: inner head
            (3, Flow::Next),        // 12
            (35, Flow::Branch(8)),  // 16: inner latch
            (5, Flow::Branch(4)),   // 20: outer latch
            (1, Flow::Return),
        ]);
        let outer = NaturalLoop { head: 1, members: vec![1, 2, 3, 4, 5], parent: None, entries: Some(1) };
        let inner = NaturalLoop { head: 2, members: vec![2, 3, 4], parent: Some(0), entries: Some(5) };
        assert_eq!(natural_loops(&code, 0), [outer, inner]);
    }

    #[test]
    fn loops_one_after_the_other_are_in_the_order_of_their_heads_whatever_their_size() {
        let code =
            steps(&[(4, Flow::Branch(0)), (9, Flow::Next), (9, Flow::Next), (9, Flow::Branch(4)), (1, Flow::Return)]);
        let heads: Vec<_> = natural_loops(&code, 0).iter().map(|l| (l.head, l.parent, l.entries)).collect();
        assert_eq!(heads, [(0, None, Some(1)), (1, None, Some(1))]);
    }

    #[test]
    fn a_test_at_the_end_that_is_jumped_to_makes_the_test_the_head() {
        // jump to the test; body; test: branch to body; return
        let code = steps(&[(2, Flow::Jump(8)), (18, Flow::Next), (20, Flow::Branch(4)), (2, Flow::Return)]);
        let expected = NaturalLoop { head: 2, members: vec![1, 2], parent: None, entries: Some(2) };
        assert_eq!(natural_loops(&code, 0), [expected]);
    }

    #[test]
    fn indirect_jumps_lead_to_what_nothing_else_leads_to() {
        // A loop with a switch of two cases.
        let code = steps(&[
            (10, Flow::Indirect),  // 0: head
            (4, Flow::Jump(12)),   // 4: case
            (6, Flow::Next),       // 8: case
            (10, Flow::Branch(0)), // 12: latch
            (1, Flow::Return),
        ]);
        let expected = NaturalLoop { head: 0, members: vec![0, 1, 2, 3], parent: None, entries: Some(1) };
        assert_eq!(natural_loops(&code, 0), [expected]);
    }

    #[test]
    fn a_cycle_with_two_entries_is_no_natural_loop() {
        let code = steps(&[(4, Flow::Branch(8)), (9, Flow::Next), (9, Flow::Branch(4)), (4, Flow::Return)]);
        assert_eq!(natural_loops(&code, 0), []);
    }

    #[test]
    fn a_loop_of_which_only_the_middle_was_counted_has_no_entries() {
        let code = steps(&[(20, Flow::Next), (20, Flow::Jump(0))]);
        let expected = NaturalLoop { head: 0, members: vec![0, 1], parent: None, entries: Some(0) };
        assert_eq!(natural_loops(&code, 400), [expected]);
    }

    #[test]
    fn instructions_that_never_ran_separate_blocks() {
        let code = [
            Step { address: 0, executions: 8, flow: Flow::Branch(16) },
            Step { address: 16, executions: 8, flow: Flow::Branch(0) },
            Step { address: 20, executions: 1, flow: Flow::Return },
        ];
        let expected = NaturalLoop { head: 0, members: vec![0, 1], parent: None, entries: Some(1) };
        assert_eq!(natural_loops(&code, 0), [expected]);
    }
}
