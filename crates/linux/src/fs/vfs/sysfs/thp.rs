//! `/sys/kernel/mm/transparent_hugepage` (Linux `Documentation/admin-guide/mm/transhuge.rst`). The settings are those of the machine and
//! cannot be changed by programs.

use super::super::tree::{Entry, Make, MakeOfNode};
use super::{Entries, KIB, MM};
use crate::kernel::Kernel;
use crate::mm::pages::{KhugepagedSettings, Thp, When, WhenSize};
use crate::platform::Platform;

/// Adds the files.
pub(super) fn entries(platform: &Platform, entries: &mut Entries) {
    let folder = format!("{MM}/transparent_hugepage");
    let mut put = |path: String, entry| entries.insert(format!("{folder}/{path}").into_bytes(), entry);
    let text = |text: String| Entry::Text(format!("{text}\n").into_bytes());
    let sizes = &platform.page_sizes;
    let Thp { enabled, khugepaged, .. } = &sizes.thp;
    let common = [
        ("enabled", selected(&When::ALL, *enabled)),
        ("defrag", "always defer defer+madvise [madvise] never".to_owned()),
        ("shmem_enabled", "always within_size advise [never] deny force".to_owned()),
        ("use_zero_page", "0".to_owned()),
        // With base pages of 64 KiB the first table level that can hold a huge page spans 512 MiB.
        ("hpage_pmd_size", sizes.transparent().to_string()),
    ];
    for (name, value) in common {
        put(name.to_owned(), text(value));
    }
    for shift in sizes.folio_shifts() {
        let of_size = format!("hugepages-{}kB", (1u64 << shift) / KIB);
        put(format!("{of_size}/enabled"), text(selected(&WhenSize::ALL, sizes.when(shift))));
        for (name, make) in STATS {
            put(format!("{of_size}/stats/{name}"), Entry::OfNode(make, shift));
        }
    }
    for (name, value) in knobs(khugepaged.as_ref(), sizes.transparent() / sizes.normal) {
        put(format!("khugepaged/{name}"), text(value.to_string()));
    }
    for (name, make) in PROGRESS {
        put(format!("khugepaged/{name}"), Entry::Made(make));
    }
}

/// Returns the names of all settings, the current one in brackets.
fn selected<T: Copy + PartialEq>(all: &[(T, &str)], current: T) -> String {
    let word = |&(setting, name): &(T, &str)| if setting == current { format!("[{name}]") } else { name.to_owned() };
    all.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns the settings of khugepaged; those of Linux if it does not run. `pages` are those of a huge page.
fn knobs(settings: Option<&KhugepagedSettings>, pages: u64) -> [(&'static str, u64); 7] {
    const NS_PER_MS: u64 = 1_000_000;
    let usual = KhugepagedSettings {
        scan_sleep_ns: 10_000 * NS_PER_MS,
        alloc_sleep_ns: 60_000 * NS_PER_MS,
        pages_to_scan: 8 * pages,
        max_ptes_none: pages - 1,
        max_ptes_shared: pages / 2,
    };
    let settings = settings.copied().unwrap_or(usual);
    [
        ("defrag", 1),
        ("scan_sleep_millisecs", settings.scan_sleep_ns / NS_PER_MS),
        ("alloc_sleep_millisecs", settings.alloc_sleep_ns / NS_PER_MS),
        ("pages_to_scan", settings.pages_to_scan),
        ("max_ptes_none", settings.max_ptes_none.min(pages - 1)),
        ("max_ptes_shared", settings.max_ptes_shared.min(pages - 1)),
        ("max_ptes_swap", pages / 8),
    ]
}

/// Counters of one size. Memory is never too fragmented for a page, and is not swapped.
const STATS: [(&str, MakeOfNode); 7] = [
    ("anon_fault_alloc", |k, shift| number(k.folio_counts().faults.get(&shift).copied().unwrap_or(0))),
    ("anon_fault_fallback", |_, _| number(0)),
    ("anon_fault_fallback_charge", |_, _| number(0)),
    ("split", |_, _| number(0)),
    ("split_deferred", |k, shift| number(k.folio_counts().splits.get(&shift).copied().unwrap_or(0))),
    ("split_failed", |_, _| number(0)),
    ("swpout", |_, _| number(0)),
];

/// The progress of khugepaged.
const PROGRESS: [(&str, Make); 2] = [
    ("full_scans", |k: &Kernel<'_>, _| number(k.system.khugepaged.full_scans)),
    ("pages_collapsed", |k: &Kernel<'_>, _| number(k.system.khugepaged.collapsed)),
];

/// Returns a line with a number.
fn number(n: u64) -> Vec<u8> {
    format!("{n}\n").into_bytes()
}
