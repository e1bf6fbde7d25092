//! What a fully associative TLB holds while it sees many accesses in a row.

use crate::ENTRIES;
use crate::choice::Key;
use crate::direct::BATCH;

/// Places for entries: those at the beginning, and one for each access.
const PLACES: usize = (ENTRIES + BATCH + 1).next_power_of_two();
/// Slots by mark.
const SLOTS: usize = 1024;
/// What stands where a page was before it was used again.
const GONE: Key = Key::from_page(u64::MAX - 1, 0);

/// Room for a log.
pub struct Room {
    entries: [Key; PLACES],
    slots: [u16; SLOTS],
}

impl Default for Room {
    fn default() -> Room {
        Room { entries: [GONE; PLACES], slots: [0; SLOTS] }
    }
}

/// Pages in the order in which they came, or were used last. Nothing moves: the oldest goes when `first` moves on.
pub struct Log<'a> {
    /// The first is none that counts.
    entries: &'a mut [Key; PLACES],
    /// The place of the last entry with a mark, by mark; 0 when there is none.
    slots: &'a mut [u16; SLOTS],
    /// The first entry that counts, and the end of them.
    first: usize,
    end: usize,
}

impl<'a> Log<'a> {
    /// Begins with the entries of a TLB, the oldest first; some may hold nothing.
    #[inline(always)]
    pub fn new(room: &'a mut Room, pages: impl Iterator<Item = Key>, mark: impl Fn(Key) -> u16) -> Log<'a> {
        let Room { entries, slots } = room;
        slots.fill(0);
        entries[0] = GONE;
        let mut log = Log { entries, slots, first: 1, end: 1 };
        pages.for_each(|page| log.push(page, mark(page)));
        log
    }

    /// The entries of the TLB, the oldest first.
    pub fn pages(&self) -> impl DoubleEndedIterator<Item = Key> {
        self.entries[self.first..self.end].iter().copied().filter(|&key| key != GONE)
    }

    /// The place of a mark's last entry; what it says is `false` when it counts no more.
    #[inline(always)]
    fn last_with(&self, mark: u16) -> (usize, bool) {
        let at = usize::from(self.slots[usize::from(mark) % SLOTS]);
        (at, at >= self.first)
    }

    /// The entry of the only page that may be that of an access, and how far it is apart; pages have up to `1 << shift`
    /// bytes, and `mark` is that of the largest.
    #[inline(always)]
    pub fn find(&self, key: Key, mark: u16, shift: u32) -> Option<(usize, u32)> {
        let (at, counts) = self.last_with(mark);
        let apart = self.entries[at % PLACES].apart(key);
        match counts {
            false => None,
            true if apart <= shift => Some((at, apart)),
            true => find_behind(&self.entries[self.first..self.end], self.first, key),
        }
    }

    /// The place of the page of `1 << shift` bytes of an access, or 0.
    #[inline(always)]
    fn place_of(&self, key: Key, mark: u16, shift: u32) -> usize {
        let (at, counts) = self.last_with(mark);
        let same = counts & (self.entries[at % PLACES].page(shift) == key.page(shift));
        if counts & !same {
            let found = find_behind(&self.entries[self.first..self.end], self.first, key);
            return found.filter(|&(_, apart)| apart <= shift).map_or(0, |(at, _)| at);
        }
        at * usize::from(same)
    }

    #[inline(always)]
    fn push(&mut self, key: Key, mark: u16) {
        self.entries[self.end % PLACES] = key;
        self.slots[usize::from(mark) % SLOTS] = self.end as u16;
        self.end += 1;
    }

    /// The oldest page goes.
    #[inline(always)]
    fn drop_oldest(&mut self) {
        while self.entries[self.first % PLACES] == GONE {
            self.first += 1;
        }
        self.first += 1;
    }

    /// The page of an entry is used.
    #[inline(always)]
    pub fn use_again(&mut self, at: usize, mark: u16) {
        let page = std::mem::replace(&mut self.entries[at % PLACES], GONE);
        self.push(page, mark);
    }

    /// A page comes, and the oldest goes.
    #[inline(always)]
    pub fn come(&mut self, key: Key, mark: u16) {
        self.drop_oldest();
        self.push(key, mark);
    }

    /// An access to a page of `1 << shift` bytes where the first come first go; 1 if it misses. It is not known beforehand
    /// which do, so that nothing but the numbers is to hang on it.
    #[inline(always)]
    pub fn fifo(&mut self, key: Key, mark: u16, shift: u32) -> usize {
        let misses = usize::from(self.place_of(key, mark, shift) == 0);
        self.entries[self.end % PLACES] = key;
        let slot = &mut self.slots[usize::from(mark) % SLOTS];
        *slot += (self.end as u16 - *slot) * misses as u16;
        self.end += misses;
        self.first += misses;
        misses
    }

    /// The same where the least recently used goes.
    #[inline(always)]
    pub fn lru(&mut self, key: Key, mark: u16, shift: u32) -> usize {
        let at = self.place_of(key, mark, shift);
        self.entries[at % PLACES] = GONE;
        self.push(key, mark);
        if at == 0 {
            self.drop_oldest();
        }
        usize::from(at == 0)
    }
}

/// The entry that is nearest to an access whose mark that of another page has, too, and how far it is apart; the first of
/// them has a number.
#[cold]
#[inline(never)]
fn find_behind(entries: &[Key], number: usize, key: Key) -> Option<(usize, u32)> {
    entries.iter().zip(number..).map(|(entry, at)| (at, entry.apart(key))).min_by_key(|&(_, apart)| apart)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Log2 bytes of pages.
    const SHIFT: u32 = 12;

    fn key(page: u64) -> Key {
        Key::new(1, page << SHIFT | 5)
    }

    proptest! {
        /// Of marks there are so few that pages have those of others.
        #[test]
        fn pages_go_as_from_a_list(
            room in 1usize..20, marks in 1u64..9, pages in prop::collection::vec(0u64..25, 0..BATCH), lru: bool
        ) {
            let mark = |key: Key| (key.page(SHIFT) % marks) as u16;
            let mut memory = Room::default();
            let mut log = Log::new(&mut memory, (0..room).map(|_| Key::NONE), mark);
            // The oldest in front.
            let mut list: VecDeque<Key> = std::iter::repeat_n(Key::NONE, room).collect();
            for page in pages {
                let key = key(page);
                let misses = if lru { log.lru(key, mark(key), SHIFT) } else { log.fifo(key, mark(key), SHIFT) };
                let place = list.iter().position(|&held| held == key);
                prop_assert_eq!(misses == 1, place.is_none());
                if place.is_none() || lru {
                    list.remove(place.unwrap_or(0));
                    list.push_back(key);
                }
                prop_assert!(log.pages().eq(list.iter().copied()));
                let found = log.find(key, mark(key), SHIFT).filter(|&(_, apart)| apart <= SHIFT);
                prop_assert!(found.is_some());
            }
        }
    }
}
