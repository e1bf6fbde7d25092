//! What the driver of a run can query about pages.

use std::ops::Range;

use fxscope_guestmem::{Prot, Segment};

use super::{MemoryWork, PageSpan, PageUse, PageView, Site, SiteNode, SitePages, add_up};
use crate::guest::Guest;

/// What is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// An allocated page.
    Page,
    /// Mapped memory without a page: the first touch would allocate it.
    Untouched,
    /// Nothing that the program may access.
    Nothing,
}

impl Guest {
    /// Returns the pages of the running process, lowest address first, as seen by its running thread.
    #[must_use]
    pub fn page_spans(&self) -> Vec<PageSpan> {
        self.space().pages.spans(&self.memory, self.system.toucher(self.thread()))
    }

    /// Returns what is at an address of the running process. The address' top byte is ignored.
    #[inline]
    #[must_use]
    pub fn backing(&self, address: u64) -> Backing {
        /// Higher bits are hints, not part of the address.
        const PLACE: u64 = (1 << 56) - 1;
        let (mem, address) = (&self.memory, address & PLACE);
        if mem.physical(address).is_some() {
            return Backing::Page;
        }
        match mem.region_at(address) {
            Some(region) if region.prot == Prot::NONE => Backing::Nothing,
            Some(_) if self.space().pages.resident.at(address).is_some() => Backing::Page,
            Some(_) => Backing::Untouched,
            None => Backing::Nothing,
        }
    }

    /// Returns the page size in bytes of a segment of the running process, except transparent huge pages.
    #[must_use]
    pub fn page_bytes(&self, segment: Segment) -> u64 {
        self.space().pages.page_bytes(segment)
    }

    /// Returns the state from which [`Guest::page_spans`] follow.
    #[must_use]
    pub fn page_view(&self) -> PageView {
        self.space().pages.view(&self.memory, self.system.toucher(self.thread()))
    }

    /// Returns a number that changes whenever [`Guest::page_spans`] may have changed, while one process runs.
    #[inline(always)]
    #[must_use]
    pub fn pages_version(&self) -> u64 {
        self.memory.generation() + self.space().pages.version()
    }

    /// Takes the work on pages since the last call, if there was any.
    #[inline(always)]
    pub fn take_memory_work(&mut self) -> Option<MemoryWork> {
        let pages = &mut self.space_mut().pages;
        pages.has_work().then(|| pages.take_work())
    }

    /// Forgets the work on pages of all processes so far: it takes no time.
    pub fn forget_memory_work(&mut self) {
        self.note_touched();
        for space in self.spaces.values_mut().filter(|space| space.pages.has_work()) {
            let _ = space.pages.take_work();
        }
    }

    /// Returns the maximum number of pages of each process, summed over all processes, by segment, size and node.
    #[must_use]
    pub fn page_use(&mut self) -> Vec<PageUse> {
        self.note_touched();
        let running = self.spaces.values_mut().flat_map(|space| space.pages.page_use());
        let all = self.system.page_use.iter().copied().chain(running).collect();
        add_up(all)
    }

    /// Records private mappings of at least `least` bytes, with the calls that make them, from now on.
    pub fn note_mappings(&mut self, least: u64) {
        self.space_mut().pages.sites.noted_from = Some(least);
    }

    /// Iterates over the recorded private mappings in a range of the running process, lowest address first: addresses, and the
    /// index of the call in [`Guest::mapping_sites`].
    pub fn mappings(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, usize)> + '_ {
        self.space().pages.sites.of.within(range).map(|(range, site)| (range, site as usize))
    }

    /// Returns the recorded private mapping at an address of the running process, as [`Guest::mappings`] does.
    #[must_use]
    pub fn mapping_at(&self, address: u64) -> Option<(Range<u64>, usize)> {
        self.space().pages.sites.of.range_at(address).map(|(range, site)| (range, site as usize))
    }

    /// Returns the recorded calls that have made mappings.
    #[must_use]
    pub fn mapping_sites(&self) -> &[Site] {
        &self.space().pages.sites.list
    }

    /// Sets the pages of mappings made from now on by calls in these parts of the program; if several apply, the last takes
    /// precedence. They apply until another program is executed.
    pub fn set_mapping_pages(&mut self, rules: Vec<SitePages>) {
        let sites = &mut self.space_mut().pages.sites;
        (sites.uses, sites.rules) = (vec![0; rules.len()], rules);
    }

    /// Sets the memory nodes of mappings made from now on by calls in these parts of the program; if several apply, the last takes
    /// precedence. They apply until another program is executed.
    pub fn set_mapping_nodes(&mut self, rules: Vec<SiteNode>) {
        self.space_mut().pages.sites.nodes = rules.into_iter().map(|rule| (rule, 0)).collect();
    }

    /// Returns to how many mappings of the running process each rule of [`Guest::set_mapping_nodes`] applied.
    pub fn mapping_node_uses(&self) -> impl Iterator<Item = u64> + '_ {
        self.space().pages.sites.nodes.iter().map(|&(_, uses)| uses)
    }

    /// Puts the pages of the running process that lie in a range by more than half on a node, now and when they are touched. It takes
    /// no time. Returns their bytes.
    pub fn place_pages(&mut self, range: Range<u64>, node: u32) -> u64 {
        self.note_touched();
        let k = self.kernel();
        k.spaces[k.process.space].pages.place(k.mem, range, node)
    }

    /// Returns to how many mappings of the running process each rule of [`Guest::set_mapping_pages`] applied.
    #[must_use]
    pub fn mapping_rule_uses(&self) -> &[u64] {
        &self.space().pages.sites.uses
    }

    /// Returns notes on effects of the large-page library's variables that are not modelled.
    #[must_use]
    pub fn page_notes(&self) -> &[String] {
        self.space().pages.notes()
    }
}
