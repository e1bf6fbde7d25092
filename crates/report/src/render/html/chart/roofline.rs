//! Roofline: rates of operations compared with the machine's peaks, on logarithmic axes.

use maud::{Markup, html};
use serde_json::{Value as Json, json};

use super::{figure, number, rounded};
use crate::document::{Point, Roofline};
use crate::render::html::fold;
use crate::render::quantity::share;

/// A row of the table of points.
struct Place<'a> {
    name: &'a str,
    /// A loop's share of the cycles.
    share: Option<f64>,
    point: &'a Point,
    gflops: f64,
}

impl Place<'_> {
    /// Returns the most that the point's level and the pipes allow at its intensity.
    fn limit(&self, roofline: &Roofline) -> f64 {
        let slope = roofline.slopes.iter().find(|slope| slope.label == self.point.level);
        let roof = roofline.roofs.iter().map(|roof| roof.gflops).fold(0.0, f64::max);
        slope.map_or(roof, |slope| (slope.gigabytes * self.point.intensity).min(roof))
    }
}

/// Returns the chart, its points in a table, and how to read it.
pub fn draw(title: &str, roofline: &Roofline) -> Markup {
    let places = places(roofline);
    let details = html! {
        @for words in idle(roofline) { p.reading { (words) } }
        (table(roofline, &places))
        p.reading { (roofline.reading) }
    };
    let description = format!("{title}: {} points, which the table below the chart lists", places.len());
    figure("wide", title, &description, &data(roofline, &places), &details)
}

/// The points of the region, then those of loops.
fn places(roofline: &Roofline) -> Vec<Place<'_>> {
    let reached = &roofline.reached;
    let of_region =
        roofline.points.iter().map(|point| Place { name: &reached.label, share: None, point, gflops: reached.gflops });
    let of_loops = roofline.loops.iter().flat_map(|of| {
        of.points.iter().map(|point| Place { name: &of.name, share: Some(of.share), point, gflops: of.gflops })
    });
    of_region.chain(of_loops).collect()
}

fn data(roofline: &Roofline, places: &[Place]) -> Json {
    let level = |slope: &crate::document::Slope| json!({ "label": slope.label, "gigabytes": rounded(slope.gigabytes) });
    let roof = |roof: &crate::document::Roof| json!({ "label": roof.label, "gflops": rounded(roof.gflops) });
    let point = |place: &Place| {
        json!({
            "name": place.name,
            "share": place.share.map(share),
            "level": place.point.level,
            "intensity": rounded(place.point.intensity),
            "gflops": rounded(place.gflops),
            "limit": share(place.gflops / place.limit(roofline)),
        })
    };
    json!({
        "kind": "roofline",
        "roofs": roofline.roofs.iter().map(roof).collect::<Vec<_>>(),
        "levels": roofline.slopes.iter().map(level).collect::<Vec<_>>(),
        "points": places.iter().map(point).collect::<Vec<_>>(),
        // Without points, the rate is a line.
        "reached": roofline.points.is_empty().then(|| roof(&roofline.reached)),
    })
}

fn table(roofline: &Roofline, places: &[Place]) -> Markup {
    let nearest =
        places.iter().max_by(|a, b| (a.gflops / a.limit(roofline)).total_cmp(&(b.gflops / b.limit(roofline))));
    let answer = nearest.map_or_else(String::new, |place| {
        let of_limit = share(place.gflops / place.limit(roofline));
        format!("nearest to its limit: {}, {}, {of_limit}", place.name, place.point.level)
    });
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label="Points of the roofline" {
            table {
                thead { tr {
                    @for heading in ["point", "share of cycles", "bytes of", "FLOP/B", "GFLOPS", "of its limit"] { th scope="col" { (heading) } }
                } }
                tbody {
                    @for place in places {
                        tr {
                            th scope="row" { (place.name) }
                            td { (place.share.map_or_else(|| "–".to_owned(), share)) }
                            td { (place.point.level) }
                            td { (number(place.point.intensity)) }
                            td { (number(place.gflops)) }
                            td { (share(place.gflops / place.limit(roofline))) }
                        }
                    }
                }
            }
        }
    };
    html! { @if !places.is_empty() { (fold::draw("Points of the roofline", &answer, fold::State::Closed, &body)) } }
}

/// Levels without points.
fn idle(roofline: &Roofline) -> impl Iterator<Item = String> {
    let rate = number(roofline.reached.gflops);
    let label = &roofline.reached.label;
    roofline.idle.iter().map(move |level| format!("{label} by {level} traffic: nothing moved, {rate} GFLOPS"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Roof, Slope};

    #[test]
    fn the_limit_of_a_point_is_the_bandwidth_of_its_level_or_the_pipes() {
        let roof = Roof { label: "peak".to_owned(), gflops: 64.0 };
        let point = |intensity| Point { level: "memory".to_owned(), intensity };
        let roofline = Roofline {
            roofs: vec![roof.clone()],
            slopes: vec![Slope { label: "memory".to_owned(), gigabytes: 256.0 }],
            reached: Roof { gflops: 16.0, ..roof },
            points: vec![point(0.125), point(4.0)],
            idle: Vec::new(),
            loops: Vec::new(),
            reading: String::new(),
        };
        let limits: Vec<f64> = places(&roofline).iter().map(|place| place.limit(&roofline)).collect();
        assert_eq!(limits, [32.0, 64.0]);
        let text = draw("Roofline", &roofline).into_string();
        assert!(text.contains("nearest to its limit: peak, memory, 50.0 %"), "{text}");
    }
}
