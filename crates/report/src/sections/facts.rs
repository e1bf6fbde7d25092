//! Sections that list metrics with labels.

use fxscope_pmu::{Group, Metrics, Sampled, Values};

use super::plain;
use crate::Column;
use crate::document::{Body, Row, Section, Value};

pub(super) const RUN: &[(&str, &str)] =
    &[("time", "seconds"), ("cycles", "cycles"), ("instructions", "instructions"), ("IPC", "ipc")];

const RATES: &[(&str, &str)] = &[
    ("FP", "gflops"),
    ("of FP peak", "gflops_percent_of_peak"),
    ("FP peak", "gflops_peak"),
    ("memory", "memory_gbs"),
    ("of memory peak", "memory_percent_of_peak"),
    ("memory peak", "memory_peak_gbs"),
    ("cores", "cores_used"),
    ("CMGs", "cmgs_used"),
    ("SVE instructions", "sve_instruction_rate"),
];

pub(super) const MISSES: &[(&str, &str)] = &[
    ("L1D", "l1d_miss_rate"),
    ("L2", "l2_miss_rate"),
    ("L1 DTLB", "l1_dtlb_miss_rate"),
    ("L2 DTLB", "l2_dtlb_miss_rate"),
    ("L1I", "l1i_miss_rate"),
    ("branches", "branch_misprediction_share"),
];

/// Power and energy of the chip, and their parts.
pub(super) const POWER: &[(&str, &str)] = &[
    ("chip", "chip_power"),
    ("energy", "energy"),
    ("cores", "chip_core_power"),
    ("L2", "chip_l2_power"),
    ("memory", "chip_memory_power"),
    ("rate by power", "gflops_per_watt"),
];

pub(super) const BUSY: &[(&str, &str)] = &[
    ("EAGA", "eaga_busy"),
    ("EAGB", "eagb_busy"),
    ("EXA", "exa_busy"),
    ("EXB", "exb_busy"),
    ("FLA", "fla_busy"),
    ("FLB", "flb_busy"),
    ("PRX", "prx_busy"),
    ("L1", "l1_busy"),
    ("L2", "l2_busy"),
    ("memory", "memory_busy"),
];

/// Peaks and the rates they belong to; a peak is shown only with its rate.
const PEAKS: &[(&str, &str)] = &[
    ("gflops_peak", "gflops"),
    ("cores_used", "gflops"),
    ("memory_peak_gbs", "memory_gbs"),
    ("cmgs_used", "memory_gbs"),
];

/// The values of a region's metrics, and how well they are known in a sampled run.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub values: &'a Values,
    pub sampled: Option<&'a Sampled>,
}

impl<'a> Known<'a> {
    pub fn of(column: &'a Column) -> Known<'a> {
        Known { values: &column.values, sampled: column.sampled.as_ref() }
    }

    /// Returns the value of a metric.
    pub fn value(&self, name: &str, unit: &str) -> Option<Value> {
        let half_width = self.sampled.and_then(|sampled| sampled.of_metric(name));
        self.values.get(name).map(|value| Value::estimate(value, unit, half_width))
    }
}

/// Returns the rates of regions, each with its peak.
pub(super) fn rates(columns: &[Known]) -> Section {
    let has = |name: &str| columns.iter().any(|known| known.values.get(name).is_some());
    let is_wanted = |name: &str| PEAKS.iter().find(|peak| peak.0 == name).is_none_or(|&(_, rate)| has(rate));
    let list: Vec<_> = RATES.iter().filter(|(_, name)| is_wanted(name)).copied().collect();
    section("Rates", &list, columns)
}

/// Returns the metrics in `list` that at least one of several regions has.
pub(super) fn section(title: &str, list: &[(&str, &str)], columns: &[Known]) -> Section {
    let rows = list.iter().filter_map(|(label, name)| {
        let unit = &Metrics::built_in().named(name)?.unit;
        let values: Vec<_> = columns.iter().map(|known| known.value(name, unit)).collect();
        values.iter().any(Option::is_some).then(|| Row { label: (*label).to_owned(), values })
    });
    Section { title: title.to_owned(), body: Body::Facts(rows.collect()) }
}

/// Returns a section for each group of the user's own metrics.
pub(super) fn own(columns: &[Known]) -> Vec<Section> {
    let of_group = |group: &Group| {
        let titles: Vec<_> = group.metrics.iter().map(|metric| (plain(&metric.title), metric.name.as_str())).collect();
        let list: Vec<_> = titles.iter().map(|(title, name)| (title.as_str(), *name)).collect();
        section(&plain(&group.title), &list, columns)
    };
    Metrics::built_in().own_groups().iter().map(of_group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_name_metrics_that_exist() {
        for (_, name) in [RUN, RATES, MISSES, BUSY, POWER].concat() {
            assert!(Metrics::built_in().named(name).is_some(), "{name}");
        }
    }
}
