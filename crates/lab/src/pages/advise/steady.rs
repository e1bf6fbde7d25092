//! The steady state of a program: the second half of its instructions.

use fxscope_pmu::Evaluation;
use fxscope_record::ALL;
use fxscope_session::{Count, Mode, PartPlan, Point, Scenario, Selection, Warming};

use super::evaluate::finished;
use super::runs::Runs;
use crate::Error;

/// Runs the program of `scenario` functionally, and returns the scenario that times the second half of its instructions, and with
/// which instruction that begins. All before it is followed: TLBs hold what they held, and pages are there that were touched.
///
/// # Errors
/// If the program cannot run or does not end, or the scenario times a part of it already.
pub(super) fn second_half(scenario: &Scenario, runs: &mut Runs<'_>) -> Result<(Scenario, u64), Error> {
    if scenario.options.part.is_some() {
        let why =
            "--steady: it looks at the second half of the whole run; leave it or --from, --until and --region out";
        return Err(why.to_owned().into());
    }
    let mut counting = scenario.clone();
    counting.options.mode = Mode::Functional;
    let run = runs.simulate(&counting, "functional, to count instructions")?;
    finished(&run)?;
    let values = run.region(ALL).map(|region| Evaluation::new(&run, region).total());
    let instructions = values.and_then(|values| values.get("instructions")).unwrap_or(0.0) as u64;
    let from = instructions / 2;
    let selection = Selection::Between { from: Some(Point::Instructions(Count::OfRun(from))), until: None };
    let mut half = scenario.clone();
    half.options.part = Some(PartPlan { selection, warming: Warming::All, stops: false });
    Ok((half, from))
}
