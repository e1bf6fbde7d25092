//! Folios of a process: where they are, and where the next fault would allocate one.
//!
//! As in Linux, a fault allocates the largest folio that is enabled, aligned, inside the mapping, and whose range has no page yet. So the
//! size at an address follows from mappings, advice and pages, and stays the same until it is touched: folios are either nested or apart.

use std::collections::BTreeMap;
use std::ops::Range;

use fxscope_guestmem::{Prot, Region, Segment};
use serde::{Deserialize, Serialize};

use super::library::PageType;
use super::own::{Kind, whole};
use super::{Pages, RangeMap, Resident};

/// What a program has advised about a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Advice {
    /// `MADV_HUGEPAGE`, or `thp` for the mappings of a call.
    Huge,
    /// `MADV_NOHUGEPAGE`.
    NotHuge,
}

/// Memory that one mapping of Linux would have, and the folios that it may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    /// What it is used for.
    pub segment: Segment,
    prot: Prot,
    on_demand: bool,
    advice: Option<Advice>,
    /// A bit for log2 of each size.
    pub folios: u64,
}

impl Area {
    /// Returns log2 of the sizes of its folios, largest first.
    fn shifts(self) -> impl Iterator<Item = u32> {
        (0..u64::BITS).rev().filter(move |shift| self.folios >> shift & 1 != 0)
    }
}

/// What happened to the folios of processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FolioCounts {
    /// Folios that faults allocated, by log2 of their size.
    pub faults: BTreeMap<u32, u64>,
    /// Folios that were split, because a part of them was unmapped or moved, by log2 of their size.
    pub splits: BTreeMap<u32, u64>,
    /// Ranges that became a folio of the largest size.
    pub collapsed: u64,
    /// Ranges for which there was no memory.
    pub collapse_failed: u64,
}

impl FolioCounts {
    /// Returns the sum of both.
    #[must_use]
    pub fn plus(mut self, other: &FolioCounts) -> FolioCounts {
        other.faults.iter().for_each(|(&shift, n)| *self.faults.entry(shift).or_default() += n);
        other.splits.iter().for_each(|(&shift, n)| *self.splits.entry(shift).or_default() += n);
        self.collapsed += other.collapsed;
        self.collapse_failed += other.collapse_failed;
        self
    }
}

/// The state of a process's folios beyond its resident pages.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Folios {
    /// Advice on ranges.
    pub advice: RangeMap<Advice>,
    /// The process has none (`PR_SET_THP_DISABLE`).
    pub disabled: bool,
    /// Whether it has, or had, one.
    any: bool,
    pub counts: FolioCounts,
}

impl Folios {
    /// Returns those of a child with the same pages (`shares`), or none.
    pub fn fork(&self, shares: bool) -> Folios {
        let advice = if shares { self.advice.clone() } else { RangeMap::default() };
        Folios { advice, counts: FolioCounts::default(), any: self.any && shares, disabled: self.disabled }
    }

    /// Counts a range of pages that became a folio.
    pub fn collapsed(&mut self) {
        self.any = true;
        self.counts.collapsed += 1;
    }

    /// Returns those of the next program of the process.
    pub fn restarted(self) -> Folios {
        Folios { disabled: self.disabled, counts: self.counts, ..Folios::default() }
    }
}

/// Divides a range into the largest folios that fit, in one of `folios`' sizes; the rest has none.
fn tile(range: Range<u64>, folios: u64, tiles: &mut RangeMap<u32>) {
    if folios == 0 || range.is_empty() {
        return;
    }
    let shift = folios.ilog2();
    let rest = folios & !(1 << shift);
    let inner = whole(&range, 1 << shift);
    if inner.is_empty() {
        return tile(range, rest, tiles);
    }
    tiles.set(inner.clone(), shift);
    tile(range.start..inner.start, rest, tiles);
    tile(inner.end..range.end, rest, tiles);
}

impl Pages {
    /// Returns which folios memory of a segment may have with this advice: a bit for log2 of each size.
    fn folios_of(&self, segment: Segment, advice: Option<Advice>) -> u64 {
        let sizes = &self.plan.sizes;
        // Linux gives mappings with `MAP_STACK` the flag of `MADV_NOHUGEPAGE`. The first thread's stack grows page by page, so that no
        // folio fits into it when it is touched.
        let is_stack = match segment {
            Segment::Stack => true,
            Segment::ThreadStack => advice.is_none(),
            _ => false,
        };
        if is_stack || self.folios.disabled || advice == Some(Advice::NotHuge) {
            return 0;
        }
        let library = self.plan.library.page_type == Some(PageType::Transparent) && !sizes.fixed.contains(&segment);
        sizes.folios(library || advice == Some(Advice::Huge))
    }

    /// Returns whether there are folios, or may be.
    pub(super) fn may_have_folios(&self) -> bool {
        let library = self.plan.library.page_type == Some(PageType::Transparent);
        library || self.folios.any || !self.folios.advice.is_empty() || self.plan.sizes.folios(false) != 0
    }

    /// Returns the memory among `regions` whose base pages are normal, by mapping of Linux: neighbours that are alike are one. `folios`
    /// returns the sizes of folios that it may have; without any, it is left out.
    pub(super) fn areas<'r>(
        &self,
        regions: impl Iterator<Item = &'r Region>,
        folios: impl Fn(Segment, Option<Advice>) -> u64,
    ) -> RangeMap<Area> {
        let mut areas = RangeMap::default();
        let normal = self.plan.sizes.normal_shift();
        for region in regions.filter(|region| region.segment.is_anonymous() && !region.shared) {
            let Region { segment, prot, .. } = *region;
            for (part, own) in self.base_parts(region).into_iter().filter(|(_, own)| own.shift == normal) {
                let advised = self.folios.advice.within(part.clone()).map(|(run, advice)| (run, Some(advice)));
                let others = self.folios.advice.gaps(part).into_iter().map(|gap| (gap, None));
                for (run, advice) in advised.chain(others) {
                    let folios = folios(segment, advice);
                    if folios != 0 {
                        areas.set(run, Area { segment, prot, on_demand: own.on_demand, advice, folios });
                    }
                }
            }
        }
        areas
    }

    /// The same with the folios that faults may allocate.
    pub(super) fn fault_areas<'r>(&self, regions: impl Iterator<Item = &'r Region>) -> RangeMap<Area> {
        self.areas(regions, |segment, advice| self.folios_of(segment, advice))
    }

    /// Returns the folios of an address space with `regions`: log2 of the size of those that are resident, and elsewhere of those that
    /// faults would allocate.
    pub(super) fn tiles<'r>(&self, regions: impl Iterator<Item = &'r Region>) -> RangeMap<u32> {
        let mut tiles = RangeMap::default();
        if !self.may_have_folios() {
            return tiles;
        }
        for (range, area) in self.fault_areas(regions).iter() {
            self.resident.gaps(range).into_iter().for_each(|gap| tile(gap, area.folios, &mut tiles));
        }
        for (run, resident) in self.resident.iter().filter(|(_, resident)| resident.folio) {
            tiles.set(run, resident.shift);
        }
        tiles
    }

    /// Returns the parts of a region with pages of one size; `tiles` are those of its address space.
    pub(super) fn parts(&self, region: &Region, tiles: &RangeMap<u32>) -> Vec<(Range<u64>, Kind)> {
        let normal = self.plan.sizes.normal_shift();
        let mut parts = Vec::new();
        for (range, own) in self.base_parts(region) {
            let base = Kind { shift: own.shift, on_demand: own.on_demand, folio: false };
            let mut at = range.start;
            for (run, shift) in tiles.within(range.clone()).filter(|_| own.shift == normal) {
                parts.push((at..run.start, base));
                at = run.end;
                parts.push((run, Kind { shift, folio: true, ..base }));
            }
            parts.push((at..range.end, base));
        }
        parts.retain(|(range, _)| !range.is_empty());
        parts
    }

    /// Returns log2 of the bytes that a TLB entry translates in pages of a kind.
    pub(super) fn entry_shift(&self, kind: Kind) -> u32 {
        if kind.folio { self.plan.sizes.entry_shift(kind.shift) } else { kind.shift }
    }

    /// Records that faults have allocated folios.
    pub(super) fn allocated(&mut self, kind: Kind, folios: u64) {
        if kind.folio {
            self.folios.any = true;
            *self.folios.counts.faults.entry(kind.shift).or_default() += folios;
        }
    }

    /// Splits the folio around an address into normal pages, unless it begins there.
    pub(super) fn split_folio(&mut self, address: u64) {
        let Some((run, resident)) = self.resident.range_at(address).filter(|(_, resident)| resident.folio) else {
            return;
        };
        let start = address >> resident.shift << resident.shift;
        if start < address {
            self.split(start.max(run.start)..(start + (1 << resident.shift)).min(run.end), resident);
        }
    }

    /// Splits the folios of a range that is about to move by a distance after which they are not aligned.
    pub(super) fn split_before_move(&mut self, from: u64, len: u64, to: u64) {
        self.split_folio(from);
        self.split_folio(from + len);
        let misaligned = |shift: u32| from.wrapping_sub(to) & ((1 << shift) - 1) != 0;
        let runs: Vec<_> = self.resident.within(from..from + len).collect();
        for (run, resident) in runs.into_iter().filter(|(_, r)| r.folio && misaligned(r.shift)) {
            self.split(run, resident);
        }
    }

    /// Splits folios: what remains of them are normal pages at the same place.
    fn split(&mut self, range: Range<u64>, resident: Resident) {
        self.version += 1;
        *self.folios.counts.splits.entry(resident.shift).or_default() += super::pages(&range, resident.shift);
        let shift = self.plan.sizes.normal_shift();
        self.resident.set(range, Resident { shift, folio: false, placed: true, ..resident });
    }

    /// Returns what happened to the process's folios.
    pub(crate) fn folio_counts(&self) -> &FolioCounts {
        &self.folios.counts
    }

    /// Takes those counts.
    pub(crate) fn take_folio_counts(&mut self) -> FolioCounts {
        std::mem::take(&mut self.folios.counts)
    }

    /// Returns the bytes of a range in resident folios of the largest size.
    pub(crate) fn huge_bytes_in(&self, range: Range<u64>) -> u64 {
        let largest = self.plan.sizes.largest_folio();
        let huge = self.resident.within(range).filter(|(_, resident)| resident.folio && resident.shift == largest);
        huge.map(|(run, _)| run.end - run.start).sum()
    }

    /// Returns whether a fault in a region could allocate a folio that fits, in an address space with `regions`
    /// (`THPeligible` of `smaps`).
    pub(crate) fn is_eligible<'r>(&self, regions: impl Iterator<Item = &'r Region>, region: &Region) -> bool {
        let area = self.fault_areas(regions).range_at(region.start);
        area.is_some_and(|(range, area)| area.shifts().any(|shift| !whole(&range, 1 << shift).is_empty()))
    }

    /// Returns what a program has advised about an address, as the flag of `smaps`.
    pub(crate) fn advice_flag(&self, address: u64) -> Option<&'static str> {
        Some(match self.folios.advice.at(address)? {
            Advice::Huge => "hg",
            Advice::NotHuge => "nh",
        })
    }

    /// Returns whether the process has no folios (`PR_SET_THP_DISABLE`).
    pub(crate) fn has_folios_disabled(&self) -> bool {
        self.folios.disabled
    }

    /// Sets that.
    pub(crate) fn disable_folios(&mut self, disabled: bool) {
        self.version += 1;
        self.folios.disabled = disabled;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn tiles(range: Range<u64>, folios: u64) -> Vec<(Range<u64>, u32)> {
        let mut tiles = RangeMap::default();
        tile(range, folios, &mut tiles);
        tiles.iter().collect()
    }

    #[test]
    fn a_range_has_the_largest_folios_inside_and_smaller_ones_at_its_ends() {
        let sizes = 1 << 18 | 1 << 21 | 1 << 22;
        let expected = [
            (MIB / 4..MIB * 2, 18),
            (2 * MIB..4 * MIB, 21),
            (4 * MIB..12 * MIB, 22),
            (12 * MIB..14 * MIB, 21),
            (14 * MIB..14 * MIB + MIB / 2, 18),
        ];
        assert_eq!(tiles(MIB / 4 - 0x1_0000..14 * MIB + MIB / 2 + 0x2_0000, sizes), expected);
        assert_eq!(tiles(MIB..MIB + 0x3_0000, sizes), []);
        assert_eq!(tiles(0..MIB, 0), []);
    }

    #[test]
    fn the_folio_of_an_address_stays_the_same_when_others_are_taken_out() {
        let sizes = 1 << 18 | 1 << 21;
        let range = MIB..9 * MIB;
        let all = tiles(range.clone(), sizes);
        let page = |at: u64| all.iter().find(|(tile, _)| tile.contains(&at)).map(|&(_, shift)| shift);
        let taken = 4 * MIB..6 * MIB;
        let left = [tiles(range.start..taken.start, sizes), tiles(taken.end..range.end, sizes)].concat();
        for (part, shift) in left {
            assert_eq!(page(part.start), Some(shift), "{part:x?}");
        }
    }
}
