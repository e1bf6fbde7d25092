//! `ioctl` of sockets: interfaces (netdevice(7)), and how much there is to read or to send.

use rustix::io::Errno;

use super::own;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::net::datagram::HEADER;
use crate::net::interface::{self, REQUEST};
use crate::net::socket::Role;
use crate::syscalls::{Args, Result};

const SIOCGIFCONF: u32 = 0x8912;
const FIONREAD: u32 = 0x541b;
/// `SIOCOUTQ`: bytes that have been sent and not acknowledged.
const TIOCOUTQ: u32 = 0x5411;
/// Whether the next byte is urgent.
const SIOCATMARK: u32 = 0x8905;

/// Answers a call on a socket of the run's own network. `None`: it is not about such a socket, or the same for every file.
pub(in crate::syscalls) fn ioctl(k: &mut Kernel<'_>, a: &Args) -> Option<Result> {
    let channel = own(k, a[0] as i32).ok()??;
    let socket = channel.socket.as_ref()?;
    match a[1] as u32 {
        FIONREAD if matches!(socket.state.borrow().role, Role::Listening(_)) => Some(Err(Errno::INVAL)),
        FIONREAD if socket.is_routed() => Some(waiting(k, a)),
        TIOCOUTQ | SIOCATMARK => Some(user::write(k.mem, a[2], 0_u32).map(|()| 0)),
        SIOCGIFCONF => Some(configuration(k, a[2])),
        call => of_interface(k, call, a[2]),
    }
}

/// Returns the bytes of the next datagram.
fn waiting(k: &mut Kernel<'_>, a: &Args) -> Result {
    let bytes = rustix::io::ioctl_fionread(k.process.files.host(a[0] as i32)?)?;
    user::write(k.mem, a[2], bytes.saturating_sub(HEADER as u64) as u32)?;
    Ok(0)
}

/// `SIOCGIFCONF`: the addresses of all interfaces; without a buffer, the bytes that they need.
fn configuration(k: &mut Kernel<'_>, addr: u64) -> Result {
    let room: i32 = user::read(k.mem, addr)?;
    let buffer: u64 = user::read(k.mem, addr.wrapping_add(8))?;
    let entries = interface::configuration();
    let len = match buffer {
        0 => entries.len(),
        _ => usize::try_from(room).map_err(|_| Errno::INVAL)?.min(entries.len()) / REQUEST * REQUEST,
    };
    if buffer != 0 {
        user::write_bytes(k.mem, buffer, &entries[..len])?;
    }
    user::write(k.mem, addr, len as u32)?;
    Ok(0)
}

fn of_interface(k: &mut Kernel<'_>, call: u32, addr: u64) -> Option<Result> {
    // Nothing is read before it is known to be such a call.
    let _ = interface::answer(call, &[0; REQUEST])?;
    let answer = user::read_bytes(k.mem, addr, REQUEST).and_then(|request| {
        let answer = interface::answer(call, &request).unwrap_or(Err(Errno::NOTTY))?;
        user::write_bytes(k.mem, addr, &answer)?;
        Ok(0)
    });
    Some(answer)
}
