//! Running a program again and again.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom};
use std::os::fd::AsFd as _;

use fxscope::linux::Stdio;
use fxscope::record::Run;
use fxscope::{Scenario, Session};

use super::super::super::foreground;
use super::super::super::{Failure, say};

/// A program, and what it needs to run again.
pub(super) struct Runs {
    pub(super) quiet: bool,
    /// Standard input, when it is a file, and where it began.
    input: Option<(File, u64)>,
    /// How often it has run.
    count: u32,
    /// The streams of the first run where they are not those of fxscope.
    first: Option<Stdio>,
}

impl Runs {
    pub(super) fn new(quiet: bool, first: Option<Stdio>) -> Result<Runs, Failure> {
        let mut input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
        let is_file = input.metadata().is_ok_and(|metadata| metadata.is_file());
        let input = if is_file { Some(input.stream_position()?).map(|begin| (input, begin)) } else { None };
        Ok(Runs { quiet, input, count: 0, first })
    }

    /// Hands the program, ready to run, to `with`. Only its first run writes anywhere.
    pub(super) fn contained<R: Send>(
        &mut self,
        scenario: &Scenario,
        with: impl FnOnce(Session) -> Result<R, Failure> + Send,
    ) -> Result<R, Failure> {
        let nothing = || OpenOptions::new().read(true).write(true).open("/dev/null");
        let mut stdio = self.first.take().map_or_else(Stdio::inherit, Ok)?;
        stdio.input = match &mut self.input {
            Some((file, begin)) => {
                file.seek(SeekFrom::Start(*begin))?;
                file.as_fd().try_clone_to_owned()?
            }
            None => nothing()?.into(),
        };
        if self.count > 0 {
            (stdio.output, stdio.error) = (nothing()?.into(), nothing()?.into());
        }
        self.count += 1;
        scenario.prepare()?.contained(Some(stdio), with)?
    }

    /// Runs it once more, and says which run it is and what it is about.
    pub(super) fn simulate(&mut self, scenario: &Scenario, about: &str) -> Result<Run, Failure> {
        self.say(about);
        let quiet = self.quiet;
        self.contained(scenario, |session| foreground::simulate(session, quiet, None))
    }

    /// Says which run comes and what it is about.
    pub(super) fn say(&self, about: &str) {
        if !self.quiet {
            say(&format!("run {}: {about}", self.count + 1));
        }
    }
}
