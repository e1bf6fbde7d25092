//! An experiment as a page: plots, tables and notes.

use maud::{DOCTYPE, html};

use super::{chart, head, library, plain};
use crate::document::{Document, Plot};
use crate::render::palette;

/// Returns a page with plots, followed by a document's sections.
#[must_use]
pub fn draw(document: &Document, plots: &[Plot]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&document.title, &palette::rules()))
            body {
                header { h1 { (document.title) } }
                main id="main" {
                    // Titles of sections are of the third level; readers of headings expect one of the second before them.
                    h2.spoken { "Results" }
                    @if !plots.is_empty() { div.charts { @for plot in plots { (chart::curves(plot)) } } }
                    @for section in &document.sections { (plain::draw(section)) }
                }
                footer { p { "Made by fxscope." } @if !plots.is_empty() { (library::licenses()) } }
                @if !plots.is_empty() { (library::scripts()) }
            }
        }
    };
    page.into_string()
}
