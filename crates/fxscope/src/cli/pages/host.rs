//! `fxscope pages host`: what this host offers, and what a process of it got.

use std::path::PathBuf;
use std::process::ExitCode;

use fxscope::hostinfo::memory::{self, Host, Mapping, Node, Pool, Process, SegmentUse, Thp, read, size};
use fxscope::report::document::{Body, Document, Row, Section, Value};
use fxscope::report::render::terminal;
use serde_json::json;

use super::super::output::Target;
use super::super::{Outcome, print, style};

/// Show which page sizes this Linux host offers, and with --pid what a running process really got.
///
/// Mappings of a process are shown to its own user and to root.
#[derive(clap::Args)]
pub struct Args {
    /// The process to look at.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Write all that was read, with the findings, as JSON to this file, which is replaced as a whole, or to standard
    /// output (-) in place of the text.
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
}

/// Most mappings that are listed.
const LISTED: usize = 8;

/// Shows the host, and the process.
pub(super) fn host(args: &Args) -> Outcome {
    let target = args.json.as_deref().map(Target::check).transpose()?;
    let host = read::host();
    let process = args.pid.map(read::process).transpose()?;
    let instead = matches!(target, Some(Target::StandardOutput));
    if let Some(target) = target {
        target.write(&all(&host, process.as_ref()))?;
    }
    if !instead {
        let mut documents = vec![about_host(&host)];
        documents.extend(process.map(|process| about_process(&host, &process)));
        print(terminal::render(&documents, style(&std::io::stdout())))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn all(host: &Host, process: Option<&Process>) -> serde_json::Value {
    let mut all = json!({ "host": host, "host_findings": memory::about_host(host) });
    if let Some(process) = process {
        all["process"] = json!(process);
        all["process_findings"] = json!(memory::about_process(host, process));
    }
    all
}

fn word(text: impl Into<String>) -> Option<Value> {
    Some(Value::Text(text.into()))
}

fn count(number: Option<u64>) -> Option<Value> {
    number.map(|number| Value::Text(number.to_string()))
}

fn facts(title: &str, facts: impl IntoIterator<Item = (String, String)>) -> Section {
    let row = |(label, value): (String, String)| Row { label, values: vec![word(value)] };
    Section { title: title.to_owned(), body: Body::Facts(facts.into_iter().map(row).collect()) }
}

fn table(headings: &[&str], rows: Vec<Row>) -> Section {
    let headings = headings.iter().map(|&heading| heading.to_owned()).collect();
    Section { title: String::new(), body: Body::Table { headings, rows } }
}

fn sentences(title: &str, sentences: &[String]) -> Section {
    Section { title: title.to_owned(), body: Body::Notes(sentences.to_vec()) }
}

fn about_host(host: &Host) -> Document {
    let base = host.base_page.map_or_else(|| "not known".to_owned(), size);
    let mut sections = vec![facts("Pages", [("base".to_owned(), base)])];
    sections.extend(host.thp.iter().flat_map(about_thp));
    let pools = host.pools.iter().map(|pool| pool_row(pool, "all"));
    let of_node = |node: &Node| {
        let name = node.number.to_string();
        node.pools.iter().map(|pool| pool_row(pool, &name)).collect::<Vec<Row>>()
    };
    let rows: Vec<Row> = pools.chain(host.nodes.iter().flat_map(of_node)).collect();
    if !rows.is_empty() {
        sections.push(table(&["hugetlbfs", "node", "pages", "free", "promised", "surplus", "more at need"], rows));
    }
    let memory = |node: &Node| {
        let part = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), size);
        (format!("node {}", node.number), format!("{}, {} free", part(node.memory), part(node.free)))
    };
    if !host.nodes.is_empty() {
        sections.push(facts("Memory", host.nodes.iter().map(memory)));
    }
    sections.push(sentences("Findings", &memory::about_host(host)));
    sections.push(sentences("Notes", &host.notes));
    Document { title: "Pages of this host".to_owned(), columns: vec![String::new()], sections }
}

fn about_thp(thp: &Thp) -> Vec<Section> {
    let settings = [("enabled", &thp.enabled), ("defrag", &thp.defrag), ("shared memory", &thp.shmem_enabled)];
    let settings = settings.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let page = thp.page.map(|page| ("page".to_owned(), size(page)));
    let mut sections = vec![facts("THP", page.into_iter().chain(settings))];
    let sizes = thp.sizes.iter().filter_map(|one| Some((size(one.page), one.enabled.clone()?)));
    sections.push(facts("THP sizes", sizes));
    let daemon = thp.khugepaged.iter().map(|(name, n)| (name.replace('_', " "), n.to_string()));
    sections.push(facts("THP later", std::iter::once(("by".to_owned(), "khugepaged".to_owned())).chain(daemon)));
    sections
}

fn pool_row(pool: &Pool, node: &str) -> Row {
    let numbers = [Some(pool.total), pool.free, pool.reserved, pool.surplus, pool.overcommit];
    Row { label: size(pool.page), values: std::iter::once(word(node)).chain(numbers.map(count)).collect() }
}

fn about_process(host: &Host, process: &Process) -> Document {
    let headings = ["segment", "mapped", "in memory", "base pages", "THP", "hugetlbfs", "on nodes"];
    let rows = process.segments.iter().map(segment_row).collect();
    let mut sections = vec![table(&headings, rows)];
    let mut largest: Vec<&Mapping> = process.mappings.iter().filter(|m| in_memory(m) > 0).collect();
    largest.sort_by_key(|mapping| (std::cmp::Reverse(in_memory(mapping)), mapping.start));
    let rows = largest.into_iter().take(LISTED).map(mapping_row).collect();
    sections.push(table(&["largest mappings", "mapped", "in memory", "page", "MMU page", "THP", "segment"], rows));
    sections.push(sentences("Findings", &memory::about_process(host, process)));
    sections.push(sentences("Notes", &process.notes));
    let title = format!("Process {} ({})", process.pid, process.name);
    Document { title, columns: vec![String::new()], sections }
}

/// Bytes in memory, those of hugetlbfs included.
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
