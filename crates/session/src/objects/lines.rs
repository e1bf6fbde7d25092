//! Cache lines that several threads use: who touched which bytes of them, and how often they moved.

use std::collections::HashMap;

/// Most lines that are followed. Later ones are not.
const MOST_LINES: usize = 1 << 19;

/// Bytes of a line as bits.
type Bytes = [u64; 4];

/// A thread's use of a line: what its accesses that had to request the line touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct User {
    pub thread: u32,
    pub cmg: u32,
    pub touched: Bytes,
    pub written: Bytes,
}

/// A line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// The object that was used first in it, and where in its block the line begins.
    pub object: u32,
    pub offset: u64,
    /// In the order in which they first used it.
    pub users: Vec<User>,
    /// The thread that requested it last, and whether to write.
    last: Option<(u32, bool)>,
    /// How often it moved from one thread to another, of which at least one wrote.
    pub transfers: u64,
}

/// A request of a line by a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub thread: u32,
    pub cmg: u32,
    /// The first byte in the line, and the number of bytes.
    pub first: u64,
    pub bytes: u64,
    pub write: bool,
}

/// The lines of all processes, by process and number.
#[derive(Default)]
pub(super) struct Lines {
    map: HashMap<(u32, u64), Line>,
}

impl Lines {
    /// Notes a request of the line `number` of a process, which begins at `offset` of `object` if it is new. Returns whether it moved
    /// from another thread, of which at least one wrote.
    pub(super) fn used(&mut self, process: u32, number: u64, (object, offset): (u32, u64), by: Use) -> bool {
        let room = self.map.len() < MOST_LINES;
        let line = match self.map.entry((process, number)) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) if room => {
                entry.insert(Line { object, offset, ..Line::default() })
            }
            std::collections::hash_map::Entry::Vacant(_) => return false,
        };
        line.used(by)
    }

    /// Returns the lines in an order that does not depend on the host.
    pub(super) fn in_order(self) -> Vec<Line> {
        let mut all: Vec<((u32, u64), Line)> = self.map.into_iter().collect();
        all.sort_by_key(|&(key, _)| key);
        all.into_iter().map(|(_, line)| line).collect()
    }
}

impl Line {
    fn used(&mut self, by: Use) -> bool {
        let moved = self.last.is_some_and(|(thread, wrote)| thread != by.thread && (wrote || by.write));
        self.transfers += u64::from(moved);
        self.last = Some((by.thread, by.write));
        let place = self.users.iter().position(|user| user.thread == by.thread).unwrap_or_else(|| {
            self.users.push(User { thread: by.thread, cmg: by.cmg, ..User::default() });
            self.users.len() - 1
        });
        let user = &mut self.users[place];
        for byte in (by.first..by.first.saturating_add(by.bytes)).take_while(|&byte| byte < 256) {
            let (word, bit) = (byte as usize / 64, 1 << (byte % 64));
            user.touched[word] |= bit;
            user.written[word] |= if by.write { bit } else { 0 };
        }
        moved
    }

    /// Returns whether threads of several CMGs use it.
    pub(super) fn crosses_cmgs(&self) -> bool {
        self.users.iter().any(|user| user.cmg != self.users[0].cmg)
    }

    /// Returns whether it moves although no thread touches bytes that another one writes.
    pub(super) fn is_falsely_shared(&self) -> bool {
        let meet = |a: &Bytes, b: &Bytes| a.iter().zip(b).any(|(a, b)| a & b != 0);
        let writes = self.users.iter().any(|user| user.written != Bytes::default());
        let conflict = self.users.iter().enumerate().any(|(i, user)| {
            self.users.iter().enumerate().any(|(j, other)| i != j && meet(&user.written, &other.touched))
        });
        self.users.len() > 1 && self.transfers > 1 && writes && !conflict
    }
}

/// Returns the first and the last of some bytes.
pub(super) fn range(bytes: &Bytes) -> Option<(u32, u32)> {
    let bit = |word: usize, bits: u32| word as u32 * 64 + bits;
    let first = (0..4).find(|&word| bytes[word] != 0)?;
    let last = (0..4).rev().find(|&word| bytes[word] != 0)?;
    Some((bit(first, bytes[first].trailing_zeros()), bit(last, 63 - bytes[last].leading_zeros())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(thread: u32, first: u64, write: bool) -> Use {
        Use { thread, cmg: thread / 12, first, bytes: 8, write }
    }

    fn line(uses: &[Use]) -> Line {
        let mut lines = Lines::default();
        for &one in uses {
            lines.used(0, 7, (0, 0), one);
        }
        lines.in_order().remove(0)
    }

    #[test]
    fn threads_that_write_different_bytes_in_turn_share_a_line_falsely() {
        let turns: Vec<Use> = (0..6).map(|turn| by(turn % 2, 8 * u64::from(turn % 2), true)).collect();
        let line = line(&turns);
        assert_eq!((line.transfers, line.is_falsely_shared(), line.crosses_cmgs()), (5, true, false));
        assert_eq!(
            line.users.iter().map(|user| range(&user.written)).collect::<Vec<_>>(),
            [Some((0, 7)), Some((8, 15))]
        );
    }

    #[test]
    fn threads_that_touch_the_same_bytes_share_a_line_truly() {
        assert!(!line(&[by(0, 0, true), by(12, 0, true), by(0, 0, true)]).is_falsely_shared());
        assert!(line(&[by(0, 0, true), by(12, 0, true)]).crosses_cmgs());
    }

    #[test]
    fn a_line_that_is_only_read_does_not_move() {
        let line = line(&[by(0, 0, false), by(1, 8, false), by(0, 0, false)]);
        assert_eq!((line.transfers, line.is_falsely_shared()), (0, false));
    }
}
