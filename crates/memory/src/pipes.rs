//! The two load/store pipes of a core as a calendar.
//!
//! Rules (microarchitecture manual 7.2, 7.6): a cycle takes two loads, or one write of store data (ST2, on
//! pipe 1) beside which only a store's tag access (ST0) of an eligible kind may run on pipe 0; moving a
//! line in or out takes both pipes.

use fxscope_base::Cycle;

const PIPE0: u8 = 1;
const PIPE1: u8 = 2;
/// Something that no store write may join.
const NO_WRITE: u8 = 4;
/// A store write, which only eligible store accesses may join.
const WRITE: u8 = 8;

/// The calendar of both pipes.
pub struct LoadStorePipes {
    slots: Box<[u8]>,
    floor: Cycle,
    /// Reserved pipe cycles, for the busy counters.
    pub busy: [u64; 2],
}

impl LoadStorePipes {
    /// A calendar that looks `span` cycles ahead of its floor.
    #[must_use]
    pub fn new(span: usize) -> LoadStorePipes {
        LoadStorePipes { slots: vec![0; span.next_power_of_two()].into(), floor: 0, busy: [0; 2] }
    }

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        if now > self.floor + 64 {
            let n = self.slots.len();
            let end = now.min(self.floor + n as u64);
            for t in self.floor..end {
                self.slots[t as usize & (n - 1)] = 0;
            }
            self.floor = now;
        }
    }

    #[inline(always)]
    fn slot(&mut self, t: Cycle) -> &mut u8 {
        let i = t as usize & (self.slots.len() - 1);
        &mut self.slots[i]
    }
    #[inline(always)]
    fn horizon(&self) -> Cycle {
        self.floor + self.slots.len() as u64
    }

    /// Books the first cycle from `t` on for which `choose` names the bits to set.
    #[inline(always)]
    fn book(&mut self, t: Cycle, choose: impl Fn(u8) -> Option<u8>) -> Cycle {
        let mut t = t.max(self.floor);
        let horizon = self.horizon();
        while t < horizon {
            let slot = self.slot(t);
            if let Some(bits) = choose(*slot) {
                *slot |= bits;
                self.busy[0] += u64::from(bits & PIPE0);
                self.busy[1] += u64::from(bits & PIPE1) >> 1;
                return t;
            }
            t += 1;
        }
        t
    }

    /// A load flow: either pipe, not beside a store write.
    #[inline(always)]
    pub fn load(&mut self, t: Cycle) -> Cycle {
        self.book(t, |s| match s & (PIPE0 | PIPE1) {
            _ if s & WRITE != 0 => None,
            0 | PIPE1 => Some(PIPE0 | NO_WRITE),
            PIPE0 => Some(PIPE1 | NO_WRITE),
            _ => None,
        })
    }

    /// A store's translation and tag access. `eligible` ones may run beside a store write.
    #[inline(always)]
    pub fn store_access(&mut self, t: Cycle, eligible: bool) -> Cycle {
        let no_write = if eligible { 0 } else { NO_WRITE };
        self.book(t, |s| match s & (PIPE0 | PIPE1) {
            _ if s & WRITE != 0 && !eligible => None,
            0 | PIPE1 => Some(PIPE0 | no_write),
            // On pipe 1 it is in the way of a store write.
            PIPE0 => Some(PIPE1 | NO_WRITE),
            _ => None,
        })
    }

    /// A write of store data.
    #[inline(always)]
    pub fn store_write(&mut self, t: Cycle) -> Cycle {
        self.book(t, |s| (s & (PIPE1 | NO_WRITE | WRITE) == 0).then_some(PIPE1 | WRITE))
    }

    /// Both pipes for `n` cycles, not necessarily in a row.
    pub fn both(&mut self, t: Cycle, n: u64) -> Cycle {
        let mut last = t;
        for _ in 0..n {
            last = self.book(last, |s| (s == 0).then_some(PIPE0 | PIPE1 | NO_WRITE));
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_loads_share_a_cycle_and_a_third_does_not() {
        let mut p = LoadStorePipes::new(64);
        assert_eq!([p.load(5), p.load(5), p.load(5)], [5, 5, 6]);
    }

    #[test]
    fn a_store_write_excludes_loads_and_admits_one_eligible_store_access() {
        let mut p = LoadStorePipes::new(64);
        assert_eq!(p.store_write(5), 5);
        assert_eq!(p.load(5), 6);
        assert_eq!(p.store_access(5, false), 6);
        assert_eq!(p.store_access(5, true), 5);
        assert_eq!(p.store_write(5), 7, "5 is taken, 6 has a load");
    }

    #[test]
    fn moving_a_line_takes_both_pipes() {
        let mut p = LoadStorePipes::new(64);
        p.load(6);
        assert_eq!(p.both(5, 2), 7);
        assert_eq!(p.load(5), 6, "pipe 1 of cycle 6 is still free");
        assert_eq!(p.load(5), 8);
    }
}
