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

/// What asks for a cycle.
#[derive(Clone, Copy)]
#[repr(usize)]
enum Kind {
    Load,
    EligibleStore,
    OtherStore,
    Write,
    Both,
}

const KINDS: usize = 5;

/// The bits a request of each kind sets in a cycle with state `s`, or 0 when the cycle does not suit it.
const fn taken_by(kind: usize, s: u8) -> u8 {
    let pipe = if s & PIPE0 == 0 { PIPE0 } else { PIPE1 };
    let full = s & PIPE0 != 0 && s & PIPE1 != 0;
    let writes = s & WRITE != 0;
    match kind {
        0 if !full && !writes => pipe | NO_WRITE,
        // On pipe 1 a store access is in the way of a store write.
        1 if !full && pipe == PIPE0 => PIPE0,
        1 if !full => PIPE1 | NO_WRITE,
        2 if !full && !writes => pipe | NO_WRITE,
        3 if s & (PIPE1 | NO_WRITE | WRITE) == 0 => PIPE1 | WRITE,
        4 if s == 0 => PIPE0 | PIPE1 | NO_WRITE,
        _ => 0,
    }
}

/// For each state of a cycle: bits set by each kind, and (as a bit for each kind) which kinds it does not suit.
const RULES: [([u8; KINDS], u8); 16] = {
    let mut rules = [([0; KINDS], 0); 16];
    let mut s = 0;
    while s < 16 {
        let mut kind = 0;
        while kind < KINDS {
            let bits = taken_by(kind, s as u8);
            rules[s].0[kind] = bits;
            if bits == 0 {
                rules[s].1 |= 1 << kind;
            }
            kind += 1;
        }
        s += 1;
    }
    rules
};

/// The calendar of both pipes.
pub struct LoadStorePipes {
    /// State of each cycle.
    states: Box<[u8]>,
    /// For each 64 cycles and kind, the cycles that do not suit it.
    unfit: Box<[[u64; KINDS]]>,
    /// Cycles before this are forgotten; a multiple of 64.
    floor: Cycle,
    /// Reserved pipe cycles, for the busy counters.
    pub busy: [u64; 2],
}

impl LoadStorePipes {
    /// A calendar that looks `span` cycles ahead of its floor.
    #[must_use]
    pub fn new(span: usize) -> LoadStorePipes {
        let words = span.div_ceil(64).next_power_of_two();
        LoadStorePipes {
            states: vec![0; words * 64].into(),
            unfit: vec![[0; KINDS]; words].into(),
            floor: 0,
            busy: [0; 2],
        }
    }

    /// Nothing before `now` will be asked for any more.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        if now >= self.floor + 64 {
            self.forget(now);
        }
    }

    #[inline(never)]
    fn forget(&mut self, now: Cycle) {
        let words = self.unfit.len() as u64;
        let steps = (now - self.floor) / 64;
        for step in 0..steps.min(words) {
            let word = (self.floor / 64 + step) as usize & (words as usize - 1);
            self.unfit[word] = [0; KINDS];
            self.states[word * 64..word * 64 + 64].fill(0);
        }
        self.floor += steps * 64;
    }

    /// Books the first cycle from `t` on that suits `kind`.
    #[inline(always)]
    fn book(&mut self, t: Cycle, kind: Kind) -> Cycle {
        let mask = self.unfit.len() - 1;
        let horizon = self.floor + self.states.len() as u64;
        let mut t = t.max(self.floor);
        while t < horizon {
            let word = (t / 64) as usize & mask;
            let fit = !self.unfit[word][kind as usize] >> (t % 64);
            if fit != 0 {
                t += u64::from(fit.trailing_zeros());
                let bit = (t % 64) as usize;
                let state = &mut self.states[word * 64 + bit];
                let bits = RULES[usize::from(*state & 15)].0[kind as usize];
                *state |= bits;
                let unfit = RULES[usize::from(*state & 15)].1;
                for (k, w) in self.unfit[word].iter_mut().enumerate() {
                    *w |= u64::from(unfit >> k & 1) << bit;
                }
                self.busy[0] += u64::from(bits & PIPE0);
                self.busy[1] += u64::from(bits & PIPE1) >> 1;
                return t;
            }
            t = (t | 63) + 1;
        }
        t
    }

    /// A load flow: either pipe, not beside a store write.
    #[inline(always)]
    pub fn load(&mut self, t: Cycle) -> Cycle {
        self.book(t, Kind::Load)
    }

    /// A store's translation and tag access. `eligible` ones may run beside a store write.
    #[inline(always)]
    pub fn store_access(&mut self, t: Cycle, eligible: bool) -> Cycle {
        self.book(t, if eligible { Kind::EligibleStore } else { Kind::OtherStore })
    }

    /// A write of store data.
    #[inline(always)]
    pub fn store_write(&mut self, t: Cycle) -> Cycle {
        self.book(t, Kind::Write)
    }

    /// Both pipes for `n` cycles, not necessarily in a row; returns the last of them.
    pub fn both(&mut self, t: Cycle, n: u64) -> Cycle {
        let mut last = t;
        for _ in 0..n {
            last = self.book(last, Kind::Both);
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
