//! Utilisation of units: bars with the limits above which they are marked.

use maud::{Markup, html};

use crate::document::Gauge;
use crate::render::quantity::share;

/// Returns the bars, and the interpretations of marked ones.
pub fn draw(title: &str, gauges: &[Gauge]) -> Markup {
    let percent = |fraction: f64| format!("{:.1}%", 100.0 * fraction.clamp(0.0, 1.0));
    html! {
        figure {
            figcaption { (title) }
            ul.gauges {
                @for gauge in gauges {
                    li {
                        span { (gauge.label) }
                        span.track aria-hidden="true" {
                            span class=(if gauge.is_high() { "busy high" } else { "busy" }) style=(format!("width:{}", percent(gauge.fraction))) {}
                            @if let Some(limit) = gauge.limit { span.limit style=(format!("left:{}", percent(limit))) {} }
                        }
                        span { (share(gauge.fraction)) }
                    }
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
