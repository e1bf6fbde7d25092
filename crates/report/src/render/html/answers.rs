//! The first screen of a region: what limits it, where the time went, the hottest loops, the regions.

use maud::{Markup, html};

use super::plain;
use crate::document::{Bar, Body, Family, RegionReport, Row, Section, Stack};
use crate::loops;
use crate::render::palette;
use crate::render::quantity::share;
use crate::verdict::{Hot, Limit, Remedy, Verdict, in_short};

/// Causes with a smaller share of the time have no name.
const LEAST: f64 = 0.005;

/// Returns whether a section is part of the answers.
pub fn has(section: &Section) -> bool {
    matches!(section.body, Body::Verdict(_)) || section.title == loops::HOTTEST
}

/// Returns the answers on a region; `regions` lists those of its run. Without a verdict there is nothing but them.
pub fn draw(region: &RegionReport, regions: &Markup) -> Markup {
    let verdict = region.sections.iter().find_map(|section| match &section.body {
        Body::Verdict(verdict) => Some(verdict),
        _ => None,
    });
    let hottest = region.sections.iter().find(|section| section.title == loops::HOTTEST);
    let hottest = html! { @if let Some(section) = hottest { (hottest_loops(section)) } };
    let stack = region.sections.iter().find_map(|section| match &section.body {
        Body::Stack(stack) => Some(stack),
        _ => None,
    });
    let Some(verdict) = verdict else { return regions.clone() };
    let causes = html! { @if let Some(stack) = stack { (causes(stack)) } };
    html! { (draw_verdict(verdict, &causes, &hottest)) (regions) }
}

/// Returns a verdict, with the time by cause and the hottest loops where they belong.
pub fn draw_verdict(verdict: &Verdict, causes: &Markup, hottest: &Markup) -> Markup {
    html! {
        section.verdict aria-label=(format!("Verdict: {}", verdict.result)) {
            p.result { (unbroken(&verdict.result)) }
            (causes)
            div.beside {
                @if !verdict.limits.is_empty() {
                    div { h3 { "What limits it " span.soft { "share of core time" } } ol.limits { @for limit in &verdict.limits { (draw_limit(limit)) } } }
                }
                div {
                    @if verdict.loops.is_empty() || !hottest.0.is_empty() { (hottest) } @else {
                        h3 { "Hottest loops " span.soft { "share of thread time" } }
                        ol.hottest { @for hot in &verdict.loops { (draw_hot(hot)) } }
                    }
                    @if !verdict.hottest.is_empty() {
                        h3 { "Hottest functions " span.soft { "share of thread time" } }
                        ol.hottest { @for hot in &verdict.hottest { (draw_hot(hot)) } }
                    }
                    @if !verdict.remedies.is_empty() {
                        h3 { "What to try" }
                        ol.remedies { @for remedy in &verdict.remedies { (draw_remedy(remedy)) } }
                    }
                }
            }
            @for note in &verdict.notes { p.soft { (note) } }
        }
    }
}

/// Returns the result of a region and what limits it, in one line; `None` without a verdict.
pub fn limits(region: &RegionReport) -> Option<String> {
    let verdict = region.sections.iter().find_map(|section| match &section.body {
        Body::Verdict(verdict) => Some(verdict),
        _ => None,
    })?;
    let limits: Vec<String> =
        verdict.limits.iter().map(|limit| format!("{} {}", share(limit.share), limit.title)).collect();
    Some(if limits.is_empty() {
        verdict.result.clone()
    } else {
        format!("{}. Limits: {}", verdict.result, limits.join(", "))
    })
}

/// The time of the last bar, which is the total, by what threads do or wait for, the largest share first.
fn causes(stack: &Stack) -> Markup {
    let Some(shares) = stack.bars.last().map(|bar| shares(stack, bar)) else { return html! {} };
    let colour = |family| palette::class_of(family);
    html! {
        div.causes {
            h3 { "Time by cause " span.soft { "share of thread time" } }
            div.bar aria-hidden="true" {
                @for &(family, part) in &shares { span class=(colour(family)) style=(format!("width:{:.2}%", 100.0 * part)) {} }
            }
            ul {
                @for &(family, part) in shares.iter().filter(|cause| cause.1 >= LEAST) {
                    li { span class=(format!("key {}", colour(family))) aria-hidden="true" {} (family.label()) " " b { (share(part)) } }
                }
            }
        }
    }
}

/// The share of each family in a bar, the largest first.
fn shares(stack: &Stack, bar: &Bar) -> Vec<(Family, f64)> {
    let whole: f64 = bar.values.iter().sum();
    let mut sums: Vec<(Family, f64)> = Vec::new();
    for (part, value) in stack.parts.iter().zip(&bar.values).filter(|(_, value)| **value > 0.0) {
        match sums.iter_mut().find(|sum| sum.0 == part.family) {
            Some(sum) => sum.1 += value / whole,
            None => sums.push((part.family, value / whole)),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    sums
}

/// The rows of the table of loops as a list, which needs less room: the first value is the share of the cycles.
fn hottest_loops(section: &Section) -> Markup {
    let Body::Table { headings, rows } = &section.body else { return html! {} };
    let others = |row: &Row| {
        let values = headings.iter().skip(2).zip(row.values.iter().skip(1));
        let known = values
            .filter_map(|(heading, value)| Some(format!("{heading} {}", plain::text(value.as_ref()?).trim_end())));
        known.collect::<Vec<_>>().join(", ")
    };
    html! {
        h3 { (section.title) " " span.soft { "share of thread time" } }
        ol.hottest {
            @for row in rows {
                li { b { (plain::value(row.values.first())) } " " (row.label) " " span.soft { (others(row)) } }
            }
        }
    }
}

fn draw_limit(limit: &Limit) -> Markup {
    let facts = limit.evidence.iter().map(ToString::to_string).collect::<Vec<_>>();
    html! {
        li {
            div.share { b { (share(limit.share)) } span.track aria-hidden="true" { span style=(format!("width:{:.1}%", 100.0 * limit.share.clamp(0.0, 1.0))) {} } }
            div {
                b { (limit.title) }
                p { (unbroken(&limit.says)) }
                ul.evidence { @for fact in facts { li { (fact) } } }
            }
        }
    }
}

fn draw_remedy(remedy: &Remedy) -> Markup {
    html! { li { (with_code(&remedy.text)) @if let Some(command) = &remedy.command { " " code { (command) } } } }
}

/// A sentence whose numbers stay together with their percent signs.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// A sentence in which words between backticks are code.
fn with_code(text: &str) -> Markup {
    html! { @for (place, part) in text.split('`').enumerate() { @if place % 2 == 1 { code { (part) } } @else { (part) } } }
}

fn draw_hot(hot: &Hot) -> Markup {
    html! {
        li {
            b { (share(hot.share)) } " " (hot.name())
            @if let Some(line) = &hot.line {
                " " span.soft title=(line.file) { (line.short()) }
                @if let Some(text) = &line.text { code { (text) } }
            }
            @if !hot.limits.is_empty() { " " span.soft { "limited by " (in_short(&hot.limits)) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::StackPart;

    #[test]
    fn causes_are_families_of_parts_and_the_largest_comes_first() {
        let part = |family| StackPart { id: String::new(), label: String::new(), family };
        let parts = [Family::Memory, Family::L2, Family::Memory, Family::Commit].map(part).to_vec();
        let bar = Bar { label: "total".to_owned(), thread: None, values: vec![2.0, 0.0, 3.0, 5.0] };
        let stack = Stack { unit: "s".to_owned(), parts, bars: vec![bar.clone()] };
        assert_eq!(shares(&stack, &bar), [(Family::Memory, 0.5), (Family::Commit, 0.5)]);
    }
}
