//! A set-associative tag array with LRU replacement.

use fxscope_calendar::Cycle;
use fxscope_hint::fetch_early;
use fxscope_machine::spec;

use crate::sectors::{Joins, Limits, SECTORS, Sector};

/// The state of a line in a cache: when its data arrives, and flags above that time. One word, since the states of a
/// large cache do not fit into the host's caches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Line(u64);

impl Line {
    /// It differs from the next level; in L2, the copy in L1 may be the one that does.
    pub const DIRTY: u64 = 1 << 63;
    /// It was prefetched, and no demand access has used it yet.
    pub const PREFETCHED: u64 = 1 << 62;
    /// Its data comes from memory, not from the L2 cache (meaningful while it is in flight).
    pub const FROM_MEMORY: u64 = 1 << 61;
    /// Others may hold it, too: in L1, other cores; in L2, other CMGs. A write must request ownership first.
    pub const SHARED: u64 = 1 << 60;
    /// In L1: write permission is in flight. The data arrives earlier, or is present.
    pub const ASKED: u64 = 1 << 58;
    /// In L2: the one core that holds it may write without a request.
    pub const OWNED: u64 = 1 << 59;
    /// Its sector.
    const SECTOR_AT: u32 = 56;
    const SECTOR: u64 = (SECTORS as u64 - 1) << Line::SECTOR_AT;
    /// Bits of the time (hours of simulated time). Above it: how long before that time the line was known to miss the
    /// next level.
    const TIME_BITS: u32 = 44;
    const TIME: u64 = (1 << Line::TIME_BITS) - 1;
    const LONGEST: u64 = (1 << (Line::SECTOR_AT - Line::TIME_BITS)) - 1;

    /// A line whose data arrives at `ready`.
    #[inline(always)]
    #[must_use]
    pub fn arriving(ready: Cycle) -> Line {
        Line(ready & Line::TIME)
    }
    /// A line from memory whose data arrives at `ready`, known at `missed` to be in no cache.
    #[must_use]
    pub fn arriving_from_memory(ready: Cycle, missed: Cycle) -> Line {
        let wait = ready.saturating_sub(missed).min(Line::LONGEST);
        Line(ready & Line::TIME | wait << Line::TIME_BITS | Line::FROM_MEMORY)
    }
    /// When it was known to be in no cache, for a line in flight.
    #[must_use]
    pub fn missed(self) -> Option<Cycle> {
        let wait = self.0 >> Line::TIME_BITS & Line::LONGEST;
        self.has(Line::FROM_MEMORY).then(|| self.ready() - wait)
    }
    /// The same line with `flag` if `on`.
    #[inline(always)]
    #[must_use]
    pub fn with(self, flag: u64, on: bool) -> Line {
        Line(self.0 | if on { flag } else { 0 })
    }
    /// Whether it has `flag`.
    #[inline(always)]
    #[must_use]
    pub fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }
    /// Sets `flag` if `on`.
    #[inline(always)]
    pub fn set(&mut self, flag: u64, on: bool) {
        *self = self.with(flag, on);
    }
    /// Clears `flag`; returns whether it was set.
    #[inline(always)]
    pub fn take(&mut self, flag: u64) -> bool {
        let had = self.has(flag);
        self.0 &= !flag;
        had
    }
    /// Its sector.
    #[inline(always)]
    #[must_use]
    pub fn sector(self) -> Sector {
        ((self.0 & Line::SECTOR) >> Line::SECTOR_AT) as Sector
    }
    /// The same line in `sector`.
    #[inline(always)]
    #[must_use]
    pub fn in_sector(self, sector: Sector) -> Line {
        Line(self.0 & !Line::SECTOR | u64::from(sector) << Line::SECTOR_AT)
    }
    /// An access of a sector hits it.
    #[inline(always)]
    pub fn join(&mut self, joins: Joins) {
        if joins.moves {
            *self = self.in_sector(joins.sector);
        }
    }
    /// When its data arrives, or has arrived.
    #[inline(always)]
    #[must_use]
    pub fn ready(self) -> Cycle {
        self.0 & Line::TIME
    }
    /// It may be written at `ready`. When it can be read does not change.
    pub fn ask(&mut self, ready: Cycle) {
        let wait = ready.saturating_sub(self.ready()).min(Line::LONGEST);
        self.0 &= !(Line::TIME | Line::LONGEST << Line::TIME_BITS | Line::FROM_MEMORY);
        self.0 |= ready & Line::TIME | wait << Line::TIME_BITS | Line::ASKED;
    }
    /// When it can be read: while write permission is in flight, earlier than it is ready.
    #[inline(always)]
    #[must_use]
    pub fn readable(self) -> Cycle {
        let wait = self.0 >> Line::TIME_BITS & Line::LONGEST;
        self.ready() - if self.has(Line::ASKED) { wait } else { 0 }
    }
    /// Sets when its data arrives.
    #[inline(always)]
    pub fn set_ready(&mut self, ready: Cycle) {
        self.0 = self.0 & !Line::TIME | ready & Line::TIME;
    }
}

/// A slot for a line.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Place {
    /// Line number, or [`EMPTY`].
    tag: u64,
    line: Line,
}

impl Place {
    /// Whether it is empty or its line has arrived at `now`.
    #[inline(always)]
    fn has_arrived(&self, now: Cycle) -> bool {
        self.line.ready() <= now || self.tag == EMPTY
    }
}

/// Most ways of a set: their order of use is kept in four bits each in one word.
const MAX_WAYS: usize = spec::MAX_WAYS as usize;

/// The summary of a set: all that a search usually reads, except one full tag.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Set {
    /// A byte of the hash of each line.
    hashes: [u8; MAX_WAYS],
    /// Ways by recency of use, the most recent in the lowest four bits.
    order: u64,
}

/// The initial order of use: way 0 is the most recent.
const FIRST_ORDER: u64 = 0xfedc_ba98_7654_3210;

impl Set {
    /// `way` becomes the most recently used.
    #[inline(always)]
    fn touch(&mut self, way: usize) {
        let way = way as u64;
        if self.order & 15 != way {
            self.bring_forward(self.place_of(way));
        }
    }

    /// The way at `place` in the order becomes the most recently used.
    #[inline(always)]
    fn bring_forward(&mut self, place: u32) {
        let at = 4 * place;
        // That way and the more recent ones.
        let changed = (16_u64 << at).wrapping_sub(1);
        let order = self.order << 4 | self.order >> at & 15;
        self.order ^= (self.order ^ order) & changed;
    }

    /// `way` becomes the first of `ways` to be replaced.
    fn make_last(&mut self, way: usize, ways: usize) {
        let at = 4 * self.place_of(way as u64);
        let end = 4 * (ways as u32 - 1);
        let younger = self.order & ((1 << at) - 1);
        let older = self.order >> 4 & ((1 << end) - 1) & !((1 << at) - 1);
        let beyond = self.order & (!0 << 4 << end);
        self.order = beyond | (way as u64) << end | older | younger;
    }

    /// The number of ways that were used more recently than `way`.
    #[inline(always)]
    fn place_of(&self, way: u64) -> u32 {
        const EACH: u64 = 0x1111_1111_1111_1111;
        let differs = self.order ^ (way * EACH);
        // The lowest four bits that are zero; a borrow reaches only places above.
        (differs.wrapping_sub(EACH) & !differs & (EACH << 3)).trailing_zeros() / 4
    }

    /// The way at `place` in the order of use.
    #[inline(always)]
    fn way_at(&self, place: u32) -> usize {
        (self.order >> (4 * place) & 15) as usize
    }

    /// Ways whose lines have this hash, and rarely one too many: bit 7 of byte `b` for way `b`, bit 3 for way `b + 8`.
    #[inline(always)]
    fn with_hash(&self, hash: u64) -> u64 {
        const EACH: u64 = 0x0101_0101_0101_0101;
        let (eights, _) = self.hashes.as_chunks::<8>();
        eights.iter().enumerate().fold(0, |ways, (eight, hashes)| {
            let differs = u64::from_le_bytes(*hashes) ^ (hash * EACH);
            // Bytes that are zero.
            ways | (differs.wrapping_sub(EACH) & !differs & (EACH << 7)) >> (4 * eight)
        })
    }
}

/// Tags and line states of one cache. Lines are named by their line number (address / line size). The slots of `RECENT`
/// lines that were found lately (a power of two) are remembered.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct Tags<const RECENT: usize = 256> {
    ways: usize,
    /// Slots of set `s` start at `s << way_bits`.
    way_bits: u32,
    sets: Box<[Set]>,
    places: Box<[Place]>,
    /// Sector limits, if any can be reached.
    limits: Option<Limits>,
    /// Slots of lines that were found lately, by a hash of the line number: the slot in the bits of `place_mask`, more
    /// of the hash above.
    #[serde(with = "fxscope_calendar::array")]
    recent: [u32; RECENT],
    place_mask: u32,
}

/// No line has this number.
const EMPTY: u64 = u64::MAX;

/// The slot of a line in the array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Slot(usize);

impl Slot {
    /// Its number, below [`Tags::places`].
    #[inline(always)]
    #[must_use]
    pub fn number(self) -> usize {
        self.0
    }
}

/// An evicted line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its line number.
    pub line: u64,
    /// Its state.
    pub state: Line,
}

impl Victim {
    /// It must be written back.
    #[inline(always)]
    #[must_use]
    pub fn dirty(&self) -> bool {
        self.state.has(Line::DIRTY)
    }
}

/// Some bits that differ between most lines of a set.
#[inline(always)]
fn hashed(line: u64, bits: u32) -> u64 {
    line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits)
}

/// A byte that differs between most lines of a set.
#[inline(always)]
fn hash(line: u64) -> u64 {
    hashed(line, u8::BITS)
}

impl<const RECENT: usize> Tags<RECENT> {
    /// An empty array of `sets` sets of `ways` lines.
    ///
    /// # Panics
    /// With more than [`spec::MAX_WAYS`] ways: machine descriptions are checked for it.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> Tags<RECENT> {
        assert!((1..=MAX_WAYS).contains(&ways), "1 to {MAX_WAYS} ways");
        let way_bits = ways.next_power_of_two().trailing_zeros();
        let places = sets << way_bits;
        Tags {
            ways,
            way_bits,
            sets: vec![Set { hashes: [0; MAX_WAYS], order: FIRST_ORDER }; sets].into(),
            places: vec![Place { tag: EMPTY, line: Line::default() }; places].into(),
            limits: None,
            recent: [0; RECENT],
            place_mask: (places.next_power_of_two() - 1) as u32,
        }
    }

    /// Sets the sector limits for replacement. Lines stay where they are.
    pub fn limit(&mut self, limits: Limits) {
        self.limits = limits.within(self.ways);
    }

    /// The number of slots.
    #[must_use]
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// Neighbouring lines that a large table keeps together, so that a stream touches few lines of the host in it.
    const TOGETHER: usize = if RECENT > 1024 { 16 } else { 1 };

    /// Where the slot of a line is remembered, and the part of its hash that is kept with it.
    #[inline(always)]
    fn hint(line: u64) -> (usize, u32) {
        let rows = RECENT / Self::TOGETHER;
        let hash = hashed(line / Self::TOGETHER as u64, rows.ilog2() + u32::BITS);
        let row = (hash >> u32::BITS) as usize % rows;
        (row * Self::TOGETHER + line as usize % Self::TOGETHER, hash as u32)
    }

    /// As [`Tags::find`], for a cache that is accessed with the same lines again and again.
    #[inline(always)]
    pub fn find_again(&mut self, set: usize, line: u64) -> Option<Slot> {
        let slot = self.remembered(line);
        if self.is_at(slot, line) { Some(slot) } else { self.search(set, line) }
    }

    /// The same for a large cache, which often misses: where the remembered slot belongs to another line, the host does
    /// not fetch its state.
    #[inline(always)]
    pub fn find_if_known(&mut self, set: usize, line: u64) -> Option<Slot> {
        let (hint, hash) = Self::hint(line);
        let known = self.recent[hint];
        let slot = Slot((known & self.place_mask) as usize);
        let may_be = (known ^ hash) & !self.place_mask == 0;
        if may_be && self.is_at(slot, line) {
            return Some(slot);
        }
        let found = self.find(set, line)?;
        self.remember(line, found);
        Some(found)
    }

    /// [`Tags::find_again`] will soon be called for `line`: the host prefetches what it needs. Returns the slot.
    #[inline(always)]
    pub fn expect_again(&self, line: u64) -> Slot {
        let slot = self.remembered(line);
        self.expect_at(slot);
        fetch_early(&self.sets, slot.0 >> self.way_bits);
        slot
    }

    /// Where [`Tags::find_again`] looks for `line` first: its slot, right after it was found or remembered.
    #[inline(always)]
    #[must_use]
    pub fn remembered(&self, line: u64) -> Slot {
        Slot((self.recent[Self::hint(line).0] & self.place_mask) as usize)
    }

    /// Whether `line` is at `slot`.
    #[inline(always)]
    #[must_use]
    pub fn is_at(&self, slot: Slot, line: u64) -> bool {
        self.places[slot.0].tag == line
    }

    /// The host prefetches the state of `slot`.
    #[inline(always)]
    pub fn expect_at(&self, slot: Slot) {
        fetch_early(&self.places, slot.0);
    }

    /// The slot of `set` that will probably be replaced next.
    #[inline(always)]
    #[must_use]
    pub fn last(&self, set: usize) -> Slot {
        Slot((set << self.way_bits) + self.sets[set].way_at(self.ways as u32 - 1))
    }

    /// [`Tags::find_again`] will look for `line` at `slot` first.
    #[inline(always)]
    pub fn remember(&mut self, line: u64, slot: Slot) {
        let (hint, hash) = Self::hint(line);
        self.recent[hint] = hash & !self.place_mask | slot.0 as u32;
    }

    #[cold]
    #[inline(never)]
    fn search(&mut self, set: usize, line: u64) -> Option<Slot> {
        let found = self.find(set, line)?;
        self.remember(line, found);
        Some(found)
    }

    /// Finds `line` in `set`.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, set: usize, line: u64) -> Option<Slot> {
        let base = set << self.way_bits;
        let mut candidates = self.sets[set].with_hash(hash(line));
        while candidates != 0 {
            let bit = candidates.trailing_zeros() as usize;
            let place = base + bit / 8 + ((!bit & 4) << 1);
            if self.places.get(place).is_some_and(|p| p.tag == line) {
                return Some(Slot(place));
            }
            candidates &= candidates - 1;
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
        &self.places[slot.0].line
    }
    /// The state of a line, to be changed.
    #[inline(always)]
    pub fn line_mut(&mut self, slot: Slot) -> &mut Line {
        &mut self.places[slot.0].line
    }

    /// Inserts `line` into `set`, in an empty slot or in place of the least recently used line that has arrived by
    /// `now`; with sector limits, of the sector that must give up a line.
    #[inline(always)]
    pub fn insert(&mut self, set: usize, line: u64, state: Line, now: Cycle) -> (Slot, Option<Victim>) {
        let base = set << self.way_bits;
        let mut ways = &mut self.sets[set];
        let mut age = self.ways as u32 - 1;
        let mut way = ways.way_at(age);
        if self.limits.is_some() || !self.places[base + way].has_arrived(now) {
            age = self.victim(set, state.sector(), now);
            ways = &mut self.sets[set];
            way = ways.way_at(age);
        }
        let place = base + way;
        let old = std::mem::replace(&mut self.places[place], Place { tag: line, line: state });
        let victim = (old.tag != EMPTY).then_some(Victim { line: old.tag, state: old.line });
        ways.hashes[way] = hash(line) as u8;
        ways.bring_forward(age);
        (Slot(place), victim)
    }

    /// A line will soon be inserted into `set`, and one into `next` after it: the host prefetches the victim and the
    /// summary of the set. Its caches do not hold all tags of a large cache, and waiting for them is the longest part
    /// of an insertion. Returns the slot that will probably be taken.
    #[inline(always)]
    pub fn expect(&self, set: usize, next: usize) -> Slot {
        fetch_early(&self.sets, next);
        let last = self.last(set);
        self.expect_at(last);
        last
    }

    /// The place in the order of use of the way to be replaced. Lines in flight are replaced only when all are: their
    /// fill is under way.
    #[cold]
    #[inline(never)]
    fn victim(&self, set: usize, sector: Sector, now: Cycle) -> u32 {
        if let Some(limits) = self.limits {
            return self.victim_within(limits, set, sector, now);
        }
        let base = set << self.way_bits;
        let last = self.ways as u32 - 1;
        let arrived = |&age: &u32| self.places[base + self.sets[set].way_at(age)].has_arrived(now);
        (0..=last).rev().find(arrived).unwrap_or(last)
    }

    /// The same for a line of `sector`. The least recently used line of the sectors that must give one up is replaced,
    /// and a line in flight only when all of them are.
    fn victim_within(&self, limits: Limits, set: usize, sector: Sector, now: Cycle) -> u32 {
        let last = self.ways as u32 - 1;
        let places = &self.places[set << self.way_bits..][..self.ways];
        let mut held = [0; SECTORS];
        for place in places.iter().filter(|place| place.tag != EMPTY) {
            held[usize::from(place.line.sector())] += 1;
        }
        if held.iter().sum::<u8>() < self.ways as u8 {
            return last;
        }
        let giving = limits.giving(held, sector);
        let line = |age: u32| places[self.sets[set].way_at(age)].line;
        let mut candidates = (0..=last).rev().filter(|&age| giving >> line(age).sector() & 1 == 1);
        let oldest = candidates.next().expect("a sector that must give up a line has one");
        let arrived = |&age: &u32| line(age).ready() <= now;
        if arrived(&oldest) { oldest } else { candidates.find(arrived).unwrap_or(oldest) }
    }

    /// Removes a line. Returns its state.
    pub fn remove(&mut self, set: usize, line: u64) -> Option<Line> {
        let slot = self.find(set, line)?;
        self.places[slot.0].tag = EMPTY;
        self.sets[set].make_last(slot.0 & ((1 << self.way_bits) - 1), self.ways);
        Some(self.places[slot.0].line)
    }
}

#[cfg(test)]
mod tests;
