//! Pages that options of a run put elsewhere than a first touch does: those of some data, and those beyond the fast memory.

use std::ops::Range;

use fxscope_guestmem::{Memory, PAGE};
use serde::{Deserialize, Serialize};

use super::policy::Policy;
use super::{NodeMask, Pages, Placement, Toucher, usage};
use crate::platform::Platform;

/// Memory on nodes with processors, and where pages go when it is full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FastMemory {
    bytes: u64,
    /// The nodes behind it with their sizes, in the order in which they fill.
    tiers: Vec<(u32, u64)>,
}

impl FastMemory {
    /// Returns its bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the tiers with their sizes, in the order in which they fill.
    pub(super) fn tiers(&self) -> &[(u32, u64)] {
        &self.tiers
    }

    /// Returns `bytes` of fast memory in front of the tiers of a platform; `None` if it has none.
    pub(crate) fn of(platform: &Platform, bytes: u64) -> Option<FastMemory> {
        let tiers: Vec<_> = platform.tiers.iter().map(|tier| (tier.node, tier.bytes)).collect();
        (!tiers.is_empty()).then_some(FastMemory { bytes, tiers })
    }

    /// Returns whether a node is a tier.
    pub(super) fn is_tier(&self, node: u32) -> bool {
        self.tiers.iter().any(|&(tier, _)| tier == node)
    }
}

impl Pages {
    /// Returns the tier for a page of `bytes` bytes under a policy, if the policy leaves the choice to the system and the fast memory is
    /// full. The last tier takes all that no other has room for.
    pub(super) fn spills(&self, policy: Policy, bytes: u64) -> Option<Placement> {
        let fast = self.fast.as_ref().filter(|_| policy.is_local())?;
        if self.bytes_on(|node| !fast.is_tier(node)) + bytes <= fast.bytes {
            return None;
        }
        let has_room = |&&(tier, size): &&(u32, u64)| self.bytes_on(|node| node == tier) + bytes <= size;
        let (tier, _) = fast.tiers.iter().find(has_room).or(fast.tiers.last())?;
        Some(Placement::Node(*tier))
    }

    /// Returns the bytes of resident pages on some nodes.
    pub(super) fn bytes_on(&self, is_one: impl Fn(u32) -> bool) -> u64 {
        let of_run = |(range, resident): (Range<u64>, super::Resident)| {
            let nodes = usage::nodes(&range, resident.shift, resident.placement).into_iter();
            let pages: u64 = nodes.filter(|&(node, _)| is_one(node)).map(|(_, pages)| pages).sum();
            pages << resident.shift
        };
        self.resident.iter().map(of_run).sum()
    }

    /// Places the pages of a range that prepaging allocates: page by page, if the fast memory may not hold them all.
    pub(super) fn prepaged(
        &self,
        range: &Range<u64>,
        shift: u32,
        policy: Policy,
        who: Toucher,
    ) -> Vec<(Range<u64>, Placement)> {
        let placement = match policy.placement(who.node) {
            Placement::FirstTouch => Placement::Node(who.node),
            other => other,
        };
        let Some(fast) = self.fast.as_ref().filter(|_| policy.is_local()) else {
            return vec![(range.clone(), placement)];
        };
        let left = fast.bytes.saturating_sub(self.bytes_on(|node| !fast.is_tier(node)));
        let page = (1u64 << shift).max(PAGE);
        let fits = (range.start / page * page).saturating_add(left / page * page).clamp(range.start, range.end);
        let beyond = self.spills(policy, left.saturating_add(1)).unwrap_or(placement);
        let parts = [(range.start..fits, placement), (fits..range.end, beyond)];
        parts.into_iter().filter(|(part, _)| !part.is_empty()).collect()
    }

    /// Puts the pages that lie in a range by more than half on a node, now and when they are touched. It takes no time: the program
    /// behaves as if it had asked for these nodes. Returns their bytes.
    pub(crate) fn place(&mut self, mem: &Memory, range: Range<u64>, node: u32) -> u64 {
        let regions: Vec<_> = mem.regions().filter(|r| r.start < range.end && range.start < r.end).copied().collect();
        let work = self.work;
        let mut placed = 0;
        self.begin_move();
        let tiles = self.tiles(mem.regions());
        for (part, kind) in regions.iter().flat_map(|region| self.parts(region, &tiles)).collect::<Vec<_>>() {
            let page = (1u64 << kind.shift).max(PAGE);
            let nearest = |address: u64| address.saturating_add(page / 2 - 1) / page * page;
            let (start, end) = (range.start.max(part.start), range.end.min(part.end));
            let whole = nearest(start).max(part.start)..nearest(end).min(part.end);
            if whole.start < whole.end {
                self.set_policy(whole.clone(), Policy::bind(1 << node as NodeMask));
                placed += whole.end - whole.start;
                self.migrate(whole, |_, _, _| node);
            }
        }
        self.work = work;
        placed
    }
}
