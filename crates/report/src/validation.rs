//! The report of a validation against measured results.

use fxscope_validate::{Accuracy, Kind, NEAR, Outcome, Part, SLACK, Spread};
use serde_json::{Value as Json, json};

use crate::document::{Body, Document, Line, Row, Section, Value};
use crate::render::quantity::digits;

/// Rows in the list of the worst.
const WORST: usize = 10;
/// Maximum length of a row's name and description together, so that a line fits a terminal.
const ROOM: usize = 50;

pub(crate) const TITLE: &str = "The model compared with measured results";

/// Returns the report of a validation: accuracy of the model, remarks about individual rows, and all rows.
#[must_use]
pub fn document(outcomes: &[Outcome]) -> Document {
    let mut all = vec![answer(outcomes), said(outcomes)];
    all.extend(sections(outcomes));
    Document { title: TITLE.to_owned(), columns: Vec::new(), sections: all }
}

/// Accuracy, the worst rows, and each family's rows.
fn sections(outcomes: &[Outcome]) -> Vec<Section> {
    let mut sections = vec![by_part(outcomes), accuracy(outcomes), summary(outcomes)];
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

/// Names of the families, in order.
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

/// Rows with measured and simulated values.
fn rows<'a>(outcomes: impl Iterator<Item = &'a Outcome<'a>>) -> Vec<Line> {
    let outcomes: Vec<_> = outcomes.collect();
    let longest = outcomes.iter().map(|outcome| outcome.row.row.len()).max().unwrap_or_default();
    let room = ROOM.saturating_sub(longest).max(1);
    outcomes.into_iter().map(|outcome| Line::Row(row(outcome, room))).collect()
}

/// A row, with at most `room` characters of description.
fn row(outcome: &Outcome, room: usize) -> Row {
    let text = |text: String| Some(Value::Text(text));
    let unit = if outcome.row.is_ratio() { "×" } else { &outcome.row.unit };
    let (simulated, error, verdict) = match &outcome.judgement {
        Ok(j) => (text(digits(j.simulated)), text(error(outcome, j.error)), j.verdict.word()),
        Err(_) => (None, None, "failed"),
    };
    let see = [outcome.row.gap.as_str(), if verdict == "gap" { "" } else { verdict }, used(outcome)];
    let see: Vec<_> = see.into_iter().filter(|word| !word.is_empty()).collect();
    let measured = text(format!("{} {unit}", digits(outcome.row.measured)));
    let what = text(shortened(&outcome.row.what, room));
    let values = vec![what, measured, simulated, error, text(see.join(" "))];
    Row { label: outcome.row.row.clone(), values }
}

/// A text truncated to `room` characters.
fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(['…']).collect()
}

fn error(outcome: &Outcome, error: f64) -> String {
    format!("{error:+.1} {}", if outcome.row.is_points() { "pt" } else { "%" })
}

/// Returns why a row does not count in the accuracy; empty if it does.
pub(crate) fn used(outcome: &Outcome) -> &'static str {
    match (outcome.fitted, outcome.repeats) {
        (true, _) => "fitted",
        (false, Some(_)) => "again",
        (false, None) => "",
    }
}

/// Returns the accuracy over the figures that test the model: those that nothing is fitted to, each once.
pub(crate) fn checked<'a>(outcomes: impl IntoIterator<Item = &'a Outcome<'a>>) -> Accuracy {
    Accuracy::of(outcomes.into_iter().filter(|outcome| outcome.is_independent()))
}

/// Returns the accuracy of a part's figures, each once. Those of [`Part::Fit`] include fitted ones.
pub(crate) fn of_part<'a>(outcomes: impl IntoIterator<Item = &'a Outcome<'a>>, part: Part) -> Accuracy {
    Accuracy::of(outcomes.into_iter().filter(|outcome| outcome.part == part && outcome.repeats.is_none()))
}

/// Numbers of rows excluded from the accuracy: fitted ones, and others that repeat a figure.
pub(crate) fn left_out(outcomes: &[Outcome]) -> (usize, usize) {
    let count = |word: &str| outcomes.iter().filter(|outcome| used(outcome) == word).count();
    (count("fitted"), count("again"))
}

/// Returns the result in a few sentences: first how well times and rates are predicted where nothing could be fitted.
pub(crate) fn answer_text(outcomes: &[Outcome]) -> String {
    let [fit, check] = Part::ALL.map(|part| part_text(outcomes, part));
    format!(
        "Of programs that no fit may use (check), times and rates {check}; of those that fits may use (fit), they {fit}. {}",
        independent_text(outcomes)
    )
}

/// Returns how far times and rates of a part are off.
fn part_text(outcomes: &[Outcome], part: Part) -> String {
    let Spread { number, mean, near: [near, far], .. } =
        of_part(outcomes.iter().filter(|outcome| outcome.kind == Kind::Rate), part).relative;
    if number == 0 {
        return "are not among the rows".to_owned();
    }
    let limits = NEAR.map(|limit| format!("within {limit} %"));
    format!(
        "are {mean:.1} % off on average ({} {}, {} {}, {number} {})",
        percent(near, number),
        limits[0],
        percent(far, number),
        limits[1],
        if number == 1 { "figure" } else { "figures" },
    )
}

/// Returns the errors of the figures that test the model, whatever their program.
fn independent_text(outcomes: &[Outcome]) -> String {
    let Accuracy { relative, runs, .. } = checked(outcomes);
    let (fitted, again) = left_out(outcomes);
    if relative.number == 0 {
        return format!("No figure tests the model: {fitted} rows were fitted, {again} repeat a figure.");
    }
    let [near, far] = NEAR;
    format!(
        "The median error is {:.1} % of the measured value and the mean {:.1} %; {} of the figures are within {near} %, {} \
         within {far} %. Run by run, the mean error is {:.1} %. These are {} figures of {} runs; rows that were fitted \
         ({fitted}) or repeat a figure ({again}) are left out.",
        relative.median,
        relative.mean,
        percent(relative.near[0], relative.number),
        percent(relative.near[1], relative.number),
        runs.mean,
        relative.number,
        runs.number,
    )
}

fn percent(part: usize, whole: usize) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}

fn answer(outcomes: &[Outcome]) -> Section {
    Section { title: "Accuracy".to_owned(), body: Body::Notes(vec![answer_text(outcomes)]) }
}

/// Errors of the figures that test the model, by kind, in total, and by run: label, errors and their unit.
pub(crate) fn spreads(outcomes: &[Outcome]) -> Vec<(String, Spread, &'static str)> {
    let of_kind = |kind: Kind| checked(outcomes.iter().filter(move |outcome| outcome.kind == kind));
    let all = checked(outcomes);
    let mut lines: Vec<_> =
        Kind::ALL.into_iter().map(|kind| (kind.title().to_owned(), of_kind(kind).relative, "%")).collect();
    lines.push(("shares, in points".to_owned(), of_kind(Kind::Share).points, "pt"));
    lines.push(("all figures".to_owned(), all.relative, "%"));
    lines.push(("all, mean of each run".to_owned(), all.runs, "%"));
    lines.retain(|line| line.1.number > 0);
    lines
}

/// Errors of both parts by kind of figure, and the mean error of each program: label, errors and their unit.
pub(crate) fn part_spreads(outcomes: &[Outcome]) -> Vec<(String, Spread, &'static str)> {
    let mut lines = Vec::new();
    for part in Part::ALL {
        let of_kind = |kind: Kind| of_part(outcomes.iter().filter(move |outcome| outcome.kind == kind), part);
        let name = part.name();
        lines.extend(Kind::ALL.map(|kind| (format!("{name}: {}", kind.title()), of_kind(kind).relative, "%")));
        lines.push((format!("{name}: shares, in points"), of_kind(Kind::Share).points, "pt"));
        lines.push((format!("{name}: times and rates, by program"), of_kind(Kind::Rate).programs, "%"));
    }
    lines.retain(|line| line.1.number > 0);
    lines
}

/// Errors of programs that fits may use, and of those that check the model.
fn by_part(outcomes: &[Outcome]) -> Section {
    Section { title: "Fit and check".to_owned(), body: spread_table("part", part_spreads(outcomes)) }
}

/// Errors by kind of figure.
fn accuracy(outcomes: &[Outcome]) -> Section {
    Section { title: "Errors by kind".to_owned(), body: spread_table("absolute errors", spreads(outcomes)) }
}

/// A table of absolute errors, with `heading` over the labels.
fn spread_table(heading: &str, lines: Vec<(String, Spread, &'static str)>) -> Body {
    let [near, far] = NEAR.map(|limit| format!("within {limit}"));
    let headings = [heading, "number", "median", "mean", &near, &far].map(str::to_owned).to_vec();
    let text = |text: String| Some(Value::Text(text));
    let row = |(label, spread, unit): (String, Spread, &str)| {
        let near = spread.near.map(|n| text(format!("{n} ({})", percent(n, spread.number))));
        let mut values = vec![text(spread.number.to_string())];
        values.extend([spread.median, spread.mean].map(|error| text(format!("{error:.1} {unit}"))));
        values.extend(near);
        Row { label, values }
    };
    Body::Table { headings, rows: lines.into_iter().map(row).collect() }
}

/// Statistics of each family and of all.
fn summary(outcomes: &[Outcome]) -> Section {
    let [near, far] = NEAR.map(|limit| format!("within {limit} %"));
    let headings = ["family", "rows", "left out", "figures", "median", "mean", &near, &far, "directions"];
    let headings = headings.map(str::to_owned).to_vec();
    let mut rows: Vec<_> = families(outcomes)
        .into_iter()
        .map(|family| figures(family, &of_family(outcomes, family).collect::<Vec<_>>()))
        .collect();
    rows.push(figures("all", &outcomes.iter().collect::<Vec<_>>()));
    Section { title: "Families".to_owned(), body: Body::Table { headings, rows } }
}

fn figures(label: &str, outcomes: &[&Outcome]) -> Row {
    let text = |text: String| Some(Value::Text(text));
    let Accuracy { relative, failed, directions: (pairs, right), .. } = checked(outcomes.iter().copied());
    let out = outcomes.iter().filter(|outcome| !outcome.is_independent()).count();
    let of_figures = |value: String| if relative.number == 0 { None } else { text(value) };
    let rows = if failed == 0 { outcomes.len().to_string() } else { format!("{} ({failed} failed)", outcomes.len()) };
    let values = vec![
        text(rows),
        text(out.to_string()),
        text(relative.number.to_string()),
        of_figures(format!("{:.1} %", relative.median)),
        of_figures(format!("{:.1} %", relative.mean)),
        of_figures(percent(relative.near[0], relative.number)),
        of_figures(percent(relative.near[1], relative.number)),
        if pairs == 0 { None } else { text(format!("{right} of {pairs}")) },
    ];
    Row { label: label.to_owned(), values }
}

fn off(outcome: &Outcome) -> f64 {
    outcome.judgement.as_ref().map_or(0.0, |j| j.error.abs())
}

/// Returns whether a row is outside its tolerance.
pub(crate) fn far_off(outcome: &Outcome) -> bool {
    off(outcome) > outcome.row.tolerance
}

/// The rows furthest outside their tolerance; `None` if all are within.
fn worst(outcomes: &[Outcome]) -> Option<Section> {
    let mut all: Vec<_> = outcomes.iter().filter(|o| far_off(o)).collect();
    all.sort_by(|a, b| off(b).total_cmp(&off(a)));
    let lines = rows(all.into_iter().take(WORST));
    let title = format!("The {WORST} rows furthest beyond their tolerance");
    (!lines.is_empty()).then(|| Section { title, body: Body::Listing { headings: headings(), lines } })
}

fn notes(outcomes: &[Outcome]) -> Vec<String> {
    let mut notes = vec![
        "Errors are percent of the measured value; those of rows that are percentages stand in points (pt). Names in the last \
         column are gaps: see validation/gaps.csv. fitted: the measured value was used to fit the model or the kernel, or the row states \
         the same figure as one that has. again: the figure of a row above. validation/programs.csv says which programs belong to fit, \
         and which to check."
            .to_owned(),
    ];
    notes.extend(unexpected(outcomes));
    notes
}

/// Returns a sentence for each row that could not be simulated or deviates from what its file states.
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
                    "{}: within its tolerance of {} now; remove {} from its line, and use --accept.",
                    row.row, row.tolerance, row.gap
                ),
                _ => format!(
                    "{}: {:+.1} is beyond its tolerance of {}, and no gap explains it.",
                    row.row, j.error, row.tolerance
                ),
            }),
            Ok(_) => {}
        }
    }
    notes
}

/// Returns the validation for programs: the accuracy of the figures that test the model, as `headline`; that of programs
/// that fits may use and of those that check, as `parts`; that of all rows, as `all`; that of each family; and every row.
#[must_use]
pub fn json(suite: &str, outcomes: &[Outcome]) -> Json {
    let mut headline = kinds_json(&outcomes.iter().collect::<Vec<_>>(), |outcomes| checked(outcomes.iter().copied()));
    let (fitted, again) = left_out(outcomes);
    headline.insert("rows_fitted".to_owned(), fitted.into());
    headline.insert("rows_stated_again".to_owned(), again.into());
    let families: serde_json::Map<_, _> = families(outcomes)
        .into_iter()
        .map(|f| (f.to_owned(), accuracy_json(&checked(of_family(outcomes, f)))))
        .collect();
    let rows: Vec<_> = outcomes.iter().map(row_json).collect();
    json!({
        "suite": suite, "headline": headline, "parts": parts_json(outcomes), "all": accuracy_json(&Accuracy::of(outcomes)), "families": families,
        "rows": rows,
    })
}

/// Both parts, each by kind and together.
fn parts_json(outcomes: &[Outcome]) -> Json {
    let all: Vec<_> = outcomes.iter().collect();
    let part =
        |part: Part| (part.name().to_owned(), kinds_json(&all, |some| of_part(some.iter().copied(), part)).into());
    Json::Object(Part::ALL.map(part).into_iter().collect())
}

/// The accuracy of each kind of figure, and of all together.
fn kinds_json<'a>(
    outcomes: &[&'a Outcome<'a>],
    accuracy: impl Fn(&[&'a Outcome<'a>]) -> Accuracy,
) -> serde_json::Map<String, Json> {
    let of_kind = |kind: Kind| outcomes.iter().copied().filter(|outcome| outcome.kind == kind).collect::<Vec<_>>();
    let mut kinds: serde_json::Map<_, _> =
        Kind::ALL.map(|kind| (kind.key().to_owned(), accuracy_json(&accuracy(&of_kind(kind))))).into_iter().collect();
    kinds.insert("together".to_owned(), accuracy_json(&accuracy(outcomes)));
    kinds
}

fn accuracy_json(accuracy: &Accuracy) -> Json {
    let (pairs, right) = accuracy.directions;
    json!({
        "rows": accuracy.figures, "failed": accuracy.failed, "measured_as_zero": accuracy.zero(),
        "relative": spread_json(&accuracy.relative), "points": spread_json(&accuracy.points),
        "by_run": spread_json(&accuracy.runs), "by_program": spread_json(&accuracy.programs), "directions": pairs, "directions_right": right,
    })
}

/// `null` without figures.
fn spread_json(spread: &Spread) -> Json {
    let values = json!({
        "number": spread.number, "mean": spread.mean, "median": spread.median,
        "within_5": spread.near[0], "within_10": spread.near[1],
    });
    if spread.number == 0 { Json::Null } else { values }
}

fn row_json(outcome: &Outcome) -> Json {
    let row = &outcome.row;
    let judgement = outcome.judgement.as_ref();
    json!({
        "row": row.row, "family": outcome.family, "program": outcome.program, "part": outcome.part.name(), "what": row.what, "measured": row.measured, "unit": row.unit,
        "simulated": judgement.ok().map(|j| j.simulated), "error": judgement.ok().map(|j| j.error),
        "relative_error": judgement.ok().and_then(|j| j.relative), "kind": outcome.kind.key(),
        "fitted": outcome.fitted, "fitted_to": row.fitted.split_whitespace().collect::<Vec<_>>(),
        "repeats": outcome.repeats,
        "tolerance": row.tolerance, "accepted_error": row.error, "gap": row.gap, "source": row.source,
        "verdict": judgement.map_or("failed", |j| match j.verdict.word() { "" => "within", word => word }),
        "reason": judgement.err(),
    })
}

/// Errors of both parts and by kind, and statistics of the families: headings and rows.
fn summary_tables(outcomes: &[Outcome]) -> impl Iterator<Item = (Vec<String>, Vec<Row>)> {
    [by_part(outcomes), accuracy(outcomes), summary(outcomes)].into_iter().filter_map(|section| match section.body {
        Body::Table { headings, rows } => Some((headings, rows)),
        _ => None,
    })
}

/// Statistics of the families and all rows as Markdown tables.
#[must_use]
pub fn markdown(outcomes: &[Outcome]) -> String {
    let mut text = format!("{}\n\n", answer_text(outcomes));
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
    for (headings, rows) in summary_tables(outcomes) {
        table(&headings, &mut rows.into_iter());
    }
    table(&headings(), &mut outcomes.iter().map(|outcome| row(outcome, usize::MAX)));
    text
}
