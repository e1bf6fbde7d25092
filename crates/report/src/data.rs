//! Data objects of a run: which data its misses are in, and which lines threads share.

use fxscope_record::{DataCounts, DataLine, DataObject, DataUser, Run};
use serde_json::{Value as Json, json};

use crate::document::{Document, Row, Section, Value};
use crate::sections::{plain, title};

/// Objects and lines that the terminal lists.
const SHOWN: usize = 20;

/// How to read the tables.
const READING: &str = "Refills are lines brought into a cache for accesses and prefetches to the object, misses those that an access itself had \
                       to request. A transfer moves a line from one thread to another, of which at least one writes. A line is falsely \
                       shared if no thread touches bytes that another one writes: give each thread lines of its own. Bytes are those of \
                       accesses that requested the line.";

/// Returns the name of an object with what it is and the line of the call that made it.
#[must_use]
pub fn name(object: &DataObject) -> String {
    let source = object.source.as_ref().map(|source| {
        let file = source.file.rsplit('/').next().unwrap_or_default();
        format!(" ({file}:{})", source.line)
    });
    plain(&format!("{} {}{}", object.kind.name(), object.name, source.unwrap_or_default()))
}

/// Returns the data objects of a run as tables; `None` if the record has none.
#[must_use]
pub fn document(run: &Run) -> Option<Document> {
    let data = &run.profile.data;
    if data.objects.is_empty() {
        return None;
    }
    let number = |n: u64| Some(Value::number(n as f64, "count"));
    let size = |bytes: u64| (bytes > 0).then(|| Value::number(bytes as f64, "B"));
    let misses = |object: &DataObject| {
        let DataCounts { l1_refills, l1_misses, l2_refills, l2_misses, walks, .. } = object.counts;
        let counts = [l1_refills, l1_misses, l2_refills, l2_misses, walks].map(number);
        Row { label: name(object), values: std::iter::once(size(object.bytes)).chain(counts).collect() }
    };
    let shared = |object: &DataObject| {
        let c = &object.counts;
        let counts =
            [c.upgrades, c.shared_lines, c.lines_across_cmgs, c.transfers, c.falsely_shared_lines, c.false_transfers];
        Row { label: name(object), values: counts.map(number).to_vec() }
    };
    let all = data.objects.iter().take(SHOWN);
    let of_several = data.objects.iter().filter(|object| object.counts.shared_lines > 0).take(SHOWN);
    let headings = ["Data", "bytes", "L1D refills", "misses", "L2 refills", "misses", "TLB walks"];
    let mut sections = vec![Section::table("Misses", headings, all.map(misses).collect())];
    let rows: Vec<Row> = of_several.map(shared).collect();
    if !rows.is_empty() {
        let headings = ["Shared data", "upgrades", "lines", "across CMGs", "transfers", "false: lines", "transfers"];
        sections.push(Section::table("Sharing", headings, rows));
    }
    let rows: Vec<Row> = data.lines.iter().take(SHOWN).map(|line| of_line(run, line)).collect();
    if !rows.is_empty() {
        sections.push(Section::table("Lines", ["Line", "transfers", "threads and their bytes"], rows));
    }
    sections.push(Section::notes("Notes", vec![READING.to_owned()]));
    Some(Document { title: title(run), columns: Vec::new(), sections })
}

/// Threads of a line that are listed.
const USERS: usize = 4;

fn of_line(run: &Run, line: &DataLine) -> Row {
    let object = run.profile.data.objects.get(line.object as usize).map_or_else(String::new, name);
    let mut users: Vec<String> = line.users.iter().take(USERS).map(of_user).collect();
    if line.users.len() > USERS {
        users.push(format!("{} more", line.users.len() - USERS));
    }
    let kind = if line.is_falsely_shared { "false sharing: " } else { "" };
    let values = vec![
        Some(Value::number(line.transfers as f64, "count")),
        Some(Value::text(format!("{kind}{}", users.join(", ")))),
    ];
    Row { label: format!("{object} +{:#x}", line.offset), values }
}

fn of_user(user: &DataUser) -> String {
    let range = |(first, last): (u32, u32)| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    let bytes = match (user.written, user.touched) {
        (Some(written), Some(touched)) if written != touched => {
            format!("{} (writes {})", range(touched), range(written))
        }
        (Some(written), _) => format!("writes {}", range(written)),
        (None, touched) => format!("reads {}", touched.map_or_else(String::new, range)),
    };
    format!("{}.{} {bytes}", user.process, user.thread)
}

/// Returns the data objects of a run for programs.
#[must_use]
pub fn json(run: &Run) -> Json {
    let data = &run.profile.data;
    json!({
        "objects": data.objects.iter().map(object).collect::<Vec<_>>(),
        "lines": data.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

fn object(object: &DataObject) -> Json {
    let c = &object.counts;
    json!({
        "kind": object.kind.name(),
        "name": object.name,
        "file": object.source.as_ref().map(|source| &source.file),
        "line": object.source.as_ref().map(|source| source.line),
        "blocks": object.blocks,
        "bytes": object.bytes,
        "l1_refills": c.l1_refills,
        "l1_misses": c.l1_misses,
        "l2_refills": c.l2_refills,
        "l2_misses": c.l2_misses,
        "tlb_walks": c.walks,
        "upgrades": c.upgrades,
        "shared_lines": c.shared_lines,
        "lines_across_cmgs": c.lines_across_cmgs,
        "transfers": c.transfers,
        "falsely_shared_lines": c.falsely_shared_lines,
        "false_transfers": c.false_transfers,
    })
}

fn line(line: &DataLine) -> Json {
    let range = |range: Option<(u32, u32)>| range.map(|(first, last)| [first, last]);
    let user = |user: &DataUser| {
        json!({
            "process": user.process,
            "thread": user.thread,
            "cmg": user.cmg,
            "touched": range(user.touched),
            "written": range(user.written),
        })
    };
    json!({
        "object": line.object,
        "offset": line.offset,
        "transfers": line.transfers,
        "falsely_shared": line.is_falsely_shared,
        "users": line.users.iter().map(user).collect::<Vec<_>>(),
    })
}
