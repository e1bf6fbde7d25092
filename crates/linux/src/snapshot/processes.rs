//! Processes in snapshots, and what they share: what is stored, and how it is restored.

use std::collections::BTreeMap;
use std::rc::Rc;

use fxscope_aarch64::Engine;
use fxscope_guestmem::Memory;
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::files::{Collector, Opener};
use super::objects::Found;
use super::sockets::{SavedRight, Seen};
use crate::attributes::Attributes;
use crate::budget::Charge;
use crate::code::has_within;
use crate::end::End;
use crate::fs::files::{Descriptor, Files, OpenFile, Program};
use crate::fs::umask::Umask;
use crate::fs::vfs::View;
use crate::ipc::channels::Channel;
use crate::mm::address_space::AddressSpace;
use crate::net::rights::Delivered;
use crate::process::{Limit, Process};
use crate::random::Random;
use crate::sched::timers::Timers;
use crate::setup::Stdio;
use crate::signal::stop::Job;
use crate::signal::{Action, SigInfo};
use crate::symbols::Symbols;
use crate::system::System;
use crate::table::{Id, Table};
use crate::usage::Used;

/// A process. State that it shares with others is referred to by indices in [`super::State`].
#[derive(Serialize, Deserialize)]
pub(super) struct SavedProcess {
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
pub(super) struct SavedDescriptor {
    file: u32,
    close_on_exec: bool,
    channel: Option<u32>,
}

/// Returns the index of a shared value among those seen so far.
pub(super) fn place_of<T>(known: &mut Vec<Rc<T>>, value: &Rc<T>) -> u32 {
    let found = known.iter().position(|other| Rc::ptr_eq(other, value));
    found.unwrap_or_else(|| {
        known.push(Rc::clone(value));
        known.len() - 1
    }) as u32
}

/// State shared by processes, as far as it has been seen.
pub(super) struct Shared {
    pub files: Collector,
    pub objects: Found,
    pub programs: Vec<Rc<Program>>,
    pub symbols: Vec<Rc<Symbols>>,
    pub symbols_bytes: Vec<u64>,
}

impl Shared {
    pub fn with(files: Collector) -> Shared {
        Shared {
            files,
            objects: Found::default(),
            programs: Vec::new(),
            symbols: Vec::new(),
            symbols_bytes: Vec::new(),
        }
    }

    pub fn process<E: Engine>(
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
            current: self.files.place(files, &files.current, None)?,
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
        let (file, channel) = self.open_file(files, &descriptor.file, descriptor.channel.as_ref(), system)?;
        Ok(SavedDescriptor { file, close_on_exec: descriptor.close_on_exec, channel })
    }

    /// Returns the indices of an open file's description and of what is behind it.
    fn open_file(
        &mut self,
        files: &Files,
        file: &OpenFile,
        channel: Option<&Rc<Channel>>,
        system: &System,
    ) -> Result<SavedRight, SnapshotError> {
        let place = self.files.place(files, file, channel.map(Rc::as_ref))?;
        let channel = channel.map(|channel| self.objects.place(channel, file, place, system));
        Ok((place, channel.transpose()?))
    }

    /// Looks at the data on their way in all sockets: descriptors may come with them, also of further sockets.
    pub fn data(&mut self, files: &Files, system: &System) -> Result<(), SnapshotError> {
        while let Some((end, messages)) = self.files.pairs.look()? {
            for Seen { bytes, carried } in messages {
                let (delivered, credentials) = system.network.flight.look(carried)?;
                let mut rights = Vec::new();
                for Delivered { file, channel } in delivered {
                    rights.push(self.open_file(files, &file, channel.as_ref(), system)?);
                }
                self.files.pairs.add(end, bytes, rights, credentials);
            }
        }
        Ok(())
    }
}

/// What processes are restored with.
pub(super) struct Restorer<'a, E> {
    pub opener: Opener,
    pub view: Rc<View>,
    pub stdio: &'a Stdio,
    pub channels: Vec<Rc<Channel>>,
    pub programs: Vec<Rc<Program>>,
    pub symbols: Vec<(Rc<Symbols>, Rc<Charge>)>,
    pub memory: Memory,
    pub spaces: &'a Table<AddressSpace>,
    pub system: &'a mut System,
    /// Executes code as all engines are to execute it.
    pub engine: &'a E,
    pub engines: BTreeMap<u32, E>,
}

impl<E: Engine> Restorer<'_, E> {
    pub fn process(&mut self, saved: &SavedProcess) -> Result<Process, SnapshotError> {
        let space = self.spaces.get(saved.space).ok_or(SnapshotError::Damaged)?;
        self.memory.activate(space.id);
        if let Some((vl, starts)) = &saved.blocks {
            let mut engine = self.engine.another(*vl);
            for &start in starts {
                engine.find(start, &mut self.memory).map_err(|_| SnapshotError::Damaged)?;
            }
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
        Ok(Files::reopened(table, current, view, program, umask, (self.stdio, self.opener.streams))?)
    }

    fn descriptor(&mut self, saved: &SavedDescriptor) -> Result<Descriptor, SnapshotError> {
        let file = self.opener.file(saved.file)?;
        let channel =
            saved.channel.map(|place| self.channels.get(place as usize).cloned().ok_or(SnapshotError::Damaged));
        Ok(Descriptor { file, close_on_exec: saved.close_on_exec, channel: channel.transpose()? })
    }
}
