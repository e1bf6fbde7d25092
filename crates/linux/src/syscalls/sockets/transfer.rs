//! Sending and receiving.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags, SocketType};

use super::names::{bind_for, find_local, has_connections, route};
use super::{Outcome, give_name, host, kernel_name, own, read_name};
use crate::ipc::channels::Channel;
use crate::kernel::Kernel;
use crate::net::address::{Address, Family};
use crate::net::datagram::{HEADER, UDP_MAX, header, sender};
use crate::net::netlink;
use crate::net::options::{SO_PASSCRED, SO_RCVTIMEO, SO_SNDTIMEO, SOL_SOCKET};
use crate::net::rights::{self, Delivered, RIGHTS_MAX, Shipment};
use crate::net::socket::{Credentials, Role, Socket};
use crate::syscalls::streams::{check_writable, deliver_until, gather, scatter, wait_within};
use crate::syscalls::transfer::{CHUNK, MAX_TRANSFER, Piece, write_error};
use crate::syscalls::{Args, Result};

/// Maximum bytes of a message to a local socket or the kernel: more than its buffer holds.
const MESSAGE_MAX: u64 = 1 << 18;

/// `MSG_OOB`: urgent data, which the own network does not have.
const OUT_OF_BAND: u32 = 1;
/// `MSG_ERRQUEUE`: errors with their packets, of which there are none.
const ERROR_QUEUE: u32 = 0x2000;

/// What accompanies data that a program sends.
#[derive(Clone, Debug, Default)]
pub(super) struct Attached {
    /// Descriptors (`SCM_RIGHTS`).
    pub rights: Vec<i32>,
    /// The sender, if the program names it (`SCM_CREDENTIALS`).
    pub credentials: Option<Credentials>,
}

impl Attached {
    fn is_empty(&self) -> bool {
        self.rights.is_empty() && self.credentials.is_none()
    }
}

/// The result of receiving.
#[derive(Default)]
pub(super) struct Received {
    /// Bytes; for a truncated message possibly more than there was room for.
    pub bytes: u64,
    /// The sender's address.
    pub from: Option<Vec<u8>>,
    /// Whether a message was longer than there was room for.
    pub truncated: bool,
    /// Descriptors that came with the data.
    pub rights: Vec<Delivered>,
    /// The sender, if the socket wants to know it.
    pub credentials: Option<Credentials>,
}

impl Received {
    /// Returns a result of this many bytes and nothing else.
    pub(super) fn of(bytes: u64) -> Received {
        Received { bytes, ..Received::default() }
    }
}

/// Sends the pieces to `to`, the bytes of an address, or to the other side of the connection.
pub(super) fn send(
    k: &mut Kernel<'_>,
    fd: i32,
    pieces: &[Piece],
    flags: SendFlags,
    to: Option<&[u8]>,
    attached: &Attached,
) -> Result {
    let Some(channel) = own(k, fd)? else {
        // Descriptors are passed only between processes of the run.
        return if attached.is_empty() { host::send(k, fd, pieces, flags, to) } else { Err(Errno::OPNOTSUPP) };
    };
    let socket = channel.socket.as_ref().ok_or(Errno::NOTSOCK)?;
    if flags.bits() & OUT_OF_BAND != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    socket.take_error()?;
    let to = to.map(|name| Address::parse(socket.family, name)).transpose()?.flatten();
    let result = if has_connections(socket.kind) || matches!(socket.state.borrow().role, Role::Pair) {
        send_connected(k, fd, socket, pieces, flags, to.is_some(), attached)
    } else {
        send_datagram(k, fd, &channel, pieces, flags, to.as_ref(), attached)
    };
    match result {
        Err(Errno::PIPE) if socket.kind == SocketType::STREAM && !flags.contains(SendFlags::NOSIGNAL) => {
            Err(write_error(k, Errno::PIPE))
        }
        result => result,
    }
}

/// Checks that a socket with connections may send.
fn check_connected(socket: &Socket, addressed: bool) -> Outcome<()> {
    let connected = socket.is_connected();
    match socket.family {
        Family::Unix if addressed && socket.kind == SocketType::STREAM => {
            Err(if connected { Errno::ISCONN } else { Errno::OPNOTSUPP })
        }
        _ if connected => Ok(()),
        Family::Unix => Err(Errno::NOTCONN),
        _ => Err(Errno::PIPE),
    }
}

fn send_connected(
    k: &mut Kernel<'_>,
    fd: i32,
    socket: &Socket,
    pieces: &[Piece],
    flags: SendFlags,
    addressed: bool,
    attached: &Attached,
) -> Result {
    check_connected(socket, addressed)?;
    let is_stream = socket.kind == SocketType::STREAM;
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    if !is_stream && total > MESSAGE_MAX {
        return Err(Errno::MSGSIZE);
    }
    socket.state.borrow_mut().sent_empty |= !is_stream && total == 0;
    let limit_ns = socket.state.borrow().options.time_limit_ns(SO_SNDTIMEO);
    let waits = !flags.contains(SendFlags::DONTWAIT);
    let most = if is_stream { CHUNK } else { total as usize };
    deliver_until(k, fd, total, waits, limit_ns, |k, done| {
        let bytes = gather(k, pieces, done, most)?;
        let first = if done == 0 { attached } else { &Attached::default() };
        let shipment = shipment(k, socket, first)?;
        give(k, &[&bytes], shipment, Give::Descriptor(fd))
    })
}

/// Prepares what the host must carry with data of this socket.
fn shipment(k: &mut Kernel<'_>, socket: &Socket, attached: &Attached) -> Outcome<Option<Shipment>> {
    let credentials = match attached.credentials {
        Some(credentials) => Some(credentials),
        None if socket.family == Family::Unix && (!attached.rights.is_empty() || socket.sends_credentials()) => {
            Some(super::credentials(k))
        }
        None => None,
    };
    if attached.rights.is_empty() && credentials.is_none() {
        return Ok(None);
    }
    if attached.rights.len() > RIGHTS_MAX {
        return Err(Errno::INVAL);
    }
    let limit = super::limit(k) as usize;
    let mut files = Vec::new();
    for &fd in &attached.rights {
        let channel = k.process.files.kept_channel(fd);
        files.push((k.process.files.second(fd)?, channel));
    }
    if k.system.network.flight.count() + files.len() > limit {
        return Err(Errno::TOOMANYREFS);
    }
    k.afford(1 << 16)?;
    k.system.network.flight.prepare(files, credentials, &k.system.budget).map(Some)
}

/// Where data go.
enum Give<'a> {
    /// To the other end of this descriptor's host socket.
    Descriptor(i32),
    /// Into the wire of another socket.
    Wire(BorrowedFd<'a>),
}

/// Gives bytes to the host, with what accompanies them. `EAGAIN`: there is no room.
fn give(k: &mut Kernel<'_>, parts: &[&[u8]], shipment: Option<Shipment>, to: Give<'_>) -> Outcome<usize> {
    let from = match to {
        Give::Descriptor(fd) => k.process.files.host(fd)?,
        Give::Wire(wire) => wire,
    };
    let result = rights::send(from, parts, shipment.as_ref());
    if let (Err(_), Some(shipment)) = (&result, &shipment) {
        k.system.network.flight.cancel(shipment);
    }
    result
}

fn send_datagram(
    k: &mut Kernel<'_>,
    fd: i32,
    channel: &Rc<Channel>,
    pieces: &[Piece],
    flags: SendFlags,
    to: Option<&Address>,
    attached: &Attached,
) -> Result {
    let socket = channel.socket.as_ref().ok_or(Errno::NOTSOCK)?;
    if socket.state.borrow().shut_for_writing {
        return Err(Errno::PIPE);
    }
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    let most = if socket.family.has_ports() { UDP_MAX } else { MESSAGE_MAX };
    if total > most {
        return Err(Errno::MSGSIZE);
    }
    let waits = !flags.contains(SendFlags::DONTWAIT);
    deliver_until(k, fd, total, waits, None, |k, _| {
        let bytes = gather(k, pieces, 0, total as usize)?;
        match socket.family {
            Family::Netlink => ask_kernel(socket, &bytes, k.process.pid),
            Family::Unix => send_local(k, socket, &bytes, to, attached)?,
            Family::Inet | Family::Inet6 => send_udp(k, socket, &bytes, to)?,
        }
        Ok(bytes.len())
    })
}

/// Sends a datagram of UDP. It is lost when nobody receives it, or the receiver has no room.
fn send_udp(k: &mut Kernel<'_>, socket: &Socket, bytes: &[u8], to: Option<&Address>) -> Outcome<()> {
    let peer = socket.state.borrow().peer.as_ref().and_then(Address::inet);
    let to = to.and_then(Address::inet).or(peer).ok_or(Errno::DESTADDRREQ)?;
    let to = route(k, to)?;
    if to.port() == 0 {
        return Err(Errno::INVAL);
    }
    let from = bind_for(k, socket, to.ip())?;
    let Some(receiver) = k.system.network.receiver(to, from) else {
        // The packet that says so reaches a connected socket only.
        if peer == Some(to) {
            socket.state.borrow_mut().error = Some(Errno::CONNREFUSED);
        }
        return Ok(());
    };
    let Some(receiver) = receiver.socket.as_ref() else { return Ok(()) };
    let header = header(&Address::Inet(from), receiver.family);
    let state = receiver.state.borrow();
    if let Some(wire) = &state.wire {
        let _ = give(k, &[&header, bytes], None, Give::Wire(std::os::fd::AsFd::as_fd(wire)));
    }
    Ok(())
}

/// Sends a datagram to a local socket. `EAGAIN`: it has no room.
fn send_local(
    k: &mut Kernel<'_>,
    socket: &Socket,
    bytes: &[u8],
    to: Option<&Address>,
    attached: &Attached,
) -> Outcome<()> {
    let target = match to {
        Some(name) => find_local(k, name, socket.kind)?,
        None => {
            let target = socket.state.borrow().target.clone().ok_or(Errno::NOTCONN)?;
            Weak::upgrade(&target).ok_or(Errno::CONNREFUSED)?
        }
    };
    let receiver = target.socket.as_ref().ok_or(Errno::CONNREFUSED)?;
    if receiver.kind != socket.kind {
        return Err(Errno::PROTOTYPE);
    }
    let wants = receiver.state.borrow().options.is_set(SOL_SOCKET, SO_PASSCRED);
    let mut attached = attached.clone();
    if wants && attached.credentials.is_none() {
        attached.credentials = Some(super::credentials(k));
    }
    let shipment = shipment(k, socket, &attached)?;
    let header = header(&socket.local(), Family::Unix);
    let state = receiver.state.borrow();
    // The ends of a pair can only be reached through each other.
    let Some(wire) = &state.wire else { return Err(Errno::CONNREFUSED) };
    give(k, &[&header, bytes], shipment, Give::Wire(std::os::fd::AsFd::as_fd(wire))).map(|_| ())
}

/// Puts the kernel's answers to a message of `AF_NETLINK` into the socket's wire, as long as there is room.
fn ask_kernel(socket: &Socket, bytes: &[u8], pid: u32) {
    let mut state = socket.state.borrow_mut();
    let port = match state.local.get_or_insert(Address::Netlink { port: pid, groups: 0 }) {
        Address::Netlink { port, .. } => *port,
        _ => pid,
    };
    let Some(wire) = &state.wire else { return };
    for answer in netlink::answers(bytes, port) {
        let _ = rustix::net::send(wire, &answer, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    }
}

/// Sends bytes without waiting. `EAGAIN`: there is no room.
pub(in crate::syscalls) fn send_now(k: &mut Kernel<'_>, fd: i32, bytes: &[u8]) -> Outcome<usize> {
    let Some(channel) = own(k, fd)? else {
        return rustix::net::send(k.process.files.host(fd)?, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    };
    let socket = channel.socket.as_ref().ok_or(Errno::NOTSOCK)?;
    if socket.is_routed() {
        if bytes.len() as u64 > UDP_MAX {
            return Err(Errno::MSGSIZE);
        }
        match socket.family {
            Family::Unix => send_local(k, socket, bytes, None, &Attached::default())?,
            _ => send_udp(k, socket, bytes, None)?,
        }
        return Ok(bytes.len());
    }
    check_connected(socket, false)?;
    socket.state.borrow_mut().sent_empty |= socket.kind != SocketType::STREAM && bytes.is_empty();
    let shipment = shipment(k, socket, &Attached::default())?;
    give(k, &[bytes], shipment, Give::Descriptor(fd))
}

/// Receives into the pieces what is available or, with `MSG_WAITALL`, until they are full. `None`: the thread waits.
pub(super) fn receive(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece], flags: RecvFlags) -> Outcome<Option<Received>> {
    check_writable(k, pieces)?;
    let Some(channel) = own(k, fd)? else { return host::receive(k, fd, pieces, flags) };
    let socket = channel.socket.as_ref().ok_or(Errno::NOTSOCK)?;
    match flags.bits() {
        bits if bits & OUT_OF_BAND != 0 => return Err(Errno::INVAL),
        bits if bits & ERROR_QUEUE != 0 => return Err(Errno::AGAIN),
        _ => socket.take_error()?,
    }
    if has_connections(socket.kind) && !socket.is_connected() {
        return Err(if socket.family == Family::Unix { Errno::INVAL } else { Errno::NOTCONN });
    }
    receive_own(k, fd, socket, pieces, flags)
}

fn receive_own(
    k: &mut Kernel<'_>,
    fd: i32,
    socket: &Socket,
    pieces: &[Piece],
    flags: RecvFlags,
) -> Outcome<Option<Received>> {
    let fills =
        socket.kind == SocketType::STREAM && flags.contains(RecvFlags::WAITALL) && !flags.contains(RecvFlags::PEEK);
    let limit_ns = socket.state.borrow().options.time_limit_ns(SO_RCVTIMEO);
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    let mut done = k.thread.resumed.map_or(0, |resumed| resumed.progress);
    loop {
        let error = match take(k, fd, socket, pieces, done, flags) {
            Ok(mut received) => {
                let got = received.bytes;
                done += got;
                let alone = received.rights.is_empty() && received.credentials.is_none();
                if fills && got > 0 && done < total && alone {
                    continue;
                }
                received.bytes = done;
                return Ok(Some(received));
            }
            Err(Errno::AGAIN) if !flags.contains(RecvFlags::DONTWAIT) => {
                match wait_within(k, fd, PollFlags::IN, done, limit_ns) {
                    Ok(()) => return Ok(None),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        return if done > 0 { Ok(Some(Received::of(done))) } else { Err(error) };
    }
}

/// Takes what is in the host's socket, without waiting, into the pieces from `done` bytes on.
fn take(
    k: &mut Kernel<'_>,
    fd: i32,
    socket: &Socket,
    pieces: &[Piece],
    done: u64,
    flags: RecvFlags,
) -> Outcome<Received> {
    let total: u64 = pieces.iter().map(|piece| piece.len).sum();
    let routed = socket.is_routed();
    let mut head = [0; HEADER];
    let mut bytes = vec![0; total.saturating_sub(done).min(CHUNK as u64) as usize];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RIGHTS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let host_flags = (flags & (RecvFlags::PEEK | RecvFlags::TRUNC)) | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(&mut bytes)];
    let parts = if routed { &mut parts[..] } else { &mut parts[1..] };
    let message = rustix::net::recvmsg(k.process.files.host(fd)?, parts, &mut control, host_flags)?;
    let mut carried: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            carried.extend(files);
        }
    }
    // A message of nothing at all is the end.
    let len = if routed { message.bytes.saturating_sub(HEADER) } else { message.bytes };
    let (rights, credentials) = k.system.network.flight.open(carried, flags.contains(RecvFlags::PEEK))?;
    scatter(k, pieces, done, &bytes[..len.min(bytes.len())])?;
    k.copied(fd, len.min(bytes.len()) as u64);
    Ok(Received {
        bytes: len as u64,
        from: from(socket, &head, routed && message.bytes >= HEADER),
        truncated: message.flags.contains(ReturnFlags::TRUNC),
        rights,
        credentials,
    })
}

/// Returns the sender's address as the program sees it.
fn from(socket: &Socket, head: &[u8], has_header: bool) -> Option<Vec<u8>> {
    if has_header {
        return Some(sender(head));
    }
    match (socket.family, &socket.state.borrow().peer) {
        (Family::Netlink, _) => Some(kernel_name()),
        (Family::Unix, Some(peer @ (Address::Abstract(_) | Address::Path(_)))) => Some(peer.bytes(Family::Unix)),
        _ => None,
    }
}

/// `write` and `writev` to a socket.
pub(in crate::syscalls) fn write(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    send(k, fd, pieces, SendFlags::empty(), None, &Attached::default())
}

/// `read` and `readv` from a socket. Descriptors that come with the data are lost.
pub(in crate::syscalls) fn read(k: &mut Kernel<'_>, fd: i32, pieces: &[Piece]) -> Result {
    Ok(receive(k, fd, pieces, RecvFlags::empty())?.map_or(0, |received| received.bytes))
}

pub(in crate::syscalls) fn sendto(k: &mut Kernel<'_>, a: &Args) -> Result {
    let to = if a[4] == 0 { None } else { Some(read_name(k, a[4], a[5])?) };
    let piece = Piece { addr: a[1], len: a[2].min(MAX_TRANSFER) };
    let flags = SendFlags::from_bits_retain(a[3] as u32);
    send(k, a[0] as i32, &[piece], flags, to.as_deref(), &Attached::default())
}

pub(in crate::syscalls) fn recvfrom(k: &mut Kernel<'_>, a: &Args) -> Result {
    let piece = Piece { addr: a[1], len: a[2].min(MAX_TRANSFER) };
    let flags = RecvFlags::from_bits_retain(a[3] as u32);
    let Some(received) = receive(k, a[0] as i32, &[piece], flags)? else { return Ok(0) };
    give_name(k, received.from.as_deref().unwrap_or_default(), a[4], a[5])?;
    Ok(received.bytes)
}
