//! Removes control characters from documents: names of programs, files, regions and functions must not affect a
//! terminal.

use fxscope_host::text::printable;

use crate::verdict::Verdict;

use super::{Body, Document, Line, Row, Section, Value};

impl Document {
    /// Returns the document, safe for a terminal.
    pub(crate) fn printable(mut self) -> Document {
        clean(&mut self.title);
        self.columns.iter_mut().for_each(clean);
        self.sections.iter_mut().for_each(section);
        self
    }
}

fn clean(text: &mut String) {
    if let std::borrow::Cow::Owned(cleaned) = printable(text) {
        *text = cleaned;
    }
}

fn section(section: &mut Section) {
    clean(&mut section.title);
    match &mut section.body {
        Body::Facts(rows) => rows.iter_mut().for_each(row),
        Body::Parts(parts) => parts.iter_mut().for_each(|part| clean(&mut part.label)),
        Body::Table { headings, rows } => {
            headings.iter_mut().for_each(clean);
            rows.iter_mut().for_each(row);
        }
        Body::Listing { headings, lines } => {
            headings.iter_mut().for_each(clean);
            for line in lines {
                match line {
                    Line::Caption(text) => clean(text),
                    Line::Row(of) => row(of),
                }
            }
        }
        Body::Verdict(of) => verdict(of),
        Body::Notes(notes) => notes.iter_mut().for_each(clean),
        // Their texts come from the machine and the metrics.
        Body::Grid(_) | Body::Stack(_) | Body::Gauges(_) | Body::Roofline(_) | Body::Matrix(_) | Body::Curves(_) => {}
    }
}

/// Names of functions, source text and commands come from programs; what rules say does not.
fn verdict(verdict: &mut Verdict) {
    for hot in &mut verdict.hottest {
        clean(&mut hot.function);
        if let Some(line) = &mut hot.line {
            clean(&mut line.file);
            line.text.iter_mut().for_each(clean);
        }
    }
    verdict.remedies.iter_mut().filter_map(|remedy| remedy.command.as_mut()).for_each(clean);
}

fn row(row: &mut Row) {
    clean(&mut row.label);
    for value in row.values.iter_mut().flatten() {
        if let Value::Text(text) = value {
            clean(text);
        }
    }
}
