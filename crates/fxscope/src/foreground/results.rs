//! What is made of a run that is over: messages, a summary, outputs, an exit status.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use fxscope::record::{self, Finish, Run};
use fxscope::report::Options;
use fxscope::report::render::{json, terminal};
use fxscope::{HostProtection, TraceFile};

use super::Kept;
use crate::terminal::{Failure, Target, interrupt, say, status, style};

/// Processes that ended abnormally and are shown.
const SHOWN_FAILURES: usize = 8;

/// Where the results of a run go, and how it is shown.
pub(crate) struct Results {
    record: Option<record::Target>,
    json: Option<Target>,
    /// A trace of its pipeline.
    pub(crate) trace: Option<TraceFile>,
    /// Without a summary.
    quiet: bool,
    /// The region whose intervals were wanted.
    interval_region: Option<String>,
}

impl Results {
    /// Opens the destinations before any work is done, so that errors show now and not after an hour. `interval_region` is the region whose
    /// intervals are wanted.
    pub(crate) fn check(
        (record, json): (Option<&Path>, Option<&Path>),
        quiet: bool,
        interval_region: Option<&str>,
    ) -> Result<Results, Failure> {
        Ok(Results {
            record: record.map(record::Target::check).transpose()?,
            json: json.map(Target::check).transpose()?,
            trace: None,
            quiet,
            interval_region: interval_region.map(str::to_owned),
        })
    }

    /// Returns where the counts go as JSON.
    pub(crate) fn json(&self) -> Option<&Target> {
        self.json.as_ref()
    }

    /// Shows a run that is over, with the kernel's protection of the host if that is wanted, and writes its results. Returns the exit status.
    pub(crate) fn finish(self, run: &Run, protection: Option<&HostProtection>, kept: Option<&Kept>) -> ExitCode {
        if let Some(name) = self.interval_region.as_ref().filter(|name| run.region(name).is_none()) {
            say(&format!("--interval-region: the program marked no region '{name}', so its intervals counted nothing"));
        }
        if let Some(warning) = run.part.as_ref().and_then(record::Part::warning) {
            say(&warning);
        }
        show(self.quiet, run);
        if let Some(protection) = protection {
            say(&format!("protection by the host's kernel: {protection}"));
        }
        let saved = self.save(run);
        // A run that a signal ended without a snapshot can continue from the last one.
        let over = kept.filter(|_| saved && !matches!(run.finish, Finish::Stopped));
        if saved && over.is_none_or(Kept::ended) { status::of_run(&run.finish) } else { ExitCode::from(status::FAILED) }
    }

    /// Writes all outputs that were asked for, even if some fail. Returns whether all were written.
    fn save(self, run: &Run) -> bool {
        let json = self.json.map_or(Ok(()), |target| {
            target.write(&json::run_with(run, &Options { hottest: fxscope::hottest, ..Options::default() }))
        });
        let record = self.record.map_or(Ok(()), |target| Ok(target.append(std::slice::from_ref(run))?));
        let trace = self.trace.map_or(Ok(()), |trace| Ok(trace.write()?));
        let results: [Result<(), Failure>; 3] = [json, record, trace];
        let mut saved = true;
        for failure in results.into_iter().filter_map(Result::err) {
            say(&failure.message);
            saved = false;
        }
        saved
    }
}

/// Reports how the run ended, and prints the summary unless it is unwanted.
fn show(quiet: bool, run: &Run) {
    for failure in run.failures.iter().take(SHOWN_FAILURES) {
        say(failure);
    }
    if let Some(more @ 1..) = run.failures.len().checked_sub(SHOWN_FAILURES) {
        say(&format!("further processes that ended abnormally: {more}; the record and --json have them"));
    }
    match &run.finish {
        Finish::Killed { message, .. } => say(&format!("the program was {message}")),
        Finish::Stopped => {
            say(&format!("{} ended the run; the results cover what was simulated until then", interrupt::name()))
        }
        finish => {
            if let Some(failure) = finish.failure() {
                say(&failure);
            }
        }
    }
    if !quiet {
        let text = terminal::render(&fxscope::report::summary_with(run, fxscope::hottest), style(&std::io::stderr()));
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
