//! Accesses that change nothing: warming passes over them.
//!
//! An access leaves the state of the hierarchy as it is if its line was accessed last among the lines of its set, in the same way, and
//! nothing has happened to the line or to its translation since. Most accesses of programs are of this kind.

/// Lines that are remembered. All lines of a set share a row: there are at least as many sets.
const ROWS: usize = 64;

/// A row without a line.
const NONE: u64 = u64::MAX;

/// For each row, the line that was accessed last: its number in the pointer, with the pointer's tag, and in the lowest bit whether it
/// has been written. Only speed depends on it, so that snapshots do not have it.
#[derive(Clone)]
pub(super) struct Repeats {
    rows: [u64; ROWS],
    /// Whether anything is remembered.
    enabled: bool,
}

impl Default for Repeats {
    fn default() -> Repeats {
        Repeats { rows: [NONE; ROWS], enabled: false }
    }
}

impl Repeats {
    /// Returns a filter for a cache of `sets` sets with lines of `1 << line_shift` bytes, where addresses equal physical ones in the
    /// lowest `page_shift` bits. It remembers nothing where the sets of lines do not follow from the pointers.
    pub(super) fn new(sets: usize, line_shift: u32, page_shift: u32) -> Repeats {
        let enabled = sets.is_multiple_of(ROWS) && ROWS.ilog2() + line_shift <= page_shift;
        Repeats { enabled, ..Repeats::default() }
    }

    /// Returns whether an access to `line`, with its tag, changes nothing.
    #[inline(always)]
    pub(super) fn has(&self, line: u64, write: bool) -> bool {
        self.rows[line as usize % ROWS] | u64::from(!write) == line << 1 | 1
    }

    /// An access to `line`, with its tag, is made, the last one of its row.
    #[inline(always)]
    pub(super) fn note(&mut self, line: u64, write: bool) {
        if self.enabled {
            let row = &mut self.rows[line as usize % ROWS];
            let written = write || *row == line << 1 | 1;
            *row = line << 1 | u64::from(written);
        }
    }

    /// Something else happens to lines of the set of `line`, a physical line number.
    #[inline(always)]
    pub(super) fn forget(&mut self, line: u64) {
        self.rows[line as usize % ROWS] = NONE;
    }

    /// Something happens that may concern all lines.
    #[inline(always)]
    pub(super) fn forget_all(&mut self) {
        self.rows = [NONE; ROWS];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_repeats_another_one_if_no_other_line_of_its_row_comes_in_between() {
        let mut repeats = Repeats::new(64, 8, 16);
        repeats.note(5, false);
        assert_eq!([repeats.has(5, false), repeats.has(5, true), repeats.has(69, false)], [true, false, false]);
        repeats.note(5, true);
        repeats.note(5, false);
        assert!(repeats.has(5, true));
        repeats.note(69, true);
        assert!(!repeats.has(5, false));
        // The tag belongs to the line.
        assert!(repeats.has(69, true) && !repeats.has(1 << 48 | 69, false));
        repeats.forget(133);
        assert!(!repeats.has(69, false));
    }

    #[test]
    fn nothing_is_remembered_where_sets_do_not_follow_from_addresses() {
        for (sets, line_shift, page_shift) in [(32, 8, 16), (64, 8, 13)] {
            let mut repeats = Repeats::new(sets, line_shift, page_shift);
            repeats.note(5, false);
            assert!(!repeats.has(5, false));
        }
    }
}
