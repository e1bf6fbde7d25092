//! System calls that wait for descriptors: `ppoll`, `pselect6`, `epoll`, and event counters.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::rc::Rc;

use bytemuck::{Pod, Zeroable};
use rustix::event::{EventfdFlags, PollFlags, epoll};
use rustix::io::Errno;

use super::files::limit;
use super::{Args, Result};
use crate::abi::time::Time;
use crate::budget;
use crate::fs::epoll::{Member, Members};
use crate::fs::files::{Description, OpenFile};
use crate::fs::objects::Object;
use crate::fs::poll::{Interest, of_object, ready};
use crate::fs::vfs::Origin;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, FOR_EVER, Wait};
use crate::signal::UNBLOCKABLE;

/// Maximum number of events that one call may return.
const MAX_EVENTS: u64 = 1 << 12;

/// `struct pollfd`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct PollEntry {
    fd: i32,
    events: u16,
    revents: u16,
}

/// Sets a signal mask for the duration of the call, unless the call is being repeated.
fn set_mask(k: &mut Kernel<'_>, pointer: u64, bytes: u64) -> std::result::Result<(), Errno> {
    if pointer == 0 || k.thread.mask_after_suspend.is_some() {
        return Ok(());
    }
    if bytes != 8 {
        return Err(Errno::INVAL);
    }
    let mask = user::read::<u64>(k.mem, pointer)? & !UNBLOCKABLE;
    k.thread.mask_after_suspend = Some(std::mem::replace(&mut k.thread.mask, mask));
    Ok(())
}

/// Returns the end of the duration in a `timespec`; a null pointer means forever.
fn until(k: &mut Kernel<'_>, pointer: u64) -> Result {
    let limit = match pointer {
        0 => FOR_EVER,
        _ => k.system.now_ns.saturating_add(user::read::<Time>(k.mem, pointer)?.to_ns()?),
    };
    Ok(k.thread.time_limit(limit))
}

/// Nothing is ready: waits, or returns when the time is over.
fn wait(k: &mut Kernel<'_>, interests: Vec<Interest>, until_ns: u64) -> Result {
    if until_ns > k.system.now_ns {
        k.block(Blocked { until_ns, ..Blocked::new(Wait::Files(interests)) });
    }
    Ok(0)
}

pub(super) fn ppoll(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[1] > limit(k) {
        return Err(Errno::INVAL);
    }
    let until_ns = until(k, a[2])?;
    let mut entries = vec![PollEntry::zeroed(); a[1] as usize];
    k.mem.read(a[0], bytemuck::cast_slice_mut(&mut entries)).map_err(|_| Errno::FAULT)?;
    set_mask(k, a[3], a[4])?;
    let open = |e: &&mut PollEntry| k.process.files.host(e.fd).is_ok();
    let interests: Vec<Interest> =
        entries.iter_mut().filter(open).map(|e| (e.fd, PollFlags::from_bits_retain(e.events))).collect();
    k.show_own_signals();
    k.show_records();
    let mut results = ready(&k.process.files, &interests)?.into_iter();
    let mut count = 0;
    for entry in &mut entries {
        entry.revents = match k.process.files.host(entry.fd) {
            Ok(_) => results.next().map_or(0, |r| r.bits()),
            Err(_) if entry.fd < 0 => 0,
            Err(_) => PollFlags::NVAL.bits(),
        };
        count += u64::from(entry.revents != 0);
    }
    if count == 0 && until_ns > k.system.now_ns {
        return wait(k, interests, until_ns);
    }
    user::write_bytes(k.mem, a[0], bytemuck::cast_slice(&entries))?;
    entries.iter().filter(|entry| entry.revents != 0).for_each(|entry| seen(k, entry.fd));
    Ok(count)
}

/// A call has reported that a descriptor is ready: a performance event is so only once for each time that it wakes its readers.
fn seen(k: &Kernel<'_>, fd: i32) {
    if let Some(event) = k.process.files.object(fd).and_then(Object::event) {
        event.level.lower();
    }
}

/// The events of `poll` for a set of `select`: to request, and to report.
const SETS: [(PollFlags, PollFlags); 3] = [
    (PollFlags::IN, PollFlags::IN.union(PollFlags::HUP).union(PollFlags::ERR)),
    (PollFlags::OUT, PollFlags::OUT.union(PollFlags::ERR)),
    (PollFlags::PRI, PollFlags::PRI),
];

pub(super) fn pselect6(k: &mut Kernel<'_>, a: &Args) -> Result {
    // Higher numbers are ignored.
    let count = (a[0] as i32).min(k.process.files.end());
    let count = usize::try_from(count).map_err(|_| Errno::INVAL)?;
    let until_ns = until(k, a[4])?;
    let bytes = count.div_ceil(64) * 8;
    let mut sets = [const { Vec::new() }; 3];
    for (set, &pointer) in sets.iter_mut().zip(&a[1..4]) {
        *set = if pointer == 0 { vec![0; bytes] } else { user::read_bytes(k.mem, pointer, bytes)? };
    }
    if a[5] != 0 {
        let [pointer, size]: [u64; 2] = user::read(k.mem, a[5])?;
        set_mask(k, pointer, size)?;
    }
    let mut interests: Vec<Interest> = Vec::new();
    for fd in 0..count {
        let asked = sets.iter().zip(SETS).filter(|(set, _)| set[fd / 8] >> (fd % 8) & 1 == 1);
        let events = asked.fold(PollFlags::empty(), |events, (_, (ask, _))| events | ask);
        if !events.is_empty() {
            interests.push((fd as i32, events));
        }
    }
    k.show_own_signals();
    k.show_records();
    let results = ready(&k.process.files, &interests)?;
    let mut answer = [const { Vec::new() }; 3].map(|_: Vec<u8>| vec![0u8; bytes]);
    let mut found = 0;
    for (&(fd, events), revents) in interests.iter().zip(results) {
        for ((ask, answers), set) in SETS.into_iter().zip(&mut answer) {
            if events.contains(ask) && revents.intersects(answers) {
                set[fd as usize / 8] |= 1 << (fd % 8);
                found += 1;
            }
        }
    }
    if found == 0 && until_ns > k.system.now_ns {
        return wait(k, interests, until_ns);
    }
    interests.iter().for_each(|&(fd, _)| seen(k, fd));
    for (set, &pointer) in answer.iter().zip(&a[1..4]) {
        if pointer != 0 {
            user::write_bytes(k.mem, pointer, set)?;
        }
    }
    Ok(found)
}

pub(super) const CLOEXEC: u64 = 0o2_000_000;
pub(super) const NONBLOCK: u64 = 0o4000;

fn insert(k: &mut Kernel<'_>, host: std::os::fd::OwnedFd, flags: u64, object: Object, bytes: u64) -> Result {
    let (channel, limit) = (k.unnamed_channel(bytes, true, object)?, limit(k));
    let file = OpenFile::new(host, Origin::Host);
    Ok(k.process.files.insert_channel(file, Some(channel), flags & CLOEXEC != 0, limit)? as u64)
}

pub(super) fn eventfd2(k: &mut Kernel<'_>, a: &Args) -> Result {
    const SEMAPHORE: u64 = 1;
    if a[1] & !(SEMAPHORE | CLOEXEC | NONBLOCK) != 0 {
        return Err(Errno::INVAL);
    }
    let mut flags = EventfdFlags::CLOEXEC;
    let semaphore = a[1] & SEMAPHORE != 0;
    flags.set(EventfdFlags::SEMAPHORE, semaphore);
    flags.set(EventfdFlags::NONBLOCK, a[1] & NONBLOCK != 0);
    insert(k, rustix::event::eventfd(a[0] as u32, flags)?, a[1], Object::Counter { semaphore }, budget::EVENT)
}

pub(super) fn epoll_create1(k: &mut Kernel<'_>, a: &Args) -> Result {
    if a[0] & !CLOEXEC != 0 {
        return Err(Errno::INVAL);
    }
    let members = Object::Epoll(Members::default());
    insert(k, epoll::create(epoll::CreateFlags::CLOEXEC)?, a[0], members, budget::EPOLL)
}

/// `struct epoll_event` of arm64, which is not packed.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct EpollEvent {
    events: u32,
    pad: u32,
    data: u64,
}

pub(super) fn epoll_ctl(k: &mut Kernel<'_>, a: &Args) -> Result {
    const ADD: u64 = 1;
    const DELETE: u64 = 2;
    const MODIFY: u64 = 3;
    let (set, fd) = (a[0] as i32, a[2] as i32);
    let (host, file) = (k.process.files.host(set)?, k.process.files.open_file(fd)?);
    let Some(members) = k.process.files.channel(set).and_then(|channel| channel.object.members()) else {
        // The host says what it is instead.
        return epoll::delete(host, &file.host).and(Err(Errno::INVAL));
    };
    if a[1] == DELETE {
        epoll::delete(host, &file.host)?;
        members.find(fd, file.description).into_iter().for_each(|key| members.remove(key));
        return Ok(0);
    }
    let event: EpollEvent = user::read(k.mem, a[3])?;
    let mut events = event.events;
    if k.process.files.object(fd).is_some_and(Object::is_only_read) {
        events &= u32::from(of_object(PollFlags::from_bits_retain(events as u16)).bits()) | !0xffff;
    }
    let flags = epoll::EventFlags::from_bits_retain(events);
    match a[1] {
        ADD => {
            let key = members.new_key();
            epoll::add(host, &file.host, epoll::EventData::new_u64(key), flags)?;
            let channel = k.process.files.kept_channel(fd);
            let member = Member {
                fd,
                description: file.description,
                host: file.host.as_raw_fd(),
                outside: channel.is_none() && !k.system.channels.is_own(&k.process.files, fd),
                channel: channel.as_ref().map(Rc::downgrade),
                data: event.data,
                events,
                reported: Cell::new(false),
                disabled: Cell::new(false),
            };
            members.add(key, member, |description| is_open(k, description));
        }
        MODIFY => {
            let key = members.find(fd, file.description).ok_or(Errno::NOENT)?;
            epoll::modify(host, &file.host, epoll::EventData::new_u64(key), flags)?;
            members.change(key, event.data, events);
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

/// Returns whether a process has a descriptor for an open file.
fn is_open(k: &Kernel<'_>, description: Description) -> bool {
    k.all_processes().any(|process| process.files.open_files().any(|file| file.description == description))
}

/// `epoll_pwait`: the time limit is in milliseconds, negative for none.
pub(super) fn epoll_pwait(k: &mut Kernel<'_>, a: &Args) -> Result {
    let limit = match a[3] as i32 {
        ms @ 0.. => k.system.now_ns.saturating_add(ms as u64 * 1_000_000),
        _ => FOR_EVER,
    };
    let until_ns = k.thread.time_limit(limit);
    epoll_wait(k, a, until_ns)
}

/// `epoll_pwait2`: the time limit is a `timespec`.
pub(super) fn epoll_pwait2(k: &mut Kernel<'_>, a: &Args) -> Result {
    let until_ns = until(k, a[3])?;
    epoll_wait(k, a, until_ns)
}

fn epoll_wait(k: &mut Kernel<'_>, a: &Args, until_ns: u64) -> Result {
    let fd = a[0] as i32;
    let most = usize::try_from(a[2] as i32).ok().filter(|&n| n > 0).ok_or(Errno::INVAL)?;
    set_mask(k, a[4], a[5])?;
    let mut buffer = vec![MaybeUninit::<epoll::Event>::uninit(); most.min(MAX_EVENTS as usize)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    k.show_own_signals();
    k.show_records();
    let (events, _) = epoll::wait(k.process.files.host(fd)?, &mut buffer[..], Some(&now))?;
    let events: Vec<_> = events.iter().map(|e| ({ e.data }.u64(), { e.flags })).collect();
    let members = k.process.files.channel(fd).and_then(|channel| channel.object.members()).ok_or(Errno::INVAL)?;
    let list: Vec<EpollEvent> = members
        .report(&events, most.min(MAX_EVENTS as usize))
        .into_iter()
        .map(|(events, data)| EpollEvent { events: events.bits(), pad: 0, data })
        .collect();
    if list.is_empty() {
        return wait(k, vec![(fd, PollFlags::IN)], until_ns);
    }
    user::write_bytes(k.mem, a[1], bytemuck::cast_slice(&list))?;
    Ok(list.len() as u64)
}
