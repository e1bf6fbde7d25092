//! Errors of experiments' figures, of those that were fitted apart from the others.

use fxscope_report::document::{Document, Row, Section};
use fxscope_validate::Spread;
use serde_json::{Value as Json, json};

use super::{Cell, Outcome};

/// Errors of published figures that runs reproduce.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Errors of figures that nothing was fitted to, percent of the published figure.
    pub checked: Spread,
    /// Errors of percentages among them, points.
    pub points: Spread,
    /// Errors of figures that were fitted, or state the same as one that was, percent.
    pub fitted: Spread,
    /// Published figures of 0, which have no relative error.
    pub zero: usize,
    /// Figures without a published one.
    pub simulated_only: usize,
    /// Published figures that nothing simulates.
    pub published_only: usize,
    /// Figures whose run failed.
    pub failed: usize,
}

/// Returns the outcomes of experiments for programs.
#[must_use]
pub fn answer(outcomes: &[Outcome<'_>]) -> Json {
    json!({
        "experiments": outcomes.iter().map(Outcome::json).collect::<Vec<_>>(),
        "errors": Summary::of(outcomes).json(),
    })
}

/// Returns the outcomes of experiments for a terminal; of several, also the errors of all together.
#[must_use]
pub fn documents(outcomes: &[Outcome<'_>]) -> Vec<Document> {
    let mut documents: Vec<Document> = outcomes.iter().map(Outcome::lines).collect();
    if outcomes.len() > 1 {
        documents.push(Document::of("All experiments", vec![Summary::of(outcomes).section()]));
    }
    documents
}

impl Summary {
    /// Summarises the tables of experiments; a measured row counts once.
    #[must_use]
    pub fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome<'a>>) -> Summary {
        let mut seen = std::collections::BTreeSet::new();
        let cells =
            outcomes.into_iter().flat_map(|outcome| &outcome.tables).flat_map(|shown| shown.cells.iter().flatten());
        let cells: Vec<&Cell> = cells.filter(|cell| cell.row.as_ref().is_none_or(|row| seen.insert(row))).collect();
        let number = |is: &dyn Fn(&Cell) -> bool| cells.iter().filter(|cell| is(cell)).count();
        let errors = |is: &dyn Fn(&Cell) -> bool, of: &dyn Fn(&Cell) -> Option<f64>| {
            Spread::of(cells.iter().filter(|cell| is(cell)).filter_map(|cell| of(cell)))
        };
        Summary {
            checked: errors(&|cell| !cell.fitted, &|cell| cell.relative),
            points: errors(&|cell| !cell.fitted && cell.is_points(), &|cell| cell.error),
            fitted: errors(&|cell| cell.fitted, &|cell| cell.relative),
            zero: number(&|cell| cell.error.is_some() && cell.relative.is_none()),
            simulated_only: number(&|cell| cell.published.is_none() && cell.simulated.is_some()),
            published_only: number(&|cell| cell.published.is_some() && cell.run.is_none()),
            failed: number(&|cell| cell.failure.is_some()),
        }
    }

    /// Returns the summary as a section.
    #[must_use]
    pub fn section(&self) -> Section {
        let row = |label: &str, spread: Spread, unit: &str| {
            let errors = [spread.median, spread.mean].map(|error| format!("{error:.1} {unit}"));
            let near = spread.near.map(|near| near.to_string());
            Row::of_texts(label, std::iter::once(spread.number.to_string()).chain(errors).chain(near))
        };
        let rows = vec![
            row("not fitted", self.checked, "%"),
            row("of them percentages", self.points, "pt"),
            row("fitted", self.fitted, "%"),
        ];
        let [near, far] = fxscope_validate::NEAR.map(|limit| format!("within {limit}"));
        Section::table("Errors of published figures", ["figures", "number", "median", "mean", &near, &far], rows)
    }

    /// Returns the summary for programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let spread = |spread: Spread| json!({ "number": spread.number, "mean": spread.mean, "median": spread.median });
        json!({
            "not_fitted": spread(self.checked),
            "not_fitted_points": spread(self.points),
            "fitted": spread(self.fitted),
            "published_as_zero": self.zero,
            "simulated_only": self.simulated_only,
            "published_only": self.published_only,
            "failed": self.failed,
        })
    }
}

impl Outcome<'_> {
    /// Returns sentences about where its figures come from, and their errors.
    pub(super) fn about_figures(&self) -> Vec<String> {
        let Summary { checked, points, fitted, zero, simulated_only, published_only, failed } = Summary::of([self]);
        let mut notes = Vec::new();
        if checked.number > 0 {
            let more = match points.number {
                0 => String::new(),
                number => {
                    let percentages = plural(number, "of them is a percentage", "of them are percentages");
                    format!("; {percentages}, {:.1} points off on average", points.mean)
                }
            };
            let figures = plural(checked.number, "figure tests", "figures test");
            notes.push(format!("{figures} the model: mean error {:.1} %{more}.", checked.mean));
        }
        if fitted.number > 0 {
            let figures = plural(fitted.number, "figure was", "figures were");
            let what = self.fitted_to();
            notes.push(format!(
                "{figures} used for a fit{what} and {} nothing.",
                if fitted.number == 1 { "tests" } else { "test" }
            ));
        }
        let about = [
            (
                zero,
                "figure is published as 0, which has no relative error",
                "figures are published as 0, which have no relative error",
            ),
            (
                simulated_only,
                "figure is simulated only: the source shows none, or a chart without numbers",
                "figures are simulated only: the source shows none, or a chart without numbers",
            ),
            (
                published_only,
                "published figure has no run: its loop is not public",
                "published figures have no run: their loops are not public",
            ),
            (failed, "figure is missing: its run failed", "figures are missing: their runs failed"),
        ];
        notes.extend(about.iter().filter(|one| one.0 > 0).map(|&(n, one, many)| format!("{}.", plural(n, one, many))));
        notes
    }

    /// Returns the rows that were fitted, with what they were fitted to, in parentheses.
    fn fitted_to(&self) -> String {
        let cells = self.tables.iter().flat_map(|shown| shown.cells.iter().flatten());
        let named = cells.filter(|cell| !cell.fitted_to.is_empty());
        let mut names: Vec<String> = named
            .map(|cell| {
                format!("{} to {}", cell.row.as_deref().unwrap_or_default(), cell.fitted_to.replace(' ', " and "))
            })
            .collect();
        names.dedup();
        if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
    }
}

fn plural(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
