//! Events of page walks by processor, from `data/pages/walk-events.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::Error;

const TABLE: &str = include_str!("../../../../../data/pages/walk-events.toml");

/// What an event counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Core cycles.
    Cycles,
    /// Cycles in which at least one walk for data is active.
    WalkCycles,
    /// Walks for data in progress, added up over cycles.
    WalkPending,
    /// Cycles in which a walk for instructions is active.
    CodeWalkCycles,
    /// Walks for data that ended at a page of the base size.
    SmallWalks,
    /// Walks for data that ended at a larger page.
    LargeWalks,
    /// Walks for data of all page sizes.
    Walks,
    /// Cycles in which nothing executes, or nothing is issued.
    Stalled,
}

/// An event of a processor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// What it counts.
    pub role: Role,
    /// perf's name.
    pub perf: String,
    /// Whether [`super::host`] counts it itself; others are read from files.
    #[serde(default = "yes")]
    pub measure: bool,
}

const fn yes() -> bool {
    true
}

/// The events of a kind of processor.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Its name on the command line.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// Which processors it stands for: `vendor/family/model` or `arm/implementer/part`, or a beginning of it.
    pub processors: Vec<String>,
    /// Where names and meanings of the events are from.
    pub source: String,
    /// Cycles of a walk, least and most, if walks are counted only and nothing else is known.
    pub assumed_walk_cycles: Option<[f64; 2]>,
    /// Why they are needed.
    pub why: Option<String>,
    /// Its events.
    pub events: Vec<Event>,
}

#[derive(Deserialize)]
struct Table {
    processor: Vec<Processor>,
}

static PROCESSORS: LazyLock<Vec<Processor>> =
    LazyLock::new(|| toml::from_str::<Table>(TABLE).expect("the table has these keys").processor);

/// Returns all processors whose events of page walks are known.
#[must_use]
pub fn processors() -> &'static [Processor] {
    &PROCESSORS
}

/// Counts of a program, by perf's name of the event: in lower case, without device and modifiers.
pub type Counts = BTreeMap<String, u64>;

/// Returns the name of an event without device (`cpu/…/`) and modifiers, in lower case. Of a hybrid processor, the names of both kinds of
/// cores are the same.
#[must_use]
pub fn plain_name(text: &str) -> String {
    let inside =
        text.split_once('/').map_or(text, |(_, rest)| rest.rsplit_once('/').map_or(rest, |(inside, _)| inside));
    let name = inside.split(',').next().unwrap_or_default();
    let name = name.split_once(':').map_or(name, |(name, _)| name).trim().to_ascii_lowercase();
    // What perf calls `cycles` is this event on Arm.
    if name == "cycles" || name == "cpu-cycles" { "cpu_cycles".to_owned() } else { name }
}

impl Processor {
    /// Returns the counts of a role's events, of those that were counted.
    #[must_use]
    pub fn counted(&self, role: Role, counts: &Counts) -> Vec<f64> {
        let of_role = self.events.iter().filter(|event| event.role == role);
        of_role.filter_map(|event| counts.get(&plain_name(&event.perf))).map(|&count| count as f64).collect()
    }

    /// Returns them added up; `None` if there are none.
    #[must_use]
    pub fn sum(&self, role: Role, counts: &Counts) -> Option<f64> {
        let found = self.counted(role, counts);
        (!found.is_empty()).then(|| found.iter().sum())
    }

    /// Returns the events that fxscope counts itself.
    pub fn measured(&self) -> impl Iterator<Item = &str> {
        self.events.iter().filter(|event| event.measure).map(|event| event.perf.as_str())
    }

    /// How many of its events, cycles aside, have counts.
    fn known(&self, counts: &Counts) -> usize {
        let walks = self.events.iter().filter(|event| event.role != Role::Cycles && event.role != Role::Stalled);
        walks.filter(|event| counts.contains_key(&plain_name(&event.perf))).count()
    }
}

fn ids() -> String {
    processors().iter().map(|one| one.id.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the processor of this name.
///
/// # Errors
/// If there is none.
pub fn named(id: &str) -> Result<&'static Processor, Error> {
    let found = processors().iter().find(|one| one.id == id);
    found.ok_or_else(|| format!("unknown processor '{id}'; choose from {}", ids()).into())
}

/// Returns the processor that `/proc/cpuinfo` shows.
///
/// # Errors
/// If the events of its page walks are not known.
pub fn of_host(cpuinfo: &str) -> Result<&'static Processor, Error> {
    let here = crate::collect::identity(cpuinfo);
    let fits = |begin: &String| here == *begin || here.starts_with(&format!("{begin}/"));
    processors().iter().find(|one| one.processors.iter().any(fits)).ok_or_else(|| {
        format!(
            "the events of page walks of this computer's processor ({here}) are not known; name one with the same events with --processor \
             ({}), or measure the effect of large pages without counters: --check",
            ids()
        )
        .into()
    })
}

/// Returns the processor whose events were counted, by their names.
///
/// # Errors
/// If there are no events of page walks.
pub fn of_counts(counts: &Counts) -> Result<&'static Processor, Error> {
    let best = processors().iter().rev().max_by_key(|one| one.known(counts)).filter(|one| one.known(counts) > 0);
    best.ok_or_else(|| {
        let found = counts.keys().cloned().collect::<Vec<_>>().join(", ");
        format!(
            "has no event of page walks of a processor that is known ({}), only {found}; `perf list` shows this processor's, and \
             data/pages/walk-events.toml those needed, such as dtlb_load_misses.walk_active (Intel), \
             ls_l1_d_tlb_miss.tlb_reload_4k_l2_miss (AMD) or dtlb_walk (Arm)",
            ids()
        )
        .into()
    })
}
