//! Options of runs in plan files.

use std::ffi::OsString;

use clap::Parser as _;
use fxscope::Scenario;
use fxscope::lab::latency::plan::Syntax;

use super::ScenarioArgs;

/// The options of a run, without a command.
#[derive(clap::Parser)]
#[command(no_binary_name = true)]
struct RunOptions {
    #[command(flatten)]
    scenario: ScenarioArgs,
}

/// Parses options in plan files as those of `fxscope run`.
pub(crate) struct PlanSyntax;

impl Syntax for PlanSyntax {
    fn scenario(&self, options: &[&str], command: &[OsString]) -> Result<Scenario, String> {
        let parsed = RunOptions::try_parse_from(options)
            .map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())?;
        parsed.scenario.scenario(command).map_err(|failure| failure.message)
    }
}
