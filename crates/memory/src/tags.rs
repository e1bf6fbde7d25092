//! A set-associative tag array with LRU replacement.

use fxscope_base::Cycle;

/// What a cache knows of a line it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// When its data is (or will be) there.
    pub ready: Cycle,
    /// It differs from the next level.
    pub dirty: bool,
    /// It was brought by a prefetch and no demand access has used it yet.
    pub prefetched: bool,
    /// Its data come from memory, not from the L2 cache (meaningful while it is on its way).
    pub from_memory: bool,
}

/// Most ways a set can have: the order of use of a set is kept in 16 numbers of four bits.
pub const MAX_WAYS: usize = 16;

/// What is looked at first in a set: all that a search usually reads besides one full tag.
#[derive(Clone, Copy)]
struct Set {
    /// A byte of each line's hash, way 0 in the lowest byte.
    hashes: [u64; MAX_WAYS / 8],
    /// Ways by use, the latest in the lowest four bits.
    order: u64,
}

/// The order of use in the beginning: way 0 is the latest.
const FIRST_ORDER: u64 = 0xfedc_ba98_7654_3210;

impl Set {
    /// `way` is the one used latest.
    #[inline(always)]
    fn touch(&mut self, way: usize) {
        let way = way as u64;
        if self.order & 15 != way {
            let at = 4 * self.place_of(way);
            let younger = self.order & ((1 << at) - 1);
            self.order = self.order & (!0 << 4 << at) | younger << 4 | way;
        }
    }

    /// `way` is the first to be replaced of `ways`.
    fn make_last(&mut self, way: usize, ways: usize) {
        let at = 4 * self.place_of(way as u64);
        let end = 4 * (ways as u32 - 1);
        let younger = self.order & ((1 << at) - 1);
        let older = self.order >> 4 & ((1 << end) - 1) & !((1 << at) - 1);
        let beyond = self.order & (!0 << 4 << end);
        self.order = beyond | (way as u64) << end | older | younger;
    }

    /// How many ways were used later than `way`.
    #[inline(always)]
    fn place_of(&self, way: u64) -> u32 {
        const EACH: u64 = 0x1111_1111_1111_1111;
        let differs = self.order ^ (way * EACH);
        // The lowest four bits that are zero; a borrow reaches only places above.
        (differs.wrapping_sub(EACH) & !differs & (EACH << 3)).trailing_zeros() / 4
    }

    /// The way used `place` ways ago.
    #[inline(always)]
    fn way_at(&self, place: usize) -> usize {
        (self.order >> (4 * place) & 15) as usize
    }
}

/// Tags and line states of one cache. Lines are named by their line number (address / line size).
pub struct Tags {
    ways: usize,
    /// Places of set `s` start at `s << way_bits`.
    way_bits: u32,
    sets: Box<[Set]>,
    tags: Box<[u64]>,
    lines: Box<[Line]>,
    /// Places of lines found lately, by low bits of the line number.
    recent: [u32; RECENT],
}

/// Number of remembered places.
const RECENT: usize = 64;

/// No line has this number.
const EMPTY: u64 = u64::MAX;

/// Where a line stands in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(usize);

/// A line that had to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its line number.
    pub line: u64,
    /// It must be written back.
    pub dirty: bool,
}

/// A byte that differs between most lines of a set.
#[inline(always)]
fn hash(line: u64) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
}

impl Tags {
    /// An empty array of `sets` sets of `ways` lines.
    ///
    /// # Panics
    /// With more than [`MAX_WAYS`] ways: machine descriptions are checked for it.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> Tags {
        assert!((1..=MAX_WAYS).contains(&ways), "1 to {MAX_WAYS} ways");
        let way_bits = ways.next_power_of_two().trailing_zeros();
        Tags {
            ways,
            way_bits,
            sets: vec![Set { hashes: [0; MAX_WAYS / 8], order: FIRST_ORDER }; sets].into(),
            tags: vec![EMPTY; sets << way_bits].into(),
            lines: vec![Line::default(); sets << way_bits].into(),
            recent: [0; RECENT],
        }
    }

    /// As [`Tags::find`], for a cache that is asked for the same lines again and again.
    #[inline(always)]
    pub fn find_again(&mut self, set: usize, line: u64) -> Option<Slot> {
        let hint = self.recent[line as usize % RECENT] as usize;
        if self.tags[hint] == line { Some(Slot(hint)) } else { self.search(set, line) }
    }

    #[inline(never)]
    fn search(&mut self, set: usize, line: u64) -> Option<Slot> {
        let found = self.find(set, line)?;
        self.recent[line as usize % RECENT] = found.0 as u32;
        Some(found)
    }

    /// Finds `line` in `set`.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, set: usize, line: u64) -> Option<Slot> {
        const EACH: u64 = 0x0101_0101_0101_0101;
        let wanted = hash(line) * EACH;
        let base = set << self.way_bits;
        for (eight, hashes) in self.sets[set].hashes[..self.ways.div_ceil(8)].iter().enumerate() {
            let differs = hashes ^ wanted;
            // Bytes that are zero; now and then one too many.
            let mut candidates = differs.wrapping_sub(EACH) & !differs & (EACH << 7);
            while candidates != 0 {
                let place = base + 8 * eight + candidates.trailing_zeros() as usize / 8;
                if self.tags.get(place) == Some(&line) {
                    return Some(Slot(place));
                }
                candidates &= candidates - 1;
            }
        }
        None
    }

    /// Marks a line as just used.
    #[inline(always)]
    pub fn touch(&mut self, slot: Slot) {
        self.sets[slot.0 >> self.way_bits].touch(slot.0 & ((1 << self.way_bits) - 1));
    }

    /// The state of a line.
    #[inline(always)]
    #[must_use]
    pub fn line(&self, slot: Slot) -> &Line {
        &self.lines[slot.0]
    }
    /// The state of a line, to be changed.
    #[inline(always)]
    pub fn line_mut(&mut self, slot: Slot) -> &mut Line {
        &mut self.lines[slot.0]
    }

    /// Puts `line` into `set` in place of an empty or the least recently used line that has arrived by `now`.
    pub fn insert(&mut self, set: usize, line: u64, state: Line, now: Cycle) -> (Slot, Option<Victim>) {
        let way = self.victim(set, now);
        let place = (set << self.way_bits) + way;
        let old = self.tags[place];
        let victim = (old != EMPTY).then(|| Victim { line: old, dirty: self.lines[place].dirty });
        let shift = 8 * (way % 8);
        let hashes = &mut self.sets[set].hashes[way / 8];
        *hashes = *hashes & !(0xff << shift) | hash(line) << shift;
        self.sets[set].touch(way);
        self.tags[place] = line;
        self.lines[place] = state;
        (Slot(place), victim)
    }

    /// The way to be replaced. Lines still on their way are replaced only when all are: their fill is under way.
    #[inline(always)]
    fn victim(&self, set: usize, now: Cycle) -> usize {
        let base = set << self.way_bits;
        let last = self.sets[set].way_at(self.ways - 1);
        let arrived = |way: usize| self.lines[base + way].ready <= now || self.tags[base + way] == EMPTY;
        if arrived(last) {
            return last;
        }
        (0..self.ways).rev().map(|place| self.sets[set].way_at(place)).find(|&way| arrived(way)).unwrap_or(last)
    }

    /// Removes a line; returns its state.
    pub fn remove(&mut self, set: usize, line: u64) -> Option<Line> {
        let slot = self.find(set, line)?;
        self.tags[slot.0] = EMPTY;
        self.sets[set].make_last(slot.0 & ((1 << self.way_bits) - 1), self.ways);
        Some(self.lines[slot.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_use_is_that_of_a_list() {
        for ways in [1, 2, 4, 7, 14, 16] {
            let mut set = Set { hashes: [0; 2], order: FIRST_ORDER };
            let mut list: Vec<usize> = (0..ways).collect();
            for step in 0..2_000_usize {
                let way = (step * step + step / 3) % ways;
                list.retain(|&w| w != way);
                if step % 5 == 0 {
                    set.make_last(way, ways);
                    list.push(way);
                } else {
                    set.touch(way);
                    list.insert(0, way);
                }
                let order: Vec<usize> = (0..ways).map(|place| set.way_at(place)).collect();
                assert_eq!(order, list, "{ways} ways, step {step}");
            }
        }
    }

    #[test]
    fn an_emptied_place_is_filled_before_anything_leaves() {
        let mut t = Tags::new(2, 14);
        (0..14).for_each(|line| assert_eq!(t.insert(1, line, Line::default(), 0).1, None));
        assert!(t.remove(1, 5).is_some() && t.remove(1, 5).is_none());
        assert_eq!(t.insert(1, 20, Line { ready: 9, ..Line::default() }, 0).1, None);
        assert_eq!(t.insert(1, 21, Line::default(), 0).1.map(|v| v.line), Some(0));
        assert!((6..14).all(|line| t.find(1, line).is_some()) && t.find(0, 20).is_none());
    }

    #[test]
    fn the_least_recently_used_line_leaves() {
        let mut t = Tags::new(1, 2);
        let (a, _) = t.insert(0, 10, Line::default(), 0);
        t.insert(0, 11, Line { dirty: true, ..Line::default() }, 0);
        t.touch(a);
        let (_, victim) = t.insert(0, 12, Line::default(), 0);
        assert_eq!(victim, Some(Victim { line: 11, dirty: true }));
        assert!(t.find(0, 10).is_some() && t.find(0, 11).is_none());
    }

    #[test]
    fn lines_on_their_way_stay_while_others_can_leave() {
        let mut t = Tags::new(1, 2);
        t.insert(0, 10, Line { ready: 100, ..Line::default() }, 0);
        t.insert(0, 11, Line::default(), 0);
        let (_, victim) = t.insert(0, 12, Line::default(), 50);
        assert_eq!(victim.map(|v| v.line), Some(11));
    }
}
