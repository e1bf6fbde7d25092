//! What a fully associative TLB holds while it sees many accesses in a row. Pages are those that the row has numbers for; of
//! others nothing is asked.

use crate::ENTRIES;
use crate::choice::Key;
use crate::row::{BATCH, PAGES};

/// The page that is always held. Nothing is replaced for it.
pub const ALWAYS: u16 = 0;

/// Pages by their numbers, of which one may be held or not.
pub trait Held {
    /// Whether a page is held.
    fn holds(&self, page: u16) -> bool;
    /// An access to a page, of which it is known whether it is held. It is not known beforehand which are, so that nothing
    /// but numbers is to hang on it.
    fn access(&mut self, page: u16, held: bool, key: Key);
}

/// Pages of which the first come first go.
pub struct Fifo<'a> {
    /// For each page, of all that came the number of the one that it was; 0 for one that did not come.
    came: &'a mut [u16; PAGES],
    /// Up to which number pages have gone.
    gone: u16,
    entries: u16,
}

impl<'a> Fifo<'a> {
    /// Begins with the pages of a TLB, the oldest first, as far as they have numbers; those of others are [`ALWAYS`].
    #[inline(always)]
    pub fn new(came: &'a mut [u16; PAGES], pages: impl Iterator<Item = u16>) -> Fifo<'a> {
        came.fill(0);
        let mut entries = 0;
        for page in pages {
            entries += 1;
            came[usize::from(page)] = entries;
        }
        came[usize::from(ALWAYS)] = u16::MAX;
        Fifo { came, gone: 0, entries }
    }
}

impl Held for Fifo<'_> {
    #[inline(always)]
    fn holds(&self, page: u16) -> bool {
        self.came[usize::from(page) % PAGES] > self.gone
    }

    #[inline(always)]
    fn access(&mut self, page: u16, held: bool, _: Key) {
        self.gone += u16::from(!held);
        let came = &mut self.came[usize::from(page) % PAGES];
        *came = if held { *came } else { self.gone + self.entries };
    }
}

/// What stands where a page was before it was used again.
const GONE: Key = Key::from_page(u64::MAX - 1, 0);
/// Places for uses: one that does not count, those before the row, and one for each access.
const USES: usize = (1 + ENTRIES + BATCH).next_power_of_two();

/// Room for [`Lru`].
pub struct Uses {
    uses: [Key; USES],
    last: [u16; PAGES],
}

impl Default for Uses {
    fn default() -> Uses {
        Uses { uses: [GONE; USES], last: [0; PAGES] }
    }
}

/// Pages of which the least recently used goes. Nothing moves: the oldest goes when `first` moves on.
pub struct Lru<'a> {
    /// Addresses in pages in the order in which they were used last. The first is none that counts.
    uses: &'a mut [Key; USES],
    /// The place of the last use of each page, or 0.
    last: &'a mut [u16; PAGES],
    /// The first use that counts, and the end of them.
    first: u16,
    end: u16,
}

impl<'a> Lru<'a> {
    /// Begins with the pages of a TLB, the oldest first, as far as they have numbers; those of others are [`ALWAYS`].
    #[inline(always)]
    pub fn new(room: &'a mut Uses, pages: impl Iterator<Item = (Key, u16)>) -> Lru<'a> {
        let Uses { uses, last } = room;
        last.fill(0);
        let mut end = 1;
        for (key, page) in pages {
            uses[usize::from(end)] = key;
            last[usize::from(page)] = end;
            end += 1;
        }
        last[usize::from(ALWAYS)] = u16::MAX;
        Lru { uses, last, first: 1, end }
    }

    /// An address in each page that is held, the least recently used first.
    pub fn pages(&self) -> impl DoubleEndedIterator<Item = Key> {
        self.uses[usize::from(self.first)..usize::from(self.end)].iter().copied().filter(|&key| key != GONE)
    }
}

impl Held for Lru<'_> {
    #[inline(always)]
    fn holds(&self, page: u16) -> bool {
        self.last[usize::from(page) % PAGES] >= self.first
    }

    #[inline(always)]
    fn access(&mut self, page: u16, held: bool, key: Key) {
        if page == ALWAYS {
            return;
        }
        let last = std::mem::replace(&mut self.last[usize::from(page) % PAGES], self.end);
        self.uses[usize::from(last) % USES] = GONE;
        self.uses[usize::from(self.end) % USES] = key;
        self.end += 1;
        if !held {
            while self.uses[usize::from(self.first) % USES] == GONE {
                self.first += 1;
            }
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn key(page: u16) -> Key {
        Key::new(1, u64::from(page) << 12)
    }

    /// Sees accesses to pages as a list does, the oldest in front.
    fn as_a_list(
        held: &mut impl Held,
        list: &mut VecDeque<u16>,
        accesses: &[u16],
        lru: bool,
    ) -> Result<(), TestCaseError> {
        for &page in accesses {
            let place = list.iter().position(|&other| other == page);
            prop_assert_eq!(held.holds(page), place.is_some() || page == ALWAYS);
            held.access(page, place.is_some() || page == ALWAYS, key(page));
            if page != ALWAYS && (place.is_none() || lru) {
                list.remove(place.unwrap_or(0));
                list.push_back(page);
            }
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn pages_go_as_from_a_list(
            room in 1u16..20, known in 0u16..20, accesses in prop::collection::vec(0u16..25, 0..BATCH)
        ) {
            // Of the pages at the beginning, which are above those accessed but for some, others are not known.
            let before: Vec<u16> = (0..room).map(|i| if i < known { i + 15 } else { ALWAYS }).collect();
            let list: VecDeque<u16> = before.iter().map(|&page| if page == ALWAYS { u16::MAX } else { page }).collect();
            let mut came = [7; PAGES];
            as_a_list(&mut Fifo::new(&mut came, before.iter().copied()), &mut list.clone(), &accesses, false)?;

            let mut room = Uses::default();
            room.last.fill(7);
            let pairs = list.iter().zip(&before).map(|(&page, &number)| (key(page), number));
            let (mut lru, mut list) = (Lru::new(&mut room, pairs), list.clone());
            as_a_list(&mut lru, &mut list, &accesses, true)?;
            prop_assert!(lru.pages().eq(list.iter().map(|&page| key(page))));
        }
    }
}
