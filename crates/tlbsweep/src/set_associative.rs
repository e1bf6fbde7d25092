//! A set-associative TLB under many assignments at once.
//!
//! Each set has a list of states. A state stands for assignments whose pages in this set have had the same outcome at
//! each access so far; the states of a set are disjoint. Usually a set has one state.

use crate::SEGMENTS;
use crate::counters::SegmentCounters;
use crate::size_masks::{Key, PageSizes, SizeMasks};

/// End of a list of states.
const END: u32 = u32::MAX;

/// A set-associative TLB with LRU replacement.
#[derive(Clone)]
pub struct SetAssociative {
    table: PageSizes,
    ways: usize,
    segments: usize,
    /// The assignments simulated.
    all: SizeMasks,
    /// Misses common to all of them.
    common: [u64; SEGMENTS],
    /// Number of sets. The first state of a set has the set's index; further states follow after all sets.
    sets: usize,
    /// For each state, `ways` addresses, one in each page held, most recently used first. In a set with one state, the
    /// address is that of the smallest page that the assignments have for its segment.
    pages: Vec<Key>,
    /// Whether any set has several states.
    divided: bool,
    /// Next state of the same set.
    next: Vec<u32>,
    /// The assignments of each state.
    state_masks: Vec<SizeMasks>,
    /// For each state and segment, misses in addition to the common ones.
    misses: Vec<u64>,
}

impl SetAssociative {
    /// Creates an empty TLB for the assignments in `all`. `sets` is a power of two, `ways` at most [`crate::WAYS`].
    #[must_use]
    pub fn new(sets: usize, ways: usize, segments: usize, all: SizeMasks, table: PageSizes) -> SetAssociative {
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
            state_masks: vec![all; sets],
            misses: vec![0; sets * segments],
        }
    }

    /// Processes an access for the assignments with one of the sizes in the mask `sizes` for its segment. For each page
    /// evicted, `evicted` gets an address and log2 of its bytes (the largest, if there are several sizes).
    #[inline(always)]
    pub fn touch(&mut self, key: Key, sizes: u8, mut evicted: impl FnMut(Key, u32)) {
        let all = self.all.0[key.segment()];
        // A size that no assignment has puts the page into no set.
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
            if all != same || !self.touch_single_state(set, key, &mut evicted) {
                self.touch_states(set, key, same, &mut evicted);
            }
        }
    }

    /// Processes accesses in order for all assignments and counts them by segment. The segments' sizes are those in
    /// `masks`; the largest size of each segment has `1 << shifts[segment]` bytes.
    pub fn touch_sequence(
        &mut self,
        accesses: impl Iterator<Item = Key>,
        shifts: &[u32; SEGMENTS],
        masks: &SizeMasks,
    ) -> SegmentCounters {
        let mut counters = SegmentCounters::default();
        let mut accesses = accesses.enumerate();
        let one_size = |all: u32, segment: usize| all | u32::from(masks.0[segment].is_power_of_two()) << segment;
        let single_size = (0..SEGMENTS).fold(0, one_size);
        loop {
            let stopped = match (self.ways, self.divided) {
                (2, false) => self.touch_single_size::<2, false>(&mut accesses, shifts, single_size, &mut counters),
                (2, true) => self.touch_single_size::<2, true>(&mut accesses, shifts, single_size, &mut counters),
                (4, false) => self.touch_single_size::<4, false>(&mut accesses, shifts, single_size, &mut counters),
                (4, true) => self.touch_single_size::<4, true>(&mut accesses, shifts, single_size, &mut counters),
                _ => accesses.next(),
            };
            let Some((step, key)) = stopped else { break };
            counters.access(step, key.segment(), false);
            self.touch(key, masks.0[key.segment()], |_, _| ());
        }
        counters.add_misses(&mut self.common);
        counters
    }

    /// Processes accesses up to the first to a segment outside the mask `single_size` (segments with a single size) or,
    /// if some set is `DIVIDED`, to a set with several states; returns that access.
    #[inline(always)]
    fn touch_single_size<const N: usize, const DIVIDED: bool>(
        &mut self,
        accesses: &mut impl Iterator<Item = (usize, Key)>,
        shifts: &[u32; SEGMENTS],
        single_size: u32,
        counters: &mut SegmentCounters,
    ) -> Option<(usize, Key)> {
        let sets = &mut self.pages.as_chunks_mut::<N>().0[..self.sets];
        let next = &self.next[..self.sets];
        let last = sets.len() - 1;
        for (step, key) in accesses {
            let (segment, shift) = (key.segment(), shifts[key.segment()]);
            let page = key.page(shift);
            let set = page as usize & last;
            if single_size >> segment & 1 == 0 || DIVIDED && next[set] != END {
                return Some((step, key));
            }
            let hit = access_lru(&mut sets[set], Key::from_page(page, shift));
            counters.access(step, segment, !hit);
        }
        None
    }

    /// The set that an access maps to.
    #[inline(always)]
    fn set_of(&self, key: Key, size: usize) -> usize {
        key.page(self.table.shift(size)) as usize & (self.sets - 1)
    }

    /// Processes an access that maps to one set under all assignments. Returns `false`, and does nothing, if the set
    /// has several states or if some assignments hit and others miss. The numbers of ways that machines have are
    /// compile-time constants, which doubles the speed.
    #[inline(always)]
    fn touch_single_state(&mut self, set: usize, key: Key, evicted: &mut impl FnMut(Key, u32)) -> bool {
        match self.ways {
            _ if self.next[set] != END => false,
            2 => self.touch_ways::<2>(set, key, evicted),
            4 => self.touch_ways::<4>(set, key, evicted),
            _ => false,
        }
    }

    /// The same for a set with one state and `N` ways.
    #[inline(always)]
    fn touch_ways<const N: usize>(&mut self, set: usize, key: Key, evicted: &mut impl FnMut(Key, u32)) -> bool {
        let (segment, all) = (key.segment(), self.all.0[key.segment()]);
        let pages = &mut self.pages.as_chunks_mut::<N>().0[set];
        let page = key.first_of(self.table.smallest_of(all));
        let distance = key.nearest(pages);
        let hit = self.table.holding(distance) & all;
        if hit != 0 && hit != all {
            return false;
        }
        let last = pages[N - 1];
        if !access_lru(pages, page) {
            self.common[segment] += 1;
            if last != Key::NONE {
                evicted(last, self.table.largest_of(self.all.0[last.segment()]));
            }
        }
        true
    }

    /// Processes an access that maps to `set` with the sizes in `sizes`.
    fn touch_states(&mut self, set: usize, key: Key, sizes: u8, evicted: &mut impl FnMut(Key, u32)) {
        let mut at = set as u32;
        while at != END {
            let next = self.next[at as usize];
            let mine = self.state_masks[at as usize].0[key.segment()] & sizes;
            if mine != 0 {
                self.keep_only(at, key.segment(), mine);
                self.touch_state(at, key, mine, evicted);
            }
            at = next;
        }
    }

    /// Processes an access for a state whose sizes for the segment are those in `mine`.
    fn touch_state(&mut self, at: u32, key: Key, mine: u8, evicted: &mut impl FnMut(Key, u32)) {
        // The most recently used page is often accessed again, which changes nothing.
        let first = self.pages_of(at)[0].distance(key);
        if mine & !self.table.holding(first) == 0 {
            return;
        }
        let distance = key.nearest(self.pages_of(at));
        let hit = mine & self.table.holding(distance);
        if hit != 0 {
            let hitting = if hit == mine { at } else { self.keep_only(at, key.segment(), mine & !hit) };
            promote(self.pages_of(hitting), key, distance);
        }
        if hit != mine {
            self.misses[at as usize * self.segments + key.segment()] += 1;
            let page = key.first_of(self.table.smallest_of(mine));
            let gone = replace(self.pages_of(at), page);
            if gone != Key::NONE {
                evicted(gone, self.table.largest_of(self.state_masks[at as usize].0[gone.segment()]));
            }
        }
    }

    /// The pages of a state.
    #[inline(always)]
    fn pages_of(&mut self, at: u32) -> &mut [Key] {
        &mut self.pages[at as usize * self.ways..][..self.ways]
    }

    /// Restricts state `at` to the sizes in `kept` for a segment. Its other sizes become a new state, whose index is
    /// returned (or `at`, if there are none).
    #[inline(always)]
    fn keep_only(&mut self, at: u32, segment: usize, kept: u8) -> u32 {
        match self.state_masks[at as usize].0[segment] & !kept {
            0 => at,
            others => self.split_off(at, segment, others),
        }
    }

    /// Moves the sizes in `others` of a segment to a copy of the state; returns the index of the copy.
    #[cold]
    fn split_off(&mut self, at: u32, segment: usize, others: u8) -> u32 {
        let (place, new) = (at as usize, self.state_masks.len() as u32);
        self.divided = true;
        self.pages.extend_from_within(place * self.ways..(place + 1) * self.ways);
        self.misses.extend_from_within(place * self.segments..(place + 1) * self.segments);
        self.state_masks.push(self.state_masks[place]);
        self.state_masks[new as usize].0[segment] = others;
        self.state_masks[place].0[segment] &= !others;
        self.next.push(self.next[place]);
        self.next[place] = new;
        new
    }

    /// Returns a copy restricted to the assignments in `masks`.
    #[must_use]
    pub fn restricted(&self, masks: &SizeMasks) -> SetAssociative {
        let all = self.all.and(masks);
        let mut other = SetAssociative::new(self.sets, self.ways, self.segments, all, self.table);
        other.common = self.common;
        for set in 0..self.sets {
            let mut last = None;
            for from in self.set(set).filter(|&state| self.state_masks[state].intersects(masks)) {
                let to = other.add_state_after(last, set);
                other.state_masks[to] = self.state_masks[from].and(masks);
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

    /// Returns the assignments simulated.
    #[must_use]
    pub fn masks(&self) -> &SizeMasks {
        &self.all
    }

    /// Returns whether the TLB has `ways` ways and states within a set differ only in segments for which `accessed` is
    /// true.
    pub fn can_share(&self, ways: usize, accessed: impl Fn(usize) -> bool) -> bool {
        let whole = |masks: &SizeMasks| {
            (0..SEGMENTS).all(|segment| accessed(segment) || masks.0[segment] == self.all.0[segment])
        };
        self.ways == ways && self.state_masks[self.sets..].iter().all(whole)
    }

    /// Merges TLBs, each with one state per set, that together simulate the assignments `all`.
    #[must_use]
    pub fn merged(mut parts: Vec<SetAssociative>, all: &SizeMasks) -> Option<SetAssociative> {
        let &SetAssociative { sets, ways, segments, table, .. } = parts.first()?;
        if parts.len() == 1 {
            return parts.pop();
        }
        let mut other = SetAssociative::new(sets, ways, segments, *all, table);
        for set in 0..sets {
            let mut last = None;
            for Joint { masks, pages, only } in states(&parts, all, set) {
                let to = other.add_state_after(last, set);
                other.state_masks[to] = masks;
                other.pages[to * ways..][..ways].copy_from_slice(pages);
                if let Some(part) = only {
                    other.misses[to * segments..][..segments]
                        .copy_from_slice(&part.misses(&masks.smallest())[..segments]);
                }
                last = Some(to);
            }
        }
        Some(other)
    }

    /// Appends a state to a set, after `last`; without `last`, returns the set's first state.
    fn add_state_after(&mut self, last: Option<usize>, set: usize) -> usize {
        let Some(last) = last else { return set };
        let new = self.state_masks.len();
        self.state_masks.push(self.all);
        self.next.push(END);
        self.next[last] = new as u32;
        self.divided = true;
        self.pages.resize(self.pages.len() + self.ways, Key::NONE);
        self.misses.resize(self.misses.len() + self.segments, 0);
        new
    }

    /// A state's misses in addition to the common ones.
    fn misses_of(&self, at: usize) -> &[u64] {
        &self.misses[at * self.segments..][..self.segments]
    }

    /// The indices of a set's states.
    fn set(&self, set: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(set), |&last| (self.next[last] != END).then_some(self.next[last] as usize))
    }

    /// Returns the pages of each set, most recently used first, if there are `N` ways and every set has one state.
    #[inline(always)]
    pub fn single_state_sets<const N: usize>(&mut self) -> Option<&mut [[Key; N]]> {
        (self.ways == N && !self.divided).then(|| &mut self.pages.as_chunks_mut::<N>().0[..self.sets])
    }

    /// Adds misses common to all assignments.
    pub fn add_misses(&mut self, misses: &[u64; SEGMENTS]) {
        self.common.iter_mut().zip(misses).for_each(|(sum, misses)| *sum += misses);
    }

    /// Misses under one assignment, by segment.
    #[must_use]
    pub fn misses(&self, one: &SizeMasks) -> [u64; SEGMENTS] {
        let mut sum = self.common;
        for set in 0..self.sets {
            if let Some(at) = self.set(set).find(|&state| self.state_masks[state].contains(one)) {
                sum.iter_mut().zip(self.misses_of(at)).for_each(|(sum, misses)| *sum += misses);
            }
        }
        sum
    }
}

/// A state of several merged TLBs.
struct Joint<'a> {
    masks: SizeMasks,
    pages: &'a [Key],
    /// The TLB that contributes its misses, if this state carries them.
    only: Option<&'a SetAssociative>,
}

impl Joint<'_> {
    /// The union with other assignments whose set has `pages`, if both can be one state.
    fn with(&self, pages: &[Key], others: &SizeMasks) -> Option<SizeMasks> {
        self.masks.or(others).filter(|_| self.only.is_none() && self.pages == pages)
    }
}

/// The states of a set of several TLBs that together simulate `all`. In set 0 each TLB has its own state, which carries
/// its misses. In other sets TLBs with equal pages share a state, as far as their assignments form one set of masks.
fn states<'a>(parts: &'a [SetAssociative], all: &SizeMasks, set: usize) -> Vec<Joint<'a>> {
    let mut states: Vec<Joint> = Vec::new();
    let of = |part: &'a SetAssociative| &part.pages[set * part.ways..][..part.ways];
    if set > 0 && parts.iter().all(|part| of(part) == of(&parts[0])) {
        return vec![Joint { masks: *all, pages: of(&parts[0]), only: None }];
    }
    for part in parts {
        let (mut masks, pages) = (part.all, of(part));
        while let Some((at, both)) =
            states.iter().enumerate().find_map(|(at, state)| Some((at, state.with(pages, &masks)?)))
        {
            states.swap_remove(at);
            masks = both;
        }
        states.push(Joint { masks, pages, only: (set == 0).then_some(part) });
    }
    states
}

/// Inserts a page as the most recently used; returns an address in the page evicted.
#[inline(always)]
fn replace(pages: &mut [Key], key: Key) -> Key {
    let mut gone = key;
    pages.iter_mut().for_each(|page| std::mem::swap(page, &mut gone));
    gone
}

/// Makes the page at `distance` from `key` (the same page for all sizes that matter) the most recently used.
#[inline(always)]
fn promote(pages: &mut [Key], key: Key, distance: u32) {
    let mut ahead = key;
    for page in pages {
        std::mem::swap(page, &mut ahead);
        if ahead.distance(key) == distance {
            return;
        }
    }
}

/// LRU access: makes a page the most recently used, replacing the least recently used one on a miss. Returns whether it
/// hit. Pages are equal if their first addresses are. Branch-free, since outcomes are hard to predict.
#[inline(always)]
pub fn access_lru<const N: usize>(pages: &mut [Key; N], page: Key) -> bool {
    let (mut ahead, mut found) = (page, false);
    for place in pages {
        let here = *place;
        *place = if found { here } else { ahead };
        found |= here == page;
        ahead = here;
    }
    found
}
