//! Releases of station entries by cycle.

use fxscope_calendar::Cycle;

/// Cycles with a counter of their own: more than most operations wait, and few for the host's caches.
const NEAR: usize = 1024;

/// Entries that are released after `now`, the current cycle of dispatch; a byte for each station.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Releases {
    /// Entries released in each of the next cycles.
    #[serde(with = "fxscope_calendar::array")]
    near: Box<[u64; NEAR]>,
    /// Entries that were released later than that when they were added.
    far: Vec<(Cycle, u64)>,
    /// The first cycle of `far`.
    far_from: Cycle,
}

impl Default for Releases {
    fn default() -> Releases {
        Releases { near: Box::new([0; NEAR]), far: Vec::new(), far_from: Cycle::MAX }
    }
}

impl Releases {
    /// More `entries` are released at `t`, which is after `now`.
    #[inline(always)]
    pub fn add(&mut self, now: Cycle, t: Cycle, entries: u64) {
        if t - now < NEAR as u64 {
            self.near[t as usize % NEAR] += entries;
        } else {
            self.add_far(t, entries);
        }
    }

    // At most as many as stations have entries.
    #[cold]
    #[inline(never)]
    fn add_far(&mut self, t: Cycle, entries: u64) {
        self.far.push((t, entries));
        self.far_from = self.far_from.min(t);
    }

    /// Takes back the release of one entry at `t`; `one` is the unit of its station. Returns whether there was one.
    #[cold]
    #[inline(never)]
    pub fn take_back(&mut self, now: Cycle, t: Cycle, one: u64) -> bool {
        if t <= now {
            return false;
        }
        if let Some(i) = self.far.iter().position(|&later| later == (t, one)) {
            self.far.swap_remove(i);
            return true;
        }
        let near = &mut self.near[t as usize % NEAR];
        let there = t - now < NEAR as u64 && *near & (one * 0xff) != 0;
        *near -= if there { one } else { 0 };
        there
    }

    /// Moves all releases `cycles` later.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.near.rotate_right(cycles as usize % NEAR);
        self.far.iter_mut().for_each(|(at, _)| *at += cycles);
        self.far_from = self.far_from.saturating_add(cycles);
    }

    /// Time advances from `now` to `t`. Returns what is released until then.
    #[inline(always)]
    pub fn pass(&mut self, now: Cycle, t: Cycle) -> u64 {
        // Mostly by one cycle, for which no loop is needed.
        let mut released = self.take(now + 1);
        if t > now + 1 {
            for cycle in now + 2..t.min(now + NEAR as u64) + 1 {
                released += self.take(cycle);
            }
        }
        if t >= self.far_from { released + self.pass_far(t) } else { released }
    }

    /// Takes what is released at `t`, which is near.
    #[inline(always)]
    fn take(&mut self, t: Cycle) -> u64 {
        std::mem::take(&mut self.near[t as usize % NEAR])
    }

    #[cold]
    #[inline(never)]
    fn pass_far(&mut self, t: Cycle) -> u64 {
        let (mut released, mut from) = (0, Cycle::MAX);
        self.far.retain(|&(at, entries)| {
            let over = at <= t;
            released += if over { entries } else { 0 };
            from = if over { from } else { from.min(at) };
            !over
        });
        self.far_from = from;
        released
    }

    /// The first cycle after `now` at which something is released.
    #[inline(always)]
    pub fn next(&self, now: Cycle) -> Cycle {
        let mut t = now + 1;
        while t < self.far_from {
            match self.near[t as usize % NEAR..].first_chunk() {
                Some(chunk) if none(chunk) => t += CHUNK as u64,
                _ if self.near[t as usize % NEAR] != 0 => return t,
                _ => t += 1,
            }
        }
        self.far_from
    }
}

/// Cycles that are searched together.
const CHUNK: usize = 8;

#[inline(always)]
fn none(chunk: &[u64; CHUNK]) -> bool {
    chunk.iter().fold(0, |all, entries| all | entries) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_released_later_than_the_ring_reaches_is_released_in_its_cycle() {
        let far = NEAR as u64 + 500;
        let mut releases = Releases::default();
        releases.add(0, far, 1);
        releases.add(0, 2 * far, 1);
        releases.add(0, 700, 1);
        assert_eq!((releases.next(0), releases.next(698), releases.next(699)), (700, 700, 700));
        assert_eq!((releases.pass(0, 699), releases.pass(699, 700), releases.next(700)), (0, 1, far));
        assert_eq!((releases.pass(700, far - 1), releases.next(far - 1), releases.pass(far - 1, far)), (0, far, 1));
        assert_eq!((releases.pass(far, 2 * far - 1), releases.pass(2 * far - 1, 3 * far)), (0, 1));
    }

    #[test]
    fn a_release_that_was_taken_back_does_not_happen() {
        let far = NEAR as u64 + 500;
        let mut releases = Releases::default();
        [700, far].into_iter().for_each(|t| releases.add(0, t, 1 << 8));
        assert!(!releases.take_back(0, 700, 1) && !releases.take_back(700, 700, 1 << 8), "another station's; over");
        assert!(releases.take_back(0, 700, 1 << 8) && releases.take_back(0, far, 1 << 8));
        assert_eq!(releases.pass(0, far), 0);
    }

    #[test]
    fn a_leap_beyond_the_ring_releases_everything_before_its_end() {
        let mut releases = Releases::default();
        (1..=2 * NEAR as u64).for_each(|t| releases.add(0, t, 1));
        assert_eq!(releases.pass(0, 2 * NEAR as u64 - 1), 2 * NEAR as u64 - 1);
        assert_eq!(releases.next(2 * NEAR as u64 - 1), 2 * NEAR as u64);
    }
}
