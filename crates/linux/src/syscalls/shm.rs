//! System calls on System V shared memory.

use bytemuck::{Pod, Zeroable};
use fxscope_guestmem::{Backing, PAGE, Prot, Region, Segment};
use rustix::io::Errno;

use super::memory::{MAP_FIXED, attach, in_use, place, unmap};
use super::{Args, Result};
use crate::ipc::shm::{MOST, MOST_BYTES, PRIVATE, SharedSegment};
use crate::kernel::Kernel;
use crate::mm::mapped::Mapped;
use crate::mm::user;

/// Bits of the rights in a mode.
const RIGHTS: u32 = 0o777;
const READ: u32 = 4;
const WRITE: u32 = 2;

/// `struct shmid64_ds`, with its `struct ipc64_perm`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Status {
    key: i32,
    owner: [u32; 2],
    creator: [u32; 2],
    mode: u32,
    sequence: u16,
    pad: [u16; 3],
    unused: [u64; 2],
    bytes: u64,
    attached: u64,
    detached: u64,
    changed: u64,
    creator_pid: u32,
    last_pid: u32,
    attachments: u64,
    unused_too: [u64; 2],
}

/// `struct shminfo64`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Limits {
    most_bytes: u64,
    least_bytes: u64,
    most: u64,
    most_of_process: u64,
    most_pages: u64,
    unused: [u64; 4],
}

/// `struct shm_info`; sizes in pages.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Use {
    segments: u64,
    total: u64,
    resident: u64,
    swapped: u64,
    swaps: [u64; 2],
}

/// Returns the time in s since 1970.
fn now(k: &Kernel<'_>) -> u64 {
    (k.system.start_unix_ns + k.system.now_ns) / 1_000_000_000
}

/// Returns user and group of the program.
fn user_and_group() -> [u32; 2] {
    [rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()]
}

/// Checks the rights of the program, which is the owner of everything: there is only one user. As under Linux, they do not
/// matter to root.
fn check(segment: &SharedSegment, wanted: u32) -> std::result::Result<(), Errno> {
    let refused = wanted & !(segment.mode >> 6) & 7 != 0 && user_and_group()[0] != 0;
    if refused { Err(Errno::ACCESS) } else { Ok(()) }
}

pub(super) fn shmget(k: &mut Kernel<'_>, a: &Args) -> Result {
    const CREATE: u32 = 0o1000;
    const EXCLUSIVE: u32 = 0o2000;
    const HUGE: u32 = 0o4000;
    let (key, bytes, flags) = (a[0] as i32, a[1], a[2] as u32);
    if let Some((id, segment)) = k.system.segments.with_key(key) {
        if flags & (CREATE | EXCLUSIVE) == CREATE | EXCLUSIVE {
            return Err(Errno::EXIST);
        }
        check(segment, (flags >> 6 | flags >> 3 | flags) & 7)?;
        return if bytes > segment.bytes { Err(Errno::INVAL) } else { Ok(id as u64) };
    }
    if key != PRIVATE && flags & CREATE == 0 {
        return Err(Errno::NOENT);
    }
    if bytes == 0 || bytes > MOST_BYTES {
        return Err(Errno::INVAL);
    }
    // As for a user without the right to lock memory.
    if flags & HUGE != 0 {
        return Err(Errno::PERM);
    }
    if k.system.segments.len() >= MOST {
        return Err(Errno::NOSPC);
    }
    if bytes > k.system.platform.memory_bytes {
        return Err(Errno::NOMEM);
    }
    Ok(create(k, key, bytes, flags & RIGHTS) as u64)
}

fn create(k: &mut Kernel<'_>, key: i32, bytes: u64, mode: u32) -> i32 {
    let (owner, creator) = (user_and_group(), user_and_group());
    let (object, changed, creator_pid) = (k.mem.add_object(), now(k), k.process.pid);
    let fresh = SharedSegment {
        key,
        sequence: 0,
        object,
        bytes,
        mode,
        owner,
        creator,
        creator_pid,
        last_pid: 0,
        attached: 0,
        detached: 0,
        changed,
    };
    k.system.segments.insert(fresh)
}

pub(super) fn shmat(k: &mut Kernel<'_>, a: &Args) -> Result {
    const READ_ONLY: u64 = 0o10000;
    const ROUND: u64 = 0o20000;
    const REMAP: u64 = 0o40000;
    const EXECUTABLE: u64 = 0o100_000;
    let (id, wanted, flags) = (a[0] as i32, a[1], a[2]);
    k.check_regions()?;
    let fixed = wanted != 0;
    if !wanted.is_multiple_of(PAGE) && flags & ROUND == 0 {
        return Err(Errno::INVAL);
    }
    let at = wanted / PAGE * PAGE;
    if at == 0 && flags & REMAP != 0 {
        return Err(Errno::INVAL);
    }
    let (_, segment) = k.system.segments.find(id)?;
    let (object, len, key) = (segment.object, segment.mapped_bytes(), segment.key);
    let prot = Prot { read: true, write: flags & READ_ONLY == 0, exec: flags & EXECUTABLE != 0 };
    let writes = if prot.write { WRITE } else { 0 };
    check(segment, READ | writes | u32::from(prot.exec))?;
    let replaces = fixed && flags & REMAP == 0 && in_use(k.mem, at, at.saturating_add(len));
    if replaces {
        return Err(Errno::INVAL);
    }
    let start = place(k.mem, at, len, if fixed { MAP_FIXED } else { 0 }, PAGE)?;
    let backing = Some(Backing { object, page: 0 });
    let region = Region { start, end: start + len, prot, segment: Segment::Shared, shared: true, backing };
    let path = format!("/SYSV{key:08x} (deleted)").into_bytes();
    let record = Mapped { end: region.end, path, offset: 0, inode: id as u64, shared: true, writable: prot.write };
    attach(k, region, record)?;
    let (now, pid) = (now(k), k.process.pid);
    let (_, segment) = k.system.segments.find(id)?;
    (segment.attached, segment.last_pid) = (now, pid);
    Ok(start)
}

/// `shmdt`: removes all parts of an attachment that are left.
pub(super) fn shmdt(k: &mut Kernel<'_>, a: &Args) -> Result {
    let address = a[0];
    if !address.is_multiple_of(PAGE) {
        return Err(Errno::INVAL);
    }
    let begins_there = |region: &Region| {
        let distance = |backing: Backing| (region.start - address) / PAGE == backing.page;
        region.backing.filter(|&backing| distance(backing)).map(|backing| backing.object)
    };
    let behind = |k: &Kernel<'_>, end: u64| k.mem.regions_within(address, end).copied().collect::<Vec<Region>>();
    let all = behind(k, u64::MAX);
    let parts = all.iter().filter(|region| region.start >= address);
    let segments = &k.system.segments;
    let known = |object| segments.iter().find(|(_, segment)| segment.object == object).map(|(id, s)| (id, s.clone()));
    let found = parts.clone().find_map(|region| known(begins_there(region)?)).ok_or(Errno::INVAL)?;
    let (id, SharedSegment { object, .. }) = found;
    let end = address.saturating_add(found.1.mapped_bytes());
    let of_it = parts.filter(|region| region.start < end && begins_there(region) == Some(object));
    for region in of_it {
        unmap(k, region.start, region.end)?;
    }
    let (now, pid) = (now(k), k.process.pid);
    let (_, segment) = k.system.segments.find(id)?;
    (segment.detached, segment.last_pid) = (now, pid);
    Ok(0)
}

pub(super) fn shmctl(k: &mut Kernel<'_>, a: &Args) -> Result {
    const REMOVE: u32 = 0;
    const SET: u32 = 1;
    const STAT: u32 = 2;
    const LIMITS: u32 = 3;
    const LOCK: u32 = 11;
    const UNLOCK: u32 = 12;
    const STAT_INDEX: u32 = 13;
    const USE: u32 = 14;
    const STAT_ANY: u32 = 15;
    let (id, operation, pointer) = (a[0] as i32, a[1] as u32, a[2]);
    if id < 0 {
        return Err(Errno::INVAL);
    }
    match operation {
        LIMITS => limits(k, pointer),
        USE => usage(k, pointer),
        STAT => {
            let (_, segment) = k.system.segments.find(id)?;
            check(segment, READ)?;
            let segment = segment.clone();
            write_status(k, &segment, pointer)?;
            Ok(0)
        }
        STAT_INDEX | STAT_ANY => {
            let (id, segment) = k.system.segments.at(id as u32).ok_or(Errno::INVAL)?;
            if operation == STAT_INDEX {
                check(segment, READ)?;
            }
            let segment = segment.clone();
            write_status(k, &segment, pointer)?;
            Ok(id as u64)
        }
        SET => {
            let status: Status = user::read(k.mem, pointer)?;
            let now = now(k);
            let (_, segment) = k.system.segments.find(id)?;
            segment.owner = status.owner;
            segment.mode = segment.mode & !RIGHTS | status.mode & RIGHTS;
            segment.changed = now;
            Ok(0)
        }
        REMOVE => {
            let (index, _) = k.system.segments.find(id)?;
            k.system.segments.remove(k.mem, index);
            Ok(0)
        }
        // Memory is always resident.
        LOCK | UNLOCK => k.system.segments.find(id).map(|_| 0),
        _ => Err(Errno::INVAL),
    }
}

fn write_status(k: &mut Kernel<'_>, segment: &SharedSegment, pointer: u64) -> std::result::Result<(), Errno> {
    let status = Status {
        key: segment.key,
        owner: segment.owner,
        creator: segment.creator,
        mode: segment.mode,
        sequence: segment.sequence as u16,
        bytes: segment.bytes,
        attached: segment.attached,
        detached: segment.detached,
        changed: segment.changed,
        creator_pid: segment.creator_pid,
        last_pid: segment.last_pid,
        attachments: k.mem.mappings_of(segment.object),
        ..Status::zeroed()
    };
    user::write(k.mem, pointer, status)
}

/// `IPC_INFO`: the limits. Returns the highest index in use.
fn limits(k: &mut Kernel<'_>, pointer: u64) -> Result {
    let limits = Limits {
        most_bytes: MOST_BYTES,
        least_bytes: 1,
        most: MOST,
        most_of_process: MOST,
        most_pages: MOST_BYTES,
        unused: [0; 4],
    };
    user::write(k.mem, pointer, limits)?;
    Ok(k.system.segments.highest().into())
}

/// `SHM_INFO`: what segments use. Returns the highest index in use.
fn usage(k: &mut Kernel<'_>, pointer: u64) -> Result {
    let segments = &k.system.segments;
    let used = Use {
        segments: segments.len(),
        total: segments.iter().map(|(_, segment)| segment.mapped_bytes() / PAGE).sum(),
        resident: segments.iter().map(|(_, segment)| k.mem.pages_of(segment.object)).sum(),
        ..Use::zeroed()
    };
    user::write(k.mem, pointer, used)?;
    Ok(k.system.segments.highest().into())
}
