//! Shared resources as calendars: rings of time slots that accept reservations out of time order.
//!
//! The timing model visits each micro-operation once, in program order, but micro-operations use
//! resources out of order. A "next free at" clock would let one far-future reservation block every
//! younger, earlier one; a calendar fills the gaps.
//!
//! Every calendar has a *floor*: the earliest time that may still be requested. Slots before it are
//! forgotten, so a calendar is a ring of constant size.

use std::ops::Range;

use crate::Cycle;

/// Words of a calendar's ring, of 64 slots each.
const WORDS: usize = 256;

/// How far ahead of its floor a calendar looks, in slots: far beyond a commit stack full of dependent misses.
pub const SPAN: u64 = WORDS as u64 * 64;

/// One reservation per slot and cycle.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Calendar {
    /// Bit set: cycle reserved. Bit `c % 64` of word `c / 64 % WORDS`.
    #[serde(with = "crate::array")]
    words: Box<[u64; WORDS]>,
    /// Cycles before this are forgotten; a multiple of 64.
    floor: Cycle,
    /// Cycles that are all reserved, unless they are forgotten: a search that reaches them continues behind them.
    full: Range<Cycle>,
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar { words: Box::new([0; WORDS]), floor: 0, full: 0..0 }
    }
}

impl Calendar {
    /// Forgets the slots before `now`; no later request may be earlier.
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
        if steps >= WORDS as u64 {
            self.words.fill(0);
        } else {
            for step in 0..steps {
                self.words[index(self.floor + step * 64)] = 0;
            }
        }
        self.floor += steps * 64;
    }

    /// Moves all reservations `cycles` later.
    pub fn fast_forward(&mut self, cycles: Cycle) {
        self.floor = shift_words(&mut self.words[..], self.floor, cycles, shift_word);
        self.full = self.full.start + cycles..self.full.end + cycles;
    }

    /// First cycle beyond what the ring can hold: reservations there are not recorded.
    #[inline(always)]
    fn horizon(&self) -> Cycle {
        self.floor + SPAN
    }

    /// Returns whether cycle `t` is in the ring: neither forgotten nor beyond its end.
    #[inline(always)]
    fn has(&self, t: Cycle) -> bool {
        t.wrapping_sub(self.floor) < SPAN
    }

    /// Reserves the first free cycle at or after `t` and returns it.
    #[inline(always)]
    pub fn book(&mut self, t: Cycle) -> Cycle {
        if self.has(t) {
            let word = &mut self.words[index(t)];
            let free = !*word >> (t % 64);
            if free != 0 {
                let t = t + u64::from(free.trailing_zeros());
                *word |= 1 << (t % 64);
                return t;
            }
        }
        self.book_later(t)
    }

    /// Reserves the `n` cycles from `t` on if they are all in one word and free. Returns whether they were.
    #[inline(always)]
    fn book_row(&mut self, t: Cycle, n: u64) -> bool {
        let at = t % 64;
        if n == 0 || at + n > 64 || !self.has(t) {
            return false;
        }
        let row = u64::MAX >> (64 - n) << at;
        let word = &mut self.words[index(t)];
        let free = *word & row == 0;
        *word |= if free { row } else { 0 };
        free
    }

    /// As [`Calendar::book`], when the word of `t` has no free cycle from `t` on, or is not in the ring.
    #[cold]
    #[inline(never)]
    fn book_later(&mut self, t: Cycle) -> Cycle {
        let t = t.max(self.floor);
        let known = self.full.contains(&t);
        let free = self.first_free_later(if known { self.full.end } else { t });
        self.reserve(free);
        // Nothing is reserved beyond the ring.
        let end = (free + 1).min(self.horizon()).max(t);
        self.full = if known { self.full.start } else { t }..end;
        free
    }

    /// Returns the first free cycle at or after `t`.
    #[inline(always)]
    #[must_use]
    pub fn first_free(&self, t: Cycle) -> Cycle {
        if self.has(t) {
            let free = !self.words[index(t)] >> (t % 64);
            if free != 0 {
                return t + u64::from(free.trailing_zeros());
            }
        }
        self.first_free_later(t)
    }

    /// As [`Calendar::first_free`], when the word of `t` has no free cycle from `t` on, or is not in the ring.
    #[cold]
    #[inline(never)]
    fn first_free_later(&self, t: Cycle) -> Cycle {
        let mut t = t.max(self.floor);
        let horizon = self.horizon();
        while t < horizon {
            let free = !self.words[index(t)] >> (t % 64);
            if free != 0 {
                return t + u64::from(free.trailing_zeros());
            }
            t = (t | 63) + 1;
        }
        t
    }

    /// Reserves cycle `t`.
    #[inline(always)]
    pub fn reserve(&mut self, t: Cycle) {
        if self.has(t) {
            self.words[index(t)] |= 1 << (t % 64);
        }
    }

    /// Frees cycle `t`.
    pub fn release(&mut self, t: Cycle) {
        if self.has(t) {
            self.words[index(t)] &= !(1 << (t % 64));
            self.full = 0..0;
        }
    }

    /// Returns whether cycle `t` is free.
    #[inline(always)]
    #[must_use]
    pub fn is_free(&self, t: Cycle) -> bool {
        !self.has(t) || self.words[index(t)] >> (t % 64) & 1 == 0
    }

    /// Reserves `n` cycles for an operation that starts at or after `t`, and returns its start: the first free cycle. The
    /// remaining cycles skip earlier reservations. In the machine the operation that starts first would keep the resource, but
    /// the other already has its grant; the total use is correct.
    #[inline(always)]
    pub fn book_cycles(&mut self, t: Cycle, n: u64) -> Cycle {
        let start = self.book(t);
        let mut last = start;
        for _ in 1..n {
            last = self.book(last + 1);
        }
        start
    }
}

/// Moves a ring of words of 64 cycles each, which begins at `floor`, by `cycles`; `shift` is [`shift_word`] for such words.
/// Returns the new floor.
pub fn shift_words<W: Default>(
    ring: &mut [W],
    floor: Cycle,
    cycles: Cycle,
    shift: impl Fn(&mut W, u32, &mut W),
) -> Cycle {
    let (words, bits) = (cycles / 64, (cycles % 64) as u32);
    let len = ring.len();
    ring.rotate_right(words as usize % len);
    let floor = floor + words * 64;
    let mut carry = W::default();
    for step in 0..if bits > 0 { len } else { 0 } {
        shift(&mut ring[((floor / 64) as usize + step) % len], bits, &mut carry);
    }
    floor
}

/// Shifts a word by `bits`, 1 to 63: shifts `carry` in, and leaves the bits shifted out in it.
pub fn shift_word(word: &mut u64, bits: u32, carry: &mut u64) {
    let beyond = *word >> (64 - bits);
    *word = *word << bits | *carry;
    *carry = beyond;
}

/// Returns the ring's word for cycle `t`.
#[inline(always)]
fn index(t: Cycle) -> usize {
    (t / 64) as usize % WORDS
}

/// A bus that carries one line per period; a period can be a fraction of a cycle.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct LineBus {
    slots: Calendar,
    /// Cycles per line, times 256.
    period: u64,
    /// 2^64 / `period`, rounded up: multiplying by it divides, exactly for times below 2^56 / `period`.
    reciprocal: u64,
}

impl LineBus {
    /// Returns a bus with a period of `period_256 / 256` cycles per line, at least 2/256, which limits nothing.
    #[must_use]
    pub fn new(period_256: u64) -> LineBus {
        let period = period_256.max(2);
        LineBus { slots: Calendar::default(), period, reciprocal: u64::MAX / period + 1 }
    }
    /// Returns the slot that contains cycle `t`.
    #[inline(always)]
    fn slot(&self, t: Cycle) -> u64 {
        ((u128::from(t * 256) * u128::from(self.reciprocal)) >> 64) as u64
    }
    /// Forgets the slots before `now`; no later request may be earlier.
    #[inline(always)]
    pub fn advance(&mut self, now: Cycle) {
        self.slots.advance(self.slot(now));
    }
    /// Reserves the first free slot at or after `t`; returns when the transfer starts.
    #[inline(always)]
    pub fn book(&mut self, t: Cycle) -> Cycle {
        // A slot that has begun may still be used: only the rate is limited.
        let slot = self.slots.book(self.slot(t));
        t.max(self.start(slot))
    }
    /// Reserves `n` slots (at least one) in order, each the first free one, starting at or after `t`. Returns when the first
    /// starts and when the last ends.
    #[inline(always)]
    pub fn book_slots(&mut self, t: Cycle, n: u64) -> (Cycle, Cycle) {
        let slot = self.slot(t);
        if self.slots.book_row(slot, n) {
            let first = t.max(self.start(slot));
            return (first, first + n * self.period());
        }
        self.book_scattered_slots(t, n)
    }
    /// As [`LineBus::book_slots`], when the slots from `t` on are not all free.
    #[inline(never)]
    fn book_scattered_slots(&mut self, t: Cycle, n: u64) -> (Cycle, Cycle) {
        let mut slot = self.slots.book(self.slot(t));
        let first = t.max(self.start(slot));
        let mut end = first + self.period();
        for _ in 1..n {
            slot = self.slots.book(slot + 1);
            end = end.max(self.start(slot)) + self.period();
        }
        (first, end)
    }
    /// Returns when a slot begins.
    #[inline(always)]
    fn start(&self, slot: u64) -> Cycle {
        (slot * self.period).div_ceil(256)
    }
    /// Returns the cycles per line, rounded up.
    #[inline(always)]
    #[must_use]
    pub fn period(&self) -> Cycle {
        self.period.div_ceil(256)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_forward_moves_reservations_by_its_length() {
        for cycles in [0, 1, 64, 70, 127, 128, SPAN + 3, 10 * SPAN + 64] {
            let mut c = Calendar::default();
            c.advance(640);
            let reserved = [641, 703, 704, 900];
            reserved.into_iter().for_each(|t| c.reserve(t));
            c.fast_forward(cycles);
            let found: Vec<Cycle> = (640..1000).filter(|t| !c.is_free(t + cycles)).collect();
            assert_eq!(found, reserved, "{cycles}");
        }
    }

    #[test]
    fn a_booking_takes_the_first_free_cycle_and_gaps_are_filled() {
        let mut c = Calendar::default();
        assert_eq!(c.book(100), 100);
        assert_eq!(c.book(100), 101);
        assert_eq!(c.book(7), 7);
        assert_eq!(c.book(99), 99);
        assert_eq!(c.book(99), 102);
    }

    #[test]
    fn a_released_cycle_can_be_booked_even_in_a_range_known_to_be_full() {
        let mut c = Calendar::default();
        (0..200).for_each(|_| _ = c.book(0));
        c.release(130);
        assert!(c.is_free(130) && !c.is_free(129));
        assert_eq!([c.book(0), c.book(0)], [130, 200]);
    }

    #[test]
    fn a_full_word_is_skipped() {
        let mut c = Calendar::default();
        for t in 64..128 {
            c.reserve(t);
        }
        assert_eq!(c.book(70), 128);
    }

    #[test]
    fn only_ranges_known_to_be_full_are_skipped() {
        let (mut book, mut search) = (Calendar::default(), Calendar::default());
        for step in 0..20_000_u64 {
            book.advance(step);
            search.advance(step);
            // Crowds in two places that move forward, and beyond the ring.
            let t = step + [0, 500, 90, SPAN][step as usize % 4] + step * step % 37;
            let free = search.first_free(t);
            search.reserve(free);
            assert_eq!(book.book(t), free, "step {step}");
        }
    }

    #[test]
    fn a_long_operation_starts_in_the_first_free_cycle_and_skips_reserved_ones() {
        let mut c = Calendar::default();
        c.reserve(12);
        c.reserve(15);
        assert_eq!(c.book_cycles(10, 4), 10, "10, 11, 13, 14");
        assert_eq!(c.book(10), 16);
    }

    #[test]
    fn slots_behind_the_floor_are_reused() {
        let mut c = Calendar::default();
        assert_eq!(c.book(3), 3);
        c.advance(64);
        assert_eq!(c.book(SPAN + 3), SPAN + 3);
        c.advance(10 * SPAN + 16);
        assert_eq!(c.book(10 * SPAN + 6), 10 * SPAN + 6);
        assert_eq!(c.book(0), 10 * SPAN, "a request for the past gets the floor");
    }

    #[test]
    fn reservations_beyond_the_ring_are_granted_unrecorded() {
        let mut c = Calendar::default();
        assert_eq!(c.book(1_000_000), 1_000_000);
        assert_eq!(c.book(5), 5);
    }

    #[test]
    fn a_bus_carries_one_line_each_period() {
        let mut b = LineBus::new(640); // 2.5 cycles
        let times: Vec<_> = (0..5).map(|_| b.book(0)).collect();
        assert_eq!(times, [0, 3, 5, 8, 10]);
    }
}
