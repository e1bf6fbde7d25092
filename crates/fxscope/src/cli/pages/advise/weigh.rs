//! From a program to what is to be said about its pages.

use std::sync::Arc;

use fxscope::advise::{
    Assignment, Call, Candidate, Costs, Group, Library, Misses, Observation, Observer, PARTS, PartMisses, Prediction,
    Room, Start, at_most, candidate, choose,
};
use fxscope::linux::pages::{MappingPages, list, mask};
use fxscope::machine::settings::size;
use fxscope::machine::{Spec, spec};
use fxscope::pmu::Evaluation;
use fxscope::record::{ALL, Finish, Run};
use fxscope::{CallPages, Scenario};

use super::super::super::foreground::simulate_with;
use super::super::super::interrupt;
use super::super::super::{FAILED, Failure};
use super::runs::Runs;

/// The library's variable about when pages are taken.
pub(super) const POLICY: &str = "XOS_MMM_L_PAGING_POLICY";
/// All pages when they are touched, so that they are on the node of the thread that uses them.
pub(super) const ON_DEMAND: &str = "demand:demand:demand";
/// Assignments whose simulated times differ by less than this share count as equally fast.
const SAME_TIME: f64 = 0.002;

/// What is asked.
pub(super) struct Question {
    pub sizes: Vec<u64>,
    pub simulate: usize,
    /// The least gain worth a change, as a share of the time.
    pub least: f64,
}

/// Why there is no advice.
pub(super) enum Over {
    Failed(Failure),
    /// The program ended too early: exit status, and why.
    Ended(u8, String),
}

impl<E: Into<Failure>> From<E> for Over {
    fn from(error: E) -> Over {
        Over::Failed(error.into())
    }
}

/// What a simulated run gave.
pub(super) struct Simulated {
    pub seconds: f64,
    /// Misses of the first level of the data TLB, and its table walks.
    pub first: u64,
    pub walks: u64,
    /// The same of the instruction TLB.
    pub code: [u64; 2],
    /// Bytes lost because only whole pages can be had.
    pub lost: u64,
    /// Nodes that its pages are on.
    pub nodes: String,
}

impl Simulated {
    fn of(run: &Run) -> Simulated {
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
            lost: run.pages.iter().map(fxscope::record::Pages::lost).sum(),
            nodes: list(mask(&nodes)),
        }
    }
}

/// Time of a whole run.
fn seconds(run: &Run) -> f64 {
    let values = run.region(ALL).map(|region| Evaluation::new(run, region).total());
    values.and_then(|values| values.get("seconds")).unwrap_or(0.0)
}

/// Where a program's pages come to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Placing {
    /// As they do now.
    Unchanged,
    /// On the node of the thread that touches them first.
    OnDemand,
    /// On all nodes in turn.
    Interleaved,
}

/// An assignment and what is known of it.
pub(super) struct Choice {
    /// The pages of each part.
    pub pages: [MappingPages; PARTS],
    pub placing: Placing,
    pub library: Option<Library>,
    /// The machine gives it without any variable or option.
    pub default: bool,
    /// Misses that the one pass has counted for it.
    pub misses: Option<Misses>,
    /// Seconds that follow from them; none where the run itself has set what a miss costs.
    pub predicted: Option<f64>,
    pub simulated: Option<Simulated>,
}

/// A part that the program has memory of.
pub(super) struct Used {
    pub part: usize,
    pub bytes: u64,
    /// The call whose mappings it is: its function and line, as options name it, and its line.
    pub call: Option<Named>,
}

/// A call.
pub(super) struct Named {
    /// Function and line.
    pub text: String,
    /// As `--pages` names it.
    pub option: String,
}

impl Used {
    /// What it is called.
    pub(super) fn name(&self) -> &str {
        self.call.as_ref().map_or(Group::of(self.part).name(), |call| &call.text)
    }
}

/// Names for the calls that have parts of their own. A line names a call when it is the only one there.
fn named(observation: &Observation) -> Vec<(usize, Named)> {
    let own: Vec<(&Call, Option<String>)> =
        (0..PARTS).filter_map(|part| observation.call(part)).map(|call| (call, call.line())).collect();
    let name = |(call, line): &(&Call, Option<String>)| {
        let alone =
            line.as_ref().filter(|line| own.iter().filter(|(_, other)| other.as_ref() == Some(line)).count() == 1);
        let option = alone.cloned().unwrap_or_else(|| call.place());
        let text = if alone.is_none() && line.is_some() {
            format!("{} at {option}", call.describe())
        } else {
            call.describe()
        };
        (call.part, Named { text, option })
    };
    own.iter().map(name).collect()
}

/// All that is to be told.
pub(super) struct Findings {
    pub command: Vec<String>,
    /// The CPUs that it may run on, as they were asked for.
    pub cpus: Option<String>,
    pub machine: String,
    /// How the program ended in its first run.
    pub finish: Finish,
    /// As it runs now.
    pub base: Choice,
    /// The others, the best expected first.
    pub choices: Vec<Choice>,
    /// Which of them is best, when it gains enough.
    pub best: Option<usize>,
    /// Misses by part now, and under the assignment that is expected to be best.
    pub parts: Vec<PartMisses>,
    pub best_parts: Vec<PartMisses>,
    /// Parts that the program has memory of, and what they are called.
    pub used: Vec<Used>,
    /// Bytes of a normal page.
    pub normal: u64,
    /// Bytes of a transparent huge page; an error when nothing that the program maps holds one.
    pub transparent: Result<u64, u64>,
    pub costs: Costs,
    /// How much of a miss's own time is seen in the program's.
    pub exposed: Option<f64>,
    /// The most that fewer misses could gain, when that was too little to simulate anything; a share of the time.
    pub too_little: Option<f64>,
    pub least: f64,
    /// Some pages may be taken on demand in one run and before the program's first instruction in another.
    pub mixed: bool,
    /// Nodes whose processors the program has run on.
    pub cpu_nodes: Vec<u32>,
    /// Calls whose mappings have no row of their own.
    pub other_sites: Vec<String>,
}

/// Finds everything out.
pub(super) fn weigh(
    scenario: &Scenario,
    spec: Arc<Spec>,
    runs: &mut Runs,
    question: &Question,
) -> Result<Findings, Over> {
    let (run, mut observation, start) = observe(scenario, &spec, runs, question, Vec::new())?;
    let mut again = None;
    if let Some(calls) = observation.larger_calls() {
        runs.say("again, as other calls map more than the first ones");
        let (run, better, _) = observe(scenario, &spec, runs, question, calls)?;
        (again, observation) = (Some(run), better);
    }
    let run = again.unwrap_or(run);
    one_size_each(&run, &start)?;
    let room = Room {
        default: default_pages(scenario)?,
        parts: mapped(&run, &observation),
        memory: scenario.memory_bytes(&spec)?,
    };
    let candidates = choose(&observation, &spec, &room, question.simulate).map_err(Failure::from)?;
    let mut weighing = Weighing::new(scenario, &spec, &observation, &room, &run, question)?;
    let worth = candidates.first().map_or(0.0, |best| weighing.at_most(best));
    if worth < question.least {
        weighing.findings.too_little = Some(worth);
    } else {
        weighing.simulate(&candidates, runs)?;
    }
    weighing.place(runs)?;
    Ok(weighing.finish(&run))
}

/// Runs the program and counts the misses of all assignments; the mappings of the calls `known` have pages of their own.
fn observe(
    scenario: &Scenario,
    spec: &Arc<Spec>,
    runs: &mut Runs,
    question: &Question,
    known: Vec<Call>,
) -> Result<(Run, Observation, Start), Over> {
    let quiet = runs.quiet;
    let (run, observation, start) = runs.contained(scenario, |mut session| {
        let start = Start::new(|segment| session.page_bytes(segment))?;
        session.note_mappings(spec.pages.large);
        let mut observer = Observer::new(spec, &start, &question.sizes, known)?;
        let run = simulate_with(session, quiet, |session, watch| session.run_observed(watch, &mut observer))?;
        Ok((run, observer.finish(), start))
    })?;
    finished(&run)?;
    Ok((run, observation, start))
}

/// Whether the program has run to an end that tells something.
fn finished(run: &Run) -> Result<(), Over> {
    let program = run.program();
    let message = match &run.finish {
        Finish::Exited(_) | Finish::Limit | Finish::Unknown => return Ok(()),
        Finish::Killed { signal, message } => {
            let text =
                format!("{program} was {message}: there is no advice for a program that does not run to its end");
            return Err(Over::Ended(128 + *signal as u8, text));
        }
        Finish::Stopped => return Err(Over::Ended(interrupt::status(), "stopped: there is no advice".to_owned())),
        Finish::Failed(message) => message,
    };
    Err(Over::Ended(FAILED, format!("{program} cannot go on: {message}: there is no advice")))
}

/// Whether the variables of a run make the large-page library take pages on demand that it would take at once otherwise.
fn takes_on_demand(run: &Run) -> bool {
    let demands = |(name, value): &(String, String)| match name.as_str() {
        "XOS_MMM_L_HPAGE_TYPE" => value == "none" || value == "thp",
        POLICY => value.contains("demand"),
        _ => false,
    };
    run.environment.iter().any(demands)
}

/// Refuses programs of which a segment has pages of several sizes.
fn one_size_each(run: &Run, start: &Start) -> Result<(), Failure> {
    for (group, &bytes) in Group::ALL.into_iter().zip(start.groups()) {
        let of_group = |name: &str| group.segments().iter().any(|segment| segment.name() == name);
        if let Some(other) = run.pages.iter().find(|pages| of_group(&pages.segment) && pages.page_bytes != bytes) {
            return Err(format!(
                "{} has pages of {} and of {}, as transparent huge pages, MAP_HUGETLB and --pages mmap@CALL give them; begin with \
                 one size for each segment, with --pages or without XOS_MMM_L_HPAGE_TYPE=thp",
                other.segment,
                size(bytes),
                size(other.page_bytes)
            )
            .into());
        }
    }
    Ok(())
}

/// The pages that the machine gives each part without variables and options.
fn default_pages(scenario: &Scenario) -> Result<[MappingPages; PARTS], Failure> {
    let spec = scenario.spec_of_default_pages()?;
    let bytes = |name: &str| {
        let key = spec::Pages::SEGMENTS.iter().find(|(segment, _)| *segment == name);
        key.map_or(0, |(_, bytes)| bytes(&spec.pages))
    };
    let of_part = |part| MappingPages::Size(bytes(Group::of(part).segments()[0].name()));
    Ok(std::array::from_fn(of_part))
}

/// Bytes of each part that the program has mapped.
fn mapped(run: &Run, observation: &Observation) -> [u64; PARTS] {
    let of_group = |group: Group| {
        let named = |name: &str| {
            let file = group == Group::Text && name == "file";
            file || group.segments().iter().any(|segment| segment.name() == name)
        };
        run.pages.iter().filter(|pages| named(&pages.segment)).map(|pages| pages.bytes).sum()
    };
    std::array::from_fn(|part| match Group::of(part) {
        Group::Mmap => observation.mapped(part),
        group => of_group(group),
    })
}

/// Findings in the making.
struct Weighing<'a> {
    scenario: &'a Scenario,
    spec: &'a Spec,
    observation: &'a Observation,
    room: &'a Room,
    /// The program's variables say when pages are taken.
    has_policy: bool,
    findings: Findings,
}

impl<'a> Weighing<'a> {
    fn new(
        scenario: &'a Scenario,
        spec: &'a Spec,
        observation: &'a Observation,
        room: &'a Room,
        run: &Run,
        question: &Question,
    ) -> Result<Weighing<'a>, Failure> {
        let mut names = named(observation);
        let mut name = |part| names.iter().position(|(of, _)| *of == part).map(|i| names.swap_remove(i).1);
        let used = room.parts.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0);
        let used: Vec<Used> = used.map(|(part, bytes)| Used { part, bytes, call: name(part) }).collect();
        let base = Choice {
            pages: [MappingPages::Size(0); PARTS],
            placing: Placing::Unchanged,
            library: None,
            default: false,
            misses: None,
            predicted: None,
            simulated: Some(Simulated::of(run)),
        };
        let sites = observation.calls.iter().filter(|call| call.part == Group::Mmap.part()).map(Call::describe);
        let transparent = spec.pages.transparent();
        let holds = used.iter().any(|used| observation.holds_huge(used.part));
        let findings = Findings {
            command: run.command.clone(),
            cpus: scenario.placement.cpus.clone(),
            machine: run.machine.clone(),
            finish: run.finish.clone(),
            base,
            choices: Vec::new(),
            best: None,
            parts: observation.by_part(observation.base()),
            best_parts: Vec::new(),
            used,
            normal: spec.pages.normal,
            transparent: if holds { Ok(transparent) } else { Err(transparent) },
            costs: Costs::of(spec),
            exposed: None,
            too_little: None,
            least: question.least,
            mixed: takes_on_demand(run),
            cpu_nodes: cpu_nodes(run, spec),
            other_sites: sites.collect(),
        };
        let has_policy = run.environment.iter().any(|(name, _)| name == POLICY);
        let mut weighing = Weighing { scenario, spec, observation, room, has_policy, findings };
        let base = candidate(observation, observation.base().clone(), spec, room);
        let base = weighing.choice(base.as_ref(), observation.base());
        weighing.findings.base = Choice { simulated: weighing.findings.base.simulated.take(), ..base };
        Ok(weighing)
    }

    fn choice(&self, candidate: Option<&Candidate>, assignment: &Assignment) -> Choice {
        Choice {
            pages: std::array::from_fn(|part| self.observation.pages(assignment, part)),
            placing: Placing::Unchanged,
            library: candidate.and_then(|candidate| candidate.library),
            default: candidate.is_some_and(|candidate| candidate.default),
            misses: candidate.map(|candidate| candidate.misses),
            predicted: None,
            simulated: None,
        }
    }

    fn base_seconds(&self) -> f64 {
        self.findings.base.simulated.as_ref().map_or(0.0, |base| base.seconds)
    }

    /// The share of its time that the program can gain at most.
    fn at_most(&self, best: &Candidate) -> f64 {
        let base = self.findings.base.misses.unwrap_or_default();
        let seconds = at_most(&base, &best.misses, self.spec.clock.core_hz);
        if self.base_seconds() > 0.0 { seconds / self.base_seconds() } else { 0.0 }
    }

    /// Simulates the candidates and what the machine gives by itself. The first run sets what misses cost.
    fn simulate(&mut self, candidates: &[Candidate], runs: &mut Runs) -> Result<(), Over> {
        let mut choices: Vec<Choice> =
            candidates.iter().map(|candidate| self.choice(Some(candidate), &candidate.assignment)).collect();
        let has_default = self.findings.base.default || choices.iter().any(|choice| choice.default);
        if !has_default && let Some(assignment) = self.observation.assignment(&self.room.default) {
            let default = candidate(self.observation, assignment.clone(), self.spec, self.room);
            choices.push(self.choice(default.as_ref(), &assignment));
        }
        self.findings.mixed |= choices.iter().any(|choice| choice.library.is_some_and(Library::is_on_demand));
        for choice in &mut choices {
            let run = runs.simulate(&self.scenario_for(choice), &self.describe(choice))?;
            finished(&run)?;
            choice.simulated = Some(Simulated::of(&run));
        }
        let base = (self.base_seconds(), self.findings.base.misses.unwrap_or_default());
        let first = choices.first().and_then(|first| Some((first.simulated.as_ref()?.seconds, first.misses?)));
        if let Some(first) = first {
            let prediction = Prediction::new(base, first);
            self.findings.exposed = Some(prediction.exposed(self.spec.clock.core_hz));
            for choice in choices.iter_mut().skip(1) {
                choice.predicted = choice.misses.map(|misses| prediction.seconds(&misses));
            }
        }
        if let Some(best) = candidates.first() {
            self.findings.best_parts = self.observation.by_part(&best.assignment);
        }
        self.findings.choices = choices;
        self.findings.best = self.best();
        Ok(())
    }

    /// The choice with the best simulated time that gains enough; of several that are equally fast, one that needs no more
    /// than variables.
    fn best(&self) -> Option<usize> {
        let seconds = |choice: &Choice| choice.simulated.as_ref().map_or(f64::INFINITY, |run| run.seconds);
        let least = self.findings.choices.iter().map(seconds).fold(f64::INFINITY, f64::min);
        if least > self.base_seconds() * (1.0 - self.findings.least) || least == f64::INFINITY {
            return None;
        }
        let good = |choice: &&(usize, &Choice)| seconds(choice.1) <= least * (1.0 + SAME_TIME);
        let all = self.findings.choices.iter().enumerate();
        let rank = |&(i, choice): &(usize, &Choice)| (choice.library.is_none() && !choice.default, i);
        all.filter(|one| good(&one)).min_by_key(rank).map(|(i, _)| i)
    }

    /// When processors of several nodes have run the program, and nobody has said where its memory is to be: simulates the
    /// other places that it can be.
    fn place(&mut self, runs: &mut Runs) -> Result<(), Over> {
        if self.findings.cpu_nodes.len() < 2 || self.scenario.placement.places_memory() {
            return Ok(());
        }
        let like = self.findings.best.map_or(&self.findings.base, |best| &self.findings.choices[best]);
        let (pages, library, default) = (like.pages, like.library, like.default);
        let mut placings = vec![Placing::OnDemand, Placing::Interleaved];
        placings.retain(|&placing| placing != Placing::OnDemand || !self.has_policy);
        for placing in placings {
            self.findings.mixed |= placing == Placing::OnDemand;
            let mut choice =
                Choice { pages, placing, library, default, misses: None, predicted: None, simulated: None };
            let run = runs.simulate(&self.scenario_for(&choice), &self.describe(&choice))?;
            finished(&run)?;
            choice.simulated = Some(Simulated::of(&run));
            self.findings.choices.push(choice);
        }
        self.findings.best = self.best();
        Ok(())
    }

    /// How to run the program under a choice.
    fn scenario_for(&self, choice: &Choice) -> Scenario {
        let mut scenario = self.scenario.clone();
        if choice.pages != self.findings.base.pages {
            scenario = match choice.library {
                Some(Library::Transparent) => scenario.without_pages(),
                _ => self.with_pages(scenario, choice),
            };
            scenario = scenario.with_variables(choice.library.map_or(&[], Library::variables));
        }
        match choice.placing {
            Placing::Unchanged => scenario,
            Placing::OnDemand => scenario.with_variables(&[(POLICY, ON_DEMAND)]),
            Placing::Interleaved => scenario.with_interleaving(),
        }
    }

    /// Sizes by segment, and for calls whose mappings have others than that.
    fn with_pages(&self, scenario: Scenario, choice: &Choice) -> Scenario {
        let bytes = |part: usize| match choice.pages[part] {
            _ if part == Group::Mmap.part() => self.findings.rest(choice),
            pages => pages,
        };
        let bytes = |part| match bytes(part) {
            MappingPages::Size(bytes) => bytes,
            MappingPages::Transparent => self.spec.pages.normal,
        };
        let sizes = Group::ALL
            .into_iter()
            .flat_map(|group| group.segments().iter().map(move |segment| (segment.name(), group.part())));
        let scenario = scenario.with_pages(sizes.map(|(name, part)| (name, bytes(part))));
        let calls = self.findings.calls_apart(choice).filter_map(|(call, pages)| CallPages::parse(call, pages).ok());
        scenario.with_call_pages(calls.collect::<Vec<_>>())
    }

    fn describe(&self, choice: &Choice) -> String {
        self.findings.describe(choice)
    }

    fn finish(self, run: &Run) -> Findings {
        let mut findings = self.findings;
        findings.finish = run.finish.clone();
        findings
    }
}

impl Findings {
    /// What a choice changes.
    pub(super) fn describe(&self, choice: &Choice) -> String {
        let mut parts = self.changes(choice, |used| used.name().to_owned());
        match choice.placing {
            Placing::Unchanged => {}
            Placing::OnDemand => parts.push("on demand".to_owned()),
            Placing::Interleaved => parts.push("interleaved".to_owned()),
        }
        if parts.is_empty() { "as it is".to_owned() } else { parts.join(" ") }
    }

    /// What has other pages in a choice than now; mappings together where all have the same.
    fn changes(&self, choice: &Choice, name: impl Fn(&Used) -> String) -> Vec<String> {
        let differs = |used: &&Used| choice.pages[used.part] != self.base.pages[used.part];
        let is_mapped = |used: &&Used| Group::of(used.part) == Group::Mmap;
        let change = |used: &Used| format!("{}={}", name(used), pages(choice.pages[used.part]));
        let others = self.used.iter().filter(|used| !is_mapped(used)).filter(differs);
        let mut parts: Vec<String> = others.map(change).collect();
        let mapped: Vec<&Used> = self.used.iter().filter(is_mapped).collect();
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

/// Nodes whose processors threads of a run have had.
fn cpu_nodes(run: &Run, spec: &Spec) -> Vec<u32> {
    let t = &spec.topology;
    let threads = run.region(ALL).map_or(&[][..], |region| &region.threads);
    let node = |cpu: u32| t.first_node + cpu.saturating_sub(t.first_core) / t.cores_per_cmg.max(1);
    let mut nodes: Vec<u32> = threads.iter().map(|thread| node(thread.cpu)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
