//! The model beside measured results, as a report.

use fxscope_validate::{NEAR, Outcome, SLACK, Summary};
use serde_json::{Value as Json, json};

use crate::document::{Body, Document, Line, Row, Section, Value};
use crate::render::quantity::digits;

/// Rows in the list of the worst.
const WORST: usize = 10;
/// Characters that the name of a row and what it is have together, so that a line fits a terminal.
const ROOM: usize = 50;

pub(crate) const TITLE: &str = "The model against measured results";

/// What came of the rows, with what has to be said about single ones.
#[must_use]
pub fn document(outcomes: &[Outcome]) -> Document {
    let mut all = vec![said(outcomes)];
    all.extend(sections(outcomes));
    Document { title: TITLE.to_owned(), columns: Vec::new(), sections: all }
}

/// Figures, the rows that are furthest off, and each family's rows.
fn sections(outcomes: &[Outcome]) -> Vec<Section> {
    let mut sections = vec![summary(outcomes)];
    sections.extend(worst(outcomes));
    for family in families(outcomes) {
        let lines = rows(of_family(outcomes, family));
        sections
            .push(Section { title: format!("Family {family}"), body: Body::Listing { headings: headings(), lines } });
    }
    sections
}

fn said(outcomes: &[Outcome]) -> Section {
    Section { title: "Notes".to_owned(), body: Body::Notes(notes(outcomes)) }
}

/// Names of the families, in their order.
pub(crate) fn families<'a>(outcomes: &'a [Outcome]) -> Vec<&'a str> {
    let mut names: Vec<_> = outcomes.iter().map(|o| o.family).collect();
    names.dedup();
    names
}

pub(crate) fn of_family<'a>(outcomes: &'a [Outcome], family: &'a str) -> impl Iterator<Item = &'a Outcome<'a>> {
    outcomes.iter().filter(move |o| o.family == family)
}

fn headings() -> Vec<String> {
    ["row", "what", "measured", "simulated", "error", "see"].map(str::to_owned).to_vec()
}

/// Rows as measured and simulated.
fn rows<'a>(outcomes: impl Iterator<Item = &'a Outcome<'a>>) -> Vec<Line> {
    let outcomes: Vec<_> = outcomes.collect();
    let longest = outcomes.iter().map(|outcome| outcome.row.row.len()).max().unwrap_or_default();
    let room = ROOM.saturating_sub(longest).max(1);
    outcomes.into_iter().map(|outcome| Line::Row(row(outcome, room))).collect()
}

/// A row, with `room` characters for what it is.
fn row(outcome: &Outcome, room: usize) -> Row {
    let text = |text: String| Some(Value::Text(text));
    let unit = if outcome.row.is_ratio() { "×" } else { &outcome.row.unit };
    let (simulated, error, verdict) = match &outcome.judgement {
        Ok(j) => (text(digits(j.simulated)), text(error(outcome, j.error)), j.verdict.word()),
        Err(_) => (None, None, "failed"),
    };
    let see = [outcome.row.deviation.as_str(), if verdict == "gap" { "" } else { verdict }].join(" ");
    let measured = text(format!("{} {unit}", digits(outcome.row.measured)));
    let what = text(shortened(&outcome.row.what, room));
    let values = vec![what, measured, simulated, error, text(see.trim().to_owned())];
    Row { label: outcome.row.row.clone(), values }
}

/// A text cut to `room` characters.
fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

fn error(outcome: &Outcome, error: f64) -> String {
    format!("{error:+.1} {}", if outcome.row.is_points() { "pt" } else { "%" })
}

/// Figures of each family and of all.
fn summary(outcomes: &[Outcome]) -> Section {
    let [near, far] = NEAR;
    let headings =
        ["family", "rows", "mean error", &format!("within {near} %"), &format!("within {far} %"), "directions"]
            .map(str::to_owned)
            .to_vec();
    let mut rows: Vec<_> = families(outcomes)
        .into_iter()
        .map(|family| figures(family, Summary::of(of_family(outcomes, family))))
        .collect();
    rows.push(figures("all", Summary::of(outcomes.iter())));
    Section { title: "Mean error without sign".to_owned(), body: Body::Table { headings, rows } }
}

fn figures(label: &str, summary: Summary) -> Row {
    let text = |text: String| Some(Value::Text(text));
    let share = |n: usize| text(format!("{n} ({:.0} %)", 100.0 * n as f64 / summary.rows.max(1) as f64));
    let (pairs, right) = summary.directions;
    let directions = if pairs == 0 { None } else { text(format!("{right} of {pairs}")) };
    let rows =
        if summary.failed == 0 { summary.rows.to_string() } else { format!("{} + {}", summary.rows, summary.failed) };
    let values = vec![
        text(rows),
        text(format!("{:.1} %", summary.mean)),
        share(summary.near[0]),
        share(summary.near[1]),
        directions,
    ];
    Row { label: label.to_owned(), values }
}

fn off(outcome: &Outcome) -> f64 {
    outcome.judgement.as_ref().map_or(0.0, |j| j.error.abs())
}

/// Whether a row is beyond its tolerance.
pub(crate) fn far_off(outcome: &Outcome) -> bool {
    off(outcome) > outcome.row.tolerance
}

/// The rows that are furthest beyond their tolerance; `None` when all are within.
fn worst(outcomes: &[Outcome]) -> Option<Section> {
    let mut all: Vec<_> = outcomes.iter().filter(|o| far_off(o)).collect();
    all.sort_by(|a, b| off(b).total_cmp(&off(a)));
    let lines = rows(all.into_iter().take(WORST));
    let title = format!("Beyond their tolerance, the {WORST} furthest");
    (!lines.is_empty()).then(|| Section { title, body: Body::Listing { headings: headings(), lines } })
}

fn notes(outcomes: &[Outcome]) -> Vec<String> {
    let mut notes = vec![
        "Errors are percent of the measured value, or points (pt) where that is a share. Dn: see DEVIATIONS.md."
            .to_owned(),
    ];
    notes.extend(unexpected(outcomes));
    notes
}

/// A sentence for each row that could not be simulated or is not as its file says.
pub(crate) fn unexpected(outcomes: &[Outcome]) -> Vec<String> {
    let mut notes = Vec::new();
    for outcome in outcomes {
        let row = &outcome.row;
        match &outcome.judgement {
            Err(e) => notes.push(format!("{}: {e}", row.row)),
            Ok(j) if !j.verdict.is_expected() => notes.push(match j.verdict.word() {
                "worse" => format!(
                    "{}: worse by more than {SLACK} than accepted ({:+.1}, now {:+.1}).",
                    row.row, row.error, j.error
                ),
                "closed" => format!(
                    "{}: within its tolerance of {} now; take {} out of its line, and --accept.",
                    row.row, row.tolerance, row.deviation
                ),
                _ => format!(
                    "{}: {:+.1} is beyond its tolerance of {}, and no deviation says why.",
                    row.row, j.error, row.tolerance
                ),
            }),
            Ok(_) => {}
        }
    }
    notes
}

/// All of it for programs: figures of each family and of all, and every row.
#[must_use]
pub fn json(suite: &str, outcomes: &[Outcome]) -> Json {
    let families: serde_json::Map<_, _> = families(outcomes)
        .into_iter()
        .map(|f| (f.to_owned(), summary_json(Summary::of(of_family(outcomes, f)))))
        .collect();
    let rows: Vec<_> = outcomes.iter().map(row_json).collect();
    json!({ "suite": suite, "all": summary_json(Summary::of(outcomes.iter())), "families": families, "rows": rows })
}

fn summary_json(summary: Summary) -> Json {
    let (pairs, right) = summary.directions;
    json!({
        "rows": summary.rows, "failed": summary.failed, "mean_absolute_error": summary.mean,
        "within_5": summary.near[0], "within_10": summary.near[1],
        "directions": pairs, "directions_right": right,
    })
}

fn row_json(outcome: &Outcome) -> Json {
    let row = &outcome.row;
    let judgement = outcome.judgement.as_ref();
    json!({
        "row": row.row, "family": outcome.family, "what": row.what, "measured": row.measured, "unit": row.unit,
        "simulated": judgement.ok().map(|j| j.simulated), "error": judgement.ok().map(|j| j.error),
        "tolerance": row.tolerance, "accepted_error": row.error, "deviation": row.deviation, "source": row.source,
        "verdict": judgement.map_or("failed", |j| match j.verdict.word() { "" => "within", word => word }),
        "reason": judgement.err(),
    })
}

/// The figures of the families and all rows as Markdown tables.
#[must_use]
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    let mut table = |headings: &[String], rows: &mut dyn Iterator<Item = Row>| {
        text += &format!("| {} |\n|{}\n", headings.join(" | "), "---|".repeat(headings.len()));
        for row in rows {
            let cells = row.values.into_iter().map(|v| match v {
                Some(Value::Text(text)) => text.replace('|', "\\|"),
                _ => String::new(),
            });
            let cells: Vec<_> = std::iter::once(row.label).chain(cells).collect();
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text.push('\n');
    };
    if let Body::Table { headings, rows } = summary(outcomes).body {
        table(&headings, &mut rows.into_iter());
    }
    table(&headings(), &mut outcomes.iter().map(|outcome| row(outcome, usize::MAX)));
    text
}
