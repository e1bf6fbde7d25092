//! What is said about a program's pages.

use fxscope_linux::pages::{MappingPages, list, mask};
use fxscope_machine::settings::size;
use fxscope_pmu::Evaluation;
use fxscope_record::{ALL, Finish, Run};

use super::{Costs, Group, Library, Misses, PARTS, PartMisses};

/// The variable of the large-page library that says when pages are taken.
pub(super) const POLICY: &str = "XOS_MMM_L_PAGING_POLICY";
/// Its value that takes all pages when they are touched, so that they are on the node of the thread that uses them.
pub(super) const ON_DEMAND: &str = "demand:demand:demand";

/// The page sizes that a program runs best with, and what this rests on. [`advise()`](super::advise()) makes it.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The CPUs that it may run on, as the scenario names them.
    pub cpus: Option<String>,
    /// The machine's name.
    pub machine: String,
    /// How the program ended in its first run.
    pub finish: Finish,
    /// The program as it runs now.
    pub base: Choice,
    /// The others, the best expected first.
    pub choices: Vec<Choice>,
    /// Which of them is best, when it gains enough.
    pub best: Option<usize>,
    /// Misses by part now.
    pub parts: Vec<PartMisses>,
    /// Misses by part under the assignment that is expected to be best; empty when nothing was simulated.
    pub best_parts: Vec<PartMisses>,
    /// Parts that the program has memory of, and what they are called.
    pub used: Vec<UsedPart>,
    /// Bytes of a normal page.
    pub normal: u64,
    /// Bytes of a transparent huge page; an error when nothing that the program maps holds one.
    pub transparent: Result<u64, u64>,
    /// What misses cost by themselves.
    pub costs: Costs,
    /// Time of the program for each second that misses would take by themselves; none when nothing was simulated.
    pub exposed: Option<f64>,
    /// The most that fewer misses could gain, when that was too little to simulate anything; a share of the time.
    pub too_little: Option<f64>,
    /// The least gain that is worth a change, as a share of the time.
    pub least: f64,
    /// Some pages may be taken on demand in one run and before the program's first instruction in another.
    pub mixed: bool,
    /// Nodes whose processors the program has run on.
    pub cpu_nodes: Vec<u32>,
    /// Calls whose mappings have no row of their own.
    pub other_sites: Vec<String>,
}

/// What a simulated run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Simulated time, seconds.
    pub seconds: f64,
    /// Misses of the first level of the data TLB.
    pub first: u64,
    /// Table walks for data.
    pub walks: u64,
    /// Misses of the first level of the instruction TLB, and its table walks.
    pub code: [u64; 2],
    /// Bytes lost because only whole pages can be had.
    pub lost: u64,
    /// Nodes that its pages are on.
    pub nodes: String,
}

impl Simulated {
    pub(super) fn of(run: &Run) -> Simulated {
        let count = |event: &str| {
            let region = run.region(ALL);
            region.map_or(0, |r| (0..r.threads.len()).filter_map(|thread| r.count(thread, event)).sum())
        };
        let nodes: Vec<u32> = run.pages.iter().map(|pages| pages.node).collect();
        Simulated {
            seconds: seconds(run),
            first: count("L1D_TLB_REFILL"),
            walks: count("L2D_TLB_REFILL"),
            code: ["L1I_TLB_REFILL", "L2I_TLB_REFILL"].map(count),
            lost: run.pages.iter().map(fxscope_record::Pages::lost).sum(),
            nodes: list(mask(&nodes)),
        }
    }
}

/// Time of a whole run.
fn seconds(run: &Run) -> f64 {
    let values = run.region(ALL).map(|region| Evaluation::new(run, region).total());
    values.and_then(|values| values.get("seconds")).unwrap_or(0.0)
}

/// Which nodes a program's pages are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlacement {
    /// As they do now.
    Unchanged,
    /// On the node of the thread that touches them first.
    OnDemand,
    /// On all nodes in turn.
    Interleaved,
}

/// An assignment of page sizes, and what is known of it.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The pages of each part.
    pub pages: [MappingPages; PARTS],
    /// Where the pages are.
    pub placement: PagePlacement,
    /// The variables of the large-page library that give it.
    pub library: Option<Library>,
    /// The machine gives it without any variable or option.
    pub default: bool,
    /// Misses that the one pass has counted for it.
    pub misses: Option<Misses>,
    /// Seconds that follow from them; none where the run itself has set what a miss costs.
    pub predicted: Option<f64>,
    /// What its run gave.
    pub simulated: Option<Simulated>,
}

/// A part of its memory that the program uses.
#[derive(Clone, Debug)]
pub struct UsedPart {
    /// Its number.
    pub part: usize,
    /// Bytes that are mapped.
    pub bytes: u64,
    /// The call whose mappings it is.
    pub call: Option<NamedCall>,
}

/// A call that maps memory.
#[derive(Clone, Debug)]
pub struct NamedCall {
    /// Function and line.
    pub text: String,
    /// As `--pages` names it.
    pub option: String,
}

impl UsedPart {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.call.as_ref().map_or(Group::of(self.part).name(), |call| &call.text)
    }
}

impl Advice {
    /// What a choice changes.
    #[must_use]
    pub fn describe(&self, choice: &Choice) -> String {
        let mut parts = self.changes(choice, |used| used.name().to_owned());
        match choice.placement {
            PagePlacement::Unchanged => {}
            PagePlacement::OnDemand => parts.push("on demand".to_owned()),
            PagePlacement::Interleaved => parts.push("interleaved".to_owned()),
        }
        if parts.is_empty() { "as it is".to_owned() } else { parts.join(" ") }
    }

    /// What has other pages in a choice than now; mappings together where all have the same.
    fn changes(&self, choice: &Choice, name: impl Fn(&UsedPart) -> String) -> Vec<String> {
        let differs = |used: &&UsedPart| choice.pages[used.part] != self.base.pages[used.part];
        let is_mapped = |used: &&UsedPart| Group::of(used.part) == Group::Mmap;
        let change = |used: &UsedPart| format!("{}={}", name(used), pages(choice.pages[used.part]));
        let others = self.used.iter().filter(|used| !is_mapped(used)).filter(differs);
        let mut parts: Vec<String> = others.map(change).collect();
        let mapped: Vec<&UsedPart> = self.used.iter().filter(is_mapped).collect();
        let first = mapped.first().map(|used| choice.pages[used.part]);
        match first.filter(|first| mapped.len() > 1 && mapped.iter().all(|used| choice.pages[used.part] == *first)) {
            Some(all) if mapped.iter().any(differs) => parts.push(format!("mmap={}", pages(all))),
            Some(_) => {}
            None => parts.extend(mapped.into_iter().filter(differs).map(change)),
        }
        parts
    }

    /// The pages of mappings whose calls are not named: where there are none, what those of all calls have.
    pub(super) fn rest(&self, choice: &Choice) -> MappingPages {
        let part = Group::Mmap.part();
        let mut calls = self.used.iter().filter(|used| used.call.is_some()).map(|used| choice.pages[used.part]);
        let first = calls.next().filter(|pages| matches!(pages, MappingPages::Size(_)));
        let there_are = self.used.iter().any(|used| used.part == part);
        let all = first.filter(|first| !there_are && calls.all(|pages| pages == *first));
        all.unwrap_or(choice.pages[part])
    }

    /// Calls whose mappings have other pages in a choice than the rest of mappings, as options name them.
    pub(super) fn calls_apart(&self, choice: &Choice) -> impl Iterator<Item = (&str, MappingPages)> {
        let rest = self.rest(choice);
        self.used.iter().filter_map(move |used| {
            let pages = choice.pages[used.part];
            used.call.as_ref().filter(|_| pages != rest).map(|call| (call.option.as_str(), pages))
        })
    }
}

/// Pages as options name them.
pub(super) fn pages(pages: MappingPages) -> String {
    match pages {
        MappingPages::Size(bytes) => size(bytes),
        MappingPages::Transparent => "thp".to_owned(),
    }
}
