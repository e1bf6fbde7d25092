//! Marks of pages, four in a word: pages with different marks are different, and one look tells of four that none is
//! meant.

/// Marks in a word.
pub const MARKS: usize = 4;
/// Bits of a mark.
const BITS: u32 = u16::BITS;
/// The lowest and the highest bit of each mark.
const LOWEST: u64 = 0x0001_0001_0001_0001;
const HIGHEST: u64 = LOWEST << (BITS - 1);

/// Zero unless a word has a mark; the lowest bit that is set lies in the first mark that is equal.
#[inline(always)]
pub fn equal(word: u64, mark: u16) -> u64 {
    let apart = word ^ (u64::from(mark) * LOWEST);
    apart.wrapping_sub(LOWEST) & !apart & HIGHEST
}

/// The first place that a result of [`equal`], which is not zero, tells of.
#[inline(always)]
pub fn first(equal: u64) -> usize {
    (equal.trailing_zeros() / BITS) as usize
}

/// A mark comes before the others of a word; the one at `place` goes.
#[inline(always)]
pub fn to_front(word: u64, place: usize, mark: u16) -> u64 {
    let shift = place as u32 % MARKS as u32 * BITS;
    let behind = word & !(u64::MAX >> (u64::BITS - BITS - shift));
    let ahead = word & !(u64::MAX << shift);
    behind | ahead << BITS | u64::from(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(marks: [u16; MARKS]) -> u64 {
        marks.iter().rev().fold(0, |word, &mark| to_front(word, MARKS - 1, mark))
    }

    #[test]
    fn a_word_has_its_marks_and_the_first_of_equal_ones_is_told() {
        let marks = word([7, 0, 0xffff, 7]);
        assert_eq!([7, 0, 0xffff].map(|mark| first(equal(marks, mark))), [0, 1, 2]);
        assert_eq!([1, 6, 8, 0x8000, 0xfffe].map(|mark| equal(marks, mark)), [0; 5]);
    }

    #[test]
    fn marks_move_as_the_entries_of_a_list_do() {
        let list = [1u16, 2, 3, 0xffff];
        for place in 0..MARKS {
            let mut moved = list;
            moved[..=place].rotate_right(1);
            moved[0] = 9;
            assert_eq!(to_front(word(list), place, 9), word(moved), "{place}");
        }
    }
}
