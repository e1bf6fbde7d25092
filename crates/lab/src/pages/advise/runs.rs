//! Repeated runs of a program.

use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom};

use fxscope_linux::Stdio;
use fxscope_record::Run;
use fxscope_session::{Scenario, Session};

use crate::{Error, Progress};

/// What a program needs to run repeatedly.
pub(super) struct Runs<'a> {
    progress: &'a dyn Progress,
    /// Standard input, if it is a file, and its initial offset.
    input: Option<(File, u64)>,
    /// Number of runs so far.
    count: u32,
    /// The streams of the first run.
    first: Option<Stdio>,
}

impl<'a> Runs<'a> {
    /// Prepares runs, the first of which has the streams `stdio`; `None`: those of this process.
    pub(super) fn new(stdio: Option<Stdio>, progress: &'a dyn Progress) -> Result<Runs<'a>, Error> {
        let stdio = stdio.map_or_else(Stdio::inherit, Ok)?;
        let mut input = File::from(stdio.input.try_clone()?);
        let is_file = input.metadata().is_ok_and(|metadata| metadata.is_file());
        let input = if is_file { Some(input.stream_position()?).map(|begin| (input, begin)) } else { None };
        Ok(Runs { progress, input, count: 0, first: Some(stdio) })
    }

    /// Passes the program, ready to run, to `with`. Only the output of the first run is kept.
    pub(super) fn contained<R: Send>(
        &mut self,
        scenario: &Scenario,
        with: impl FnOnce(&dyn Progress, Session) -> R + Send,
    ) -> Result<R, Error> {
        let progress = self.progress;
        let stdio = self.streams()?;
        self.count += 1;
        Ok(scenario.prepare()?.contained(Some(stdio), |session| with(progress, session))?)
    }

    /// Returns the streams of the next run.
    fn streams(&mut self) -> Result<Stdio, Error> {
        let nothing = || OpenOptions::new().read(true).write(true).open("/dev/null");
        let input = match &mut self.input {
            Some((file, begin)) => {
                file.seek(SeekFrom::Start(*begin))?;
                file.try_clone()?.into()
            }
            None => nothing()?.into(),
        };
        Ok(match self.first.take() {
            Some(first) => Stdio { input, ..first },
            None => Stdio { input, output: nothing()?.into(), error: nothing()?.into() },
        })
    }

    /// Runs the program once more, and announces the run.
    pub(super) fn simulate(&mut self, scenario: &Scenario, about: &str) -> Result<Run, Error> {
        self.announce(about);
        self.contained(scenario, |progress, session| {
            crate::runner::simulate(progress, session, |session, watch| session.run(watch))
        })
    }

    /// Announces the next run and its purpose.
    pub(super) fn announce(&self, about: &str) {
        self.progress.message(&format!("run {}: {about}", self.count + 1));
    }
}
