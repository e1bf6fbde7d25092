//! Outcomes as pages: one for each experiment, and an index.

use fxscope_report::document::{Bars, Curve, Document, Plot};
use fxscope_report::render::html::{self, GuideChapter, GuideEntry, GuidePage};

use super::show::unit;
use super::{Cell, Outcome, Shown, Summary};

/// A part of a cell: its name, and its figure.
type Part = (&'static str, fn(&Cell) -> Option<f64>);

/// The index's file.
const INDEX: &str = "index.html";

/// Returns the pages of a site, with the names of their files: the index, and a page for each experiment.
#[must_use]
pub fn site(outcomes: &[Outcome<'_>]) -> Vec<(String, String)> {
    let mut files = vec![(INDEX.to_owned(), index(outcomes))];
    for (i, outcome) in outcomes.iter().enumerate() {
        let link = |other: usize| outcomes.get(other).map(|o| (file(o), o.experiment.id.clone()));
        let around = [i.checked_sub(1).and_then(link), link(i + 1)];
        let links =
            std::iter::once((INDEX.to_owned(), "All experiments".to_owned())).chain(around.into_iter().flatten());
        files.push((file(outcome), outcome.page(links.collect())));
    }
    files
}

fn file(outcome: &Outcome<'_>) -> String {
    format!("{}.html", outcome.experiment.id)
}

fn index(outcomes: &[Outcome<'_>]) -> String {
    let mut chapters: Vec<GuideChapter> = Vec::new();
    for outcome in outcomes {
        if chapters.last().is_none_or(|chapter| chapter.title != outcome.chapter.title) {
            let (title, source) = (outcome.chapter.title.clone(), outcome.chapter.source.clone());
            chapters.push(GuideChapter { title, source, entries: Vec::new() });
        }
        if let Some(chapter) = chapters.last_mut() {
            chapter.entries.push(entry(outcome));
        }
    }
    let sections = [Summary::of(outcomes).section()];
    html::guide_index("The guide's experiments, published and simulated", &chapters, &sections)
}

fn entry(outcome: &Outcome<'_>) -> GuideEntry {
    let summary = Summary::of([outcome]);
    let error = |spread: fxscope_validate::Spread| match spread.number {
        0 => None,
        number => Some((number, spread.mean)),
    };
    let state = match outcome.failures().len() {
        0 if outcome.left_out.is_some() => "left out".to_owned(),
        0 if outcome.laboratory.is_some() => "tables of its own".to_owned(),
        0 => String::new(),
        failures => format!("{failures} failed"),
    };
    GuideEntry {
        file: file(outcome),
        id: outcome.experiment.id.clone(),
        title: outcome.experiment.title.clone(),
        checked: error(summary.checked),
        fitted: error(summary.fitted),
        state,
    }
}

impl Outcome<'_> {
    /// Returns the experiment as a page, with links to other pages: their files and titles.
    #[must_use]
    pub fn page(&self, links: Vec<(String, String)>) -> String {
        let mut plots: Vec<Plot> = self.tables.iter().filter_map(Shown::plot).collect();
        if let Some(Ok(sheet)) = &self.laboratory {
            plots.extend(sheet.plots.iter().cloned());
        }
        let bars = self.tables.iter().filter_map(Shown::bars).collect();
        let document = Document::of(self.title(), [self.results(), self.about()].concat());
        html::guide_page(&GuidePage { lead: self.answer(), document, plots, bars, links })
    }
}

impl Shown<'_> {
    /// Returns the table as curves if its keys are numbers.
    fn plot(&self) -> Option<Plot> {
        let keys: Vec<f64> = self.table.keys.iter().map(|key| key.parse().ok()).collect::<Option<_>>()?;
        let unit = self.unit().map(unit)?;
        let curve = |(label, values): (String, Vec<Option<f64>>)| {
            let points = keys.iter().zip(values).filter_map(|(&key, value)| Some((key, value?))).collect();
            Curve { label, points }
        };
        Some(Plot {
            title: self.table.title.clone(),
            across: self.table.rows.clone(),
            logarithmic: self.table.logarithmic,
            up: unit.to_owned(),
            logarithmic_up: false,
            curves: self.series().into_iter().map(curve).collect(),
        })
    }

    /// Returns the table as bars if its keys are words.
    fn bars(&self) -> Option<Bars> {
        let words = self.table.keys.iter().any(|key| key.parse::<f64>().is_err());
        let unit = self.unit().map(unit).filter(|_| words)?;
        let title = self.table.title.clone();
        Some(Bars { title, unit: unit.to_owned(), labels: self.table.keys.clone(), series: self.series() })
    }

    /// Returns the published and the simulated figures of each column that has some.
    fn series(&self) -> Vec<(String, Vec<Option<f64>>)> {
        let parts: [Part; 2] = [("published", |cell| cell.published), ("simulated", |cell| cell.simulated)];
        let columns = self.table.columns.iter().enumerate();
        let all = columns.flat_map(|(i, column)| {
            parts.map(|(part, of)| {
                (curve_label(&column.title, part), self.cells.iter().map(|row| of(&row[i])).collect::<Vec<_>>())
            })
        });
        all.filter(|(_, values)| values.iter().any(Option::is_some)).collect()
    }
}

/// Returns the label of a column's figures of one kind: its title and the kind, which the title may say already.
fn curve_label(title: &str, part: &str) -> String {
    if title.ends_with(part) {
        return title.to_owned();
    }
    [title, part].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
}
