//! `bind`, `connect`, `listen`, `accept` and the names of sockets of the run's own network.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::rc::Rc;

use rustix::event::PollFlags;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{Shutdown, SocketType};

use super::{Outcome, credentials, descriptor, new_socket};
use crate::attributes::capability;
use crate::budget::Charge;
use crate::fs::files::AT_FDCWD;
use crate::fs::vfs::access::Denied;
use crate::fs::vfs::handle::{Handle, parent};
use crate::fs::vfs::resolve::{Last, Place, Target, resolve};
use crate::ipc::channels::Channel;
use crate::kernel::Kernel;
use crate::net::address::{Address, Family, destination, is_own, source_for};
use crate::net::connection;
use crate::net::options::{IPPROTO_IPV6, IPV6_V6ONLY, SO_RCVTIMEO};
use crate::net::socket::{End, Identity, PENDING, Role, Socket, host_pair};
use crate::syscalls::streams::wait_within;
use crate::syscalls::{Result, files, streams};

/// The lowest port that every user may have (`net.ipv4.ip_unprivileged_port_start`).
const FREE_PORTS: u16 = 1024;

/// Gives a socket an address.
pub(super) fn bind(k: &mut Kernel<'_>, socket: &Socket, name: &[u8]) -> Result {
    let wanted = Address::parse(socket.family, name)?.ok_or(Errno::AFNOSUPPORT)?;
    if socket.state.borrow().local.is_some() || !matches!(socket.state.borrow().role, Role::Idle) {
        return Err(Errno::INVAL);
    }
    let local = match wanted {
        Address::Inet(place) => Address::Inet(bind_port(k, socket, place)?),
        Address::Unnamed => k.system.network.choose_name(socket.kind)?,
        Address::Abstract(_) if k.system.network.named(&wanted, socket.kind).is_some() => return Err(Errno::ADDRINUSE),
        Address::Path(ref path) => {
            let node = make_node(k, path)?;
            socket.state.borrow_mut().node = Some(node);
            wanted
        }
        Address::Netlink { port: 0, groups } => Address::Netlink { port: k.process.pid, groups },
        Address::Abstract(_) | Address::Netlink { .. } => wanted,
    };
    socket.state.borrow_mut().local = Some(local);
    Ok(0)
}

/// Returns the address that a socket of the internet gets for the one that it wants.
fn bind_port(k: &mut Kernel<'_>, socket: &Socket, wanted: SocketAddr) -> Outcome<SocketAddr> {
    let only_six = socket.state.borrow().options.is_set(IPPROTO_IPV6, IPV6_V6ONLY);
    if socket.family == Family::Inet6 && wanted.is_ipv4() && only_six {
        return Err(Errno::INVAL);
    }
    if !is_own(wanted.ip()) && !wanted.ip().is_unspecified() {
        return Err(Errno::ADDRNOTAVAIL);
    }
    if wanted.port() == 0 {
        return k.system.network.choose_port(socket, wanted.ip());
    }
    if wanted.port() < FREE_PORTS && !k.process.attributes.capabilities.has(capability::NET_BIND_SERVICE) {
        return Err(Errno::ACCESS);
    }
    if k.system.network.is_free(socket, wanted) { Ok(wanted) } else { Err(Errno::ADDRINUSE) }
}

/// Gives a socket without an address the one from which it sends to `to`, and returns it.
pub(super) fn bind_for(k: &mut Kernel<'_>, socket: &Socket, to: IpAddr) -> Outcome<SocketAddr> {
    let local = socket.state.borrow().local.as_ref().and_then(Address::inet);
    let place = match local {
        Some(place) => place,
        None => {
            let unspecified = socket.family.unspecified().inet().ok_or(Errno::INVAL)?;
            let place = k.system.network.choose_port(socket, unspecified.ip())?;
            socket.state.borrow_mut().local = Some(Address::Inet(place));
            place
        }
    };
    let host = if place.ip().is_unspecified() { source_for(to) } else { place.ip() };
    Ok(SocketAddr::new(host, place.port()))
}

/// Creates the file that is the name of a local socket.
fn make_node(k: &mut Kernel<'_>, name: &[u8]) -> Outcome<Identity> {
    let place = match resolve(k, AT_FDCWD, name, Last::Keep)? {
        Target::Host(place @ Place { kind: None, .. }) => place,
        Target::Host(_) | Target::Simulated(_) | Target::Descriptor(_) | Target::DescriptorOf(..) => {
            return Err(Errno::ADDRINUSE);
        }
    };
    let policy = &k.process.files.view.policy;
    policy.check(policy.may_change(&place.path), Denied::Write, &place.path)?;
    files::add_name(k, &place.path)?;
    let (folder, name) = parent(&k.process.files.view.policy, &place.path)?;
    let mode = Mode::from_raw_mode(0o777);
    k.process.files.umask.making(|| rustix::fs::mknodat(&folder, name, FileType::Socket, mode, 0))?;
    let stat = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let node = (stat.st_dev, stat.st_ino);
    k.system.network.add_node(node)?;
    Ok(node)
}

/// Finds the local socket with a name.
///
/// # Errors
/// `ECONNREFUSED` when there is none; `ENOENT` when there is no file with this name; `EACCES` for sockets of other programs.
pub(super) fn find_local(k: &Kernel<'_>, name: &Address, kind: SocketType) -> Outcome<Rc<Channel>> {
    let path = match name {
        Address::Abstract(_) => return k.system.network.named(name, kind).ok_or(Errno::CONNREFUSED),
        Address::Path(path) => path,
        Address::Unnamed | Address::Inet(_) | Address::Netlink { .. } => return Err(Errno::INVAL),
    };
    let place = match resolve(k, AT_FDCWD, path, Last::Follow)? {
        Target::Host(Place { kind: None, .. }) => return Err(Errno::NOENT),
        Target::Host(place) => place,
        Target::Simulated(_) | Target::Descriptor(_) | Target::DescriptorOf(..) => return Err(Errno::CONNREFUSED),
    };
    let policy = &k.process.files.view.policy;
    let handle = Handle::new(policy, &place.path)?;
    if handle.kind() != FileType::Socket {
        return Err(Errno::CONNREFUSED);
    }
    let node = (handle.stat().st_dev, handle.stat().st_ino);
    if !k.system.network.knows_node(node) {
        policy.check_network()?;
    }
    k.system.network.at_node(node).ok_or(Errno::CONNREFUSED)
}

/// Returns where a packet goes that the program sends to `to`; what it would send out of the machine is counted as refused.
pub(super) fn route(k: &Kernel<'_>, to: SocketAddr) -> Outcome<SocketAddr> {
    destination(to).inspect_err(|_| {
        let _ = k.process.files.view.policy.check_network();
    })
}

/// Returns whether a descriptor is non-blocking.
fn is_nonblocking(k: &Kernel<'_>, fd: i32) -> Outcome<bool> {
    Ok(rustix::fs::fcntl_getfl(k.process.files.host(fd)?)?.contains(OFlags::NONBLOCK))
}

pub(super) fn connect(k: &mut Kernel<'_>, fd: i32, socket: &Socket, name: &[u8]) -> Result {
    if socket.is_datagram() {
        let to = Address::parse(socket.family, name)?;
        return connect_datagram(k, socket, to);
    }
    if std::mem::take(&mut socket.state.borrow_mut().refused) {
        renew(k, fd, socket)?;
        // Linux `inet_stream_connect`: the call that follows a refused one connects nothing.
        return socket.take_error().and(Err(Errno::CONNABORTED));
    }
    if !may_connect(socket)? {
        return Ok(0);
    }
    let to = Address::parse(socket.family, name)?.ok_or(Errno::AFNOSUPPORT)?;
    connect_stream(k, fd, socket, to)
}

/// Sets the address to which a datagram socket sends and from which it receives; without one, removes it.
fn connect_datagram(k: &mut Kernel<'_>, socket: &Socket, to: Option<Address>) -> Result {
    let Some(to) = to else {
        let mut state = socket.state.borrow_mut();
        (state.peer, state.target) = (None, None);
        return Ok(0);
    };
    match &to {
        Address::Inet(place) => {
            let place = route(k, *place)?;
            let local = bind_for(k, socket, place.ip())?;
            let mut state = socket.state.borrow_mut();
            (state.local, state.peer) = (Some(Address::Inet(local)), Some(Address::Inet(place)));
        }
        Address::Netlink { .. } => socket.state.borrow_mut().peer = Some(to),
        Address::Unnamed | Address::Abstract(_) | Address::Path(_) => {
            let target = find_local(k, &to, socket.kind)?;
            if target.socket.as_ref().is_none_or(|target| target.kind != socket.kind) {
                return Err(Errno::PROTOTYPE);
            }
            let mut state = socket.state.borrow_mut();
            (state.peer, state.target) = (Some(to), Some(Rc::downgrade(&target)));
        }
    }
    Ok(0)
}

/// Gives a socket whose connection was refused a new host socket, with which it can connect again.
fn renew(k: &mut Kernel<'_>, fd: i32, socket: &Socket) -> Outcome<()> {
    let (host, wire) = host_pair(socket.kind, is_nonblocking(k, fd)?)?;
    check_host(&wire)?;
    let channel = k.process.files.kept_channel(fd).ok_or(Errno::BADF)?;
    k.replace_host(&channel, host.as_fd())?;
    let end = End { pair: k.system.network.new_id(), side: 0 };
    let mut state = socket.state.borrow_mut();
    (state.wire, state.end) = (Some(wire), end);
    Ok(())
}

/// Checks that a stream can be connected. `false`: the result of an earlier, non-blocking call was not known yet, and is success.
fn may_connect(socket: &Socket) -> Outcome<bool> {
    socket.take_error()?;
    let mut state = socket.state.borrow_mut();
    let unreported = std::mem::take(&mut state.unreported);
    match state.role {
        Role::Idle => Ok(true),
        Role::Connected if unreported => Ok(false),
        Role::Connected | Role::Pair => Err(Errno::ISCONN),
        Role::Listening(_) if socket.family == Family::Unix => Err(Errno::INVAL),
        Role::Listening(_) => Err(Errno::ISCONN),
    }
}

fn connect_stream(k: &mut Kernel<'_>, fd: i32, socket: &Socket, to: Address) -> Result {
    socket.state.borrow_mut().owner = credentials(k);
    match to {
        Address::Inet(place) => connect_tcp(k, fd, socket, place),
        to => connect_local(k, fd, socket, to),
    }
}

fn connect_tcp(k: &mut Kernel<'_>, fd: i32, socket: &Socket, to: SocketAddr) -> Result {
    let to = route(k, to)?;
    let from = bind_for(k, socket, to.ip())?;
    let nonblocking = is_nonblocking(k, fd)?;
    let listener = k.system.network.listener(to);
    let Some(listener) = listener.as_ref().and_then(|channel| channel.socket.as_ref()) else {
        // As on Linux, a non-blocking socket learns later that nobody listens.
        if nonblocking {
            connection::refuse(socket, k.process.files.host(fd)?);
            return Err(Errno::INPROGRESS);
        }
        return Err(Errno::CONNREFUSED);
    };
    if !nonblocking && !connection::has_room(listener) {
        streams::later(k);
        return Ok(0);
    }
    let charge = pending_charge(k)?;
    let (from, to) = (Address::Inet(from), Address::Inet(to));
    connection::connect((socket, k.process.files.host(fd)?), from, listener, to, charge)?;
    socket.state.borrow_mut().unreported = nonblocking;
    if nonblocking { Err(Errno::INPROGRESS) } else { Ok(0) }
}

/// Charges for a connection that waits to be accepted.
fn pending_charge(k: &mut Kernel<'_>) -> Outcome<Charge> {
    k.afford(PENDING)?;
    Ok(k.system.budget.charge(PENDING))
}

fn connect_local(k: &mut Kernel<'_>, fd: i32, socket: &Socket, to: Address) -> Result {
    let channel = find_local(k, &to, socket.kind)?;
    let listener = channel.socket.as_ref().ok_or(Errno::CONNREFUSED)?;
    if listener.kind != socket.kind {
        return Err(Errno::PROTOTYPE);
    }
    if !matches!(listener.state.borrow().role, Role::Listening(_)) {
        return Err(Errno::CONNREFUSED);
    }
    if !connection::has_room(listener) {
        if is_nonblocking(k, fd)? {
            return Err(Errno::AGAIN);
        }
        streams::later(k);
        return Ok(0);
    }
    let from = socket.state.borrow().local.clone().unwrap_or(Address::Unnamed);
    let charge = pending_charge(k)?;
    connection::connect((socket, k.process.files.host(fd)?), from, listener, to, charge)?;
    Ok(0)
}

pub(super) fn listen(k: &mut Kernel<'_>, socket: &Socket, backlog: u64) -> Result {
    if socket.is_datagram() {
        return Err(Errno::OPNOTSUPP);
    }
    if socket.is_connected() {
        return Err(Errno::INVAL);
    }
    if socket.state.borrow().local.is_none() {
        let unspecified = socket.family.unspecified().inet().ok_or(Errno::INVAL)?;
        let place = k.system.network.choose_port(socket, unspecified.ip())?;
        socket.state.borrow_mut().local = Some(Address::Inet(place));
    }
    connection::listen(socket, backlog, credentials(k));
    Ok(0)
}

/// `accept4`: returns the new descriptor and the address of the other side; `None`: the thread waits.
pub(super) fn accept(
    k: &mut Kernel<'_>,
    fd: i32,
    socket: &Socket,
    kind: (bool, bool),
) -> Outcome<Option<(i32, Vec<u8>)>> {
    if socket.is_datagram() {
        return Err(Errno::OPNOTSUPP);
    }
    k.process.files.check_free(files::limit(k))?;
    let Some((pending, options)) = connection::accept(socket, k.process.files.host(fd)?)? else {
        let limit_ns = socket.state.borrow().options.time_limit_ns(SO_RCVTIMEO);
        wait_within(k, fd, PollFlags::IN, 0, limit_ns)?;
        return Ok(None);
    };
    let (nonblocking, close_on_exec) = kind;
    let flags = if nonblocking { OFlags::NONBLOCK } else { OFlags::empty() };
    rustix::fs::fcntl_setfl(&pending.host, flags)?;
    let peer = pending.peer.bytes(socket.family);
    let new = Socket::new(socket.family, socket.kind, socket.protocol, credentials(k));
    {
        let mut state = new.state.borrow_mut();
        (state.local, state.peer) = (Some(pending.local), Some(pending.peer));
        (state.role, state.options) = (Role::Connected, options);
        state.end = pending.end;
        if socket.family == Family::Unix {
            state.link = Some((pending.link, 1));
        }
    }
    let channel = new_socket(k, pending.host.as_fd(), new)?;
    Ok(Some((descriptor(k, pending.host, channel, close_on_exec)?, peer)))
}

/// Returns the address of the other side of a connection.
pub(super) fn peer(socket: &Socket) -> Outcome<Vec<u8>> {
    let state = socket.state.borrow();
    match (&state.peer, &state.role) {
        (_, Role::Listening(_)) => Err(Errno::NOTCONN),
        (Some(peer), _) => Ok(peer.bytes(socket.family)),
        (None, Role::Pair | Role::Connected) => Ok(Address::Unnamed.bytes(Family::Unix)),
        (None, Role::Idle) if socket.family == Family::Netlink => {
            Ok(socket.family.unspecified().bytes(Family::Netlink))
        }
        (None, Role::Idle) => Err(Errno::NOTCONN),
    }
}

pub(super) fn shutdown(k: &Kernel<'_>, fd: i32, socket: &Socket, how: Shutdown) -> Result {
    let host = k.process.files.host(fd)?;
    let mut state = socket.state.borrow_mut();
    match state.role {
        // Waiting calls of `accept` end, and so do connections that wait.
        Role::Listening(_) => {
            if !matches!(how, Shutdown::Write) {
                state.role = Role::Idle;
                rustix::net::shutdown(host, Shutdown::Read)?;
            }
            return Ok(0);
        }
        Role::Idle if state.peer.is_none() => return Err(Errno::NOTCONN),
        Role::Idle | Role::Connected | Role::Pair => {}
    }
    state.shut_for_writing |= !matches!(how, Shutdown::Read);
    if matches!(state.role, Role::Idle) && matches!(how, Shutdown::Write) {
        // What a datagram socket sends does not pass through its own end.
        return Ok(0);
    }
    rustix::net::shutdown(host, if matches!(state.role, Role::Idle) { Shutdown::Read } else { how })?;
    Ok(0)
}

/// Returns whether a socket of this kind has connections.
pub(super) fn has_connections(kind: SocketType) -> bool {
    kind == SocketType::STREAM || kind == SocketType::SEQPACKET
}

/// Checks that one more host descriptor may be kept.
pub(super) fn check_host(host: &std::os::fd::OwnedFd) -> Outcome<()> {
    let free = (host.as_raw_fd() as u64) < crate::budget::host_descriptors();
    if free { Ok(()) } else { Err(Errno::MFILE) }
}
