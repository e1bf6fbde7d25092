//! Roofline: rates of operations compared with the machine's peaks, on logarithmic axes.

use maud::{Markup, html};

use super::{Frame, Log, coordinate};
use crate::document::{Point, Roof, Roofline, Slope};

const FRAME: Frame = Frame::new(338.0, 20.0, 34.0);
/// Range of intensities always shown, operations per byte.
const INTENSITIES: (f64, f64) = (0.01, 100.0);
/// Approximate width of a letter.
const LETTER: f64 = 6.2;

/// Returns the chart, and its description in words.
pub fn draw(title: &str, roofline: &Roofline) -> Markup {
    let points = &roofline.points;
    let x = FRAME.x([INTENSITIES.0, INTENSITIES.1].into_iter().chain(points.iter().map(|p| p.intensity)));
    let peak = roofline.roofs.iter().map(|r| r.gflops).fold(1.0, f64::max);
    // Far below the roof, only the reached rate is of interest.
    let y = FRAME.y([peak, peak / 1e3, roofline.reached.gflops].into_iter());
    let words = words(roofline);
    html! {
        figure.half {
            figcaption { (title) }
            svg viewBox=(FRAME.view_box()) role="img" aria-label=(format!("{title}: {}", words.join("; "))) {
                (FRAME.axes(&x, &y, "operations for each byte, FLOP/B", "GFLOPS"))
                @for roof in &roofline.roofs { (level(roof, "roof", &y)) }
                @for i in 0..roofline.slopes.len() { (line(&roofline.slopes, i, peak, &x, &y)) }
                @if points.is_empty() { (level(&roofline.reached, "reached", &y)) }
                @for (point, words) in points.iter().zip(&words) {
                    @let i = roofline.slopes.iter().position(|s| s.label == point.level).unwrap_or(0);
                    @let (across, up) = (x.at(point.intensity), y.at(roofline.reached.gflops));
                    circle class=(format!("l-{i}")) cx=(coordinate(across)) cy=(coordinate(up)) r="5" { title { (words) } }
                }
            }
            ul.readings { @for words in &words { li { (words) } } }
            p.reading { (roofline.reading) }
        }
    }
}

/// A rate, regardless of intensity.
fn level(rate: &Roof, class: &str, y: &Log) -> Markup {
    let Frame { left, right, .. } = FRAME;
    let at = y.at(rate.gflops);
    html! {
        path class=(class) d=(format!("M{left} {}H{right}", coordinate(at))) {}
        text x=(right - 4.0) y=(coordinate(at - 5.0)) text-anchor="end" { (rate.label) " " (number(rate.gflops)) " GFLOPS" }
    }
}

/// The limit by a memory level, up to the roof.
fn line(slopes: &[Slope], index: usize, peak: f64, x: &Log, y: &Log) -> Markup {
    let slope = &slopes[index];
    let least = 10f64.powf(x.low).max(10f64.powf(y.low) / slope.gigabytes);
    let most = (peak / slope.gigabytes).min(10f64.powf(x.high));
    let at = |intensity: f64| (x.at(intensity), y.at(intensity * slope.gigabytes));
    let ((x0, y0), (x1, y1)) = (at(least), at(most));
    let label = slope_label(slopes, index);
    // Labels are placed along the line, at different positions so that they do not overlap, and below the roof and its
    // label.
    let room = 1.0 - (label.len() as f64 * LETTER + 24.0) / (x1 - x0).hypot(y1 - y0);
    let along = (0.04 + 0.24 * index as f64).min(room).max(0.0);
    let (tx, ty) = (x0 + along * (x1 - x0), y0 + along * (y1 - y0) - 6.0);
    let angle = (y1 - y0).atan2(x1 - x0).to_degrees();
    html! {
        path class=(format!("slope l-{index}")) d=(format!("M{} {}L{} {}", coordinate(x0), coordinate(y0), coordinate(x1), coordinate(y1))) {}
        text class=(format!("l-{index}")) x=(coordinate(tx)) y=(coordinate(ty))
            transform=(format!("rotate({} {} {})", coordinate(angle), coordinate(tx), coordinate(ty))) {
            (label)
        }
    }
}

/// The label of a slope; of several coinciding slopes, the first has all names.
fn slope_label(slopes: &[Slope], index: usize) -> String {
    let rate = slopes[index].gigabytes;
    if slopes[..index].iter().any(|slope| slope.gigabytes == rate) {
        return String::new();
    }
    let names: Vec<_> = slopes.iter().filter(|s| s.gigabytes == rate).map(|s| s.label.as_str()).collect();
    format!("{} {} GB/s", names.join(", "), number(rate))
}

/// Descriptions of the points, then of levels without points.
fn words(roofline: &Roofline) -> Vec<String> {
    let Roof { label, gflops } = &roofline.reached;
    let rate = number(*gflops);
    let point = |p: &Point| format!("{label} by {} traffic: {} FLOP/B, {rate} GFLOPS", p.level, number(p.intensity));
    let idle = |level: &String| format!("{label} by {level} traffic: nothing moved, {rate} GFLOPS");
    roofline.points.iter().map(point).chain(roofline.idle.iter().map(idle)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coinciding_slopes_have_one_label() {
        let slopes = [("L1", 256.0), ("L2", 128.0), ("memory", 256.0)]
            .map(|(label, gigabytes)| Slope { label: label.to_owned(), gigabytes });
        let labels = [0, 1, 2].map(|i| slope_label(&slopes, i));
        assert_eq!(labels, ["L1, memory 256 GB/s", "L2 128 GB/s", ""]);
    }
}
