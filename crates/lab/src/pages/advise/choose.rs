//! Choice of the assignments to simulate, and their expected time.

use fxscope_linux::pages::MappingPages;
use fxscope_machine::Spec;

use super::search::Space;
use super::{Assignment, Costs, Group, Misses, Observation, PARTS};

/// Assignments whose misses differ by less than this share of the program's misses count as equally good.
const EQUAL: f64 = 0.005;
/// Most by which a miss may cost more than its own time: prefetches stop at it, and with allocation on demand it includes a
/// fault and the clearing of the page.
const MOST_EXPOSED: f64 = 100.0;

/// Settings of the large-page library's variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Large pages for all, stacks included.
    BaseStack,
    /// Large pages for all but stacks.
    Base,
    /// Normal pages.
    None,
    /// Transparent huge pages where they fit, normal ones elsewhere.
    Transparent,
}

impl Library {
    pub(super) const ALL: [Library; 4] = [Library::BaseStack, Library::Base, Library::None, Library::Transparent];

    /// Returns the variables.
    #[must_use]
    pub fn variables(self) -> &'static [(&'static str, &'static str)] {
        const TYPE: &str = "XOS_MMM_L_HPAGE_TYPE";
        const MODE: &str = "XOS_MMM_L_LPG_MODE";
        match self {
            Library::BaseStack => &[(TYPE, "hugetlbfs"), (MODE, "base+stack")],
            Library::Base => &[(TYPE, "hugetlbfs"), (MODE, "base")],
            Library::None => &[(TYPE, "none")],
            Library::Transparent => &[(TYPE, "thp")],
        }
    }

    /// Returns whether all pages are allocated at first touch.
    #[must_use]
    pub fn is_on_demand(self) -> bool {
        matches!(self, Library::None | Library::Transparent)
    }

    /// Returns the pages of a part. The library does not change text.
    pub(super) fn pages(
        self,
        part: usize,
        observation: &Observation,
        spec: &Spec,
        limits: &PageLimits,
    ) -> MappingPages {
        let group = Group::of(part);
        match self {
            _ if group == Group::Text => limits.default[part],
            Library::Transparent if observation.holds_huge(part) => MappingPages::Transparent,
            Library::None | Library::Transparent => MappingPages::Size(spec.pages.normal),
            Library::Base if group == Group::Stacks => MappingPages::Size(spec.pages.normal),
            Library::Base | Library::BaseStack => MappingPages::Size(spec.pages.large),
        }
    }
}

/// Limits of the page sizes.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits {
    /// The machine's default for each part, without any variable or option.
    pub default: [MappingPages; PARTS],
    /// Bytes of each part that the program has mapped.
    pub parts: [u64; PARTS],
    /// Bytes of memory.
    pub memory: u64,
}

impl PageLimits {
    /// Returns whether an assignment fits: its parts, rounded up to whole pages, are within the memory.
    fn holds(&self, observation: &Observation, assignment: &Assignment) -> bool {
        let bytes = |(part, bytes): (usize, u64)| match observation.pages(assignment, part) {
            MappingPages::Size(page) => bytes.div_ceil(page).saturating_mul(page),
            // Transparent huge pages are used only where a whole one fits.
            MappingPages::Transparent => bytes,
        };
        self.parts.into_iter().enumerate().map(bytes).fold(0, u64::saturating_add) <= self.memory
    }
}

/// An assignment that may be worth a simulation.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The assignment.
    pub assignment: Assignment,
    /// Its misses.
    pub misses: Misses,
    /// The variables that set it for the parts of this program.
    pub library: Option<Library>,
    /// Whether it is the machine's default for the parts of this program.
    pub default: bool,
}

impl Candidate {
    /// Returns whether the machine can provide it without a change of the program.
    fn is_given(&self) -> bool {
        self.default || self.library.is_some()
    }

    /// Returns the number of parts whose pages differ from the program's run.
    fn changes(&self, observation: &Observation) -> usize {
        self.assignment.0.iter().zip(observation.base().0).filter(|&(&pages, base)| pages != base).count()
    }
}

/// Returns the candidate for an assignment; `None` if its misses are not all known.
#[must_use]
pub fn candidate(
    observation: &Observation,
    assignment: Assignment,
    spec: &Spec,
    limits: &PageLimits,
) -> Option<Candidate> {
    let misses = observation.misses(&assignment, &Costs::of(spec))?;
    let agrees = |pages: &dyn Fn(usize) -> MappingPages| {
        (0..PARTS).all(|part| limits.parts[part] == 0 || observation.pages(&assignment, part) == pages(part))
    };
    let gives = |library: &Library| agrees(&|part| library.pages(part, observation, spec, limits));
    let library = Library::ALL.into_iter().find(gives);
    let default = agrees(&|part| limits.default[part]);
    Some(Candidate { assignment, misses, library, default })
}

/// Returns the `most` best assignments that have fewer misses than the program has now, the best first. Equally good
/// assignments are represented by one: the machine's default, or one that the large-page library provides, or else the one
/// with the fewest changes. If neither the default nor the library provides one of these, the best one that they provide
/// comes last.
///
/// # Errors
/// If the misses of the program's own assignment are not all known.
pub fn choose(
    observation: &Observation,
    spec: &Spec,
    limits: &PageLimits,
    most: usize,
) -> Result<Vec<Candidate>, String> {
    let unknown = "the misses of the assignment that the program ran with are not all known, as too many others differ from \
                   it; ask about fewer page sizes";
    let base = candidate(observation, observation.base().clone(), spec, limits).ok_or(unknown)?;
    let equal = EQUAL * base.misses.cycles as f64;
    let better = |one: &Candidate| (one.misses.cycles as f64) < base.misses.cycles as f64 - equal;
    let mut all: Vec<Candidate> = assignments(observation, spec, limits)
        .into_iter()
        .filter(|assignment| limits.holds(observation, assignment))
        .filter_map(|assignment| candidate(observation, assignment, spec, limits))
        .filter(better)
        .collect();
    all.sort_by_key(|one| one.misses.cycles);
    let given = all.iter().filter(|one| one.is_given()).min_by_key(|one| one.misses.cycles).cloned();
    let mut chosen: Vec<Candidate> = Vec::new();
    let mut rest = &all[..];
    while let Some(first) = rest.first().filter(|_| chosen.len() < most) {
        let end = rest.partition_point(|one| one.misses.cycles as f64 <= first.misses.cycles as f64 + equal);
        let simplest = |one: &&Candidate| {
            let sizes = one.assignment.0.iter().sum::<usize>();
            (!one.default, one.library.is_none(), one.changes(observation), sizes)
        };
        chosen.extend(rest[..end].iter().min_by_key(simplest).cloned());
        rest = &rest[end..];
    }
    if !chosen.iter().any(Candidate::is_given) {
        chosen.extend(given);
    }
    Ok(chosen)
}

/// Returns all assignments that can be set: by options, for single calls in the source, by the library.
fn assignments(observation: &Observation, spec: &Spec, limits: &PageLimits) -> Vec<Assignment> {
    let costs = Costs::of(spec);
    let cost = |assignment: &Assignment| observation.misses(assignment, &costs).map(|misses| misses.cycles);
    let space = Space::new(observation, limits);
    let mut all = space.assignments(observation.base(), observation.kinds().len(), cost);
    // `.bss` and the heap can have them through the library only.
    let used = |part: usize| limits.parts[part] > 0;
    if (0..PARTS).any(|part| used(part) && observation.holds_huge(part)) {
        let pages = |part| Library::Transparent.pages(part, observation, spec, limits);
        let kinds = observation.kinds();
        let place = |part: usize| if used(part) { kinds.place(pages(part)) } else { Some(observation.base().0[part]) };
        let places: Option<Vec<usize>> = (0..PARTS).map(place).collect();
        all.extend(places.and_then(|places| places.try_into().ok()).map(Assignment));
    }
    all.sort_unstable_by_key(|one| one.0);
    all.dedup();
    all
}

/// Predicts the time under any assignment from the current run and one in which misses take no time.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    /// Seconds of the current run.
    seconds: f64,
    /// Its misses.
    misses: Misses,
    /// Seconds that a cycle of misses without overlap delays the program.
    each: f64,
}

/// A change of the time, in seconds, by its causes; negative if it becomes shorter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictedChange {
    /// Misses that occur again and again while the program runs.
    pub repeated: f64,
    /// Misses of the first touches of pages.
    pub first_touches: f64,
    /// The kernel's work on pages: faults, clearing, freeing.
    pub kernel: f64,
}

impl PredictedChange {
    /// Returns the sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.repeated + self.first_touches + self.kernel
    }
}

impl Prediction {
    /// Builds a prediction from the current run's seconds and misses, and from the seconds without the time of misses.
    #[must_use]
    pub fn new(base: (f64, Misses), free: f64) -> Prediction {
        let (seconds, misses) = base;
        let each = if misses.cycles == 0 { 0.0 } else { (seconds - free) / misses.cycles as f64 };
        Prediction { seconds, misses, each: each.max(0.0) }
    }

    /// Returns the change of the time under an assignment with these misses; `kernel` is the change of the kernel's seconds.
    #[must_use]
    pub fn change(&self, misses: &Misses, kernel: f64) -> PredictedChange {
        let part = |of: fn(&Misses) -> u64| self.each * (of(misses) as f64 - of(&self.misses) as f64);
        PredictedChange {
            repeated: part(|misses| misses.cycles - misses.first_touches),
            first_touches: part(|misses| misses.first_touches),
            kernel,
        }
    }

    /// Returns the seconds after a change.
    #[must_use]
    pub fn seconds(&self, change: &PredictedChange) -> f64 {
        self.seconds + change.total()
    }

    /// Returns the seconds of run time per second of misses that do not overlap.
    #[must_use]
    pub fn exposed(&self, core_hz: u64) -> f64 {
        self.each * core_hz as f64
    }
}

/// Returns the most seconds that fewer misses can save.
#[must_use]
pub fn at_most(base: &Misses, best: &Misses, core_hz: u64) -> f64 {
    MOST_EXPOSED * base.cycles.saturating_sub(best.cycles) as f64 / core_hz as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_misses_cost_is_what_the_run_without_their_time_takes_less() {
        let misses = |cycles, first_touches| Misses { cycles, first_touches, ..Misses::default() };
        let prediction = Prediction::new((3.0, misses(1000, 400)), 2.0);
        let at = |cycles, first_touches, kernel| {
            let change = prediction.change(&misses(cycles, first_touches), kernel);
            (prediction.seconds(&change), change)
        };
        assert!((at(1000, 400, 0.0).0 - 3.0).abs() < 1e-12);
        assert!((at(0, 0, 0.0).0 - 2.0).abs() < 1e-12);
        let (seconds, change) = at(500, 100, 0.25);
        assert!((seconds - 2.75).abs() < 1e-12);
        assert!((change.repeated + 0.2).abs() < 1e-12 && (change.first_touches + 0.3).abs() < 1e-12, "{change:?}");
        assert!((prediction.exposed(800) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn misses_that_delay_nothing_promise_nothing() {
        let misses = |cycles| Misses { cycles, ..Misses::default() };
        let prediction = Prediction::new((3.0, misses(1000)), 3.1);
        assert!(prediction.change(&misses(0), 0.0).total().abs() < 1e-12);
    }
}
