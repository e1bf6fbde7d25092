//! What a run of a sweep counted: all metrics and events of each region.

use std::collections::BTreeMap;

use fxscope_pmu::{Evaluation, Sampled, of_run, scope};
use fxscope_record::Run;

/// The values of each region of a run, the whole run first.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Regions and their values.
    pub regions: Vec<(String, Values)>,
    /// Name of the machine.
    pub machine: String,
}

/// The totals of a region, by names of metrics and events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    /// Metrics, in the order of their tables, then events by name.
    pub all: Vec<(String, f64)>,
    /// Half of the width of the interval of those that are estimates.
    pub half_widths: BTreeMap<String, f64>,
}

impl Counted {
    /// Evaluates a run.
    #[must_use]
    pub fn of(run: &Run) -> Counted {
        let pmu = of_run(run);
        let region = |region: &fxscope_record::Region| {
            let total = Evaluation::new(run, region).total();
            let sampled = Sampled::of(run, region);
            let mut values = Values::default();
            for (metric, value) in total.iter() {
                values.all.push((metric.name.clone(), value));
                if let Some(half_width) = sampled.as_ref().and_then(|sampled| sampled.of_metric(&metric.name)) {
                    values.half_widths.insert(metric.name.clone(), half_width);
                }
            }
            let events = scope::totals(&pmu.events, region, &run.constants);
            let of_events = events.into_iter().filter(|(name, _)| total.get(name).is_none());
            values.all.extend(of_events.map(|(name, count)| (name.to_owned(), count as f64)));
            (region.name.clone(), values)
        };
        Counted { regions: run.regions.iter().map(region).collect(), machine: run.machine.clone() }
    }

    /// Returns the values of a region.
    #[must_use]
    pub fn region(&self, name: &str) -> Option<&Values> {
        self.regions.iter().find(|(region, _)| region == name).map(|(_, values)| values)
    }

    /// Returns a value of a region.
    #[must_use]
    pub fn get(&self, region: &str, name: &str) -> Option<f64> {
        self.region(region)?.get(name)
    }
}

impl Values {
    /// Returns the value of a metric or an event.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.all.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
    }
}
