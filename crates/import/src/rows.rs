//! Counts by name for each thread, as in most tools' output.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fxscope_pmu::{CALLS, TICKS};
use fxscope_record::{Counts, Intervals, Names, Run, Thread};

use crate::join::{self, Identity, PassRegion};
use crate::{FileError, Machine, Source};

/// What counts belong to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Who {
    /// The whole program.
    Program,
    /// Everything that ran on a CPU.
    Cpu(u32),
    /// A thread known only by number.
    Thread { process: u32, thread: u64 },
    /// What a rank of a parallel program ran on a CPU of a node.
    Rank { rank: u32, node: u32, cpu: u32 },
}

impl Who {
    fn identity(&self) -> Identity {
        let whole = Identity { process: 0, thread: 0, place: None };
        match *self {
            Who::Program => whole,
            Who::Cpu(cpu) => Identity { place: Some(cpu), ..whole },
            Who::Thread { process, thread } => Identity { process, thread, ..whole },
            Who::Rank { rank, cpu, .. } => Identity { process: rank, thread: cpu.into(), place: Some(cpu) },
        }
    }
}

/// The counts of a region by thread and event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    pub(crate) name: String,
    pub(crate) calls: u64,
    pub(crate) counts: BTreeMap<Who, BTreeMap<String, u64>>,
}

impl Rows {
    /// Adds to a count. Fails if the sum exceeds a counter.
    pub(crate) fn add(&mut self, who: &Who, event: String, count: u64) -> Result<(), String> {
        let row = self.counts.entry(who.clone()).or_default();
        let sum = row.get(&event).copied().unwrap_or(0).checked_add(count).filter(|&sum| sum < u64::MAX);
        row.insert(event.clone(), sum.ok_or_else(|| format!("{event} is more than a counter holds"))?);
        Ok(())
    }

    /// Removes the counts of an event.
    pub(crate) fn remove(&mut self, event: &str) {
        for row in self.counts.values_mut() {
            row.remove(event);
        }
    }

    /// Sets the time that a thread, or all threads, spent in the region.
    pub(crate) fn set_seconds(&mut self, who: Option<&Who>, seconds: f64, machine: &Machine) {
        let Some(timer_hz) = machine.constants.get("timer_hz") else { return };
        let ticks = (seconds * timer_hz).round() as u64;
        for (whose, row) in &mut self.counts {
            if who.is_none_or(|who| who == whose) {
                row.insert(TICKS.to_owned(), ticks);
            }
        }
    }
}

/// The counts of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pass {
    pub(crate) regions: Vec<Rows>,
    /// Counts by time interval, if the file has them: a series for each region.
    pub(crate) intervals: Vec<Intervals>,
    /// The command line, if known.
    pub(crate) command: Option<String>,
    pub(crate) notes: Vec<String>,
}

impl Pass {
    /// Returns the region `name`, created if missing.
    pub(crate) fn region(&mut self, name: &str) -> &mut Rows {
        let known = self.regions.iter().position(|region| region.name == name).unwrap_or_else(|| {
            self.regions.push(Rows { name: name.to_owned(), calls: 1, ..Rows::default() });
            self.regions.len() - 1
        });
        &mut self.regions[known]
    }

    /// Returns the events counted, which distinguish passes.
    pub(crate) fn events(&self) -> Vec<&String> {
        let rows = self.regions.iter().flat_map(|region| region.counts.values());
        let mut names: Vec<_> =
            rows.flat_map(BTreeMap::keys).filter(|name| ![TICKS, CALLS].contains(&&***name)).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// A file and its counts.
pub(crate) type Read<'a> = (Source<'a>, Pass);

/// Returns the runs in the files of a format.
pub(crate) fn runs(
    format: &str,
    passes: Vec<Read<'_>>,
    machine: &Machine,
    command: &[String],
) -> Result<Vec<Run>, FileError> {
    let packed = passes.into_iter().map(|(source, pass)| pass.packed(source));
    join::runs(format, packed.collect(), machine, command)
}

impl Pass {
    /// Converts the counts to tables of numbers.
    fn packed(self, source: Source<'_>) -> join::Pass<'_> {
        let all = || self.regions.iter().flat_map(|region| &region.counts);
        let whose: BTreeSet<&Who> = all().map(|(who, _)| who).collect();
        let whose: Vec<&Who> = whose.into_iter().collect();
        let names: Arc<Names> = Arc::new(all().flat_map(|(_, row)| row.keys().cloned()).collect());
        let region = |rows: &Rows| {
            let mut values = vec![Counts::ABSENT; names.len() * rows.counts.len()];
            for (i, row) in rows.counts.values().enumerate() {
                for (name, &count) in row {
                    values[i * names.len() + names.index(name).expect("collected above")] = count;
                }
            }
            let threads = rows.counts.keys().map(|who| whose.binary_search(&who).expect("collected above"));
            PassRegion { name: rows.name.clone(), calls: rows.calls, threads: threads.collect(), values }
        };
        join::Pass {
            file: source.name,
            constants: Vec::new(),
            threads: whose.iter().enumerate().map(|(place, who)| thread(place, who)).collect(),
            identities: whose.iter().map(|who| who.identity()).collect(),
            cmgs: vec![None; whose.len()],
            regions: self.regions.iter().map(region).collect(),
            names,
            intervals: self.intervals,
            command: self.command,
            notes: self.notes,
        }
    }
}

/// Returns the thread that represents these counts in a record.
pub(crate) fn thread(place: usize, who: &Who) -> Thread {
    let thread = u32::try_from(place).unwrap_or(u32::MAX);
    match *who {
        Who::Program => Thread { thread, ..Thread::default() },
        Who::Cpu(cpu) => Thread { thread, cpu, ..Thread::default() },
        Who::Thread { process, .. } => Thread { process, thread, ..Thread::default() },
        Who::Rank { rank, node, cpu } => Thread { process: rank, thread, node, cpu },
    }
}
