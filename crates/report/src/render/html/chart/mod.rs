//! Charts, which are drawn in the browser.

mod bars;
mod curves;
mod errors;
mod gauges;
mod heat;
mod roofline;
mod stack;

use maud::{Markup, html};
use serde_json::Value as Json;

pub use bars::draw as bars;
pub use curves::draw as curves;
pub use errors::{Class, Histogram, Pair, histograms, scatter};
pub use gauges::draw as gauges;
pub use heat::{draw as heat, most};
pub use roofline::draw as roofline;
pub use stack::draw as stack;

/// Returns a chart that the page's script draws from `data`, and `details` beside or below it.
fn figure(class: &str, title: &str, description: &str, data: &Json, details: &Markup) -> Markup {
    html! {
        figure class=(class) {
            figcaption { (title) }
            div.beside-chart {
                div.plot role="img" tabindex="0" aria-label=(description) data-chart=(data) {}
                div { (details) }
            }
        }
    }
}

/// A number with the four digits that a chart needs.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// A number with three digits.
fn number(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v if v >= 0.0995 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}
