//! What is behind descriptors, in snapshots: kernel objects that programs have created. Their descriptions are in [`super::files`].

use std::cell::Cell;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::rc::Rc;

use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::files::{Collector, Opener};
use super::sockets::{SavedLink, SavedSocket, links};
use crate::fs::epoll::{Member, Members};
use crate::fs::files::{Description, OpenFile};
use crate::fs::objects::{Level, Object, ProcessFile, SignalFile, TimerFile};
use crate::fs::pty;
use crate::ipc::channels::Channel;
use crate::net::socket::{Identity, Link};
use crate::process::Process;
use crate::sched::timers::Timer;
use crate::system::System;

/// How many instances may be in one another below one (Linux `EP_MAX_NESTS`).
const EPOLL_DEPTH: usize = 4;

/// Most events that are taken from an instance at once.
const EVENTS: usize = 1 << 12;

/// A kernel object.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedChannel {
    bytes: u64,
    own: bool,
    /// Whether it is registered under its identity.
    known: bool,
    /// The index of a description of it.
    file: u32,
    object: SavedObject,
    socket: Option<SavedSocket>,
}

/// What it is.
#[derive(Serialize, Deserialize)]
enum SavedObject {
    Host,
    Counter { semaphore: bool },
    Epoll(SavedMembers),
    Timer { timer: Timer, expirations: u64, high: bool },
    Signals { mask: u64, high: bool },
    Process { pid: u32, high: bool },
    Pty { place: u32, is_master: bool },
}

/// The members of an `epoll` instance.
#[derive(Default, Serialize, Deserialize)]
struct SavedMembers {
    /// In the order of their keys.
    list: Vec<SavedMember>,
    /// The keys of those that the next wait would report, in that order.
    ready: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct SavedMember {
    key: u64,
    /// The process that has the descriptor by which the host knows it.
    pid: u32,
    fd: i32,
    /// The index of its description, and of what is behind that.
    file: u32,
    channel: Option<u32>,
    outside: bool,
    data: u64,
    events: u32,
    reported: bool,
    disabled: bool,
}

/// All kernel objects of a guest.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct SavedObjects {
    channels: Vec<SavedChannel>,
    links: Vec<SavedLink>,
}

/// The objects of a guest, while it is being saved.
#[derive(Default)]
pub(super) struct Found {
    pub channels: Vec<Rc<Channel>>,
    /// For each, whether it is registered, the index of a description, and the host's file of an `epoll` instance.
    places: Vec<(bool, u32, Option<OwnedFd>)>,
}

impl Found {
    /// Returns the index of an object, of which `file` is an open file with the index `place`.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn place(
        &mut self,
        channel: &Rc<Channel>,
        file: &OpenFile,
        place: u32,
        system: &System,
    ) -> Result<u32, Errno> {
        if let Some(known) = self.find(channel) {
            return Ok(known);
        }
        let host = match channel.object {
            Object::Epoll(_) => Some(rustix::io::fcntl_dupfd_cloexec(&file.host, 0)?),
            _ => None,
        };
        self.places.push((system.channels.is_known(file, channel), place, host));
        self.channels.push(Rc::clone(channel));
        Ok(self.channels.len() as u32 - 1)
    }

    fn find(&self, channel: &Rc<Channel>) -> Option<u32> {
        let place = self.channels.iter().position(|other| Rc::ptr_eq(other, channel));
        place.map(|place| place as u32)
    }

    /// Returns all objects, when each has been found, of a guest with these processes.
    ///
    /// # Errors
    /// When a snapshot cannot hold one of them.
    pub(super) fn complete(&self, files: &Collector, processes: &[&Process]) -> Result<SavedObjects, SnapshotError> {
        let mut ready = self.ready(processes)?;
        let mut links: Vec<Rc<Link>> = Vec::new();
        let mut channels = Vec::new();
        for (place, (channel, &(known, file, _))) in self.channels.iter().zip(&self.places).enumerate() {
            let object = match &channel.object {
                Object::Host => SavedObject::Host,
                Object::Counter { semaphore } => SavedObject::Counter { semaphore: *semaphore },
                Object::Epoll(members) => {
                    let list = self.members(members, files, processes)?;
                    SavedObject::Epoll(SavedMembers { list, ready: ready.remove(&place).unwrap_or_default() })
                }
                Object::Timer(TimerFile { level, timer, expirations }) => {
                    SavedObject::Timer { timer: timer.get(), expirations: expirations.get(), high: level.is_high() }
                }
                Object::Signals(SignalFile { level, mask }) => {
                    SavedObject::Signals { mask: mask.get(), high: level.is_high() }
                }
                Object::Process(ProcessFile { level, pid }) => {
                    SavedObject::Process { pid: *pid, high: level.is_high() }
                }
                Object::Pty(end) => SavedObject::Pty {
                    place: files.pty(&end.pty).ok_or(SnapshotError::Damaged)?,
                    is_master: end.is_master,
                },
                // Their descriptions have been refused.
                Object::Event(_) | Object::Messages(_) => return Err(SnapshotError::Damaged),
            };
            let socket = channel.socket.as_ref();
            let socket = socket.map(|socket| SavedSocket::of(socket, &files.pairs, &self.channels, &mut links));
            channels.push(SavedChannel {
                bytes: channel.charge.bytes(),
                own: channel.own.get(),
                known,
                file,
                object,
                socket: socket.transpose()?,
            });
        }
        Ok(SavedObjects { channels, links: links.iter().map(|link| SavedLink::of(link)).collect() })
    }

    fn members(
        &self,
        members: &Members,
        files: &Collector,
        processes: &[&Process],
    ) -> Result<Vec<SavedMember>, SnapshotError> {
        let mut list = Vec::new();
        for (key, member) in members.open(|description| is_open(processes, description)) {
            let (pid, _) = holder(&member, processes)?;
            let channel = member.channel.as_ref().and_then(std::rc::Weak::upgrade);
            list.push(SavedMember {
                key,
                pid,
                fd: member.fd,
                file: files.known(member.description).ok_or(SnapshotError::Damaged)?,
                channel: channel.and_then(|channel| self.find(&channel)),
                outside: member.outside,
                data: member.data,
                events: member.events,
                reported: member.reported.get(),
                disabled: member.disabled.get(),
            });
        }
        Ok(list)
    }

    /// Returns for each `epoll` instance, by its index, the keys of the members that the next wait would report. Only a wait of the host
    /// says so; what it takes away is put back.
    fn ready(&self, processes: &[&Process]) -> Result<BTreeMap<usize, Vec<u64>>, SnapshotError> {
        let instances = self.instances();
        let mut ready = BTreeMap::new();
        for &(place, members, host) in instances.iter().rev() {
            let keys = drain(host)?;
            let list = open_members(members, processes);
            let counts = |key: &u64| list.get(key).is_some_and(|member| !member.disabled.get());
            ready.insert(place, keys.into_iter().filter(counts).collect::<Vec<u64>>());
        }
        // Putting members of one back is an event for those that it is a member of: it comes before theirs.
        for &(place, members, host) in &instances {
            drain(host)?;
            let list = open_members(members, processes);
            for key in &ready[&place] {
                let member = list.get(key).ok_or(SnapshotError::Damaged)?;
                let (_, file) = holder(member, processes)?;
                epoll::delete(host, file)?;
                add(host, file, *key, member.events)?;
            }
        }
        Ok(ready)
    }

    /// Returns the `epoll` instances with their indices, each after those that are its members.
    fn instances(&self) -> Vec<(usize, &Members, &OwnedFd)> {
        let depths = self.depths();
        let all = self.channels.iter().zip(&self.places).enumerate();
        let mut instances: Vec<_> = all
            .filter_map(|(place, (channel, (_, _, host)))| Some((place, channel.object.members()?, host.as_ref()?)))
            .collect();
        instances.sort_by_key(|&(place, ..)| depths[place]);
        instances
    }
}

impl Found {
    /// Returns how many instances are in one another below each object, by its index.
    fn depths(&self) -> Vec<usize> {
        let nested: Vec<Vec<u32>> = self.channels.iter().map(|channel| self.nested(channel)).collect();
        let mut depths = vec![0; nested.len()];
        for _ in 0..=EPOLL_DEPTH {
            for (place, inner) in nested.iter().enumerate() {
                depths[place] = inner.iter().map(|&inner| depths[inner as usize] + 1).max().unwrap_or(0);
            }
        }
        depths
    }

    /// Returns the indices of the instances that are members of an object.
    fn nested(&self, channel: &Channel) -> Vec<u32> {
        let Some(members) = channel.object.members() else { return Vec::new() };
        let members = members.open(|_| false);
        let inner = members.iter().filter_map(|(_, member)| member.channel.as_ref()?.upgrade());
        inner.filter(|inner| inner.object.members().is_some()).filter_map(|inner| self.find(&inner)).collect()
    }
}

/// Returns the members of an instance that are open, by their keys.
fn open_members(members: &Members, processes: &[&Process]) -> BTreeMap<u64, Member> {
    members.open(|description| is_open(processes, description)).into_iter().collect()
}

/// Returns whether a process has a descriptor for an open file.
fn is_open(processes: &[&Process], description: Description) -> bool {
    processes.iter().any(|process| process.files.open_files().any(|file| file.description == description))
}

/// Returns the process, and the host's file, of the descriptor by which the host knows a member.
fn holder<'a>(member: &Member, processes: &[&'a Process]) -> Result<(u32, &'a OwnedFd), SnapshotError> {
    let found = processes.iter().find_map(|process| {
        let file = process.files.open_file(member.fd).ok()?;
        let same = file.description == member.description && file.host.as_raw_fd() == member.host;
        same.then_some((process.pid, &file.host))
    });
    found.ok_or_else(|| SnapshotError::NotKept {
        what: "an epoll instance with a file whose descriptor was closed while others for it are open".to_owned(),
    })
}

/// Takes all events of an instance; returns the keys of their members.
fn drain(host: &OwnedFd) -> Result<Vec<u64>, Errno> {
    let mut buffer = vec![MaybeUninit::<epoll::Event>::uninit(); EVENTS];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut keys: Vec<u64> = Vec::new();
    loop {
        let (events, _) = epoll::wait(host, &mut buffer[..], Some(&now))?;
        let before = keys.len();
        for event in &*events {
            let key = { event.data }.u64();
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        // Those whose events stay come again.
        if keys.len() == before || events.len() < EVENTS {
            return Ok(keys);
        }
    }
}

fn add(host: &OwnedFd, file: &OwnedFd, key: u64, events: u32) -> Result<(), Errno> {
    epoll::add(host, file, epoll::EventData::new_u64(key), epoll::EventFlags::from_bits_retain(events))
}

impl SavedObjects {
    /// Creates the objects; `now` returns what a file is now that is the name of a socket.
    ///
    /// # Errors
    /// When the snapshot is damaged; the host's.
    pub(super) fn restore(
        &self,
        opener: &Opener,
        system: &mut System,
        now: impl Fn(Identity) -> Identity,
    ) -> Result<Vec<Rc<Channel>>, SnapshotError> {
        let (links, budget) = (links(&self.links), system.budget.clone());
        let mut channels = Vec::new();
        for saved in &self.channels {
            let file = opener.file(saved.file)?;
            let socket = saved.socket.as_ref().map(|socket| socket.restored(&opener.pairs, &links, &budget, &now));
            let object = saved.object.restored(opener, &file)?;
            let is_simulated = object.is_simulated();
            let plain = Channel::new(budget.charge(saved.bytes), saved.own);
            let channel = Rc::new(Channel { object, socket: socket.transpose()?, ..plain });
            if saved.known {
                system.channels.restore(&file, &channel)?;
            }
            if is_simulated {
                system.objects.add(&channel);
            }
            system.network.add(&channel);
            channels.push(channel);
        }
        for (saved, channel) in self.channels.iter().zip(&channels) {
            if let (Some(saved), Some(socket)) = (&saved.socket, &channel.socket) {
                saved.aim(socket, &channels);
            }
        }
        opener.ptys.iter().for_each(|pty| pty.complete());
        Ok(channels)
    }

    /// Adds the members to `epoll` instances, once all files are as they were.
    ///
    /// # Errors
    /// When the snapshot is damaged; the host's.
    pub(super) fn restore_members(
        &self,
        opener: &Opener,
        channels: &[Rc<Channel>],
        processes: &[&Process],
    ) -> Result<(), SnapshotError> {
        for place in self.instances()? {
            let (Some(SavedChannel { file, object: SavedObject::Epoll(list), .. }), Some(channel)) =
                (self.channels.get(place), channels.get(place))
            else {
                continue;
            };
            let members = channel.object.members().ok_or(SnapshotError::Damaged)?;
            for saved in &list.list {
                members.add(saved.key, saved.member(opener, channels, processes)?, |_| true);
            }
            list.add_to(&opener.file(*file)?.host, members, processes)?;
        }
        Ok(())
    }

    /// Returns the indices of the `epoll` instances, each after those that are its members.
    ///
    /// # Errors
    /// When they are more deeply in one another than Linux allows.
    fn instances(&self) -> Result<Vec<usize>, SnapshotError> {
        let members = |place: &usize| match &self.channels[*place].object {
            SavedObject::Epoll(members) => members.list.iter().filter_map(|member| member.channel).collect(),
            _ => Vec::new(),
        };
        let mut rest: Vec<usize> = (0..self.channels.len()).collect();
        rest.retain(|&place| matches!(self.channels[place].object, SavedObject::Epoll(_)));
        let mut ordered = Vec::new();
        for _ in 0..=EPOLL_DEPTH {
            let is_ready = |place: &usize| members(place).iter().all(|&member| !rest.contains(&(member as usize)));
            let (ready, others) = rest.iter().copied().partition::<Vec<usize>, _>(is_ready);
            ordered.extend(ready);
            rest = others;
        }
        if rest.is_empty() { Ok(ordered) } else { Err(SnapshotError::Damaged) }
    }
}

impl SavedObject {
    /// Returns the object, of which `file` is an open file.
    fn restored(&self, opener: &Opener, file: &OpenFile) -> Result<Object, SnapshotError> {
        let level = |high: bool| {
            let counter = rustix::io::fcntl_dupfd_cloexec(&file.host, 0)?;
            Ok::<_, SnapshotError>(Level::of(counter, high))
        };
        Ok(match *self {
            SavedObject::Host => Object::Host,
            SavedObject::Counter { semaphore } => Object::Counter { semaphore },
            SavedObject::Epoll(_) => Object::Epoll(Members::default()),
            SavedObject::Timer { timer, expirations, high } => Object::Timer(TimerFile {
                level: level(high)?,
                timer: Cell::new(timer),
                expirations: Cell::new(expirations),
            }),
            SavedObject::Signals { mask, high } => {
                Object::Signals(SignalFile { level: level(high)?, mask: Cell::new(mask) })
            }
            SavedObject::Process { pid, high } => Object::Process(ProcessFile { level: level(high)?, pid }),
            SavedObject::Pty { place, is_master } => {
                let pty = opener.ptys.get(place as usize).ok_or(SnapshotError::Damaged)?;
                Object::Pty(pty::End::restored(pty, is_master))
            }
        })
    }
}

impl SavedMember {
    /// Returns the member of a guest with these objects and processes.
    fn member(
        &self,
        opener: &Opener,
        channels: &[Rc<Channel>],
        processes: &[&Process],
    ) -> Result<Member, SnapshotError> {
        let host = host_of(processes, self.pid, self.fd)?.as_raw_fd();
        let channel =
            self.channel.map(|place| channels.get(place as usize).ok_or(SnapshotError::Damaged)).transpose()?;
        Ok(Member {
            fd: self.fd,
            description: opener.file(self.file)?.description,
            host,
            channel: channel.map(Rc::downgrade),
            outside: self.outside,
            data: self.data,
            events: self.events,
            reported: Cell::new(self.reported),
            disabled: Cell::new(self.disabled),
        })
    }
}

impl SavedMembers {
    /// Adds the members to an instance of the host: first those that the next wait would not report, whose events are taken away, and then
    /// the others in their order.
    fn add_to(&self, host: &OwnedFd, members: &Members, processes: &[&Process]) -> Result<(), SnapshotError> {
        // Flags without events: a disabled member must not be reported, but may be changed.
        const FLAGS: u32 = epoll::EventFlags::ONESHOT.union(epoll::EventFlags::ET).bits();
        let open = open_members(members, processes);
        let list: BTreeMap<u64, &SavedMember> = self.list.iter().map(|saved| (saved.key, saved)).collect();
        let quiet = list.keys().filter(|key| !self.ready.contains(key));
        let add_one = |key: u64| -> Result<(), SnapshotError> {
            let (saved, _) = list.get(&key).zip(open.get(&key)).ok_or(SnapshotError::Damaged)?;
            let events = if saved.disabled { saved.events & FLAGS } else { saved.events };
            match add(host, host_of(processes, saved.pid, saved.fd)?, key, events) {
                // The new standard input may be a file, which is always ready.
                Err(Errno::PERM) if saved.channel.is_none() => Ok(()),
                other => Ok(other?),
            }
        };
        quiet.copied().try_for_each(add_one)?;
        drain(host)?;
        self.ready.iter().copied().try_for_each(add_one)
    }
}

/// Returns the host's file of a process's descriptor.
fn host_of<'a>(processes: &[&'a Process], pid: u32, fd: i32) -> Result<&'a OwnedFd, SnapshotError> {
    let process = processes.iter().find(|process| process.pid == pid).ok_or(SnapshotError::Damaged)?;
    Ok(&process.files.open_file(fd).map_err(|_| SnapshotError::Damaged)?.host)
}
