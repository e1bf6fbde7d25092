//! Message queues (msgop(2), msgctl(2)).

use std::collections::VecDeque;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Largest message in bytes (`MSGMAX`), most bytes in a queue (`MSGMNB`), and most queues (`MSGMNI`).
pub(crate) const MESSAGE_MAX: u64 = 8192;
/// Initial limit of the bytes in a queue.
pub(crate) const QUEUE_BYTES: u64 = 16_384;
/// Most queues.
pub(crate) const QUEUES: usize = 32_000;

/// Host bytes of a queue and of a message in addition to its text.
const QUEUE: u64 = 256;
const MESSAGE: u64 = 64;

/// Flags of `msgrcv`.
pub(crate) const NO_WAIT: u64 = 0o4000;
const NO_ERROR: u64 = 0o10000;
const EXCEPT: u64 = 0o20000;
const COPY: u64 = 0o40000;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// Its type, greater than 0.
    pub kind: i64,
    /// Its text.
    pub text: Vec<u8>,
}

/// A queue.
#[derive(Serialize, Deserialize)]
pub(crate) struct Queue {
    /// The messages, the oldest first.
    pub messages: VecDeque<Message>,
    /// Bytes of text in them.
    pub text_bytes: u64,
    /// Most bytes of text.
    pub limit: u64,
    /// The processes that sent and received last.
    pub pids: [u32; 2],
    /// Times of the last `msgsnd`, `msgrcv` and change, in seconds since 1970, or 0.
    pub times: [u64; 3],
}

impl Queue {
    /// Returns an empty queue.
    pub(crate) fn new(now: u64) -> Queue {
        Queue { messages: VecDeque::new(), text_bytes: 0, limit: QUEUE_BYTES, pids: [0; 2], times: [0, 0, now] }
    }

    /// Returns the bytes that it takes on the host.
    pub(crate) fn bytes(&self) -> u64 {
        QUEUE + MESSAGE * self.messages.len() as u64 + self.text_bytes
    }

    /// Returns whether a message of so many bytes fits.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.text_bytes + bytes <= self.limit && (self.messages.len() as u64) < self.limit
    }

    /// Adds a message.
    pub(crate) fn put(&mut self, message: Message) {
        self.text_bytes += message.text.len() as u64;
        self.messages.push_back(message);
    }

    /// Takes the message that a call asks for. `None`: there is none.
    ///
    /// # Errors
    /// `E2BIG` when it is longer than `room` bytes; `EINVAL` for flags that exclude each other.
    pub(crate) fn take(&mut self, room: u64, kind: i64, flags: u64) -> Result<Option<Message>, Errno> {
        if flags & COPY != 0 && (flags & EXCEPT != 0 || flags & NO_WAIT == 0) {
            return Err(Errno::INVAL);
        }
        let found = if flags & COPY != 0 {
            usize::try_from(kind).ok().filter(|&place| place < self.messages.len())
        } else {
            self.place(kind, flags)
        };
        let Some(place) = found else { return Ok(None) };
        let len = self.messages[place].text.len() as u64;
        if len > room && flags & NO_ERROR == 0 {
            return Err(Errno::TOOBIG);
        }
        let message = if flags & COPY != 0 {
            self.messages.get(place).cloned()
        } else {
            self.text_bytes -= len;
            self.messages.remove(place)
        };
        Ok(message.map(|mut message| {
            message.text.truncate(room as usize);
            message
        }))
    }

    /// Returns the place of the message that a type selects: 0: the first; negative: the first of the lowest type up to its
    /// magnitude; otherwise the first of this type or, with `MSG_EXCEPT`, of another.
    fn place(&self, kind: i64, flags: u64) -> Option<usize> {
        let mut all = self.messages.iter().enumerate();
        match kind {
            0 => (!self.messages.is_empty()).then_some(0),
            i64::MIN..0 => {
                let most = kind.checked_neg().unwrap_or(i64::MAX);
                let fitting = all.filter(|(_, message)| message.kind <= most);
                fitting.min_by_key(|(place, message)| (message.kind, *place)).map(|(place, _)| place)
            }
            _ => all.find(|(_, message)| (message.kind == kind) != (flags & EXCEPT != 0)).map(|(place, _)| place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(kinds: &[i64]) -> Queue {
        let mut queue = Queue::new(0);
        kinds.iter().for_each(|&kind| queue.put(Message { kind, text: vec![kind as u8; kind as usize] }));
        queue
    }

    #[test]
    fn types_select_messages() {
        let taken = |kind, flags| queue(&[3, 2, 5, 2]).take(100, kind, flags).map(|m| m.map(|m| m.kind));
        assert_eq!(taken(0, 0), Ok(Some(3)));
        assert_eq!(taken(5, 0), Ok(Some(5)));
        assert_eq!(taken(3, EXCEPT), Ok(Some(2)));
        assert_eq!(taken(-4, 0), Ok(Some(2)));
        assert_eq!(taken(i64::MIN, 0), Ok(Some(2)));
        assert_eq!(taken(-1, 0), Ok(None));
        assert_eq!(taken(2, COPY | NO_WAIT), Ok(Some(5)));
        assert_eq!(taken(2, COPY), Err(Errno::INVAL));
    }

    #[test]
    fn long_messages_stay_unless_they_may_be_truncated() {
        let mut q = queue(&[5]);
        assert_eq!(q.take(4, 0, 0), Err(Errno::TOOBIG));
        assert_eq!(q.take(4, 0, NO_ERROR), Ok(Some(Message { kind: 5, text: vec![5; 4] })));
        assert_eq!(q.take(4, 0, NO_ERROR), Ok(None));
    }

    #[test]
    fn a_queue_is_full_at_its_limit_of_bytes_or_of_messages() {
        let mut q = queue(&[5]);
        q.limit = 8;
        assert!(q.has_room(3) && !q.has_room(4));
        q.messages.extend((0..7).map(|_| Message { kind: 1, text: Vec::new() }));
        assert!(!q.has_room(0));
    }
}
