//! What the driver of a run can ask about pages.

use std::ops::Range;

use fxscope_guestmem::{Prot, Segment};

use super::{MemoryWork, PageSpan, PageUse, PageView, Site, SitePages, add_up};
use crate::guest::Guest;

/// What there is at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A page.
    Page,
    /// Memory that is mapped, of which no page has been taken: the first touch would take it.
    Untouched,
    /// Nothing that the program may touch.
    Nothing,
}

impl Guest {
    /// The pages of the running process, lowest address first, as its running thread comes to them.
    #[must_use]
    pub fn page_spans(&self) -> Vec<PageSpan> {
        self.space().pages.spans(&self.memory, self.system.toucher(self.thread()))
    }

    /// What there is at an address for the process that runs. The address' top byte does not count.
    #[inline]
    #[must_use]
    pub fn backing(&self, address: u64) -> Backing {
        /// Bits above them are hints, no part of the place.
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

    /// Bytes of the pages of a segment of the running process, except transparent huge pages.
    #[must_use]
    pub fn page_bytes(&self, segment: Segment) -> u64 {
        self.space().pages.page_bytes(segment)
    }

    /// What [`Guest::page_spans`] follow from.
    #[must_use]
    pub fn page_view(&self) -> PageView {
        self.space().pages.view(&self.memory, self.system.toucher(self.thread()))
    }

    /// A number that changes when [`Guest::page_spans`] may have, while one process runs.
    #[inline(always)]
    #[must_use]
    pub fn pages_version(&self) -> u64 {
        self.memory.generation() + self.space().pages.version()
    }

    /// The work on pages since the last call, if there was any.
    #[inline(always)]
    pub fn take_memory_work(&mut self) -> Option<MemoryWork> {
        {
            let pages = &mut self.space_mut().pages;
            pages.has_work().then(|| pages.take_work())
        }
    }

    /// The most pages each process had at a time, added up over all processes, by segment, size and node.
    #[must_use]
    pub fn page_use(&mut self) -> Vec<PageUse> {
        self.note_touched();
        let running = self.spaces.values_mut().flat_map(|space| space.pages.page_use());
        let all = self.system.page_use.iter().copied().chain(running).collect();
        add_up(all)
    }

    /// From now on private mappings of at least `least` bytes are recorded with the calls that make them.
    pub fn note_mappings(&mut self, least: u64) {
        self.space_mut().pages.sites.noted_from = Some(least);
    }

    /// What of a range, of the process that runs, are private mappings whose calls are noted, lowest address first: addresses,
    /// and the place of the call among [`Guest::mapping_sites`].
    pub fn mappings(&self, range: Range<u64>) -> impl Iterator<Item = (Range<u64>, usize)> + '_ {
        self.space().pages.sites.of.within(range).map(|(range, site)| (range, site as usize))
    }

    /// The calls that have made mappings, as far as they are noted.
    #[must_use]
    pub fn mapping_sites(&self) -> &[Site] {
        &self.space().pages.sites.list
    }

    /// Gives the mappings that the program makes from now on, at calls in these parts of it, these pages; of several parts
    /// the last counts. They hold until another program takes its place.
    pub fn set_mapping_pages(&mut self, rules: Vec<SitePages>) {
        let sites = &mut self.space_mut().pages.sites;
        (sites.uses, sites.rules) = (vec![0; rules.len()], rules);
    }

    /// For how many mappings of the process that runs each rule of [`Guest::set_mapping_pages`] was.
    #[must_use]
    pub fn mapping_rule_uses(&self) -> &[u64] {
        &self.space().pages.sites.uses
    }

    /// What the variables of the large-page library do not do here.
    #[must_use]
    pub fn page_notes(&self) -> &[String] {
        self.space().pages.notes()
    }
}
