//! `perf_event_open(2)`: counting events of threads. There are no samples.

use std::rc::Rc;

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::poll::CLOEXEC;
use super::streams::{check_writable, scatter};
use super::timerfd::insert_as;
use super::transfer::Piece;
use super::{Args, Result, memory};
use crate::budget;
use crate::fs::objects::{Level, Object};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::perf::{Event, INSTRUCTIONS, Kind, PMU_TYPE, Source, Start};

type Outcome<T> = std::result::Result<T, Errno>;

/// `struct perf_event_attr`, as far as counting needs it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

/// Bits of `Attributes::flags`.
mod flag {
    pub const DISABLED: u64 = 1;
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const FREQUENCY: u64 = 1 << 10;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
}

/// Bits of `read_format`.
mod format {
    pub const TIME_ENABLED: u64 = 1;
    pub const TIME_RUNNING: u64 = 2;
    pub const ID: u64 = 4;
    pub const GROUP: u64 = 8;
    pub const LOST: u64 = 16;
    pub const ALL: u64 = 31;
}

/// Reads the attributes.
///
/// # Errors
/// `E2BIG` for more than the kernel knows, `EINVAL` for less than the first version has.
fn attributes(k: &mut Kernel<'_>, pointer: u64) -> Outcome<Attributes> {
    /// Bytes of the first version and of the last known one.
    const SIZES: std::ops::RangeInclusive<u32> = 64..=136;
    let [_, size]: [u32; 2] = user::read(k.mem, pointer)?;
    let size = if size == 0 { *SIZES.start() } else { size };
    if !SIZES.contains(&size) {
        // The kernel's own size, for the caller.
        user::write(k.mem, pointer.wrapping_add(4), *SIZES.end())?;
        return Err(Errno::TOOBIG);
    }
    let mut bytes = [0; size_of::<Attributes>()];
    let given = user::read_bytes(k.mem, pointer, (size as usize).min(bytes.len()))?;
    bytes[..given.len()].copy_from_slice(&given);
    Ok(bytemuck::pod_read_unaligned(&bytes))
}

/// Returns what an event counts.
///
/// # Errors
/// `ENOENT` for what the machine, or a functional run, does not count.
fn source(k: &Kernel<'_>, attributes: &Attributes) -> Outcome<Source> {
    const HARDWARE: u32 = 0;
    const SOFTWARE: u32 = 1;
    const CACHE: u32 = 3;
    const RAW: u32 = 4;
    let config = attributes.config;
    // Which PMU the event is for; there is only one.
    let (pmu, generic) = ((config >> 32) as u32, config as u32);
    let number = match attributes.kind {
        SOFTWARE => return software(config),
        HARDWARE | CACHE if pmu != 0 && pmu != PMU_TYPE => None,
        HARDWARE => hardware(generic),
        CACHE => cache(generic),
        RAW | PMU_TYPE => u16::try_from(config).ok(),
        _ => None,
    };
    let number = number.ok_or(Errno::NOENT)?;
    if !k.system.cpus.are_separate() {
        return if number == INSTRUCTIONS { Ok(Source::Instructions) } else { Err(Errno::NOENT) };
    }
    let index = k.system.platform.pmu.iter().position(|event| event.number == number);
    index.map(Source::Pmu).ok_or(Errno::NOENT)
}

/// Returns the PMU's number for a generic hardware event (Linux `armv8_pmuv3_perf_map`).
fn hardware(event: u32) -> Option<u16> {
    Some(match event {
        0 => 0x11,
        1 => INSTRUCTIONS,
        2 => 0x04,
        3 => 0x03,
        // Branches: this PMU has BR_RETIRED only on other machines.
        4 => 0x21,
        5 => 0x10,
        6 => 0x1d,
        7 => 0x23,
        8 => 0x24,
        _ => return None,
    })
}

/// Returns the PMU's number for a generic cache event: cache, operation and result (Linux `armv8_pmuv3_perf_cache_map`).
fn cache(config: u32) -> Option<u16> {
    Some(match config.to_le_bytes() {
        [0, 0, 0, 0] => 0x04,
        [0, 0, 1, 0] => 0x03,
        [1, 0, 0, 0] => 0x14,
        [1, 0, 1, 0] => 0x01,
        [2, 0, 0, 0] => 0x36,
        [2, 0, 1, 0] => 0x37,
        [3, 0, 0, 0] => 0x25,
        [3, 0, 1, 0] => 0x05,
        [4, 0, 0, 0] => 0x26,
        [4, 0, 1, 0] => 0x02,
        [5, 0, 0, 0] => 0x12,
        [5, 0, 1, 0] => 0x10,
        _ => return None,
    })
}

fn software(config: u64) -> Outcome<Source> {
    match config {
        // CPU_CLOCK and TASK_CLOCK
        0 | 1 => Ok(Source::CpuTime),
        3 => Ok(Source::Switches),
        // PAGE_FAULTS and PAGE_FAULTS_MIN
        2 | 5 => Ok(Source::Faults),
        4 => Ok(Source::Migrations),
        // Major faults, faults of alignment and emulation do not happen; DUMMY counts nothing.
        6..=9 => Ok(Source::Nothing),
        _ => Err(Errno::NOENT),
    }
}

pub(super) fn perf_event_open(k: &mut Kernel<'_>, a: &Args) -> Result {
    const NO_GROUP: u64 = 1;
    const OUTPUT: u64 = 2;
    const CLOSE_ON_EXEC: u64 = 8;
    let attributes = attributes(k, a[0])?;
    if a[4] & !(NO_GROUP | OUTPUT | CLOSE_ON_EXEC) != 0 || attributes.read_format & !format::ALL != 0 {
        return Err(Errno::INVAL);
    }
    if attributes.sample_period != 0 || attributes.flags & flag::FREQUENCY != 0 {
        // Samples would need interrupts when counters overflow.
        return Err(Errno::OPNOTSUPP);
    }
    let thread = target(k, a[1] as i32)?;
    let cpu = match a[2] as i32 {
        -1 => None,
        cpu => Some(cpu as u32)
            .filter(|cpu| k.system.platform.online().any(|p| p.cpu == *cpu))
            .ok_or(Errno::INVAL)
            .map(Some)?,
    };
    let mut source = source(k, &attributes)?;
    if attributes.flags & flag::EXCLUDE_USER != 0 {
        // Only the kernel is left, which is not simulated.
        source = Source::Nothing;
    }
    let leader = match a[3] as i32 {
        -1 => None,
        fd => Some(event(k, fd)?).filter(|_| a[4] & NO_GROUP == 0),
    };
    if leader.as_ref().is_some_and(|leader| leader.follows()) {
        return Err(Errno::INVAL);
    }
    let enabled = attributes.flags & flag::DISABLED == 0;
    let start = Start { enabled, enable_on_exec: attributes.flags & flag::ENABLE_ON_EXEC != 0, thread };
    k.system.last_event += 1;
    let inherit = attributes.flags & flag::INHERIT != 0;
    let kind = Kind { source, format: attributes.read_format, inherit, cpu };
    let event = Event::new(Level::new(false)?, k.system.last_event, k.thread.tid, kind, leader.as_ref(), start);
    event.follow(&k.uses());
    let flags = if a[4] & CLOSE_ON_EXEC != 0 { CLOEXEC } else { 0 };
    insert_as(k, Object::Event(event), flags, budget::PERF)
}

/// Returns the thread for which an event counts.
///
/// # Errors
/// `EACCES` for all threads of a CPU, as for users without privileges (`perf_event_paranoid`); `ESRCH`.
fn target(k: &Kernel<'_>, pid: i32) -> Outcome<u32> {
    match pid {
        0 => Ok(k.thread.tid),
        ..0 => Err(Errno::ACCESS),
        pid => {
            let mut threads = k.all_threads().filter(|thread| !thread.ended);
            threads.find(|thread| thread.tid == pid as u32).map(|thread| thread.tid).ok_or(Errno::SRCH)
        }
    }
}

fn event(k: &Kernel<'_>, fd: i32) -> Outcome<Rc<Event>> {
    k.process.files.host(fd)?;
    k.process.files.object(fd).and_then(Object::event).cloned().ok_or(Errno::BADF)
}

/// Reads the counts of an event or, if its format says so, of its group.
///
/// # Errors
/// `ENOSPC` when there is not enough room.
pub(super) fn read(k: &mut Kernel<'_>, event: &Rc<Event>, pieces: &[Piece]) -> Result {
    let has = |bit| event.format & bit != 0;
    let uses = k.uses();
    let members = if has(format::GROUP) { event.followers() } else { Vec::new() };
    let (_, ns) = event.value(&uses);
    let mut words = Vec::new();
    if has(format::GROUP) {
        words.push(1 + members.len() as u64);
    }
    let times = [format::TIME_ENABLED, format::TIME_RUNNING].into_iter().filter(|&bit| has(bit)).map(|_| ns);
    if has(format::GROUP) {
        words.extend(times.clone());
    }
    for member in std::iter::once(event).chain(&members) {
        words.push(member.value(&uses).0);
        if !has(format::GROUP) {
            words.extend(times.clone());
        }
        if has(format::ID) {
            words.push(member.id);
        }
        if has(format::LOST) {
            words.push(0);
        }
    }
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    if pieces.iter().map(|piece| piece.len).sum::<u64>() < bytes.len() as u64 {
        return Err(Errno::NOSPC);
    }
    check_writable(k, pieces)?;
    scatter(k, pieces, 0, bytes)?;
    Ok(bytes.len() as u64)
}

/// Returns the result of a request to an event. `None`: the descriptor is for something else, or the request is for all files.
pub(super) fn ioctl(k: &mut Kernel<'_>, a: &Args) -> Option<Result> {
    const ENABLE: u32 = 0x2400;
    const DISABLE: u32 = 0x2401;
    const RESET: u32 = 0x2403;
    const SET_OUTPUT: u32 = 0x2405;
    const ID: u32 = 0x8008_2407;
    /// The request is for the whole group.
    const GROUP: u64 = 1;
    let event = k.process.files.object(a[0] as i32)?.event()?.clone();
    let mut events = vec![Rc::clone(&event)];
    if a[2] & GROUP != 0 {
        events.extend(event.followers());
    }
    let request = a[1] as u32;
    Some(match request {
        ENABLE | DISABLE | RESET => {
            let uses = k.uses();
            for event in &events {
                match request {
                    RESET => event.reset(&uses),
                    _ => event.enable(&uses, request == ENABLE),
                }
            }
            Ok(0)
        }
        SET_OUTPUT => Ok(0),
        ID => user::write(k.mem, a[2], event.id).map(|()| 0),
        // The others are about samples.
        0x2402 | 0x2408..=0x240b => Err(Errno::INVAL),
        _ => return None,
    })
}

/// `PR_TASK_PERF_EVENTS_ENABLE` and `…_DISABLE`: all events that the thread has opened.
pub(super) fn enable_own(k: &Kernel<'_>, enabled: bool) {
    let uses = k.uses();
    for event in k.events().iter().filter(|event| event.owner == k.thread.tid) {
        event.enable(&uses, enabled);
    }
}

/// `mmap` of an event: a page that says that the counters cannot be read with instructions, and an empty buffer of samples.
pub(super) fn mmap(k: &mut Kernel<'_>, a: &Args) -> Result {
    const SHARED: u64 = 1;
    const ANONYMOUS: u64 = 0x20;
    /// Places of `data_offset` and `data_size` in `struct perf_event_mmap_page`.
    const DATA: u64 = 1040;
    let (page, event) = (k.system.platform.page_bytes, event(k, a[4] as i32)?);
    let buffer = (a[1] / page).saturating_sub(1);
    let fits = a[1] > 0 && a[1].is_multiple_of(page) && (buffer == 0 || buffer.is_power_of_two());
    if !fits || a[5] != 0 || a[3] & SHARED == 0 || (event.inherit && event.cpu.is_none()) {
        return Err(Errno::INVAL);
    }
    let start = memory::mmap(k, &[a[0], a[1], a[2], a[3] | ANONYMOUS, u64::MAX, 0])?;
    let place: [u64; 2] = [page, buffer * page];
    k.mem.write_privileged(start + DATA, bytemuck::cast_slice(&place)).map_err(|_| Errno::NOMEM)?;
    Ok(start)
}
