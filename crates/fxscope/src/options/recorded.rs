//! A program that is named, or that of a record.

use std::ffi::OsString;
use std::path::Path;

use fxscope::Scenario;
use fxscope::lab::recorded::repeatable;

use super::ScenarioArgs;
use crate::terminal::{Failure, say};

/// Returns the scenario that runs `command` or, if a file is named, repeats its run of that number, for the command of fxscope that is called
/// `name`; options that are given override the record, and of `region` only the executions are timed.
pub(crate) fn scenario(
    options: &ScenarioArgs,
    (file, number): (Option<&Path>, Option<u32>),
    command: &[OsString],
    region: Option<&str>,
    name: &str,
) -> Result<Scenario, Failure> {
    let Some(path) = file else { return options.scenario_of(command, region) };
    let (run, warning) = repeatable(path, number, name)?;
    warning.iter().for_each(|warning| say(warning));
    options.repeating(&run, region)
}
