//! Pools of identical entries, each held for an interval: miss buffers, for instance.

use crate::Cycle;

/// A pool of identical entries, each held for an interval: miss buffers, for instance.
///
/// Each entry remembers its latest holding, with those before it that leave no room for another. A request well before
/// them uses the entry before it: a far-future holding does not block earlier ones.
pub struct Pool {
    /// The latest holding of each entry, in the order in which they end, from `first` on; as much room again as there are
    /// entries, so that they move back to the beginning but once in a while.
    held: Box<[Holding]>,
    first: usize,
    capacity: usize,
    /// Requests from then on come behind all gaps.
    no_gap: Cycle,
}

#[derive(Clone, Copy, Default)]
struct Holding {
    /// Requests before this use the entry before its holding, and before those that left no room in front of it: a gap is
    /// taken to be long enough when it is as long as the holding.
    before: Cycle,
    until: Cycle,
}

/// An entry of a [`Pool`] and when it is free, to be [held](Pool::hold) before another one is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// When the entry can be taken.
    pub at: Cycle,
    /// How many holdings end before the entry's.
    place: u32,
}

impl Pool {
    /// A pool of `capacity` entries.
    ///
    /// # Panics
    /// When the capacity is zero.
    #[must_use]
    pub fn new(capacity: usize) -> Pool {
        assert!(capacity > 0, "a pool needs an entry");
        Pool { held: vec![Holding::default(); 2 * capacity].into(), first: 0, capacity, no_gap: 0 }
    }

    /// The first time at or after `t` at which an entry is free, and that entry.
    #[inline(always)]
    #[must_use]
    pub fn first_free(&self, t: Cycle) -> Grant {
        let until = self.held[self.first].until;
        if until <= t {
            self.last_before(t)
        } else if t >= self.no_gap {
            Grant { at: until, place: 0 }
        } else {
            self.in_gap(t)
        }
    }

    /// Of the entries that are free at `t`, the one that was held last: those before it stay free for earlier requests.
    #[inline(always)]
    fn last_before(&self, t: Cycle) -> Grant {
        let all = &self.held[self.first..][..self.capacity];
        let last = self.capacity - 1;
        let place = if all[last].until <= t { last } else { all.partition_point(|h| h.until <= t) - 1 };
        Grant { at: t, place: place as u32 }
    }

    /// An entry that is free at `t` before it is held, or else the one that is free first.
    #[cold]
    #[inline(never)]
    fn in_gap(&self, t: Cycle) -> Grant {
        let all = &self.held[self.first..][..self.capacity];
        match all.iter().position(|h| t < h.before) {
            Some(place) => Grant { at: t, place: place as u32 },
            None => Grant { at: all[0].until.max(t), place: 0 },
        }
    }

    /// The granted entry is held in `[from, until)`.
    #[inline(always)]
    pub fn hold(&mut self, grant: Grant, from: Cycle, until: Cycle) {
        let place = self.first + grant.place as usize;
        let h = self.held[place];
        // In the gap before a later holding nothing need be remembered.
        if until < h.until {
            return;
        }
        // In a gap too short for it nobody fits: with the holding before the gap, this is one.
        let room = from.saturating_sub(until - from);
        let before = if room < h.until { h.before } else { room };
        self.no_gap = self.no_gap.max(before);
        self.insert(place, Holding { before, until });
    }

    /// A holding takes the place of the one at `place`, which ends no later, and then its own.
    #[inline(always)]
    fn insert(&mut self, place: usize, holding: Holding) {
        if place != self.first {
            return self.insert_behind(place, holding);
        }
        if self.first == self.capacity {
            self.held.copy_within(self.capacity.., 0);
            self.first = 0;
        }
        self.first += 1;
        // Most end as the last one, or nearly.
        let mut free = self.first + self.capacity - 1;
        while free > self.first && self.held[free - 1].until > holding.until {
            self.held[free] = self.held[free - 1];
            free -= 1;
        }
        self.held[free] = holding;
    }

    #[inline(never)]
    fn insert_behind(&mut self, place: usize, holding: Holding) {
        let end = self.first + self.capacity;
        let later = self.held[place + 1..end].partition_point(|h| h.until <= holding.until);
        self.held.copy_within(place + 1..place + 1 + later, place);
        self.held[place + later] = holding;
    }
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
                let all = &p.held[p.first..][..capacity];
                assert_eq!(Some(grant.at), all.iter().map(ends).min(), "step {step}");
                assert!(all.is_sorted_by_key(|h| h.until), "step {step}");
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
    fn a_later_request_leaves_earlier_ones_the_entry_that_has_been_free_for_longer() {
        let mut p = Pool::new(2);
        let mut hold = |at, until| {
            let grant = p.first_free(at);
            p.hold(grant, grant.at, until);
            grant.at
        };
        assert_eq!([hold(0, 10), hold(0, 50)], [0, 0]);
        // Both are free: the one held until 50 is taken, so that the other one is there at 20.
        assert_eq!([hold(100, 105), hold(20, 120)], [100, 20]);
        assert_eq!(p.first_free(97).at, 105);
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
