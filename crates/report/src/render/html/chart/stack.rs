//! Components of the time of threads as stacked bars.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::{Axis, coordinate};
use crate::document::{Bar, Stack};
use crate::render::palette::class;
use crate::render::quantity::share;
use crate::render::scale::Scale;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 48.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 46.0;
/// Share of a bar's space that it fills.
const FILL: f64 = 0.84;
/// Minimum distance between bar labels.
const LABEL: f64 = 17.0;
/// Approximate width of a letter.
const LETTER: f64 = 6.2;
/// Maximum width of a bar.
const WIDEST: f64 = 56.0;

/// Returns the chart, and its legend with the shares of the last bar, which is the total.
pub fn draw(title: &str, stack: &Stack) -> Markup {
    let longest = stack.bars.iter().map(|b| b.values.iter().sum::<f64>()).fold(0.0, f64::max);
    let scale = Scale::of(&stack.unit, [longest].into_iter());
    let axis = Axis::new(longest * scale.factor, HEIGHT - TOP - BOTTOM);
    let description = format!("{title}: stacked bars for {} parts of the run, in {}", stack.bars.len(), scale.unit);
    html! {
        figure.wide {
            figcaption { (title) ", " (scale.unit) }
            div.stack {
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(description) {
                    @for tick in axis.ticks() {
                        @let y = coordinate(TOP + axis.length - axis.at(tick));
                        path.grid d=(format!("M{LEFT} {y}H{WIDTH}")) {}
                        text.soft x=(LEFT - 6.0) y=(y) text-anchor="end" dominant-baseline="middle" { (axis.label(tick)) }
                    }
                    @for (index, part) in stack.parts.iter().enumerate() {
                        @let d = outline(stack, index, &axis, scale.factor);
                        @if !d.is_empty() {
                            path class=(format!("part {}", class(stack, index))) d=(d) { title { (name(&part.id, &part.label)) } }
                        }
                    }
                    (labels(&stack.bars))
                    path.axis d=(format!("M{LEFT} {}H{WIDTH}", coordinate(TOP + axis.length))) {}
                }
                (legend(stack))
            }
        }
    }
}

/// Position and width of each bar. Totals are separated from threads.
fn places(bars: &[Bar]) -> Vec<(f64, f64)> {
    let threads = bars.iter().filter(|b| b.thread.is_some()).count();
    let gaps = if threads > 0 && threads < bars.len() { 0.6 } else { 0.0 };
    let room = ((WIDTH - LEFT - 8.0) / (bars.len() as f64 + gaps)).min(WIDEST / FILL);
    let start = |i: usize| LEFT + 4.0 + room * (i as f64 + if i >= threads { gaps } else { 0.0 });
    (0..bars.len()).map(|i| (start(i) + room * (1.0 - FILL) / 2.0, room * FILL)).collect()
}

/// The rectangles of one component in all bars.
fn outline(stack: &Stack, part: usize, axis: &Axis, factor: f64) -> String {
    let mut d = String::new();
    for (bar, (x, width)) in stack.bars.iter().zip(places(&stack.bars)) {
        // Later components lie below it.
        let below: f64 = bar.values[part + 1..].iter().sum();
        let (low, high) = (axis.at(below * factor), axis.at((below + bar.values[part]) * factor));
        if high - low >= 0.05 {
            let (x, y) = (coordinate(x), coordinate(TOP + axis.length - high));
            let (w, h) = (coordinate(width), coordinate(high - low));
            let _ = write!(d, "M{x} {y}h{w}v{h}h-{w}z");
        }
    }
    d
}

/// The bars' names; if there are many, numbers of some threads.
fn labels(bars: &[Bar]) -> Markup {
    let places = places(bars);
    let y = HEIGHT - BOTTOM + 14.0;
    let room = places.get(1).map_or(WIDEST, |next| next.0 - places[0].0);
    let each = (LABEL / room).ceil().max(1.0) as usize;
    html! {
        @for (i, (bar, (x, width))) in bars.iter().zip(&places).enumerate() {
            @let middle = coordinate(x + width / 2.0);
            @match bar.thread {
                Some(thread) => @if i % each == 0 { text.soft x=(middle) y=(y) text-anchor="middle" { (thread) } },
                None if bar.label.len() as f64 * LETTER <= room => {
                    text.soft x=(middle) y=(y) text-anchor="middle" { (bar.label) }
                }
                None => text.soft x=(middle) y=(y) text-anchor="end"
                    transform=(format!("rotate(-40 {middle} {y})")) { (bar.label) },
            }
        }
        @if bars.iter().any(|b| b.thread.is_some()) {
            text.soft x=(LEFT + 4.0) y=(HEIGHT - 6.0) { "thread" }
        }
    }
}

/// The nonzero components, topmost first, with their share of the total.
fn legend(stack: &Stack) -> Markup {
    let whole = stack.bars.last();
    let sum: f64 = whole.map_or(0.0, |bar| bar.values.iter().sum());
    html! {
        ul.legend aria-label="Parts, from the top of the bars" {
            li.soft { span {} span {} span { "of " (whole.map_or("", |bar| bar.label.as_str())) } }
            @for (i, part) in stack.parts.iter().enumerate() {
                @if stack.bars.iter().any(|bar| bar.values[i] > 0.0) {
                    @let fraction = whole.map_or(0.0, |bar| bar.values[i] / sum);
                    li {
                        svg viewBox="0 0 10 10" aria-hidden="true" { rect class=(class(stack, i)) width="10" height="10" rx="2" {} }
                        span { (name(&part.id, &part.label)) }
                        span { (share(fraction)) }
                    }
                }
            }
        }
    }
}

fn name(id: &str, label: &str) -> String {
    if id.is_empty() { label.to_owned() } else { format!("{id} {label}") }
}
