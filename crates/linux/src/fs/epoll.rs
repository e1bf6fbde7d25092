//! Members of `epoll` instances (epoll(7)). The host has the instances and reports which members are ready. It identifies each by a key of
//! ours, so that the simulator knows which one it means. What the host does not know is added here: errors of sockets of the run's own
//! network, also of those in an instance that is a member itself.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::rc::{Rc, Weak};

use rustix::event::epoll::EventFlags;

use crate::fs::files::Description;
use crate::fs::objects::Object;
use crate::ipc::channels::Channel;
use crate::net::socket::Socket;

/// A descriptor in an instance.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The descriptor by which it was added.
    pub fd: i32,
    /// Its open file description.
    pub description: Description,
    /// The number of the host's descriptor by which the host knows it.
    pub host: RawFd,
    /// What is behind it; `None`: a file of the host that the simulator does not follow, such as a terminal.
    pub channel: Option<Weak<Channel>>,
    /// Something outside the simulation can make it ready. Channels know this themselves.
    pub outside: bool,
    /// What the program has given for it: its word, and events with flags.
    pub data: u64,
    pub events: u32,
    /// Its present error has been reported.
    pub reported: Cell<bool>,
    /// It is disabled until it is changed (`EPOLLONESHOT`).
    pub disabled: Cell<bool>,
}

impl Member {
    fn channel(&self) -> Option<Rc<Channel>> {
        self.channel.as_ref()?.upgrade()
    }

    /// Returns whether any descriptor refers to it. Otherwise the host has removed it.
    fn is_open(&self, is_open: impl Fn(Description) -> bool) -> bool {
        self.channel.as_ref().map_or_else(|| is_open(self.description), |channel| channel.strong_count() > 0)
    }

    /// Returns the events that the host does not know of.
    fn own_events(&self, known: &mut Known) -> EventFlags {
        let Some(channel) = self.channel() else { return EventFlags::empty() };
        if channel.socket.as_ref().is_some_and(Socket::has_error) {
            return EventFlags::ERR;
        }
        let shown = match &channel.object {
            Object::Epoll(members) if members.show_events(known) => EventFlags::IN,
            _ => EventFlags::empty(),
        };
        shown & EventFlags::from_bits_retain(self.events)
    }

    /// Returns those of them that must be reported now.
    fn events_to_report(&self, known: &mut Known) -> EventFlags {
        let events = self.own_events(known);
        if events.is_empty() {
            self.reported.set(false);
        }
        let again = !self.has(EventFlags::ET) || !self.reported.get();
        if again && !self.disabled.get() { events } else { EventFlags::empty() }
    }

    fn has(&self, flag: EventFlags) -> bool {
        self.events & flag.bits() != 0
    }
}

/// Answers for instances that have been looked at, by the addresses of their members: many ways may lead to the same one.
type Known = BTreeMap<*const Members, bool>;

/// The members of an instance, by their keys.
#[derive(Debug, Default)]
pub(crate) struct Members {
    list: RefCell<BTreeMap<u64, Member>>,
    last_key: Cell<u64>,
    /// Number of members at which closed ones are removed.
    full: Cell<usize>,
}

impl Members {
    /// Returns a key for a new member.
    pub(crate) fn new_key(&self) -> u64 {
        self.last_key.set(self.last_key.get() + 1);
        self.last_key.get()
    }

    /// Adds a member under a key, and forgets those that have been closed. `is_open`: whether any descriptor refers to an
    /// open file.
    pub(crate) fn add(&self, key: u64, member: Member, is_open: impl Fn(Description) -> bool) {
        self.last_key.set(self.last_key.get().max(key));
        let mut list = self.list.borrow_mut();
        if list.len() >= self.full.get() {
            list.retain(|_, other| other.is_open(&is_open));
            self.full.set(2 * list.len() + 16);
        }
        list.insert(key, member);
    }

    /// Returns the key of a descriptor's member.
    pub(crate) fn find(&self, fd: i32, description: Description) -> Option<u64> {
        let list = self.list.borrow();
        let found = list.iter().rev().find(|(_, member)| member.fd == fd && member.description == description);
        found.map(|(&key, _)| key)
    }

    /// Gives a member another word and other events.
    pub(crate) fn change(&self, key: u64, data: u64, events: u32) {
        if let Some(member) = self.list.borrow_mut().get_mut(&key) {
            (member.data, member.events) = (data, events);
            member.reported.set(false);
            member.disabled.set(false);
        }
    }

    /// Removes a member.
    pub(crate) fn remove(&self, key: u64) {
        self.list.borrow_mut().remove(&key);
    }

    /// Returns the members that are open; `is_open` as for [`Members::add`].
    pub(crate) fn open(&self, is_open: impl Fn(Description) -> bool) -> Vec<(u64, Member)> {
        let list = self.list.borrow();
        let open = list.iter().filter(|(_, member)| member.is_open(&is_open));
        open.map(|(&key, member)| (key, member.clone())).collect()
    }

    /// Returns whether only guest processes can make a member ready.
    pub(crate) fn are_own(&self) -> bool {
        self.are_own_beside(&mut Known::new())
    }

    fn are_own_beside(&self, known: &mut Known) -> bool {
        if let Some(&own) = known.get(&std::ptr::from_ref(self)) {
            return own;
        }
        let own = self.list.borrow().values().all(|member| {
            let channel = member.channel();
            let is_own = |channel: &Channel| {
                channel.own.get() && channel.object.members().is_none_or(|members| members.are_own_beside(known))
            };
            !member.outside && channel.as_deref().is_none_or(is_own)
        });
        known.insert(self, own);
        own
    }

    /// Returns whether there are events that the host does not know of and that must be reported.
    pub(crate) fn have_events(&self) -> bool {
        self.show_events(&mut Known::new())
    }

    fn show_events(&self, known: &mut Known) -> bool {
        if let Some(&shown) = known.get(&std::ptr::from_ref(self)) {
            return shown;
        }
        let shown = self.list.borrow().values().any(|member| !member.events_to_report(known).is_empty());
        known.insert(self, shown);
        shown
    }

    /// Returns what a wait reports, as events with the words of their members: the host's events, which come with keys, and at most
    /// `most` with those that the host does not know of.
    pub(crate) fn report(&self, host: &[(u64, EventFlags)], most: usize) -> Vec<(EventFlags, u64)> {
        let list = self.list.borrow();
        let (mut reported, mut known) = (Vec::new(), Known::new());
        for (key, events) in host {
            if let Some(member) = list.get(key).filter(|member| !member.disabled.get()) {
                reported.push((member, *events));
            }
        }
        for member in list.values() {
            let events = member.events_to_report(&mut known);
            if events.is_empty() {
                continue;
            }
            let has_room = reported.len() < most;
            let listed = reported.iter_mut().find(|(other, _)| std::ptr::eq(*other, member));
            match listed {
                Some((_, known)) => *known |= events,
                None if has_room => reported.push((member, events)),
                None => continue,
            }
            member.reported.set(true);
        }
        for (member, _) in &reported {
            member.disabled.set(member.has(EventFlags::ONESHOT));
        }
        reported.into_iter().map(|(member, events)| (events, member.data)).collect()
    }
}
