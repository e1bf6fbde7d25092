//! Nodes of resident pages, and moves between them.

use std::ops::Range;

use fxscope_guestmem::PAGE;

use super::policy::Policy;
use super::{Pages, Placement, Resident, usage};

impl Pages {
    /// Returns whether all resident pages of a range are on nodes that the policy permits.
    pub(crate) fn obeys(&self, range: Range<u64>, policy: Policy) -> bool {
        let nodes =
            |(range, resident): (Range<u64>, Resident)| usage::nodes(&range, resident.shift, resident.placement);
        self.resident.within(range).flat_map(nodes).all(|(node, _)| policy.permits(node))
    }

    /// Begins a move of pages that the program requests: all following migrations belong to it.
    pub(crate) fn begin_move(&mut self) {
        self.moves += 1;
    }

    /// Moves the resident pages that overlap a range: `to` returns the new node, from a page's address, log2 of its size and its
    /// node.
    pub(crate) fn migrate(&mut self, range: Range<u64>, to: impl Fn(u64, u32, u32) -> u32) {
        let shift = |address| self.resident.at(address).map_or(0, |resident| resident.shift);
        let (first, last) = (shift(range.start), shift(range.end - 1));
        let whole = range.start >> first << first..range.end.next_multiple_of(1 << last);
        let runs: Vec<_> = self.resident.within(whole).collect();
        let (moved, mut last) = (self.moves, None);
        for (run, resident) in runs {
            let bytes = (1u64 << resident.shift).max(PAGE);
            let mut at = run.start;
            while at < run.end {
                let end = (at / bytes * bytes + bytes).min(run.end);
                let node = resident.placement.node(at, resident.shift, 0);
                let new = to(at, resident.shift, node);
                if new != node {
                    self.version += 1;
                    let placement = Placement::Node(new);
                    self.resident.set(at..end, Resident { placement, placed: true, moved, ..resident });
                    // Two runs may share a page.
                    if last.replace(at / bytes) != Some(at / bytes) {
                        self.work.moved += 1;
                        self.work.moved_bytes += bytes;
                    }
                }
                at = end;
            }
        }
    }

    /// Returns the node of a resident page.
    pub(crate) fn node_at(&self, address: u64) -> Option<u32> {
        let resident = self.resident.at(address)?;
        Some(resident.placement.node(address, resident.shift, 0))
    }
}
