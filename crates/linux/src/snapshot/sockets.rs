//! Sockets of the run's own network in snapshots: their state, and the pairs of host sockets behind them with the data on their way.
//!
//! What an end has not received is copied without receiving it (`SO_PEEK_OFF`, socket(7)). Lengths of messages are kept; of a stream, only
//! where descriptors come with the data. A stream that was full of short pieces therefore has more room afterwards.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, Shutdown, SocketType, sockopt};
use serde::{Deserialize, Serialize};

use super::SnapshotError;
use super::files::Opener;
use super::processes::place_of;
use crate::budget::Budget;
use crate::ipc::channels::Channel;
use crate::net::address::{Address, Family};
use crate::net::network::Network;
use crate::net::options::Options;
use crate::net::rights::{self, RIGHTS_MAX};
use crate::net::socket::{Credentials, End, Identity, Link, Listener, PENDING, Pending, Role, Socket, host_pair};

/// More bytes than any host socket of a guest holds.
const ROOM: usize = 1 << 20;

/// A pair of host sockets.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedPair {
    number: u64,
    kind: u32,
    ends: [SavedEnd; 2],
}

/// One end of a pair.
#[derive(Default, Serialize, Deserialize)]
struct SavedEnd {
    /// Whether anybody has it.
    held: bool,
    /// What it has not received.
    messages: Vec<SavedMessage>,
    /// The host reports an error: the other end was closed with something unread.
    failed: bool,
    /// Nothing more can arrive, or be sent.
    shut: (bool, bool),
}

/// Data on their way, and what accompanies them.
#[derive(Serialize, Deserialize)]
struct SavedMessage {
    bytes: Vec<u8>,
    rights: Vec<SavedRight>,
    credentials: Option<Credentials>,
}

/// A descriptor on its way: the indices of its description and of its channel.
pub(super) type SavedRight = (u32, Option<u32>);

/// A message that has been looked at.
pub(super) struct Seen {
    pub bytes: Vec<u8>,
    /// The host's copy of the descriptors that accompany it.
    pub carried: Vec<OwnedFd>,
}

/// The index of a pair, and the side of one of its ends.
type Place = (u32, u8);

/// The pairs of a guest, while it is being saved.
#[derive(Default)]
pub(super) struct Pairs {
    places: BTreeMap<u64, u32>,
    saved: Vec<SavedPair>,
    /// Ends that have been found, and whose data have not been looked at.
    found: Vec<(u32, u8, OwnedFd)>,
}

impl Pairs {
    /// Returns the index of the pair of a socket whose host socket is `host`, and its side.
    ///
    /// # Errors
    /// For a socket that has sent empty messages, which cannot be seen; the host's.
    pub(super) fn socket(&mut self, socket: &Socket, host: BorrowedFd<'_>) -> Result<Place, SnapshotError> {
        let state = socket.state.borrow();
        if state.sent_empty {
            return Err(SnapshotError::NotKept { what: "a socket that has sent an empty message".to_owned() });
        }
        let place = self.end(state.end, host)?;
        if let Some(wire) = &state.wire {
            self.end(state.end.other(), wire.as_fd())?;
        }
        if let Role::Listening(listener) = &state.role {
            for pending in &listener.queue {
                self.end(pending.end, pending.host.as_fd())?;
            }
        }
        // A pair of datagram sockets: the host does not show the other end that this one has ended sending.
        if matches!(state.role, Role::Pair) && socket.is_datagram() {
            self.saved[place as usize].ends[usize::from(state.end.side)].shut.1 |= state.shut_for_writing;
        }
        Ok((place, state.end.side))
    }

    /// Notes that somebody has an end; returns the index of its pair.
    fn end(&mut self, end: End, host: BorrowedFd<'_>) -> Result<u32, SnapshotError> {
        let kind = sockopt::socket_type(host)?.as_raw();
        let place = *self.places.entry(end.pair).or_insert(self.saved.len() as u32);
        if place as usize == self.saved.len() {
            self.saved.push(SavedPair { number: end.pair, kind, ends: Default::default() });
        }
        let saved = &mut self.saved[place as usize].ends[usize::from(end.side)];
        if !saved.held {
            saved.held = true;
            self.found.push((place, end.side, rustix::io::fcntl_dupfd_cloexec(host, 0)?));
        }
        Ok(place)
    }

    /// Looks at the data of an end that has been found; returns its place and side and what it has not received. `None`: there is none left.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn look(&mut self) -> Result<Option<(Place, Vec<Seen>)>, SnapshotError> {
        let Some((place, side, host)) = self.found.pop() else { return Ok(None) };
        let state = readiness(&host)?;
        let end = &mut self.saved[place as usize].ends[usize::from(side)];
        end.failed = state.contains(PollFlags::ERR);
        end.shut.0 = state.contains(PollFlags::RDHUP);
        let seen = unreceived(&host);
        fxscope_host::set_peek_offset(host.as_fd(), None)?;
        Ok(Some(((place, side), seen?)))
    }

    /// Adds a message that an end has not received.
    pub(super) fn add(
        &mut self,
        (place, side): Place,
        bytes: Vec<u8>,
        rights: Vec<SavedRight>,
        credentials: Option<Credentials>,
    ) {
        let message = SavedMessage { bytes, rights, credentials };
        self.saved[place as usize].ends[usize::from(side)].messages.push(message);
    }

    /// Returns the index of a pair.
    fn place(&self, pair: u64) -> Option<u32> {
        self.places.get(&pair).copied()
    }

    /// Returns all pairs.
    pub(super) fn complete(&mut self) -> Vec<SavedPair> {
        std::mem::take(&mut self.saved)
    }
}

/// Returns what the host reports of a socket.
fn readiness(host: &OwnedFd) -> Result<PollFlags, Errno> {
    let mut list = [PollFd::new(host, PollFlags::IN | PollFlags::RDHUP)];
    rustix::event::poll(&mut list, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    Ok(list[0].revents())
}

/// Returns what a host socket has not received. The end is not looked at: that would take an error away.
fn unreceived(host: &OwnedFd) -> Result<Vec<Seen>, SnapshotError> {
    let kind = sockopt::socket_type(host)?;
    let mut room = vec![0; ROOM];
    let (mut all, mut offset) = (Vec::new(), 0);
    loop {
        // Of datagrams, the host only says how long the first one is.
        let known = rustix::io::ioctl_fionread(host)?;
        if known == 0 || (kind != SocketType::DGRAM && offset >= known) {
            return Ok(all);
        }
        let Some((bytes, carried)) = peek(host, offset, &mut room)? else { return Ok(all) };
        if bytes == 0 {
            return Ok(all);
        }
        let mut first = 0;
        if kind == SocketType::STREAM && !carried.is_empty() {
            first = bytes_before_rights(host, offset, bytes, &mut room)?;
        }
        if first > 0 {
            all.push(Seen { bytes: room[..first].to_vec(), carried: Vec::new() });
        }
        all.push(Seen { bytes: room[first..bytes].to_vec(), carried });
        offset += bytes as u64;
    }
}

/// Looks at data from `offset` on; returns their length and the descriptors that accompany them. `None`: there are none.
fn peek(host: &OwnedFd, offset: u64, room: &mut [u8]) -> Result<Option<(usize, Vec<OwnedFd>)>, SnapshotError> {
    fxscope_host::set_peek_offset(host.as_fd(), Some(offset))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RIGHTS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let message = match rustix::net::recvmsg(host, &mut [IoSliceMut::new(room)], &mut control, flags) {
        Err(Errno::AGAIN) => return Ok(None),
        other => other?,
    };
    let mut carried = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            carried.extend(files);
        }
    }
    Ok(Some((message.bytes, carried)))
}

/// Returns how many of the next `bytes` bytes of a stream come before those that descriptors accompany: the host passes both on together.
fn bytes_before_rights(host: &OwnedFd, offset: u64, bytes: usize, room: &mut [u8]) -> Result<usize, SnapshotError> {
    let (mut without, mut with) = (0, bytes);
    while with - without > 1 {
        let middle = without + (with - without) / 2;
        let found = peek(host, offset, &mut room[..middle])?;
        if found.is_some_and(|(_, carried)| !carried.is_empty()) { with = middle } else { without = middle }
    }
    // Look at all of it again: what is in `room` may be shorter.
    peek(host, offset, room)?;
    Ok(without)
}

/// A pair of host sockets of a guest that is being restored.
pub(super) struct Pair {
    saved: SavedPair,
    hosts: [OwnedFd; 2],
}

impl Pair {
    /// Creates the host sockets.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn new(saved: SavedPair) -> Result<Pair, SnapshotError> {
        let (first, second) = host_pair(SocketType::from_raw(saved.kind), false)?;
        Ok(Pair { saved, hosts: [first, second] })
    }

    /// Returns the host socket of a side.
    pub(super) fn end(&self, side: u8) -> Option<&OwnedFd> {
        self.hosts.get(usize::from(side))
    }

    /// Returns a second descriptor of a side.
    fn second(&self, side: u8) -> Result<OwnedFd, SnapshotError> {
        Ok(rustix::io::fcntl_dupfd_cloexec(self.end(side).ok_or(SnapshotError::Damaged)?, 0)?)
    }

    /// Ends transfers in the directions in which they have ended. What nobody has is closed when the pair is dropped.
    fn shut(&self) -> Result<(), SnapshotError> {
        for (end, host) in self.saved.ends.iter().zip(&self.hosts) {
            if end.failed {
                // The host reports the error when the other end closes with this unread.
                let _ = rustix::net::send(host, &[0], rights::NOW);
            }
        }
        for (side, (end, host)) in self.saved.ends.iter().zip(&self.hosts).enumerate() {
            // An end that nobody has ends both directions when it closes.
            if end.shut.0 && self.saved.ends[1 - side].held {
                rustix::net::shutdown(host, Shutdown::Read)?;
            }
            if end.shut.1 {
                rustix::net::shutdown(host, Shutdown::Write)?;
            }
        }
        Ok(())
    }
}

/// Sends what was on its way again, and ends what had ended.
///
/// # Errors
/// When the snapshot is damaged; the host's.
pub(super) fn resend(
    opener: &Opener,
    channels: &[Rc<Channel>],
    network: &mut Network,
    budget: &Budget,
) -> Result<(), SnapshotError> {
    for pair in &opener.pairs {
        let is_stream = pair.saved.kind == SocketType::STREAM.as_raw();
        for (end, from) in pair.saved.ends.iter().zip(pair.hosts.iter().rev()) {
            for message in &end.messages {
                resend_message(message, from, is_stream, opener, channels, network, budget)?;
            }
        }
        pair.shut()?;
    }
    Ok(())
}

fn resend_message(
    message: &SavedMessage,
    from: &OwnedFd,
    is_stream: bool,
    opener: &Opener,
    channels: &[Rc<Channel>],
    network: &mut Network,
    budget: &Budget,
) -> Result<(), SnapshotError> {
    let mut shipment = None;
    if !message.rights.is_empty() || message.credentials.is_some() {
        if message.rights.len() > RIGHTS_MAX {
            return Err(SnapshotError::Damaged);
        }
        let mut files = Vec::new();
        for &(file, channel) in &message.rights {
            let channel = channel.map(|place| channels.get(place as usize).cloned().ok_or(SnapshotError::Damaged));
            files.push((opener.file(file)?, channel.transpose()?));
        }
        shipment = Some(network.flight.prepare(files, message.credentials, budget)?);
    }
    let mut rest = &message.bytes[..];
    loop {
        let sent = rights::send(from.as_fd(), &[rest], shipment.take().as_ref())?;
        rest = rest.get(sent..).ok_or(SnapshotError::Damaged)?;
        if rest.is_empty() || !is_stream {
            return Ok(());
        }
    }
}

/// A socket. Others are referred to by the indices of their channels.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedSocket {
    id: u64,
    family: Family,
    kind: u32,
    protocol: u32,
    /// The index of its pair, and its side.
    pair: Place,
    has_wire: bool,
    local: Option<Address>,
    node: Option<Identity>,
    peer: Option<Address>,
    /// The local socket that it sends datagrams to; `Some(None)`: one that has been closed.
    target: Option<Option<u32>>,
    role: SavedRole,
    error: Option<i32>,
    unreported: bool,
    refused: bool,
    shut_for_writing: bool,
    options: Options,
    link: Option<(u32, u8)>,
    owner: Credentials,
}

#[derive(Serialize, Deserialize)]
enum SavedRole {
    Idle,
    Listening { backlog: u64, signals: u64, queue: Vec<SavedPending> },
    Connected,
    Pair,
}

#[derive(Serialize, Deserialize)]
struct SavedPending {
    pair: Place,
    local: Address,
    peer: Address,
    link: u32,
    marked: bool,
}

/// What both ends of a connection know of each other.
#[derive(Serialize, Deserialize)]
pub(super) struct SavedLink {
    credentials: [Credentials; 2],
    wants_credentials: [bool; 2],
}

impl SavedLink {
    /// Returns what a snapshot has of a link.
    pub(super) fn of(link: &Link) -> SavedLink {
        let wants_credentials = link.wants_credentials.each_ref().map(Cell::get);
        SavedLink { credentials: link.credentials, wants_credentials }
    }

    fn link(&self) -> Rc<Link> {
        Rc::new(Link { credentials: self.credentials, wants_credentials: self.wants_credentials.map(Cell::new) })
    }
}

impl SavedSocket {
    /// Returns what a snapshot has of a socket. All channels and pairs must have been found.
    ///
    /// # Errors
    /// When its pair is not known.
    pub(super) fn of(
        socket: &Socket,
        pairs: &Pairs,
        channels: &[Rc<Channel>],
        links: &mut Vec<Rc<Link>>,
    ) -> Result<SavedSocket, SnapshotError> {
        let state = socket.state.borrow();
        let pair = |end: End| Ok::<_, SnapshotError>((pairs.place(end.pair).ok_or(SnapshotError::Damaged)?, end.side));
        let target = |target: &Weak<Channel>| {
            let place = channels.iter().position(|channel| std::ptr::eq(Rc::as_ptr(channel), target.as_ptr()));
            place.map(|place| place as u32)
        };
        let role = match &state.role {
            Role::Idle => SavedRole::Idle,
            Role::Connected => SavedRole::Connected,
            Role::Pair => SavedRole::Pair,
            Role::Listening(listener) => {
                let mut queue = Vec::new();
                for Pending { end, local, peer, link, marked, .. } in &listener.queue {
                    let (pair, link, marked) = (pair(*end)?, place_of(links, link), *marked);
                    queue.push(SavedPending { pair, local: local.clone(), peer: peer.clone(), link, marked });
                }
                SavedRole::Listening { backlog: listener.backlog as u64, signals: listener.signals as u64, queue }
            }
        };
        Ok(SavedSocket {
            id: socket.id,
            family: socket.family,
            kind: socket.kind.as_raw(),
            protocol: socket.protocol,
            pair: pair(state.end)?,
            has_wire: state.wire.is_some(),
            local: state.local.clone(),
            node: state.node,
            peer: state.peer.clone(),
            target: state.target.as_ref().map(target),
            role,
            error: state.error.map(Errno::raw_os_error),
            unreported: state.unreported,
            refused: state.refused,
            shut_for_writing: state.shut_for_writing,
            options: state.options.clone(),
            link: state.link.as_ref().map(|(link, side)| (place_of(links, link), *side as u8)),
            owner: state.owner,
        })
    }

    /// Returns the socket; `now` returns what a file is now that is its name. [`SavedSocket::aim`] completes it.
    ///
    /// # Errors
    /// When the snapshot is damaged; the host's.
    pub(super) fn restored(
        &self,
        pairs: &[Pair],
        links: &[Rc<Link>],
        budget: &Budget,
        now: impl Fn(Identity) -> Identity,
    ) -> Result<Socket, SnapshotError> {
        let end = |(place, side): Place| {
            let pair = pairs.get(place as usize).filter(|_| side < 2).ok_or(SnapshotError::Damaged)?;
            Ok::<_, SnapshotError>((pair, End { pair: pair.saved.number, side }))
        };
        let link = |place: u32| links.get(place as usize).cloned().ok_or(SnapshotError::Damaged);
        let (pair, own) = end(self.pair)?;
        let mut socket = Socket::new(self.family, SocketType::from_raw(self.kind), self.protocol, self.owner);
        socket.id = self.id;
        let state = socket.state.get_mut();
        state.end = own;
        state.wire = if self.has_wire { Some(pair.second(own.other().side)?) } else { None };
        (state.local, state.peer) = (self.local.clone(), self.peer.clone());
        state.node = self.node.map(now);
        state.error = self.error.map(Errno::from_raw_os_error);
        (state.unreported, state.refused) = (self.unreported, self.refused);
        state.shut_for_writing = self.shut_for_writing;
        state.options = self.options.clone();
        if let Some((place, side)) = self.link {
            state.link = Some((link(place)?, usize::from(side.min(1))));
        }
        state.role = match &self.role {
            SavedRole::Idle => Role::Idle,
            SavedRole::Connected => Role::Connected,
            SavedRole::Pair => Role::Pair,
            SavedRole::Listening { backlog, signals, queue } => {
                let mut listener =
                    Listener { backlog: *backlog as usize, signals: *signals as usize, ..Listener::default() };
                for saved in queue {
                    let (pair, end) = end(saved.pair)?;
                    listener.queue.push_back(Pending {
                        host: pair.second(end.side)?,
                        end,
                        local: saved.local.clone(),
                        peer: saved.peer.clone(),
                        link: link(saved.link)?,
                        marked: saved.marked,
                        _charge: budget.charge(PENDING),
                    });
                }
                Role::Listening(listener)
            }
        };
        Ok(socket)
    }

    /// Lets the socket send to the one that it sent to.
    pub(super) fn aim(&self, socket: &Socket, channels: &[Rc<Channel>]) {
        if let Some(target) = self.target {
            let target = target.and_then(|place| channels.get(place as usize));
            socket.state.borrow_mut().target = Some(target.map_or_else(Weak::new, Rc::downgrade));
        }
    }
}

/// Returns the links of a snapshot.
pub(super) fn links(saved: &[SavedLink]) -> Vec<Rc<Link>> {
    saved.iter().map(SavedLink::link).collect()
}
