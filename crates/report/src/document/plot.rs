//! Curves.

/// Curves over one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What is along the axis to the right, with its unit.
    pub across: String,
    /// Whether that axis is logarithmic; otherwise it begins at 0.
    pub logarithmic: bool,
    /// What is along the axis upwards, with its unit.
    pub up: String,
    /// Whether that axis is logarithmic.
    pub logarithmic_up: bool,
    /// The curves; colours tell up to eight apart.
    pub curves: Vec<Curve>,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// What it belongs to.
    pub label: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
}
