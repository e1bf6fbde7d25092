//! Guests as bytes: all that a run needs to continue in another process of the host, instruction by instruction as it would
//! have continued in the first one.
//!
//! A snapshot holds registers, memory (pages that are all zeros are left out), and the state of the kernel. Decoded blocks are
//! decoded again in the same order, so that their numbers hold. Open files of the host are opened again by name and must not
//! have changed; of those that the guest was writing, what was added later is cut off. Files without a name, those in `/dev/shm`, pipes,
//! and sockets of the run's own network are kept with their contents. The standard streams, and what the guest may access, are those that the new run gives.
//!
//! [`Guest::save`] refuses, with a message that names it, what it cannot keep: sockets of the host's network, POSIX message queues,
//! performance events, record locks, open named pipes outside of `/dev/shm`, runs on the host's clock, and threads that wait to lock a file, to open a named
//! pipe or to connect on the host.

mod contents;
mod files;
mod folder;
mod objects;
mod parts;
mod processes;
mod sockets;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use fxscope_aarch64::Engine;
use fxscope_guestmem::{Memory, ObjectId};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::budget::INCLUDED;
use crate::code::Code;
use crate::end::End;
use crate::fs::files::Program;
use crate::fs::vfs::View;
use crate::fs::vfs::access::Refused;
use crate::fs::vfs::shared_memory::SharedFolder;
use crate::guest::Guest;
use crate::mm::address_space::AddressSpace;
use crate::mm::shared_files::{MappedFile, SharedFile};
use crate::net::network::{Network, SavedNetwork};
use crate::net::socket::Identity;
use crate::process::Process;
use crate::symbols::Symbols;
use crate::system::System;
use crate::table::{Id, Table};
use crate::thread::Thread;
use contents::{copy, each_page, set_page};
use files::{Collector, Opener, SavedFiles};
use folder::Entry;
use objects::SavedObjects;
pub use parts::{PageId, SnapshotSink, SnapshotSource, Surroundings, read_state, write_state};
use processes::{Restorer, SavedProcess, Shared};

/// The form of snapshots. It changes whenever anything in them does.
const VERSION: u32 = 9;

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
    refused: Refused,
    names_bytes: u64,
    thread_bytes: Vec<(Id<Thread>, u64)>,
    processes: Table<SavedProcess>,
    files: SavedFiles,
    /// What is in `/dev/shm`, and how many names it has at most.
    entries: Vec<Entry>,
    names: u64,
    objects: SavedObjects,
    network: SavedNetwork,
    programs: Vec<(Program, u64)>,
    symbols: Vec<(Symbols, u64)>,
    /// Files that are mapped shared: object, open file, and whether it is open for writing.
    shared_files: Vec<(ObjectId, u32, bool)>,
    /// The objects of files that are only mapped privately. They have all pages of their mappings and need no files.
    private_files: Vec<ObjectId>,
}

/// What a snapshot has behind the memory.
type Rest = (Table<AddressSpace>, Table<Thread>, System, State);

/// A guest from a snapshot.
pub struct Restored<'a, E: Engine> {
    /// The guest.
    pub guest: Guest,
    /// Its code.
    pub code: Code<E>,
    /// What the state has behind the guest's.
    pub rest: &'a [u8],
    /// The files that it was writing.
    pub files: WrittenFiles,
}

/// Files of the host that a guest was writing when its snapshot was taken.
#[must_use = "the guest must not continue before they are as they were"]
pub struct WrittenFiles(Vec<(OwnedFd, u64)>);

impl WrittenFiles {
    /// Cuts off what was added to them after the snapshot.
    ///
    /// # Errors
    /// The host's.
    pub fn cut(self) -> io::Result<()> {
        for (file, bytes) in self.0 {
            // An unchanged file keeps its times.
            if rustix::fs::fstat(&file)?.st_size as u64 != bytes {
                rustix::fs::ftruncate(&file, bytes)?;
            }
        }
        Ok(())
    }
}

/// The files whose contents a snapshot holds: those without a name, and those in `/dev/shm`.
struct Contents {
    files: Vec<OwnedFd>,
    folder: Option<Arc<SharedFolder>>,
    /// The names of sockets in it, by what they were in the snapshot.
    sockets: BTreeMap<Identity, Identity>,
}

impl Contents {
    /// Creates them, with zeros; `folder`: the empty folder for `/dev/shm`.
    fn create(state: &State, mut folder: Option<Arc<SharedFolder>>) -> Result<Contents, SnapshotError> {
        if folder.is_none() && !state.entries.is_empty() {
            folder = SharedFolder::make().map(Arc::new);
        }
        let root = folder.as_ref().map(|folder| folder.path());
        let (files, sockets) = folder::create(&state.entries, &state.files.unnamed, root)?;
        Ok(Contents { files, folder, sockets })
    }

    fn root(&self) -> Option<&Path> {
        self.folder.as_ref().map(|folder| folder.path())
    }
}

/// Returns the memory without its pages, what follows it, and the bytes behind the guest's state.
fn read(state: &[u8]) -> Result<(Memory, Rest, &[u8]), SnapshotError> {
    let (found, rest): (u32, _) = read_state(state)?;
    if found != VERSION {
        return Err(SnapshotError::Version { found });
    }
    let (memory, rest) = read_state(rest)?;
    let (parts, rest) = read_state(rest)?;
    Ok((memory, parts, rest))
}

impl Guest {
    /// Passes on all that the run needs to continue ([`Guest::restore`]); `code` is the guest's.
    ///
    /// # Errors
    /// When the guest has something that a snapshot cannot hold, such as a socket; those of the sink.
    pub fn save<E: Engine>(&self, code: &Code<E>, to: &mut dyn SnapshotSink) -> Result<(), SnapshotError> {
        let (state, unnamed) = self.state(code, Collector::for_later())?;
        self.write(&state, to)?;
        for (number, page) in self.memory.written_pages() {
            to.page(PageId { object: 0, index: number.into() }, page)?;
        }
        for ((file, &bytes), object) in unnamed.iter().zip(&state.files.unnamed).zip(1..) {
            each_page(file, bytes, |index, page| to.page(PageId { object, index }, page))?;
        }
        Ok(())
    }

    /// Returns a guest from what [`Guest::save`] passed on; `state` is the source's from the guest's part on. Engines like `engine`
    /// execute its code.
    ///
    /// # Errors
    /// When it is no snapshot of this version, or a file that the guest had open cannot be opened again as it was.
    pub fn restore<'a, E: Engine>(
        state: &'a [u8],
        from: &mut dyn SnapshotSource,
        surroundings: Surroundings<'_>,
        engine: &E,
    ) -> Result<Restored<'a, E>, SnapshotError> {
        let (mut memory, parts, rest) = read(state)?;
        let contents = Contents::create(&parts.3, surroundings.shared_folder.clone())?;
        from.pages(&mut |PageId { object, index }, page| match object.checked_sub(1) {
            None => {
                let set = u32::try_from(index).is_ok_and(|number| memory.set_page(number, page));
                if set { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
            }
            Some(file) => set_page(contents.files.get(file as usize).ok_or(io::ErrorKind::InvalidData)?, index, page),
        })?;
        let restored = Guest::with_memory(memory, parts, contents, surroundings, engine)?;
        let (guest, code, files) = restored;
        Ok(Restored { guest, code, rest, files })
    }

    /// Returns a second guest in the same state: as [`Guest::save`] and [`Guest::restore`], but without serialising its memory.
    ///
    /// # Errors
    /// As those have them.
    pub fn try_clone<E: Engine>(
        &self,
        code: &Code<E>,
        surroundings: Surroundings<'_>,
    ) -> Result<(Guest, Code<E>), SnapshotError> {
        let (state, unnamed) = self.state(code, Collector::default())?;
        let bytes = postcard::to_stdvec(&(&self.spaces, &self.threads, &self.system, &state));
        let (parts, _) = read_state(&bytes.map_err(|_| SnapshotError::Damaged)?)?;
        let contents = Contents::create(&state, surroundings.shared_folder.clone())?;
        for ((file, &bytes), to) in unnamed.iter().zip(&state.files.unnamed).zip(&contents.files) {
            copy(file, bytes, to)?;
        }
        let (guest, code, _) =
            Guest::with_memory(self.memory.try_clone()?, parts, contents, surroundings, code.engine())?;
        Ok((guest, code))
    }

    /// Writes a state. Like [`read`], it is not generic, so that the code for all types is compiled once.
    fn write(&self, state: &State, to: &mut dyn SnapshotSink) -> Result<(), SnapshotError> {
        write_state(&(VERSION, &self.memory, &self.spaces, &self.threads, &self.system, state), to)
    }

    /// Returns the state, and the files without a name.
    fn state<E: Engine>(&self, code: &Code<E>, files: Collector) -> Result<(State, Vec<OwnedFd>), SnapshotError> {
        let view = &self.process().files.view;
        self.check_kept()?;
        let mut shared = Shared::with(files);
        let processes =
            self.processes.try_map(|process| shared.process(process, code.of_process(process.pid), &self.system))?;
        let mut shared_files = Vec::new();
        let all = || self.system.shared_files.iter();
        for SharedFile { object, file, .. } in all().filter(|shared| shared.private.is_none()) {
            shared_files.push((*object, shared.files.place(&self.process().files, &file.open, None)?, file.writable));
        }
        let entries = folder::entries(view, &mut shared.files)?;
        shared.data(&self.process().files, &self.system)?;
        let all_processes: Vec<&Process> = self.processes.values().collect();
        let objects = shared.objects.complete(&shared.files, &all_processes)?;
        let programs = shared.programs.iter().map(|program| (program.uncharged(), program.charge.bytes()));
        let symbols = shared.symbols.iter().map(|symbols| Symbols::clone(symbols));
        let (files, unnamed) = shared.files.complete();
        let state = State {
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
            refused: view.policy.refused(),
            names_bytes: self.system.names_charge.bytes(),
            thread_bytes: self.threads.iter().map(|(id, thread)| (id, thread.charge.bytes())).collect(),
            processes,
            entries,
            names: view.policy.shared_memory.names(),
            objects,
            network: self.system.network.saved(),
            programs: programs.collect(),
            symbols: symbols.zip(shared.symbols_bytes).collect(),
            files,
            shared_files,
            private_files: all().filter(|shared| shared.private.is_some()).map(|shared| shared.object).collect(),
        };
        Ok((state, unnamed))
    }

    /// Checks that a snapshot can hold what is not in tables.
    fn check_kept(&self) -> Result<(), SnapshotError> {
        let not_kept = |what: &str| Err(SnapshotError::NotKept { what: what.to_owned() });
        if self.host_clock.is_some() {
            return not_kept("a run on the host's clock");
        }
        if !self.system.locks.is_empty() {
            return not_kept("a record lock on a file");
        }
        if !self.system.mqueues.named.is_empty() {
            return not_kept("POSIX message queues");
        }
        Ok(())
    }

    /// A guest with this memory, what a snapshot has behind it, and the files whose contents it holds.
    fn with_memory<E: Engine>(
        mut memory: Memory,
        (spaces, mut threads, mut system, state): Rest,
        contents: Contents,
        surroundings: Surroundings<'_>,
        engine: &E,
    ) -> Result<(Guest, Code<E>, WrittenFiles), SnapshotError> {
        let Surroundings { stdio, sysroot, access, .. } = surroundings;
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
        let view = Rc::new(View::new(sysroot.as_deref(), &access, contents.folder.clone()));
        view.policy.set_refused(state.refused);
        view.policy.shared_memory.restore_names(state.names);
        let mut opener = Opener::new(state.files, &view, stdio, &contents.files, &mut system.ptys)?;
        let written = WrittenFiles(std::mem::take(&mut opener.ends));
        state.private_files.into_iter().for_each(|object| memory.release_object(object));
        for (object, place, writable) in state.shared_files {
            let file = MappedFile { open: opener.file(place)?, writable };
            system.shared_files.insert(&mut memory, object, file)?;
        }
        let now = |node: Identity| contents.sockets.get(&node).copied().unwrap_or(node);
        system.network = Network::restored(&state.network, now);
        let channels = state.objects.restore(&opener, &mut system, now)?;
        sockets::resend(&opener, &channels, &mut system.network, &budget)?;
        // What nobody has is closed before epoll instances look at the other ends.
        opener.pairs.clear();
        let mut restorer = Restorer {
            opener,
            view,
            stdio,
            channels,
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
            engine,
            engines: BTreeMap::new(),
        };
        let processes = state.processes.try_map(|process| restorer.process(process))?;
        let Restorer { mut memory, engines, opener, channels, .. } = restorer;
        let all_processes: Vec<&Process> = processes.values().collect();
        state.objects.restore_members(&opener, &channels, &all_processes)?;
        folder::complete(&state.entries, contents.root())?;
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
        let code = Code::with(engines, engine, &guest);
        Ok((guest, code, written))
    }
}
