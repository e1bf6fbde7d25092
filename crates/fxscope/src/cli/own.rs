//! Options for metrics and rules of the user's own.

use std::path::PathBuf;

use super::Failure;

/// Files with metrics and rules.
#[derive(clap::Args)]
pub(super) struct OwnTables {
    /// Add the metrics of this file to the built-in ones; docs/own-metrics.md has the format. May be given several times.
    #[arg(long, value_name = "FILE.toml")]
    metric_file: Vec<PathBuf>,
    /// Add the rules of this file to those of the verdict; docs/own-metrics.md has the format. May be given several times.
    #[arg(long, value_name = "FILE.toml")]
    rule_file: Vec<PathBuf>,
}

impl OwnTables {
    /// Adds what the files have, before anything is evaluated.
    pub(super) fn add(&self) -> Result<(), Failure> {
        Ok(fxscope::report::own::add(&self.metric_file, &self.rule_file)?)
    }
}
