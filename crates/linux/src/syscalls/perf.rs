//! `perf_event_open(2)`: counting and sampling events of threads.

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
use crate::perf::records::{Clock, REGISTERS, sample};
use crate::perf::ring::{Ring, Wakeup};
use crate::perf::sampling;
use crate::perf::{Event, INSTRUCTIONS, Kind, PMU_TYPE, Source, Start};

type Outcome<T> = std::result::Result<T, Errno>;

/// `struct perf_event_attr`, as far as it is known here.
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
    configs: [u64; 2],
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    interrupted_registers: u64,
    aux_watermark: u32,
    most_callers: u16,
    reserved: u16,
}

/// Bits of `Attributes::flags`.
mod flag {
    pub const DISABLED: u64 = 1;
    pub const INHERIT: u64 = 1 << 1;
    pub const EXCLUDE_USER: u64 = 1 << 4;
    pub const MMAP: u64 = 1 << 8;
    pub const COMM: u64 = 1 << 9;
    pub const FREQUENCY: u64 = 1 << 10;
    pub const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub const TASK: u64 = 1 << 13;
    pub const WATERMARK: u64 = 1 << 14;
    pub const MMAP_DATA: u64 = 1 << 17;
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub const NO_USER_CALLERS: u64 = 1 << 22;
    pub const MMAP2: u64 = 1 << 23;
    pub const COMM_EXEC: u64 = 1 << 24;
    pub const USE_CLOCK: u64 = 1 << 25;
    /// Records of switches, a buffer written backwards, output to another kind of buffer, identities of files, and those that
    /// Linux added later.
    pub const UNSUPPORTED: u64 = 0b11 << 26 | 1 << 31 | !0 << 34;
}

/// Highest sampling rate in Hz, and most addresses of a call chain, as `/proc/sys/kernel` says.
const MOST_SAMPLES: u64 = 100_000;
const MOST_CALLERS: u16 = 127;

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

/// Returns what an event writes to its buffer.
///
/// # Errors
/// `EOPNOTSUPP` for samples in functional runs, which have no counters that overflow, and for parts of samples that there are not;
/// `EINVAL` for what makes no sense, `EOVERFLOW` for call chains that are too long.
fn output(k: &Kernel<'_>, attributes: &Attributes, source: Source) -> Outcome<sampling::Attributes> {
    let has = |flag| attributes.flags & flag != 0;
    let (value, by_frequency) = (attributes.sample_period, has(flag::FREQUENCY));
    if has(flag::UNSUPPORTED) || value >> 63 != 0 || (by_frequency && value > MOST_SAMPLES) {
        return Err(Errno::INVAL);
    }
    if attributes.sample_type & sample::REGISTERS != 0 && attributes.user_registers & !REGISTERS != 0 {
        return Err(Errno::INVAL);
    }
    let timed = k.system.cpus.are_separate();
    if attributes.sample_type & !sample::ALL != 0 || (value != 0 && !timed && source != Source::Nothing) {
        return Err(Errno::OPNOTSUPP);
    }
    let callers = if attributes.most_callers == 0 { MOST_CALLERS } else { attributes.most_callers };
    if callers > MOST_CALLERS {
        return Err(Errno::OVERFLOW);
    }
    let wakeup = if has(flag::WATERMARK) { Wakeup::Bytes } else { Wakeup::Samples };
    Ok(sampling::Attributes {
        // To begin with, one event in each ns.
        period: if by_frequency && value > 0 { 1_000_000_000 / value } else { value },
        frequency: if by_frequency { value } else { 0 },
        sample_type: attributes.sample_type,
        identifies_all: has(flag::SAMPLE_ID_ALL),
        most_callers: (!has(flag::NO_USER_CALLERS)).then_some(callers),
        registers: attributes.user_registers,
        wakeup: wakeup(attributes.wakeup),
        clock: if has(flag::USE_CLOCK) { clock(attributes.clock)? } else { Clock::Monotonic },
        notes: sampling::Notes {
            mappings: has(flag::MMAP),
            data_mappings: has(flag::MMAP_DATA),
            long_mappings: has(flag::MMAP2),
            names: has(flag::COMM),
            exec_names: has(flag::COMM_EXEC),
            tasks: has(flag::TASK) || has(flag::MMAP) || has(flag::COMM),
        },
    })
}

/// Returns the clock with a number of `clock_gettime`.
fn clock(number: i32) -> Outcome<Clock> {
    match number {
        // The time of day, and that of atomic clocks, which is not known to differ.
        0 | 11 => Ok(Clock::Realtime),
        // Monotonic, raw, and with the time of a suspended machine.
        1 | 4 | 7 => Ok(Clock::Monotonic),
        _ => Err(Errno::INVAL),
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
    let output = output(k, &attributes, source)?;
    let other = if a[3] as i32 == -1 { None } else { Some(event(k, a[3] as i32)?) };
    let leader = other.clone().filter(|_| a[4] & NO_GROUP == 0);
    if leader.as_ref().is_some_and(|leader| leader.follows()) {
        return Err(Errno::INVAL);
    }
    let enabled = attributes.flags & flag::DISABLED == 0;
    let start = Start { enabled, enable_on_exec: attributes.flags & flag::ENABLE_ON_EXEC != 0, thread };
    k.system.last_event += 1;
    let inherit = attributes.flags & flag::INHERIT != 0;
    let kind = Kind { source, format: attributes.read_format, inherit, cpu, attributes: output };
    let event = Event::new(Level::new(false)?, k.system.last_event, k.thread.tid, kind, leader.as_ref(), start);
    if let Some(other) = other.filter(|_| a[4] & OUTPUT != 0) {
        redirect(&event, &other)?;
    }
    event.follow(&k.uses());
    if event.period.get() > 0 {
        k.system.sampled.any = true;
        k.sampling_changed();
    }
    let flags = if a[4] & CLOSE_ON_EXEC != 0 { CLOEXEC } else { 0 };
    insert_as(k, Object::Event(event), flags, budget::PERF)
}

/// Lets an event write to the buffer of another one.
///
/// # Errors
/// `EINVAL` when they are for different CPUs or have different clocks.
fn redirect(event: &Event, other: &Event) -> Outcome<()> {
    if event.cpu != other.cpu || event.attributes.clock != other.attributes.clock {
        return Err(Errno::INVAL);
    }
    event.ring.replace(other.ring());
    Ok(())
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

/// Requests to an event.
mod request {
    pub const ENABLE: u32 = 0x2400;
    pub const DISABLE: u32 = 0x2401;
    pub const REFRESH: u32 = 0x2402;
    pub const RESET: u32 = 0x2403;
    pub const SET_OUTPUT: u32 = 0x2405;
    pub const PERIOD: u32 = 0x4008_2404;
    pub const PAUSE_OUTPUT: u32 = 0x4004_2409;
    pub const ID: u32 = 0x8008_2407;
}

/// Returns the result of a request to an event. `None`: the descriptor is for something else, or the request is for all files.
pub(super) fn ioctl(k: &mut Kernel<'_>, a: &Args) -> Option<Result> {
    /// The request is for the whole group.
    const GROUP: u64 = 1;
    let event = k.process.files.object(a[0] as i32)?.event()?.clone();
    let mut events = vec![Rc::clone(&event)];
    if a[2] & GROUP != 0 {
        events.extend(event.followers());
    }
    let request = a[1] as u32;
    let result = match request {
        request::ENABLE | request::DISABLE | request::RESET => {
            let uses = k.uses();
            for event in &events {
                match request {
                    request::RESET => event.reset(&uses),
                    _ => event.enable(&uses, request == request::ENABLE),
                }
            }
            Ok(0)
        }
        request::REFRESH => refresh(k, &event, a[2]),
        request::PERIOD => set_period(k, &event, a[2]),
        request::SET_OUTPUT => set_output(k, &event, a[2] as i32),
        request::PAUSE_OUTPUT => pause(&event, a[2] as u32 != 0),
        request::ID => user::write(k.mem, a[2], event.id).map(|()| 0),
        // Filters and programs of other kinds of events.
        0x2408 | 0x240a | 0x240b => Err(Errno::INVAL),
        _ => return None,
    };
    k.sampling_changed();
    Some(result)
}

/// `PERF_EVENT_IOC_REFRESH`: enables an event for this number of samples more.
///
/// # Errors
/// `EINVAL` for an event that does not sample, or that other threads inherit.
fn refresh(k: &Kernel<'_>, event: &Event, samples: u64) -> Result {
    if event.period.get() == 0 || event.inherit {
        return Err(Errno::INVAL);
    }
    let more = u64::from(samples as u32);
    event.limit.set(Some(event.limit.get().unwrap_or(0).saturating_add(more)));
    event.enable(&k.uses(), true);
    Ok(0)
}

/// `PERF_EVENT_IOC_PERIOD`: sets the period, from now on.
///
/// # Errors
/// `EINVAL` for an event that does not sample, or whose period adapts.
fn set_period(k: &mut Kernel<'_>, event: &Event, pointer: u64) -> Result {
    let period: u64 = user::read(k.mem, pointer)?;
    let samples = event.period.get() > 0 && event.attributes.frequency == 0;
    if !samples || period == 0 || period >> 63 != 0 {
        return Err(Errno::INVAL);
    }
    event.period.set(period);
    Ok(0)
}

/// `PERF_EVENT_IOC_SET_OUTPUT`: the event's records go to the buffer of another one; -1: nowhere.
fn set_output(k: &Kernel<'_>, to: &Event, fd: i32) -> Result {
    match fd {
        -1 => drop(to.ring.take()),
        fd => redirect(to, &*event(k, fd)?)?,
    }
    Ok(0)
}

/// `PERF_EVENT_IOC_PAUSE_OUTPUT`.
///
/// # Errors
/// `EINVAL` without a buffer.
fn pause(event: &Event, paused: bool) -> Result {
    event.ring().ok_or(Errno::INVAL)?.paused.set(paused);
    Ok(0)
}

/// `PR_TASK_PERF_EVENTS_ENABLE` and `…_DISABLE`: all events that the thread has opened.
pub(super) fn enable_own(k: &mut Kernel<'_>, enabled: bool) {
    let uses = k.uses();
    for event in k.events().iter().filter(|event| event.owner == k.thread.tid) {
        event.enable(&uses, enabled);
    }
    k.sampling_changed();
}

/// `mmap` of an event: a page that says that the counters cannot be read with instructions, and its buffer.
///
/// # Errors
/// `EINVAL` when the event is mapped already or the length is wrong, `ENOMEM` when there is no room for the buffer.
pub(super) fn mmap(k: &mut Kernel<'_>, a: &Args) -> Result {
    const SHARED: u64 = 1;
    const ANONYMOUS: u64 = 0x20;
    const WRITE: u64 = 2;
    let (page, event) = (k.system.platform.page_bytes, event(k, a[4] as i32)?);
    let buffer = (a[1] / page).saturating_sub(1);
    let fits = a[1] > 0 && a[1].is_multiple_of(page) && (buffer == 0 || buffer.is_power_of_two());
    let is_mapped = event.ring().is_some_and(|ring| ring.is_mapped(k.mem));
    if !fits || is_mapped || a[5] != 0 || a[3] & SHARED == 0 || (event.inherit && event.cpu.is_none()) {
        return Err(Errno::INVAL);
    }
    let start = memory::mmap(k, &[a[0], a[1], a[2], a[3] | ANONYMOUS, u64::MAX, 0])?;
    // The kernel writes to all of it, also while other processes run.
    let loaded = k.mem.region_at(start).copied().filter(|region| k.mem.load_pages(region).is_ok());
    let object = loaded.and_then(|region| Some((region.backing?.object, k.mem.shared_by(&region)?.serial)));
    let Some((object, serial)) = object else {
        memory::unmap(k, start, start + a[1])?;
        return Err(Errno::NOMEM);
    };
    let ring = Ring::new(k.mem, object, serial, [page, buffer * page], a[2] & WRITE == 0);
    event.ring.replace((buffer > 0).then(|| Rc::new(ring)));
    k.sampling_changed();
    Ok(start)
}
