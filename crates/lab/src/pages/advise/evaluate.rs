//! From a program to advice: runs it, evaluates all assignments of page sizes, and simulates the best.

use std::sync::Arc;

use fxscope_linux::Stdio;
use fxscope_linux::pages::MappingPages;
use fxscope_machine::settings::size;
use fxscope_machine::{Spec, spec};
use fxscope_record::{ALL, Finish, Run};
use fxscope_session::{CallPages, Scenario, check_page_size};

use super::advice::{NamedCall, NoHugePage, ON_DEMAND, POLICY, seconds};
use super::runs::Runs;
use super::steady::second_half;
use super::work::allocation;
use super::{
    Advice, Assignment, Call, Candidate, Choice, Costs, Group, Library, Observation, Observer, Options, PARTS,
    PageLimits, PagePlacement, Prediction, Simulated, Start, UsedPart, at_most, candidate, choose,
};
use crate::{Error, Progress};

/// The large-page library's variable that selects the kind of pages.
const TYPE: &str = "XOS_MMM_L_HPAGE_TYPE";
/// Assignments whose simulated times differ by less than this share count as equally fast.
const SAME_TIME: f64 = 0.002;

/// Returns names for the calls with their own parts. A line names a call if it is the only one there.
fn named(observation: &Observation) -> Vec<(usize, NamedCall)> {
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
        (call.part, NamedCall { text, option })
    };
    own.iter().map(name).collect()
}

/// Finds the page sizes with which the program of `scenario` runs fastest, and how to set them.
///
/// The program runs once as the scenario says, while TLB misses of every assignment of page sizes to its segments are
/// counted from that one stream of accesses. The best assignments are then simulated in separate runs, whose output is
/// discarded, so it must be possible to run the program again. `stdio` are the standard streams of the first run; `None`:
/// those of this process. The program has standard input only if that is a file, which every run reads from the start.
///
/// # Errors
/// If the program is sampled, cannot run or does not end, the machine does not have the page sizes asked for, or the program's memory
/// does not allow advice.
pub fn advise(
    scenario: &Scenario,
    options: &Options,
    stdio: Option<Stdio>,
    progress: &dyn Progress,
) -> Result<Advice, Error> {
    scenario.refuse_sampling("pages advise")?;
    let spec = Arc::new(scenario.spec()?);
    let sizes = sizes(options, &spec)?;
    let mut runs = Runs::new(stdio, progress)?;
    let steady = options.steady.then(|| second_half(scenario, &mut runs)).transpose()?;
    let (scenario, steady_from) = steady.as_ref().map_or((scenario, None), |(half, from)| (half, Some(*from)));
    let (run, mut observation, start) = observe(scenario, &spec, &mut runs, &sizes, Vec::new())?;
    let mut again = None;
    if let Some(calls) = observation.larger_calls() {
        runs.announce("again, since other calls map more than the first ones");
        let (run, better, _) = observe(scenario, &spec, &mut runs, &sizes, calls)?;
        (again, observation) = (Some(run), better);
    }
    let run = again.unwrap_or(run);
    one_size_each(&run, &start)?;
    let limits = PageLimits {
        default: default_pages(scenario)?,
        parts: mapped(&run, &observation),
        memory: scenario.memory_bytes(&spec)?,
    };
    let candidates = choose(&observation, &spec, &limits, options.simulate)?;
    let mut evaluator = Evaluator::new(scenario, &spec, &observation, &limits, &run, options);
    evaluator.advice.steady_from = steady_from;
    let worth = candidates.first().map_or(0.0, |best| evaluator.at_most(best));
    if worth < options.least_gain {
        evaluator.advice.too_little = Some(worth);
    } else {
        evaluator.simulate(&candidates, &mut runs)?;
    }
    evaluator.place(&mut runs)?;
    Ok(evaluator.finish(&run))
}

/// Page sizes of a program as a remedy.
pub(crate) struct PageRemedy {
    /// The pages of the parts that change.
    pub pages: String,
    /// How to set them on a machine.
    pub machine: String,
    /// Options of `fxscope run`, option and argument in turn.
    pub options: Vec<String>,
}

/// Runs the program of `scenario` once without output, and returns the `most` assignments of page sizes that are expected to be best, the
/// best first; none if fewer TLB misses can hardly gain anything.
///
/// # Errors
/// As for [`advise`].
pub(crate) fn page_remedies(
    scenario: &Scenario,
    most: usize,
    progress: &dyn Progress,
) -> Result<Vec<PageRemedy>, Error> {
    let options = Options { simulate: most, ..Options::default() };
    let spec = Arc::new(scenario.spec()?);
    let mut runs = Runs::new(Some(crate::runner::nowhere()?), progress)?;
    let (run, observation, start) = observe(scenario, &spec, &mut runs, &sizes(&options, &spec)?, Vec::new())?;
    one_size_each(&run, &start)?;
    let limits = PageLimits {
        default: default_pages(scenario)?,
        parts: mapped(&run, &observation),
        memory: scenario.memory_bytes(&spec)?,
    };
    let candidates = choose(&observation, &spec, &limits, most)?;
    let evaluator = Evaluator::new(scenario, &spec, &observation, &limits, &run, &options);
    let is_worth = |candidate: &&Candidate| evaluator.at_most(candidate) >= options.least_gain;
    let choice = |candidate: &Candidate| evaluator.choice(Some(candidate), &candidate.assignment);
    let choices = candidates.iter().filter(is_worth).map(choice);
    Ok(choices.map(|choice| super::show::remedy(&evaluator.advice, &choice)).collect())
}

/// Returns the page sizes to try.
pub(super) fn sizes(options: &Options, spec: &Spec) -> Result<Vec<u64>, Error> {
    let asked = &options.sizes;
    asked.iter().try_for_each(|&bytes| check_page_size(spec, bytes)).map_err(|e| format!("--sizes: {e}"))?;
    let node = spec.topology.node_bytes;
    if let Some(&large) = asked.iter().find(|&&bytes| bytes > node) {
        let (large, node, name) = (size(large), size(node), &spec.name);
        return Err(format!(
            "--sizes {large}: no such page fits on a memory node of {name}, which has {node}; choose smaller ones"
        )
        .into());
    }
    Ok(if asked.is_empty() { vec![spec.pages.normal, spec.pages.large] } else { asked.clone() })
}

/// Runs the program and counts the misses of all assignments; the mappings of the calls `known` are parts of their own.
pub(super) fn observe(
    scenario: &Scenario,
    spec: &Spec,
    runs: &mut Runs<'_>,
    sizes: &[u64],
    known: Vec<Call>,
) -> Result<(Run, Observation, Start), Error> {
    let (run, observation, start) = runs.contained(scenario, |progress, mut session| {
        let start = Start::new(|segment| session.page_bytes(segment))?;
        session.note_mappings(spec.pages.large);
        let mut observer = Observer::new(spec, &start, sizes, known).map_err(|e| e.to_string())?;
        let run =
            crate::runner::simulate(progress, session, |session, watch| session.run_observed(watch, &mut observer));
        Ok::<_, Error>((run, observer.finish(), start))
    })??;
    finished(&run)?;
    Ok((run, observation, start))
}

/// Fails if the program did not run to its end.
pub(super) fn finished(run: &Run) -> Result<(), Error> {
    let program = run.program();
    let message = match &run.finish {
        Finish::Exited(_) | Finish::Limit | Finish::Unknown => return Ok(()),
        Finish::Killed { message, .. } => {
            format!("{program} was {message}: there is no advice for a program that does not run to its end")
        }
        Finish::Stopped => "stopped: there is no advice".to_owned(),
        Finish::Failed(message) | Finish::NoProgress(message) => {
            format!("{program} cannot continue: {message}: there is no advice")
        }
    };
    Err(Error::Ended { finish: run.finish.clone(), message })
}

/// Returns whether the variables of a run make the large-page library allocate pages on demand that it would otherwise
/// allocate at once.
fn takes_on_demand(run: &Run) -> bool {
    let demands = |(name, value): &(String, String)| match name.as_str() {
        TYPE => value == "none" || value == "thp",
        POLICY => value.contains("demand"),
        _ => false,
    };
    run.environment.iter().any(demands)
}

/// Fails if a segment of the program has pages of several sizes.
pub(super) fn one_size_each(run: &Run, start: &Start) -> Result<(), Error> {
    for (group, &bytes) in Group::ALL.into_iter().zip(start.groups()) {
        let of_group = |name: &str| group.segments().iter().any(|segment| segment.name() == name);
        if let Some(other) = run.pages.iter().find(|pages| of_group(&pages.segment) && pages.page_bytes != bytes) {
            return Err(format!(
                "{} has pages of {} and of {}, as with transparent huge pages, MAP_HUGETLB and --pages mmap@CALL; begin with \
                 one size for each segment, with --pages or without XOS_MMM_L_HPAGE_TYPE=thp and --thp",
                other.segment,
                size(bytes),
                size(other.page_bytes)
            )
            .into());
        }
    }
    Ok(())
}

/// Returns the pages that the machine gives each part without variables and options.
pub(super) fn default_pages(scenario: &Scenario) -> Result<[MappingPages; PARTS], Error> {
    let spec = scenario.spec_of_default_pages()?;
    let bytes = |name: &str| {
        let key = spec::Pages::SEGMENTS.iter().find(|(segment, _)| *segment == name);
        key.map_or(0, |(_, bytes)| bytes(&spec.pages))
    };
    let of_part = |part| MappingPages::Size(bytes(Group::of(part).segments()[0].name()));
    Ok(std::array::from_fn(of_part))
}

/// Returns the bytes of each part that the program has mapped.
pub(super) fn mapped(run: &Run, observation: &Observation) -> [u64; PARTS] {
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

/// State of an evaluation.
pub(super) struct Evaluator<'a> {
    scenario: &'a Scenario,
    spec: &'a Spec,
    observation: &'a Observation,
    limits: &'a PageLimits,
    /// Whether the program's variables set when pages are allocated.
    has_policy: bool,
    /// The program's variables.
    environment: Vec<(String, String)>,
    /// Whether they make the large-page library leave all pages to the kernel.
    library_off: bool,
    advice: Advice,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        spec: &'a Spec,
        observation: &'a Observation,
        limits: &'a PageLimits,
        run: &Run,
        options: &Options,
    ) -> Evaluator<'a> {
        let mut names = named(observation);
        let mut name = |part| names.iter().position(|(of, _)| *of == part).map(|i| names.swap_remove(i).1);
        let used = limits.parts.into_iter().enumerate().filter(|(_, bytes)| *bytes > 0);
        let used: Vec<UsedPart> = used.map(|(part, bytes)| UsedPart { part, bytes, call: name(part) }).collect();
        let base = Choice {
            pages: [MappingPages::Size(0); PARTS],
            placement: PagePlacement::Unchanged,
            library: None,
            default: false,
            misses: None,
            predicted: None,
            change: None,
            simulated: Some(Simulated::of(run)),
        };
        let sites = observation.calls.iter().filter(|call| call.part == Group::Mmap.part()).map(Call::describe);
        let transparent = spec.pages.transparent();
        let holds = used.iter().any(|used| observation.holds_huge(used.part));
        let advice = Advice {
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
            transparent: match holds {
                true => Ok(transparent),
                false if spec.has_huge_pages_on_request() => Err(NoHugePage::NoMapping(transparent)),
                false => Err(NoHugePage::Off(transparent)),
            },
            costs: Costs::of(spec),
            exposed: None,
            free: None,
            too_little: None,
            least: options.least_gain,
            mixed: takes_on_demand(run),
            cpu_nodes: cpu_nodes(run, spec),
            other_sites: sites.collect(),
            steady_from: None,
        };
        let has_policy = run.environment.iter().any(|(name, _)| name == POLICY);
        let library_off =
            run.environment.iter().any(|(name, value)| name == TYPE && ["none", "thp"].contains(&value.as_str()));
        let environment = run.environment.clone();
        let mut evaluator =
            Evaluator { scenario, spec, observation, limits, has_policy, environment, library_off, advice };
        let base = candidate(observation, observation.base().clone(), spec, limits);
        let base = evaluator.choice(base.as_ref(), observation.base());
        evaluator.advice.base = Choice { simulated: evaluator.advice.base.simulated.take(), ..base };
        evaluator
    }

    pub(super) fn choice(&self, candidate: Option<&Candidate>, assignment: &Assignment) -> Choice {
        Choice {
            pages: std::array::from_fn(|part| self.observation.pages(assignment, part)),
            placement: PagePlacement::Unchanged,
            library: candidate.and_then(|candidate| candidate.library),
            default: candidate.is_some_and(|candidate| candidate.default),
            misses: candidate.map(|candidate| candidate.misses),
            predicted: None,
            change: None,
            simulated: None,
        }
    }

    pub(super) fn base_seconds(&self) -> f64 {
        self.advice.base.simulated.as_ref().map_or(0.0, |base| base.seconds)
    }

    /// Returns the largest share of its time that the program can gain.
    fn at_most(&self, best: &Candidate) -> f64 {
        let base = self.advice.base.misses.unwrap_or_default();
        let seconds = at_most(&base, &best.misses, self.spec.clock.core_hz);
        if self.base_seconds() > 0.0 { seconds / self.base_seconds() } else { 0.0 }
    }

    /// Simulates the candidates and the machine's default, after a run in which misses take no time, from which times are predicted.
    fn simulate(&mut self, candidates: &[Candidate], runs: &mut Runs<'_>) -> Result<(), Error> {
        let mut choices: Vec<Choice> =
            candidates.iter().map(|candidate| self.choice(Some(candidate), &candidate.assignment)).collect();
        let has_default = self.advice.base.default || choices.iter().any(|choice| choice.default);
        if !has_default && let Some(assignment) = self.observation.assignment(&self.limits.default) {
            let default = candidate(self.observation, assignment.clone(), self.spec, self.limits);
            choices.push(self.choice(default.as_ref(), &assignment));
        }
        self.advice.mixed |= choices.iter().any(|choice| choice.library.is_some_and(Library::is_on_demand));
        let prediction = self.without_misses(runs)?;
        for choice in &mut choices {
            self.predict(&prediction, choice);
            let run = runs.simulate(&self.scenario_for(choice), &self.describe(choice))?;
            finished(&run)?;
            choice.simulated = Some(Simulated::of(&run));
        }
        if let Some(best) = candidates.first() {
            self.advice.best_parts = self.observation.by_part(&best.assignment);
        }
        self.advice.choices = choices;
        self.advice.best = self.best();
        Ok(())
    }

    /// Runs the program where misses take no time. The difference is what the misses of this program cost it, whatever overlaps them and
    /// whatever they stop.
    pub(super) fn without_misses(&mut self, runs: &mut Runs<'_>) -> Result<Prediction, Error> {
        let scenario = self.scenario.clone().with_setting("tlb.free_misses", "true");
        let run = runs.simulate(&scenario, "misses of the TLB take no time")?;
        finished(&run)?;
        let free = seconds(&run);
        let prediction = Prediction::new((self.base_seconds(), self.advice.base.misses.unwrap_or_default()), free);
        (self.advice.free, self.advice.exposed) = (Some(free), Some(prediction.exposed(self.spec.clock.core_hz)));
        Ok(prediction)
    }

    /// Predicts the time under a choice.
    pub(super) fn predict(&self, prediction: &Prediction, choice: &mut Choice) {
        let Some(assignment) = self.observation.assignment(&choice.pages) else { return };
        let on_demand = match choice.library {
            Some(library) if choice.pages != self.advice.base.pages => library.is_on_demand(),
            _ => self.library_off,
        };
        let seconds = |assignment: &Assignment, on_demand: bool| {
            let when = |group| allocation(group, &self.environment, on_demand);
            self.observation.kernel_seconds(assignment, &self.spec.page_costs, when)
        };
        let kernel = seconds(&assignment, on_demand) - seconds(self.observation.base(), self.library_off);
        choice.change = choice.misses.map(|misses| prediction.change(&misses, kernel));
        choice.predicted = choice.change.map(|change| prediction.seconds(&change));
    }

    /// Returns the choice with the best simulated time, if it gains enough; among equally fast ones, one that needs only
    /// variables.
    fn best(&self) -> Option<usize> {
        let seconds = |choice: &Choice| choice.simulated.as_ref().map_or(f64::INFINITY, |run| run.seconds);
        let least = self.advice.choices.iter().map(seconds).fold(f64::INFINITY, f64::min);
        if least > self.base_seconds() * (1.0 - self.advice.least) || least == f64::INFINITY {
            return None;
        }
        let good = |choice: &&(usize, &Choice)| seconds(choice.1) <= least * (1.0 + SAME_TIME);
        let all = self.advice.choices.iter().enumerate();
        let rank = |&(i, choice): &(usize, &Choice)| (choice.library.is_none() && !choice.default, i);
        all.filter(|one| good(&one)).min_by_key(rank).map(|(i, _)| i)
    }

    /// Simulates the other placements of the program's memory, if cores of several nodes have run it and the scenario does
    /// not place it.
    fn place(&mut self, runs: &mut Runs<'_>) -> Result<(), Error> {
        if self.advice.cpu_nodes.len() < 2 || self.scenario.placement.places_memory() {
            return Ok(());
        }
        let like = self.advice.best.map_or(&self.advice.base, |best| &self.advice.choices[best]).clone();
        let mut placements = vec![PagePlacement::OnDemand, PagePlacement::Interleaved];
        placements.retain(|&placement| placement != PagePlacement::OnDemand || !self.has_policy);
        for placement in placements {
            self.advice.mixed |= placement == PagePlacement::OnDemand;
            let mut choice =
                Choice { placement, simulated: None, misses: None, predicted: None, change: None, ..like.clone() };
            let run = runs.simulate(&self.scenario_for(&choice), &self.describe(&choice))?;
            finished(&run)?;
            choice.simulated = Some(Simulated::of(&run));
            self.advice.choices.push(choice);
        }
        self.advice.best = self.best();
        Ok(())
    }

    /// Returns the scenario that runs the program under a choice.
    pub(super) fn scenario_for(&self, choice: &Choice) -> Scenario {
        let mut scenario = self.scenario.clone();
        if choice.pages != self.advice.base.pages {
            scenario = match choice.library {
                Some(Library::Transparent) => scenario.without_pages(),
                _ => self.with_pages(scenario, choice),
            };
            scenario = scenario.with_variables(self.variables_for(choice));
        }
        match choice.placement {
            PagePlacement::Unchanged => scenario,
            PagePlacement::OnDemand => scenario.with_variables(&[(POLICY, ON_DEMAND)]),
            PagePlacement::Interleaved => scenario.with_interleaving(),
        }
    }

    /// Returns the variables of the large-page library that matter for a simulation of a choice. Others are left out: strings of the
    /// environment move the stack, and so change which loads wait for stores with the same lower address bits. Where options set all sizes,
    /// variables matter only if they, or those of the program, leave pages to the kernel.
    fn variables_for(&self, choice: &Choice) -> &'static [(&'static str, &'static str)] {
        let matters = |library: &Library| library.is_on_demand() || self.library_off;
        choice.library.filter(matters).map_or(&[], Library::variables)
    }

    /// Sets sizes by segment, and by call where a call's mappings differ from their segment.
    fn with_pages(&self, scenario: Scenario, choice: &Choice) -> Scenario {
        let bytes = |part: usize| match choice.pages[part] {
            _ if part == Group::Mmap.part() => self.advice.rest(choice),
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
        let calls = self.advice.calls_apart(choice).filter_map(|(call, pages)| CallPages::parse(call, pages).ok());
        scenario.with_call_pages(calls.collect::<Vec<_>>())
    }

    pub(super) fn describe(&self, choice: &Choice) -> String {
        self.advice.describe(choice)
    }

    fn finish(self, run: &Run) -> Advice {
        let mut advice = self.advice;
        advice.finish = run.finish.clone();
        advice
    }
}

/// Returns the nodes whose processors have run threads.
fn cpu_nodes(run: &Run, spec: &Spec) -> Vec<u32> {
    let t = &spec.topology;
    let threads = run.region(ALL).map_or(&[][..], |region| &region.threads);
    let node = |cpu: u32| t.first_node + cpu.saturating_sub(t.first_core) / t.cores_per_cmg.max(1);
    let mut nodes: Vec<u32> = threads.iter().map(|thread| node(thread.cpu)).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}
