//! Pools of identical buffers, each held for an interval: MSHRs, write-back buffers, table walkers.

use crate::Cycle;

/// A pool of identical buffers, each held for an interval, such as the MSHRs of a cache.
///
/// Each entry remembers its latest holding, merged with earlier ones that leave no usable gap. A request well before them gets
/// the entry before it, so a holding in the far future does not block earlier ones.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct BufferPool {
    capacity: usize,
    /// For each entry, when it becomes free; padded to whole blocks with [`NO_ENTRY`].
    ends: Box<[End]>,
    /// For each entry: earlier requests than this get the entry ahead of its latest holding and those merged with it. A gap
    /// counts as long enough if it is as long as the holding.
    before: Box<[Cycle]>,
    /// The earliest end in each [`BLOCK`] of entries; if there are more than two blocks, grouped into blocks again.
    soonest: Box<[End]>,
    /// For each block, the latest of `before`.
    last_before: Box<[Cycle]>,
    /// Blocks whose earliest end is stale, one bit each; the last bit stands for all further blocks.
    stale: u64,
    /// The least recently granted entry.
    next: usize,
    /// The number of consecutive holdings, each of the next entry, that ended no earlier than the one before; and the end of the
    /// last one.
    in_order: usize,
    last_until: Cycle,
    /// Requests from this time on come after all holdings.
    no_gap: Cycle,
}

/// Number of entries that are searched together.
const BLOCK: usize = 16;
/// The last bit of [`BufferPool::stale`].
const LAST_BIT: usize = u64::BITS as usize - 1;

/// When an entry's latest holding ends, with the entry's number in the low bits: the minimum of several is then the first of the
/// entries that become free earliest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize, serde::Serialize)]
struct End(u64);

/// An end without an entry, after all others.
const NO_ENTRY: End = End(u64::MAX);

impl End {
    const ENTRY_BITS: u32 = 12;

    #[inline(always)]
    fn new(entry: usize, until: Cycle) -> End {
        End(until << End::ENTRY_BITS | entry as u64)
    }
    #[inline(always)]
    fn until(self) -> Cycle {
        self.0 >> End::ENTRY_BITS
    }
    #[inline(always)]
    fn entry(self) -> u32 {
        (self.0 & ((1 << End::ENTRY_BITS) - 1)) as u32
    }
}

/// Returns the minimum of a block. A separate function, because inside a loop the compiler turns the selections into branches.
#[inline(never)]
fn least(ends: &[End; BLOCK]) -> End {
    let eight: [End; 8] = std::array::from_fn(|i| ends[i].min(ends[i + 8]));
    let four: [End; 4] = std::array::from_fn(|i| eight[i].min(eight[i + 4]));
    four[0].min(four[1]).min(four[2].min(four[3]))
}

/// An entry of a [`BufferPool`], and when it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When the entry can be taken.
    pub at: Cycle,
    entry: u32,
}

impl Grant {
    /// Returns a grant at `t` of no particular entry, for a request that takes none: it must not be held.
    #[inline(always)]
    #[must_use]
    pub fn untimed(t: Cycle) -> Grant {
        Grant { at: t, entry: 0 }
    }
}

impl BufferPool {
    /// Returns a pool of `capacity` entries.
    ///
    /// # Panics
    /// When the capacity is zero, or more than 4,096.
    #[must_use]
    pub fn new(capacity: usize) -> BufferPool {
        assert!((1..=1 << End::ENTRY_BITS).contains(&capacity), "a pool has 1 to 4,096 entries");
        let blocks = capacity.div_ceil(BLOCK);
        let end = |entry: usize| if entry < capacity { End::new(entry, 0) } else { NO_ENTRY };
        let listed = if blocks <= 2 { blocks } else { blocks.next_multiple_of(BLOCK) };
        BufferPool {
            capacity,
            ends: (0..BLOCK * blocks).map(end).collect(),
            before: vec![0; capacity].into(),
            soonest: (0..listed).map(|block| end(BLOCK * block)).collect(),
            last_before: vec![0; blocks].into(),
            stale: 0,
            next: 0,
            in_order: 0,
            last_until: 0,
            no_gap: 0,
        }
    }

    /// Returns the first time at or after `t` at which an entry is free, and that entry.
    #[inline(always)]
    #[must_use]
    pub fn first_free(&mut self, t: Cycle) -> Grant {
        let until = self.ends[self.next].until();
        // If holdings end in the order of the entries, the next entry's ends first.
        if until <= t || (self.in_order >= self.capacity && t >= self.no_gap) {
            Grant { at: until.max(t), entry: self.next as u32 }
        } else {
            self.search(t)
        }
    }

    /// Returns the first entry that is free at `t`, or else the first of those that become free earliest.
    #[cold]
    #[inline(never)]
    fn search(&mut self, t: Cycle) -> Grant {
        self.refresh();
        let soonest = self.soonest();
        let waits = soonest.until() > t && t >= self.no_gap;
        match if waits { None } else { self.free_at(t) } {
            Some(entry) => Grant { at: t, entry },
            None => Grant { at: soonest.until(), entry: soonest.entry() },
        }
    }

    /// Returns the earliest end of all. All blocks must be up to date.
    #[inline(always)]
    fn soonest(&self) -> End {
        match &*self.soonest {
            [only] => *only,
            [first, second] => *first.min(second),
            several => several.as_chunks().0.iter().fold(NO_ENTRY, |soonest, block| soonest.min(least(block))),
        }
    }

    /// Returns the first entry that is free at `t`. All blocks must be up to date.
    #[inline(always)]
    fn free_at(&self, t: Cycle) -> Option<u32> {
        let blocks = self.soonest.iter().zip(&self.last_before);
        let block = blocks.into_iter().position(|(end, &before)| end.until() <= t || before > t)?;
        let ends = self.ends[BLOCK * block..].iter().zip(&self.before[BLOCK * block..]);
        let (end, _) = ends.into_iter().find(|&(end, &before)| end.until() <= t || before > t)?;
        Some(end.entry())
    }

    /// Brings all blocks up to date.
    #[inline(always)]
    fn refresh(&mut self) {
        let (ends, _) = self.ends.as_chunks();
        while self.stale != 0 {
            let number = self.stale.trailing_zeros() as usize;
            self.stale &= self.stale - 1;
            let and_behind = if number == LAST_BIT { ends.len() } else { number + 1 };
            for (soonest, block) in self.soonest[number..and_behind].iter_mut().zip(&ends[number..]) {
                *soonest = least(block);
            }
        }
    }

    /// Holds the granted entry in `[from, until)`.
    #[inline(always)]
    pub fn hold(&mut self, grant: Grant, from: Cycle, until: Cycle) {
        let entry = grant.entry as usize;
        let is_next = entry == self.next;
        let end = self.ends[entry].until();
        // A holding in the gap before a later one need not be remembered.
        if until >= end {
            self.ends[entry] = End::new(entry, until);
            self.stale |= 1 << (entry / BLOCK).min(LAST_BIT);
            // If the gap is too short for any holding, this one is merged with the holding before the gap.
            let room = from.saturating_sub(until - from);
            if room >= end {
                self.before[entry] = room;
                let last = &mut self.last_before[entry / BLOCK];
                *last = room.max(*last);
                self.no_gap = self.no_gap.max(room);
            }
            self.in_order = if is_next && until >= self.last_until { self.in_order + 1 } else { 0 };
            self.last_until = until;
        } else if is_next {
            self.in_order = 0;
        }
        if is_next {
            self.next = if self.next + 1 == self.capacity { 0 } else { self.next + 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_grants_no_more_entries_than_it_has() {
        let mut p = BufferPool::new(2);
        let take = |p: &mut BufferPool, t: Cycle, cycles: Cycle| {
            let grant = p.first_free(t);
            p.hold(grant, grant.at, grant.at + cycles);
            grant.at
        };
        assert_eq!(take(&mut p, 10, 40), 10);
        assert_eq!(take(&mut p, 20, 10), 20);
        assert_eq!(take(&mut p, 25, 10), 30);
        assert_eq!(take(&mut p, 35, 10), 40);
        assert_eq!(take(&mut p, 100, 10), 100);
    }

    #[test]
    fn a_grant_is_as_early_as_a_search_of_all_entries_finds_in_pools_of_any_size() {
        for capacity in [1, 4, 12, 16, 17, 40, 256, 1040] {
            let mut p = BufferPool::new(capacity);
            for step in 0..5_000_u64 {
                let (back, steps) = (if step % 7 == 0 { step * 31 % 90 } else { 0 }, step / 50 % 2);
                let cycles = 20 * capacity as u64 / 4 + if steps == 0 { 0 } else { step * 7 % 13 };
                let at = (3 * step + step * step % 11).saturating_sub(back);
                let grant = p.first_free(at);
                let free = |(&before, end): (&Cycle, &End)| if at < before { at } else { end.until().max(at) };
                assert_eq!(Some(grant.at), p.before.iter().zip(&p.ends).map(free).min(), "step {step}");
                p.hold(grant, grant.at, grant.at + cycles);
            }
        }
    }

    #[test]
    fn requesters_that_run_in_turn_never_hold_more_entries_than_the_capacity() {
        const CAPACITY: usize = 64;
        const HELD: Cycle = 250;
        let mut p = BufferPool::new(CAPACITY);
        let mut holdings = Vec::new();
        // Each requester in turn makes all requests of its next 100 cycles, at three times the rate that the pool can serve.
        // Turns are shorter than holdings.
        for ask in 0..4_000_u64 {
            let (turn, asker, in_turn) = (ask / 80, ask / 10 % 8, ask % 10);
            let grant = p.first_free(100 * turn + 10 * in_turn + asker);
            p.hold(grant, grant.at, grant.at + HELD);
            holdings.push(grant.at..grant.at + HELD);
        }
        let end = holdings.iter().map(|h| h.end).max().unwrap_or_default();
        let most = (0..end).map(|t| holdings.iter().filter(|h| h.contains(&t)).count()).max();
        assert_eq!(most, Some(CAPACITY));
    }

    #[test]
    fn a_far_future_holding_does_not_block_an_earlier_one() {
        let mut p = BufferPool::new(1);
        let grant = p.first_free(1000);
        p.hold(grant, 1000, 1010);
        assert_eq!(p.first_free(10).at, 10);
        assert_eq!(p.first_free(995).at, 1010);
    }
}
