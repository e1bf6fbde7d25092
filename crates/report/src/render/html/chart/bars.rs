//! Groups of bars.

use maud::{Markup, html};
use serde_json::json;

use super::{figure, rounded};
use crate::document::Bars;
use crate::render::html::fold;
use crate::render::quantity::digits;

/// Returns the bars, and their values in a table.
pub fn draw(bars: &Bars) -> Markup {
    let series = |(name, values): &(String, Vec<Option<f64>>)| json!({ "label": name, "values": values.iter().map(|value| value.map(rounded)).collect::<Vec<_>>() });
    let data = json!({
        "kind": "bars",
        "unit": bars.unit,
        "labels": bars.labels,
        "series": bars.series.iter().map(series).collect::<Vec<_>>(),
    });
    figure("half", &bars.title, &words(bars), &data, &table(bars))
}

fn table(bars: &Bars) -> Markup {
    let text = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), digits);
    let body = html! {
        div.scroll tabindex="0" role="region" aria-label=(bars.title) {
            table {
                thead { tr { th scope="col" { (bars.unit) } @for (name, _) in &bars.series { th scope="col" { (name) } } } }
                tbody {
                    @for (i, label) in bars.labels.iter().enumerate() {
                        tr { th scope="row" { (label) } @for (_, values) in &bars.series { td { (text(values.get(i).copied().flatten())) } } }
                    }
                }
            }
        }
    };
    fold::draw("Values", &format!("{} groups", bars.labels.len()), fold::State::ScreenOnly, &body)
}

/// Description of the bars for screen readers.
fn words(bars: &Bars) -> String {
    let most = |(name, values): &(String, Vec<Option<f64>>)| {
        format!("{name}: at most {}", digits(values.iter().flatten().copied().fold(0.0, f64::max)))
    };
    let series: Vec<String> = bars.series.iter().map(most).collect();
    format!("{} in {}. {}", bars.title, bars.unit, series.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_bars_are_in_their_data_and_in_their_table() {
        let series = vec![
            ("published".to_owned(), vec![Some(7.42), None]),
            ("simulated".to_owned(), vec![Some(7.5), Some(8.0)]),
        ];
        let [title, unit] = ["Arithmetic", "GFLOPS"].map(str::to_owned);
        let bars = Bars { title, unit, labels: vec!["add".to_owned(), "sub".to_owned()], series };
        let text = draw(&bars).into_string();
        assert!(text.contains("[7.42,null]"), "{text}");
        assert!(text.contains("<th scope=\"row\">sub</th><td>–</td><td>8.000</td>"), "{text}");
        assert!(text.contains("simulated: at most 8"), "{text}");
    }
}
