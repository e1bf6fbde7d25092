//! Pages that become one transparent huge page of the largest size, as khugepaged and `MADV_COLLAPSE` do it.

use std::collections::BTreeMap;
use std::ops::Range;

use fxscope_guestmem::{Memory, Region, Segment, SpaceId};
use rustix::io::Errno;

use super::folios::Advice;
use super::own::whole;
use super::{KhugepagedSettings, Pages, Placement, Resident, usage};

/// Why pages were left as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unchanged {
    /// They are a huge page already.
    Huge,
    /// There are none, too few, or too many that other processes use.
    Unfit,
    /// The machine has too little memory.
    NoMemory,
}

impl Pages {
    /// Makes the pages of `block` one folio of the largest size, on the node that has most of them. `limits`: how many may be missing and
    /// shared.
    ///
    /// What that takes is work of the process: its pages are copied and missing ones cleared, while nobody else may change the address
    /// space.
    pub(super) fn collapse(
        &mut self,
        (mem, space): (&Memory, SpaceId),
        segment: Segment,
        block: Range<u64>,
        limits: Option<&KhugepagedSettings>,
    ) -> Result<(), Unchanged> {
        let shift = self.plan.sizes.largest_folio();
        let runs: Vec<(Range<u64>, Resident)> = self.resident.within(block.clone()).collect();
        if runs.first().is_some_and(|(run, resident)| *run == block && resident.folio && resident.shift == shift) {
            return Err(Unchanged::Huge);
        }
        let present: u64 = runs.iter().map(|(run, _)| run.end - run.start).sum();
        let missing = block.end - block.start - present;
        if present == 0 || limits.is_some_and(|limits| !self.permits(limits, (mem, space), &block, missing)) {
            return Err(Unchanged::Unfit);
        }
        if self.resident_bytes() + missing > self.memory_bytes {
            self.folios.counts.collapse_failed += 1;
            return Err(Unchanged::NoMemory);
        }
        let placement = Placement::Node(self.fullest_node(&runs));
        self.note_use();
        self.begin_move();
        self.version += 1;
        let moved = self.moves;
        self.resident.set(block, Resident { segment, shift, placement, placed: true, folio: true, moved });
        self.usage.grown();
        self.folios.collapsed();
        self.work.collapsed += 1;
        self.work.moved_bytes += present;
        self.work.cleared_bytes += missing;
        self.work.unmapped = true;
        Ok(())
    }

    /// Returns whether khugepaged's limits permit that pages of a block with `missing` bytes are collapsed.
    fn permits(
        &self,
        limits: &KhugepagedSettings,
        (mem, space): (&Memory, SpaceId),
        block: &Range<u64>,
        missing: u64,
    ) -> bool {
        let normal = self.plan.sizes.normal;
        if missing / normal > limits.max_ptes_none {
            return false;
        }
        let regions = mem.regions_of(space).filter(|region| region.start < block.end && block.start < region.end);
        let inside = |region: &Region| Region {
            start: region.start.max(block.start),
            end: region.end.min(block.end),
            ..*region
        };
        let used = regions.map(|region| mem.pages_by_users(space, &inside(region)));
        let shared: u64 = used.map(|used| used.shared_clean + used.shared_dirty).sum();
        shared / normal <= limits.max_ptes_shared
    }

    /// Returns the node that has most bytes of pages; among equals, the first.
    fn fullest_node(&self, runs: &[(Range<u64>, Resident)]) -> u32 {
        let mut bytes: BTreeMap<u32, u64> = BTreeMap::new();
        for (run, resident) in runs {
            for (node, pages) in usage::nodes(run, resident.shift, resident.placement) {
                *bytes.entry(node).or_default() += pages << resident.shift;
            }
        }
        let most = bytes.into_iter().max_by_key(|&(node, bytes)| (bytes, std::cmp::Reverse(node)));
        most.map_or(0, |(node, _)| node)
    }

    /// `madvise(MADV_COLLAPSE)`: collapses the pages of each whole folio of the largest size in a range, whatever is enabled.
    ///
    /// # Errors
    /// `EINVAL`: a part may have no such folio, or has no pages. `ENOMEM`: the machine has too little memory.
    pub(crate) fn collapse_now(&mut self, mem: &Memory, range: Range<u64>) -> Result<(), Errno> {
        let bytes = self.plan.sizes.transparent();
        let disabled = self.folios.disabled;
        let may = |_, advice| u64::from(!disabled && advice != Some(Advice::NotHuge));
        let areas = self.areas(mem.regions(), may);
        let blocks = whole(&range, bytes);
        let mut result = Ok(());
        for start in (blocks.start..blocks.end).step_by(bytes as usize) {
            let block = start..start + bytes;
            let area = areas.range_at(start).filter(|(area, _)| block.end <= area.end).ok_or(Errno::INVAL)?.1;
            match self.collapse((mem, mem.active()), area.segment, block, None) {
                Ok(()) | Err(Unchanged::Huge) => {}
                Err(Unchanged::Unfit) => result = Err(Errno::INVAL),
                Err(Unchanged::NoMemory) => return Err(Errno::NOMEM),
            }
        }
        result
    }
}
