//! Page sizes of a Linux host and of a process on it, as documents. [`fxscope_hostinfo::memory`] reads and judges them.

use fxscope_hostinfo::memory::{self, Host, Mapping, Node, Pool, Process, SegmentUse, Thp, size};
use fxscope_report::document::{Document, Row, Section, Value};
use serde_json::json;

/// Most mappings that are listed.
const LISTED: usize = 8;

/// Returns the data of a host, and of a process, with the findings, and the gain of large pages for a program ([`super::walks`]), for
/// programs.
#[must_use]
pub fn json(host: &Host, process: Option<&Process>, gain: Option<&serde_json::Value>) -> serde_json::Value {
    let mut all = json!({ "host": host, "host_findings": memory::about_host(host) });
    if let Some(process) = process {
        all["process"] = json!(process);
        all["process_findings"] = json!(memory::about_process(host, process));
    }
    if let Some(gain) = gain {
        all["large_pages"] = gain.clone();
    }
    all
}

fn word(text: impl Into<String>) -> Option<Value> {
    Some(Value::text(text))
}

fn count(number: Option<u64>) -> Option<Value> {
    number.map(|number| Value::text(number.to_string()))
}

/// Returns the page sizes that a host offers.
#[must_use]
pub fn about_host(host: &Host) -> Document {
    let base = host.base_page.map_or_else(|| "not known".to_owned(), size);
    let mut sections = vec![Section::facts("Pages", [("base".to_owned(), base)])];
    sections.extend(host.thp.iter().flat_map(about_thp));
    let pools = host.pools.iter().map(|pool| pool_row(pool, "all"));
    let of_node = |node: &Node| {
        let name = node.number.to_string();
        node.pools.iter().map(|pool| pool_row(pool, &name)).collect::<Vec<Row>>()
    };
    let rows: Vec<Row> = pools.chain(host.nodes.iter().flat_map(of_node)).collect();
    if !rows.is_empty() {
        sections.push(Section::table(
            "",
            ["hugetlbfs", "node", "pages", "free", "reserved", "surplus", "overcommit"],
            rows,
        ));
    }
    let memory = |node: &Node| {
        let part = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), size);
        (format!("node {}", node.number), format!("{}, {} free", part(node.memory), part(node.free)))
    };
    if !host.nodes.is_empty() {
        sections.push(Section::facts("Memory", host.nodes.iter().map(memory)));
    }
    sections.push(Section::notes("Findings", memory::about_host(host)));
    sections.push(Section::notes("Notes", host.notes.clone()));
    Document::of("Pages of this host", sections)
}

fn about_thp(thp: &Thp) -> Vec<Section> {
    let settings = [("enabled", &thp.enabled), ("defrag", &thp.defrag), ("shared memory", &thp.shmem_enabled)];
    let settings = settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let page = thp.page.map(|page| ("page".to_owned(), size(page)));
    let mut sections = vec![Section::facts("THP", page.into_iter().chain(settings))];
    let sizes = thp.sizes.iter().filter_map(|one| Some((size(one.page), one.enabled.clone()?)));
    sections.push(Section::facts("THP sizes", sizes));
    let daemon = thp.khugepaged.iter().map(|(name, n)| (name.replace('_', " "), n.to_string()));
    sections
        .push(Section::facts("THP later", std::iter::once(("by".to_owned(), "khugepaged".to_owned())).chain(daemon)));
    sections
}

fn pool_row(pool: &Pool, node: &str) -> Row {
    let numbers = [Some(pool.total), pool.free, pool.reserved, pool.surplus, pool.overcommit];
    Row { label: size(pool.page), values: std::iter::once(word(node)).chain(numbers.map(count)).collect() }
}

/// Returns the pages of a process.
#[must_use]
pub fn about_process(host: &Host, process: &Process) -> Document {
    let headings = ["segment", "mapped", "in memory", "base pages", "THP", "hugetlbfs", "on nodes"];
    let rows = process.segments.iter().map(segment_row).collect();
    let mut sections = vec![Section::table("", headings, rows)];
    let mut largest: Vec<&Mapping> = process.mappings.iter().filter(|m| in_memory(m) > 0).collect();
    largest.sort_by_key(|mapping| (std::cmp::Reverse(in_memory(mapping)), mapping.start));
    let rows = largest.into_iter().take(LISTED).map(mapping_row).collect();
    sections.push(Section::table(
        "",
        ["largest mappings", "mapped", "in memory", "page", "MMU page", "THP", "segment"],
        rows,
    ));
    sections.push(Section::notes("Findings", memory::about_process(host, process)));
    sections.push(Section::notes("Notes", process.notes.clone()));
    let title = format!("Process {} ({})", process.pid, process.name);
    Document::of(title, sections)
}

/// Returns the bytes in memory, including hugetlbfs.
fn in_memory(mapping: &Mapping) -> u64 {
    mapping.rss.saturating_add(mapping.hugetlb())
}

fn segment_row(part: &SegmentUse) -> Row {
    let hugetlb = part.hugetlb.iter().map(|&(page, bytes)| format!("{} of {}", size(bytes), size(page)));
    let nodes = part.nodes.iter().map(|&(node, bytes)| format!("{node}: {}", size(bytes)));
    let nodes = nodes.collect::<Vec<String>>().join(", ");
    let hugetlb = hugetlb.collect::<Vec<String>>().join(", ");
    let or_none = |text: String| word(if text.is_empty() { "-".to_owned() } else { text });
    let all = part.hugetlb.iter().fold(part.rss, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let values = vec![
        word(size(part.mapped)),
        word(size(all)),
        word(size(part.base())),
        word(size(part.transparent)),
        or_none(hugetlb),
        or_none(nodes),
    ];
    Row { label: part.segment.name().to_owned(), values }
}

fn mapping_row(mapping: &Mapping) -> Row {
    let name = if mapping.path.is_empty() { format!("at {:#x}", mapping.start) } else { mapping.path.clone() };
    let values = vec![
        word(size(mapping.bytes())),
        word(size(in_memory(mapping))),
        word(size(mapping.kernel_page)),
        word(size(mapping.mmu_page)),
        word(size(mapping.transparent())),
        word(mapping.segment.name()),
    ];
    Row { label: name, values }
}
