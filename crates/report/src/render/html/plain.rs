//! Text sections.

use maud::{Markup, html};

use super::{answers, fold, summary};
use crate::document::{Body, Row, Section, Value};
use crate::render::quantity::{estimate, quantity, share};

/// Returns the section; empty for charts, tables by thread, and notes without any.
pub fn draw(section: &Section) -> Markup {
    let title = &section.title;
    match &section.body {
        Body::Facts(rows) => html! {
            div.row {
                h3 { (title) }
                dl.facts { @for row in rows { div { dt { (row.label) } dd { (value(row.values.first())) } } } }
            }
        },
        Body::Notes(notes) if notes.is_empty() => html! {},
        Body::Notes(notes) => html! { h3 { (title) } ul { @for note in notes { li { (note) } } } },
        Body::Table { headings, rows } => rows_under(title, headings, rows.iter()),
        Body::Listing { headings, lines } => rows_under(title, headings, summary::rows(lines)),
        Body::Verdict(verdict) => answers::draw_verdict(verdict, &html! {}, &html! {}),
        _ => html! {},
    }
}

/// Returns a table that can be folded; empty for other sections.
pub fn folded(section: &Section, state: fold::State) -> Markup {
    let title = &section.title;
    match &section.body {
        Body::Table { headings, rows } => {
            fold::draw(title, &summary::of_rows(headings, rows.iter()), state, &table(title, headings, rows.iter()))
        }
        Body::Listing { headings, lines } => {
            let rows = || summary::rows(lines);
            fold::draw(title, &summary::of_rows(headings, rows()), state, &table(title, headings, rows()))
        }
        _ => html! {},
    }
}

fn rows_under<'a>(title: &str, headings: &[String], rows: impl Iterator<Item = &'a Row>) -> Markup {
    html! { h3 { (title) } (table(title, headings, rows)) }
}

fn table<'a>(title: &str, headings: &[String], rows: impl Iterator<Item = &'a Row>) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table.plain {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody { @for row in rows { tr { (label(&row.label)) @for v in &row.values { td { (value(Some(v))) } } } } }
            }
        }
    }
}

/// The heading of a row; rows that continue the one above have none.
fn label(label: &str) -> Markup {
    html! { @if label.is_empty() { td {} } @else { th scope="row" { (label) } } }
}

/// Returns a value's text; a dash if it is unknown.
pub fn value(value: Option<&Option<Value>>) -> String {
    value.and_then(Option::as_ref).map_or_else(|| "–".to_owned(), text)
}

/// Returns the text of a value that is known.
pub fn text(value: &Value) -> String {
    match value {
        Value::Number(number, unit) => quantity(*number, unit),
        // A line may break before the half width, not in it.
        Value::Estimate(number, unit, half_width) => estimate(*number, unit, *half_width).replace(" %", "\u{a0}%"),
        Value::Text(text) => text.clone(),
        Value::Share(fraction) => share(*fraction),
    }
}
