//! The rows of `validation`, with the errors that were last accepted: no run is needed.

use std::path::Path;

use fxscope_validate::{Accuracy, Kind, Part, Suite, accepted};

/// Most that programs which no fit has used may be worse than those that fits may use.
const MOST: f64 = 1.5;

fn suite() -> Suite {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates are two folders down");
    Suite::read(&root.join("validation")).expect("rows")
}

/// Returns the accuracy of times and rates of a part, each figure once.
fn times_and_rates(suite: &Suite, part: Part) -> Accuracy {
    let outcomes = accepted(suite);
    Accuracy::of(outcomes.iter().filter(|o| o.part == part && o.kind == Kind::Rate && o.repeats.is_none()))
}

/// Times and rates are what users ask for, and the only kind with many figures in both parts. The statistic is the mean over
/// programs of each program's mean error: rows of one program are alike, and their number says how often something was
/// measured, not how much of the machine it tests. The mean shows a mechanism that the model lacks; a median hides it.
#[test]
fn programs_that_no_fit_has_used_are_predicted_nearly_as_well_as_the_others() {
    let suite = suite();
    let [fit, check] = Part::ALL.map(|part| times_and_rates(&suite, part).programs.mean);
    assert!(check <= MOST * fit, "mean error of the programs: {check:.1} % in check, {fit:.1} % in fit");
}

#[test]
fn both_parts_have_many_programs() {
    let suite = suite();
    for part in Part::ALL {
        let programs = times_and_rates(&suite, part).programs.number;
        assert!(programs >= 20, "{} has {programs} programs with times or rates", part.name());
    }
}

#[test]
fn every_program_has_runs() {
    let suite = suite();
    let rows: Vec<_> =
        suite.families.iter().flat_map(|family| &family.rows).map(|(row, _)| suite.program(row)).collect();
    let unused: Vec<_> =
        suite.programs.iter().map(|p| &p.program).filter(|name| !rows.contains(&name.as_str())).collect();
    assert!(unused.is_empty(), "no row is about {unused:?}");
}
