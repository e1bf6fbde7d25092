//! Fits noise models to traces: for each cause, its periodic and random sources, their lengths, whether they strike
//! cores simultaneously, and the goodness of fit.

mod arrivals;
mod lengths;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

pub use arrivals::Arrival;
pub use lengths::Length;

use crate::trace::{Cause, Detour, Error, Item, Kind, Reader};
use crate::view::Lags;

/// A noise model of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// What was measured, in one line.
    pub title: String,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Sources of noise, by descending time.
    pub sources: Vec<Source>,
    /// Share of the cores' time that is noise in the trace.
    pub measured: f64,
    /// The same share in the model.
    pub modelled: f64,
}

/// A source of noise.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// Cause.
    pub cause: Cause,
    /// Arrival process of its detours.
    pub arrival: Arrival,
    /// Distribution of their lengths.
    pub length: Length,
    /// The cores it strikes, if not all.
    pub chosen: Option<Vec<u32>>,
    /// Whether it strikes these cores simultaneously.
    pub together: bool,
    /// Whether simultaneous detours have equal lengths.
    pub same_lengths: bool,
    /// Number of detours that it was fitted to.
    pub detours: usize,
    /// Largest difference between the gap distributions of trace and model (Kolmogorov–Smirnov distance); for periodic
    /// sources, the share of periods without a detour.
    pub gaps_off: f64,
    /// The same for lengths.
    pub lengths_off: f64,
}

impl Source {
    /// Detours per second on each core that it strikes.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.arrival.rate()
    }
}

/// Why no model can be fitted.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The trace cannot be read.
    #[error("{0}")]
    Trace(#[from] Error),
    /// The trace has nothing to fit.
    #[error("has no individual detours to fit ({0}); measure longer, or with a lower --threshold, on the host itself")]
    Nothing(String),
}

/// Maximum number of detours processed.
const MOST: usize = 4_000_000;
/// Maximum number of sources in a model; the smallest are merged.
const SOURCES: usize = 32;
/// Maximum number of periods per cause.
const PERIODS: usize = 4;
/// Relative excess of detours over periods that a periodic source may have.
const CROWDED: f64 = 0.05;
/// Largest difference between the starts of simultaneous detours on different cores, ns.
const TOGETHER: u64 = 20_000;

/// Detours by core: start and length, ns.
type ByCore = BTreeMap<u32, Vec<(u64, u64)>>;

/// Fits a model to a trace.
///
/// # Errors
/// If the trace cannot be read or has no detours.
pub fn fit<R: Read>(mut trace: Reader<R>) -> Result<Model, Failure> {
    let Gathered { mut streams, mut notes, duration, cores } = gather(&mut trace)?;
    let detours = |stream: &ByCore| stream.values().map(Vec::len).sum::<usize>();
    let measured: u64 = streams.values().flat_map(BTreeMap::values).flatten().map(|detour| detour.1).sum();
    if streams.values().map(detours).sum::<usize>() == 0 || duration == 0 {
        return Err(Failure::Nothing(format!("{} cores, {} ns", cores.len(), duration)));
    }
    join_smallest(&mut streams);
    let setting = Setting { duration, cores, tolerance: TOGETHER.max(trace.header().quantum) };
    let mut sources: Vec<Source> = Vec::new();
    for (cause, stream) in streams {
        sources.extend(setting.sources(&cause, stream));
    }
    let whole = duration as f64 * setting.cores.len() as f64;
    let share = |source: &Source| {
        let struck = source.chosen.as_ref().map_or(setting.cores.len(), Vec::len);
        source.rate() / 1e9 * source.length.mean() * struck as f64 / setting.cores.len() as f64
    };
    sources.sort_by(|a, b| share(b).total_cmp(&share(a)).then(a.cause.cmp(&b.cause)));
    let few = sources.iter().filter(|source| source.detours < 30).count();
    if few > 0 {
        notes.push(format!("sources fitted to fewer than 30 detours: {few}"));
    }
    let header = trace.header();
    let on =
        if header.host.is_empty() { header.program.clone() } else { format!("{}, {}", header.host, header.kernel) };
    Ok(Model {
        title: format!(
            "{on}: {} core{} for {:.1} s",
            setting.cores.len(),
            if setting.cores.len() == 1 { "" } else { "s" },
            duration as f64 / 1e9
        ),
        notes,
        modelled: sources.iter().map(share).sum(),
        sources,
        measured: measured as f64 / whole,
    })
}

struct Gathered {
    streams: BTreeMap<Cause, ByCore>,
    notes: Vec<String>,
    duration: u64,
    cores: Vec<u32>,
}

/// Reads a trace's detours by cause. Those caused by the measurement are not noise of the host.
fn gather<R: Read>(trace: &mut Reader<R>) -> Result<Gathered, Error> {
    let header = trace.header().clone();
    let mut cores: BTreeSet<u32> = header.cores.iter().map(|core| core.core).collect();
    let mut streams: BTreeMap<Cause, ByCore> = BTreeMap::new();
    let (mut notes, mut duration, mut kept, mut own) = (Vec::new(), 0, 0, 0u64);
    loop {
        match trace.next_item() {
            Ok(Some(Item::Detours(core, detours))) => {
                cores.insert(core);
                for Detour { start, length, cause } in detours {
                    duration = duration.max(start.saturating_add(length));
                    let cause = trace.causes().get(cause as usize).cloned().unwrap_or_else(Cause::unknown);
                    if header.comes_from_measuring(&cause) {
                        own += 1;
                    } else if kept < MOST {
                        kept += 1;
                        streams.entry(cause).or_default().entry(core).or_default().push((start, length.max(1)));
                    }
                }
                if kept >= MOST {
                    notes.push(format!("fitted to the first {MOST} detours, {:.1} s", duration as f64 / 1e9));
                    break;
                }
            }
            Ok(Some(Item::End(summary))) => {
                duration = duration.max(summary.duration);
                break;
            }
            Ok(Some(Item::CutOff) | None) => {
                notes.push("the measurement was cut off: fitted to the detours before".to_owned());
                break;
            }
            Err(Error::Read(error)) => return Err(Error::Read(error)),
            Err(error) => {
                notes.push(format!("the trace {error}: fitted to the detours before"));
                break;
            }
        }
    }
    if own > 0 {
        notes
            .push(format!("detours caused by the measurement (its own work, the real-time limit) are left out: {own}"));
    }
    Ok(Gathered { streams, notes, duration, cores: cores.into_iter().collect() })
}

/// Merges the causes with the least time within each kind, until few enough remain.
fn join_smallest(streams: &mut BTreeMap<Cause, ByCore>) {
    let time = |stream: &ByCore| stream.values().flatten().map(|detour| detour.1).sum::<u64>();
    let mut causes: Vec<(u64, Cause)> = streams.iter().map(|(cause, stream)| (time(stream), cause.clone())).collect();
    // Detours without a name stay separate: they are most of the short and frequent ones.
    causes.retain(|(_, cause)| cause.kind != Kind::Unknown);
    causes.sort_by(|a, b| b.cmp(a));
    for (_, cause) in causes.into_iter().skip(SOURCES / 2) {
        let Some(stream) = streams.remove(&cause) else { continue };
        let others = streams.entry(Cause::new(cause.kind, "others")).or_default();
        for (core, detours) in stream {
            let joined = others.entry(core).or_default();
            joined.extend(detours);
            joined.sort_unstable();
        }
    }
}

struct Setting {
    duration: u64,
    cores: Vec<u32>,
    tolerance: u64,
}

impl Setting {
    /// The sources of a cause: first periodic ones, then the rest.
    fn sources(&self, cause: &Cause, mut stream: ByCore) -> Vec<Source> {
        let mut sources = Vec::new();
        for _ in 0..PERIODS {
            let mut lags = Lags::default();
            for (&core, detours) in &stream {
                detours.iter().for_each(|&(start, length)| lags.add(core, start, length));
            }
            let taken = lags.periods().into_iter().find_map(|period| {
                let (taken, rest) = arrivals::periodic(&stream, period.period);
                self.periodic(cause, &taken, period.period).map(|source| (source, rest))
            });
            let Some((source, rest)) = taken else { break };
            sources.push(source);
            stream = rest;
        }
        sources.extend(self.random(cause, &stream));
        sources
    }

    /// A periodic source, if its detours fill most of the periods.
    fn periodic(&self, cause: &Cause, taken: &ByCore, near: f64) -> Option<Source> {
        let taken = self.struck(taken);
        let (period, missing) = arrivals::period(&taken, near, self.duration)?;
        // A source with more detours than periods does not have this period.
        (-CROWDED..0.5).contains(&missing).then(|| {
            let missing = missing.max(0.0);
            self.source(cause, &taken, Arrival::Periodic { period, missing }, missing)
        })
    }

    /// A random source.
    fn random(&self, cause: &Cause, stream: &ByCore) -> Option<Source> {
        let taken = self.struck(stream);
        let (arrival, distance) = arrivals::random(&taken, self.duration)?;
        Some(self.source(cause, &taken, arrival, distance))
    }

    /// Removes cores with next to nothing of a source when other cores have more.
    fn struck(&self, stream: &ByCore) -> ByCore {
        let most = stream.values().map(Vec::len).max().unwrap_or(0);
        let enough = |detours: &Vec<(u64, u64)>| detours.len() * 5 >= most && !detours.is_empty();
        // With few detours, a core may have none by chance.
        let few = most < 20;
        stream.iter().filter(|(_, d)| few && !d.is_empty() || enough(d)).map(|(&core, d)| (core, d.clone())).collect()
    }

    fn source(&self, cause: &Cause, taken: &ByCore, arrival: Arrival, gaps_off: f64) -> Source {
        let lengths: Vec<u64> = taken.values().flatten().map(|detour| detour.1).collect();
        let (length, lengths_off) = lengths::fit(&lengths);
        let most = taken.values().map(Vec::len).max().unwrap_or(0);
        let all = taken.len() == self.cores.len() || most < 20;
        // With few detours per core, the rate is the same for all cores.
        let arrival = match arrival {
            Arrival::Poisson { .. } if all => {
                let seconds = self.duration as f64 / 1e9 * self.cores.len() as f64;
                Arrival::Poisson { rate: lengths.len() as f64 / seconds }
            }
            other => other,
        };
        let (together, same_lengths) = arrivals::together(taken, self.tolerance, arrival.rate());
        Source {
            cause: cause.clone(),
            arrival,
            length,
            chosen: (!all).then(|| taken.keys().copied().collect()),
            together,
            same_lengths,
            detours: lengths.len(),
            gaps_off,
            lengths_off,
        }
    }
}
