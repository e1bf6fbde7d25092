//! Counting snoop filter: lines of this CMG's memory that the L2 caches of other CMGs may hold.

/// Counts lines of a CMG's memory that L2 caches of other CMGs hold, by the low bits of their line numbers, so that
/// streams do not share counters. No other CMG holds most lines; for these the filter saves snoops.
#[derive(Clone, serde::Deserialize, serde::Serialize)]
pub struct SnoopFilter {
    #[serde(with = "fxscope_calendar::array")]
    counts: Box<[u16; SnoopFilter::COUNTS]>,
    /// The sum of all counters.
    lines: u32,
}

impl SnoopFilter {
    /// Twice as many as an L2 cache has lines. A counter never comes near its limit: lines that share a counter also
    /// share a few sets of each L2 cache.
    const COUNTS: usize = 1 << 16;

    /// Whether another CMG may hold `line`. `false` is certain.
    #[inline(always)]
    #[must_use]
    pub fn may_hold(&self, line: u64) -> bool {
        self.lines != 0 && self.counts[line as usize % SnoopFilter::COUNTS] != 0
    }

    /// The L2 cache of another CMG has got `line`.
    pub fn add(&mut self, line: u64) {
        self.counts[line as usize % SnoopFilter::COUNTS] += 1;
        self.lines += 1;
    }

    /// The L2 cache of another CMG has lost `line`.
    pub fn remove(&mut self, line: u64) {
        self.counts[line as usize % SnoopFilter::COUNTS] -= 1;
        self.lines -= 1;
    }
}

impl Default for SnoopFilter {
    fn default() -> SnoopFilter {
        SnoopFilter { counts: Box::new([0; SnoopFilter::COUNTS]), lines: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_be_held_until_all_lines_that_share_its_counter_are_removed() {
        let mut filter = SnoopFilter::default();
        let other = 5 + SnoopFilter::COUNTS as u64;
        assert!(!filter.may_hold(5));
        filter.add(5);
        filter.add(other);
        filter.remove(5);
        assert!(filter.may_hold(5) && !filter.may_hold(6));
        filter.remove(other);
        assert!(!filter.may_hold(5));
        assert_eq!(filter.lines, 0);
    }
}
