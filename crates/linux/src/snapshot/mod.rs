//! Guests as bytes: all that a run needs to continue in another process of the host, instruction by instruction as it would
//! have continued in the first one.
//!
//! A snapshot holds registers, memory (pages that are all zeros are left out), and the state of the kernel. Decoded blocks are
//! decoded again in the same order, so that their numbers hold. Open files of the host are opened again by name and must not
//! have changed; files without a name and pipes are kept with their contents; the standard streams are those that the new run
//! gives.
//!
//! [`Guest::save`] refuses, with a message that names it, what it cannot keep: sockets, event counters, epoll instances, timers and
//! other objects with descriptors, pseudoterminals, record locks, named pipes, files in `/dev/shm`, runs on the host's clock, and threads that wait to lock a file, to open a named pipe or to
//! connect.

mod files;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::rc::Rc;

use fxscope_aarch64::Engine;
use fxscope_guestmem::{Memory, ObjectId};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::attributes::Attributes;
use crate::budget::{Charge, INCLUDED};
use crate::code::{Code, has_within};
use crate::end::End;
use crate::fs::files::{Descriptor, Files, OpenFile, Program};
use crate::fs::umask::Umask;
use crate::fs::vfs::View;
use crate::guest::Guest;
use crate::ipc::channels::Channel;
use crate::mm::address_space::AddressSpace;
use crate::mm::shared_files::{MappedFile, SharedFile};
use crate::process::{Limit, Process};
use crate::random::Random;
use crate::sched::timers::Timers;
use crate::setup::Stdio;
use crate::signal::stop::Job;
use crate::signal::{Action, SigInfo};
use crate::symbols::Symbols;
use crate::system::System;
use crate::table::{Id, Table};
use crate::thread::Thread;
use crate::usage::Used;
use files::{Collector, Opener, SavedFiles};

/// The form of snapshots. It changes whenever anything in them does.
const VERSION: u32 = 6;

/// Why a guest cannot be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The guest has something that a snapshot cannot hold.
    #[error("a snapshot cannot hold {what}")]
    NotKept {
        /// The unsupported state.
        what: String,
    },
    /// The bytes are not a snapshot, or only part of one.
    #[error("the snapshot is damaged")]
    Damaged,
    /// The bytes are from another version of the program.
    #[error("the snapshot has version {found}; this program reads version {VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// A file that the guest had open cannot be reopened in the same state.
    #[error("{}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// The host lacks resources.
    #[error("cannot keep or restore a guest: {0}")]
    Host(#[from] io::Error),
}

impl From<Errno> for SnapshotError {
    fn from(error: Errno) -> SnapshotError {
        SnapshotError::Host(error.into())
    }
}

/// The state of a guest other than its memory, address spaces, threads and system.
#[derive(Serialize, Deserialize)]
struct State {
    running: Id<Thread>,
    instructions: u64,
    skipped: u64,
    deadline: u64,
    turn_start: u64,
    tick_start: Option<u64>,
    quantum_end: u64,
    held: bool,
    announced: u32,
    first_end: Option<End>,
    end: Option<End>,
    view: View,
    names_bytes: u64,
    thread_bytes: Vec<(Id<Thread>, u64)>,
    processes: Table<SavedProcess>,
    files: SavedFiles,
    channels: Vec<SavedChannel>,
    programs: Vec<(Program, u64)>,
    symbols: Vec<(Symbols, u64)>,
    /// Files that are mapped shared: object, open file, and whether it is open for writing.
    shared_files: Vec<(ObjectId, u32, bool)>,
    /// The objects of files that are only mapped privately. They have all pages of their mappings and need no files.
    private_files: Vec<ObjectId>,
}

/// A process. State that it shares with others is referred to by indices in [`State`].
#[derive(Serialize, Deserialize)]
struct SavedProcess {
    pid: u32,
    ppid: u32,
    group: u32,
    session: u32,
    space: Id<AddressSpace>,
    attributes: Attributes,
    job: Job,
    /// Vector length, and the start addresses of the decoded blocks, if it has run.
    blocks: Option<(usize, Vec<u64>)>,
    code_changed: bool,
    code_full: bool,
    descriptors: Vec<Option<SavedDescriptor>>,
    current: u32,
    umask: u32,
    program: u32,
    symbols: u32,
    held_bytes: u64,
    fixed_bytes: u64,
    actions: Vec<Action>,
    pending: Vec<SigInfo>,
    timers: Timers,
    allowed_cpus: Vec<u64>,
    limits: [Limit; Limit::COUNT],
    random: Random,
    end: Option<End>,
    ended: bool,
    leader_status: Option<i32>,
    cpu_ns: u64,
    children_cpu_ns: u64,
    used: [Used; 2],
    instructions: u64,
}

#[derive(Serialize, Deserialize)]
struct SavedDescriptor {
    file: u32,
    close_on_exec: bool,
    channel: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct SavedChannel {
    bytes: u64,
    own: bool,
    /// Whether it is registered under its identity.
    known: bool,
}

/// What a snapshot has behind the memory.
type Rest = (Table<AddressSpace>, Table<Thread>, System, State);

/// Returns the memory, and the bytes behind it.
fn read_memory(bytes: &[u8]) -> Result<(Memory, &[u8]), SnapshotError> {
    postcard::take_from_bytes(bytes).map_err(|_| SnapshotError::Damaged)
}

fn read_rest(bytes: &[u8]) -> Result<Rest, SnapshotError> {
    postcard::from_bytes(bytes).map_err(|_| SnapshotError::Damaged)
}

fn not_written(_: postcard::Error) -> SnapshotError {
    SnapshotError::NotKept { what: "a thread that waits for another program".into() }
}

/// Returns the index of a shared value among those seen so far.
fn place_of<T>(known: &mut Vec<Rc<T>>, value: &Rc<T>) -> u32 {
    let found = known.iter().position(|other| Rc::ptr_eq(other, value));
    found.unwrap_or_else(|| {
        known.push(Rc::clone(value));
        known.len() - 1
    }) as u32
}

/// State shared by processes, as far as it has been seen.
#[derive(Default)]
struct Shared {
    files: Collector,
    channels: Vec<Rc<Channel>>,
    channel_state: Vec<SavedChannel>,
    programs: Vec<Rc<Program>>,
    symbols: Vec<Rc<Symbols>>,
    symbols_bytes: Vec<u64>,
}

impl Shared {
    fn process<E: Engine>(
        &mut self,
        process: &Process,
        engine: Option<&E>,
        system: &System,
    ) -> Result<SavedProcess, SnapshotError> {
        let files = &process.files;
        let mut descriptors = Vec::new();
        for descriptor in &files.table {
            descriptors.push(match descriptor {
                Some(descriptor) => Some(self.descriptor(files, descriptor, system)?),
                None => None,
            });
        }
        let symbols = place_of(&mut self.symbols, &process.symbols);
        self.symbols_bytes.resize(self.symbols.len(), process.symbols_charge.bytes());
        // Code that has changed cannot be decoded again, and will be forgotten.
        let stale = engine.is_some_and(|engine| has_within(engine, &process.changed_code));
        let code_changed = process.code_changed || stale;
        let forgotten = code_changed && !process.code_full;
        let starts = |engine: &E| if forgotten { Vec::new() } else { engine.starts() };
        Ok(SavedProcess {
            pid: process.pid,
            ppid: process.ppid,
            group: process.group,
            session: process.session,
            space: process.space,
            attributes: process.attributes.clone(),
            job: process.job,
            blocks: engine.map(|engine| (engine.vl(), starts(engine))),
            code_changed,
            code_full: process.code_full,
            descriptors,
            current: self.files.place(files, &files.current)?,
            umask: files.umask.bits(),
            program: place_of(&mut self.programs, &files.program),
            symbols,
            held_bytes: process.charge.bytes(),
            fixed_bytes: process.fixed_bytes,
            actions: process.actions.to_vec(),
            pending: process.pending.clone(),
            timers: process.timers.clone(),
            allowed_cpus: process.allowed_cpus.clone(),
            limits: process.limits,
            random: Random(process.random.0),
            end: process.end.clone(),
            ended: process.ended,
            leader_status: process.leader_status,
            cpu_ns: process.cpu_ns,
            children_cpu_ns: process.children_cpu_ns,
            used: [process.used, process.children_used],
            instructions: process.instructions,
        })
    }

    fn descriptor(
        &mut self,
        files: &Files,
        descriptor: &Descriptor,
        system: &System,
    ) -> Result<SavedDescriptor, SnapshotError> {
        if let Some(name) = descriptor.channel.as_ref().and_then(|channel| channel.object.name()) {
            return Err(SnapshotError::NotKept { what: format!("the open file {name}") });
        }
        let file = self.files.place(files, &descriptor.file)?;
        let channel = descriptor.channel.as_ref().map(|channel| {
            let place = place_of(&mut self.channels, channel);
            if self.channel_state.len() < self.channels.len() {
                let known = system.channels.is_known(&descriptor.file, channel);
                let (bytes, own) = (channel.charge.bytes(), channel.own.get());
                self.channel_state.push(SavedChannel { bytes, own, known });
            }
            place
        });
        Ok(SavedDescriptor { file, close_on_exec: descriptor.close_on_exec, channel })
    }
}

impl Guest {
    /// Returns all that the run needs to continue ([`Guest::restore`]); `code` is the guest's.
    ///
    /// # Errors
    /// When the guest has something that a snapshot cannot hold, such as a socket.
    pub fn save<E: Engine>(&self, code: &Code<E>) -> Result<Vec<u8>, SnapshotError> {
        self.written(&self.state(code)?)
    }

    /// Returns a guest from the result of [`Guest::save`], with these standard streams.
    ///
    /// # Errors
    /// When the bytes are no snapshot of this version, or a file that the guest had open cannot be opened again as it was.
    pub fn restore<E: Engine>(bytes: &[u8], stdio: &Stdio) -> Result<(Guest, Code<E>), SnapshotError> {
        let (found, rest): (u32, _) = postcard::take_from_bytes(bytes).map_err(|_| SnapshotError::Damaged)?;
        if found != VERSION {
            return Err(SnapshotError::Version { found });
        }
        let (memory, rest) = read_memory(rest)?;
        Guest::with_memory(memory, rest, stdio)
    }

    /// Returns a second guest in the same state, with these standard streams: as [`Guest::save`] and [`Guest::restore`], but
    /// without serialising its memory.
    ///
    /// # Errors
    /// As those have them.
    pub fn try_clone<E: Engine>(&self, code: &Code<E>, stdio: &Stdio) -> Result<(Guest, Code<E>), SnapshotError> {
        let rest = self.written_rest(&self.state(code)?)?;
        Guest::with_memory(self.memory.try_clone()?, &rest, stdio)
    }

    /// A snapshot with this state. Like [`read_rest`], it is not generic, so that the code for all types is compiled once.
    fn written(&self, state: &State) -> Result<Vec<u8>, SnapshotError> {
        let all = (VERSION, &self.memory, &self.spaces, &self.threads, &self.system, state);
        postcard::to_stdvec(&all).map_err(not_written)
    }

    /// What a snapshot with this state has behind the memory.
    fn written_rest(&self, state: &State) -> Result<Vec<u8>, SnapshotError> {
        postcard::to_stdvec(&(&self.spaces, &self.threads, &self.system, state)).map_err(not_written)
    }

    fn state<E: Engine>(&self, code: &Code<E>) -> Result<State, SnapshotError> {
        let view = &self.process().files.view;
        self.check_kept(view)?;
        let mut shared = Shared::default();
        let processes =
            self.processes.try_map(|process| shared.process(process, code.of_process(process.pid), &self.system))?;
        let mut shared_files = Vec::new();
        let all = || self.system.shared_files.iter();
        for SharedFile { object, file, .. } in all().filter(|shared| shared.private.is_none()) {
            shared_files.push((*object, shared.files.place(&self.process().files, &file.open)?, file.writable));
        }
        let programs = shared.programs.iter().map(|program| (program.uncharged(), program.charge.bytes()));
        let symbols = shared.symbols.iter().map(|symbols| Symbols::clone(symbols));
        Ok(State {
            running: self.running,
            instructions: self.instructions,
            skipped: self.skipped,
            deadline: self.deadline,
            turn_start: self.turn_start,
            tick_start: self.tick_start,
            quantum_end: self.quantum_end,
            held: self.held,
            announced: self.announced,
            first_end: self.first_end.clone(),
            end: self.end.clone(),
            view: view.to_save(),
            names_bytes: self.system.names_charge.bytes(),
            thread_bytes: self.threads.iter().map(|(id, thread)| (id, thread.charge.bytes())).collect(),
            processes,
            channels: shared.channel_state,
            programs: programs.collect(),
            symbols: symbols.zip(shared.symbols_bytes).collect(),
            files: shared.files.saved,
            shared_files,
            private_files: all().filter(|shared| shared.private.is_some()).map(|shared| shared.object).collect(),
        })
    }

    /// Checks that a snapshot can hold what is not in tables.
    fn check_kept(&self, view: &View) -> Result<(), SnapshotError> {
        let not_kept = |what: &str| Err(SnapshotError::NotKept { what: what.to_owned() });
        if self.host_clock.is_some() {
            return not_kept("a run on the host's clock");
        }
        if !self.system.locks.is_empty() {
            return not_kept("a record lock on a file");
        }
        let named = view.policy.shared_memory.folder().is_some_and(|folder| {
            let folder = std::path::Path::new(std::ffi::OsStr::from_bytes(folder));
            std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
        });
        if named {
            return not_kept("files in /dev/shm");
        }
        if !self.system.mqueues.named.is_empty() {
            return not_kept("POSIX message queues");
        }
        Ok(())
    }

    /// A guest with this memory and the rest of a snapshot.
    fn with_memory<E: Engine>(
        mut memory: Memory,
        rest: &[u8],
        stdio: &Stdio,
    ) -> Result<(Guest, Code<E>), SnapshotError> {
        let (spaces, mut threads, mut system, mut state) = read_rest(rest)?;
        if !memory.is_consistent() || !system.segments.are_consistent(&memory) {
            return Err(SnapshotError::Damaged);
        }
        let budget = system.budget.clone();
        system.names_charge = Rc::new(budget.charge(state.names_bytes));
        system.family_charge = Rc::new(budget.charge(system.family.bytes().saturating_sub(INCLUDED)));
        system.sysv_charge = Rc::new(budget.charge(system.sysv.bytes()));
        system.segments.charge_to(&budget);
        for (id, bytes) in state.thread_bytes {
            threads.get_mut(id).ok_or(SnapshotError::Damaged)?.charge = budget.charge(bytes);
        }
        state.view.complete(&system.platform);
        let view = Rc::new(state.view);
        let opener = Opener::new(state.files, &view, stdio)?;
        state.private_files.into_iter().for_each(|object| memory.release_object(object));
        for (object, place, writable) in state.shared_files {
            let file = MappedFile { open: opener.file(place)?, writable };
            system.shared_files.insert(&mut memory, object, file)?;
        }
        let mut restorer = Restorer {
            opener,
            view,
            stdio,
            channels: state
                .channels
                .iter()
                .map(|saved| Rc::new(Channel::new(budget.charge(saved.bytes), saved.own)))
                .collect(),
            known: state.channels.iter().map(|saved| saved.known).collect(),
            programs: state
                .programs
                .into_iter()
                .map(|(program, bytes)| Rc::new(Program { charge: budget.charge(bytes), ..program }))
                .collect(),
            symbols: state
                .symbols
                .into_iter()
                .map(|(symbols, bytes)| (Rc::new(symbols), Rc::new(budget.charge(bytes))))
                .collect(),
            memory,
            spaces: &spaces,
            system: &mut system,
            engines: BTreeMap::new(),
        };
        let processes = state.processes.try_map(|process| restorer.process(process))?;
        let Restorer { mut memory, engines, .. } = restorer;
        if threads.values().any(|thread| processes.get(thread.process).is_none()) {
            return Err(SnapshotError::Damaged);
        }
        let running = threads.get(state.running).ok_or(SnapshotError::Damaged)?;
        let space = processes.get(running.process).and_then(|process| spaces.get(process.space));
        memory.activate(space.ok_or(SnapshotError::Damaged)?.id);
        let mut guest = Guest::of(memory, system, spaces, processes, threads, state.running, None);
        guest.instructions = state.instructions;
        guest.skipped = state.skipped;
        guest.deadline = state.deadline;
        (guest.turn_start, guest.tick_start) = (state.turn_start, state.tick_start);
        guest.quantum_end = state.quantum_end;
        guest.held = state.held;
        guest.announced = state.announced;
        guest.first_end = state.first_end;
        guest.end = state.end;
        let code = Code::with(engines, &guest);
        Ok((guest, code))
    }
}

/// What processes are restored with.
struct Restorer<'a, E> {
    opener: Opener,
    view: Rc<View>,
    stdio: &'a Stdio,
    channels: Vec<Rc<Channel>>,
    known: Vec<bool>,
    programs: Vec<Rc<Program>>,
    symbols: Vec<(Rc<Symbols>, Rc<Charge>)>,
    memory: Memory,
    spaces: &'a Table<AddressSpace>,
    system: &'a mut System,
    engines: BTreeMap<u32, E>,
}

impl<E: Engine> Restorer<'_, E> {
    fn process(&mut self, saved: &SavedProcess) -> Result<Process, SnapshotError> {
        let space = self.spaces.get(saved.space).ok_or(SnapshotError::Damaged)?;
        self.memory.activate(space.id);
        if let Some((vl, starts)) = &saved.blocks {
            let engine = E::decode(*vl, starts, &mut self.memory).map_err(|_| SnapshotError::Damaged)?;
            self.engines.insert(saved.pid, engine);
        }
        let (symbols, symbols_charge) = self.symbols.get(saved.symbols as usize).ok_or(SnapshotError::Damaged)?.clone();
        Ok(Process {
            pid: saved.pid,
            ppid: saved.ppid,
            group: saved.group,
            session: saved.session,
            space: saved.space,
            attributes: saved.attributes.clone(),
            job: saved.job,
            code_changed: saved.code_changed,
            changed_code: Vec::new(),
            code_full: saved.code_full,
            files: self.files(saved)?,
            symbols,
            symbols_charge,
            charge: self.system.budget.charge(saved.held_bytes),
            fixed_bytes: saved.fixed_bytes,
            actions: saved.actions.clone().try_into().map_err(|_| SnapshotError::Damaged)?,
            pending: saved.pending.clone(),
            timers: saved.timers.clone(),
            allowed_cpus: saved.allowed_cpus.clone(),
            limits: saved.limits,
            random: Random(saved.random.0),
            end: saved.end.clone(),
            ended: saved.ended,
            leader_status: saved.leader_status,
            cpu_ns: saved.cpu_ns,
            children_cpu_ns: saved.children_cpu_ns,
            used: saved.used[0],
            children_used: saved.used[1],
            instructions: saved.instructions,
        })
    }

    fn files(&mut self, saved: &SavedProcess) -> Result<Files, SnapshotError> {
        let mut table = Vec::new();
        for descriptor in &saved.descriptors {
            table.push(match descriptor {
                Some(saved) => Some(self.descriptor(saved)?),
                None => None,
            });
        }
        let current = self.opener.file(saved.current)?;
        let program = self.programs.get(saved.program as usize).ok_or(SnapshotError::Damaged)?;
        let (view, program, umask) = (Rc::clone(&self.view), Rc::clone(program), Umask::new(saved.umask));
        Ok(Files::reopened(table, current, view, program, umask, self.stdio)?)
    }

    fn descriptor(&mut self, saved: &SavedDescriptor) -> Result<Descriptor, SnapshotError> {
        let file: OpenFile = self.opener.file(saved.file)?;
        let mut channel = None;
        if let Some(place) = saved.channel {
            let found = self.channels.get(place as usize).ok_or(SnapshotError::Damaged)?;
            if self.known[place as usize] {
                self.system.channels.restore(&file, found)?;
            }
            channel = Some(Rc::clone(found));
        }
        Ok(Descriptor { file, close_on_exec: saved.close_on_exec, channel })
    }
}
