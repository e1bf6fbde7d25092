//! The advice on a program's pages.

use fxscope_linux::pages::{MappingPages, list, mask};
use fxscope_machine::settings::size;
use fxscope_pmu::Evaluation;
use fxscope_record::{ALL, Finish, Run};

use super::{Costs, Group, Library, Misses, PARTS, PartMisses, PredictedChange};

/// The variable of the large-page library that sets when pages are allocated.
pub(super) const POLICY: &str = "XOS_MMM_L_PAGING_POLICY";
/// Its value that allocates all pages at first touch, so that they are on the node of the thread that uses them.
pub(super) const ON_DEMAND: &str = "demand:demand:demand";

/// Why a program has no transparent huge pages of the largest size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoHugePage {
    /// No mapping holds one of this many bytes.
    NoMapping(u64),
    /// The system does not use those of this many bytes.
    Off(u64),
}

/// The page sizes with which a program runs fastest, and the evidence for them, as returned by
/// [`advise()`](super::advise()).
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
    /// The program with its current page sizes.
    pub base: Choice,
    /// The others, in the order of their expected time.
    pub choices: Vec<Choice>,
    /// The best of them, if it gains enough.
    pub best: Option<usize>,
    /// Misses by part with the current page sizes.
    pub parts: Vec<PartMisses>,
    /// Misses by part under the assignment that is expected to be best; empty if nothing was simulated.
    pub best_parts: Vec<PartMisses>,
    /// Parts in which the program has memory, with their names.
    pub used: Vec<UsedPart>,
    /// Bytes of a normal page.
    pub normal: u64,
    /// Bytes of a transparent huge page; an error if the program cannot have one.
    pub transparent: Result<u64, NoHugePage>,
    /// Cycles of misses that do not overlap.
    pub costs: Costs,
    /// Seconds of run time per second of misses that do not overlap; `None` if nothing was simulated.
    pub exposed: Option<f64>,
    /// Seconds of the program where misses take no time; `None` if nothing was simulated.
    pub free: Option<f64>,
    /// Largest possible gain of fewer misses, if it was too small to simulate anything; a share of the time.
    pub too_little: Option<f64>,
    /// Smallest gain that justifies a change, as a share of the time.
    pub least: f64,
    /// Some pages may be allocated on demand in one run and before the program's first instruction in another.
    pub mixed: bool,
    /// Nodes whose processors the program has run on.
    pub cpu_nodes: Vec<u32>,
    /// Calls whose mappings have no row.
    pub other_sites: Vec<String>,
    /// The instruction with which the second half of the run begins, if the advice is for that.
    pub steady_from: Option<u64>,
}

/// Results of a simulated run.
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
    /// Bytes lost to rounding up to whole pages.
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

/// Returns the time of a whole run.
pub(super) fn seconds(run: &Run) -> f64 {
    let values = run.region(ALL).map(|region| Evaluation::new(run, region).total());
    values.and_then(|values| values.get("seconds")).unwrap_or(0.0)
}

/// The nodes of a program's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagePlacement {
    /// Unchanged.
    Unchanged,
    /// On the node of the thread that touches them first.
    OnDemand,
    /// Interleaved over all nodes.
    Interleaved,
}

/// An assignment of page sizes, and what is known about it.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The pages of each part.
    pub pages: [MappingPages; PARTS],
    /// Where the pages are.
    pub placement: PagePlacement,
    /// The variables of the large-page library that set it.
    pub library: Option<Library>,
    /// Whether it is the machine's default, without any variable or option.
    pub default: bool,
    /// Its misses, counted in the first run.
    pub misses: Option<Misses>,
    /// Predicted time, seconds; `None` if misses are not known or nothing was simulated.
    pub predicted: Option<f64>,
    /// The causes of the predicted change of the time.
    pub change: Option<PredictedChange>,
    /// Results of its run.
    pub simulated: Option<Simulated>,
}

/// A part of memory that the program uses.
#[derive(Clone, Debug)]
pub struct UsedPart {
    /// Its number.
    pub part: usize,
    /// Bytes that are mapped.
    pub bytes: u64,
    /// The call that maps it.
    pub call: Option<NamedCall>,
}

/// A call that maps memory.
#[derive(Clone, Debug)]
pub struct NamedCall {
    /// Function and line.
    pub text: String,
    /// Its name in `--pages`.
    pub option: String,
}

impl UsedPart {
    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.call.as_ref().map_or(Group::of(self.part).name(), |call| &call.text)
    }
}

impl Advice {
    /// Describes the changes of a choice.
    #[must_use]
    pub fn describe(&self, choice: &Choice) -> String {
        let mut parts = self.changes(choice, |used| used.name().to_owned());
        match choice.placement {
            PagePlacement::Unchanged => {}
            PagePlacement::OnDemand => parts.push("on demand".to_owned()),
            PagePlacement::Interleaved => parts.push("interleaved".to_owned()),
        }
        if parts.is_empty() { "unchanged".to_owned() } else { parts.join(" ") }
    }

    /// Lists the parts whose pages differ from the current ones; mappings appear together if all have the same pages.
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

    /// Returns the pages of mappings of unnamed calls, or, if there are none, the pages that those of all calls have.
    pub(super) fn rest(&self, choice: &Choice) -> MappingPages {
        let part = Group::Mmap.part();
        let mut calls = self.used.iter().filter(|used| used.call.is_some()).map(|used| choice.pages[used.part]);
        let first = calls.next().filter(|pages| matches!(pages, MappingPages::Size(_)));
        let there_are = self.used.iter().any(|used| used.part == part);
        let all = first.filter(|first| !there_are && calls.all(|pages| pages == *first));
        all.unwrap_or(choice.pages[part])
    }

    /// Calls whose mappings have other pages than the rest of mappings, by their option names.
    pub(super) fn calls_apart(&self, choice: &Choice) -> impl Iterator<Item = (&str, MappingPages)> {
        let rest = self.rest(choice);
        self.used.iter().filter_map(move |used| {
            let pages = choice.pages[used.part];
            used.call.as_ref().filter(|_| pages != rest).map(|call| (call.option.as_str(), pages))
        })
    }
}

/// Formats pages as in options.
pub(super) fn pages(pages: MappingPages) -> String {
    match pages {
        MappingPages::Size(bytes) => size(bytes),
        MappingPages::Transparent => "thp".to_owned(),
    }
}
