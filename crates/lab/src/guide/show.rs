//! Outcomes as text and JSON.

use fxscope_report::digits;
use fxscope_report::document::{Body, Document, Row, Section};
use serde_json::{Value as Json, json};

use super::{Cell, Chapter, Experiment, Guide, Outcome, Shown};

/// Columns of a table up to which published, simulated and difference stand side by side.
const SIDE_BY_SIDE: usize = 2;
/// A cell without a figure.
const NOTHING: &str = "-";

/// Kinds of figures in a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Published,
    Simulated,
    Difference,
}

impl Part {
    const ALL: [Part; 3] = [Part::Published, Part::Simulated, Part::Difference];

    fn word(self) -> &'static str {
        match self {
            Part::Published => "published",
            Part::Simulated => "simulated",
            Part::Difference => "difference",
        }
    }

    /// Returns whether a cell has this figure, or should have it.
    fn is_in(self, cell: &Cell) -> bool {
        match self {
            Part::Published => cell.published.is_some(),
            Part::Simulated => cell.run.is_some(),
            Part::Difference => cell.error.is_some(),
        }
    }

    fn text(self, cell: &Cell) -> String {
        let text = match self {
            Part::Published => cell.published.map(digits),
            Part::Simulated if cell.failure.is_some() => Some("failed".to_owned()),
            Part::Simulated => cell.simulated.map(digits),
            Part::Difference => cell.error.map(|error| difference(error, cell)),
        };
        text.unwrap_or_else(|| NOTHING.to_owned())
    }
}

/// Formats a difference, without a negative zero.
fn difference(error: f64, cell: &Cell) -> String {
    let unit = if cell.is_points() { "pt" } else { "%" };
    let text = format!("{error:+.1} {unit}");
    if text.starts_with("-0.0") { text.replacen('-', "+", 1) } else { text }
}

/// Returns a unit as tables show it.
pub(super) fn unit(unit: &str) -> &str {
    match unit {
        "points" => "%",
        "ratio" | "x" => "ratio",
        unit => unit,
    }
}

impl Shown<'_> {
    /// Returns the tables of all figures, each with a title: one if it has few columns; otherwise one each for published and
    /// simulated figures and for differences, with the source's columns.
    fn sections(&self) -> Vec<Section> {
        let columns = 0..self.table.columns.len();
        let all: Vec<(usize, Part)> = columns.flat_map(|column| Part::ALL.map(|part| (column, part))).collect();
        let shown: Vec<(usize, Part)> =
            all.into_iter().filter(|&(column, part)| self.has(column, |cell| part.is_in(cell))).collect();
        if self.table.columns.len() <= SIDE_BY_SIDE {
            let title = self.title(None) + self.about_columns(&shown);
            return vec![self.section(&title, &shown, |column, part| self.heading(column, part))];
        }
        let title = |column: usize, _| self.table.columns[column].title.clone();
        let of = |part: Part| shown.iter().filter(|one| one.1 == part).copied().collect::<Vec<_>>();
        let parts = Part::ALL.into_iter().map(|part| (part, of(part))).filter(|(_, of)| !of.is_empty());
        parts.map(|(part, of)| self.section(&self.title(Some(part)), &of, title)).collect()
    }

    fn title(&self, part: Option<Part>) -> String {
        let unit = self.unit().map(unit).filter(|_| part != Some(Part::Difference));
        let words = [Some(self.table.title.as_str()), part.map(Part::word), unit];
        words.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// Returns what the title adds if columns with titles are published figures.
    fn about_columns(&self, shown: &[(usize, Part)]) -> &'static str {
        let is_titled =
            |&(column, part): &(usize, Part)| part == Part::Published && !self.table.columns[column].title.is_empty();
        if shown.iter().any(is_titled) { "; published, then simulated" } else { "" }
    }

    fn heading(&self, column: usize, part: Part) -> String {
        match (&*self.table.columns[column].title, part) {
            ("", part) => part.word().to_owned(),
            (_, Part::Difference) => part.word().to_owned(),
            // Its simulated figures and their difference stand beside it.
            (title, Part::Published) => title.to_owned(),
            (title, Part::Simulated) if !self.has(column, |cell| cell.published.is_some()) => {
                format!("{title} simulated")
            }
            (_, Part::Simulated) => part.word().to_owned(),
        }
    }

    fn section(&self, title: &str, shown: &[(usize, Part)], heading: impl Fn(usize, Part) -> String) -> Section {
        let row = |(key, cells): (usize, &Vec<Cell>)| {
            let texts: Vec<String> = shown.iter().map(|&(column, part)| part.text(&cells[column])).collect();
            texts.iter().any(|text| text != NOTHING).then(|| Row::of_texts(self.label(key), texts))
        };
        let headings = std::iter::once(self.table.rows.clone()).chain(shown.iter().map(|&(c, p)| heading(c, p)));
        Section::table(title, headings, self.cells.iter().enumerate().filter_map(row).collect())
    }

    /// Returns the label of a row: its key, with the unit if rows have different ones.
    pub(super) fn label(&self, key: usize) -> String {
        let text = &self.table.keys[key];
        match self.unit_of_row(key).filter(|_| self.unit().is_none()) {
            Some(of_row) => format!("{text}, {}", unit(of_row)),
            None => text.clone(),
        }
    }

    fn json(&self) -> Json {
        let row = |(key, cells): (&String, &Vec<Cell>)| {
            let of = self.table.columns.iter().zip(cells).map(|(column, cell)| (column.title.clone(), cell_json(cell)));
            json!({ "key": key, "cells": of.map(|(column, cell)| json!({ "column": column, "figure": cell })).collect::<Vec<_>>() })
        };
        let rows: Vec<Json> = self.table.keys.iter().zip(&self.cells).map(row).collect();
        json!({ "title": self.table.title, "across": self.table.rows, "rows": rows })
    }
}

fn cell_json(cell: &Cell) -> Json {
    json!({
        "row": cell.row,
        "published": cell.published,
        "simulated": cell.simulated,
        "unit": unit(&cell.unit),
        "error": cell.error,
        "relative_error": cell.relative,
        "fitted": cell.fitted,
        "run": cell.run,
        "failure": cell.failure,
    })
}

impl Outcome<'_> {
    /// Returns the experiment as a document: tables, then what they show.
    #[must_use]
    pub fn document(&self) -> Document {
        Document::of(self.title(), [self.results(), self.answer(), self.about()].concat())
    }

    pub(super) fn title(&self) -> String {
        format!("{}: {}", self.experiment.id, self.experiment.title)
    }

    /// Returns the question and what the experiment shows.
    pub(super) fn answer(&self) -> Vec<Section> {
        let Experiment { question, shows, .. } = self.experiment;
        [("Question", question), ("Shows", shows)]
            .map(|(title, text)| Section::notes(title, vec![text.clone()]))
            .to_vec()
    }

    /// Returns its tables.
    pub(super) fn results(&self) -> Vec<Section> {
        let mut sections: Vec<Section> =
            self.left_out.iter().map(|why| Section::notes("Left out", vec![why.clone()])).collect();
        sections.extend(self.tables.iter().flat_map(Shown::sections));
        if let Some(Ok(sheet)) = &self.laboratory {
            sections.extend(sheet.document().sections);
        }
        sections
    }

    /// Returns what is scaled, and where the figures come from.
    pub(super) fn about(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        if !self.experiment.scaled.is_empty() {
            sections.push(Section::notes("Scaled", vec![self.experiment.scaled.clone()]));
        }
        let notes = self.about_figures();
        if !notes.is_empty() {
            sections.push(Section::notes("Figures", notes));
        }
        sections.push(Section::notes("Source", vec![self.chapter.source.clone()]));
        sections
    }

    /// Returns the document for a terminal, where tables have no titles: a line above each has its title.
    #[must_use]
    pub fn lines(&self) -> Document {
        let Document { title, sections, .. } = self.document();
        let with_title = |section: Section| {
            let is_table = matches!(section.body, Body::Table { .. });
            let above = Section::notes("Table", vec![section.title.clone()]);
            is_table.then_some(above).into_iter().chain([section])
        };
        Document::of(title, sections.into_iter().flat_map(with_title).collect())
    }

    /// Returns the experiment for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let experiment = self.experiment;
        let (laboratory, failure) = match &self.laboratory {
            Some(Ok(sheet)) => (sheet.json(), Json::Null),
            Some(Err(why)) => (Json::Null, json!(why)),
            None => (Json::Null, Json::Null),
        };
        json!({
            "id": experiment.id,
            "title": experiment.title,
            "source": self.chapter.source,
            "question": experiment.question,
            "shows": experiment.shows,
            "scaled": experiment.scaled,
            "items": experiment.items,
            "tables": self.tables.iter().map(Shown::json).collect::<Vec<_>>(),
            "laboratory": laboratory,
            "failure": failure,
            "left_out": self.left_out,
        })
    }

    /// Returns why figures are missing: one sentence for each failed run.
    #[must_use]
    pub fn failures(&self) -> Vec<String> {
        let cells = self.tables.iter().flat_map(|shown| shown.cells.iter().flatten());
        let mut failures: Vec<String> = cells.filter_map(|cell| cell.failure.clone()).collect();
        failures.extend(self.laboratory.as_ref().and_then(|laboratory| laboratory.as_ref().err().cloned()));
        failures.dedup();
        failures
    }
}

/// Returns the list of chapters and experiments.
#[must_use]
pub fn list(guide: &Guide) -> Vec<Document> {
    let chapter = |chapter: &Chapter| {
        let note = |experiment: &Experiment| {
            let Experiment { id, title, items, seconds, .. } = experiment;
            Section::notes(time(*seconds), vec![format!("{id}: {title} ({})", items.join(" "))])
        };
        let sections = chapter.experiments.iter().map(note).collect();
        Document::of(format!("{} ({})", chapter.title, chapter.source), sections)
    };
    guide.chapters.iter().map(chapter).collect()
}

/// Formats the time that an experiment takes.
fn time(seconds: u32) -> String {
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}
