//! Counts of a run, as used by rows' formulas.

use std::collections::BTreeMap;

use fxscope_pmu::formula::{Formula, Reduction, Scope};
use serde::{Deserialize, Serialize};

use crate::suite::BEFORE;

/// Counts of the last region of a run.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
pub struct Counts {
    /// Seconds per cycle.
    period: f64,
    /// Events, metrics, and cycles and seconds of the slowest thread.
    values: BTreeMap<String, f64>,
    /// Events of each thread.
    threads: Vec<BTreeMap<String, f64>>,
}

impl Counts {
    /// Parses the output of `fxscope run --json`.
    ///
    /// # Errors
    /// If it has no region, or one without cycles.
    pub fn parse(json: &str) -> Result<Counts, String> {
        let run: Output = serde_json::from_str(json).map_err(|e| format!("its counts cannot be read: {e}"))?;
        let region = run.regions.into_iter().next_back().ok_or("it has no region")?;
        let period = run.simulated.seconds / run.simulated.cycles;
        let threads: Vec<_> = region.threads.into_iter().map(|thread| thread.events).collect();
        let cycles = |events: &BTreeMap<String, f64>| events.get("CPU_CYCLES").copied();
        let slowest = threads.iter().filter_map(cycles).reduce(f64::max).ok_or("no thread has counted CPU_CYCLES")?;
        let metrics = region.metrics.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let mut values: BTreeMap<_, _> = metrics.chain(region.events).collect();
        values.insert("cycles".to_owned(), slowest);
        values.insert("seconds".to_owned(), slowest * period);
        Ok(Counts { period, values, threads })
    }

    /// Returns the value of a formula ([`Row::simulated`](crate::Row::simulated)) over these counts, and over those of a second
    /// run for names that have its prefix.
    ///
    /// # Errors
    /// If the runs do not count what the formula names: that name.
    pub fn value(&self, formula: &Formula, before: Option<&Counts>) -> Result<f64, String> {
        let names = Names { run: self, before };
        formula.value(&names).ok_or_else(|| {
            let unknown = formula.names().into_iter().find(|name| names.name(name).is_none());
            format!("its runs count no {}", unknown.map_or("value for each thread", |name| name))
        })
    }

    /// Returns the counts of one thread, as if it had run alone.
    fn of_thread(&self, events: &BTreeMap<String, f64>) -> Counts {
        let mut values = events.clone();
        let cycles = events.get("CPU_CYCLES").copied().unwrap_or(0.0);
        values.insert("cycles".to_owned(), cycles);
        values.insert("seconds".to_owned(), cycles * self.period);
        Counts { period: self.period, values, threads: Vec::new() }
    }
}

/// The parts of the output used here.
#[derive(Deserialize)]
struct Output {
    simulated: Simulated,
    regions: Vec<Region>,
}

#[derive(Deserialize)]
struct Simulated {
    cycles: f64,
    seconds: f64,
}

#[derive(Deserialize)]
struct Region {
    events: BTreeMap<String, f64>,
    metrics: BTreeMap<String, Option<f64>>,
    threads: Vec<Thread>,
}

#[derive(Deserialize)]
struct Thread {
    events: BTreeMap<String, f64>,
}

/// Values of names in a row's formula.
struct Names<'a> {
    run: &'a Counts,
    before: Option<&'a Counts>,
}

impl Scope<String> for Names<'_> {
    fn name(&self, name: &String) -> Option<f64> {
        match name.strip_prefix(BEFORE) {
            Some(name) => self.before?.values.get(name).copied(),
            None => self.run.values.get(name).copied(),
        }
    }

    fn threads(&self, over: Reduction, formula: &Formula) -> Option<f64> {
        let mut each = self.run.threads.iter().map(|events| {
            let run = self.run.of_thread(events);
            formula.value(&Names { run: &run, before: None })
        });
        match over {
            Reduction::First => each.next()?,
            Reduction::Most => each.collect::<Option<Vec<_>>>()?.into_iter().reduce(f64::max),
            // No row uses the CMG of a thread.
            Reduction::Cmg => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{"simulated":{"cycles":400,"seconds":2e-7},"regions":[
        {"name":"all","events":{"CPU_CYCLES":9},"metrics":{},"threads":[{"events":{"CPU_CYCLES":9}}]},
        {"name":"loop","events":{"CPU_CYCLES":300,"INST_RETIRED":60},"metrics":{"ipc":0.2,"power":null},
         "threads":[{"events":{"CPU_CYCLES":100,"INST_RETIRED":40}},{"events":{"CPU_CYCLES":200,"INST_RETIRED":20}}]}]}"#;

    fn value(formula: &str) -> Option<f64> {
        let run = Counts::parse(RUN).expect("a run");
        let before = Counts::parse(&RUN.replace("300", "3000").replace("200", "1000")).expect("a run");
        Formula::parse(formula).expect("a formula").value(&Names { run: &run, before: Some(&before) })
    }

    #[test]
    fn names_are_those_of_the_last_region() {
        assert_eq!(value("INST_RETIRED"), Some(60.0));
        assert_eq!(value("ipc"), Some(0.2));
        assert_eq!(value("power"), None);
        assert_eq!(value("L2D_CACHE_REFILL"), None);
    }

    #[test]
    fn time_is_that_of_the_slowest_thread() {
        assert_eq!(value("cycles"), Some(200.0));
        assert_eq!(value("seconds * 2e9").map(f64::round), Some(200.0));
        assert_eq!(value("most(INST_RETIRED / cycles)"), Some(0.4));
    }

    #[test]
    fn before_is_the_second_run() {
        assert_eq!(value("before_cycles / cycles"), Some(5.0));
    }

    #[test]
    fn a_run_without_counts_is_refused() {
        let none = r#"{"simulated":{"cycles":400,"seconds":2e-7},"regions":[]}"#;
        assert_eq!(Counts::parse(none).unwrap_err(), "it has no region");
        let functional =
            r#"{"simulated":{"cycles":0,"seconds":0},"regions":[{"events":{},"metrics":{},"threads":[]}]}"#;
        assert_eq!(Counts::parse(functional).unwrap_err(), "no thread has counted CPU_CYCLES");
    }
}
