//! Which remedies are worth a simulation.

use fxscope_machine::Spec;
use fxscope_pmu::{Metrics, Remedy, RemedyValues};
use fxscope_record::{Region, Run};
use fxscope_session::Scenario;

use super::apply::applied;
use super::reused::reused_variables;
use super::values::Context;
use super::{Cause, Judged, Tried};
use crate::pages::advise::page_remedies;
use crate::{Error, Runner};

/// Most assignments of page sizes that are simulated.
const PAGE_SIZES: usize = 2;
/// Part of the options that only programs with OpenMP take.
const OPENMP: &str = "OMP_";

/// What is known after the first run.
pub(super) struct Found<'a> {
    pub scenario: &'a Scenario,
    pub spec: &'a Spec,
    pub run: &'a Run,
    pub regions: &'a [Judged],
}

/// A remedy that is not simulated yet.
pub(super) struct Trial {
    pub tried: Tried,
    pub scenario: Scenario,
}

/// Returns the remedies that the verdicts suggest and that change something.
pub(super) fn suggested(found: &Found<'_>, runner: &Runner) -> Result<Vec<Trial>, Error> {
    let mut trials = Vec::new();
    for remedy in Metrics::built_in().remedies() {
        let causes = found.causes(remedy);
        if causes.iter().all(|cause| cause.rules.is_empty()) && !found.is_offered(remedy) {
            continue;
        }
        for remedy in found.variants(remedy, &causes, runner)? {
            trials.extend(found.trial(remedy, &causes)?);
        }
    }
    Ok(trials)
}

impl Found<'_> {
    /// Returns whether a remedy is a trade-off that the machine has, and that changes it.
    fn is_offered(&self, remedy: &Remedy) -> bool {
        let changed = || applied(self.scenario, &remedy.options).ok().flatten()?.spec().ok();
        remedy.trade_off && changed().is_some_and(|spec| spec.tables != self.spec.tables)
    }

    /// Returns why a remedy may help each region.
    fn causes(&self, remedy: &Remedy) -> Vec<Cause> {
        let cause = |region: &Judged| {
            let applying = || region.verdict.limits.iter().filter(|limit| remedy.rules.contains(&limit.rule));
            Cause {
                rules: applying().map(|limit| limit.rule.clone()).collect(),
                predicted: applying().fold(0.0, |sum: f64, limit| sum + limit.gain).min(1.0),
            }
        };
        let mut causes: Vec<Cause> = self.regions.iter().map(cause).collect();
        // What helps a part of the run helps the whole by the part's share.
        let parts = self.regions.iter().zip(&causes).skip(1).map(|(region, cause)| region.share * cause.predicted);
        let most = parts.fold(0.0, f64::max);
        if let Some(first) = causes.first_mut() {
            first.predicted = first.predicted.max(most);
        }
        causes
    }

    /// Returns a remedy with each of its values.
    fn variants(&self, remedy: &Remedy, causes: &[Cause], runner: &Runner) -> Result<Vec<Remedy>, Error> {
        let context = Context::new(self.scenario, self.spec, self.run, &self.of(causes));
        if remedy.options.iter().any(|option| option.contains(OPENMP)) && !context.has_openmp {
            return Ok(Vec::new());
        }
        // What is not timed has no accesses to look at.
        let is_sampled = self.scenario.options.sample.is_some();
        let with_value = |value: &String| remedy.with_value(value);
        Ok(match remedy.values {
            None => vec![remedy.clone()],
            Some(RemedyValues::PageSizes | RemedyValues::ReusedVariables) if is_sampled => Vec::new(),
            Some(RemedyValues::PageSizes) => self.page_sizes(remedy, runner)?,
            Some(RemedyValues::ReusedVariables) => {
                reused_variables(self.scenario, self.spec, runner)?.iter().map(with_value).collect()
            }
            Some(values) => context.values(values).iter().map(with_value).collect(),
        })
    }

    /// The regions to which a remedy's rules apply.
    fn of(&self, causes: &[Cause]) -> Vec<&Region> {
        let applying = self.regions.iter().zip(causes).filter(|(_, cause)| !cause.rules.is_empty());
        applying.filter_map(|(judged, _)| self.run.region(&judged.name)).collect()
    }

    /// Returns the page sizes that are expected to be best. Programs to which this does not apply have none.
    fn page_sizes(&self, remedy: &Remedy, runner: &Runner) -> Result<Vec<Remedy>, Error> {
        let found = match page_remedies(self.scenario, PAGE_SIZES, runner.progress()) {
            Ok(found) => found,
            Err(Error::Stopped) => return Err(Error::Stopped),
            Err(_) => return Ok(Vec::new()),
        };
        let remedy_of = |page: crate::pages::advise::PageRemedy| Remedy {
            name: remedy.with_value(&page.pages).name,
            machine: remedy.with_value(&page.machine).machine,
            options: page.options,
            ..remedy.clone()
        };
        // Names of calls may have characters that options do not take.
        let can_be_set = |remedy: &Remedy| applied(self.scenario, &remedy.options).is_ok();
        Ok(found.into_iter().map(remedy_of).filter(can_be_set).collect())
    }

    /// Returns the trial of a remedy, if it changes something that the scenario has not chosen.
    pub(super) fn trial(&self, remedy: Remedy, causes: &[Cause]) -> Result<Option<Trial>, Error> {
        let Some(scenario) = applied(self.scenario, &remedy.options)? else { return Ok(None) };
        let Remedy { name, kind, machine, options, trade_off, .. } = remedy;
        let (causes, outcome) = (causes.to_vec(), Err(String::new()));
        Ok(Some(Trial { tried: Tried { name, kind, machine, options, trade_off, causes, outcome }, scenario }))
    }
}
