//! Curves and bars.

/// A plot of curves.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// Label of the horizontal axis, with unit.
    pub across: String,
    /// Whether the horizontal axis is logarithmic; otherwise it starts at 0.
    pub logarithmic: bool,
    /// Label of the vertical axis, with unit.
    pub up: String,
    /// Whether the vertical axis is logarithmic.
    pub logarithmic_up: bool,
    /// The curves; colours distinguish up to eight.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Label.
    pub label: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// Groups of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Title.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// The groups.
    pub labels: Vec<String>,
    /// Names, and a value for each group; colours distinguish up to eight.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}
