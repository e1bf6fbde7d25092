//! The PMU that counted a run.
//!
//! A record carries its machine's tables, so that it can be read without the machine's folder. Older records do not;
//! for them, the built-in machine of that name is used.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use fxscope_machine::{Events, Pmu};
use fxscope_record::{Description, Run};

/// What identifies a PMU.
#[derive(Clone, Debug)]
enum Key {
    /// The tables in a record.
    Recorded(Arc<Description>),
    /// The name of a machine.
    Named(String),
}

impl Key {
    fn of(run: &Run) -> Key {
        match &run.description {
            Some(description) => Key::Recorded(Arc::clone(description)),
            None => Key::Named(run.machine.clone()),
        }
    }

    fn is_of(&self, run: &Run) -> bool {
        match (self, &run.description) {
            (Key::Recorded(known), Some(asked)) => {
                Arc::ptr_eq(known, asked) || (known.pmu_csv == asked.pmu_csv && known.groups_csv == asked.groups_csv)
            }
            (Key::Named(known), None) => *known == run.machine,
            _ => false,
        }
    }

    fn read(&self) -> Result<Pmu, String> {
        match self {
            Key::Recorded(description) => {
                Pmu::recorded(&description.pmu_csv, &description.groups_csv).map_err(|e| e.to_string())
            }
            Key::Named(name) => Pmu::built_in(name).ok_or_else(|| {
                "the record does not have them, and fxscope has no built-in machine of this name; repeat the run or the import"
                    .to_owned()
            }),
        }
    }
}

/// A PMU, or why there is none; cached, since regions ask for it thousands of times.
type Known = (Key, Result<Arc<Pmu>, String>);

fn known(run: &Run) -> Result<Arc<Pmu>, String> {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, pmu)) = all.iter().find(|(key, _)| key.is_of(run)) {
        return pmu.clone();
    }
    let key = Key::of(run);
    let pmu = key.read().map(Arc::new);
    all.push((key, pmu.clone()));
    pmu
}

/// Returns the part of a machine's description that a record keeps; `path` is `None` for a built-in machine.
#[must_use]
pub fn description(path: Option<&str>, pmu: &Pmu) -> Description {
    Description { path: path.map(str::to_owned), pmu_csv: pmu.events.to_csv(), groups_csv: pmu.groups.to_csv() }
}

/// Returns the events of a machine, or, if a record file is named, of the machine of its last run.
///
/// # Errors
/// If there is no such machine, the file cannot be read, or the events of its machine are not known.
pub fn events_of(machine_or_record: &str) -> Result<Events, String> {
    let path = Path::new(machine_or_record);
    if path.extension().is_none_or(|suffix| suffix != fxscope_record::SUFFIX) {
        return Ok(fxscope_machine::load(machine_or_record, &[]).map_err(|e| e.to_string())?.pmu.events);
    }
    let runs = fxscope_record::load(path).map_err(|e| e.to_string())?;
    let run = runs.last().ok_or_else(|| format!("{machine_or_record}: the record holds no run"))?;
    match unknown_events(run) {
        Some(why) => Err(format!("{machine_or_record}: {why}")),
        None => Ok(of_run(run).events.clone()),
    }
}

/// Returns the PMU that counted a run. If its tables are unknown ([`unknown_events`]), it has an event for each signal
/// of the model.
#[must_use]
pub fn of_run(run: &Run) -> Arc<Pmu> {
    known(run).unwrap_or_else(|_| Arc::new(Pmu::of_the_model()))
}

/// Returns why the events of a run's machine are unknown, as a sentence; `None` if they are known.
#[must_use]
pub fn unknown_events(run: &Run) -> Option<String> {
    let why = known(run).err()?;
    Some(format!(
        "The events of the machine '{}' are not known ({why}): what belongs to a whole CMG is taken as each thread's own, and \
         what follows from groups of events is missing.",
        run.machine
    ))
}
