//! Sockets. Those of the run's own network ([`crate::net`]) are always available: local sockets, and the internet's over the
//! loopback interface. With [`Access::network`], sockets that have an address are the host's.
//!
//! [`Access::network`]: crate::Access::network

mod host;
mod ioctl;
mod messages;
mod names;
mod options;
mod transfer;

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;
use rustix::net::{Shutdown, SocketFlags, SocketType, sockopt};

use super::files::{O_CLOEXEC, limit};
use super::{Args, Result};
use crate::fs::files::{Files, OpenFile};
use crate::fs::vfs::Origin;
use crate::ipc::channels::Channel;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::net::address::{Address, Family};
use crate::net::netlink;
use crate::net::options::{IPPROTO_TCP, IPPROTO_UDP};
use crate::net::socket::{Credentials, End, Role, Socket, host_pair};

pub(super) use ioctl::ioctl;
pub(super) use messages::{recvmmsg, recvmsg, sendmmsg, sendmsg};
pub(super) use options::{getsockopt, setsockopt};
pub(super) use transfer::{read, recvfrom, send_now, sendto, write};

type Outcome<T> = std::result::Result<T, Errno>;

const SOCK_NONBLOCK: u32 = 0o4000;

/// Maximum length of an address in bytes (`struct sockaddr_storage`).
const ADDRESS_MAX: u64 = 128;

/// The second argument of `socket`.
#[derive(Clone, Copy)]
struct Kind {
    kind: SocketType,
    nonblocking: bool,
    close_on_exec: bool,
}

impl Kind {
    fn of(argument: u64) -> Outcome<Kind> {
        let bits = argument as u32;
        if bits & !(0xf | SOCK_NONBLOCK | O_CLOEXEC) != 0 {
            return Err(Errno::INVAL);
        }
        let kind = match bits & 0xf {
            1 => SocketType::STREAM,
            2 => SocketType::DGRAM,
            3 => SocketType::RAW,
            5 => SocketType::SEQPACKET,
            0 | 4 | 6..=10 => return Err(Errno::SOCKTNOSUPPORT),
            _ => return Err(Errno::INVAL),
        };
        Ok(Kind { kind, nonblocking: bits & SOCK_NONBLOCK != 0, close_on_exec: bits & O_CLOEXEC != 0 })
    }
}

fn host_flags(nonblocking: bool) -> SocketFlags {
    let nonblocking = if nonblocking { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
    SocketFlags::CLOEXEC | nonblocking
}

/// Returns the process as the other end of a connection sees it.
fn credentials(k: &Kernel<'_>) -> Credentials {
    let attributes = &k.process.attributes;
    Credentials { pid: k.process.pid, uid: attributes.users.effective, gid: attributes.groups.effective }
}

/// Returns the socket of the run's own network behind a descriptor. `None`: it is another file.
fn own(k: &Kernel<'_>, fd: i32) -> Outcome<Option<Rc<Channel>>> {
    k.process.files.host(fd)?;
    Ok(k.process.files.kept_channel(fd).filter(|channel| channel.socket.is_some()))
}

/// Registers a new socket of the run's own network and charges for it.
fn new_socket(k: &mut Kernel<'_>, host: BorrowedFd<'_>, mut socket: Socket) -> Outcome<Rc<Channel>> {
    socket.id = k.system.network.new_id();
    let end = &mut socket.state.get_mut().end;
    if end.pair == 0 {
        end.pair = socket.id;
    }
    let bytes = Files::capacity(host);
    let channel = k.new_socket_channel(host, bytes, socket)?;
    k.system.network.add(&channel);
    Ok(channel)
}

/// Inserts a descriptor for a socket.
fn descriptor(k: &mut Kernel<'_>, host: OwnedFd, channel: Rc<Channel>, close_on_exec: bool) -> Outcome<i32> {
    let limit = limit(k);
    k.process.files.insert_channel(OpenFile::new(host, Origin::Host), Some(channel), close_on_exec, limit)
}

/// Returns the protocol of a new socket (ip(7), netlink(7)).
fn protocol(family: Family, kind: SocketType, number: u32) -> Outcome<u32> {
    let by_kind = match kind {
        SocketType::STREAM => IPPROTO_TCP,
        SocketType::DGRAM => IPPROTO_UDP,
        _ => 0,
    };
    match family {
        Family::Unix if number <= 1 && kind != SocketType::RAW => Ok(0),
        Family::Netlink if !matches!(kind, SocketType::RAW | SocketType::DGRAM) => Err(Errno::SOCKTNOSUPPORT),
        Family::Netlink if number == netlink::ROUTE => Ok(number),
        Family::Inet | Family::Inet6 if kind == SocketType::RAW => Err(Errno::PERM),
        Family::Inet | Family::Inet6 if by_kind == 0 => Err(Errno::SOCKTNOSUPPORT),
        Family::Inet | Family::Inet6 if number == 0 || number == by_kind => Ok(by_kind),
        _ => Err(Errno::PROTONOSUPPORT),
    }
}

pub(super) fn socket(k: &mut Kernel<'_>, a: &Args) -> Result {
    let kind = Kind::of(a[1])?;
    let family = Family::of(a[0] & 0xffff_ffff).ok_or(Errno::AFNOSUPPORT)?;
    let protocol = protocol(family, kind.kind, a[2] as u32)?;
    if k.process.files.view.policy.allows_network() && family != Family::Netlink {
        return host::socket(k, family, kind, protocol);
    }
    let (host, wire) = host_pair(kind.kind, kind.nonblocking)?;
    names::check_host(&wire)?;
    let socket = Socket::new(family, kind.kind, protocol, credentials(k));
    socket.state.borrow_mut().wire = Some(wire);
    let channel = new_socket(k, host.as_fd(), socket)?;
    Ok(descriptor(k, host, channel, kind.close_on_exec)? as u64)
}

pub(super) fn socketpair(k: &mut Kernel<'_>, a: &Args) -> Result {
    let kind = Kind::of(a[1])?;
    let family = Family::of(a[0] & 0xffff_ffff).ok_or(Errno::AFNOSUPPORT)?;
    if family != Family::Unix {
        return Err(Errno::OPNOTSUPP);
    }
    protocol(family, kind.kind, a[2] as u32)?;
    let (first, second) = host_pair(kind.kind, kind.nonblocking)?;
    let owner = credentials(k);
    let link = Rc::new(crate::net::socket::Link { credentials: [owner; 2], wants_credentials: Default::default() });
    let (mut pair, mut number) = ([0; 2], 0);
    for (side, host) in [first, second].into_iter().enumerate() {
        let socket = Socket::new(family, kind.kind, 0, owner);
        {
            let mut state = socket.state.borrow_mut();
            (state.role, state.link) = (Role::Pair, Some((Rc::clone(&link), side)));
            state.end = End { pair: number, side: side as u8 };
        }
        let made = new_socket(k, host.as_fd(), socket);
        number = made.as_ref().ok().and_then(|channel| channel.socket.as_ref()).map_or(0, |socket| socket.id);
        match made.and_then(|channel| descriptor(k, host, channel, kind.close_on_exec)) {
            Ok(fd) => pair[side] = fd,
            Err(error) => {
                if side == 1 {
                    k.process.files.close(pair[0])?;
                }
                return Err(error);
            }
        }
    }
    user::write(k.mem, a[3], pair)?;
    Ok(0)
}

/// Reads the bytes of an address from the program.
fn read_name(k: &mut Kernel<'_>, addr: u64, len: u64) -> Outcome<Vec<u8>> {
    let len = u64::from(len as u32);
    if len > ADDRESS_MAX {
        return Err(Errno::INVAL);
    }
    user::read_bytes(k.mem, addr, len as usize)
}

/// Writes the bytes of an address to the program, truncated to its buffer.
fn give_name(k: &mut Kernel<'_>, name: &[u8], addr: u64, len_addr: u64) -> Outcome<()> {
    if addr == 0 {
        return Ok(());
    }
    let room: i32 = user::read(k.mem, len_addr)?;
    let room = usize::try_from(room).map_err(|_| Errno::INVAL)?;
    user::write_bytes(k.mem, addr, &name[..name.len().min(room)])?;
    user::write(k.mem, len_addr, name.len() as u32)
}

/// Returns the error for a call on a host file that is no socket.
fn check_socket(k: &Kernel<'_>, fd: i32) -> Outcome<()> {
    sockopt::socket_type(k.process.files.host(fd)?).map(|_| ())
}

pub(super) fn bind(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (fd, own) = (a[0] as i32, own(k, a[0] as i32)?);
    check_socket(k, fd)?;
    let name = read_name(k, a[1], a[2])?;
    match own.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) => names::bind(k, socket, &name),
        None => host::bind(k, fd, &name),
    }
}

pub(super) fn connect(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (fd, own) = (a[0] as i32, own(k, a[0] as i32)?);
    check_socket(k, fd)?;
    let name = read_name(k, a[1], a[2])?;
    match own.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) => names::connect(k, fd, socket, &name),
        None => host::connect(k, fd, &name),
    }
}

pub(super) fn listen(k: &mut Kernel<'_>, a: &Args) -> Result {
    match own(k, a[0] as i32)?.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) => names::listen(k, socket, a[1]),
        None => host::listen(k, a[0] as i32, a[1]),
    }
}

pub(super) fn accept(k: &mut Kernel<'_>, a: &Args) -> Result {
    accept4(k, &[a[0], a[1], a[2], 0, 0, 0])
}

pub(super) fn accept4(k: &mut Kernel<'_>, a: &Args) -> Result {
    let bits = a[3] as u32;
    if bits & !(SOCK_NONBLOCK | O_CLOEXEC) != 0 {
        return Err(Errno::INVAL);
    }
    let (fd, kind) = (a[0] as i32, (bits & SOCK_NONBLOCK != 0, bits & O_CLOEXEC != 0));
    let accepted = match own(k, fd)?.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) => names::accept(k, fd, socket, kind)?,
        None => host::accept(k, fd, kind)?,
    };
    let Some((new, peer)) = accepted else { return Ok(0) };
    if let Err(error) = give_name(k, &peer, a[1], a[2]) {
        k.process.files.close(new)?;
        return Err(error);
    }
    Ok(new as u64)
}

pub(super) fn getsockname(k: &mut Kernel<'_>, a: &Args) -> Result {
    let name = match own(k, a[0] as i32)?.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) => socket.local().bytes(socket.family),
        None => host::name(k, a[0] as i32)?,
    };
    give_name(k, &name, a[1], a[2])?;
    Ok(0)
}

pub(super) fn getpeername(k: &mut Kernel<'_>, a: &Args) -> Result {
    let name = match own(k, a[0] as i32)?.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) => names::peer(socket)?,
        None => host::peer(k, a[0] as i32)?,
    };
    give_name(k, &name, a[1], a[2])?;
    Ok(0)
}

pub(super) fn shutdown(k: &mut Kernel<'_>, a: &Args) -> Result {
    let how = match a[1] as u32 {
        0 => Shutdown::Read,
        1 => Shutdown::Write,
        2 => Shutdown::Both,
        _ => return Err(Errno::INVAL),
    };
    match own(k, a[0] as i32)?.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) => names::shutdown(k, a[0] as i32, socket, how),
        None => host::shutdown(k, a[0] as i32, how),
    }
}

/// Returns whether a file is a socket.
pub(super) fn is_socket(file: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(file).is_ok()
}

/// Returns the address from which `AF_NETLINK` answers: the kernel's.
fn kernel_name() -> Vec<u8> {
    Address::Netlink { port: 0, groups: 0 }.bytes(Family::Netlink)
}
