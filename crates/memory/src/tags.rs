//! A set-associative tag array.

use fxscope_calendar::Cycle;
use fxscope_hint::fetch_early;
use fxscope_machine::spec::{self, Replacement};

use crate::replacement::Selected;
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
    /// In L1: its data comes from main memory, behind a memory-side cache if there is one (meaningful while it is in flight).
    pub const L1_FROM_MAIN: u64 = Line::OWNED;
    /// In L2, the same.
    pub const L2_FROM_MAIN: u64 = Line::ASKED;
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

/// Most ways of a set: what the replacement policy knows of them is one word.
const MAX_WAYS: usize = spec::MAX_WAYS as usize;

/// The summary of a set: all that a search usually reads, except one full tag.
#[derive(Clone, Copy, serde::Deserialize, serde::Serialize)]
struct Set {
    /// A byte of the hash of each line.
    hashes: [u8; MAX_WAYS],
    /// What the replacement policy knows of the set.
    word: u64,
}

impl Set {
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
    replacement: Selected,
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
    /// An empty array of `sets` sets of `ways` lines, with LRU replacement.
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
            sets: vec![Set { hashes: [0; MAX_WAYS], word: 0 }; sets].into(),
            places: vec![Place { tag: EMPTY, line: Line::default() }; places].into(),
            replacement: Selected::Lru,
            limits: None,
            recent: [0; RECENT],
            place_mask: (places.next_power_of_two() - 1) as u32,
        }
        .replacing(Replacement::Lru)
    }

    /// The same empty array with another replacement policy.
    #[must_use]
    pub fn replacing(mut self, replacement: Replacement) -> Tags<RECENT> {
        self.replacement = replacement.into();
        for (number, set) in self.sets.iter_mut().enumerate() {
            set.word = self.replacement.empty(number);
        }
        self
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
        Slot((set << self.way_bits) + self.replacement.first(self.sets[set].word, self.ways))
    }

    /// [`Tags::find_again`] will search for `line` at `slot` first.
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
        let way = slot.0 & ((1 << self.way_bits) - 1);
        self.replacement.used(&mut self.sets[slot.0 >> self.way_bits].word, way);
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

    /// Inserts `line` into `set`, in an empty slot or in place of the line that the replacement policy chooses of those
    /// that have arrived by `now`; with sector limits, of the sector that must give up a line.
    #[inline(always)]
    pub fn insert(&mut self, set: usize, line: u64, state: Line, now: Cycle) -> (Slot, Option<Victim>) {
        let base = set << self.way_bits;
        let mut way = self.replacement.first(self.sets[set].word, self.ways);
        let any = self.limits.is_none() && self.replacement.fills_empty_ways_first();
        if !any || !self.places[base + way].has_arrived(now) {
            way = self.victim(set, state.sector(), now);
        }
        let place = base + way;
        let old = std::mem::replace(&mut self.places[place], Place { tag: line, line: state });
        let victim = (old.tag != EMPTY).then_some(Victim { line: old.tag, state: old.line });
        let ways = &mut self.sets[set];
        ways.hashes[way] = hash(line) as u8;
        self.replacement.filled(&mut ways.word, way);
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

    /// The way to be replaced. Empty ways come first. Without any, and with sector limits, a sector that must give up a line
    /// does. Lines in flight are replaced only when all candidates are: their fill is under way.
    #[cold]
    #[inline(never)]
    fn victim(&self, set: usize, sector: Sector, now: Cycle) -> usize {
        let places = &self.places[set << self.way_bits..][..self.ways];
        let word = self.sets[set].word;
        let empty = ways_where(places, |place| place.tag == EMPTY);
        if empty != 0 {
            return self.replacement.victim(word, empty);
        }
        let sectors = self.limits.map_or(u8::MAX, |limits| limits.giving(lines_of_sectors(places), sector));
        let giving = ways_where(places, |place| sectors >> place.line.sector() & 1 == 1);
        let arrived = giving & ways_where(places, |place| place.line.ready() <= now);
        self.replacement.victim(word, if arrived == 0 { giving } else { arrived })
    }

    /// Removes a line. Returns its state.
    pub fn remove(&mut self, set: usize, line: u64) -> Option<Line> {
        let slot = self.find(set, line)?;
        self.places[slot.0].tag = EMPTY;
        let way = slot.0 & ((1 << self.way_bits) - 1);
        self.replacement.removed(&mut self.sets[set].word, way, self.ways);
        Some(self.places[slot.0].line)
    }
}

/// The ways whose places are such, a bit for each.
fn ways_where(places: &[Place], such: impl Fn(&Place) -> bool) -> u32 {
    places.iter().enumerate().fold(0, |ways, (way, place)| ways | u32::from(such(place)) << way)
}

/// The number of lines of each sector in a full set.
fn lines_of_sectors(places: &[Place]) -> [u8; SECTORS] {
    let mut held = [0; SECTORS];
    for place in places {
        held[usize::from(place.line.sector())] += 1;
    }
    held
}

#[cfg(test)]
mod tests;
