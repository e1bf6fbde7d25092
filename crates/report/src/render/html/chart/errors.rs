//! Simulated against measured values: a scatter plot on logarithmic axes, and histograms of errors.

use maud::{Markup, html};

use super::{Frame, coordinate};

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

    /// The CSS class.
    fn style(self) -> String {
        format!("l-{}", self as usize)
    }

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

const FRAME: Frame = Frame::new(460.0, 16.0, 20.0);

/// Plots measured against simulated values, in any units.
pub fn scatter(title: &str, pairs: &[Pair]) -> Markup {
    let values = || pairs.iter().flat_map(|pair| [pair.measured, pair.simulated]);
    let (x, y) = (FRAME.x(values()), FRAME.y(values()));
    let Frame { left, right, top, bottom, .. } = FRAME;
    html! {
        figure.half {
            figcaption { (title) }
            svg viewBox=(FRAME.view_box()) role="img" aria-label=(format!("{title}: {} values", pairs.len())) {
                (FRAME.axes(&x, &y, "measured, each in its unit", "simulated"))
                path.roof d=(format!("M{left} {bottom}L{right} {top}")) {}
                // Remarkable values are drawn on top.
                @for class in Class::ALL {
                    @for pair in pairs.iter().filter(|pair| pair.class == class) {
                        circle class=(class.style()) cx=(coordinate(x.at(pair.measured))) cy=(coordinate(y.at(pair.simulated))) r="3.2" fill-opacity=".7" {
                            title { (pair.label) }
                        }
                    }
                }
            }
            (legend())
        }
    }
}

fn legend() -> Markup {
    html! {
        ul.legend {
            @for class in Class::ALL {
                li { svg viewBox="0 0 10 10" aria-hidden="true" { circle class=(class.style()) cx="5" cy="5" r="4" {} } span { (class.label()) } }
            }
        }
    }
}

/// Bin edges; errors beyond the ends are in the outer bins.
const EDGES: [f64; 13] = [-50.0, -25.0, -20.0, -15.0, -10.0, -5.0, -1.0, 1.0, 5.0, 10.0, 15.0, 20.0, 25.0];
const BINS: usize = EDGES.len() + 1;
const ROW: f64 = 30.0;
const NAMES: f64 = 110.0;
const HEAD: f64 = 20.0;

/// The bin of an error; an edge belongs to the bin closer to zero.
fn bin(error: f64) -> usize {
    EDGES.iter().filter(|&&edge| if edge < 0.0 { error >= edge } else { error > edge }).count()
}

/// Histograms of errors, one row per family; the highest bin fills the row.
pub fn histograms(title: &str, families: &[Histogram]) -> Markup {
    let height = HEAD + ROW * families.len() as f64 + 34.0;
    let (foot, width) = (height - 30.0, (FRAME.right - NAMES) / BINS as f64);
    html! {
        figure.half {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {} {height}", FRAME.width)) role="img" aria-label=(title) {
                @for (i, edge) in EDGES.iter().enumerate() {
                    @let at = coordinate(NAMES + width * (i + 1) as f64);
                    path.grid d=(format!("M{at} {HEAD}V{foot}")) {}
                    text.soft x=(at) y=(foot + 13.0) text-anchor="middle" { (format!("{edge:+.0}")) }
                }
                @for (i, family) in families.iter().enumerate() { (row(family, HEAD + ROW * i as f64, width)) }
                text.soft x=((NAMES + FRAME.right) / 2.0) y=(height - 4.0) text-anchor="middle" { "error, percent or points" }
            }
        }
    }
}

/// The bars of a family, from `top` on.
fn row(family: &Histogram, top: f64, width: f64) -> Markup {
    let mut bins = [0_usize; BINS];
    for &error in &family.errors {
        bins[bin(error)] += 1;
    }
    let (base, most) = (top + ROW, bins.iter().copied().max().unwrap_or(0) as f64);
    html! {
        text x=(NAMES - 8.0) y=(base - 8.0) text-anchor="end" { (family.label) " " (family.errors.len()) }
        path.grid d=(format!("M{NAMES} {base}H{}", FRAME.right)) {}
        @for (i, &count) in bins.iter().enumerate().filter(|(_, count)| **count > 0) {
            @let tall = (ROW - 6.0) * count as f64 / most;
            rect.busy.high[far(i)] x=(coordinate(NAMES + width * i as f64 + 1.5)) y=(coordinate(base - tall.max(1.5)))
                width=(coordinate(width - 3.0)) height=(coordinate(tall.max(1.5))) {
                title { (family.label) ": " (count) " of " (family.errors.len()) " " (between(i)) }
            }
        }
    }
}

/// Returns whether a bin is more than ten percent away from zero.
fn far(bin: usize) -> bool {
    bin.checked_sub(1).is_none_or(|lower| EDGES[lower] < -10.0 || EDGES[lower] >= 10.0)
}

fn between(bin: usize) -> String {
    let edge = |i: usize| format!("{:+.0}", EDGES[i]);
    match bin {
        0 => format!("below {}", edge(0)),
        bin if bin == EDGES.len() => format!("above {}", edge(bin - 1)),
        bin => format!("from {} to {}", edge(bin - 1), edge(bin)),
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
    }

    #[test]
    fn bins_beyond_ten_percent_are_marked() {
        let standing_out: Vec<_> = (0..BINS).filter(|&i| far(i)).map(between).collect();
        let expected = ["below -50", "from -50 to -25", "from -25 to -20", "from -20 to -15", "from -15 to -10"];
        assert_eq!(standing_out[..5], expected);
        assert_eq!(standing_out[5..], ["from +10 to +15", "from +15 to +20", "from +20 to +25", "above +25"]);
    }
}
