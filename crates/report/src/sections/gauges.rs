//! How busy units are.

use super::facts;
use crate::document::{Body, Gauge, Section};
use crate::evaluate::Evaluated;

/// The units that were counted; `None` when none was.
pub(crate) fn section(evaluated: &Evaluated) -> Option<Section> {
    let gauges = facts::BUSY.iter().filter_map(|(label, name)| {
        let fraction = evaluated.total.get(name)?;
        Some(Gauge { label: (*label).to_owned(), fraction, limit: None, reading: String::new() })
    });
    let gauges: Vec<_> = gauges.collect();
    (!gauges.is_empty()).then(|| Section { title: "Busy".to_owned(), body: Body::Gauges(gauges) })
}
