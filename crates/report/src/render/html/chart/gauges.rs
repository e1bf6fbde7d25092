//! Utilisation of units: bars with the limits above which they are marked.

use maud::{Markup, html};

use super::coordinate;
use crate::document::Gauge;
use crate::render::quantity::share;

const WIDTH: f64 = 560.0;
const ROW: f64 = 24.0;
const BAR: f64 = 15.0;
const LEFT: f64 = 92.0;
/// Right end of the bars.
const RIGHT: f64 = WIDTH - 62.0;

/// Returns the bars, and the interpretations of marked ones.
pub fn draw(title: &str, gauges: &[Gauge]) -> Markup {
    let height = ROW * gauges.len() as f64 + 4.0;
    let x = |fraction: f64| LEFT + fraction.clamp(0.0, 1.0) * (RIGHT - LEFT);
    html! {
        figure {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(description(title, gauges)) {
                @for (i, gauge) in gauges.iter().enumerate() {
                    @let y = 4.0 + ROW * i as f64;
                    @let middle = y + BAR / 2.0;
                    @let class = if gauge.is_high() { "busy high" } else { "busy" };
                    text x=(LEFT - 8.0) y=(middle) text-anchor="end" dominant-baseline="central" { (gauge.label) }
                    rect.track x=(LEFT) y=(y) width=(RIGHT - LEFT) height=(BAR) {}
                    rect class=(class) x=(LEFT) y=(y) width=(coordinate(x(gauge.fraction) - LEFT)) height=(BAR) {}
                    @if let Some(limit) = gauge.limit {
                        path.limit d=(format!("M{} {y}v{BAR}", coordinate(x(limit)))) {}
                    }
                    text x=(WIDTH - 2.0) y=(middle) text-anchor="end" dominant-baseline="central" { (share(gauge.fraction)) }
                }
            }
            ul.readings {
                @for gauge in gauges.iter().filter(|g| g.is_high()) {
                    li { strong { (gauge.label) " " (share(gauge.fraction)) } ": " (gauge.reading) }
                }
            }
        }
    }
}

fn description(title: &str, gauges: &[Gauge]) -> String {
    let list: Vec<_> = gauges.iter().map(|g| format!("{} {}", g.label, share(g.fraction))).collect();
    format!("{title}: {}", list.join(", "))
}
