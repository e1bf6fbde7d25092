//! Summarises a trace: shares, rates, lengths, periods, spectrum and timeline, in one pass and bounded memory.

mod periods;
mod series;

use std::collections::BTreeMap;
use std::io::Read;

use serde::Serialize;

pub use periods::{Lags, Period};
use series::Series;

use crate::trace::{Cause, Detour, Error, Header, Item, Kind, Method, Reader, Summary, bin};

/// Slices of the timeline.
const SLICES: usize = 120;
/// Slices of each core's series for the spectrum.
const SAMPLES: usize = 1 << 14;
/// Maximum number of causes to search for periods.
const CAUSES: usize = 64;

/// Minimum number of periods that a trace must cover.
const FEWEST: f64 = 5.0;

/// Summary of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// The trace's header.
    pub header: Header,
    /// The trace's summary; `None` if the measurement was cut off.
    pub summary: Option<Summary>,
    /// Why not all of the file could be read.
    pub damage: Option<String>,
    /// Duration of the trace, ns; up to the end of the last detour if nothing else is known.
    pub duration: u64,
    /// Totals over all cores.
    pub all: Totals,
    /// Totals by core.
    pub cores: BTreeMap<u32, Totals>,
    /// Totals by cause, by descending time.
    pub causes: Vec<(Cause, Totals)>,
    /// Detours by length, in the bins of [`bin`].
    pub histogram: Vec<u64>,
    /// The same for each cause, in the order of `causes`.
    pub by_cause: Vec<Vec<u64>>,
    /// Periods found, with their causes.
    pub periods: Vec<(Cause, Period)>,
    /// Timeline: for each slice, the noise as a share of all cores' time.
    pub time_line: Vec<f64>,
    /// Length of a slice, ns.
    pub slice: u64,
    /// Power of the noise by frequency (Hz), averaged over cores and normalised to the largest value.
    pub spectrum: Vec<(f64, f64)>,
}

/// Totals of the detours of a core or a cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Number of detours.
    pub detours: u64,
    /// Total length, ns.
    pub time: u64,
    /// Longest, ns.
    pub longest: u64,
}

impl Totals {
    fn add(&mut self, length: u64) {
        self.detours += 1;
        self.time += length;
        self.longest = self.longest.max(length);
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn with(self, other: &Totals) -> Totals {
        let longest = self.longest.max(other.longest);
        Totals { detours: self.detours + other.detours, time: self.time + other.time, longest }
    }

    /// Returns the share of the time of `cores` cores.
    #[must_use]
    pub fn share(&self, duration: u64, cores: usize) -> f64 {
        let whole = duration as f64 * cores as f64;
        if whole > 0.0 { self.time as f64 / whole } else { 0.0 }
    }

    /// Detours per second on each of `cores` cores.
    #[must_use]
    pub fn rate(&self, duration: u64, cores: usize) -> f64 {
        let whole = duration as f64 / 1e9 * cores as f64;
        if whole > 0.0 { self.detours as f64 / whole } else { 0.0 }
    }

    /// Returns the mean length, ns.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.detours > 0 { self.time as f64 / self.detours as f64 } else { 0.0 }
    }
}

/// Summarises a trace.
///
/// # Errors
/// If it cannot be read. A damaged or truncated trace is summarised as far as it goes.
pub fn summarise<R: Read>(mut trace: Reader<R>) -> Result<View, Error> {
    let mut found = Found::default();
    let (summary, damage) = loop {
        match trace.next_item() {
            Ok(Some(Item::Detours(core, detours))) => found.add(core, &detours),
            Ok(Some(Item::End(summary))) => break (Some(*summary), None),
            Ok(Some(Item::CutOff)) => break (None, Some("has no end: the measurement was cut off".to_owned())),
            Ok(None) => break (None, None),
            Err(Error::Read(error)) => return Err(Error::Read(error)),
            Err(error) => break (None, Some(error.to_string())),
        }
    };
    Ok(found.view(&trace, summary, damage))
}

#[derive(Default)]
struct Found {
    all: Totals,
    cores: BTreeMap<u32, Totals>,
    causes: BTreeMap<u32, (Totals, Vec<u64>)>,
    end: u64,
    time_line: Series<SLICES>,
    series: BTreeMap<u32, Series<SAMPLES>>,
    lags: BTreeMap<u32, Lags>,
}

impl Found {
    fn add(&mut self, core: u32, detours: &[Detour]) {
        let part = self.cores.entry(core).or_default();
        let series = self.series.entry(core).or_default();
        for detour in detours {
            self.all.add(detour.length);
            part.add(detour.length);
            let (cause, histogram) = self.causes.entry(detour.cause).or_default();
            cause.add(detour.length);
            let bin = bin(detour.length);
            histogram.resize(histogram.len().max(bin + 1), 0);
            histogram[bin] += 1;
            self.end = self.end.max(detour.end());
            self.time_line.add(detour.start, detour.length);
            series.add(detour.start, detour.length);
            let known = self.lags.len() < CAUSES || self.lags.contains_key(&detour.cause);
            if known {
                self.lags.entry(detour.cause).or_default().add(core, detour.start, detour.length);
            }
        }
    }

    fn view<R: Read>(self, trace: &Reader<R>, summary: Option<Summary>, damage: Option<String>) -> View {
        let header = trace.header().clone();
        let duration = summary.as_ref().map_or(0, |summary| summary.duration).max(self.end);
        let mut cores = self.cores;
        // Include cores without detours.
        for core in &header.cores {
            cores.entry(core.core).or_default();
        }
        let (mut all, mut histogram) = (self.all, Vec::new());
        self.causes.values().for_each(|(_, counts)| add(&mut histogram, counts));
        if let Some(summary) = summary.as_ref().filter(|_| all.detours == 0 && header.method == Method::Imported) {
            sums(summary, &mut all, &mut cores, &mut histogram);
        }
        let cause = |number: u32| trace.causes().get(number as usize).cloned().unwrap_or_else(Cause::unknown);
        let named = |(n, (part, counts))| ((cause(n), part), counts);
        let mut causes: Vec<((Cause, Totals), Vec<u64>)> = self.causes.into_iter().map(named).collect();
        causes.sort_by(|a, b| (b.0.1.time, &a.0.0).cmp(&(a.0.1.time, &b.0.0)));
        let (causes, by_cause) = causes.into_iter().unzip();
        let mut periods = Vec::new();
        for (&number, lags) in &self.lags {
            // A period seen only a few times may be chance.
            let often = lags.periods().into_iter().filter(|period| period.period * FEWEST <= duration as f64);
            periods.extend(often.map(|period| (cause(number), period)));
        }
        periods.sort_by(|a, b| b.1.detours.cmp(&a.1.detours).then(a.1.period.total_cmp(&b.1.period)));
        let (slice, sums) = self.time_line.until(duration);
        let whole = (slice as f64 * cores.len().max(1) as f64).max(1.0);
        View {
            damage,
            duration,
            all,
            causes,
            histogram,
            by_cause,
            periods,
            time_line: sums.into_iter().map(|sum| sum / whole).collect(),
            slice,
            spectrum: series::spectrum(&self.series, duration),
            cores,
            header,
            summary,
        }
    }
}

/// Adds the totals of imported traces that have no individual detours.
fn sums(summary: &Summary, all: &mut Totals, cores: &mut BTreeMap<u32, Totals>, histogram: &mut Vec<u64>) {
    for core in &summary.cores {
        let part = cores.entry(core.core).or_default();
        part.detours = core.histogram.iter().sum();
        part.time = core.counted.iter().filter(|c| c.time && c.cause.kind == Kind::Unknown).map(|c| c.amount).sum();
        part.longest = core.longest;
        all.detours += part.detours;
        all.time += part.time;
        all.longest = all.longest.max(part.longest);
        add(histogram, &core.histogram);
    }
}

/// Adds counts to a histogram.
fn add(histogram: &mut Vec<u64>, counts: &[u64]) {
    histogram.resize(histogram.len().max(counts.len()), 0);
    histogram.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}
