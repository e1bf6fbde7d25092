//! Predicted and simulated gains of many assignments of pages, good and bad.

use std::sync::Arc;

use fxscope_linux::pages::MappingPages;
use fxscope_machine::Spec;
use fxscope_session::Scenario;

use super::evaluate::{Evaluator, default_pages, finished, mapped, observe, one_size_each, sizes};
use super::runs::Runs;
use super::{Group, Library, Observation, Options, PARTS, PageLimits, Simulated, candidate};
use crate::{Error, Progress};

/// The gain of an assignment of pages.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub struct Compared {
    /// The pages of the parts that change.
    pub pages: String,
    /// The predicted gain, as a share of the program's time; negative: a loss.
    pub predicted: f64,
    /// The simulated gain.
    pub simulated: f64,
}

/// Runs the program of `scenario`, predicts its time with the pages that the large-page library's variables give and with large pages
/// for each group of segments alone, and simulates it with each of them.
///
/// # Errors
/// As for [`advise()`](super::advise()).
pub fn compare(scenario: &Scenario, progress: &dyn Progress) -> Result<Vec<Compared>, Error> {
    let options = Options::default();
    let spec = Arc::new(scenario.spec()?);
    let mut runs = Runs::new(Some(crate::runner::nowhere()?), progress)?;
    let (run, observation, start) = observe(scenario, &spec, &mut runs, &sizes(&options, &spec)?, Vec::new())?;
    one_size_each(&run, &start)?;
    let memory = scenario.memory_bytes(&spec)?;
    let limits = PageLimits { default: default_pages(scenario)?, parts: mapped(&run, &observation), memory };
    let mut evaluator = Evaluator::new(scenario, &spec, &observation, &limits, &run, &options);
    let prediction = evaluator.without_misses(&mut runs)?;
    let mut compared = Vec::new();
    for pages in page_settings(&observation, &spec, &limits) {
        let Some(assignment) = observation.assignment(&pages) else { continue };
        let candidate = candidate(&observation, assignment.clone(), &spec, &limits);
        let mut choice = evaluator.choice(candidate.as_ref(), &assignment);
        evaluator.predict(&prediction, &mut choice);
        let Some(predicted) = choice.predicted else { continue };
        let run = runs.simulate(&evaluator.scenario_for(&choice), &evaluator.describe(&choice))?;
        finished(&run)?;
        let gain = |seconds: f64| 1.0 - seconds / evaluator.base_seconds();
        let simulated = gain(Simulated::of(&run).seconds);
        compared.push(Compared { pages: evaluator.describe(&choice), predicted: gain(predicted), simulated });
    }
    Ok(compared)
}

/// Returns the pages that each of the library's settings gives, and those with large pages for one group alone, without the current ones.
fn page_settings(observation: &Observation, spec: &Spec, limits: &PageLimits) -> Vec<[MappingPages; PARTS]> {
    let base = |part: usize| observation.pages(observation.base(), part);
    let used = |pages: &dyn Fn(usize) -> MappingPages| -> [MappingPages; PARTS] {
        std::array::from_fn(|part| if limits.parts[part] > 0 { pages(part) } else { base(part) })
    };
    let of_library = |library: Library| used(&|part| library.pages(part, observation, spec, limits));
    let large = MappingPages::Size(spec.pages.large);
    let of_group = |group: Group| used(&|part| if Group::of(part) == group { large } else { base(part) });
    let all = Library::ALL.into_iter().map(of_library).chain(Group::ALL.into_iter().map(of_group));
    let now = used(&base);
    let mut different: Vec<[MappingPages; PARTS]> = Vec::new();
    for pages in all.filter(|pages| *pages != now) {
        if !different.contains(&pages) {
            different.push(pages);
        }
    }
    different
}
