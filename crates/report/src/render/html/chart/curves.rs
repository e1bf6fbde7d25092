//! Curves with linear or logarithmic axes.

use maud::{Markup, html};

use super::{Axis, Frame, Log, coordinate, decade};
use crate::document::{Curve, Plot};

const FRAME: Frame = Frame::new(338.0, 16.0, 24.0);
/// Number of points from which they have no markers.
const DENSE: usize = 60;

/// An axis.
enum Scale {
    Log(Log),
    /// From 0: its position, and the direction in which values grow.
    Linear {
        axis: Axis,
        start: f64,
        sign: f64,
    },
}

impl Scale {
    fn across(plot: &Plot) -> Scale {
        let values = || plot.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
        match plot.logarithmic {
            true => Scale::Log(FRAME.x(values())),
            false => Scale::linear(values(), FRAME.left, FRAME.right),
        }
    }

    fn up(plot: &Plot) -> Scale {
        let values = || plot.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
        match plot.logarithmic_up {
            true => Scale::Log(FRAME.y(values())),
            false => Scale::linear(values(), FRAME.bottom, FRAME.top),
        }
    }

    fn linear(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Scale {
        let axis = Axis::new(values.fold(0.0, f64::max), (end - start).abs());
        Scale::Linear { axis, start, sign: (end - start).signum() }
    }

    fn at(&self, value: f64) -> f64 {
        match self {
            Scale::Log(axis) => axis.at(value),
            Scale::Linear { axis, start, sign } => start + sign * axis.at(value),
        }
    }

    /// Positions and labels of the ticks.
    fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Scale::Log(axis) => axis.ticks().map(|power| (axis.at(10f64.powi(power)), decade(power))).collect(),
            Scale::Linear { axis, .. } => axis.ticks().map(|tick| (self.at(tick), axis.label(tick))).collect(),
        }
    }
}

/// Returns the plot, and the names of its curves.
pub fn draw(plot: &Plot) -> Markup {
    let Frame { left, right, top, bottom, height, .. } = FRAME;
    let (across, up) = (Scale::across(plot), Scale::up(plot));
    let y = |value: f64| up.at(value);
    html! {
        figure.half {
            figcaption { (plot.title) }
            svg viewBox=(FRAME.view_box()) role="img" aria-label=(words(plot)) {
                @for (at, label) in across.ticks() {
                    @let at = coordinate(at);
                    path.grid d=(format!("M{at} {top}V{bottom}")) {}
                    text.soft x=(at) y=(bottom + 14.0) text-anchor="middle" { (label) }
                }
                @for (at, label) in up.ticks() {
                    @let at = coordinate(at);
                    path.grid d=(format!("M{left} {at}H{right}")) {}
                    text.soft x=(left - 6.0) y=(at) text-anchor="end" dominant-baseline="middle" { (label) }
                }
                text.soft x=((left + right) / 2.0) y=(height - 6.0) text-anchor="middle" { (plot.across) }
                text.soft x="4" y="10" { (plot.up) }
                @for (i, curve) in plot.curves.iter().enumerate() {
                    path class=(format!("slope l-{i}")) style="fill:none" d=(line(curve, |x| across.at(x), y)) {}
                    @if curve.points.len() < DENSE {
                        @for &(x, value) in &curve.points {
                            circle class=(format!("l-{i}")) cx=(coordinate(across.at(x))) cy=(coordinate(y(value))) r="3" {
                                title { (curve.label) ": " (number(x)) ", " (number(value)) }
                            }
                        }
                    }
                }
            }
            ul.legend {
                @for (i, curve) in plot.curves.iter().enumerate() {
                    li { svg viewBox="0 0 10 10" aria-hidden="true" { circle class=(format!("l-{i}")) cx="5" cy="5" r="4" {} } span { (curve.label) } }
                }
            }
        }
    }
}

fn line(curve: &Curve, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let point = |&(across, up): &(f64, f64)| format!("{} {}", coordinate(x(across)), coordinate(y(up)));
    format!("M{}", curve.points.iter().map(point).collect::<Vec<_>>().join("L"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(logarithmic: bool, points: Vec<(f64, f64)>) -> Plot {
        let curve = Curve { label: "4 MiB".to_owned(), points };
        let [title, across, up] = ["t", "stride, MiB", "miss rate, %"].map(str::to_owned);
        Plot { title, across, logarithmic, up, logarithmic_up: false, curves: vec![curve] }
    }

    #[test]
    fn points_lie_between_the_ends_of_both_axes() {
        let text = draw(&plot(true, vec![(1.0, 0.0), (1000.0, 8.0)])).into_string();
        assert!(text.contains("d=\"M58 298L544 24\""), "{text}");
        let text = draw(&plot(false, vec![(0.0, 0.0), (10.0, 5.0)])).into_string();
        assert!(text.contains("d=\"M58 298L544 24\""), "{text}");
    }

    #[test]
    fn slowdowns_of_one_and_a_thousand_lie_at_the_ends_of_a_logarithmic_axis() {
        let plot = Plot { logarithmic_up: true, ..plot(false, vec![(0.0, 1.0), (10.0, 1000.0)]) };
        assert!(draw(&plot).into_string().contains("d=\"M58 298L544 24\""));
    }

    #[test]
    fn a_plot_without_points_is_empty() {
        let text = draw(&plot(true, Vec::new())).into_string();
        assert!(text.contains("0 points") && !text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
