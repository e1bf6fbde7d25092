//! Pseudo-LRU by a binary tree, with one bit for each inner node.

use super::Policy;

/// Levels of the tree: it has a leaf for each way that a cache can have. Leaves beyond those that it has are never
/// candidates, and the tree leads past them.
const LEVELS: u32 = 4;

/// Bit `n` of the word belongs to node `n`: node 1 is the root, and nodes `2 n` and `2 n + 1` are below node `n`. It is set
/// when the upper half of the node's ways was used less recently.
pub struct TreePlru;

impl Policy for TreePlru {
    const FILLS_EMPTY_WAYS_FIRST: bool = false;

    fn empty(_: usize) -> u64 {
        0
    }

    #[inline(never)]
    fn used(word: &mut u64, way: usize) {
        let mut node = 1;
        for level in (0..LEVELS).rev() {
            let upper = way >> level & 1;
            *word = *word & !(1 << node) | ((upper ^ 1) as u64) << node;
            node = 2 * node + upper;
        }
    }

    #[inline(always)]
    fn filled(word: &mut u64, way: usize) {
        TreePlru::used(word, way);
    }

    fn removed(_: &mut u64, _: usize, _: usize) {}

    #[inline(never)]
    fn victim(word: u64, candidates: u32) -> usize {
        let (mut node, mut way) = (1, 0);
        for level in (0..LEVELS).rev() {
            let half = |upper: usize| candidates >> (way + (upper << level)) & ((1 << (1 << level)) - 1);
            let wanted = (word >> node & 1) as usize;
            let upper = if half(wanted) == 0 { wanted ^ 1 } else { wanted };
            way += upper << level;
            node = 2 * node + upper;
        }
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ways: &[usize]) -> u64 {
        let mut word = TreePlru::empty(0);
        ways.iter().for_each(|&way| TreePlru::used(&mut word, way));
        word
    }

    #[test]
    fn the_bits_point_away_from_what_was_used() {
        // Four ways in order: the tree is exact. Then way 0 again: way 1 is the least recently used one, but the root points
        // to the other pair.
        assert_eq!(TreePlru::victim(after(&[0, 1, 2, 3]), 0b1111), 0);
        assert_eq!(TreePlru::victim(after(&[0, 1, 2, 3, 0]), 0b1111), 2);
        assert_eq!(TreePlru::victim(after(&[0, 1, 2, 3, 0, 2]), 0b1111), 1);
    }

    #[test]
    fn the_tree_leads_to_a_candidate_whatever_its_bits() {
        for used in 0..16 {
            let word = after(&[used]);
            assert!((0..16).all(|way| TreePlru::victim(word, 1 << way) == way));
            assert!(TreePlru::victim(word, 0b11_1111_1111_1111) < 14);
        }
    }
}
