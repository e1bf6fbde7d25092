//! Times as table cells.

use fxscope_jitter::Time;
use fxscope_report::sheet::Cell;

/// Returns a time in nanoseconds, to at most four digits.
pub(super) fn about(ns: f64) -> Cell {
    let digits = if ns > 0.0 { 10f64.powf(3.0 - ns.log10().floor()) } else { 1.0 };
    Cell::new(ns, Time((ns * digits).round() / digits).to_string())
}

/// Returns a time in nanoseconds.
pub(super) fn time(ns: f64) -> Cell {
    Cell::new(ns, Time(ns).to_string())
}
