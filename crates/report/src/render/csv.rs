//! Tables as CSV with one value per line.

use std::borrow::Cow;

use crate::document::{Body, Grid, Place, Report};

/// The columns of the file, in order.
pub const COLUMNS: [&str; 14] = [
    "run", "region", "scope", "process", "cmg", "thread", "cpu", "table", "id", "name", "unit", "value", "label",
    "settings",
];

/// Returns all known values of all tables, one per line, after a header line ([`COLUMNS`]).
#[must_use]
pub fn render(reports: &[Report]) -> Vec<u8> {
    let mut out = String::new();
    line(&mut out, &COLUMNS);
    for (run, report) in (1..).zip(reports) {
        for region in &report.regions {
            for section in &region.sections {
                if let Body::Grid(grid) = &section.body {
                    let run = [&format!("{run}"), &report.label, &report.settings];
                    table(&mut out, run.map(String::as_str), &region.name, grid);
                }
            }
        }
    }
    out.into_bytes()
}

/// Appends a line of comma-separated fields (RFC 4180, but with a single line feed at the end of a line).
pub fn line(out: &mut String, fields: &[&str]) {
    for (i, text) in fields.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&field(text));
    }
    out.push('\n');
}

/// Escapes a field. Spreadsheets take some names of programs and files for formulas: those are quoted and prefixed with
/// an apostrophe, as OWASP recommends (CSV Injection). Numbers remain unchanged.
fn field(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) && text.parse::<f64>().is_err();
    if !formula && !text.contains([',', '"', '\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let apostrophe = if formula { "'" } else { "" };
    Cow::Owned(format!("\"{apostrophe}{}\"", text.replace('"', "\"\"")))
}

fn table(out: &mut String, [run, label, settings]: [&str; 3], region: &str, grid: &Grid) {
    for record in &grid.records {
        let [scope, process, cmg, thread, cpu] = place(record.place);
        for (heading, value) in grid.headings.iter().zip(&record.values) {
            let Some(value) = value else { continue };
            let value = value.to_string();
            let fields = [
                run,
                region,
                &scope,
                &process,
                &cmg,
                &thread,
                &cpu,
                &grid.id,
                &heading.id,
                &heading.title,
                &heading.unit,
                &value,
                label,
                settings,
            ];
            line(out, &fields);
        }
    }
}

/// Scope, process, CMG, thread and CPU; empty where not applicable.
fn place(place: Place) -> [String; 5] {
    let none = String::new;
    match place {
        Place::Thread { process, thread, cpu } => {
            ["thread".to_owned(), process.number.to_string(), none(), thread.to_string(), cpu.to_string()]
        }
        Place::Cmg { process, cmg } => ["cmg".to_owned(), process.number.to_string(), cmg.to_string(), none(), none()],
        Place::Process(process) => ["process".to_owned(), process.number.to_string(), none(), none(), none()],
        Place::Total => ["total".to_owned(), none(), none(), none(), none()],
        Place::HalfWidth => ["half_width".to_owned(), none(), none(), none(), none()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_look_like_formulas_are_quoted_with_an_apostrophe() {
        for (text, expected) in [
            ("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""),
            ("=1+1", "\"'=1+1\""),
            ("+cmd|' /C calc'!A0", "\"'+cmd|' /C calc'!A0\""),
            ("-2+3", "\"'-2+3\""),
            ("@SUM(A1)", "\"'@SUM(A1)\""),
            ("\t=1", "\"'\t=1\""),
            ("\r=1", "\"'\r=1\""),
        ] {
            assert_eq!(field(text), expected);
        }
    }

    #[test]
    fn numbers_and_other_texts_stay_as_they_are() {
        for text in ["-1.5", "+3", "-1e-9", "0", "all", "a=b", "loop 1-2", "", "µs"] {
            assert_eq!(field(text), text);
        }
        assert_eq!(field("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(field("two\nlines"), "\"two\nlines\"");
    }
}
