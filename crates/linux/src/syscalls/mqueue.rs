//! POSIX message queues: mq_open(3), mq_send(3), mq_receive(3), mq_notify(3), mq_getattr(3), mq_unlink(3).

use std::rc::Rc;

use bytemuck::{Pod, Zeroable};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::files::{O_CLOEXEC, limit};
use super::sysv::caller;
use super::{Args, Result};
use crate::abi::time::Time;
use crate::attributes::capability;
use crate::fs::files::OpenFile;
use crate::fs::objects::Object;
use crate::fs::vfs::Origin;
use crate::ipc::channels::Channel;
use crate::ipc::mqueue::{
    BYTES, COOKIE, MESSAGE, MESSAGES, Notice, OpenQueue, PRIORITIES, PRIVILEGED, QUEUES, Queue, Registration,
};
use crate::ipc::sysv::objects::{Permissions, Want};
use crate::kernel::Kernel;
use crate::mm::user;
use crate::process::Limit;
use crate::sched::wait::{Blocked, FOR_EVER, IpcObject, Wait};
use crate::signal::{self, SigInfo, code};

/// Flags of `mq_open`.
const CREATE: u64 = 0o100;
const EXCLUSIVE: u64 = 0o200;
const NONBLOCK: u64 = 0o4000;

/// Maximum length of a name.
const NAME_MAX: usize = 255;

type Outcome<T> = std::result::Result<T, Errno>;

/// `struct mq_attr`.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Attributes {
    flags: i64,
    most: i64,
    bytes: i64,
    count: i64,
    reserved: [i64; 4],
}

/// Reads the name of a queue, from which the C library has removed the slash.
fn name(k: &mut Kernel<'_>, addr: u64) -> Outcome<Vec<u8>> {
    let name = user::string(k.mem, addr)?;
    match &name[..] {
        b"" | b"." | b".." => Err(Errno::ACCESS),
        name if name.contains(&b'/') => Err(Errno::ACCESS),
        name if name.len() > NAME_MAX => Err(Errno::NAMETOOLONG),
        _ => Ok(name),
    }
}

pub(super) fn mq_open(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (name, flags) = (name(k, a[0])?, a[1]);
    let access = match flags & 3 {
        0 => (true, false),
        1 => (false, true),
        2 => (true, true),
        _ => return Err(Errno::INVAL),
    };
    k.process.files.check_free(limit(k))?;
    let queue = match k.system.mqueues.named.get(&name) {
        Some(_) if flags & CREATE != 0 && flags & EXCLUSIVE != 0 => return Err(Errno::EXIST),
        Some(queue) => {
            let caller = caller(k);
            for (wanted, want) in [(access.0, Want::Read), (access.1, Want::Write)] {
                if wanted {
                    queue.permissions.check(caller, want)?;
                }
            }
            Rc::clone(queue)
        }
        None if flags & CREATE == 0 => return Err(Errno::NOENT),
        None => create(k, name, a[2] as u32, a[3])?,
    };
    let open = OpenQueue::new(queue, access, flags & NONBLOCK != 0)?;
    let (host, channel) = k.new_object(Object::Messages(open), crate::budget::EVENT)?;
    let limit = limit(k);
    let close_on_exec = flags & u64::from(O_CLOEXEC) != 0;
    let file = OpenFile::new(host, Origin::Host);
    Ok(k.process.files.insert_channel(file, Some(channel), close_on_exec, limit)? as u64)
}

/// Creates a queue with a name.
fn create(k: &mut Kernel<'_>, name: Vec<u8>, mode: u32, attributes: u64) -> Outcome<Rc<Queue>> {
    let privileged = k.process.attributes.capabilities.has(capability::SYS_RESOURCE);
    let (most, bytes) = match attributes {
        0 => (MESSAGES, BYTES),
        pointer => {
            let wanted: Attributes = user::read(k.mem, pointer)?;
            (wanted.most, wanted.bytes)
        }
    };
    let limits = if privileged { PRIVILEGED } else { (MESSAGES, BYTES) };
    if !(1..=limits.0).contains(&most) || !(1..=limits.1).contains(&bytes) {
        return Err(Errno::INVAL);
    }
    if k.system.mqueues.named.len() >= QUEUES && !privileged {
        return Err(Errno::NOSPC);
    }
    let cost = (most as u64).saturating_mul(bytes as u64 + MESSAGE);
    let others: u64 = k.system.mqueues.named.values().map(|queue| queue.cost()).sum();
    if others.saturating_add(cost) > k.process.limits[Limit::MESSAGE_QUEUES].soft {
        return Err(Errno::MFILE);
    }
    k.afford(cost)?;
    let caller = caller(k);
    let permissions = Permissions::of_caller(caller, mode & 0o777 & !k.process.files.umask.bits());
    let charge = k.system.budget.charge(cost);
    let id = k.system.mqueues.new_id();
    let queue = Rc::new(Queue::new(id, permissions, (most as usize, bytes as usize), charge));
    k.system.mqueues.named.insert(name, Rc::clone(&queue));
    Ok(queue)
}

pub(super) fn mq_unlink(k: &mut Kernel<'_>, a: &Args) -> Result {
    let name = name(k, a[0])?;
    let caller = caller(k);
    let queue = k.system.mqueues.named.get(&name).ok_or(Errno::NOENT)?;
    queue.permissions.check_owner(caller).map_err(|_| Errno::ACCESS)?;
    k.system.mqueues.named.remove(&name);
    Ok(0)
}

/// Returns the open queue behind a descriptor.
fn channel(k: &Kernel<'_>, fd: u64) -> Outcome<Rc<Channel>> {
    k.process.files.host(fd as i32)?;
    k.process.files.kept_channel(fd as i32).ok_or(Errno::BADF)
}

fn open_queue(channel: &Channel) -> Outcome<&OpenQueue> {
    match &channel.object {
        Object::Messages(open) => Ok(open),
        _ => Err(Errno::BADF),
    }
}

/// Returns when a call ends whose time limit is an absolute real time.
fn until(k: &mut Kernel<'_>, pointer: u64) -> Result {
    let limit = match pointer {
        0 => FOR_EVER,
        _ => user::read::<Time>(k.mem, pointer)?.to_ns()?.saturating_sub(k.system.start_unix_ns),
    };
    Ok(k.thread.time_limit(limit))
}

/// Waits until a queue changes.
fn wait(k: &mut Kernel<'_>, fd: u64, queue: &Queue, until_ns: u64) -> Result {
    if rustix::fs::fcntl_getfl(k.process.files.host(fd as i32)?)?.contains(OFlags::NONBLOCK) {
        return Err(Errno::AGAIN);
    }
    if until_ns <= k.system.now_ns {
        return Err(Errno::TIMEDOUT);
    }
    let object = IpcObject::PosixQueue(queue.id);
    k.block(Blocked { until_ns, restart: true, ..Blocked::new(Wait::Ipc { object, semaphore: None }) });
    Ok(0)
}

pub(super) fn mq_timedsend(k: &mut Kernel<'_>, a: &Args) -> Result {
    let priority = a[3] as u32;
    if priority >= PRIORITIES {
        return Err(Errno::INVAL);
    }
    let until_ns = until(k, a[4])?;
    let channel = channel(k, a[0])?;
    let open = open_queue(&channel)?;
    let queue = &open.queue;
    if !open.access.1 {
        return Err(Errno::BADF);
    }
    if a[2] > queue.bytes as u64 {
        return Err(Errno::MSGSIZE);
    }
    let text = user::read_bytes(k.mem, a[1], a[2] as usize)?;
    if queue.len() >= queue.most {
        return wait(k, a[0], queue, until_ns);
    }
    let object = IpcObject::PosixQueue(queue.id);
    let awaited = k.all_threads().any(|thread| thread.waits_for_object(object));
    queue.put(priority, text);
    if queue.len() == 1 && !awaited {
        notify(k, queue);
    }
    k.ipc_changed(object);
    Ok(0)
}

pub(super) fn mq_timedreceive(k: &mut Kernel<'_>, a: &Args) -> Result {
    let until_ns = until(k, a[4])?;
    let channel = channel(k, a[0])?;
    let open = open_queue(&channel)?;
    let queue = &open.queue;
    if !open.access.0 {
        return Err(Errno::BADF);
    }
    if a[2] < queue.bytes as u64 {
        return Err(Errno::MSGSIZE);
    }
    let Some((priority, text)) = queue.take() else { return wait(k, a[0], queue, until_ns) };
    k.ipc_changed(IpcObject::PosixQueue(queue.id));
    user::write_bytes(k.mem, a[1], &text)?;
    user::write_if(k.mem, a[3], priority)?;
    Ok(text.len() as u64)
}

/// Tells the process that has asked for it that a message has arrived.
fn notify(k: &mut Kernel<'_>, queue: &Queue) {
    /// The last byte of a cookie (`NOTIFY_WOKENUP`).
    const ARRIVED: u8 = 1;
    let Some(Registration { pid, notice }) = queue.registration.borrow_mut().take() else { return };
    match notice {
        Notice::Nothing => {}
        Notice::Signal { signal, value } => {
            let origin = signal::Origin::Queued { pid: k.process.pid, uid: k.process.attributes.users.real, value };
            signal::send_to_process(k, pid, SigInfo { signal, code: code::SI_MESGQ, origin });
        }
        Notice::Message { socket, cookie } => send_cookie(&socket, cookie, ARRIVED),
    }
}

/// Sends a cookie to the thread of a C library that waits for it.
fn send_cookie(socket: &std::rc::Weak<Channel>, mut cookie: [u8; COOKIE], what: u8) {
    cookie[COOKIE - 1] = what;
    let Some(channel) = socket.upgrade() else { return };
    let Some(socket) = &channel.socket else { return };
    if let Some(wire) = &socket.state.borrow().wire {
        let flags = rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL;
        let _ = rustix::net::send(wire, &cookie, flags);
    }
}

/// `struct sigevent`, as far as it concerns queues.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Event {
    value: u64,
    signal: u32,
    how: u32,
}

/// Returns how a process wants to be notified.
fn notice(k: &mut Kernel<'_>, pointer: u64) -> Outcome<Notice> {
    const SIGNAL: u32 = 0;
    const NONE: u32 = 1;
    const THREAD: u32 = 2;
    let event: Event = user::read(k.mem, pointer)?;
    match event.how {
        NONE => Ok(Notice::Nothing),
        SIGNAL if (1..=signal::LAST).contains(&event.signal) => {
            Ok(Notice::Signal { signal: event.signal, value: event.value })
        }
        THREAD => {
            let cookie: [u8; COOKIE] = user::read(k.mem, event.value)?;
            let channel = k.process.files.kept_channel(event.signal as i32).ok_or(Errno::BADF)?;
            let fits =
                channel.socket.as_ref().is_some_and(|socket| socket.family == crate::net::address::Family::Netlink);
            if fits { Ok(Notice::Message { socket: Rc::downgrade(&channel), cookie }) } else { Err(Errno::BADF) }
        }
        _ => Err(Errno::INVAL),
    }
}

/// Returns whether the process that has asked to be notified still exists and has the queue open.
fn is_registered(k: &Kernel<'_>, queue: &Queue) -> bool {
    let registration = queue.registration.borrow();
    let Some(registration) = registration.as_ref() else { return false };
    let process = k.all_processes().find(|process| process.pid == registration.pid && !process.ended);
    process.is_some_and(|process| {
        (0..process.files.end())
            .any(|fd| matches!(process.files.object(fd), Some(Object::Messages(open)) if open.queue.id == queue.id))
    })
}

pub(super) fn mq_notify(k: &mut Kernel<'_>, a: &Args) -> Result {
    /// The last byte of a cookie (`NOTIFY_REMOVED`).
    const REMOVED: u8 = 2;
    let notice = if a[1] == 0 { None } else { Some(notice(k, a[1])?) };
    let channel = channel(k, a[0])?;
    let queue = &open_queue(&channel)?.queue;
    let registered = is_registered(k, queue);
    let mut registration = queue.registration.borrow_mut();
    match notice {
        Some(_) if registered => return Err(Errno::BUSY),
        Some(notice) => *registration = Some(Registration { pid: k.process.pid, notice }),
        None => {
            let own = registration.take_if(|registration| registration.pid == k.process.pid);
            if let Some(Registration { notice: Notice::Message { socket, cookie }, .. }) = own {
                send_cookie(&socket, cookie, REMOVED);
            }
        }
    }
    Ok(0)
}

pub(super) fn mq_getsetattr(k: &mut Kernel<'_>, a: &Args) -> Result {
    let wanted = if a[1] == 0 { None } else { Some(user::read::<Attributes>(k.mem, a[1])?) };
    if wanted.is_some_and(|wanted| wanted.flags & !(NONBLOCK as i64) != 0) {
        return Err(Errno::INVAL);
    }
    let channel = channel(k, a[0])?;
    let queue = &open_queue(&channel)?.queue;
    let host = k.process.files.host(a[0] as i32)?;
    let flags = rustix::fs::fcntl_getfl(host)?;
    let now = Attributes {
        flags: if flags.contains(OFlags::NONBLOCK) { NONBLOCK as i64 } else { 0 },
        most: queue.most as i64,
        bytes: queue.bytes as i64,
        count: queue.len() as i64,
        reserved: [0; 4],
    };
    if let Some(wanted) = wanted {
        let nonblocking = wanted.flags & NONBLOCK as i64 != 0;
        let others = flags - OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(host, if nonblocking { others | OFlags::NONBLOCK } else { others })?;
    }
    user::write_if(k.mem, a[2], now)?;
    Ok(0)
}

/// Returns what `read` gives for a descriptor of a queue: its state as a line (mq_overview(7)).
pub(super) fn status(queue: &Queue) -> String {
    let registration = queue.registration.borrow();
    let (how, signal, pid) = match registration.as_ref() {
        None => (0, 0, 0),
        Some(Registration { pid, notice }) => match notice {
            Notice::Signal { signal, .. } => (0, *signal, *pid),
            Notice::Nothing => (1, 0, *pid),
            Notice::Message { .. } => (2, 0, *pid),
        },
    };
    format!("QSIZE:{:<10} NOTIFY:{how:<5} SIGNO:{signal:<5} NOTIFY_PID:{pid:<6}\n", queue.text_bytes())
}
