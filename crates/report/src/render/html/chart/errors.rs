//! Simulated against measured values: a scatter plot on logarithmic axes, and histograms of errors.

use maud::{Markup, html};
use serde_json::json;

use super::{figure, rounded};

/// Classification of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Within tolerance.
    Near,
    /// Outside, for a known reason.
    Known,
    /// Outside, for an unknown reason.
    Unknown,
}

impl Class {
    const ALL: [Class; 3] = [Class::Near, Class::Known, Class::Unknown];

    fn label(self) -> &'static str {
        match self {
            Class::Near => "within its tolerance",
            Class::Known => "beyond it, with a numbered reason",
            Class::Unknown => "beyond it, or worse than accepted",
        }
    }
}

/// A measured value and the simulated one.
pub struct Pair {
    /// Both in words.
    pub label: String,
    /// The measured value, above zero.
    pub measured: f64,
    /// The simulated value.
    pub simulated: f64,
    /// How it is drawn.
    pub class: Class,
}

/// The errors of a family.
pub struct Histogram {
    /// Name of the family.
    pub label: String,
    /// Its errors, percent or points.
    pub errors: Vec<f64>,
}

/// Plots measured against simulated values, in any units.
pub fn scatter(title: &str, pairs: &[Pair]) -> Markup {
    let point = |pair: &Pair| json!([rounded(pair.measured), rounded(pair.simulated), pair.label]);
    let class = |class: Class| {
        let points: Vec<_> = pairs.iter().filter(|pair| pair.class == class).map(point).collect();
        json!({ "label": class.label(), "points": points })
    };
    let data = json!({
        "kind": "scatter",
        "across": "measured, each in its unit",
        "up": "simulated",
        "classes": Class::ALL.map(class),
    });
    let number = |class: Class| pairs.iter().filter(|pair| pair.class == class).count();
    let classes = Class::ALL.map(|class| format!("{} {}", number(class), class.label()));
    figure("half", title, &format!("{} values: {}", pairs.len(), classes.join(", ")), &data, &html! {})
}

/// Bin edges; errors beyond the ends are in the outer bins.
const EDGES: [f64; 13] = [-50.0, -25.0, -20.0, -15.0, -10.0, -5.0, -1.0, 1.0, 5.0, 10.0, 15.0, 20.0, 25.0];
const BINS: usize = EDGES.len() + 1;

/// The bin of an error; an edge belongs to the bin closer to zero.
fn bin(error: f64) -> usize {
    EDGES.iter().filter(|&&edge| if edge < 0.0 { error >= edge } else { error > edge }).count()
}

/// The numbers of errors in bins, with a part for each family.
pub fn histograms(title: &str, families: &[Histogram]) -> Markup {
    let part = |family: &Histogram| {
        let mut bins = [0_usize; BINS];
        for &error in &family.errors {
            bins[bin(error)] += 1;
        }
        json!({ "name": family.label, "values": bins })
    };
    let data = json!({
        "kind": "stack",
        "unit": "figures",
        "across": "error, percent or points",
        "bars": (0..BINS).map(between).collect::<Vec<_>>(),
        "parts": families.iter().map(part).collect::<Vec<_>>(),
    });
    let numbers: Vec<String> =
        families.iter().map(|family| format!("{} of {}", family.errors.len(), family.label)).collect();
    figure("half", title, &format!("Errors: {}", numbers.join(", ")), &data, &html! {})
}

fn between(bin: usize) -> String {
    let edge = |i: usize| format!("{:+.0}", EDGES[i]);
    match bin {
        0 => format!("below {}", edge(0)),
        bin if bin == EDGES.len() => format!("above {}", edge(bin - 1)),
        bin => format!("{} to {}", edge(bin - 1), edge(bin)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_on_an_edge_is_in_the_bin_nearer_to_zero() {
        for (i, &edge) in EDGES.iter().enumerate() {
            let inner = if edge < 0.0 { i + 1 } else { i };
            assert_eq!(bin(edge), inner, "{edge}");
            assert_eq!(bin(edge * 1.01), if edge < 0.0 { i } else { i + 1 }, "beyond {edge}");
        }
        assert_eq!((bin(-400.0), bin(0.0), bin(400.0)), (0, 7, BINS - 1));
        assert_eq!([0, 7, BINS - 1].map(between), ["below -50", "-1 to +1", "above +25"]);
    }
}
