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

/// Tags and line states of one cache. Lines are named by their line number (address / line size).
pub struct Tags {
    ways: usize,
    tags: Box<[u64]>,
    /// Order of last use; 0 for an empty place. Apart from the lines, so that choosing a victim reads little.
    used: Box<[u64]>,
    lines: Box<[Line]>,
    clock: u64,
}

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

impl Tags {
    /// An empty array of `sets` sets of `ways` lines.
    #[must_use]
    pub fn new(sets: usize, ways: usize) -> Tags {
        let places = sets * ways;
        Tags {
            ways,
            tags: vec![EMPTY; places].into(),
            used: vec![0; places].into(),
            lines: vec![Line::default(); places].into(),
            clock: 0,
        }
    }

    /// Finds `line` in `set`.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, set: usize, line: u64) -> Option<Slot> {
        let base = set * self.ways;
        self.tags[base..base + self.ways].iter().position(|&t| t == line).map(|way| Slot(base + way))
    }

    /// Marks a line as just used.
    #[inline(always)]
    pub fn touch(&mut self, slot: Slot) {
        self.clock += 1;
        self.used[slot.0] = self.clock;
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
        let base = set * self.ways;
        let range = base..base + self.ways;
        let mut slot = range.clone().min_by_key(|&i| self.used[i]).expect("a set has ways");
        if self.lines[slot].ready > now && self.tags[slot] != EMPTY {
            // Lines still on their way are replaced only when all are: their fill is under way.
            slot = range.min_by_key(|&i| (self.lines[i].ready > now, self.used[i])).expect("a set has ways");
        }
        let old = self.tags[slot];
        let victim = (old != EMPTY).then(|| Victim { line: old, dirty: self.lines[slot].dirty });
        self.clock += 1;
        self.tags[slot] = line;
        self.used[slot] = self.clock;
        self.lines[slot] = state;
        (Slot(slot), victim)
    }

    /// Removes a line; returns its state.
    pub fn remove(&mut self, set: usize, line: u64) -> Option<Line> {
        let slot = self.find(set, line)?;
        self.tags[slot.0] = EMPTY;
        self.used[slot.0] = 0;
        Some(self.lines[slot.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
