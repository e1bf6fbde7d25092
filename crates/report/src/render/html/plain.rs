//! Text sections.

use maud::{Markup, html};

use crate::document::{Body, Line, Row, Section, Value};
use crate::render::quantity::{estimate, quantity, share};

/// Returns the section; empty for charts and tables by thread.
pub fn draw(section: &Section) -> Markup {
    let title = &section.title;
    match &section.body {
        Body::Facts(rows) => html! {
            div.row {
                h3 { (title) }
                dl.facts { @for row in rows { div { dt { (row.label) } dd { (value(row.values.first())) } } } }
            }
        },
        Body::Notes(notes) => html! { h3 { (title) } ul { @for note in notes { li { (note) } } } },
        Body::Table { headings, rows } => rows_under(title, headings, rows.iter()),
        Body::Listing { headings, lines } => {
            let rows = lines.iter().filter_map(|line| match line {
                Line::Row(row) => Some(row),
                Line::Caption(_) => None,
            });
            rows_under(title, headings, rows)
        }
        Body::Verdict(verdict) => super::verdict::draw(verdict),
        _ => html! {},
    }
}

fn rows_under<'a>(title: &str, headings: &[String], rows: impl Iterator<Item = &'a Row>) -> Markup {
    html! {
        h3 { (title) }
        div.scroll {
            table.plain {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody { @for row in rows { tr { th scope="row" { (row.label) } @for v in &row.values { td { (value(Some(v))) } } } } }
            }
        }
    }
}

fn value(value: Option<&Option<Value>>) -> String {
    match value {
        Some(Some(Value::Number(number, unit))) => quantity(*number, unit),
        // A line may break before the half width, not in it.
        Some(Some(Value::Estimate(number, unit, half_width))) => {
            estimate(*number, unit, *half_width).replace(" %", "\u{a0}%")
        }
        Some(Some(Value::Text(text))) => text.clone(),
        Some(Some(Value::Share(fraction))) => share(*fraction),
        Some(None) | None => "–".to_owned(),
    }
}
