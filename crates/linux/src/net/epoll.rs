//! Sockets of the run's own network in `epoll` instances: the host, which has the instances, does not know of the errors that the next
//! call on such a socket reports.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use crate::ipc::channels::Channel;
use crate::net::socket::Socket;

const EDGE_TRIGGERED: u32 = 1 << 31;
const ONE_SHOT: u32 = 1 << 30;

/// A socket in an instance.
#[derive(Debug)]
struct Member {
    /// The descriptor by which it was added.
    fd: i32,
    channel: Weak<Channel>,
    /// What the program has given for it: its word, and flags.
    data: u64,
    flags: u32,
    /// Whether its present error has been reported.
    reported: Cell<bool>,
    /// Whether it is disabled until it is changed (`EPOLLONESHOT`).
    disabled: Cell<bool>,
}

impl Member {
    /// Returns whether an error of it must be reported.
    fn shows_error(&self) -> bool {
        let channel = self.channel.upgrade();
        let has_error = channel.and_then(|channel| channel.socket.as_ref().map(Socket::has_error)).unwrap_or(false);
        if !has_error {
            self.reported.set(false);
        }
        let again = self.flags & EDGE_TRIGGERED == 0 || !self.reported.get();
        has_error && again && !self.disabled.get()
    }
}

/// The sockets of the run's own network in an instance.
#[derive(Debug, Default)]
pub(crate) struct Members(RefCell<Vec<Member>>);

impl Members {
    /// Adds or changes a socket, which the program knows by `fd` and `data`.
    pub(crate) fn set(&self, fd: i32, channel: &Rc<Channel>, data: u64, flags: u32) {
        self.remove(fd, channel);
        if channel.socket.is_some() {
            let (reported, disabled) = (Cell::new(false), Cell::new(false));
            let channel = Rc::downgrade(channel);
            self.0.borrow_mut().push(Member { fd, channel, data, flags, reported, disabled });
        }
    }

    /// Removes a socket, and those that have been closed.
    pub(crate) fn remove(&self, fd: i32, channel: &Rc<Channel>) {
        let is_it = |member: &Member| member.fd == fd && std::ptr::eq(member.channel.as_ptr(), Rc::as_ptr(channel));
        self.0.borrow_mut().retain(|member| member.channel.strong_count() > 0 && !is_it(member));
    }

    /// Returns whether there are errors that must be reported.
    pub(crate) fn have_errors(&self) -> bool {
        self.0.borrow().iter().any(Member::shows_error)
    }

    /// Takes the words of sockets with errors that must be reported: of those that `is_listed` says are reported anyway, and of at most `room`
    /// others.
    pub(crate) fn take_errors(&self, mut room: usize, is_listed: impl Fn(u64) -> bool) -> Vec<u64> {
        let mut taken = Vec::new();
        for member in self.0.borrow().iter().filter(|member| member.shows_error()) {
            if !is_listed(member.data) {
                match room.checked_sub(1) {
                    Some(left) => room = left,
                    None => continue,
                }
            }
            member.reported.set(true);
            member.disabled.set(member.flags & ONE_SHOT != 0);
            taken.push(member.data);
        }
        taken
    }
}
