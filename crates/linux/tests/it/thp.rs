//! Transparent huge pages of all sizes, as a program sees them. Rules are those of Linux (`Documentation/admin-guide/mm/transhuge.rst`).

use crate::common;

use std::io::{Read as _, Seek as _};

use common::{HOSTED, build, platform};
use fxscope_linux::pages::{KhugepagedSettings, MemoryWork, PageSizes, Thp, When, WhenSize};
use fxscope_linux::{Code, CpuPlace, Guest, Setup, Stdio};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Returns settings by size.
fn thp(enabled: When, sizes: &[(u64, WhenSize)]) -> Thp {
    Thp { enabled, sizes: sizes.iter().copied().collect(), group: 2 * MIB, khugepaged: None }
}

/// khugepaged with passes every 10 ms, each over everything, and limits.
fn khugepaged(max_ptes_none: u64, pages_to_scan: u64) -> Option<KhugepagedSettings> {
    Some(KhugepagedSettings {
        scan_sleep_ns: 10_000_000,
        alloc_sleep_ns: 60_000_000,
        pages_to_scan,
        max_ptes_none,
        max_ptes_shared: 256,
    })
}

/// Runs a case of `programs/thp.c` on a system with normal pages of this size; all memory is allocated on demand.
fn run_on(normal: u64, thp: Thp, case: &str) -> (Guest, String) {
    let mut platform = platform(64);
    platform.page_sizes = PageSizes { thp, ..PageSizes::all(normal) };
    platform.cpus = (12..60).map(|cpu| CpuPlace { cpu, node: 4 + (cpu - 12) / 12 }).collect();
    platform.memory_bytes = 2 << 30;
    let program = build("thp.c", HOSTED);
    let mut output = tempfile::tempfile().expect("temporary file");
    let handle = || output.try_clone().expect("duplicate handle").into();
    let mut setup = Setup::new(platform, program.to_str().expect("UTF-8 path")).expect("setup");
    setup.args.push(case.as_bytes().to_vec());
    setup.env = vec![b"XOS_MMM_L_HPAGE_TYPE=none".to_vec()];
    setup.stdio = Stdio { input: handle(), output: handle(), error: handle() };
    let mut guest = Guest::open(&program, setup).unwrap_or_else(|e| panic!("{e}"));
    let mut code: Code = Code::of(&guest);
    let end = guest.run_functional(&mut code, 200_000_000).cloned().expect("ends");
    assert_eq!(end.status(), Some(0), "{end}");
    let mut text = String::new();
    output.rewind().expect("rewind");
    output.read_to_string(&mut text).expect("text");
    (guest, text)
}

fn run(thp: Thp, case: &str) -> String {
    run_on(64 * KIB, thp, case).1
}

/// Returns the number behind `what:`.
fn number(text: &str, what: &str) -> i64 {
    let value = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
    value.and_then(|value| value.trim().parse().ok()).unwrap_or_else(|| panic!("no {what} in {text}"))
}

fn numbers<const N: usize>(text: &str, what: [&str; N]) -> [i64; N] {
    what.map(|what| number(text, what))
}

/// Returns the words of a file that the program has shown.
fn file<'t>(text: &'t str, path: &str) -> &'t str {
    let path = format!("/sys/kernel/mm/transparent_hugepage/{path}: ");
    text.lines().find_map(|line| line.strip_prefix(&path)).unwrap_or_else(|| panic!("no {path} in {text}"))
}

const BOTH: [(u64, WhenSize); 2] = [(256 * KIB, WhenSize::Always), (2 * MIB, WhenSize::Always)];

#[test]
fn a_fault_allocates_the_largest_enabled_folio_that_is_aligned_and_inside_the_mapping() {
    let text = run(thp(When::Never, &BOTH), "fault");
    // 2 MiB; a page, since a folio would begin before the mapping; 256 KiB; a page, since a folio would end behind it.
    let resident = [2048, 64, 256, 64].iter().scan(0, |sum, kib| {
        *sum += kib;
        Some(*sum)
    });
    let shown = numbers(&text, ["inside", "at the start", "behind it", "at the end"]);
    assert!(resident.eq(shown), "{text}");
    assert_eq!(numbers(&text, ["eligible", "page"]), [1, 64], "folios consist of normal pages");
}

#[test]
fn without_an_enabled_size_pages_are_normal() {
    for off in [thp(When::Never, &[]), thp(When::Advised, &[]), thp(When::Always, &[])] {
        // A huge page of 512 MiB does not fit.
        let text = run(off, "fault");
        assert_eq!(numbers(&text, ["inside", "at the end", "eligible"]), [64, 256, 0], "{text}");
    }
}

#[test]
fn advice_decides_for_sizes_that_wait_for_it_and_folios_keep_away_from_pages_that_are_there() {
    let sizes = [(256 * KIB, WhenSize::Inherited), (2 * MIB, WhenSize::Advised)];
    let text = run(thp(When::Advised, &sizes), "advice");
    assert_eq!(numbers(&text, ["eligible before", "without advice", "advised"]), [0, 64, 0]);
    assert_eq!(number(&text, "next to a page"), 64 + 256, "2 MiB have a page already");
    assert_eq!(number(&text, "with advice"), 64 + 256 + 2048);
    assert_eq!(numbers(&text, ["taken back", "without again"]), [0, 64 + 256 + 2048 + 64]);
    assert_eq!(number(&text, "eligible after"), 1);
    assert!(text.contains("line: VmFlags: rd wr mr mw me hg"), "{text}");
}

#[test]
fn a_folio_of_which_a_part_is_released_or_that_moves_out_of_place_becomes_normal_pages() {
    let text = run(thp(When::Always, &[(2 * MIB, WhenSize::Inherited)]), "split");
    assert_eq!(numbers(&text, ["whole", "in part", "again", "moved"]), [2048, 1984, 2048, 4096], "{text}");
    let splits: Vec<&str> =
        text.lines().filter_map(|line| line.split_once("split_deferred: ")).map(|(_, n)| n).collect();
    assert_eq!(splits, ["1", "2"], "{text}");
    assert_eq!(text.lines().find_map(|line| line.split_once("anon_fault_alloc: ")).map(|(_, n)| n), Some("2"));
}

#[test]
fn a_folio_is_on_the_node_of_its_first_touch_with_all_its_entries() {
    let halves = |size: u64| {
        numbers(&run(thp(When::Never, &[(size, WhenSize::Always)]), "nodes"), ["first half", "second half"])
    };
    assert_eq!(halves(4 * MIB), [4, 4]);
    assert_eq!(halves(2 * MIB), [4, 5], "two folios");
}

#[test]
fn a_heap_that_grows_page_by_page_gets_folios_like_any_other_mapping() {
    let text = run(thp(When::Always, &[(2 * MIB, WhenSize::Always)]), "heap");
    assert_eq!(number(&text, "of the heap"), 2048, "{text}");
}

#[test]
fn a_process_can_switch_them_off_for_itself_and_its_children() {
    let text = run(thp(When::Always, &BOTH), "disabled");
    assert_eq!(numbers(&text, ["off", "set", "on", "touched", "eligible"]), [0, 0, 1, 64, 0], "{text}");
    assert_eq!(numbers(&text, ["in a child", "wrong"]), [1, 1], "{text}");
    // 512 MiB do not fit, whatever is disabled.
    assert_eq!(number(&text, "collapsed"), -1, "nothing to collapse in 2 MiB: {text}");
}

#[test]
fn khugepaged_collapses_ranges_with_enough_pages_in_advised_memory() {
    let all = Thp { khugepaged: khugepaged(511, 1 << 20), ..Thp::default() };
    let (guest, text) = run_on(4 * KIB, all, "khugepaged");
    let before = (32 + 16 + 1) * 64;
    assert_eq!(numbers(&text, ["before", "after", "huge"]), [before, 3 * 2048, 3 * 2048], "{text}");
    assert!(text.contains("kept: 1 2 3\n") && file(&text, "khugepaged/pages_collapsed") == "3", "{text}");
    assert!(text.contains("line: thp_collapse_alloc 3\n"), "{text}");
    assert_eq!(guest.khugepaged_progress().0, 3);

    // Half of the second range's pages are missing, 256 of 512.
    for (limit, collapsed) in [(0, 1), (255, 1), (256, 2)] {
        let some = Thp { khugepaged: khugepaged(limit, 1 << 20), ..Thp::default() };
        assert_eq!(run_on(4 * KIB, some, "khugepaged").0.khugepaged_progress().0, collapsed, "{limit}");
    }
}

#[test]
fn a_pass_of_khugepaged_looks_at_no_more_pages_than_it_may() {
    // Two passes in 25 ms, each over the 512 pages of one range.
    let some = Thp { khugepaged: khugepaged(511, 512), ..Thp::default() };
    let (guest, text) = run_on(4 * KIB, some, "khugepaged");
    assert_eq!((number(&text, "huge"), guest.khugepaged_progress()), (2 * 2048, (2, 0)), "{text}");
}

#[test]
fn khugepaged_runs_only_where_the_largest_size_is_enabled() {
    for (enabled, largest) in [(When::Never, WhenSize::Inherited), (When::Always, WhenSize::Never)] {
        let off = Thp { khugepaged: khugepaged(511, 1 << 20), ..thp(enabled, &[(2 * MIB, largest)]) };
        let (guest, text) = run_on(4 * KIB, off, "khugepaged");
        assert_eq!((number(&text, "huge"), guest.khugepaged_progress()), (0, (0, 0)), "{text}");
    }
}

#[test]
fn khugepaged_looks_at_all_processes_and_leaves_pages_that_they_share() {
    let all = Thp { khugepaged: khugepaged(511, 1 << 20), ..Thp::default() };
    let (_, text) = run_on(4 * KIB, all, "two");
    assert!(text.contains("child: own 2048 both 0\n"), "{text}");
    assert!(text.contains("parent: own 2048 both "), "{text}");
    assert!(text.contains("line: thp_collapse_alloc "), "{text}");
}

#[test]
fn a_collapse_that_a_program_asks_for_does_not_depend_on_what_is_enabled() {
    let (guest, text) = run_on(4 * KIB, thp(When::Never, &[]), "now");
    let shown = numbers(&text, ["collapsed", "again", "without pages", "refused", "huge"]);
    assert_eq!(shown, [0, 0, 1, 1, 2048], "{text}");
    assert_eq!(guest.folio_counts().collapsed, 1);
}

#[test]
fn a_collapse_is_work_of_the_process_that_copies_and_clears() {
    let (mut guest, _) = run_on(4 * KIB, thp(When::Never, &[]), "now");
    let MemoryWork { collapsed, moved_bytes, unmapped, .. } = guest.take_memory_work().expect("work");
    assert_eq!((collapsed, moved_bytes, unmapped), (1, 64 * KIB, true));
}

#[test]
fn files_show_the_settings_of_each_size_that_the_kernel_offers() {
    let sizes = [(256 * KIB, WhenSize::Always), (2 * MIB, WhenSize::Advised)];
    let text = run(Thp { khugepaged: khugepaged(77, 4096), ..thp(When::Always, &sizes) }, "files");
    let expected = [
        ("enabled", "[always] madvise never"),
        ("hpage_pmd_size", "536870912"),
        ("hugepages-128kB/enabled", "not there"),
        ("hugepages-256kB/enabled", "[always] inherit madvise never"),
        ("hugepages-2048kB/enabled", "always inherit [madvise] never"),
        ("hugepages-524288kB/enabled", "always [inherit] madvise never"),
        ("hugepages-1048576kB/enabled", "not there"),
        ("khugepaged/pages_to_scan", "4096"),
        ("khugepaged/max_ptes_none", "77"),
        ("khugepaged/scan_sleep_millisecs", "10"),
        ("khugepaged/full_scans", "0"),
    ];
    for (path, value) in expected {
        assert_eq!(file(&text, path), value, "{path}");
    }
    let usual = run(Thp::default(), "files");
    assert_eq!(file(&usual, "khugepaged/pages_to_scan"), "65536");
    assert_eq!(file(&usual, "khugepaged/scan_sleep_millisecs"), "10000");
}
