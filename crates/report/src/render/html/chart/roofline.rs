//! Rates of operations against what the machine can do, both axes logarithmic.

use maud::{Markup, html};

use super::{Log, coordinate};
use crate::document::{Roofline, Slope};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 338.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 20.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 40.0;
/// Intensities that are always shown, operations for each byte.
const INTENSITIES: (f64, f64) = (0.01, 100.0);
/// About as wide as a letter is.
const LETTER: f64 = 6.2;

/// The chart, and its points in words.
pub fn draw(title: &str, roofline: &Roofline) -> Markup {
    let points = &roofline.points;
    let x = Log::new([INTENSITIES.0, INTENSITIES.1].into_iter().chain(points.iter().map(|p| p.intensity)), LEFT, RIGHT);
    let peak = roofline.roofs.iter().map(|r| r.gflops).fold(1.0, f64::max);
    // Far below the roof there is nothing to see but points.
    let y = Log::new([peak, peak / 1e3].into_iter().chain(points.iter().map(|p| p.gflops)), BOTTOM, TOP);
    html! {
        figure.half {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(description(title, roofline)) {
                (axes(&x, &y))
                @for roof in &roofline.roofs {
                    @let at = coordinate(y.at(roof.gflops));
                    path.roof d=(format!("M{LEFT} {at}H{RIGHT}")) {}
                    text x=(RIGHT - 4.0) y=(y.at(roof.gflops) - 5.0) text-anchor="end" { (roof.label) " " (number(roof.gflops)) " GFLOPS" }
                }
                @for (i, slope) in roofline.slopes.iter().enumerate() { (line(slope, i, peak, &x, &y)) }
                @for point in points {
                    @let i = roofline.slopes.iter().position(|s| s.label == point.level).unwrap_or(0);
                    circle class=(format!("l-{i}")) cx=(coordinate(x.at(point.intensity))) cy=(coordinate(y.at(point.gflops))) r="5" {
                        title { (words(point)) }
                    }
                }
            }
            ul.readings { @for point in points { li { (words(point)) } } }
            p.reading { (roofline.reading) }
        }
    }
}

fn axes(x: &Log, y: &Log) -> Markup {
    html! {
        @for tick in x.decades() {
            @let at = coordinate(x.at(tick));
            path.grid d=(format!("M{at} {TOP}V{BOTTOM}")) {}
            text.soft x=(at) y=(BOTTOM + 14.0) text-anchor="middle" { (tick) }
        }
        @for tick in y.decades() {
            @let at = coordinate(y.at(tick));
            path.grid d=(format!("M{LEFT} {at}H{RIGHT}")) {}
            text.soft x=(LEFT - 6.0) y=(at) text-anchor="end" dominant-baseline="middle" { (tick) }
        }
        text.soft x=((LEFT + RIGHT) / 2.0) y=(HEIGHT - 6.0) text-anchor="middle" { "operations for each byte, FLOP/B" }
        text.soft x="4" y="10" { "GFLOPS" }
    }
}

/// What a level of memory allows, as far as the roof.
fn line(slope: &Slope, index: usize, peak: f64, x: &Log, y: &Log) -> Markup {
    let least = 10f64.powf(x.low).max(10f64.powf(y.low) / slope.gigabytes);
    let most = (peak / slope.gigabytes).min(10f64.powf(x.high));
    let at = |intensity: f64| (x.at(intensity), y.at(intensity * slope.gigabytes));
    let ((x0, y0), (x1, y1)) = (at(least), at(most));
    let label = format!("{} {} GB/s", slope.label, number(slope.gigabytes));
    // Along the line, each name at another place so that they do not meet, and below the roof and its name.
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

fn words(point: &crate::document::Point) -> String {
    format!(
        "{} by {} traffic: {} FLOP/B, {} GFLOPS",
        point.label,
        point.level,
        number(point.intensity),
        number(point.gflops)
    )
}

fn description(title: &str, roofline: &Roofline) -> String {
    let points: Vec<_> = roofline.points.iter().map(words).collect();
    format!("{title}: {}", points.join("; "))
}

/// A number of three digits.
fn number(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v if v >= 0.0995 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}
