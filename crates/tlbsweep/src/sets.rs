//! A set-associative TLB under many assignments at once.
//!
//! Each set has a list of states. Each state stands for the assignments of its choice, whose pages in this set have had the
//! same outcome at each access so far; the choices of a set's states have no assignment in common. A set of one state is the
//! usual case.

use crate::SEGMENTS;
use crate::choice::{Choice, Key, Sizes};
use crate::tally::Tally;

/// The end of a list of states.
const END: u32 = u32::MAX;

/// A set-associative TLB that replaces the least recently used page of a set.
#[derive(Clone)]
pub struct SetAssociative {
    table: Sizes,
    ways: usize,
    segments: usize,
    /// The assignments that it is for.
    all: Choice,
    /// Misses that all of them had.
    common: [u64; SEGMENTS],
    /// How many sets there are. The first state of a set has its number; others of it follow behind all sets.
    sets: usize,
    /// An address in each page of each state, the most recently used first; as many as there are ways. In sets of one state it
    /// is that of the smallest page that the set's assignments have for its segment.
    pages: Vec<Key>,
    /// Whether some set has several states.
    divided: bool,
    /// The next state of the same set.
    next: Vec<u32>,
    /// The assignments of each state.
    choices: Vec<Choice>,
    /// The misses of each state that only its assignments had, one for each of so many segments.
    misses: Vec<u64>,
}

impl SetAssociative {
    /// An empty one for the assignments of `all`; `sets` is a power of two, `ways` at most [`crate::WAYS`].
    #[must_use]
    pub fn new(sets: usize, ways: usize, segments: usize, all: Choice, table: Sizes) -> SetAssociative {
        SetAssociative {
            table,
            ways,
            segments,
            all,
            common: [0; SEGMENTS],
            sets,
            pages: vec![Key::NONE; sets * ways],
            divided: false,
            next: vec![END; sets],
            choices: vec![all; sets],
            misses: vec![0; sets * segments],
        }
    }

    /// An access under the assignments that have one of the sizes of the mask `sizes` for its segment. Of each page that
    /// leaves, `evicted` gets an address and log2 of its bytes, of several sizes the largest.
    #[inline(always)]
    pub fn touch(&mut self, key: Key, sizes: u8, mut evicted: impl FnMut(Key, u32)) {
        let all = self.all.0[key.segment()];
        // Sizes that no assignment has put the page into no set.
        let mut rest = sizes & all;
        while rest != 0 {
            let set = self.set_of(key, rest.trailing_zeros() as usize);
            let mut same = rest & rest.wrapping_neg();
            let mut others = rest & !same;
            while others != 0 {
                let size = others.trailing_zeros() as usize;
                others &= others - 1;
                same |= u8::from(self.set_of(key, size) == set) << size;
            }
            rest &= !same;
            if all != same || !self.touch_whole(set, key, &mut evicted) {
                self.touch_states(set, key, same, &mut evicted);
            }
        }
    }

    /// Accesses in turn under all assignments, counted by segment. They have the sizes of `choice` for its segments, of which the
    /// largest of each has `1 << shifts[segment]` bytes.
    pub fn touch_in_turn(
        &mut self,
        accesses: impl Iterator<Item = Key>,
        shifts: &[u32; SEGMENTS],
        choice: &Choice,
    ) -> Tally {
        let mut tally = Tally::default();
        let mut accesses = accesses.enumerate();
        let one_size = |all: u32, segment: usize| all | u32::from(choice.0[segment].is_power_of_two()) << segment;
        let singly = (0..SEGMENTS).fold(0, one_size);
        loop {
            let stopped = match (self.ways, self.divided) {
                (2, false) => self.touch_singly::<2, false>(&mut accesses, shifts, singly, &mut tally),
                (2, true) => self.touch_singly::<2, true>(&mut accesses, shifts, singly, &mut tally),
                (4, false) => self.touch_singly::<4, false>(&mut accesses, shifts, singly, &mut tally),
                (4, true) => self.touch_singly::<4, true>(&mut accesses, shifts, singly, &mut tally),
                _ => accesses.next(),
            };
            let Some((step, key)) = stopped else { break };
            tally.access(step, key.segment(), false);
            self.touch(key, choice.0[key.segment()], |_, _| ());
        }
        tally.add_misses(&mut self.common);
        tally
    }

    /// Sees accesses up to the first to a segment that is not in the mask `singly`, which has those of one size, or to a set of
    /// several states, if some set is `DIVIDED`: that one.
    #[inline(always)]
    fn touch_singly<const N: usize, const DIVIDED: bool>(
        &mut self,
        accesses: &mut impl Iterator<Item = (usize, Key)>,
        shifts: &[u32; SEGMENTS],
        singly: u32,
        tally: &mut Tally,
    ) -> Option<(usize, Key)> {
        let sets = &mut self.pages.as_chunks_mut::<N>().0[..self.sets];
        let next = &self.next[..self.sets];
        let last = sets.len() - 1;
        for (step, key) in accesses {
            let (segment, shift) = (key.segment(), shifts[key.segment()]);
            let page = key.page(shift);
            let set = page as usize & last;
            if singly >> segment & 1 == 0 || DIVIDED && next[set] != END {
                return Some((step, key));
            }
            let hit = use_or_replace(&mut sets[set], Key::from_page(page, shift));
            tally.access(step, segment, !hit);
        }
        None
    }

    /// The set of the page of an access.
    #[inline(always)]
    fn set_of(&self, key: Key, size: usize) -> usize {
        key.page(self.table.shift(size)) as usize & (self.sets - 1)
    }

    /// An access that falls into a set under all assignments; `false`, and nothing done, if it has several states, or if some
    /// hit and others miss. Numbers of ways that machines have are known beforehand, which makes it twice as fast.
    #[inline(always)]
    fn touch_whole(&mut self, set: usize, key: Key, evicted: &mut impl FnMut(Key, u32)) -> bool {
        match self.ways {
            _ if self.next[set] != END => false,
            2 => self.touch_ways::<2>(set, key, evicted),
            4 => self.touch_ways::<4>(set, key, evicted),
            _ => false,
        }
    }

    /// The same for a set of one state and `N` ways.
    #[inline(always)]
    fn touch_ways<const N: usize>(&mut self, set: usize, key: Key, evicted: &mut impl FnMut(Key, u32)) -> bool {
        let (segment, all) = (key.segment(), self.all.0[key.segment()]);
        let pages = &mut self.pages.as_chunks_mut::<N>().0[set];
        let page = key.first_of(self.table.smallest_of(all));
        let apart = key.nearest(pages);
        let hit = self.table.holding(apart) & all;
        if hit != 0 && hit != all {
            return false;
        }
        let last = pages[N - 1];
        if !use_or_replace(pages, page) {
            self.common[segment] += 1;
            if last != Key::NONE {
                evicted(last, self.table.largest_of(self.all.0[last.segment()]));
            }
        }
        true
    }

    /// An access that falls into `set` with the sizes of the mask `sizes`.
    fn touch_states(&mut self, set: usize, key: Key, sizes: u8, evicted: &mut impl FnMut(Key, u32)) {
        let mut at = set as u32;
        while at != END {
            let next = self.next[at as usize];
            let mine = self.choices[at as usize].0[key.segment()] & sizes;
            if mine != 0 {
                self.keep_only(at, key.segment(), mine);
                self.touch_state(at, key, mine, evicted);
            }
            at = next;
        }
    }

    /// An access under the assignments of a state, which has the sizes of the mask `mine` for its segment.
    fn touch_state(&mut self, at: u32, key: Key, mine: u8, evicted: &mut impl FnMut(Key, u32)) {
        // The page that was used last is often used again, which changes nothing.
        let first = self.pages_of(at)[0].apart(key);
        if mine & !self.table.holding(first) == 0 {
            return;
        }
        let apart = key.nearest(self.pages_of(at));
        let hit = mine & self.table.holding(apart);
        if hit != 0 {
            let hitting = if hit == mine { at } else { self.keep_only(at, key.segment(), mine & !hit) };
            use_again(self.pages_of(hitting), key, apart);
        }
        if hit != mine {
            self.misses[at as usize * self.segments + key.segment()] += 1;
            let page = key.first_of(self.table.smallest_of(mine));
            let gone = replace(self.pages_of(at), page);
            if gone != Key::NONE {
                evicted(gone, self.table.largest_of(self.choices[at as usize].0[gone.segment()]));
            }
        }
    }

    /// The pages of a state.
    #[inline(always)]
    fn pages_of(&mut self, at: u32) -> &mut [Key] {
        &mut self.pages[at as usize * self.ways..][..self.ways]
    }

    /// The state at `at` keeps the sizes of the mask `kept` for a segment. Those it had besides get a state like it, whose
    /// place is returned (that of the state itself if there are none).
    #[inline(always)]
    fn keep_only(&mut self, at: u32, segment: usize, kept: u8) -> u32 {
        match self.choices[at as usize].0[segment] & !kept {
            0 => at,
            others => self.split_off(at, segment, others),
        }
    }

    /// The sizes of the mask `others` for a segment, which a state has, get a state like it, whose place is returned.
    #[cold]
    fn split_off(&mut self, at: u32, segment: usize, others: u8) -> u32 {
        let (place, new) = (at as usize, self.choices.len() as u32);
        self.divided = true;
        self.pages.extend_from_within(place * self.ways..(place + 1) * self.ways);
        self.misses.extend_from_within(place * self.segments..(place + 1) * self.segments);
        self.choices.push(self.choices[place]);
        self.choices[new as usize].0[segment] = others;
        self.choices[place].0[segment] &= !others;
        self.next.push(self.next[place]);
        self.next[place] = new;
        new
    }

    /// The same for those of the assignments that are among `choice` alone.
    #[must_use]
    pub fn restricted(&self, choice: &Choice) -> SetAssociative {
        let all = self.all.and(choice);
        let mut other = SetAssociative::new(self.sets, self.ways, self.segments, all, self.table);
        other.common = self.common;
        for set in 0..self.sets {
            let mut last = None;
            for from in self.set(set).filter(|&state| self.choices[state].meets(choice)) {
                let to = other.room_after(last, set);
                other.choices[to] = self.choices[from].and(choice);
                let (ways, segments) = (self.ways, self.segments);
                let first = |page: Key| page.first_of(self.table.smallest_of(all.0[page.segment()]));
                for (mine, &page) in other.pages[to * ways..].iter_mut().zip(&self.pages[from * ways..][..ways]) {
                    *mine = if page == Key::NONE { page } else { first(page) };
                }
                other.misses[to * segments..][..segments].copy_from_slice(self.misses_of(from));
                last = Some(to);
            }
        }
        other
    }

    /// The assignments that it is for.
    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.all
    }

    /// Whether it has so many ways, and no set has several states for assignments that have the same for segments of which
    /// `accessed` is true.
    pub fn splits(&self, ways: usize, accessed: impl Fn(usize) -> bool) -> bool {
        let whole = |choice: &Choice| {
            (0..SEGMENTS).all(|segment| accessed(segment) || choice.0[segment] == self.all.0[segment])
        };
        self.ways == ways && self.choices[self.sets..].iter().all(whole)
    }

    /// One that is what each of several is for its assignments, which together are `all`; each has one state for each set.
    #[must_use]
    pub fn joined(mut parts: Vec<SetAssociative>, all: &Choice) -> Option<SetAssociative> {
        let &SetAssociative { sets, ways, segments, table, .. } = parts.first()?;
        if parts.len() == 1 {
            return parts.pop();
        }
        let mut other = SetAssociative::new(sets, ways, segments, *all, table);
        for set in 0..sets {
            let mut last = None;
            for Joint { choice, pages, only } in states(&parts, all, set) {
                let to = other.room_after(last, set);
                other.choices[to] = choice;
                other.pages[to * ways..][..ways].copy_from_slice(pages);
                if let Some(part) = only {
                    other.misses[to * segments..][..segments]
                        .copy_from_slice(&part.misses(&choice.smallest())[..segments]);
                }
                last = Some(to);
            }
        }
        Some(other)
    }

    /// A state behind the last of a set, or its first.
    fn room_after(&mut self, last: Option<usize>, set: usize) -> usize {
        let Some(last) = last else { return set };
        let new = self.choices.len();
        self.choices.push(self.all);
        self.next.push(END);
        self.next[last] = new as u32;
        self.divided = true;
        self.pages.resize(self.pages.len() + self.ways, Key::NONE);
        self.misses.resize(self.misses.len() + self.segments, 0);
        new
    }

    /// The misses that a state has besides those in common.
    fn misses_of(&self, at: usize) -> &[u64] {
        &self.misses[at * self.segments..][..self.segments]
    }

    /// The places of a set's states.
    fn set(&self, set: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(set), |&last| (self.next[last] != END).then_some(self.next[last] as usize))
    }

    /// The pages of each set, the most recently used first, if there are `N` ways and no set has several states.
    #[inline(always)]
    pub fn plain<const N: usize>(&mut self) -> Option<&mut [[Key; N]]> {
        (self.ways == N && !self.divided).then(|| &mut self.pages.as_chunks_mut::<N>().0[..self.sets])
    }

    /// Adds misses that all assignments had.
    pub fn add_misses(&mut self, misses: &[u64; SEGMENTS]) {
        self.common.iter_mut().zip(misses).for_each(|(sum, misses)| *sum += misses);
    }

    /// Misses under one assignment, by segment.
    #[must_use]
    pub fn misses(&self, one: &Choice) -> [u64; SEGMENTS] {
        let mut sum = self.common;
        for set in 0..self.sets {
            if let Some(at) = self.set(set).find(|&state| self.choices[state].contains(one)) {
                sum.iter_mut().zip(self.misses_of(at)).for_each(|(sum, misses)| *sum += misses);
            }
        }
        sum
    }
}

/// A state of several TLBs.
struct Joint<'a> {
    choice: Choice,
    pages: &'a [Key],
    /// The only one whose state it is, if it is to have its misses.
    only: Option<&'a SetAssociative>,
}

impl Joint<'_> {
    /// The assignments of this and of others that have some pages, if these can be one state.
    fn with(&self, pages: &[Key], others: &Choice) -> Option<Choice> {
        self.choice.or(others).filter(|_| self.only.is_none() && self.pages == pages)
    }
}

/// The states of a set of several TLBs, which together are for `all`: in the first set one for each, with that, so that its misses can
/// be kept there; in others one for those that have the same, as far as their assignments can be told together.
fn states<'a>(parts: &'a [SetAssociative], all: &Choice, set: usize) -> Vec<Joint<'a>> {
    let mut states: Vec<Joint> = Vec::new();
    let of = |part: &'a SetAssociative| &part.pages[set * part.ways..][..part.ways];
    if set > 0 && parts.iter().all(|part| of(part) == of(&parts[0])) {
        return vec![Joint { choice: *all, pages: of(&parts[0]), only: None }];
    }
    for part in parts {
        let (mut choice, pages) = (part.all, of(part));
        while let Some((at, both)) =
            states.iter().enumerate().find_map(|(at, state)| Some((at, state.with(pages, &choice)?)))
        {
            states.swap_remove(at);
            choice = both;
        }
        states.push(Joint { choice, pages, only: (set == 0).then_some(part) });
    }
    states
}

/// A page comes, the most recently used; returns an address of the one that goes.
#[inline(always)]
fn replace(pages: &mut [Key], key: Key) -> Key {
    let mut gone = key;
    pages.iter_mut().for_each(|page| std::mem::swap(page, &mut gone));
    gone
}

/// The page that is `apart` from `key`, in which both are for all sizes that count, becomes the most recently used.
#[inline(always)]
fn use_again(pages: &mut [Key], key: Key, apart: u32) {
    let mut ahead = key;
    for page in pages {
        std::mem::swap(page, &mut ahead);
        if ahead.apart(key) == apart {
            return;
        }
    }
}

/// A page becomes the most recently used, instead of the least recently used one if it is not there: whether it was. Pages are
/// equal when their first addresses are. Without branches, as what comes can seldom be foreseen.
#[inline(always)]
pub fn use_or_replace<const N: usize>(pages: &mut [Key; N], page: Key) -> bool {
    let (mut ahead, mut found) = (page, false);
    for place in pages {
        let here = *place;
        *place = if found { here } else { ahead };
        found |= here == page;
        ahead = here;
    }
    found
}
