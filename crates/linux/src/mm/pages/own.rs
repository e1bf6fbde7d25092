//! Ranges whose pages differ from those of their segment: mappings by calls that a run names, and those that a program requests
//! (`MAP_HUGETLB`, `MADV_HUGEPAGE`).

use std::ops::Range;

use fxscope_guestmem::Memory;
use fxscope_guestmem::{PAGE, Region};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Pages;
use super::folios::Advice;

/// The pages that a mapping must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub enum MappingPages {
    /// Pages of this many bytes, a power of two.
    Size(u64),
    /// Transparent huge pages where they fit, normal ones elsewhere, all on demand.
    Transparent,
}

/// Pages of a range.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Own {
    /// Log2 of their size.
    pub shift: u32,
    /// Whether they are never allocated before they are touched.
    pub on_demand: bool,
}

/// What pages a range has, or would have when they are touched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// Log2 of what a fault allocates.
    pub shift: u32,
    /// Whether they are never allocated before they are touched.
    pub on_demand: bool,
    /// Whether they are transparent huge pages.
    pub folio: bool,
}

/// Returns the whole pages of `huge` bytes in a range.
pub(super) fn whole(range: &Range<u64>, huge: u64) -> Range<u64> {
    let (first, last) = (range.start.next_multiple_of(huge), range.end / huge * huge);
    first..last.max(first)
}

impl Pages {
    /// Returns the parts of a region with pages of one size, as if there were no transparent huge pages.
    pub(super) fn base_parts(&self, region: &Region) -> Vec<(Range<u64>, Own)> {
        let mut parts: Vec<(Range<u64>, Own)> = self.own.within(region.start..region.end).collect();
        let shift = self.plan.page_bytes(region.segment).trailing_zeros();
        let of_segment = Own { shift, on_demand: false };
        parts.extend(self.own.gaps(region.start..region.end).into_iter().map(|gap| (gap, of_segment)));
        parts.sort_unstable_by_key(|(range, _)| range.start);
        parts
    }

    /// Returns the bytes of the page at an address of a region. Transparent huge pages consist of normal ones.
    pub(crate) fn page_bytes_at(&self, region: &Region, address: u64) -> u64 {
        let part = self.base_parts(region).into_iter().find(|(range, _)| range.contains(&address));
        part.map_or_else(|| self.page_bytes(region.segment), |(_, own)| 1 << own.shift)
    }

    /// Gives a new mapping its own pages; `on_demand`: they are not allocated before they are touched.
    pub(crate) fn give(&mut self, range: Range<u64>, pages: MappingPages, on_demand: bool) {
        self.version += 1;
        match pages {
            MappingPages::Size(bytes) => {
                self.own.set(range, Own { shift: bytes.trailing_zeros(), on_demand });
            }
            MappingPages::Transparent => {
                self.own.set(range.clone(), Own { shift: self.plan.sizes.normal_shift(), on_demand: true });
                self.folios.advice.set(range, Advice::Huge);
            }
        }
    }

    /// Returns the pages requested for the mapping at an address, whether they are on demand, and the number of the call that
    /// made it.
    pub(crate) fn requested_at(&self, address: u64) -> (Option<(MappingPages, bool)>, Option<u32>) {
        let own = || self.own.at(address).map(|own| (MappingPages::Size(1 << own.shift), own.on_demand));
        let is_advised = self.folios.advice.at(address) == Some(Advice::Huge);
        let pages = if is_advised { Some((MappingPages::Transparent, true)) } else { own() };
        (pages, self.sites.of.at(address))
    }

    /// `madvise(MADV_HUGEPAGE)`: the mappings of a range may have transparent huge pages where nothing has been touched yet.
    pub(crate) fn advise_huge(&mut self, mem: &Memory, range: Range<u64>) -> Result<(), Errno> {
        self.advise(mem, range, Advice::Huge)
    }

    /// `madvise(MADV_NOHUGEPAGE)`: uses no further transparent huge pages in a range.
    pub(crate) fn advise_no_huge(&mut self, mem: &Memory, range: Range<u64>) -> Result<(), Errno> {
        self.advise(mem, range, Advice::NotHuge)
    }

    /// Applies advice to the anonymous private mappings of a range. hugetlbfs pages refuse it, as under Linux.
    fn advise(&mut self, mem: &Memory, range: Range<u64>, advice: Advice) -> Result<(), Errno> {
        let normal = self.plan.sizes.normal.max(PAGE).trailing_zeros();
        let regions: Vec<Region> =
            mem.regions().filter(|r| r.start < range.end && range.start < r.end).copied().collect();
        for region in regions.iter().filter(|region| region.segment.is_anonymous() && !region.shared) {
            let (start, end) = (region.start.max(range.start), region.end.min(range.end));
            let part = Region { start, end, ..*region };
            if self.base_parts(&part).iter().any(|(_, own)| own.shift > normal) {
                return Err(Errno::INVAL);
            }
            self.folios.advice.set(start..end, advice);
            self.version += 1;
        }
        Ok(())
    }
}
