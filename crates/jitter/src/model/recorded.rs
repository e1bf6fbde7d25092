//! Models that replay measured traces (`.fxn`).

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use fxscope_osnoise::trace::{Cause, Header, Item, Kind, Reader};

use super::{Arrival, Correlation, Evidence, Length, Lengths, Model, Source, Target, Trace};
use crate::time::Time;

/// Maximum number of causes with their own source, by descending time; the others are merged within their kinds.
const CAUSES: usize = 24;

/// Detours by core: start and length, ns.
type ByCore = BTreeMap<u32, Vec<(u64, u32)>>;

/// A measured trace.
struct Recorded {
    header: Header,
    duration: u64,
    /// The measured cores, including those without detours.
    cores: Vec<u32>,
    causes: BTreeMap<Cause, ByCore>,
    notes: Vec<String>,
}

/// Returns a model that replays a trace, with one source per cause. All sources start at the same moment of the trace.
///
/// # Errors
/// The error, and how to fix it.
pub(super) fn model(path: &Path) -> Result<Model, String> {
    let name = path.display().to_string();
    let fail = |what: String| format!("{name}: {what}");
    let mut recorded = Recorded::read(path).map_err(fail)?;
    recorded.join();
    let by_time = |of: &ByCore| of.values().flatten().map(|detour| u64::from(detour.1)).sum::<u64>();
    let mut causes: Vec<(Cause, ByCore)> = std::mem::take(&mut recorded.causes).into_iter().collect();
    causes.sort_by(|a, b| by_time(&b.1).cmp(&by_time(&a.1)).then(a.0.cmp(&b.0)));
    let source = |(cause, detours): (Cause, ByCore)| {
        let mut trace = recorded.trace(detours)?;
        trace.recording = name.clone();
        // Threads run where the scheduler places them, unless they are pinned.
        trace.movable = matches!(cause.kind, Kind::Task | Kind::KernelThread);
        Ok(Source {
            cause: cause.label(),
            arrival: Arrival::Trace(Arc::new(trace)),
            length: Length::Fixed { value: Time(1.0) },
            on: Target::Cores,
            correlation: Correlation::Independent,
            lengths: Lengths::Independent,
            origin: name.clone(),
            evidence: Evidence::Measured,
        })
    };
    let sources = causes.into_iter().map(source).collect::<Result<Vec<_>, String>>().map_err(fail)?;
    let stem = path.file_stem().map_or_else(|| name.clone(), |stem| stem.to_string_lossy().into_owned());
    Ok(Model { name: stem, title: recorded.title(), note: recorded.notes.join(" "), sources })
}

/// Returns all detours of a trace, regardless of cause.
///
/// # Errors
/// The error, and how to fix it.
pub(super) fn trace(path: &Path) -> Result<Trace, String> {
    let mut recorded = Recorded::read(path)?;
    let mut all = ByCore::new();
    for (core, detours) in std::mem::take(&mut recorded.causes).into_values().flatten() {
        all.entry(core).or_default().extend(detours);
    }
    recorded.trace(all)
}

impl Recorded {
    fn read(path: &Path) -> Result<Recorded, String> {
        let file = fxscope_host::open(path, u64::MAX).map_err(|e| e.why.to_string())?;
        let mut reader = Reader::new(BufReader::new(file)).map_err(|e| e.to_string())?;
        let header = reader.header().clone();
        let cores = header.cores.iter().map(|core| core.core).collect();
        let mut recorded = Recorded { header, duration: 0, cores, causes: BTreeMap::new(), notes: Vec::new() };
        let mut own = 0;
        loop {
            match reader.next_item() {
                Ok(Some(Item::Detours(core, detours))) => {
                    for detour in detours {
                        recorded.duration = recorded.duration.max(detour.end());
                        let cause = reader.causes().get(detour.cause as usize).cloned();
                        let cause = cause.unwrap_or_else(Cause::unknown);
                        if recorded.header.comes_from_measuring(&cause) {
                            own += 1;
                            continue;
                        }
                        let length = u32::try_from(detour.length).map_err(|_| {
                            format!("core {core} has a detour of {}; the maximum is 4 s", Time(detour.length as f64))
                        })?;
                        recorded.causes.entry(cause).or_default().entry(core).or_default().push((detour.start, length));
                    }
                }
                Ok(Some(Item::End(summary))) => {
                    recorded.duration = recorded.duration.max(summary.duration);
                    break;
                }
                Ok(Some(Item::CutOff) | None) => {
                    recorded.notes.push("The measurement was cut off: the detours before are replayed.".to_owned());
                    break;
                }
                Err(error) => {
                    recorded.notes.push(format!("The trace {error}: the detours before are replayed."));
                    break;
                }
            }
        }
        if recorded.causes.is_empty() {
            let why =
                if recorded.notes.is_empty() { "" } else { " (the measurement was cut off, or the file damaged)" };
            return Err(format!(
                "has no individual detours to replay{why}; measure longer, or with a lower --threshold"
            ));
        }
        let cores = recorded.causes.values().flat_map(BTreeMap::keys).copied();
        recorded.cores = recorded.cores.iter().copied().chain(cores).collect();
        recorded.cores.sort_unstable();
        recorded.cores.dedup();
        recorded.notes.extend(
            (own > 0).then(|| {
                "Detours caused by the measurement (its own work, the real-time limit) are left out.".to_owned()
            }),
        );
        Ok(recorded)
    }

    /// Merges the causes with the least time within each kind, until few enough remain.
    fn join(&mut self) {
        let time = |of: &ByCore| of.values().flatten().map(|detour| u64::from(detour.1)).sum::<u64>();
        let mut causes: Vec<(u64, Cause)> = self.causes.iter().map(|(cause, of)| (time(of), cause.clone())).collect();
        causes.sort_by(|a, b| b.cmp(a));
        for (_, cause) in causes.into_iter().skip(CAUSES) {
            let of = self.causes.remove(&cause).unwrap_or_default();
            let others = self.causes.entry(Cause::new(cause.kind, "others")).or_default();
            of.into_iter().for_each(|(core, detours)| others.entry(core).or_default().extend(detours));
        }
    }

    /// Detours as a trace of all cores, including those without detours.
    fn trace(&self, mut detours: ByCore) -> Result<Trace, String> {
        Trace::new(self.duration, self.cores.iter().map(|core| detours.remove(core).unwrap_or_default()).collect())
    }

    /// What was recorded, in one line.
    fn title(&self) -> String {
        let host = if self.header.host.is_empty() { &self.header.program } else { &self.header.host };
        let many = if self.cores.len() == 1 { "" } else { "s" };
        format!("Replay of {host}, {} core{many} for {}", self.cores.len(), Time(self.duration as f64))
    }
}
