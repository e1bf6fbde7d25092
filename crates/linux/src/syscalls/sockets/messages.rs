//! `sendmsg`, `recvmsg` and their forms for several messages, with ancillary data (cmsg(3), unix(7)).

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::transfer::{Attached, Received, receive, send};
use super::{Outcome, credentials, own, read_name};
use crate::attributes::capability;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::net::address::Family;
use crate::net::options::{SO_PASSCRED, SOL_SOCKET};
use crate::net::rights::RIGHTS_MAX;
use crate::net::socket::Credentials;
use crate::sched::wait::FOR_EVER;
use crate::syscalls::files::limit;
use crate::syscalls::transfer::pieces;
use crate::syscalls::{Args, Result};

/// Types of ancillary data at the level of sockets.
const SCM_RIGHTS: u32 = 1;
const SCM_CREDENTIALS: u32 = 2;

/// Flags of a received message: it or its ancillary data were truncated; received descriptors are close-on-exec.
const TRUNCATED: u32 = 0x20;
const CONTROL_TRUNCATED: u32 = 8;
const CLOSE_ON_EXEC: u32 = 0x4000_0000;
/// `MSG_WAITFORONE`: only the first message is waited for.
const WAIT_FOR_ONE: u32 = 0x1_0000;

/// Maximum bytes of ancillary data (`net.core.optmem_max`).
const CONTROL_MAX: u64 = 131_072;
/// Bytes of `struct cmsghdr`.
const HEADER: usize = 16;
/// Maximum number of messages of one call (Linux's `UIO_MAXIOV`).
const MESSAGES_MAX: u64 = 1024;
/// Bytes of `struct mmsghdr`.
const ENTRY: u64 = 64;

/// `struct msghdr`.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Message {
    name: u64,
    name_len: u32,
    pad: u32,
    pieces: u64,
    count: u64,
    control: u64,
    control_len: u64,
    flags: u32,
    pad2: u32,
}

/// Iterates over ancillary data: level, type, contents.
///
/// # Errors
/// `EINVAL` for a length that is too small or too large.
fn controls(bytes: &[u8]) -> Outcome<Vec<(u32, u32, &[u8])>> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while rest.len() >= HEADER {
        let word = |at: usize| rest.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
        let len = u64::from(word(0)) | u64::from(word(4)) << 32;
        let len = usize::try_from(len).map_err(|_| Errno::INVAL)?;
        let data = rest.get(HEADER..len).ok_or(Errno::INVAL)?;
        found.push((word(8), word(12), data));
        rest = rest.get(len.next_multiple_of(8)..).unwrap_or_default();
    }
    Ok(found)
}

/// Reads what accompanies a message.
fn attached(k: &mut Kernel<'_>, fd: i32, message: &Message) -> Outcome<Attached> {
    let mut attached = Attached::default();
    if message.control_len == 0 || message.control == 0 {
        return Ok(attached);
    }
    if message.control_len > CONTROL_MAX {
        return Err(Errno::NOBUFS);
    }
    let family = own(k, fd)?.as_ref().and_then(|channel| Some(channel.socket.as_ref()?.family));
    let bytes = user::read_bytes(k.mem, message.control, message.control_len as usize)?;
    for (level, kind, data) in controls(&bytes)? {
        match (level, kind) {
            // Of the internet's packets: their type of service, their interface and so on.
            _ if level != SOL_SOCKET => {}
            (_, SCM_RIGHTS | SCM_CREDENTIALS) if matches!(family, Some(Family::Inet | Family::Inet6)) => {}
            (_, SCM_RIGHTS) => {
                let numbers = data.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                attached.rights.extend(numbers);
                if attached.rights.len() > RIGHTS_MAX {
                    return Err(Errno::INVAL);
                }
            }
            (_, SCM_CREDENTIALS) => attached.credentials = Some(named_credentials(k, data)?),
            _ => return Err(Errno::INVAL),
        }
    }
    Ok(attached)
}

/// Returns the credentials that a program names: only its own are allowed, except to the superuser.
fn named_credentials(k: &Kernel<'_>, data: &[u8]) -> Outcome<Credentials> {
    let named: [u8; size_of::<Credentials>()] = data.try_into().map_err(|_| Errno::INVAL)?;
    let named: Credentials = bytemuck::cast(named);
    let own = credentials(k);
    let root = k.process.attributes.capabilities.has(capability::SYS_ADMIN);
    let exists = named.pid == own.pid || root && k.all_processes().any(|process| process.pid == named.pid);
    match (exists, root || named == own) {
        (false, _) if root => Err(Errno::SRCH),
        (true, true) => Ok(named),
        _ => Err(Errno::PERM),
    }
}

/// Sends the message at an address.
fn send_one(k: &mut Kernel<'_>, fd: i32, addr: u64, flags: u32) -> Result {
    let message: Message = user::read(k.mem, addr)?;
    let pieces = pieces(k, message.pieces, message.count)?;
    let to = match message.name {
        0 => None,
        name => Some(read_name(k, name, u64::from(message.name_len))?),
    };
    let to = to.filter(|name| !name.is_empty());
    k.process.files.host(fd)?;
    let attached = attached(k, fd, &message)?;
    send(k, fd, &pieces, SendFlags::from_bits_retain(flags), to.as_deref(), &attached)
}

pub(in crate::syscalls) fn sendmsg(k: &mut Kernel<'_>, a: &Args) -> Result {
    send_one(k, a[0] as i32, a[1], a[2] as u32)
}

/// `sendmmsg`: waits for the first message only; the others are sent as far as there is room.
pub(in crate::syscalls) fn sendmmsg(k: &mut Kernel<'_>, a: &Args) -> Result {
    let count = u64::from(a[2] as u32).min(MESSAGES_MAX);
    k.process.files.host(a[0] as i32)?;
    for n in 0..count {
        let entry = a[1].wrapping_add(n * ENTRY);
        let flags = if n == 0 { a[3] as u32 } else { a[3] as u32 | SendFlags::DONTWAIT.bits() };
        let result = send_one(k, a[0] as i32, entry, flags);
        if k.thread.blocked.is_some() {
            return Ok(0);
        }
        match result {
            Ok(bytes) => user::write(k.mem, entry.wrapping_add(size_of::<Message>() as u64), bytes as u32)?,
            Err(_) if n > 0 => return Ok(n),
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// Ancillary data for a program.
struct Control {
    bytes: Vec<u8>,
    room: usize,
    truncated: bool,
}

impl Control {
    /// Appends data as far as there is room for whole units of `unit` bytes; returns the number of units.
    fn push(&mut self, kind: u32, data: &[u8], unit: usize) -> usize {
        let start = self.bytes.len().next_multiple_of(8);
        let room = self.room.saturating_sub(start + HEADER);
        let units = (room / unit).min(data.len() / unit);
        self.truncated |= units * unit < data.len();
        if units > 0 {
            let len = (HEADER + units * unit) as u64;
            self.bytes.resize(start, 0);
            self.bytes.extend([&len.to_le_bytes()[..], &SOL_SOCKET.to_le_bytes(), &kind.to_le_bytes()].concat());
            self.bytes.extend(&data[..units * unit]);
        }
        units
    }
}

/// Returns the ancillary data of a received message; the process gets descriptors for the files among them.
fn controls_of(k: &mut Kernel<'_>, fd: i32, received: &mut Received, room: u64, close_on_exec: bool) -> Control {
    let room = room.min(CONTROL_MAX) as usize;
    let mut control = Control { bytes: Vec::new(), room, truncated: false };
    let wants = own(k, fd).ok().flatten().is_some_and(|channel| {
        let socket = channel.socket.as_ref();
        socket.is_some_and(|socket| socket.state.borrow().options.is_set(SOL_SOCKET, SO_PASSCRED))
    });
    if wants {
        let credentials = received.credentials.unwrap_or(Credentials::UNKNOWN);
        let bytes = bytemuck::bytes_of(&credentials);
        control.push(SCM_CREDENTIALS, bytes, bytes.len());
    }
    let (limit, rights) = (limit(k), std::mem::take(&mut received.rights));
    let wanted = rights.len();
    let free = control.room.saturating_sub(control.bytes.len().next_multiple_of(8) + HEADER) / 4;
    let mut numbers: Vec<u8> = Vec::new();
    for delivered in rights.into_iter().take(free) {
        match k.process.files.insert_channel(delivered.file, delivered.channel, close_on_exec, limit) {
            Ok(fd) => numbers.extend(fd.to_le_bytes()),
            Err(_) => break,
        }
    }
    control.push(SCM_RIGHTS, &numbers, 4);
    control.truncated |= numbers.len() / 4 < wanted;
    control
}

/// Receives a message into the `struct msghdr` at an address. `None`: the thread waits.
fn receive_one(k: &mut Kernel<'_>, fd: i32, addr: u64, flags: u32) -> Outcome<Option<u64>> {
    let message: Message = user::read(k.mem, addr)?;
    let pieces = pieces(k, message.pieces, message.count)?;
    let received = receive(k, fd, &pieces, RecvFlags::from_bits_retain(flags & !CLOSE_ON_EXEC))?;
    let Some(mut received) = received else { return Ok(None) };
    let name = received.from.take().unwrap_or_default();
    if message.name != 0 {
        let room = usize::try_from(message.name_len as i32).map_err(|_| Errno::INVAL)?;
        user::write_bytes(k.mem, message.name, &name[..name.len().min(room)])?;
    }
    let name_len = if message.name == 0 { message.name_len } else { name.len() as u32 };
    let room = if message.control == 0 { 0 } else { message.control_len };
    let control = controls_of(k, fd, &mut received, room, flags & CLOSE_ON_EXEC != 0);
    user::write_bytes(k.mem, message.control, &control.bytes)?;
    let truncated = if received.truncated { TRUNCATED } else { 0 };
    let control_truncated = if control.truncated { CONTROL_TRUNCATED } else { 0 };
    let flags = flags & CLOSE_ON_EXEC | truncated | control_truncated;
    let control_len = control.bytes.len().next_multiple_of(8).min(control.room) as u64;
    user::write(k.mem, addr, Message { name_len, control_len, flags, ..message })?;
    Ok(Some(received.bytes))
}

pub(in crate::syscalls) fn recvmsg(k: &mut Kernel<'_>, a: &Args) -> Result {
    Ok(receive_one(k, a[0] as i32, a[1], a[2] as u32)?.unwrap_or(0))
}

/// `recvmmsg`: the number of messages received so far is the progress of a call that waits.
pub(in crate::syscalls) fn recvmmsg(k: &mut Kernel<'_>, a: &Args) -> Result {
    let count = u64::from(a[2] as u32).min(MESSAGES_MAX);
    let (fd, flags) = (a[0] as i32, a[3] as u32);
    k.process.files.host(fd)?;
    let limit_ns = match a[4] {
        0 => FOR_EVER,
        pointer => k.system.now_ns.saturating_add(user::read::<crate::abi::time::Time>(k.mem, pointer)?.to_ns()?),
    };
    let resumed = k.thread.resumed;
    let until_ns = k.thread.time_limit(limit_ns);
    let mut done = resumed.map_or(0, |resumed| resumed.progress);
    if done > 0 && until_ns <= k.system.now_ns {
        return Ok(done);
    }
    while done < count {
        let entry = a[1].wrapping_add(done * ENTRY);
        let polls = done > 0 && flags & WAIT_FOR_ONE != 0;
        let flags = flags & !(WAIT_FOR_ONE | RecvFlags::WAITALL.bits());
        let flags = if polls { flags | RecvFlags::DONTWAIT.bits() } else { flags };
        k.thread.resumed = None;
        let result = receive_one(k, fd, entry, flags);
        k.thread.resumed = resumed;
        match result {
            Ok(Some(bytes)) => user::write(k.mem, entry.wrapping_add(size_of::<Message>() as u64), bytes as u32)?,
            Ok(None) => {
                if let Some(blocked) = &mut k.thread.blocked {
                    (blocked.progress, blocked.until_ns) = (done, blocked.until_ns.min(until_ns));
                    k.system.next_event_ns = k.system.next_event_ns.min(blocked.until_ns);
                }
                return Ok(0);
            }
            Err(_) if done > 0 => return Ok(done),
            Err(error) => return Err(error),
        }
        done += 1;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancillary_data_are_read_one_after_another_and_must_have_possible_lengths() {
        let header = |len: u64, kind: u32| [&len.to_le_bytes()[..], &1_u32.to_le_bytes(), &kind.to_le_bytes()].concat();
        let two = [header(20, 1), vec![9, 0, 0, 0, 0, 0, 0, 0], header(28, 2), vec![7; 12]].concat();
        assert_eq!(controls(&two), Ok(vec![(1, 1, &[9, 0, 0, 0][..]), (1, 2, &[7; 12][..])]));
        for len in [0, 15, 21, u64::MAX] {
            assert_eq!(controls(&[header(len, 1), vec![0; 4]].concat()), Err(Errno::INVAL), "{len}");
        }
        assert_eq!(controls(&[0; 15]), Ok(Vec::new()));
    }

    #[test]
    fn ancillary_data_that_do_not_fit_are_truncated_to_whole_units() {
        let mut control = Control { bytes: Vec::new(), room: 16 + 9, truncated: false };
        assert_eq!((control.push(SCM_RIGHTS, &[1; 12], 4), control.truncated, control.bytes.len()), (2, true, 24));
        let mut none = Control { bytes: Vec::new(), room: 16, truncated: false };
        assert_eq!((none.push(SCM_CREDENTIALS, &[1; 12], 12), none.truncated, none.bytes.len()), (0, true, 0));
    }
}
