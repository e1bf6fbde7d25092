//! Runs with snapshots on disk: they are taken during the run, and a run continues from one.

mod parts;
mod resume;
mod start;
mod streams;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fxscope_checkpoint::{About, Reader, Saved, Writer};
use fxscope_linux::Stdio;
use fxscope_record::Run;
use fxscope_report::render::quantity::quantity;
use fxscope_sim::snapshot::SnapshotError;
use fxscope_sim::{Control, Finish, Progress, Simulation};
use serde::{Deserialize, Serialize};

use crate::engine::RunEngine;
use crate::{CallPages, Error, Session};
use parts::{Stored, Taken};
pub use start::{Every, Snapshots, Start};
use streams::StreamFiles;
pub(crate) use streams::duplicate;

/// What a session needs to continue beyond the simulation: [`About::more`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct More {
    /// Data assigned to sectors by options.
    pub sectors: Vec<(Range<u64>, u8)>,
    /// Calls whose mappings have their own page size, and the indices of their rules.
    pub call_pages: Vec<(CallPages, Range<usize>)>,
    streams: StreamFiles,
}

/// Returns what a snapshot is about, with what a session needs.
fn more(reader: &Reader) -> Result<More, Error> {
    serde_json::from_slice(&reader.about().more).map_err(|why| Error::Snapshots(why.to_string()))
}

/// Takes snapshots of a run.
pub struct Checkpoints<'a> {
    writer: Writer,
    every: Every,
    /// Returns, once for each request, whether a snapshot is wanted now.
    requested: &'a (dyn Fn() -> bool + Sync),
    /// Informs the user about snapshots that were taken, and those that could not be.
    notify: &'a (dyn Fn(&Notice) + Sync),
    /// When the next one is due, if time decides.
    due: Option<Instant>,
    /// The last reason why none could be taken.
    trouble: Option<String>,
}

/// What happened to a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// It was taken.
    Taken {
        /// Its number.
        number: u64,
        /// Instructions that the run had executed.
        instructions: u64,
        /// Bytes that it added to the folder.
        bytes: u64,
        /// How long that took.
        took: Duration,
    },
    /// It was not taken: why.
    Trouble(String),
    /// Older ones could not be removed: why.
    NotRemoved(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Taken { number, instructions, bytes, took } => {
                let (at, mib) = (quantity(*instructions as f64, "instructions"), mebibytes(*bytes));
                write!(f, "snapshot {number} at {at} instructions: {mib:.1} MiB in {:.2} s", took.as_secs_f64())
            }
            Notice::Trouble(why) => write!(f, "no snapshot was taken: {why}"),
            Notice::NotRemoved(why) => write!(f, "older snapshots stay: {why}"),
        }
    }
}

/// Returns bytes in MiB.
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// How a run with snapshots ended.
pub enum Ending {
    /// It is over.
    Run(Box<Run>),
    /// Its watcher stopped it, and it can be continued.
    Suspended {
        /// The number of its newest snapshot.
        snapshot: u64,
        /// Instructions that it had executed.
        instructions: u64,
        /// The file that standard output is, if it is one.
        output: Option<PathBuf>,
    },
}

impl<'a> Checkpoints<'a> {
    /// Returns what takes snapshots with `writer`. `requested` says, once for each request, whether one is wanted now; `notify` is
    /// called for each.
    #[must_use]
    pub fn new(
        writer: Writer,
        every: Every,
        requested: &'a (dyn Fn() -> bool + Sync),
        notify: &'a (dyn Fn(&Notice) + Sync),
    ) -> Checkpoints<'a> {
        let mut checkpoints = Checkpoints { writer, every, requested, notify, due: None, trouble: None };
        checkpoints.schedule();
        checkpoints
    }

    fn schedule(&mut self) {
        self.due = match self.every {
            Every::Time(time) => Instant::now().checked_add(time),
            Every::Instructions(_) => None,
        };
    }

    /// Returns whether one is due, other than by instructions.
    fn is_due(&self) -> bool {
        (self.requested)() || self.due.is_some_and(|due| Instant::now() >= due)
    }

    /// Returns the number of instructions at which the next one is due.
    fn next_instructions(&self, now: u64) -> u64 {
        match self.every {
            Every::Time(_) => u64::MAX,
            Every::Instructions(every) => (now / every).saturating_add(1).saturating_mul(every),
        }
    }

    /// Takes one of a simulation. `about` is completed.
    fn take(&mut self, simulation: &Simulation<RunEngine>, about: About) -> Result<Saved, String> {
        let begin = Instant::now();
        let mut snapshot = self.writer.begin().map_err(|error| error.to_string())?;
        if let Err(error) = simulation.save(&mut Taken(&mut snapshot)) {
            // Its own error says more than that of what came later.
            let earlier = snapshot.abort();
            return Err(earlier.map_or_else(|| error.to_string(), |earlier| earlier.to_string()));
        }
        let instructions = about.instructions;
        let saved = snapshot.finish(about).map_err(|error| error.to_string())?;
        let Saved { number, bytes, ref left } = saved;
        (self.notify)(&Notice::Taken { number, instructions, bytes, took: begin.elapsed() });
        self.trouble = None;
        if let Some(why) = left {
            (self.notify)(&Notice::NotRemoved(why.clone()));
        }
        Ok(saved)
    }

    /// Reports why there is no snapshot, unless that was the last report.
    fn warn(&mut self, why: String) {
        if self.trouble.as_ref() != Some(&why) {
            (self.notify)(&Notice::Trouble(why.clone()));
            self.trouble = Some(why);
        }
    }
}

impl Session {
    /// Runs it to its end, or until `watch` stops it, and takes snapshots meanwhile. A run that is stopped has one at that point.
    pub fn run_with_snapshots(
        mut self,
        watch: &mut dyn FnMut(Progress) -> Control,
        checkpoints: &mut Checkpoints<'_>,
    ) -> Ending {
        let start = Instant::now();
        loop {
            let mut stopped = false;
            let mut control = |progress| {
                stopped = watch(progress) == Control::Stop;
                if stopped || checkpoints.is_due() { Control::Stop } else { Control::Continue }
            };
            let until = checkpoints.next_instructions(self.simulation.guest().instructions());
            let finish = self.simulation.advance_to(until, &mut control);
            let seconds = self.seconds_before + start.elapsed().as_secs_f64();
            if let Some(finish) = finish.filter(|finish| !matches!(finish, Finish::Stopped)) {
                return self.concluded(finish, seconds);
            }
            let taken = self.about(seconds).and_then(|about| checkpoints.take(&self.simulation, about));
            match taken {
                Ok(saved) if stopped => return self.suspended(&saved),
                Ok(_) => {}
                Err(why) => {
                    checkpoints.warn(why);
                    if stopped {
                        return self.concluded(Finish::Stopped, seconds);
                    }
                }
            }
            checkpoints.schedule();
        }
    }

    fn concluded(mut self, finish: Finish, seconds: f64) -> Ending {
        let outcome = self.simulation.conclude(finish);
        Ending::Run(Box::new(self.recorded(&outcome, seconds)))
    }

    fn suspended(&self, saved: &Saved) -> Ending {
        Ending::Suspended {
            snapshot: saved.number,
            instructions: self.simulation.guest().instructions(),
            output: StreamFiles::of(&self.stdio).output().cloned(),
        }
    }

    fn about(&self, wall_seconds: f64) -> Result<About, String> {
        let guest = self.simulation.guest();
        let streams = StreamFiles::of(&self.stdio);
        let more = More { sectors: self.sectors.clone(), call_pages: self.call_pages.clone(), streams };
        Ok(About {
            tool: concat!("fxscope ", env!("CARGO_PKG_VERSION")).to_owned(),
            instructions: guest.instructions(),
            now_ns: guest.now_ns(),
            unix_seconds: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            wall_seconds,
            more: serde_json::to_vec(&more).map_err(|why| why.to_string())?,
        })
    }
}

/// A run that continues from a snapshot.
pub(crate) struct Resumption<'r> {
    reader: &'r Reader,
    pub more: More,
}

impl<'r> Resumption<'r> {
    /// Returns the one from this snapshot.
    ///
    /// # Errors
    /// When it says what this version does not know.
    pub(crate) fn new(reader: &'r Reader) -> Result<Resumption<'r>, Error> {
        Ok(Resumption { reader, more: more(reader)? })
    }

    /// Puts standard input at its place: what it was if it was a file.
    ///
    /// # Errors
    /// When that file is not what it was.
    pub(crate) fn place_input(&self, stdio: &mut Stdio) -> Result<(), Error> {
        if let Some(input) = self.more.streams.input().map_err(Error::Snapshots)? {
            stdio.input = input;
        }
        Ok(())
    }

    /// Restores the simulation; afterwards, outputs that are the files they were have what was written before the snapshot.
    ///
    /// # Errors
    /// When it is not whole, or something that it needs is not what it was.
    pub(crate) fn simulation(
        &self,
        surroundings: fxscope_sim::snapshot::Surroundings<'_>,
        options: fxscope_sim::Options,
        engine: &RunEngine,
    ) -> Result<Simulation<RunEngine>, SnapshotError> {
        let stdio = surroundings.stdio;
        let simulation = Simulation::restore(&mut Stored(self.reader), surroundings, options, engine)?;
        self.more.streams.continue_outputs(stdio).map_err(fxscope_linux::SnapshotError::Host)?;
        Ok(simulation)
    }

    /// Returns how long the run had taken, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.reader.about().wall_seconds
    }
}
