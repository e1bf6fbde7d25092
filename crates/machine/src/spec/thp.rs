//! Transparent huge pages: the table of `machine.toml`.

use super::{FolioSetting, HugePageSetting, PAGE, Pages};
use crate::schema::Rule::Range;
use crate::schema::table;

/// Times of the system, ns.
const TIME: crate::schema::Rule = Range(1, 3_600_000_000_000);
/// Normal pages.
const COUNT: crate::schema::Rule = Range(0, 1 << 32);

table! {
    /// Transparent huge pages of several sizes, as Linux has them. The largest is the span of a table of normal pages.
    Thp {
        /// When they are used, where a size does not say otherwise (`transparent_hugepage/enabled`).
        enabled: HugePageSetting,
        /// Sizes that are used wherever they fit (`hugepages-<size>kB/enabled`).
        always: Vec<u64> => PAGE; unit "bytes",
        /// Sizes that are used where a program asks for them with `MADV_HUGEPAGE`.
        madvise: Vec<u64> => PAGE; unit "bytes",
        /// Sizes for which `enabled` holds. The largest is one of them unless another list has it.
        inherit: Vec<u64> => PAGE; unit "bytes",
        /// Sizes that are not used, such as all smaller ones that no list has.
        never: Vec<u64> => PAGE; unit "bytes",
        /// khugepaged runs: a thread of the system that collapses normal pages to the largest size.
        khugepaged: bool,
        /// Time between two of its passes (`khugepaged/scan_sleep_millisecs`).
        scan_sleep_ns: u64 => TIME; unit "ns",
        /// Time to the next pass after the machine had too little memory (`khugepaged/alloc_sleep_millisecs`).
        alloc_sleep_ns: u64 => TIME; unit "ns",
        /// Normal pages that a pass looks at (`khugepaged/pages_to_scan`).
        pages_to_scan: u64 => Range(1, 1 << 32); unit "pages",
        /// Most normal pages that may be missing where it collapses pages (`khugepaged/max_ptes_none`). Above the pages of a huge page
        /// less one, all but one may.
        max_ptes_none: u64 => COUNT; unit "pages",
        /// Most of these pages that other processes may use, too (`khugepaged/max_ptes_shared`).
        max_ptes_shared: u64 => COUNT; unit "pages",
    }
}

impl Thp {
    /// The sizes that the lists have, with their settings and the names of the lists.
    pub fn sizes(&self) -> impl Iterator<Item = (u64, FolioSetting, &'static str)> + '_ {
        let lists = [
            (&self.always, FolioSetting::Always, "always"),
            (&self.madvise, FolioSetting::Madvise, "madvise"),
            (&self.inherit, FolioSetting::Inherit, "inherit"),
            (&self.never, FolioSetting::Never, "never"),
        ];
        lists.into_iter().flat_map(|(list, setting, name)| list.iter().map(move |&bytes| (bytes, setting, name)))
    }
}

impl super::Tables {
    /// Whether transparent huge pages of the largest size are used where a program asks for them.
    #[must_use]
    pub fn has_huge_pages_on_request(&self) -> bool {
        let largest = self.pages.transparent();
        let own = self.thp.sizes().find(|&(bytes, ..)| bytes == largest).map(|(_, setting, _)| setting);
        match own.unwrap_or(FolioSetting::Inherit) {
            FolioSetting::Always | FolioSetting::Madvise => true,
            FolioSetting::Inherit => self.thp.enabled != HugePageSetting::Never,
            FolioSetting::Never => false,
        }
    }
}

impl Pages {
    /// The sizes of transparent huge pages: from four normal pages to the span of a table of them.
    #[must_use]
    pub fn folios(&self) -> std::ops::RangeInclusive<u64> {
        4 * self.normal..=self.transparent()
    }
}
