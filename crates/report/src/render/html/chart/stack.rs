//! Components of the time of threads as stacked bars.

use maud::{Markup, html};
use serde_json::json;

use super::{figure, rounded};
use crate::document::Stack;
use crate::render::palette::{class, colour};
use crate::render::quantity::share;
use crate::render::scale::Scale;

/// Returns the chart, and its legend with the shares of the last bar, which is the total.
pub fn draw(title: &str, stack: &Stack) -> Markup {
    let longest = stack.bars.iter().map(|b| b.values.iter().sum::<f64>()).fold(0.0, f64::max);
    let scale = Scale::of(&stack.unit, [longest].into_iter());
    let title = format!("{title}, {}", scale.unit);
    let description = format!("{title}: stacked bars for {} parts of the run", stack.bars.len());
    // The first component is on top.
    let parts = shown(stack).rev().map(|part| {
        let values: Vec<f64> = stack.bars.iter().map(|bar| rounded(bar.values[part] * scale.factor)).collect();
        let name = name(&stack.parts[part].id, &stack.parts[part].label);
        json!({ "name": name, "colour": format!("#{:06x}", colour(stack, part)), "values": values })
    });
    let data = json!({
        "kind": "stack",
        "unit": scale.unit,
        "bars": stack.bars.iter().map(|bar| &bar.label).collect::<Vec<_>>(),
        "threads": stack.bars.iter().filter(|bar| bar.thread.is_some()).count(),
        "parts": parts.collect::<Vec<_>>(),
    });
    figure("wide", &title, &description, &data, &legend(stack))
}

/// The components that are nonzero in a bar.
fn shown(stack: &Stack) -> impl DoubleEndedIterator<Item = usize> {
    (0..stack.parts.len()).filter(|&part| stack.bars.iter().any(|bar| bar.values[part] > 0.0))
}

/// The nonzero components, topmost first, with their share of the total.
fn legend(stack: &Stack) -> Markup {
    let whole = stack.bars.last();
    let sum: f64 = whole.map_or(0.0, |bar| bar.values.iter().sum());
    html! {
        ul.legend aria-label="Parts, from the top of the bars" {
            li.soft { span {} span {} span { "of " (whole.map_or("", |bar| bar.label.as_str())) } }
            @for i in shown(stack) {
                @let part = &stack.parts[i];
                @let fraction = whole.filter(|_| sum > 0.0).map_or(0.0, |bar| bar.values[i] / sum);
                li {
                    svg viewBox="0 0 10 10" aria-hidden="true" { rect class=(class(stack, i)) width="10" height="10" rx="2" {} }
                    span { (name(&part.id, &part.label)) }
                    span { (share(fraction)) }
                }
            }
        }
    }
}

fn name(id: &str, label: &str) -> String {
    if id.is_empty() { label.to_owned() } else { format!("{id} {label}") }
}
