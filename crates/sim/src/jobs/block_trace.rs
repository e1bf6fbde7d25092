//! The blocks that a core executed in an interval, and their form in bytes for other processes.
//!
//! Loops execute the same blocks in the same order, and their addresses advance by the same distances. So each execution is written as a number, 0 or 1 if
//! it is one of the two that have followed last, as behind a branch, and its words are differences to those of the same block's last execution.
//! Nearly all bytes are then small and repeat themselves: there are few of them, and they compress well.

use std::collections::HashMap;
use std::ops::Range;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A block that was executed. Of what it has left, `is_special` says whether there is more than words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(super) struct Executed {
    pub(super) next_pc: u64,
    pub(super) block: u32,
    pub(super) words: u16,
    pub(super) instructions: u8,
    pub(super) is_special: bool,
}

/// The blocks of an interval, in order, and the words that each has left: addresses of its accesses, for the most part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BlockTrace {
    executed: Vec<Executed>,
    words: Vec<u64>,
}

impl BlockTrace {
    #[inline(always)]
    pub(super) fn push(&mut self, executed: Executed, words: &[u64]) {
        self.words.extend_from_slice(words);
        self.executed.push(executed);
    }

    /// Returns how many blocks were executed.
    pub(super) fn len(&self) -> usize {
        self.executed.len()
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.executed[..]) + size_of_val(&self.words[..])
    }

    /// Iterates over the blocks with their words.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Executed, &[u64])> {
        let mut words = &self.words[..];
        self.executed.iter().map(move |&executed| (executed, super::first_of(&mut words, executed.words.into())))
    }

    fn packed(&self) -> Packed {
        let mut entries = Entries::default();
        let mut numbers = HashMap::new();
        let mut bytes = Vec::with_capacity(self.executed.len() + 2 * self.words.len());
        for (executed, words) in self.iter() {
            if let Some(which) = entries.expected(executed) {
                put(&mut bytes, which as u64);
                entries.follow_expected(which);
            } else {
                let number = *numbers.entry(executed).or_insert_with(|| entries.add(executed));
                put(&mut bytes, (number + EXPECTED) as u64);
                entries.follow(number);
            }
            for (word, before) in words.iter().zip(entries.words()) {
                let difference = word.wrapping_sub(*before) as i64;
                put(&mut bytes, (difference << 1 ^ difference >> 63) as u64);
                *before = *word;
            }
        }
        Packed { blocks: self.executed.len(), words: self.words.len(), entries: entries.executed, bytes }
    }

    /// Returns what was packed; `None` if it is damaged.
    fn unpacked(packed: &Packed) -> Option<BlockTrace> {
        // Each block and each word takes a byte or more, so that damaged numbers ask for no more memory than the bytes justify.
        let mut bytes = &packed.bytes[..];
        if packed.entries.iter().map(|executed| usize::from(executed.words)).sum::<usize>() > bytes.len() {
            return None;
        }
        let mut entries = Entries::default();
        packed.entries.iter().for_each(|&executed| _ = entries.add(executed));
        let mut trace = BlockTrace {
            executed: Vec::with_capacity(packed.blocks.min(bytes.len())),
            words: Vec::with_capacity(packed.words.min(bytes.len())),
        };
        for _ in 0..packed.blocks {
            let number = usize::try_from(take(&mut bytes)?).ok()?;
            match number.checked_sub(EXPECTED) {
                None => entries.follow_expected(number),
                Some(number) => entries.follow(number),
            }
            trace.executed.push(entries.last()?);
            for before in entries.words() {
                let difference = take(&mut bytes)?;
                *before = before.wrapping_add(difference >> 1 ^ (difference & 1).wrapping_neg());
                trace.words.push(*before);
            }
        }
        bytes.is_empty().then_some(trace)
    }
}

impl Serialize for BlockTrace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.packed().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for BlockTrace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BlockTrace, D::Error> {
        BlockTrace::unpacked(&Packed::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("no trace of blocks"))
    }
}

/// The form that is written.
#[derive(Deserialize, Serialize)]
struct Packed {
    /// How many blocks were executed.
    blocks: usize,
    /// How many words they have left.
    words: usize,
    /// What they did, each once, by number.
    entries: Vec<Executed>,
    /// Which of the expected entries each is, or its number plus [`EXPECTED`], and differences of its words.
    bytes: Vec<u8>,
}

/// How many entries are expected behind another one: those that have followed it last.
const EXPECTED: usize = 2;

/// What blocks did, by number, and what is known of the last time.
#[derive(Default)]
struct Entries {
    executed: Vec<Executed>,
    /// The entries that have followed each last, the latest first.
    next: Vec<[usize; EXPECTED]>,
    /// Where the words of each are.
    places: Vec<Range<usize>>,
    words: Vec<u64>,
    last: usize,
}

impl Entries {
    /// Adds an entry, which follows itself until it is followed by another one. Returns its number.
    fn add(&mut self, executed: Executed) -> usize {
        let number = self.executed.len();
        let begin = self.words.len();
        self.words.resize(begin + usize::from(executed.words), 0);
        self.places.push(begin..self.words.len());
        self.executed.push(executed);
        self.next.push([number; EXPECTED]);
        number
    }

    /// Returns which of the entries that are expected behind the last one has done this, if one has.
    #[inline(always)]
    fn expected(&self, executed: Executed) -> Option<usize> {
        let next = self.next.get(self.last)?;
        next.iter().position(|&number| self.executed.get(number) == Some(&executed))
    }

    #[inline(always)]
    fn follow_expected(&mut self, which: usize) {
        let next = self.next.get_mut(self.last);
        self.last = next.map_or(0, |next| {
            next.swap(0, which);
            next[0]
        });
    }

    #[inline(always)]
    fn follow(&mut self, number: usize) {
        if let Some(next) = self.next.get_mut(self.last) {
            *next = [number, next[0]];
        }
        self.last = number;
    }

    /// Returns the last entry; `None`: there is none with its number.
    #[inline(always)]
    fn last(&self) -> Option<Executed> {
        self.executed.get(self.last).copied()
    }

    /// Returns the words of the last entry.
    #[inline(always)]
    fn words(&mut self) -> &mut [u64] {
        &mut self.words[self.places[self.last].clone()]
    }
}

/// Writes a number, seven bits to a byte, small ones first.
#[inline(always)]
fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes a number off bytes; `None`: they end in it, or it has more than ten bytes.
#[inline(always)]
fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Blocks of few kinds, so that they repeat, with words of any size.
    fn traces() -> impl Strategy<Value = BlockTrace> {
        let word = prop_oneof![any::<u64>(), 0..4096u64, Just(u64::MAX)];
        vec((0..5u32, 0..3u64, any::<bool>(), vec(word, 0..4)), 0..200).prop_map(|blocks| {
            let mut trace = BlockTrace::default();
            for (block, next_pc, is_special, words) in blocks {
                let executed =
                    Executed { next_pc, block, words: words.len() as u16, instructions: block as u8, is_special };
                trace.push(executed, &words);
            }
            trace
        })
    }

    proptest! {
        #[test]
        fn what_was_packed_is_read_back(trace in traces()) {
            let bytes = postcard::to_stdvec(&trace).expect("it has a form");
            prop_assert_eq!(postcard::from_bytes::<BlockTrace>(&bytes), Ok(trace));
        }

        #[test]
        fn damaged_bytes_are_refused_or_another_trace(trace in traces(), place: prop::sample::Index, byte: u8, end: prop::sample::Index) {
            let mut bytes = postcard::to_stdvec(&trace).expect("it has a form");
            let place = place.index(bytes.len());
            bytes[place] = byte;
            bytes.truncate(end.index(bytes.len()) + 1);
            let read = postcard::from_bytes::<BlockTrace>(&bytes);
            prop_assert!(read.is_err() || read.is_ok_and(|read| read.iter().count() == read.len()));
        }
    }

    #[test]
    fn a_loop_takes_a_byte_for_each_block_and_each_short_distance() {
        let mut trace = BlockTrace::default();
        let executed = Executed { next_pc: 0x40_0000, block: 7, words: 2, instructions: 9, is_special: false };
        (0..1000u64).for_each(|pass| trace.push(executed, &[0x1000_0000 + 8 * pass, 0x2000_0000 + 16 * pass]));
        let packed = trace.packed();
        // The first words are differences to 0: numbers of 30 bits.
        assert_eq!((packed.entries, packed.bytes.len()), (vec![executed], 1000 + 2 * 999 + 2 * 5));
    }
}
