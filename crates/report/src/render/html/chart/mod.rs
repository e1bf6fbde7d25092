//! Charts: those of reports and experiments are drawn in the browser, those of validation are inline SVG.

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

/// A logarithmic axis.
struct Log {
    low: f64,
    high: f64,
    start: f64,
    end: f64,
}

impl Log {
    /// An axis of whole decades that covers all values.
    fn new(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Log {
        let (low, high) =
            values.filter(|v| *v > 0.0 && v.is_finite()).fold((f64::MAX, 0.0), |(l, h), v| (l.min(v), f64::max(h, v)));
        let (low, high) = if high > 0.0 { (low, high) } else { (1.0, 10.0) };
        Log { low: low.log10().floor(), high: high.log10().ceil().max(low.log10().floor() + 1.0), start, end }
    }

    fn at(&self, value: f64) -> f64 {
        self.start
            + (value.log10().clamp(self.low, self.high) - self.low) / (self.high - self.low) * (self.end - self.start)
    }

    /// Powers of ten to label.
    fn ticks(&self) -> impl Iterator<Item = i32> + use<> {
        /// Maximum number of labelled steps.
        const MOST: i32 = 9;
        let (low, high) = (self.low as i32, self.high as i32);
        (low..=high).step_by(((high - low + MOST - 1) / MOST).max(1) as usize)
    }
}

/// Layout of a chart with two logarithmic axes.
struct Frame {
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    /// A layout with this height and margins to the right and at the top.
    const fn new(height: f64, right: f64, top: f64) -> Frame {
        const WIDTH: f64 = 560.0;
        Frame { width: WIDTH, height, left: 58.0, right: WIDTH - right, top, bottom: height - 40.0 }
    }

    fn view_box(&self) -> String {
        format!("0 0 {} {}", self.width, self.height)
    }

    fn x(&self, values: impl Iterator<Item = f64>) -> Log {
        Log::new(values, self.left, self.right)
    }

    fn y(&self, values: impl Iterator<Item = f64>) -> Log {
        Log::new(values, self.bottom, self.top)
    }

    /// The grid and the labels of the axes.
    fn axes(&self, x: &Log, y: &Log, across: &str, up: &str) -> Markup {
        let &Frame { height, left, right, top, bottom, .. } = self;
        html! {
            @for power in x.ticks() {
                @let at = coordinate(x.at(10f64.powi(power)));
                path.grid d=(format!("M{at} {top}V{bottom}")) {}
                text.soft x=(at) y=(bottom + 14.0) text-anchor="middle" { (decade(power)) }
            }
            @for power in y.ticks() {
                @let at = coordinate(y.at(10f64.powi(power)));
                path.grid d=(format!("M{left} {at}H{right}")) {}
                text.soft x=(left - 6.0) y=(at) text-anchor="end" dominant-baseline="middle" { (decade(power)) }
            }
            text.soft x=((left + right) / 2.0) y=(height - 6.0) text-anchor="middle" { (across) }
            text.soft x="4" y="10" { (up) }
        }
    }
}

/// A power of ten.
fn decade(power: i32) -> String {
    match power {
        -2..=3 => 10f64.powi(power).to_string(),
        power => format!("1e{power}"),
    }
}

/// A coordinate with one decimal, in its shortest form.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!([coordinate(3.0), coordinate(7.34), coordinate(-0.55)], ["3", "7.3", "-0.6"].map(str::to_owned));
    }
}
