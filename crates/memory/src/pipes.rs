//! The two load/store pipes of a core as a calendar.
//!
//! Rules (microarchitecture manual 7.2, 7.6): a cycle takes two loads, or one write of store data (ST2) on pipe 1. Only
//! the tag access (ST0) of an eligible store may run on pipe 0 in the same cycle as a write. Moving a line in or out
//! takes both pipes.

use fxscope_calendar::calendar::{shift_word, shift_words};
use fxscope_calendar::{Cycle, SPAN};

/// The reservations of 64 cycles, a bit for each cycle.
#[derive(Clone, Copy, Default, serde::Deserialize, serde::Serialize)]
struct Taken {
    pipe0: u64,
    pipe1: u64,
    /// The flow in pipe 0, pipe 1 ends in the stages of a long access.
    long: [u64; 2],
    /// A reservation that no store write may join.
    no_write: u64,
    /// A store write, which only eligible store accesses may join.
    write: u64,
    /// A store write that counts in both pipes.
    wide: u64,
    /// The number of replayed flows that are cancelled.
    replays: u64,
}

/// The kind of a flow.
#[derive(Clone, Copy)]
enum Kind {
    /// A load, or a store access that is not eligible.
    Load,
    EligibleStore,
    Write,
    Both,
}

impl Taken {
    /// The cycles that are not free for `kind`.
    #[inline(always)]
    fn unfit(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Load => self.pipe0 & self.pipe1 | self.write,
            Kind::EligibleStore => self.pipe0 & self.pipe1,
            Kind::Write => self.pipe1 | self.no_write | self.write,
            Kind::Both => self.pipe0 | self.pipe1 | self.no_write | self.write,
        }
    }

    /// Takes the cycle of `bit`. Returns the pipe: of two free ones the address pipe's own (`own`: all bits set for
    /// pipe 1); pipe 1 for a flow that takes both.
    #[inline(always)]
    fn take(&mut self, kind: Kind, bit: u64, own: u64) -> usize {
        match kind {
            Kind::Load | Kind::EligibleStore => {
                let second = (self.pipe0 | own & !self.pipe1) & bit;
                // A store access on pipe 1 excludes a store write.
                self.pipe1 |= second;
                self.pipe0 |= bit & !second;
                self.no_write |= if matches!(kind, Kind::Load) { bit } else { second };
                usize::from(second != 0)
            }
            Kind::Write => {
                self.pipe1 |= bit;
                self.write |= bit;
                1
            }
            Kind::Both => {
                self.pipe0 |= bit;
                self.pipe1 |= bit;
                self.no_write |= bit;
                1
            }
        }
    }

    /// Reserved cycles of each pipe.
    fn reserved(&self) -> [u64; 2] {
        [self.pipe0 | self.wide, self.pipe1].map(|pipe| u64::from(pipe.count_ones()))
    }

    /// Free cycles of each pipe that replayed flows take.
    fn replayed(&self) -> [u64; 2] {
        if self.replays == 0 {
            return [0; 2];
        }
        let [first, second] = self.reserved();
        let in_second = (self.replays / 2).min(64 - second);
        [(self.replays - in_second).min(64 - first), in_second]
    }

    /// Adds reserved and replayed cycles.
    fn add_busy(&self, busy: [u64; 2]) -> [u64; 2] {
        let (reserved, replayed) = (self.reserved(), self.replayed());
        std::array::from_fn(|pipe| busy[pipe] + reserved[pipe] + replayed[pipe])
    }

    /// [`shift_word`] for all words.
    fn shift(&mut self, bits: u32, carry: &mut Taken) {
        shift_word(&mut self.pipe0, bits, &mut carry.pipe0);
        shift_word(&mut self.pipe1, bits, &mut carry.pipe1);
        shift_word(&mut self.long[0], bits, &mut carry.long[0]);
        shift_word(&mut self.long[1], bits, &mut carry.long[1]);
        shift_word(&mut self.no_write, bits, &mut carry.no_write);
        shift_word(&mut self.write, bits, &mut carry.write);
        shift_word(&mut self.wide, bits, &mut carry.wide);
    }
}

/// For each period, 2^32 divided by it, rounded up. Multiplying by it divides, exactly below [`DIVIDED`] cycles.
const RECIPROCALS: [u64; 64] = {
    let mut reciprocals = [0; 64];
    let mut period = 1;
    while period < 64 {
        reciprocals[period] = (1_u64 << 32).div_ceil(period as u64);
        period += 1;
    }
    reciprocals
};
/// Cycles below which [`RECIPROCALS`] divide exactly.
const DIVIDED: Cycle = (1 << 32) / RECIPROCALS.len() as Cycle;

/// The number of periods that `cycles` cycles need, rounded up.
#[inline(always)]
fn periods(cycles: Cycle, period: Cycle) -> u64 {
    let cycles = cycles + period - 1;
    match RECIPROCALS.get(period as usize) {
        Some(reciprocal) if cycles < DIVIDED => (cycles * reciprocal) >> 32,
        _ => cycles / period,
    }
}

/// Words of the ring.
const WORDS: usize = SPAN as usize / 64;

/// The calendar of both pipes.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct LoadStorePipes {
    #[serde(with = "fxscope_calendar::array")]
    taken: Box<[Taken; WORDS]>,
    /// Cycles before this are forgotten; a multiple of 64.
    floor: Cycle,
    /// The pipe of the last reservation; pipe 1 for both.
    last: usize,
    /// All bits set when accesses come from EAGB, which prefers pipe 1; no bit set for EAGA.
    own: u64,
    /// Reserved cycles of each pipe before `floor`.
    past: [u64; 2],
}

impl Default for LoadStorePipes {
    fn default() -> LoadStorePipes {
        LoadStorePipes { taken: Box::new([Taken::default(); WORDS]), floor: 0, last: 0, own: 0, past: [0; 2] }
    }
}

impl LoadStorePipes {
    /// No request before `now` follows.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        if now >= self.floor + 64 {
            self.forget(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn forget(&mut self, now: Cycle) {
        let steps = (now - self.floor) / 64;
        for step in 0..steps.min(WORDS as u64) {
            let past = std::mem::take(&mut self.taken[(self.floor / 64 + step) as usize % WORDS]);
            self.past = past.add_busy(self.past);
        }
        self.floor += steps * 64;
    }

    /// Reserved cycles of each pipe so far, for the busy counters.
    #[must_use]
    pub fn busy(&self) -> [u64; 2] {
        self.taken.iter().fold(self.past, |busy, taken| taken.add_busy(busy))
    }

    /// Adds reserved cycles.
    pub fn add_busy(&mut self, more: [u64; 2]) {
        self.past = std::array::from_fn(|pipe| self.past[pipe] + more[pipe]);
    }

    /// Moves all reservations `cycles` later. Replayed flows are counted before, since their exact cycles within a word
    /// are not known.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        for taken in &mut self.taken[..] {
            let replayed = taken.replayed();
            taken.replays = 0;
            self.past = std::array::from_fn(|pipe| self.past[pipe] + replayed[pipe]);
        }
        self.floor = shift_words(&mut self.taken[..], self.floor, cycles, Taken::shift);
    }

    /// Books the first cycle at or after `t` that is free for `kind`.
    #[inline(always)]
    fn book(&mut self, t: Cycle, kind: Kind) -> Cycle {
        if t.wrapping_sub(self.floor) < SPAN {
            let taken = &mut self.taken[(t / 64) as usize % WORDS];
            let fit = !taken.unfit(kind) >> (t % 64);
            if fit != 0 {
                let t = t + u64::from(fit.trailing_zeros());
                self.last = taken.take(kind, 1 << (t % 64), self.own);
                return t;
            }
        }
        self.book_later(t, kind)
    }

    /// The same, when the word of `t` has no such cycle, or is outside the ring.
    #[cold]
    #[inline(never)]
    fn book_later(&mut self, t: Cycle, kind: Kind) -> Cycle {
        let floor = self.floor;
        let mut t = t.max(floor);
        while t - floor < SPAN {
            let taken = &mut self.taken[(t / 64) as usize % WORDS];
            let fit = !taken.unfit(kind) >> (t % 64);
            if fit != 0 {
                t += u64::from(fit.trailing_zeros());
                self.last = taken.take(kind, 1 << (t % 64), self.own);
                return t;
            }
            t = (t | 63) + 1;
        }
        t
    }

    /// Sets whether the next addresses come from EAGB or from EAGA. Each sends accesses to its own pipe if that is free
    /// (manual 7.2.1, figure 2-6).
    #[inline(always)]
    pub fn from_eagb(&mut self, eagb: bool) {
        self.own = u64::from(eagb).wrapping_neg();
    }

    /// A load flow: either pipe, not in the cycle of a store write.
    #[inline(always)]
    pub fn load(&mut self, t: Cycle) -> Cycle {
        self.book(t, Kind::Load)
    }

    /// An access replays its flow every `period` cycles after `t` until one runs at or after `end`; earlier ones are
    /// cancelled. Cancelled flows take cycles that nothing else has reserved: they are counted, but block nothing.
    /// Returns when the successful one is sent.
    pub fn replay(&mut self, t: Cycle, end: Cycle, period: Cycle) -> Cycle {
        let counted = end.min(self.floor + SPAN);
        let mut next = t + period;
        while next < counted {
            let block = (next | 63) + 1;
            let flows = periods(block.min(counted) - next, period);
            self.taken[(next / 64) as usize % WORDS].replays += flows;
            next += flows * period;
        }
        if next < end { next + periods(end - next, period) * period } else { next }
    }

    /// The access whose flow was reserved last, in cycle `t`. Returns whether it ends in the stages of a long access:
    /// when it is one, or when a long one that began `ahead` cycles earlier in the same pipe would end in the same
    /// cycle (manual 2.9).
    #[inline(always)]
    pub fn ends_long(&mut self, t: Cycle, long: bool, ahead: Cycle) -> bool {
        let place = |t: Cycle| (t / 64) as usize % WORDS;
        let meets = || self.taken[place(t - ahead)].long[self.last] >> ((t - ahead) % 64) & 1 == 1;
        let ends_long = long || (t >= self.floor + ahead && meets());
        if ends_long && t.wrapping_sub(self.floor) < SPAN {
            self.taken[place(t)].long[self.last] |= 1 << (t % 64);
        }
        ends_long
    }

    /// A store's translation and tag access. An `eligible` one may share its cycle with a store write.
    #[inline(always)]
    pub fn store_access(&mut self, t: Cycle, eligible: bool) -> Cycle {
        if eligible { self.book(t, Kind::EligibleStore) } else { self.book(t, Kind::Load) }
    }

    /// A write of store data. A `wide` one (a vector register) counts in both pipes.
    #[inline(always)]
    pub fn store_write(&mut self, t: Cycle, wide: bool) -> Cycle {
        let t = self.book(t, Kind::Write);
        if t.wrapping_sub(self.floor) < SPAN {
            self.taken[(t / 64) as usize % WORDS].wide |= u64::from(wide) << (t % 64);
        }
        t
    }

    /// The pipe of the last reservation; pipe 1 for both.
    #[inline(always)]
    #[must_use]
    pub fn last(&self) -> usize {
        self.last
    }

    /// Both pipes for `n` cycles, not necessarily consecutive. Returns the last of them.
    #[inline(always)]
    pub fn both(&mut self, t: Cycle, n: u64) -> Cycle {
        if (1..=64).contains(&n) && t.wrapping_sub(self.floor) < SPAN {
            let taken = &mut self.taken[(t / 64) as usize % WORDS];
            let fit = !taken.unfit(Kind::Both) >> (t % 64);
            let row = u64::MAX >> (64 - n);
            let first = fit.trailing_zeros() % 64;
            if fit >> first & row == row {
                let t = t + u64::from(first);
                self.last = taken.take(Kind::Both, row << (t % 64), self.own);
                return t + n - 1;
            }
        }
        self.both_scattered(t, n)
    }

    /// The same, when the first free cycle does not begin `n` consecutive ones.
    #[inline(never)]
    fn both_scattered(&mut self, t: Cycle, n: u64) -> Cycle {
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
        let mut p = LoadStorePipes::default();
        assert_eq!([p.load(5), p.load(5), p.load(5)], [5, 5, 6]);
    }

    #[test]
    fn an_access_takes_the_pipe_beside_its_address_pipe_if_that_is_free() {
        let mut p = LoadStorePipes::default();
        let mut at = |eagb: bool, t: Cycle| {
            p.from_eagb(eagb);
            (p.load(t), p.last())
        };
        assert_eq!([at(true, 5), at(true, 5), at(false, 7), at(false, 7)], [(5, 1), (5, 0), (7, 0), (7, 1)]);
        assert_eq!(p.busy(), [2, 2]);
        p.from_eagb(true);
        assert_eq!(p.store_access(9, true), 9);
        assert_eq!(p.store_write(9, false), 10, "the store access is in pipe 1");
        assert_eq!((p.store_access(10, true), p.last()), (10, 0), "pipe 1 has the write");
    }

    #[test]
    fn a_store_write_excludes_loads_and_admits_one_eligible_store_access() {
        let mut p = LoadStorePipes::default();
        assert_eq!(p.store_write(5, false), 5);
        assert_eq!(p.load(5), 6);
        assert_eq!(p.store_access(5, false), 6);
        assert_eq!(p.store_access(5, true), 5);
        assert_eq!(p.store_write(5, false), 7, "5 is taken, 6 has a load");
    }

    #[test]
    fn a_short_access_that_would_end_with_a_long_one_in_its_pipe_ends_as_a_long_one() {
        let mut p = LoadStorePipes::default();
        let mut access = |t, long| {
            let t = p.load(t);
            p.ends_long(t, long, 3)
        };
        assert!(access(10, true), "pipe 0");
        assert!(!access(12, false), "pipe 0, two cycles behind");
        assert!(access(13, false), "pipe 0, three cycles behind");
        assert!(!access(13, false), "pipe 1");
        assert!(access(16, false), "pipe 0, behind the one that was lengthened");
        assert!(!access(16, false), "pipe 1");
    }

    #[test]
    fn cancelled_replays_are_counted_in_free_cycles_and_block_nothing() {
        let mut p = LoadStorePipes::default();
        assert_eq!(p.replay(5, 60, 15), 65);
        assert_eq!(p.busy(), [2, 1], "20, 35 and 50");
        assert_eq!([p.load(20), p.load(20)], [20, 20]);
        assert_eq!(p.busy(), [3, 2]);
        assert_eq!(p.replay(60, 130, 1), 130);
        assert_eq!(p.busy().iter().sum::<u64>(), 5 + 69, "61 to 129");
        (0..64).for_each(|_| _ = p.replay(64, 128, 1));
        p.advance(128);
        assert_eq!(p.busy(), [4 + 64 + 1; 2], "the second 64 cycles are full; eight before and two behind");
    }

    #[test]
    fn cycles_are_divided_into_periods_as_division_does() {
        for period in (1..70).chain([1_000_003]) {
            for cycles in (0..1_000).chain([DIVIDED - 100, DIVIDED - period, DIVIDED, 1 << 40]) {
                assert_eq!(periods(cycles, period), cycles.div_ceil(period), "{cycles} / {period}");
            }
        }
    }

    #[test]
    fn the_first_successful_replay_is_the_first_one_at_or_after_the_end() {
        let mut p = LoadStorePipes::default();
        assert_eq!([p.replay(5, 6, 15), p.replay(5, 35, 15), p.replay(5, 36, 15)], [20, 35, 50]);
        let end = 3 * SPAN + 1;
        assert_eq!(p.replay(0, end, 15), end.div_ceil(15) * 15, "beyond what is remembered");
    }

    #[test]
    fn cancelled_replays_count_the_same_after_a_fast_forward() {
        let mut p = LoadStorePipes::default();
        (64..128).for_each(|t| assert_eq!(p.load(t), t));
        (0..3).for_each(|_| _ = p.replay(127, 192, 1));
        let before = p.busy();
        assert_eq!(before, [64 + 64, 64], "cancelled: all of 128 to 191");
        p.fast_forward(1_000_040);
        assert_eq!(p.busy(), before);
    }

    #[test]
    fn a_wide_store_write_counts_in_both_pipes_once() {
        let mut p = LoadStorePipes::default();
        p.store_write(5, false);
        assert_eq!(p.busy(), [0, 1]);
        p.store_write(6, true);
        assert_eq!(p.busy(), [1, 2]);
        p.store_access(6, true);
        assert_eq!(p.busy(), [1, 2], "the access is in pipe 0 of the write's cycle");
        assert_eq!(p.load(6), 7);
    }

    #[test]
    fn moving_a_line_takes_both_pipes() {
        let mut p = LoadStorePipes::default();
        p.load(6);
        assert_eq!(p.both(5, 2), 7);
        assert_eq!(p.load(5), 6, "pipe 1 of cycle 6 is still free");
        assert_eq!(p.load(5), 8);
    }
}
