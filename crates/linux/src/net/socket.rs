//! The state of one socket of the run's own network.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::rc::{Rc, Weak};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

use super::address::{Address, Family};
use super::options::Options;
use crate::budget::Charge;
use crate::ipc::channels::Channel;

/// Device and inode number of the file that is a local socket's name.
pub(crate) type Identity = (u64, u64);

/// Requested size of the buffers of each host socket in bytes, of which Linux makes twice as much: its default for every socket,
/// whatever the host's is.
const BUFFER: usize = 106_496;

/// Cost of a connection that waits to be accepted.
pub(crate) const PENDING: u64 = 2 * BUFFER as u64;

/// The process at one end of a connection, as the other end sees it (`struct ucred`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable, Serialize, Deserialize)]
#[repr(C)]
pub(crate) struct Credentials {
    /// Number of the process; 0: unknown.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Credentials {
    /// Those of data sent before anyone asked for credentials (`overflowuid`, unix(7)).
    pub(crate) const UNKNOWN: Credentials = Credentials { pid: 0, uid: 65_534, gid: 65_534 };
}

/// What the two ends of a connection between local sockets know of each other. Each end has a side, 0 or 1.
#[derive(Debug)]
pub(crate) struct Link {
    /// The processes at both ends.
    pub credentials: [Credentials; 2],
    /// Whether each end wants the sender's credentials with what it receives (`SO_PASSCRED`).
    pub wants_credentials: [Cell<bool>; 2],
}

/// One end of a pair of host sockets: the number of the pair, unique in the run, and the side, 0 or 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct End {
    /// The pair's number; 0: none yet.
    pub pair: u64,
    /// 0: the end of the socket that was created with the pair; 1: its wire, or the other socket of `socketpair`.
    pub side: u8,
}

impl End {
    /// Returns the other end.
    pub(crate) fn other(self) -> End {
        End { side: 1 - self.side, ..self }
    }
}

/// A connection that waits to be accepted.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The end of the socket that `accept` will create.
    pub host: OwnedFd,
    /// Which end that is.
    pub end: End,
    /// The address to which the other socket has connected.
    pub local: Address,
    /// The address of the other socket.
    pub peer: Address,
    /// What both ends know of each other.
    pub link: Rc<Link>,
    /// Whether its first byte is not the other socket's.
    pub marked: bool,
    /// The cost of the data that it may hold, also when the other socket has been closed.
    pub _charge: Charge,
}

/// What a stream or datagram socket is doing.
#[derive(Debug)]
pub(crate) enum Role {
    /// It is not connected.
    Idle,
    /// It waits for connections.
    Listening(Listener),
    /// It is connected. Datagram sockets keep their wire nevertheless.
    Connected,
    /// It was made by `socketpair`: the other end belongs to the program, too.
    Pair,
}

/// The state of a listening socket.
#[derive(Debug, Default)]
pub(crate) struct Listener {
    /// Maximum number of waiting connections.
    pub backlog: usize,
    /// The waiting connections, the oldest first.
    pub queue: VecDeque<Pending>,
    /// Number of bytes in the wire.
    pub signals: usize,
}

/// The part of a socket's state that changes.
#[derive(Debug)]
pub(crate) struct State {
    /// Its address, if it has one.
    pub local: Option<Address>,
    /// The file that is its name.
    pub node: Option<Identity>,
    /// The address of the socket it is connected to.
    pub peer: Option<Address>,
    /// The local socket that it sends datagrams to.
    pub target: Option<Weak<Channel>>,
    /// The other end of its host socket, while the simulator has it.
    pub wire: Option<OwnedFd>,
    /// What it is doing.
    pub role: Role,
    /// Which end its host socket is.
    pub end: End,
    /// It has sent an empty message over a connection.
    pub sent_empty: bool,
    /// The error that the next call reports (`SO_ERROR`).
    pub error: Option<Errno>,
    /// A non-blocking `connect` has a result that no call has reported yet.
    pub unreported: bool,
    /// A non-blocking `connect` was refused, which the next `connect` only reports.
    pub refused: bool,
    /// `shutdown` has ended sending.
    pub shut_for_writing: bool,
    /// Its options.
    pub options: Options,
    /// What it and the other end know of each other, and its side; only of local sockets.
    pub link: Option<(Rc<Link>, usize)>,
    /// The process that created it, or called `listen`.
    pub owner: Credentials,
}

/// A socket. It exists as long as a descriptor refers to it.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Its number, unique in the run, in the order of creation.
    pub id: u64,
    /// Its address family.
    pub family: Family,
    /// Stream, datagram, or sequenced packets.
    pub kind: SocketType,
    /// Its protocol (`IPPROTO_…`, or that of `AF_NETLINK`), 0 for local sockets.
    pub protocol: u32,
    /// What changes.
    pub state: RefCell<State>,
}

impl Socket {
    /// Returns a socket without address and connection.
    pub(crate) fn new(family: Family, kind: SocketType, protocol: u32, owner: Credentials) -> Socket {
        let state = State {
            local: None,
            node: None,
            peer: None,
            target: None,
            wire: None,
            role: Role::Idle,
            end: End::default(),
            sent_empty: false,
            error: None,
            unreported: false,
            refused: false,
            shut_for_writing: false,
            options: Options::default(),
            link: None,
            owner,
        };
        Socket { id: 0, family, kind, protocol, state: RefCell::new(state) }
    }

    /// Returns whether it sends messages without a connection.
    pub(crate) fn is_datagram(&self) -> bool {
        self.kind == SocketType::DGRAM || self.kind == SocketType::RAW
    }

    /// Returns whether it is a datagram socket that may have an address: its data come with the sender's in front.
    pub(crate) fn is_routed(&self) -> bool {
        self.is_datagram() && self.family != Family::Netlink && !matches!(self.state.borrow().role, Role::Pair)
    }

    /// Returns its address; that of no socket if it has none.
    pub(crate) fn local(&self) -> Address {
        self.state.borrow().local.clone().unwrap_or_else(|| self.family.unspecified())
    }

    /// Takes the error that the next call must report.
    ///
    /// # Errors
    /// That error.
    pub(crate) fn take_error(&self) -> Result<(), Errno> {
        let mut state = self.state.borrow_mut();
        state.unreported &= state.error.is_none();
        state.error.take().map_or(Ok(()), Err)
    }

    /// Returns whether the next call must report an error that no data in the host's socket show.
    pub(crate) fn has_error(&self) -> bool {
        self.state.borrow().error.is_some()
    }

    /// Returns whether credentials must accompany what it sends, because an end of its connection wants them.
    pub(crate) fn sends_credentials(&self) -> bool {
        let wants = |(link, _): &(Rc<Link>, usize)| link.wants_credentials.iter().any(Cell::get);
        self.state.borrow().link.as_ref().is_some_and(wants)
    }

    /// Returns the process at the other end of its connection.
    pub(crate) fn peer_credentials(&self) -> Option<Credentials> {
        self.state.borrow().link.as_ref().map(|(link, side)| link.credentials[1 - side])
    }

    /// Returns whether it is connected.
    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.state.borrow().role, Role::Connected | Role::Pair)
    }
}

/// Returns both ends of a new pair of host sockets for a socket of this kind.
///
/// # Errors
/// The host's.
pub(crate) fn host_pair(kind: SocketType, nonblocking: bool) -> Result<(OwnedFd, OwnedFd), Errno> {
    let kind = if kind == SocketType::RAW { SocketType::DGRAM } else { kind };
    let flags = if nonblocking { SocketFlags::NONBLOCK } else { SocketFlags::empty() };
    let (own, wire) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags | SocketFlags::CLOEXEC, None)?;
    for end in [&own, &wire] {
        rustix::net::sockopt::set_socket_send_buffer_size(end, BUFFER)?;
    }
    Ok((own, wire))
}
