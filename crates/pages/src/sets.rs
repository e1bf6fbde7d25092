//! A set-associative TLB under many assignments at once.
//!
//! Each set has a list of states. Each state stands for the assignments of its choice, whose pages in this set have had the
//! same outcome at each access so far; the choices of a set's states have no assignment in common.

use crate::choice::{Choice, Key, Sizes};
use crate::{SEGMENTS, WAYS};

/// The end of a list of states.
const END: u32 = u32::MAX;

/// One set under some assignments.
#[derive(Clone)]
struct State {
    choice: Choice,
    /// An address in each page, the most recently used first; as many as there are ways.
    pages: [Key; WAYS],
    next: u32,
}

/// A set-associative TLB that replaces the least recently used page of a set.
#[derive(Clone)]
pub struct SetAssociative {
    ways: usize,
    /// First state of each set.
    heads: Box<[u32]>,
    states: Vec<State>,
    /// The misses of each state, one for each of so many segments.
    misses: Vec<u64>,
    segments: usize,
}

impl SetAssociative {
    /// An empty one; `sets` is a power of two, `ways` at most [`WAYS`].
    #[must_use]
    pub fn new(sets: usize, ways: usize, segments: usize) -> SetAssociative {
        SetAssociative { ways, heads: vec![END; sets].into(), states: Vec::new(), misses: Vec::new(), segments }
    }

    /// An access under the assignments of `among` that have one of the sizes of the mask `sizes` for its segment. Of each
    /// page that leaves, `evicted` gets an address and log2 of its bytes, of several sizes the largest.
    #[inline(always)]
    pub fn touch(&mut self, key: Key, sizes: u8, among: &Choice, table: &Sizes, mut evicted: impl FnMut(Key, u32)) {
        let mut rest = sizes;
        while rest != 0 {
            let set = self.set_of(key, rest.trailing_zeros() as usize, table);
            let mut same = rest & rest.wrapping_neg();
            let mut others = rest & !same;
            while others != 0 {
                let size = others.trailing_zeros() as usize;
                others &= others - 1;
                same |= u8::from(self.set_of(key, size, table) == set) << size;
            }
            rest &= !same;
            self.touch_set(set, key, same, among, table, &mut evicted);
        }
    }

    /// The set of the page of an access.
    #[inline(always)]
    fn set_of(&self, key: Key, size: usize, table: &Sizes) -> usize {
        key.page(table.shift(size)) as usize & (self.heads.len() - 1)
    }

    /// An access that falls into `set` with the sizes of the mask `sizes`.
    #[inline(always)]
    fn touch_set(
        &mut self,
        set: usize,
        key: Key,
        sizes: u8,
        among: &Choice,
        table: &Sizes,
        evicted: &mut impl FnMut(Key, u32),
    ) {
        if self.heads[set] == END {
            self.heads[set] = self.add_empty(*among);
        }
        let mut at = self.heads[set];
        while at != END {
            let next = self.states[at as usize].next;
            let mine = self.states[at as usize].choice.0[key.segment()] & sizes;
            if mine != 0 {
                self.keep_only(at, key.segment(), mine);
                self.touch_state(at, key, mine, table, evicted);
            }
            at = next;
        }
    }

    /// An access under the assignments of a state, which has the sizes of the mask `mine` for its segment.
    #[inline(always)]
    fn touch_state(&mut self, at: u32, key: Key, mine: u8, table: &Sizes, evicted: &mut impl FnMut(Key, u32)) {
        let apart = key.nearest(&self.states[at as usize].pages[..self.ways]);
        let hit = mine & table.holding(apart);
        if hit != 0 {
            let hitting = if hit == mine { at } else { self.keep_only(at, key.segment(), mine & !hit) };
            self.states[hitting as usize].use_again(key, apart);
        }
        if hit != mine {
            self.misses[at as usize * self.segments + key.segment()] += 1;
            let state = &mut self.states[at as usize];
            let gone = state.replace(key, self.ways);
            if gone != Key::NONE {
                evicted(gone, table.largest_of(state.choice.0[gone.segment()]));
            }
        }
    }

    /// The state at `at` keeps the sizes of the mask `kept` for a segment. Those it had besides get a state like it, whose
    /// place is returned (that of the state itself if there are none).
    fn keep_only(&mut self, at: u32, segment: usize, kept: u8) -> u32 {
        let state = &mut self.states[at as usize];
        let others = state.choice.0[segment] & !kept;
        if others == 0 {
            return at;
        }
        let mut other = state.clone();
        other.choice.0[segment] = others;
        state.choice.0[segment] = kept;
        let first = at as usize * self.segments;
        self.misses.extend_from_within(first..first + self.segments);
        let new = self.add(other);
        self.states[at as usize].next = new;
        new
    }

    /// Adds a state without pages or misses.
    fn add_empty(&mut self, choice: Choice) -> u32 {
        self.misses.resize(self.misses.len() + self.segments, 0);
        self.add(State { choice, pages: [Key::NONE; WAYS], next: END })
    }

    /// Adds a state, whose misses have been added.
    fn add(&mut self, state: State) -> u32 {
        self.states.push(state);
        self.states.len() as u32 - 1
    }

    /// The misses of the state at a place.
    fn misses_of(&self, at: usize) -> &[u64] {
        &self.misses[at * self.segments..][..self.segments]
    }

    /// The same for the assignments of `choice` alone.
    #[must_use]
    pub fn restricted(&self, choice: &Choice) -> SetAssociative {
        let mut other = SetAssociative::new(self.heads.len(), self.ways, self.segments);
        for set in 0..self.heads.len() {
            for (at, state) in self.set(set).filter(|(_, state)| state.choice.meets(choice)) {
                let next = other.heads[set];
                other.misses.extend_from_slice(self.misses_of(at));
                other.heads[set] = other.add(State { choice: state.choice.and(choice), next, ..state.clone() });
            }
        }
        other
    }

    /// The states of a set, with their places.
    fn set(&self, set: usize) -> impl Iterator<Item = (usize, &State)> {
        let state = |at: u32| self.states.get(at as usize).map(|state| (at as usize, state));
        std::iter::successors(state(self.heads[set]), move |(_, last)| state(last.next))
    }

    /// Misses under one assignment, by segment.
    #[must_use]
    pub fn misses(&self, one: &Choice) -> [u64; SEGMENTS] {
        let mut sum = [0; SEGMENTS];
        for set in 0..self.heads.len() {
            if let Some((at, _)) = self.set(set).find(|(_, state)| state.choice.contains(one)) {
                sum.iter_mut().zip(self.misses_of(at)).for_each(|(sum, misses)| *sum += misses);
            }
        }
        sum
    }
}

impl State {
    /// A page comes, into one of so many ways; returns an address of the one that goes.
    #[inline(always)]
    fn replace(&mut self, key: Key, ways: usize) -> Key {
        let gone = self.pages[ways - 1];
        (1..ways).rev().for_each(|way| self.pages[way] = self.pages[way - 1]);
        self.pages[0] = key;
        gone
    }

    /// The page that is `apart` from `key` becomes the most recently used.
    fn use_again(&mut self, key: Key, apart: u32) {
        if let Some(way) = self.pages.iter().position(|page| page.apart(key) == apart) {
            self.pages[..=way].rotate_right(1);
        }
    }
}
