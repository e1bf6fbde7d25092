//! All sockets of the run's own network: finding them by their addresses, and giving them addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::rc::{Rc, Weak};

use rustix::io::Errno;
use rustix::net::SocketType;
use serde::{Deserialize, Serialize};

use super::address::Address;
use super::connection::has_room;
use super::options::{IPPROTO_IPV6, IPV6_V6ONLY, SO_REUSEADDR, SO_REUSEPORT, SOL_SOCKET};
use super::rights::Flight;
use super::socket::{Identity, Role, Socket};
use crate::ipc::channels::Channel;

/// The ports that Linux chooses from (`net.ipv4.ip_local_port_range`).
const PORTS: std::ops::RangeInclusive<u16> = 32_768..=60_999;

/// Maximum number of files that are remembered as names of sockets.
const NODES: usize = 1 << 16;

/// The sockets of a run.
#[derive(Default)]
pub(crate) struct Network {
    /// By their numbers.
    sockets: BTreeMap<u64, Weak<Channel>>,
    last_id: u64,
    /// Number of entries at which closed ones are removed.
    full: usize,
    /// Number of ports that have been chosen.
    chosen_ports: u32,
    /// Number of names that have been chosen for local sockets.
    chosen_names: u32,
    /// Files that are or were names of sockets of the run.
    nodes: BTreeSet<Identity>,
    /// Descriptors on their way between processes.
    pub flight: Flight,
}

/// What a snapshot has of a network in addition to its sockets.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedNetwork {
    last_id: u64,
    chosen: (u32, u32),
    nodes: Vec<Identity>,
}

impl Network {
    /// Returns what a snapshot has of it in addition to its sockets.
    pub(crate) fn saved(&self) -> SavedNetwork {
        let nodes = self.nodes.iter().copied().collect();
        SavedNetwork { last_id: self.last_id, chosen: (self.chosen_ports, self.chosen_names), nodes }
    }

    /// Returns the same network without sockets; `now` returns what a file is now that is a socket's name.
    pub(crate) fn restored(saved: &SavedNetwork, now: impl Fn(Identity) -> Identity) -> Network {
        let (chosen_ports, chosen_names) = saved.chosen;
        let nodes = saved.nodes.iter().take(NODES).map(|&node| now(node)).collect();
        Network { last_id: saved.last_id, chosen_ports, chosen_names, nodes, ..Network::default() }
    }

    /// Returns the number for a new socket.
    pub(crate) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Adds a socket.
    pub(crate) fn add(&mut self, channel: &Rc<Channel>) {
        let Some(socket) = &channel.socket else { return };
        if self.sockets.len() >= self.full {
            self.sockets.retain(|_, channel| channel.strong_count() > 0);
            self.full = 2 * self.sockets.len() + 16;
        }
        self.sockets.insert(socket.id, Rc::downgrade(channel));
    }

    /// Iterates over the sockets that are open, in the order of their creation.
    pub(crate) fn open(&self) -> impl Iterator<Item = Rc<Channel>> {
        self.sockets.values().filter_map(Weak::upgrade)
    }

    /// Remembers a file as the name of a socket.
    ///
    /// # Errors
    /// `ENOSPC` when there are too many.
    pub(crate) fn add_node(&mut self, node: Identity) -> Result<(), Errno> {
        if self.nodes.len() >= NODES {
            return Err(Errno::NOSPC);
        }
        self.nodes.insert(node);
        Ok(())
    }

    /// Returns whether a file is or was the name of a socket of the run.
    pub(crate) fn knows_node(&self, node: Identity) -> bool {
        self.nodes.contains(&node)
    }

    /// Returns the local socket whose name is this file. The newest, because a file may have the number of a deleted one.
    pub(crate) fn at_node(&self, node: Identity) -> Option<Rc<Channel>> {
        self.find_last(|socket| socket.state.borrow().node == Some(node))
    }

    /// Returns the local socket of this kind with this abstract name: each kind has names of its own.
    pub(crate) fn named(&self, name: &Address, kind: SocketType) -> Option<Rc<Channel>> {
        self.find_last(|socket| {
            let state = socket.state.borrow();
            // Accepted sockets have the name of the listening one.
            let owns = !matches!(state.role, Role::Connected) || state.wire.is_some() || is_client(&state.link);
            owns && socket.kind == kind && state.local.as_ref() == Some(name)
        })
    }

    fn find_last(&self, wanted: impl Fn(&Socket) -> bool) -> Option<Rc<Channel>> {
        let mut channels = self.sockets.values().rev().filter_map(Weak::upgrade);
        channels.find(|channel| channel.socket.as_ref().is_some_and(&wanted))
    }

    /// Returns the listening socket for connections to `to`, with the most particular address. Among several with the same
    /// (`SO_REUSEPORT`), one with room and the shortest queue.
    pub(crate) fn listener(&self, to: SocketAddr) -> Option<Rc<Channel>> {
        let candidates = self.open().filter_map(|channel| {
            let socket = channel.socket.as_ref()?;
            let length = match &socket.state.borrow().role {
                Role::Listening(listener) => listener.queue.len(),
                _ => return None,
            };
            let rank = rank(socket, to).filter(|_| socket.family.has_ports())?;
            Some(((std::cmp::Reverse(rank), !has_room(socket), length), channel))
        });
        candidates.min_by_key(|(key, _)| *key).map(|(_, channel)| channel)
    }

    /// Returns the UDP socket that receives what `from` sends to `to`: a connected one first, then the most particular address.
    pub(crate) fn receiver(&self, to: SocketAddr, from: SocketAddr) -> Option<Rc<Channel>> {
        let candidates = self.open().filter_map(|channel| {
            let socket = channel.socket.as_ref()?;
            if !socket.is_datagram() {
                return None;
            }
            let rank = rank(socket, to)?;
            let peer = socket.state.borrow().peer.as_ref().and_then(Address::inet);
            (peer.is_none_or(|peer| peer == from)).then_some(((peer.is_some(), rank), channel))
        });
        candidates.max_by_key(|(key, _)| *key).map(|(_, channel)| channel)
    }

    /// Returns the connection or bound socket at `local` for `/proc/net`, and whether an address is free for `socket`.
    pub(crate) fn is_free(&self, socket: &Socket, place: SocketAddr) -> bool {
        self.open().all(|channel| {
            let Some(other) = &channel.socket else { return true };
            other.id == socket.id || !conflict(socket, place, other)
        })
    }

    /// Chooses a port at which `socket` can have the address `host`.
    ///
    /// # Errors
    /// `EADDRINUSE` when there is none.
    pub(crate) fn choose_port(&mut self, socket: &Socket, host: IpAddr) -> Result<SocketAddr, Errno> {
        let count = u32::from(PORTS.end() - PORTS.start()) + 1;
        for _ in 0..count {
            let port = PORTS.start() + (self.chosen_ports % count) as u16;
            self.chosen_ports += 1;
            let used = self.open().any(|channel| {
                let other = channel.socket.as_ref();
                other.is_some_and(|other| other.kind == socket.kind && port_of(other) == Some(port))
            });
            if !used {
                return Ok(SocketAddr::new(host, port));
            }
        }
        Err(Errno::ADDRINUSE)
    }

    /// Chooses an abstract name for a local socket: five hexadecimal digits (unix(7)).
    ///
    /// # Errors
    /// `ENOSPC` when all are in use.
    pub(crate) fn choose_name(&mut self, kind: SocketType) -> Result<Address, Errno> {
        for _ in 0..1 << 20 {
            let name = Address::Abstract(format!("{:05x}", self.chosen_names % (1 << 20)).into_bytes());
            self.chosen_names += 1;
            if self.named(&name, kind).is_none() {
                return Ok(name);
            }
        }
        Err(Errno::NOSPC)
    }
}

/// Returns whether a link is that of the end that connected.
fn is_client(link: &Option<(Rc<super::socket::Link>, usize)>) -> bool {
    link.as_ref().is_some_and(|(_, side)| *side == 0)
}

/// Returns the port of a socket's address.
fn port_of(socket: &Socket) -> Option<u16> {
    socket.state.borrow().local.as_ref().and_then(Address::inet).map(|place| place.port())
}

/// Returns whether the socket takes IPv4 packets if its address is the unspecified one of IPv6.
fn is_dual(socket: &Socket) -> bool {
    !socket.state.borrow().options.is_set(IPPROTO_IPV6, IPV6_V6ONLY)
}

/// Returns how particularly the address of a bound socket fits a destination; `None`: not at all.
fn rank(socket: &Socket, to: SocketAddr) -> Option<u8> {
    let local = socket.state.borrow().local.as_ref().and_then(Address::inet)?;
    if local.port() != to.port() {
        return None;
    }
    match (local.ip(), to.ip()) {
        (own, host) if own == host => Some(3),
        (IpAddr::V4(own), IpAddr::V4(_)) if own.is_unspecified() => Some(2),
        (IpAddr::V6(own), IpAddr::V6(_)) if own.is_unspecified() => Some(2),
        (IpAddr::V6(own), IpAddr::V4(_)) if own.is_unspecified() && is_dual(socket) => Some(1),
        _ => None,
    }
}

/// Returns whether an address that `socket` wants is taken by `other` (Linux `inet_csk_bind_conflict`, socket(7)).
fn conflict(socket: &Socket, wanted: SocketAddr, other: &Socket) -> bool {
    if socket.kind != other.kind || !other.family.has_ports() {
        return false;
    }
    let state = other.state.borrow();
    let Some(taken) = state.local.as_ref().and_then(Address::inet) else { return false };
    // A connection does not occupy the port: its end is identified by both addresses.
    if taken.port() != wanted.port() || matches!(state.role, Role::Connected) && !socket.is_datagram() {
        return false;
    }
    let both = |name| socket.state.borrow().options.is_set(SOL_SOCKET, name) && state.options.is_set(SOL_SOCKET, name);
    let listens = matches!(state.role, Role::Listening(_));
    overlap(socket, wanted.ip(), other, taken.ip()) && !(both(SO_REUSEADDR) && !listens || both(SO_REUSEPORT))
}

/// Returns whether a packet may fit two addresses of sockets.
fn overlap(socket: &Socket, a: IpAddr, other: &Socket, b: IpAddr) -> bool {
    let any = |ip: IpAddr| ip == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    match (a, b) {
        (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
            a == b || a.is_unspecified() || b.is_unspecified()
        }
        (IpAddr::V6(_), IpAddr::V4(_)) => any(a) && is_dual(socket),
        (IpAddr::V4(_), IpAddr::V6(_)) => any(b) && is_dual(other),
    }
}
