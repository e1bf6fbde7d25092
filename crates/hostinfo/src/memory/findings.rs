//! Conclusions from a host's settings and a process's memory, as sentences.

use super::{Host, MultiSize, Pool, Process, Segment, SegmentUse, Thp, size};

/// Typical number of second-level TLB entries. A segment with fewer base pages gains little from larger ones.
const TLB_REACH: u64 = 1024;

/// Findings about a host.
#[must_use]
pub fn about_host(host: &Host) -> Vec<String> {
    let mut found = Vec::new();
    match &host.thp {
        Some(thp) => about_thp(thp, &mut found),
        None => found.push("This kernel has no transparent huge pages (THP).".to_owned()),
    }
    about_pools(host, &mut found);
    found
}

fn about_thp(thp: &Thp, found: &mut Vec<String>) {
    let page = thp.page.map_or_else(|| "large".to_owned(), |page| format!("{} pages", size(page)));
    let page = page.replace("large", "large pages");
    match thp.enabled.as_deref() {
        Some("always") => {
            found.push(format!("THP is always: private memory gets {page} where they fit and are available."))
        }
        Some("madvise") => found.push(format!(
            "THP is madvise: only memory for which a program requests them with madvise(MADV_HUGEPAGE) gets {page}. \
             With GLIBC_TUNABLES=glibc.malloc.hugetlb=1, glibc's malloc requests them."
        )),
        Some("never") => found.push(format!(
            "THP is never: no program gets {page} this way. To enable, as root: \
             echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"
        )),
        _ => {}
    }
    let defrag = match thp.defrag.as_deref() {
        Some("always") => "is always: a page fault waits for compaction to make a large page",
        Some("madvise") => {
            "is madvise: where a program requested large pages, a page fault waits for compaction to make one"
        }
        Some("defer+madvise") => {
            "is defer+madvise: where a program requested large pages, a page fault waits for one; elsewhere they are made later"
        }
        Some("defer") => "is defer: a page fault takes a large page if one is available; otherwise it is made later",
        Some("never") => "is never: a page fault takes a large page only if one is available immediately",
        _ => "",
    };
    if !defrag.is_empty() && thp.enabled.as_deref() != Some("never") {
        found.push(format!("THP defrag {defrag}."));
    }
    if let Some(word @ ("never" | "deny")) = thp.shmem_enabled.as_deref() {
        found.push(format!("THP for shared memory is {word}: shared memory and /dev/shm use base pages."));
    }
    about_sizes(thp, found);
}

/// Reports smaller sizes of transparent huge pages.
fn about_sizes(thp: &Thp, found: &mut Vec<String>) {
    let smaller = || thp.sizes.iter().filter(|one| Some(one.page) != thp.page && one.enabled.is_some());
    let word = |one: &MultiSize| one.enabled.clone().unwrap_or_default();
    let on: Vec<String> =
        smaller().filter(|one| word(one) != "never").map(|one| format!("{} {}", size(one.page), word(one))).collect();
    if let (Some(first), Some(last)) = (smaller().next(), smaller().next_back()) {
        let range = format!("{} to {}", size(first.page), size(last.page));
        found.push(match on.as_slice() {
            [] => format!("All smaller THP sizes ({range}) are never."),
            on => format!("Smaller THP sizes enabled: {}.", on.join(", ")),
        });
    }
}

fn about_pools(host: &Host, found: &mut Vec<String>) {
    if host.pools.is_empty() {
        found.push("This kernel has no hugetlbfs.".to_owned());
    }
    for pool in &host.pools {
        let page = size(pool.page);
        let more = pool.overcommit.unwrap_or(0);
        if pool.total == 0 && more == 0 {
            let folder = format!("hugepages-{}kB", pool.page / 1024);
            found.push(format!(
                "hugetlbfs {page}: no pages in the pool; mappings with MAP_HUGETLB fail. \
                 To add pages, as root: echo N > /sys/kernel/mm/hugepages/{folder}/nr_hugepages"
            ));
            continue;
        }
        found.push(format!("hugetlbfs {page}: {}.", described(pool)));
        about_nodes(host, pool, found);
    }
}

fn described(pool: &Pool) -> String {
    let bytes = size(pool.total.saturating_mul(pool.page));
    let mut text = format!("{} pages ({bytes})", pool.total);
    if let Some(free) = pool.free {
        text += &format!(", {free} free");
    }
    if let Some(reserved) = pool.reserved.filter(|&n| n > 0) {
        text += &format!(", {reserved} of these reserved by running programs");
    }
    if let Some(more) = pool.overcommit.filter(|&n| n > 0) {
        text += &format!(", up to {more} more on demand");
    }
    text
}

/// Nodes without free pages while other nodes have some.
fn about_nodes(host: &Host, pool: &Pool, found: &mut Vec<String>) {
    let mut free: Vec<(u32, u64)> = Vec::new();
    for node in &host.nodes {
        let there = node.pools.iter().find(|one| one.page == pool.page);
        free.extend(there.and_then(|one| one.free).map(|n| (node.number, n)));
    }
    let list = |empty: bool| {
        let those = free.iter().filter(|(_, n)| (*n == 0) == empty).map(|(node, _)| node.to_string());
        those.collect::<Vec<String>>().join(", ")
    };
    if !list(true).is_empty() && !list(false).is_empty() {
        let page = size(pool.page);
        found.push(format!(
            "hugetlbfs {page}: all free pages are on node {}, none on node {}, so threads there get remote pages.",
            list(false),
            list(true)
        ));
    }
}

/// Findings about a process.
#[must_use]
pub fn about_process(host: &Host, process: &Process) -> Vec<String> {
    let mut found = Vec::new();
    if process.thp_enabled == Some(false) {
        found.push("THP is disabled for this process (prctl PR_SET_THP_DISABLE).".to_owned());
    }
    let base_page = host.base_page.unwrap_or(4096);
    let reach = TLB_REACH.saturating_mul(base_page);
    for part in process.segments.iter().filter(|part| part.segment != Segment::Kernel) {
        about_huge(part, &mut found);
        if part.base() > reach {
            about_base(host, process, part, &mut found);
        }
    }
    if process.segments.iter().all(|part| part.rss <= reach && part.hugetlb.is_empty()) {
        found.push(format!(
            "No segment has more than {} in memory, which {TLB_REACH} TLB entries cover with {} pages: larger pages would gain \
             little here.",
            size(reach),
            size(base_page)
        ));
    }
    about_placement(process, &mut found);
    found
}

/// Reports the large pages of a segment.
fn about_huge(part: &SegmentUse, found: &mut Vec<String>) {
    let name = part.segment.name();
    for &(page, bytes) in &part.hugetlb {
        found.push(format!("{name}: {} in hugetlbfs pages of {}.", size(bytes), size(page)));
    }
    if part.transparent > 0 && part.rss > 0 {
        let share = 100.0 * part.transparent as f64 / part.rss as f64;
        let (huge, rss) = (size(part.transparent), size(part.rss));
        found.push(format!("{name}: {huge} of {rss} ({share:.0} %) in transparent huge pages."));
    }
}

/// Explains why a segment's memory is in base pages.
fn about_base(host: &Host, process: &Process, part: &SegmentUse, found: &mut Vec<String>) {
    let what = format!("this program's {} {}", size(part.base()), noun(part.segment));
    let what = if part.transparent > 0 { format!("{what} outside them") } else { what };
    let thp = host.thp.as_ref();
    let enabled = thp.and_then(|thp| thp.enabled.as_deref());
    let shared = part.segment == Segment::Shared;
    let enabled = if shared { thp.and_then(|thp| thp.shmem_enabled.as_deref()) } else { enabled };
    let asked = part.asked_in_vain > part.base() / 2;
    found.push(match enabled {
        _ if matches!(part.segment, Segment::Files | Segment::Text) => {
            format!("File mappings use base pages regardless of THP: {what} has no others.")
        }
        _ if process.thp_enabled == Some(false) => format!("THP is disabled for it: {what} has base pages."),
        None => format!("This kernel has no THP for it: {what} can get large pages only from hugetlbfs."),
        Some("never" | "deny") => format!("THP is never: {what} has none."),
        Some(_) if part.declined > part.base() / 2 => {
            format!("THP is declined by the program (MADV_NOHUGEPAGE): {what} has none.")
        }
        Some(word @ ("madvise" | "advise")) if !asked => {
            format!("THP is {word}: {what} did not request huge pages and has none.")
        }
        Some(_) if asked => format!(
            "THP was requested, but {what} has none: none were available, or its mappings contain no aligned {}. \
             khugepaged may create some later.",
            thp.and_then(|thp| thp.page).map_or_else(|| "huge page".to_owned(), size)
        ),
        Some(word) => {
            format!(
                "THP is {word}, but {what} has none: none were available, or its mappings contain no aligned huge page."
            )
        }
    });
}

fn noun(segment: Segment) -> &'static str {
    match segment {
        Segment::Files => "of mapped files",
        Segment::Anonymous => "anonymous memory",
        Segment::Shared => "shared memory",
        other => other.name(),
    }
}

/// Reports if the largest segment lies on one node although the process uses several.
fn about_placement(process: &Process, found: &mut Vec<String>) {
    let used = |part: &SegmentUse| part.nodes.iter().filter(|(_, bytes)| *bytes > 0).count();
    let mut nodes: Vec<u32> = process.segments.iter().flat_map(|part| &part.nodes).map(|(node, _)| *node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    if nodes.len() < 2 {
        return;
    }
    let largest = process.segments.iter().max_by_key(|part| part.rss);
    if let Some(part) = largest.filter(|part| used(part) == 1) {
        let node = part.nodes.iter().find(|(_, bytes)| *bytes > 0).map_or(0, |(node, _)| *node);
        found.push(format!(
            "{}: all of it is on node {node}, although the process uses {} nodes; threads on other nodes access it remotely.",
            part.segment.name(),
            nodes.len()
        ));
    }
}
