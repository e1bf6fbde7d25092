//! System V semaphores and message queues: semop(2), semctl(2), msgop(2), msgctl(2).

use bytemuck::{Pod, Zeroable};
use rustix::io::Errno;

use super::{Args, Result};
use crate::abi::time::Time;
use crate::attributes::capability;
use crate::ipc::sysv::messages::{self, MESSAGE_MAX, Message, QUEUE_BYTES, QUEUES, Queue};
use crate::ipc::sysv::objects::{Caller, Permissions, Want};
use crate::ipc::sysv::semaphores::{OPERATIONS, Operation, SET_MAX, SETS, Semaphore, Set, VALUE_MAX};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::sched::wait::{Blocked, FOR_EVER, IpcObject, Wait};

/// Commands of `semctl` and `msgctl`.
const IPC_RMID: u64 = 0;
const IPC_SET: u64 = 1;
const IPC_STAT: u64 = 2;
const IPC_INFO: u64 = 3;
const MSG_STAT: u64 = 11;
const MSG_INFO: u64 = 12;
const MSG_STAT_ANY: u64 = 13;
const GETPID: u64 = 11;
const GETVAL: u64 = 12;
const GETALL: u64 = 13;
const GETNCNT: u64 = 14;
const GETZCNT: u64 = 15;
const SETVAL: u64 = 16;
const SETALL: u64 = 17;
const SEM_STAT: u64 = 18;
const SEM_INFO: u64 = 19;
const SEM_STAT_ANY: u64 = 20;

/// A flag that some C libraries add to commands (`IPC_64`).
const NEW_FORM: u64 = 0x100;

/// Returns the process as the owner of objects.
pub(super) fn caller(k: &Kernel<'_>) -> Caller {
    let attributes = &k.process.attributes;
    Caller {
        pid: k.process.pid,
        uid: attributes.users.effective,
        gid: attributes.groups.effective,
        privileged: attributes.capabilities.has(capability::IPC_OWNER),
    }
}

/// Returns the time in seconds since 1970.
fn seconds(k: &Kernel<'_>) -> u64 {
    (k.system.start_unix_ns + k.system.now_ns) / 1_000_000_000
}

/// Returns the error for an object that does not exist: one that the call has waited for has been removed.
fn missing(k: &Kernel<'_>, error: Errno) -> Errno {
    if error == Errno::INVAL && k.thread.resumed.is_some() { Errno::IDRM } else { error }
}

/// Blocks the thread until an object changes, or until a time in ns.
fn wait(k: &mut Kernel<'_>, object: IpcObject, semaphore: Option<(u16, bool)>, until_ns: u64) {
    k.block(Blocked { until_ns, ..Blocked::new(Wait::Ipc { object, semaphore }) });
}

pub(super) fn semget(k: &mut Kernel<'_>, a: &Args) -> Result {
    let count = u64::from(a[1] as u32);
    if count > SET_MAX {
        return Err(Errno::INVAL);
    }
    k.afford(count * size_of::<Semaphore>() as u64)?;
    let (caller, now) = (caller(k), seconds(k));
    let enough = |set: &Set| if set.semaphores.len() as u64 >= count { Ok(()) } else { Err(Errno::INVAL) };
    let make = || if count == 0 { Err(Errno::INVAL) } else { Ok(Set::new(count as usize, now)) };
    let id = k.system.sysv.sets.get((a[0] as u32, a[2]), caller, SETS, enough, make)?;
    k.ipc_changed(IpcObject::Semaphores(id));
    Ok(id.into())
}

pub(super) fn semop(k: &mut Kernel<'_>, a: &Args) -> Result {
    operate(k, a, FOR_EVER)
}

/// `semtimedop`: the time limit is relative.
pub(super) fn semtimedop(k: &mut Kernel<'_>, a: &Args) -> Result {
    let limit_ns = match a[3] {
        0 => FOR_EVER,
        pointer => k.system.now_ns.saturating_add(user::read::<Time>(k.mem, pointer)?.to_ns()?),
    };
    let until_ns = k.thread.time_limit(limit_ns);
    operate(k, a, until_ns)
}

fn operate(k: &mut Kernel<'_>, a: &Args, until_ns: u64) -> Result {
    let (id, count) = (a[0] as u32, u64::from(a[2] as u32));
    if count == 0 {
        return Err(Errno::INVAL);
    }
    if count > OPERATIONS {
        return Err(Errno::TOOBIG);
    }
    let mut operations = vec![Operation::zeroed(); count as usize];
    k.mem.read(a[1], bytemuck::cast_slice_mut(&mut operations)).map_err(|_| Errno::FAULT)?;
    let (caller, now) = (caller(k), seconds(k));
    k.afford(count * 64)?;
    let alters = operations.iter().any(|operation| operation.change != 0);
    let found = k.system.sysv.sets.find(id);
    let (permissions, set) = found.map_err(|error| if k.thread.resumed.is_some() { Errno::IDRM } else { error })?;
    if operations.iter().any(|operation| usize::from(operation.number) >= set.semaphores.len()) {
        return Err(Errno::FBIG);
    }
    permissions.check(caller, if alters { Want::Write } else { Want::Read })?;
    match k.system.sysv.operate(id, &operations, caller.pid, now)? {
        None => {
            if alters {
                k.ipc_changed(IpcObject::Semaphores(id));
            }
            Ok(0)
        }
        Some(missing) if missing.no_wait => Err(Errno::AGAIN),
        Some(_) if until_ns <= k.system.now_ns => Err(Errno::AGAIN),
        Some(missing) => {
            wait(k, IpcObject::Semaphores(id), Some((missing.number, missing.zero)), until_ns);
            Ok(0)
        }
    }
}

/// `struct semid64_ds`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct SetStatus {
    permissions: Permissions,
    operated: u64,
    changed: u64,
    count: u64,
    unused: [u64; 2],
}

pub(super) fn semctl(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (id, command) = (a[0] as u32, (a[2] as u32 as u64) & !NEW_FORM);
    match command {
        IPC_INFO | SEM_INFO => return semaphore_limits(k, command, a[3]),
        IPC_STAT | SEM_STAT | SEM_STAT_ANY => return semaphore_status(k, id, command, a[3]),
        IPC_RMID => {
            let caller = caller(k);
            k.system.sysv.sets.remove(id, caller)?;
            k.system.sysv.undo.forget(id, None);
            k.ipc_changed(IpcObject::Semaphores(id));
            return Ok(0);
        }
        IPC_SET => {
            let status: SetStatus = user::read(k.mem, a[3])?;
            let (caller, now) = (caller(k), seconds(k));
            let (permissions, set) = k.system.sysv.sets.find(id)?;
            permissions.check_owner(caller)?;
            permissions.change(&status.permissions);
            set.changed = now;
            return Ok(0);
        }
        GETALL | SETALL => return all_values(k, id, command == SETALL, a[3]),
        GETPID | GETVAL | GETNCNT | GETZCNT | SETVAL => {}
        _ => return Err(Errno::INVAL),
    }
    one_value(k, id, a[1] as u32, command, a[3])
}

/// `semctl` of one semaphore.
fn one_value(k: &mut Kernel<'_>, id: u32, number: u32, command: u64, value: u64) -> Result {
    let (caller, now) = (caller(k), seconds(k));
    let waiting = |k: &Kernel<'_>, zero| {
        let wanted = Wait::Ipc { object: IpcObject::Semaphores(id), semaphore: Some((number as u16, zero)) };
        k.all_threads().filter(|thread| thread.waits_for(&wanted)).count() as u64
    };
    let (permissions, set) = k.system.sysv.sets.find(id)?;
    permissions.check(caller, if command == SETVAL { Want::Write } else { Want::Read })?;
    let semaphore = set.semaphores.get_mut(number as usize).ok_or(Errno::INVAL)?;
    match command {
        GETPID => return Ok(u64::from(semaphore.pid)),
        GETVAL => return Ok(u64::from(semaphore.value)),
        GETNCNT => return Ok(waiting(k, false)),
        GETZCNT => return Ok(waiting(k, true)),
        _ => {}
    }
    let value = u16::try_from(value as i32).ok().filter(|&value| value <= VALUE_MAX).ok_or(Errno::RANGE)?;
    *semaphore = Semaphore { value, pid: caller.pid };
    set.changed = now;
    k.system.sysv.undo.forget(id, Some(number as u16));
    k.ipc_changed(IpcObject::Semaphores(id));
    Ok(0)
}

/// `GETALL` and `SETALL`.
fn all_values(k: &mut Kernel<'_>, id: u32, set_them: bool, addr: u64) -> Result {
    let (caller, now) = (caller(k), seconds(k));
    let (permissions, set) = k.system.sysv.sets.find(id)?;
    permissions.check(caller, if set_them { Want::Write } else { Want::Read })?;
    let mut values: Vec<u16> = set.semaphores.iter().map(|semaphore| semaphore.value).collect();
    if !set_them {
        user::write_bytes(k.mem, addr, bytemuck::cast_slice(&values))?;
        return Ok(0);
    }
    k.mem.read(addr, bytemuck::cast_slice_mut(&mut values)).map_err(|_| Errno::FAULT)?;
    if values.iter().any(|&value| value > VALUE_MAX) {
        return Err(Errno::RANGE);
    }
    set.semaphores = values.into_iter().map(|value| Semaphore { value, pid: caller.pid }).collect();
    set.changed = now;
    k.system.sysv.undo.forget(id, None);
    k.ipc_changed(IpcObject::Semaphores(id));
    Ok(0)
}

fn semaphore_status(k: &mut Kernel<'_>, id: u32, command: u64, addr: u64) -> Result {
    let caller = caller(k);
    let by_place = command != IPC_STAT;
    let id = if by_place { k.system.sysv.sets.at_place(id).ok_or(Errno::INVAL)? } else { id };
    let (permissions, set) = k.system.sysv.sets.find(id)?;
    if command != SEM_STAT_ANY {
        permissions.check(caller, Want::Read)?;
    }
    let status = SetStatus {
        permissions: *permissions,
        operated: set.operated,
        changed: set.changed,
        count: set.semaphores.len() as u64,
        unused: [0; 2],
    };
    user::write(k.mem, addr, status)?;
    Ok(if by_place { u64::from(id) } else { 0 })
}

/// `IPC_INFO` and `SEM_INFO`: `struct seminfo`.
fn semaphore_limits(k: &mut Kernel<'_>, command: u64, addr: u64) -> Result {
    const ALL: u32 = 1_024_000_000;
    let sets = &k.system.sysv.sets;
    let used = (sets.iter().count() as u32, sets.iter().map(|(_, set)| set.semaphores.len() as u32).sum());
    let (in_use, semaphores) = if command == SEM_INFO { used } else { (20, VALUE_MAX.into()) };
    let last = sets.last_place();
    let per_set = SET_MAX as u32;
    let info: [u32; 10] =
        [ALL, SETS as u32, ALL, ALL, per_set, OPERATIONS as u32, 500, in_use, VALUE_MAX.into(), semaphores];
    user::write(k.mem, addr, info)?;
    Ok(u64::from(last))
}

pub(super) fn msgget(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (caller, now) = (caller(k), seconds(k));
    k.afford(QUEUE_BYTES)?;
    let id = k.system.sysv.queues.get((a[0] as u32, a[1]), caller, QUEUES, |_| Ok(()), || Ok(Queue::new(now)))?;
    k.ipc_changed(IpcObject::Messages(id));
    Ok(id.into())
}

pub(super) fn msgsnd(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (id, len, flags) = (a[0] as u32, a[2], a[3]);
    let kind: i64 = user::read(k.mem, a[1])?;
    if len > MESSAGE_MAX || kind < 1 {
        return Err(Errno::INVAL);
    }
    let text = user::read_bytes(k.mem, a[1].wrapping_add(8), len as usize)?;
    k.afford(len + 64)?;
    let (caller, now) = (caller(k), seconds(k));
    let resumed = k.thread.resumed.is_some();
    let found = k.system.sysv.queues.find(id);
    let (permissions, queue) = found.map_err(|error| if resumed { Errno::IDRM } else { error })?;
    permissions.check(caller, Want::Write)?;
    if !queue.has_room(len) {
        if flags & messages::NO_WAIT != 0 {
            return Err(Errno::AGAIN);
        }
        wait(k, IpcObject::Messages(id), None, FOR_EVER);
        return Ok(0);
    }
    queue.put(Message { kind, text });
    (queue.pids[0], queue.times[0]) = (caller.pid, now);
    k.ipc_changed(IpcObject::Messages(id));
    Ok(0)
}

pub(super) fn msgrcv(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (id, room, kind, flags) = (a[0] as u32, a[2], a[3] as i64, a[4]);
    if room > i64::MAX as u64 {
        return Err(Errno::INVAL);
    }
    let (caller, now) = (caller(k), seconds(k));
    // Nothing is taken that cannot be delivered.
    k.mem
        .check(a[1], 8 + room.min(MESSAGE_MAX), fxscope_guestmem::Touch::Write)
        .or_else(|_| k.mem.check(a[1], 8, fxscope_guestmem::Touch::Write))
        .map_err(|_| Errno::FAULT)?;
    let found = k.system.sysv.queues.find(id).map(|(permissions, queue)| (*permissions, queue));
    let (permissions, queue) = match found {
        Ok(found) => found,
        Err(error) => return Err(missing(k, error)),
    };
    permissions.check(caller, Want::Read)?;
    let Some(message) = queue.take(room, kind, flags)? else {
        if flags & messages::NO_WAIT != 0 {
            return Err(Errno::NOMSG);
        }
        wait(k, IpcObject::Messages(id), None, FOR_EVER);
        return Ok(0);
    };
    (queue.pids[1], queue.times[1]) = (caller.pid, now);
    k.ipc_changed(IpcObject::Messages(id));
    user::write(k.mem, a[1], message.kind)?;
    user::write_bytes(k.mem, a[1].wrapping_add(8), &message.text)?;
    Ok(message.text.len() as u64)
}

/// `struct msqid64_ds`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct QueueStatus {
    permissions: Permissions,
    times: [u64; 3],
    bytes: u64,
    count: u64,
    limit: u64,
    pids: [u32; 2],
    unused: [u64; 2],
}

pub(super) fn msgctl(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (id, command) = (a[0] as u32, (a[1] as u32 as u64) & !NEW_FORM);
    match command {
        IPC_INFO | MSG_INFO => message_limits(k, command, a[2]),
        IPC_STAT | MSG_STAT | MSG_STAT_ANY => queue_status(k, id, command, a[2]),
        IPC_SET => {
            let status: QueueStatus = user::read(k.mem, a[2])?;
            let (caller, now) = (caller(k), seconds(k));
            let (permissions, queue) = k.system.sysv.queues.find(id)?;
            permissions.check_owner(caller)?;
            if status.limit > QUEUE_BYTES && !caller.privileged {
                return Err(Errno::PERM);
            }
            permissions.change(&status.permissions);
            (queue.limit, queue.times[2]) = (status.limit, now);
            k.ipc_changed(IpcObject::Messages(id));
            Ok(0)
        }
        IPC_RMID => {
            let caller = caller(k);
            k.system.sysv.queues.remove(id, caller)?;
            k.ipc_changed(IpcObject::Messages(id));
            Ok(0)
        }
        _ => Err(Errno::INVAL),
    }
}

fn queue_status(k: &mut Kernel<'_>, id: u32, command: u64, addr: u64) -> Result {
    let caller = caller(k);
    let by_place = command != IPC_STAT;
    let id = if by_place { k.system.sysv.queues.at_place(id).ok_or(Errno::INVAL)? } else { id };
    let (permissions, queue) = k.system.sysv.queues.find(id)?;
    if command != MSG_STAT_ANY {
        permissions.check(caller, Want::Read)?;
    }
    let status = QueueStatus {
        permissions: *permissions,
        times: queue.times,
        bytes: queue.text_bytes,
        count: queue.messages.len() as u64,
        limit: queue.limit,
        pids: queue.pids,
        unused: [0; 2],
    };
    user::write(k.mem, addr, status)?;
    Ok(if by_place { u64::from(id) } else { 0 })
}

/// `IPC_INFO` and `MSG_INFO`: `struct msginfo`.
fn message_limits(k: &mut Kernel<'_>, command: u64, addr: u64) -> Result {
    let queues = &k.system.sysv.queues;
    let count: u32 = queues.iter().map(|(_, queue)| queue.messages.len() as u32).sum();
    let bytes: u64 = queues.iter().map(|(_, queue)| queue.text_bytes).sum();
    let largest = QUEUES as u32;
    let (pool, map, total) = match command {
        MSG_INFO => (queues.iter().count() as u32, count, bytes as u32),
        _ => (largest * QUEUE_BYTES as u32 / 1024, QUEUE_BYTES as u32, QUEUE_BYTES as u32),
    };
    let info: [u32; 8] = [pool, map, MESSAGE_MAX as u32, QUEUE_BYTES as u32, largest, 16, total, 0xffff];
    let last = queues.last_place();
    user::write(k.mem, addr, info)?;
    Ok(u64::from(last))
}
