//! The verdict: the first screen of a page.

use maud::{Markup, html};

use crate::render::quantity::share;
use crate::verdict::{Hot, Limit, Remedy, Verdict};

/// Returns the verdict.
pub fn draw(verdict: &Verdict) -> Markup {
    html! {
        section.verdict aria-label="Verdict" {
            p.result { (verdict.result) }
            @if !verdict.limits.is_empty() {
                h3 { "What limits it" }
                ol.limits { @for limit in &verdict.limits { (draw_limit(limit)) } }
            }
            div.beside {
                @if !verdict.remedies.is_empty() {
                    div { h3 { "What to try" } ol.remedies { @for remedy in &verdict.remedies { (draw_remedy(remedy)) } } }
                }
                @if !verdict.hottest.is_empty() {
                    div { h3 { "Hottest" } ol.hottest { @for hot in &verdict.hottest { (draw_hot(hot)) } } }
                }
            }
            @for note in &verdict.notes { p.soft { (note) } }
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
                p { (limit.says) }
                ul.evidence { @for fact in facts { li { (fact) } } }
            }
        }
    }
}

fn draw_remedy(remedy: &Remedy) -> Markup {
    html! { li { (remedy.text) @if let Some(command) = &remedy.command { " " code { (command) } } } }
}

fn draw_hot(hot: &Hot) -> Markup {
    let name = if hot.function.is_empty() { "(no function)" } else { &hot.function };
    html! {
        li {
            b { (share(hot.share)) } " " (name)
            @if let Some(line) = &hot.line {
                " " span.soft title=(line.file) { (line.short()) }
                @if let Some(text) = &line.text { code { (text) } }
            }
        }
    }
}
