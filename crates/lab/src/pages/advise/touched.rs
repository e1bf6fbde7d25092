//! Pages that a core touches: with each page size, the misses that no TLB avoids.

use std::collections::BTreeSet;
use std::collections::HashSet;

use super::parts::NUMBERS;

/// The pages of the smallest size that were touched, by the number of their range.
pub(super) struct Touched {
    /// Log2 of the smallest page size, bytes.
    shift: u32,
    pages: [HashSet<u64>; NUMBERS],
    /// Those that were touched before what is counted began.
    before: [HashSet<u64>; NUMBERS],
    /// The last page of each number.
    last: [u64; NUMBERS],
}

impl Touched {
    /// Returns a core that has touched nothing; `smallest` is the smallest page size, bytes.
    pub fn new(smallest: u64) -> Touched {
        Touched {
            shift: smallest.trailing_zeros(),
            pages: std::array::from_fn(|_| HashSet::new()),
            before: std::array::from_fn(|_| HashSet::new()),
            last: [u64::MAX; NUMBERS],
        }
    }

    /// Touches an address.
    #[inline]
    pub fn touch(&mut self, number: u8, address: u64) {
        let page = address >> self.shift;
        let last = &mut self.last[usize::from(number)];
        if *last != page {
            *last = page;
            self.pages[usize::from(number)].insert(page);
        }
    }

    /// Begins to count: pages touched so far are not touched for the first time any more.
    pub fn begin(&mut self) {
        for (before, pages) in self.before.iter_mut().zip(&mut self.pages) {
            before.extend(pages.drain());
        }
        self.last = [u64::MAX; NUMBERS];
    }

    /// Adds the pages of another core.
    pub fn merge(&mut self, other: &Touched) {
        let both = [(&mut self.pages, &other.pages), (&mut self.before, &other.before)];
        for (all, pages) in both.into_iter().flat_map(|(all, others)| all.iter_mut().zip(others)) {
            all.extend(pages);
        }
    }

    /// Returns the numbers of touched pages: for each number, with each of `sizes` (bytes, ascending, the first is the smallest).
    pub fn counts(&self, sizes: &[u64]) -> Vec<Vec<u64>> {
        let count = |(pages, before): (&HashSet<u64>, &HashSet<u64>), bytes: &u64| {
            let more = bytes.trailing_zeros() - self.shift;
            let of = |pages: &HashSet<u64>| pages.iter().map(|page| page >> more).collect::<BTreeSet<u64>>();
            of(pages).difference(&of(before)).count() as u64
        };
        let numbers = self.pages.iter().zip(&self.before);
        numbers.map(|number| sizes.iter().map(|bytes| count(number, bytes)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_counted_once_with_each_size() {
        let mut one = Touched::new(1 << 16);
        let mut other = Touched::new(1 << 16);
        // 100 pages of 64 KiB from 1 MiB on lie in four of 2 MiB.
        (0..100).for_each(|page| one.touch(3, (1 << 20) + (page << 16)));
        (50..150).for_each(|page| other.touch(3, (1 << 20) + (page << 16) + 8));
        one.touch(0, 5);
        assert_eq!(one.counts(&[1 << 16, 1 << 21])[3], [100, 4]);
        one.merge(&other);
        assert_eq!(one.counts(&[1 << 16, 1 << 21])[3], [150, 6]);
        assert_eq!(one.counts(&[1 << 16, 1 << 21])[0], [1, 1]);
    }

    #[test]
    fn pages_that_were_touched_before_the_count_began_are_left_out_with_each_size() {
        let mut touched = Touched::new(1 << 16);
        // The last page of one large page, then all of it and one page of the next.
        touched.touch(3, 0x1f_0000);
        touched.begin();
        (0..=32).for_each(|page| touched.touch(3, page << 16));
        assert_eq!(touched.counts(&[1 << 16, 1 << 21])[3], [32, 1]);
    }
}
