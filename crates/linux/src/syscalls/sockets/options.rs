//! `setsockopt` and `getsockopt`.

use rustix::io::Errno;
use rustix::net::sockopt;

use super::{Outcome, own};
use crate::fs::files::Files;
use crate::kernel::Kernel;
use crate::mm::user;
use crate::net::options::{self, IPPROTO_TCP, SO_PASSCRED, SO_RCVBUF, SO_REUSEADDR, SO_SNDBUF, SOL_SOCKET, tcp_info};
use crate::net::socket::{Credentials, Role, Socket};
use crate::syscalls::{Args, Result};

const SO_TYPE: u32 = 3;
const SO_ERROR: u32 = 4;
const SO_KEEPALIVE: u32 = 9;
const SO_PEERCRED: u32 = 17;
const SO_ACCEPTCONN: u32 = 30;
const SO_SNDBUFFORCE: u32 = 32;
const SO_RCVBUFFORCE: u32 = 33;
const SO_PROTOCOL: u32 = 38;
const SO_DOMAIN: u32 = 39;
const SO_COOKIE: u32 = 57;
const TCP_NODELAY: u32 = 1;
const TCP_INFO: u32 = 11;

/// Numbers of the calls, for the count of what is not implemented.
const SETSOCKOPT: u64 = 208;
const GETSOCKOPT: u64 = 209;

/// Maximum bytes of a value.
const VALUE_MAX: u32 = 4096;
/// Least size of a buffer (Linux `SOCK_MIN_SNDBUF`, 64-bit), and the default of its largest (`net.core.wmem_max`).
const BUFFER_MIN: u32 = 4608;
const BUFFER_MAX: u32 = 212_992;

/// `setsockopt`. Options that the simulator does not know do not exist, and are counted: `ENOPROTOOPT`.
pub(in crate::syscalls) fn setsockopt(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (fd, level, name, len) = (a[0] as i32, a[1] as u32, a[2] as u32, a[4] as u32);
    super::check_socket(k, fd)?;
    if len as i32 > VALUE_MAX as i32 || (len as i32) < 0 {
        return Err(Errno::INVAL);
    }
    let value = user::read_bytes(k.mem, a[3], len as usize)?;
    let own = own(k, fd)?;
    let Some(socket) = own.as_deref().and_then(|channel| channel.socket.as_ref()) else {
        return set_of_host(k, fd, level, name, &value);
    };
    match (level, name) {
        (SOL_SOCKET, SO_SNDBUF | SO_SNDBUFFORCE) => set_buffer(k, fd, socket, SO_SNDBUF, &value),
        (SOL_SOCKET, SO_RCVBUF | SO_RCVBUFFORCE) => set_buffer(k, fd, socket, SO_RCVBUF, &value),
        _ => match options::set(socket, level, name, &value) {
            Some(result) => {
                result?;
                note_credentials(socket, level, name);
                Ok(0)
            }
            None => {
                k.system.note_unknown(SETSOCKOPT);
                Err(Errno::NOPROTOOPT)
            }
        },
    }
}

/// Lets the other end of a connection know whether this one wants credentials.
fn note_credentials(socket: &Socket, level: u32, name: u32) {
    if (level, name) == (SOL_SOCKET, SO_PASSCRED) {
        let state = socket.state.borrow();
        if let Some((link, side)) = &state.link {
            link.wants_credentials[*side].set(state.options.is_set(level, name));
        }
    }
}

fn number(value: &[u8]) -> Outcome<u32> {
    value.get(..4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes).ok_or(Errno::INVAL)
}

/// Sets the size of a buffer, of which Linux makes twice as much. The data that a socket receives are in the buffer of the end that
/// sends to it: its wire, if it has one.
fn set_buffer(k: &mut Kernel<'_>, fd: i32, socket: &Socket, name: u32, value: &[u8]) -> Result {
    let requested = number(value)?.min(BUFFER_MAX);
    let bytes = (2 * requested).max(BUFFER_MIN);
    k.afford(u64::from(bytes))?;
    let file = k.process.files.host(fd)?;
    let mut state = socket.state.borrow_mut();
    match (&state.wire, name, &state.role) {
        (Some(wire), SO_RCVBUF, _) => sockopt::set_socket_send_buffer_size(wire, requested as usize)?,
        (None, SO_SNDBUF, _) | (Some(_), SO_SNDBUF, Role::Idle) => {
            sockopt::set_socket_send_buffer_size(file, requested as usize)?;
        }
        _ => {}
    }
    state.options.keep(SOL_SOCKET, name, bytes as i32);
    if let Some(channel) = k.process.files.channel(fd) {
        channel.charge.set(Files::capacity(file).max(u64::from(bytes)));
    }
    Ok(0)
}

/// Sets an option of a host socket: those that clients and servers set.
fn set_of_host(k: &mut Kernel<'_>, fd: i32, level: u32, name: u32, value: &[u8]) -> Result {
    let value = number(value)?;
    let is_buffer = level == SOL_SOCKET && matches!(name, SO_SNDBUF | SO_RCVBUF);
    if is_buffer {
        // The host reserves twice the requested size.
        k.afford(2 * u64::from(value))?;
    }
    let file = k.process.files.host(fd)?;
    match (level, name) {
        (SOL_SOCKET, SO_REUSEADDR) => sockopt::set_socket_reuseaddr(file, value != 0)?,
        (SOL_SOCKET, SO_KEEPALIVE) => sockopt::set_socket_keepalive(file, value != 0)?,
        (SOL_SOCKET, SO_SNDBUF) => sockopt::set_socket_send_buffer_size(file, value as usize)?,
        (SOL_SOCKET, SO_RCVBUF) => sockopt::set_socket_recv_buffer_size(file, value as usize)?,
        (IPPROTO_TCP, TCP_NODELAY) => sockopt::set_tcp_nodelay(file, value != 0)?,
        _ => {
            k.system.note_unknown(SETSOCKOPT);
            return Err(Errno::NOPROTOOPT);
        }
    }
    if let Some(channel) = k.process.files.channel(fd).filter(|_| is_buffer) {
        channel.charge.set(Files::capacity(file));
    }
    Ok(0)
}

pub(in crate::syscalls) fn getsockopt(k: &mut Kernel<'_>, a: &Args) -> Result {
    let (fd, level, name) = (a[0] as i32, a[1] as u32, a[2] as u32);
    super::check_socket(k, fd)?;
    let room: i32 = user::read(k.mem, a[4])?;
    let room = usize::try_from(room).map_err(|_| Errno::INVAL)?;
    let value = match own(k, fd)?.as_deref().and_then(|channel| channel.socket.as_ref()) {
        Some(socket) if (level, name) == (SOL_SOCKET, SO_ERROR) => {
            Some(error_of(k, fd, socket)?.to_le_bytes().to_vec())
        }
        Some(socket) => get_of_own(socket, level, name),
        None => get_of_host(k, fd, level, name)?.map(|value| value.to_le_bytes().to_vec()),
    };
    let Some(value) = value else {
        k.system.note_unknown(GETSOCKOPT);
        return Err(Errno::NOPROTOOPT);
    };
    let len = room.min(value.len());
    user::write_bytes(k.mem, a[3], &value[..len])?;
    user::write(k.mem, a[4], len as u32)?;
    Ok(0)
}

/// Takes the error that the next call would report: the simulator's, or the host's, such as a reset connection.
fn error_of(k: &Kernel<'_>, fd: i32, socket: &Socket) -> Outcome<u32> {
    // Both are taken: the host's socket has an error of its own after a refused connection.
    let host = sockopt::socket_error(k.process.files.host(fd)?)?.err();
    let error = socket.take_error().err().or(host);
    Ok(error.map_or(0, |error| error.raw_os_error() as u32))
}

/// Returns the value of an option of a socket of the run's own network.
fn get_of_own(socket: &Socket, level: u32, name: u32) -> Option<Vec<u8>> {
    let number = match (level, name) {
        (SOL_SOCKET, SO_TYPE) => socket.kind.as_raw(),
        (SOL_SOCKET, SO_DOMAIN) => socket.family as u32,
        (SOL_SOCKET, SO_PROTOCOL) => socket.protocol,
        (SOL_SOCKET, SO_ACCEPTCONN) => u32::from(matches!(socket.state.borrow().role, Role::Listening(_))),
        (SOL_SOCKET, SO_COOKIE) => return Some(socket.id.to_le_bytes().to_vec()),
        (SOL_SOCKET, SO_PEERCRED) => {
            // Linux's value for a socket without a connection.
            let nobody = Credentials { pid: 0, uid: u32::MAX, gid: u32::MAX };
            return Some(bytemuck::bytes_of(&socket.peer_credentials().unwrap_or(nobody)).to_vec());
        }
        (IPPROTO_TCP, TCP_INFO) => return tcp_info(socket),
        _ => return options::get(socket, level, name),
    };
    Some(number.to_le_bytes().to_vec())
}

fn get_of_host(k: &Kernel<'_>, fd: i32, level: u32, name: u32) -> Outcome<Option<u32>> {
    let file = k.process.files.host(fd)?;
    Ok(Some(match (level, name) {
        (SOL_SOCKET, SO_TYPE) => sockopt::socket_type(file)?.as_raw(),
        (SOL_SOCKET, SO_ERROR) => sockopt::socket_error(file)?.map_or_else(|e| e.raw_os_error() as u32, |()| 0),
        (SOL_SOCKET, SO_REUSEADDR) => u32::from(sockopt::socket_reuseaddr(file)?),
        (SOL_SOCKET, SO_KEEPALIVE) => u32::from(sockopt::socket_keepalive(file)?),
        (SOL_SOCKET, SO_SNDBUF) => sockopt::socket_send_buffer_size(file)? as u32,
        (SOL_SOCKET, SO_RCVBUF) => sockopt::socket_recv_buffer_size(file)? as u32,
        (SOL_SOCKET, SO_DOMAIN) => u32::from(sockopt::socket_domain(file)?.as_raw()),
        (SOL_SOCKET, SO_ACCEPTCONN) => u32::from(sockopt::socket_acceptconn(file)?),
        (IPPROTO_TCP, TCP_NODELAY) => u32::from(sockopt::tcp_nodelay(file)?),
        _ => return Ok(None),
    }))
}
