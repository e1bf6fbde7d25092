//! Sums of measures by block and group of windows.

use serde::{Deserialize, Serialize};

use crate::schedule::{Window, WindowKind};

/// Groups of windows that give useful intervals: 16 pairs, so that an interval of 95 % is 2.12 standard errors to each side (1.96 with
/// any number of groups).
pub const DEFAULT_GROUPS: usize = 32;
/// Most groups that a sample can have: a block knows by a word of bits in which it was seen.
pub const MAX_GROUPS: usize = 64;
/// Most values that a sample holds: 128 MB.
const MAX_VALUES: usize = 16 << 20;

/// The weight of a window that stands for as many instructions as it measures: weights are whole numbers.
const WEIGHT_UNIT: u64 = 256;
/// By how much less a window for rare blocks counts: it is placed by what ran, so that regular windows must decide the cost of all blocks that
/// they see.
const RARE: u64 = 16;

/// What windows saw: for each block its executions and sums of measures, divided into groups of windows.
///
/// Groups form pairs, 0 with 1, 2 with 3 and so on. Two consecutive windows go to the two groups of a pair, the next two to those of the
/// next pair, and after the last pair to those of the first again. The groups of a pair thus differ by what the sample left to
/// chance and not by what changes slowly during the run, which all groups see alike. That is what the intervals of [`crate::estimate`]
/// are made from. In every second round the two groups of a pair change their order: otherwise a cost that only rises would
/// make one of them dearer. Each kind of window is divided separately, so that all groups have as many of each.
///
/// What a window sees counts as often as it stands for more instructions ([`Window::stands_for`]) than it measures: later windows stand for
/// more of the run than earlier ones, and one in which few cores ran may stand for as much as one in which all did.
///
/// # Memory
/// A block takes 8 bytes for each of its measures that are not always zero, and for its executions, once in total and once for each group
/// in which it was seen, and some 100 bytes in addition. 20,000 blocks of 20 such measures in all of 32 groups take 111 MB; usually
/// most blocks are seen in few groups and have fewer measures: in five groups, with 12 measures, 12 MB. Beyond 128 MB no block, group
/// of a block or measure of a block is added any more: such executions are left out ([`Sample::left_out`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    measures: usize,
    groups: usize,
    /// Place in `blocks` of each block, plus 1; 0 for those never seen.
    places: Vec<u32>,
    blocks: Vec<BlockSums>,
    /// Values in all blocks.
    values: usize,
    max_values: usize,
    left_out: u64,
    /// Windows by group.
    windows: Vec<u64>,
    /// Regular and rare windows so far.
    by_kind: [u64; 2],
    current: Current,
}

/// The window that executions are added to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Current {
    /// Windows begun so far; 0 before the first.
    number: u64,
    group: usize,
    weight: u64,
    /// Blocks seen less often than this before the window count in it.
    rarer_than: u64,
}

/// Sums of a block.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BlockSums {
    block: u32,
    /// Executions in windows, not weighted.
    seen: u64,
    /// The last window that executed the block, and whether it counts there.
    window: u64,
    counts: bool,
    /// Windows in which it counts.
    windows: u64,
    /// Groups that saw the block, as bits.
    groups: u64,
    /// Measures that were ever not zero, as bits.
    mask: Box<[u64]>,
    /// Rows of weighted executions and the weighted sums of measures in `mask`: first of all groups, then of each in `groups`.
    rows: Vec<u64>,
    columns: usize,
}

impl Sample {
    /// Returns an empty sample of `measures` measures.
    ///
    /// # Panics
    /// If `groups` is odd, less than 2 or more than [`MAX_GROUPS`].
    #[must_use]
    pub fn new(measures: usize, groups: usize) -> Self {
        assert!(groups.is_multiple_of(2), "{groups} groups do not form pairs");
        assert!((2..=MAX_GROUPS).contains(&groups), "{groups} groups, not 2 to {MAX_GROUPS}");
        Self {
            measures,
            groups,
            places: Vec::new(),
            blocks: Vec::new(),
            values: 0,
            max_values: MAX_VALUES,
            left_out: 0,
            windows: vec![0; groups],
            by_kind: [0; 2],
            current: Current::default(),
        }
    }

    /// Begins a window that measures `measured` instructions of all cores: what is added from now on belongs to it. A window that ends
    /// early, with the run, counts as if it had measured what was planned for one core.
    pub fn begin_window(&mut self, window: &Window, measured: u64) {
        let (kind, rarer_than, unit) = match window.kind {
            WindowKind::Regular => (0, u64::MAX, WEIGHT_UNIT),
            WindowKind::Rare { seen_less_than } => (1, seen_less_than, WEIGHT_UNIT / RARE),
        };
        let weight = window.stands_for.saturating_mul(unit) / measured.max(window.instructions).max(1);
        let group = group_of(self.by_kind[kind], self.groups as u64);
        self.by_kind[kind] += 1;
        self.windows[group] += 1;
        self.current = Current { number: self.current.number + 1, group, weight: weight.max(1), rarer_than };
    }

    /// Adds executions of a block in the current window with the sums of their measures; measures left out are zero.
    ///
    /// A window for rare blocks ([`WindowKind::Rare`]) adds only to blocks that were rare when it began: it was placed by what ran,
    /// so for others it is not a random sample.
    ///
    /// # Panics
    /// If no window has begun, or a measure is out of range.
    pub fn add(&mut self, block: u32, executions: u64, sums: &[(usize, u64)]) {
        assert!(self.current.number > 0, "executions before the first window");
        if self.values >= self.max_values && self.would_grow(block, sums) {
            self.left_out = self.left_out.saturating_add(executions);
            return;
        }
        let place = self.place(block);
        let (entry, current) = (&mut self.blocks[place], &self.current);
        let values_before = entry.rows.len();
        if entry.enter(current) {
            let row = entry.row(current.group);
            entry.increase(row, 0, executions.saturating_mul(current.weight));
            for &(measure, sum) in sums.iter().filter(|(_, sum)| *sum > 0) {
                assert!(measure < self.measures, "measure {measure} of {}", self.measures);
                let column = entry.column(measure).unwrap_or_else(|| entry.add_columns(sums, measure));
                entry.increase(row, column, sum.saturating_mul(current.weight));
            }
        }
        entry.seen = entry.seen.saturating_add(executions);
        self.values += entry.rows.len() - values_before;
    }

    /// Returns whether adding to a block would take more memory.
    fn would_grow(&self, block: u32, sums: &[(usize, u64)]) -> bool {
        let Some(entry) = self.get(block) else {
            return true;
        };
        let new_measure = |(measure, sum): &(usize, u64)| *sum > 0 && entry.column(*measure).is_none();
        !entry.has_row(self.current.group) || sums.iter().any(new_measure)
    }

    /// Returns the place of a block's sums and creates them if the block is new.
    fn place(&mut self, block: u32) -> usize {
        let index = block as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, 0);
        }
        if self.places[index] == 0 {
            let sums = BlockSums::new(block, self.measures);
            self.values += sums.rows.len();
            self.blocks.push(sums);
            self.places[index] = self.blocks.len() as u32;
        }
        self.places[index] as usize - 1
    }

    fn get(&self, block: u32) -> Option<&BlockSums> {
        let place = *self.places.get(block as usize)?;
        (place > 0).then(|| &self.blocks[place as usize - 1])
    }

    /// Returns how many executions of a block windows have seen.
    #[must_use]
    pub fn executions_seen(&self, block: u32) -> u64 {
        self.get(block).map_or(0, |sums| sums.seen)
    }

    /// Returns the cost of one execution of a block in a measure, over all windows so far; `None` if no window has seen the block.
    /// Takes constant time.
    #[must_use]
    pub fn rate(&self, block: u32, measure: usize) -> Option<f64> {
        let sums = self.get(block)?;
        let executions = sums.rows[0];
        let total = sums.column(measure).map_or(0, |column| sums.rows[column]);
        (executions > 0).then(|| total as f64 / executions as f64)
    }

    /// Returns the number of measures.
    #[must_use]
    pub fn measures(&self) -> usize {
        self.measures
    }

    /// Returns how many windows have begun.
    #[must_use]
    pub fn windows(&self) -> u64 {
        self.current.number
    }

    /// Returns how many executions were left out for lack of room.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns windows by group.
    pub(crate) fn windows_by_group(&self) -> &[u64] {
        &self.windows
    }

    /// Returns the sums of a block if it counted in any window.
    pub(crate) fn block(&self, block: u32) -> Option<&BlockSums> {
        self.get(block).filter(|sums| sums.rows[0] > 0)
    }

    /// Returns the sums of all blocks that counted in any window, in the order in which they were first seen.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &BlockSums> {
        self.blocks.iter().filter(|sums| sums.rows[0] > 0)
    }
}

/// Returns the other group of a pair.
pub(crate) fn mate(group: usize) -> usize {
    group ^ 1
}

/// Returns the group of the window with a number.
fn group_of(number: u64, groups: u64) -> usize {
    let round = number / groups;
    ((number % groups) ^ (round & 1)) as usize
}

impl BlockSums {
    fn new(block: u32, measures: usize) -> Self {
        Self {
            block,
            seen: 0,
            window: 0,
            counts: false,
            windows: 0,
            groups: 0,
            mask: vec![0; measures.div_ceil(64)].into_boxed_slice(),
            rows: vec![0],
            columns: 1,
        }
    }

    /// Returns the block's number.
    pub(crate) fn block(&self) -> u32 {
        self.block
    }

    /// Returns in how many windows the block counts.
    pub(crate) fn windows(&self) -> u64 {
        self.windows
    }

    /// Returns the measures that were ever not zero, in the order of the values of a row behind the first.
    pub(crate) fn measures(&self) -> impl Iterator<Item = usize> + '_ {
        self.mask
            .iter()
            .enumerate()
            .flat_map(|(word, bits)| (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| word * 64 + bit))
    }

    /// Returns the weighted executions in all groups and the weighted sums of [`Self::measures`].
    pub(crate) fn total(&self) -> &[u64] {
        &self.rows[..self.columns]
    }

    /// Returns the row of a group, which is like [`Self::total`]; `None` if the group has not seen the block.
    pub(crate) fn group(&self, group: usize) -> Option<&[u64]> {
        let begin = self.row_of(group) * self.columns;
        self.has_row(group).then(|| &self.rows[begin..begin + self.columns])
    }

    /// Returns the group that has seen the block, if it is the only one.
    pub(crate) fn only_group(&self) -> Option<usize> {
        self.groups.is_power_of_two().then(|| self.groups.trailing_zeros() as usize)
    }

    /// Returns the number of the last window that executed the block.
    pub(crate) fn last_window(&self) -> u64 {
        self.window
    }

    /// Returns whether the block was seen in a group.
    fn has_row(&self, group: usize) -> bool {
        self.groups >> group & 1 == 1
    }

    /// Returns the row of a group, which need not exist yet.
    fn row_of(&self, group: usize) -> usize {
        1 + (self.groups & ((1 << group) - 1)).count_ones() as usize
    }

    /// Notes that a window executes the block, and returns whether the block counts in it.
    fn enter(&mut self, current: &Current) -> bool {
        if self.window != current.number {
            self.window = current.number;
            self.counts = self.seen < current.rarer_than;
            self.windows += u64::from(self.counts);
        }
        self.counts
    }

    /// Returns the row of a group and adds it if there is none.
    fn row(&mut self, group: usize) -> usize {
        let row = self.row_of(group);
        if !self.has_row(group) {
            let at = row * self.columns;
            self.rows.splice(at..at, std::iter::repeat_n(0, self.columns));
            self.groups |= 1 << group;
        }
        row
    }

    /// Returns the column of a measure if it was ever not zero.
    fn column(&self, measure: usize) -> Option<usize> {
        let bits = self.mask.get(measure / 64)?;
        (bits >> (measure % 64) & 1 == 1).then(|| self.column_of(measure))
    }

    /// Returns the column of a measure in `mask`.
    fn column_of(&self, measure: usize) -> usize {
        let (word, bit) = (measure / 64, measure % 64);
        let words_before: u32 = self.mask[..word].iter().map(|bits| bits.count_ones()).sum();
        1 + (words_before + (self.mask[word] & ((1 << bit) - 1)).count_ones()) as usize
    }

    /// Adds columns of zeros for all measures of `sums` that are not zero and have none, and returns that of one of them.
    fn add_columns(&mut self, sums: &[(usize, u64)], measure: usize) -> usize {
        let before: Vec<usize> = self.measures().collect();
        for (measure, _) in sums.iter().filter(|(_, sum)| *sum > 0) {
            self.mask[measure / 64] |= 1 << (measure % 64);
        }
        let places: Vec<usize> = before.iter().map(|measure| self.column_of(*measure)).collect();
        let columns = 1 + self.measures().count();
        let mut rows = vec![0; self.rows.len() / self.columns * columns];
        for (new, old) in rows.chunks_exact_mut(columns).zip(self.rows.chunks_exact(self.columns)) {
            new[0] = old[0];
            places.iter().zip(&old[1..]).for_each(|(place, sum)| new[*place] = *sum);
        }
        (self.rows, self.columns) = (rows, columns);
        self.column_of(measure)
    }

    /// Adds to a value of a row and of the row of all groups.
    fn increase(&mut self, row: usize, column: usize, by: u64) {
        for at in [column, row * self.columns + column] {
            self.rows[at] = self.rows[at].saturating_add(by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window { stands_for: 100, instructions: 100, ..Window::default() }
    }

    #[test]
    fn a_full_sample_leaves_out_what_takes_more_memory_and_continues_with_known_blocks() {
        // A block with one measure takes two rows of two values.
        let mut sample = Sample { max_values: 400, ..Sample::new(3, 2) };
        sample.begin_window(&window(), 100);
        for block in 0..110 {
            sample.add(block, 3, &[(1, 6)]);
        }
        assert_eq!((sample.left_out(), sample.values), (30, 400));
        assert_eq!((sample.executions_seen(100), sample.rate(100, 1)), (0, None));
        sample.add(0, 3, &[(1, 12)]);
        assert_eq!((sample.left_out(), sample.rate(0, 1)), (30, Some(3.0)));
        sample.add(0, 3, &[(1, 12), (2, 1)]);
        assert_eq!((sample.left_out(), sample.rate(0, 1)), (33, Some(3.0)), "another measure takes another column");
        sample.begin_window(&window(), 100);
        sample.add(0, 3, &[(1, 12)]);
        assert_eq!((sample.left_out(), sample.executions_seen(0)), (36, 6), "another group takes another row");
    }
}
