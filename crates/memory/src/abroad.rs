//! Which lines of a CMG's memory other CMGs may hold.

/// How many lines of a CMG's memory L2 caches of other CMGs hold, by the lowest bits of their numbers: streams have a
/// number each. Most lines are held nowhere else, and this says so without asking the other CMGs.
pub struct Abroad {
    counts: Box<[u16; Abroad::COUNTS]>,
    /// All together.
    lines: u32,
}

impl Abroad {
    /// Twice as many as an L2 cache has lines. A count never comes near its limit: lines that share one share a few sets
    /// of each L2 cache, too.
    const COUNTS: usize = 1 << 16;

    /// Whether another CMG may hold `line`; `false` is certain.
    #[inline(always)]
    #[must_use]
    pub fn may_have(&self, line: u64) -> bool {
        self.lines != 0 && self.counts[line as usize % Abroad::COUNTS] != 0
    }

    /// An L2 cache of another CMG holds `line` from now on.
    pub fn add(&mut self, line: u64) {
        self.counts[line as usize % Abroad::COUNTS] += 1;
        self.lines += 1;
    }

    /// An L2 cache of another CMG does not hold `line` any more.
    pub fn remove(&mut self, line: u64) {
        self.counts[line as usize % Abroad::COUNTS] -= 1;
        self.lines -= 1;
    }
}

impl Default for Abroad {
    fn default() -> Abroad {
        Abroad { counts: Box::new([0; Abroad::COUNTS]), lines: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_be_abroad_until_all_that_share_their_count_are_back() {
        let mut abroad = Abroad::default();
        let other = 5 + Abroad::COUNTS as u64;
        assert!(!abroad.may_have(5));
        abroad.add(5);
        abroad.add(other);
        abroad.remove(5);
        assert!(abroad.may_have(5) && !abroad.may_have(6));
        abroad.remove(other);
        assert!(!abroad.may_have(5));
    }
}
