//! Which transparent huge pages the system may use: settings by size, as `/sys/kernel/mm/transparent_hugepage` has them.
//!
//! A *folio* is memory that one page fault allocates: a transparent huge page of any size. The largest is as large as what a descriptor one
//! table level above that of normal pages stands for, and is one page to the TLB. Smaller ones consist of normal pages; where the processor
//! translates a group of them with one entry (the contiguous bit of Arm), a folio of at least that size has entries of that size.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::PageSizes;

/// When the system uses transparent huge pages (`enabled`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum When {
    /// For all memory that may have them.
    Always,
    /// For memory with `MADV_HUGEPAGE`.
    #[default]
    Advised,
    /// For no memory.
    Never,
}

impl When {
    /// All, with their names in Linux's files.
    pub(crate) const ALL: [(When, &'static str); 3] =
        [(When::Always, "always"), (When::Advised, "madvise"), (When::Never, "never")];
}

/// When it uses those of one size (`hugepages-<size>kB/enabled`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhenSize {
    /// For all memory that may have them.
    Always,
    /// As [`Thp::enabled`] says.
    Inherited,
    /// For memory with `MADV_HUGEPAGE`.
    Advised,
    /// For no memory.
    Never,
}

impl WhenSize {
    /// All, with their names in Linux's files.
    pub(crate) const ALL: [(WhenSize, &'static str); 4] = [
        (WhenSize::Always, "always"),
        (WhenSize::Inherited, "inherit"),
        (WhenSize::Advised, "madvise"),
        (WhenSize::Never, "never"),
    ];
}

/// Settings of the thread of the system that replaces normal pages by huge ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KhugepagedSettings {
    /// Time between two passes, ns.
    pub scan_sleep_ns: u64,
    /// The same after a huge page could not be allocated.
    pub alloc_sleep_ns: u64,
    /// Normal pages that a pass looks at.
    pub pages_to_scan: u64,
    /// Most normal pages without memory in a range that becomes a huge page.
    pub max_ptes_none: u64,
    /// Most of its pages that other processes use, too.
    pub max_ptes_shared: u64,
}

/// Settings of transparent huge pages.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Thp {
    /// The setting that sizes may inherit.
    pub enabled: When,
    /// Settings of sizes in bytes. Without one, the largest size inherits, and others are never used.
    pub sizes: BTreeMap<u64, WhenSize>,
    /// Bytes of a group of normal pages that one TLB entry translates; 0: there are no groups.
    pub group: u64,
    /// The thread that collapses pages; `None`: it does not run.
    pub khugepaged: Option<KhugepagedSettings>,
}

/// Log2 of the smallest folio in normal pages: Linux needs three pages of metadata for anonymous folios.
const SMALLEST_ORDER: u32 = 2;

impl PageSizes {
    /// Returns log2 of the size of a normal page.
    pub(super) fn normal_shift(&self) -> u32 {
        self.normal.trailing_zeros()
    }

    /// Returns log2 of the size of the largest folio.
    pub(crate) fn largest_folio(&self) -> u32 {
        self.transparent().trailing_zeros()
    }

    /// Iterates over log2 of the sizes of folios that the kernel offers, smallest first.
    pub(crate) fn folio_shifts(&self) -> impl DoubleEndedIterator<Item = u32> {
        self.normal_shift() + SMALLEST_ORDER..=self.largest_folio()
    }

    /// Returns when folios of `1 << shift` bytes are used.
    pub(crate) fn when(&self, shift: u32) -> WhenSize {
        let unless_set = if shift == self.largest_folio() { WhenSize::Inherited } else { WhenSize::Never };
        self.thp.sizes.get(&(1 << shift)).copied().unwrap_or(unless_set)
    }

    /// Returns which folios memory may have, with or without `MADV_HUGEPAGE`: a bit for log2 of each size.
    pub(super) fn folios(&self, advised: bool) -> u64 {
        let inherited = match self.thp.enabled {
            When::Always => true,
            When::Advised => advised,
            When::Never => false,
        };
        let is_used = |shift: &u32| match self.when(*shift) {
            WhenSize::Always => true,
            WhenSize::Inherited => inherited,
            WhenSize::Advised => advised,
            WhenSize::Never => false,
        };
        self.folio_shifts().filter(is_used).fold(0, |mask, shift| mask | 1 << shift)
    }

    /// Returns log2 of the bytes that a TLB entry translates in a folio of `1 << shift` bytes.
    pub(super) fn entry_shift(&self, shift: u32) -> u32 {
        let group = self.thp.group;
        if shift == self.largest_folio() {
            shift
        } else if group > self.normal && group <= 1 << shift {
            group.trailing_zeros()
        } else {
            self.normal_shift()
        }
    }

    /// Returns whether khugepaged has work: it collapses pages to folios of the largest size.
    pub(crate) fn collapses(&self) -> bool {
        self.folios(true) >> self.largest_folio() & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;

    fn sizes(enabled: When, of: &[(u64, WhenSize)]) -> PageSizes {
        let thp = Thp { enabled, sizes: of.iter().copied().collect(), group: 2 * MIB, khugepaged: None };
        PageSizes { thp, ..PageSizes::all(64 * KIB) }
    }

    fn mask(bytes: &[u64]) -> u64 {
        bytes.iter().sum()
    }

    #[test]
    fn sizes_are_four_pages_and_more_up_to_the_span_of_a_table() {
        let shifts: Vec<u32> = PageSizes::all(64 * KIB).folio_shifts().collect();
        assert_eq!((shifts[0], shifts.len()), (18, 12), "256 KiB to 512 MiB");
        assert!(PageSizes::all(4 * KIB).folio_shifts().eq(14..=21), "16 KiB to 2 MiB");
    }

    #[test]
    fn by_default_only_the_largest_size_follows_the_common_setting() {
        for (enabled, plain, advised) in
            [(When::Always, 512 * MIB, 512 * MIB), (When::Advised, 0, 512 * MIB), (When::Never, 0, 0)]
        {
            let sizes = sizes(enabled, &[]);
            assert_eq!((sizes.folios(false), sizes.folios(true)), (plain, advised), "{enabled:?}");
        }
    }

    #[test]
    fn each_size_has_a_setting_of_its_own() {
        let of = [
            (256 * KIB, WhenSize::Always),
            (2 * MIB, WhenSize::Advised),
            (4 * MIB, WhenSize::Inherited),
            (512 * MIB, WhenSize::Never),
        ];
        let always = sizes(When::Always, &of);
        assert_eq!(always.folios(false), mask(&[256 * KIB, 4 * MIB]));
        assert_eq!(always.folios(true), mask(&[256 * KIB, 2 * MIB, 4 * MIB]));
        let never = sizes(When::Never, &of);
        assert_eq!((never.folios(false), never.folios(true)), (256 * KIB, mask(&[256 * KIB, 2 * MIB])));
        assert!(!always.collapses() && sizes(When::Advised, &[]).collapses());
    }

    #[test]
    fn folios_have_entries_of_a_group_of_pages_if_they_hold_one() {
        let sizes = sizes(When::Always, &[]);
        assert_eq!([18, 20, 21, 25, 28, 29].map(|shift| sizes.entry_shift(shift)), [16, 16, 21, 21, 21, 29]);
        let without = PageSizes::all(4 * KIB);
        assert_eq!([14, 20, 21].map(|shift| without.entry_shift(shift)), [12, 12, 21]);
    }
}
