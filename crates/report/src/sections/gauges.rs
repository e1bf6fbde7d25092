//! Utilisation of units: table C of the report.

use crate::document::{Body, Gauge, Section};
use crate::evaluate::{Evaluated, column};

/// Names of the units, and the columns of their busy rates.
const UNITS: &[(&str, &str)] = &[
    ("FLA", "C01"),
    ("FLB", "C02"),
    ("EXA", "C03"),
    ("EXB", "C04"),
    ("EAGA", "C08"),
    ("EAGB", "C09"),
    ("L1", "C05"),
    ("L2", "C06"),
    ("memory", "C07"),
];

/// Returns the units that were counted; `None` if there are none.
pub(crate) fn section(evaluated: &Evaluated) -> Option<Section> {
    let gauges = UNITS.iter().filter_map(|(label, id)| {
        let column = column(id)?;
        let fraction = evaluated.total(column)?.value;
        let mark = column.marks.first();
        Some(Gauge {
            label: (*label).to_owned(),
            fraction,
            limit: mark.and_then(|mark| mark.above),
            reading: mark.map_or_else(String::new, |mark| mark.rule.clone()),
        })
    });
    let gauges: Vec<_> = gauges.collect();
    (!gauges.is_empty()).then(|| Section { title: "Busy".to_owned(), body: Body::Gauges(gauges) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_have_columns_with_fractions() {
        for (label, id) in UNITS {
            assert_eq!(column(id).map(|c| c.unit.as_str()), Some("ratio"), "{label}");
        }
    }
}
