//! Marks of a set's pages, four in a word in the order of their last uses: pages with different marks are different, and one
//! look tells of four that none is meant. With each mark stands the way that its page is in, so that pages stay where they
//! are when their order changes.

/// Marks in a word.
pub const MARKS: usize = 4;
/// Bits of a mark with its way.
const BITS: u32 = u16::BITS;
/// The lowest and the highest bit of each mark with its way.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const HIGHEST: u64 = LOWEST << (BITS - 1);
/// The bits of ways.
const WAYS: u64 = LOWEST * (MARKS as u64 - 1);

/// What no marks make: all pages cannot be in the same way.
pub const NONE: u64 = 0;
/// The pages of ways in their order, and no mark that counts.
pub const EMPTY: u64 = 0x0003_0002_0001_0000;

/// The pages of the first ways, in their order, have these marks.
pub fn of(marks: impl Iterator<Item = u16>) -> u64 {
    let with = |(way, mark): (usize, u16)| u64::from(mark & !(MARKS as u16 - 1)) << (way as u32 * BITS);
    EMPTY | marks.take(MARKS).enumerate().map(with).fold(0, |word, mark| word | mark)
}

/// Zero unless a word has a mark; the lowest bit that is set lies in the first mark that is equal. Marks are equal when all
/// bits but the lowest two are.
#[inline(always)]
pub fn equal(word: u64, mark: u16) -> u64 {
    let apart = word ^ ((u64::from(mark) & !WAYS) * LOWEST);
    apart.wrapping_sub(LOWEST * MARKS as u64) & !apart & HIGHEST
}

/// The first place that a result of [`equal`], which is not zero, tells of.
#[inline(always)]
pub fn first(equal: u64) -> usize {
    (equal.trailing_zeros() / BITS) as usize
}

/// The way of the page at a place.
#[inline(always)]
pub fn way(word: u64, place: usize) -> usize {
    (word >> (place as u32 % MARKS as u32 * BITS)) as usize % MARKS
}

/// The place of the page in a way.
#[inline(always)]
pub fn place(word: u64, way: usize) -> usize {
    let apart = (word ^ (way as u64 * LOWEST)) & WAYS;
    first(apart.wrapping_sub(LOWEST) & !apart & HIGHEST)
}

/// The page at a place, or the one that comes instead, comes before all others and has this mark.
#[inline(always)]
pub fn to_front(word: u64, place: usize, mark: u16) -> u64 {
    let from = u64::MAX << (place as u32 % MARKS as u32 * BITS);
    let (ahead, behind) = (word & !from, word & from << BITS);
    let first = u64::from(mark) & !WAYS | way(word, place) as u64;
    behind | ahead << BITS | first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_its_marks_and_the_first_of_equal_ones_is_told() {
        let marks = of([28, 0, 0xfffc, 28].into_iter());
        assert_eq!([28, 0, 0xffff].map(|mark| first(equal(marks, mark))), [0, 1, 2]);
        assert_eq!([4, 24, 32, 0x8000, 0xfff8].map(|mark| equal(marks, mark)), [0; 5]);
        assert_eq!(equal(marks, 31), equal(marks, 28));
    }

    #[test]
    fn marks_and_ways_move_as_the_entries_of_a_list_do() {
        let mut list = [(4u16, 0usize), (8, 1), (12, 2), (0xfffc, 3)];
        let mut marks = of(list.map(|(mark, _)| mark).into_iter());
        for step in 0..40 {
            let (at, mark) = (step * 7 % 5 % MARKS, 4 * step as u16);
            marks = to_front(marks, at, mark);
            list[..=at].rotate_right(1);
            list[0].0 = mark;
            assert_eq!(std::array::from_fn(|place| way(marks, place)), list.map(|(_, way)| way));
            assert_eq!(list.map(|(_, way)| place(marks, way)), [0, 1, 2, 3]);
            let here = |place: usize| equal(marks, list[place].0) >> (16 * place) & 0xffff != 0;
            assert!((0..MARKS).all(here), "{step}");
        }
    }
}
