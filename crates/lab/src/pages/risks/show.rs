//! Risks as a document.

use fxscope_machine::Spec;
use fxscope_record::Run;
use fxscope_report::document::{Body, Document, Line, Row, Section, Value};

use super::{Kind, Places, Risk, Risks};

/// Most instructions that the text shows.
const LISTED: usize = 20;

/// Returns the document about the risks of a run.
pub(super) fn document(run: &Run, spec: &Spec, risks: &Risks) -> Document {
    let mut sections = Vec::new();
    if risks.risks.is_empty() {
        sections.push(Section::notes(
            "Found",
            vec!["None found: no access with a false mask addressed a page that does not exist.".into()],
        ));
    } else {
        sections.push(listing(&risks.risks));
        sections.push(Section::notes("Advice", risks.risks.iter().take(LISTED).map(advice).collect()));
    }
    sections.push(Section::notes("Notes", remarks(spec, risks)));
    let title = format!("Accesses with a false mask: {} on {}", run.program(), run.machine);
    Document::of(title, sections)
}

fn listing(risks: &[Risk]) -> Section {
    let headings = ["instruction", "executed", "no page", "none active", "unmapped", "untouched", "first", "cycles"];
    let lines = risks.iter().take(LISTED).flat_map(|risk| [Line::Caption(caption(risk)), Line::Row(row(risk))]);
    let body = Body::Listing { headings: headings.map(str::to_owned).to_vec(), lines: lines.collect() };
    Section { title: "Found".to_owned(), body }
}

/// Most characters of a caption and of a location: names may be long.
const CAPTION: usize = 94;
const PLACE: usize = 60;

fn cut(text: String, most: usize) -> String {
    if text.chars().count() <= most { text } else { text.chars().take(most - 1).chain(['~']).collect() }
}

/// Returns the location and kind of an instruction.
fn caption(risk: &Risk) -> String {
    let line = file_and_line(risk).map_or_else(String::new, |line| format!(" ({line})"));
    let place = cut(format!("{}{line}", place(risk)), PLACE);
    cut(format!("{place}: {}", risk.text.as_deref().unwrap_or("not readable")), CAPTION)
}

/// Returns the line without the folders of its file.
fn file_and_line(risk: &Risk) -> Option<&str> {
    risk.line.as_deref().map(|line| line.rsplit('/').next().unwrap_or(line))
}

fn place(risk: &Risk) -> String {
    match risk.function.as_str() {
        "" => format!("{:#x}", risk.address),
        function => format!("{function}+{:#x}", risk.offset),
    }
}

fn row(risk: &Risk) -> Row {
    let number = |n: u64| Some(Value::number(n as f64, "count"));
    let pages = |places: &Places| Some(Value::Text(places.pages.to_string()));
    let first = risk.unmapped.first.or(risk.untouched.first).unwrap_or_default();
    let values = vec![
        number(risk.executions),
        number(risk.accesses),
        number(risk.none_active),
        pages(&risk.unmapped),
        pages(&risk.untouched),
        Some(Value::Text(format!("{first:#x}"))),
        Some(Value::number(risk.cycles as f64, "cycles")),
    ];
    Row { label: format!("{:#x}", risk.address), values }
}

/// Returns advice on an instruction.
fn advice(risk: &Risk) -> String {
    let access = match (risk.kind, risk.indexed) {
        (Kind::Load, false) => "load",
        (Kind::Store, false) => "store",
        (Kind::Load, true) => "gather",
        (Kind::Store, true) => "scatter",
    };
    let what = if risk.unmapped.accesses > 0 { "allocate" } else { "write once" };
    let place = file_and_line(risk).map_or_else(|| place(risk), str::to_owned);
    if risk.none_active == 0 {
        return format!(
            "{place}: some elements of each {access} are active. In the last iteration of a loop this costs little; \
             extend the array by one vector. Otherwise {what} the memory that the others address."
        );
    }
    format!(
        "{place}: {what} the memory that this {access} addresses before the loop; or move the condition out of the loop, \
         with one loop per value; or compile this loop without turning conditions into masks."
    )
}

/// Explains the numbers.
fn remarks(spec: &Spec, risks: &Risks) -> Vec<String> {
    let mut remarks = vec![format!(
        "Pages are counted in units of {} KiB. 'no page': accesses that addressed missing pages; 'none active': \
         those of them without any active element; 'unmapped': pages that do not exist; 'untouched': pages that \
         exist but are not allocated before the first touch.",
        spec.pages.normal >> 10
    )];
    if risks.risks.is_empty() {
        remarks.clear();
    } else if risks.risks.len() > LISTED {
        remarks.push(format!("{} more instructions are in --json.", risks.risks.len() - LISTED));
    }
    if risks.by_design > 0 {
        remarks.push(format!(
            "First-fault and non-fault loads addressed missing pages {} times: that is their purpose, so they are left out.",
            risks.by_design
        ));
    }
    remarks
}
