//! Sockets of the host, with [`Access::network`]: everything that has an address, in the network or in the file system.
//!
//! [`Access::network`]: crate::Access::network

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsFd as _;

use rustix::event::PollFlags;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::net::addr::SocketAddrArg as _;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, Shutdown, SocketAddrAny, SocketAddrUnix, SocketType, sockopt,
};

use super::transfer::Received;
use super::{Kind, Outcome, descriptor, host_flags};
use crate::fs::attempt::{self, Attempt};
use crate::fs::files::{AT_FDCWD, Files};
use crate::fs::vfs::access::Denied;
use crate::fs::vfs::resolve::{Last, Target, resolve};
use crate::kernel::Kernel;
use crate::net::address::Family;
use crate::syscalls::Result;
use crate::syscalls::streams::{deliver, gather, ready_or_block, scatter, wait};
use crate::syscalls::transfer::{CHUNK, Piece, write_error};

/// Maximum bytes of a message: more than any host allows for its sockets.
const MAX_MESSAGE: u64 = 64 << 20;

/// Creates a socket of the host.
pub(super) fn socket(k: &mut Kernel<'_>, family: Family, kind: Kind, protocol: u32) -> Result {
    let family = match family {
        Family::Inet => AddressFamily::INET,
        Family::Inet6 => AddressFamily::INET6,
        Family::Unix | Family::Netlink => AddressFamily::UNIX,
    };
    let protocol = std::num::NonZero::new(protocol).map(Protocol::from_raw);
    let host = rustix::net::socket_with(family, kind.kind, host_flags(kind.nonblocking), protocol)?;
    let bytes = Files::capacity(host.as_fd());
    let channel = k.new_channel(host.as_fd(), bytes, false)?;
    Ok(descriptor(k, host, channel, kind.close_on_exec)? as u64)
}

/// Converts an address of the program: its bytes are the same on every little-endian Linux.
///
/// A name in the file system is the program's; it is resolved to the host's socket.
fn address(k: &Kernel<'_>, bytes: &[u8]) -> Outcome<SocketAddrAny> {
    let word = |at: usize| bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
    let port = || bytes.get(2..4).map(|b| u16::from_be_bytes([b[0], b[1]])).ok_or(Errno::INVAL);
    let family = bytes.get(..2).map(|b| u16::from_le_bytes([b[0], b[1]])).ok_or(Errno::INVAL)?;
    match Family::of(family.into()) {
        Some(Family::Unix) => {
            let name = &bytes[2..];
            let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
            let address = match name {
                [] => SocketAddrUnix::new_unnamed(),
                [0, abstract_name @ ..] => SocketAddrUnix::new_abstract_name(abstract_name)?,
                _ => match resolve(k, AT_FDCWD, &name[..end], Last::Follow)? {
                    Target::Host(place) => SocketAddrUnix::new(place.path)?,
                    Target::Simulated(_) | Target::Descriptor(_) | Target::DescriptorOf(..) => {
                        return Err(Errno::ACCESS);
                    }
                },
            };
            Ok(address.as_any())
        }
        Some(Family::Inet) => {
            let host: [u8; 4] = bytes.get(4..8).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?;
            Ok(SocketAddrV4::new(Ipv4Addr::from(host), port()?).as_any())
        }
        Some(Family::Inet6) => {
            let host: [u8; 16] = bytes.get(8..24).and_then(|b| b.try_into().ok()).ok_or(Errno::INVAL)?;
            let (flow, scope) = (word(4).unwrap_or(0), word(24).unwrap_or(0));
            Ok(SocketAddrV6::new(Ipv6Addr::from(host), port()?, flow, scope).as_any())
        }
        _ => Err(Errno::AFNOSUPPORT),
    }
}

/// Returns the bytes of an address for the program.
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
pub(super) fn bind(k: &mut Kernel<'_>, fd: i32, name: &[u8]) -> Result {
    let address = address(k, name)?;
    let policy = &k.process.files.view.policy;
    policy.check_network()?;
    if let Some(path) = SocketAddrUnix::try_from(address.clone()).ok().as_ref().and_then(SocketAddrUnix::path_bytes) {
        policy.check(policy.may_write(path), Denied::Write, path)?;
    }
    let socket = k.process.files.host(fd)?;
    k.process.files.umask.making(|| rustix::net::bind(socket, &address))?;
    Ok(0)
}

pub(super) fn connect(k: &mut Kernel<'_>, fd: i32, name: &[u8]) -> Result {
    let address = address(k, name)?;
    k.process.files.view.policy.check_network()?;
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

pub(super) fn listen(k: &mut Kernel<'_>, fd: i32, backlog: u64) -> Result {
    rustix::net::listen(k.process.files.host(fd)?, backlog as i32)?;
    Ok(0)
}

/// `accept4`: returns the new descriptor and the address of the other side; `None`: the thread waits.
pub(super) fn accept(k: &mut Kernel<'_>, fd: i32, kind: (bool, bool)) -> Outcome<Option<(i32, Vec<u8>)>> {
    let (nonblocking, close_on_exec) = kind;
    if !ready_or_block(k, fd, PollFlags::IN)? {
        return Ok(None);
    }
    let (host, peer) = rustix::net::acceptfrom_with(k.process.files.host(fd)?, host_flags(nonblocking))?;
    let bytes = Files::capacity(host.as_fd());
    let channel = k.new_channel(host.as_fd(), bytes, false)?;
    let fd = descriptor(k, host, channel, close_on_exec)?;
    Ok(Some((fd, peer.as_ref().map(address_bytes).unwrap_or_default())))
}

/// Returns the address of a socket.
pub(super) fn name(k: &Kernel<'_>, fd: i32) -> Outcome<Vec<u8>> {
    Ok(address_bytes(&rustix::net::getsockname(k.process.files.host(fd)?)?))
}

/// Returns the address of the other side of a connection.
pub(super) fn peer(k: &Kernel<'_>, fd: i32) -> Outcome<Vec<u8>> {
    Ok(rustix::net::getpeername(k.process.files.host(fd)?)?.as_ref().map(address_bytes).unwrap_or_default())
}

pub(super) fn shutdown(k: &Kernel<'_>, fd: i32, how: Shutdown) -> Result {
    rustix::net::shutdown(k.process.files.host(fd)?, how)?;
    Ok(0)
}

/// Sends the pieces: to a stream, all of them, waiting for room as often as necessary; otherwise as one message.
pub(super) fn send(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece], flags: SendFlags, to: Option<&[u8]>) -> Result {
    let is_stream = sockopt::socket_type(k.process.files.host(fd)?)? == SocketType::STREAM;
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    if !is_stream && total > MAX_MESSAGE {
        return Err(Errno::MSGSIZE);
    }
    let to = to.map(|name| address(k, name)).transpose()?;
    if to.is_some() {
        k.process.files.view.policy.check_network()?;
    }
    // The simulator must not receive a signal; the program receives its own.
    let host_flags = flags | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let most = if is_stream { CHUNK } else { total as usize };
    let result = deliver(k, fd, total, !flags.contains(SendFlags::DONTWAIT), |k, done| {
        let bytes = gather(k, pieces, done, most)?;
        let socket = k.process.files.host(fd)?;
        match &to {
            None => rustix::net::send(socket, &bytes, host_flags),
            Some(address) => rustix::net::sendto(socket, &bytes, host_flags, address),
        }
    });
    match result {
        Err(Errno::PIPE) if is_stream && !flags.contains(SendFlags::NOSIGNAL) => Err(write_error(k, Errno::PIPE)),
        result => result,
    }
}

/// Receives into the pieces what is available or, with `MSG_WAITALL`, until they are full. `None`: the thread waits.
pub(super) fn receive(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece], flags: RecvFlags) -> Outcome<Option<Received>> {
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
                return Ok(Some(Received { from: from.as_ref().map(address_bytes), ..Received::of(done) }));
            }
            Err(Errno::AGAIN) if waits => match wait(k, fd, PollFlags::IN, done) {
                Ok(()) => return Ok(None),
                Err(error) => error,
            },
            Err(error) => error,
        };
        return if done > 0 { Ok(Some(Received::of(done))) } else { Err(error) };
    }
}
