//! Curves with linear or logarithmic axes.

use maud::{Markup, html};
use serde_json::json;

use super::figure;
use crate::document::{Curve, Plot};
use crate::render::html::fold;

/// Returns the plot, and its points in a table.
pub fn draw(plot: &Plot) -> Markup {
    let curve = |curve: &Curve| json!({ "label": curve.label, "points": curve.points });
    let data = json!({
        "kind": "curves",
        "across": plot.across,
        "up": plot.up,
        "logarithmic": plot.logarithmic,
        "logarithmicUp": plot.logarithmic_up,
        "curves": plot.curves.iter().map(curve).collect::<Vec<_>>(),
    });
    figure("half", &plot.title, &words(plot), &data, &table(plot))
}

fn table(plot: &Plot) -> Markup {
    let points: usize = plot.curves.iter().map(|curve| curve.points.len()).sum();
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label=(plot.title) {
            table {
                thead { tr { th scope="col" { "curve" } th scope="col" { (plot.across) } th scope="col" { (plot.up) } } }
                tbody {
                    @for curve in &plot.curves {
                        @for (x, y) in &curve.points { tr { th scope="row" { (curve.label) } td { (number(*x)) } td { (number(*y)) } } }
                    }
                }
            }
        }
    };
    fold::draw(
        "Points",
        &format!("{}, {}", counted(points, "point"), counted(plot.curves.len(), "curve")),
        fold::State::ScreenOnly,
        &body,
    )
}

/// Description of the plot for screen readers.
fn words(plot: &Plot) -> String {
    let ends = |curve: &Curve| {
        let most = curve.points.iter().map(|point| point.1).fold(0.0, f64::max);
        format!("{}: {} points, at most {}", curve.label, curve.points.len(), number(most))
    };
    let curves: Vec<_> = plot.curves.iter().map(ends).collect();
    format!("{} against {}. {}", plot.up, plot.across, curves.join("; "))
}

fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number of things.
fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_of_a_plot_are_in_its_data_and_in_its_table() {
        let curve = Curve { label: "4 MiB".to_owned(), points: vec![(1.0, 0.25), (1000.0, 8.0)] };
        let [title, across, up] = ["t", "stride, MiB", "miss rate, %"].map(str::to_owned);
        let plot = Plot { title, across, logarithmic: true, up, logarithmic_up: false, curves: vec![curve] };
        let text = draw(&plot).into_string();
        assert!(text.contains("[[1.0,0.25],[1000.0,8.0]]"), "{text}");
        assert!(text.contains("<td>1000</td><td>8</td>"), "{text}");
        assert!(text.contains("4 MiB: 2 points, at most 8"), "{text}");
    }
}
