//! Folded stacks, as flame graphs are made from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::stacks::Stacks;

/// Returns a line for each stack of any thread, in alphabetical order.
pub(super) fn lines(stacks: &Stacks) -> String {
    let mut weights: BTreeMap<String, u64> = BTreeMap::new();
    for sample in stacks.series.iter().flat_map(|series| &series.samples) {
        let Some(node) = sample.node else { continue };
        *weights.entry(folded(stacks, node)).or_default() += sample.weight;
    }
    let mut out = String::new();
    for (stack, weight) in weights {
        let _ = writeln!(out, "{stack} {weight}");
    }
    out
}

/// Returns a stack from the outermost frame inwards.
fn folded(stacks: &Stacks, node: usize) -> String {
    let mut names: Vec<String> = stacks.frames(node).map(|frame| field(&stacks.nodes[frame].name)).collect();
    names.reverse();
    names.join(";")
}

/// A name without what separates frames, stacks and numbers.
fn field(name: &str) -> String {
    name.replace([';', '\n', '\r'], ":")
}
