//! The number of pages of a process, by segment, size and node.

use std::collections::BTreeMap;
use std::ops::Range;

use fxscope_guestmem::Segment;
use serde::{Deserialize, Serialize};

use super::{Pages, Placement, pages};

/// Pages of a segment and size on a node: the maximum in use at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageUse {
    /// What they are used for.
    pub segment: Segment,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The memory node.
    pub node: u32,
    /// Pages.
    pub pages: u64,
    /// Mapped bytes of them; the rest is lost to rounding.
    pub bytes: u64,
}

/// Segment, log2 of the page size, node.
type Key = (Segment, u32, u32);

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Count {
    pages: u64,
    bytes: u64,
}

/// The maximum of pages in use so far.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Usage {
    peaks: BTreeMap<Key, Count>,
    /// The most bytes of pages at a time.
    peak_bytes: u64,
    /// Whether pages were allocated since the last look.
    grown: bool,
}

impl Usage {
    /// Records that pages were allocated.
    pub(super) fn grown(&mut self) {
        self.grown = true;
    }

    /// Records what is in use now.
    pub(super) fn note(&mut self, runs: impl Iterator<Item = (Range<u64>, Segment, u32, Placement)>) {
        if !std::mem::take(&mut self.grown) {
            return;
        }
        let mut now: BTreeMap<Key, Count> = BTreeMap::new();
        for (range, segment, shift, placement) in runs {
            let all = pages(&range, shift).max(1);
            for (node, pages) in nodes(&range, shift, placement) {
                let count = now.entry((segment, shift, node)).or_default();
                count.pages += pages;
                // Partial pages at the ends of a run are distributed like the others: only a run on several nodes has them.
                count.bytes += (u128::from(range.end - range.start) * u128::from(pages) / u128::from(all)) as u64;
            }
        }
        let bytes = now.iter().map(|((_, shift, _), count)| count.pages << shift).sum();
        self.peak_bytes = self.peak_bytes.max(bytes);
        for (key, count) in now {
            let peak = self.peaks.entry(key).or_default();
            if (count.pages, count.bytes) > (peak.pages, peak.bytes) {
                *peak = count;
            }
        }
    }

    pub(super) fn list(&self) -> Vec<PageUse> {
        let entry = |(&(segment, shift, node), count): (&Key, &Count)| PageUse {
            segment,
            page_bytes: 1 << shift,
            node,
            pages: count.pages,
            bytes: count.bytes,
        };
        self.peaks.iter().map(entry).collect()
    }
}

impl Pages {
    /// Returns the most bytes of pages in use at a time so far.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.usage.peak_bytes.max(self.resident_bytes())
    }
}

/// Merges entries of the same segment, size and node.
pub(crate) fn add_up(all: Vec<PageUse>) -> Vec<PageUse> {
    let mut sums: BTreeMap<(Segment, u64, u32), PageUse> = BTreeMap::new();
    for part in all {
        let key = (part.segment, part.page_bytes, part.node);
        let sum = sums.entry(key).or_insert(PageUse { pages: 0, bytes: 0, ..part });
        sum.pages += part.pages;
        sum.bytes += part.bytes;
    }
    sums.into_values().collect()
}

/// Returns the nodes of the pages of a resident range, with numbers of pages that add up to those on each.
pub(super) fn nodes(range: &Range<u64>, shift: u32, placement: Placement) -> Vec<(u32, u64)> {
    let count = pages(range, shift);
    let Placement::Interleave(nodes, weights) = placement else {
        return vec![(placement.node(range.start, shift, 0), count)];
    };
    let round = weights.round(nodes).max(1);
    // Each page of the first round is the first of those on its node that are a round apart.
    let first = |n: u64| placement.node(range.start + (n << shift), shift, 0);
    (0..round.min(count)).map(|n| (first(n), (count - n).div_ceil(round))).collect()
}
