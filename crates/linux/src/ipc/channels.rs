//! Pipes, sockets and other kernel objects that programs create on the host: the capacity of each is charged until its last
//! descriptor is closed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::rc::{Rc, Weak};

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::budget::Charge;
use crate::fs::epoll::Members;
use crate::fs::files::{Files, OpenFile};
use crate::fs::objects::Object;
use crate::fs::vfs::Origin;
use crate::kernel::Kernel;
use crate::net::socket::Socket;

/// Host device and inode.
type Identity = (u64, u64);

/// One kernel object, while a descriptor is open.
#[derive(Debug)]
pub(crate) struct Channel {
    pub charge: Charge,
    /// Whether only guest processes use it, so that nothing outside can end a wait for it.
    pub own: Cell<bool>,
    /// What it is.
    pub object: Object,
    /// Its state, if it is a socket of the run's own network.
    pub socket: Option<Socket>,
}

impl Channel {
    /// Returns an object of the host.
    pub(crate) fn new(charge: Charge, own: bool) -> Channel {
        Channel { charge, own: Cell::new(own), object: Object::Host, socket: None }
    }

    /// Returns whether only guest processes can make it ready.
    pub(crate) fn is_own(&self) -> bool {
        self.own.get() && self.object.members().is_none_or(Members::are_own)
    }
}

/// Objects that can be looked up by their identity.
#[derive(Default)]
pub(crate) struct Channels {
    known: BTreeMap<Identity, Weak<Channel>>,
    /// Number of entries at which closed ones are removed.
    full: usize,
}

impl Channels {
    /// Returns whether `channel` is registered under the identity of `file`.
    pub(crate) fn is_known(&self, file: &OpenFile, channel: &Rc<Channel>) -> bool {
        let known = identity(file.host.as_fd()).ok().and_then(|identity| self.get(identity));
        known.is_some_and(|known| Rc::ptr_eq(&known, channel))
    }

    /// Registers `channel` under the identity of `file`.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn restore(&mut self, file: &OpenFile, channel: &Rc<Channel>) -> Result<(), Errno> {
        self.insert(identity(file.host.as_fd())?, channel);
        Ok(())
    }

    fn get(&self, identity: Identity) -> Option<Rc<Channel>> {
        self.known.get(&identity)?.upgrade()
    }

    fn insert(&mut self, identity: Identity, channel: &Rc<Channel>) {
        if self.known.len() >= self.full {
            self.known.retain(|_, channel| channel.strong_count() > 0);
            self.full = 2 * self.known.len() + 16;
        }
        self.known.insert(identity, Rc::downgrade(channel));
    }

    /// Returns whether only guest processes use the file of a descriptor.
    pub(crate) fn is_own(&self, files: &Files, fd: i32) -> bool {
        if let Some(channel) = files.channel(fd) {
            return channel.is_own();
        }
        let identity = files.host(fd).and_then(identity);
        identity.is_ok_and(|identity| self.get(identity).is_some_and(|channel| channel.is_own()))
    }
}

fn identity(file: BorrowedFd<'_>) -> Result<Identity, Errno> {
    rustix::fs::fstat(file).map(|status| (status.st_dev, status.st_ino))
}

impl Kernel<'_> {
    /// Charges for a new object with a capacity of `bytes` bytes, registered under its descriptor `file`.
    ///
    /// # Errors
    /// `ENOMEM`; the host's.
    pub(crate) fn new_channel(&mut self, file: BorrowedFd<'_>, bytes: u64, own: bool) -> Result<Rc<Channel>, Errno> {
        self.afford(bytes)?;
        let channel = Rc::new(Channel::new(self.system.budget.charge(bytes), own));
        self.system.channels.insert(identity(file)?, &channel);
        Ok(channel)
    }

    /// The same for a socket of the run's own network.
    ///
    /// # Errors
    /// `ENOMEM`; the host's.
    pub(crate) fn new_socket_channel(
        &mut self,
        file: BorrowedFd<'_>,
        bytes: u64,
        socket: Socket,
    ) -> Result<Rc<Channel>, Errno> {
        self.afford(bytes)?;
        let charge = self.system.budget.charge(bytes);
        let channel = Rc::new(Channel { socket: Some(socket), ..Channel::new(charge, true) });
        self.system.channels.insert(identity(file)?, &channel);
        Ok(channel)
    }

    /// Makes `host` the file behind all descriptors of an object, in every process.
    ///
    /// # Errors
    /// The host's.
    pub(crate) fn replace_host(&mut self, channel: &Rc<Channel>, host: BorrowedFd<'_>) -> Result<(), Errno> {
        let is_same = |other: &Option<Rc<Channel>>| other.as_ref().is_some_and(|other| Rc::ptr_eq(other, channel));
        let others = self.other_processes.iter_mut().map(|process| &mut process.files);
        for files in others.chain([&mut self.process.files]) {
            for descriptor in files.table.iter_mut().flatten().filter(|descriptor| is_same(&descriptor.channel)) {
                descriptor.file.host = rustix::io::fcntl_dupfd_cloexec(host, 0)?;
            }
        }
        self.system.channels.insert(identity(host)?, channel);
        Ok(())
    }

    /// Charges for an object that no other descriptor refers to.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(crate) fn unnamed_channel(&mut self, bytes: u64, own: bool, object: Object) -> Result<Rc<Channel>, Errno> {
        self.afford(bytes)?;
        Ok(Rc::new(Channel { object, ..Channel::new(self.system.budget.charge(bytes), own) }))
    }

    /// Charges for a file that has just been opened by name: a pipe for its contents, a simulated file for its text.
    ///
    /// # Errors
    /// `ENOMEM`; the host's.
    pub(crate) fn opened_channel(&mut self, file: &OpenFile) -> Result<Option<Rc<Channel>>, Errno> {
        let status = rustix::fs::fstat(&file.host)?;
        if matches!(file.origin, Origin::Simulated(_)) {
            return self.unnamed_channel(status.st_size as u64, false, Object::Host).map(Some);
        }
        let kind = FileType::from_raw_mode(status.st_mode);
        if kind != FileType::Fifo && kind != FileType::Socket {
            return Ok(None);
        }
        if let Some(channel) = self.system.channels.get(identity(file.host.as_fd())?) {
            return Ok(Some(channel));
        }
        self.new_channel(file.host.as_fd(), Files::capacity(file.host.as_fd()), false).map(Some)
    }
}
