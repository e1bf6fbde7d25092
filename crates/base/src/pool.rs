//! Pools of identical entries, each held for an interval: miss buffers, for instance.

use crate::Cycle;

/// A pool of identical entries, each held for an interval: miss buffers, for instance.
///
/// Each entry remembers its latest holding, with those before it that leave no room for another. A request well before
/// them uses the entry before it: a far-future holding does not block earlier ones.
pub struct Pool {
    entries: Box<[Holding]>,
    /// What is known of each [`BLOCK`] of entries, up to date unless it is `stale`.
    blocks: Box<[Block]>,
    /// Blocks whose entries have changed since, a bit each; the last bit stands for all from there on.
    stale: u64,
    /// The entry that was granted longest ago.
    next: usize,
    /// How many of the last holdings, each of the next entry, ended no earlier than those before them; and the last one's
    /// end.
    in_order: usize,
    last_until: Cycle,
    /// Requests from then on come behind all holdings.
    no_gap: Cycle,
}

/// Entries of a pool that are searched together.
const BLOCK: usize = 16;
/// The last bit of [`Pool::stale`].
const LAST_BIT: usize = u64::BITS as usize - 1;

/// Some entries of a pool: a request finds one of them free if it comes before the last of their holdings or behind the end
/// of the first.
#[derive(Clone, Copy, Default)]
struct Block {
    before: Cycle,
    until: Cycle,
}

impl Block {
    fn of(entries: &[Holding]) -> Block {
        let all = Block { before: 0, until: Cycle::MAX };
        entries.iter().fold(all, |b, h| Block { before: b.before.max(h.before), until: b.until.min(h.until) })
    }
}

#[derive(Clone, Copy, Default)]
struct Holding {
    /// Requests before this use the entry before its holding, and before those that left no room in front of it: a gap is
    /// taken to be long enough when it is as long as the holding.
    before: Cycle,
    until: Cycle,
}

/// An entry of a [`Pool`] and when it is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When the entry can be taken.
    pub at: Cycle,
    entry: u32,
}

impl Pool {
    /// A pool of `capacity` entries.
    ///
    /// # Panics
    /// When the capacity is zero.
    #[must_use]
    pub fn new(capacity: usize) -> Pool {
        assert!(capacity > 0, "a pool needs an entry");
        Pool {
            entries: vec![Holding::default(); capacity].into(),
            blocks: vec![Block::default(); capacity.div_ceil(BLOCK)].into(),
            stale: 0,
            next: 0,
            in_order: 0,
            last_until: 0,
            no_gap: 0,
        }
    }

    /// The first time at or after `t` at which an entry is free, and that entry.
    #[inline(always)]
    #[must_use]
    pub fn first_free(&mut self, t: Cycle) -> Grant {
        let until = self.entries[self.next].until;
        // Of holdings that end in the order of the entries, the next one's ends first.
        if until <= t || (self.in_order >= self.entries.len() && t >= self.no_gap) {
            Grant { at: until.max(t), entry: self.next as u32 }
        } else {
            self.search(t)
        }
    }

    /// The first entry that is free at `t`, or else the first of those that are free first.
    #[cold]
    #[inline(never)]
    fn search(&mut self, t: Cycle) -> Grant {
        if self.blocks.len() == 1 { self.search_few(t) } else { self.search_blocks(t) }
    }

    #[inline(always)]
    fn search_few(&self, t: Cycle) -> Grant {
        match t < self.no_gap {
            true => earliest(self.entries.iter().map(|h| if t < h.before { t } else { h.until.max(t) })),
            false => earliest(self.entries.iter().map(|h| h.until.max(t))),
        }
    }

    /// Only those blocks are looked into that have changed, and the one that has the entry.
    #[inline(always)]
    fn search_blocks(&mut self, t: Cycle) -> Grant {
        self.refresh();
        let mut soonest = Grant { at: Cycle::MAX, entry: 0 };
        for (number, block) in self.blocks.iter().enumerate() {
            if block.until <= t || block.before > t {
                return Grant { at: t, entry: self.entry_in(number, |h| h.until <= t || h.before > t) };
            }
            if block.until < soonest.at {
                soonest = Grant { at: block.until, entry: number as u32 };
            }
        }
        Grant { entry: self.entry_in(soonest.entry as usize, |h| h.until == soonest.at), ..soonest }
    }

    /// The first entry of a block that `suits`, as one does.
    #[inline(always)]
    fn entry_in(&self, block: usize, suits: impl Fn(&Holding) -> bool) -> u32 {
        let first = BLOCK * block;
        let place = self.entries[first..].iter().position(suits);
        (first + place.unwrap_or_default()) as u32
    }

    /// All blocks are up to date.
    #[inline(always)]
    fn refresh(&mut self) {
        while self.stale != 0 {
            let number = self.stale.trailing_zeros() as usize;
            self.stale &= self.stale - 1;
            let and_behind = if number == LAST_BIT { self.blocks.len() } else { number + 1 };
            let entries = self.entries[BLOCK * number..].chunks(BLOCK);
            for (block, entries) in self.blocks[number..and_behind].iter_mut().zip(entries) {
                *block = Block::of(entries);
            }
        }
    }

    /// The granted entry is held in `[from, until)`.
    #[inline(always)]
    pub fn hold(&mut self, grant: Grant, from: Cycle, until: Cycle) {
        let is_next = grant.entry as usize == self.next;
        let h = &mut self.entries[grant.entry as usize];
        // In the gap before a later holding nothing need be remembered.
        if until >= h.until {
            // In a gap too short for it nobody fits: with the holding before the gap, this is one.
            let room = from.saturating_sub(until - from);
            *h = Holding { before: if room < h.until { h.before } else { room }, until };
            self.stale |= 1 << (grant.entry as usize / BLOCK).min(LAST_BIT);
            self.no_gap = self.no_gap.max(h.before);
            self.in_order = if is_next && until >= self.last_until { self.in_order + 1 } else { 0 };
            self.last_until = until;
        } else if is_next {
            self.in_order = 0;
        }
        if is_next {
            self.next = if self.next + 1 == self.entries.len() { 0 } else { self.next + 1 };
        }
    }
}

/// The earliest of some times, with the first place that has it: all of them, without a way out, as a choice for each costs
/// the host less than a branch.
#[inline(always)]
fn earliest(times: impl Iterator<Item = Cycle>) -> Grant {
    let first = Grant { at: Cycle::MAX, entry: 0 };
    (0..).zip(times).fold(first, |best, (entry, at)| if at < best.at { Grant { at, entry } } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_grants_no_more_entries_than_it_has() {
        let mut p = Pool::new(2);
        let take = |p: &mut Pool, t: Cycle, cycles: Cycle| {
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
    fn a_grant_is_as_early_as_a_look_at_all_entries_finds_in_pools_of_any_size() {
        for capacity in [1, 4, 12, 16, 17, 40, 256, 1040] {
            let mut p = Pool::new(capacity);
            for step in 0..5_000_u64 {
                let (back, steps) = (if step % 7 == 0 { step * 31 % 90 } else { 0 }, step / 50 % 2);
                let cycles = 20 * capacity as u64 / 4 + if steps == 0 { 0 } else { step * 7 % 13 };
                let at = (3 * step + step * step % 11).saturating_sub(back);
                let grant = p.first_free(at);
                let ends = |h: &Holding| if at < h.before { at } else { h.until.max(at) };
                assert_eq!(Some(grant.at), p.entries.iter().map(ends).min(), "step {step}");
                p.hold(grant, grant.at, grant.at + cycles);
            }
        }
    }

    #[test]
    fn however_long_askers_in_turns_wait_they_never_hold_more_entries_than_there_are() {
        const CAPACITY: usize = 64;
        const HELD: Cycle = 250;
        let mut p = Pool::new(CAPACITY);
        let mut holdings = Vec::new();
        // Each asker in turn asks for all of its next 100 cycles, three times as often as there is room for. Turns are shorter than
        // holdings.
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
        let mut p = Pool::new(1);
        let grant = p.first_free(1000);
        p.hold(grant, 1000, 1010);
        assert_eq!(p.first_free(10).at, 10);
        assert_eq!(p.first_free(995).at, 1010);
    }
}
