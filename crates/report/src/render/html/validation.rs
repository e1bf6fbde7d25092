//! The page of a validation against measured results.

use fxscope_validate::{NEAR, Outcome, SLACK, Spread, Verdict};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::{self, Class, Histogram, Pair};
use super::{SCRIPT, head, library};
use crate::render::palette;
use crate::render::quantity::digits;
use crate::validation::{
    TITLE, answer_text, checked, families, far_off, of_family, part_spreads, spreads, unexpected, used,
};

const RULES: &str = include_str!("validation.css");
/// Rows in the chart of the worst.
const WORST: usize = 25;

/// Returns a page of a suite's outcomes: charts, statistics of families, and all rows in sortable tables.
#[must_use]
pub fn draw(suite: &str, outcomes: &[Outcome]) -> String {
    let families: Vec<_> = families(outcomes);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(TITLE, &(palette::rules() + RULES)))
            body {
                header {
                    h1 { (TITLE) }
                    p.soft {
                        "Suite " strong { (suite) } ": " (outcomes.len()) " measured figures of A64FX, " (families.len())
                        @if families.len() == 1 { " family" } @else { " families" } ", each beside the model's result for the same program."
                    }
                    p.answer { (answer_text(outcomes)) }
                }
                main id="main" {
                    (figures(outcomes))
                    (warnings(outcomes))
                    div.charts {
                        (chart::scatter("Measured and simulated, all rows except shares", &pairs(outcomes)))
                        (chart::histograms("Histogram of errors, by family", &histograms(outcomes, &families)))
                    }
                    (worst(outcomes))
                    (summary(outcomes, &families))
                    h2 { "Rows" }
                    @for family in &families { (rows(family, outcomes)) }
                }
                footer {
                    p {
                        "Errors are percent of the measured value; those of rows that are percentages stand in points (pt), with the
                         relative error behind. Gaps are lines of " code { "validation/gaps.csv" } "; accepted is the error as it
                         stands in the rows' files. The measured value of a row marked fitted has decided something of the model or of
                         its kernel, or the row states the same figure as one that has; one marked again states the figure of a row above. Fits may use rows of the part fit only; "
                        code { "validation/programs.csv" } " divides the programs."
                    }
                    p { "Made by fxscope." }
                    (library::licenses())
                }
                (library::scripts())
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn percent(part: usize, whole: usize) -> String {
    format!("{part} ({:.0} %)", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Errors by kind of figure, and the number of rows outside their tolerance.
fn figures(outcomes: &[Outcome]) -> Markup {
    let all = checked(outcomes);
    let (pairs, right) = all.directions;
    let beyond = outcomes.iter().filter(|o| far_off(o)).count();
    let failed = outcomes.iter().filter(|o| o.judgement.is_err()).count();
    let fact = |label: &str, value: String| html! { div { dt { (label) } dd { (value) } } };
    html! {
        (errors("fit and check", &part_spreads(outcomes)))
        (errors("absolute errors", &spreads(outcomes)))
        dl.facts {
            (fact("rows", outcomes.len().to_string()))
            (fact("figures that check the model", all.figures.to_string()))
            (fact("directions of ratios", format!("{right} of {pairs} right")))
            (fact("rows beyond their tolerance", percent(beyond, outcomes.len())))
            @if failed > 0 { (fact("could not be simulated", failed.to_string())) }
        }
    }
}

/// A table of absolute errors: label, errors and their unit.
fn errors(heading: &str, spreads: &[(String, Spread, &str)]) -> Markup {
    let [near, far] = NEAR.map(|limit| format!("within {limit}"));
    let headings = [heading, "number", "median", "mean", &near, &far].map(|heading| (heading, false));
    let body = html! {
        @for (label, spread, unit) in spreads {
            tr {
                th scope="row" { (label) }
                td { (spread.number) }
                @for error in [spread.median, spread.mean] { td { (format!("{error:.1} {unit}")) } }
                @for near in spread.near { td { (percent(near, spread.number)) } }
            }
        }
    };
    html! { div.scroll { (table("plain", &headings, &body)) } }
}

/// Rows that deviate from what their files state.
fn warnings(outcomes: &[Outcome]) -> Markup {
    let notes = unexpected(outcomes);
    html! {
        @if !notes.is_empty() {
            h2 { "Not as accepted" }
            p.soft { "Worse by more than " (SLACK) ", without a reason, or better than their reason says." }
            ul.readings { @for note in notes { li { (note) } } }
        }
    }
}

fn class(outcome: &Outcome) -> Class {
    match outcome.judgement.as_ref().map(|j| j.verdict) {
        Ok(Verdict::Within | Verdict::Closed) => Class::Near,
        Ok(Verdict::Gap) => Class::Known,
        Ok(Verdict::Unexplained | Verdict::Worse) | Err(_) => Class::Unknown,
    }
}

/// The rows that logarithmic axes can show.
fn pairs(outcomes: &[Outcome]) -> Vec<Pair> {
    let pair = |outcome: &Outcome| {
        let row = outcome.row;
        let simulated = outcome.judgement.as_ref().ok()?.simulated;
        let label = format!(
            "{} {}: measured {}, simulated {}, {}",
            row.row,
            row.what,
            measured(outcome),
            digits(simulated),
            error(outcome)
        );
        (!row.is_points() && simulated > 0.0).then_some(Pair {
            label,
            measured: row.measured,
            simulated,
            class: class(outcome),
        })
    };
    outcomes.iter().filter_map(pair).collect()
}

fn histograms(outcomes: &[Outcome], families: &[&str]) -> Vec<Histogram> {
    let errors =
        |family: &str| of_family(outcomes, family).filter_map(|o| o.judgement.as_ref().ok()?.relative).collect();
    families.iter().map(|family| Histogram { label: (*family).to_owned(), errors: errors(family) }).collect()
}

fn measured(outcome: &Outcome) -> String {
    format!("{} {}", digits(outcome.row.measured), unit(outcome))
}

fn unit<'a>(outcome: &'a Outcome) -> &'a str {
    match outcome.row.unit.as_str() {
        _ if outcome.row.is_ratio() => "×",
        "points" => "%",
        unit => unit,
    }
}

/// The error with its sign; a dash for a row that could not be simulated.
fn error(outcome: &Outcome) -> String {
    let sign = if outcome.row.is_points() { "pt" } else { "%" };
    outcome.judgement.as_ref().map_or("–".to_owned(), |j| format!("{:+.1} {sign}", j.error))
}

/// The relative error, shown after an error in points.
fn relative(outcome: &Outcome) -> String {
    let relative = outcome.judgement.as_ref().ok().and_then(|j| j.relative).filter(|_| outcome.row.is_points());
    relative.map_or_else(String::new, |relative| format!(" ({relative:+.1} %)"))
}

fn size(outcome: &Outcome) -> f64 {
    outcome.judgement.as_ref().map_or(0.0, |j| j.error.abs())
}

/// The rows furthest outside their tolerance.
fn worst(outcomes: &[Outcome]) -> Markup {
    let mut all: Vec<_> = outcomes.iter().filter(|o| far_off(o)).collect();
    all.sort_by(|a, b| size(b).total_cmp(&size(a)));
    all.truncate(WORST);
    let most = all.first().map_or(1.0, |o| size(o));
    html! {
        @if !all.is_empty() {
            h2 { "Furthest beyond their tolerance" }
            div.bars {
                @for outcome in all {
                    @let high = class(outcome) == Class::Unknown;
                    a href=(format!("#{}", outcome.row.row)) { (outcome.row.row) }
                    span title=(outcome.row.what) { i.high[high] style=(format!("--v:{:.3}", size(outcome) / most)) {} }
                    span { (error(outcome)) " " (outcome.row.gap) }
                }
            }
        }
    }
}

/// A table whose headings sort it, except those marked as not sortable.
fn table(classes: &str, headings: &[(&str, bool)], body: &Markup) -> Markup {
    html! {
        table class=(classes) {
            thead { tr {
                @for (i, &(heading, sorts)) in headings.iter().enumerate() {
                    @if sorts || i == 0 { th scope="col" aria-sort="none" { button type="button" { (heading) } } }
                    @else { th scope="col" { (heading) } }
                }
            } }
            tbody { (body) }
        }
    }
}

/// Statistics of each family.
fn summary(outcomes: &[Outcome], families: &[&str]) -> Markup {
    let [near, far] = NEAR.map(|limit| format!("within {limit} %"));
    let headings = [
        ("family", true),
        ("rows", true),
        ("figures", true),
        ("median error, %", true),
        ("mean error, %", true),
        (near.as_str(), true),
        (far.as_str(), true),
        ("directions right", false),
    ];
    let body = html! {
        @for family in families {
            @let accuracy = checked(of_family(outcomes, family));
            @let (pairs, right) = accuracy.directions;
            @let errors = accuracy.relative;
            tr {
                th scope="row" { a href=(format!("#family-{family}")) { (family) } }
                td { (of_family(outcomes, family).count()) }
                td { (errors.number) }
                @if errors.number == 0 { @for _ in 0..4 { td { "–" } } }
                @else {
                    td { (format!("{:.1}", errors.median)) }
                    td { (format!("{:.1}", errors.mean)) }
                    @for near in errors.near { td { (format!("{:.0} %", 100.0 * near as f64 / errors.number as f64)) } }
                }
                td { @if pairs > 0 { (right) " of " (pairs) } @else { "–" } }
            }
        }
    };
    html! { h2 { "Families" } div.scroll { (table("plain", &headings, &body)) } }
}

const HEADINGS: [(&str, bool); 11] = [
    ("row", true),
    ("what", false),
    ("measured", true),
    ("simulated", true),
    ("error", true),
    ("accepted", true),
    ("tolerance", true),
    ("verdict", false),
    ("left out", false),
    ("part", false),
    ("source", false),
];

/// The rows of a family, collapsible.
fn rows(family: &str, outcomes: &[Outcome]) -> Markup {
    let body = html! { @for outcome in of_family(outcomes, family) { (row(outcome)) } };
    html! {
        details open id=(format!("family-{family}")) {
            summary { (family) }
            div.scroll tabindex="0" role="region" aria-label=(family) { (table("rows", &HEADINGS, &body)) }
        }
    }
}

fn row(outcome: &Outcome) -> Markup {
    let row = outcome.row;
    let simulated = outcome.judgement.as_ref().map_or("–".to_owned(), |j| digits(j.simulated));
    let (verdict, bad) = match outcome.judgement.as_ref().map(|j| j.verdict) {
        Ok(Verdict::Within) => ("", false),
        Ok(verdict) => (verdict.word(), !verdict.is_expected()),
        Err(_) => ("failed", true),
    };
    html! {
        tr id=(row.row) {
            th scope="row" { (row.row) }
            td { (row.what) }
            td { (measured(outcome)) }
            td { (simulated) }
            td.high[far_off(outcome)] { (error(outcome)) (relative(outcome)) }
            td { (format!("{:+.1}", row.error)) }
            td { (row.tolerance) }
            td.high[bad] { (row.gap) " " (verdict) }
            td title=[(!row.fitted.is_empty()).then_some(&row.fitted)] { (used(outcome)) }
            td title=(outcome.program) { (outcome.part.name()) }
            td { (row.source) }
        }
    }
}
