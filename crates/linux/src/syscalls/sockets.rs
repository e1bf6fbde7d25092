//! Sockets. Pairs of them within the program are always there; network sockets need [`Access::network`].
//!
//! [`Access::network`]: crate::Access::network

use rustix::io::Errno;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType};

use super::files::{O_CLOEXEC, limit};
use super::{Args, Result, guest};
use crate::files::OpenFile;
use crate::kernel::Kernel;
use crate::thread::Thread;
use crate::vfs::Origin;

const AF_UNIX: u64 = 1;
const SOCK_NONBLOCK: u32 = 0o4000;

/// Type and flags of a new socket; whether it is to be closed by `execve`.
fn kind(argument: u64) -> std::result::Result<(SocketType, SocketFlags, bool), Errno> {
    let bits = argument as u32;
    let kind = match bits & 0xf {
        1 => SocketType::STREAM,
        2 => SocketType::DGRAM,
        5 => SocketType::SEQPACKET,
        _ => return Err(Errno::PROTONOSUPPORT),
    };
    let mut flags = SocketFlags::CLOEXEC;
    if bits & SOCK_NONBLOCK != 0 {
        flags |= SocketFlags::NONBLOCK;
    }
    if bits & !(0xf | SOCK_NONBLOCK | O_CLOEXEC) != 0 {
        Err(Errno::INVAL)
    } else {
        Ok((kind, flags, bits & O_CLOEXEC != 0))
    }
}

fn open_socket(host: std::os::fd::OwnedFd) -> OpenFile {
    OpenFile { host, origin: Origin::Host }
}

pub(super) fn socket(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let (kind, flags, close_on_exec) = kind(a[1])?;
    let family = match a[0] {
        AF_UNIX => AddressFamily::UNIX,
        2 => AddressFamily::INET,
        10 => AddressFamily::INET6,
        _ => return Err(Errno::AFNOSUPPORT),
    };
    // Without an address, which the program may not give it either, a local socket reaches nobody.
    if family != AddressFamily::UNIX {
        k.files.view.policy.check_network()?;
    }
    let protocol = std::num::NonZero::new(a[2] as u32).map(Protocol::from_raw);
    let host = rustix::net::socket_with(family, kind, flags, protocol)?;
    let limit = limit(k);
    Ok(k.files.insert(open_socket(host), close_on_exec, 0, limit)? as u64)
}

pub(super) fn socketpair(k: &mut Kernel, _: &mut Thread, a: &Args) -> Result {
    let (kind, flags, close_on_exec) = kind(a[1])?;
    if a[0] != AF_UNIX {
        return Err(Errno::OPNOTSUPP);
    }
    let (first, second) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
    let limit = limit(k);
    let first = k.files.insert(open_socket(first), close_on_exec, 0, limit)?;
    let second = k.files.insert(open_socket(second), close_on_exec, 0, limit)?;
    guest::write(&mut k.mem, a[3], [first, second])?;
    Ok(0)
}
