//! Descriptors and credentials on their way between processes (`SCM_RIGHTS`, `SCM_CREDENTIALS`, unix(7)).
//!
//! The host carries the host's files with the data, so that order, `MSG_PEEK` and the end of a message that nobody receives are
//! the host's business. What the simulator knows of them stays here, as a *parcel*. The first descriptor that the host carries is
//! the write end of a pipe whose read end the parcel has: it identifies the parcel, and when the host has closed it, the message
//! has been dropped.

use std::collections::BTreeMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::pipe::PipeFlags;

use super::socket::{Credentials, Identity};
use crate::budget::{self, Budget, Charge};
use crate::fs::files::{Description, OpenFile};
use crate::fs::vfs::Origin;
use crate::ipc::channels::Channel;

/// Maximum number of descriptors in a message (Linux's `SCM_MAX_FD`).
pub(crate) const RIGHTS_MAX: usize = 253;

/// Number of descriptors that the host carries with a message in addition to the parcel's own.
const CARRIED: usize = RIGHTS_MAX - 1;

/// Maximum number of parcels.
const PARCELS: usize = 512;

/// Cost of a parcel and of each of its descriptors.
const PARCEL: u64 = 4 << 10;
const RIGHT: u64 = 256;

/// What the simulator knows of a passed descriptor.
#[derive(Clone)]
struct Right {
    origin: Origin,
    description: Description,
    channel: Option<Rc<Channel>>,
}

/// What accompanies a message.
struct Parcel {
    reader: OwnedFd,
    rights: Vec<Right>,
    /// The host's file of the last descriptor, if there are more than the host carries.
    last: Option<OwnedFd>,
    credentials: Option<Credentials>,
    _charge: Charge,
}

impl Parcel {
    /// Returns its descriptors, of which these are the host's files.
    fn delivered(&self, files: impl Iterator<Item = OwnedFd>) -> Vec<Delivered> {
        let deliver = |(right, host): (&Right, OwnedFd)| {
            let file = OpenFile { host, origin: right.origin.clone(), description: right.description };
            Delivered { file, channel: right.channel.clone() }
        };
        self.rights.iter().zip(files).map(deliver).collect()
    }
}

/// A descriptor that a process has received.
pub(crate) struct Delivered {
    /// Its open file.
    pub file: OpenFile,
    /// The host resources of that.
    pub channel: Option<Rc<Channel>>,
}

/// All parcels that have been sent and not received.
#[derive(Default)]
pub(crate) struct Flight(BTreeMap<Identity, Parcel>);

/// What the host must carry with a message.
pub(crate) struct Shipment {
    token: OwnedFd,
    /// The parcel.
    id: Identity,
    carried: Vec<OwnedFd>,
}

impl Shipment {
    /// Iterates over the descriptors for the host.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.token.as_fd()).chain(self.carried.iter().map(|file| file.as_fd()))
    }
}

/// Flags for sending without waiting and without a signal.
pub(crate) const NOW: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);

/// Gives bytes and what accompanies them to the other end of a host socket, without waiting. `EAGAIN`: there is no room.
///
/// # Errors
/// The host's.
pub(crate) fn send(from: BorrowedFd<'_>, parts: &[&[u8]], shipment: Option<&Shipment>) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(RIGHTS_MAX))];
    let carried: Vec<BorrowedFd<'_>> = shipment.iter().flat_map(|shipment| shipment.descriptors()).collect();
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !carried.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&carried)) {
        return Err(Errno::INVAL);
    }
    let parts: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
    rustix::net::sendmsg(from, &parts, &mut control, NOW)
}

impl Flight {
    /// Returns the number of descriptors on their way.
    pub(crate) fn count(&self) -> usize {
        self.0.values().map(|parcel| parcel.rights.len()).sum()
    }

    /// Returns whether nothing is on its way.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prepares a message with these open files and credentials.
    ///
    /// # Errors
    /// `ETOOMANYREFS` when too much is on its way; the host's.
    pub(crate) fn prepare(
        &mut self,
        files: Vec<(OpenFile, Option<Rc<Channel>>)>,
        credentials: Option<Credentials>,
        budget: &Budget,
    ) -> Result<Shipment, Errno> {
        use std::os::fd::AsRawFd as _;
        if self.0.len() >= PARCELS {
            return Err(Errno::TOOMANYREFS);
        }
        let (reader, token) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        if token.as_raw_fd() as u64 >= budget::host_descriptors() {
            return Err(Errno::TOOMANYREFS);
        }
        let stat = rustix::fs::fstat(&reader)?;
        let id = (stat.st_dev, stat.st_ino);
        let charge = budget.charge(PARCEL + RIGHT * files.len() as u64);
        let (mut rights, mut carried) = (Vec::new(), Vec::new());
        for (file, channel) in files {
            rights.push(Right { origin: file.origin, description: file.description, channel });
            carried.push(file.host);
        }
        let last = if carried.len() > CARRIED { carried.pop() } else { None };
        self.0.insert(id, Parcel { reader, rights, last, credentials, _charge: charge });
        Ok(Shipment { token, id, carried })
    }

    /// Forgets a message that could not be sent.
    pub(crate) fn cancel(&mut self, shipment: &Shipment) {
        self.0.remove(&shipment.id);
    }

    /// Returns what came with a message, given the descriptors that the host has delivered with it. After `MSG_PEEK` the message
    /// remains.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn open(
        &mut self,
        carried: Vec<OwnedFd>,
        peek: bool,
    ) -> Result<(Vec<Delivered>, Option<Credentials>), Errno> {
        let mut carried = carried.into_iter();
        let Some(token) = carried.next() else { return Ok((Vec::new(), None)) };
        let stat = rustix::fs::fstat(&token)?;
        let id = (stat.st_dev, stat.st_ino);
        let Some(parcel) = self.0.get_mut(&id) else { return Ok((Vec::new(), None)) };
        let last = match (&parcel.last, peek) {
            (Some(last), true) => Some(rustix::io::fcntl_dupfd_cloexec(last, 0)?),
            _ => parcel.last.take(),
        };
        let result = (parcel.delivered(carried.chain(last)), parcel.credentials);
        if !peek {
            self.0.remove(&id);
        }
        Ok(result)
    }

    /// Returns what accompanies a message that has not been received, given a copy of the descriptors that the host carries with it.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn look(&self, carried: Vec<OwnedFd>) -> Result<(Vec<Delivered>, Option<Credentials>), Errno> {
        let mut carried = carried.into_iter();
        let Some(token) = carried.next() else { return Ok((Vec::new(), None)) };
        let stat = rustix::fs::fstat(&token)?;
        let Some(parcel) = self.0.get(&(stat.st_dev, stat.st_ino)) else { return Ok((Vec::new(), None)) };
        let last = parcel.last.as_ref().map(|last| rustix::io::fcntl_dupfd_cloexec(last, 0)).transpose()?;
        Ok((parcel.delivered(carried.chain(last)), parcel.credentials))
    }

    /// Forgets the parcels of messages that have been dropped, with a socket that nobody reads any more.
    pub(crate) fn sweep(&mut self) {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let mut dropped: Vec<Identity> = Vec::new();
        {
            let mut list: Vec<PollFd<'_>> =
                self.0.values().map(|parcel| PollFd::new(&parcel.reader, PollFlags::empty())).collect();
            if rustix::event::poll(&mut list, Some(&now)).is_ok() {
                let closed = |(fd, id): (&PollFd<'_>, &Identity)| fd.revents().contains(PollFlags::HUP).then_some(*id);
                dropped.extend(list.iter().zip(self.0.keys()).filter_map(closed));
            }
        }
        for id in dropped {
            self.0.remove(&id);
        }
    }
}
