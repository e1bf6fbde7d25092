//! Snapshots: a run in a form that continues in another process of the host.
//!
//! A snapshot has the guest, the chip, its cores with all their tables and calendars, the blocks that are bound to them,
//! what is known of spin loops, the clocks, and the counts. A run that is restored from it continues byte for byte as the
//! original run would have. [`Simulation::advance_to`] pauses a run without changing what it does afterwards.
//!
//! The engine's blocks are decoded again from the guest's memory, in the same order, so that their numbers hold. Observers,
//! traces and the watcher of a terminal are not part of a run: a restored run gets new ones.
//!
//! The state begins with [`VERSION`]; the rest is [postcard](https://docs.rs/postcard). Where it is stored must detect damage. A
//! forged snapshot can make the simulator stop with an error later, but it can do no more to the host than a guest can.

use std::path::PathBuf;

use fxscope_aarch64::Engine;
use fxscope_linux::{Code, Guest, Restored, read_state, write_state};
pub use fxscope_linux::{PageId, SnapshotSink, SnapshotSource, Surroundings};
use serde::{Deserialize, Serialize};

use crate::mpi::{Follower, Recorder};
use crate::part::{Part, Phase};
use crate::progress::ProgressWatch;
use crate::region::Regions;
use crate::run::{Follow, Mode, Options, Simulation, SpinLoops};
use crate::sampling::Sampling;
use crate::timing::Timing;

/// The version of the format. It changes whenever the state of the model or of the guest does.
pub const VERSION: u32 = 25;

/// Why a snapshot cannot be taken or restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The snapshot is from a program of another version.
    #[error("the snapshot has format {0}; this program reads format {VERSION}")]
    Version(u32),
    /// It is incomplete, or has changed since it was taken.
    #[error("the snapshot is damaged: {0}")]
    Damaged(&'static str),
    /// It is of a run on another machine.
    #[error("the snapshot is of a run on machine `{saved}`, which differs from `{given}` as described now")]
    Machine {
        /// The name of the run's machine.
        saved: String,
        /// The name of the machine that was given.
        given: String,
    },
    /// It is of a run with other options.
    #[error("the snapshot is of a run with {what} {saved}, not {given}")]
    Option {
        /// Which option.
        what: &'static str,
        /// Its value in that run.
        saved: String,
        /// The value that was given.
        given: String,
    },
    /// The program's file is not the one that ran.
    #[error("{}: not the program that the snapshot is of", path.display())]
    Program {
        /// The file.
        path: PathBuf,
    },
    /// The guest cannot be kept or restored.
    #[error(transparent)]
    Guest(#[from] fxscope_linux::SnapshotError),
}

/// What a run depends on that a snapshot does not hold.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Basis {
    machine: String,
    /// [`fxscope_machine::hash`].
    machine_hash: String,
    mode: Mode,
    quantum: u64,
    /// Host threads that simulate CMGs in parallel.
    host_threads: u64,
    follow: Follow,
    spin: SpinLoops,
    interval_ns: Option<u64>,
    stack_ns: Option<u64>,
    interval_region: Option<String>,
    /// The plan of a sampled run.
    sample: Option<String>,
    /// The part of the run that is timed.
    part: Option<String>,
    /// The limit of instructions. A restored run may have another one.
    max_instructions: Option<u64>,
    /// The program's file as programs see it, and its digest; `None`: it cannot be read.
    program: Vec<u8>,
    program_digest: Option<String>,
}

impl Basis {
    fn of(options: &Options, guest: &Guest) -> Basis {
        let program = guest.program_file().to_vec();
        Basis {
            machine: options.spec.name.clone(),
            machine_hash: fxscope_machine::hash(&options.spec),
            mode: options.mode,
            quantum: options.quantum,
            host_threads: options.host_threads.as_ref().map_or(1, |threads| threads.parts() as u64),
            follow: options.follow,
            spin: options.spin,
            interval_ns: options.interval_ns,
            stack_ns: options.stack_ns,
            interval_region: options.interval_region.clone(),
            sample: options.sample.as_ref().map(ToString::to_string),
            part: options.part.as_ref().map(ToString::to_string),
            max_instructions: options.max_instructions,
            program_digest: fxscope_host::open(&guest.host_path(&program), u64::MAX)
                .ok()
                .and_then(|file| fxscope_record::digest_of(file).ok()),
            program,
        }
    }

    /// Compares the basis of a saved run with that of a run with these options.
    fn check(&self, given: &Basis, guest: &Guest) -> Result<(), SnapshotError> {
        if self.machine_hash != given.machine_hash {
            let (saved, given) = (self.machine.clone(), given.machine.clone());
            return Err(SnapshotError::Machine { saved, given });
        }
        let compare = |what, saved: &dyn std::fmt::Debug, given: &dyn std::fmt::Debug| {
            let (saved, given) = (format!("{saved:?}"), format!("{given:?}"));
            if saved == given { Ok(()) } else { Err(SnapshotError::Option { what, saved, given }) }
        };
        compare("mode", &self.mode, &given.mode)?;
        compare("a quantum of", &self.quantum, &given.quantum)?;
        compare("host threads:", &self.host_threads, &given.host_threads)?;
        compare("processes followed:", &self.follow, &given.follow)?;
        compare("spin loops", &self.spin, &given.spin)?;
        compare("intervals in ns of", &self.interval_ns, &given.interval_ns)?;
        compare("call stacks every ns of", &self.stack_ns, &given.stack_ns)?;
        compare("intervals in region", &self.interval_region, &given.interval_region)?;
        compare("a sample", &self.sample, &given.sample)?;
        compare("a part", &self.part, &given.part)?;
        if self.program_digest != given.program_digest {
            return Err(SnapshotError::Program { path: guest.host_path(&self.program) });
        }
        Ok(())
    }
}

/// What the state has behind that of the guest.
#[derive(Serialize)]
struct Written<'a> {
    basis: Basis,
    timing: &'a Option<Timing>,
    sampling: &'a Option<Sampling>,
    part: &'a Option<Part>,
    regions: &'a Regions,
    slice_end: u64,
    progress: &'a ProgressWatch,
    mpi: &'a Recorder,
}

/// What is read there.
#[derive(Deserialize)]
struct Read {
    basis: Basis,
    timing: Option<Timing>,
    sampling: Option<Sampling>,
    part: Option<Part>,
    regions: Regions,
    slice_end: u64,
    progress: ProgressWatch,
    mpi: Recorder,
}

// Not generic, so that the code for all types is compiled once.
impl Written<'_> {
    fn write(&self, to: &mut dyn SnapshotSink) -> Result<(), SnapshotError> {
        Ok(write_state(self, to)?)
    }
}

impl Read {
    fn of(bytes: &[u8]) -> Result<Read, SnapshotError> {
        match read_state(bytes) {
            Ok((read, [])) => Ok(read),
            _ => Err(SnapshotError::Damaged("it cannot be read")),
        }
    }
}

impl<E: Engine> Simulation<E> {
    /// Passes on the run as it is now.
    ///
    /// # Errors
    /// When the guest has something that a snapshot cannot hold; those of the sink.
    pub fn save(&self, to: &mut dyn SnapshotSink) -> Result<(), SnapshotError> {
        to.write_all(&VERSION.to_le_bytes()).map_err(fxscope_linux::SnapshotError::Host)?;
        self.guest.save(&self.code, to)?;
        let written = Written {
            basis: Basis::of(&self.options, &self.guest),
            timing: &self.timing,
            sampling: &self.sampling,
            part: &self.part,
            regions: &self.regions,
            slice_end: self.slice_end,
            progress: &self.progress,
            mpi: self.mpi.recorder(),
        };
        written.write(to)
    }

    /// A run from what [`Simulation::save`] passed on, in these surroundings, whose code engines like `engine` execute. `options`
    /// are those of that run; the limit of instructions may be another one. Only if all is right are files cut that the guest was
    /// writing.
    ///
    /// # Errors
    /// When it is no intact snapshot of this version, the machine, the program or an option differs, or a file
    /// that the guest had open cannot be opened again as it was.
    pub fn restore(
        from: &mut dyn SnapshotSource,
        surroundings: Surroundings<'_>,
        options: Options,
        engine: &E,
    ) -> Result<Simulation<E>, SnapshotError> {
        let state = from.state().map_err(fxscope_linux::SnapshotError::Host)?;
        let (version, state) = state.split_first_chunk().ok_or(SnapshotError::Damaged("it has no version"))?;
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(SnapshotError::Version(version));
        }
        let restored = Guest::restore(state, from, surroundings, engine)?;
        let Restored { guest, code, rest, files } = restored;
        let simulation = Simulation::from_parts(guest, code, rest, options)?;
        files.cut().map_err(fxscope_linux::SnapshotError::Host)?;
        Ok(simulation)
    }

    fn from_parts(
        guest: Guest,
        mut code: Code<E>,
        bytes: &[u8],
        options: Options,
    ) -> Result<Simulation<E>, SnapshotError> {
        let Read { basis, mut timing, sampling, mut part, regions, mut slice_end, progress, mpi } = Read::of(bytes)?;
        basis.check(&Basis::of(&options, &guest), &guest)?;
        let phase = part.as_ref().map(Part::phase);
        if timing.is_some() != (options.mode == Mode::Timing && phase != Some(Phase::Skipped)) {
            return Err(SnapshotError::Damaged("its timing does not fit its mode"));
        }
        let has_cpus = phase != Some(Phase::Behind);
        if timing.as_mut().is_some_and(|timing| !timing.reload(&guest, &code, has_cpus)) {
            return Err(SnapshotError::Damaged("its timing does not fit its guest"));
        }
        if basis.max_instructions != options.max_instructions {
            // The limit is checked at other times.
            slice_end = 0;
            timing.as_mut().into_iter().for_each(|timing| timing.blocks = 0);
        }
        let mut mpi = Follower::restored(mpi);
        if timing.is_none() || phase == Some(Phase::Behind) {
            mpi.begins(&guest, &mut code);
            part.iter_mut().for_each(|part| part.learn(&guest, &mut code));
        }
        Ok(Simulation { guest, code, options, timing, sampling, part, regions, slice_end, progress, mpi })
    }
}

impl Timing {
    /// Completes what a snapshot has, for a guest and its code. Returns whether the parts fit together. `has_cpus`: the guest runs on
    /// these cores.
    fn reload<E: Engine>(&mut self, guest: &Guest, code: &Code<E>, has_cpus: bool) -> bool {
        let (active, cpus) = (self.machine.active, self.machine.cores.len());
        let exists = |index: usize| self.machine.cores.get(index).is_some_and(Option::is_some);
        let shape = (!has_cpus || cpus == guest.cpus().count())
            && exists(active)
            && self.clocks.is_sound(cpus)
            && self.spinning.iter().all(|spinning| exists(spinning.index))
            && self.paused.as_ref().is_none_or(|paused| paused.quantum.index == active)
            && self.stacks.is_sound()
            && self.known.code_map.is_sound();
        let (functions, origins) = (self.known.code_map.function_count(), self.known.code_map.len());
        self.machine.iter_mut().for_each(|core| core.share_tables(&mut self.known.tables));
        shape
            && self.calls.is_sound(functions, origins)
            && (0..cpus).all(|index| {
                let spins = self.spinning.iter().filter(|spinning| spinning.index == index).count();
                self.machine.get_mut(index).is_none_or(|core| core.reload(code, (functions, origins), spins))
            })
    }
}
