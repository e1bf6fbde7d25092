//! Connections of streams: a socket gives its wire to a listening one, and `accept` makes a socket of that.

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::address::{Address, Family};
use super::options::{Options, SO_PASSCRED, SOL_SOCKET};
use super::socket::{Credentials, Link, Listener, Pending, Role, Socket};
use crate::budget::Charge;

/// Maximum length of a queue of connections (Linux's `net.core.somaxconn`).
const BACKLOG_MAX: usize = 4096;

/// Lets a socket wait for connections; changes the length of the queue if it does already.
pub(crate) fn listen(socket: &Socket, backlog: u64, owner: Credentials) {
    // The queue holds one more than the program asked for (listen(2), Linux `sk_acceptq_is_full`). Negative numbers are large.
    let backlog = (backlog as u32 as usize).min(BACKLOG_MAX) + 1;
    let mut state = socket.state.borrow_mut();
    state.owner = owner;
    match &mut state.role {
        Role::Listening(listener) => listener.backlog = backlog,
        role => *role = Role::Listening(Listener { backlog, ..Listener::default() }),
    }
}

/// Returns whether a listening socket has room for another connection.
pub(crate) fn has_room(listener: &Socket) -> bool {
    matches!(&listener.state.borrow().role, Role::Listening(listener) if listener.queue.len() < listener.backlog)
}

/// Connects `client`, with its host socket, whose address is `from`, to `listener` under the address `to`.
///
/// # Errors
/// `EINVAL` when the client has given its wire away before; the host's.
pub(crate) fn connect(
    (client, host): (&Socket, BorrowedFd<'_>),
    from: Address,
    listener: &Socket,
    to: Address,
    charge: Charge,
) -> Result<(), Errno> {
    let wire = client.state.borrow_mut().wire.take().ok_or(Errno::INVAL)?;
    let end = client.state.borrow().end.other();
    let wants = |socket: &Socket| socket.state.borrow().options.is_set(SOL_SOCKET, SO_PASSCRED);
    let link = Rc::new(Link {
        credentials: [client, listener].map(|socket| socket.state.borrow().owner),
        wants_credentials: [client, listener].map(|socket| Cell::new(wants(socket))),
    });
    {
        let mut state = client.state.borrow_mut();
        (state.local, state.peer) = (Some(from.clone()), Some(to.clone()));
        state.role = Role::Connected;
        if client.family == Family::Unix {
            state.link = Some((Rc::clone(&link), 0));
        }
    }
    // Until it is accepted, there is something to read: if the listening socket is closed before, the host resets the connection.
    let marked = rustix::net::send(host, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok();
    let mut state = listener.state.borrow_mut();
    let state = &mut *state;
    let (Role::Listening(queue), Some(signal)) = (&mut state.role, &state.wire) else { return Err(Errno::CONNREFUSED) };
    queue.queue.push_back(Pending { host: wire, end, local: to, peer: from, link, marked, _charge: charge });
    // A full wire is readable as it is.
    if rustix::net::send(signal, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL).is_ok() {
        queue.signals += 1;
    }
    Ok(())
}

/// Nobody listens at the address to which the non-blocking `client`, whose host socket is `host`, connects. The host marks a socket
/// as failed when its other end closes with something unread: `poll` and `epoll` then report what they do for a refused connection.
pub(crate) fn refuse(client: &Socket, host: BorrowedFd<'_>) {
    let mut state = client.state.borrow_mut();
    (state.error, state.refused) = (Some(Errno::CONNREFUSED), true);
    // The wire closes whether or not it takes the byte, and a closed wire is readable at least.
    let _ = rustix::net::send(host, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    state.wire = None;
}

/// Takes the oldest connection out of the queue of `listener`, whose host socket is `host`, and returns it with the options that
/// the new socket inherits. `None`: there is none yet.
///
/// # Errors
/// `EINVAL` when the socket does not listen.
pub(crate) fn accept(listener: &Socket, host: BorrowedFd<'_>) -> Result<Option<(Pending, Options)>, Errno> {
    let mut state = listener.state.borrow_mut();
    let options = state.options.clone();
    let Role::Listening(queue) = &mut state.role else { return Err(Errno::INVAL) };
    let Some(pending) = queue.queue.pop_front() else { return Ok(None) };
    if pending.marked {
        let _ = rustix::net::recv(&pending.host, &mut [0; 1], RecvFlags::DONTWAIT);
    }
    if queue.signals > queue.queue.len() {
        let _ = rustix::net::recv(host, &mut [0; 1], RecvFlags::DONTWAIT);
        queue.signals -= 1;
    }
    Ok(Some((pending, options)))
}
