//! Which assignments are worth a simulation, and what they are expected to give.

use fxscope_linux::pages::MappingPages;
use fxscope_machine::Spec;

use super::search::Space;
use super::{Assignment, Costs, Group, Misses, Observation, PARTS};

/// Assignments whose misses differ by less than this share of those that the program has count as equally good.
const EQUAL: f64 = 0.005;
/// By how much a miss may cost more than what it takes by itself: prefetches stop at it, and where pages are taken on demand
/// a fault and the clearing of the page come with it.
const MOST_EXPOSED: f64 = 100.0;

/// What the variables of the large-page library can give.
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
    const ALL: [Library; 4] = [Library::BaseStack, Library::Base, Library::None, Library::Transparent];

    /// The variables.
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

    /// Whether pages are taken when they are touched, all of them.
    #[must_use]
    pub fn is_on_demand(self) -> bool {
        matches!(self, Library::None | Library::Transparent)
    }

    /// The pages that a part has. Text is none of the library's business.
    fn pages(self, part: usize, observation: &Observation, spec: &Spec, room: &Room) -> MappingPages {
        let group = Group::of(part);
        match self {
            _ if group == Group::Text => room.default[part],
            Library::Transparent if observation.holds_huge(part) => MappingPages::Transparent,
            Library::None | Library::Transparent => MappingPages::Size(spec.pages.normal),
            Library::Base if group == Group::Stacks => MappingPages::Size(spec.pages.normal),
            Library::Base | Library::BaseStack => MappingPages::Size(spec.pages.large),
        }
    }
}

/// What pages there can be.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// What the machine gives each part without any variable or option.
    pub default: [MappingPages; PARTS],
    /// Bytes of each part that the program has mapped.
    pub parts: [u64; PARTS],
    /// Bytes of memory.
    pub memory: u64,
}

impl Room {
    /// Whether an assignment can be had: the pages that its parts fill at least.
    fn holds(&self, observation: &Observation, assignment: &Assignment) -> bool {
        let bytes = |(part, bytes): (usize, u64)| match observation.pages(assignment, part) {
            MappingPages::Size(page) => bytes.div_ceil(page).saturating_mul(page),
            // Nothing is lost where only whole ones are taken.
            MappingPages::Transparent => bytes,
        };
        self.parts.into_iter().enumerate().map(bytes).fold(0, u64::saturating_add) <= self.memory
    }
}

/// An assignment that may be worth having.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// It.
    pub assignment: Assignment,
    /// Its misses.
    pub misses: Misses,
    /// The variables that give it, as far as the program has the parts.
    pub library: Option<Library>,
    /// The machine gives it, as far as the program has the parts, without any variable or option.
    pub default: bool,
}

impl Candidate {
    /// Whether it can be had on the machine without a change of the program.
    fn is_given(&self) -> bool {
        self.default || self.library.is_some()
    }

    /// How many parts it gives other pages than the program ran with.
    fn changes(&self, observation: &Observation) -> usize {
        self.assignment.0.iter().zip(observation.base().0).filter(|&(&pages, base)| pages != base).count()
    }
}

/// An assignment by itself; `None` when its misses are not all known.
#[must_use]
pub fn candidate(observation: &Observation, assignment: Assignment, spec: &Spec, room: &Room) -> Option<Candidate> {
    let misses = observation.misses(&assignment, &Costs::of(spec))?;
    let agrees = |pages: &dyn Fn(usize) -> MappingPages| {
        (0..PARTS).all(|part| room.parts[part] == 0 || observation.pages(&assignment, part) == pages(part))
    };
    let gives = |library: &Library| agrees(&|part| library.pages(part, observation, spec, room));
    let library = Library::ALL.into_iter().find(gives);
    let default = agrees(&|part| room.default[part]);
    Some(Candidate { assignment, misses, library, default })
}

/// The `most` best assignments that have fewer misses than the program has now, the best first. Of those that are equally
/// good one stands for all: what the machine gives by itself, or what its large-page library gives, or else what changes
/// least. If neither gives any of them, the best that they do give comes last.
///
/// # Errors
/// When the misses of the program's own assignment are not all known.
pub fn choose(observation: &Observation, spec: &Spec, room: &Room, most: usize) -> Result<Vec<Candidate>, String> {
    let unknown = "the misses of the assignment that the program ran with are not all known, as too many others differ from \
                   it; ask about fewer page sizes";
    let base = candidate(observation, observation.base().clone(), spec, room).ok_or(unknown)?;
    let equal = EQUAL * base.misses.cycles as f64;
    let better = |one: &Candidate| (one.misses.cycles as f64) < base.misses.cycles as f64 - equal;
    let mut all: Vec<Candidate> = assignments(observation, spec, room)
        .into_iter()
        .filter(|assignment| room.holds(observation, assignment))
        .filter_map(|assignment| candidate(observation, assignment, spec, room))
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

/// All that can be set: by options, for single calls in the source, by the library.
fn assignments(observation: &Observation, spec: &Spec, room: &Room) -> Vec<Assignment> {
    let costs = Costs::of(spec);
    let cost = |assignment: &Assignment| observation.misses(assignment, &costs).map(|misses| misses.cycles);
    let space = Space::new(observation, room);
    let mut all = space.assignments(observation.base(), observation.kinds().len(), cost);
    // Only the library gives them to `.bss` and to the heap.
    let used = |part: usize| room.parts[part] > 0;
    if (0..PARTS).any(|part| used(part) && observation.holds_huge(part)) {
        let pages = |part| Library::Transparent.pages(part, observation, spec, room);
        let kinds = observation.kinds();
        let place = |part: usize| if used(part) { kinds.place(pages(part)) } else { Some(observation.base().0[part]) };
        let places: Option<Vec<usize>> = (0..PARTS).map(place).collect();
        all.extend(places.and_then(|places| places.try_into().ok()).map(Assignment));
    }
    all.sort_unstable_by_key(|one| one.0);
    all.dedup();
    all
}

/// Time of the program under any assignment, from its misses and two simulated runs.
#[derive(Clone, Copy, Debug)]
pub struct Prediction {
    /// Seconds of the program as it is, and cycles of its misses.
    seconds: f64,
    cycles: u64,
    /// Seconds for each cycle that misses would take by themselves.
    each: f64,
}

impl Prediction {
    /// From the run as it is and from one under another assignment: seconds, and misses.
    #[must_use]
    pub fn new(base: (f64, Misses), other: (f64, Misses)) -> Prediction {
        let saved = base.1.cycles as f64 - other.1.cycles as f64;
        let each = if saved == 0.0 { 0.0 } else { (base.0 - other.0) / saved };
        Prediction { seconds: base.0, cycles: base.1.cycles, each: each.max(0.0) }
    }

    /// Seconds under an assignment with these misses.
    #[must_use]
    pub fn seconds(&self, misses: &Misses) -> f64 {
        self.seconds + self.each * (misses.cycles as f64 - self.cycles as f64)
    }

    /// How much time a miss takes for each second that it would take by itself.
    #[must_use]
    pub fn exposed(&self, core_hz: u64) -> f64 {
        self.each * core_hz as f64
    }
}

/// The most seconds that fewer misses can save.
#[must_use]
pub fn at_most(base: &Misses, best: &Misses, core_hz: u64) -> f64 {
    MOST_EXPOSED * base.cycles.saturating_sub(best.cycles) as f64 / core_hz as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_goes_through_both_runs_it_is_made_from() {
        let misses = |cycles| Misses { cycles, ..Misses::default() };
        let prediction = Prediction::new((3.0, misses(1000)), (2.0, misses(200)));
        assert!((prediction.seconds(&misses(1000)) - 3.0).abs() < 1e-12);
        assert!((prediction.seconds(&misses(200)) - 2.0).abs() < 1e-12);
        assert!((prediction.seconds(&misses(600)) - 2.5).abs() < 1e-12);
        assert!((prediction.exposed(800) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn fewer_misses_that_do_not_help_promise_nothing() {
        let misses = |cycles| Misses { cycles, ..Misses::default() };
        let prediction = Prediction::new((3.0, misses(1000)), (3.1, misses(200)));
        assert!((prediction.seconds(&misses(0)) - 3.0).abs() < 1e-12);
    }
}
