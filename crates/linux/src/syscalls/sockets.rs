//! Sockets. Socket pairs within the program are always available; everything that has an address, in the network or in the file
//! system, needs [`Access::network`].
//!
//! [`Access::network`]: crate::Access::network

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg as _;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType,
    sockopt,
};

use super::files::{O_CLOEXEC, limit};
use super::streams::{check_writable, deliver, gather, ready_or_block, scatter, wait};
use super::transfer::{CHUNK, MAX_TRANSFER, Piece, pieces, write_error};
use super::{Args, Result};
use crate::fs::attempt::{self, Attempt};
use crate::fs::files::{AT_FDCWD, Files, OpenFile};
use crate::fs::vfs::Origin;
use crate::fs::vfs::access::Denied;
use crate::fs::vfs::resolve::{Last, Target, resolve};
use crate::kernel::Kernel;
use crate::mm::user;

const AF_UNIX: u16 = 1;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
const SOCK_NONBLOCK: u32 = 0o4000;

type Outcome<T> = std::result::Result<T, Errno>;

/// Returns type and flags of a new socket, and whether `execve` closes it.
fn kind(argument: u64) -> Outcome<(SocketType, SocketFlags, bool)> {
    let bits = argument as u32;
    if bits & !(0xf | SOCK_NONBLOCK | O_CLOEXEC) != 0 {
        return Err(Errno::INVAL);
    }
    let kind = match bits & 0xf {
        1 => SocketType::STREAM,
        2 => SocketType::DGRAM,
        5 => SocketType::SEQPACKET,
        _ => return Err(Errno::PROTONOSUPPORT),
    };
    Ok((kind, host_flags(bits), bits & O_CLOEXEC != 0))
}

fn host_flags(bits: u32) -> SocketFlags {
    let nonblocking = if bits & SOCK_NONBLOCK != 0 { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
    SocketFlags::CLOEXEC | nonblocking
}

/// Inserts a descriptor for a new socket; `own`: it is connected to another one of the program.
fn insert(k: &mut Kernel<'_>, host: OwnedFd, close_on_exec: bool, own: bool) -> Outcome<i32> {
    let bytes = Files::capacity(host.as_fd());
    let (channel, limit) = (k.new_channel(host.as_fd(), bytes, own)?, limit(k));
    k.process.files.insert_channel(OpenFile::new(host, Origin::Host), Some(channel), close_on_exec, limit)
}

pub(super) fn socket(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (kind, flags, close_on_exec) = kind(a[1])?;
    let family = match a[0] as u16 {
        AF_UNIX => AddressFamily::UNIX,
        AF_INET => AddressFamily::INET,
        AF_INET6 => AddressFamily::INET6,
        _ => return Err(Errno::AFNOSUPPORT),
    };
    // A local socket is connected to nobody before it has an address.
    if family != AddressFamily::UNIX {
        k.process.files.view.policy.check_network()?;
    }
    let protocol = std::num::NonZero::new(a[2] as u32).map(Protocol::from_raw);
    let host = rustix::net::socket_with(family, kind, flags, protocol)?;
    Ok(insert(k, host, close_on_exec, false)? as u64)
}

pub(super) fn socketpair(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (kind, flags, close_on_exec) = kind(a[1])?;
    if a[0] != u64::from(AF_UNIX) {
        return Err(Errno::OPNOTSUPP);
    }
    let (first, second) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
    let first = insert(k, first, close_on_exec, true)?;
    let pair = match insert(k, second, close_on_exec, true) {
        Ok(second) => [first, second],
        Err(error) => {
            k.process.files.close(first)?;
            return Err(error);
        }
    };
    user::write(k.mem, a[3], pair)?;
    Ok(0)
}

/// Reads an address from the program: its bytes are the same on every little-endian Linux.
///
/// A name in the file system is the program's; it is resolved to the host's socket.
fn address(k: &mut Kernel<'_>, addr: u64, len: u64) -> Outcome<SocketAddrAny> {
    if !(2..=128).contains(&len) {
        return Err(Errno::INVAL);
    }
    let bytes = user::read_bytes(k.mem, addr, len as usize)?;
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let port = || bytes.get(2..4).map(|b| u16::from_be_bytes([b[0], b[1]])).ok_or(Errno::INVAL);
    match u16::from_le_bytes([bytes[0], bytes[1]]) {
        AF_UNIX => {
            let name = &bytes[2..];
            let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
            let address = match name {
                [] => SocketAddrUnix::new_unnamed(),
                [0, abstract_name @ ..] => SocketAddrUnix::new_abstract_name(abstract_name)?,
                _ => match resolve(k, AT_FDCWD, &name[..end], Last::Follow)? {
                    Target::Host(place) => SocketAddrUnix::new(place.path)?,
                    Target::Simulated(_) | Target::Descriptor(_) => return Err(Errno::ACCESS),
                },
            };
            Ok(address.as_any())
        }
        AF_INET => {
            let host: [u8; 4] = bytes.get(4..8).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?;
            Ok(SocketAddrV4::new(Ipv4Addr::from(host), port()?).as_any())
        }
        AF_INET6 => {
            let host: [u8; 16] = bytes.get(8..24).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?;
            let (flow, scope) = (word(4).unwrap_or(0), word(24).unwrap_or(0));
            Ok(SocketAddrV6::new(Ipv6Addr::from(host), port()?, flow, scope).as_any())
        }
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// Writes an address to the program, truncated to its buffer.
fn give_address(k: &mut Kernel<'_>, address: Option<&SocketAddrAny>, addr: u64, len_addr: u64) -> Outcome<()> {
    if addr == 0 {
        return Ok(());
    }
    let room: i32 = user::read(k.mem, len_addr)?;
    let room = usize::try_from(room).map_err(|_| Errno::INVAL)?;
    let bytes = address.map(address_bytes).unwrap_or_default();
    user::write_bytes(k.mem, addr, &bytes[..bytes.len().min(room)])?;
    user::write(k.mem, len_addr, bytes.len() as u32)
}

fn address_bytes(address: &SocketAddrAny) -> Vec<u8> {
    let family = address.address_family().as_raw().to_le_bytes();
    if let Ok(v4) = SocketAddrV4::try_from(address.clone()) {
        return [&family[..], &v4.port().to_be_bytes(), &v4.ip().octets(), &[0; 8]].concat();
    }
    if let Ok(v6) = SocketAddrV6::try_from(address.clone()) {
        let (flow, scope) = (v6.flowinfo().to_le_bytes(), v6.scope_id().to_le_bytes());
        return [&family[..], &v6.port().to_be_bytes(), &flow, &v6.ip().octets(), &scope].concat();
    }
    match SocketAddrUnix::try_from(address.clone()) {
        Ok(local) => match (local.path_bytes(), local.abstract_name()) {
            (Some(path), _) => [&family[..], path, b"\0"].concat(),
            (None, Some(name)) => [&family[..], b"\0", name].concat(),
            (None, None) => family.to_vec(),
        },
        Err(_) => family.to_vec(),
    }
}

/// `bind`: a name in the file system would create a file there, and another program's socket is outside the guest.
pub(super) fn bind(k: &mut Kernel<'_>, a: &Args) -> Result {
    k.process.files.host(a[0] as i32)?;
    let address = address(k, a[1], a[2])?;
    let policy = &k.process.files.view.policy;
    policy.check_network()?;
    if let Some(path) = SocketAddrUnix::try_from(address.clone()).ok().as_ref().and_then(SocketAddrUnix::path_bytes) {
        policy.check(policy.may_write(path), Denied::Write, path)?;
    }
    let socket = k.process.files.host(a[0] as i32)?;
    k.process.files.umask.making(|| rustix::net::bind(socket, &address))?;
    Ok(0)
}

pub(super) fn connect(k: &mut Kernel<'_>, a: &Args) -> Result {
    k.process.files.host(a[0] as i32)?;
    let address = address(k, a[1], a[2])?;
    k.process.files.view.policy.check_network()?;
    let fd = a[0] as i32;
    let waits = !rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?.contains(OFlags::NONBLOCK);
    match attempt::connect(k.process.files.host(fd)?, &address) {
        // An earlier attempt of this call has succeeded.
        Err(Errno::ISCONN) if k.thread.resumed.is_some() => {}
        Err(Errno::INPROGRESS | Errno::ALREADY) if waits => wait(k, fd, PollFlags::OUT, 0)?,
        Err(Errno::AGAIN) if waits => k.try_later(Attempt::Connect { fd, address }),
        result => result?,
    }
    Ok(0)
}

pub(super) fn listen(k: &mut Kernel<'_>, a: &Args) -> Result {
    rustix::net::listen(k.process.files.host(a[0] as i32)?, a[1] as i32)?;
    Ok(0)
}

pub(super) fn accept(k: &mut Kernel<'_>, a: &Args) -> Result {
    accept4(k, &[a[0], a[1], a[2], 0, 0, 0])
}

pub(super) fn accept4(k: &mut Kernel<'_>, a: &Args) -> Result {
    let bits = a[3] as u32;
    if bits & !(SOCK_NONBLOCK | O_CLOEXEC) != 0 {
        return Err(Errno::INVAL);
    }
    if !ready_or_block(k, a[0] as i32, PollFlags::IN)? {
        return Ok(0);
    }
    let (host, peer) = rustix::net::acceptfrom_with(k.process.files.host(a[0] as i32)?, host_flags(bits))?;
    give_address(k, peer.as_ref(), a[1], a[2])?;
    Ok(insert(k, host, bits & O_CLOEXEC != 0, false)? as u64)
}

pub(super) fn getsockname(k: &mut Kernel<'_>, a: &Args) -> Result {
    let address = rustix::net::getsockname(k.process.files.host(a[0] as i32)?)?;
    give_address(k, Some(&address), a[1], a[2])?;
    Ok(0)
}

pub(super) fn getpeername(k: &mut Kernel<'_>, a: &Args) -> Result {
    let address = rustix::net::getpeername(k.process.files.host(a[0] as i32)?)?;
    give_address(k, address.as_ref(), a[1], a[2])?;
    Ok(0)
}

pub(super) fn shutdown(k: &mut Kernel<'_>, a: &Args) -> Result {
    let how = match a[1] {
        0 => Shutdown::Read,
        1 => Shutdown::Write,
        2 => Shutdown::Both,
        _ => return Err(Errno::INVAL),
    };
    rustix::net::shutdown(k.process.files.host(a[0] as i32)?, how)?;
    Ok(0)
}

/// Maximum bytes of a message: more than any host allows for its sockets.
const MAX_MESSAGE: u64 = 64 << 20;

/// Returns whether a file is a socket.
pub(super) fn is_socket(file: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(file).is_ok()
}

/// Sends the pieces: to a stream, all of them, waiting for room as often as necessary; otherwise as one message.
pub(super) fn send(
    k: &mut Kernel<'_>,
    fd: i32,
    pieces: &[Piece],
    flags: SendFlags,
    to: Option<&SocketAddrAny>,
) -> Result {
    let is_stream = sockopt::socket_type(k.process.files.host(fd)?)? == SocketType::STREAM;
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    if !is_stream && total > MAX_MESSAGE {
        return Err(Errno::MSGSIZE);
    }
    if to.is_some() {
        k.process.files.view.policy.check_network()?;
    }
    // The simulator must not receive a signal; the program receives its own.
    let host_flags = flags | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let most = if is_stream { CHUNK } else { total as usize };
    let result = deliver(k, fd, total, !flags.contains(SendFlags::DONTWAIT), |k, done| {
        let bytes = gather(k, pieces, done, most)?;
        let socket = k.process.files.host(fd)?;
        match to {
            None => rustix::net::send(socket, &bytes, host_flags),
            Some(address) => rustix::net::sendto(socket, &bytes, host_flags, address),
        }
    });
    match result {
        Err(Errno::PIPE) if is_stream && !flags.contains(SendFlags::NOSIGNAL) => Err(write_error(k, Errno::PIPE)),
        result => result,
    }
}

pub(super) fn sendto(k: &mut Kernel<'_>, a: &Args) -> Result {
    let to = if a[4] == 0 { None } else { Some(address(k, a[4], a[5])?) };
    let piece = Piece { addr: a[1], len: a[2].min(MAX_TRANSFER) };
    send(k, a[0] as i32, &[piece], SendFlags::from_bits_retain(a[3] as u32), to.as_ref())
}

/// The result of receiving.
pub(super) struct Received {
    /// Bytes; for a truncated message possibly more than there was room for.
    pub bytes: u64,
    from: Option<SocketAddrAny>,
}

/// Receives into the pieces what is available or, with `MSG_WAITALL`, until they are full. `None`: the thread waits.
pub(super) fn receive(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece], flags: RecvFlags) -> Outcome<Option<Received>> {
    check_writable(k, pieces)?;
    let is_stream = sockopt::socket_type(k.process.files.host(fd)?)? == SocketType::STREAM;
    let fills = is_stream && flags.contains(RecvFlags::WAITALL) && !flags.contains(RecvFlags::PEEK);
    let waits = !flags.contains(RecvFlags::DONTWAIT);
    let host_flags = (flags - RecvFlags::WAITALL) | RecvFlags::DONTWAIT;
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    let mut done = k.thread.resumed.map_or(0, |resumed| resumed.progress);
    loop {
        let mut bytes = vec![0; total.saturating_sub(done).min(CHUNK as u64) as usize];
        let error = match rustix::net::recvfrom(k.process.files.host(fd)?, &mut bytes[..], host_flags) {
            Ok((_, len, from)) => {
                scatter(k, pieces, done, &bytes[..len.min(bytes.len())])?;
                done += len as u64;
                if fills && len > 0 && done < total {
                    continue;
                }
                return Ok(Some(Received { bytes: done, from }));
            }
            Err(Errno::AGAIN) if waits => match wait(k, fd, PollFlags::IN, done) {
                Ok(()) => return Ok(None),
                Err(error) => error,
            },
            Err(error) => error,
        };
        return if done > 0 { Ok(Some(Received { bytes: done, from: None })) } else { Err(error) };
    }
}

pub(super) fn recvfrom(k: &mut Kernel<'_>, a: &Args) -> Result {
    let piece = Piece { addr: a[1], len: a[2].min(MAX_TRANSFER) };
    let flags = RecvFlags::from_bits_retain(a[3] as u32);
    let Some(received) = receive(k, a[0] as i32, &[piece], flags)? else { return Ok(0) };
    give_address(k, received.from.as_ref(), a[4], a[5])?;
    Ok(received.bytes)
}

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

/// `sendmsg` without ancillary data: descriptors are not passed.
pub(super) fn sendmsg(k: &mut Kernel<'_>, a: &Args) -> Result {
    let message: Message = user::read(k.mem, a[1])?;
    if message.control_len != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let pieces = pieces(k, message.pieces, message.count)?;
    let to = match message.name {
        0 => None,
        name => Some(address(k, name, u64::from(message.name_len))?),
    };
    send(k, a[0] as i32, &pieces, SendFlags::from_bits_retain(a[2] as u32), to.as_ref())
}

/// `recvmsg`; there is never ancillary data.
pub(super) fn recvmsg(k: &mut Kernel<'_>, a: &Args) -> Result {
    let message: Message = user::read(k.mem, a[1])?;
    let pieces = pieces(k, message.pieces, message.count)?;
    let flags = RecvFlags::from_bits_retain(a[2] as u32);
    let Some(received) = receive(k, a[0] as i32, &pieces, flags)? else { return Ok(0) };
    let name = received.from.as_ref().map(address_bytes).unwrap_or_default();
    if message.name != 0 {
        user::write_bytes(k.mem, message.name, &name[..name.len().min(message.name_len as usize)])?;
    }
    let name_len = if message.name == 0 { 0 } else { name.len() as u32 };
    user::write(k.mem, a[1], Message { name_len, control_len: 0, flags: 0, ..message })?;
    Ok(received.bytes)
}

const SOL_SOCKET: u64 = 1;
const SO_REUSEADDR: u64 = 2;
const SO_TYPE: u64 = 3;
const SO_ERROR: u64 = 4;
const SO_SNDBUF: u64 = 7;
const SO_RCVBUF: u64 = 8;
const SO_KEEPALIVE: u64 = 9;
const IPPROTO_TCP: u64 = 6;
const TCP_NODELAY: u64 = 1;

/// `setsockopt`: the options that clients and servers set. Others do not exist: `ENOPROTOOPT`.
pub(super) fn setsockopt(k: &mut Kernel<'_>, a: &Args) -> Result {
    let value: u32 = user::read(k.mem, a[3])?;
    let is_buffer = a[1] == SOL_SOCKET && matches!(a[2], SO_SNDBUF | SO_RCVBUF);
    if is_buffer {
        // The host reserves twice the requested size.
        k.afford(2 * u64::from(value))?;
    }
    let file = k.process.files.host(a[0] as i32)?;
    match (a[1], a[2]) {
        (SOL_SOCKET, SO_REUSEADDR) => sockopt::set_socket_reuseaddr(file, value != 0)?,
        (SOL_SOCKET, SO_KEEPALIVE) => sockopt::set_socket_keepalive(file, value != 0)?,
        (SOL_SOCKET, SO_SNDBUF) => sockopt::set_socket_send_buffer_size(file, value as usize)?,
        (SOL_SOCKET, SO_RCVBUF) => sockopt::set_socket_recv_buffer_size(file, value as usize)?,
        (IPPROTO_TCP, TCP_NODELAY) => sockopt::set_tcp_nodelay(file, value != 0)?,
        _ => return Err(Errno::NOPROTOOPT),
    }
    if let Some(channel) = k.process.files.channel(a[0] as i32).filter(|_| is_buffer) {
        channel.charge.set(Files::capacity(file));
    }
    Ok(0)
}

pub(super) fn getsockopt(k: &mut Kernel<'_>, a: &Args) -> Result {
    let file = k.process.files.host(a[0] as i32)?;
    let value = match (a[1], a[2]) {
        (SOL_SOCKET, SO_TYPE) => sockopt::socket_type(file)?.as_raw(),
        (SOL_SOCKET, SO_ERROR) => sockopt::socket_error(file)?.map_or_else(|e| e.raw_os_error() as u32, |()| 0),
        (SOL_SOCKET, SO_REUSEADDR) => u32::from(sockopt::socket_reuseaddr(file)?),
        (SOL_SOCKET, SO_KEEPALIVE) => u32::from(sockopt::socket_keepalive(file)?),
        (SOL_SOCKET, SO_SNDBUF) => sockopt::socket_send_buffer_size(file)? as u32,
        (SOL_SOCKET, SO_RCVBUF) => sockopt::socket_recv_buffer_size(file)? as u32,
        (IPPROTO_TCP, TCP_NODELAY) => u32::from(sockopt::tcp_nodelay(file)?),
        _ => return Err(Errno::NOPROTOOPT),
    };
    let room: u32 = user::read(k.mem, a[4])?;
    let len = room.min(4);
    user::write_bytes(k.mem, a[3], &value.to_le_bytes()[..len as usize])?;
    user::write(k.mem, a[4], len)?;
    Ok(0)
}
