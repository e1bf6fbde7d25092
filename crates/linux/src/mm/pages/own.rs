//! Ranges whose pages differ from those of their segment: mappings by calls that a run names, and those that a program requests
//! (`MAP_HUGETLB`, `MADV_HUGEPAGE`).

use std::ops::Range;

use fxscope_guestmem::Memory;
use fxscope_guestmem::{PAGE, Region};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::Pages;

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

/// Returns the whole pages of `huge` bytes in a range.
fn whole(range: &Range<u64>, huge: u64) -> Range<u64> {
    let (first, last) = (range.start.next_multiple_of(huge), range.end / huge * huge);
    first..last.max(first)
}

impl Pages {
    /// Returns the parts of a region with pages of one size.
    pub(super) fn parts(&self, region: &Region) -> Vec<(Range<u64>, Own)> {
        let mut parts: Vec<(Range<u64>, Own)> = self.own.within(region.start..region.end).collect();
        for gap in self.own.gaps(region.start..region.end) {
            let rest = Region { start: gap.start, end: gap.end, ..*region };
            let of_segment = |(range, shift)| (range, Own { shift, on_demand: false });
            parts.extend(self.plan.parts(&rest).into_iter().map(of_segment));
        }
        parts.sort_unstable_by_key(|(range, _)| range.start);
        parts
    }

    /// Returns the bytes of the page at an address of a region.
    pub(crate) fn page_bytes_at(&self, region: &Region, address: u64) -> u64 {
        let part = self.parts(region).into_iter().find(|(range, _)| range.contains(&address));
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
                let huge = self.plan.sizes.transparent();
                let inner = whole(&range, huge);
                self.own.set(range, Own { shift: self.plan.sizes.normal.trailing_zeros(), on_demand: true });
                self.own.set(inner, Own { shift: huge.trailing_zeros(), on_demand: true });
            }
        }
    }

    /// Returns the pages requested for the mapping at an address, whether they are on demand, and the number of the call that
    /// made it.
    pub(crate) fn requested_at(&self, address: u64) -> (Option<(MappingPages, bool)>, Option<u32>) {
        let pages = self.own.at(address).map(|own| (MappingPages::Size(1 << own.shift), own.on_demand));
        (pages, self.sites.of.at(address))
    }

    /// `madvise(MADV_HUGEPAGE)`: uses transparent huge pages where whole ones fit into the mappings of a range and nothing has
    /// been touched yet.
    pub(crate) fn advise_huge(&mut self, mem: &Memory, range: Range<u64>) -> Result<(), Errno> {
        let huge = self.plan.sizes.transparent();
        self.advised(mem, range, |pages, part| {
            let own = Own { shift: huge.trailing_zeros(), on_demand: true };
            let mut at = whole(part, huge);
            while !at.is_empty() {
                let page = at.start..at.start + huge;
                if pages.resident.within(page.clone()).next().is_none() {
                    pages.own.set(page.clone(), own);
                }
                at.start = page.end;
            }
        })
    }

    /// `madvise(MADV_NOHUGEPAGE)`: uses no further transparent huge pages in a range.
    pub(crate) fn advise_no_huge(&mut self, mem: &Memory, range: Range<u64>) -> Result<(), Errno> {
        let own = Own { shift: self.plan.sizes.normal.trailing_zeros(), on_demand: true };
        self.advised(mem, range, |pages, part| {
            for gap in pages.resident.gaps(part.clone()) {
                pages.own.set(gap, own);
            }
        })
    }

    /// Applies advice to the anonymous private mappings of a range. hugetlbfs pages ignore it, as under Linux.
    fn advised(
        &mut self,
        mem: &Memory,
        range: Range<u64>,
        advise: impl Fn(&mut Pages, &Range<u64>),
    ) -> Result<(), Errno> {
        let (normal, huge) = (self.plan.sizes.normal.max(PAGE), self.plan.sizes.transparent());
        let regions: Vec<Region> =
            mem.regions().filter(|r| r.start < range.end && range.start < r.end).copied().collect();
        for region in regions.iter().filter(|region| region.segment.is_anonymous() && !region.shared) {
            let (start, end) = (region.start.max(range.start), region.end.min(range.end));
            let part = Region { start, end, ..*region };
            let fixed = |&(_, own): &(Range<u64>, Own)| 1 << own.shift > normal && 1 << own.shift != huge;
            if self.parts(&part).iter().any(fixed) {
                return Err(Errno::INVAL);
            }
            advise(self, &(start..end));
            self.version += 1;
        }
        Ok(())
    }
}
