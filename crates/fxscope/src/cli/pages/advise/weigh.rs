//! From a program to what is to be said about its pages.

use std::sync::Arc;

use fxscope::advise::{
    Assignment, Candidate, Costs, Group, Library, Misses, Observation, Observer, Prediction, Room, SegmentMisses,
    Start, at_most, candidate, choose,
};
use fxscope::linux::pages::{list, mask};
use fxscope::machine::settings::size;
use fxscope::machine::{Spec, spec};
use fxscope::pmu::Evaluation;
use fxscope::record::{ALL, Finish, Run};

use super::super::super::launch::{self, Launch, STOPPED};
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
    /// Bytes of the pages of each group, in their order.
    pub bytes: [u64; Group::ALL.len()],
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

/// All that is to be told.
pub(super) struct Findings {
    pub command: Vec<String>,
    pub machine: String,
    /// How the program ended in its first run.
    pub finish: Finish,
    /// As it runs now.
    pub base: Choice,
    /// The others, the best expected first.
    pub choices: Vec<Choice>,
    /// Which of them is best, when it gains enough.
    pub best: Option<usize>,
    /// Misses by segment now, and under the assignment that is expected to be best.
    pub segments: Vec<SegmentMisses>,
    pub best_segments: Vec<SegmentMisses>,
    /// Groups that the program has memory of.
    pub used: Vec<Group>,
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
pub(super) fn weigh(launch: &Launch, spec: Arc<Spec>, runs: &mut Runs, question: &Question) -> Result<Findings, Over> {
    let session = runs.session(launch, Arc::clone(&spec))?;
    let start = Start::new(|segment| session.page_bytes(segment)).map_err(Failure::from)?;
    let mut observer = Observer::new(&spec, &start, &question.sizes).map_err(Failure::from)?;
    let run = launch::simulate_with(session, runs.quiet, |session, watch| session.run_observed(watch, &mut observer))?;
    finished(&run)?;
    let observation = observer.finish();
    one_size_each(&run, &start)?;
    let room = Room { default: default_pages(launch)?, groups: mapped(&run), memory: launch.memory(&spec)? };
    let candidates = choose(&observation, &spec, &room, question.simulate).map_err(Failure::from)?;
    let mut weighing = Weighing::new(launch, &spec, &observation, &room, &run, question)?;
    let worth = candidates.first().map_or(0.0, |best| weighing.at_most(best));
    if worth < question.least {
        weighing.findings.too_little = Some(worth);
    } else {
        weighing.simulate(&candidates, runs)?;
    }
    weighing.place(runs)?;
    Ok(weighing.finish(&run))
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
        Finish::Stopped => return Err(Over::Ended(STOPPED, "stopped: there is no advice".to_owned())),
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
                "{} has pages of {} and of {}, as transparent huge pages do; begin with one size for each segment, with --pages \
                 or without XOS_MMM_L_HPAGE_TYPE=thp",
                other.segment,
                size(bytes),
                size(other.page_bytes)
            )
            .into());
        }
    }
    Ok(())
}

/// Bytes of the pages that the machine gives each group without variables and options.
fn default_pages(launch: &Launch) -> Result<[u64; Group::ALL.len()], Failure> {
    let spec = launch.spec_of_default_pages()?;
    let bytes = |name: &str| {
        let key = spec::Pages::SEGMENTS.iter().find(|(segment, _)| *segment == name);
        key.map_or(0, |(_, bytes)| bytes(&spec.pages))
    };
    Ok(Group::ALL.map(|group| bytes(group.segments()[0].name())))
}

/// Bytes of each group that the program has mapped.
fn mapped(run: &Run) -> [u64; Group::ALL.len()] {
    Group::ALL.map(|group| {
        let of_group = |name: &str| group.segments().iter().any(|segment| segment.name() == name);
        run.pages.iter().filter(|pages| of_group(&pages.segment)).map(|pages| pages.bytes).sum()
    })
}

/// Findings in the making.
struct Weighing<'a> {
    launch: &'a Launch,
    spec: &'a Spec,
    observation: &'a Observation,
    room: &'a Room,
    /// The program's variables say when pages are taken.
    has_policy: bool,
    findings: Findings,
}

impl<'a> Weighing<'a> {
    fn new(
        launch: &'a Launch,
        spec: &'a Spec,
        observation: &'a Observation,
        room: &'a Room,
        run: &Run,
        question: &Question,
    ) -> Result<Weighing<'a>, Failure> {
        let used = Group::ALL.into_iter().zip(room.groups).filter(|(_, bytes)| *bytes > 0).map(|(group, _)| group);
        let base = Choice {
            bytes: [0; Group::ALL.len()],
            placing: Placing::Unchanged,
            library: None,
            default: false,
            misses: None,
            predicted: None,
            simulated: Some(Simulated::of(run)),
        };
        let sites = observation.sites.iter().skip(2).map(|site| site.describe());
        let findings = Findings {
            command: run.command.clone(),
            machine: run.machine.clone(),
            finish: run.finish.clone(),
            base,
            choices: Vec::new(),
            best: None,
            segments: observation.segments(observation.base()),
            best_segments: Vec::new(),
            used: used.collect(),
            costs: Costs::of(spec),
            exposed: None,
            too_little: None,
            least: question.least,
            mixed: takes_on_demand(run),
            cpu_nodes: cpu_nodes(run, spec),
            other_sites: sites.collect(),
        };
        let has_policy = run.environment.iter().any(|(name, _)| name == POLICY);
        let mut weighing = Weighing { launch, spec, observation, room, has_policy, findings };
        let base = candidate(observation, observation.base().clone(), spec, room);
        let base = weighing.choice(base.as_ref(), observation.base());
        weighing.findings.base = Choice { simulated: weighing.findings.base.simulated.take(), ..base };
        Ok(weighing)
    }

    fn choice(&self, candidate: Option<&Candidate>, assignment: &Assignment) -> Choice {
        let bytes = Group::ALL.map(|group| self.observation.bytes(assignment, group));
        Choice {
            bytes,
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
        self.findings.mixed |= choices.iter().any(|choice| choice.library == Some(Library::None));
        for choice in &mut choices {
            let run = runs.simulate(&self.launch_for(choice), &self.describe(choice))?;
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
            self.findings.best_segments = self.observation.segments(&best.assignment);
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
        if self.findings.cpu_nodes.len() < 2 || self.launch.places_memory() {
            return Ok(());
        }
        let like = self.findings.best.map_or(&self.findings.base, |best| &self.findings.choices[best]);
        let (bytes, library, default) = (like.bytes, like.library, like.default);
        let mut placings = vec![Placing::OnDemand, Placing::Interleaved];
        placings.retain(|&placing| placing != Placing::OnDemand || !self.has_policy);
        for placing in placings {
            self.findings.mixed |= placing == Placing::OnDemand;
            let mut choice =
                Choice { bytes, placing, library, default, misses: None, predicted: None, simulated: None };
            let run = runs.simulate(&self.launch_for(&choice), &self.describe(&choice))?;
            finished(&run)?;
            choice.simulated = Some(Simulated::of(&run));
            self.findings.choices.push(choice);
        }
        self.findings.best = self.best();
        Ok(())
    }

    /// How to run the program under a choice.
    fn launch_for(&self, choice: &Choice) -> Launch {
        let mut launch = self.launch.clone();
        if choice.bytes != self.findings.base.bytes {
            let sizes = Group::ALL.into_iter().zip(choice.bytes);
            let segments = sizes.flat_map(|(group, bytes)| group.segments().iter().map(move |s| (s.name(), bytes)));
            launch = launch.with_pages(segments);
            launch = launch.with_variables(choice.library.map_or(&[], Library::variables));
        }
        match choice.placing {
            Placing::Unchanged => launch,
            Placing::OnDemand => launch.with_variables(&[(POLICY, ON_DEMAND)]),
            Placing::Interleaved => launch.with_interleaving(),
        }
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
        let differs = |group: &&Group| {
            let place = **group as usize - 1;
            choice.bytes[place] != self.base.bytes[place]
        };
        let change = |group: &Group| format!("{}={}", group.name(), size(choice.bytes[*group as usize - 1]));
        let mut parts: Vec<String> = self.used.iter().filter(differs).map(change).collect();
        match choice.placing {
            Placing::Unchanged => {}
            Placing::OnDemand => parts.push("on demand".to_owned()),
            Placing::Interleaved => parts.push("interleaved".to_owned()),
        }
        if parts.is_empty() { "as it is".to_owned() } else { parts.join(" ") }
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
