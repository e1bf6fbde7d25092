//! Pages that the system may move between nodes with processors and memory tiers by their heat, and such moves.

use std::ops::Range;

use fxscope_guestmem::{PAGE, Segment};

use super::policy::Policy;
use super::{Pages, Resident};
use crate::guest::Guest;
use crate::process::Process;

/// A resident page that the system may move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TieredPage {
    /// Its addresses.
    pub range: Range<u64>,
    /// Its node.
    pub node: u32,
    /// Whether the node is a memory tier.
    pub in_tier: bool,
}

impl TieredPage {
    /// Returns its size.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Pages {
    /// Iterates over the pages that the system may move, from the one at `from` on: as in Linux, private memory that may be written, unless a
    /// policy places it. `policy` is that of the process.
    fn tiered(&self, from: u64, policy: Policy) -> impl Iterator<Item = TieredPage> + '_ {
        let runs = self.resident.within(from..u64::MAX);
        let may_move =
            |resident: &Resident| !matches!(resident.segment, Segment::Text | Segment::File | Segment::Shared);
        runs.filter(move |(_, resident)| may_move(resident)).flat_map(move |(run, resident)| {
            let bytes = (1u64 << resident.shift).max(PAGE);
            let pages = (run.start / bytes..run.end.div_ceil(bytes)).map(move |page| page * bytes);
            pages.filter_map(move |start| {
                let at = start.max(run.start);
                let node = resident.placement.node(at, resident.shift, 0);
                let in_tier = self.fast.as_ref().is_some_and(|fast| fast.is_tier(node));
                let moves = self.policies.at(at).unwrap_or(policy).balances();
                moves.then_some(TieredPage { range: start..start + bytes, node, in_tier })
            })
        })
    }

    /// Moves a page to a node. What that costs, the caller decides.
    fn move_page(&mut self, page: &TieredPage, node: u32) {
        let work = self.work;
        self.note_use();
        self.begin_move();
        self.migrate(page.range.clone(), |_, _, _| node);
        self.usage.grown();
        self.work = work;
    }

    /// Returns the first tier with room for a page.
    fn tier_with_room(&self, bytes: u64) -> Option<u32> {
        let tiers = self.fast.as_ref()?.tiers().iter();
        let has_room = |&&(tier, size): &&(u32, u64)| self.bytes_on(|node| node == tier) + bytes <= size;
        tiers.clone().find(has_room).map(|&(tier, _)| tier)
    }
}

impl Guest {
    /// Returns a process that has not ended.
    fn process_numbered(&self, pid: u32) -> Option<&Process> {
        self.processes.values().find(|process| process.pid == pid && !process.ended)
    }

    /// Iterates over the pages of a process that the system may move by their heat, from the one at `from` on, lowest address first.
    pub fn tiered_pages(&self, pid: u32, from: u64) -> impl Iterator<Item = TieredPage> + '_ {
        let process = self.process_numbered(pid);
        let policy =
            self.threads.values().find(|thread| thread.pid == pid && !thread.ended).map(|thread| thread.policy);
        process
            .into_iter()
            .flat_map(move |process| self.spaces[process.space].pages.tiered(from, policy.unwrap_or_default()))
    }

    /// Returns the page of a process at an address, if the system may move it.
    #[must_use]
    pub fn tiered_page(&self, pid: u32, address: u64) -> Option<TieredPage> {
        self.tiered_pages(pid, address).next().filter(|page| page.range.contains(&address))
    }

    /// Returns the bytes of a process's pages on nodes with processors, and how many it may have there.
    #[must_use]
    pub fn fast_memory(&self, pid: u32) -> Option<(u64, u64)> {
        let pages = &self.spaces[self.process_numbered(pid)?.space].pages;
        let fast = pages.fast.as_ref()?;
        Some((pages.bytes_on(|node| !fast.is_tier(node)), fast.bytes()))
    }

    /// Returns the first memory tier with room for a page of a process.
    #[must_use]
    pub fn tier_with_room(&self, pid: u32, bytes: u64) -> Option<u32> {
        self.spaces[self.process_numbered(pid)?.space].pages.tier_with_room(bytes)
    }

    /// Moves a page of a process to a node. It takes no time.
    pub fn move_tiered_page(&mut self, pid: u32, page: &TieredPage, node: u32) {
        let Some(space) = self.process_numbered(pid).map(|process| process.space) else { return };
        self.spaces[space].pages.move_page(page, node);
    }

    /// Returns the memory node of the active processor.
    #[must_use]
    pub fn node_of_active(&self) -> u32 {
        self.system.toucher(self.thread()).node
    }

    /// Records the pages that the running thread has touched since the last call.
    pub fn note_touched_pages(&mut self) {
        self.note_touched();
    }
}
