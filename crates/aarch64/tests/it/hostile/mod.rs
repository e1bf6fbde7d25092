//! Streams of random instructions from random states, with addresses at the edges of mapped memory: none panics, and none changes
//! a page without permission. `fuzz` runs the same under AddressSanitizer, guided by coverage.
//!
//! `FXSCOPE_HOSTILE_STREAMS` (default 20,000 of each kind) sets their number.

mod harness;

use std::env;

use fxscope_aarch64::table::{Ctx, decode, encodings};
use harness::{Start, run, word};

/// Maximum number of instructions in a stream.
const LENGTH: u64 = 64;

/// A fixed sequence of numbers (`SplitMix64`).
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    /// Returns a number with all bits equal, with few bits set, or any.
    fn pattern(&mut self) -> u64 {
        match self.next() % 6 {
            0 => u64::MAX,
            1 => self.next() & self.next() & self.next(),
            2 => self.next() | self.next() | self.next(),
            _ => self.next(),
        }
    }
    fn start(&mut self) -> Start {
        Start {
            vl: self.next() as u8,
            general: std::array::from_fn(|_| self.next()),
            vector: std::array::from_fn(|_| self.pattern()),
            predicate: std::array::from_fn(|_| self.pattern()),
            ffr: self.pattern(),
            flags: self.next() as u8,
            fpcr: self.next() as u32,
        }
    }
}

fn streams() -> u64 {
    env::var("FXSCOPE_HOSTILE_STREAMS").map_or(20_000, |text| text.parse().expect("FXSCOPE_HOSTILE_STREAMS: a number"))
}

/// Runs streams whose words `choose` picks; returns the number of instructions executed.
fn run_streams(seed: u64, choose: impl Fn(&mut Rng) -> u32) -> usize {
    let mut rng = Rng(seed);
    let mut executed = 0;
    for _ in 0..streams() {
        let start = rng.start();
        let code: Vec<u32> = (0..=rng.next() % LENGTH).map(|_| choose(&mut rng)).collect();
        executed += run(&start, &code);
    }
    executed
}

#[test]
fn instructions_of_all_encodings_neither_panic_nor_escape() {
    let executed = run_streams(1, |rng| word(rng.next() as u16, rng.next() as u32));
    assert!(executed as u64 > 8 * streams(), "only {executed} instructions completed");
}

#[test]
fn arbitrary_words_neither_panic_nor_escape() {
    run_streams(2, |rng| rng.next() as u32);
}

#[test]
fn any_word_decodes_at_any_address_without_a_panic() {
    let mut rng = Rng(4);
    for _ in 0..streams() * 50 {
        let (word, pc) = (rng.next() as u32, rng.pattern() & !3);
        let _ = decode(word, &Ctx { pc, vl: 64 });
    }
}

/// Takes a minute of processor time.
mod slow {
    use super::*;

    /// Only loads and stores, so that more of them are reached: among them gathers, first-fault loads and DC ZVA.
    #[test]
    #[ignore = "make slow-test runs it"]
    fn memory_accesses_at_the_edges_neither_panic_nor_escape() {
        let accesses = |word: u32| decode(word, &Ctx { pc: 0x1_0000, vl: 64 }).is_some_and(|d| d.info.mem.is_some());
        // Encodings of which none of these words accesses memory are not tried again and again.
        let mut samples = Rng(5);
        let mut some = |row: &u16| (0..256).any(|_| accesses(word(*row, samples.next() as u32)));
        let rows: Vec<u16> = (0..encodings().count() as u16).filter(&mut some).collect();
        let executed = run_streams(3, |rng| {
            loop {
                let word = word(rows[rng.next() as usize % rows.len()], rng.next() as u32);
                if accesses(word) {
                    break word;
                }
            }
        });
        assert!(executed as u64 > 8 * streams(), "only {executed} instructions completed");
    }
}
