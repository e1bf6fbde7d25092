//! Which call receives which message: the messages from one rank to another arrive in the order in which they are sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Event, Kind};

/// A message as its receiver sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The sender.
    pub from: u32,
    /// The number of the sender's call.
    pub call: usize,
    /// When this began.
    pub sent: u64,
}

/// The messages of a run.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// By sender and number of its call: the receiver, and when its receiving call began if that waits for the message.
    sent: BTreeMap<(usize, usize), (u32, Option<u64>)>,
    /// By receiver and number of its call.
    received: BTreeMap<(usize, usize), Message>,
    /// Number of sends and receives without a partner.
    pub open: usize,
}

/// The sends from one rank to another that are not received yet, as numbers of calls.
type Queues = BTreeMap<(u32, u32), VecDeque<usize>>;

impl Matches {
    /// Matches the calls of all ranks.
    pub(super) fn new(all: &[&[Event]]) -> Matches {
        let mut queues = Queues::new();
        let mut named: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        for (rank, events) in (0u32..).zip(all) {
            for (i, event) in events.iter().enumerate() {
                match (event.kind, event.partner) {
                    (Kind::Send { .. } | Kind::Exchange, Some(to)) => {
                        queues.entry((rank, to)).or_default().push_back(i)
                    }
                    (Kind::Receive | Kind::Post, Some(from)) => *named.entry((from, rank)).or_default() += 1,
                    _ => {}
                }
            }
        }
        let mut matches = Matches::default();
        for (rank, events) in (0u32..).zip(all) {
            for (i, event) in events.iter().enumerate() {
                let receives = matches!(event.kind, Kind::Receive | Kind::Post | Kind::Exchange);
                if !receives {
                    continue;
                }
                let from = match event.partner.filter(|_| event.kind != Kind::Exchange) {
                    Some(from) => {
                        named.entry((from, rank)).and_modify(|count| *count -= 1);
                        Some(from)
                    }
                    None => earliest(all, &queues, &named, rank),
                };
                let latest = if event.kind == Kind::Post { u64::MAX } else { event.end };
                matches.receive(all, &mut queues, (from, rank), i, latest);
            }
        }
        matches.unneeded(all);
        matches
    }

    /// Gives the next message from one rank to another to a call, if it was sent by `latest`.
    fn receive(&mut self, all: &[&[Event]], queues: &mut Queues, pair: (Option<u32>, u32), i: usize, latest: u64) {
        let (Some(from), rank) = pair else { return };
        let Some(queue) = queues.get_mut(&(from, rank)) else { return };
        let Some((send, sent)) = queue.front().map(|&send| (send, all[from as usize][send].begin)) else { return };
        if sent > latest {
            return;
        }
        queue.pop_front();
        let event = all[rank as usize][i];
        let begun = (event.kind == Kind::Receive).then_some(event.begin);
        self.sent.insert((from as usize, send), (rank, begun));
        self.received.insert((rank as usize, i), Message { from, call: send, sent });
    }

    /// Takes back messages that were asked for, and for which no later call waits; counts those without a partner.
    fn unneeded(&mut self, all: &[&[Event]]) {
        let mut needed = BTreeSet::new();
        for (rank, events) in all.iter().enumerate() {
            let mut asked: Vec<(usize, Message)> = Vec::new();
            for (i, event) in events.iter().enumerate() {
                let own = self.received.get(&(rank, i)).copied();
                match (event.kind, own) {
                    (Kind::Post, Some(message)) => asked.push((i, message)),
                    (Kind::Wait, _) => {
                        let there = |(_, message): &(usize, Message)| message.sent <= event.end;
                        needed.extend(asked.iter().filter(|asked| there(asked)).map(|(i, _)| (rank, *i)));
                        asked.retain(|asked| !there(asked));
                    }
                    (_, Some(message)) => {
                        needed.insert((rank, i));
                        let same = |(_, asked): &(usize, Message)| asked.from == message.from;
                        needed.extend(asked.iter().filter(|asked| same(asked)).map(|(i, _)| (rank, *i)));
                        asked.retain(|asked| !same(asked));
                    }
                    _ => {}
                }
            }
        }
        let unneeded: Vec<_> = self.received.keys().filter(|key| !needed.contains(*key)).copied().collect();
        for key in unneeded {
            let Some(message) = self.received.remove(&key) else { continue };
            self.sent.remove(&(message.from as usize, message.call));
        }
        let partners = |kind: Kind| match kind {
            Kind::Send { .. } | Kind::Receive | Kind::Post => 1,
            Kind::Exchange => 2,
            Kind::Wait | Kind::Collective(_) | Kind::Other => 0,
        };
        let asked: usize = all.iter().flat_map(|events| events.iter()).map(|event| partners(event.kind)).sum();
        self.open = asked - self.sent.len() - self.received.len();
    }

    /// Returns the receiver of what call `i` of a rank sends, and when the receiver began to wait for it.
    pub(super) fn sent(&self, rank: usize, i: usize) -> Option<(u32, Option<u64>)> {
        self.sent.get(&(rank, i)).copied()
    }

    /// Returns the message that call `i` of a rank receives.
    pub(super) fn received(&self, rank: usize, i: usize) -> Option<Message> {
        self.received.get(&(rank, i)).copied()
    }
}

/// The rank whose next message to `to` is the earliest, of those that send more messages than receives name them.
fn earliest(all: &[&[Event]], queues: &Queues, named: &BTreeMap<(u32, u32), usize>, to: u32) -> Option<u32> {
    let more = queues.iter().filter(|(pair, queue)| {
        let named = named.get(pair).copied().unwrap_or(0);
        pair.1 == to && queue.len() > named
    });
    let first = |(pair, queue): (&(u32, u32), &VecDeque<usize>)| {
        Some((all.get(pair.0 as usize)?.get(*queue.front()?)?.begin, pair.0))
    };
    more.filter_map(first).min().map(|(_, from)| from)
}
