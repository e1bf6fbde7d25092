//! Counts of records: the meaning of each processor's events.
//!
//! One table, `inputs.toml`, has them for each processor; the command that counts on a real one passes the same events to
//! perf.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use fxscope_pmu::formula::{Formula, Reduction, Scope};
use fxscope_pmu::{CYCLES, TICKS, scope};
use fxscope_record::{ALL, Intervals, Origin, Region, Run};
use serde::Deserialize;

use crate::{Counts, Quantity};

/// A processor whose events are known.
#[derive(Clone, Debug)]
pub struct Pmu {
    /// Its name.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// Machines whose measurements have its events.
    pub machines: Vec<String>,
    /// An event that only this processor has: simulated runs that counted it are of such a machine, whatever its name.
    pub known_by: Option<String>,
    /// Its names in `/proc/cpuinfo`: `vendor/family/model`, `vendor/family` or `arm/implementer/part`.
    pub processors: Vec<String>,
    /// Whether whole computers must be counted CPU by CPU.
    pub by_cpu: bool,
    /// Source of the events.
    pub source: String,
    /// Its events.
    pub events: Vec<Event>,
    counts: Vec<(Quantity, Formula)>,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Its name in formulas.
    pub name: String,
    /// The event in the syntax of `perf stat`; `None` if perf cannot count it.
    #[serde(default)]
    pub perf: Option<String>,
    /// Other names in records.
    #[serde(default)]
    pub also: Vec<String>,
    /// The pass of the program that counts it, from 1.
    #[serde(default)]
    pub pass: u8,
    /// Whether it counts the whole computer.
    #[serde(default)]
    pub all: bool,
}

/// Counts taken from a part of a record.
#[derive(Clone, Debug)]
pub struct RegionCounts {
    /// The processor whose events they are.
    pub pmu: &'static Pmu,
    /// The counts.
    pub counts: Counts,
    /// Quantities that were not counted, with the events that would count them.
    pub missing: Vec<(Quantity, Vec<String>)>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Why a record cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// None of its events is known.
    #[error(
        "the record of '{0}' has no event from which the effect of memory latency can be estimated; `fxscope latency methods` lists the known ones"
    )]
    NoEvents(String),
    /// It does not have the run time.
    #[error("region '{0}' has no time: neither ticks of the timer nor cycles were counted")]
    NoTime(String),
}

/// Returns all processors.
///
/// # Panics
/// If the table is invalid, which a test rules out.
#[must_use]
pub fn pmus() -> &'static [Pmu] {
    static READ: LazyLock<Vec<Pmu>> =
        LazyLock::new(|| parse(include_str!("../inputs.toml")).expect("the table is tested"));
    &READ
}

/// Parses the table.
///
/// # Errors
/// If the table is invalid.
pub fn parse(text: &str) -> Result<Vec<Pmu>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        pmu: Vec<Entry>,
    }
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Entry {
        id: String,
        title: String,
        machines: Vec<String>,
        #[serde(default)]
        known_by: Option<String>,
        processors: Vec<String>,
        #[serde(default)]
        by_cpu: bool,
        source: String,
        events: Vec<Event>,
        counts: BTreeMap<String, String>,
    }
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    let entry = |e: Entry| {
        let counts = e.counts.iter().map(|(key, formula)| {
            let wrong = |what: String| format!("{}: {key}: {what}", e.id);
            let quantity = Quantity::ALL.iter().find(|q| q.key() == key);
            let quantity = *quantity.ok_or_else(|| wrong("unknown quantity".to_owned()))?;
            let formula = Formula::parse(formula).map_err(wrong)?;
            match formula.names().into_iter().find(|name| !e.events.iter().any(|event| event.name == **name)) {
                Some(name) => Err(wrong(format!("unknown event '{name}'"))),
                None => Ok((quantity, formula)),
            }
        });
        Ok(Pmu {
            counts: counts.collect::<Result<_, String>>()?,
            id: e.id,
            title: e.title,
            machines: e.machines,
            known_by: e.known_by,
            processors: e.processors,
            by_cpu: e.by_cpu,
            source: e.source,
            events: e.events,
        })
    };
    file.pmu.into_iter().map(entry).collect()
}

/// Returns the counts of a region. `threads` is the number of cores that worked at a time, if the record does not say.
///
/// # Errors
/// See [`Unusable`].
pub fn take(run: &Run, region: &Region, threads: Option<f64>) -> Result<RegionCounts, Unusable> {
    let totals = scope::totals(&fxscope_pmu::of_run(run).events, region, &run.constants);
    let pmu = Pmu::of(run, &totals).ok_or_else(|| Unusable::NoEvents(run.machine.clone()))?;
    let seconds = seconds(run, region).ok_or_else(|| Unusable::NoTime(region.name.clone()))?;
    let mut notes = Vec::new();
    let threads = threads.unwrap_or_else(|| {
        pmu.threads(run, region, &totals, seconds).unwrap_or_else(|| {
            notes.push(
                "The record does not say how many cores worked: one is assumed (change it with --threads N)."
                    .to_owned(),
            );
            1.0
        })
    });
    let (counts, missing) = pmu.counts(&totals, seconds, threads);
    Ok(RegionCounts { pmu, counts, missing, notes })
}

/// Returns the counts of a run by interval, in order. `threads` is the number of cores that worked at a time.
///
/// # Errors
/// Why no intervals can be used.
pub fn series(run: &Run, region: &str, threads: f64) -> Result<Vec<Counts>, String> {
    let of_region: Vec<&Intervals> = run.intervals.iter().filter(|series| series.region == region).collect();
    let Some(first) = of_region.first().filter(|series| !series.rows.is_empty()) else {
        return Err(if region == ALL {
            "the run has no intervals: fxscope run --interval TIME records them, and perf stat -I".to_owned()
        } else {
            format!(
                "the run has no intervals of region '{region}': fxscope run --interval TIME --interval-region {region} records them"
            )
        });
    };
    of_region.iter().skip(1).try_for_each(|other| same_intervals(run, first, other))?;
    let names = of_region.iter().flat_map(|series| series.names.iter().map(|name| (name, 0)));
    let pmu = Pmu::of(run, &names.collect()).ok_or("none of the events of the intervals is known")?;
    let mut begin = 0;
    let mut all = Vec::new();
    for (i, row) in first.rows.iter().enumerate() {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for series in &of_region {
            for (name, &count) in series.names.iter().zip(&series.rows[i].counts) {
                totals.entry(name).or_insert(count);
            }
        }
        let seconds = row.end_ns.saturating_sub(begin) as f64 * 1e-9;
        all.push(pmu.counts(&totals, seconds, threads).0);
        begin = row.end_ns;
    }
    Ok(all)
}

/// Fails if another pass has different intervals from the first: counts of different times cannot be combined.
fn same_intervals(run: &Run, first: &Intervals, other: &Intervals) -> Result<(), String> {
    let name = |series: &Intervals| run.passes.get(series.pass).map_or("?", String::as_str);
    let passes = format!("the intervals of passes {} and {} do not match", name(first), name(other));
    if first.rows.len() != other.rows.len() {
        return Err(format!("{passes}: {} and {}", first.rows.len(), other.rows.len()));
    }
    let mut begin = 0;
    for (i, (a, b)) in first.rows.iter().zip(&other.rows).enumerate() {
        if a.end_ns.abs_diff(b.end_ns) > a.end_ns.saturating_sub(begin) / 2 {
            let [a, b] = [a, b].map(|row| row.end_ns as f64 * 1e-6);
            return Err(format!("{passes}: interval {} ends after {a:.3} and {b:.3} ms", i + 1));
        }
        begin = a.end_ns;
    }
    Ok(())
}

impl Pmu {
    /// Returns the processor of a run's events: among the candidates for its machine, the one with most known events.
    fn of(run: &Run, totals: &BTreeMap<&str, u64>) -> Option<&'static Pmu> {
        // A simulated machine can have any name; for a measurement, the user has named the processor.
        let named = |pmu: &&Pmu| match run.origin {
            Origin::Simulated => pmu.known_by.as_ref().is_some_and(|event| totals.contains_key(event.as_str())),
            Origin::Imported { .. } => pmu.machines.contains(&run.machine),
        };
        let any = pmus().iter().any(|pmu| named(&pmu));
        let candidates = pmus().iter().filter(|pmu| !any || named(pmu));
        let known = |pmu: &&'static Pmu| pmu.counts.iter().filter(|c| pmu.value(&c.1, totals).is_some()).count();
        // The first of equals.
        candidates.rev().max_by_key(known).filter(|pmu| known(pmu) > 0)
    }

    /// Computes counts from totals of events.
    #[must_use]
    pub fn counts(
        &self,
        totals: &BTreeMap<&str, u64>,
        seconds: f64,
        threads: f64,
    ) -> (Counts, Vec<(Quantity, Vec<String>)>) {
        let mut counts = Counts::new(seconds, threads);
        let mut missing = Vec::new();
        for (quantity, formula) in &self.counts {
            // Differences of counts from different times may be negative.
            let value = self.value(formula, totals).map(|value| value.max(0.0));
            counts.set(*quantity, value);
            if value.is_none() {
                let lacks = |name: &&String| Names { pmu: self, totals }.name(name).is_none();
                let names = formula.names().into_iter().filter(lacks).cloned().collect();
                missing.push((*quantity, names));
            }
        }
        (counts, missing)
    }

    fn value(&self, formula: &Formula, totals: &BTreeMap<&str, u64>) -> Option<f64> {
        formula.value(&Names { pmu: self, totals })
    }

    /// Returns the number of cores that worked at a time; for a program counted as a whole, from its cycles and the clock.
    fn threads(&self, run: &Run, region: &Region, totals: &BTreeMap<&str, u64>, seconds: f64) -> Option<f64> {
        let cycles = |thread: usize| region.count(thread, CYCLES).filter(|&cycles| cycles > 0);
        let each: Vec<u64> = (0..region.threads.len()).filter_map(cycles).collect();
        if let (true, Some(&most)) = (each.len() > 1, each.iter().max()) {
            return Some(each.iter().sum::<u64>() as f64 / most as f64);
        }
        let of_model = run.origin == fxscope_record::Origin::Simulated;
        if of_model {
            return Some(1.0);
        }
        let clock = run.constants.get("core_hz").copied().filter(|&hz| hz > 0.0)?;
        let all = self.counts.iter().find(|c| c.0 == Quantity::Cycles).and_then(|c| self.value(&c.1, totals))?;
        Some((all / (clock * seconds)).max(1.0)).filter(|threads| threads.is_finite())
    }
}

/// Returns the time of a region, that of its slowest thread, seconds.
fn seconds(run: &Run, region: &Region) -> Option<f64> {
    let most = |name: &str| (0..region.threads.len()).filter_map(|thread| region.count(thread, name)).max();
    let by = |name: &str, hz: &str| {
        let hz = run.constants.get(hz).copied().filter(|&hz| hz > 0.0)?;
        Some(most(name)? as f64 / hz)
    };
    by(TICKS, "timer_hz").or_else(|| by(CYCLES, "core_hz"))
}

/// A processor's events by name.
struct Names<'a> {
    pmu: &'a Pmu,
    totals: &'a BTreeMap<&'a str, u64>,
}

impl Scope<String> for Names<'_> {
    fn name(&self, name: &String) -> Option<f64> {
        let event = self.pmu.events.iter().find(|event| event.name == *name)?;
        if let Some(&count) = self.totals.get(event.name.as_str()) {
            return Some(count as f64);
        }
        // If a record has several names of one event, the first applies.
        event.perf.iter().chain(&event.also).find_map(|alias| {
            let alias = plain(alias);
            let of_alias = self.totals.iter().filter(|(name, _)| plain(name) == alias);
            of_alias.map(|(_, &count)| count as f64).reduce(|a, b| a + b)
        })
    }

    fn threads(&self, _: Reduction, _: &Formula) -> Option<f64> {
        // Totals have no threads.
        None
    }
}

/// Returns perf's name in lower case, without instance numbers of devices and modifiers: `uncore_imc_3/event=0x03/` and
/// `uncore_imc/event=0x03/` are the same event on different channels.
fn plain(name: &str) -> String {
    let name = name.to_lowercase();
    let Some((device, rest)) = name.split_once('/') else {
        return name.split_once(':').map_or(name.as_str(), |(event, _)| event).to_owned();
    };
    let device = match device.rsplit_once('_') {
        Some((kind, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => kind,
        _ => device,
    };
    let event = rest.split_once('/').map_or(rest, |(event, _)| event);
    let mut terms: Vec<&str> = event.split(',').collect();
    terms.sort_unstable();
    format!("{device}/{}/", terms.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_loads_and_every_quantity_that_methods_need_is_counted_somewhere() {
        let needed = crate::methods::METHODS.iter().flat_map(|method| method.needs.iter().flat_map(|of| of.iter()));
        for quantity in needed {
            let counted = |pmu: &Pmu| pmu.counts.iter().any(|c| c.0 == *quantity);
            assert!(pmus().iter().any(counted), "{}", quantity.key());
        }
    }

    #[test]
    fn events_of_the_simulated_machine_are_events_of_its_pmu() {
        let (a64fx, events) = (&pmus()[0], fxscope_pmu::Pmu::built_in("a64fx").expect("built in").events);
        for event in &a64fx.events {
            let number = events.named(&event.name).unwrap_or_else(|| panic!("{}", event.name)).number;
            assert_eq!(event.perf, number.map(|n| format!("r{n:04x}")), "{}", event.name);
        }
    }

    #[test]
    fn everything_that_is_known_of_knights_landing_is_an_event_of_its_model() {
        let (knl, events) = (&pmus()[1], fxscope_pmu::Pmu::built_in("knl").expect("built in").events);
        for event in &knl.events {
            let named = std::iter::once(&event.name).chain(&event.also).any(|name| events.named(name).is_some());
            assert!(named, "{}", event.name);
        }
    }

    #[test]
    fn instances_modifiers_and_the_order_of_terms_make_no_other_event() {
        let same = [
            ("uncore_imc_5/event=0x03,umask=0x03/", "uncore_imc/umask=0x03,event=0x03/"),
            ("uncore_edc_uclk_0/event=0x02,umask=0x1C/", "uncore_edc_uclk/event=0x02,umask=0x1c/"),
            ("cycles:u", "cycles"),
            (
                "cpu/event=0xb7,umask=0x01,offcore_rsp=0x4181800001/u",
                "cpu/event=0xb7,umask=0x01,offcore_rsp=0x4181800001/",
            ),
        ];
        for (a, b) in same {
            assert_eq!(plain(a), plain(b));
        }
        assert_ne!(plain("uncore_imc_5/event=0x03,umask=0x03/"), plain("uncore_imc_5/event=0x03,umask=0x01/"));
    }

    #[test]
    fn the_channels_of_a_controller_are_added_up() {
        let knl = pmus().iter().find(|pmu| pmu.id == "knl").expect("in the table");
        let names: Vec<String> = (0..6).map(|i| format!("uncore_imc_{i}/event=0x03,umask=0x03/")).collect();
        let mut totals: BTreeMap<&str, u64> = names.iter().map(|name| (name.as_str(), 10)).collect();
        totals.insert("cycles", 7);
        let (counts, missing) = knl.counts(&totals, 1.0, 1.0);
        assert_eq!(counts.get(Quantity::Accesses), Some(60.0));
        assert_eq!(counts.get(Quantity::Cycles), Some(7.0));
        let missing: Vec<_> = missing.into_iter().map(|(quantity, _)| quantity).collect();
        assert!(missing.contains(&Quantity::CacheMisses) && !missing.contains(&Quantity::Accesses), "{missing:?}");
    }

    #[test]
    fn mistakes_in_the_table_are_named() {
        let text = |counts: &str| {
            format!(
                "[[pmu]]\nid='x'\ntitle=''\nmachines=[]\nprocessors=[]\nsource=''\nevents=[{{name='a'}}]\n[pmu.counts]\n{counts}"
            )
        };
        for (counts, message) in [
            ("cycles = 'b'", "x: cycles: unknown event 'b'"),
            ("hops = 'a'", "x: hops: unknown quantity"),
            ("cycles = 'a +'", "x: cycles: something is missing at the end"),
        ] {
            assert_eq!(parse(&text(counts)).expect_err(counts), message);
        }
    }
}
