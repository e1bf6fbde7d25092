//! Experiments of the guide as linked pages.

use maud::{DOCTYPE, Markup, html};

use super::{chart, head, library, plain};
use crate::document::{Bars, Document, Plot, Section};
use crate::render::palette;

/// A page of an experiment.
pub struct GuidePage {
    /// What it is about, above the charts.
    pub lead: Vec<Section>,
    /// Its tables and sentences.
    pub document: Document,
    /// Its curves.
    pub plots: Vec<Plot>,
    /// Its bars.
    pub bars: Vec<Bars>,
    /// Links to other pages: their files and titles.
    pub links: Vec<(String, String)>,
}

/// A chapter in the index.
pub struct GuideChapter {
    /// Title.
    pub title: String,
    /// The source.
    pub source: String,
    /// Its experiments.
    pub entries: Vec<GuideEntry>,
}

/// An experiment in the index.
pub struct GuideEntry {
    /// The file of its page.
    pub file: String,
    /// Its name.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Number and mean error, percent, of figures that were not fitted; `None` without such figures.
    pub checked: Option<(usize, f64)>,
    /// The same of fitted figures.
    pub fitted: Option<(usize, f64)>,
    /// What else there is to say about it.
    pub state: String,
}

/// Returns the page of an experiment: charts, tables and sentences.
#[must_use]
pub fn page(page: &GuidePage) -> String {
    let GuidePage { lead, document, plots, bars, links } = page;
    let has_charts = !plots.is_empty() || !bars.is_empty();
    let body = html! {
        h2.spoken { "Results" }
        @for section in lead { (plain::draw(section)) }
        @if has_charts {
            div.charts {
                @for plot in plots { (chart::curves(plot)) }
                @for bars in bars { (chart::bars(bars)) }
            }
        }
        @for section in &document.sections { (plain::draw(section)) }
    };
    let nav = html! {
        @if !links.is_empty() {
            nav { p { @for (i, (file, title)) in links.iter().enumerate() { @if i > 0 { " · " } a href=(file) { (title) } } } }
        }
    };
    whole(&document.title, &nav, &body, has_charts)
}

/// Returns the index of pages: the errors of all figures, and the experiments by chapter.
#[must_use]
pub fn index(title: &str, chapters: &[GuideChapter], sections: &[Section]) -> String {
    let body = html! {
        h2.spoken { "Summary" }
        @for section in sections { (plain::draw(section)) }
        @for chapter in chapters { (of_chapter(chapter)) }
    };
    whole(title, &html! {}, &body, false)
}

fn of_chapter(chapter: &GuideChapter) -> Markup {
    html! {
        h2 { (chapter.title) }
        p.soft { (chapter.source) }
        ul {
            @for entry in &chapter.entries {
                li { a href=(entry.file) { (entry.id) } " " (entry.title) br; span.soft { (errors(entry)) } }
            }
        }
    }
}

/// The errors of an experiment, and what else there is to say about it.
fn errors(entry: &GuideEntry) -> String {
    let error = |what: &str, error: Option<(usize, f64)>| {
        let (number, mean) = error?;
        Some(format!("{what} {mean:.1} % ({number} {})", if number == 1 { "figure" } else { "figures" }))
    };
    let parts = [error("mean error", entry.checked), error("of fitted ones", entry.fitted)];
    let state = (!entry.state.is_empty()).then(|| entry.state.clone());
    let words: Vec<String> = parts.into_iter().flatten().chain(state).collect();
    if words.is_empty() { "no published figure".to_owned() } else { words.join(", ") }
}

fn whole(title: &str, nav: &Markup, body: &Markup, has_charts: bool) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title, &palette::rules()))
            body {
                header { h1 { (title) } (nav) }
                main id="main" { (body) }
                footer { p { "Made by fxscope." } @if has_charts { (library::licenses()) } }
                @if has_charts { (library::scripts()) }
            }
        }
    };
    page.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_links_every_experiment_with_its_errors() {
        let entry = GuideEntry {
            file: "a.b.html".to_owned(),
            id: "a.b".to_owned(),
            title: "Distance".to_owned(),
            checked: Some((8, 4.25)),
            fitted: None,
            state: String::new(),
        };
        let chapter = GuideChapter { title: "A".to_owned(), source: "guide".to_owned(), entries: vec![entry] };
        let text = index("Experiments", &[chapter], &[]);
        assert!(text.contains("<a href=\"a.b.html\">a.b</a>"), "{text}");
        assert!(text.contains("mean error 4.2 % (8 figures)</span>"), "{text}");
        assert!(!text.contains("data-chart"), "no chart, no library");
    }
}
