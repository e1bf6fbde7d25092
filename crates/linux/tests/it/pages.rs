//! Page sizes, memory policies and the nodes of pages, as seen by a program and by its driver.

use crate::common;

use std::io::{Read as _, Seek as _};

use common::{HOSTED, build, platform};
use fxscope_guestmem::Segment;
use fxscope_linux::pages::{
    MappingPages, MemoryPolicy, MemoryWork, PageSizes, PageUse, Placement, SiteNode, SitePages, Weights,
};
use fxscope_linux::{Code, CpuPlace, Guest, Setup, Stdio};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const DEMAND: &str = "XOS_MMM_L_PAGING_POLICY=demand:demand:demand";

/// Returns `programs/pages.c`, ready to run one of its cases on a machine with nodes 4 to 7, twelve processors each, whose
/// segments have pages of 2 MiB.
fn start(case: &str, environment: &[&str], policy: MemoryPolicy) -> (Guest, std::fs::File) {
    let mut platform = platform(64);
    platform.cpus = (12..60).map(|cpu| CpuPlace { cpu, node: 4 + (cpu - 12) / 12 }).collect();
    let large = [Segment::Data, Segment::Bss, Segment::Heap, Segment::Stack, Segment::ThreadStack, Segment::Mmap];
    let segments = large.map(|segment| (segment, 2 * MIB)).into();
    platform.page_sizes = PageSizes { large: 2 * MIB, segments, ..PageSizes::all(64 * KIB) };
    let program = build("pages.c", HOSTED);
    let output = tempfile::tempfile().expect("temporary file");
    let handle = || output.try_clone().expect("duplicate handle").into();
    let mut setup = Setup::new(platform, program.to_str().expect("UTF-8 path")).expect("setup");
    setup.args.push(case.as_bytes().to_vec());
    setup.env = environment.iter().map(|entry| entry.as_bytes().to_vec()).collect();
    setup.policy = policy;
    setup.stdio = Stdio { input: handle(), output: handle(), error: handle() };
    (Guest::open(&program, setup).unwrap_or_else(|e| panic!("{e}")), output)
}

/// The same, run to its end.
fn run(case: &str, environment: &[&str], policy: MemoryPolicy) -> (Guest, String) {
    let (process, output) = start(case, environment, policy);
    finished(process, output)
}

/// Runs a process to its end; returns it with its output.
fn finished(mut process: Guest, mut output: std::fs::File) -> (Guest, String) {
    let mut code: Code = Code::of(&process);
    let end = process.run_functional(&mut code, 100_000_000).cloned().expect("ends");
    assert_eq!(end.status(), Some(0), "{end}");
    let mut text = String::new();
    output.rewind().expect("rewind");
    output.read_to_string(&mut text).expect("text");
    (process, text)
}

fn output(case: &str, environment: &[&str]) -> String {
    run(case, environment, MemoryPolicy::Local).1
}

/// Returns the numbers after `what:` at the start of each line that has it.
fn numbers(text: &str, what: &str) -> Vec<Vec<i32>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
    lines.map(|line| line.split(' ').map(|n| n.parse().expect("a number")).collect()).collect()
}

#[test]
fn prepaged_memory_is_on_the_node_of_the_thread_that_maps_it_before_it_is_touched() {
    let text = output("first_touch", &[]);
    assert_eq!(numbers(&text, "mapped"), [[4; 4]]);
    assert!(text.contains("default huge anon=4 N4=4 kernelpagesize_kB=2048\n"), "{text}");
    assert!(text.contains("KernelPageSize:     2048 kB\n") && text.contains("Rss:                8192 kB\n"), "{text}");
    assert!(text.contains("start % 2 MiB: 0\n"), "{text}");
}

#[test]
fn memory_on_demand_gets_a_node_page_by_page_when_touched() {
    const NOENT: i32 = -2;
    let text = output("first_touch", &[DEMAND]);
    assert_eq!(numbers(&text, "mapped"), [[NOENT; 4]]);
    assert_eq!(numbers(&text, "touched"), [[NOENT, 4, NOENT, NOENT]]);
    assert_eq!(numbers(&text, "unmapped"), [[-14]]);
    assert!(text.contains("Rss:                2048 kB\n"), "{text}");
}

#[test]
fn a_policy_reads_back_as_it_was_set_and_is_inherited_by_children() {
    let text = output("policies", &[]);
    let expected = "at first: 0 mode 0 nodes 0\nbound: 0 mode 2 nodes 0x60\nnode of nothing interleaved: -1\n\
                    child: 0 mode 2 nodes 0x60\nno such nodes: -1\nerrno 1\ndefault: 0 mode 0 nodes 0\nallowed 0xf0\n";
    assert_eq!(text, expected);
}

#[test]
fn pages_follow_the_policies_of_ranges_when_touched_and_when_moved() {
    let text = output("ranges", &[DEMAND]);
    assert!(text.contains("bound: 0 mode 2 nodes 0x80\ninterleaved: 0 mode 3 nodes 0x60\nuntold: 0 mode 0 nodes 0\n"));
    let nodes = numbers(&text, "nodes");
    assert!(nodes[0] == [7, 5, 6, 4] || nodes[0] == [7, 6, 5, 4], "{text}");
    assert!(text.contains("node of an address: 7\nstrict: -1\nerrno 1\nmoved: 0\n"), "{text}");
    assert_eq!(nodes[1], [7; 4]);
    assert!(text.contains("with a hole: -1\nerrno 1\nmigrated: 0\n"), "{text}");
    assert_eq!(nodes[2], [5, -14, 5, 5]);
    // The entire large page moves.
    assert!(text.contains("one page: 6\n"), "{text}");
    assert_eq!(nodes[3], [6, 6]);
}

#[test]
fn moved_pages_are_counted_and_distinguished_from_those_that_stayed() {
    let (mut process, _) = run("ranges", &[DEMAND], MemoryPolicy::Local);
    let work = process.take_memory_work().expect("pages were taken");
    // mbind moves the three that are not on node 7, migrate_pages the three that are left, move_pages one of them.
    assert_eq!((work.moved, work.moved_bytes), (7, 14 * MIB));
    let moved: Vec<_> = process.page_spans().into_iter().filter(|span| span.moved > 0).collect();
    // This page has been moved once more than the two others; a hole is between them.
    let found: Vec<_> = moved.iter().map(|span| (span.range.end - span.range.start, span.placement)).collect();
    assert_eq!(found, [(2 * MIB, Placement::Node(6)), (4 * MIB, Placement::Node(5))]);
    assert!(moved[0].moved > moved[1].moved);
}

#[test]
fn files_about_memory_have_the_pages_of_each_node() {
    let text = output("files", &[]);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["Node", "7", "HugePages_Total:", "0"]);
    assert_eq!(lines[1], ["Node", "7", "HugePages_Total:", "32"]);
    assert_eq!(lines[2], ["Node", "7", "MemUsed:", "65536", "kB"]);
    assert_eq!(lines[3], ["Hugepagesize:", "2048", "kB"]);
}

#[test]
fn first_touch_places_pages_on_the_node_of_the_touching_thread() {
    assert_eq!(numbers(&output("threads", &[DEMAND]), "nodes"), [[4, 4, 6, 6]]);
    assert_eq!(numbers(&output("threads", &[]), "nodes"), [[4; 4]]);
}

#[test]
fn the_initial_policy_of_a_run_places_all_its_memory() {
    let (_, text) = run("first_touch", &[], MemoryPolicy::Bind(0x40));
    assert_eq!(numbers(&text, "mapped"), [[6; 4]]);
    let (_, text) = run("first_touch", &[], MemoryPolicy::Interleave(0xf0, Weights::default()));
    let mut nodes = numbers(&text, "mapped").concat();
    nodes.sort_unstable();
    assert_eq!(nodes, [4, 5, 6, 7]);
}

/// Returns the system's work on pages in the case `churn`, in addition to the work that every case has.
fn churn(environment: &[&str]) -> MemoryWork {
    let work = |case| run(case, environment, MemoryPolicy::Local).0.take_memory_work().unwrap_or_default();
    let (all, others) = (work("churn"), work("none"));
    MemoryWork {
        faults: all.faults - others.faults,
        cleared_bytes: all.cleared_bytes - others.cleared_bytes,
        freed_bytes: all.freed_bytes - others.freed_bytes,
        unmapped: all.unmapped,
        ..MemoryWork::default()
    }
}

#[test]
fn memory_is_cleared_whenever_it_is_allocated_and_released_as_often() {
    let (cleared_bytes, freed_bytes) = (48 * MIB, 48 * MIB);
    let work = MemoryWork { cleared_bytes, freed_bytes, unmapped: true, ..MemoryWork::default() };
    assert_eq!(churn(&[]), work);
    // 16 MiB are 8 large pages or 256 normal ones.
    assert_eq!(churn(&[DEMAND]), MemoryWork { faults: 3 * 8, ..work });
    assert_eq!(churn(&["XOS_MMM_L_HPAGE_TYPE=none"]), MemoryWork { faults: 3 * 256, ..work });
}

#[test]
fn memory_that_is_never_released_is_cleared_once() {
    let work = MemoryWork { cleared_bytes: 16 * MIB, ..MemoryWork::default() };
    assert_eq!(churn(&["XOS_MMM_L_ARENA_FREE=2"]), work);
}

#[test]
fn the_librarys_variables_control_where_malloc_blocks_are_and_whether_they_are_released() {
    let heap = |environment: &[&str]| numbers(&output("blocks", environment), "heap");
    assert_eq!(heap(&[]), [[0, 0]]);
    assert_eq!(heap(&["XOS_MMM_L_ARENA_FREE=1"]), [[1, 0]]);
    assert_eq!(heap(&["XOS_MMM_L_ARENA_FREE=2"]), [[1, 1]]);
    assert_eq!(heap(&["XOS_MMM_L_ARENA_FREE=2", "MALLOC_MMAP_THRESHOLD_=1048576"]), [[0, 0]]);
}

#[test]
fn threads_share_one_arena_unless_each_has_its_own_and_heaps_are_allocated_as_they_grow() {
    let arenas = |environment: &[&str]| {
        let text = output("arenas", environment);
        (numbers(&text, "shared")[0][0], numbers(&text, "behind")[0][0])
    };
    const NOENT: i32 = -2;
    const FAULT: i32 = -14;
    let speed = "XOS_MMM_L_ARENA_LOCK_TYPE=0";
    // The first heap, of 132 KiB, ends within its first large page.
    assert_eq!(arenas(&["XOS_MMM_L_ARENA_LOCK_TYPE=1"]), (1, FAULT));
    // The reserved part of a heap has no pages; the part in use has them at once.
    assert_eq!(arenas(&[speed]), (0, NOENT));
    assert_eq!(arenas(&[speed, "XOS_MMM_L_HEAP_SIZE_MB=256"]), (0, 4));
    assert_eq!(arenas(&[speed, "XOS_MMM_L_HEAP_SIZE_MB=256", DEMAND]), (0, NOENT));
    assert_eq!(arenas(&[speed, "XOS_MMM_L_MAX_ARENA_NUM=1"]), (1, FAULT));
}

/// Log2 of the page size of each segment of a program at its start.
fn shifts(environment: &[&str]) -> impl Fn(Segment) -> u32 {
    let (process, _) = start("none", environment, MemoryPolicy::Local);
    let spans = process.page_spans();
    let regions: Vec<_> = process.memory().regions().copied().collect();
    move |segment| {
        let region = regions.iter().find(|region| region.segment == segment).expect("mapped");
        spans.iter().find(|span| span.range.contains(&region.start)).expect("a span").shift
    }
}

#[test]
fn the_librarys_variables_select_page_sizes_by_segment() {
    use Segment::{Bss, Data, Stack, Text};
    let sizes = |environment: &[&str]| [Text, Data, Bss, Stack].map(shifts(environment));
    assert_eq!(sizes(&[]), [16, 21, 21, 21]);
    assert_eq!(sizes(&["XOS_MMM_L_LPG_MODE=base"]), [16, 21, 21, 16]);
    assert_eq!(sizes(&["XOS_MMM_L_HPAGE_TYPE=none"]), [16; 4]);
    assert_eq!(sizes(&["XOS_MMM_L_HPAGE_TYPE=hugetlbfs", "XOS_MMM_L_LPG_MODE=base+stack"]), [16, 21, 21, 21]);
}

#[test]
fn spans_show_the_nodes_of_prepaged_memory_and_the_placement_of_all_other_memory() {
    let (process, _) = start("none", &[], MemoryPolicy::Local);
    let region = |segment| process.memory().regions().find(|r| r.segment == segment).expect("mapped").start;
    let spans = process.page_spans();
    let placement = |at: u64| spans.iter().find(|span| span.range.contains(&at)).expect("a span").placement;
    assert_eq!(placement(region(Segment::Data)), Placement::Node(4));
    assert_eq!(placement(region(Segment::Bss)), Placement::Node(4));
    assert_eq!(placement(region(Segment::Stack)), Placement::FirstTouch);
    assert!(spans.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
}

#[test]
fn page_use_is_the_maximum_including_rounding() {
    let (mut process, _) = run("churn", &[], MemoryPolicy::Local);
    let uses = process.page_use();
    let mmap: Vec<&PageUse> = uses.iter().filter(|u| u.segment == Segment::Mmap).collect();
    // Three times 16 MiB one after the other: never more than 8 pages at a time.
    assert_eq!(mmap, [&PageUse { segment: Segment::Mmap, page_bytes: 2 * MIB, node: 4, pages: 8, bytes: 16 * MIB }]);
    let bss = uses.iter().find(|u| u.segment == Segment::Bss).expect("a row");
    let region = process.memory().regions().find(|r| r.segment == Segment::Bss).expect("mapped");
    assert_eq!((bss.pages, bss.page_bytes, bss.bytes), (1, 2 * MIB, region.end - region.start));
}

#[test]
fn a_program_that_requests_huge_pages_gets_those_of_the_system() {
    let text = output("own", &["XOS_MMM_L_HPAGE_TYPE=none"]);
    const NOENT: i32 = -2;
    assert!(text.contains("on a page: 1\n") && text.contains("KernelPageSize:     2048 kB\n"), "{text}");
    // hugetlbfs pages, like any other memory, are allocated when touched.
    assert_eq!(numbers(&text, "asked for"), [[NOENT, NOENT]]);
    assert_eq!(numbers(&text, "touched"), [[NOENT, 4]]);
    assert!(text.contains("no such size: 1\nhuge page of hugetlbfs: -1\nadvised: 0\n"), "{text}");
}

#[test]
fn advice_gives_transparent_huge_pages_where_whole_ones_fit_and_nothing_has_been_touched() {
    let text = output("own", &["XOS_MMM_L_HPAGE_TYPE=none"]);
    const NOENT: i32 = -2;
    assert_eq!(numbers(&text, "one huge page"), [[4, 4, NOENT, NOENT]]);
    assert_eq!(numbers(&text, "not where pages are"), [[NOENT, NOENT, 4, 4]]);
    assert_eq!(numbers(&text, "taken back"), [[NOENT, NOENT, 4, 4]]);
}

#[test]
fn mappings_of_a_call_have_the_pages_set_for_that_call() {
    let sizes = |pages: Option<MappingPages>| {
        let (mut process, output) = start("calls", &[], MemoryPolicy::Local);
        let symbols = process.running_symbols();
        let (_, at) = symbols.functions().find(|(name, _)| *name == "one_call").expect("a function");
        let calls = at..at + symbols.at(at).expect("known").bytes;
        process.set_mapping_pages(pages.map(|pages| SitePages { calls, pages }).into_iter().collect());
        let (process, text) = finished(process, output);
        let kib = |line: &str| line.split_whitespace().nth(1).and_then(|n| n.parse::<u32>().ok()).expect("a number");
        (text.lines().map(kib).collect::<Vec<_>>(), process.mapping_rule_uses().to_vec())
    };
    assert_eq!(sizes(None), (vec![2048, 2048], vec![]));
    assert_eq!(sizes(Some(MappingPages::Size(64 * KIB))), (vec![64, 2048], vec![1]));
    // No mapping of 4 MiB contains a transparent huge page.
    assert_eq!(sizes(Some(MappingPages::Transparent)), (vec![64, 2048], vec![1]));
}

#[test]
fn mappings_of_a_call_are_on_the_node_set_for_that_call() {
    let (mut process, output) = start("calls", &[], MemoryPolicy::Local);
    let symbols = process.running_symbols();
    let (_, at) = symbols.functions().find(|(name, _)| *name == "one_call").expect("a function");
    let calls = at..at + symbols.at(at).expect("known").bytes;
    process.set_mapping_nodes(vec![SiteNode { calls, node: 6 }]);
    let (mut process, _) = finished(process, output);
    assert_eq!(process.mapping_node_uses().collect::<Vec<_>>(), [1]);
    let there = process.page_use().into_iter().filter(|of| of.node == 6);
    assert_eq!(there.map(|of| of.pages * of.page_bytes).sum::<u64>(), 4 * MIB);
}

#[test]
fn large_mappings_are_recorded_with_the_functions_that_make_them() {
    let (mut process, output) = start("calls", &[], MemoryPolicy::Local);
    process.note_mappings(4 * MIB);
    let (process, _) = finished(process, output);
    let names = process.mapping_sites().iter().map(|site| site.function.as_ref().map(|(name, _)| name.as_str()));
    assert_eq!(names.collect::<Vec<_>>(), [Some("one_call"), Some("calls")]);
    assert!(process.mapping_sites().iter().all(|site| site.is_own));
    let bytes = |(range, site): (std::ops::Range<u64>, usize)| (site, range.end - range.start);
    let found: Vec<_> = process.mappings(0..u64::MAX).map(bytes).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.contains(&(0, 4 * MIB)) && found.contains(&(1, 4 * MIB)), "{found:?}");
}
